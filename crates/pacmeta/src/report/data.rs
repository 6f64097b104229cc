//! What a report is made of: plain data, no drawing.
//!
//! Everything here can be written to JSON and read back, so that a page can be drawn again from a stored record.
//! JSON has no NaN or infinity: they are written as `null`, and `null` is read back as NaN. The charts leave such
//! values out and say in the caption how many there were.

use serde::{Deserialize, Deserializer, Serialize};

/// Everything that one run's page shows. Empty lists and `None` leave their section out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunReport {
    /// Heading of the page.
    pub title: String,
    /// One paragraph that says what was run.
    pub subtitle: String,
    /// The command line that reproduces the run.
    pub command: Option<String>,
    /// Name and value pairs: method, tasks, examples, iterations, time, seed, version.
    pub facts: Vec<(String, String)>,
    /// Training curves, all in the same quantity.
    pub curve: Vec<CurveSeries>,
    /// The quantity of the training curves, with its unit if it has one.
    pub curve_label: String,
    /// Scores on target tasks, one row a predictor, floors included.
    pub scores: Vec<ScoreRow>,
    /// Calibration curves.
    pub calibration: Vec<CalibrationSeries>,
    /// What the calibration curves count.
    pub calibration_kind: CalibrationKind,
    /// Predictions on single tasks with one input.
    pub predictions: Vec<PredictionPanel>,
    /// Predictions on tasks with several inputs: predicted against observed.
    pub observed: Vec<ObservedPanel>,
    /// The objective or bound, term by term.
    pub bound: Option<BoundPanel>,
    /// The bound that holds with high probability, term by term, beside an objective.
    pub guarantee: Option<BoundPanel>,
    /// Remarks a reader should know, one paragraph each.
    pub notes: Vec<String>,
    /// Files that belong to the run.
    pub files: Vec<FileLink>,
}

/// One training curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurveSeries {
    /// Name in the legend.
    pub name: String,
    /// (iteration, value), in order of iteration.
    #[serde(deserialize_with = "pairs")]
    pub points: Vec<(f64, f64)>,
}

/// Scores of one predictor, averaged over target tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreRow {
    /// Name of the predictor.
    pub name: String,
    /// A few words on what it is, shown under the name.
    pub note: Option<String>,
    /// Root mean squared error per task, averaged over tasks.
    #[serde(deserialize_with = "number")]
    pub rmse: f64,
    /// Standard error of that average.
    #[serde(deserialize_with = "number")]
    pub rmse_standard_error: f64,
    /// Log-density of the query points per point, averaged over tasks.
    pub log_likelihood: Option<f64>,
    /// Root mean square distance between nominal and observed levels.
    pub calibration_error: Option<f64>,
    /// Part of the query points inside the central 95% interval.
    #[serde(default)]
    pub coverage95: Option<f64>,
    /// How many target tasks the averages are over.
    pub tasks: usize,
}

/// What a calibration curve counts; the reading of its shape depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalibrationKind {
    /// Fraction of observations whose predictive distribution function is at most the level.
    #[default]
    Quantile,
    /// Fraction of observations inside the central interval of that probability.
    Interval,
}

/// One calibration curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationSeries {
    /// Name in the legend.
    pub name: String,
    /// (nominal level, observed fraction), both between 0 and 1.
    #[serde(deserialize_with = "pairs")]
    pub points: Vec<(f64, f64)>,
}

/// The predictive distribution at one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GridPoint {
    /// Input.
    #[serde(deserialize_with = "number")]
    pub x: f64,
    /// Predictive mean.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// Predictive standard deviation.
    #[serde(deserialize_with = "number")]
    pub std: f64,
}

/// Predictions on one task with a single input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictionPanel {
    /// Name of the task.
    pub title: String,
    /// What to look for.
    pub caption: String,
    /// Name and unit of the input.
    pub x_label: String,
    /// Name and unit of the target.
    pub y_label: String,
    /// The adapted prediction, in order of x.
    pub grid: Vec<GridPoint>,
    /// The prediction before adaptation, in order of x.
    #[serde(default)]
    pub prior: Option<Vec<GridPoint>>,
    /// Examples the predictor adapted to.
    #[serde(deserialize_with = "pairs")]
    pub support: Vec<(f64, f64)>,
    /// Examples kept for scoring.
    #[serde(deserialize_with = "pairs")]
    pub query: Vec<(f64, f64)>,
    /// The true function, where it is known.
    #[serde(default, deserialize_with = "optional_pairs")]
    pub truth: Option<Vec<(f64, f64)>>,
}

