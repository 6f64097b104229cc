//! Between [`Parameters`] and a tape: tensors become variables by name, gradients go back into one flat
//! buffer.
//!
//! ```
//! use std::sync::Arc;
//! use pacmeta_tensor::{ParameterLayout, Parameters, Tape};
//!
//! let layout = ParameterLayout::builder().tensor("scale", &[]).tensor("offset", &[2]).build()?;
//! let parameters = Parameters::from_values(Arc::new(layout), vec![2.0, 5.0, 7.0])?;
//! let tape = Tape::new();
//! let variables = tape.parameters(&parameters);
//! let loss = (variables.get("scale")? * variables.get("offset")?)?.sum();
//! let gradient = tape.parameter_gradient(loss, &variables)?;
//! assert_eq!(gradient.values(), [12.0, 2.0, 2.0]);
//! # Ok::<(), pacmeta_tensor::TensorError>(())
//! ```

use std::sync::Arc;

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::parameters::{ParameterLayout, Parameters};
use crate::tape::Tape;
use crate::tape::variable::Variable;

/// One variable for each tensor of a layout.
#[derive(Clone, Debug)]
pub struct ParameterVariables<'t, E: Element> {
    layout: Arc<ParameterLayout>,
    variables: Vec<Variable<'t, E>>,
}

impl<'t, E: Element> ParameterVariables<'t, E> {
    /// The names and shapes.
    pub fn layout(&self) -> &Arc<ParameterLayout> {
        &self.layout
    }

    /// The variable of this name.
    pub fn get(&self, name: &str) -> Result<Variable<'t, E>> {
        let position = self.layout.position(name);
        position
            .map(|position| self.variables[position])
            .ok_or_else(|| TensorError::UnknownName { name: name.to_owned() })
    }

    /// The variables in layout order.
    pub fn variables(&self) -> &[Variable<'t, E>] {
        &self.variables
    }

    /// Other variables under the same names: the parameters after an inner step. Their shapes must be those
    /// of the layout.
    pub fn with_variables(&self, variables: Vec<Variable<'t, E>>) -> Result<Self> {
        if variables.len() != self.variables.len() {
            let (expected, found) = (self.variables.len(), variables.len());
            return Err(TensorError::LengthMismatch { what: "parameter variables", expected, found });
        }
        for (entry, variable) in self.layout.entries().iter().zip(&variables) {
            if entry.shape != variable.shape() {
                let (left, right) = (entry.shape, variable.shape());
                return Err(TensorError::ShapeMismatch { operation: "with_variables", left, right });
            }
        }
        Ok(ParameterVariables { layout: Arc::clone(&self.layout), variables })
    }

    /// The current values in layout order.
    pub fn to_parameters(&self) -> Parameters<E> {
        let mut parameters = Parameters::zeros(Arc::clone(&self.layout));
        for (entry, variable) in self.layout.entries().iter().zip(&self.variables) {
            parameters.values_mut()[entry.range()].copy_from_slice(variable.value().values());
        }
        parameters
    }
}

impl<E: Element> Tape<E> {
    /// Puts each tensor on the tape as a leaf.
    pub fn parameters(&self, parameters: &Parameters<E>) -> ParameterVariables<'_, E> {
        let leaf =
            |(entry, values): (&crate::Entry, &[E])| self.leaf(Array::of(entry.shape, values.to_vec()));
        ParameterVariables {
            layout: Arc::clone(parameters.layout()),
            variables: parameters.iter().map(leaf).collect(),
        }
    }

    /// The gradient of an output with one element with respect to all parameters. Nothing of it stays on the
    /// tape.
    pub fn parameter_gradient<'t>(
        &'t self,
        output: Variable<'t, E>,
        variables: &ParameterVariables<'t, E>,
    ) -> Result<Parameters<E>> {
        let mut gradient = Parameters::zeros(Arc::clone(variables.layout()));
        self.parameter_gradient_into(output, variables, gradient.values_mut())?;
        Ok(gradient)
    }

    /// Like [`parameter_gradient`](Self::parameter_gradient), written over a buffer in layout order.
    pub fn parameter_gradient_into<'t>(
        &'t self,
        output: Variable<'t, E>,
        variables: &ParameterVariables<'t, E>,
        buffer: &mut [E],
    ) -> Result<()> {
        if buffer.len() != variables.layout.len() {
            let (expected, found) = (variables.layout.len(), buffer.len());
            return Err(TensorError::LengthMismatch { what: "gradient buffer", expected, found });
        }
        let gradients = self.gradient_values(output, &variables.variables)?;
        for (entry, gradient) in variables.layout.entries().iter().zip(gradients) {
            buffer[entry.range()].copy_from_slice(gradient.values());
        }
        Ok(())
    }
}
