//! The first block: a direct convolution that never stores its output.
//!
//! The forward kernel holds a pool's window of outputs in registers and writes only what the pool takes. The output is linear in
//! the 9 C taps x of the images, z = w' x, so that sums over all places need no outputs either: with the Gram matrix
//! M = sum x x' and s = sum x (the tap that is always one),
//!
//! ```text
//! sum z = w' s,   sum z^2 = w' M w,   dw = g D + a s + b M w,
//! ```
//!
//! where dz = g dy + a + b z (see `block`) and D = sum of dy times the taps of the place that the pool took. D sums over
//! pooled places only, a vector of taps for one filter at a time.

use pulp::{Simd, WithSimd};

use super::pixel::{FILTERS, Pixel, lanes};

/// Taps of a place, then a one, then zeros.
pub(super) const PATCH: usize = 32;

/// The most channels that fit a patch.
pub(super) const MAX_CHANNELS: usize = 3;

/// Windows whose positions are turned into bytes together.
const TOGETHER: usize = 16;

/// The taps of a place: row, column, channel; then a one, then zeros.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Patch(pub(super) [f32; PATCH]);

impl Patch {
    pub(super) const ZERO: Patch = Patch([0.0; PATCH]);
}

/// Images with a frame of zeros, and two more rows of zeros behind each.
#[derive(Clone, Copy)]
pub(super) struct Padded<'a> {
    pub(super) values: &'a [f32],
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl<'a> Padded<'a> {
    /// Numbers in a padded row.
    pub(super) fn stride(&self) -> usize {
        (self.width + 2) * self.channels
    }

    /// Numbers in a padded image.
    pub(super) fn len(&self) -> usize {
        (self.height + 4) * self.stride()
    }

    /// A padded image.
    pub(super) fn image(&self, image: usize) -> &'a [f32] {
        &self.values[image * self.len()..][..self.len()]
    }

    /// Row `row` of the padded image `image`, from column `column`.
    #[inline(always)]
    fn row(&self, image: usize, row: usize, column: usize) -> &'a [f32] {
        &self.values[(image * (self.height + 4) + row) * self.stride() + column * self.channels..]
    }

    /// The taps of a place.
    #[inline(always)]
    fn patch(&self, image: usize, row: usize, column: usize, patch: &mut Patch) {
        match self.channels {
            1 => self.copy::<3>(image, row, column, patch),
            2 => self.copy::<6>(image, row, column, patch),
            _ => self.copy::<9>(image, row, column, patch),
        }
    }

    #[inline(always)]
    fn copy<const N: usize>(&self, image: usize, row: usize, column: usize, patch: &mut Patch) {
        for tap_row in 0..3 {
            patch.0[tap_row * N..][..N].copy_from_slice(&self.row(image, row + tap_row, column)[..N]);
        }
        patch.0[3 * N] = 1.0;
    }
}

/// Convolution and pool of one image.
pub(super) struct FirstForward<'a> {
    pub(super) images: Padded<'a>,
    pub(super) image: usize,
    /// A pixel of weights for every tap.
    pub(super) weight: &'a [Pixel],
    pub(super) pooled: [usize; 2],
    /// What the pools took.
    pub(super) taken: &'a mut [Pixel],
    pub(super) positions: &'a mut [[u8; FILTERS]],
}

impl WithSimd for FirstForward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // accumulators for four outputs: eight vectors, or sixteen where registers are many
        if S::REGISTER_COUNT >= 32 && lanes::<S>() >= 4 {
            self.run::<S, 4>(simd);
        } else {
            self.run::<S, 2>(simd);
        }
    }
}

impl FirstForward<'_> {
    /// V vectors of filters at a time.
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let [rows, columns] = self.pooled;
        let channels = self.images.channels;
        let weight = &self.weight[..9 * channels];
        // positions become bytes many at a time: one by one, vectors would be taken apart number by number
        let mut chosen = [[0_u32; FILTERS]; TOGETHER];
        for row in 0..rows {
            for first in (0..columns).step_by(TOGETHER) {
                let places = row * columns + first..row * columns + columns.min(first + TOGETHER);
                let taken = self.taken[places.clone()].iter_mut();
                for ((column, taken), chosen) in (first..).zip(taken).zip(&mut chosen) {
                    let mut window = [&[][..]; 4];
                    for line in 0..4 {
                        window[line] =
                            &self.images.row(self.image, 2 * row + line, 2 * column)[..4 * channels];
                    }
                    let (taken, chosen) = (taken.vectors_mut::<S>(), S::as_mut_simd_u32s(chosen).0);
                    for panel in 0..lanes::<S>() / V {
                        let sums = convolve::<S, V>(simd, &window, weight, panel * V);
                        for v in 0..V {
                            let (mut best, mut position) = (sums[0][v], simd.splat_u32s(0));
                            for p in 1..4 {
                                let better = simd.greater_than_f32s(sums[p][v], best);
                                best = simd.select_f32s(better, sums[p][v], best);
                                position = simd.select_u32s(better, simd.splat_u32s(p as u32), position);
                            }
                            taken[panel * V + v] = best;
                            chosen[panel * V + v] = position;
                        }
                    }
                }
                let positions = self.positions[places].as_flattened_mut();
                for (to, from) in positions.iter_mut().zip(chosen.as_flattened()) {
                    *to = *from as u8;
                }
            }
        }
    }
}

