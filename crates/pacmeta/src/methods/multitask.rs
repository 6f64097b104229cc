//! Multi-task learning: one network for all tasks, q_i = p, objective L^(p, S_i).

use super::{Batch, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::squared_loss::SquaredLoss;
use crate::priors::NetworkSpec;

/// The multi-task floor.
#[derive(Debug, Clone)]
pub struct MultiTask {
    loss: SquaredLoss,
}

impl MultiTask {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec) -> Self {
        Self { loss: SquaredLoss::new(&spec.widths()) }
    }
}

impl Method for MultiTask {
    fn name(&self) -> &'static str {
        "multi-task"
    }

    fn uses_subset(&self) -> bool {
        false
    }

    fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms> {
        let weight = 1.0 / batch.members.len() as f64;
        let mut terms = ObjectiveTerms::default();
        for (_, task) in batch.iter() {
            terms.risk += weight * self.loss.add_gradient(parameters, task.examples(), weight, gradient);
        }
        terms.objective = terms.risk;
        Ok(terms)
    }
}
