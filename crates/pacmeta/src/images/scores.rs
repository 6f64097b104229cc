//! Scores of a classifier over many test tasks.
//!
//! Accuracy and log-likelihood are means over tasks, with the standard error over tasks and the 95% interval by
//! Student's t. The calibration error is the expected one: queries of all tasks are binned by the probability of the
//! predicted class, and the differences between mean probability and accuracy are averaged with the bins' sizes.

use serde::{Deserialize, Serialize};

use super::evaluation::TaskPrediction;
use crate::classification::scores::mean_and_error;
use crate::studies::summary::student_quantile;

/// Bins of the reliability diagram.
const BINS: usize = 10;

/// Queries whose predicted class has a similar probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct ReliabilityBin {
    /// The number of queries.
    pub queries: usize,
    /// The mean probability of the predicted class.
    pub confidence: f64,
    /// The part that is predicted rightly.
    pub accuracy: f64,
}

/// Scores averaged over tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageScores {
    /// The number of tasks.
    pub tasks: usize,
    /// The number of queries of each.
    pub queries: usize,
    /// Mean accuracy.
    pub accuracy: f64,
    /// Its standard error over tasks (absent for a single task).
    pub accuracy_standard_error: Option<f64>,
    /// Half the width of its 95% interval.
    pub accuracy_interval95: Option<f64>,
    /// Mean over tasks of the mean log-probability of the right class.
    pub log_likelihood: f64,
    /// Its standard error over tasks.
    pub log_likelihood_standard_error: Option<f64>,
    /// The expected calibration error.
    pub calibration_error: f64,
    /// The bins behind it, from improbable to sure.
    pub reliability: Vec<ReliabilityBin>,
    /// The accuracy of each task.
    pub per_task: Vec<f64>,
}

impl ImageScores {
    /// Averages over tasks.
    pub fn of(predictions: &[TaskPrediction]) -> Self {
        let per_task: Vec<f64> = predictions.iter().map(TaskPrediction::accuracy).collect();
        let likelihoods: Vec<f64> = predictions.iter().map(TaskPrediction::log_likelihood).collect();
        let (accuracy, accuracy_standard_error) = mean_and_error(&per_task);
        let (log_likelihood, log_likelihood_standard_error) = mean_and_error(&likelihoods);
        let reliability = reliability(predictions);
        let count: usize = reliability.iter().map(|bin| bin.queries).sum();
        let calibration_error = reliability
            .iter()
            .map(|bin| bin.queries as f64 / count.max(1) as f64 * (bin.confidence - bin.accuracy).abs())
            .sum();
        Self {
            tasks: predictions.len(),
            queries: predictions.first().map_or(0, |task| task.queries.len()),
            accuracy,
            accuracy_standard_error,
            accuracy_interval95: accuracy_standard_error.map(|error| student(per_task.len()) * error),
            log_likelihood,
            log_likelihood_standard_error,
            calibration_error,
            reliability,
            per_task,
        }
    }
}

/// The factor of a standard error in a 95% interval over so many tasks.
fn student(tasks: usize) -> f64 {
    student_quantile(0.975, (tasks - 1) as f64)
}

fn reliability(predictions: &[TaskPrediction]) -> Vec<ReliabilityBin> {
    let mut bins = vec![ReliabilityBin::default(); BINS];
    for query in predictions.iter().flat_map(|task| &task.queries) {
        let confidence = f64::from(query.probabilities[query.predicted()]);
        let bin = &mut bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
        bin.queries += 1;
        bin.confidence += confidence;
        bin.accuracy += f64::from(u8::from(query.is_right()));
    }
    for bin in bins.iter_mut().filter(|bin| bin.queries > 0) {
        bin.confidence /= bin.queries as f64;
        bin.accuracy /= bin.queries as f64;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::super::evaluation::Query;
    use super::*;

    fn task(probability_of_first: f32, labels: &[usize]) -> TaskPrediction {
        let queries = labels.iter().map(|&label| Query {
            label,
            probabilities: vec![probability_of_first, 1.0 - probability_of_first],
        });
        TaskPrediction { queries: queries.collect() }
    }

    #[test]
    fn a_small_case_by_hand() {
        // predicts class 0 with 0.75: right on 3 of 4; and with 0.625: right on 2 of 4
        let scores = ImageScores::of(&[task(0.75, &[0, 0, 0, 1]), task(0.625, &[0, 1, 0, 1])]);
        assert_eq!((scores.tasks, scores.queries), (2, 4));
        assert_eq!(scores.accuracy, 0.625);
        // deviations of 1/8: variance 2 / 64, over two tasks 1 / 64
        assert!((scores.accuracy_standard_error.unwrap() - 0.125).abs() < 1e-15);
        // one degree of freedom: 12.7 standard errors
        assert!((scores.accuracy_interval95.unwrap() - 0.125 * 12.706_204_736).abs() < 1e-6);
        let expected = 0.5
            * ((3.0 * 0.75_f64.ln() + 0.25_f64.ln()) / 4.0
                + (2.0 * 0.625_f64.ln() + 2.0 * 0.375_f64.ln()) / 4.0);
        assert!((scores.log_likelihood - expected).abs() < 1e-7);
        // the first bin is exact, the second is off by 1/8 and holds half of the queries
        assert!((scores.calibration_error - 0.0625).abs() < 1e-12);
        assert_eq!(scores.reliability.iter().map(|bin| bin.queries).collect::<Vec<_>>()[6..8], [4, 4]);
    }

    #[test]
    fn a_single_task_has_no_standard_error() {
        let scores = ImageScores::of(&[task(1.0, &[0, 1])]);
        assert_eq!((scores.accuracy, scores.accuracy_standard_error), (0.5, None));
        // a sure mistake costs as much as f32 can tell from certainty, not infinity
        assert!(scores.log_likelihood.is_finite());
    }
}
