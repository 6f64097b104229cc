//! `pacmeta train` and `pacmeta report` on texts.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::config::{AnyConfig, TextConfig};
use pacmeta::report::study_page;
use pacmeta::text::{TextExperiment, TextRunFiles, TextRunScores, TextScores, text_report};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::{Map, Value, json};

use super::train::COMMAND_FILE;
use crate::arguments::Train;
use crate::classification_progress::ClassificationProgress;
use crate::output::{command_line, print, print_json, remark, warn};
use crate::progress::Verbosity;
use crate::table::Table;

pub(super) fn train(config: TextConfig, arguments: &Train, out: &Path) -> Result<()> {
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let start = Instant::now();
    let (experiment, notes) = TextExperiment::prepare(config)?;
    notes.iter().for_each(|note| warn(note));
    let mut progress = ClassificationProgress::new(out, verbosity, &MultiProgress::new());
    let run = experiment.train_and_score_in(out, &mut progress);
    progress.finish();
    let (outcome, scores) = run.inspect_err(|error| {
        if let Error::Interrupted { .. } = error {
            remark(&format!("a checkpoint is in {}", out.join("checkpoints").display()));
        }
    })?;
    let seconds = start.elapsed().as_secs_f64();
    if outcome.iterations > 0 || !out.join(COMMAND_FILE).exists() {
        write_atomically(out.join(COMMAND_FILE), format!("{}\n", command_line()).as_bytes())?;
    }
    let report = write_report(&TextRunFiles::read(out)?)?;
    let prior = out.join("prior.safetensors");
    let total = experiment.config().training.iterations;
    if arguments.json {
        let mut map = scores_json(experiment.config(), &scores);
        map.insert("run".into(), json!(out.display().to_string()));
        map.insert("iterations".into(), json!(total));
        map.insert("iterations_now".into(), json!(outcome.iterations));
        map.insert("seconds".into(), json!(seconds));
        map.insert("prior".into(), json!(prior.display().to_string()));
        map.insert("report".into(), json!(report.display().to_string()));
        return print_json(&map);
    }
    let mut text = match outcome.iterations {
        0 => format!("The run in {} is finished ({total} iterations).\n", out.display()),
        made => format!("Trained {made} iterations; {seconds:.1} s in all.\n"),
    };
    text.push_str(&in_words(experiment.config(), &scores));
    text.push_str(&format!("\nprior    {}\nreport   {}\n", prior.display(), report.display()));
    print(&text)
}

/// Draws the report of a run on texts anew; false if the folder holds none.
pub(super) fn report_of_run(folder: &Path, as_json: bool) -> Result<bool> {
    let config = folder.join("config.toml");
    if !config.exists() || !matches!(AnyConfig::read(&config, &[]), Ok(AnyConfig::Text(_))) {
        return Ok(false);
    }
    let run = TextRunFiles::read(folder)?;
    let report = write_report(&run)?;
    if as_json {
        let mut map = run.scores.as_ref().map_or_else(Map::new, |scores| scores_json(&run.config, scores));
        map.insert("report".into(), json!(report.display().to_string()));
        print_json(&map)?;
    } else {
        print(&format!("{}\n", report.display()))?;
    }
    Ok(true)
}

fn write_report(run: &TextRunFiles) -> Result<PathBuf> {
    let command = std::fs::read_to_string(run.folder.join(COMMAND_FILE)).ok();
    let report = text_report(run, command.map(|text| text.trim().to_owned()));
    let path = run.folder.join("report.html");
    write_atomically(&path, study_page(&report).as_bytes())?;
    Ok(path)
}

/// The average accuracy of each number of shots.
fn averages(scores: &TextScores) -> Vec<(usize, f64, Option<f64>)> {
    let names = scores.tasks();
    let average =
        |shots| scores.average(&names, shots).map(|mean| (shots, mean.accuracy, mean.standard_error));
    scores.shots().into_iter().filter_map(average).collect()
}

/// The scores in words.
fn in_words(config: &TextConfig, scores: &TextRunScores) -> String {
    let names = scores.model.tasks();
    if names.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(["accuracy on tasks not learned from (%)", config.method.kind.title(), "pretrained only"]);
    for ((shots, ours, error), (_, theirs, their_error)) in
        averages(&scores.model).into_iter().zip(averages(&scores.pretrained))
    {
        let cell = |value: f64, error: Option<f64>| match error {
            Some(error) => format!("{:.1} ± {:.1}", 100.0 * value, 100.0 * error),
            None => format!("{:.1}", 100.0 * value),
        };
        table.row([format!("{shots} a class"), cell(ours, error), cell(theirs, their_error)]);
    }
    format!(
        "\nHeld-out tasks: {}. Means over tasks and draws, with standard errors over draws.\n\n{}",
        names.join(", "),
        table.render()
    )
}

/// The scores for `--json`; those of single draws are in the run's folder.
fn scores_json(config: &TextConfig, scores: &TextRunScores) -> Map<String, Value> {
    let of = |scores: &TextScores| -> Vec<Value> {
        averages(scores)
            .into_iter()
            .map(|(shots, accuracy, error)| json!({"shots": shots, "accuracy": accuracy, "standard_error": error}))
            .collect()
    };
    let mut map = Map::new();
    map.insert("method".into(), json!(config.method.kind));
    map.insert("tasks".into(), json!(scores.model.tasks()));
    map.insert("scores".into(), json!(of(&scores.model)));
    map.insert("pretrained".into(), json!(of(&scores.pretrained)));
    map
}
