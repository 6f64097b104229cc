//! The report of a sweep: the choice and what it is worth, all settings, the axes, failures, and how to go on.

use super::analysis::{Analysis, Chosen, SettingResult};
use super::figures;
use super::figures::words_of;
use super::plan::{Plan, Setting};
use crate::environments::table::counted;
use crate::error::Result;
use crate::report::{Block, Cell, Column, FileLink, StudyReport, StudySection, StudyTable};
use crate::studies::folder::{Session, time_by_the_clock};
use crate::studies::summary::Summary;

/// Settings and failures that the page lists; the files have all.
const LISTED: usize = 100;

/// The report of a sweep as far as it is recorded.
///
/// # Errors
/// Never in practice: the files beside the page are written to memory to be listed.
pub fn report(analysis: &Analysis<'_>, command: &str, history: &[Session]) -> Result<StudyReport> {
    let plan = analysis.plan;
    let mut sections = Vec::new();
    if let Some(chosen) = &analysis.chosen {
        sections.push(choice(analysis, chosen));
        sections.push(going_on(plan, &plan.settings[chosen.setting]));
    }
    sections.push(StudySection::new("run", "What was run").with(run_table(analysis)));
    sections.push(StudySection::new("settings", "All settings").with(settings_table(analysis)));
    let axes = figures::by_axis(analysis);
    if !axes.is_empty() {
        let mut section = StudySection::new("axes", "Dependence on each axis");
        section.blocks.extend(axes.into_iter().map(Block::Figure));
        sections.push(section);
    }
    if !analysis.failures.is_empty() {
        sections.push(failures(analysis));
    }
    let link = |name: &str, what: &str| FileLink {
        name: name.to_owned(),
        href: name.to_owned(),
        what: what.to_owned(),
    };
    let mut files: Vec<FileLink> =
        super::files::numbers(analysis)?.iter().map(|file| link(file.name, file.what)).collect();
    files.push(link("records.jsonl", "One line for each model."));
    files.push(link("study.json", "What was to be run."));
    Ok(StudyReport {
        title: format!("A sweep over {}", plan.config),
        subtitle: subtitle(analysis),
        command: Some(command.to_owned()),
        facts: facts(analysis, history),
        sections,
        notes: vec![
            "All settings and seeds are scored on the same tasks, in original units. Standard errors are over tasks, each averaged \
             over seeds. Held-out numbers score each task with the setting that the other folds chose; the numbers of the table of \
             all settings are on all scored tasks, so the best of them is a little too good."
                .to_owned(),
        ],
        files,
    })
}

fn subtitle(analysis: &Analysis<'_>) -> String {
    let plan = analysis.plan;
    let recorded = analysis.done + analysis.failures.len();
    let state = if recorded < analysis.total {
        format!(" So far {recorded} of {} pieces are recorded; the same command continues.", analysis.total)
    } else {
        String::new()
    };
    format!(
        "{} from a grid of {}, {} each, learned from {} and scored on {} others; chosen by {} in a {}-fold cross-validation over the scored \
         tasks.{state}",
        counted(plan.settings.len(), "setting"),
        counted(plan.points, "point"),
        counted(plan.seeds as usize, "seed"),
        counted(plan.data.observed, "task"),
        plan.data.scored.len(),
        plan.metric.name(),
        plan.folds,
    )
}

