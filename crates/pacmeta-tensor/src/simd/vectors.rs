//! Vector operations for kernels that are written once for both number types.
//!
//! pulp names them by type (`mul_add_e_f32s`, `mul_add_e_f64s`); [`Vectors`] gives them one name. It belongs to
//! [`Element`](crate::Element), so a kernel needs no other bound.

use pulp::Simd;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number type whose vectors a processor can compute with.
pub trait Vectors: sealed::Sealed + Copy + 'static {
    /// A vector of the instruction set S.
    type Of<S: Simd>: Copy;

    /// The whole vectors of a slice, and the numbers that are left.
    fn split<S: Simd>(values: &[Self]) -> (&[Self::Of<S>], &[Self]);
    /// The same, to write.
    fn split_mut<S: Simd>(values: &mut [Self]) -> (&mut [Self::Of<S>], &mut [Self]);
    /// The same number in every place.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Of<S>;
    /// a + b.
    fn plus<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    /// a - b.
    fn subtract<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    /// a b.
    fn multiply<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    /// a / b.
    fn divide<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S>;
    /// The square root.
    fn root<S: Simd>(simd: S, a: Self::Of<S>) -> Self::Of<S>;
    /// a b + c, with one rounding where the processor can.
    fn multiply_add<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>, c: Self::Of<S>) -> Self::Of<S>;
    /// The sum over the places of a vector.
    fn total<S: Simd>(simd: S, a: Self::Of<S>) -> Self;
}

macro_rules! implement_vectors {
    ($type:ty, $vectors:ident, $split:ident, $split_mut:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident,
     $div:ident, $sqrt:ident, $mul_add:ident, $sum:ident) => {
        impl Vectors for $type {
            type Of<S: Simd> = S::$vectors;

            #[inline(always)]
            fn split<S: Simd>(values: &[Self]) -> (&[Self::Of<S>], &[Self]) {
                S::$split(values)
            }
            #[inline(always)]
            fn split_mut<S: Simd>(values: &mut [Self]) -> (&mut [Self::Of<S>], &mut [Self]) {
                S::$split_mut(values)
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> Self::Of<S> {
                simd.$splat(value)
            }
            #[inline(always)]
            fn plus<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S> {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn subtract<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S> {
                simd.$sub(a, b)
            }
            #[inline(always)]
            fn multiply<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S> {
                simd.$mul(a, b)
            }
            #[inline(always)]
            fn divide<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>) -> Self::Of<S> {
                simd.$div(a, b)
            }
            #[inline(always)]
            fn root<S: Simd>(simd: S, a: Self::Of<S>) -> Self::Of<S> {
                simd.$sqrt(a)
            }
            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: Self::Of<S>, b: Self::Of<S>, c: Self::Of<S>) -> Self::Of<S> {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn total<S: Simd>(simd: S, a: Self::Of<S>) -> Self {
                simd.$sum(a)
            }
        }
    };
}

implement_vectors!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    div_f32s,
    sqrt_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s
);
implement_vectors!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    div_f64s,
    sqrt_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s
);
