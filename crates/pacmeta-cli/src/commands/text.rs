//! `pacmeta train` and `pacmeta report` on texts.

use std::path::Path;
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::Result;
use pacmeta::config::{AnyConfig, TextConfig};
use pacmeta::report::StudyReport;
use pacmeta::text::{TextExperiment, TextRunFiles, TextRunScores, TextScores, text_report};
use serde_json::{Map, Value, json};

use super::trained::{ClassificationRun, Trained, remember_command, tell_checkpoint};
use crate::arguments::Train;
use crate::classification_progress::ClassificationProgress;
use crate::output::warn;
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
    let (outcome, scores) = run.inspect_err(|error| tell_checkpoint(error, out))?;
    let seconds = start.elapsed().as_secs_f64();
    remember_command(out, outcome.iterations > 0)?;
    let run = TextRunFiles::read(out)?;
    let report = run.write_report()?;
    let iterations = [experiment.config().training.iterations, outcome.iterations];
    Trained { out, iterations, seconds, report }.print(
        arguments.json,
        || Ok(run.scores_json()),
        || Ok(in_words(experiment.config(), &scores)),
    )
}

impl ClassificationRun for TextRunFiles {
    fn is_configured_by(config: &AnyConfig) -> bool {
        matches!(config, AnyConfig::Text(_))
    }

    fn read(folder: &Path) -> Result<Self> {
        Self::read(folder)
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn page(&self, command: Option<String>) -> StudyReport {
        text_report(self, command)
    }

    fn scores_json(&self) -> Map<String, Value> {
        let Some(scores) = &self.scores else { return Map::new() };
        let of = |scores: &TextScores| -> Vec<Value> {
            averages(scores)
                .into_iter()
                .map(|(shots, accuracy, error)| json!({"shots": shots, "accuracy": accuracy, "standard_error": error}))
                .collect()
        };
        let mut map = Map::new();
        map.insert("method".into(), json!(self.config.method.kind));
        let tasks = scores.model.tasks();
        let queries: Vec<usize> = tasks.iter().map(|task| scores.model.queries(task)).collect();
        map.insert("tasks".into(), json!(tasks));
        map.insert("queries".into(), json!(queries));
        map.insert("scores".into(), json!(of(&scores.model)));
        map.insert("pretrained".into(), json!(of(&scores.pretrained)));
        map
    }
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
    let with_queries = |name: &&str| format!("{name} ({} queries)", scores.model.queries(name));
    let tasks: Vec<String> = names.iter().map(with_queries).collect();
    format!(
        "\nHeld-out tasks: {}. Means over tasks and draws, with standard errors over draws; the queries are the same in all draws.\n\n{}",
        tasks.join(", "),
        table.render()
    )
}
