//! A convolutional network all of whose parameters adapt: its loss, the derivative in all parameters, and inner steps.
//!
//! The parameters are those of the body, then those of the head ([`learners::head`](crate::learners::head)). Batch norm takes the
//! statistics of the pictures of each pass, and derivatives run through them. The steps are those of
//! [`head::steps`](crate::learners::head::steps): only what they are slopes of differs.

use pacmeta_tensor::conv::plain::{self, Pass};
use pacmeta_tensor::conv::{ConvBody, Images, Statistics, Workspace};
use pacmeta_tensor::simd::skinny::Begin;
use pacmeta_tensor::{Element, Key};

use super::head::steps::{Chain, Gibbs};
use super::head::{Examples, HeadShape, Outputs, Walk, WalkRoom, Weights, add_product, sum};
use crate::error::{Error, Result};

/// A body with hand-written derivatives.
pub trait Body: Sync {
    /// Its precision.
    type Number: Element;
    /// What a pass leaves for the way back.
    type Room;

    /// The sizes.
    fn sizes(&self) -> &ConvBody;

    /// Room for passes.
    fn room(&self) -> Self::Room;

    /// The features of pictures, normalised by their own statistics.
    ///
    /// # Errors
    /// When numbers do not fit the sizes.
    fn forward<'r>(
        &self,
        parameters: &[Self::Number],
        pixels: &[u8],
        room: &'r mut Self::Room,
    ) -> Result<&'r [Self::Number]>;

    /// Writes the gradient of all parameters of the body, after a forward pass with the same parameters.
    ///
    /// # Errors
    /// When numbers do not fit the sizes, or there was no forward pass.
    fn backward(
        &self,
        parameters: &[Self::Number],
        feature_gradient: &[Self::Number],
        room: &mut Self::Room,
        gradient: &mut [Self::Number],
    ) -> Result<()>;
}

impl Body for ConvBody {
    type Number = f32;
    type Room = Workspace;

    fn sizes(&self) -> &ConvBody {
        self
    }

    fn room(&self) -> Workspace {
        self.workspace()
    }

    fn forward<'r>(&self, parameters: &[f32], pixels: &[u8], room: &'r mut Workspace) -> Result<&'r [f32]> {
        Ok(ConvBody::forward(self, parameters, Images::Bytes(pixels), Statistics::Batch, room)?)
    }

    fn backward(
        &self,
        parameters: &[f32],
        feature_gradient: &[f32],
        room: &mut Workspace,
        gradient: &mut [f32],
    ) -> Result<()> {
        Ok(ConvBody::backward(self, parameters, feature_gradient, room, gradient)?)
    }
}

/// The body without tricks, in f64: for checks.
#[derive(Debug, Clone)]
pub struct PlainBody(pub ConvBody);

impl Body for PlainBody {
    type Number = f64;
    type Room = Option<Pass<f64>>;

    fn sizes(&self) -> &ConvBody {
        &self.0
    }

    fn room(&self) -> Self::Room {
        None
    }

    fn forward<'r>(&self, parameters: &[f64], pixels: &[u8], room: &'r mut Self::Room) -> Result<&'r [f64]> {
        let pass = plain::forward(self.0.shape(), parameters, &numbers(pixels), Statistics::Batch, None)?;
        Ok(room.insert(pass).features())
    }

    fn backward(
        &self,
        parameters: &[f64],
        feature_gradient: &[f64],
        room: &mut Self::Room,
        gradient: &mut [f64],
    ) -> Result<()> {
        match room {
            Some(pass) => Ok(pass.backward(parameters, feature_gradient, gradient)?),
            None => Err(Error::input("network", "there was no forward pass")),
        }
    }
}

/// Pixels as numbers from 0 to 1.
pub(crate) fn numbers<E: Element>(pixels: &[u8]) -> Vec<E> {
    pixels.iter().map(|&byte| E::from_f64(f64::from(byte) / 255.0)).collect()
}

