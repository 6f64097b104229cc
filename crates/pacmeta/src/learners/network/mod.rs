//! A network whose body adapts too, not only its head: its loss, the derivative in all parameters, and inner steps.
//!
//! The parameters are those of the body, then those of the head ([`learners::head`](crate::learners::head)). A body is whatever turns
//! inputs into features with a hand-written way back ([`Body`]): a whole convolutional network on pictures ([`convolution`]), or the upper
//! layers of an encoder on states of the lower ones ([`encoder`]).
//! The steps are those of [`head::steps`](crate::learners::head::steps): only what they are slopes of differs.

pub mod convolution;
pub mod encoder;

pub use convolution::{Pictures, PlainBody};
pub use encoder::UpperLayers;

use std::ops::Range;

use pacmeta_tensor::simd::skinny::Begin;
use pacmeta_tensor::tape::bridge::ParameterVariables;
use pacmeta_tensor::{Element, Key, ParameterLayout, Result as TensorResult, Tape, Variable};

use super::head::steps::{Chain, Gibbs};
use super::head::{Examples, HeadShape, Outputs, Walk, WalkRoom, Weights, add_product, sum};
use crate::error::{Error, Result};
use crate::priors::network_layout;

/// What turns inputs into features, with hand-written derivatives.
pub trait Body: Sync {
    /// Its precision.
    type Number: Element;
    /// What a pass leaves for the way back.
    type Room;
    /// Several examples without their labels.
    type Inputs<'a>: Copy;

    /// The names and shapes of its parameters.
    fn layout(&self) -> &ParameterLayout;

    /// Features of an example.
    fn feature_count(&self) -> usize;

    /// Room for passes.
    fn room(&self) -> Self::Room;

    /// The number of examples.
    ///
    /// # Errors
    /// When the inputs do not fit the sizes.
    fn examples(&self, inputs: Self::Inputs<'_>) -> Result<usize>;

    /// Some consecutive examples, which must exist.
    fn part<'a>(&self, inputs: Self::Inputs<'a>, range: Range<usize>) -> Self::Inputs<'a>;

    /// How many numbers of the inputs have a derivative: none where inputs are data, all where they come from layers below.
    fn input_len(&self, inputs: Self::Inputs<'_>) -> usize;

    /// The features of examples.
    ///
    /// # Errors
    /// When numbers do not fit the sizes.
    fn forward<'r>(
        &self,
        parameters: &[Self::Number],
        inputs: Self::Inputs<'_>,
        room: &'r mut Self::Room,
    ) -> Result<&'r [Self::Number]>;

    /// Writes the gradient of all parameters and of the inputs, after a forward pass with the same parameters and inputs.
    ///
    /// # Errors
    /// When numbers do not fit the sizes, or there was no forward pass.
    fn backward(
        &self,
        parameters: &[Self::Number],
        inputs: Self::Inputs<'_>,
        feature_gradient: &[Self::Number],
        room: &mut Self::Room,
        gradient: Derivative<'_, Self::Number>,
    ) -> Result<()>;

    /// Inputs as a leaf of a tape.
    ///
    /// # Errors
    /// When numbers do not fit the sizes.
    fn leaf<'t>(
        &self,
        tape: &'t Tape<Self::Number>,
        inputs: Self::Inputs<'_>,
    ) -> TensorResult<Variable<'t, Self::Number>>;

    /// The features in operations of the tape, which can be differentiated twice; `leaf` is that of the inputs.
    ///
    /// # Errors
    /// When numbers do not fit the sizes.
    fn features<'t>(
        &self,
        variables: &ParameterVariables<'t, Self::Number>,
        inputs: Self::Inputs<'_>,
        leaf: Variable<'t, Self::Number>,
    ) -> TensorResult<Variable<'t, Self::Number>>;
}

/// Where a derivative is written.
#[derive(Debug)]
pub struct Derivative<'a, E> {
    /// In all parameters.
    pub parameters: &'a mut [E],
    /// In the inputs: as many as [`Body::input_len`] says, or none where it is not wanted.
    pub inputs: &'a mut [E],
}

impl<E> Derivative<'_, E> {
    /// The same places, for a shorter time.
    pub fn reborrow(&mut self) -> Derivative<'_, E> {
        Derivative { parameters: self.parameters, inputs: self.inputs }
    }
}

/// Examples of one batch. The first ones have labels; others take part in the batch's statistics only, where there are some.
#[derive(Debug, Clone, Copy)]
pub struct Labelled<'a, I> {
    /// All examples.
    pub inputs: I,
    /// The class of each of the first ones.
    pub labels: &'a [usize],
}

