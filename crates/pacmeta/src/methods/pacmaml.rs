//! PACMAML: the Gibbs posterior of the subset S', judged on S,
//!
//! ```text
//! W_2 = -log Z_alpha(S')/beta + L^(Q_alpha, S) - (alpha/beta) L^(Q_alpha, S') = L^(Q_alpha, S) + KL(Q_alpha||P)/beta
//! ```

use super::Member;
use super::gp_batch::{Derivative, GpMethod, GpObjective, TaskObjective, Workspace};
use crate::error::{Error, Result};
use crate::learners::gibbs_gp::{Context, Covariance, TransferWeights};
use crate::priors::GaussianProcessSpec;
use crate::task::Task;

/// The objective W_2 at temperatures alpha (base learner) and beta (bound).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacmaml {
    /// The base learner's temperature alpha on S'.
    pub alpha: f64,
    /// The bound's temperature beta.
    pub beta: f64,
}

impl Pacmaml {
    /// The method on a Gaussian-process prior.
    pub fn on(self, spec: &GaussianProcessSpec) -> GpMethod {
        GpMethod::with_objective(spec, Box::new(self))
    }
}

impl GpObjective for Pacmaml {
    fn name(&self) -> &'static str {
        "pacmaml"
    }

    fn uses_subset(&self) -> bool {
        true
    }

    fn divergence_weight(&self, _: &Task) -> f64 {
        1.0 / self.beta
    }

    fn task(
        &self,
        workspace: &mut Workspace,
        member: &Member,
        task: &Task,
        offset: usize,
        derivative: Derivative,
    ) -> Result<TaskObjective> {
        if member.adapt.is_empty() {
            return Err(Error::input(
                format!("task `{}`", task.name()),
                "PACMAML needs `adapt`: the indices of the examples in S'",
            ));
        }
        workspace.gather_judged(member, task, offset);
        let adapt = member.adapt.iter().map(|&index| (offset + index, task.targets()[index]));
        workspace.prior.gather(adapt, &mut workspace.adapt);
        let covariance = Covariance {
            scale: workspace.prior.scale(),
            noise_variance: workspace.adapt.count() as f64 / (2.0 * self.alpha),
        };
        let context = Context { task: task.name(), temperature: Some(self.alpha) };
        let values = workspace.gp.transfer(&workspace.adapt, &workspace.judged, covariance, context)?;
        let w2 = TransferWeights::of_w2(self.alpha, self.beta);
        if let Derivative::Weighted(weight) = derivative {
            let weights = TransferWeights {
                log_partition: weight * w2.log_partition,
                risk: weight * w2.risk,
                risk_adapt: weight * w2.risk_adapt,
            };
            let scale = workspace.gp.transfer_gradient(
                (&workspace.adapt, &mut workspace.adapt_gradient),
                (&workspace.judged, &mut workspace.judged_gradient),
                covariance,
                weights,
            );
            workspace.scatter_judged(member, task, offset);
            let indices = member.adapt.iter().map(|index| offset + index);
            workspace.prior.scatter(indices, &workspace.adapt_gradient);
            workspace.prior.add_covariance_gradient(scale, 0.0);
        }
        Ok(TaskObjective {
            log_partition: values.log_partition,
            risk: values.risk,
            risk_adapt: Some(values.risk_adapt),
            kl: values.kl,
            w: w2.sum(&values),
        })
    }
}
