//! Cholesky factor and inverse of symmetric positive-definite matrices of 1 to a few hundred rows.
//!
//! A = U' U with U upper triangular, by block rows: panels of 24 rows subtract all rows before them in one
//! register-blocked [`product`], blocks of six within a panel those of the panel, and finish by themselves. X = U'^-1 (lower triangular) follows the same
//! way, and A^-1 = X' X skips the zeros of X.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::product::{Left, Sizes, Start, TILE_ROWS, product};
use super::{PADDING, padded};

const BLOCK: usize = TILE_ROWS;
/// Rows that subtract all rows before them in one product, so that those are read once for four blocks.
const PANEL: usize = 4 * BLOCK;

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
    for panel in (0..size).step_by(PANEL) {
        let end = size.min(panel + PANEL);
        subtract_rows(arch, matrix, stride, panel..end, 0..panel);
        for first in (panel..end).step_by(BLOCK) {
            let height = BLOCK.min(end - first);
            subtract_rows(arch, matrix, stride, first..first + height, panel..first);
            let block = &mut matrix[first * stride..];
            log_determinant += arch.dispatch(FinishRows { block, stride, first, height })?;
        }
    }
    Ok(log_determinant)
}

/// Subtracts what the finished rows `done` of U contribute to `rows`, from their first cache line on.
fn subtract_rows(arch: Arch, matrix: &mut [f64], stride: usize, rows: Range<usize>, done: Range<usize>) {
    if done.is_empty() {
        return;
    }
    let column = rows.start / PADDING * PADDING;
    let (before, block) = matrix.split_at_mut(rows.start * stride);
    let before = &before[done.start * stride..];
    product(
        arch,
        Sizes { rows: rows.len(), columns: stride - column, depth: done.len() },
        Start::Minus,
        Left::Transposed { values: &before[rows.start..], stride },
        (&before[column..], stride),
        (&mut block[column..], stride),
    );
}

/// The square on the diagonal of a block: U there, and one over its pivots.
struct Corner {
    upper: [[f64; BLOCK]; BLOCK],
    inverse_pivots: [f64; BLOCK],
}

impl Corner {
    /// Reads the square at column `first` of a block of rows.
    #[inline(always)]
    fn read(block: &[f64], stride: usize, first: usize, height: usize) -> Self {
        let mut upper = [[0.0; BLOCK]; BLOCK];
        for (values, row) in upper[..height].iter_mut().zip(block.chunks_exact(stride)) {
            values[..height].copy_from_slice(&row[first..first + height]);
        }
        Self { upper, inverse_pivots: [0.0; BLOCK] }
    }

    /// Solves U_corner' Y = C in place for the columns in `columns` of a block of rows.
    #[inline(always)]
    fn solve(&self, block: &mut [f64], stride: usize, columns: Range<usize>, height: usize) {
        match height {
            BLOCK => self.solve_rows::<BLOCK>(block, stride, columns),
            5 => self.solve_rows::<5>(block, stride, columns),
            4 => self.solve_rows::<4>(block, stride, columns),
            3 => self.solve_rows::<3>(block, stride, columns),
            2 => self.solve_rows::<2>(block, stride, columns),
            _ => self.solve_rows::<1>(block, stride, columns),
        }
    }

    /// Eight columns at a time, which stay in registers for all rows.
    #[inline(always)]
    fn solve_rows<const H: usize>(&self, block: &mut [f64], stride: usize, columns: Range<usize>) {
        let mut column = columns.start;
        while column < columns.end {
            let width = PADDING.min(columns.end - column);
            let mut values = [[0.0; PADDING]; H];
            for (row, values) in values.iter_mut().enumerate() {
                let place = row * stride + column;
                if width == PADDING {
                    values.copy_from_slice(&block[place..place + PADDING]);
                } else {
                    values[..width].copy_from_slice(&block[place..place + width]);
                }
            }
            for row in 0..H {
                let mut current = values[row];
                for earlier in 0..row {
                    let factor = -self.upper[earlier][row];
                    for lane in 0..PADDING {
                        current[lane] = factor.mul_add(values[earlier][lane], current[lane]);
                    }
                }
                for lane in 0..PADDING {
                    current[lane] *= self.inverse_pivots[row];
                }
                values[row] = current;
            }
            for (row, values) in values.iter().enumerate() {
                let place = row * stride + column;
                if width == PADDING {
                    block[place..place + PADDING].copy_from_slice(values);
                } else {
                    block[place..place + width].copy_from_slice(&values[..width]);
                }
            }
            column += width;
        }
    }
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
        let mut corner = Corner::read(block, stride, first, height);
        let mut pivots = [1.0; BLOCK];
        for row in 0..height {
            for earlier in 0..row {
                let factor = corner.upper[earlier][row];
                for column in row..height {
                    corner.upper[row][column] -= factor * corner.upper[earlier][column];
                }
            }
            let pivot = corner.upper[row][row];
            if !(pivot > 0.0 && pivot < f64::INFINITY) {
                return Err(NotPositiveDefinite { pivot: first + row });
            }
            pivots[row] = pivot;
            corner.inverse_pivots[row] = 1.0 / pivot.sqrt();
            for column in row..height {
                corner.upper[row][column] *= corner.inverse_pivots[row];
            }
            let place = row * stride + first;
            block[place + row..place + height].copy_from_slice(&corner.upper[row][row..height]);
        }
        corner.solve(block, stride, first + height..stride, height);
        // One logarithm for the block, unless the product of its pivots could leave the range of numbers.
        let product: f64 = pivots.iter().product();
        if (1e-250..1e250).contains(&product) {
            Ok(product.ln())
        } else {
            Ok(pivots.iter().map(|pivot| pivot.ln()).sum())
        }
    }
}

