//! MAML: q = K plain steps on S' from p; the exact derivative of L^(q_K(p), S), second order through every step.

use super::{Batch, Member, Method, ObjectiveTerms};
use crate::error::{Error, Result};
use crate::learners::InnerSteps;
use crate::learners::squared_loss::SquaredLoss;
use crate::priors::NetworkSpec;
use crate::task::Task;

/// MAML with its exact meta-gradient.
#[derive(Debug, Clone)]
pub struct Maml {
    inner: InnerSteps,
    loss: SquaredLoss,
    path: Vec<f64>,
    adjoint: Vec<f64>,
    scratch: Vec<f64>,
}

impl Maml {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec, inner: InnerSteps) -> Self {
        Self {
            inner,
            loss: SquaredLoss::new(&spec.widths()),
            path: Vec::new(),
            adjoint: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

impl Method for Maml {
    fn name(&self) -> &'static str {
        "maml"
    }

    fn uses_subset(&self) -> bool {
        true
    }

    fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms> {
        let weight = 1.0 / batch.members.len() as f64;
        let mut terms = ObjectiveTerms::default();
        for (member, task) in batch.iter() {
            let (adapt, judged) = split(member, task)?;
            let InnerSteps { steps, rate } = self.inner;
            self.loss.descend(parameters, adapt.examples(), steps, rate, &mut self.path);
            let adapted = &self.path[steps * parameters.len()..];
            self.adjoint.clear();
            self.adjoint.resize(parameters.len(), 0.0);
            terms.risk +=
                weight * self.loss.add_gradient(adapted, judged.examples(), weight, &mut self.adjoint);
            self.loss.pull_back(&self.path, adapt.examples(), rate, &mut self.adjoint, &mut self.scratch);
            gradient.iter_mut().zip(&self.adjoint).for_each(|(sum, value)| *sum += value);
        }
        terms.objective = terms.risk;
        Ok(terms)
    }
}

/// S' and S of a member.
pub(super) fn split(member: &Member, task: &Task) -> Result<(Task, Task)> {
    if member.adapt.is_empty() {
        return Err(Error::input(
            format!("task `{}`", task.name()),
            "the method needs `adapt`: the indices of the examples in S'",
        ));
    }
    let judged = if member.judged.is_empty() { task.clone() } else { task.select(&member.judged) };
    Ok((task.select(&member.adapt), judged))
}
