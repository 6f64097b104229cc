//! Passes over layers with one input, or with one or two outputs, where a matrix product would mostly multiply padding.
//!
//! Backward passes keep the sums of a few columns in registers while all rows go by.

use pulp::{Simd, WithSimd};

use crate::simd::{PADDING, elementary};

/// H = tanh(x w' + b) for a first layer with a single input.
pub(super) struct FirstForward<'a> {
    /// One row a point, the input in front.
    pub(super) inputs: &'a [f64],
    pub(super) input_stride: usize,
    pub(super) weight: &'a [f64],
    pub(super) bias: &'a [f64],
    pub(super) output: &'a mut [f64],
}

impl WithSimd for FirstForward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let stride = self.bias.len();
        let (weights, single_weights) = S::as_simd_f64s(self.weight).0.as_chunks::<2>();
        let (biases, single_biases) = S::as_simd_f64s(self.bias).0.as_chunks::<2>();
        let rows = self.output.chunks_exact_mut(stride).zip(self.inputs.chunks_exact(self.input_stride));
        for (output, input) in rows {
            let x = simd.splat_f64s(input[0]);
            let (pairs, single) = S::as_mut_simd_f64s(output).0.as_chunks_mut::<2>();
            for ((values, weights), biases) in pairs.iter_mut().zip(weights).zip(biases) {
                values[0] = simd.mul_add_e_f64s(x, weights[0], biases[0]);
                values[1] = simd.mul_add_e_f64s(x, weights[1], biases[1]);
                elementary::tanh_vectors(simd, values);
            }
            for ((value, weight), bias) in single.iter_mut().zip(single_weights).zip(single_biases) {
                *value = simd.mul_add_e_f64s(x, *weight, *bias);
                elementary::tanh_vectors(simd, std::array::from_mut(value));
            }
        }
    }
}

/// Z = H W' + b for a last layer of `O` outputs, each a sum along a row of H.
pub(super) struct OutputForward<'a, const O: usize> {
    pub(super) hidden: &'a [f64],
    /// W, one padded row an output.
    pub(super) weight: &'a [f64],
    pub(super) bias: &'a [f64],
    pub(super) output: &'a mut [f64],
    pub(super) output_stride: usize,
}

impl<const O: usize> WithSimd for OutputForward<'_, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let stride = self.weight.len() / O;
        let weights: [&[S::f64s]; O] = std::array::from_fn(|index| {
            S::as_simd_f64s(&self.weight[index * stride..(index + 1) * stride]).0
        });
        let rows = self.hidden.chunks_exact(stride).zip(self.output.chunks_exact_mut(self.output_stride));
        for (hidden, output) in rows {
            let mut sums = [simd.splat_f64s(0.0); O];
            for (place, values) in S::as_simd_f64s(hidden).0.iter().enumerate() {
                for index in 0..O {
                    sums[index] = simd.mul_add_e_f64s(weights[index][place], *values, sums[index]);
                }
            }
            for index in 0..O {
                output[index] = simd.reduce_sum_f64s(sums[index]) + self.bias[index];
            }
        }
    }
}

/// The gradient of such a layer from dH: with dZ = dH (1 - H^2), adds x dZ to the weight's and dZ to the bias's. Nothing
/// lies before the layer, so dZ itself is not kept.
pub(super) struct FirstBackward<'a> {
    pub(super) errors: &'a [f64],
    pub(super) activation: &'a [f64],
    pub(super) inputs: &'a [f64],
    pub(super) input_stride: usize,
    pub(super) weight_gradient: &'a mut [f64],
    pub(super) bias_gradient: &'a mut [f64],
}

impl WithSimd for FirstBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let stride = self.bias_gradient.len();
        let wide = stride / WIDE * WIDE;
        for column in (0..wide).step_by(WIDE) {
            self.columns::<WIDE>(column);
        }
        if wide < stride {
            self.columns::<PADDING>(wide);
        }
    }
}

