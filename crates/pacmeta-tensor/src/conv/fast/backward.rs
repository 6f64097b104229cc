//! Backward through all blocks.

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{Block, Buffers, Plan, Tile, add_in_order, give_scratch, gram_row, take_scratch};
use crate::conv::block::{Backward, Deliver, WithTiles, rectify};
use crate::conv::filters::FilterGradient;
use crate::conv::first_layer::{AddTaken, Padded, Patch};
use crate::conv::pixel::{FILTERS, Pixel, Sums, grown, split};
use crate::conv::tiles::{Affine, Slope};
use crate::conv::winograd::{Four, Six, Three};

impl Plan {
    pub(in crate::conv) fn backward(
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
        let count = (buffers.counted * self.shapes[index].output.iter().product::<usize>()) as f64;
        let mut constants = [[0.0; FILTERS]; 3];
        for c in 0..FILTERS {
            let (sign, inverse) = (f64::from(block.signs[c]), block.inverse_deviation[c]);
            let (shift_sum, scale_sum) = (sums[0][c], sums[1][c] * inverse);
            gradient[places.scale.start + c] = (sign * scale_sum) as f32;
            gradient[places.shift.start + c] = shift_sum as f32;
            let g = f64::from(parameters[places.scale.start + c].abs()) * inverse;
            constants[0][c] = g;
            if buffers.counted > 0 {
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
        let points = tile.points();
        let [g, a, b] = constants.map(|constant| Pixel(constant.map(|value| value as f32)));
        let own = Slope { g, a, b };
        // images that the statistics do not depend on have the first term only
        let others = Slope { a: Pixel::ZERO, b: Pixel::ZERO, ..own };
        let (groups, counted) = (&buffers.groups, buffers.counted);
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
            let slope = if group.end <= counted { &own } else { &others };
            let gradient = grown(gradient, points * FILTERS);
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
                        gradient,
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
                    Tile::Six => run!(Six, 6, 8, deliver),
                }
            } else {
                let deliver = ToBlock { slopes: delivered, pixels, columns: geometry.width };
                match tile {
                    Tile::Three => run!(Three, 3, 5, deliver),
                    Tile::Four => run!(Four, 4, 6, deliver),
                    Tile::Six => run!(Six, 6, 8, deliver),
                }
            }
            give_scratch(pool, scratch);
        });
        let (sum, others) = buffers.gradients.split_at_mut(1);
        let sum = &mut sum[0][..points * FILTERS];
        sum.par_chunks_mut(FILTERS).enumerate().for_each(|(point, rows)| {
            for (row, sum) in rows.iter_mut().enumerate() {
                for gradient in others.iter() {
                    let from = &gradient[point * FILTERS + row].0;
                    sum.0.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
                }
            }
        });
        macro_rules! to_weights {
            ($transform:ty, $m:literal, $t:literal) => {
                arch.dispatch(FilterGradient::<$transform, $m, $t> {
                    transform: PhantomData,
                    points: sum,
                    signs: &block.signs,
                    gradient: weight_gradient,
                })
            };
        }
        match tile {
            Tile::Three => to_weights!(Three, 3, 5),
            Tile::Four => to_weights!(Four, 4, 6),
            Tile::Six => to_weights!(Six, 6, 8),
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
