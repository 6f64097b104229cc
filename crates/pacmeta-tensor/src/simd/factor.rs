//! Cholesky factor and inverse of symmetric positive-definite matrices of 1 to a few hundred rows.
//!
//! A = U' U with U upper triangular, by block rows of six: all earlier rows are subtracted by one register-blocked
//! [`product`], then the few rows of the block are finished by themselves. X = U'^-1 (lower triangular) follows the same
//! way, and A^-1 = X' X skips the zeros of X.

use pulp::{Arch, Simd, WithSimd};

use super::product::{Left, Sizes, Start, TILE_ROWS, product};
use super::{PADDING, padded};

const BLOCK: usize = TILE_ROWS;

/// A pivot that is not positive: the matrix is not positive definite to working precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPositiveDefinite {
    /// The index of the pivot.
    pub pivot: usize,
}

/// Replaces the upper triangle of the size x size matrix by U with A = U' U; the rest is left as it is. Returns
/// log det A.
///
/// # Errors
/// When a pivot is not a positive number.
pub fn cholesky(arch: Arch, matrix: &mut [f64], size: usize) -> Result<f64, NotPositiveDefinite> {
    let stride = padded(size);
    assert!(matrix.len() >= size * stride, "matrix holds every row");
    let mut log_determinant = 0.0;
    for first in (0..size).step_by(BLOCK) {
        let height = BLOCK.min(size - first);
        let column = first / PADDING * PADDING;
        let (done, block) = matrix.split_at_mut(first * stride);
        if first > 0 {
            product(
                arch,
                Sizes { rows: height, columns: stride - column, depth: first },
                Start::Minus,
                Left::Transposed { values: &done[first..], stride },
                (&done[column..], stride),
                (&mut block[column..], stride),
            );
        }
        log_determinant += arch.dispatch(FinishRows { block, stride, first, height })?;
    }
    Ok(log_determinant)
}

/// Finishes the rows of one block, from which all earlier rows have been subtracted.
struct FinishRows<'a> {
    block: &'a mut [f64],
    stride: usize,
    first: usize,
    height: usize,
}

impl WithSimd for FinishRows<'_> {
    type Output = Result<f64, NotPositiveDefinite>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let Self { block, stride, first, height } = self;
        let mut log_determinant = 0.0;
        for row in 0..height {
            let diagonal = first + row;
            let (above, rest) = block.split_at_mut(row * stride);
            let current = &mut rest[diagonal..stride];
            for earlier in above.chunks_exact(stride) {
                let factor = earlier[diagonal];
                for (value, other) in current.iter_mut().zip(&earlier[diagonal..]) {
                    *value = (-factor).mul_add(*other, *value);
                }
            }
            let pivot = current[0];
            if !(pivot > 0.0 && pivot < f64::INFINITY) {
                return Err(NotPositiveDefinite { pivot: diagonal });
            }
            log_determinant += pivot.ln();
            let inverse_root = 1.0 / pivot.sqrt();
            current.iter_mut().for_each(|value| *value *= inverse_root);
        }
        Ok(log_determinant)
    }
}

/// From U of [`cholesky`] computes X = U'^-1 (lower triangular, zeros above), so that A^-1 = X' X.
pub fn inverse_factor(arch: Arch, factor: &[f64], inverse_factor: &mut [f64], size: usize) {
    let stride = padded(size);
    assert!(factor.len() >= size * stride, "factor holds every row");
    let x = &mut inverse_factor[..size * stride];
    x.fill(0.0);
    // X[i, :] = (e_i - sum_{k < i} U[k, i] X[k, :]) / U[i, i]
    for first in (0..size).step_by(BLOCK) {
        let height = BLOCK.min(size - first);
        let (done, block) = x.split_at_mut(first * stride);
        if first > 0 {
            product(
                arch,
                Sizes { rows: height, columns: padded(first), depth: first },
                Start::Minus,
                Left::Transposed { values: &factor[first..], stride },
                (done, stride),
                (block, stride),
            );
        }
        arch.dispatch(FinishInverseRows { block, factor, stride, first, height });
    }
}

