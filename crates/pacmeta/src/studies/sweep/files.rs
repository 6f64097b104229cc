//! The numbers of a sweep beside its page: CSV, JSON and a configuration to go on with.

use serde_json::{Value, json};

use super::analysis::Analysis;
use crate::config::DataSource;
use crate::error::Result;
use crate::studies::numbers::{NumbersFile, csv_of, failed};
use crate::studies::summary::Summary;

/// Files about the choice, which are left out without one.
pub const OF_THE_CHOICE: [&str; 2] = ["tasks.csv", "chosen.toml"];

/// The files of a sweep; without a choice those about it are left out.
///
/// # Errors
/// Never in practice: everything is written to memory.
pub fn numbers(analysis: &Analysis<'_>) -> Result<Vec<NumbersFile>> {
    let file = |name, what, content| NumbersFile { name, what, content };
    let text = serde_json::to_string_pretty(&conclusions(analysis)).map_err(failed)? + "\n";
    let mut files = vec![
        file("settings.csv", "Every setting with its scores over all scored tasks.", settings_csv(analysis)?),
        file("conclusions.json", "The same and the choice, for programs.", text),
    ];
    if let Some(chosen) = &analysis.chosen {
        let mut config = analysis.plan.settings[chosen.setting].config.clone();
        // The file is read from other folders than that of the sweep.
        if let (DataSource::Table(table), Some(path)) = (&mut config.data.source, &analysis.plan.data.path) {
            table.path.clone_from(path);
        }
        let [tasks, setting] = OF_THE_CHOICE;
        files.push(file(tasks, "Held-out scores of every scored task.", tasks_csv(analysis)?));
        files.push(file(setting, "The chosen setting as a configuration to train.", config.to_toml()));
    }
    Ok(files)
}

/// The conclusions for programs.
pub fn conclusions(analysis: &Analysis<'_>) -> Value {
    let plan = analysis.plan;
    let floor = |pair: &(Summary, Summary)| json!({ "rmse": pair.0, "log_likelihood": pair.1 });
    json!({
        "metric": plan.metric,
        "axes": plan.axes,
        "points": plan.points,
        "collapsed": plan.collapsed(),
        "seeds": plan.seeds,
        "folds": plan.folds,
        "models": plan.settings.len() as u64 * plan.seeds,
        "recorded": analysis.done,
        "pieces": analysis.total,
        "failures": analysis.failures.iter().map(|(label, reason)| json!({ "model": label, "reason": reason })).collect::<Vec<_>>(),
        "settings": analysis.settings,
        "chosen": analysis.chosen,
        "plain_gp": analysis.plain_gp.as_ref().map(floor),
    })
}

fn settings_csv(analysis: &Analysis<'_>) -> Result<String> {
    let mut header = vec!["setting".to_owned()];
    header.extend(analysis.plan.axes.iter().map(|axis| axis.name.clone()));
    for metric in ["rmse", "log_likelihood", "calibration_error", "coverage95", "difference"] {
        header.extend([metric.to_owned(), format!("{metric}_standard_error")]);
    }
    header.extend(["tasks", "models", "failed_models", "points", "chosen"].map(str::to_owned));
    let rows = analysis.settings.iter().enumerate().map(|(index, setting)| {
        let mut row = vec![json!(index)];
        row.extend(setting.values.iter().map(|value| value.clone().unwrap_or(Value::Null)));
        let summaries = [setting.rmse, setting.log_likelihood, setting.calibration_error, setting.coverage95];
        for summary in summaries.map(Some).into_iter().chain([setting.difference]) {
            row.push(json!(summary.and_then(|summary| summary.mean)));
            row.push(json!(summary.and_then(|summary| summary.standard_error)));
        }
        let chosen = analysis.chosen.as_ref().is_some_and(|chosen| chosen.setting == index);
        row.extend([json!(setting.rmse.observations), json!(setting.models), json!(setting.failed)]);
        row.extend([json!(setting.points), json!(u8::from(chosen))]);
        row
    });
    csv_of(header, rows)
}

fn tasks_csv(analysis: &Analysis<'_>) -> Result<String> {
    let header =
        ["task", "fold", "setting", "rmse", "log_likelihood", "plain_gp_rmse", "plain_gp_log_likelihood"];
    let tasks = analysis.chosen.iter().flat_map(|chosen| &chosen.tasks);
    let rows = tasks.map(|task| {
        vec![
            json!(task.name),
            json!(task.fold),
            json!(task.setting),
            json!(task.rmse),
            json!(task.log_likelihood),
            json!(task.plain_gp_rmse),
            json!(task.plain_gp_log_likelihood),
        ]
    });
    csv_of(header, rows)
}
