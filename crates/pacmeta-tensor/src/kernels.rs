//! Plain kernels on arrays: what the tape's operations compute. Shapes have been checked by the callers.

use crate::array::Array;
use crate::element::Element;
use crate::error::Result;
use crate::shape::{MAX_RANK, Shape};

/// Calls `row(position, offsets)` for each row of `shape` along its last dimension, in row-major order;
/// `offsets` are the element offsets at which the row starts in operands of the given strides.
fn for_each_row<const OPERANDS: usize>(
    shape: &Shape,
    strides: [[usize; MAX_RANK]; OPERANDS],
    mut row: impl FnMut(usize, [usize; OPERANDS]),
) {
    let Some((&width, outer)) = shape.split_last() else {
        return row(0, [0; OPERANDS]);
    };
    if shape.count() == 0 {
        return;
    }
    let mut index = [0; MAX_RANK];
    let mut offsets = [0; OPERANDS];
    let mut position = 0;
    loop {
        row(position, offsets);
        position += width;
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < outer[axis] {
                for operand in 0..OPERANDS {
                    offsets[operand] += strides[operand][axis];
                }
                break;
            }
            for operand in 0..OPERANDS {
                offsets[operand] -= strides[operand][axis] * (outer[axis] - 1);
            }
            index[axis] = 0;
        }
    }
}

/// Length and stride of the last dimension; a single number is a row of one.
fn row_of(shape: &Shape, strides: &[usize; MAX_RANK]) -> (usize, usize) {
    match shape.rank() {
        0 => (1, 0),
        rank => (shape[rank - 1], strides[rank - 1]),
    }
}

/// Applies a function to pairs of elements, stretching dimensions of size one.
pub(crate) fn zip<E: Element>(
    operation: &'static str,
    left: &Array<E>,
    right: &Array<E>,
    function: impl Fn(E, E) -> E,
) -> Result<Array<E>> {
    let (a, b) = (left.values(), right.values());
    if left.shape() == right.shape() {
        return Ok(Array::of(*left.shape(), a.iter().zip(b).map(|(&a, &b)| function(a, b)).collect()));
    }
    let shape = Shape::broadcast(operation, left.shape(), right.shape())?;
    let strides = [left.shape().strides_in(&shape), right.shape().strides_in(&shape)];
    let (width, left_stride) = row_of(&shape, &strides[0]);
    let (_, right_stride) = row_of(&shape, &strides[1]);
    let mut values = Vec::with_capacity(shape.count());
    for_each_row(&shape, strides, |_, [from_a, from_b]| match (left_stride, right_stride) {
        (0, 0) => values.extend(std::iter::repeat_n(function(a[from_a], b[from_b]), width)),
        (0, _) => values.extend(b[from_b..from_b + width].iter().map(|&b| function(a[from_a], b))),
        (_, 0) => values.extend(a[from_a..from_a + width].iter().map(|&a| function(a, b[from_b]))),
        (_, _) => {
            let pairs = a[from_a..from_a + width].iter().zip(&b[from_b..from_b + width]);
            values.extend(pairs.map(|(&a, &b)| function(a, b)));
        }
    });
    Ok(Array::of(shape, values))
}

/// Repeats values along the dimensions that `shape` stretches.
pub(crate) fn broadcast_to<E: Element>(array: &Array<E>, shape: Shape) -> Array<E> {
    let source = array.values();
    let strides = array.shape().strides_in(&shape);
    let (width, stride) = row_of(&shape, &strides);
    let mut values = Vec::with_capacity(shape.count());
    for_each_row(&shape, [strides], |_, [from]| match stride {
        0 => values.extend(std::iter::repeat_n(source[from], width)),
        _ => values.extend_from_slice(&source[from..from + width]),
    });
    Array::of(shape, values)
}

