//! Matrix products of row-major matrices, either of which may be read transposed.

use crate::element::Element;

/// How a matrix operand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// As stored.
    Plain,
    /// Rows as columns.
    Transposed,
}

impl Orientation {
    /// The other one.
    #[must_use]
    pub fn flipped(self) -> Self {
        match self {
            Orientation::Plain => Orientation::Transposed,
            Orientation::Transposed => Orientation::Plain,
        }
    }

    /// Rows and columns of a matrix, stored as `[rows, columns]`, as it is read.
    pub(crate) fn apply(self, dimensions: [usize; 2]) -> [usize; 2] {
        match self {
            Orientation::Plain => dimensions,
            Orientation::Transposed => [dimensions[1], dimensions[0]],
        }
    }
}

/// Multiply-adds up to which plain loops are used. Measured on AVX-512, f64 and f32, all orientations: up to
/// 5x5x5 loops take 50-130 ns and `gemm` 50-300 ns; between 160 and 350 multiply-adds either wins, depending
/// on the shape, loops by up to 2 times and `gemm` by up to 8 times (narrow outputs); above 500 `gemm` is
/// nearly always ahead, 3-8 times from 4,000.
const PLAIN_LIMIT: usize = 128;

/// The product of `left` (read as rows x depth) and `right` (read as depth x columns).
pub(crate) fn product<E: Element>(
    [rows, depth, columns]: [usize; 3],
    (left, left_orientation): (&[E], Orientation),
    (right, right_orientation): (&[E], Orientation),
) -> Vec<E> {
    if rows.saturating_mul(depth).saturating_mul(columns) <= PLAIN_LIMIT {
        plain([rows, depth, columns], (left, left_orientation), (right, right_orientation))
    } else {
        packed([rows, depth, columns], (left, left_orientation), (right, right_orientation))
    }
}

fn plain<E: Element>(
    [rows, depth, columns]: [usize; 3],
    (left, left_orientation): (&[E], Orientation),
    (right, right_orientation): (&[E], Orientation),
) -> Vec<E> {
    let (left_row, left_column) = strides(left_orientation, rows, depth);
    let mut output = vec![E::ZERO; rows * columns];
    if columns == 0 || depth == 0 {
        return output;
    }
    for (row, sums) in output.chunks_exact_mut(columns).enumerate() {
        match right_orientation {
            // Both loops run along the stored rows of the right operand.
            Orientation::Plain => {
                for (inner, line) in right.chunks_exact(columns).enumerate() {
                    let factor = left[row * left_row + inner * left_column];
                    for (sum, &value) in sums.iter_mut().zip(line) {
                        *sum += factor * value;
                    }
                }
            }
            Orientation::Transposed => {
                for (sum, line) in sums.iter_mut().zip(right.chunks_exact(depth)) {
                    let mut total = E::ZERO;
                    for (inner, &value) in line.iter().enumerate() {
                        total += left[row * left_row + inner * left_column] * value;
                    }
                    *sum = total;
                }
            }
        }
    }
    output
}

fn packed<E: Element>(
    [rows, depth, columns]: [usize; 3],
    (left, left_orientation): (&[E], Orientation),
    (right, right_orientation): (&[E], Orientation),
) -> Vec<E> {
    assert_eq!(left.len(), rows * depth, "left operand");
    assert_eq!(right.len(), depth * columns, "right operand");
    let (left_row, left_column) = strides(left_orientation, rows, depth);
    let (right_row, right_column) = strides(right_orientation, depth, columns);
    let mut output = vec![E::ZERO; rows * columns];
    // SAFETY: the strides address exactly rows * depth, depth * columns and rows * columns elements, which
    // the assertions above and the allocation of `output` provide; `output` overlaps with neither operand.
    // One thread: callers run tasks and models in parallel, not products.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            output.as_mut_ptr(),
            1,
            columns as isize,
            false,
            left.as_ptr(),
            left_column as isize,
            left_row as isize,
            right.as_ptr(),
            right_column as isize,
            right_row as isize,
            E::ZERO,
            E::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
    output
}

/// out = factor * left * right for matrices inside larger ones: an element of an operand is its row and column times the two
/// strides, rows of `out` are `stride` elements apart.
pub(crate) fn strided<E: Element>(
    [rows, depth, columns]: [usize; 3],
    (left, left_strides): (&[E], [usize; 2]),
    (right, right_strides): (&[E], [usize; 2]),
    (out, stride): (&mut [E], usize),
    factor: E,
) {
    if rows == 0 || columns == 0 || depth == 0 {
        return;
    }
    let last =
        |[row, column]: [usize; 2], rows: usize, columns: usize| (rows - 1) * row + (columns - 1) * column;
    assert!(last(left_strides, rows, depth) < left.len(), "left operand");
    assert!(last(right_strides, depth, columns) < right.len(), "right operand");
    assert!(stride >= columns && last([stride, 1], rows, columns) < out.len(), "result");
    // SAFETY: the assertions keep every element that the strides address inside its slice; rows of `out` do not overlap.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            out.as_mut_ptr(),
            1,
            stride as isize,
            false,
            left.as_ptr(),
            left_strides[1] as isize,
            left_strides[0] as isize,
            right.as_ptr(),
            right_strides[1] as isize,
            right_strides[0] as isize,
            E::ZERO,
            factor,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Element steps to the next row and to the next column of a matrix that is read as `rows` x `columns`.
fn strides(orientation: Orientation, rows: usize, columns: usize) -> (usize, usize) {
    match orientation {
        Orientation::Plain => (columns, 1),
        Orientation::Transposed => (1, rows),
    }
}

#[cfg(test)]
mod tests {
    use super::Orientation::{Plain, Transposed};
    use super::*;
    use crate::Key;

    fn check<E: Element>(tolerance: f64) {
        let mut generator = Key::new(1).generator();
        for [rows, depth, columns] in
            [[1, 1, 1], [2, 3, 4], [5, 1, 7], [0, 3, 2], [3, 0, 2], [3, 2, 0], [33, 17, 29]]
        {
            let mut matrix = |size| (0..size).map(|_| E::from_f64(generator.normal())).collect::<Vec<E>>();
            let (left, right) = (matrix(rows * depth), matrix(depth * columns));
            for orientations in
                [(Plain, Plain), (Plain, Transposed), (Transposed, Plain), (Transposed, Transposed)]
            {
                let (left_row, left_column) = strides(orientations.0, rows, depth);
                let (right_row, right_column) = strides(orientations.1, depth, columns);
                let operands = ((&left[..], orientations.0), (&right[..], orientations.1));
                let by_loops = plain([rows, depth, columns], operands.0, operands.1);
                let by_kernel = packed([rows, depth, columns], operands.0, operands.1);
                assert_eq!(by_loops.len(), rows * columns);
                for position in 0..rows * columns {
                    let (row, column) = (position / columns, position % columns);
                    let entry = |inner: usize| {
                        left[row * left_row + inner * left_column].to_f64()
                            * right[inner * right_row + column * right_column].to_f64()
                    };
                    let expected: f64 = (0..depth).map(entry).sum();
                    assert!((by_loops[position].to_f64() - expected).abs() < tolerance);
                    assert!((by_kernel[position].to_f64() - expected).abs() < tolerance);
                }
            }
        }
    }

    #[test]
    fn loops_and_kernel_agree_with_the_definition() {
        check::<f64>(1e-13);
        check::<f32>(1e-4);
    }
}
