//! What happens to rows between the products: layer norm, activations, sums over rows.
//!
//! Loops are compiled for the instructions at hand. Sums along a row have [`LANES`] partial sums on every machine; sums over rows run
//! inside blocks of [`BLOCK`] rows and then over blocks in order, so that threads do not matter.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::dropout::Mask;
use super::shape::Activation;
use crate::element::Element;

/// Rows that one thread works on at a time.
pub(super) const BLOCK: usize = 32;
/// Partial sums of a sum along a row.
const LANES: usize = 16;

/// Declares a function whose body is compiled for the instructions at hand.
macro_rules! vectorised {
    ($(#[$documentation:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$documentation])*
        pub(super) fn $name<'a, E: Element>($($argument: $type),*) {
            struct Call<'a, E> { $($argument: $type,)* }
            impl<'a, E: Element> WithSimd for Call<'a, E> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: Simd>(self, _: S) {
                    let Call { $($argument,)* } = self;
                    $body
                }
            }
            Arch::new().dispatch(Call { $($argument,)* });
        }
    };
}
pub(super) use vectorised;

/// The sum of a function of pairs.
macro_rules! sum_of {
    ($left:expr, $right:expr, |$a:ident, $b:ident, $sum:ident| $term:expr) => {{
        let mut partial = [E::ZERO; LANES];
        let (left_chunks, left_rest) = $left.as_chunks::<LANES>();
        let (right_chunks, right_rest) = $right.as_chunks::<LANES>();
        for (left, right) in left_chunks.iter().zip(right_chunks) {
            for lane in 0..LANES {
                let ($a, $b, $sum) = (left[lane], right[lane], partial[lane]);
                partial[lane] = $term;
            }
        }
        for (lane, (&$a, &$b)) in left_rest.iter().zip(right_rest).enumerate() {
            let $sum = partial[lane];
            partial[lane] = $term;
        }
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                partial[lane] += partial[lane + width];
            }
            width /= 2;
        }
        partial[0]
    }};
}
pub(super) use sum_of;

/// Scale, shift and epsilon of a layer norm.
#[derive(Clone, Copy)]
pub(super) struct Norm<'a, E> {
    pub(super) weight: &'a [E],
    pub(super) bias: &'a [E],
    pub(super) epsilon: E,
}

impl<'a, E: Element> Norm<'a, E> {
    pub(super) fn new(weight: &'a [E], bias: &'a [E], epsilon: f64) -> Self {
        Norm { weight, bias, epsilon: E::from_f64(epsilon) }
    }
}

vectorised! {
    /// rows -> (rows - mean) / deviation in place; out = weight * that + bias; inverse = 1 / deviation.
    fn normalise(rows: &'a mut [E], out: &'a mut [E], inverse: &'a mut [E], norm: Norm<'a, E>) {
        let width = norm.weight.len();
        let part = E::ONE / E::from_f64(width as f64);
        for ((row, out), inverse) in rows.chunks_exact_mut(width).zip(out.chunks_exact_mut(width)).zip(inverse) {
            let mean = sum_of!(row, row, |a, _b, sum| sum + a) * part;
            let variance = sum_of!(row, row, |a, _b, sum| (a - mean).fused(a - mean, sum)) * part;
            *inverse = E::ONE / (variance + norm.epsilon).sqrt();
            for value in row.iter_mut() {
                *value = (*value - mean) * *inverse;
            }
            for (((out, &value), &weight), &bias) in out.iter_mut().zip(row.iter()).zip(norm.weight).zip(norm.bias) {
                *out = value.fused(weight, bias);
            }
        }
    }
}

vectorised! {
    /// out = weight * rows + bias: what [`normalise`] made of normalised rows.
    fn scale_and_shift(rows: &'a [E], out: &'a mut [E], norm: Norm<'a, E>) {
        let width = norm.weight.len();
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for (((out, &value), &weight), &bias) in out.iter_mut().zip(row).zip(norm.weight).zip(norm.bias) {
                *out = value.fused(weight, bias);
            }
        }
    }
}

