//! `pacmeta compare`: the main table.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::bounds::ObjectiveReport;
use pacmeta::config::{Config, located};
use pacmeta::report::{RunResults, assemble, page};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::bound_table::bounds_of_runs;
use super::scores::{
    floors_json, heading, not_a_bound, objective_table, rows_of_all, run_json, score_table, temperature_line,
    wrapped,
};
use super::train::{prepare, stem, tell_of_marks, train_in, warn_about, write_report};
use crate::arguments::Compare;
use crate::interrupt;
use crate::output::{bold, command_line, print, print_json};
use crate::progress::Verbosity;

pub(crate) fn run(arguments: &Compare) -> Result<()> {
    let start = Instant::now();
    let configs = read_configs(arguments)?;
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let repeated =
        |name: &str| configs.iter().filter(|(_, config)| config.method.kind.name() == name).count() > 1;
    refuse_foreign_folder(&arguments.out, &configs)?;
    let mut prepared = Vec::new();
    for ((stem, config), path) in configs.iter().zip(&arguments.configs) {
        let experiment = prepare(config.clone());
        let overrides = arguments.overrides.all();
        prepared.push((stem, experiment.map_err(|error| located(error, path, &overrides))?));
    }
    // The tasks are the same in all.
    prepared.first().into_iter().for_each(|(_, experiment)| warn_about(experiment));
    prepared.iter().for_each(|(_, experiment)| tell_of_marks(experiment, verbosity));
    let bars = MultiProgress::new();
    let outcomes: Vec<Result<RunResults>> = prepared
        .into_par_iter()
        .map(|(stem, experiment)| {
            if interrupt::requested() {
                return Err(Error::Interrupted { iteration: 0 });
            }
            let out = arguments.out.join(stem);
            let (mut results, iterations) = train_in(experiment, &out, verbosity, &bars)?;
            write_report(&results, &out, iterations > 0)?;
            if repeated(&results.name) {
                results.name = stem.clone();
            }
            results.link = format!("{stem}/");
            Ok(results)
        })
        .collect();
    let runs = all_of(outcomes)?;
    let report = arguments.out.join("report.html");
    let html = page(&assemble(&runs, Some(command_line()))?);
    write_atomically(&report, html.as_bytes())?;
    if arguments.json {
        return print_json(&as_json(&runs, &configs, &arguments.out, &report)?);
    }
    let mut text = format!("{}\n", as_text(&runs)?);
    text.push_str(&format!(
        "report   {}   ({:.1} s in all)\n",
        report.display(),
        start.elapsed().as_secs_f64()
    ));
    print(&text)
}

/// All results, else the first failure; interruptions count last, since a failure comes back and they do not.
fn all_of(outcomes: Vec<Result<RunResults>>) -> Result<Vec<RunResults>> {
    let (mut runs, mut interruption) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(run) => runs.push(run),
            Err(error) if error.is_interruption() => interruption = interruption.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    interruption.map_or(Ok(runs), Err)
}

/// The report goes into the folder itself, so the folder must be ours: one of these runs lies in it, or nothing does. What lies
/// in the folders of the runs is for each run to judge.
fn refuse_foreign_folder(out: &Path, configs: &[(String, Config)]) -> Result<()> {
    let refuse = |message: &str| Err(Error::input(out.display(), message));
    if out.join("config.toml").exists() {
        return refuse("is the folder of a run, a comparison needs one of its own; choose another --out");
    }
    if configs.iter().any(|(stem, _)| out.join(stem).join("config.toml").exists()) {
        return Ok(());
    }
    let entries = match std::fs::read_dir(out) {
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(_) if out.is_file() => {
            return refuse("is a file; a comparison needs a folder: choose another --out");
        }
        Err(problem) => return Err(Error::io("read", out, problem)),
        Ok(entries) => entries,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|problem| Error::io("read", out, problem))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let begun = |name: &str| configs.iter().any(|(stem, _)| stem == name) || name.starts_with(".pacmeta-");
    match names.iter().find(|name| !begun(name)) {
        None => Ok(()),
        Some(first) => refuse(&format!(
            "the folder is not empty (`{first}`) and holds none of these runs; choose another --out or an empty folder"
        )),
    }
}

