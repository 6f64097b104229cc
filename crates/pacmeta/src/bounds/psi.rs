//! The cumulant terms by simulation, on environments that can be sampled: no assumption about the loss, but estimates with
//! errors, and no guarantee.
//!
//! ```text
//! Psi1   log E_{P ~ N(0, sigma0^2 I)} prod_i E_{h ~ P} exp(m psi_{i,h}(beta/m)),
//!        psi_{i,h}(t) = log E_{z ~ D_i} exp(t (L(h, D_i) - l(h, z)))
//! Psi2   (1/n) log E_{P ~ N(0, sigma0^2 I)} exp(n psi_P(lambda/n)),
//!        psi_P(t) = log E_{D, S} exp(t (E L(Q(S, P), D) - L(Q(S, P), D)))
//! ```
//!
//! with the powers inside the expectations, where the proofs need them. Each draw takes a prior. For Psi1 it takes for each
//! task one function h of that prior at fresh examples z of the task; psi is then a mean over those. For Psi2 it takes tasks
//! of the environment, and the risk of the Gibbs posterior on fresh examples of each. Both means are under a logarithm, which
//! makes the estimates too small on average: raise `fresh_examples`, `tasks_per_draw` and `draws` until they stand still, and
//! look at the effective draws ([`JointPsi::effective_draws`]), since at large temperatures a few draws carry all the weight.

use pacmeta_bounds::{AveragedPsi, JointPsi, log_moment_from_losses};
use pacmeta_tensor::Key;
use rayon::prelude::*;

use super::{gaussian_process, option_error, positive_option, same_dimension};
use crate::environments::Environment;
use crate::error::Result;
use crate::learners::gibbs_gp::{JointPrediction, Points, prior_joint};
use crate::methods::{Batch, Member, Pacmaml};
use crate::model::Model;
use crate::priors::GaussianProcess;
use crate::task::Task;

/// The functions behind the observed tasks, D_i.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskFunctions {
    /// They are known, by their keys (see [`Environment::function`]): the moment given those tasks.
    Known(Vec<Key>),
    /// So many, unknown: every draw has functions of its own, and the moment is over them too.
    Random(usize),
}

impl TaskFunctions {
    fn count(&self) -> usize {
        match self {
            Self::Known(keys) => keys.len(),
            Self::Random(count) => *count,
        }
    }
}

/// Sizes, temperature and effort of a simulation of Psi1.
#[derive(Debug, Clone, PartialEq)]
pub struct PsiSettings {
    /// The functions of the observed tasks.
    pub functions: TaskFunctions,
    /// m, examples of an observed task.
    pub examples: usize,
    /// The temperature beta.
    pub beta: f64,
    /// Variance of the hyper-prior.
    pub sigma0_squared: f64,
    /// Draws of priors, at least 2.
    pub draws: usize,
    /// Fresh examples z for each psi, at least 2.
    pub fresh_examples: usize,
    /// The key of all draws.
    pub key: Key,
}

/// Simulates the joint moment of all observed tasks. Of the model only the prior's shape and the standardisation matter.
///
/// # Errors
/// When the prior is not a Gaussian process, the environment has another dimension or a setting is out of range.
pub fn psi_by_simulation(
    environment: &dyn Environment,
    model: &Model,
    settings: &PsiSettings,
) -> Result<JointPsi> {
    let spec = gaussian_process(model.spec())?;
    positive_option("--beta", settings.beta)?;
    positive_option("--sigma0-squared", settings.sigma0_squared)?;
    for (option, value, smallest) in [
        ("--observed-examples", settings.examples, 1),
        ("--draws", settings.draws, 2),
        ("--fresh-examples", settings.fresh_examples, 2),
    ] {
        if value < smallest {
            return Err(option_error(option, format!("is {value}, expected at least {smallest}")));
        }
    }
    same_dimension(environment, spec.dimension)?;
    let centre = vec![0.0; model.parameters().values().len()];
    let size = settings.examples as f64;
    let count = settings.functions.count();
    let sums: Vec<f64> = (0..settings.draws as u64)
        .into_par_iter()
        .map_init(
            || GaussianProcess::new(spec),
            |prior, draw| {
                let key = settings.key.named("psi").index(draw);
                prior.load(&super::gaussian_draw(&centre, settings.sigma0_squared, key.named("prior")));
                let mut sum = 0.0;
                for index in 0..count {
                    let key = key.named("task").index(index as u64);
                    let function = match &settings.functions {
                        TaskFunctions::Known(keys) => keys[index],
                        TaskFunctions::Random(_) => key.named("task function"),
                    };
                    let fresh = environment.examples(
                        "simulated",
                        settings.fresh_examples,
                        function,
                        key.named("examples"),
                    )?;
                    let fresh = model.standardise(&fresh)?;
                    prior.forward(fresh.inputs());
                    let mut points = Points::default();
                    prior.gather(fresh.targets().iter().copied().enumerate(), &mut points);
                    let values = draw_function(&prior_joint(&points, prior.scale()), key.named("function"));
                    let losses: Vec<f64> =
                        values.iter().zip(fresh.targets()).map(|(h, y)| (h - y) * (h - y)).collect();
                    sum += size * log_moment_from_losses(settings.beta / size, &losses)?.value;
                }
                Ok(sum)
            },
        )
        .collect::<Result<_>>()?;
    Ok(JointPsi::from_draws(settings.beta, count, &sums)?)
}

