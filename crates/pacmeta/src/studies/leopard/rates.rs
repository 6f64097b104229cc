//! The rate of the fine-tuning, the same for all models.
//!
//! The rate that is best for a model is chosen on a few validation tasks, and two models that chose differently differ by their rates as well
//! as by their meta-training. Where only the head adapts every model is scored at every rate. Tables and claims are then at one rate:
//! that with the best accuracy on the validation tasks over the methods that the paper compares, or over what is scored of them. What each model gets at its own choice, and at every rate, stands
//! beside it.

use serde_json::{Value, json};

use super::claims::{Difference, ORDER};
use super::plan::LeopardPlan;
use super::scores::{Tests, best};
use super::tables::{columns, ours, row, short};
use super::{LeopardScores, ModelRun};
use crate::error::Result;
use crate::report::{Cell, Column, StudyTable};
use crate::studies::numbers::{NumbersFile, csv_of};

/// The name of the file of numbers.
pub(super) const RATES: &str = "rates.csv";

/// The models that the common rate is chosen by: those of the paper's order, so that a floor beside them changes nothing; all where none
/// of these is scored.
fn deciding(runs: &[ModelRun]) -> Vec<&ModelRun> {
    let is_scored = |run: &&ModelRun| run.scores.is_some();
    let is_compared = |run: &&ModelRun| ORDER.iter().any(|&(a, b)| run.model == a || run.model == b);
    let compared: Vec<&ModelRun> = runs.iter().filter(is_scored).filter(is_compared).collect();
    if compared.is_empty() { runs.iter().filter(is_scored).collect() } else { compared }
}

/// The rate with the best mean accuracy on the validation tasks over the deciding models; none unless all models that are scored are so at
/// several rates, and the deciding ones were tried on the validation tasks at those.
fn best_for_all(plan: &LeopardPlan, runs: &[ModelRun]) -> Option<f64> {
    let deciding = deciding(runs);
    let mean = |rate: f64| {
        if !scored(runs).all(|scores| scores.at_rate(rate).is_some()) {
            return None;
        }
        let tried = |run: &&ModelRun| {
            let tried = &run.scores.as_ref()?.rate.tried;
            Some(tried.iter().find(|(tried, _)| *tried == rate)?.1)
        };
        let of_models: Option<Vec<f64>> = deciding.iter().map(tried).collect();
        of_models.filter(|list| !list.is_empty()).map(|list| list.iter().sum::<f64>() / list.len() as f64)
    };
    let tried: Vec<(f64, f64)> = plan.rates.iter().filter_map(|&rate| Some((rate, mean(rate)?))).collect();
    best(&tried).filter(|_| tried.len() > 1)
}

/// The models with their scores at one rate, where there is one for all of them.
pub(super) fn at_one_rate(plan: &LeopardPlan, mut runs: Vec<ModelRun>) -> Vec<ModelRun> {
    if let Some(rate) = best_for_all(plan, &runs) {
        runs.iter_mut().filter_map(|run| run.scores.as_mut()).for_each(|scores| scores.compare_at(rate));
    }
    runs
}

/// How models are compared, in a sentence; none where there was one rate to take.
pub fn how_compared(plan: &LeopardPlan, runs: &[ModelRun]) -> Option<String> {
    if plan.rates.len() < 2 || scored(runs).next().is_none() {
        return None;
    }
    let Some(rate) = best_for_all(plan, runs) else {
        return Some(
            "Every model at the rate of the fine-tuning that it chose on the validation tasks.".to_owned(),
        );
    };
    let end =
        match (plan.rates.iter().any(|&other| other < rate), plan.rates.iter().any(|&other| other > rate)) {
            (false, _) => ", the smallest that was tried",
            (_, false) => ", the largest that was tried",
            _ => "",
        };
    Some(format!(
        "All models are fine-tuned at the rate {}{end}: the one with the best accuracy on the validation tasks over {}.",
        short(rate),
        deciding(runs).iter().map(|run| run.model.title()).collect::<Vec<_>>().join(", ")
    ))
}

/// Averages at each model's own choice and at each rate, and the pairs of the paper's order at each rate; none where models were scored
/// at one rate only.
pub(super) fn tables(plan: &LeopardPlan, runs: &[ModelRun]) -> Vec<StudyTable> {
    if !scored(runs).any(|scores| !scores.other_rates.is_empty()) {
        return Vec::new();
    }
    let mut tables = vec![own_choices(plan, runs), averages(plan, runs)];
    tables.extend(order(plan, runs).filter(|_| plan.is_comparable()));
    tables
}

fn scored(runs: &[ModelRun]) -> impl Iterator<Item = &LeopardScores> {
    runs.iter().filter_map(|run| run.scores.as_ref())
}

fn own_choices(plan: &LeopardPlan, runs: &[ModelRun]) -> StudyTable {
    let rate = runs.iter().map(|run| match &run.scores {
        Some(scores) => Cell::text(short(scores.rate.rate)),
        None => Cell::missing(),
    });
    let mut rows = vec![row(["rate".to_owned(), String::new()], rate.collect())];
    rows.extend(plan.shots.iter().map(|&k| {
        let average =
            |scores: &LeopardScores| scores.at_rate(scores.rate.rate)?.average(&scores.tasks(Tests::All), k);
        row(["accuracy".to_owned(), format!("k = {k}")], ours(runs, average))
    }));
    StudyTable {
        id: "own-rates".to_owned(),
        heading: "Average accuracy in percent, every model at the rate that it chose itself".to_owned(),
        columns: columns(&["", ""], runs),
        rows,
        caption: "Over all target tasks; chosen by the model's own accuracy on the validation tasks."
            .to_owned(),
        csv: None,
    }
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
        heading: "Average accuracy in percent at every rate".to_owned(),
        columns: columns(&["", ""], runs),
        rows: rows.collect(),
        caption: "Over all target tasks.".to_owned(),
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
                        json!(rate == scores.rate_of_scores()),
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
    let header = [
        "model",
        "rate",
        "own_choice",
        "compared_at",
        "shots",
        "test_sets",
        "accuracy",
        "standard_error",
        "log_likelihood",
    ];
    Ok(NumbersFile {
        name: RATES,
        what: "averages at every rate that was tried",
        content: csv_of(header, rows)?,
    })
}
