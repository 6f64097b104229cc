//! Inputs at which somebody wants predictions.

use std::path::Path;

use super::{FeatureNames, Format, csv, json, read_bytes};
use crate::error::Result;

/// Inputs to predict at, with everything else that their file says about them, so that it can be written out again.
#[derive(Debug, Clone, PartialEq)]
pub struct Queries {
    pub(super) format: Format,
    pub(super) columns: Vec<String>,
    pub(super) records: Records,
    pub(super) features: Vec<usize>,
    pub(super) inputs: Vec<f64>,
}

impl Queries {
    /// The number of inputs.
    #[allow(clippy::len_without_is_empty)] // queries are never empty
    pub fn len(&self) -> usize {
        self.records.rows()
    }

    /// The number of features of an input.
    pub fn dimension(&self) -> usize {
        self.features.len()
    }

    /// All inputs in row-major order, features in the prior's order.
    pub fn inputs(&self) -> &[f64] {
        &self.inputs
    }

    /// The input of row `index`.
    pub fn input(&self, index: usize) -> &[f64] {
        &self.inputs[index * self.dimension()..(index + 1) * self.dimension()]
    }

    /// The format that the queries came in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The names of all columns of the file, features or not.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The fields of row `index` as they were written, one a column.
    pub fn fields(&self, index: usize) -> impl Iterator<Item = &str> {
        (0..self.columns.len()).map(move |column| self.records.field(index, column))
    }
}

/// Fields of text in rows of one width, in one buffer: a string a field would take many times the memory of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Records {
    width: usize,
    text: String,
    ends: Vec<usize>,
}

impl Records {
    /// No rows yet; `width` is the number of fields a row.
    pub(super) fn new(width: usize) -> Self {
        Self { width, text: String::new(), ends: Vec::new() }
    }

    /// Adds the next field.
    pub(super) fn push(&mut self, field: &str) {
        self.text.push_str(field);
        self.ends.push(self.text.len());
    }

    /// The number of complete rows.
    pub(super) fn rows(&self) -> usize {
        self.ends.len() / self.width
    }

    /// The field of a row and a column.
    pub(super) fn field(&self, row: usize, column: usize) -> &str {
        let place = row * self.width + column;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[start..self.ends[place]]
    }
}

/// Reads queries from a CSV or JSON file; `-` is standard input. See [`parse_queries`].
///
/// # Errors
/// When the file cannot be read, or as for [`parse_queries`].
pub fn read_queries(path: impl AsRef<Path>, feature_names: &[String]) -> Result<Queries> {
    let (origin, bytes) = read_bytes(path.as_ref())?;
    parse_queries(&origin, &bytes, feature_names)
}

/// Queries from a CSV with the features among its columns, or from JSON: `{"x": [[...], ...]}` (with an optional
/// `features`) or the bare list.
///
/// # Errors
/// When a feature is missing, a value is not a finite number or there is no row.
pub fn parse_queries(origin: &str, bytes: &[u8], feature_names: &[String]) -> Result<Queries> {
    parse_queries_for(origin, bytes, &FeatureNames::Prior(feature_names.to_vec()))
}

/// The same for a support that was read before, with the names that [`parse_support_of`](super::parse_support_of) gave.
///
/// # Errors
/// As for [`parse_queries`].
pub fn parse_queries_for(origin: &str, bytes: &[u8], wanted: &FeatureNames) -> Result<Queries> {
    match Format::of(origin, bytes) {
        Format::Csv => csv::queries(origin, bytes, wanted),
        Format::Json => json::queries(origin, bytes, wanted),
    }
}
