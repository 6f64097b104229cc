//! The parts of the passes that are no matrix products: the output layer, and the way through tanh.
//!
//! Sums over points go eight columns at a time, which stay in registers while all rows go by.

use pulp::{Simd, WithSimd};

use crate::simd::{PADDING, dot};

/// f = h w' + b for each row h, and the derivative of f where rows and weights have tangents.
pub(super) struct Outputs<'a> {
    pub(super) rows: &'a [f64],
    pub(super) stride: usize,
    /// w, with as many numbers as a row has before its padding.
    pub(super) weight: &'a [f64],
    pub(super) start: Start<'a>,
    pub(super) outputs: &'a mut [f64],
}

/// What the products are added to.
pub(super) enum Start<'a> {
    Bias(f64),
    /// A bias, and the product of these rows with these weights.
    BiasAndProduct(f64, &'a [f64], &'a [f64]),
}

impl WithSimd for Outputs<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (stride, width) = (self.stride, self.weight.len());
        let rows = self.rows.chunks_exact(stride);
        match self.start {
            Start::Bias(bias) => {
                for (output, row) in self.outputs.iter_mut().zip(rows) {
                    *output = bias + dot(&row[..width], self.weight);
                }
            }
            Start::BiasAndProduct(bias, others, weight) => {
                for ((output, row), other) in
                    self.outputs.iter_mut().zip(rows).zip(others.chunks_exact(stride))
                {
                    *output =
                        bias + (dot(&row[..width], self.weight) + dot(&other[..width], &weight[..width]));
                }
            }
        }
    }
}

/// Adds e h to the sum for each row h and its error e.
pub(super) struct AddRows<'a> {
    pub(super) errors: &'a [f64],
    pub(super) rows: &'a [f64],
    pub(super) stride: usize,
    pub(super) sum: &'a mut [f64],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (blocks, rest) = self.sum.as_chunks_mut::<PADDING>();
        let whole = blocks.len() * PADDING;
        for (block, sums) in blocks.iter_mut().enumerate() {
            let mut partial = *sums;
            for (error, row) in self.errors.iter().zip(self.rows.chunks_exact(self.stride)) {
                let h = eight(row, block * PADDING);
                for lane in 0..PADDING {
                    partial[lane] = error.mul_add(h[lane], partial[lane]);
                }
            }
            *sums = partial;
        }
        for (error, row) in self.errors.iter().zip(self.rows.chunks_exact(self.stride)) {
            for (sum, h) in rest.iter_mut().zip(&row[whole..]) {
                *sum = error.mul_add(*h, *sum);
            }
        }
    }
}

/// From errors dH to dZ = (1 - H^2) dH in place; adds the rows of dZ to the gradient of the bias.
pub(super) struct ThroughTanh<'a> {
    pub(super) errors: &'a mut [f64],
    pub(super) source: Source<'a>,
    pub(super) activation: &'a [f64],
    pub(super) bias: &'a mut [f64],
}

/// Where dH comes from.
pub(super) enum Source<'a> {
    /// It is in place already.
    InPlace,
    /// The output layer: dH = e w for the error e of each row.
    Outputs(&'a [f64], &'a [f64]),
}

impl WithSimd for ThroughTanh<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.bias.len();
        for column in (0..stride).step_by(PADDING) {
            let mut sum = eight(self.bias, column);
            let rows = self.errors.chunks_exact_mut(stride).zip(self.activation.chunks_exact(stride));
            match self.source {
                Source::InPlace => {
                    for (errors, activation) in rows {
                        let h = eight(activation, column);
                        let error = eight_mut(errors, column);
                        for lane in 0..PADDING {
                            error[lane] *= h[lane].mul_add(-h[lane], 1.0);
                            sum[lane] += error[lane];
                        }
                    }
                }
                Source::Outputs(given, weight) => {
                    let w = eight(weight, column);
                    for ((errors, activation), given) in rows.zip(given) {
                        let h = eight(activation, column);
                        let error = eight_mut(errors, column);
                        for lane in 0..PADDING {
                            error[lane] = given * w[lane] * h[lane].mul_add(-h[lane], 1.0);
                            sum[lane] += error[lane];
                        }
                    }
                }
            }
            self.bias[column..column + PADDING].copy_from_slice(&sum);
        }
    }
}

/// D H = (1 - H^2) D Z.
pub(super) struct ActivationTangents<'a> {
    pub(super) activation: &'a [f64],
    pub(super) before: &'a [f64],
    pub(super) tangents: &'a mut [f64],
}

impl WithSimd for ActivationTangents<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((tangent, h), before) in self.tangents.iter_mut().zip(self.activation).zip(self.before) {
            *tangent = h.mul_add(-h, 1.0) * before;
        }
    }
}

/// From D dH to D dZ = (1 - H^2) D dH - 2 H (D Z) dZ in place; adds the rows of D dZ to the bias.
pub(super) struct TangentsThroughTanh<'a> {
    pub(super) tangents: &'a mut [f64],
    pub(super) source: TangentSource<'a>,
    pub(super) activation: &'a [f64],
    /// D Z
    pub(super) before: &'a [f64],
    /// dZ
    pub(super) errors: &'a [f64],
    pub(super) bias: &'a mut [f64],
}

/// Where D dH comes from.
pub(super) enum TangentSource<'a> {
    /// It is in place already.
    InPlace,
    /// The output layer: D dH = (D e) w + e v.
    Outputs { errors: &'a [f64], tangents: &'a [f64], weight: &'a [f64], direction: &'a [f64] },
}

impl WithSimd for TangentsThroughTanh<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.bias.len();
        if let TangentSource::Outputs { errors, tangents, weight, direction } = self.source {
            let (weight, direction) = (&weight[..stride], &direction[..stride]);
            for ((row, error), tangent) in self.tangents.chunks_exact_mut(stride).zip(errors).zip(tangents) {
                for ((value, w), v) in row.iter_mut().zip(weight).zip(direction) {
                    *value = tangent.mul_add(*w, error * v);
                }
            }
        }
        for column in (0..stride).step_by(PADDING) {
            let mut sum = eight(self.bias, column);
            let rows = self.tangents.chunks_exact_mut(stride).zip(self.activation.chunks_exact(stride));
            let others = self.before.chunks_exact(stride).zip(self.errors.chunks_exact(stride));
            for ((tangents, activation), (before, errors)) in rows.zip(others) {
                let (h, dz, error) =
                    (eight(activation, column), eight(before, column), eight(errors, column));
                let tangent = eight_mut(tangents, column);
                for lane in 0..PADDING {
                    let slope = h[lane].mul_add(-h[lane], 1.0);
                    let bend = -2.0 * h[lane] * dz[lane];
                    tangent[lane] = bend.mul_add(error[lane], slope * tangent[lane]);
                    sum[lane] += tangent[lane];
                }
            }
            self.bias[column..column + PADDING].copy_from_slice(&sum);
        }
    }
}

#[inline(always)]
fn eight(values: &[f64], place: usize) -> [f64; PADDING] {
    let mut result = [0.0; PADDING];
    result.copy_from_slice(&values[place..place + PADDING]);
    result
}

#[inline(always)]
fn eight_mut(values: &mut [f64], place: usize) -> &mut [f64] {
    &mut values[place..place + PADDING]
}
