//! What MAML and first-order MAML share: q = K plain steps on S' from p, judged by L^(q, S).

use super::{Batch, ObjectiveTerms};
use crate::error::{Error, Result};
use crate::learners::InnerSteps;
use crate::learners::squared_loss::{Examples, Order, SquaredLoss};
use crate::priors::NetworkSpec;
use crate::task::Task;

/// The objective of both with its gradient.
#[derive(Debug, Clone)]
pub(super) struct AfterSteps {
    inner: InnerSteps,
    order: Order,
    loss: SquaredLoss,
    adapt: Selection,
    judged: Selection,
}

impl AfterSteps {
    pub(super) fn new(spec: &NetworkSpec, inner: InnerSteps, order: Order) -> Self {
        Self {
            inner,
            order,
            loss: SquaredLoss::new(&spec.widths()),
            adapt: Selection::default(),
            judged: Selection::default(),
        }
    }

    pub(super) fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms> {
        let weight = 1.0 / batch.members.len() as f64;
        let mut terms = ObjectiveTerms::default();
        for (member, task) in batch.iter() {
            if member.adapt.is_empty() {
                return Err(Error::input(
                    format!("task `{}`", task.name()),
                    "the method needs `adapt`: the indices of the examples in S'",
                ));
            }
            let adapt = self.adapt.take(task, &member.adapt);
            let judged = match &member.judged[..] {
                [] => task.examples(),
                judged => self.judged.take(task, judged),
            };
            terms.risk += weight
                * self.loss.add_gradient_after_steps(
                    parameters,
                    (adapt, judged),
                    self.inner,
                    self.order,
                    weight,
                    gradient,
                );
        }
        terms.objective = terms.risk;
        Ok(terms)
    }
}

/// Buffers for some examples of a task.
#[derive(Debug, Clone, Default)]
struct Selection {
    inputs: Vec<f64>,
    targets: Vec<f64>,
}

impl Selection {
    fn take(&mut self, task: &Task, indices: &[usize]) -> Examples<'_> {
        self.inputs.clear();
        self.targets.clear();
        for &index in indices {
            self.inputs.extend_from_slice(task.input(index));
            self.targets.push(task.targets()[index]);
        }
        Examples { inputs: &self.inputs, targets: &self.targets }
    }
}
