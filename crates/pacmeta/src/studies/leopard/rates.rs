//! Every model at the same rate of the fine-tuning.
//!
//! The rate that a model takes on target tasks is chosen on a few validation tasks, and two models that chose differently differ by
//! their rates as well as by their meta-training. Where only the head adapts every rate is scored, and compared here.

use serde_json::{Value, json};

use super::claims::{Difference, ORDER};
use super::plan::LeopardPlan;
use super::scores::Tests;
use super::tables::{columns, ours, row, short};
use super::{LeopardScores, ModelRun};
use crate::error::Result;
use crate::report::{Cell, Column, StudyTable};
use crate::studies::numbers::{NumbersFile, csv_of};

/// The name of the file of numbers.
pub(super) const RATES: &str = "rates.csv";

/// Averages at each rate, and the pairs of the paper's order at each rate; none where models were scored at one rate only.
pub(super) fn tables(plan: &LeopardPlan, runs: &[ModelRun]) -> Vec<StudyTable> {
    if !scored(runs).any(|scores| !scores.other_rates.is_empty()) {
        return Vec::new();
    }
    let mut tables = vec![averages(plan, runs)];
    tables.extend(order(plan, runs).filter(|_| plan.is_comparable()));
    tables
}

fn scored(runs: &[ModelRun]) -> impl Iterator<Item = &LeopardScores> {
    runs.iter().filter_map(|run| run.scores.as_ref())
}

fn averages(plan: &LeopardPlan, runs: &[ModelRun]) -> StudyTable {
    let rows = plan.rates.iter().flat_map(|&rate| {
        plan.shots.iter().enumerate().map(move |(place, &k)| {
            let name = if place == 0 { format!("rate {}", short(rate)) } else { String::new() };
            let average =
                |scores: &LeopardScores| scores.at_rate(rate)?.average(&scores.tasks(Tests::All), k);
            row([name, format!("k = {k}")], ours(runs, average))
        })
    });
    StudyTable {
        id: "rates".to_owned(),
        heading: "Average accuracy in percent, every model at the same rate".to_owned(),
        columns: columns(&["", ""], runs),
        rows: rows.collect(),
        caption:
            "Over all target tasks. The tables above take the rate that a model chose on the validation tasks; \
             where models chose differently, compare them here."
                .to_owned(),
        csv: Some(RATES.to_owned()),
    }
}

/// The differences of the paper's order, all k together; none where no pair is scored at a common rate.
fn order(plan: &LeopardPlan, runs: &[ModelRun]) -> Option<StudyTable> {
    let of = |model| runs.iter().find(|run| run.model == model)?.scores.as_ref();
    let mut rows = Vec::new();
    for (better, worse) in ORDER {
        let (Some(first), Some(second)) = (of(better), of(worse)) else { continue };
        let cells = plan.rates.iter().map(|&rate| {
            let tasks = first.tasks(Tests::All);
            let pair = first.at_rate(rate).zip(second.at_rate(rate));
            match pair.and_then(|(ours, theirs)| Difference::new(ours, theirs, &tasks, &plan.shots)) {
                Some(gap) => Cell::estimate(100.0 * gap.mean, 100.0 * gap.standard_error, gap.draws),
                None => Cell::missing(),
            }
        });
        let name = Cell::text(format!("{} less {}", better.title(), worse.title()));
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    let rates = plan.rates.iter().map(|&rate| Column::number(format!("rate {}", short(rate))));
    (!rows.is_empty()).then(|| StudyTable {
        id: "order-by-rate".to_owned(),
        heading: "The paper's order at the same rate, in points".to_owned(),
        columns: std::iter::once(Column::text("")).chain(rates).collect(),
        rows,
        caption: "Differences of accuracies on the same draws, averaged over all tasks and k, with standard errors over draws. In the paper \
                  all are positive."
            .to_owned(),
        csv: None,
    })
}

/// The averages as a file.
///
/// # Errors
/// Never in practice: they are written to memory.
pub(super) fn numbers(plan: &LeopardPlan, runs: &[ModelRun]) -> Result<NumbersFile> {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for run in runs {
        let Some(scores) = &run.scores else { continue };
        for &rate in &plan.rates {
            let Some(at_rate) = scores.at_rate(rate) else { continue };
            for &k in &plan.shots {
                for (name, tests) in [("all", Tests::All), ("original", Tests::Original)] {
                    let Some(mean) = at_rate.average(&scores.tasks(tests), k) else { continue };
                    rows.push(vec![
                        json!(run.model),
                        json!(rate),
                        json!(rate == scores.rate.rate),
                        json!(k),
                        json!(name),
                        json!(mean.accuracy),
                        json!(mean.standard_error),
                        json!(mean.log_likelihood),
                    ]);
                }
            }
        }
    }
    let header =
        ["model", "rate", "chosen", "shots", "test_sets", "accuracy", "standard_error", "log_likelihood"];
    Ok(NumbersFile {
        name: RATES,
        what: "averages at every rate that was tried",
        content: csv_of(header, rows)?,
    })
}
