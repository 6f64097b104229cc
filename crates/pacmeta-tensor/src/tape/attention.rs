//! Operations on variables that transformers are made of. Each is one node and one array where simple operations would leave
//! several, and each has a rule in operations of the tape.

use std::sync::Arc;

use crate::array::Array;
use crate::blocks::{self, Blocks};
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::matmul::{self, Orientation};
use crate::shape::Shape;
use crate::tape::operation::Operation;
use crate::tape::variable::Variable;

/// Layers of transformers.
impl<'t, E: Element> Variable<'t, E> {
    /// This `[rows, in]` times the transpose of a weight `[out, in]`, plus a bias `[out]`.
    pub fn affine(self, weight: Self, bias: Self) -> Result<Self> {
        let operation = "affine";
        self.check_tape(weight, operation)?;
        self.check_tape(bias, operation)?;
        let [rows, depth] = self.matrix(operation)?;
        let [columns, other_depth] = weight.matrix(operation)?;
        if depth != other_depth {
            return Err(TensorError::ShapeMismatch { operation, left: self.shape(), right: weight.shape() });
        }
        if bias.shape()[..] != [columns] {
            return Err(TensorError::ShapeMismatch { operation, left: weight.shape(), right: bias.shape() });
        }
        let (left, right, row) = (self.value(), weight.value(), bias.value());
        let mut values = matmul::product(
            [rows, depth, columns],
            (left.values(), Orientation::Plain),
            (right.values(), Orientation::Transposed),
        );
        for sums in values.chunks_exact_mut(columns.max(1)) {
            for (sum, &bias) in sums.iter_mut().zip(row.values()) {
                *sum += bias;
            }
        }
        let value = Array::of(Shape::new(&[rows, columns])?, values);
        Ok(self.tape.push(value, Operation::Affine(self.id, weight.id, bias.id)))
    }

    /// x Phi(x), with the normal distribution function Phi.
    pub fn gelu(self) -> Self {
        self.gelu_derivative(0)
    }

    /// A derivative of x Phi(x). With the density phi the first is Phi + x phi; the others are phi times a polynomial, which
    /// starts as 2 - x^2 and becomes its derivative minus x times itself.
    pub(super) fn gelu_derivative(self, order: u32) -> Self {
        let operation = Operation::Gelu { source: self.id, order };
        let mut polynomial = vec![2.0, 0.0, -1.0];
        for _ in 2..order {
            let mut next = vec![0.0; polynomial.len() + 1];
            for (power, &coefficient) in polynomial.iter().enumerate() {
                next[power + 1] -= coefficient;
                if power > 0 {
                    next[power - 1] += power as f64 * coefficient;
                }
            }
            polynomial = next;
        }
        let polynomial: Vec<E> = polynomial.into_iter().map(E::from_f64).collect();
        let function = |x: E| {
            let (cumulative, density) = x.normal_curve();
            match order {
                0 => x * cumulative,
                1 => x.fused(density, cumulative),
                _ => {
                    density
                        * polynomial.iter().rev().fold(E::ZERO, |sum, &coefficient| sum.fused(x, coefficient))
                }
            }
        };
        self.tape.push(self.value().map(function), operation)
    }

    /// Each row minus its mean, divided by the root of its variance plus epsilon: layer norm before scale and shift.
    pub fn normalise_rows(self, epsilon: E) -> Result<Self> {
        let [rows, columns] = self.matrix("normalise_rows")?;
        let array = self.value();
        let part = E::ONE / E::from_f64(columns as f64);
        let (mut values, mut inverses) = (Vec::with_capacity(rows * columns), Vec::with_capacity(rows));
        for row in array.values().chunks_exact(columns.max(1)) {
            let mean = row.iter().copied().sum::<E>() * part;
            let variance = row.iter().map(|&value| (value - mean) * (value - mean)).sum::<E>() * part;
            let inverse = E::ONE / (variance + epsilon).sqrt();
            inverses.push(inverse);
            values.extend(row.iter().map(|&value| (value - mean) * inverse));
        }
        inverses.resize(rows, E::ZERO);
        let inverse = Array::of(Shape::new(&[rows, 1])?, inverses);
        let inverse = self.tape.push(inverse, Operation::InverseDeviation(self.id));
        let value = Array::of(self.shape(), values);
        Ok(self.tape.push(value, Operation::Normalise { source: self.id, inverse: inverse.id }))
    }