/// From U of [`cholesky`] computes X = U'^-1 (lower triangular, zeros above), so that A^-1 = X' X.
pub fn inverse_factor(arch: Arch, factor: &[f64], inverse_factor: &mut [f64], size: usize) {
    let stride = padded(size);
    assert!(factor.len() >= size * stride, "factor holds every row");
    let x = &mut inverse_factor[..size * stride];
    x.fill(0.0);
    // X[i, :] = (e_i - sum_{k < i} U[k, i] X[k, :]) / U[i, i]
    for panel in (0..size).step_by(PANEL) {
        let end = size.min(panel + PANEL);
        subtract_inverse_rows(arch, factor, x, stride, panel..end, 0..panel);
        for first in (panel..end).step_by(BLOCK) {
            let height = BLOCK.min(end - first);
            subtract_inverse_rows(arch, factor, x, stride, first..first + height, panel..first);
            let block = &mut x[first * stride..];
            arch.dispatch(FinishInverseRows { block, factor, stride, first, height });
        }
    }
}

/// Subtracts U[k, i] X[k, :] for the finished rows k in `done` from the rows i in `rows`.
fn subtract_inverse_rows(
    arch: Arch,
    factor: &[f64],
    x: &mut [f64],
    stride: usize,
    rows: Range<usize>,
    done: Range<usize>,
) {
    if done.is_empty() {
        return;
    }
    let (before, block) = x.split_at_mut(rows.start * stride);
    // X is lower triangular: columns from `column` on begin with row `column`.
    for column in (0..done.end).step_by(PANEL) {
        let begin = done.start.max(column);
        product(
            arch,
            Sizes { rows: rows.len(), columns: PANEL.min(done.end - column), depth: done.end - begin },
            Start::Minus,
            Left::Transposed { values: &factor[begin * stride + rows.start..], stride },
            (&before[begin * stride + column..], stride),
            (&mut block[column..], stride),
        );
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
        let mut corner = Corner::read(&factor[first * stride..], stride, first, height);
        for row in 0..height {
            corner.inverse_pivots[row] = 1.0 / corner.upper[row][row];
            block[row * stride + first + row] = 1.0;
        }
        corner.solve(block, stride, 0..first + height, height);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::every_arch;

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
        let sizes = [1, 2, 5, 6, 7, 8, 13, 30, 50, 101];
        for (size, arch) in
            sizes.into_iter().flat_map(|size| every_arch().into_iter().map(move |arch| (size, arch)))
        {
            let stride = padded(size);
            let matrix = positive_definite(size);
            let mut factor = matrix.clone();
            let log_determinant = cholesky(arch, &mut factor, size).unwrap();
            let from_diagonal: f64 = (0..size).map(|i| 2.0 * factor[i * stride + i].ln()).sum();
            assert!((log_determinant - from_diagonal).abs() < 1e-9 * (1.0 + from_diagonal.abs()));
            let (mut inverse, mut x) = (vec![7.0; size * stride], vec![7.0; size * stride]);
            inverse_factor(arch, &factor, &mut x, size);
            upper_inverse(arch, &x, &mut inverse, size);
            mirror(&mut inverse, size);
            for i in 0..size {
                for j in 0..size {
                    let entry: f64 =
                        (0..size).map(|k| matrix[i * stride + k] * inverse[k * stride + j]).sum();
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((entry - expected).abs() < 1e-8, "{arch:?}, size {size}, ({i}, {j}): {entry}");
                }
            }
        }
    }

    #[test]
    fn an_indefinite_matrix_is_refused_at_its_pivot() {
        for arch in every_arch() {
            let mut matrix = vec![0.0; 3 * 8];
            (matrix[0], matrix[9], matrix[18]) = (1.0, -1.0, 1.0);
            assert_eq!(cholesky(arch, &mut matrix, 3), Err(NotPositiveDefinite { pivot: 1 }));
            for bad in [30, 50] {
                let (size, stride) = (60, padded(60));
                let mut matrix = positive_definite(size);
                matrix[bad * stride + bad] = -1.0;
                assert_eq!(cholesky(arch, &mut matrix, size), Err(NotPositiveDefinite { pivot: bad }));
            }
            let mut matrix = vec![f64::NAN; 8];
            assert_eq!(cholesky(arch, &mut matrix, 1), Err(NotPositiveDefinite { pivot: 0 }));
        }
    }
}
