//! The fast path: 64 filters, pools, up to three channels.
//!
//! Images are cut into groups by their number alone. Groups run on rayon's threads; what is summed over images is summed
//! inside a group in the order of images, and then over groups in their order. So results do not depend on threads.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::block::{Affine, Backward, Deliver, Forward, Geometry, Scratch, Slope, WithTiles, rectify};
use super::first_layer::{AddTaken, FirstForward, MAX_CHANNELS, PATCH, Padded, Patch};
use super::gram::{AddGram, Gram};
use super::pixel::{FILTERS, Pixel, Positions, Sums, split};
use super::plain::Decisions;
use super::shape::{BlockPlaces, BlockShape, ConvShape, Downsampling};
use super::winograd::{Filters, Four, Three, filter_gradient, transform_filters};
use super::{EPSILON, Images, Moments, Statistics};

/// Images in a group, as far as there are enough for two groups.
const GROUP: usize = 5;

/// Tiles that go through a block at a time: their transforms should stay in the second-level cache.
const PIECE: usize = 56;

/// The size of a block's tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tile {
    Three,
    Four,
}

/// The plan of a body on the fast path.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    shape: ConvShape,
    shapes: Vec<BlockShape>,
    places: Vec<BlockPlaces>,
    /// Of the blocks behind the first.
    tiles: Vec<(Tile, Geometry)>,
}

/// What a forward pass leaves for the backward pass, and room that is used again.
#[derive(Default)]
pub(super) struct Buffers {
    shape: Option<ConvShape>,
    groups: Vec<Range<usize>>,
    batch_statistics: bool,
    padded: Vec<f32>,
    weight: Vec<Pixel>,
    gram: Vec<Gram>,
    positions: Vec<[u8; FILTERS]>,
    blocks: Vec<Block>,
    features: Vec<f32>,
    /// Of each group: sums of V' Y at the points of a block's tiles.
    gradients: Vec<Vec<Pixel>>,
    gradient: Vec<Pixel>,
    first_gradients: Vec<[Patch; FILTERS]>,
    scratch: Mutex<Vec<Scratch>>,
}

struct Block {
    /// 1 or -1: the sign of the scale.
    signs: [f32; FILTERS],
    filters: Filters,
    output: Vec<Pixel>,
    taken: Vec<Pixel>,
    positions: Vec<Positions>,
    slopes: Vec<Pixel>,
    affine: Affine,
    moments: Moments,
    /// The mean of the turned filters, without bias.
    mean: Sums,
    inverse_deviation: Sums,
}

impl Default for Block {
    fn default() -> Self {
        Block {
            signs: [1.0; FILTERS],
            filters: Filters { forward: Vec::new(), backward: Vec::new() },
            output: Vec::new(),
            taken: Vec::new(),
            positions: Vec::new(),
            slopes: Vec::new(),
            affine: Affine { scale: Pixel::ZERO, shift: Pixel::ZERO, mean: Pixel::ZERO },
            moments: Moments { mean: Vec::new(), variance: Vec::new() },
            mean: [0.0; FILTERS],
            inverse_deviation: [0.0; FILTERS],
        }
    }
}

impl Plan {
    /// A plan, if the fast path takes this shape.
    pub(super) fn new(shape: &ConvShape, shapes: &[BlockShape]) -> Option<Plan> {
        let fits = shape.filters == FILTERS
            && shape.channels <= MAX_CHANNELS
            && shape.downsampling == Downsampling::MaxPool;
        fits.then(|| Plan {
            shape: *shape,
            shapes: shapes.to_vec(),
            places: shape.places(shapes),
            tiles: shapes[1..]
                .iter()
                .map(|block| {
                    let work = |tile: usize| {
                        block.output.iter().map(|size| size.div_ceil(tile) * (tile + 2)).product::<usize>()
                    };
                    // larger tiles multiply less and transform more
                    let tile = if 100 * work(4) < 85 * work(3) { Tile::Four } else { Tile::Three };
                    let size = if tile == Tile::Four { 4 } else { 3 };
                    (tile, Geometry::new(block.output, block.pooled, size, PIECE))
                })
                .collect(),
        })
    }

