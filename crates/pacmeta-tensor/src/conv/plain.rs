//! The body without tricks, in f32 or f64, for any sizes: the reference of the fast path, and, with its convolutions as matrix
//! products ([`Convolution::Products`]), the path for networks that the fast one does not take.
//!
//! A [`Pass`] keeps what the backward pass needs. [`Decisions`] of another pass can be imposed on it: where the arg-max
//! of a pool or the sign before a rectifier is decided by rounding, two correct programs differ by far more than
//! rounding, so a comparison must freeze them.

use super::shape::{BlockPlaces, BlockShape, ConvShape, Downsampling};
use super::{EPSILON, Moments, Statistics, check_len, windows};
use crate::element::Element;
use crate::error::Result;

/// How convolutions are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convolution {
    /// In simple loops over places, taps, channels and filters.
    Loops,
    /// As matrix products, an image at a time. Sums are in another order, which bits show.
    Products,
}

/// What the pools and rectifiers of a pass chose, a list for every block, in the order image, row, column, filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions {
    /// The position in its 2 x 2 window (2 * row + column) that a pool took.
    pub positions: Vec<Vec<u8>>,
    /// Whether a rectifier passed its input on.
    pub active: Vec<Vec<bool>>,
}

/// A forward pass and what its derivative needs.
#[derive(Clone, Debug)]
pub struct Pass<E> {
    shape: ConvShape,
    shapes: Vec<BlockShape>,
    convolution: Convolution,
    images: usize,
    blocks: Vec<BlockPass<E>>,
    decisions: Decisions,
    /// The images whose statistics normalise all; 0 for given ones.
    counted: usize,
    features: Vec<E>,
}

/// One block's part of a pass.
#[derive(Clone, Debug)]
struct BlockPass<E> {
    /// What came in: image, row, column, channel.
    input: Vec<E>,
    /// (z - mean) / standard deviation at every place of the convolution.
    normalised: Vec<E>,
    inverse_deviation: Vec<E>,
    moments: Moments,
}

/// Runs images (image, row, column, channel) through the body, in simple loops.
pub fn forward<E: Element>(
    shape: &ConvShape,
    parameters: &[E],
    images: &[E],
    statistics: Statistics<'_>,
    frozen: Option<&Decisions>,
) -> Result<Pass<E>> {
    forward_by(Convolution::Loops, shape, parameters, images, statistics, frozen)
}

/// The same with convolutions that are computed as is said, also by the pass's way back.
pub fn forward_by<E: Element>(
    convolution: Convolution,
    shape: &ConvShape,
    parameters: &[E],
    images: &[E],
    statistics: Statistics<'_>,
    frozen: Option<&Decisions>,
) -> Result<Pass<E>> {
    let shapes = shape.block_shapes()?;
    let count = super::image_count(shape, images.len())?;
    statistics.check(shape, count)?;
    check_len("parameters", shape.layout()?.len(), parameters.len())?;
    let mut pass = Pass {
        shape: *shape,
        convolution,
        images: count,
        blocks: Vec::new(),
        decisions: Decisions::default(),
        counted: statistics.counted(count),
        features: Vec::new(),
        shapes: Vec::new(),
    };
    let mut input = images.to_vec();
    for (index, (block, places)) in shapes.iter().zip(shape.places(&shapes)).enumerate() {
        let mut values = match convolution {
            Convolution::Loops => in_loops(shape, block, &places, parameters, &input, count),
            Convolution::Products => {
                let filters = by_tap(shape, block.channels, &parameters[places.weight.clone()]);
                windows::convolution(shape, block, (&filters, &parameters[places.bias.clone()]), &input)
            }
        };
        let moments = match statistics {
            Statistics::Batch | Statistics::First(_) => {
                moments(&values[..values.len() / count * pass.counted], shape.filters)
            }
            Statistics::Given(given) => given[index].clone(),
        };
        let inverse_deviation: Vec<E> =
            moments.variance.iter().map(|variance| E::from_f64(1.0 / (variance + EPSILON).sqrt())).collect();
        for pixel in values.chunks_exact_mut(shape.filters) {
            for (c, value) in pixel.iter_mut().enumerate() {
                *value = (*value - E::from_f64(moments.mean[c])) * inverse_deviation[c];
            }
        }
        let (scale, shift) = (&parameters[places.scale.clone()], &parameters[places.shift.clone()]);
        let size = count * block.pooled[0] * block.pooled[1] * shape.filters;
        let mut output = Vec::with_capacity(size);
        let (mut positions, mut active) = (Vec::with_capacity(size), Vec::with_capacity(size));
        for pixel in 0..size / shape.filters {
            let window = pixels_of(shape, block, pixel);
            for c in 0..shape.filters {
                let place = pixel * shape.filters + c;
                let value = |position: u8| {
                    values[window[usize::from(position)] * shape.filters + c] * scale[c] + shift[c]
                };
                let position = match frozen {
                    Some(decisions) => decisions.positions[index][place],
                    None => (1..shape.window()).fold(0, |best, position| {
                        if value(position) > value(best) { position } else { best }
                    }),
                };
                let chosen = value(position);
                let passes = frozen.map_or(chosen > E::ZERO, |decisions| decisions.active[index][place]);
                // not "> 0": a value that is not a number must reach the features
                output.push(if passes || chosen.is_nan() { chosen } else { E::ZERO });
                positions.push(position);
                active.push(passes);
            }
        }
        pass.decisions.positions.push(positions);
        pass.decisions.active.push(active);
        pass.blocks.push(BlockPass { input, normalised: values, inverse_deviation, moments });
        input = output;
    }
    pass.shapes = shapes;
    pass.features = input;
    Ok(pass)
}

