//! Filters into the points of Winograd's convolution, and gradients at the points back to filters.

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::pixel::{FILTERS, Pixel, lanes};
use super::winograd::Transform;

/// Taps of a filter.
const TAPS: usize = 9;

/// Weights of a filter.
const WEIGHTS: usize = FILTERS * TAPS;

/// Transformed filters: rows of input channels at each point for the forward pass, of filters for the backward pass.
#[derive(Default)]
pub(super) struct Filters {
    pub(super) forward: Vec<Pixel>,
    pub(super) backward: Vec<Pixel>,
    /// The taps of each row before they are transformed.
    forward_taps: Vec<[Pixel; TAPS]>,
    backward_taps: Vec<[Pixel; TAPS]>,
}

impl Filters {
    /// Arranges weights [out, in, 3, 3], each filter times its sign, into rows of both kinds. What is read lies at equal distances, which
    /// vectors can gather.
    #[inline(always)]
    fn arrange(&mut self, weight: &[f32], signs: &[f32; FILTERS]) {
        for taps in [&mut self.forward_taps, &mut self.backward_taps] {
            taps.resize(FILTERS, [Pixel::ZERO; TAPS]);
        }
        let filters: &[[f32; WEIGHTS]; FILTERS] =
            weight.as_chunks().0.first_chunk().expect("64 filters on 64 channels");
        for (place, taps) in self.forward_taps.as_flattened_mut().iter_mut().enumerate().take(WEIGHTS) {
            for filter in 0..FILTERS {
                taps.0[filter] = signs[filter] * filters[filter][place];
            }
        }
        for (filter, taps) in self.backward_taps.iter_mut().enumerate().take(FILTERS) {
            for tap in 0..TAPS {
                for channel in 0..FILTERS {
                    taps[tap].0[channel] = signs[filter] * filters[filter][channel * TAPS + tap];
                }
            }
        }
    }
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
        self.filters.arrange(self.weight, self.signs);
        let Filters { forward, backward, forward_taps, backward_taps } = self.filters;
        for (matrices, taps) in [(forward, forward_taps), (backward, backward_taps)] {
            matrices.resize(T * T * FILTERS, Pixel::ZERO);
            for (row, taps) in taps.iter().enumerate() {
                transform_row::<S, F, M, T>(simd, taps, row, matrices);
            }
        }
    }
}

/// G w G' of the filters' taps in one row of the matrices.
#[inline(always)]
fn transform_row<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
    simd: S,
    taps: &[Pixel; TAPS],
    row: usize,
    matrices: &mut [Pixel],
) {
    for v in 0..lanes::<S>() {
        let mut columns = [[simd.splat_f32s(0.0); 3]; T];
        for i in 0..T {
            for k in 0..3 {
                let factor = simd.splat_f32s(F::FILTER[i][k]);
                for j in 0..3 {
                    columns[i][j] =
                        simd.mul_add_e_f32s(factor, taps[3 * k + j].vectors::<S>()[v], columns[i][j]);
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
            let mut taps = [Pixel::ZERO; TAPS];
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
                for tap in 0..TAPS {
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
                    self.gradient[(filter * FILTERS + channel) * TAPS + tap] = sign * sums.0[filter];
                }
            }
        }
    }
}
