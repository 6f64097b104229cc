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

/// Every instruction set of this machine that a kernel may be dispatched to, plain code first. On a machine with AVX-512 that
/// has AVX2 in it too, which the kernels do not take there: for tests.
pub fn every_arch() -> Vec<pulp::Arch> {
    let mut all = vec![pulp::Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    all.extend(pulp::x86::V3::try_new().map(pulp::Arch::V3));
    if !all.iter().any(|arch| std::mem::discriminant(arch) == std::mem::discriminant(&pulp::Arch::new())) {
        all.push(pulp::Arch::new());
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_code_and_what_the_machine_has_are_tested() {
        let all = every_arch();
        let kinds: Vec<_> = all.iter().map(std::mem::discriminant).collect();
        assert!(matches!(all[0], pulp::Arch::Scalar));
        assert!(kinds.contains(&std::mem::discriminant(&pulp::Arch::new())));
        // what has AVX-512 has AVX2 too
        #[cfg(target_arch = "x86_64")]
        assert!(instructions() == "plain" || all.iter().any(|arch| matches!(arch, pulp::Arch::V3(_))));
    }
}
