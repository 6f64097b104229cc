//! The numbers of a study as files beside its page.

use serde_json::Value;

use crate::error::{Error, Result};

/// A file of numbers beside the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumbersFile {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub what: &'static str,
    /// Its content.
    pub content: String,
}

/// What goes wrong when numbers are written to memory: nothing, in practice.
pub(super) fn failed(problem: impl std::fmt::Display) -> Error {
    Error::input("numbers of the study", problem.to_string())
}

/// A CSV file from values; nothing is written for null.
pub(super) fn csv_of<H: AsRef<[u8]>>(
    header: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = Vec<Value>>,
) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(failed)?;
    for row in rows {
        let fields = row.iter().map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        writer.write_record(fields).map_err(failed)?;
    }
    String::from_utf8(writer.into_inner().map_err(failed)?).map_err(failed)
}
