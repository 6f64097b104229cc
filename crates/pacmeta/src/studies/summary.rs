//! Means with honest standard errors.
//!
//! A [`Summary`] is for independent values. The errors of a study are not independent: the same target tasks are
//! scored by models of every meta-training set, so both a hard task and an unlucky set move many numbers at once.
//! [`crossed`] is for those. Its model of the value of set s on task t (already averaged over seeds) is
//!
//! ```text
//! d_st = mu + a_s + b_t + e_st,      variances A, B and E,   S sets, T tasks,
//! Var(mean) = A/S + B/T + E/(S T).
//! ```
//!
//! The mean squares of the two-way table are MS_A = T var(set means), MS_B = S var(task means) and MS_E, the sum of the
//! squared residuals (value minus set mean minus task mean plus mean) over (S-1)(T-1). They have expectations E + T A,
//! E + S B and E. So
//!
//! ```text
//! var(set means)/S + var(task means)/T - MS_E/(S T) = (MS_A + MS_B - MS_E)/(S T)
//! ```
//!
//! has expectation Var(mean): each of the first two terms contains the residual part once, so it is taken off once.
//! A variance A or B that comes out negative is set to 0, hence
//!
//! ```text
//! standard error^2 = (max(MS_A, MS_E) + max(MS_B, MS_E) - MS_E)/(S T),
//! ```
//!
//! which is never below MS_E/(S T). Degrees of freedom are Satterthwaite's, V^2 / sum (c_i MS_i)^2 / f_i over the mean
//! squares that remain, kept between the smaller of S - 1 and T - 1 (what the scarcer factor alone would give) and
//! S + T - 2. The smaller of the two alone would always be safe, but with 8 sets it widens every interval by an eighth
//! even where all the variation is between 20 tasks. The simulation in the tests counts the coverage of both extremes.
//!
//! With one column there are no tasks to generalise over: the sets are independent values. With one *set* there is no
//! standard error at all, however many tasks: nothing was seen of how sets differ.

mod student;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use student::{student_probability, student_quantile};

/// The mean of independent values and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean of the finite values; none if there are none.
    pub mean: Option<f64>,
    /// The standard error of the mean (deviations divided by count - 1); none for fewer than two values.
    pub standard_error: Option<f64>,
    /// How many values the mean is of.
    pub observations: usize,
    /// How many values were not finite, and so are not in the mean.
    pub failed: usize,
}

impl Summary {
    /// Summarises values. Those that are not finite are counted as failed.
    ///
    /// ```
    /// use pacmeta::studies::summary::Summary;
    ///
    /// let summary = Summary::of(&[1.0, 2.0, 3.0, f64::NAN]);
    /// assert_eq!((summary.mean, summary.observations, summary.failed), (Some(2.0), 3, 1));
    /// ```
    pub fn of(values: &[f64]) -> Self {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let mean = (!finite.is_empty()).then(|| mean(&finite)).filter(|mean| mean.is_finite());
        let standard_error = (finite.len() > 1)
            .then(|| (variance(&finite) / finite.len() as f64).sqrt())
            .filter(|error| error.is_finite());
        Self { mean, standard_error, observations: finite.len(), failed: values.len() - finite.len() }
    }
}

impl Summary {
    /// The mean of all values with the standard error of the means of groups: values of one group (models of the same
    /// meta-training set, which differ by their seed only) are not independent. `groups` names each value's group.
    ///
    /// ```
    /// use pacmeta::studies::summary::Summary;
    ///
    /// // Two groups of two: four values, but no more is known than from 1 and 3.
    /// let summary = Summary::of_groups(&[0, 0, 7, 7], &[1.0, 1.0, 3.0, 3.0]);
    /// assert_eq!((summary.mean, summary.standard_error, summary.observations), (Some(2.0), Some(1.0), 4));
    /// ```
    pub fn of_groups(groups: &[u64], values: &[f64]) -> Self {
        let names: BTreeSet<u64> = groups.iter().copied().collect();
        let mean_of = |group: u64| {
            let own =
                groups.iter().zip(values).filter(|(other, _)| **other == group).map(|(_, value)| *value);
            Self::of(&own.collect::<Vec<f64>>()).mean.unwrap_or(f64::NAN)
        };
        let means: Vec<f64> = names.into_iter().map(mean_of).collect();
        Self { standard_error: Self::of(&means).standard_error, ..Self::of(values) }
    }
}

/// The mean of a table of sets and tasks, its standard error, and what they rest on. From [`crossed`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Crossed {
    /// The mean over the sets in use; none if there are none.
    pub mean: Option<f64>,
    /// Its standard error as a sample of sets and of tasks; none for fewer than two sets.
    pub standard_error: Option<f64>,
    /// The degrees of freedom of the standard error, where there is one.
    pub degrees_of_freedom: Option<f64>,
    /// Sets in use: those whose values are all finite.
    pub sets: usize,
    /// Tasks (columns).
    pub tasks: usize,
    /// Values that are not finite. Their whole sets are left out, so that the table stays complete.
    pub failed: usize,
}

