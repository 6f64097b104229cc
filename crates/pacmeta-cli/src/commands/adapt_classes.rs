//! Predicted classes as CSV or JSON, for pictures and for texts.

use pacmeta::classification::most_probable;
use pacmeta::environments::table::Format;
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::json;

use super::adapt::extension;
use crate::arguments::{Adapt, OutputFormat};
use crate::output::print_bytes;

/// What was classified as what.
pub(super) struct ClassTable<'a> {
    /// What was classified, in columns with their names.
    pub(super) items: &'a [(&'static str, Vec<String>)],
    /// The classes.
    pub(super) names: &'a [String],
    /// For each item, the probability of each class.
    pub(super) probabilities: &'a [Vec<f32>],
}

/// Writes a table where and how the command asks for it.
pub(super) fn write_classes(arguments: &Adapt, table: &ClassTable<'_>) -> Result<()> {
    let format = match (arguments.format, arguments.json, arguments.output.as_deref().and_then(extension)) {
        (Some(OutputFormat::Json), ..) | (None, true, _) | (None, false, Some(Format::Json)) => Format::Json,
        _ => Format::Csv,
    };
    let text = match format {
        Format::Json => table.as_json(),
        _ => table.as_csv()?,
    };
    match &arguments.output {
        Some(output) => write_atomically(output, &text),
        None => print_bytes(&text),
    }
}

impl ClassTable<'_> {
    fn as_json(&self) -> Vec<u8> {
        let row = |(place, row): (usize, &Vec<f32>)| {
            let probabilities: serde_json::Map<_, _> =
                self.names.iter().zip(row).map(|(name, value)| (name.clone(), json!(value))).collect();
            let predicted = most_probable(row);
            let mut object: serde_json::Map<_, _> =
                self.items.iter().map(|(name, items)| ((*name).to_owned(), json!(items[place]))).collect();
            object.insert("class".into(), json!(self.names[predicted]));
            object.insert("probability".into(), json!(row[predicted]));
            object.insert("probabilities".into(), json!(probabilities));
            object
        };
        let rows: Vec<_> = self.probabilities.iter().enumerate().map(row).collect();
        format!("{:#}\n", json!({ "predictions": rows })).into_bytes()
    }

    fn as_csv(&self) -> Result<Vec<u8>> {
        let failed = |error: csv::Error| Error::input("the predictions", error.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        let columns = self.names.iter().map(|name| format!("p({name})"));
        let items = self.items.iter().map(|(name, _)| *name);
        let header = items.chain(["class", "probability"]).map(str::to_owned).chain(columns);
        writer.write_record(header).map_err(failed)?;
        for (place, row) in self.probabilities.iter().enumerate() {
            let predicted = most_probable(row);
            let items = self.items.iter().map(|(_, items)| items[place].clone());
            let front = items.chain([self.names[predicted].clone(), row[predicted].to_string()]);
            writer.write_record(front.chain(row.iter().map(f32::to_string))).map_err(failed)?;
        }
        writer.into_inner().map_err(|error| Error::input("the predictions", error.to_string()))
    }
}
