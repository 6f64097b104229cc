//! Fused operations: a kernel with a hand-written first derivative, as one node of the tape.
//!
//! A convolution block or an encoder layer written as one kernel is several times faster than the same in
//! single operations, and holds less memory. To the rest of a model it is a node like any other, except that
//! its gradient cannot be differentiated again: that is an error which names the operation.
//!
//! ```
//! use std::sync::Arc;
//! use pacmeta_tensor::tape::fused::{Backward, Forward, FusedOperation};
//! use pacmeta_tensor::{Array, Result, Tape, TensorError};
//!
//! /// |x|^2 / 2.
//! struct HalfSquare;
//!
//! impl FusedOperation<f64> for HalfSquare {
//!     fn name(&self) -> &str {
//!         "half_square"
//!     }
//!     fn forward(&self, inputs: &[Array<f64>]) -> Result<Forward<f64>> {
//!         let sum: f64 = inputs[0].values().iter().map(|x| x * x).sum();
//!         Ok(Forward { output: Array::scalar(0.5 * sum), saved: vec![] })
//!     }
//!     fn backward(&self, call: Backward<'_, f64>) -> Result<Vec<Option<Array<f64>>>> {
//!         let factor = call.gradient.item()?;
//!         let mut gradient = call.inputs[0].clone();
//!         gradient.values_mut().iter_mut().for_each(|x| *x *= factor);
//!         Ok(vec![Some(gradient)])
//!     }
//! }
//!
//! let tape = Tape::new();
//! let x = tape.leaf(Array::new(&[2], vec![3.0, 4.0])?);
//! let output = tape.fused(Arc::new(HalfSquare), &[x])?;
//! let gradient = tape.gradient(output, &[x])?[0];
//! assert_eq!(gradient.value().values(), [3.0, 4.0]);
//! let again = tape.gradient(gradient.sum(), &[x]);
//! assert!(matches!(again, Err(TensorError::NotDifferentiableTwice { .. })));
//! # Ok::<(), TensorError>(())
//! ```

use std::sync::Arc;

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::tape::Tape;
use crate::tape::operation::Operation;
use crate::tape::variable::Variable;

/// What the forward pass of a fused operation leaves.
pub struct Forward<E> {
    /// The result.
    pub output: Array<E>,
    /// What the backward pass will want besides inputs and output. The tape holds and counts it.
    pub saved: Vec<Array<E>>,
}

/// What the backward pass of a fused operation gets.
pub struct Backward<'a, E> {
    /// The inputs of the forward pass.
    pub inputs: &'a [Array<E>],
    /// The output of the forward pass.
    pub output: &'a Array<E>,
    /// What the forward pass saved.
    pub saved: &'a [Array<E>],
    /// The derivative of the final result with respect to the output, in the shape of the output.
    pub gradient: &'a Array<E>,
    /// For each input, whether its gradient is wanted.
    pub needed: &'a [bool],
}

/// A kernel with a first derivative. See the [module documentation](self).
///
/// One operation may serve many nodes and tapes. A workspace that it keeps between calls sits behind a lock
/// of its own; what belongs to a single call goes into [`Forward::saved`].
pub trait FusedOperation<E: Element>: Send + Sync {
    /// The name for errors.
    fn name(&self) -> &str;

    /// Computes the output; inputs that do not fit are an error ([`TensorError::Fused`] or one of the
    /// others).
    fn forward(&self, inputs: &[Array<E>]) -> Result<Forward<E>>;

    /// The derivative of the final result with respect to each input, in the input's shape; `None` stands for
    /// zero and is right where the gradient is not needed.
    fn backward(&self, call: Backward<'_, E>) -> Result<Vec<Option<Array<E>>>>;

    /// Bytes of the workspace held between calls.
    fn workspace_bytes(&self) -> usize {
        0
    }
}

impl<E: Element> Tape<E> {
    /// Runs a fused operation and records it as one node.
    pub fn fused<'t>(
        &'t self,
        operation: Arc<dyn FusedOperation<E>>,
        inputs: &[Variable<'t, E>],
    ) -> Result<Variable<'t, E>> {
        for &input in inputs {
            self.variable(0).check_tape(input, "fused")?;
        }
        let arrays: Vec<Array<E>> = inputs.iter().map(|input| input.value()).collect();
        let Forward { output, saved } = operation.forward(&arrays)?;
        {
            let mut record = self.record.borrow_mut();
            if !record.fused.iter().any(|known| Arc::ptr_eq(known, &operation)) {
                record.fused.push(Arc::clone(&operation));
            }
        }
        let bytes = output.bytes() + saved.iter().map(Array::bytes).sum::<usize>();
        let inputs: Arc<[usize]> = inputs.iter().map(|input| input.id).collect();
        Ok(self.push_counted(output, Operation::Fused { operation, inputs, saved: saved.into() }, bytes))
    }

    /// Runs the backward pass of a fused node and checks what it returns.
    pub(super) fn fused_gradients<'t>(
        &'t self,
        operation: &Arc<dyn FusedOperation<E>>,
        inputs: &[usize],
        saved: &[Array<E>],
        output: Variable<'t, E>,
        adjoint: Variable<'t, E>,
        needed: &[bool],
    ) -> Result<Vec<Option<Array<E>>>> {
        let arrays: Vec<Array<E>> = inputs.iter().map(|&input| self.variable(input).value()).collect();
        let call =
            Backward { inputs: &arrays, output: &output.value(), saved, gradient: &adjoint.value(), needed };
        let mut gradients = operation.backward(call)?;
        self.record.borrow_mut().note_peak();
        let refuse =
            |reason: String| Err(TensorError::Fused { operation: operation.name().to_owned(), reason });
        if gradients.len() != arrays.len() {
            return refuse(format!("{} gradients for {} inputs", gradients.len(), arrays.len()));
        }
        for (position, array) in arrays.iter().enumerate() {
            if !needed[position] {
                gradients[position] = None;
            }
            if let Some(gradient) = &gradients[position]
                && gradient.shape() != array.shape()
            {
                return refuse(format!(
                    "gradient {position} has shape {:?}, its input {:?}",
                    gradient.shape(),
                    array.shape()
                ));
            }
        }
        Ok(gradients)
    }
}
