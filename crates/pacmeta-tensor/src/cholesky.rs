//! Inverse and log-determinant of a symmetric positive-definite matrix A by its Cholesky factor, A = L L'.
//!
//! Both are functions of the symmetric part (A + A')/2, so that they have a derivative in each entry of A.
//! Nothing is added to the diagonal: a matrix that is not positive definite is an error that names the pivot.

use crate::element::Element;
use crate::error::{Result, TensorError};

/// The lower factor, row-major, zeros above the diagonal.
fn factor<E: Element>(operation: &'static str, matrix: &[E], size: usize) -> Result<Vec<E>> {
    let half = E::from_f64(0.5);
    let mut lower = vec![E::ZERO; size * size];
    for row in 0..size {
        for column in 0..=row {
            let mut sum = half * (matrix[row * size + column] + matrix[column * size + row]);
            for inner in 0..column {
                sum -= lower[row * size + inner] * lower[column * size + inner];
            }
            if column < row {
                lower[row * size + column] = sum / lower[column * size + column];
            } else if sum > E::ZERO && sum.is_finite() {
                lower[row * size + row] = sum.sqrt();
            } else {
                return Err(TensorError::NotPositiveDefinite { operation, pivot: row, value: sum.to_f64() });
            }
        }
    }
    Ok(lower)
}

/// A^-1, exactly symmetric.
pub(crate) fn inverse<E: Element>(operation: &'static str, matrix: &[E], size: usize) -> Result<Vec<E>> {
    let mut lower = factor(operation, matrix, size)?;
    // L^-1 in place, row by row: row r of L^-1 needs row r of L and the rows of L^-1 above.
    for row in 0..size {
        let diagonal = E::ONE / lower[row * size + row];
        for column in 0..row {
            let mut sum = E::ZERO;
            for inner in column..row {
                sum += lower[row * size + inner] * lower[inner * size + column];
            }
            lower[row * size + column] = -sum * diagonal;
        }
        lower[row * size + row] = diagonal;
    }
    let mut inverse = vec![E::ZERO; size * size];
    for row in 0..size {
        for column in 0..=row {
            let mut sum = E::ZERO;
            for inner in row..size {
                sum += lower[inner * size + row] * lower[inner * size + column];
            }
            inverse[row * size + column] = sum;
            inverse[column * size + row] = sum;
        }
    }
    Ok(inverse)
}

/// log |A|.
pub(crate) fn log_det<E: Element>(operation: &'static str, matrix: &[E], size: usize) -> Result<E> {
    let lower = factor(operation, matrix, size)?;
    Ok((0..size).map(|row| lower[row * size + row].ln()).sum::<E>() * E::from_f64(2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn inverse_times_matrix_is_the_identity() {
        let mut generator = Key::new(2).generator();
        for size in [0, 1, 2, 5, 12] {
            let root: Vec<f64> = (0..size * size).map(|_| generator.normal()).collect();
            let dot = |row: usize, column: usize| -> f64 {
                (0..size).map(|inner| root[row * size + inner] * root[column * size + inner]).sum()
            };
            let matrix: Vec<f64> = (0..size * size)
                .map(|at| dot(at / size, at % size) + if at / size == at % size { 0.1 } else { 0.0 })
                .collect();
            let inverse = inverse("inverse", &matrix, size).unwrap();
            for row in 0..size {
                for column in 0..size {
                    let entry: f64 = (0..size)
                        .map(|inner| matrix[row * size + inner] * inverse[inner * size + column])
                        .sum();
                    assert!((entry - f64::from(u8::from(row == column))).abs() < 1e-10);
                    assert_eq!(inverse[row * size + column], inverse[column * size + row]);
                }
            }
        }
        assert!((log_det::<f64>("log_det", &[2.0, 1.0, 1.0, 3.0], 2).unwrap() - 5f64.ln()).abs() < 1e-15);
        // Only the symmetric part counts.
        assert_eq!(
            log_det("log_det", &[2.0, 0.0, 2.0, 3.0], 2),
            log_det("log_det", &[2.0, 1.0, 1.0, 3.0], 2)
        );
    }

    #[test]
    fn the_failing_pivot_is_named() {
        let error = inverse("inverse", &[1.0, 2.0, 2.0, 1.0], 2).unwrap_err();
        assert_eq!(error, TensorError::NotPositiveDefinite { operation: "inverse", pivot: 1, value: -3.0 });
        assert!(log_det("log_det", &[f64::NAN], 1).is_err());
        assert!(log_det("log_det", &[f64::INFINITY], 1).is_err());
    }
}
