//! `pacmeta train` and `pacmeta report` on pictures.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::classification::report::image_report;
use pacmeta::classification::{ImageExperiment, ImageRunFiles, ImageScores, ScoredRun};
use pacmeta::config::{AnyConfig, ImageConfig};
use pacmeta::report::study_page;
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::{Map, Value, json};

use super::train::COMMAND_FILE;
use crate::arguments::Train;
use crate::classification_progress::ClassificationProgress;
use crate::output::{command_line, print, print_json, remark};
use crate::progress::Verbosity;

pub(super) fn train(config: ImageConfig, arguments: &Train, out: &Path) -> Result<()> {
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let start = Instant::now();
    let mut progress = ClassificationProgress::new(out, verbosity, &MultiProgress::new());
    let (experiment, notes) = ImageExperiment::prepare(config, &mut progress)?;
    notes.iter().for_each(|note| progress.say(note));
    let ScoredRun { outcome, scores } = train_in(&experiment, out, &mut progress)?;
    let seconds = start.elapsed().as_secs_f64();
    if outcome.iterations > 0 || !out.join(COMMAND_FILE).exists() {
        write_atomically(out.join(COMMAND_FILE), format!("{}\n", command_line()).as_bytes())?;
    }
    let report = write_report(&ImageRunFiles::read(out)?)?;
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

/// Trains or continues a run and scores it.
pub(super) fn train_in(
    experiment: &ImageExperiment,
    out: &Path,
    progress: &mut ClassificationProgress,
) -> Result<ScoredRun> {
    let run = experiment.train_and_score_in(out, progress);
    progress.finish();
    run.inspect_err(|error| {
        if let Error::Interrupted { .. } = error {
            remark(&format!("a checkpoint is in {}", out.join("checkpoints").display()));
        }
    })
}

/// Draws the report of a run on pictures anew; false if the folder holds none.
pub(super) fn report_of_run(folder: &Path, as_json: bool) -> Result<bool> {
    let config = folder.join("config.toml");
    if !config.exists() || !matches!(AnyConfig::read(&config, &[]), Ok(AnyConfig::Images(_))) {
        return Ok(false);
    }
    let run = ImageRunFiles::read(folder)?;
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

fn write_report(run: &ImageRunFiles) -> Result<PathBuf> {
    let command = std::fs::read_to_string(run.folder.join(COMMAND_FILE)).ok();
    let report = image_report(run, command.map(|text| text.trim().to_owned()));
    let path = run.folder.join("report.html");
    write_atomically(&path, study_page(&report).as_bytes())?;
    Ok(path)
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

/// The scores for `--json`; those of single tasks are in the run's folder.
fn scores_json(config: &ImageConfig, scores: &ImageScores) -> Map<String, Value> {
    let mut map = match json!(scores) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    map.remove("per_task");
    map.insert("method".into(), json!(config.method.kind));
    map
}
