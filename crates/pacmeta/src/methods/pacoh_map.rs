//! PACOH's own recipe: maximise the marginal likelihood log N(y; mu, K + s2 I)/m with learned output scale, length scales
//! and noise variance.
//!
//! With s2 learned there is no temperature: the likelihood N(h, s2) is that of beta = m/(2 s2), so risk and KL are
//! reported for that temperature.

use super::Member;
use super::gp_batch::{Derivative, GpMethod, GpObjective, TaskObjective, Workspace};
use crate::error::{Error, Result};
use crate::learners::gibbs_gp::{Context, Covariance};
use crate::priors::{GaussianProcessSpec, Kernel};
use crate::task::Task;

/// The objective -log N(y; mu, A)/m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacohMap;

impl PacohMap {
    /// The method on a Gaussian-process prior.
    ///
    /// # Errors
    /// When the prior's kernel has no learned noise.
    pub fn on(self, spec: &GaussianProcessSpec) -> Result<GpMethod> {
        if spec.kernel != Kernel::Learned {
            return Err(Error::config(
                "prior.kernel",
                "the method `pacoh-map` learns the noise variance; it needs the kernel \"learned\"",
            ));
        }
        Ok(GpMethod::with_objective(spec, Box::new(self)))
    }
}

impl GpObjective for PacohMap {
    fn name(&self) -> &'static str {
        "pacoh-map"
    }

    fn uses_subset(&self) -> bool {
        false
    }

    fn divergence_weight(&self, task: &Task) -> f64 {
        1.0 / task.len() as f64
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
        let noise_variance = workspace.prior.learned_noise().unwrap_or(f64::NAN);
        let covariance = Covariance { scale: workspace.prior.scale(), noise_variance };
        let count = workspace.judged.count() as f64;
        let context = Context { task: task.name(), temperature: None };
        let values = workspace.gp.marginal(&workspace.judged, covariance, context)?;
        if let Derivative::Weighted(weight) = derivative {
            let weights = workspace.gp.marginal_gradient(
                &workspace.judged,
                covariance,
                -weight / count,
                &mut workspace.judged_gradient,
            );
            workspace.scatter_judged(member, task, offset);
            workspace.prior.add_covariance_gradient(weights.scale, weights.noise_variance);
        }
        Ok(TaskObjective {
            log_partition: values.log_partition,
            risk: values.risk,
            risk_adapt: None,
            kl: values.kl,
            w: -values.log_likelihood / count,
        })
    }
}