impl FirstBackward<'_> {
    /// Columns `column..column + C`.
    #[inline(always)]
    fn columns<const C: usize>(&mut self, column: usize) {
        let stride = self.bias_gradient.len();
        let mut weight = take::<C>(self.weight_gradient, column);
        let mut bias = take::<C>(self.bias_gradient, column);
        let rows = self.errors.chunks_exact(stride).zip(self.activation.chunks_exact(stride));
        for ((errors, activation), input) in rows.zip(self.inputs.chunks_exact(self.input_stride)) {
            let (error, h) = (take::<C>(errors, column), take::<C>(activation, column));
            for lane in 0..C {
                let dz = error[lane] * h[lane].mul_add(-h[lane], 1.0);
                bias[lane] += dz;
                weight[lane] = input[0].mul_add(dz, weight[lane]);
            }
        }
        self.weight_gradient[column..column + C].copy_from_slice(&weight);
        self.bias_gradient[column..column + C].copy_from_slice(&bias);
    }
}

/// Backward through a layer of `O` outputs and the tanh before it: with errors d_o of the outputs and
/// dZ = (sum_o d_o w_o)(1 - H^2), writes dZ, adds d_o H to the weights' gradient and dZ to the bias of the layer before.
pub(super) struct OutputBackward<'a, const O: usize> {
    pub(super) output_errors: &'a [f64],
    pub(super) output_stride: usize,
    pub(super) weight: &'a [f64],
    pub(super) activation: &'a [f64],
    pub(super) weight_gradient: &'a mut [f64],
    pub(super) errors: &'a mut [f64],
    pub(super) bias_gradient: &'a mut [f64],
}

impl<const O: usize> WithSimd for OutputBackward<'_, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let stride = self.bias_gradient.len();
        let wide = stride / WIDE * WIDE;
        for column in (0..wide).step_by(WIDE) {
            self.columns::<WIDE>(column);
        }
        if wide < stride {
            self.columns::<PADDING>(wide);
        }
    }
}

impl<const O: usize> OutputBackward<'_, O> {
    /// Columns `column..column + C`.
    #[inline(always)]
    fn columns<const C: usize>(&mut self, column: usize) {
        let stride = self.bias_gradient.len();
        let weight: [[f64; C]; O] = std::array::from_fn(|output| take(self.weight, output * stride + column));
        let mut gradient: [[f64; C]; O] =
            std::array::from_fn(|output| take(self.weight_gradient, output * stride + column));
        let mut bias = take::<C>(self.bias_gradient, column);
        let rows = self.errors.chunks_exact_mut(stride).zip(self.activation.chunks_exact(stride));
        for ((errors, activation), given) in rows.zip(self.output_errors.chunks_exact(self.output_stride)) {
            let h = take::<C>(activation, column);
            let mut dz = [0.0; C];
            for output in 0..O {
                for lane in 0..C {
                    dz[lane] = given[output].mul_add(weight[output][lane], dz[lane]);
                    gradient[output][lane] = given[output].mul_add(h[lane], gradient[output][lane]);
                }
            }
            for lane in 0..C {
                dz[lane] *= h[lane].mul_add(-h[lane], 1.0);
                bias[lane] += dz[lane];
            }
            errors[column..column + C].copy_from_slice(&dz);
        }
        for output in 0..O {
            let place = output * stride + column;
            self.weight_gradient[place..place + C].copy_from_slice(&gradient[output]);
        }
        self.bias_gradient[column..column + C].copy_from_slice(&bias);
    }
}

/// Columns whose sums are kept side by side, to hide the latency of an addition: two vectors of AVX-512, four of AVX2.
const WIDE: usize = 2 * PADDING;

#[inline(always)]
pub(super) fn take<const C: usize>(values: &[f64], place: usize) -> [f64; C] {
    let mut result = [0.0; C];
    result.copy_from_slice(&values[place..place + C]);
    result
}
