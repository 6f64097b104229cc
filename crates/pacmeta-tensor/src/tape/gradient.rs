//! Gradients: the tape read backwards.

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::tape::rules::pull_back;
use crate::tape::variable::Variable;
use crate::tape::{Record, Tape};

/// What becomes of the nodes that a gradient is computed by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intermediates {
    /// They stay on the tape: the gradient can be differentiated again.
    Keep,
    /// Each is dropped as soon as nothing needs it.
    Release,
}

impl<E: Element> Tape<E> {
    /// The gradient of an output with one element with respect to each input, as variables that can be
    /// differentiated again. Inputs may be any variables of the tape. Only what they need is computed; an
    /// input that the output does not depend on has gradient zero.
    pub fn gradient<'t>(
        &'t self,
        output: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
    ) -> Result<Vec<Variable<'t, E>>> {
        self.pullback(output, self.unit_seed(output)?, inputs)
    }

    /// The derivative of sum(seed * output) with respect to each input, for an output and a seed of the same
    /// shape.
    pub fn pullback<'t>(
        &'t self,
        output: Variable<'t, E>,
        seed: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
    ) -> Result<Vec<Variable<'t, E>>> {
        let found = self.backwards(output, seed, inputs, Intermediates::Keep)?;
        let zeros = |input: Variable<'t, E>| self.leaf(Array::zeros(input.shape()));
        Ok(inputs
            .iter()
            .zip(found)
            .map(|(&input, adjoint)| adjoint.map_or_else(|| zeros(input), |id| self.variable(id)))
            .collect())
    }

    /// Like [`gradient`](Self::gradient), as plain arrays. The tape is afterwards as it was before, and on
    /// the way intermediate results are dropped as soon as nothing needs them.
    pub fn gradient_values<'t>(
        &'t self,
        output: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
    ) -> Result<Vec<Array<E>>> {
        let mark = self.len();
        let values = self.unit_seed(output).and_then(|seed| self.arrays(output, seed, inputs));
        self.record.borrow_mut().truncate(mark);
        values
    }

    /// Like [`pullback`](Self::pullback), as plain arrays, under the conditions of
    /// [`gradient_values`](Self::gradient_values).
    pub fn pullback_values<'t>(
        &'t self,
        output: Variable<'t, E>,
        seed: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
    ) -> Result<Vec<Array<E>>> {
        let mark = self.len();
        let values = self.arrays(output, seed, inputs);
        self.record.borrow_mut().truncate(mark);
        values
    }

    /// The Hessian of an output with one element times a vector, which is given in parts that have the shapes
    /// of the inputs: the gradient of (gradient . vector).
    ///
    /// ```
    /// use pacmeta_tensor::{Array, Tape};
    ///
    /// let tape = Tape::new();
    /// let x = tape.leaf(Array::new(&[2], vec![1.0, 2.0])?);
    /// let vector = tape.leaf(Array::new(&[2], vec![1.0, 0.0])?);
    /// let product = (x.slice(0, 0..1)? * x.slice(0, 1..2)?.square())?.sum();
    /// let column = tape.hessian_vector_product(product, &[x], &[vector])?[0];
    /// assert_eq!(column.value().values(), [0.0, 4.0]);
    /// # Ok::<(), pacmeta_tensor::TensorError>(())
    /// ```
    pub fn hessian_vector_product<'t>(
        &'t self,
        output: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
        vector: &[Variable<'t, E>],
    ) -> Result<Vec<Variable<'t, E>>> {
        if inputs.len() != vector.len() {
            let (expected, found) = (inputs.len(), vector.len());
            return Err(TensorError::LengthMismatch { what: "parts of the vector", expected, found });
        }
        let gradients = self.gradient(output, inputs)?;
        let mut directional = self.scalar(E::ZERO);
        for (&gradient, &part) in gradients.iter().zip(vector) {
            let operation = "hessian_vector_product";
            gradient.check_tape(part, operation)?;
            if gradient.shape() != part.shape() {
                return Err(TensorError::ShapeMismatch {
                    operation,
                    left: gradient.shape(),
                    right: part.shape(),
                });
            }
            // The vector is a constant, even if it was computed from the inputs.
            directional = (directional + (gradient * part.detach())?.sum())?;
        }
        self.gradient(directional, inputs)
    }

    fn unit_seed<'t>(&'t self, output: Variable<'t, E>) -> Result<Variable<'t, E>> {
        let shape = output.shape();
        if shape.count() != 1 {
            let expected = "a single element";
            return Err(TensorError::UnexpectedShape { operation: "gradient", shape, expected });
        }
        Ok(self.leaf(Array::full(shape, E::ONE)))
    }

    fn arrays<'t>(
        &'t self,
        output: Variable<'t, E>,
        seed: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
    ) -> Result<Vec<Array<E>>> {
        let found = self.backwards(output, seed, inputs, Intermediates::Release)?;
        let zeros = |input: Variable<'t, E>| Array::zeros(input.shape());
        Ok(inputs
            .iter()
            .zip(found)
            .map(|(&input, adjoint)| adjoint.map_or_else(|| zeros(input), |id| self.variable(id).value()))
            .collect())
    }

    /// The node of each input's adjoint, none where the output does not depend on the input.
    fn backwards<'t>(
        &'t self,
        output: Variable<'t, E>,
        seed: Variable<'t, E>,
        inputs: &[Variable<'t, E>],
        intermediates: Intermediates,
    ) -> Result<Vec<Option<usize>>> {
        let operation = "gradient";
        for &variable in inputs.iter().chain([&output, &seed]) {
            self.variable(0).check_tape(variable, operation)?;
        }
        if output.shape() != seed.shape() {
            return Err(TensorError::ShapeMismatch { operation, left: output.shape(), right: seed.shape() });
        }
        // Nodes before the first input cannot depend on it.
        let first = inputs.iter().map(|input| input.id).min().unwrap_or(output.id);
        if first > output.id {
            return Ok(vec![None; inputs.len()]);
        }
        let count = output.id + 1 - first;
        let mut is_input = vec![false; count];
        for input in inputs.iter().filter(|input| input.id <= output.id) {
            is_input[input.id - first] = true;
        }
        let mut depends = is_input.clone();
        {
            let record = self.record.borrow();
            for position in 0..count {
                let operation = &record.nodes[first + position].operation;
                depends[position] |= operation.depends_on(|id| id >= first && depends[id - first]);
            }
        }
        let needed = |id: usize| id >= first && depends[id - first];

        let mut adjoints: Vec<Option<usize>> = vec![None; count];
        let mut pending = Pending::starting_at(self.len());
        adjoints[count - 1] = Some(seed.id);
        pending.add(seed.id);
        for position in (0..count).rev() {
            let (true, Some(adjoint)) = (depends[position], adjoints[position]) else {
                continue;
            };
            let operation = self.record.borrow().nodes[first + position].operation.clone();
            if !operation.depends_on(needed) {
                continue; // An input whose own sources nobody asked for.
            }
            pull_back(
                self.variable(first + position),
                &operation,
                self.variable(adjoint),
                needed,
                |source, part| {
                    let slot = &mut adjoints[source - first];
                    let sum = match *slot {
                        Some(earlier) => {
                            pending.remove(earlier);
                            (self.variable(earlier) + part)?.id
                        }
                        None => part.id,
                    };
                    *slot = Some(sum);
                    pending.add(sum);
                    Ok(())
                },
            )?;
            if !is_input[position] {
                pending.remove(adjoint);
            }
            if intermediates == Intermediates::Release {
                pending.release_others(&mut self.record.borrow_mut());
            }
        }
        Ok(inputs
            .iter()
            .map(|input| if input.id <= output.id { adjoints[input.id - first] } else { None })
            .collect())
    }
}