    pub(super) fn forward<'b>(
        &self,
        arch: Arch,
        parameters: &[f32],
        images: Images<'_>,
        count: usize,
        statistics: Statistics<'_>,
        buffers: &'b mut Buffers,
    ) -> &'b [f32] {
        self.prepare(parameters, count, statistics, buffers);
        self.first_forward(arch, parameters, images, statistics, buffers);
        for index in 1..self.shapes.len() {
            self.block_forward(arch, index, parameters, statistics, buffers);
        }
        let last = &buffers.blocks[self.shapes.len() - 1];
        buffers.features.clear();
        for pixel in &last.taken {
            let terms = pixel.0.iter().zip(last.affine.scale.0.iter().zip(&last.affine.shift.0));
            // not `max`: what is not a number must be seen
            let rectified = terms.map(|(z, (scale, shift))| {
                let y = z.mul_add(*scale, *shift);
                if y < 0.0 { 0.0 } else { y }
            });
            buffers.features.extend(rectified);
        }
        &buffers.features
    }

    /// Makes room, and transforms the filters.
    fn prepare(&self, parameters: &[f32], count: usize, statistics: Statistics<'_>, buffers: &mut Buffers) {
        let groups = count.min(2).max(count.div_ceil(GROUP));
        buffers.groups =
            (0..groups).map(|group| group * count / groups..(group + 1) * count / groups).collect();
        buffers.batch_statistics = matches!(statistics, Statistics::Batch);
        buffers.blocks.resize_with(self.shapes.len(), Block::default);
        let (first, rest) = buffers.blocks.split_at_mut(1);
        let pooled = |index: usize| count * self.shapes[index].pooled.iter().product::<usize>();
        let sign = |scale: f32| if scale < 0.0 { -1.0 } else { 1.0 };
        first[0].signs = std::array::from_fn(|c| sign(parameters[self.places[0].scale.start + c]));
        first[0].taken.resize(pooled(0), Pixel::ZERO);
        if self.shapes.len() == 1 {
            first[0].slopes.resize(pooled(0), Pixel::ZERO);
        }
        buffers.positions.resize(pooled(0), [0; FILTERS]);
        let channels = self.shape.channels;
        buffers.weight.resize(9 * channels, Pixel::ZERO);
        for (index, &value) in parameters[self.places[0].weight.clone()].iter().enumerate() {
            let (filter, channel, tap) = (index / 9 / channels, index / 9 % channels, index % 9);
            buffers.weight[tap * channels + channel].0[filter] = first[0].signs[filter] * value;
        }
        rest.par_iter_mut().enumerate().with_max_len(1).for_each(|(index, block)| {
            let (tile, places) = (self.tiles[index].0, &self.places[index + 1]);
            block.signs = std::array::from_fn(|c| sign(parameters[places.scale.start + c]));
            let weight = &parameters[places.weight.clone()];
            match tile {
                Tile::Three => transform_filters::<Three, 3, 5>(weight, &block.signs, &mut block.filters),
                Tile::Four => transform_filters::<Four, 4, 6>(weight, &block.signs, &mut block.filters),
            }
            block.output.resize(count * self.tiles[index].1.pixels(), Pixel::ZERO);
            block.taken.resize(pooled(index + 1), Pixel::ZERO);
            block.positions.resize(pooled(index + 1), Positions::ZERO);
            block.slopes.resize(pooled(index + 1), Pixel::ZERO);
        });
    }

    /// Padded images, given their numbers.
    fn padded<'a>(&self, values: &'a [f32]) -> Padded<'a> {
        let ConvShape { height, width, channels, .. } = self.shape;
        Padded { values, height, width, channels }
    }

    fn first_forward(
        &self,
        arch: Arch,
        parameters: &[f32],
        images: Images<'_>,
        statistics: Statistics<'_>,
        buffers: &mut Buffers,
    ) {
        let (shape, block) = (&self.shape, &self.shapes[0]);
        let padded_len = self.padded(&[]).len();
        let count = buffers.groups.last().map_or(0, |group| group.end);
        buffers.padded.resize(count * padded_len, 0.0);
        buffers.gram.clear();
        buffers.gram.resize(buffers.groups.len(), [[0.0; PATCH]; PATCH]);
        let pooled = block.pooled[0] * block.pooled[1];
        let groups = &buffers.groups;
        let batch = buffers.batch_statistics;
        let weight = &buffers.weight;
        let work: Vec<_> = groups
            .iter()
            .zip(split(&mut buffers.padded, groups, padded_len))
            .zip(&mut buffers.gram)
            .zip(split(&mut buffers.blocks[0].taken, groups, pooled))
            .zip(split(&mut buffers.positions, groups, pooled))
            .collect();
        work.into_par_iter().with_max_len(1).for_each(|((((group, padded), gram), taken), positions)| {
            for (image, padded) in group.clone().zip(padded.chunks_exact_mut(padded_len)) {
                images.pad(shape, image, padded);
            }
            for image in 0..group.len() {
                let images = self.padded(padded);
                if batch {
                    arch.dispatch(AddGram { images, image, gram });
                }
                arch.dispatch(FirstForward {
                    images,
                    image,
                    weight,
                    pooled: block.pooled,
                    taken: &mut taken[image * pooled..][..pooled],
                    positions: &mut positions[image * pooled..][..pooled],
                });
            }
        });
        let (total, rest) = buffers.gram.split_at_mut(1);
        for gram in rest {
            for (to, from) in total[0].iter_mut().zip(gram) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            }
        }
        // sum z = w' s, sum z^2 = w' M w
        let mut sums = [[0.0; FILTERS]; 2];
        let taps = 9 * shape.channels;
        for c in 0..FILTERS {
            for i in 0..taps {
                let weight = f64::from(buffers.weight[i].0[c]);
                sums[0][c] += weight * total[0][i][taps];
                sums[1][c] += weight * gram_row(&total[0], i, &buffers.weight, c);
            }
        }
        let places = count * shape.height * shape.width;
        self.normalise(0, parameters, statistics, &sums, places, &mut buffers.blocks[0]);
    }

    fn block_forward(
        &self,
        arch: Arch,
        index: usize,
        parameters: &[f32],
        statistics: Statistics<'_>,
        buffers: &mut Buffers,
    ) {
        let (tile, geometry) = self.tiles[index - 1];
        let groups = &buffers.groups;
        let (before, behind) = buffers.blocks.split_at_mut(index);
        let (before, block) = (&before[index - 1], &mut behind[0]);
        let (pixels, pooled) = (geometry.pixels(), geometry.pooled_pixels());
        let mut sums = vec![[[0.0; FILTERS]; 2]; groups.len()];
        let (filters, pool) = (&block.filters.forward, &buffers.scratch);
        let work: Vec<_> = groups
            .iter()
            .zip(split(&mut block.output, groups, pixels))
            .zip(split(&mut block.taken, groups, pooled))
            .zip(split(&mut block.positions, groups, pooled))
            .zip(&mut sums)
            .collect();
        work.into_par_iter().with_max_len(1).for_each(|((((group, output), taken), positions), sums)| {
            let mut scratch = take_scratch(pool);
            let input = &before.taken[group.start * pixels..group.end * pixels];
            macro_rules! run {
                ($transform:ty, $m:literal, $t:literal) => {
                    arch.dispatch(WithTiles::<_, $m, $t>(Forward {
                        transform: PhantomData::<$transform>,
                        geometry,
                        input,
                        affine: &before.affine,
                        filters,
                        output,
                        taken,
                        positions,
                        sums,
                        scratch: &mut scratch,
                    }))
                };
            }
            match tile {
                Tile::Three => run!(Three, 3, 5),
                Tile::Four => run!(Four, 4, 6),
            }
            give_scratch(pool, scratch);
        });
        let count = groups.last().map_or(0, |group| group.end);
        self.normalise(index, parameters, statistics, &add_in_order(&sums), count * pixels, block);
    }

    /// From sums of z and its square (or given statistics) to what the next block does to z.
    fn normalise(
        &self,
        index: usize,
        parameters: &[f32],
        statistics: Statistics<'_>,
        sums: &[Sums; 2],
        count: usize,
        block: &mut Block,
    ) {
        let places = &self.places[index];
        block.moments = Moments { mean: vec![0.0; FILTERS], variance: vec![0.0; FILTERS] };
        for c in 0..FILTERS {
            let (sign, bias) = (f64::from(block.signs[c]), f64::from(parameters[places.bias.start + c]));
            let (mean, variance) = match statistics {
                Statistics::Batch => {
                    let mean = sums[0][c] / count as f64;
                    // not `max`: what is not a number must be seen
                    let variance = sums[1][c] / count as f64 - mean * mean;
                    (mean, if variance < 0.0 { 0.0 } else { variance })
                }
                Statistics::Given(moments) => {
                    (sign * (moments[index].mean[c] - bias), moments[index].variance[c])
                }
            };
            (block.moments.mean[c], block.moments.variance[c]) = (sign * mean + bias, variance);
            block.mean[c] = mean;
            block.inverse_deviation[c] = 1.0 / (variance + EPSILON).sqrt();
            let scale = f64::from(parameters[places.scale.start + c].abs()) * block.inverse_deviation[c];
            block.affine.mean.0[c] = mean as f32;
            block.affine.scale.0[c] = scale as f32;
            block.affine.shift.0[c] = (f64::from(parameters[places.shift.start + c]) - scale * mean) as f32;
        }
    }

    pub(super) fn backward(
        &self,
        arch: Arch,
        parameters: &[f32],
        feature_gradient: &[f32],
        buffers: &mut Buffers,
        gradient: &mut [f32],
    ) {
        let last = self.shapes.len() - 1;
        let block = &mut buffers.blocks[last];
        let (pixels, _) = feature_gradient.as_chunks::<FILTERS>();
        let slopes: Vec<Pixel> = pixels.iter().map(|pixel| Pixel(*pixel)).collect();
        let mut sums = [[0.0; FILTERS]; 2];
        arch.dispatch(Rectify {
            slopes: &slopes,
            taken: &block.taken,
            affine: &block.affine,
            to: &mut block.slopes,
            row: self.shapes[last].pooled[1],
            sums: &mut sums,
        });
        for index in (1..=last).rev() {
            let slope = self.slope(index, parameters, &sums, buffers, gradient);
            sums = self.block_backward(
                arch,
                index,
                &slope,
                buffers,
                &mut gradient[self.places[index].weight.clone()],
            );
        }
        let slope = self.slope(0, parameters, &sums, buffers, gradient);
        if last == 0 {
            self.first_alone(arch, buffers);
        }
        self.first_gradient(&slope, buffers, &mut gradient[self.places[0].weight.clone()]);
    }

    /// Writes the gradients of scale, shift and bias, and returns the constants of dz.
    fn slope(
        &self,
        index: usize,
        parameters: &[f32],
        sums: &[Sums; 2],
        buffers: &Buffers,
        gradient: &mut [f32],
    ) -> [Sums; 3] {
        let (block, places) = (&buffers.blocks[index], &self.places[index]);
        let images = buffers.groups.last().map_or(0, |group| group.end);
        let count = (images * self.shapes[index].output.iter().product::<usize>()) as f64;
        let mut constants = [[0.0; FILTERS]; 3];
        for c in 0..FILTERS {
            let (sign, inverse) = (f64::from(block.signs[c]), block.inverse_deviation[c]);
            let (shift_sum, scale_sum) = (sums[0][c], sums[1][c] * inverse);
            gradient[places.scale.start + c] = (sign * scale_sum) as f32;
            gradient[places.shift.start + c] = shift_sum as f32;
            let g = f64::from(parameters[places.scale.start + c].abs()) * inverse;
            constants[0][c] = g;
            if buffers.batch_statistics {
                gradient[places.bias.start + c] = 0.0;
                constants[2][c] = -g * scale_sum / count * inverse;
                constants[1][c] = -g * shift_sum / count - constants[2][c] * block.mean[c];
            } else {
                gradient[places.bias.start + c] = (sign * g * shift_sum) as f32;
            }
        }
        constants
    }

    fn block_backward(
        &self,
        arch: Arch,
        index: usize,
        constants: &[Sums; 3],
        buffers: &mut Buffers,
        weight_gradient: &mut [f32],
    ) -> [Sums; 2] {
        let (tile, geometry) = self.tiles[index - 1];
        let points = if tile == Tile::Three { 25 } else { 36 };
        let [g, a, b] = constants.map(|constant| Pixel(constant.map(|value| value as f32)));
        let slope = &Slope { g, a, b };
        let groups = &buffers.groups;
        let (before, behind) = buffers.blocks.split_at_mut(index);
        let (before, block) = (&mut before[index - 1], &behind[0]);
        let (pixels, pooled) = (geometry.pixels(), geometry.pooled_pixels());
        buffers.gradients.resize_with(groups.len(), Vec::new);
        buffers.first_gradients.resize(groups.len(), [Patch::ZERO; FILTERS]);
        let mut sums = vec![[[0.0; FILTERS]; 2]; groups.len()];
        let Block { taken: input, affine, slopes: delivered, .. } = before;
        let (input, affine) = (&*input, &*affine);
        let padded = self.padded(&buffers.padded);
        let padded_len = padded.len();
        let (first_positions, pool) = (&buffers.positions, &buffers.scratch);
        let delivered = if index == 1 {
            groups.iter().map(|_| &mut [][..]).collect()
        } else {
            split(delivered, groups, pixels)
        };
        let work: Vec<_> = groups
            .iter()
            .zip(&mut buffers.gradients)
            .zip(&mut buffers.first_gradients)
            .zip(delivered)
            .zip(&mut sums)
            .collect();
        work.into_par_iter().with_max_len(1).for_each(|((((group, gradient), first), delivered), sums)| {
            let mut scratch = take_scratch(pool);
            gradient.resize(points * FILTERS, Pixel::ZERO);
            let here = group.start * pixels..group.end * pixels;
            let after = group.start * pooled..group.end * pooled;
            macro_rules! run {
                ($transform:ty, $m:literal, $t:literal, $deliver:expr) => {
                    arch.dispatch(WithTiles::<_, $m, $t>(Backward {
                        transform: PhantomData::<$transform>,
                        geometry,
                        input: &input[here.clone()],
                        affine,
                        filters: &block.filters.backward,
                        output: &block.output[here.clone()],
                        positions: &block.positions[after.clone()],
                        slope,
                        slopes: &block.slopes[after],
                        gradient: &mut gradient[..points * FILTERS],
                        sums,
                        deliver: $deliver,
                        scratch: &mut scratch,
                    }))
                };
            }
            if index == 1 {
                *first = [Patch::ZERO; FILTERS];
                let deliver = ToFirst {
                    images: Padded { values: &padded.values[group.start * padded_len..], ..padded },
                    columns: geometry.width,
                    pixels,
                    positions: &first_positions[here.clone()],
                    sums: first,
                };
                match tile {
                    Tile::Three => run!(Three, 3, 5, deliver),
                    Tile::Four => run!(Four, 4, 6, deliver),
                }
            } else {
                let deliver = ToBlock { slopes: delivered, pixels, columns: geometry.width };
                match tile {
                    Tile::Three => run!(Three, 3, 5, deliver),
                    Tile::Four => run!(Four, 4, 6, deliver),
                }
            }
            give_scratch(pool, scratch);
        });
        let gradients = &buffers.gradients;
        buffers.gradient.resize(points * FILTERS, Pixel::ZERO);
        buffers.gradient.par_chunks_mut(FILTERS).enumerate().for_each(|(point, rows)| {
            for (row, sum) in rows.iter_mut().enumerate() {
                *sum = gradients[0][point * FILTERS + row];
                for gradient in &gradients[1..] {
                    let from = &gradient[point * FILTERS + row].0;
                    sum.0.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
                }
            }
        });
        match tile {
            Tile::Three => filter_gradient::<Three, 3, 5>(&buffers.gradient, &block.signs, weight_gradient),
            Tile::Four => filter_gradient::<Four, 4, 6>(&buffers.gradient, &block.signs, weight_gradient),
        }
        add_in_order(&sums)
    }

    /// D of a body of one block.
    fn first_alone(&self, arch: Arch, buffers: &mut Buffers) {
        let pooled = self.shapes[0].pooled;
        let pixels = pooled[0] * pooled[1];
        buffers.first_gradients.clear();
        buffers.first_gradients.push([Patch::ZERO; FILTERS]);
        let mut scratch = take_scratch(&buffers.scratch);
        for (image, slopes) in buffers.blocks[0].slopes.chunks_exact(pixels).enumerate() {
            arch.dispatch(AddTaken {
                images: self.padded(&buffers.padded),
                image,
                first_row: 0,
                columns: pooled[1],
                slopes,
                positions: &buffers.positions[image * pixels..][..pixels],
                patches: &mut scratch.windows,
                sums: &mut buffers.first_gradients[0],
            });
        }
        give_scratch(&buffers.scratch, scratch);
    }

    /// dw = g D + a s + b M w.
    fn first_gradient(&self, [g, a, b]: &[Sums; 3], buffers: &Buffers, gradient: &mut [f32]) {
        let (channels, gram) = (self.shape.channels, &buffers.gram[0]);
        let taps = 9 * channels;
        for c in 0..FILTERS {
            for i in 0..taps {
                let taken: f64 = buffers.first_gradients.iter().map(|sums| f64::from(sums[c].0[i])).sum();
                let dense = a[c] * gram[i][taps] + b[c] * gram_row(gram, i, &buffers.weight, c);
                let value = f64::from(buffers.blocks[0].signs[c]) * (g[c] * taken + dense);
                gradient[(c * channels + i % channels) * 9 + i / channels] = value as f32;
            }
        }
    }
}

