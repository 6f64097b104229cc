//! Standardisation: inputs and targets shifted and scaled by what the observed tasks show.
//!
//! x ← (x - x_mean) / x_std for every feature and y ← (y - y_mean) / y_std, with means and standard deviations over all
//! examples of all observed tasks together (divided by their count) and 1e-8 added to each standard deviation, as in
//! PACOH's experiments, on which the paper builds; to one below 1, 1e-8 of itself, so that small units do not matter. Results are reported in original units: a predicted mean m becomes
//! y_mean + y_std m, a predicted standard deviation s becomes y_std s.

use serde::{Deserialize, Serialize};

use crate::environments::table::counted;
use crate::error::{Error, Result};
use crate::task::Task;

/// Keeps a feature that never changes from being divided by zero.
const FLOOR: f64 = 1e-8;

/// The shift and scale of every feature and of the target. Always finite, with positive scales.
///
/// ```
/// use pacmeta::{Task, standardisation::Standardisation};
///
/// let task = Task::new("a", 1, vec![1.0, 3.0], vec![10.0, 30.0])?;
/// let standardisation = Standardisation::fit(std::slice::from_ref(&task))?;
/// let standardised = standardisation.apply(&task)?;
/// assert!((standardised.targets()[1] - 1.0).abs() < 1e-7);
/// assert!((standardisation.restore_mean(1.0) - 30.0).abs() < 1e-6);
/// # Ok::<(), pacmeta::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Standardisation {
    x_mean: Vec<f64>,
    x_std: Vec<f64>,
    y_mean: f64,
    y_std: f64,
}

/// What a file says, before it is believed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `x_mean`, `x_std`, `y_mean` and `y_std`")]
struct Unchecked {
    x_mean: Vec<f64>,
    x_std: Vec<f64>,
    y_mean: f64,
    y_std: f64,
}

impl TryFrom<Unchecked> for Standardisation {
    type Error = Error;

    fn try_from(raw: Unchecked) -> Result<Self> {
        Self::new(raw.x_mean, raw.x_std, raw.y_mean, raw.y_std)
    }
}

impl Standardisation {
    /// A standardisation of given values, for instance from a file.
    ///
    /// # Errors
    /// When there is no feature, the lengths differ, a mean is not finite or a standard deviation not positive and finite.
    pub fn new(x_mean: Vec<f64>, x_std: Vec<f64>, y_mean: f64, y_std: f64) -> Result<Self> {
        let refuse = |place: String, message: String| Err(Error::input_at("standardisation", place, message));
        if x_mean.is_empty() || x_mean.len() != x_std.len() {
            return refuse(
                "x_mean and x_std".into(),
                format!("expected one number a feature in each, found {} and {}", x_mean.len(), x_std.len()),
            );
        }
        let means = x_mean.iter().enumerate().map(|(index, &value)| (format!("x_mean[{index}]"), value));
        for (place, value) in means.chain([("y_mean".to_string(), y_mean)]) {
            if !value.is_finite() {
                return refuse(place, format!("expected a finite number, found {value}"));
            }
        }
        let stds = x_std.iter().enumerate().map(|(index, &value)| (format!("x_std[{index}]"), value));
        for (place, value) in stds.chain([("y_std".to_string(), y_std)]) {
            if !(value.is_finite() && value > 0.0) {
                return refuse(place, format!("expected a positive finite number, found {value}"));
            }
        }
        Ok(Self { x_mean, x_std, y_mean, y_std })
    }

    /// The means and standard deviations over all examples of all `tasks`.
    ///
    /// # Errors
    /// When there is no task, their dimensions differ or their numbers are too large to be summed.
    pub fn fit(tasks: &[Task]) -> Result<Self> {
        Self::fit_columns(tasks, &[], "y")
    }