/// Counts for each node recorded since a mark how many adjoints it is, so that the others can be dropped.
struct Pending {
    mark: usize,
    uses: Vec<usize>,
    /// The nodes since the mark that hold their values.
    held: Vec<usize>,
    /// Nodes up to here have been added to `held`.
    seen: usize,
}

impl Pending {
    fn starting_at(mark: usize) -> Self {
        Pending { mark, uses: Vec::new(), held: Vec::new(), seen: mark }
    }

    fn add(&mut self, id: usize) {
        if id >= self.mark {
            let position = id - self.mark;
            if position >= self.uses.len() {
                self.uses.resize(position + 1, 0);
            }
            self.uses[position] += 1;
        }
    }

    fn remove(&mut self, id: usize) {
        if id >= self.mark {
            self.uses[id - self.mark] -= 1;
        }
    }

    fn release_others<E: Element>(&mut self, record: &mut Record<E>) {
        self.held.extend(self.seen..record.nodes.len());
        self.seen = record.nodes.len();
        let (mark, uses) = (self.mark, &self.uses);
        self.held.retain(|&id| {
            let used = uses.get(id - mark).is_some_and(|&count| count > 0);
            if !used {
                let node = &mut record.nodes[id];
                node.value = record.empty.clone();
                record.bytes -= std::mem::take(&mut node.bytes);
            }
            used
        });
    }
}
