//! `pacmeta sweep`, and what `pacmeta report` does for its folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pacmeta::config::SweepFile;
use pacmeta::report::study_page;
use pacmeta::studies::summary::Summary;
use pacmeta::studies::sweep::{
    Analysis, Chosen, OF_THE_CHOICE, Plan, SweepSpec, conclusions, numbers, prepare, report, train_command,
};
use pacmeta::studies::{Records, StoredPlan};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::{Value, json};

use super::scores::wrapped;
use super::study::{Manner, run_in};
use super::train::stem;
use crate::arguments::Sweep;
use crate::output::{bold, joined, plural, print, print_json, remark};
use crate::progress::Verbosity;
use crate::table::{Table, number, with_error};

/// Settings that are printed; the files have all.
const PRINTED: usize = 10;

pub(crate) fn run(arguments: &Sweep) -> Result<()> {
    if let Some(command) = &arguments.on_cluster {
        return super::cluster::run(command);
    }
    let Some(config) = &arguments.config else {
        return Err(Error::input("pacmeta sweep", "expected a configuration, or one of its subcommands"));
    };
    let overrides = arguments.overrides.all();
    let file = SweepFile::read(config, &overrides)?;
    let prepared = prepare(&file, &config.display().to_string(), &overrides)?;
    let plan = &prepared.plan;
    let out: PathBuf = match &arguments.out {
        Some(out) => out.clone(),
        None => default_folder(config)?,
    };
    let manner = Manner::new(arguments.quiet, arguments.retry_failed);
    if manner.verbosity == Verbosity::Normal {
        remark(&scope(plan));
    }
    let records = run_in(&out, plan, &prepared.specs(), &manner)?;
    show(&out, arguments.json, Value::Null)?;
    refuse_nothing_to_choose(&Analysis::new(plan, &records)?)
}

/// Where a sweep lives unless somebody says otherwise.
pub(super) fn default_folder(config: &Path) -> Result<PathBuf> {
    Ok(Path::new("runs").join("sweep").join(stem(config)?))
}

/// A finished sweep without a choice is a failed run.
pub(super) fn refuse_nothing_to_choose(analysis: &Analysis<'_>) -> Result<()> {
    if analysis.chosen.is_some() {
        return Ok(());
    }
    let first = analysis.failures.first().map(|(label, reason)| format!("{label}: {reason}"));
    Err(Error::NothingToChoose { reason: first.unwrap_or_else(|| "unknown".to_owned()) })
}

/// What the grid amounts to.
pub(super) fn scope(plan: &Plan) -> String {
    let collapsed = match plan.collapsed() {
        0 => String::new(),
        1 => "; 1 point of the grid has the configuration of another one".to_owned(),
        count => format!("; {count} points of the grid have the configuration of another one"),
    };
    let left_out = match plan.data.left_out.len() {
        0 => String::new(),
        count => format!("; tasks too small and left out: {count}"),
    };
    format!(
        "{} x {}, {} to learn from, {} to be scored{collapsed}{left_out}",
        plural(plan.settings.len(), "setting"),
        plural(usize::try_from(plan.seeds).unwrap_or(usize::MAX), "seed"),
        plural(plan.data.observed, "task"),
        plan.data.scored.len()
    )
}

/// Writes page and numbers from the record alone, and prints the conclusions; in JSON with these keys besides.
pub(super) fn show(folder: &Path, as_json: bool, more: Value) -> Result<()> {
    let Some(stored) = StoredPlan::read(folder)? else {
        return Err(Error::input(folder.display(), "is no study's folder"));
    };
    let plan: Plan = stored.plan(folder)?;
    let records = Records::<SweepSpec>::read(folder)?;
    let analysis = Analysis::new(&plan, &records)?;
    for file in numbers(&analysis)? {
        write_atomically(folder.join(file.name), file.content.as_bytes())?;
    }
    if analysis.chosen.is_none() {
        // What an earlier plan chose in this folder.
        OF_THE_CHOICE.iter().try_for_each(|name| remove(&folder.join(name)))?;
    }
    let page = folder.join("report.html");
    let html = study_page(&report(&analysis, &stored.command, &stored.history)?);
    write_atomically(&page, html.as_bytes())?;
    if as_json {
        let mut value = conclusions(&analysis);
        value["report"] = json!(page.display().to_string());
        value["config"] =
            json!(analysis.chosen.as_ref().map(|_| folder.join("chosen.toml").display().to_string()));
        return print_json(&joined(value, more));
    }
    print(&in_words(&analysis, folder, &page))
}

/// Removes a file that need not be there.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, source)),
        _ => Ok(()),
    }
}

fn in_words(analysis: &Analysis<'_>, folder: &Path, page: &Path) -> String {
    let plan = analysis.plan;
    let mut text = format!(
        "{} of {} pieces recorded, {} failed\n\n{}\n",
        analysis.done,
        analysis.total,
        analysis.failures.len(),
        bold("Settings over all scored tasks, best first, mean ± standard error over tasks")
    );
    let difference = format!("{} minus the chosen", plan.metric.name());
    let mut table = Table::new(["", "RMSE", "log-likelihood", &difference, "models", "failed"]);
    let order = analysis.ranking();
    for index in order.iter().take(PRINTED) {
        let setting = &analysis.settings[*index];
        let chosen = analysis.chosen.as_ref().is_some_and(|chosen| chosen.setting == *index);
        table.row([
            setting.label.clone(),
            shown(&setting.rmse),
            shown(&setting.log_likelihood),
            if chosen {
                "chosen".to_owned()
            } else {
                setting.difference.as_ref().map_or("-".to_owned(), shown)
            },
            setting.models.to_string(),
            setting.failed.to_string(),
        ]);
    }
    text.push_str(&table.render());
    if order.len() > PRINTED {
        text.push_str(&format!("... and {} more in settings.csv\n", order.len() - PRINTED));
    }
    if let Some(chosen) = &analysis.chosen {
        text.push_str(&choice(analysis, chosen));
        text.extend(analysis.verdict().into_iter().chain(analysis.ends()).map(|line| wrapped(&line, "")));
        text.push_str(&format!("\ntrain    pacmeta train {}\n", folder.join("chosen.toml").display()));
        let command = train_command(plan, &plan.settings[chosen.setting]);
        text.extend(command.map(|command| format!("or       {command}\n")));
    }
    text.push_str(&format!("report   {}\n", page.display()));
    text
}

fn choice(analysis: &Analysis<'_>, chosen: &Chosen) -> String {
    let mut table = Table::new(["", "RMSE", "log-likelihood"]);
    let mut row = |name: &str, rmse: &Summary, log_likelihood: &Summary| {
        table.row([name.to_owned(), shown(rmse), shown(log_likelihood)]);
    };
    row("chosen by the other folds", &chosen.rmse, &chosen.log_likelihood);
    for (name, floor) in
        [("plain GP, support only", &analysis.plain_gp), ("prior mean, not adapted", &chosen.prior_mean)]
    {
        if let Some((rmse, log_likelihood)) = floor {
            row(name, rmse, log_likelihood);
        }
    }
    let heading = format!("Chosen: {}", chosen.label);
    format!(
        "\n{}\nOn held-out tasks ({} folds; coverage of 95%: {})\n{}\n",
        bold(&heading),
        analysis.plan.folds,
        chosen.coverage95.mean.map_or("-".to_owned(), number),
        table.render()
    )
}

fn shown(summary: &Summary) -> String {
    summary.mean.map_or("-".to_owned(), |mean| with_error(mean, summary.standard_error))
}