    /// The same with names for messages: those of the features, by their number where there are too few, and of the target.
    ///
    /// # Errors
    /// As for [`Standardisation::fit`].
    pub fn fit_columns(tasks: &[Task], features: &[String], target: &str) -> Result<Self> {
        let refuse = |message: String| Err(Error::input("standardisation", message));
        let Some(first) = tasks.first() else {
            return refuse("there is no task to take means and standard deviations from".into());
        };
        let dimension = first.dimension();
        if let Some(other) = tasks.iter().find(|task| task.dimension() != dimension) {
            return refuse(format!(
                "task `{}` has {} and task `{}` has {dimension}; all tasks need the same",
                other.name(),
                counted(other.dimension(), "feature"),
                first.name()
            ));
        }
        let (x_mean, x_std): (Vec<f64>, Vec<f64>) = (0..dimension)
            .map(|feature| {
                moments(|| {
                    tasks.iter().flat_map(|task| task.inputs().iter().skip(feature).step_by(dimension))
                })
            })
            .unzip();
        let (y_mean, y_std) = moments(|| tasks.iter().flat_map(Task::targets));
        let overflows = |mean: &f64, std: &f64| !mean.is_finite() || !std.is_finite();
        if let Some(feature) = (0..dimension).find(|&feature| overflows(&x_mean[feature], &x_std[feature])) {
            let name = features.get(feature).map_or_else(|| feature.to_string(), |name| format!("`{name}`"));
            return refuse(format!(
                "the numbers of feature {name} are too large for their variance to be computed; use other units"
            ));
        }
        if overflows(&y_mean, &y_std) {
            return refuse(format!(
                "the targets are too large for their variance to be computed (column `{target}`); use other units"
            ));
        }
        Self::new(x_mean, x_std, y_mean, y_std)
    }

    /// The standardisation that changes nothing.
    ///
    /// # Errors
    /// When `dimension` is 0.
    pub fn identity(dimension: usize) -> Result<Self> {
        Self::new(vec![0.0; dimension], vec![1.0; dimension], 0.0, 1.0)
    }

    /// The number of features.
    pub fn dimension(&self) -> usize {
        self.x_mean.len()
    }

    /// The mean of every feature.
    pub fn x_mean(&self) -> &[f64] {
        &self.x_mean
    }

    /// The standard deviation of every feature.
    pub fn x_std(&self) -> &[f64] {
        &self.x_std
    }

    /// The mean of the targets.
    pub fn y_mean(&self) -> f64 {
        self.y_mean
    }

    /// The standard deviation of the targets.
    pub fn y_std(&self) -> f64 {
        self.y_std
    }

    /// Whether every target was the same number.
    pub fn has_constant_target(&self) -> bool {
        self.y_std == FLOOR
    }

    /// The features that were the same in all examples. Standardisation magnifies their smallest change in another
    /// task a hundred million times, so they deserve a warning.
    pub fn constant_features(&self) -> Vec<usize> {
        (0..self.dimension()).filter(|&feature| self.x_std[feature] == FLOOR).collect()
    }

    /// The task in standardised units, with the same name and `adapt`.
    ///
    /// # Errors
    /// When the task has another number of features, or a number that leaves the range of `f64`.
    pub fn apply(&self, task: &Task) -> Result<Task> {
        let refuse = |message: String| Error::input(format!("task `{}`", task.name()), message);
        if task.dimension() != self.dimension() {
            return Err(refuse(self.wrong_dimension(task.dimension())));
        }
        let standardised = task.map(
            |feature, value| (value - self.x_mean[feature]) / self.x_std[feature],
            |value| (value - self.y_mean) / self.y_std,
        );
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        if finite(standardised.inputs()) && finite(standardised.targets()) {
            Ok(standardised)
        } else {
            Err(refuse("its numbers are too far from those of the observed tasks to be standardised".into()))
        }
    }

    /// Inputs (one, or several in row-major order) in standardised units.
    ///
    /// # Errors
    /// When their length is no multiple of the number of features, or a number leaves the range of `f64`.
    pub fn apply_input(&self, input: &[f64]) -> Result<Vec<f64>> {
        let dimension = self.dimension();
        if !input.len().is_multiple_of(dimension) {
            return Err(Error::input("inputs", self.wrong_dimension(input.len())));
        }
        let standardised: Vec<f64> = input
            .iter()
            .enumerate()
            .map(|(position, value)| {
                (value - self.x_mean[position % dimension]) / self.x_std[position % dimension]
            })
            .collect();
        match standardised.iter().position(|value| !value.is_finite()) {
            None => Ok(standardised),
            Some(position) => Err(Error::input_at(
                "inputs",
                format!("row {}, feature {}", position / dimension, position % dimension),
                format!("{:e} is too far from the observed tasks to be standardised", input[position]),
            )),
        }
    }

