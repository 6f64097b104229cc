//! The derivative rules: from the adjoint of a node to those of the nodes it was computed from.
//!
//! Each rule is written in tape operations on variables, never on bare arrays, so that its result can be
//! differentiated again. The one exception is a fused operation, whose gradient is recorded as a node that
//! refuses to be.

use std::sync::Arc;

use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::matmul::Orientation;
use crate::tape::operation::Operation;
use crate::tape::variable::Variable;

/// Calls `emit(source, contribution)` with what `output` adds to the adjoint of each of its sources that is
/// `needed`. At least one is.
pub(super) fn pull_back<'t, E: Element>(
    output: Variable<'t, E>,
    operation: &Operation<E>,
    adjoint: Variable<'t, E>,
    needed: impl Fn(usize) -> bool,
    mut emit: impl FnMut(usize, Variable<'t, E>) -> Result<()>,
) -> Result<()> {
    let tape = output.tape;
    let variable = |id: usize| tape.variable(id);
    let two = E::from_f64(2.0);
    let half = E::from_f64(0.5);
    match *operation {
        Operation::Leaf | Operation::Detach | Operation::Above => Ok(()),
        Operation::Add(a, b) => {
            if needed(a) {
                emit(a, adjoint.sum_to(&variable(a).shape())?)?;
            }
            if needed(b) {
                emit(b, adjoint.sum_to(&variable(b).shape())?)?;
            }
            Ok(())
        }
        Operation::Subtract(a, b) => {
            if needed(a) {
                emit(a, adjoint.sum_to(&variable(a).shape())?)?;
            }
            if needed(b) {
                emit(b, -adjoint.sum_to(&variable(b).shape())?)?;
            }
            Ok(())
        }
        Operation::Multiply(a, b) => {
            if needed(a) {
                emit(a, (adjoint * variable(b))?.sum_to(&variable(a).shape())?)?;
            }
            if needed(b) {
                emit(b, (adjoint * variable(a))?.sum_to(&variable(b).shape())?)?;
            }
            Ok(())
        }
        Operation::Divide(a, b) => {
            let quotient = (adjoint / variable(b))?;
            if needed(a) {
                emit(a, quotient.sum_to(&variable(a).shape())?)?;
            }
            if needed(b) {
                emit(b, -(quotient * output)?.sum_to(&variable(b).shape())?)?;
            }
            Ok(())
        }
        Operation::MatMul((a, left), (b, right)) => {
            let (x, y) = (variable(a), variable(b));
            if needed(a) {
                let contribution = match left {
                    Orientation::Plain => adjoint.matmul_oriented(Orientation::Plain, y, right.flipped())?,
                    Orientation::Transposed => y.matmul_oriented(right, adjoint, Orientation::Transposed)?,
                };
                emit(a, contribution)?;
            }
            if needed(b) {
                let contribution = match right {
                    Orientation::Plain => x.matmul_oriented(left.flipped(), adjoint, Orientation::Plain)?,
                    Orientation::Transposed => adjoint.matmul_oriented(Orientation::Transposed, x, left)?,
                };
                emit(b, contribution)?;
            }
            Ok(())
        }
        Operation::Affine(input, weight, bias) => {
            if needed(input) {
                emit(input, adjoint.matmul(variable(weight))?)?;
            }
            if needed(weight) {
                let (left, right) = (Orientation::Transposed, Orientation::Plain);
                emit(weight, adjoint.matmul_oriented(left, variable(input), right)?)?;
            }
            if needed(bias) {
                emit(bias, adjoint.sum_to(&variable(bias).shape())?)?;
            }
            Ok(())
        }
        // y = i (g - mean(g) - n mean(g n)) for each row, a symmetric map of g.
        Operation::NormalisePull { normalised, inverse, slopes } => {
            let (n, i, g) = (variable(normalised), variable(inverse), variable(slopes));
            if needed(slopes) {
                emit(slopes, n.normalise_pull(i, adjoint)?)?;
            }
            if needed(inverse) {
                emit(inverse, ((adjoint * output)?.sum_axis(1)? / i)?)?;
            }
            if needed(normalised) {
                let one = (adjoint * (g * n)?.mean_axis(1)?)?;
                let other = (g * (adjoint * n)?.mean_axis(1)?)?;
                emit(normalised, -((one + other)? * i)?)?;
            }
            Ok(())
        }
        Operation::BlockScores { left, right, factor, ref blocks } => {
            if needed(left) {
                emit(left, adjoint.block_mix(Orientation::Plain, variable(right), factor, blocks)?)?;
            }
            if needed(right) {
                emit(right, adjoint.block_mix(Orientation::Transposed, variable(left), factor, blocks)?)?;
            }
            Ok(())
        }
        Operation::BlockMix { weights: (weights, orientation), values, factor, ref blocks } => {
            if needed(weights) {
                let (left, right) = match orientation {
                    Orientation::Plain => (adjoint, variable(values)),
                    Orientation::Transposed => (variable(values), adjoint),
                };
                emit(weights, left.block_scores(right, factor, blocks)?)?;
            }
            if needed(values) {
                emit(values, variable(weights).block_mix(orientation.flipped(), adjoint, factor, blocks)?)?;
            }
            Ok(())
        }
        // y = p (g - sum(p g)) for each row, a symmetric map of g.
        Operation::BlockSoftmaxPull { probabilities, slopes, ref blocks } => {
            let (p, g) = (variable(probabilities), variable(slopes));
            if needed(slopes) {
                emit(slopes, p.block_softmax_pull(adjoint, blocks)?)?;
            }
            if needed(probabilities) {
                let along = (p * g)?.block_sum_rows(blocks)?.block_spread_rows(blocks)?;
                let across = (p * adjoint)?.block_sum_rows(blocks)?.block_spread_rows(blocks)?;
                let contribution = ((adjoint * (g - along)?)? - (g * across)?)?;
                emit(probabilities, contribution)?;
            }
            Ok(())
        }
        // From here to the lists there is one source, and it is needed, or this would not have been called.
        Operation::Negate(a) => emit(a, -adjoint),
        Operation::Scale(a, factor) => emit(a, adjoint.scale(factor)),
        Operation::Shift(a) => emit(a, adjoint),
        Operation::Exp(a) => emit(a, (adjoint * output)?),
        Operation::Log(a) => emit(a, (adjoint / variable(a))?),
        Operation::Tanh(a) => emit(a, (adjoint * (-output.square()).shift(E::ONE))?),
        Operation::Sigmoid(a) => emit(a, (adjoint * (output - output.square())?)?),
        Operation::Softplus(a) => emit(a, (adjoint * variable(a).sigmoid())?),
        Operation::Sqrt(a) => emit(a, (adjoint.scale(half) / output)?),
        Operation::Square(a) => emit(a, (adjoint * variable(a).scale(two))?),
        // The derivative of x^0 is zero, also where x^-1 is not finite.
        Operation::PowI(_, 0) => Ok(()),
        Operation::PowI(a, exponent) => {
            let lower = variable(a).powi(exponent.saturating_sub(1));
            emit(a, (adjoint * lower.scale(E::from_f64(f64::from(exponent))))?)
        }
        Operation::Maximum(a, constant) => emit(a, (adjoint * variable(a).above(constant))?),
        Operation::SumTo(a) => emit(a, adjoint.broadcast_to(&variable(a).shape())?),
        Operation::BroadcastTo(a) => emit(a, adjoint.sum_to(&variable(a).shape())?),
        Operation::Reshape(a) => emit(a, adjoint.reshape(&variable(a).shape())?),
        Operation::Transpose(a) => emit(a, adjoint.transpose()?),
        Operation::Slice { source, axis, start } => {
            emit(source, adjoint.pad(axis, start, variable(source).shape()[axis])?)
        }
        Operation::Pad { source, axis, start } => {
            emit(source, adjoint.slice(axis, start..start + variable(source).shape()[axis])?)
        }
        Operation::Gather { source, ref indices } => {
            emit(source, adjoint.scatter_rows(indices, variable(source).shape()[0])?)
        }
        Operation::Scatter { source, ref indices } => emit(source, adjoint.gather_rows(indices)?),
        // The softmax, written with the output so that its own derivative follows.
        Operation::LogSumExp(a) => emit(a, (adjoint * (variable(a) - output)?.exp())?),
        // X = S^-1 with S = (A + A')/2: dX = -X dS X.
        Operation::Inverse(a) => {
            let symmetric = (adjoint + adjoint.transpose()?)?.scale(half);
            emit(a, -output.matmul(symmetric)?.matmul(output)?)
        }
        // d log |S| = trace(S^-1 dS).
        Operation::LogDet(a) => emit(a, (adjoint * variable(a).inverse()?)?),
        Operation::Gelu { source, order } => {
            emit(source, (adjoint * variable(source).gelu_derivative(order.saturating_add(1)))?)
        }
        // i = (variance + epsilon)^(-1/2): di = -i^3 (x - mean) dx / columns.
        Operation::InverseDeviation(a) => {
            let x = variable(a);
            let factor = E::from_f64(-1.0 / x.shape()[1] as f64);
            let slope = (adjoint * output.powi(3))?.scale(factor);
            emit(a, ((x - x.mean_axis(1)?)? * slope)?)
        }
        Operation::Normalise { source, inverse } => {
            emit(source, output.normalise_pull(variable(inverse), adjoint)?)
        }
        Operation::BlockSoftmax { source, ref blocks } => {
            emit(source, output.block_softmax_pull(adjoint, blocks)?)
        }
        Operation::BlockSumRows { source, ref blocks } => emit(source, adjoint.block_spread_rows(blocks)?),
        Operation::BlockSpreadRows { source, ref blocks } => emit(source, adjoint.block_sum_rows(blocks)?),
        Operation::Concatenate { ref parts, axis } => {
            let mut start = 0;
            for &part in parts.iter() {
                let end = start + variable(part).shape()[axis];
                if needed(part) {
                    emit(part, adjoint.slice(axis, start..end)?)?;
                }
                start = end;
            }
            Ok(())
        }
        Operation::Fused { ref operation, ref inputs, ref saved } => {
            let flags: Vec<bool> = inputs.iter().map(|&input| needed(input)).collect();
            let gradients = tape.fused_gradients(operation, inputs, saved, output, adjoint, &flags)?;
            let sources: Arc<[usize]> = inputs.iter().copied().chain([adjoint.id]).collect();
            for (&input, gradient) in inputs.iter().zip(gradients) {
                if let Some(gradient) = gradient {
                    let (operation, sources) = (Arc::clone(operation), Arc::clone(&sources));
                    emit(input, tape.push(gradient, Operation::FusedGradient { operation, sources }))?;
                }
            }
            Ok(())
        }
        Operation::FusedGradient { ref operation, .. } => {
            Err(TensorError::NotDifferentiableTwice { operation: operation.name().to_owned() })
        }
    }
}
