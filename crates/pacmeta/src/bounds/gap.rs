//! The environment gap of Theorem 3 on environments that can be sampled.
//!
//! T is the target environment (tasks of m examples), T~ the observed one (tasks of m_i examples); both draw functions
//! from the same [`Environment`]. R(P, .) is the expected true risk of the Gibbs posterior that starts from P:
//!
//! ```text
//! over the hyper-prior   (1/lambda) log mean_k exp(lambda (R(P_k, T) - R(P_k, T~))),   P_k ~ N(0, sigma0^2 I)
//! difference of risks    mean_k (R(P_k, T) - R(P_k, T~)),                              P_k ~ N(theta0, s^2 I)
//! ```
//!
//! The temperature is beta on m_i examples; on m examples it is what [`TargetTemperature`] says. Each draw of a prior has
//! tasks of its own. Both risks of a pair are measured on the same functions and the same fresh examples, and the m
//! examples are the first of the m_i (common random numbers), so differences vary less than risks; the posterior's own
//! spread is not sampled, its risk on an example is a closed form. Everything depends on the key alone, not on the
//! number of threads. With m = m_i the gap is exactly 0.
//!
//! Each R(P_k, .) is a mean over `tasks_per_draw` tasks. That noise is inside the exponential of the first form and pushes
//! it upwards, the more so the larger lambda: raise `tasks_per_draw` until the value stands still.

use pacmeta_bounds::{HyperPriorGap, RiskDifference, RiskPair};
use pacmeta_tensor::Key;
use rayon::prelude::*;

use super::{gaussian_process, option_error, positive_option, same_dimension};
use crate::environments::Environment;
use crate::error::Result;
use crate::learners::TargetTemperature;
use crate::methods::{Batch, Member, Pacmaml};
use crate::model::Model;
use crate::task::Task;

/// Sizes, temperature and effort.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapSettings {
    /// m, examples of a target task.
    pub target_examples: usize,
    /// m_i, examples of an observed task.
    pub observed_examples: usize,
    /// The temperature on m_i examples.
    pub beta: f64,
    /// The temperature on m examples.
    pub rule: TargetTemperature,
    /// Draws of priors, at least 2.
    pub draws: usize,
    /// Tasks for each prior.
    pub tasks_per_draw: usize,
    /// Fresh examples for the true risk on each task.
    pub fresh_examples: usize,
    /// The key of all draws.
    pub key: Key,
}

impl GapSettings {
    fn check(&self) -> Result<()> {
        positive_option("--beta", self.beta)?;
        for (option, value, smallest) in [
            ("--target-examples", self.target_examples, 1),
            ("--observed-examples", self.observed_examples, 1),
            ("--draws", self.draws, 2),
            ("--tasks-per-draw", self.tasks_per_draw, 1),
            ("--fresh-examples", self.fresh_examples, 1),
        ] {
            if value < smallest {
                return Err(option_error(option, format!("is {value}, expected at least {smallest}")));
            }
        }
        Ok(())
    }

    fn identical(&self) -> bool {
        self.target_examples == self.observed_examples
    }

    /// The temperature on m examples.
    fn target_temperature(&self) -> f64 {
        match self.rule {
            TargetTemperature::Fixed => self.beta,
            TargetTemperature::PerExample => {
                self.beta * self.target_examples as f64 / self.observed_examples as f64
            }
        }
    }
}

/// The gap over the hyper-prior N(0, sigma0^2 I) at lambda. Of the model only the prior's shape and the standardisation
/// matter.
///
/// # Errors
/// When the prior is not a Gaussian process, the environment has another dimension, a setting is out of range or a
/// covariance matrix is not positive definite.
pub fn gap_by_hyper_prior(
    environment: &dyn Environment,
    model: &Model,
    sigma0_squared: f64,
    lambda: f64,
    settings: &GapSettings,
) -> Result<HyperPriorGap> {
    positive_option("--sigma0-squared", sigma0_squared)?;
    positive_option("--lambda", lambda)?;
    settings.check()?;
    if settings.identical() {
        return Ok(HyperPriorGap::identical());
    }
    let centre = vec![0.0; model.parameters().values().len()];
    let pairs = risk_pairs(environment, model, &centre, sigma0_squared, settings, "hyper-prior")?;
    Ok(HyperPriorGap::from_draws(lambda, &pairs)?)
}

