//! Scores on target tasks: adapt to the support, predict the query, compare.
//!
//! All numbers are in original units. For each task: the RMSE of the predictive means; the joint predictive log-density of
//! the query divided by its size; and the calibration error, the root mean square over 20 levels from 0.05 to 0.95 of the
//! difference between the level and the fraction of query points whose predictive CDF is at most the level. Each is then
//! averaged over tasks.

mod floors;
mod plain_gp;

pub use floors::{Floor, floor_scores};
pub use plain_gp::{FittedGp, PlainGp};

use pacmeta_tensor::Key;
use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::learners::{Adapted, Predictive};
use crate::model::Model;
use crate::task::Task;

/// The scores of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskScores {
    /// The task's name.
    pub name: String,
    /// Examples adapted to.
    pub support: usize,
    /// Examples scored.
    pub query: usize,
    /// Root mean squared error of the predictive means.
    pub rmse: f64,
    /// Joint predictive log-density per query point.
    pub log_likelihood: f64,
    /// The calibration error.
    pub calibration_error: f64,
    /// The part of the query inside the central 95% interval.
    pub coverage95: f64,
    /// The fraction of the query below each calibration level.
    #[serde(skip)]
    pub calibration: Vec<f64>,
}

/// Scores averaged over tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scores {
    /// Mean RMSE over tasks.
    pub rmse: f64,
    /// Its standard error over tasks (absent for a single task).
    pub rmse_standard_error: Option<f64>,
    /// Mean log-likelihood over tasks.
    pub log_likelihood: f64,
    /// Its standard error over tasks.
    pub log_likelihood_standard_error: Option<f64>,
    /// Mean calibration error over tasks.
    pub calibration_error: f64,
    /// Mean coverage of the 95% interval.
    pub coverage95: f64,
    /// The number of tasks.
    pub tasks: usize,
    /// The tasks.
    pub per_task: Vec<TaskScores>,
}

/// The 20 levels of the calibration error.
pub fn calibration_levels() -> [f64; 20] {
    std::array::from_fn(|index| 0.05 + 0.9 * index as f64 / 19.0)
}

/// The 97.5% quantile of the standard normal distribution.
pub const NORMAL_975: f64 = 1.959_963_984_540_054;

/// The cumulative distribution function of the standard normal.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// Anything that turns a support set into a predictor.
pub trait Predictor: Sync {
    /// Adapts to a support set and predicts a query set; also returns the query's joint log-density.
    ///
    /// # Errors
    /// When adaptation fails.
    fn predict(&self, support: &Task, query: &Task) -> Result<(Predictive, f64)>;
}

impl Predictor for Model {
    fn predict(&self, support: &Task, query: &Task) -> Result<(Predictive, f64)> {
        let adapted: Adapted = self.adapt(support)?;
        // First, since it refuses a query that is too large.
        let log_density = adapted.joint_log_density(query)?;
        Ok((adapted.predict(query.inputs())?, log_density))
    }
}

/// A task whose `adapt` is its support: what it states already, else `support` examples drawn (at least one is left).
///
/// # Errors
/// When `support` is 0.
pub fn with_support(task: Task, support: usize, key: Key) -> Result<Task> {
    let usable = task.adapt().is_some_and(|adapt| adapt.len() < task.len());
    if usable || task.len() < 2 {
        return Ok(task);
    }
    let chosen = key.generator().subset(task.len(), support.min(task.len() - 1));
    task.with_adapt(chosen)
}

/// Scores a predictor on tasks that state their support in `adapt`; the rest of each is scored.
///
/// # Errors
/// When a task states no support or cannot be adapted to.
pub fn evaluate(predictor: &dyn Predictor, tasks: &[Task]) -> Result<Scores> {
    if tasks.is_empty() {
        return Err(Error::input("evaluation", "there are no tasks to score"));
    }
    let per_task: Vec<TaskScores> = tasks
        .par_iter()
        .map(|task| {
            let (support, query) = task.support_and_query()?;
            let (predictive, log_density) = predictor.predict(&support, &query)?;
            Ok(score(task.name(), support.len(), query.targets(), &predictive, log_density))
        })
        .collect::<Result<_>>()?;
    Ok(Scores::average(per_task))
}

