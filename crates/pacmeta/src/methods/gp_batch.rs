//! What all Gaussian-process methods share: both networks evaluated once at all points of a batch, each task's objective
//! on its own points, and one backward pass.

use super::{Batch, Member, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::gibbs_gp::{GibbsGp, Points, PointsGradient};
use crate::priors::{GaussianProcess, GaussianProcessSpec};
use crate::task::Task;

/// The numbers of one task's objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskObjective {
    /// log Z_beta(S) or log Z_alpha(S').
    pub log_partition: f64,
    /// L^(Q, S).
    pub risk: f64,
    /// L^(Q, S'), where Q saw S' only.
    pub risk_adapt: Option<f64>,
    /// KL(Q || P).
    pub kl: f64,
    /// W_1 or W_2.
    pub w: f64,
}

/// Whether derivatives are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Derivative {
    /// The values only.
    None,
    /// The gradient of this weight times W.
    Weighted(f64),
}

/// The buffers that a task's objective works with.
#[derive(Debug, Clone)]
pub(super) struct Workspace {
    pub(super) prior: GaussianProcess,
    pub(super) gp: GibbsGp,
    pub(super) judged: Points,
    pub(super) adapt: Points,
    pub(super) judged_gradient: PointsGradient,
    pub(super) adapt_gradient: PointsGradient,
}

impl Workspace {
    /// Gathers S (all examples, or those that the member names) into `judged`; the task's points start at `offset`.
    pub(super) fn gather_judged(&mut self, member: &Member, task: &Task, offset: usize) {
        let targets = task.targets();
        if member.judged.is_empty() {
            let all = targets.iter().enumerate().map(|(index, y)| (offset + index, *y));
            self.prior.gather(all, &mut self.judged);
        } else {
            let named = member.judged.iter().map(|&index| (offset + index, targets[index]));
            self.prior.gather(named, &mut self.judged);
        }
    }

    /// Hands the gradient of `judged` back to the prior.
    pub(super) fn scatter_judged(&mut self, member: &Member, task: &Task, offset: usize) {
        if member.judged.is_empty() {
            self.prior.scatter(offset..offset + task.len(), &self.judged_gradient);
        } else {
            self.prior.scatter(member.judged.iter().map(|index| offset + index), &self.judged_gradient);
        }
    }
}

/// A per-task objective on a Gaussian-process prior.
pub(super) trait GpObjective: Send {
    fn name(&self) -> &'static str;

    fn uses_subset(&self) -> bool;

    /// KL's weight in W.
    fn divergence_weight(&self, task: &Task) -> f64;

    /// The objective of one task whose points start at `offset`; derivatives go back through `workspace.prior`.
    fn task(
        &self,
        workspace: &mut Workspace,
        member: &Member,
        task: &Task,
        offset: usize,
        derivative: Derivative,
    ) -> Result<TaskObjective>;
}

/// A Gaussian-process method: one of the objectives PACOH, PACMAML or PACOH's own recipe.
pub struct GpMethod {
    objective: Box<dyn GpObjective>,
    workspace: Workspace,
    inputs: Vec<f64>,
}

impl GpMethod {
    pub(super) fn with_objective(spec: &GaussianProcessSpec, objective: Box<dyn GpObjective>) -> Self {
        Self {
            objective,
            workspace: Workspace {
                prior: GaussianProcess::new(spec),
                gp: GibbsGp::default(),
                judged: Points::default(),
                adapt: Points::default(),
                judged_gradient: PointsGradient::default(),
                adapt_gradient: PointsGradient::default(),
            },
            inputs: Vec::new(),
        }
    }

    fn forward(&mut self, parameters: &[f64], batch: &Batch<'_>) {
        self.inputs.clear();
        for (_, task) in batch.iter() {
            self.inputs.extend_from_slice(task.inputs());
        }
        self.workspace.prior.load(parameters);
        self.workspace.prior.forward(&self.inputs);
    }

    /// The objective of each task, without derivatives.
    ///
    /// # Errors
    /// When a covariance matrix is not positive definite.
    pub fn tasks(&mut self, parameters: &[f64], batch: &Batch<'_>) -> Result<Vec<TaskObjective>> {
        self.forward(parameters, batch);
        let mut offset = 0;
        batch
            .iter()
            .map(|(member, task)| {
                let result = self.objective.task(&mut self.workspace, member, task, offset, Derivative::None);
                offset += task.len();
                result
            })
            .collect()
    }
}

impl Method for GpMethod {
    fn name(&self) -> &'static str {
        self.objective.name()
    }

    fn uses_subset(&self) -> bool {
        self.objective.uses_subset()
    }

    fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms> {
        self.forward(parameters, batch);
        self.workspace.prior.clear_gradients();
        let weight = 1.0 / batch.members.len() as f64;
        let mut terms = ObjectiveTerms::default();
        let mut offset = 0;
        for (member, task) in batch.iter() {
            let derivative = Derivative::Weighted(weight);
            let values = self.objective.task(&mut self.workspace, member, task, offset, derivative)?;
            terms.objective += weight * values.w;
            terms.risk += weight * values.risk;
            terms.divergence += weight * self.objective.divergence_weight(task) * values.kl;
            offset += task.len();
        }
        self.workspace.prior.backward(gradient);
        Ok(terms)
    }
}
