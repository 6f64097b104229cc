//! Filters into the points of Winograd's convolution, and gradients at the points back to filters.

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::pixel::{FILTERS, Pixel, lanes};
use super::winograd::Transform;

/// Transformed filters: rows of input channels at each point for the forward pass, of filters for the backward pass.
pub(super) struct Filters {
    pub(super) forward: Vec<Pixel>,
    pub(super) backward: Vec<Pixel>,
}

/// Transforms weights [out, in, 3, 3], each filter times its sign.
///
/// Both arrangements are transformed: that is several times faster than turning the first around.
pub(super) struct TransformFilters<'a, F, const M: usize, const T: usize> {
    pub(super) transform: PhantomData<F>,
    pub(super) weight: &'a [f32],
    pub(super) signs: &'a [f32; FILTERS],
    pub(super) filters: &'a mut Filters,
}

impl<F: Transform<M, T>, const M: usize, const T: usize> WithSimd for TransformFilters<'_, F, M, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Filters { forward, backward } = self.filters;
        forward.resize(T * T * FILTERS, Pixel::ZERO);
        backward.resize(T * T * FILTERS, Pixel::ZERO);
        let tap_of =
            |filter: usize, channel: usize, tap: usize| self.weight[(filter * FILTERS + channel) * 9 + tap];
        let mut taps = [[Pixel::ZERO; 3]; 3];
        for row in 0..FILTERS {
            for tap in 0..9 {
                let pixel = &mut taps[tap / 3][tap % 3].0;
                for (filter, (value, sign)) in pixel.iter_mut().zip(self.signs).enumerate() {
                    *value = sign * tap_of(filter, row, tap);
                }
            }
            transform_row::<S, F, M, T>(simd, &taps, row, forward);
            for tap in 0..9 {
                let pixel = &mut taps[tap / 3][tap % 3].0;
                for (channel, value) in pixel.iter_mut().enumerate() {
                    *value = self.signs[row] * tap_of(row, channel, tap);
                }
            }
            transform_row::<S, F, M, T>(simd, &taps, row, backward);
        }
    }
}

/// G w G' of the filters' taps in one row of the matrices.
#[inline(always)]
fn transform_row<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
    simd: S,
    taps: &[[Pixel; 3]; 3],
    row: usize,
    matrices: &mut [Pixel],
) {
    for v in 0..lanes::<S>() {
        let mut columns = [[simd.splat_f32s(0.0); 3]; T];
        for i in 0..T {
            for k in 0..3 {
                let factor = simd.splat_f32s(F::FILTER[i][k]);
                for j in 0..3 {
                    columns[i][j] = simd.mul_add_e_f32s(factor, taps[k][j].vectors::<S>()[v], columns[i][j]);
                }
            }
        }
        for i in 0..T {
            for j in 0..T {
                let mut sum = simd.splat_f32s(0.0);
                for k in 0..3 {
                    sum = simd.mul_add_e_f32s(simd.splat_f32s(F::FILTER[j][k]), columns[i][k], sum);
                }
                matrices[(i * T + j) * FILTERS + row].vectors_mut::<S>()[v] = sum;
            }
        }
    }
}

/// The adjoint of `TransformFilters`: from the gradient at the points to that of weights [out, in, 3, 3].
pub(super) struct FilterGradient<'a, F, const M: usize, const T: usize> {
    pub(super) transform: PhantomData<F>,
    pub(super) points: &'a [Pixel],
    pub(super) signs: &'a [f32; FILTERS],
    pub(super) gradient: &'a mut [f32],
}

impl<F: Transform<M, T>, const M: usize, const T: usize> WithSimd for FilterGradient<'_, F, M, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for channel in 0..FILTERS {
            let mut taps = [Pixel::ZERO; 9];
            for v in 0..lanes::<S>() {
                let mut columns = [[simd.splat_f32s(0.0); T]; 3];
                for i in 0..T {
                    for j in 0..T {
                        let value = self.points[(i * T + j) * FILTERS + channel].vectors::<S>()[v];
                        for k in 0..3 {
                            let factor = simd.splat_f32s(F::FILTER[i][k]);
                            columns[k][j] = simd.mul_add_e_f32s(factor, value, columns[k][j]);
                        }
                    }
                }
                for tap in 0..9 {
                    let mut sum = simd.splat_f32s(0.0);
                    for j in 0..T {
                        let factor = simd.splat_f32s(F::FILTER[j][tap % 3]);
                        sum = simd.mul_add_e_f32s(factor, columns[tap / 3][j], sum);
                    }
                    taps[tap].vectors_mut::<S>()[v] = sum;
                }
            }
            for (filter, sign) in self.signs.iter().enumerate() {
                for (tap, sums) in taps.iter().enumerate() {
                    self.gradient[(filter * FILTERS + channel) * 9 + tap] = sign * sums.0[filter];
                }
            }
        }
    }
}