fn score(
    name: &str,
    support: usize,
    targets: &[f64],
    predictive: &Predictive,
    log_density: f64,
) -> TaskScores {
    let count = targets.len() as f64;
    let Predictive { mean, std } = predictive;
    let squares: f64 = targets.iter().zip(mean).map(|(y, mean)| (y - mean) * (y - mean)).sum();
    let z: Vec<f64> = targets.iter().zip(mean).zip(std).map(|((y, mean), std)| (y - mean) / std).collect();
    let calibration: Vec<f64> = calibration_levels()
        .iter()
        .map(|level| z.iter().filter(|z| normal_cdf(**z) <= *level).count() as f64 / count)
        .collect();
    let gap: f64 = calibration
        .iter()
        .zip(calibration_levels())
        .map(|(fraction, level)| (fraction - level).powi(2))
        .sum();
    TaskScores {
        name: name.to_owned(),
        support,
        query: targets.len(),
        rmse: (squares / count).sqrt(),
        log_likelihood: log_density / count,
        calibration_error: (gap / 20.0).sqrt(),
        coverage95: z.iter().filter(|z| z.abs() <= NORMAL_975).count() as f64 / count,
        calibration,
    }
}

impl Scores {
    fn average(per_task: Vec<TaskScores>) -> Self {
        let mean_and_error = |value: fn(&TaskScores) -> f64| {
            let values: Vec<f64> = per_task.iter().map(value).collect();
            mean_and_standard_error(&values)
        };
        let (rmse, rmse_standard_error) = mean_and_error(|task| task.rmse);
        let (log_likelihood, log_likelihood_standard_error) = mean_and_error(|task| task.log_likelihood);
        Self {
            rmse,
            rmse_standard_error,
            log_likelihood,
            log_likelihood_standard_error,
            calibration_error: mean_and_error(|task| task.calibration_error).0,
            coverage95: mean_and_error(|task| task.coverage95).0,
            tasks: per_task.len(),
            per_task,
        }
    }

    /// The calibration curve averaged over tasks: (level, fraction).
    pub fn calibration_curve(&self) -> Vec<(f64, f64)> {
        calibration_levels()
            .iter()
            .enumerate()
            .map(|(index, level)| {
                let sum: f64 = self.per_task.iter().map(|task| task.calibration[index]).sum();
                (*level, sum / self.per_task.len() as f64)
            })
            .collect()
    }
}

/// Mean and standard error of the mean (none for fewer than two values).
pub fn mean_and_standard_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, Some((variance / count).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_normal_is_calibrated_and_a_shifted_one_is_not() {
        // Query points at the quantiles of the predictive distribution.
        let predictive = Predictive { mean: vec![3.0; 999], std: vec![2.0; 999] };
        let quantiles: Vec<f64> = (1..1000)
            .map(|i| {
                let level = f64::from(i) / 1000.0;
                let (mut low, mut high) = (-10.0, 10.0);
                for _ in 0..80 {
                    let middle = 0.5 * (low + high);
                    if normal_cdf(middle) < level { low = middle } else { high = middle }
                }
                3.0 + 2.0 * low
            })
            .collect();
        let scores = score("t", 5, &quantiles, &predictive, 0.0);
        assert!(scores.calibration_error < 2e-3, "{}", scores.calibration_error);
        assert!((scores.coverage95 - 0.95).abs() < 2e-3);
        assert!((scores.rmse - 2.0).abs() < 0.02);
        let shifted: Vec<f64> = quantiles.iter().map(|y| y + 100.0).collect();
        // No point is below any level: the error is the root mean square of the levels, sqrt(0.25 + 0.9^2/12 * 21/19).
        let expected = (0.25_f64 + 0.81 / 12.0 * 21.0 / 19.0).sqrt();
        assert!((score("t", 5, &shifted, &predictive, 0.0).calibration_error - expected).abs() < 1e-12);
    }

    #[test]
    fn standard_errors() {
        let (mean, error) = mean_and_standard_error(&[1.0, 2.0, 3.0, 4.0]);
        assert!((mean - 2.5).abs() < 1e-15 && (error.unwrap() - (5.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
        assert_eq!(mean_and_standard_error(&[7.0]), (7.0, None));
    }
}
