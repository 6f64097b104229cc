//! The Gram matrix of the taps of an image, from correlations of the image with itself.
//!
//! Entry (ky, kx, c), (ky', kx', c') of M = sum x x' is a sum over places of products of two pixels that lie d = ky' - ky rows and
//! kx' - kx columns apart. Over all pixels that sum depends on the distance only: the image in its frame of zeros, as
//! one long row, times itself moved by a lag. What the frame does not cut away by itself are the places where the
//! tap would lie behind the last (k = 0) or before the first (k = 2) row or column of the places: with equal k on both
//! sides these terms are subtracted. So 43 products a number make all 378 entries.

use pulp::{Simd, WithSimd};

use super::first_layer::{MAX_CHANNELS, PATCH, Padded};

/// The sum of x x' over places; only columns at or behind the diagonal are meant to be read.
pub(super) type Gram = [[f64; PATCH]; PATCH];

/// The largest lag inside a row: two pixels, and from the first channel to the last.
const REACH: usize = 3 * MAX_CHANNELS - 1;

/// Sums of products for rows apart, lag + REACH, and channel of the first factor.
type Correlations = [[[f64; MAX_CHANNELS]; 2 * REACH + 1]; 3];

/// Rows that are summed in f32 before they are added in f64.
const ROWS: usize = 28;

/// Sums of numbers side by side, for one would wait for itself: a multiple of one, two and three channels.
const SIDE_BY_SIDE: usize = 72;

/// Adds the Gram matrix of the taps of one image.
pub(super) struct AddGram<'a> {
    pub(super) images: Padded<'a>,
    pub(super) image: usize,
    pub(super) gram: &'a mut Gram,
}

impl WithSimd for AddGram<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let image = self.images.image(self.image);
        let mut sums = [[[0.0; MAX_CHANNELS]; 2 * REACH + 1]; 3];
        match self.images.channels {
            1 => correlate::<S, 1>(simd, &self.images, image, &mut sums),
            2 => correlate::<S, 2>(simd, &self.images, image, &mut sums),
            _ => correlate::<S, 3>(simd, &self.images, image, &mut sums),
        }
        assemble(&self.images, image, &sums, self.gram);
    }
}

/// All correlations that taps need.
#[inline(always)]
fn correlate<S: Simd, const C: usize>(simd: S, images: &Padded<'_>, image: &[f32], sums: &mut Correlations) {
    let stride = images.stride();
    for first in (1..=images.height).step_by(ROWS) {
        let range = first * stride..(first + ROWS).min(images.height + 1) * stride;
        for (apart, sums) in sums.iter_mut().enumerate() {
            // in the same row, negative lags are positive ones with the factors exchanged
            let lags = if apart == 0 { REACH..REACH + 3 * C } else { REACH + 1 - 3 * C..REACH + 3 * C };
            let (fours, rest) = sums[lags.clone()].as_chunks_mut::<4>();
            let mut offset = range.start + apart * stride + lags.start - REACH;
            for four in fours {
                some_lags::<S, C, 4>(simd, &image[range.clone()], &image[offset..], four);
                offset += 4;
            }
            for one in rest {
                some_lags::<S, C, 1>(
                    simd,
                    &image[range.clone()],
                    &image[offset..],
                    std::array::from_mut(one),
                );
                offset += 1;
            }
        }
    }
}

/// N neighbouring lags: `moved` starts at the first.
#[inline(always)]
fn some_lags<S: Simd, const C: usize, const N: usize>(
    simd: S,
    fixed: &[f32],
    moved: &[f32],
    sums: &mut [[f64; MAX_CHANNELS]; N],
) {
    let step = C * S::F32_LANES;
    let mut totals = [[simd.splat_f32s(0.0); C]; N];
    let mut blocks = fixed.chunks_exact(step);
    let mut moved_blocks = moved.windows(step + N - 1).step_by(step);
    for (fixed, moved) in blocks.by_ref().zip(moved_blocks.by_ref()) {
        for c in 0..C {
            let value = S::as_simd_f32s(&fixed[c * S::F32_LANES..][..S::F32_LANES]).0[0];
            for n in 0..N {
                let other = S::as_simd_f32s(&moved[c * S::F32_LANES + n..][..S::F32_LANES]).0[0];
                totals[n][c] = simd.mul_add_e_f32s(value, other, totals[n][c]);
            }
        }
    }
    for n in 0..N {
        for c in 0..C {
            let mut lanes = [0.0_f32; 64];
            S::as_mut_simd_f32s(&mut lanes).0[0] = totals[n][c];
            for (lane, value) in lanes[..S::F32_LANES].iter().enumerate() {
                sums[n][(c * S::F32_LANES + lane) % C] += f64::from(*value);
            }
        }
        let rest = blocks.remainder();
        for (place, value) in rest.iter().enumerate() {
            sums[n][place % C] += f64::from(*value) * f64::from(moved[fixed.len() - rest.len() + place + n]);
        }
    }
}

