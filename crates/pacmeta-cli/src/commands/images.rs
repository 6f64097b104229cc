//! `pacmeta train` and `pacmeta report` on pictures.

use std::path::Path;
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::Result;
use pacmeta::config::{AnyConfig, ImageConfig};
use pacmeta::images::report::image_report;
use pacmeta::images::{ImageExperiment, ImageRunFiles, ImageScores, ScoredRun};
use pacmeta::report::StudyReport;
use serde_json::{Map, Value, json};

use super::trained::{ClassificationRun, Trained, remember_command, tell_checkpoint};
use crate::arguments::Train;
use crate::classification_progress::ClassificationProgress;
use crate::progress::Verbosity;

pub(super) fn train(config: ImageConfig, arguments: &Train, out: &Path) -> Result<()> {
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let start = Instant::now();
    let mut progress = ClassificationProgress::new(out, verbosity, &MultiProgress::new());
    let (experiment, notes) = ImageExperiment::prepare(config, &mut progress)?;
    notes.iter().for_each(|note| progress.say(note));
    let ScoredRun { outcome, scores } = train_in(&experiment, out, &mut progress)?;
    let seconds = start.elapsed().as_secs_f64();
    remember_command(out, outcome.iterations > 0)?;
    let run = ImageRunFiles::read(out)?;
    let report = run.write_report()?;
    let iterations = [experiment.config().training.iterations, outcome.iterations];
    Trained { out, iterations, seconds, report }.print(
        arguments.json,
        || Ok(run.scores_json()),
        || Ok(in_words(experiment.config(), &scores)),
    )
}

/// Trains or continues a run and scores it.
pub(super) fn train_in(
    experiment: &ImageExperiment,
    out: &Path,
    progress: &mut ClassificationProgress,
) -> Result<ScoredRun> {
    experiment.remarks().iter().for_each(|remark| progress.say(remark));
    let run = experiment.train_and_score_in(out, progress);
    progress.finish();
    run.inspect_err(|error| tell_checkpoint(error, out))
}

impl ClassificationRun for ImageRunFiles {
    fn is_configured_by(config: &AnyConfig) -> bool {
        matches!(config, AnyConfig::Images(_))
    }

    fn read(folder: &Path) -> Result<Self> {
        Self::read(folder)
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn page(&self, command: Option<String>) -> StudyReport {
        image_report(self, command)
    }

    fn scores_json(&self) -> Map<String, Value> {
        let Some(scores) = &self.scores else { return Map::new() };
        let mut map = match json!(scores) {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        map.remove("per_task");
        map.insert("method".into(), json!(self.config.method.kind));
        map
    }
}

/// The scores in words.
fn in_words(config: &ImageConfig, scores: &ImageScores) -> String {
    let percent =
        |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{:.2}", 100.0 * value));
    format!(
        "\n{}, {}-way {}-shot, {} test tasks of {} queries\n\n  accuracy           {:.2} %, standard error {}, 95 % interval ± {}\n  \
         log-likelihood     {:.4} a query (chance: {:.4})\n  calibration error  {:.2} %\n",
        config.method.kind.title(),
        config.data.way,
        config.data.support,
        scores.tasks,
        scores.queries,
        100.0 * scores.accuracy,
        percent(scores.accuracy_standard_error),
        percent(scores.accuracy_interval95),
        scores.log_likelihood,
        -(config.data.way as f64).ln(),
        100.0 * scores.calibration_error,
    )
}
