//! `pacmeta adapt`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use pacmeta::environments::table::{
    FeatureNames, Format, Prediction, SupportTask, parse_queries_for, parse_support_of, read_bytes,
    write_predictions,
};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};

use super::inputs::{check_output, in_files, read_adaptable_model, task_column_of};
use super::{adapt_images, adapt_text};
use crate::arguments::{Adapt, OutputFormat};
use crate::output::print_bytes;

pub(crate) fn run(arguments: &Adapt) -> Result<()> {
    if let Some(model) = adapt_images::model_of(&arguments.run)? {
        return adapt_images::run(model, arguments);
    }
    if let Some(model) = adapt_text::model_of(&arguments.run)? {
        return adapt_text::run(model, arguments);
    }
    let query_path = query_path(arguments)?;
    if let Some(output) = &arguments.output {
        let prior = arguments.run.join("prior.safetensors");
        check_output(output, [&*arguments.support, &*query_path, &*arguments.run, &*prior])?;
    }
    let model = read_adaptable_model(&arguments.run, arguments.temperature)?;
    if arguments.normalisation.is_some() {
        return Err(Error::input("option `--normalisation`", "is for pictures; this run is of tables"));
    }
    refuse_steps(arguments, "tables")?;
    let columns = model.columns();
    let (origin, bytes) = read_bytes(&arguments.support)?;
    let column = arguments.task_column.clone().unwrap_or_else(|| task_column_of(&arguments.run));
    let choice = match &arguments.task {
        Some(name) => SupportTask::Named { column: &column, name },
        None => SupportTask::Only { column: &column },
    };
    let names = FeatureNames::Prior(columns.features);
    let (support, names) = parse_support_of(&origin, &bytes, &names, &columns.target, &choice)?;
    let (origin, bytes) = read_bytes(&query_path)?;
    let queries = parse_queries_for(&origin, &bytes, &names)?;
    let named = |error| in_files(error, &arguments.run, &arguments.support);
    let predictive = model.adapt(&support).map_err(named)?.predict(queries.inputs())?;
    let predictions: Vec<Prediction> = predictive
        .mean
        .iter()
        .zip(&predictive.std)
        .map(|(mean, std)| Prediction::normal(*mean, *std))
        .collect();

    let format = match (arguments.format, arguments.json, arguments.output.as_deref().and_then(extension)) {
        (Some(OutputFormat::Csv), ..) => Format::Csv,
        (Some(OutputFormat::Json), ..) | (_, true, _) => Format::Json,
        (_, _, Some(format)) => format,
        _ => queries.format(),
    };
    let mut text = Vec::new();
    write_predictions("the predictions", &mut text, format, &queries, &predictions)?;
    match &arguments.output {
        Some(output) => write_atomically(output, &text),
        None => print_bytes(&text),
    }
}

/// Steps of Adam are for texts.
pub(super) fn refuse_steps(arguments: &Adapt, of: &str) -> Result<()> {
    let given = [("--steps", arguments.steps.is_some()), ("--rate", arguments.rate.is_some())];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Error::input(format!("option `{option}`"), format!("is for texts; this run is of {of}")))
        }
        None => Ok(()),
    }
}

/// Standard input where no file is named and something is there to be read.
fn query_path(arguments: &Adapt) -> Result<PathBuf> {
    let standard_input = Path::new("-");
    let path = match &arguments.query {
        Some(path) => path.clone(),
        None if std::io::stdin().is_terminal() => {
            return Err(Error::input(
                "option `--query`",
                "expected a file with the inputs to predict at, or inputs on standard input",
            ));
        }
        None => standard_input.to_path_buf(),
    };
    if path == standard_input && arguments.support == standard_input {
        return Err(Error::input(
            "options `--support` and `--query`",
            "only one of them can be standard input; name a file for the other",
        ));
    }
    Ok(path)
}

pub(super) fn extension(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        "json" => Some(Format::Json),
        _ => None,
    }
}
