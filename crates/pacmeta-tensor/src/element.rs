//! The two number types that arrays hold.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::simd::curves::Curves;
use crate::simd::vectors::Vectors;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point number that arrays can hold: `f32` or `f64`.
pub trait Element:
    sealed::Sealed
    + Vectors
    + Curves
    + Copy
    + Debug
    + Display
    + Default
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// The exponential function.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// log(1 + x), accurate near zero.
    fn ln_1p(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// An integer power.
    fn powi(self, exponent: i32) -> Self;
    /// Whether this is not a number.
    fn is_nan(self) -> bool;
    /// Whether this is neither infinite nor not-a-number.
    fn is_finite(self) -> bool;
}

macro_rules! implement_element {
    ($type:ty) => {
        impl Element for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = <$type>::NEG_INFINITY;

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn exp(self) -> Self {
                self.exp()
            }
            #[inline]
            fn ln(self) -> Self {
                self.ln()
            }
            #[inline]
            fn ln_1p(self) -> Self {
                self.ln_1p()
            }
            #[inline]
            fn tanh(self) -> Self {
                self.tanh()
            }
            #[inline]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline]
            fn powi(self, exponent: i32) -> Self {
                self.powi(exponent)
            }
            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            #[inline]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

implement_element!(f32);
implement_element!(f64);