/// From X of [`inverse_factor`] computes the upper triangle of A^-1 = X' X; what stands below it is not specified.
pub fn upper_inverse(arch: Arch, inverse_factor: &[f64], inverse: &mut [f64], size: usize) {
    let stride = padded(size);
    let x = &inverse_factor[..size * stride];
    // Entry (i, j) sums over k >= max(i, j) = j: by blocks of columns, each starts at its own first row.
    for column in (0..size).step_by(PADDING) {
        product(
            arch,
            Sizes { rows: size.min(column + PADDING), columns: PADDING, depth: size - column },
            Start::Zero,
            Left::Transposed { values: &x[column * stride..], stride },
            (&x[column * stride + column..], stride),
            (&mut inverse[column..], stride),
        );
    }
}

/// Copies the upper triangle onto the lower one.
pub fn mirror(matrix: &mut [f64], size: usize) {
    let stride = padded(size);
    for row in 1..size {
        for column in 0..row {
            matrix[row * stride + column] = matrix[column * stride + row];
        }
    }
}

/// Finishes the rows of one block of X.
struct FinishInverseRows<'a> {
    block: &'a mut [f64],
    factor: &'a [f64],
    stride: usize,
    first: usize,
    height: usize,
}

impl WithSimd for FinishInverseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { block, factor, stride, first, height } = self;
        for row in 0..height {
            let diagonal = first + row;
            let (above, rest) = block.split_at_mut(row * stride);
            let current = &mut rest[..stride];
            current[diagonal] = 1.0;
            for (offset, earlier) in above.chunks_exact(stride).enumerate() {
                let multiplier = factor[(first + offset) * stride + diagonal];
                for (value, other) in current[..=diagonal].iter_mut().zip(earlier) {
                    *value = (-multiplier).mul_add(*other, *value);
                }
            }
            let inverse_pivot = 1.0 / factor[diagonal * stride + diagonal];
            current[..=diagonal].iter_mut().for_each(|value| *value *= inverse_pivot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M M' + I / 10 for a fixed rough M.
    fn positive_definite(size: usize) -> Vec<f64> {
        let stride = padded(size);
        let m = |i: usize, j: usize| (((i * 31 + j * 17 + i * j) % 23) as f64) / 11.0 - 1.0;
        let mut matrix = vec![0.0; size * stride];
        for i in 0..size {
            for j in 0..size {
                matrix[i * stride + j] =
                    (0..size).map(|k| m(i, k) * m(j, k)).sum::<f64>() + if i == j { 0.1 } else { 0.0 };
            }
        }
        matrix
    }

    #[test]
    fn inverse_times_matrix_is_the_identity() {
        for size in [1, 2, 5, 6, 7, 8, 13, 30, 50, 101] {
            let stride = padded(size);
            let matrix = positive_definite(size);
            let mut factor = matrix.clone();
            let log_determinant = cholesky(Arch::new(), &mut factor, size).unwrap();
            let from_diagonal: f64 = (0..size).map(|i| 2.0 * factor[i * stride + i].ln()).sum();
            assert!((log_determinant - from_diagonal).abs() < 1e-9 * (1.0 + from_diagonal.abs()));
            let (mut inverse, mut x) = (vec![7.0; size * stride], vec![7.0; size * stride]);
            inverse_factor(Arch::new(), &factor, &mut x, size);
            upper_inverse(Arch::new(), &x, &mut inverse, size);
            mirror(&mut inverse, size);
            for i in 0..size {
                for j in 0..size {
                    let entry: f64 =
                        (0..size).map(|k| matrix[i * stride + k] * inverse[k * stride + j]).sum();
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((entry - expected).abs() < 1e-8, "size {size}, ({i}, {j}): {entry}");
                }
            }
        }
    }

    #[test]
    fn an_indefinite_matrix_is_refused_at_its_pivot() {
        let mut matrix = vec![0.0; 3 * 8];
        (matrix[0], matrix[9], matrix[18]) = (1.0, -1.0, 1.0);
        assert_eq!(cholesky(Arch::new(), &mut matrix, 3), Err(NotPositiveDefinite { pivot: 1 }));
        let mut matrix = vec![f64::NAN; 8];
        assert_eq!(cholesky(Arch::new(), &mut matrix, 1), Err(NotPositiveDefinite { pivot: 0 }));
    }
}
