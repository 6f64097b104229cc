//! A block of 64 filters on 64 channels, by Winograd's convolution, with everything around it fused.
//!
//! Batch norm with a positive scale is increasing, so the pool comes first: what a pool takes of z is what it would take of y. (A
//! filter with a negative scale has its sign turned, and its scale too, before anything starts.) Kept are z, what the
//! pools took of it, and where. The next block applies normalisation and rectifier while it loads.
//!
//! Backward, dz = g dy + a + b z with constants of the filter
//!
//! ```text
//! g = gamma / deviation,   b = -g dgamma / (N deviation),   a = -g dbeta / N - b mean
//! ```
//!
//! is computed where it is needed and never stored. With V = B' d B and Y = A dz A' at each point of the tiles: dU += V' Y,
//! and the gradient at the input is the overlapping sum of B (Y U') B'. Work runs in pieces of a few dozen tiles, so that
//! V and Y stay in the cache.

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::ahead::Ahead;
use super::first_layer::Patch;
use super::gemm::{accumulate, multiply};
use super::geometry::Geometry;
use super::pixel::{FILTERS, Pixel, Positions, Sums, grown, lanes};
use super::tiles::{Affine, Slope, input_tiles, output_tiles, overlap_tiles, slope_tiles};
use super::winograd::Transform;
use crate::simd::skinny::Begin;

/// Buffers of a worker.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) input: Vec<Pixel>,
    pub(super) output: Vec<Pixel>,
    pub(super) overlap: Vec<Pixel>,
    pub(super) rows: Vec<Pixel>,
    pub(super) windows: Vec<[Patch; 4]>,
}

/// The forward pass of a group of images.
pub(super) struct Forward<'a, F> {
    pub(super) transform: PhantomData<F>,
    pub(super) geometry: Geometry,
    /// What the pools before took, and what becomes of it.
    pub(super) input: &'a [Pixel],
    pub(super) affine: &'a Affine,
    pub(super) filters: &'a [Pixel],
    /// The convolution's output.
    pub(super) output: &'a mut [Pixel],
    pub(super) taken: &'a mut [Pixel],
    pub(super) positions: &'a mut [Positions],
    /// Sums of z and of z squared.
    pub(super) sums: &'a mut [Sums; 2],
    pub(super) scratch: &'a mut Scratch,
}

impl<F> Forward<'_, F> {
    #[inline(always)]
    pub(super) fn run<S: Simd, const M: usize, const T: usize>(self, simd: S)
    where
        F: Transform<M, T>,
    {
        let geometry = self.geometry;
        let stride = geometry.stride();
        *self.sums = [[0.0; FILTERS]; 2];
        let points = grown(&mut self.scratch.input, T * T * stride);
        let images = self.input.len() / geometry.pixels();
        for piece in geometry.pieces(images) {
            input_tiles::<S, F, M, T>(simd, &geometry, piece, self.input, self.affine, points);
            let count = piece.count(geometry.tiles[1]);
            let (matrices, _) = self.filters.as_chunks::<FILTERS>();
            let here = geometry.place(piece, M);
            // what is written afterwards, a part at each point
            let mut written = self.output[here.clone()].chunks(here.len().div_ceil(T * T));
            let mut planes = points.chunks_exact_mut(stride);
            let mut next = planes.next();
            for (point, matrix) in matrices.iter().enumerate() {
                let Some(plane) = std::mem::replace(&mut next, planes.next()) else { break };
                let next_matrix = matrices.get(point + 1).map_or(&[][..], |matrix| matrix);
                let next_plane = next.as_deref().map_or(&[][..], |plane| &plane[..count]);
                let written = written.next().unwrap_or_default();
                multiply(
                    simd,
                    &mut plane[..count],
                    matrix,
                    &mut Ahead::new([next_matrix, written, next_plane]),
                );
            }
            output_tiles::<S, F, M, T>(simd, &geometry, piece, points, self.output);
            if piece.rows[1] == geometry.tiles[0] {
                for image in piece.images[0]..piece.images[1] {
                    let pooled = image * geometry.pooled_pixels()..(image + 1) * geometry.pooled_pixels();
                    let output = &self.output[image * geometry.pixels()..][..geometry.pixels()];
                    let (taken, positions) = (&mut self.taken[pooled.clone()], &mut self.positions[pooled]);
                    pool(simd, &geometry, output, taken, positions, self.sums);
                }
            }
        }
    }
}

