//! Exponential and hyperbolic tangent without branches, so that loops over them become vector code.
//!
//! exp reduces the argument to x = k ln 2 + r with |r| <= ln(2)/2 and uses the rational approximation
//! exp(r) = 1 + 2 p/(q - p), p = r P(r^2), q = Q(r^2), of the Cephes library (S. Moshier).
//!
//! tanh reduces it to x = k ln(2)/2 + r with |r| <= ln(2)/4, where tanh(r) = p/q with p = r (r^4 + P_1 r^2 + P_0) and
//! q = Q_2 r^4 + Q_1 r^2 + P_0 to 5.5e-18. With s = 2^k the addition theorem is
//!
//! ```text
//! tanh(x) = ((s - 1) q + (s + 1) p) / ((s + 1) q + (s - 1) p),
//! ```
//!
//! which has one division, loses no digits near 0, where s = 1, and is odd to the last bit. Relative errors stay below
//! 1e-15 for both (tested against the C library).

use pulp::bytemuck::cast_slice_mut;
use pulp::{Arch, Simd, WithSimd};

const LOG2_E: f64 = std::f64::consts::LOG2_E;
// ln 2 in two parts; the first has few enough bits that k times it is exact.
const LN2_HIGH: f64 = 6.931_457_519_531_25e-1;
const LN2_LOW: f64 = 1.428_606_820_309_417_3e-6;
// Adding 1.5 * 2^52 rounds to the nearest integer and leaves that integer in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The coefficients of P and Q of exp, highest power first.
const P: [f64; 3] = [1.261_771_930_748_105_9e-4, 3.029_944_077_074_419_6e-2, 1.0];
const Q: [f64; 4] = [3.001_985_051_386_644_6e-6, 2.524_483_403_496_841e-3, 2.272_655_482_081_550_3e-1, 2.0];

// The coefficients of tanh: the best approximation of tanh(r)/r of this form with equal constant terms.
const TANH_CONSTANT: f64 = 945.698_251_355_050_8;
const TANH_P1: f64 = 105.066_492_144_743_31;
const TANH_Q1: f64 = 420.299_242_596_421_5;
const TANH_Q2: f64 = 15.006_647_353_229_003;
// With the exponent's bias inside, the low bits of a rounded number are those of 2^k.
const BIASED_ROUNDER: f64 = ROUNDER + 1023.0;

/// Vectors whose tanh or exponential is taken side by side.
pub const GROUP: usize = 2;

/// 2^k, from x rounded to k with [`ROUNDER`] still in it.
#[inline(always)]
fn power_of_two(rounded: f64) -> f64 {
    f64::from_bits((rounded.to_bits() << 52).wrapping_add(1.0_f64.to_bits()))
}

/// exp(x) for x <= 0 (and up to 700); below -700 the result is 0, which is right to 1e-304.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Written so that a NaN stays one.
    let bounded = if x < -700.0 { -700.0 } else { x };
    let rounded = bounded.mul_add(LOG2_E, ROUNDER);
    let k = rounded - ROUNDER;
    let r = (-LN2_LOW).mul_add(k, (-LN2_HIGH).mul_add(k, bounded));
    let square = r * r;
    let p = r * P[0].mul_add(square, P[1]).mul_add(square, P[2]);
    let q = Q[0].mul_add(square, Q[1]).mul_add(square, Q[2]).mul_add(square, Q[3]);
    let value = power_of_two(rounded) * (1.0 + 2.0 * p / (q - p));
    if x < -700.0 { 0.0 } else { value }
}

/// tanh(x).
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    // tanh(20) rounds to 1. Written so that a NaN stays one and each comparison is one instruction.
    let x = if x > 20.0 { 20.0 } else { x };
    let x = if x < -20.0 { -20.0 } else { x };
    let rounded = x.mul_add(2.0 * LOG2_E, BIASED_ROUNDER);
    let k = rounded - BIASED_ROUNDER;
    // ln 2 in one part: what it lacks, k 2e-17, meets a slope of about 4/2^k.
    let r = (-0.5 * std::f64::consts::LN_2).mul_add(k, x);
    let power = f64::from_bits(rounded.to_bits() << 52);
    let square = r * r;
    let p = r * (square + TANH_P1).mul_add(square, TANH_CONSTANT);
    let q = TANH_Q2.mul_add(square, TANH_Q1).mul_add(square, TANH_CONSTANT);
    // 1 - s and not s - 1: minus it times q is then -0 where x is 0, which leaves the sign of p.
    let (less, more) = (1.0 - power, 1.0 + power);
    (-less).mul_add(q, more * p) / more.mul_add(q, -(less * p))
}