    /// For rows n of this, inverse deviations i and slopes g: i (g - mean(g) - n mean(g n)).
    pub(super) fn normalise_pull(self, inverse: Self, slopes: Self) -> Result<Self> {
        let [_, columns] = self.matrix("normalise_pull")?;
        let (normalised, inverses, gradient) = (self.value(), inverse.value(), slopes.value());
        let part = E::ONE / E::from_f64(columns as f64);
        let mut values = Vec::with_capacity(normalised.values().len());
        let rows = normalised
            .values()
            .chunks_exact(columns.max(1))
            .zip(gradient.values().chunks_exact(columns.max(1)));
        for ((row, slopes), &inverse) in rows.zip(inverses.values()) {
            let mean = slopes.iter().copied().sum::<E>() * part;
            let along = row.iter().zip(slopes).map(|(&n, &g)| n * g).sum::<E>() * part;
            values.extend(row.iter().zip(slopes).map(|(&n, &g)| inverse * (g - mean - n * along)));
        }
        let operation =
            Operation::NormalisePull { normalised: self.id, inverse: inverse.id, slopes: slopes.id };
        Ok(self.tape.push(Array::of(self.shape(), values), operation))
    }

    /// factor * x y' inside every sequence and head, as one vector (sequence, head, row, column).
    pub fn block_scores(self, other: Self, factor: E, blocks: &Arc<Blocks>) -> Result<Self> {
        let operation = "block_scores";
        self.check_tape(other, operation)?;
        blocks.check_states(operation, &self.shape())?;
        if self.shape() != other.shape() {
            return Err(TensorError::ShapeMismatch { operation, left: self.shape(), right: other.shape() });
        }
        let values = blocks::scores(blocks, &self.value(), &other.value(), factor);
        let blocks = Arc::clone(blocks);
        let record = Operation::BlockScores { left: self.id, right: other.id, factor, blocks };
        Ok(self.tape.push(Array::of(Shape::new(&[values.len()])?, values), record))
    }

    /// factor * S v inside every sequence and head, with scores S as stored or transposed.
    pub fn block_mix(
        self,
        orientation: Orientation,
        values: Self,
        factor: E,
        blocks: &Arc<Blocks>,
    ) -> Result<Self> {
        let operation = "block_mix";
        self.check_tape(values, operation)?;
        blocks.check_scores(operation, &self.shape())?;
        blocks.check_states(operation, &values.shape())?;
        let mixed = blocks::mix(blocks, (&self.value(), orientation), &values.value(), factor);
        let blocks = Arc::clone(blocks);
        let record =
            Operation::BlockMix { weights: (self.id, orientation), values: values.id, factor, blocks };
        Ok(self.tape.push(Array::of(values.shape(), mixed), record))
    }

    /// The softmax of every row of scores.
    pub fn block_softmax(self, blocks: &Arc<Blocks>) -> Result<Self> {
        blocks.check_scores("block_softmax", &self.shape())?;
        let values = blocks::softmax(blocks, self.value().values());
        let record = Operation::BlockSoftmax { source: self.id, blocks: Arc::clone(blocks) };
        Ok(self.tape.push(Array::of(self.shape(), values), record))
    }

    /// For probabilities p of this and slopes g: p (g - sum(p g)) along every row of scores.
    pub(super) fn block_softmax_pull(self, slopes: Self, blocks: &Arc<Blocks>) -> Result<Self> {
        let values = blocks::softmax_pull(blocks, self.value().values(), slopes.value().values());
        let blocks = Arc::clone(blocks);
        let record = Operation::BlockSoftmaxPull { probabilities: self.id, slopes: slopes.id, blocks };
        Ok(self.tape.push(Array::of(self.shape(), values), record))
    }

    /// The sum of every row of scores, a number for each sequence, head and row.
    pub fn block_sum_rows(self, blocks: &Arc<Blocks>) -> Result<Self> {
        blocks.check_scores("block_sum_rows", &self.shape())?;
        let values = blocks::sum_rows(blocks, self.value().values());
        let record = Operation::BlockSumRows { source: self.id, blocks: Arc::clone(blocks) };
        Ok(self.tape.push(Array::of(Shape::new(&[values.len()])?, values), record))
    }

    /// A number for each sequence, head and row, repeated along its row of scores.
    pub fn block_spread_rows(self, blocks: &Arc<Blocks>) -> Result<Self> {
        blocks.check_rows("block_spread_rows", &self.shape())?;
        let values = blocks::spread_rows(blocks, self.value().values());
        let record = Operation::BlockSpreadRows { source: self.id, blocks: Arc::clone(blocks) };
        Ok(self.tape.push(Array::of(Shape::new(&[values.len()])?, values), record))
    }
}