    /// A predicted mean in original units.
    pub fn restore_mean(&self, mean: f64) -> f64 {
        self.y_mean + self.y_std * mean
    }

    /// A predicted standard deviation in original units.
    pub fn restore_std(&self, std: f64) -> f64 {
        self.y_std * std
    }

    /// Checks that this belongs to a prior on `dimension` features.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_dimension(&self, dimension: usize) -> Result<()> {
        if self.dimension() == dimension {
            return Ok(());
        }
        Err(Error::input_at(
            "standardisation",
            "x_mean and x_std",
            format!(
                "expected {dimension} numbers each, one a feature of the prior, found {}",
                self.dimension()
            ),
        ))
    }

    fn wrong_dimension(&self, found: usize) -> String {
        format!("expected {} as in the observed tasks, found {found}", counted(self.dimension(), "feature"))
    }
}

/// Mean and standard deviation (divided by the count, plus the floor) in two passes, which cancel less than one.
fn moments<'a, I: Iterator<Item = &'a f64>>(values: impl Fn() -> I) -> (f64, f64) {
    let count = values().count() as f64;
    let mean = values().sum::<f64>() / count;
    let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let std = variance.sqrt();
    // In small units the absolute floor would drown the data, so there it is relative; nothing but a constant gets FLOOR.
    (mean, if std > 1e-14 * mean.abs() { std + FLOOR * std.min(1.0) } else { FLOOR })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tasks() -> Vec<Task> {
        vec![
            Task::new("a", 2, vec![0.0, 5.0, 2.0, 5.0, 4.0, 5.0], vec![1.0, 2.0, 3.0]).unwrap(),
            Task::new("b", 2, vec![6.0, 5.0], vec![6.0]).unwrap().with_adapt(vec![0]).unwrap(),
        ]
    }

    #[test]
    fn fit_pools_all_examples_and_divides_by_their_count() {
        let fitted = Standardisation::fit(&tasks()).unwrap();
        // x0 = 0, 2, 4, 6: mean 3, variance (9 + 1 + 1 + 9) / 4 = 5. y = 1, 2, 3, 6: mean 3, variance 14 / 4.
        assert_eq!(fitted.x_mean(), [3.0, 5.0]);
        assert_eq!(fitted.x_std(), [5f64.sqrt() + 1e-8, 1e-8]);
        assert_eq!((fitted.y_mean(), fitted.y_std()), (3.0, 3.5f64.sqrt() + 1e-8));
        assert_eq!(fitted.constant_features(), [1]);
    }

    #[test]
    fn what_is_added_to_a_small_deviation_is_a_part_of_it() {
        // x = 1, 1.2: deviation 0.1. y = 1e-12, 3e-12: deviation 1e-12, which 1e-8 would drown.
        let task = Task::new("a", 1, vec![1.0, 1.2], vec![1e-12, 3e-12]).unwrap();
        let fitted = Standardisation::fit(std::slice::from_ref(&task)).unwrap();
        assert!((fitted.x_std()[0] - 0.1 * (1.0 + 1e-8)).abs() < 1e-16, "{}", fitted.x_std()[0]);
        assert!((fitted.y_std() / 1e-12 - (1.0 + 1e-8)).abs() < 1e-14, "{}", fitted.y_std());
        assert!(!fitted.has_constant_target() && fitted.constant_features().is_empty());
    }

    #[test]
    fn apply_keeps_name_and_adapt() {
        let fitted = Standardisation::fit(&tasks()).unwrap();
        let applied = fitted.apply(&tasks()[1]).unwrap();
        assert_eq!((applied.name(), applied.adapt()), ("b", Some(&[0][..])));
        assert_eq!(applied.inputs(), fitted.apply_input(&[6.0, 5.0]).unwrap());
        assert!((applied.input(0)[0] - 3.0 / 5f64.sqrt()).abs() < 1e-7);
        assert_eq!(Standardisation::identity(2).unwrap().apply(&tasks()[0]).unwrap(), tasks()[0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let message = |result: Result<Task>| result.unwrap_err().to_string();
        let fitted = Standardisation::fit(&tasks()).unwrap();
        let narrow = Task::new("c", 1, vec![1.0], vec![1.0]).unwrap();
        assert_eq!(
            message(fitted.apply(&narrow)),
            "task `c`: expected 2 features as in the observed tasks, found 1"
        );
        let far = Task::new("far", 2, vec![0.0, 1e303], vec![1.0]).unwrap();
        assert!(message(fitted.apply(&far)).contains("too far"));
        assert!(fitted.apply_input(&[1.0]).unwrap_err().to_string().contains("expected 2 features"));
        let refusal = fitted.apply_input(&[0.0, 5.0, 0.0, -1e303]).unwrap_err().to_string();
        assert!(refusal.contains("row 1, feature 1: -1e303"), "{refusal}");
        assert!(fitted.check_dimension(2).is_ok());
        assert!(fitted.check_dimension(3).unwrap_err().to_string().contains("expected 3 numbers each"));

        let refusal = |tasks: &[Task]| Standardisation::fit(tasks).unwrap_err().to_string();
        assert!(refusal(&[]).contains("no task"));
        assert!(refusal(&[tasks()[0].clone(), narrow]).contains("task `c` has 1 feature and task `a` has 2"));
        let huge = Task::new("d", 1, vec![1e200, -1e200], vec![1.0, 1.0]).unwrap();
        assert!(refusal(&[huge]).contains("feature 0 are too large"));
        let huge = Task::new("d", 1, vec![1.0, 1.0], vec![f64::MAX, f64::MAX]).unwrap();
        assert!(refusal(&[huge]).contains("targets are too large"));
    }

    #[test]
    fn files_are_not_believed() {
        let parse = |text: &str| serde_json::from_str::<Standardisation>(text).map_err(|e| e.to_string());
        assert!(parse(r#"{"x_mean": [1.5], "x_std": [2.5], "y_mean": 0.5, "y_std": 1.0}"#).is_ok());
        for (text, expected) in [
            (r#"{"x_mean": [], "x_std": [], "y_mean": 0, "y_std": 1}"#, "found 0 and 0"),
            (r#"{"x_mean": [0], "x_std": [1, 1], "y_mean": 0, "y_std": 1}"#, "found 1 and 2"),
            (
                r#"{"x_mean": [0, 0], "x_std": [1, 0], "y_mean": 0, "y_std": 1}"#,
                "x_std[1]: expected a positive",
            ),
            (r#"{"x_mean": [0], "x_std": [1], "y_mean": 0, "y_std": -1}"#, "y_std: expected a positive"),
            (r#"{"x_mean": [0], "x_std": [1], "y_mean": null, "y_std": 1}"#, "null"),
            (r#"{"x_mean": [0], "x_std": [1], "y_mean": 0, "y_std": 1, "z": 1}"#, "unknown field `z`"),
            (r#"{"x_mean": [0], "x_std": [1], "y_mean": 0}"#, "missing field `y_std`"),
            ("3", "expected an object with `x_mean`"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        let message = Standardisation::new(vec![f64::INFINITY], vec![1.0], 0.0, 1.0).unwrap_err().to_string();
        assert_eq!(message, "standardisation, x_mean[0]: expected a finite number, found inf");
    }

    proptest! {
        #[test]
        fn applying_and_restoring_gives_the_targets_back(
            targets in prop::collection::vec(-1e6..1e6f64, 2..20),
        ) {
            let inputs: Vec<f64> = targets.iter().map(|y| y * 3.0 - 1.0).collect();
            let task = Task::new("a", 1, inputs, targets.clone()).unwrap();
            let fitted = Standardisation::fit(std::slice::from_ref(&task)).unwrap();
            let applied = fitted.apply(&task).unwrap();
            let spread = fitted.y_std() + fitted.y_mean().abs();
            for (standardised, original) in applied.targets().iter().zip(&targets) {
                prop_assert!((fitted.restore_mean(*standardised) - original).abs() <= 1e-12 * spread);
            }
            prop_assert_eq!(fitted.restore_std(2.0), 2.0 * fitted.y_std());
            let written = serde_json::to_string(&fitted).unwrap();
            prop_assert_eq!(serde_json::from_str::<Standardisation>(&written).unwrap(), fitted);
        }
    }
}