impl ConvShape {
    /// Positions in a pool's window.
    pub(super) fn window(&self) -> u8 {
        match self.downsampling {
            Downsampling::MaxPool => 4,
            Downsampling::Stride => 1,
        }
    }
}

/// The index in the convolution's output that a position of a pooled place stands for.
pub(super) fn source(shape: &ConvShape, block: &BlockShape, place: usize, position: u8) -> usize {
    let pixel = pixels_of(shape, block, place / shape.filters)[usize::from(position)];
    pixel * shape.filters + place % shape.filters
}

/// The pixels of the convolution's output in the window of a pooled one; without pools it is its own.
fn pixels_of(shape: &ConvShape, block: &BlockShape, pixel: usize) -> [usize; 4] {
    if shape.downsampling == Downsampling::Stride {
        return [pixel; 4];
    }
    let ([height, width], [pooled_height, pooled_width]) = (block.output, block.pooled);
    let (row, column) = (pixel / pooled_width % pooled_height, pixel % pooled_width);
    let image = pixel / pooled_width / pooled_height;
    let first = (image * height + 2 * row) * width + 2 * column;
    [first, first + 1, first + width, first + width + 1]
}

/// Calls `visit` with every pair of an output pixel and an input pixel, and the tap between them.
pub(super) fn taps(
    shape: &ConvShape,
    block: &BlockShape,
    count: usize,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let stride = if shape.downsampling == Downsampling::Stride { 2 } else { 1 };
    let ([height, width], [rows, columns]) = (block.input, block.output);
    for image in 0..count {
        for row in 0..rows {
            for column in 0..columns {
                for tap in 0..9 {
                    // one more than the place in the image, so that it cannot be negative
                    let (y, x) = (row * stride + tap / 3, column * stride + tap % 3);
                    if (1..=height).contains(&y) && (1..=width).contains(&x) {
                        let output = (image * rows + row) * columns + column;
                        visit(output, (image * height + y - 1) * width + x - 1, tap);
                    }
                }
            }
        }
    }
}

/// Weights [out, in, 3, 3] as [tap, in, out], so that the inner loops run over filters.
fn by_tap<E: Element>(shape: &ConvShape, channels: usize, weight: &[E]) -> Vec<E> {
    let mut turned = vec![E::ZERO; weight.len()];
    for (index, &value) in weight.iter().enumerate() {
        let (filter, channel, tap) = (index / 9 / channels, index / 9 % channels, index % 9);
        turned[(tap * channels + channel) * shape.filters + filter] = value;
    }
    turned
}