impl Crossed {
    /// How many values the mean is of.
    pub fn observations(&self) -> usize {
        self.sets * self.tasks
    }

    /// The two-sided interval of this level (e.g. 0.95); none without a standard error.
    pub fn interval(&self, level: f64) -> Option<(f64, f64)> {
        let factor = student_quantile(0.5 + 0.5 * level, self.degrees_of_freedom?);
        let (mean, half) = (self.mean?, factor * self.standard_error?);
        Some((mean - half, mean + half))
    }

    /// The p-value against "the expected value is 0 or above": small if the values are below 0.
    pub fn p_below(&self) -> Option<f64> {
        let (mean, error) = (self.mean?, self.standard_error?);
        if mean == 0.0 {
            return Some(0.5);
        }
        // No variation at all gives an infinite statistic, hence 0 or 1.
        Some(student_probability(mean / error, self.degrees_of_freedom?))
    }

    /// The p-value against "the expected value is 0 or below": small if the values are above 0.
    pub fn p_above(&self) -> Option<f64> {
        Self { mean: self.mean.map(|mean| -mean), ..*self }.p_below()
    }
}

/// Estimates the mean of a table `values[set][task]` by the crossed design of the [module documentation](self).
///
/// # Errors
///
/// Rows of different lengths, and tables without any value.
pub fn crossed(values: &[Vec<f64>]) -> Result<Crossed> {
    let tasks = values.first().map_or(0, Vec::len);
    if tasks == 0 {
        return Err(Error::input(
            "a table of sets and tasks",
            "is empty, expected one value for each set and task",
        ));
    }
    if let Some(set) = values.iter().position(|row| row.len() != tasks) {
        return Err(Error::input_at(
            "a table of sets and tasks",
            format!("set {set}"),
            format!(
                "has {} tasks, but set 0 has {tasks}; every set is scored on the same tasks",
                values[set].len()
            ),
        ));
    }
    let failed = values.iter().flatten().filter(|value| !value.is_finite()).count();
    let complete: Vec<&[f64]> =
        values.iter().map(Vec::as_slice).filter(|row| row.iter().all(|value| value.is_finite())).collect();
    let sets = complete.len();
    let mut estimate =
        Crossed { mean: None, standard_error: None, degrees_of_freedom: None, sets, tasks, failed };
    if sets == 0 {
        return Ok(estimate);
    }
    let set_means: Vec<f64> = complete.iter().map(|row| mean(row)).collect();
    let grand = mean(&set_means);
    estimate.mean = Some(grand).filter(|mean| mean.is_finite());
    if sets < 2 {
        return Ok(estimate);
    }
    let (variance_of_mean, degrees) = if tasks == 1 {
        (variance(&set_means) / sets as f64, (sets - 1) as f64)
    } else {
        two_way(&complete, &set_means, grand)
    };
    if variance_of_mean.is_finite() && degrees.is_finite() {
        estimate.standard_error = Some(variance_of_mean.sqrt());
        estimate.degrees_of_freedom = Some(degrees);
    }
    Ok(estimate)
}

/// The variance of the mean and its degrees of freedom, for at least two sets and two tasks.
fn two_way(values: &[&[f64]], set_means: &[f64], grand: f64) -> (f64, f64) {
    let (sets, tasks) = (set_means.len() as f64, values[0].len() as f64);
    let task_means: Vec<f64> =
        (0..values[0].len()).map(|task| values.iter().map(|row| row[task]).sum::<f64>() / sets).collect();
    let residual: f64 = values
        .iter()
        .zip(set_means)
        .flat_map(|(row, set_mean)| {
            row.iter()
                .zip(&task_means)
                .map(move |(value, task_mean)| (value - set_mean - task_mean + grand).powi(2))
        })
        .sum();
    let (set_freedom, task_freedom) = (sets - 1.0, tasks - 1.0);
    let mean_square_sets = tasks * variance(set_means);
    let mean_square_tasks = sets * variance(&task_means);
    let mean_square_residual = residual / (set_freedom * task_freedom);

    let total = mean_square_sets.max(mean_square_residual) + mean_square_tasks.max(mean_square_residual)
        - mean_square_residual;
    // Which mean squares make up the total: where a variance was set to 0, its mean square and the residual cancel.
    let kept = |mean_square: f64, freedom: f64| mean_square.powi(2) / freedom;
    let residual_part = kept(mean_square_residual, set_freedom * task_freedom);
    let spread = match (mean_square_sets > mean_square_residual, mean_square_tasks > mean_square_residual) {
        (true, true) => {
            kept(mean_square_sets, set_freedom) + kept(mean_square_tasks, task_freedom) + residual_part
        }
        (true, false) => kept(mean_square_sets, set_freedom),
        (false, true) => kept(mean_square_tasks, task_freedom),
        (false, false) => residual_part,
    };
    let fewest = set_freedom.min(task_freedom);
    // No variation at all: any number of degrees of freedom would do.
    let degrees = if spread > 0.0 { total.powi(2) / spread } else { fewest };
    (total / (sets * tasks), degrees.clamp(fewest, set_freedom + task_freedom))
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The unbiased variance of at least two values.
fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests;
