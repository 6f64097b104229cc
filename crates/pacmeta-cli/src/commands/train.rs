//! `pacmeta train`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::config::{AnyConfig, Config, located};
use pacmeta::experiment::{Experiment, Outcome};
use pacmeta::methods::Resample;
use pacmeta::report::{RunResults, assemble, page};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use pacmeta_tensor::Key;

use super::bound_table::bounds_of_runs;
use super::inputs::first_of;
use super::scores::{heading, rows_of, run_json, score_table, temperature_line, wrapped};
use super::trained::{Trained, remember_command, remembered_command, tell_checkpoint};
use crate::arguments::Train;
use crate::output::{bold, remark, warn};
use crate::progress::{Progress, Verbosity};

pub(crate) fn run(arguments: &Train) -> Result<()> {
    let overrides = arguments.overrides.all();
    let config = AnyConfig::read(&arguments.config, &overrides)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(stem(&arguments.config)?),
    };
    let outcome = match config {
        AnyConfig::Regression(config) => regression(*config, arguments, &out),
        AnyConfig::Images(config) => super::images::train(*config, arguments, &out),
        AnyConfig::Text(config) => super::text::train(*config, arguments, &out),
        _ => Err(Error::input(arguments.config.display(), "is for another version of pacmeta")),
    };
    outcome.map_err(|error| located(error, &arguments.config, &overrides))
}

fn regression(config: Config, arguments: &Train, out: &Path) -> Result<()> {
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let start = Instant::now();
    let experiment = prepare(config)?;
    warn_about(&experiment);
    tell_of_marks(&experiment, verbosity);
    let (results, outcome_iterations) = train_in(experiment, out, verbosity, &MultiProgress::new())?;
    let seconds = start.elapsed().as_secs_f64();
    let report = write_report(&results, out, outcome_iterations > 0)?;
    let iterations = [results.experiment.config().training.iterations, outcome_iterations];
    Trained { out, iterations, seconds, report }.print(
        arguments.json,
        || run_json(&results),
        || in_words(&results),
    )
}

fn in_words(results: &RunResults) -> Result<String> {
    let mut text = heading(results);
    if !results.scores.is_empty() {
        text.push_str(&format!("\n{}\n", score_table(rows_of(results))));
    }
    text.extend(results.verdict().map(|verdict| wrapped(&verdict.to_string(), "")));
    text.extend(temperature_line(results)?.map(|line| wrapped(&format!("Temperatures of {line}"), "")));
    let bounds = bounds_of_runs(std::slice::from_ref(results));
    if !bounds.is_empty() {
        text.push_str(&format!("\n{}\n{bounds}", bold("The bound on a new task's risk, term by term")));
    }
    Ok(text)
}

/// Draws or reads the tasks of a run and checks that they will do, before anything is written or searched for.
pub(super) fn prepare(config: Config) -> Result<Experiment> {
    let experiment = Experiment::prepare(config)?;
    experiment.sampler(Key::new(experiment.config().seed)).check(experiment.observed())?;
    Ok(experiment)
}

/// Trains or continues a run, tells what the user should know, and scores it. Also the number of iterations made.
pub(super) fn train_in(
    experiment: Experiment,
    out: &Path,
    verbosity: Verbosity,
    bars: &MultiProgress,
) -> Result<(RunResults, u64)> {
    let mut progress = Progress::new(out, verbosity, bars);
    let outcome = experiment.train_in(out, &mut progress);
    progress.finish();
    let Outcome { model, choice, iterations } =
        outcome.inspect_err(|error| bars.suspend(|| tell_checkpoint(error, out)))?;
    let results = RunResults::new(experiment, model, choice, out)?;
    let constant = results.constant_features();
    if !constant.is_empty() {
        let names = constant.join(", ");
        let text = format!("features that are constant in all observed tasks, and tell nothing: {names}");
        bars.suspend(|| warn(&text));
    }
    Ok((results, iterations))
}

/// Tasks that are not used.
pub(super) fn warn_about(experiment: &Experiment) {
    let left_out = experiment.left_out();
    if !left_out.is_empty() {
        let names = first_of(left_out);
        let (tasks, have) = if left_out.len() == 1 { ("task", "has") } else { ("tasks", "have") };
        warn(&format!(
            "{} {tasks} left out, which {have} fewer examples than `data.min_examples`: {names}",
            left_out.len()
        ));
    }
    if experiment.scored().is_empty() {
        warn("no task is held out (`data.held_out` = 0), so nothing will be scored");
    }
}

/// Whether the subsets that a table marks are those of training.
pub(super) fn tell_of_marks(experiment: &Experiment, verbosity: Verbosity) {
    let Some((marked, resample)) = experiment.marked_subsets() else { return };
    let tasks = format!("{marked} of {} observed tasks mark S' by `adapt`", experiment.observed().len());
    match resample {
        Resample::EachIteration => warn(&format!(
            "{tasks}, which {} does not use: `method.resample` is \"each_iteration\", so that S' is drawn anew; \"fixed\" uses it",
            experiment.config().method.kind
        )),
        Resample::Fixed if verbosity == Verbosity::Normal => remark(&format!(
            "{tasks}: {} learns with these subsets (`method.resample` is \"fixed\"), and `method.subset` counts for the other \
             tasks only",
            experiment.config().method.kind
        )),
        Resample::Fixed => {}
    }
}

/// Writes the report of a run into its folder. The command is that of the call that trained.
pub(super) fn write_report(results: &RunResults, out: &Path, trained: bool) -> Result<PathBuf> {
    remember_command(out, trained)?;
    rewrite_report(results, out)
}

/// Writes the report of a run into its folder.
pub(super) fn rewrite_report(results: &RunResults, out: &Path) -> Result<PathBuf> {
    let report = assemble(std::slice::from_ref(results), remembered_command(out))?;
    let path = out.join("report.html");
    write_atomically(&path, page(&report).as_bytes())?;
    Ok(path)
}

/// The name of a configuration file without its ending.
pub(super) fn stem(config: &Path) -> Result<String> {
    let stem = config.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty())
        .ok_or_else(|| Error::input(config.display(), "expected the path of a TOML file"))
}