/// R(calQ, T) - R(calQ, T~) for calQ = N(theta0, s^2 I) around the model's parameters; s^2 = 0 is the learned prior
/// itself.
///
/// # Errors
/// As for [`gap_by_hyper_prior`].
pub fn gap_by_risk_difference(
    environment: &dyn Environment,
    model: &Model,
    hyper_posterior_variance: f64,
    settings: &GapSettings,
) -> Result<RiskDifference> {
    if !(hyper_posterior_variance.is_finite() && hyper_posterior_variance >= 0.0) {
        let message = format!("is {hyper_posterior_variance}, expected a number that is not negative");
        return Err(option_error("--hyper-posterior-std", message));
    }
    settings.check()?;
    if settings.identical() {
        return Ok(RiskDifference::identical());
    }
    let centre = model.parameters().values();
    let pairs =
        risk_pairs(environment, model, centre, hyper_posterior_variance, settings, "hyper-posterior")?;
    Ok(RiskDifference::from_pairs(&pairs)?)
}

/// One pair of risks for each of `settings.draws` priors from N(centre, variance I), each on tasks of its own; `purpose`
/// is a name in the key of the draws. Both gaps are functions of such pairs.
///
/// # Errors
/// As for [`gap_by_hyper_prior`].
pub fn risk_pairs(
    environment: &dyn Environment,
    model: &Model,
    centre: &[f64],
    variance: f64,
    settings: &GapSettings,
    purpose: &str,
) -> Result<Vec<RiskPair>> {
    settings.check()?;
    let spec = gaussian_process(model.spec())?;
    same_dimension(environment, spec.dimension)?;
    let key = settings.key.named("gap").named(purpose);
    let method = |alpha| Pacmaml { alpha, beta: settings.beta }.on(spec);
    (0..settings.draws as u64)
        .into_par_iter()
        .map_init(
            || (method(settings.target_temperature()), method(settings.beta)),
            |(target, observed), draw| {
                let key = key.index(draw);
                let theta = super::gaussian_draw(centre, variance, key.named("prior"));
                let tasks: Vec<Task> = (0..settings.tasks_per_draw as u64)
                    .map(|task| draw_task(environment, model, settings, key.named("tasks").index(task)))
                    .collect::<Result<_>>()?;
                let risk = |method: &mut crate::methods::GpMethod, support: usize| -> Result<f64> {
                    let members = members(settings, tasks.len(), support);
                    let values = method.tasks(&theta, &Batch { tasks: &tasks, members: &members })?;
                    Ok(values.iter().map(|task| task.risk).sum::<f64>() / values.len() as f64)
                };
                Ok(RiskPair {
                    target: risk(target, settings.target_examples)?,
                    observed: risk(observed, settings.observed_examples)?,
                })
            },
        )
        .collect()
}

/// The support examples of both sizes (the smaller is the beginning of the larger), then the fresh ones, in the units
/// of the prior.
fn draw_task(environment: &dyn Environment, model: &Model, settings: &GapSettings, key: Key) -> Result<Task> {
    let function = key.named("function");
    let largest = settings.target_examples.max(settings.observed_examples);
    let support = environment.examples("simulated", largest, function, key.named("examples"))?;
    let fresh = environment.examples("simulated", settings.fresh_examples, function, key.named("fresh"))?;
    let inputs = [support.inputs(), fresh.inputs()].concat();
    let targets = [support.targets(), fresh.targets()].concat();
    model.standardise(&Task::new("simulated", environment.dimension(), inputs, targets)?)
}

/// Members whose posterior sees the first `support` examples and is judged on the fresh ones.
fn members(settings: &GapSettings, tasks: usize, support: usize) -> Vec<Member> {
    let largest = settings.target_examples.max(settings.observed_examples);
    let judged: Vec<usize> = (largest..largest + settings.fresh_examples).collect();
    (0..tasks).map(|task| Member { task, adapt: (0..support).collect(), judged: judged.clone() }).collect()
}
