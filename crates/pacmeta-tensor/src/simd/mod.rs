//! Kernels that are vectorised for the processor at hand, chosen at run time: AVX-512, AVX2 with FMA, NEON or plain code,
//! from one source. [`skinny`] and [`curves`] serve both number types; the others are in f64.
//!
//! Matrices of the f64 kernels are row-major with a row stride of [`padded`] columns. Every kernel may read the padding, so it must hold
//! finite numbers (zeros), and may write it; nothing that a user sees ever comes from there. Outputs of a network with one or two numbers a row,
//! which no matrix product reads, have no padding.
//!
//! Results do not depend on threads: each kernel adds in an order that is fixed by the sizes alone.

pub mod curves;
pub mod elementary;
pub mod factor;
pub mod lines;
pub mod product;
pub mod skinny;
pub mod vectors;

/// The instruction set that the kernels use on this machine. Another one may give other last bits.
pub fn instructions() -> &'static str {
    match pulp::Arch::new() {
        #[cfg(target_arch = "x86_64")]
        pulp::Arch::V4(_) => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        pulp::Arch::V3(_) => "AVX2 + FMA",
        #[cfg(target_arch = "aarch64")]
        pulp::Arch::Neon(_) => "NEON",
        _ => "plain",
    }
}

/// The number of columns a row is padded to: whole cache lines of eight f64.
pub const PADDING: usize = 8;

/// The row stride for `columns` columns.
pub const fn padded(columns: usize) -> usize {
    columns.div_ceil(PADDING) * PADDING
}

/// Sums the products of two slices in a fixed order, eight partial sums at a time.
#[inline(always)]
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut partial = [0.0_f64; PADDING];
    let (left_chunks, left_rest) = left.as_chunks::<PADDING>();
    let (right_chunks, right_rest) = right.as_chunks::<PADDING>();
    for (a, b) in left_chunks.iter().zip(right_chunks) {
        for lane in 0..PADDING {
            partial[lane] = a[lane].mul_add(b[lane], partial[lane]);
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    let [a, b, c, d, e, f, g, h] = partial;
    (((a + e) + (c + g)) + ((b + f) + (d + h))) + rest
}