/// Pictures of one batch. The first ones have labels; others take part in the batch's statistics only.
#[derive(Debug, Clone, Copy)]
pub struct Pictures<'a> {
    /// Bytes in the order picture, row, column, channel.
    pub pixels: &'a [u8],
    /// The class of each of the first pictures.
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
    /// A derivative before it is added to others.
    pub(crate) part: Vec<B::Number>,
    pub(crate) chain: Chain<B::Number>,
    pub(crate) second: Chain<B::Number>,
    /// The mean over particles.
    pub(crate) probabilities: Vec<B::Number>,
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
            chain: Chain::default(),
            second: Chain::default(),
            probabilities: Vec::new(),
        }
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
        HeadShape { features: self.body.sizes().feature_count(), classes: self.classes }
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        self.body.sizes().layout().len() + self.head().parameters()
    }

    /// Checks parameters and pictures against the sizes.
    ///
    /// # Errors
    /// An input error that says what does not fit.
    pub(crate) fn check(&self, parameters: &[B::Number], pictures: Pictures<'_>) -> Result<()> {
        let fail = |message: String| Err(Error::input("network", message));
        let (expected, picture) = (self.parameters(), self.body.sizes().shape().image_len());
        if parameters.len() != expected {
            return fail(format!("it has {} parameters, expected {expected}", parameters.len()));
        }
        let count = pictures.pixels.len() / picture;
        if !pictures.pixels.len().is_multiple_of(picture) || pictures.labels.len() > count {
            let (pixels, labels) = (pictures.pixels.len(), pictures.labels.len());
            return fail(format!("there are {pixels} pixels for {labels} labels, expected {picture} each"));
        }
        match pictures.labels.iter().find(|&&label| label >= self.classes) {
            Some(label) => fail(format!("there is a label {label}, expected one below {}", self.classes)),
            None => Ok(()),
        }
    }

    /// L^ on the labelled pictures; leaves losses and probabilities of each in the room.
    pub(crate) fn loss(
        &self,
        parameters: &[B::Number],
        pictures: Pictures<'_>,
        room: &mut NetworkRoom<B>,
    ) -> Result<f64> {
        let shape = self.head();
        let (body, head) = parameters.split_at(self.body.sizes().layout().len());
        let features = self.body.forward(body, pictures.pixels, &mut room.pass)?;
        let labelled = &features[..pictures.labels.len() * shape.features];
        // kept beside the room of the pass, which is borrowed again on the way back
        room.feature_gradient.clear();
        room.feature_gradient.extend_from_slice(features);
        let examples = Examples { features: labelled, labels: pictures.labels };
        shape.outputs(head, examples, &mut room.outputs);
        let losses = room.outputs.losses.iter().map(|loss| loss.to_f64());
        Ok(losses.sum::<f64>() / pictures.labels.len() as f64)
    }

    /// L^ as [`loss`](Self::loss), and writes `factor` times its derivative in all parameters.
    pub(crate) fn gradient(
        &self,
        parameters: &[B::Number],
        pictures: Pictures<'_>,
        factor: f64,
        room: &mut NetworkRoom<B>,
        gradient: &mut [B::Number],
    ) -> Result<f64> {
        let loss = self.loss(parameters, pictures, room)?;
        let shape = self.head();
        let size = self.body.sizes().layout().len();
        let (body, head) = parameters.split_at(size);
        let (of_body, of_head) = gradient.split_at_mut(size);
        let NetworkRoom { pass, outputs, residuals, feature_gradient, .. } = room;
        let weights = Weights::Mean(B::Number::from_f64(factor));
        shape.residuals(&outputs.probabilities, pictures.labels, weights, residuals);
        let (labelled, others) = feature_gradient.split_at_mut(pictures.labels.len() * shape.features);
        shape.head_gradient(Begin::Zero, residuals, labelled, of_head);
        shape.feature_gradient(Begin::Zero, residuals, head, labelled);
        others.fill(B::Number::ZERO);
        self.body.backward(body, feature_gradient, pass, of_body)?;
        Ok(loss)
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
        pictures: Pictures<'_>,
        key: Key,
        chain: &mut Chain<B::Number>,
        room: &mut NetworkRoom<B>,
    ) -> Result<()> {
        chain.start(parameters.len(), walk.sampler, walk.inner, gibbs.sigma_squared, key.named("start"));
        let mut steps = std::mem::take(&mut room.walk);
        let mut position = std::mem::take(&mut room.position);
        position.resize(parameters.len(), B::Number::ZERO);
        let slope = |step: usize, offset: &[B::Number], slope: &mut [B::Number], _: Option<&mut _>| {
            sum(&mut position, parameters, offset);
            if !self.gradient(&position, pictures, gibbs.temperature, room, slope)?.is_finite() {
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