/// Adds up values along the dimensions that `shape` would be stretched along.
pub(crate) fn sum_to<E: Element>(array: &Array<E>, shape: Shape) -> Array<E> {
    let source = array.values();
    let strides = shape.strides_in(array.shape());
    let (width, stride) = row_of(array.shape(), &strides);
    let mut values = vec![E::ZERO; shape.count()];
    for_each_row(array.shape(), [strides], |position, [to]| {
        let row = &source[position..position + width];
        if stride == 0 {
            values[to] += row.iter().copied().sum();
        } else {
            for (sum, &value) in values[to..to + width].iter_mut().zip(row) {
                *sum += value;
            }
        }
    });
    Array::of(shape, values)
}

/// log(sum(exp)) along an axis, which keeps size one; the maximum is taken out first, so that nothing
/// overflows.
pub(crate) fn log_sum_exp<E: Element>(array: &Array<E>, axis: usize, shape: Shape) -> Array<E> {
    let source = array.values();
    let (before, size, after) = array.shape().around(axis);
    let mut values = Vec::with_capacity(before * after);
    for outer in 0..before {
        for inner in 0..after {
            let along = || (0..size).map(|index| source[(outer * size + index) * after + inner]);
            let maximum =
                along().fold(E::NEG_INFINITY, |maximum, value| if value > maximum { value } else { maximum });
            // With an infinite maximum the differences would not be numbers; without it the limit comes out
            // right.
            let shift = if maximum.is_finite() { maximum } else { E::ZERO };
            values.push(shift + along().map(|value| (value - shift).exp()).sum::<E>().ln());
        }
    }
    Array::of(shape, values)
}

/// The transpose of a matrix.
pub(crate) fn transpose<E: Element>(array: &Array<E>, shape: Shape) -> Array<E> {
    let source = array.values();
    let (rows, columns) = (array.shape()[0], array.shape()[1]);
    let mut values = Vec::with_capacity(source.len());
    for column in 0..columns {
        values.extend((0..rows).map(|row| source[row * columns + column]));
    }
    Array::of(shape, values)
}

/// Puts arrays behind each other along an axis.
pub(crate) fn concatenate<E: Element>(arrays: &[Array<E>], axis: usize, shape: Shape) -> Array<E> {
    let before = shape.around(axis).0;
    let mut values = Vec::with_capacity(shape.count());
    for outer in 0..before {
        for array in arrays {
            let (_, size, after) = array.shape().around(axis);
            values.extend_from_slice(&array.values()[outer * size * after..(outer + 1) * size * after]);
        }
    }
    Array::of(shape, values)
}

/// The part of an array that starts at `start` along an axis and has the given shape.
pub(crate) fn slice<E: Element>(array: &Array<E>, axis: usize, start: usize, shape: Shape) -> Array<E> {
    let (before, size, after) = array.shape().around(axis);
    let length = shape[axis];
    let mut values = Vec::with_capacity(shape.count());
    for outer in 0..before {
        let from = (outer * size + start) * after;
        values.extend_from_slice(&array.values()[from..from + length * after]);
    }
    Array::of(shape, values)
}

/// An array of zeros of the given shape with a part replaced: the transpose of [`slice`].
pub(crate) fn pad<E: Element>(array: &Array<E>, axis: usize, start: usize, shape: Shape) -> Array<E> {
    let (before, length, after) = array.shape().around(axis);
    let size = shape[axis];
    let mut values = vec![E::ZERO; shape.count()];
    for outer in 0..before {
        let to = (outer * size + start) * after;
        let from = outer * length * after;
        values[to..to + length * after].copy_from_slice(&array.values()[from..from + length * after]);
    }
    Array::of(shape, values)
}

/// The rows (entries along the first axis) of these indices.
pub(crate) fn gather<E: Element>(array: &Array<E>, indices: &[usize], shape: Shape) -> Array<E> {
    let width: usize = shape[1..].iter().product();
    let mut values = Vec::with_capacity(shape.count());
    for &index in indices {
        values.extend_from_slice(&array.values()[index * width..(index + 1) * width]);
    }
    Array::of(shape, values)
}