/// Row i of M w for one filter.
fn gram_row(gram: &Gram, i: usize, weight: &[Pixel], filter: usize) -> f64 {
    let entry = |j: usize| gram[i.min(j)][i.max(j)];
    weight.iter().enumerate().map(|(j, weight)| entry(j) * f64::from(weight.0[filter])).sum()
}

fn add_in_order(sums: &[[Sums; 2]]) -> [Sums; 2] {
    let mut total = [[0.0; FILTERS]; 2];
    for sums in sums {
        for (total, sums) in total.iter_mut().zip(sums) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    total
}

/// Room of an earlier worker, or new room. A lock that a panic poisoned holds nothing that could be wrong.
fn take_scratch(pool: &Mutex<Vec<Scratch>>) -> Scratch {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop().unwrap_or_default()
}

fn give_scratch(pool: &Mutex<Vec<Scratch>>, scratch: Scratch) {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(scratch);
}

/// Backward through the last rectifier.
struct Rectify<'a> {
    slopes: &'a [Pixel],
    taken: &'a [Pixel],
    affine: &'a Affine,
    to: &'a mut [Pixel],
    row: usize,
    sums: &'a mut [Sums; 2],
}

impl WithSimd for Rectify<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.slopes.chunks(self.row).zip(self.taken.chunks(self.row));
        for ((slopes, taken), to) in rows.zip(self.to.chunks_mut(self.row)) {
            rectify(simd, slopes, taken, self.affine, to, self.sums);
        }
    }
}

