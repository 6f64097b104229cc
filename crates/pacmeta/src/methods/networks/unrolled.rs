//! The exact derivative through K inner steps of a network: from an adjoint in v_K = p + w_K to one in p and in the inputs of S'.
//!
//! A step takes (v, a) to (v', a') with g = (v - p)/sigma^2 + tau grad L^(v, S'), a' = a + g^2, v' = v - rate g / sqrt(a') for Adagrad and
//! v' = v - rate g for gradient descent. It is recorded on a tape, whose derivative rules can be differentiated again; so are statistics
//! of batch norm and Adagrad's accumulators.
//!
//! Two ways back give the same numbers up to rounding:
//!
//! - [`WayBack::Tape`]: all steps on one tape, as automatic differentiation does it. Memory grows by the record of a pass and its
//!   derivative with every step.
//! - [`WayBack::Recompute`]: the steps run by hand-written passes, which keep (v, a) before each; on the way back each step is recorded on
//!   a tape of its own. Memory grows by the parameters that adapt with every step, and time by one more pass.

use std::sync::Arc;

use pacmeta_tensor::tape::bridge::ParameterVariables;
use pacmeta_tensor::{Array, Element, Key, Parameters, Result as TensorResult, Tape, Variable};
use serde::{Deserialize, Serialize};

use super::Place;
use crate::error::Result;
use crate::learners::head::Walk;
use crate::learners::head::steps::{Chain, Gibbs, HeadSteps, InnerOptimiser, Sampler};
use crate::learners::network::{Body, Derivative, Labelled, NetworkRoom};

/// How the way back through the inner steps is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum WayBack {
    /// On one tape of all steps.
    #[default]
    Tape,
    /// Step by step, each computed again.
    Recompute,
}

/// K steps from p on S'.
pub(super) struct Unrolled<'a, 'e, B: Body> {
    pub(super) place: Place<'a, B>,
    pub(super) examples: Labelled<'e, B::Inputs<'e>>,
    pub(super) inner: &'a HeadSteps,
    pub(super) gibbs: Gibbs,
    pub(super) way_back: WayBack,
    pub(super) walk: Walk<'a>,
}

/// (v, a) on a tape.
struct State<'t, E: Element> {
    position: ParameterVariables<'t, E>,
    accumulators: Vec<Variable<'t, E>>,
}