/// Sizes, temperatures and effort of a simulation of Psi2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskPsiSettings {
    /// n, the observed tasks.
    pub tasks: usize,
    /// Examples that the base learner sees of a task: m (Theorem 2), or m' (Theorem 4).
    pub examples: usize,
    /// Its temperature on them: beta, or alpha.
    pub temperature: f64,
    /// The environment level's temperature.
    pub lambda: f64,
    /// Variance of the hyper-prior.
    pub sigma0_squared: f64,
    /// Draws of priors, at least 2.
    pub draws: usize,
    /// Tasks for each prior, at least 2.
    pub tasks_per_draw: usize,
    /// Fresh examples for the true risk on each task.
    pub fresh_examples: usize,
    /// The key of all draws.
    pub key: Key,
}

/// Simulates Psi2 at lambda/n, an average over the hyper-prior with n inside as its power: for Theorems 2 and 4, and for the
/// corollary of Theorem 3 with a difference of risks. Theorem 3 refuses it. Of the model only the prior's shape and the
/// standardisation matter.
///
/// # Errors
/// As for [`psi_by_simulation`]; also when a covariance matrix is not positive definite.
pub fn task_psi_by_simulation(
    environment: &dyn Environment,
    model: &Model,
    settings: &TaskPsiSettings,
) -> Result<AveragedPsi> {
    let spec = gaussian_process(model.spec())?;
    positive_option("--beta", settings.temperature)?;
    positive_option("--lambda", settings.lambda)?;
    positive_option("--sigma0-squared", settings.sigma0_squared)?;
    for (option, value, smallest) in [
        ("--tasks", settings.tasks, 1),
        ("--observed-examples", settings.examples, 1),
        ("--draws", settings.draws, 2),
        ("--tasks-per-draw", settings.tasks_per_draw, 2),
        ("--fresh-examples", settings.fresh_examples, 1),
    ] {
        if value < smallest {
            return Err(option_error(option, format!("is {value}, expected at least {smallest}")));
        }
    }
    same_dimension(environment, spec.dimension)?;
    let centre = vec![0.0; model.parameters().values().len()];
    let argument = settings.lambda / settings.tasks as f64;
    let support: Vec<usize> = (0..settings.examples).collect();
    let fresh: Vec<usize> = (settings.examples..settings.examples + settings.fresh_examples).collect();
    let members: Vec<Member> = (0..settings.tasks_per_draw)
        .map(|task| Member { task, adapt: support.clone(), judged: fresh.clone() })
        .collect();
    let log_moments: Vec<f64> = (0..settings.draws as u64)
        .into_par_iter()
        .map_init(
            // PACMAML's beta weighs the divergence only, which is not used here.
            || Pacmaml { alpha: settings.temperature, beta: settings.temperature }.on(spec),
            |method, draw| {
                let key = settings.key.named("task psi").index(draw);
                let theta = super::gaussian_draw(&centre, settings.sigma0_squared, key.named("prior"));
                let tasks: Vec<Task> = (0..settings.tasks_per_draw as u64)
                    .map(|task| {
                        let key = key.named("tasks").index(task);
                        let size = settings.examples + settings.fresh_examples;
                        let task = environment.examples(
                            "simulated",
                            size,
                            key.named("function"),
                            key.named("examples"),
                        )?;
                        model.standardise(&task)
                    })
                    .collect::<Result<_>>()?;
                let values = method.tasks(&theta, &Batch { tasks: &tasks, members: &members })?;
                let risks: Vec<f64> = values.iter().map(|task| task.risk).collect();
                Ok(log_moment_from_losses(argument, &risks)?.value)
            },
        )
        .collect::<Result<_>>()?;
    Ok(AveragedPsi::from_log_moments(argument, settings.tasks, &log_moments)?)
}

/// One draw of N(mean, covariance). A smooth kernel's matrix is singular to rounding: directions whose remaining variance
/// is below 1e-12 of the largest are left out, which changes values by a millionth of their spread at most.
fn draw_function(joint: &JointPrediction, key: Key) -> Vec<f64> {
    let size = joint.mean.len();
    let mut generator = key.generator();
    let mut values = joint.mean.clone();
    let mut residual = joint.covariance.clone();
    let largest = (0..size).fold(0.0_f64, |largest, i| largest.max(residual[i * size + i]));
    for column in 0..size {
        let pivot = residual[column * size + column];
        if pivot <= 1e-12 * largest {
            continue;
        }
        let noise = generator.normal() / pivot.sqrt();
        let direction: Vec<f64> = (0..size).map(|row| residual[row * size + column]).collect();
        for row in column..size {
            values[row] += noise * direction[row];
            let factor = direction[row] / pivot;
            for other in column..size {
                residual[row * size + other] -= factor * direction[other];
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_stated_mean_and_covariance() {
        // Rank two of three: the third is the sum of the others.
        let covariance = vec![1.0, 0.3, 1.3, 0.3, 0.5, 0.8, 1.3, 0.8, 2.1];
        let joint = JointPrediction { mean: vec![1.0, -1.0, 0.0], covariance: covariance.clone() };
        let draws = 40_000;
        let mut sums = [0.0; 3];
        let mut products = [0.0; 9];
        for draw in 0..draws {
            let values = draw_function(&joint, Key::new(1).index(draw));
            assert!((values[0] + values[1] - values[2]).abs() < 1e-9);
            for i in 0..3 {
                sums[i] += values[i];
                for j in 0..3 {
                    products[3 * i + j] += (values[i] - joint.mean[i]) * (values[j] - joint.mean[j]);
                }
            }
        }
        for i in 0..3 {
            assert!((sums[i] / draws as f64 - joint.mean[i]).abs() < 0.03);
            for j in 0..3 {
                let error = products[3 * i + j] / draws as f64 - covariance[3 * i + j];
                assert!(error.abs() < 0.06, "({i}, {j}): {error}");
            }
        }
    }
}
