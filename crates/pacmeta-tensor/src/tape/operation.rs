//! What a node of the tape remembers about how it was computed.

use std::sync::Arc;

use crate::array::Array;
use crate::blocks::Blocks;
use crate::element::Element;
use crate::matmul::Orientation;
use crate::tape::fused::FusedOperation;

/// The operation of a node with the nodes it was computed from.
#[derive(Clone)]
pub(super) enum Operation<E> {
    Leaf,
    Add(usize, usize),
    Subtract(usize, usize),
    Multiply(usize, usize),
    Divide(usize, usize),
    Negate(usize),
    Scale(usize, E),
    Shift(usize),
    Exp(usize),
    Log(usize),
    Tanh(usize),
    Sigmoid(usize),
    Softplus(usize),
    Sqrt(usize),
    Square(usize),
    PowI(usize, i32),
    Maximum(usize, E),
    Above,
    SumTo(usize),
    BroadcastTo(usize),
    Reshape(usize),
    Transpose(usize),
    MatMul((usize, Orientation), (usize, Orientation)),
    Concatenate { parts: Arc<[usize]>, axis: usize },
    Slice { source: usize, axis: usize, start: usize },
    Pad { source: usize, axis: usize, start: usize },
    Gather { source: usize, indices: Arc<[usize]> },
    Scatter { source: usize, indices: Arc<[usize]> },
    LogSumExp(usize),
    Detach,
    Inverse(usize),
    LogDet(usize),
    Affine(usize, usize, usize),
    Gelu { source: usize, order: u32 },
    InverseDeviation(usize),
    Normalise { source: usize, inverse: usize },
    NormalisePull { normalised: usize, inverse: usize, slopes: usize },
    BlockScores { left: usize, right: usize, factor: E, blocks: Arc<Blocks> },
    BlockMix { weights: (usize, Orientation), values: usize, factor: E, blocks: Arc<Blocks> },
    BlockSoftmax { source: usize, blocks: Arc<Blocks> },
    BlockSoftmaxPull { probabilities: usize, slopes: usize, blocks: Arc<Blocks> },
    BlockSumRows { source: usize, blocks: Arc<Blocks> },
    BlockSpreadRows { source: usize, blocks: Arc<Blocks> },
    Fused { operation: Arc<dyn FusedOperation<E>>, inputs: Arc<[usize]>, saved: Arc<[Array<E>]> },
    FusedGradient { operation: Arc<dyn FusedOperation<E>>, sources: Arc<[usize]> },
}