impl<B: Body> Unrolled<'_, '_, B> {
    /// Goes forward, lets `judge` see w_K as the only particle of a chain and write the adjoint of v_K into the derivative's parameters
    /// (and whatever it likes into its inputs), and turns that into the adjoint of p, adding that of the inputs of S'.
    pub(super) fn differentiate<T>(
        &self,
        chain: &mut Chain<B::Number>,
        room: &mut NetworkRoom<B>,
        gradient: Derivative<'_, B::Number>,
        judge: impl FnOnce(&Chain<B::Number>, &mut NetworkRoom<B>, Derivative<'_, B::Number>) -> Result<T>,
    ) -> Result<T> {
        match self.way_back {
            WayBack::Tape => self.on_one_tape(chain, room, gradient, judge),
            WayBack::Recompute => self.step_by_step(chain, room, gradient, judge),
        }
    }

    fn on_one_tape<T>(
        &self,
        chain: &mut Chain<B::Number>,
        room: &mut NetworkRoom<B>,
        mut gradient: Derivative<'_, B::Number>,
        judge: impl FnOnce(&Chain<B::Number>, &mut NetworkRoom<B>, Derivative<'_, B::Number>) -> Result<T>,
    ) -> Result<T> {
        let tape = Tape::new();
        let first = tape.parameters(&self.named(self.place.parameters)?);
        let leaf = self.place.network.body.leaf(&tape, self.examples.inputs)?;
        let mut state = State { position: first.clone(), accumulators: self.accumulators(&tape, None)? };
        for _ in 0..self.inner.steps {
            state = self.record(&tape, &first, state, leaf)?;
        }
        let adapted = state.position.to_parameters();
        let offsets = adapted.values().iter().zip(self.place.parameters).map(|(&v, &p)| v - p).collect();
        drop(adapted);
        let accumulators =
            state.accumulators.iter().flat_map(|variable| variable.value().values().to_vec()).collect();
        *chain = Chain::on_its_way(self.place.parameters.len(), offsets, accumulators);
        let result = judge(chain, room, gradient.reborrow())?;
        let adjoint = tape.parameters(&self.named(gradient.parameters)?);
        let total = weighted(&tape, state.position.variables(), adjoint.variables())?;
        let mut wanted = first.variables().to_vec();
        wanted.push(leaf);
        let mut found = tape.gradient_values(total, &wanted)?;
        let of_inputs = found.pop();
        write(&self.named(gradient.parameters)?, &found, gradient.parameters);
        add_inputs(of_inputs, gradient.inputs);
        room.tape_bytes = room.tape_bytes.max(tape.peak_bytes());
        Ok(result)
    }

    fn step_by_step<T>(
        &self,
        chain: &mut Chain<B::Number>,
        room: &mut NetworkRoom<B>,
        mut gradient: Derivative<'_, B::Number>,
        judge: impl FnOnce(&Chain<B::Number>, &mut NetworkRoom<B>, Derivative<'_, B::Number>) -> Result<T>,
    ) -> Result<T> {
        let size = self.place.parameters.len();
        let one = HeadSteps { steps: 1, ..*self.inner };
        let key = Key::new(0); // one particle from w = 0 without noise: nothing is drawn
        chain.start(size, Sampler::Steps, self.inner, self.gibbs.sigma_squared, key);
        let mut states = Vec::with_capacity(self.inner.steps);
        for _ in 0..self.inner.steps {
            states.push(chain.clone());
            let walk = Walk { inner: &one, ..self.walk };
            let target = (walk, self.gibbs);
            self.place.network.advance(target, self.place.parameters, self.examples, key, chain, room)?;
        }
        let kept: usize = states.iter().map(|state| state.numbers() * size_of::<B::Number>()).sum();
        room.kept_bytes = room.kept_bytes.max(kept);
        let result = judge(chain, room, gradient.reborrow())?;
        let mut of_accumulators: Option<Vec<Array<B::Number>>> = None;
        let mut of_start = vec![B::Number::ZERO; if self.gibbs.sigma_squared.is_finite() { size } else { 0 }];
        while let Some(state) = states.pop() {
            self.back_one(&state, &mut of_accumulators, &mut of_start, room, gradient.reborrow())?;
        }
        for (sum, value) in gradient.parameters.iter_mut().zip(of_start) {
            *sum += value;
        }
        Ok(result)
    }

    /// One step backwards: the adjoint of v' in the derivative becomes that of v; that of p is added beside it.
    fn back_one(
        &self,
        before: &Chain<B::Number>,
        of_accumulators: &mut Option<Vec<Array<B::Number>>>,
        of_start: &mut [B::Number],
        room: &mut NetworkRoom<B>,
        gradient: Derivative<'_, B::Number>,
    ) -> Result<()> {
        let tape = Tape::new();
        let mut position = self.place.parameters.to_vec();
        for (value, &offset) in position.iter_mut().zip(before.iter().flatten()) {
            *value += offset;
        }
        let first = tape.parameters(&self.named(self.place.parameters)?);
        let position = tape.parameters(&self.named(&position)?);
        let accumulators = self.accumulators(&tape, Some(before))?;
        let leaf = self.place.network.body.leaf(&tape, self.examples.inputs)?;
        let state = State { position: position.clone(), accumulators: accumulators.clone() };
        let after = self.record(&tape, &first, state, leaf)?;
        let adjoint = tape.parameters(&self.named(gradient.parameters)?);
        let mut total = weighted(&tape, after.position.variables(), adjoint.variables())?;
        if let Some(adjoints) = of_accumulators.take() {
            let adjoints: Vec<_> = adjoints.into_iter().map(|adjoint| tape.leaf(adjoint)).collect();
            total = (total + weighted(&tape, &after.accumulators, &adjoints)?)?;
        }
        let mut wanted = position.variables().to_vec();
        wanted.extend_from_slice(&accumulators);
        wanted.push(leaf);
        if !of_start.is_empty() {
            wanted.extend_from_slice(first.variables());
        }
        let mut found = tape.gradient_values(total, &wanted)?;
        let names = self.named(gradient.parameters)?;
        let tensors = position.variables().len();
        if !of_start.is_empty() {
            let of_first = found.split_off(tensors + accumulators.len() + 1);
            let mut part = vec![B::Number::ZERO; of_start.len()];
            write(&names, &of_first, &mut part);
            of_start.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        add_inputs(found.pop(), gradient.inputs);
        let rest = found.split_off(tensors);
        if !rest.is_empty() {
            *of_accumulators = Some(rest);
        }
        write(&names, &found, gradient.parameters);
        room.tape_bytes = room.tape_bytes.max(tape.peak_bytes());
        Ok(())
    }

    fn named(&self, values: &[B::Number]) -> Result<Parameters<B::Number>> {
        Ok(Parameters::from_values(Arc::new(self.place.network.layout()?), values.to_vec())?)
    }

    /// Adagrad's accumulators of a chain, or at their start; none for gradient descent.
    fn accumulators<'t>(
        &self,
        tape: &'t Tape<B::Number>,
        chain: Option<&Chain<B::Number>>,
    ) -> Result<Vec<Variable<'t, B::Number>>> {
        if self.inner.optimiser == InnerOptimiser::Gd {
            return Ok(Vec::new());
        }
        let size = self.place.parameters.len();
        let values = match chain {
            Some(chain) => chain.accumulators().to_vec(),
            None => vec![B::Number::from_f64(self.inner.accumulator_start); size],
        };
        Ok(tape.parameters(&self.named(&values)?).variables().to_vec())
    }

    /// One step.
    fn record<'t>(
        &self,
        tape: &'t Tape<B::Number>,
        first: &ParameterVariables<'t, B::Number>,
        state: State<'t, B::Number>,
        leaf: Variable<'t, B::Number>,
    ) -> TensorResult<State<'t, B::Number>> {
        let rate = B::Number::from_f64(self.inner.rate);
        let State { position, mut accumulators } = state;
        let slopes = tape.gradient(self.loss(&position, leaf)?, position.variables())?;
        let mut moved = Vec::with_capacity(slopes.len());
        for (index, (&variable, slope)) in position.variables().iter().zip(slopes).enumerate() {
            let mut direction = match self.gibbs.temperature {
                1.0 => slope,
                temperature => slope.scale(B::Number::from_f64(temperature)),
            };
            if self.gibbs.sigma_squared.is_finite() {
                let pull = B::Number::from_f64(1.0 / self.gibbs.sigma_squared);
                direction = (direction + (variable - first.variables()[index])?.scale(pull))?;
            }
            if let Some(accumulator) = accumulators.get_mut(index) {
                *accumulator = (*accumulator + direction.square())?;
                direction = (direction / accumulator.sqrt())?;
            }
            moved.push((variable - direction.scale(rate))?);
        }
        Ok(State { position: position.with_variables(moved)?, accumulators })
    }

