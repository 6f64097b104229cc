//! Tasks: the sets of examples S_i = {(x_j, y_j)} that meta-learning learns from.

use crate::error::{Error, Result};

/// A task: m examples with inputs of a fixed dimension and one real target each, and optionally the subset S' that a
/// base learner may see.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    name: String,
    dimension: usize,
    inputs: Vec<f64>,
    targets: Vec<f64>,
    adapt: Option<Vec<usize>>,
}

impl Task {
    /// A task from inputs in row-major order (one row an example) and targets.
    ///
    /// # Errors
    /// When the sizes do not match, the dimension is 0, there is no example or a number is not finite.
    pub fn new(
        name: impl Into<String>,
        dimension: usize,
        inputs: Vec<f64>,
        targets: Vec<f64>,
    ) -> Result<Self> {
        let name = name.into();
        let refuse = |message: String| Err(Error::input(format!("task `{name}`"), message));
        if dimension == 0 {
            return refuse("inputs need at least one feature".into());
        }
        if targets.is_empty() {
            return refuse("a task needs at least one example".into());
        }
        if inputs.len() != dimension * targets.len() {
            return refuse(format!(
                "{} examples of {dimension} features need {} numbers in x, found {}",
                targets.len(),
                dimension * targets.len(),
                inputs.len()
            ));
        }
        if let Some(position) = inputs.iter().position(|value| !value.is_finite()) {
            return refuse(format!(
                "x of example {} is not a finite number ({})",
                position / dimension,
                inputs[position]
            ));
        }
        if let Some(position) = targets.iter().position(|value| !value.is_finite()) {
            return refuse(format!("y of example {position} is not a finite number ({})", targets[position]));
        }
        Ok(Self { name, dimension, inputs, targets, adapt: None })
    }

    /// The same task with the subset S' (indices of examples, each at most once, in the given order).
    ///
    /// # Errors
    /// When the subset is empty, or an index is out of range or occurs twice.
    pub fn with_adapt(mut self, adapt: Vec<usize>) -> Result<Self> {
        let refuse =
            |message: String| Err(Error::input(format!("task `{}`, key `adapt`", self.name), message));
        if adapt.is_empty() {
            return refuse("the subset needs at least one example".into());
        }
        let mut seen = vec![false; self.len()];
        for &index in &adapt {
            match seen.get_mut(index) {
                None => {
                    return refuse(format!(
                        "index {index} is out of range: the task has {} examples, counted from 0",
                        self.targets.len()
                    ));
                }
                Some(true) => return refuse(format!("index {index} occurs twice")),
                Some(place) => *place = true,
            }
        }
        self.adapt = Some(adapt);
        Ok(self)
    }

    /// The task's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of examples, m.
    #[allow(clippy::len_without_is_empty)] // a task is never empty
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// The number of features of an input.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// All inputs, row-major.
    pub fn inputs(&self) -> &[f64] {
        &self.inputs
    }

    /// The input of example `index`.
    pub fn input(&self, index: usize) -> &[f64] {
        &self.inputs[index * self.dimension..(index + 1) * self.dimension]
    }

    /// All targets.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// The subset S' stated with the task, if any.
    pub fn adapt(&self) -> Option<&[usize]> {
        self.adapt.as_deref()
    }

    /// The examples at `indices` as a task of the same name.
    pub fn select(&self, indices: &[usize]) -> Self {
        Self {
            name: self.name.clone(),
            dimension: self.dimension,
            inputs: indices.iter().flat_map(|&index| self.input(index)).copied().collect(),
            targets: indices.iter().map(|&index| self.targets[index]).collect(),
            adapt: None,
        }
    }

    /// The indices that are not in `indices`, ascending.
    pub fn complement(&self, indices: &[usize]) -> Vec<usize> {
        let mut inside = vec![false; self.len()];
        indices.iter().for_each(|&index| inside[index] = true);
        (0..self.len()).filter(|&index| !inside[index]).collect()
    }

    /// The support (the examples of `adapt`) and the query (all others), for scoring.
    ///
    /// # Errors
    /// When the task states no `adapt`, or leaves nothing to score.
    pub fn support_and_query(&self) -> Result<(Self, Self)> {
        let place = format!("task `{}`", self.name);
        let Some(adapt) = &self.adapt else {
            return Err(Error::input(place, "scoring needs `adapt`: the indices of the support examples"));
        };
        let rest = self.complement(adapt);
        if rest.is_empty() {
            return Err(Error::input(place, "every example is in `adapt`; leave at least one to be scored"));
        }
        Ok((self.select(adapt), self.select(&rest)))
    }

    /// Applies a map to every input and target in place; used by standardisation.
    pub(crate) fn map(&self, input: impl Fn(usize, f64) -> f64, target: impl Fn(f64) -> f64) -> Self {
        let mut mapped = self.clone();
        for (position, value) in mapped.inputs.iter_mut().enumerate() {
            *value = input(position % self.dimension, *value);
        }
        mapped.targets.iter_mut().for_each(|value| *value = target(*value));
        mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task::new("a", 2, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], vec![10.0, 11.0, 12.0]).unwrap()
    }

    #[test]
    fn rows_are_examples() {
        assert_eq!(task().input(1), [2.0, 3.0]);
        let picked = task().select(&[2, 0]);
        assert_eq!(picked.inputs(), [4.0, 5.0, 0.0, 1.0]);
        assert_eq!(picked.targets(), [12.0, 10.0]);
        assert_eq!(task().complement(&[1]), [0, 2]);
    }

    #[test]
    fn support_and_query_split_by_adapt() {
        let (support, query) = task().with_adapt(vec![2]).unwrap().support_and_query().unwrap();
        assert_eq!((support.targets(), query.targets()), (&[12.0][..], &[10.0, 11.0][..]));
    }

    #[test]
    fn bad_tasks_are_refused_with_the_place() {
        let message = |result: Result<Task>| result.unwrap_err().to_string();
        assert!(message(Task::new("a", 1, vec![f64::NAN], vec![0.0])).contains("x of example 0"));
        assert!(message(Task::new("a", 2, vec![1.0], vec![0.0])).contains("need 2 numbers"));
        assert!(message(Task::new("a", 1, vec![], vec![])).contains("at least one example"));
        assert!(message(task().with_adapt(vec![3])).contains("index 3 is out of range"));
        assert!(message(task().with_adapt(vec![1, 1])).contains("index 1 occurs twice"));
        assert!(message(task().with_adapt(vec![])).contains("at least one example"));
        assert!(task().with_adapt(vec![0, 1, 2]).unwrap().support_and_query().is_err());
    }
}
