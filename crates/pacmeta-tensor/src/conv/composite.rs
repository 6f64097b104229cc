//! The body in operations of the tape, whose derivatives can be differentiated again.
//!
//! | part of a block | operations |
//! |---|---|
//! | convolution | gather the nine neighbours of every place (a row of zeros stands for the frame), one matrix product |
//! | batch norm | means, squares, a root and products |
//! | rectifier | the larger of y and 0 |
//! | max-pool | gather what was largest in this pass |
//!
//! The adjoint of a gather is a scatter, and both are operations of the tape. A pool's choice is a constant, as is a rectifier's
//! side: what is differentiated is the smooth function around the point at hand.
//!
//! For exact second order on small networks, and for checks: every neighbourhood is written out and every step of an inner
//! loop stays on the tape, which costs many times the time and memory of [`ConvBody`](super::ConvBody).

use super::plain::{source, taps};
use super::shape::{BlockShape, ConvShape};
use super::{EPSILON, check_len, image_count};
use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::tape::bridge::ParameterVariables;
use crate::tape::variable::Variable;

/// The features of images (image, row, column, channel), row-major [images, features], normalised by the statistics of these
/// images. The variables have the names of [`ConvShape::layout`]; others among them are left alone.
///
/// ```
/// use std::sync::Arc;
/// use pacmeta_tensor::conv::{ConvShape, Downsampling, composite};
/// use pacmeta_tensor::{Parameters, Tape};
///
/// let downsampling = Downsampling::Stride;
/// let shape = ConvShape { height: 4, width: 4, channels: 1, filters: 2, blocks: 1, downsampling };
/// let mut parameters = Parameters::zeros(Arc::new(shape.layout()?));
/// parameters.values_mut().iter_mut().enumerate().for_each(|(i, value)| *value = (i as f64).sin());
/// let tape = Tape::new();
/// let variables = tape.parameters(&parameters);
/// let images: Vec<f64> = (0..3 * 16).map(|i| (i as f64).cos()).collect();
/// let features = composite::features(&shape, &variables, &images)?;
/// assert_eq!(features.shape()[..], [3, 8]);
/// let slope = tape.gradient(features.square().sum(), variables.variables())?[0];
/// let curvature = tape.parameter_gradient(slope.square().sum(), &variables)?;
/// assert!(curvature.values().iter().any(|&value| value != 0.0));
/// # Ok::<(), pacmeta_tensor::TensorError>(())
/// ```
///
/// # Errors
/// When the number of pixels does not fit the shape, or a variable is missing or has another shape.
pub fn features<'t, E: Element>(
    shape: &ConvShape,
    variables: &ParameterVariables<'t, E>,
    images: &[E],
) -> Result<Variable<'t, E>> {
    image_count(shape, images.len())?;
    match variables.variables().first() {
        Some(first) => {
            let pixels = Array::from_slice(&[images.len() / shape.channels, shape.channels], images)?;
            features_of(shape, variables, first.tape().leaf(pixels))
        }
        None => Err(TensorError::NoOperands { operation: "conv body" }),
    }
}

/// The same of images on the tape, row-major [images times places, channels].
///
/// # Errors
/// As [`features`].
pub fn features_of<'t, E: Element>(
    shape: &ConvShape,
    variables: &ParameterVariables<'t, E>,
    images: Variable<'t, E>,
) -> Result<Variable<'t, E>> {
    let count = image_count(shape, images.shape().count())?;
    let mut pixels = images;
    for (index, block) in shape.block_shapes()?.iter().enumerate() {
        let tensor = |name: &str| variables.get(&format!("body.block.{index}.{name}"));
        let weight = tensor("conv.weight")?;
        check_len("conv.weight", shape.filters * block.channels * 9, weight.shape().count())?;
        let convolved = (convolution(shape, block, weight, pixels, count)? + tensor("conv.bias")?)?;
        let centred = (convolved - convolved.mean_axis(0)?)?;
        let deviation = centred.square().mean_axis(0)?.shift(E::from_f64(EPSILON)).sqrt();
        let normalised = (centred / deviation)?;
        let scaled = ((normalised * tensor("norm.scale")?)? + tensor("norm.shift")?)?;
        pixels = pool(shape, block, scaled, count)?.relu();
    }
    pixels.reshape(&[count, pixels.shape().count() / count])
}

/// z without its bias, row-major [places, filters].
fn convolution<'t, E: Element>(
    shape: &ConvShape,
    block: &BlockShape,
    weight: Variable<'t, E>,
    input: Variable<'t, E>,
    count: usize,
) -> Result<Variable<'t, E>> {
    let (filters, channels) = (shape.filters, block.channels);
    let places = count * block.output[0] * block.output[1];
    let frame = input.shape()[0];
    let mut neighbours = vec![frame; places * 9];
    taps(shape, block, count, |to, from, tap| neighbours[to * 9 + tap] = from);
    let windows = input.pad(0, 0, frame + 1)?.gather_rows(&neighbours)?.reshape(&[places, 9 * channels])?;
    // [out, in, tap] as [out, tap, in], the order of a window
    let order: Vec<usize> = (0..filters * 9 * channels)
        .map(|index| {
            let (filter, tap, channel) = (index / channels / 9, index / channels % 9, index % channels);
            (filter * channels + channel) * 9 + tap
        })
        .collect();
    let turned = weight.reshape(&[order.len()])?.gather_rows(&order)?.reshape(&[filters, 9 * channels])?;
    windows.matmul_transposed(turned)
}

/// What the pools take of y: the first of the largest in each window.
fn pool<'t, E: Element>(
    shape: &ConvShape,
    block: &BlockShape,
    places: Variable<'t, E>,
    count: usize,
) -> Result<Variable<'t, E>> {
    let window = shape.window();
    if window == 1 {
        return Ok(places);
    }
    let pixels = count * block.pooled[0] * block.pooled[1];
    let array = places.value();
    let values = array.values();
    let largest = |place: usize| {
        let at = |position: u8| source(shape, block, place, position);
        (1..window).map(at).fold(at(0), |best, other| if values[other] > values[best] { other } else { best })
    };
    let taken: Vec<usize> = (0..pixels * shape.filters).map(largest).collect();
    places.reshape(&[values.len()])?.gather_rows(&taken)?.reshape(&[pixels, shape.filters])
}
