//! What all Gaussian-process methods share: both networks evaluated at the examples of a group of tasks, each task's
//! objective on its own points, and a backward pass for the group.

use super::{Batch, Member, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::gibbs_gp::{GibbsGp, Points, PointsGradient, check_size, check_together};
use crate::priors::{GaussianProcess, GaussianProcessSpec};
use crate::task::Task;

/// The numbers of one task's objective.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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

/// Examples whose activations are kept between a forward and a backward pass. Two networks of 32-32 take about 1 kB an
/// example, so that a group fits into the second-level cache of any recent core.
const GROUP: usize = 120;

/// A Gaussian-process method: one of the objectives PACOH, PACMAML or PACOH's own recipe.
pub struct GpMethod {
    objective: Box<dyn GpObjective>,
    workspace: Workspace,
    /// Positions of members, those of the same task side by side.
    order: Vec<usize>,
    /// Where the examples of each member of `order` start among the evaluated points.
    offsets: Vec<usize>,
    inputs: Vec<f64>,
    results: Vec<TaskObjective>,
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
            order: Vec::new(),
            offsets: Vec::new(),
            inputs: Vec::new(),
            results: Vec::new(),
        }
    }

    /// Fills `results`, one entry a member, group by group; derivatives gather in the prior.
    fn run(&mut self, parameters: &[f64], batch: &Batch<'_>, derivative: Derivative) -> Result<()> {
        let members = batch.members;
        batch.iter().try_for_each(|(member, task)| self.check_sizes(member, task))?;
        self.workspace.prior.load(parameters);
        self.order.clear();
        self.order.extend(0..members.len());
        self.order.sort_by_key(|&position| members[position].task);
        self.results.clear();
        self.results.resize(members.len(), TaskObjective::default());
        let mut first = 0;
        while first < members.len() {
            let end = self.evaluate_group(batch, first);
            if derivative != Derivative::None {
                self.workspace.prior.clear_point_gradients();
            }
            for (&position, &offset) in self.order[first..end].iter().zip(&self.offsets) {
                let member = &members[position];
                let task = &batch.tasks[member.task];
                self.results[position] =
                    self.objective.task(&mut self.workspace, member, task, offset, derivative)?;
            }
            if derivative != Derivative::None {
                self.workspace.prior.backward();
            }
            first = end;
        }
        Ok(())
    }

    /// Before the networks run, which takes memory for every example: a posterior sees S', or all of S.
    fn check_sizes(&self, member: &Member, task: &Task) -> Result<()> {
        let seen = match (self.objective.uses_subset(), member.judged.len()) {
            (true, _) => member.adapt.len(),
            (false, 0) => task.len(),
            (false, judged) => judged,
        };
        check_size(task.name(), seen)?;
        check_together(task.name(), task.len())
    }

    /// Evaluates both networks at the examples of the next tasks, each task once however often it was drawn; returns
    /// where the group ends in `order`.
    fn evaluate_group(&mut self, batch: &Batch<'_>, first: usize) -> usize {
        self.inputs.clear();
        self.offsets.clear();
        let mut examples = 0;
        let mut last_task = None;
        let mut end = first;
        while let Some(&position) = self.order.get(end) {
            let index = batch.members[position].task;
            let task = &batch.tasks[index];
            if last_task == Some(index) {
                self.offsets.push(examples - task.len());
            } else if examples == 0 || examples + task.len() <= GROUP {
                self.offsets.push(examples);
                self.inputs.extend_from_slice(task.inputs());
                examples += task.len();
                last_task = Some(index);
            } else {
                break;
            }
            end += 1;
        }
        self.workspace.prior.forward(&self.inputs);
        end
    }

    /// The objective of each task, without derivatives.
    ///
    /// # Errors
    /// When a covariance matrix is not positive definite.
    pub fn tasks(&mut self, parameters: &[f64], batch: &Batch<'_>) -> Result<Vec<TaskObjective>> {
        self.run(parameters, batch, Derivative::None)?;
        Ok(self.results.clone())
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
        let weight = 1.0 / batch.members.len() as f64;
        self.workspace.prior.clear_gradient();
        self.run(parameters, batch, Derivative::Weighted(weight))?;
        self.workspace.prior.add_gradient(gradient);
        let mut terms = ObjectiveTerms::default();
        for ((_, task), values) in batch.iter().zip(&self.results) {
            terms.objective += weight * values.w;
            terms.risk += weight * values.risk;
            terms.divergence += weight * self.objective.divergence_weight(task) * values.kl;
        }
        Ok(terms)
    }
}