/// Declares the kinds once, so that the list of all of them cannot miss one.
macro_rules! operation_kinds {
    ($($(#[$documentation:meta])* $kind:ident,)*) => {
        /// The kinds of nodes on a tape.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum OperationKind {
            $($(#[$documentation])* $kind,)*
        }

        impl OperationKind {
            /// All kinds.
            pub const ALL: &[OperationKind] = &[$(OperationKind::$kind,)*];
        }

        impl<E> Operation<E> {
            pub(super) fn kind(&self) -> OperationKind {
                match self {
                    $(Operation::$kind { .. } => OperationKind::$kind,)*
                }
            }
        }
    };
}

operation_kinds! {
    /// A value put on the tape.
    Leaf,
    /// a + b.
    Add,
    /// a - b.
    Subtract,
    /// a b, element by element.
    Multiply,
    /// a / b, element by element.
    Divide,
    /// -a.
    Negate,
    /// A constant times a.
    Scale,
    /// A constant plus a.
    Shift,
    /// exp(a).
    Exp,
    /// The natural logarithm.
    Log,
    /// tanh(a).
    Tanh,
    /// 1 / (1 + exp(-a)).
    Sigmoid,
    /// log(1 + exp(a)).
    Softplus,
    /// The square root.
    Sqrt,
    /// a^2.
    Square,
    /// An integer power.
    PowI,
    /// The larger of a and a constant.
    Maximum,
    /// One where a is above a constant, zero elsewhere.
    Above,
    /// A sum along dimensions.
    SumTo,
    /// Repetition along dimensions.
    BroadcastTo,
    /// Another shape.
    Reshape,
    /// The transpose of a matrix.
    Transpose,
    /// A matrix product.
    MatMul,
    /// Arrays behind each other.
    Concatenate,
    /// A range along an axis.
    Slice,
    /// Zeros around an array along an axis.
    Pad,
    /// Rows picked by index.
    Gather,
    /// Rows added up by index.
    Scatter,
    /// log(sum(exp(a))) along an axis.
    LogSumExp,
    /// A value seen as a constant.
    Detach,
    /// The inverse of a symmetric positive-definite matrix.
    Inverse,
    /// The log-determinant of a symmetric positive-definite matrix.
    LogDet,
    /// A matrix product with a transposed matrix plus a row.
    Affine,
    /// A derivative of x Phi(x).
    Gelu,
    /// 1 / the deviation of each row.
    InverseDeviation,
    /// Rows minus their mean, divided by their deviation.
    Normalise,
    /// Slopes through the normalisation of rows.
    NormalisePull,
    /// Products of all pairs of tokens inside sequences and heads.
    BlockScores,
    /// Matrix products inside sequences and heads.
    BlockMix,
    /// The softmax of every row of scores.
    BlockSoftmax,
    /// Slopes through the softmax of every row of scores.
    BlockSoftmaxPull,
    /// The sum of every row of scores.
    BlockSumRows,
    /// A number for every row of scores, repeated along it.
    BlockSpreadRows,
    /// A fused operation.
    Fused,
    /// The gradient of a fused operation.
    FusedGradient,
}

impl<E: Element> Operation<E> {
    /// Whether a derivative can flow to one of the nodes for which `wanted` holds.
    pub(super) fn depends_on(&self, wanted: impl Fn(usize) -> bool) -> bool {
        match self {
            // Constants, and functions that are constant wherever they have a derivative.
            Operation::Leaf | Operation::Detach | Operation::Above => false,
            Operation::Add(a, b)
            | Operation::Subtract(a, b)
            | Operation::Multiply(a, b)
            | Operation::Divide(a, b)
            | Operation::MatMul((a, _), (b, _))
            | Operation::BlockScores { left: a, right: b, .. }
            | Operation::BlockMix { weights: (a, _), values: b, .. }
            | Operation::BlockSoftmaxPull { probabilities: a, slopes: b, .. } => wanted(*a) || wanted(*b),
            Operation::Affine(a, b, c) | Operation::NormalisePull { normalised: a, inverse: b, slopes: c } => {
                wanted(*a) || wanted(*b) || wanted(*c)
            }
            Operation::Negate(a)
            | Operation::Scale(a, _)
            | Operation::Shift(a)
            | Operation::Exp(a)
            | Operation::Log(a)
            | Operation::Tanh(a)
            | Operation::Sigmoid(a)
            | Operation::Softplus(a)
            | Operation::Sqrt(a)
            | Operation::Square(a)
            | Operation::PowI(a, _)
            | Operation::Maximum(a, _)
            | Operation::SumTo(a)
            | Operation::BroadcastTo(a)
            | Operation::Reshape(a)
            | Operation::Transpose(a)
            | Operation::Slice { source: a, .. }
            | Operation::Pad { source: a, .. }
            | Operation::Gather { source: a, .. }
            | Operation::Scatter { source: a, .. }
            | Operation::LogSumExp(a)
            | Operation::Gelu { source: a, .. }
            | Operation::InverseDeviation(a)
            // the deviation is a function of the rows, and the rule goes through both at once
            | Operation::Normalise { source: a, .. }
            | Operation::BlockSoftmax { source: a, .. }
            | Operation::BlockSumRows { source: a, .. }
            | Operation::BlockSpreadRows { source: a, .. }
            | Operation::Inverse(a)
            | Operation::LogDet(a) => wanted(*a),
            Operation::Concatenate { parts: list, .. }
            | Operation::Fused { inputs: list, .. }
            | Operation::FusedGradient { sources: list, .. } => list.iter().any(|&id| wanted(id)),
        }
    }
}
