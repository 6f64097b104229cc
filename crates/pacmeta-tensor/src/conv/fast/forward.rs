//! Forward through all blocks.

use std::marker::PhantomData;
use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::{Block, Buffers, GROUP, Plan, Tile, add_in_order, give_scratch, gram_row, take_scratch};
use crate::conv::block::{Forward, WithTiles};
use crate::conv::filters::TransformFilters;
use crate::conv::first_layer::{FirstForward, PATCH};
use crate::conv::gram::AddGram;
use crate::conv::pixel::{FILTERS, Pixel, Positions, Sums, split};
use crate::conv::winograd::{Four, Six, Three};
use crate::conv::{EPSILON, Images, Moments, Statistics};

impl Plan {
    pub(in crate::conv) fn forward<'b>(
        &self,
        arch: Arch,
        parameters: &[f32],
        images: Images<'_>,
        count: usize,
        statistics: Statistics<'_>,
        buffers: &'b mut Buffers,
    ) -> &'b [f32] {
        self.prepare(arch, parameters, count, statistics, buffers);
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
    fn prepare(
        &self,
        arch: Arch,
        parameters: &[f32],
        count: usize,
        statistics: Statistics<'_>,
        buffers: &mut Buffers,
    ) {
        buffers.counted = statistics.counted(count);
        buffers.groups = groups_of(0, buffers.counted).chain(groups_of(buffers.counted, count)).collect();
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
            macro_rules! transform {
                ($transform:ty, $m:literal, $t:literal) => {
                    arch.dispatch(TransformFilters::<$transform, $m, $t> {
                        transform: PhantomData,
                        weight,
                        signs: &block.signs,
                        filters: &mut block.filters,
                    })
                };
            }
            match tile {
                Tile::Three => transform!(Three, 3, 5),
                Tile::Four => transform!(Four, 4, 6),
                Tile::Six => transform!(Six, 6, 8),
            }
            block.output.resize(count * self.tiles[index].1.pixels(), Pixel::ZERO);
            block.taken.resize(pooled(index + 1), Pixel::ZERO);
            block.positions.resize(pooled(index + 1), Positions::ZERO);
            block.slopes.resize(pooled(index + 1), Pixel::ZERO);
        });
    }

    /// The first block: frames, Gram matrix, convolution and pool.
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
        let counted = buffers.counted;
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
                if group.end <= counted {
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
        let places = counted * shape.height * shape.width;
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
                Tile::Six => run!(Six, 6, 8),
            }
            give_scratch(pool, scratch);
        });
        let own = groups.iter().filter(|group| group.end <= buffers.counted).count();
        let sums = add_in_order(&sums[..own]);
        self.normalise(index, parameters, statistics, &sums, buffers.counted * pixels, block);
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
                Statistics::Batch | Statistics::First(_) => {
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
}

/// Groups of the images from `start` to `end`, by their number alone.
fn groups_of(start: usize, end: usize) -> impl Iterator<Item = Range<usize>> {
    let count = end - start;
    let groups = count.min(2).max(count.div_ceil(GROUP));
    (0..groups).map(move |group| start + group * count / groups..start + (group + 1) * count / groups)
}
