//! `pacmeta train` and `pacmeta report` on pictures.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::classification::{ImageExperiment, ImageOutcome, ImageScores};
use pacmeta::config::ImageConfig;
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::{Map, Value, json};

use super::train::COMMAND_FILE;
use crate::arguments::Train;
use crate::image_progress::ImageProgress;
use crate::output::{command_line, print, print_json, remark};
use crate::progress::Verbosity;

/// The scores of a run on its test tasks.
pub(super) const SCORES_FILE: &str = "scores.json";

pub(super) fn train(config: ImageConfig, arguments: &Train, out: &Path) -> Result<()> {
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let start = Instant::now();
    let bars = MultiProgress::new();
    let mut progress = ImageProgress::new(out, verbosity, &bars);
    let (experiment, notes) = ImageExperiment::prepare(config, &mut progress)?;
    notes.iter().for_each(|note| progress.say(note));
    let run = train_in(&experiment, out, &mut progress)?;
    let seconds = start.elapsed().as_secs_f64();
    let ImageRun { scores, iterations } = &run;
    let total = experiment.config().training.iterations;
    if arguments.json {
        let mut map = scores_json(scores);
        map.insert("method".into(), json!(experiment.config().method.kind));
        map.insert("run".into(), json!(out.display().to_string()));
        map.insert("iterations".into(), json!(total));
        map.insert("iterations_now".into(), json!(iterations));
        map.insert("seconds".into(), json!(seconds));
        map.insert("prior".into(), json!(out.join("prior.safetensors").display().to_string()));
        return print_json(&map);
    }
    let mut text = match iterations {
        0 => format!("The run in {} is finished ({total} iterations).\n", out.display()),
        made => format!("Trained {made} iterations; {seconds:.1} s in all.\n"),
    };
    text.push_str(&describe(experiment.config(), scores));
    text.push_str(&format!("\nprior    {}\n", out.join("prior.safetensors").display()));
    print(&text)
}

/// What a call of training came to.
pub(super) struct ImageRun {
    pub(super) scores: ImageScores,
    /// Iterations made by this call.
    pub(super) iterations: u64,
}

/// Trains or continues a run and scores it; scores of a finished run are read again.
pub(super) fn train_in(
    experiment: &ImageExperiment,
    out: &Path,
    progress: &mut ImageProgress,
) -> Result<ImageRun> {
    let outcome = experiment.train_in(out, progress);
    progress.finish();
    let ImageOutcome { model, iterations } = outcome.inspect_err(|error| {
        if let Error::Interrupted { .. } = error {
            remark(&format!("a checkpoint is in {}", out.join("checkpoints").display()));
        }
    })?;
    let path = out.join(SCORES_FILE);
    if iterations == 0
        && let Some(scores) = read_scores(&path)
    {
        return Ok(ImageRun { scores, iterations });
    }
    write_atomically(out.join(COMMAND_FILE), format!("{}\n", command_line()).as_bytes())?;
    progress.say(&format!("{}: scoring {} test tasks", out.display(), experiment.config().evaluation.tasks));
    let scores = experiment.scores(&model)?;
    let text = serde_json::to_string(&scores).unwrap_or_default();
    write_atomically(&path, text.as_bytes())?;
    Ok(ImageRun { scores, iterations })
}

fn read_scores(path: &PathBuf) -> Option<ImageScores> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// The scores in words.
fn describe(config: &ImageConfig, scores: &ImageScores) -> String {
    let percent =
        |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{:.2}", 100.0 * value));
    format!(
        "\n{}, {}-way {}-shot, {} test tasks of {} queries\n\n  accuracy           {:.2} %, standard error {}, 95 % interval +- {}\n  \
         log-likelihood     {:.4} a query\n  calibration error  {:.2} %\n",
        config.method.kind.title(),
        config.data.way,
        config.data.support,
        scores.tasks,
        scores.queries,
        100.0 * scores.accuracy,
        percent(scores.accuracy_standard_error),
        percent(scores.accuracy_interval95),
        scores.log_likelihood,
        100.0 * scores.calibration_error,
    )
}

/// The scores for `--json`; those of single tasks are in the run's folder.
fn scores_json(scores: &ImageScores) -> Map<String, Value> {
    match json!(scores) {
        Value::Object(mut map) => {
            map.remove("per_task");
            map
        }
        _ => Map::new(),
    }
}