fn facts(analysis: &Analysis<'_>, history: &[Session]) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![fact(
        "Pieces recorded",
        format!("{} of {}, {} failed", analysis.done, analysis.total, analysis.failures.len()),
    )];
    facts.extend(time_by_the_clock(history, Some(analysis.done + analysis.failures.len())));
    facts.push(fact("Sum over models", format!("{:.1} s", analysis.seconds)));
    facts.push(fact("Version", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}

fn cell(summary: &Summary) -> Cell {
    match (summary.mean, summary.standard_error) {
        (Some(mean), Some(error)) => Cell::estimate(mean, error, summary.observations),
        (Some(mean), None) => Cell::number(mean),
        _ => Cell::missing(),
    }
}

fn optional(summary: Option<&Summary>) -> Cell {
    summary.map_or_else(Cell::missing, cell)
}

/// The choice beside the floors, on tasks that had no say in it.
fn choice(analysis: &Analysis<'_>, chosen: &Chosen) -> StudySection {
    let plan = analysis.plan;
    let metric = plan.metric.name();
    let mut rows = vec![vec![
        Cell::text("chosen by the other folds"),
        cell(&chosen.rmse),
        cell(&chosen.log_likelihood),
        Cell::missing(),
    ]];
    let floors = [
        ("plain GP, support only", &analysis.plain_gp, &chosen.over_plain_gp),
        ("prior mean, not adapted", &chosen.prior_mean, &chosen.over_prior_mean),
    ];
    for (name, pair, over) in floors {
        if let Some((rmse, log_likelihood)) = pair {
            rows.push(vec![Cell::text(name), cell(rmse), cell(log_likelihood), optional(over.as_ref())]);
        }
    }
    let table = StudyTable {
        id: "held-out".to_owned(),
        heading: String::new(),
        columns: vec![
            Column::text("on held-out tasks"),
            Column::number("RMSE"),
            Column::number("log-likelihood"),
            Column::number(format!("choice minus this, {metric}")),
        ],
        rows,
        caption:
            "Mean and standard error over tasks. No task had a say in the setting that it is scored with."
                .to_owned(),
        csv: Some("tasks.csv".to_owned()),
    };
    let agreeing = chosen.per_fold.iter().filter(|other| **other == chosen.setting).count();
    let mut section =
        StudySection::new("choice", "The chosen setting").paragraph(chosen.label.clone()).paragraph(format!(
            "{agreeing} of {} folds choose it too. Coverage of the 95% interval on held-out tasks: {}.",
            chosen.per_fold.len(),
            chosen
                .coverage95
                .mean
                .map_or_else(|| "unknown".to_owned(), |mean| format!("{:.1}%", 100.0 * mean))
        ));
    if chosen.seeds < plan.seeds as usize {
        section = section.paragraph(format!(
            "So far chosen on {} of {} seeds, those for which every setting is recorded.",
            chosen.seeds, plan.seeds
        ));
    }
    section.text.extend(analysis.verdict());
    section.text.extend(analysis.ends());
    section.with(table)
}

/// The command that trains a setting from the file, where `--set` is all it takes.
pub fn train_command(plan: &Plan, setting: &Setting) -> Option<String> {
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=:,+%@".contains(c))
    };
    let quoted = |word: String| {
        if plain(&word) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let mut words = vec!["pacmeta".to_owned(), "train".to_owned(), quoted(plan.config.clone())];
    let own = plan.overrides.iter().filter(|(key, _)| !key.trim().starts_with("sweep."));
    for (key, value) in own.chain(setting.overrides.as_ref()?) {
        // `"pacoh"` may be written without quotes; a text that reads as something else keeps them.
        let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let bare = inner.filter(|text| {
            text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
                && !["true", "false", "inf", "nan"].contains(text)
        });
        words.extend(["--set".to_owned(), quoted(format!("{key}={}", bare.unwrap_or(value)))]);
    }
    Some(words.join(" "))
}

fn going_on(plan: &Plan, setting: &Setting) -> StudySection {
    let section = StudySection::new("use", "How to use it").paragraph(
        "chosen.toml, beside this page, is the chosen setting as a whole configuration. Train it with pacmeta train. \
         For a table, add --set data.held_out=0 to learn from all tasks, \
         once nothing is left to be scored.",
    );
    match train_command(plan, setting) {
        Some(command) => section.paragraph(format!("The same from the file of the sweep: {command}")),
        None => section,
    }
}

fn run_table(analysis: &Analysis<'_>) -> StudyTable {
    let plan = analysis.plan;
    let mut rows: Vec<(String, String)> = plan
        .axes
        .iter()
        .map(|axis| (axis.name.clone(), axis.values.iter().map(words_of).collect::<Vec<_>>().join(", ")))
        .collect();
    let settings = match plan.collapsed() {
        0 => plan.settings.len().to_string(),
        collapsed => format!(
            "{} ({collapsed} of {} points collapsed into others, since a key has no effect there)",
            plan.settings.len(),
            plan.points
        ),
    };
    rows.push(("settings".to_owned(), settings));
    rows.push(("models of each".to_owned(), plan.seeds.to_string()));
    rows.push(("tasks learned from".to_owned(), plan.data.observed.to_string()));
    rows.push(("tasks scored".to_owned(), plan.data.scored.len().to_string()));
    if !plan.data.left_out.is_empty() {
        rows.push(("tasks left out, too small".to_owned(), plan.data.left_out.len().to_string()));
    }
    rows.push(("seed of the tasks".to_owned(), plan.seed.to_string()));
    StudyTable {
        id: "run-table".to_owned(),
        heading: String::new(),
        columns: vec![Column::text("what"), Column::text("this sweep")],
        rows: rows.into_iter().map(|(what, run)| [what, run].map(Cell::text).into()).collect(),
        caption: String::new(),
        csv: None,
    }
}

fn settings_table(analysis: &Analysis<'_>) -> StudyTable {
    let plan = analysis.plan;
    let mut columns: Vec<Column> = plan.axes.iter().map(|axis| Column::text(axis.name.clone())).collect();
    columns.extend(["RMSE", "log-likelihood"].map(Column::number));
    columns.push(Column::number(format!("{} minus the chosen", plan.metric.name())));
    columns.extend(["coverage of 95%", "models", "failed"].map(Column::number));
    let order = analysis.ranking();
    let means =
        |of: fn(&SettingResult) -> &Summary| analysis.settings.iter().filter_map(move |one| of(one).mean);
    let lowest = means(|one| &one.rmse).fold(f64::INFINITY, f64::min);
    let highest = means(|one| &one.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
    let rows = order.iter().take(LISTED).map(|index| {
        let setting = &analysis.settings[*index];
        let is_chosen = analysis.chosen.as_ref().is_some_and(|chosen| chosen.setting == *index);
        let words = setting.values.iter().map(|value| match value {
            Some(value) => Cell::text(words_of(value)),
            None => Cell::text("-"),
        });
        let mut row: Vec<Cell> = words.collect();
        for (summary, best) in [(&setting.rmse, lowest), (&setting.log_likelihood, highest)] {
            row.push(if summary.mean == Some(best) { cell(summary).best() } else { cell(summary) });
        }
        row.push(if is_chosen { Cell::text("chosen") } else { optional(setting.difference.as_ref()) });
        row.push(setting.coverage95.mean.map_or_else(Cell::missing, Cell::number));
        row.extend([setting.models, setting.failed].map(|count| Cell::text(count.to_string())));
        row
    });
    let cut =
        if order.len() > LISTED { format!(" The best {LISTED} of {}.", order.len()) } else { String::new() };
    StudyTable {
        id: "settings-table".to_owned(),
        heading: String::new(),
        columns,
        rows: rows.collect(),
        caption: format!(
            "Best first. Means over all scored tasks with standard errors over tasks; differences are \
             paired, task by task. A dash: the key has no effect there.{cut}"
        ),
        csv: Some("settings.csv".to_owned()),
    }
}

fn failures(analysis: &Analysis<'_>) -> StudySection {
    let rows = analysis.failures.iter().take(LISTED);
    let table = StudyTable {
        id: "failures-table".to_owned(),
        heading: String::new(),
        columns: vec![Column::text("model"), Column::text("reason")],
        rows: rows.map(|(label, reason)| vec![Cell::text(label), Cell::text(reason)]).collect(),
        caption: "Settings with a failed model cannot be chosen. The option --retry-failed tries them again."
            .to_owned(),
        csv: None,
    };
    StudySection::new("failures", counted(analysis.failures.len(), "failed model")).with(table)
}