/// Keeps rows for the block before.
struct ToBlock<'a> {
    slopes: &'a mut [Pixel],
    pixels: usize,
    columns: usize,
}

impl Deliver for ToBlock<'_> {
    #[inline(always)]
    fn rows<S: Simd>(
        &mut self,
        _: S,
        image: usize,
        first_row: usize,
        rows: &[Pixel],
        _: &mut Vec<[Patch; 4]>,
    ) {
        self.slopes[image * self.pixels + first_row * self.columns..][..rows.len()].copy_from_slice(rows);
    }
}

/// Uses rows up for the first block's weights.
struct ToFirst<'a> {
    images: Padded<'a>,
    columns: usize,
    pixels: usize,
    positions: &'a [[u8; FILTERS]],
    sums: &'a mut [Patch; FILTERS],
}

impl Deliver for ToFirst<'_> {
    #[inline(always)]
    fn rows<S: Simd>(
        &mut self,
        simd: S,
        image: usize,
        first_row: usize,
        rows: &[Pixel],
        patches: &mut Vec<[Patch; 4]>,
    ) {
        let positions = &self.positions[image * self.pixels + first_row * self.columns..][..rows.len()];
        AddTaken {
            images: self.images,
            image,
            first_row,
            columns: self.columns,
            slopes: rows,
            positions,
            patches,
            sums: self.sums,
        }
        .with_simd(simd);
    }
}