/// From correlations to the Gram matrix.
#[inline(always)]
fn assemble(images: &Padded<'_>, image: &[f32], sums: &Correlations, gram: &mut Gram) {
    let (height, width, channels) = (images.height, images.width, images.channels);
    let at = |row: usize, column: usize, channel: usize| {
        f64::from(image[(row * (width + 2) + column) * channels + channel])
    };
    // the row or column of the image that lies outside of the places for a tap
    let cut = |k: usize, size: usize| [size, 0, 1][k];
    let taps = 9 * channels;
    let place = |tap: usize| (tap / channels / 3, tap / channels % 3, tap % channels);
    // of two equal rows or columns of taps, the products that are cut
    let mut row_terms = [[[0.0; 2 * REACH + 1]; MAX_CHANNELS]; 2];
    let mut column_terms = [[[[0.0; MAX_CHANNELS]; MAX_CHANNELS]; 3]; 2];
    let mut corners = [[[0.0; MAX_CHANNELS]; 2]; 2];
    let (mut row_sums, mut column_sums) = ([[0.0; MAX_CHANNELS]; 2], [[0.0; MAX_CHANNELS]; 2]);
    let mut total = [0.0; MAX_CHANNELS];
    for (side, k) in [0, 2].into_iter().enumerate() {
        let (row, column) = (cut(k, height), cut(k, width));
        let line = &image[row * images.stride()..][..2 * images.stride()];
        for lag in 0..3 * channels {
            // pixel by pixel: a remainder for every number would take longer than the products
            let pixels =
                line[channels..].chunks_exact(channels).zip(line[channels + lag..].chunks_exact(channels));
            for (pixel, moved) in pixels.take(width) {
                for (c, (value, other)) in pixel.iter().zip(moved).enumerate() {
                    row_terms[side][c][lag] += f64::from(*value) * f64::from(*other);
                }
            }
        }
        for c in 0..channels {
            for apart in 0..3 {
                for other in 0..channels {
                    column_terms[side][apart][c][other] =
                        (1..=height).map(|row| at(row, column, c) * at(row + apart, column, other)).sum();
                }
            }
            row_sums[side][c] = (1..=width).map(|column| at(row, column, c)).sum();
            column_sums[side][c] = (1..=height).map(|row| at(row, column, c)).sum();
            for (other, k) in [0, 2].into_iter().enumerate() {
                corners[side][other][c] = at(row, cut(k, width), c);
            }
        }
    }
    for line in image[images.stride()..(height + 1) * images.stride()].chunks_exact(images.stride()) {
        let mut sums = [0.0_f32; SIDE_BY_SIDE];
        for numbers in line.chunks(SIDE_BY_SIDE) {
            sums.iter_mut().zip(numbers).for_each(|(sum, value)| *sum += *value);
        }
        for (place, sum) in sums.iter().enumerate() {
            total[place % channels] += f64::from(*sum);
        }
    }
    for i in 0..taps {
        let (ky, kx, c) = place(i);
        for j in i..taps {
            let (other_ky, other_kx, other) = place(j);
            // in the same row of taps j lies to the right of i, so its lag is not negative
            let apart = other_ky - ky;
            let lag = REACH + (3 + other_kx - kx) * channels + other - 3 * channels - c;
            let mut value = sums[apart][lag][c];
            let cut_row = apart == 0 && ky != 1;
            let cut_column = kx == other_kx && kx != 1;
            if cut_row {
                value -= row_terms[ky / 2][c][lag - REACH];
            }
            if cut_column {
                value -= column_terms[kx / 2][apart][c][other];
            }
            if cut_row && cut_column {
                value += corners[ky / 2][kx / 2][c] * corners[ky / 2][kx / 2][other];
            }
            gram[i][j] += value;
        }
        let mut sum = total[c];
        if ky != 1 {
            sum -= row_sums[ky / 2][c];
        }
        if kx != 1 {
            sum -= column_sums[kx / 2][c];
        }
        if ky != 1 && kx != 1 {
            sum += corners[ky / 2][kx / 2][c];
        }
        gram[i][taps] += sum;
    }
    gram[taps][taps] += (height * width) as f64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::every_arch;

    #[test]
    fn agrees_with_the_definition() {
        for (height, width, channels) in
            [(2, 2, 3), (3, 2, 1), (9, 7, 2), (20, 21, 3), (17, 40, 1), (12, 5, 3)]
        {
            let mut padded = vec![0.0; 2 * (height + 4) * (width + 2) * channels];
            let images = Padded { values: &[], height, width, channels };
            for image in 0..2 {
                for row in 1..=height {
                    for place in channels..(width + 1) * channels {
                        let index = (image * (height + 4) + row) * images.stride() + place;
                        padded[index] = ((index * 7919 % 1009) as f32) / 500.0 - 0.7;
                    }
                }
            }
            let images = Padded { values: &padded, ..images };
            for arch in every_arch() {
                let mut gram = [[0.0; PATCH]; PATCH];
                arch.dispatch(AddGram { images, image: 1, gram: &mut gram });
                for i in 0..=9 * channels {
                    for j in i..=9 * channels {
                        let tap = |row: usize, column: usize, tap: usize| {
                            let (k, c) = (tap / channels, tap % channels);
                            let (row, column) = (height + 4 + row + k / 3, column + k % 3);
                            match k {
                                9 => 1.0,
                                _ => f64::from(padded[(row * (width + 2) + column) * channels + c]),
                            }
                        };
                        let expected: f64 = (0..height * width)
                            .map(|place| {
                                tap(place / width, place % width, i) * tap(place / width, place % width, j)
                            })
                            .sum();
                        let error = (gram[i][j] - expected).abs();
                        let bound = 1e-6 * (height * width) as f64;
                        assert!(
                            error < bound,
                            "{height} x {width} x {channels}, {i} {j}: {expected} {}",
                            gram[i][j]
                        );
                    }
                }
            }
        }
    }
}