/// z of all images, by the definition.
fn in_loops<E: Element>(
    shape: &ConvShape,
    block: &BlockShape,
    places: &BlockPlaces,
    parameters: &[E],
    input: &[E],
    count: usize,
) -> Vec<E> {
    let (filters, channels) = (shape.filters, block.channels);
    let weight = by_tap(shape, channels, &parameters[places.weight.clone()]);
    let mut output = parameters[places.bias.clone()].repeat(count * block.output[0] * block.output[1]);
    taps(shape, block, count, |to, from, tap| {
        let sums = &mut output[to * filters..][..filters];
        for channel in 0..channels {
            let value = input[from * channels + channel];
            let row = &weight[(tap * channels + channel) * filters..][..filters];
            for (sum, &weight) in sums.iter_mut().zip(row) {
                *sum += value * weight;
            }
        }
    });
    output
}

/// Means and (biased) variances of every filter, in double precision.
fn moments<E: Element>(values: &[E], filters: usize) -> Moments {
    let count = (values.len() / filters) as f64;
    let (mut mean, mut variance) = (vec![0.0; filters], vec![0.0; filters]);
    for pixel in values.chunks_exact(filters) {
        mean.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value.to_f64());
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    for pixel in values.chunks_exact(filters) {
        for (c, value) in pixel.iter().enumerate() {
            variance[c] += (value.to_f64() - mean[c]).powi(2);
        }
    }
    variance.iter_mut().for_each(|sum| *sum /= count);
    Moments { mean, variance }
}

impl<E: Element> Pass<E> {
    /// The sizes of the body.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// The features: image, row, column, filter.
    pub fn features(&self) -> &[E] {
        &self.features
    }

    /// What the pools and rectifiers chose.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// The means and variances that each block normalised with.
    pub fn moments(&self) -> Vec<Moments> {
        self.blocks.iter().map(|block| block.moments.clone()).collect()
    }

    /// The gradient of all parameters, given the gradient at the features; `gradient` is overwritten.
    pub fn backward(&self, parameters: &[E], feature_gradient: &[E], gradient: &mut [E]) -> Result<()> {
        let (shape, filters) = (&self.shape, self.shape.filters);
        let places = shape.places(&self.shapes);
        let total = places.last().map_or(0, |places| places.shift.end);
        check_len("parameters", total, parameters.len())?;
        check_len("gradient", total, gradient.len())?;
        check_len("feature gradient", self.features.len(), feature_gradient.len())?;
        let mut outer = feature_gradient.to_vec();
        for index in (0..self.blocks.len()).rev() {
            let (block, pass, places) = (&self.shapes[index], &self.blocks[index], &places[index]);
            let scale = &parameters[places.scale.clone()];
            let mut inner = vec![E::ZERO; pass.normalised.len()];
            let (mut scale_sum, mut shift_sum) = (vec![0.0; filters], vec![0.0; filters]);
            for (pixel, values) in outer.chunks_exact(filters).enumerate() {
                let window = pixels_of(shape, block, pixel);
                for (c, &value) in values.iter().enumerate() {
                    let place = pixel * filters + c;
                    if self.decisions.active[index][place] {
                        let position = usize::from(self.decisions.positions[index][place]);
                        let from = window[position] * filters + c;
                        inner[from] += value;
                        scale_sum[c] += value.to_f64() * pass.normalised[from].to_f64();
                        shift_sum[c] += value.to_f64();
                    }
                }
            }
            // through the normalisation: statistics depend on every place of the images that they are of
            let counted = inner.len() / filters / self.images * self.counted;
            let share = |sums: &[f64]| -> Vec<E> {
                sums.iter().map(|sum| E::from_f64(sum / counted as f64)).collect()
            };
            let (shift_mean, scale_mean) = (share(&shift_sum), share(&scale_sum));
            let pixels = inner.chunks_exact_mut(filters).zip(pass.normalised.chunks_exact(filters));
            for (pixel, (values, normalised)) in pixels.enumerate() {
                for (c, value) in values.iter_mut().enumerate() {
                    if pixel < counted {
                        *value = *value - shift_mean[c] - normalised[c] * scale_mean[c];
                    }
                    *value *= scale[c] * pass.inverse_deviation[c];
                }
            }
            for c in 0..filters {
                gradient[places.scale.start + c] = E::from_f64(scale_sum[c]);
                gradient[places.shift.start + c] = E::from_f64(shift_sum[c]);
                // the images' own statistics take the bias away again
                gradient[places.bias.start + c] = if self.counted > 0 {
                    E::ZERO
                } else {
                    E::from_f64(shift_sum[c]) * scale[c] * pass.inverse_deviation[c]
                };
            }
            outer = self.through_convolution(index, parameters, &inner, &mut gradient[places.weight.clone()]);
        }
        Ok(())
    }

