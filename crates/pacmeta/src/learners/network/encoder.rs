//! Bodies on texts: the layers of an encoder above a threshold, on states that the layers below computed.

use std::ops::Range;

use pacmeta_tensor::encoder::{
    EncoderRoom, EncoderShape, Keep, States, composite, upper_backward, upper_forward,
};
use pacmeta_tensor::tape::bridge::ParameterVariables;
use pacmeta_tensor::{Array, Element, ParameterLayout, Result as TensorResult, Tape, Variable};

use super::{Body, Derivative};
use crate::error::{Error, Result};

/// The layers of an encoder from a threshold on, with its pooling.
#[derive(Debug, Clone)]
pub struct UpperLayers<E> {
    shape: EncoderShape,
    threshold: usize,
    layout: ParameterLayout,
    number: std::marker::PhantomData<E>,
}

impl<E: Element> UpperLayers<E> {
    /// The layers from `threshold` on.
    ///
    /// # Errors
    /// When the shape is impossible, or has fewer layers.
    pub fn new(shape: EncoderShape, threshold: usize) -> Result<Self> {
        if threshold > shape.layers {
            let message = format!("it is {threshold}, and the encoder has {} layers", shape.layers);
            return Err(Error::config("prior.threshold", message));
        }
        let layout = shape.upper_layout(threshold)?;
        Ok(Self { shape, threshold, layout, number: std::marker::PhantomData })
    }

    /// The sizes of the whole encoder.
    pub fn shape(&self) -> &EncoderShape {
        &self.shape
    }

    /// The number of layers below.
    pub fn threshold(&self) -> usize {
        self.threshold
    }
}

impl<E: Element> Body for UpperLayers<E> {
    type Number = E;
    type Room = EncoderRoom<E>;
    type Inputs<'a> = States<'a, E>;

    fn layout(&self) -> &ParameterLayout {
        &self.layout
    }

    fn feature_count(&self) -> usize {
        self.shape.hidden
    }

    fn room(&self) -> EncoderRoom<E> {
        EncoderRoom::new()
    }

    fn examples(&self, states: States<'_, E>) -> Result<usize> {
        let (count, tokens) = match (states.starts.first(), states.starts.last()) {
            (Some(first), Some(last)) => (states.starts.len() - 1, last.saturating_sub(*first)),
            _ => (0, 0),
        };
        match states.values.len() == tokens * self.shape.hidden {
            true => Ok(count),
            false => Err(Error::input(
                "network",
                format!("there are {} numbers for the states of {tokens} tokens", states.values.len()),
            )),
        }
    }

    fn part<'a>(&self, states: Self::Inputs<'a>, range: Range<usize>) -> Self::Inputs<'a> {
        let starts = &states.starts[range.start..=range.end];
        let place = |start: usize| (start - states.starts[0]) * self.shape.hidden;
        States { values: &states.values[place(starts[0])..place(starts[starts.len() - 1])], starts }
    }

    fn input_len(&self, states: States<'_, E>) -> usize {
        states.values.len()
    }

    fn forward<'r>(
        &self,
        parameters: &[E],
        states: States<'_, E>,
        room: &'r mut EncoderRoom<E>,
    ) -> Result<&'r [E]> {
        Ok(upper_forward(&self.shape, self.threshold, parameters, states, Keep::ForBackward, None, room)?)
    }

    fn backward(
        &self,
        parameters: &[E],
        states: States<'_, E>,
        feature_gradient: &[E],
        room: &mut EncoderRoom<E>,
        gradient: Derivative<'_, E>,
    ) -> Result<()> {
        let inputs = (!gradient.inputs.is_empty()).then_some(gradient.inputs);
        let (shape, threshold) = (&self.shape, self.threshold);
        let own = gradient.parameters;
        Ok(upper_backward(shape, threshold, parameters, states, feature_gradient, room, own, inputs)?)
    }

    fn leaf<'t>(&self, tape: &'t Tape<E>, states: States<'_, E>) -> TensorResult<Variable<'t, E>> {
        let hidden = self.shape.hidden;
        Ok(tape.leaf(Array::from_slice(&[states.values.len() / hidden, hidden], states.values)?))
    }

    fn features<'t>(
        &self,
        variables: &ParameterVariables<'t, E>,
        states: States<'_, E>,
        leaf: Variable<'t, E>,
    ) -> TensorResult<Variable<'t, E>> {
        composite::upper_features(&self.shape, self.threshold, variables, leaf, states.starts)
    }
}