vectorised! {
    /// From slopes at the norm's output to those at its input, in place; adds the gradients of weight and bias to `sums`.
    fn normalise_backwards(
        slopes: &'a mut [E],
        normalised: &'a [E],
        inverse: &'a [E],
        weight: &'a [E],
        sums: &'a mut [E],
    ) {
        let width = weight.len();
        let part = E::ONE / E::from_f64(width as f64);
        let (weight_sums, bias_sums) = sums.split_at_mut(width);
        for ((slopes, row), &inverse) in
            slopes.chunks_exact_mut(width).zip(normalised.chunks_exact(width)).zip(inverse)
        {
            for (((slope, &value), weight_sum), bias_sum) in
                slopes.iter().zip(row).zip(weight_sums.iter_mut()).zip(bias_sums.iter_mut())
            {
                *weight_sum = slope.fused(value, *weight_sum);
                *bias_sum += *slope;
            }
            for (slope, &weight) in slopes.iter_mut().zip(weight) {
                *slope *= weight;
            }
            let mean = sum_of!(slopes, row, |a, _b, sum| sum + a) * part;
            let along = sum_of!(slopes, row, |a, b, sum| a.fused(b, sum)) * part;
            for (slope, &value) in slopes.iter_mut().zip(row) {
                *slope = (*slope - value.fused(along, mean)) * inverse;
            }
        }
    }
}

vectorised! {
    /// rows += other.
    fn add(rows: &'a mut [E], other: &'a [E]) {
        for (value, &other) in rows.iter_mut().zip(other) {
            *value += other;
        }
    }
}

