//! MAML on a whole network, exact: q = K plain steps on S' from p on a tape, and the derivative of L^(q, S) in p through all of
//! them, statistics of batch norm and Adagrad's accumulators included.

use std::sync::Arc;

use pacmeta_tensor::conv::composite;
use pacmeta_tensor::tape::bridge::ParameterVariables;
use pacmeta_tensor::{Array, Element, Parameters, Result as TensorResult, Tape, Variable};

use super::{Place, Sets};
use crate::error::Result;
use crate::learners::head::steps::{Chain, HeadSteps, InnerOptimiser};
use crate::learners::network::{Body, Network, Pictures, numbers};
use crate::priors::network_layout;

/// L^(q, S), its derivative in p, and q - p as the only particle of a chain.
pub(super) fn differentiate<B: Body>(
    at: Place<'_, B>,
    sets: Sets<'_>,
    inner: &HeadSteps,
    chain: &mut Chain<B::Number>,
    gradient: &mut [B::Number],
) -> Result<f64> {
    let layout = Arc::new(network_layout(at.network.body.sizes(), at.network.classes)?);
    let start = Parameters::from_values(layout, at.parameters.to_vec())?;
    let tape = Tape::new();
    let first = tape.parameters(&start);
    let adapted = steps(at.network, &tape, &first, sets.subset, inner)?;
    let risk = loss(at.network, &adapted, sets.judged)?;
    tape.parameter_gradient_into(risk, &first, gradient)?;
    let adapted = adapted.to_parameters();
    let offsets = adapted.values().iter().zip(at.parameters).map(|(&q, &p)| q - p).collect();
    *chain = Chain::at(at.parameters.len(), offsets, inner);
    Ok(risk.item()?.to_f64())
}

/// K plain steps, all of them on the tape.
fn steps<'t, B: Body>(
    network: Network<'_, B>,
    tape: &'t Tape<B::Number>,
    first: &ParameterVariables<'t, B::Number>,
    pictures: Pictures<'_>,
    inner: &HeadSteps,
) -> TensorResult<ParameterVariables<'t, B::Number>> {
    let rate = B::Number::from_f64(inner.rate);
    let mut adapted = first.clone();
    let start = B::Number::from_f64(inner.accumulator_start);
    let mut accumulators: Vec<_> =
        first.variables().iter().map(|variable| tape.leaf(Array::full(variable.shape(), start))).collect();
    for _ in 0..inner.steps {
        let slopes = tape.gradient(loss(network, &adapted, pictures)?, adapted.variables())?;
        let mut moved = Vec::with_capacity(slopes.len());
        for ((&variable, slope), accumulator) in adapted.variables().iter().zip(slopes).zip(&mut accumulators)
        {
            let direction = match inner.optimiser {
                InnerOptimiser::Gd => slope,
                InnerOptimiser::Adagrad => {
                    *accumulator = (*accumulator + slope.square())?;
                    (slope / accumulator.sqrt())?
                }
            };
            moved.push((variable - direction.scale(rate))?);
        }
        adapted = adapted.with_variables(moved)?;
    }
    Ok(adapted)
}

/// L^ of a network on labelled pictures.
fn loss<'t, B: Body>(
    network: Network<'_, B>,
    variables: &ParameterVariables<'t, B::Number>,
    pictures: Pictures<'_>,
) -> TensorResult<Variable<'t, B::Number>> {
    let images = numbers::<B::Number>(pictures.pixels);
    let features = composite::features(network.body.sizes().shape(), variables, &images)?;
    let logits =
        (features.matmul_transposed(variables.get("head.weight")?)? + variables.get("head.bias")?)?;
    Ok(-logits.log_softmax(1)?.pick(pictures.labels)?.mean())
}