/// Pools an image and adds up z and its square.
#[inline(always)]
fn pool<S: Simd>(
    simd: S,
    geometry: &Geometry,
    output: &[Pixel],
    taken: &mut [Pixel],
    positions: &mut [Positions],
    sums: &mut [Sums; 2],
) {
    let width = geometry.width;
    let [pooled_rows, pooled_columns] = geometry.pooled;
    for (row, lines) in output.chunks(2 * width).enumerate() {
        let mut line_sums = [Pixel::ZERO; 2];
        for v in 0..lanes::<S>() {
            let (mut sum, mut square) = ([simd.splat_f32s(0.0); 2], [simd.splat_f32s(0.0); 2]);
            let (pairs, rest) = if row < pooled_rows { (pooled_columns, 2 * pooled_columns) } else { (0, 0) };
            for column in 0..pairs {
                let at = [2 * column, 2 * column + 1, width + 2 * column, width + 2 * column + 1];
                let mut values = [simd.splat_f32s(0.0); 4];
                for p in 0..4 {
                    values[p] = lines[at[p]].vectors::<S>()[v];
                    sum[p % 2] = simd.add_f32s(sum[p % 2], values[p]);
                    square[p % 2] = simd.mul_add_e_f32s(values[p], values[p], square[p % 2]);
                }
                let (mut best, mut position) = (values[0], simd.splat_u32s(0));
                for p in 1..4 {
                    let better = simd.greater_than_f32s(values[p], best);
                    best = simd.select_f32s(better, values[p], best);
                    position = simd.select_u32s(better, simd.splat_u32s(p as u32), position);
                }
                let place = row * pooled_columns + column;
                taken[place].vectors_mut::<S>()[v] = best;
                positions[place].vectors_mut::<S>()[v] = position;
            }
            // an odd last row or column is not pooled, but counts
            for line in lines.chunks(width) {
                for pixel in &line[rest..] {
                    let value = pixel.vectors::<S>()[v];
                    sum[0] = simd.add_f32s(sum[0], value);
                    square[0] = simd.mul_add_e_f32s(value, value, square[0]);
                }
            }
            line_sums[0].vectors_mut::<S>()[v] = simd.add_f32s(sum[0], sum[1]);
            line_sums[1].vectors_mut::<S>()[v] = simd.add_f32s(square[0], square[1]);
        }
        for (sums, line) in sums.iter_mut().zip(&line_sums) {
            sums.iter_mut().zip(&line.0).for_each(|(sum, value)| *sum += f64::from(*value));
        }
    }
}

/// The backward pass of a group of images.
pub(super) struct Backward<'a, F, D> {
    pub(super) transform: PhantomData<F>,
    pub(super) geometry: Geometry,
    pub(super) input: &'a [Pixel],
    pub(super) affine: &'a Affine,
    pub(super) filters: &'a [Pixel],
    pub(super) output: &'a [Pixel],
    pub(super) positions: &'a [Positions],
    pub(super) slope: &'a Slope,
    /// dy at what this block's pools took.
    pub(super) slopes: &'a [Pixel],
    /// The sum of V' Y at each point.
    pub(super) gradient: &'a mut [Pixel],
    /// Sums of dy and of dy (z - mean) of the block before.
    pub(super) sums: &'a mut [Sums; 2],
    /// Takes the image, the first row, and rows of dy at what the pools of the block before took.
    pub(super) deliver: D,
    pub(super) scratch: &'a mut Scratch,
}

/// Takes finished rows of the gradient at a block's input.
pub(super) trait Deliver {
    fn rows<S: Simd>(
        &mut self,
        simd: S,
        image: usize,
        first_row: usize,
        rows: &[Pixel],
        scratch: &mut Vec<[Patch; 4]>,
    );
}