fn as_text(runs: &[RunResults]) -> Result<String> {
    let Some(first) = runs.first() else { return Ok(String::new()) };
    let mut text = heading(first);
    let rows = rows_of_all(runs);
    if !rows.is_empty() {
        text.push_str(&format!("\n{}\n{}", bold("Few-shot predictions"), score_table(rows)));
    }
    let verdicts: Vec<String> = runs
        .iter()
        .filter_map(|run| Some(wrapped(&format!("{}: {}", run.name, run.verdict()?), "  ")))
        .collect();
    if !verdicts.is_empty() {
        text.push_str(&format!("\n{}\n", bold("Did meta-learning help?")));
        text.extend(verdicts);
    }
    let objectives: Vec<(String, &ObjectiveReport)> =
        runs.iter().filter_map(|run| Some((run.name.clone(), run.objective.as_ref()?))).collect();
    if !objectives.is_empty() {
        text.push_str(&format!(
            "\n{}\n{}{}",
            bold("The objective on the observed tasks, term by term"),
            objective_table(&objectives),
            not_a_bound(&first.model)
        ));
    }
    let bounds = bounds_of_runs(runs);
    if !bounds.is_empty() {
        text.push_str(&format!("\n{}\n{bounds}", bold("The bound on a new task's risk, term by term")));
    }
    let mut temperatures = String::new();
    for run in runs {
        temperatures.extend(temperature_line(run)?.map(|line| wrapped(&line, "  ")));
    }
    if !temperatures.is_empty() {
        text.push_str(&format!("\n{}\n{temperatures}", bold("Temperatures")));
    }
    Ok(text)
}

fn as_json(runs: &[RunResults], configs: &[(String, Config)], out: &Path, report: &Path) -> Result<Value> {
    let mut list = Vec::new();
    for (run, (stem, _)) in runs.iter().zip(configs) {
        let mut map = run_json(run)?;
        map.insert("run".into(), json!(out.join(stem).display().to_string()));
        list.push(Value::Object(map));
    }
    let floors = runs.first().map(|run| floors_json(run)["plain_gp"].clone());
    Ok(json!({
        "seed": runs.first().map(|run| run.experiment.config().seed),
        "runs": list,
        "plain_gp": floors,
        "report": report.display().to_string(),
    }))
}

/// Reads all configurations and checks that they are about the same tasks.
fn read_configs(arguments: &Compare) -> Result<Vec<(String, Config)>> {
    let overrides = arguments.overrides.all();
    let mut configs: Vec<(String, Config)> = Vec::new();
    for path in &arguments.configs {
        let (stem, config) = (stem(path)?, Config::read(path, &overrides)?);
        if configs.iter().any(|(other, _)| *other == stem) {
            let message =
                format!("two configurations are called `{stem}`; each run needs a folder of its own");
            return Err(Error::input(path.display(), message));
        }
        if let Some((other, first)) = configs.first()
            && let Some(difference) = difference(first, &config)
        {
            return Err(Error::input(
                path.display(),
                format!(
                    "is about other tasks than `{other}`: {difference}; make them equal, e.g. with --set or --seed"
                ),
            ));
        }
        configs.push((stem, config));
    }
    Ok(configs)
}

/// The first key of `[data]`, or the seed, that differs.
fn difference(first: &Config, second: &Config) -> Option<String> {
    if first.seed != second.seed {
        return Some(format!("`seed` is {} there and {} here", first.seed, second.seed));
    }
    let keys = |config: &Config| -> BTreeMap<String, Value> {
        let whole = serde_json::to_value(config).unwrap_or_default();
        let data = whole.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        data.into_iter().collect()
    };
    let (first, second) = (keys(first), keys(second));
    let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
    first.keys().chain(second.keys()).find(|key| first.get(*key) != second.get(*key)).map(|key| {
        format!("`data.{key}` is {} there and {} here", show(first.get(key)), show(second.get(key)))
    })
}