impl Buffers {
    pub(super) fn new(shape: &ConvShape) -> Self {
        Buffers { shape: Some(*shape), ..Buffers::default() }
    }

    /// The sizes that the room is for.
    pub(super) fn shape(&self) -> Option<&ConvShape> {
        self.shape.as_ref()
    }

    pub(super) fn features_len(&self) -> usize {
        self.features.len()
    }

    pub(super) fn moments(&self) -> Vec<Moments> {
        self.blocks.iter().map(|block| block.moments.clone()).collect()
    }

    pub(super) fn decisions(&self) -> Decisions {
        let mut decisions = Decisions::default();
        for (index, block) in self.blocks.iter().enumerate() {
            decisions.positions.push(match index {
                0 => self.positions.as_flattened().to_vec(),
                _ => {
                    block.positions.iter().flat_map(|pixel| pixel.0.map(|position| position as u8)).collect()
                }
            });
            let active = |pixel: &Pixel| {
                let Affine { scale, shift, .. } = &block.affine;
                std::array::from_fn::<_, FILTERS, _>(|c| pixel.0[c].mul_add(scale.0[c], shift.0[c]) > 0.0)
            };
            decisions.active.push(block.taken.iter().flat_map(active).collect());
        }
        decisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::plain;

    #[test]
    fn plain_instructions_are_right_too() {
        let shape = ConvShape { height: 27, width: 22, blocks: 3, ..ConvShape::MINI_IMAGENET };
        let shapes = shape.block_shapes().unwrap();
        let plan = Plan::new(&shape, &shapes).unwrap();
        assert!(plan.tiles.iter().any(|(tile, _)| *tile == Tile::Three));
        let number = |i: usize| ((i * i % 10_007) as f32 * 0.37).sin();
        let parameters: Vec<f32> = (0..shape.layout().unwrap().len()).map(number).collect();
        let images: Vec<f32> = (0..3 * shape.image_len()).map(|i| 0.5 + 0.5 * number(i + 5)).collect();
        let double = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        for arch in [Arch::Scalar, Arch::new()] {
            let mut buffers = Buffers::new(&shape);
            let input = Images::Floats(&images);
            let features =
                plan.forward(arch, &parameters, input, 3, Statistics::Batch, &mut buffers).to_vec();
            let slopes: Vec<f32> = (0..features.len()).map(|i| number(i + 9)).collect();
            let mut gradient = vec![0.0; parameters.len()];
            plan.backward(arch, &parameters, &slopes, &mut buffers, &mut gradient);
            let (exact, decisions) = (double(&parameters), buffers.decisions());
            let pass = plain::forward(&shape, &exact, &double(&images), Statistics::Batch, Some(&decisions));
            let mut expected = vec![0.0; parameters.len()];
            pass.unwrap().backward(&exact, &double(&slopes), &mut expected).unwrap();
            for places in &plan.places {
                for range in [&places.weight, &places.scale, &places.shift] {
                    let error: f64 =
                        range.clone().map(|i| (f64::from(gradient[i]) - expected[i]).powi(2)).sum();
                    let size: f64 = range.clone().map(|i| expected[i].powi(2)).sum();
                    assert!(error < 1e-10 * size, "{range:?}: {error:e} of {size:e}");
                }
            }
        }
    }
}
