//! The one error type of this crate.

use crate::shape::Shape;

/// What went wrong, where, and what was expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// Two operands do not fit each other.
    #[error("{operation}: shapes {left:?} and {right:?} do not fit")]
    ShapeMismatch {
        /// The operation that was asked for.
        operation: &'static str,
        /// Shape of the first operand.
        left: Shape,
        /// Shape of the second operand, or the shape asked for.
        right: Shape,
    },
    /// One operand has a shape that the operation does not take.
    #[error("{operation}: shape {shape:?} does not fit, expected {expected}")]
    UnexpectedShape {
        /// The operation that was asked for.
        operation: &'static str,
        /// The shape found.
        shape: Shape,
        /// The kind of shape that the operation takes.
        expected: &'static str,
    },
    /// A shape has too many dimensions, or more elements than memory can address.
    #[error(
        "shape {shape:?} is too large: at most {} dimensions and isize::MAX bytes",
        crate::shape::MAX_RANK
    )]
    ShapeTooLarge {
        /// The shape asked for.
        shape: Vec<usize>,
    },
    /// A buffer does not have as many elements as its shape says.
    #[error("{what}: expected {expected} elements, found {found}")]
    LengthMismatch {
        /// What the buffer is for.
        what: &'static str,
        /// Number of elements that the shape asks for.
        expected: usize,
        /// Number of elements in the buffer.
        found: usize,
    },
    /// An axis beyond the shape.
    #[error("{operation}: axis {axis} does not exist in shape {shape:?}")]
    AxisOutOfRange {
        /// The operation that was asked for.
        operation: &'static str,
        /// The axis asked for.
        axis: usize,
        /// The shape of the operand.
        shape: Shape,
    },
    /// An index or a range beyond its axis.
    #[error("{operation}: index {index} is out of range, the limit is {limit}")]
    IndexOutOfRange {
        /// The operation that was asked for.
        operation: &'static str,
        /// The index found.
        index: usize,
        /// The length of the axis.
        limit: usize,
    },
    /// An operation over a list was given none.
    #[error("{operation}: needs at least one operand")]
    NoOperands {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// A name that the parameter layout does not have.
    #[error("no parameter is named `{name}`")]
    UnknownName {
        /// The name asked for.
        name: String,
    },
    /// A name that the parameter layout has already.
    #[error("two parameters are named `{name}`")]
    DuplicateName {
        /// The repeated name.
        name: String,
    },
    /// Parameters of one layout were used where another was expected.
    #[error("the parameters have another layout: {difference}")]
    LayoutMismatch {
        /// The first difference found.
        difference: String,
    },
    /// A matrix that must be positive definite is not.
    #[error("{operation}: the matrix is not positive definite, pivot {pivot} is {value:e}")]
    NotPositiveDefinite {
        /// The operation that was asked for.
        operation: &'static str,
        /// Index of the first pivot of the Cholesky factorisation that is not positive.
        pivot: usize,
        /// Value of that pivot before the square root.
        value: f64,
    },
    /// A second derivative was asked for through a fused operation.
    #[error(
        "the fused operation `{operation}` has first derivatives only: \
         build this part from the tape's own operations to differentiate it twice"
    )]
    NotDifferentiableTwice {
        /// Name of the fused operation.
        operation: String,
    },
    /// A fused operation refused its inputs or returned something that does not fit them.
    #[error("fused operation `{operation}`: {reason}")]
    Fused {
        /// Name of the fused operation.
        operation: String,
        /// What does not fit.
        reason: String,
    },
    /// A variable of one tape was used with another.
    #[error("{operation}: the variables belong to different tapes")]
    DifferentTapes {
        /// The operation that was asked for.
        operation: &'static str,
    },
}

/// Shorthand for results of this crate.
pub type Result<T, Error = TensorError> = std::result::Result<T, Error>;