    /// L^ on S'.
    fn loss<'t>(
        &self,
        variables: &ParameterVariables<'t, B::Number>,
        leaf: Variable<'t, B::Number>,
    ) -> TensorResult<Variable<'t, B::Number>> {
        let features = self.place.network.body.features(variables, self.examples.inputs, leaf)?;
        let weight = variables.get("head.weight")?;
        let labels = self.examples.labels;
        let features = match features.shape()[0] == labels.len() {
            true => features,
            false => features.slice(0, 0..labels.len())?,
        };
        let logits = (features.matmul_transposed(weight)? + variables.get("head.bias")?)?;
        Ok(-logits.log_softmax(1)?.pick(labels)?.mean())
    }
}

/// The sum of products of variables and constants.
fn weighted<'t, E: Element>(
    tape: &'t Tape<E>,
    variables: &[Variable<'t, E>],
    weights: &[Variable<'t, E>],
) -> TensorResult<Variable<'t, E>> {
    let mut total = tape.scalar(E::ZERO);
    for (&variable, &weight) in variables.iter().zip(weights) {
        total = (total + (variable * weight)?.sum())?;
    }
    Ok(total)
}

/// Tensors into their places of a flat buffer.
fn write<E: Element>(names: &Parameters<E>, tensors: &[Array<E>], buffer: &mut [E]) {
    for (entry, tensor) in names.layout().entries().iter().zip(tensors) {
        buffer[entry.range()].copy_from_slice(tensor.values());
    }
}

/// Adds the adjoint of the inputs of S', which are the first ones, where it is wanted.
fn add_inputs<E: Element>(found: Option<Array<E>>, inputs: &mut [E]) {
    if let Some(found) = found {
        inputs.iter_mut().zip(found.values()).for_each(|(sum, &value)| *sum += value);
    }
}
