//! PACOH: the Gibbs posterior of all examples, W_1 = -log Z_beta(S)/beta = L^(Q_beta, S) + KL(Q_beta||P)/beta.

use super::Member;
use super::gp_batch::{Derivative, GpMethod, GpObjective, TaskObjective, Workspace};
use crate::error::Result;
use crate::learners::gibbs_gp::{Context, Covariance};
use crate::priors::GaussianProcessSpec;
use crate::task::Task;

/// The objective W_1 at temperature beta.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacoh {
    /// The temperature beta.
    pub beta: f64,
}

impl Pacoh {
    /// The method on a Gaussian-process prior.
    pub fn on(self, spec: &GaussianProcessSpec) -> GpMethod {
        GpMethod::with_objective(spec, Box::new(self))
    }
}

impl GpObjective for Pacoh {
    fn name(&self) -> &'static str {
        "pacoh"
    }

    fn uses_subset(&self) -> bool {
        false
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
        workspace.gather_judged(member, task, offset);
        let covariance = Covariance {
            scale: workspace.prior.scale(),
            noise_variance: workspace.judged.count() as f64 / (2.0 * self.beta),
        };
        let context = Context { task: task.name(), temperature: Some(self.beta) };
        let values = workspace.gp.marginal(&workspace.judged, covariance, context)?;
        if let Derivative::Weighted(weight) = derivative {
            let weights = workspace.gp.marginal_gradient(
                &workspace.judged,
                covariance,
                -weight / self.beta,
                &mut workspace.judged_gradient,
            );
            workspace.scatter_judged(member, task, offset);
            workspace.prior.add_covariance_gradient(weights.scale, 0.0);
        }
        Ok(TaskObjective {
            log_partition: values.log_partition,
            risk: values.risk,
            risk_adapt: None,
            kl: values.kl,
            w: -values.log_partition / self.beta,
        })
    }
}