/// Buffers of passes and steps, one room a thread.
pub struct NetworkRoom<B: Body> {
    pass: B::Room,
    pub(crate) outputs: Outputs<B::Number>,
    residuals: Vec<B::Number>,
    feature_gradient: Vec<B::Number>,
    walk: WalkRoom<B::Number>,
    /// p + w.
    pub(crate) position: Vec<B::Number>,
    /// A derivative in the parameters before it is added to others, and one in the inputs.
    pub(crate) part: Vec<B::Number>,
    pub(crate) input_part: Vec<B::Number>,
    pub(crate) chain: Chain<B::Number>,
    pub(crate) second: Chain<B::Number>,
    /// The mean over particles.
    pub(crate) probabilities: Vec<B::Number>,
    /// The most bytes that a tape has held.
    pub(crate) tape_bytes: usize,
    /// The most bytes of states kept from step to step.
    pub(crate) kept_bytes: usize,
}

impl<B: Body> NetworkRoom<B> {
    /// Empty room.
    pub fn new(body: &B) -> Self {
        Self {
            pass: body.room(),
            outputs: Outputs::default(),
            residuals: Vec::new(),
            feature_gradient: Vec::new(),
            walk: WalkRoom::default(),
            position: Vec::new(),
            part: Vec::new(),
            input_part: Vec::new(),
            chain: Chain::default(),
            second: Chain::default(),
            probabilities: Vec::new(),
            tape_bytes: 0,
            kept_bytes: 0,
        }
    }

    /// What passes have left.
    pub fn pass(&self) -> &B::Room {
        &self.pass
    }

    /// The most bytes that steps and tapes have needed so far; those of passes are in [`pass`](Self::pass).
    pub fn bytes(&self) -> RoomBytes {
        let own = [&self.position, &self.part, &self.input_part, &self.feature_gradient];
        let numbers = own.iter().map(|buffer| buffer.len()).sum::<usize>();
        let numbers = numbers + self.chain.numbers() + self.second.numbers() + self.walk.numbers();
        RoomBytes { steps: numbers * size_of::<B::Number>(), tape: self.tape_bytes, kept: self.kept_bytes }
    }
}

/// The most bytes of each phase of a task's gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoomBytes {
    /// Particles, accumulators and slopes of the inner steps.
    pub steps: usize,
    /// The tape of methods that differentiate through the steps.
    pub tape: usize,
    /// States of all steps, where they are kept to be gone through backwards.
    pub kept: usize,
}

impl RoomBytes {
    /// Their sum.
    pub fn total(&self) -> usize {
        self.steps + self.tape + self.kept
    }
}

/// A body and the number of classes of its head.
#[derive(Debug)]
pub struct Network<'a, B> {
    /// The body.
    pub body: &'a B,
    /// Classes of a task.
    pub classes: usize,
}

impl<B> Clone for Network<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Network<'_, B> {}

