//! The body that callers use: forward and backward in f32, on the path that fits its shape.

use std::sync::Arc;

use pulp::Arch;

use super::fast::{Buffers, Plan};
use super::plain::{self, Convolution, Decisions, Pass};
use super::shape::ConvShape;
use super::{Moments, Statistics, check_len, image_count};
use crate::error::{Result, TensorError};
use crate::parameters::ParameterLayout;

/// Images in the order image, row, column, channel.
#[derive(Clone, Copy, Debug)]
pub enum Images<'a> {
    /// Numbers as they are.
    Floats(&'a [f32]),
    /// Bytes, which stand for themselves divided by 255.
    Bytes(&'a [u8]),
}

impl Images<'_> {
    fn len(&self) -> usize {
        match self {
            Images::Floats(values) => values.len(),
            Images::Bytes(values) => values.len(),
        }
    }

    fn to_floats(self) -> Vec<f32> {
        match self {
            Images::Floats(values) => values.to_vec(),
            Images::Bytes(values) => values.iter().map(|&byte| f32::from(byte) / 255.0).collect(),
        }
    }

    /// Writes one image into its frame of zeros, whose inside alone is written.
    pub(super) fn pad(&self, shape: &ConvShape, image: usize, padded: &mut [f32]) {
        let (row_len, channels) = (shape.width * shape.channels, shape.channels);
        let rows = padded.chunks_exact_mut(row_len + 2 * channels).skip(1).take(shape.height);
        for (row, padded) in rows.enumerate() {
            let from = (image * shape.height + row) * row_len;
            let to = &mut padded[channels..][..row_len];
            match self {
                Images::Floats(values) => to.copy_from_slice(&values[from..][..row_len]),
                Images::Bytes(values) => {
                    for (to, &byte) in to.iter_mut().zip(&values[from..][..row_len]) {
                        *to = f32::from(byte) / 255.0;
                    }
                }
            }
        }
    }
}

/// A convolutional body: sizes, parameter layout and the path chosen for them.
///
/// ```
/// use pacmeta_tensor::conv::{ConvBody, ConvShape, Images, Statistics};
///
/// let body = ConvBody::new(ConvShape { height: 28, width: 28, ..ConvShape::MINI_IMAGENET })?;
/// let parameters: Vec<f32> = (0..body.layout().len()).map(|i| (i as f32).sin()).collect();
/// let images: Vec<u8> = (0..3 * 28 * 28 * 3).map(|i| (i % 251) as u8).collect();
/// let mut workspace = body.workspace();
/// let features = body.forward(&parameters, Images::Bytes(&images), Statistics::Batch, &mut workspace)?.to_vec();
/// assert_eq!(features.len(), 3 * body.feature_count());
/// let mut gradient = vec![0.0; parameters.len()];
/// body.backward(&parameters, &features, &mut workspace, &mut gradient)?;
/// assert!(gradient.iter().all(|value| value.is_finite()));
/// # Ok::<(), pacmeta_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConvBody {
    shape: ConvShape,
    layout: Arc<ParameterLayout>,
    feature_count: usize,
    fast: Option<Plan>,
}

/// Room for passes of a body, used again from call to call; it keeps what the backward pass needs.
pub struct Workspace(State);

enum State {
    Empty,
    Plain(Box<Pass<f32>>),
    Fast(Box<Buffers>),
}

impl ConvBody {
    /// A body of the given sizes, which must leave at least one pixel behind the last block.
    pub fn new(shape: ConvShape) -> Result<Self> {
        let shapes = shape.block_shapes()?;
        let layout = Arc::new(shape.layout()?);
        let pooled = shapes.last().map_or(0, |block| block.pooled[0] * block.pooled[1]);
        let fast = Plan::new(&shape, &shapes);
        Ok(ConvBody { shape, layout, feature_count: pooled * shape.filters, fast })
    }

    /// The sizes.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// Names, shapes and places of the parameters: see [`ConvShape::layout`].
    pub fn layout(&self) -> &Arc<ParameterLayout> {
        &self.layout
    }

    /// Features of an image: rows, columns and filters behind the last block, in this order.
    pub fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Whether it runs on the fast path, and not on [`plain`] with matrix products.
    pub fn is_fast(&self) -> bool {
        self.fast.is_some()
    }

    /// Empty room.
    pub fn workspace(&self) -> Workspace {
        Workspace(State::Empty)
    }

    /// The features of a batch of images.
    pub fn forward<'w>(
        &self,
        parameters: &[f32],
        images: Images<'_>,
        statistics: Statistics<'_>,
        workspace: &'w mut Workspace,
    ) -> Result<&'w [f32]> {
        check_len("parameters", self.layout.len(), parameters.len())?;
        let count = image_count(&self.shape, images.len())?;
        statistics.check(&self.shape, count)?;
        match &self.fast {
            Some(plan) => {
                // room of other sizes would have a frame that is not zero
                if !matches!(&workspace.0, State::Fast(buffers) if buffers.shape() == Some(&self.shape)) {
                    workspace.0 = State::Fast(Box::new(Buffers::new(&self.shape)));
                }
                match &mut workspace.0 {
                    State::Fast(buffers) => {
                        Ok(plan.forward(Arch::new(), parameters, images, count, statistics, buffers))
                    }
                    _ => Err(no_pass()),
                }
            }
            None => {
                let by = Convolution::Products;
                let pass =
                    plain::forward_by(by, &self.shape, parameters, &images.to_floats(), statistics, None)?;
                workspace.0 = State::Plain(Box::new(pass));
                match &workspace.0 {
                    State::Plain(pass) => Ok(pass.features()),
                    _ => Err(no_pass()),
                }
            }
        }
    }

    /// The gradient of all parameters, given the gradient at the features of the last [`forward`](Self::forward) on this
    /// workspace with the same parameters; `gradient` is overwritten.
    pub fn backward(
        &self,
        parameters: &[f32],
        feature_gradient: &[f32],
        workspace: &mut Workspace,
        gradient: &mut [f32],
    ) -> Result<()> {
        check_len("parameters", self.layout.len(), parameters.len())?;
        check_len("gradient", self.layout.len(), gradient.len())?;
        match (&self.fast, &mut workspace.0) {
            (Some(plan), State::Fast(buffers)) if buffers.shape() == Some(&self.shape) => {
                check_len("feature gradient", buffers.features_len(), feature_gradient.len())?;
                plan.backward(Arch::new(), parameters, feature_gradient, buffers, gradient);
                Ok(())
            }
            (None, State::Plain(pass)) if pass.shape() == &self.shape => {
                pass.backward(parameters, feature_gradient, gradient)
            }
            _ => Err(no_pass()),
        }
    }
}

fn no_pass() -> TensorError {
    let reason = "the workspace holds no forward pass of this body: call forward first".to_owned();
    TensorError::Fused { operation: "conv body".to_owned(), reason }
}

impl Workspace {
    /// The means and variances that each block of the last forward pass normalised with; none before the first.
    pub fn moments(&self) -> Vec<Moments> {
        match &self.0 {
            State::Empty => Vec::new(),
            State::Plain(pass) => pass.moments(),
            State::Fast(buffers) => buffers.moments(),
        }
    }

    /// What the pools and rectifiers of the last forward pass chose, for comparisons with [`plain`].
    pub fn decisions(&self) -> Decisions {
        match &self.0 {
            State::Empty => Decisions::default(),
            State::Plain(pass) => pass.decisions().clone(),
            State::Fast(buffers) => buffers.decisions(),
        }
    }
}
