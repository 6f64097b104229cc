//! Predictions beside the queries they answer.

use std::io::Write;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Format, Queries};
use crate::error::{Error, Result};

/// The 97.5 % quantile of the standard normal distribution.
const QUANTILE: f64 = 1.959_963_984_540_054;

const ADDED: [&str; 4] = ["mean", "std", "lower95", "upper95"];

/// A prediction of the target at one input, in original units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prediction {
    /// The predictive mean.
    pub mean: f64,
    /// The predictive standard deviation of the target (not of the function).
    pub std: f64,
    /// The lower end of the central 95 % interval.
    pub lower95: f64,
    /// The upper end of the central 95 % interval.
    pub upper95: f64,
}

impl Prediction {
    /// The prediction of a normal predictive distribution.
    pub fn normal(mean: f64, std: f64) -> Self {
        Self { mean, std, lower95: mean - QUANTILE * std, upper95: mean + QUANTILE * std }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Map::is_empty")]
    columns: Map<String, Value>,
    x: &'a [f64],
    #[serde(flatten)]
    prediction: &'a Prediction,
}

#[derive(Serialize)]
struct Answers<'a> {
    features: Vec<&'a str>,
    predictions: Vec<Answer<'a>>,
}

/// Writes predictions, one for each query.
///
/// CSV: the columns of the queries as they were, then `mean`, `std`, `lower95` and `upper95`; where a column has one of
/// these names already, all four begin with `predicted_`. JSON: `{"features": [...], "predictions": [{"x": [...],
/// "mean": ..., "std": ..., "lower95": ..., "upper95": ...}]}`, and the other columns of a CSV as texts under `columns`.
/// `destination` names the file in messages.
///
/// # Errors
/// When there are not as many predictions as queries, or writing fails.
pub fn write_predictions(
    destination: &str,
    writer: impl Write,
    format: Format,
    queries: &Queries,
    predictions: &[Prediction],
) -> Result<()> {
    if predictions.len() != queries.len() {
        return Err(Error::input(
            destination,
            format!("expected {} predictions, one a query, found {}", queries.len(), predictions.len()),
        ));
    }
    let written = match format {
        Format::Csv => write_csv(writer, queries, predictions),
        Format::Json => write_json(writer, queries, predictions),
    };
    written.map_err(|source| Error::io("write", destination, source))
}

fn write_csv(writer: impl Write, queries: &Queries, predictions: &[Prediction]) -> std::io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(writer);
    let mut added = ADDED.map(str::to_string);
    while added.iter().any(|name| queries.columns().contains(name)) {
        added = added.map(|name| format!("predicted_{name}"));
    }
    writer.write_record(queries.columns().iter().chain(&added))?;
    for (index, prediction) in predictions.iter().enumerate() {
        let Prediction { mean, std, lower95, upper95 } = prediction;
        let numbers = [mean, std, lower95, upper95].map(|number| format!("{number:?}"));
        writer.write_record(queries.fields(index).chain(numbers.iter().map(String::as_str)))?;
    }
    writer.flush()
}

fn write_json(mut writer: impl Write, queries: &Queries, predictions: &[Prediction]) -> std::io::Result<()> {
    let others: Vec<usize> =
        (0..queries.columns.len()).filter(|column| !queries.features.contains(column)).collect();
    let answer = |(index, prediction): (usize, _)| Answer {
        columns: others
            .iter()
            .map(|&column| {
                (queries.columns[column].clone(), Value::from(queries.records.field(index, column)))
            })
            .collect(),
        x: queries.input(index),
        prediction,
    };
    let answers = Answers {
        features: queries.features.iter().map(|&column| queries.columns[column].as_str()).collect(),
        predictions: predictions.iter().enumerate().map(answer).collect(),
    };
    serde_json::to_writer(&mut writer, &answers)?;
    writer.write_all(b"\n")?;
    writer.flush()
}