vectorised! {
    /// sums += the sum over rows.
    fn add_rows(rows: &'a [E], sums: &'a mut [E]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

#[inline(always)]
fn gelu<E: Element>(x: E) -> E {
    x * x.normal_curve().0
}

#[inline(always)]
fn gelu_slope<E: Element>(x: E) -> E {
    let (cumulative, density) = x.normal_curve();
    x.fused(density, cumulative)
}

/// sqrt(8 / pi): twice the factor inside the tanh of the approximate GELU.
const TWICE: f64 = 1.595_769_121_605_730_7;
const CUBIC: f64 = 0.044_715;

/// (1 + tanh(z / 2)) / 2 = 1 / (1 + exp(-z)) with z = sqrt(8 / pi) (x + 0.044715 x^3).
#[inline(always)]
fn gate<E: Element>(x: E) -> E {
    let inner = (x * x).fused(E::from_f64(CUBIC), E::ONE) * x * E::from_f64(TWICE);
    let small = (-inner.abs()).quick_exp();
    (if inner < E::ZERO { small } else { E::ONE }) / (E::ONE + small)
}

#[inline(always)]
fn gelu_tanh_slope<E: Element>(x: E) -> E {
    let gate = gate(x);
    let inner = (x * x).fused(E::from_f64(3.0 * CUBIC), E::ONE) * E::from_f64(TWICE);
    (x * inner).fused(gate * (E::ONE - gate), gate)
}

vectorised! {
    /// The activation of every number.
    fn activate(values: &'a [E], out: &'a mut [E], activation: Activation) {
        match activation {
            Activation::Gelu => for (out, &value) in out.iter_mut().zip(values) { *out = gelu(value); },
            Activation::GeluTanh => for (out, &value) in out.iter_mut().zip(values) { *out = value * gate(value); },
            Activation::Relu => for (out, &value) in out.iter_mut().zip(values) { *out = value.larger(E::ZERO); },
        }
    }
}

vectorised! {
    /// The activation of every number, in place.
    fn activate_in_place(values: &'a mut [E], activation: Activation) {
        match activation {
            Activation::Gelu => for value in values.iter_mut() { *value = gelu(*value); },
            Activation::GeluTanh => for value in values.iter_mut() { *value = *value * gate(*value); },
            Activation::Relu => for value in values.iter_mut() { *value = value.larger(E::ZERO); },
        }
    }
}

vectorised! {
    /// slopes *= the activation's derivative at `values`.
    fn activate_backwards(slopes: &'a mut [E], values: &'a [E], activation: Activation) {
        match activation {
            Activation::Gelu => for (slope, &value) in slopes.iter_mut().zip(values) { *slope *= gelu_slope(value); },
            Activation::GeluTanh => {
                for (slope, &value) in slopes.iter_mut().zip(values) {
                    *slope *= gelu_tanh_slope(value);
                }
            }
            Activation::Relu => {
                for (slope, &value) in slopes.iter_mut().zip(values) {
                    *slope = if value > E::ZERO { *slope } else { E::ZERO };
                }
            }
        }
    }
}

/// fresh -> LN's normalised rows of (dropped fresh + states), and states -> LN of that.
pub(super) fn residual_norm<E: Element>(
    fresh: &mut [E],
    states: &mut [E],
    inverse: &mut [E],
    norm: Norm<'_, E>,
    mask: Option<Mask>,
) {
    let width = norm.weight.len();
    let blocks = fresh.par_chunks_mut(BLOCK * width).zip(states.par_chunks_mut(BLOCK * width));
    blocks.zip(inverse.par_chunks_mut(BLOCK)).enumerate().for_each(|(block, ((fresh, states), inverse))| {
        drop_rows(fresh, width, block * BLOCK, mask);
        add(fresh, states);
        normalise(fresh, states, inverse, norm);
    });
}

/// Applies the mask to rows that start at row `first`.
pub(super) fn drop_rows<E: Element>(rows: &mut [E], width: usize, first: usize, mask: Option<Mask>) {
    if let Some(mask) = mask {
        for (row, values) in rows.chunks_exact_mut(width).enumerate() {
            mask.row(first + row).apply(values);
        }
    }
}

/// Back through [`residual_norm`]: slopes at the norm's output become those at its input, in place; with dropout, `branch` gets those
/// at the fresh part. `sums` gets the gradients of weight, bias and of whatever was added to the fresh part.
pub(super) fn residual_norm_backwards<E: Element>(
    slopes: &mut [E],
    (normalised, inverse): (&[E], &[E]),
    weight: &[E],
    mask: Option<Mask>,
    branch: &mut [E],
    partial: &mut [E],
) {
    let width = weight.len();
    let blocks = slopes
        .par_chunks_mut(BLOCK * width)
        .zip(normalised.par_chunks(BLOCK * width))
        .zip(inverse.par_chunks(BLOCK))
        .zip(partial.par_chunks_mut(3 * width));
    match mask {
        None => blocks.for_each(|(((slopes, normalised), inverse), partial)| {
            partial.fill(E::ZERO);
            let (norm_sums, sums) = partial.split_at_mut(2 * width);
            normalise_backwards(slopes, normalised, inverse, weight, norm_sums);
            add_rows(slopes, sums);
        }),
        Some(_) => blocks.zip(branch.par_chunks_mut(BLOCK * width)).enumerate().for_each(
            |(block, ((((slopes, normalised), inverse), partial), branch))| {
                partial.fill(E::ZERO);
                let (norm_sums, sums) = partial.split_at_mut(2 * width);
                normalise_backwards(slopes, normalised, inverse, weight, norm_sums);
                branch.copy_from_slice(slopes);
                drop_rows(branch, width, block * BLOCK, mask);
                add_rows(branch, sums);
            },
        ),
    }
}

/// Adds up the partial sums of blocks, each of which has the parts `outputs` behind each other.
pub(super) fn total<E: Element>(partial: &[E], outputs: &mut [&mut [E]]) {
    let width: usize = outputs.iter().map(|output| output.len()).sum();
    for (block, partial) in partial.chunks_exact(width).enumerate() {
        let mut rest = partial;
        for output in outputs.iter_mut() {
            let (part, tail) = rest.split_at(output.len());
            if block == 0 {
                output.copy_from_slice(part);
            } else {
                add(output, part);
            }
            rest = tail;
        }
    }
}

/// Sums over rows of `rows` in blocks.
pub(super) fn block_sums<E: Element>(rows: &[E], width: usize, partial: &mut [E]) {
    rows.par_chunks(BLOCK * width).zip(partial.par_chunks_mut(width)).for_each(|(rows, partial)| {
        partial.fill(E::ZERO);
        add_rows(rows, partial);
    });
}