/// Replaces `N` vectors by their tanh, with the operations of [`tanh`] in its order: one of them waits for itself most of the
/// time, two or more hide each other's latency.
///
/// Loops and no closures: only what is inlined for certain is compiled for the instructions at hand.
#[inline(always)]
pub fn tanh_vectors<S: Simd, const N: usize>(simd: S, values: &mut [S::f64s; N]) {
    if S::F64_LANES == 1 {
        // Plain code's minimum would lose a NaN.
        for lane in cast_slice_mut::<S::f64s, f64>(values) {
            *lane = tanh(*lane);
        }
        return;
    }
    let zero = simd.splat_f64s(0.0);
    let (mut power, mut r, mut square) = ([zero; N], [zero; N], [zero; N]);
    for i in 0..N {
        let x = simd.min_f64s(simd.splat_f64s(20.0), values[i]);
        let x = simd.max_f64s(simd.splat_f64s(-20.0), x);
        power[i] = simd.mul_add_f64s(x, simd.splat_f64s(2.0 * LOG2_E), simd.splat_f64s(BIASED_ROUNDER));
        let k = simd.sub_f64s(power[i], simd.splat_f64s(BIASED_ROUNDER));
        r[i] = simd.mul_add_f64s(simd.splat_f64s(-0.5 * std::f64::consts::LN_2), k, x);
    }
    for bits in cast_slice_mut::<S::f64s, u64>(&mut power) {
        *bits <<= 52;
    }
    let (mut p, mut q) = ([zero; N], [zero; N]);
    for i in 0..N {
        square[i] = simd.mul_f64s(r[i], r[i]);
        p[i] = simd.add_f64s(square[i], simd.splat_f64s(TANH_P1));
        q[i] = simd.mul_add_f64s(simd.splat_f64s(TANH_Q2), square[i], simd.splat_f64s(TANH_Q1));
    }
    for i in 0..N {
        p[i] = simd.mul_f64s(r[i], simd.mul_add_f64s(p[i], square[i], simd.splat_f64s(TANH_CONSTANT)));
        q[i] = simd.mul_add_f64s(q[i], square[i], simd.splat_f64s(TANH_CONSTANT));
    }
    for i in 0..N {
        let less = simd.sub_f64s(simd.splat_f64s(1.0), power[i]);
        let more = simd.add_f64s(simd.splat_f64s(1.0), power[i]);
        let numerator = simd.negate_mul_add_f64s(less, q[i], simd.mul_f64s(more, p[i]));
        let subtracted = simd.neg_f64s(simd.mul_f64s(less, p[i]));
        values[i] = simd.div_f64s(numerator, simd.mul_add_f64s(more, q[i], subtracted));
    }
}

/// Replaces `N` vectors by their exponentials, with the operations of [`exp`] in its order and for its range.
#[inline(always)]
pub fn exp_vectors<S: Simd, const N: usize>(simd: S, values: &mut [S::f64s; N]) {
    if S::F64_LANES == 1 {
        for lane in cast_slice_mut::<S::f64s, f64>(values) {
            *lane = exp(*lane);
        }
        return;
    }
    let zero = simd.splat_f64s(0.0);
    let least = simd.splat_f64s(-700.0);
    let (mut power, mut r) = ([zero; N], [zero; N]);
    for i in 0..N {
        let x = simd.max_f64s(least, values[i]);
        power[i] = simd.mul_add_f64s(x, simd.splat_f64s(LOG2_E), simd.splat_f64s(ROUNDER));
        let k = simd.sub_f64s(power[i], simd.splat_f64s(ROUNDER));
        let high = simd.mul_add_f64s(simd.splat_f64s(-LN2_HIGH), k, x);
        r[i] = simd.mul_add_f64s(simd.splat_f64s(-LN2_LOW), k, high);
    }
    for bits in cast_slice_mut::<S::f64s, u64>(&mut power) {
        *bits = (*bits << 52).wrapping_add(1.0_f64.to_bits());
    }
    for i in 0..N {
        let square = simd.mul_f64s(r[i], r[i]);
        let mut p = simd.mul_add_f64s(simd.splat_f64s(P[0]), square, simd.splat_f64s(P[1]));
        let mut q = simd.mul_add_f64s(simd.splat_f64s(Q[0]), square, simd.splat_f64s(Q[1]));
        p = simd.mul_f64s(r[i], simd.mul_add_f64s(p, square, simd.splat_f64s(P[2])));
        q = simd.mul_add_f64s(q, square, simd.splat_f64s(Q[2]));
        q = simd.mul_add_f64s(q, square, simd.splat_f64s(Q[3]));
        let fraction = simd.div_f64s(simd.add_f64s(p, p), simd.sub_f64s(q, p));
        let value = simd.mul_f64s(power[i], simd.add_f64s(simd.splat_f64s(1.0), fraction));
        values[i] = simd.select_f64s(simd.less_than_f64s(values[i], least), zero, value);
    }
}

struct TanhInPlace<'a>(&'a mut [f64]);