    /// The weight gradient of a block, and the gradient at its input (empty for the first block).
    fn through_convolution(
        &self,
        index: usize,
        parameters: &[E],
        inner: &[E],
        weight_gradient: &mut [E],
    ) -> Vec<E> {
        let (shape, block, pass) = (&self.shape, &self.shapes[index], &self.blocks[index]);
        let (filters, channels) = (shape.filters, block.channels);
        let places = &shape.places(&self.shapes)[index];
        let weight = by_tap(shape, channels, &parameters[places.weight.clone()]);
        let (turned, outer) = match self.convolution {
            Convolution::Loops => self.back_in_loops(index, &weight, inner),
            Convolution::Products => {
                windows::backward(shape, block, &weight, (&pass.input, inner), index > 0)
            }
        };
        for (position, value) in weight_gradient.iter_mut().enumerate() {
            let (filter, channel, tap) = (position / 9 / channels, position / 9 % channels, position % 9);
            *value = turned[(tap * channels + channel) * filters + filter];
        }
        outer
    }

    /// The gradient of the filters [tap, in, out], and that at the input of a block (empty for the first), by the definition.
    fn back_in_loops(&self, index: usize, weight: &[E], inner: &[E]) -> (Vec<E>, Vec<E>) {
        let (shape, block, pass) = (&self.shape, &self.shapes[index], &self.blocks[index]);
        let (filters, channels) = (shape.filters, block.channels);
        let mut turned = vec![E::ZERO; weight.len()];
        let mut outer = vec![E::ZERO; if index == 0 { 0 } else { pass.input.len() }];
        taps(shape, block, self.images, |to, from, tap| {
            let slopes = &inner[to * filters..][..filters];
            for channel in 0..channels {
                let row = (tap * channels + channel) * filters..(tap * channels + channel + 1) * filters;
                let value = pass.input[from * channels + channel];
                for (sum, &slope) in turned[row.clone()].iter_mut().zip(slopes) {
                    *sum += value * slope;
                }
                if index > 0 {
                    let products = weight[row].iter().zip(slopes).map(|(&weight, &slope)| weight * slope);
                    outer[from * channels + channel] += products.sum();
                }
            }
        });
        (turned, outer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In double precision, where another order of sums is all that differs.
    #[test]
    fn products_are_what_the_loops_are() {
        let number = |i: usize| ((i * i % 10_007) as f64 * 0.37).sin();
        for (height, width, channels, filters, blocks, downsampling) in [
            (12, 9, 3, 8, 2, Downsampling::MaxPool),
            (13, 10, 1, 5, 2, Downsampling::Stride),
            (11, 8, 2, 4, 3, Downsampling::Stride),
            (9, 7, 2, 3, 1, Downsampling::MaxPool),
        ] {
            let shape = ConvShape { height, width, channels, filters, blocks, downsampling };
            let parameters: Vec<f64> = (0..shape.layout().unwrap().len()).map(number).collect();
            let images: Vec<f64> = (0..4 * shape.image_len()).map(|i| number(i + 5)).collect();
            for statistics in [Statistics::Batch, Statistics::First(3)] {
                let loops = forward(&shape, &parameters, &images, statistics, None).unwrap();
                let frozen = Some(loops.decisions());
                let by = Convolution::Products;
                let products = forward_by(by, &shape, &parameters, &images, statistics, frozen).unwrap();
                let slopes: Vec<f64> = (0..loops.features().len()).map(|i| number(i + 9)).collect();
                let gradient = |pass: &Pass<f64>| {
                    let mut gradient = vec![f64::NAN; parameters.len()];
                    pass.backward(&parameters, &slopes, &mut gradient).unwrap();
                    gradient
                };
                let near = |ours: &[f64], theirs: &[f64]| {
                    let error: f64 = ours.iter().zip(theirs).map(|(a, b)| (a - b).powi(2)).sum();
                    let size: f64 = theirs.iter().map(|b| b * b).sum();
                    assert!(size > 0.0 && error < 1e-18 * size, "{shape:?}: {error:e} of {size:e}");
                };
                near(products.features(), loops.features());
                near(&gradient(&products), &gradient(&loops));
            }
        }
    }
}