/// Rows added up at their indices: the transpose of [`gather`].
pub(crate) fn scatter<E: Element>(array: &Array<E>, indices: &[usize], shape: Shape) -> Array<E> {
    let width: usize = shape[1..].iter().product();
    let mut values = vec![E::ZERO; shape.count()];
    for (position, &index) in indices.iter().enumerate() {
        let row = &array.values()[position * width..(position + 1) * width];
        for (sum, &value) in values[index * width..(index + 1) * width].iter_mut().zip(row) {
            *sum += value;
        }
    }
    Array::of(shape, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[usize]) -> Array<f64> {
        let shape = Shape::new(shape).unwrap();
        Array::of(shape, (0..shape.count()).map(|value| value as f64 + 1.0).collect())
    }

    /// The element of a stretched array at an index, computed the slow way.
    fn at(array: &Array<f64>, index: &[usize]) -> f64 {
        let shape = array.shape();
        let skipped = index.len() - shape.rank();
        let position =
            (0..shape.rank()).fold(0, |sum, axis| sum * shape[axis] + index[skipped + axis] % shape[axis]);
        array.values()[position]
    }

    #[test]
    fn stretched_operands_meet_at_the_right_elements() {
        let target = Shape::new(&[2, 3, 4]).unwrap();
        let full = array(&target);
        for dimensions in [&[][..], &[1], &[4], &[3, 1], &[1, 4], &[3, 4], &[2, 1, 1], &[2, 1, 4], &[1, 3, 1]]
        {
            let part = array(dimensions);
            let differences = zip("subtract", &full, &part, |a, b| a - b).unwrap();
            let reversed = zip("subtract", &part, &full, |a, b| a - b).unwrap();
            let repeated = broadcast_to(&part, target);
            let mut sums = vec![0.0; part.values().len()];
            let ids = Array::of(*part.shape(), (0..sums.len()).map(|value| value as f64).collect());
            for (position, &value) in full.values().iter().enumerate() {
                let index = [position / 12, position / 4 % 3, position % 4];
                assert_eq!(differences.values()[position], value - at(&part, &index), "{dimensions:?}");
                assert_eq!(reversed.values()[position], at(&part, &index) - value, "{dimensions:?}");
                assert_eq!(repeated.values()[position], at(&part, &index), "{dimensions:?}");
                sums[at(&ids, &index) as usize] += value;
            }
            assert_eq!(sum_to(&full, *part.shape()).values(), sums, "{dimensions:?}");
        }
        let outer = zip("multiply", &array(&[2, 1]), &array(&[3]), |a, b| a * b).unwrap();
        assert_eq!(outer.values(), [1.0, 2.0, 3.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn empty_arrays_pass_through() {
        let empty = Array::<f64>::zeros(Shape::new(&[2, 0]).unwrap());
        assert_eq!(zip("add", &empty, &array(&[1]), |a, b| a + b).unwrap(), empty);
        assert_eq!(sum_to(&empty, Shape::SCALAR).values(), [0.0]);
        assert_eq!(sum_to(&empty, Shape::new(&[2, 1]).unwrap()).values(), [0.0, 0.0]);
        assert_eq!(log_sum_exp(&empty, 1, Shape::new(&[2, 1]).unwrap()).values(), [f64::NEG_INFINITY; 2]);
    }

    #[test]
    fn log_sum_exp_at_the_edges() {
        let of = |values: Vec<f64>| {
            log_sum_exp(&Array::new(&[values.len()], values).unwrap(), 0, Shape::SCALAR).values()[0]
        };
        assert_eq!(of(vec![1e3, 1e3]), 1e3 + 2f64.ln());
        assert_eq!(of(vec![-1e3, -1e4]), -1e3);
        assert_eq!(of(vec![f64::INFINITY, 0.0]), f64::INFINITY);
        assert!(of(vec![f64::NAN, 0.0]).is_nan());
    }
}
