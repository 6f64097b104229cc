//! The tape: computations are recorded as they run, and differentiated afterwards, to any order.
//!
//! For y = f(x) with an adjoint g (the derivative of the final result with respect to y), each operation
//! knows how to get the adjoint of x: g times the Jacobian of f. These rules are themselves written in tape
//! operations, so a gradient is a recorded computation like any other and can be differentiated again. That
//! is what exact meta-gradients need: the derivative of a loss after inner steps that contain gradients.
//!
//! - [`variable`]: the handles and the operations on them;
//! - [`gradient`]: gradients, pullbacks, Hessian-vector products;
//! - [`fused`]: hand-written kernels with first derivatives only, as single nodes;
//! - [`bridge`]: from [`Parameters`](crate::Parameters) to variables and back.
//!
//! A tape runs on one thread at a time. Its variables borrow it, so that it can only be cleared when none are
//! left.

mod arrange;
mod attention;
pub mod bridge;
pub mod fused;
pub mod gradient;
mod matrices;
mod operation;
mod rules;
pub mod variable;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use crate::array::Array;
use crate::element::Element;
use crate::shape::Shape;
use fused::FusedOperation;
use operation::Operation;
pub use operation::OperationKind;
use variable::Variable;

/// A record of operations and their results. See the [module documentation](self).
///
/// ```
/// use pacmeta_tensor::{Array, Tape};
///
/// let tape = Tape::new();
/// let x = tape.leaf(Array::new(&[3], vec![1.0, 2.0, 3.0])?);
/// let cubes = x.powi(3).sum();
/// let first = tape.gradient(cubes, &[x])?[0];
/// assert_eq!(first.value().values(), [3.0, 12.0, 27.0]);
/// let second = tape.gradient(first.sum(), &[x])?[0];
/// assert_eq!(second.value().values(), [6.0, 12.0, 18.0]);
/// # Ok::<(), pacmeta_tensor::TensorError>(())
/// ```
pub struct Tape<E> {
    record: RefCell<Record<E>>,
}

/// One operation and its result.
struct Node<E> {
    value: Array<E>,
    operation: Operation<E>,
    /// What the tape's byte count has for this node; zero if the storage belongs to an earlier node.
    bytes: usize,
}

struct Record<E> {
    nodes: Vec<Node<E>>,
    /// The distinct fused operations, whose workspaces are counted.
    fused: Vec<Arc<dyn FusedOperation<E>>>,
    bytes: usize,
    peak_bytes: usize,
    /// Stands in for values that are no longer needed.
    empty: Array<E>,
}

impl<E: Element> Record<E> {
    fn bytes(&self) -> usize {
        self.bytes + self.fused.iter().map(|operation| operation.workspace_bytes()).sum::<usize>()
    }

    fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes.max(self.bytes());
    }

    fn truncate(&mut self, length: usize) {
        for node in self.nodes.drain(length..) {
            self.bytes -= node.bytes;
        }
    }
}

impl<E: Element> Tape<E> {
    /// An empty tape.
    pub fn new() -> Self {
        let empty = Array::of(Shape::EMPTY, Vec::new());
        let record = Record { nodes: Vec::new(), fused: Vec::new(), bytes: 0, peak_bytes: 0, empty };
        Tape { record: RefCell::new(record) }
    }

    /// Puts an array on the tape: a parameter, an input or a constant.
    pub fn leaf(&self, array: Array<E>) -> Variable<'_, E> {
        self.push(array, Operation::Leaf)
    }

    /// Puts a single number on the tape.
    pub fn scalar(&self, value: E) -> Variable<'_, E> {
        self.leaf(Array::scalar(value))
    }

    /// Forgets everything recorded; keeps the room for it and the peak.
    pub fn clear(&mut self) {
        let record = self.record.get_mut();
        record.truncate(0);
        record.fused.clear();
    }

    /// Number of nodes recorded.
    pub fn len(&self) -> usize {
        self.record.borrow().nodes.len()
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of array values that the tape holds now, leaves and the workspaces of fused operations included.
    /// Storage shared between nodes counts once, where it was made.
    pub fn bytes(&self) -> usize {
        self.record.borrow().bytes()
    }

    /// The largest [`bytes`](Self::bytes) since the tape was made or [`reset_peak`](Self::reset_peak) was
    /// called.
    pub fn peak_bytes(&self) -> usize {
        self.record.borrow().peak_bytes
    }

    /// Starts a new phase of memory accounting.
    pub fn reset_peak(&self) {
        let mut record = self.record.borrow_mut();
        record.peak_bytes = record.bytes();
    }

    /// The kind of each recorded node, in order.
    pub fn operations(&self) -> Vec<OperationKind> {
        self.record.borrow().nodes.iter().map(|node| node.operation.kind()).collect()
    }

    /// Records a node with a value of its own.
    fn push(&self, value: Array<E>, operation: Operation<E>) -> Variable<'_, E> {
        let bytes = value.bytes();
        self.push_counted(value, operation, bytes)
    }

    /// Records a node that counts for the given number of bytes.
    fn push_counted(&self, value: Array<E>, operation: Operation<E>, bytes: usize) -> Variable<'_, E> {
        let mut record = self.record.borrow_mut();
        let id = record.nodes.len();
        record.nodes.push(Node { value, operation, bytes });
        record.bytes += bytes;
        record.note_peak();
        Variable { tape: self, id }
    }

    fn variable(&self, id: usize) -> Variable<'_, E> {
        Variable { tape: self, id }
    }
}

impl<E: Element> Default for Tape<E> {
    fn default() -> Self {
        Tape::new()
    }
}

impl<E: Element> fmt::Debug for Tape<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.record.borrow();
        formatter
            .debug_struct("Tape")
            .field("nodes", &record.nodes.len())
            .field("bytes", &record.bytes())
            .field("peak_bytes", &record.peak_bytes)
            .finish()
    }
}
