//! Operations on variables that add up, repeat, cut and reorder elements.

use std::ops::Range;
use std::sync::Arc;

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::kernels;
use crate::shape::Shape;
use crate::tape::operation::Operation;
use crate::tape::variable::Variable;

/// Sums and shapes.
impl<'t, E: Element> Variable<'t, E> {
    /// The sum of all elements, without dimensions.
    pub fn sum(self) -> Self {
        self.sum_to_shape(Shape::SCALAR)
    }

    /// The mean of all elements, without dimensions; not a number if there are none.
    pub fn mean(self) -> Self {
        self.sum().scale(E::ONE / E::from_f64(self.shape().count() as f64))
    }

    /// The sum along an axis, which keeps size one.
    pub fn sum_axis(self, axis: usize) -> Result<Self> {
        self.shape().check_axis("sum_axis", axis)?;
        Ok(self.sum_to_shape(self.shape().with_axis(axis, 1)?))
    }

    /// The mean along an axis, which keeps size one.
    pub fn mean_axis(self, axis: usize) -> Result<Self> {
        let sum = self.sum_axis(axis)?;
        Ok(sum.scale(E::ONE / E::from_f64(self.shape()[axis] as f64)))
    }

    /// The sum along all dimensions that `shape` would be stretched along; the transpose of
    /// [`broadcast_to`](Self::broadcast_to).
    pub fn sum_to(self, shape: &[usize]) -> Result<Self> {
        let shape = Shape::new(shape)?;
        if !shape.broadcasts_to(&self.shape()) {
            return Err(TensorError::ShapeMismatch { operation: "sum_to", left: self.shape(), right: shape });
        }
        Ok(self.sum_to_shape(shape))
    }

    fn sum_to_shape(self, shape: Shape) -> Self {
        if shape == self.shape() {
            return self;
        }
        self.tape.push(kernels::sum_to(&self.value(), shape), Operation::SumTo(self.id))
    }

    /// Repeats along missing dimensions and those of size one.
    pub fn broadcast_to(self, shape: &[usize]) -> Result<Self> {
        let shape = Shape::new(shape)?;
        if shape == self.shape() {
            return Ok(self);
        }
        if !self.shape().broadcasts_to(&shape) {
            return Err(TensorError::ShapeMismatch {
                operation: "broadcast_to",
                left: self.shape(),
                right: shape,
            });
        }
        Ok(self.tape.push(kernels::broadcast_to(&self.value(), shape), Operation::BroadcastTo(self.id)))
    }

    /// The same elements in the same order under another shape.
    pub fn reshape(self, shape: &[usize]) -> Result<Self> {
        Ok(self.tape.push_counted(self.value().reshape(shape)?, Operation::Reshape(self.id), 0))
    }

    /// The transpose of a matrix.
    pub fn transpose(self) -> Result<Self> {
        let [rows, columns] = self.matrix("transpose")?;
        let shape = Shape::new(&[columns, rows])?;
        Ok(self.tape.push(kernels::transpose(&self.value(), shape), Operation::Transpose(self.id)))
    }

    /// Arrays behind each other along an axis; their other dimensions must be equal.
    pub fn concatenate(parts: &[Self], axis: usize) -> Result<Self> {
        let operation = "concatenate";
        let Some(&first) = parts.first() else {
            return Err(TensorError::NoOperands { operation });
        };
        let shape = first.shape();
        shape.check_axis(operation, axis)?;
        let mut size = 0usize;
        for &part in parts {
            first.check_tape(part, operation)?;
            let other = part.shape();
            if other.rank() != shape.rank() || other.with_axis(axis, shape[axis])? != shape {
                return Err(TensorError::ShapeMismatch { operation, left: shape, right: other });
            }
            size = size.saturating_add(other[axis]);
        }
        let values: Vec<Array<E>> = parts.iter().map(|part| part.value()).collect();
        let value = kernels::concatenate(&values, axis, shape.with_axis(axis, size)?);
        let parts: Arc<[usize]> = parts.iter().map(|part| part.id).collect();
        Ok(first.tape.push(value, Operation::Concatenate { parts, axis }))
    }

    /// A range along an axis.
    pub fn slice(self, axis: usize, range: Range<usize>) -> Result<Self> {
        let (operation, shape) = ("slice", self.shape());
        shape.check_axis(operation, axis)?;
        if range.end > shape[axis] || range.start > range.end {
            let index = range.start.max(range.end);
            let limit = shape[axis].min(range.end);
            return Err(TensorError::IndexOutOfRange { operation, index, limit });
        }
        let value = kernels::slice(&self.value(), axis, range.start, shape.with_axis(axis, range.len())?);
        Ok(self.tape.push(value, Operation::Slice { source: self.id, axis, start: range.start }))
    }

    /// Zeros around this along an axis, so that it starts at `start` and the axis has `size`; the transpose
    /// of [`slice`](Self::slice).
    pub fn pad(self, axis: usize, start: usize, size: usize) -> Result<Self> {
        let (operation, shape) = ("pad", self.shape());
        shape.check_axis(operation, axis)?;
        let end = start.saturating_add(shape[axis]);
        if end > size {
            return Err(TensorError::IndexOutOfRange { operation, index: end, limit: size });
        }
        let value = kernels::pad(&self.value(), axis, start, shape.with_axis(axis, size)?);
        Ok(self.tape.push(value, Operation::Pad { source: self.id, axis, start }))
    }

    /// The rows (entries along the first axis) of these indices, in this order; an index may repeat.
    pub fn gather_rows(self, indices: &[usize]) -> Result<Self> {
        let (operation, shape) = ("gather_rows", self.shape());
        shape.check_axis(operation, 0)?;
        check_indices(operation, indices, shape[0])?;
        let value = kernels::gather(&self.value(), indices, shape.with_axis(0, indices.len())?);
        Ok(self.tape.push(value, Operation::Gather { source: self.id, indices: indices.into() }))
    }

    /// Adds row i to row `indices[i]` of an array of zeros with this many rows; the transpose of
    /// [`gather_rows`](Self::gather_rows).
    pub fn scatter_rows(self, indices: &[usize], rows: usize) -> Result<Self> {
        let (operation, shape) = ("scatter_rows", self.shape());
        shape.check_axis(operation, 0)?;
        if indices.len() != shape[0] {
            let (expected, found) = (shape[0], indices.len());
            return Err(TensorError::LengthMismatch { what: "indices of scatter_rows", expected, found });
        }
        check_indices(operation, indices, rows)?;
        let value = kernels::scatter(&self.value(), indices, shape.with_axis(0, rows)?);
        Ok(self.tape.push(value, Operation::Scatter { source: self.id, indices: indices.into() }))
    }

    /// From a matrix, the element of each row at that row's index, as a vector: the log-probabilities of
    /// labels.
    pub fn pick(self, indices: &[usize]) -> Result<Self> {
        let operation = "pick";
        let [rows, columns] = self.matrix(operation)?;
        if indices.len() != rows {
            return Err(TensorError::LengthMismatch {
                what: "indices of pick",
                expected: rows,
                found: indices.len(),
            });
        }
        check_indices(operation, indices, columns)?;
        let places: Vec<usize> =
            indices.iter().enumerate().map(|(row, &index)| row * columns + index).collect();
        self.reshape(&[rows * columns])?.gather_rows(&places)
    }
}

fn check_indices(operation: &'static str, indices: &[usize], limit: usize) -> Result<()> {
    match indices.iter().find(|&&index| index >= limit) {
        Some(&index) => Err(TensorError::IndexOutOfRange { operation, index, limit }),
        None => Ok(()),
    }
}