/// The four outputs of a window, V vectors of filters.
///
/// The number of channels is not known to the compiler, on purpose: knowing it, it unrolls all taps, keeps values for
/// later that it could load again, and runs out of registers.
#[inline(always)]
fn convolve<S: Simd, const V: usize>(
    simd: S,
    window: &[&[f32]; 4],
    weight: &[Pixel],
    first: usize,
) -> [[S::f32s; V]; 4] {
    let mut sums = [[simd.splat_f32s(0.0); V]; 4];
    let (channels, taps) = (weight.len() / 9, weight.len() / 3);
    for (line, weight) in weight.chunks_exact(taps).enumerate().take(3) {
        let (upper, lower) = (window[line], window[line + 1]);
        let left = upper.iter().zip(lower);
        let right = upper[channels..].iter().zip(&lower[channels..]);
        for ((row, left), right) in weight.iter().zip(left).zip(right) {
            let values: [S::f32s; V] = *row.vectors::<S>()[first..].first_chunk().expect("a whole panel");
            let factors = [*left.0, *right.0, *left.1, *right.1];
            for p in 0..4 {
                let factor = simd.splat_f32s(factors[p]);
                for v in 0..V {
                    sums[p][v] = simd.mul_add_e_f32s(factor, values[v], sums[p][v]);
                }
            }
        }
    }
    sums
}

/// Adds to D for the pooled rows from `first_row` on of one image.
pub(super) struct AddTaken<'a> {
    pub(super) images: Padded<'a>,
    pub(super) image: usize,
    pub(super) first_row: usize,
    /// Pooled columns.
    pub(super) columns: usize,
    /// The gradient at what the pools took, and the positions they took it from.
    pub(super) slopes: &'a [Pixel],
    pub(super) positions: &'a [[u8; FILTERS]],
    /// Room for a row of windows.
    pub(super) patches: &'a mut Vec<[Patch; 4]>,
    /// D: the taps of every filter.
    pub(super) sums: &'a mut [Patch; FILTERS],
}

impl WithSimd for AddTaken<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // what stands behind the taps stays as it is
        self.patches.resize(self.columns, [Patch::ZERO; 4]);
        let slopes = self.slopes.chunks_exact(self.columns);
        for (row, (slopes, positions)) in slopes.zip(self.positions.chunks_exact(self.columns)).enumerate() {
            for (column, window) in self.patches.iter_mut().enumerate() {
                for (p, patch) in window.iter_mut().enumerate() {
                    let (y, x) = (2 * (self.first_row + row) + p / 2, 2 * column + p % 2);
                    self.images.patch(self.image, y, x, patch);
                }
            }
            // the number of vectors in a patch
            match S::F32_LANES {
                16 => add_row::<S, 2>(simd, slopes, positions, self.patches, self.sums),
                8 => add_row::<S, 4>(simd, slopes, positions, self.patches, self.sums),
                4 => add_row::<S, 8>(simd, slopes, positions, self.patches, self.sums),
                _ => add_row::<S, { PATCH }>(simd, slopes, positions, self.patches, self.sums),
            }
        }
    }
}

#[inline(always)]
fn add_row<S: Simd, const N: usize>(
    simd: S,
    slopes: &[Pixel],
    positions: &[[u8; FILTERS]],
    patches: &[[Patch; 4]],
    sums: &mut [Patch; FILTERS],
) {
    let (pairs, _) = sums.as_chunks_mut::<2>();
    for (pair, pair_sums) in pairs.iter_mut().enumerate() {
        let mut totals = [[simd.splat_f32s(0.0); N]; 2];
        for ((slope, position), window) in slopes.iter().zip(positions).zip(patches) {
            for f in 0..2 {
                let patch = &window[usize::from(position[2 * pair + f] & 3)].0;
                let vectors = S::as_simd_f32s(patch).0;
                let factor = simd.splat_f32s(slope.0[2 * pair + f]);
                for v in 0..N {
                    totals[f][v] = simd.mul_add_e_f32s(factor, vectors[v], totals[f][v]);
                }
            }
        }
        for f in 0..2 {
            let vectors = S::as_mut_simd_f32s(&mut pair_sums[f].0).0;
            for v in 0..N {
                vectors[v] = simd.add_f32s(vectors[v], totals[f][v]);
            }
        }
    }
}