impl WithSimd for TanhInPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (vectors, rest) = S::as_mut_simd_f64s(self.0);
        let (groups, single) = vectors.as_chunks_mut::<GROUP>();
        for group in groups {
            tanh_vectors(simd, group);
        }
        for vector in single {
            tanh_vectors(simd, std::array::from_mut(vector));
        }
        for value in rest {
            *value = tanh(*value);
        }
    }
}

/// Replaces every value by its hyperbolic tangent.
pub fn tanh_in_place(arch: Arch, values: &mut [f64]) {
    arch.dispatch(TanhInPlace(values));
}

struct ExpInPlace<'a>(&'a mut [f64]);

impl WithSimd for ExpInPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (vectors, rest) = S::as_mut_simd_f64s(self.0);
        let (groups, single) = vectors.as_chunks_mut::<GROUP>();
        for group in groups {
            exp_vectors(simd, group);
        }
        for vector in single {
            exp_vectors(simd, std::array::from_mut(vector));
        }
        for value in rest {
            *value = exp(*value);
        }
    }
}

/// Replaces every value by its exponential; see [`exp`] for the range.
pub fn exp_in_place(arch: Arch, values: &mut [f64]) {
    arch.dispatch(ExpInPlace(values));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::every_arch;

    fn largest_relative_error(
        ours: fn(Arch, &mut [f64]),
        theirs: fn(f64) -> f64,
        low: f64,
        high: f64,
    ) -> f64 {
        let arguments: Vec<f64> =
            (0..200_001).map(|i| low + (high - low) * f64::from(i) / 200_000.0).collect();
        let largest = |arch| {
            let mut values = arguments.clone();
            ours(arch, &mut values);
            let pairs = arguments.iter().zip(&values);
            pairs
                .map(|(&x, &value)| ((value - theirs(x)) / theirs(x).abs().max(f64::MIN_POSITIVE)).abs())
                .fold(0.0, f64::max)
        };
        every_arch().into_iter().map(largest).fold(0.0, f64::max)
    }

    #[test]
    fn agree_with_the_c_library() {
        for (low, high) in [(-25.0, 25.0), (-1.0, 1.0), (-1e-3, 1e-3), (1e-300, 1e-290)] {
            let error = largest_relative_error(tanh_in_place, f64::tanh, low, high);
            assert!(error < 1e-15, "tanh on [{low}, {high}]: {error:e}");
        }
        for (low, high) in [(-1.0, 0.0), (-700.0, 0.0), (0.0, 5.0)] {
            let error = largest_relative_error(exp_in_place, f64::exp, low, high);
            assert!(error < 1e-15, "exp on [{low}, {high}]: {error:e}");
        }
    }

    #[test]
    fn special_values() {
        assert_eq!(tanh(0.0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(tanh(-0.0).to_bits(), (-0.0_f64).to_bits());
        assert_eq!((tanh(f64::INFINITY), tanh(f64::NEG_INFINITY)), (1.0, -1.0));
        assert_eq!((exp(0.0), exp(f64::NEG_INFINITY), exp(-1e9)), (1.0, 0.0, 0.0));
        assert!(tanh(f64::NAN).is_nan() && exp(f64::NAN).is_nan());
        for arch in every_arch() {
            let mut values = [[f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY]; 5].concat();
            tanh_in_place(arch, &mut values);
            for chunk in values.chunks(4) {
                assert!(chunk[0].is_nan() && chunk[1] == 0.0 && chunk[1].is_sign_negative());
                assert_eq!(chunk[2..], [1.0, -1.0]);
            }
            let mut values = [[f64::NAN, 0.0, f64::NEG_INFINITY, -701.0]; 5].concat();
            exp_in_place(arch, &mut values);
            for chunk in values.chunks(4) {
                assert!(chunk[0].is_nan());
                assert_eq!(chunk[1..], [1.0, 0.0, 0.0]);
            }
        }
    }

    #[test]
    fn tanh_is_odd_to_the_last_bit() {
        for i in 0..20_000 {
            let x = f64::from(i) / 900.0;
            // behind the box: for ARM the minus would be drawn into the last product, and zero would lose its sign
            let minus = -std::hint::black_box(tanh(x));
            assert_eq!(tanh(-x).to_bits(), minus.to_bits(), "{x}");
        }
    }

    #[test]
    fn plain_code_and_vector_code_agree_to_the_last_bit() {
        for (function, low, high) in
            [(tanh_in_place as fn(Arch, &mut [f64]), -14.0, 14.0), (exp_in_place, -750.0, 5.0)]
        {
            let arguments: Vec<f64> = (0..1003).map(|i| low + (high - low) * f64::from(i) / 1002.0).collect();
            let mut plain = arguments.clone();
            function(Arch::Scalar, &mut plain);
            for arch in every_arch() {
                let mut vector = arguments.clone();
                function(arch, &mut vector);
                assert_eq!(plain, vector, "{arch:?}");
            }
        }
    }
}