impl<B: Body> Network<'_, B> {
    /// The sizes of the head.
    pub fn head(&self) -> HeadShape {
        HeadShape { features: self.body.feature_count(), classes: self.classes }
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        self.body.layout().len() + self.head().parameters()
    }

    /// The names and shapes of all parameters: those of the body, then `head.weight` and `head.bias`.
    ///
    /// # Errors
    /// When a name is there twice.
    pub fn layout(&self) -> Result<ParameterLayout> {
        network_layout(self.body.layout(), self.head())
    }

    /// Checks parameters and examples against the sizes.
    ///
    /// # Errors
    /// An input error that says what does not fit.
    pub(crate) fn check(
        &self,
        parameters: &[B::Number],
        examples: Labelled<'_, B::Inputs<'_>>,
    ) -> Result<()> {
        let fail = |message: String| Err(Error::input("network", message));
        let expected = self.parameters();
        if parameters.len() != expected {
            return fail(format!("it has {} parameters, expected {expected}", parameters.len()));
        }
        let (count, labels) = (self.body.examples(examples.inputs)?, examples.labels.len());
        if labels > count {
            return fail(format!("there are {labels} labels for {count} examples"));
        }
        match examples.labels.iter().find(|&&label| label >= self.classes) {
            Some(label) => fail(format!("there is a label {label}, expected one below {}", self.classes)),
            None => Ok(()),
        }
    }

    /// L^ on the labelled examples; leaves losses and probabilities of each in the room.
    pub(crate) fn loss(
        &self,
        parameters: &[B::Number],
        examples: Labelled<'_, B::Inputs<'_>>,
        room: &mut NetworkRoom<B>,
    ) -> Result<f64> {
        let shape = self.head();
        let (body, head) = parameters.split_at(self.body.layout().len());
        let features = self.body.forward(body, examples.inputs, &mut room.pass)?;
        let labelled = &features[..examples.labels.len() * shape.features];
        // kept beside the room of the pass, which is borrowed again on the way back
        room.feature_gradient.clear();
        room.feature_gradient.extend_from_slice(features);
        shape.outputs(head, Examples { features: labelled, labels: examples.labels }, &mut room.outputs);
        let losses = room.outputs.losses.iter().map(|loss| loss.to_f64());
        Ok(losses.sum::<f64>() / examples.labels.len() as f64)
    }

    /// L^ as [`loss`](Self::loss), and writes `factor` times its derivative.
    pub(crate) fn gradient(
        &self,
        parameters: &[B::Number],
        examples: Labelled<'_, B::Inputs<'_>>,
        factor: f64,
        room: &mut NetworkRoom<B>,
        gradient: Derivative<'_, B::Number>,
    ) -> Result<f64> {
        let loss = self.loss(parameters, examples, room)?;
        let shape = self.head();
        let size = self.body.layout().len();
        let (body, head) = parameters.split_at(size);
        let (of_body, of_head) = gradient.parameters.split_at_mut(size);
        let NetworkRoom { pass, outputs, residuals, feature_gradient, .. } = room;
        let weights = Weights::Mean(B::Number::from_f64(factor));
        shape.residuals(&outputs.probabilities, examples.labels, weights, residuals);
        let (labelled, others) = feature_gradient.split_at_mut(examples.labels.len() * shape.features);
        shape.head_gradient(Begin::Zero, residuals, labelled, of_head);
        shape.feature_gradient(Begin::Zero, residuals, head, labelled);
        others.fill(B::Number::ZERO);
        let gradient = Derivative { parameters: of_body, inputs: gradient.inputs };
        self.body.backward(body, examples.inputs, feature_gradient, pass, gradient)?;
        Ok(loss)
    }

    /// Class probabilities of examples, row-major [examples, classes].
    ///
    /// # Errors
    /// When numbers do not fit the sizes.
    pub fn probabilities(
        &self,
        parameters: &[B::Number],
        inputs: B::Inputs<'_>,
        room: &mut NetworkRoom<B>,
    ) -> Result<Vec<B::Number>> {
        self.check(parameters, Labelled { inputs, labels: &[] })?;
        let (body, head) = parameters.split_at(self.body.layout().len());
        let mut probabilities = Vec::new();
        let features = self.body.forward(body, inputs, &mut room.pass)?;
        self.head().probabilities(head, features, &mut probabilities);
        Ok(probabilities)
    }

    /// Particles at their start, and K steps of them towards a Gibbs posterior over all parameters. `key` is that of start and
    /// noise.
    ///
    /// # Errors
    /// When a number is not finite any more.
    pub(crate) fn adapt(
        &self,
        (walk, gibbs): (Walk<'_>, Gibbs),
        parameters: &[B::Number],
        examples: Labelled<'_, B::Inputs<'_>>,
        key: Key,
        chain: &mut Chain<B::Number>,
        room: &mut NetworkRoom<B>,
    ) -> Result<()> {
        chain.start(parameters.len(), walk.sampler, walk.inner, gibbs.sigma_squared, key.named("start"));
        self.advance((walk, gibbs), parameters, examples, key, chain, room)
    }

    /// K steps of particles from where they are.
    ///
    /// # Errors
    /// When a number is not finite any more.
    pub(crate) fn advance(
        &self,
        (walk, gibbs): (Walk<'_>, Gibbs),
        parameters: &[B::Number],
        examples: Labelled<'_, B::Inputs<'_>>,
        key: Key,
        chain: &mut Chain<B::Number>,
        room: &mut NetworkRoom<B>,
    ) -> Result<()> {
        let mut steps = std::mem::take(&mut room.walk);
        let mut position = std::mem::take(&mut room.position);
        position.resize(parameters.len(), B::Number::ZERO);
        let slope = |step: usize, offset: &[B::Number], slope: &mut [B::Number], _: Option<&mut _>| {
            sum(&mut position, parameters, offset);
            let derivative = Derivative { parameters: &mut *slope, inputs: &mut [] };
            if !self.gradient(&position, examples, gibbs.temperature, room, derivative)?.is_finite() {
                return Err(walk.diverged(step));
            }
            if gibbs.sigma_squared.is_finite() {
                add_product(slope, B::Number::from_f64(1.0 / gibbs.sigma_squared), offset);
            }
            Ok(())
        };
        let result = walk.run(chain, key.named("noise"), None, &mut steps, slope);
        (room.walk, room.position) = (steps, position);
        result
    }
}