/// Functions that a prior thinks likely, before it has seen any example of a task. Beside it stands, as a rule, the
/// [`PredictionPanel`] of the same prior after adaptation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorPanel {
    /// Which prior.
    pub title: String,
    /// Name and unit of the input.
    pub x_label: String,
    /// Name and unit of the target.
    pub y_label: String,
    /// Functions drawn from the prior, each as (input, value) in order of the input.
    #[serde(deserialize_with = "lists_of_pairs")]
    pub samples: Vec<Vec<(f64, f64)>>,
    /// Mean and standard deviation of the prior, in order of x; may be empty.
    pub grid: Vec<GridPoint>,
    /// A true function to compare with, where it is known.
    #[serde(deserialize_with = "optional_pairs")]
    pub truth: Option<Vec<(f64, f64)>>,
}

/// Predicted against observed values of one task, for inputs of several dimensions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedPanel {
    /// Name of the task.
    pub title: String,
    /// What to look for.
    #[serde(default)]
    pub caption: String,
    /// (observed, predicted mean, predictive standard deviation).
    #[serde(deserialize_with = "triples")]
    pub points: Vec<(f64, f64, f64)>,
}

/// A generalisation bound taken apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundPanel {
    /// Which bound.
    pub title: String,
    /// What it says, with which probability, and under which assumptions.
    pub explanation: String,
    /// One bar a predictor or a setting.
    pub bars: Vec<BoundBar>,
}

/// One bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundBar {
    /// Predictor or setting.
    pub name: String,
    /// The terms in the order of the theorem; a term may be negative.
    pub terms: Vec<BoundTerm>,
    /// Their sum, as computed by the caller; the page says so if the terms do not add up to it.
    #[serde(deserialize_with = "number")]
    pub total: f64,
}

/// One term of a bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundTerm {
    /// Name; terms of the same name share a colour in all bars.
    pub name: String,
    /// Value.
    #[serde(deserialize_with = "number")]
    pub value: f64,
}

/// A file that belongs to the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLink {
    /// Name shown.
    pub name: String,
    /// Address, usually relative to the page. Only relative, `http`, `https` and `file` addresses become links.
    pub href: String,
    /// What the file holds.
    pub what: String,
}

fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Option::deserialize(deserializer).map(or_nan)
}

pub(crate) fn optional_pair<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<(f64, f64)>, D::Error> {
    let raw: Option<(Option<f64>, Option<f64>)> = Option::deserialize(deserializer)?;
    Ok(raw.map(|(low, high)| (or_nan(low), or_nan(high))))
}

fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(f64, f64)>, D::Error> {
    let raw: Vec<(Option<f64>, Option<f64>)> = Vec::deserialize(deserializer)?;
    Ok(raw.into_iter().map(|(x, y)| (or_nan(x), or_nan(y))).collect())
}

fn lists_of_pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<(f64, f64)>>, D::Error> {
    let raw: Vec<Vec<(Option<f64>, Option<f64>)>> = Vec::deserialize(deserializer)?;
    let read = |list: Vec<(Option<f64>, Option<f64>)>| list.into_iter().map(|(x, y)| (or_nan(x), or_nan(y)));
    Ok(raw.into_iter().map(|list| read(list).collect()).collect())
}

fn optional_pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<(f64, f64)>>, D::Error> {
    let raw: Option<Vec<(Option<f64>, Option<f64>)>> = Option::deserialize(deserializer)?;
    Ok(raw.map(|list| list.into_iter().map(|(x, y)| (or_nan(x), or_nan(y))).collect()))
}

fn triples<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(f64, f64, f64)>, D::Error> {
    let raw: Vec<(Option<f64>, Option<f64>, Option<f64>)> = Vec::deserialize(deserializer)?;
    Ok(raw.into_iter().map(|(x, y, s)| (or_nan(x), or_nan(y), or_nan(s))).collect())
}