impl<F, D: Deliver> Backward<'_, F, D> {
    #[inline(always)]
    pub(super) fn run<S: Simd, const M: usize, const T: usize>(mut self, simd: S)
    where
        F: Transform<M, T>,
    {
        let geometry = self.geometry;
        let (stride, [room_rows, room_columns]) = (geometry.stride(), geometry.overlap(M));
        *self.sums = [[0.0; FILTERS]; 2];
        // the first piece overwrites what an earlier call left
        let mut begin = Begin::Zero;
        let scratch = self.scratch;
        let input = grown(&mut scratch.input, T * T * stride);
        let output = grown(&mut scratch.output, T * T * stride);
        let room = room_rows * room_columns;
        let overlap = grown(&mut scratch.overlap, geometry.piece_images * room);
        let images = self.input.len() / geometry.pixels();
        for piece in geometry.pieces(images) {
            let count = piece.count(geometry.tiles[1]);
            slope_tiles::<S, F, M, T>(
                simd,
                &geometry,
                piece,
                self.output,
                self.positions,
                self.slopes,
                self.slope,
                output,
            );
            input_tiles::<S, F, M, T>(simd, &geometry, piece, self.input, self.affine, input);
            let (matrices, _) = self.filters.as_chunks::<FILTERS>();
            let (gradients, _) = self.gradient.as_chunks_mut::<FILTERS>();
            let mut planes = input.chunks_exact(stride).zip(output.chunks_exact_mut(stride));
            let mut next = planes.next();
            for (point, (matrix, gradient)) in matrices.iter().zip(gradients).enumerate() {
                let Some((left, right)) = std::mem::replace(&mut next, planes.next()) else { break };
                let (left, right) = (&left[..count], &mut right[..count]);
                let (next_left, next_right) = next
                    .as_ref()
                    .map_or((&[][..], &[][..]), |(left, right)| (&left[..count], &right[..count]));
                accumulate(simd, begin, gradient, left, right, &mut Ahead::new([next_left, next_right, &[]]));
                let next_matrix = matrices.get(point + 1).map_or(&[][..], |matrix| matrix);
                multiply(simd, right, matrix, &mut Ahead::new([next_matrix, &[], &[]]));
            }
            begin = Begin::Output;
            if piece.rows[0] > 0 {
                // the last two rows of the piece before are the first two of this one; everything else is written anew
                let from = geometry.piece_rows * M * room_columns;
                overlap.copy_within(from..from + 2 * room_columns, 0);
            }
            overlap_tiles::<S, F, M, T>(simd, &geometry, piece, output, overlap, [room, room_columns]);
            let last = piece.rows[1] == geometry.tiles[0];
            // row r of the room is row first + r - 1 of the image
            let first = piece.rows[0] * M;
            let end = if last { geometry.height + 1 } else { piece.rows[1] * M };
            for image in piece.images[0]..piece.images[1] {
                let overlap = &overlap[(image - piece.images[0]) * room..][..room];
                let top = first.max(1);
                let rows = grown(&mut scratch.rows, (end - top) * geometry.width);
                for row in top..end {
                    let place = image * geometry.pixels() + (row - 1) * geometry.width;
                    rectify(
                        simd,
                        &overlap[(row - first) * room_columns + 1..][..geometry.width],
                        &self.input[place..][..geometry.width],
                        self.affine,
                        &mut rows[(row - top) * geometry.width..][..geometry.width],
                        self.sums,
                    );
                }
                self.deliver.rows(simd, image, top - 1, rows, &mut scratch.windows);
            }
        }
    }
}

/// Backward through a rectifier, a row of pixels: dy where scale * z + shift > 0, and the sums of dy and dy (z - mean).
#[inline(always)]
pub(super) fn rectify<S: Simd>(
    simd: S,
    slopes: &[Pixel],
    taken: &[Pixel],
    affine: &Affine,
    to: &mut [Pixel],
    sums: &mut [Sums; 2],
) {
    let zero = simd.splat_f32s(0.0);
    let mut totals = [Pixel::ZERO; 2];
    for pair in 0..lanes::<S>() / 2 {
        let mut shift_sums = [zero; 2];
        let mut scale_sums = [zero; 2];
        for ((slope, taken), to) in slopes.iter().zip(taken).zip(to.iter_mut()) {
            for w in 0..2 {
                let v = 2 * pair + w;
                let z = taken.vectors::<S>()[v];
                let y =
                    simd.mul_add_e_f32s(z, affine.scale.vectors::<S>()[v], affine.shift.vectors::<S>()[v]);
                let active = simd.greater_than_f32s(y, zero);
                let slope = simd.select_f32s(active, slope.vectors::<S>()[v], zero);
                to.vectors_mut::<S>()[v] = slope;
                shift_sums[w] = simd.add_f32s(shift_sums[w], slope);
                let centred = simd.sub_f32s(z, affine.mean.vectors::<S>()[v]);
                scale_sums[w] = simd.mul_add_e_f32s(slope, centred, scale_sums[w]);
            }
        }
        for w in 0..2 {
            totals[0].vectors_mut::<S>()[2 * pair + w] = shift_sums[w];
            totals[1].vectors_mut::<S>()[2 * pair + w] = scale_sums[w];
        }
    }
    for (sums, total) in sums.iter_mut().zip(&totals) {
        sums.iter_mut().zip(&total.0).for_each(|(sum, value)| *sum += f64::from(*value));
    }
}

/// A pass that can be given vectors of the processor at hand.
pub(super) struct WithTiles<P, const M: usize, const T: usize>(pub(super) P);

impl<F: Transform<M, T>, const M: usize, const T: usize> WithSimd for WithTiles<Forward<'_, F>, M, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run::<S, M, T>(simd);
    }
}

impl<F: Transform<M, T>, D: Deliver, const M: usize, const T: usize> WithSimd
    for WithTiles<Backward<'_, F, D>, M, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run::<S, M, T>(simd);
    }
}
