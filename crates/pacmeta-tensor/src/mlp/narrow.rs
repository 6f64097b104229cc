//! Passes over layers with one input, or with one or two outputs, where a matrix product would mostly multiply padding.
//!
//! Each works on eight columns at a time, which stay in registers while all rows go by.

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
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.bias.len();
        let rows = self.output.chunks_exact_mut(stride).zip(self.inputs.chunks_exact(self.input_stride));
        for (output, input) in rows {
            let x = input[0];
            for ((value, w), b) in output.iter_mut().zip(self.weight).zip(self.bias) {
                *value = elementary::tanh(x.mul_add(*w, *b));
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
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.bias_gradient.len();
        for column in (0..stride).step_by(PADDING) {
            let mut weight = eight(self.weight_gradient, column);
            let mut bias = eight(self.bias_gradient, column);
            let rows = self.errors.chunks_exact(stride).zip(self.activation.chunks_exact(stride));
            for ((errors, activation), input) in rows.zip(self.inputs.chunks_exact(self.input_stride)) {
                let (error, h) = (eight(errors, column), eight(activation, column));
                for lane in 0..PADDING {
                    let dz = error[lane] * h[lane].mul_add(-h[lane], 1.0);
                    bias[lane] += dz;
                    weight[lane] = input[0].mul_add(dz, weight[lane]);
                }
            }
            self.weight_gradient[column..column + PADDING].copy_from_slice(&weight);
            self.bias_gradient[column..column + PADDING].copy_from_slice(&bias);
        }
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
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.bias_gradient.len();
        for column in (0..stride).step_by(PADDING) {
            let weight: [[f64; PADDING]; O] =
                std::array::from_fn(|output| eight(self.weight, output * stride + column));
            let mut gradient: [[f64; PADDING]; O] =
                std::array::from_fn(|output| eight(self.weight_gradient, output * stride + column));
            let mut bias = eight(self.bias_gradient, column);
            let rows = self.errors.chunks_exact_mut(stride).zip(self.activation.chunks_exact(stride));
            for ((errors, activation), given) in rows.zip(self.output_errors.chunks_exact(self.output_stride))
            {
                let h = eight(activation, column);
                let mut dz = [0.0; PADDING];
                for output in 0..O {
                    for lane in 0..PADDING {
                        dz[lane] = given[output].mul_add(weight[output][lane], dz[lane]);
                        gradient[output][lane] = given[output].mul_add(h[lane], gradient[output][lane]);
                    }
                }
                for lane in 0..PADDING {
                    dz[lane] *= h[lane].mul_add(-h[lane], 1.0);
                    bias[lane] += dz[lane];
                }
                errors[column..column + PADDING].copy_from_slice(&dz);
            }
            for output in 0..O {
                let place = output * stride + column;
                self.weight_gradient[place..place + PADDING].copy_from_slice(&gradient[output]);
            }
            self.bias_gradient[column..column + PADDING].copy_from_slice(&bias);
        }
    }
}

#[inline(always)]
fn eight(values: &[f64], place: usize) -> [f64; PADDING] {
    let mut result = [0.0; PADDING];
    result.copy_from_slice(&values[place..place + PADDING]);
    result
}
