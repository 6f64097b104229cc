//! The exponential and the normal distribution for both number types, so that one kernel serves f32 and f64.
//!
//! In f32 they have no branches, and loops over them become vector code. exp reduces its argument to x = k ln 2 + r, |r| <= ln(2)/2,
//! and uses 1 + r + r^2 p(r) with the best p of degree 4 (relative error 3e-9 before rounding). The normal distribution function
//! comes from its density, Phi(-a) = phi(a) R(a) for a >= 0, with R approximated by a polynomial of degree 7 in 1 / (1 + 0.33 a) without
//! constant term (absolute error of Phi 1e-8 before rounding, below 2e-7 after it). In f64 exp is [`elementary::exp`](super::elementary::exp) and Phi
//! the C library's erfc.

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number type with these functions.
pub trait Curves: sealed::Sealed + Copy {
    /// exp(x) for x <= 80; 0 far below zero.
    fn quick_exp(self) -> Self;
    /// The normal distribution function and its density, Phi(x) and phi(x).
    fn normal_curve(self) -> (Self, Self);
    /// self * factor + addend, with one rounding where the processor can.
    fn fused(self, factor: Self, addend: Self) -> Self;
    /// The larger of two numbers.
    fn larger(self, other: Self) -> Self;
}

// Adding 1.5 * 2^23 rounds to the nearest integer and leaves that integer in the low bits.
const ROUNDER: f32 = 12_582_912.0;
// ln 2 in two parts; the first has few enough bits that k times it is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// p, lowest power first.
const EXP: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_71, 0.001_381_461_3];
const FREEDOM: f32 = 0.33;
/// R, lowest power first, from the first power on.
const TAIL: [f32; 7] =
    [0.332_954_73, 0.295_066_15, 0.468_495_2, -0.250_108_6, 0.856_412_67, -0.566_648_24, 0.117_142_24];
const ROOT_TWO_PI_INVERSE: f64 = 0.398_942_280_401_432_7;

impl Curves for f32 {
    #[inline(always)]
    fn quick_exp(self) -> Self {
        let bounded = if self < -87.0 { -87.0 } else { self };
        let rounded = bounded.mul_add(std::f32::consts::LOG2_E, ROUNDER);
        let k = rounded - ROUNDER;
        let r = (-LN2_LOW).mul_add(k, (-LN2_HIGH).mul_add(k, bounded));
        let p = EXP[4].mul_add(r, EXP[3]).mul_add(r, EXP[2]).mul_add(r, EXP[1]).mul_add(r, EXP[0]);
        let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
        let value = power * (p * r).mul_add(r, r + 1.0);
        if self < -87.0 { 0.0 } else { value }
    }

    #[inline(always)]
    fn normal_curve(self) -> (Self, Self) {
        let distance = self.abs();
        let density = (-0.5 * distance * distance).quick_exp() * ROOT_TWO_PI_INVERSE as f32;
        let t = 1.0 / FREEDOM.mul_add(distance, 1.0);
        let ratio = TAIL[6].mul_add(t, TAIL[5]).mul_add(t, TAIL[4]).mul_add(t, TAIL[3]);
        let ratio = ratio.mul_add(t, TAIL[2]).mul_add(t, TAIL[1]).mul_add(t, TAIL[0]);
        let tail = density * ratio * t;
        (if self > 0.0 { 1.0 - tail } else { tail }, density)
    }

    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}

impl Curves for f64 {
    #[inline(always)]
    fn quick_exp(self) -> Self {
        super::elementary::exp(self)
    }

    #[inline(always)]
    fn normal_curve(self) -> (Self, Self) {
        let cumulative = 0.5 * libm::erfc(-self * std::f64::consts::FRAC_1_SQRT_2);
        (cumulative, (-0.5 * self * self).quick_exp() * ROOT_TWO_PI_INVERSE)
    }

    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_agrees_with_the_c_library() {
        let (mut exp, mut cumulative, mut density) = (0.0_f64, 0.0_f64, 0.0_f64);
        for i in -80_000..80_000 {
            let x = i as f32 / 1000.0;
            let wide = f64::from(x);
            exp = exp.max((f64::from(x.quick_exp()) / wide.exp() - 1.0).abs());
            let (ours, slope) = x.normal_curve();
            cumulative = cumulative.max((f64::from(ours) - wide.normal_curve().0).abs());
            let expected = (-0.5 * wide * wide).exp() * ROOT_TWO_PI_INVERSE;
            density = density.max((f64::from(slope) - expected).abs());
        }
        assert!(exp < 2e-7, "exp: {exp:e}");
        assert!(cumulative < 2e-7 && density < 1e-7, "{cumulative:e} {density:e}");
    }

    #[test]
    fn double_precision_has_known_values() {
        let (cumulative, density) = 1.0_f64.normal_curve();
        assert!((cumulative - 0.841_344_746_068_542_9).abs() < 1e-15);
        assert!((density - 0.241_970_724_519_143_37).abs() < 1e-15);
        // the tail keeps its digits
        assert!(((-10.0_f64).normal_curve().0 / 7.619_853_024_160_525e-24 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn special_values() {
        assert_eq!(
            (0.0_f32.quick_exp(), (-200.0_f32).quick_exp(), f32::NEG_INFINITY.quick_exp()),
            (1.0, 0.0, 0.0)
        );
        assert!(f32::NAN.quick_exp().is_nan() && f32::NAN.normal_curve().0.is_nan());
        assert_eq!((1e9_f32.normal_curve(), (-1e9_f32).normal_curve()), ((1.0, 0.0), (0.0, 0.0)));
        assert_eq!((2.0_f64.larger(1.0), 1.0_f32.larger(2.0), 2.0_f32.fused(3.0, 1.0)), (2.0, 2.0, 7.0));
    }
}
