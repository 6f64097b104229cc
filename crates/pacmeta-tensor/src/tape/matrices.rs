//! Operations on variables that are matrices, and log-probabilities along an axis.

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::matmul::{self, Orientation};
use crate::shape::Shape;
use crate::tape::operation::Operation;
use crate::tape::variable::Variable;
use crate::{cholesky, kernels};

/// Matrices and log-probabilities.
impl<'t, E: Element> Variable<'t, E> {
    /// The matrix product of this and another.
    pub fn matmul(self, other: Self) -> Result<Self> {
        self.matmul_oriented(Orientation::Plain, other, Orientation::Plain)
    }

    /// The matrix product of this and the transpose of another: inputs `[batch, in]` times weights `[out,
    /// in]`.
    pub fn matmul_transposed(self, other: Self) -> Result<Self> {
        self.matmul_oriented(Orientation::Plain, other, Orientation::Transposed)
    }

    /// The matrix product with either operand read as stored or transposed.
    pub fn matmul_oriented(
        self,
        orientation: Orientation,
        other: Self,
        other_orientation: Orientation,
    ) -> Result<Self> {
        let operation = "matmul";
        self.check_tape(other, operation)?;
        let [rows, depth] = orientation.apply(self.matrix(operation)?);
        let [other_depth, columns] = other_orientation.apply(other.matrix(operation)?);
        if depth != other_depth {
            return Err(TensorError::ShapeMismatch { operation, left: self.shape(), right: other.shape() });
        }
        let shape = Shape::new(&[rows, columns])?;
        let (left, right) = (self.value(), other.value());
        let values = matmul::product(
            [rows, depth, columns],
            (left.values(), orientation),
            (right.values(), other_orientation),
        );
        let record = Operation::MatMul((self.id, orientation), (other.id, other_orientation));
        Ok(self.tape.push(Array::of(shape, values), record))
    }

    /// log(sum(exp(x))) along an axis, which keeps size one; stable for large numbers.
    pub fn log_sum_exp(self, axis: usize) -> Result<Self> {
        self.shape().check_axis("log_sum_exp", axis)?;
        let shape = self.shape().with_axis(axis, 1)?;
        Ok(self.tape.push(kernels::log_sum_exp(&self.value(), axis, shape), Operation::LogSumExp(self.id)))
    }

    /// The logarithm of the softmax along an axis; stable for large numbers.
    pub fn log_softmax(self, axis: usize) -> Result<Self> {
        self - self.log_sum_exp(axis)?
    }

    /// The inverse of a symmetric positive-definite matrix; of its symmetric part, if it is not symmetric. A
    /// matrix that is not positive definite is an error that names the pivot: nothing is added to the
    /// diagonal.
    pub fn inverse(self) -> Result<Self> {
        let size = self.square_matrix("inverse")?;
        let values = cholesky::inverse("inverse", self.value().values(), size)?;
        Ok(self.tape.push(Array::of(self.shape(), values), Operation::Inverse(self.id)))
    }

    /// The log-determinant of a symmetric positive-definite matrix, under the conditions of
    /// [`inverse`](Self::inverse).
    pub fn log_det(self) -> Result<Self> {
        let size = self.square_matrix("log_det")?;
        let value = cholesky::log_det("log_det", self.value().values(), size)?;
        Ok(self.tape.push(Array::scalar(value), Operation::LogDet(self.id)))
    }

    pub(super) fn matrix(self, operation: &'static str) -> Result<[usize; 2]> {
        match self.shape()[..] {
            [rows, columns] => Ok([rows, columns]),
            _ => Err(TensorError::UnexpectedShape { operation, shape: self.shape(), expected: "a matrix" }),
        }
    }

    fn square_matrix(self, operation: &'static str) -> Result<usize> {
        match self.matrix(operation)? {
            [rows, columns] if rows == columns => Ok(rows),
            _ => Err(TensorError::UnexpectedShape {
                operation,
                shape: self.shape(),
                expected: "a square matrix",
            }),
        }
    }
}
