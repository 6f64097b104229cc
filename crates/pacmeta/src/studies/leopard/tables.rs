//! The paper's two tables beside its numbers, what meta-training gained, what was chosen, and the same as CSV files.

use serde_json::{Value, json};

use super::claims::Difference;
use super::plan::{LeopardModel, LeopardPlan};
use super::scores::Tests;
use super::{LeopardScores, ModelRun, TargetInfo, paper, rates};
use crate::environments::text::leopard::DRAWS;
use crate::error::Result;
use crate::report::{Cell, Column, StudyTable};
use crate::studies::numbers::{NumbersFile, csv_of};
use crate::text::ShotScores;
use crate::text::report::accuracy_cell;

/// The target tasks, as the first scored model knows them.
pub(super) fn targets(runs: &[ModelRun]) -> &[TargetInfo] {
    runs.iter().find_map(|run| run.scores.as_ref()).map_or(&[], |scores| &scores.targets)
}

/// Whether some task has another test set than the official one.
fn some_are_rebuilt(runs: &[ModelRun]) -> bool {
    targets(runs).iter().any(|target| target.rebuilt)
}

/// Columns for words and for every model.
pub(super) fn columns(words: &[&str], runs: &[ModelRun]) -> Vec<Column> {
    let models = runs.iter().map(|run| Column::number(run.model.title()));
    words.iter().map(|name| Column::text(*name)).chain(models).collect()
}

/// One row of our accuracies, the best of them marked.
pub(super) fn ours(runs: &[ModelRun], score: impl Fn(&LeopardScores) -> Option<ShotScores>) -> Vec<Cell> {
    let found: Vec<Option<ShotScores>> =
        runs.iter().map(|run| run.scores.as_ref().and_then(&score)).collect();
    let best = found.iter().flatten().map(|scores| scores.accuracy).fold(f64::NEG_INFINITY, f64::max);
    let several = found.iter().flatten().count() > 1;
    found
        .into_iter()
        .map(|scores| match scores {
            Some(scores) if several && scores.accuracy == best => accuracy_cell(Some(scores)).best(),
            Some(scores) => accuracy_cell(Some(scores)),
            None => Cell::missing(),
        })
        .collect()
}

/// One row of the paper's numbers.
fn papers(runs: &[ModelRun], number: impl Fn(LeopardModel) -> Option<Cell>) -> Vec<Cell> {
    runs.iter().map(|run| number(run.model).unwrap_or_else(Cell::missing)).collect()
}

pub(super) fn row(words: [String; 2], cells: Vec<Cell>) -> Vec<Cell> {
    words.into_iter().map(Cell::text).chain(cells).collect()
}

/// Averages by k: over all tasks, and over those that have their original test set.
pub(super) fn averages(plan: &LeopardPlan, runs: &[ModelRun]) -> StudyTable {
    let mut rows = Vec::new();
    for &k in &plan.shots {
        let average =
            |tests: Tests| move |scores: &LeopardScores| scores.scores.average(&scores.tasks(tests), k);
        let count = targets(runs).len();
        rows.push(row([format!("k = {k}"), format!("all {count} tasks")], ours(runs, average(Tests::All))));
        if plan.is_comparable() {
            let number = |model| paper::average(model, k).map(Cell::number);
            rows.push(row([String::new(), "paper".to_owned()], papers(runs, number)));
        }
        if !some_are_rebuilt(runs) {
            continue;
        }
        let original: Vec<&str> =
            targets(runs).iter().filter(|task| !task.rebuilt).map(|task| task.name.as_str()).collect();
        let words = format!("the {} with original test sets", original.len());
        rows.push(row([String::new(), words], ours(runs, average(Tests::Original))));
        if plan.is_comparable() {
            let number = |model| paper::average_over(model, &original, k).map(Cell::number);
            rows.push(row([String::new(), "paper, the same tasks".to_owned()], papers(runs, number)));
        }
    }
    StudyTable {
        id: "averages".to_owned(),
        heading: "Average accuracy in percent".to_owned(),
        columns: columns(&["", "average over"], runs),
        rows,
        caption: "Means over tasks and draws with the standard error over draws, the tasks being given."
            .to_owned(),
        csv: Some("averages.csv".to_owned()),
    }
}

/// The tasks one by one.
pub(super) fn tasks(plan: &LeopardPlan, runs: &[ModelRun]) -> StudyTable {
    let mut rows = Vec::new();
    for target in targets(runs) {
        for (place, &k) in plan.shots.iter().enumerate() {
            let name = match (place, target.rebuilt) {
                (0, false) => format!("{} ({} classes)", target.title, target.classes),
                (0, true) => format!("{} ({} classes, rebuilt eval)", target.title, target.classes),
                _ => String::new(),
            };
            let score = |scores: &LeopardScores| scores.scores.of_task(&target.name, k);
            rows.push(row([name, format!("k = {k}")], ours(runs, score)));
            if plan.is_comparable() {
                let number = |model| {
                    let (accuracy, error) = paper::of_task(model, &target.name, k)?;
                    Some(Cell::estimate(accuracy, error, DRAWS))
                };
                rows.push(row([String::new(), "paper".to_owned()], papers(runs, number)));
            }
        }
    }
    StudyTable {
        id: "tasks".to_owned(),
        heading: "Accuracy on each task in percent".to_owned(),
        columns: columns(&["task", ""], runs),
        rows,
        caption: "Means over draws with their standard errors.".to_owned(),
        csv: Some("tasks.csv".to_owned()),
    }
}

/// What meta-training gained over the pretrained encoder; none if that is not scored.
pub(super) fn gains(plan: &LeopardPlan, runs: &[ModelRun]) -> Option<StudyTable> {
    let plain = runs.iter().find(|run| run.model == LeopardModel::FineTuning)?.scores.as_ref()?;
    let others: Vec<(LeopardModel, &LeopardScores)> = runs
        .iter()
        .filter(|run| run.model != LeopardModel::FineTuning)
        .filter_map(|run| Some((run.model, run.scores.as_ref()?)))
        .collect();
    let row = |&(model, scores): &(LeopardModel, &LeopardScores)| {
        let cells = plan.shots.iter().map(|&k| {
            let tasks = scores.tasks(Tests::All);
            match Difference::new(&scores.scores, &plain.scores, &tasks, &[k]) {
                Some(gain) => Cell::estimate(100.0 * gain.mean, 100.0 * gain.standard_error, gain.draws),
                None => Cell::missing(),
            }
        });
        std::iter::once(Cell::text(model.title())).chain(cells).collect()
    };
    let shots = plan.shots.iter().map(|k| Column::number(format!("k = {k}")));
    (!others.is_empty()).then(|| StudyTable {
        id: "gains".to_owned(),
        heading: "Gain over the pretrained encoder in points".to_owned(),
        columns: std::iter::once(Column::text("")).chain(shots).collect(),
        rows: others.iter().map(row).collect(),
        caption: "Differences of accuracies on the same draws to those of the encoder without meta-training, fine-tuned in the same way, \
                  averaged over tasks, with standard errors over draws."
            .to_owned(),
        csv: None,
    })
}

/// What every model was trained with, and what was chosen.
pub(super) fn chosen(plan: &LeopardPlan, runs: &[ModelRun]) -> StudyTable {
    let dash = || "-".to_owned();
    let row = |run: &ModelRun| {
        let config = run.run.as_ref().map(|files| &files.config);
        let trained = |text: &dyn Fn(&crate::config::TextConfig) -> String| config.map_or_else(dash, text);
        let alpha = |config: &crate::config::TextConfig| {
            if run.model.has_alpha() { short(config.method.alpha) } else { dash() }
        };
        let searched = run.scores.as_ref().and_then(|scores| scores.alpha.as_ref());
        let rate = run.scores.as_ref().map(|scores| &scores.rate);
        let tried = |list: &[(f64, f64)]| {
            let words =
                list.iter().map(|(value, accuracy)| format!("{}: {:.1}", short(*value), 100.0 * accuracy));
            words.collect::<Vec<_>>().join(", ")
        };
        let mut searches = Vec::new();
        if let Some(choice) = searched {
            searches.push(format!("alpha after {} iterations: {}", choice.iterations, tried(&choice.tried)));
        }
        if let Some(choice) = rate.filter(|choice| !choice.tried.is_empty()) {
            searches.push(format!("rate: {}", tried(&choice.tried)));
        }
        [
            run.model.title().to_owned(),
            trained(&|config| config.prior.threshold.map_or_else(dash, |threshold| threshold.to_string())),
            trained(&|config| config.data.examples.to_string()),
            trained(&|config| config.data.support.to_string()),
            trained(&alpha),
            trained(&|config| {
                let made = run.run.as_ref().map_or(0, |files| files.iterations());
                format!("{made} of {}", config.training.iterations)
            }),
            run.scores.as_ref().map_or_else(dash, |scores| short(scores.rate_of_scores())),
            rate.map_or_else(dash, |choice| short(choice.rate)),
            if searches.is_empty() { dash() } else { searches.join("; ") },
        ]
        .into_iter()
        .map(Cell::text)
        .collect()
    };
    let names = [
        "",
        "v",
        "m",
        "m'",
        "alpha",
        "iterations",
        "rate on a target task",
        "its own choice",
        "accuracy on validation tasks (%)",
    ];
    let validation = match &plan.validation[..] {
        [] => "held-out tasks".to_owned(),
        names => names.join(" and "),
    };
    let config = runs.iter().find_map(|run| run.run.as_ref()).map(|files| &files.config);
    let training = config.map_or(String::new(), |config| {
        let (method, training) = (&config.method, &config.training);
        format!(
            "Inner steps: {} at rate {}; outer: Adam at {}, tasks in an iteration: {}. ",
            method.steps,
            short(method.rate),
            short(training.rate),
            training.batch
        )
    });
    StudyTable {
        id: "chosen".to_owned(),
        heading: String::new(),
        columns: names.iter().map(|name| Column::text(*name)).collect(),
        rows: runs.iter().map(row).collect(),
        caption: format!(
            "{training}On a target task: {} steps of Adam. \
             What there was to choose was chosen by the accuracy on {validation}, which are not trained on.{}",
            plan.steps,
            if plan.alphas.is_empty() { " Alpha is the paper's choice for BERT-base." } else { "" }
        ),
        csv: None,
    }
}

/// The target tasks and what must be said about them.
pub(super) fn about_targets(runs: &[ModelRun]) -> StudyTable {
    let row = |target: &TargetInfo| {
        let scored = match target.rows < target.total {
            true => format!("{} of {}", target.rows, target.total),
            false => target.rows.to_string(),
        };
        let words = [target.title.clone(), target.classes.to_string(), scored, target.remarks.join("; ")];
        words.into_iter().map(Cell::text).collect()
    };
    StudyTable {
        id: "targets".to_owned(),
        heading: "Target tasks".to_owned(),
        columns: ["task", "classes", "test examples", "remarks"].map(Column::text).into(),
        rows: targets(runs).iter().map(row).collect(),
        caption: "The same examples for all models.".to_owned(),
        csv: None,
    }
}

/// A number without needless digits.
pub(super) fn short(value: f64) -> String {
    if (0.001..10_000.0).contains(&value) { value.to_string() } else { format!("{value:e}") }
}

/// The numbers behind the page.
///
/// # Errors
/// Never in practice: they are written to memory.
pub fn numbers(plan: &LeopardPlan, runs: &[ModelRun]) -> Result<Vec<NumbersFile>> {
    let scored = || runs.iter().filter_map(|run| Some((run.model, run.scores.as_ref()?)));
    let percent =
        |value: Option<f64>| json!(value.filter(|_| plan.is_comparable()).map(|value| value / 100.0));
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (model, scores) in scored() {
        for &k in &plan.shots {
            for (name, tests) in [("all", Tests::All), ("original", Tests::Original)] {
                let tasks = scores.tasks(tests);
                let Some(mean) = scores.scores.average(&tasks, k) else { continue };
                let stated = match tests {
                    Tests::All => paper::average(model, k),
                    Tests::Original => paper::average_over(model, &tasks, k),
                };
                rows.push(vec![
                    json!(model),
                    json!(k),
                    json!(name),
                    json!(tasks.len()),
                    json!(mean.accuracy),
                    json!(mean.standard_error),
                    json!(mean.log_likelihood),
                    percent(stated),
                    json!(scores.rate_of_scores()),
                ]);
            }
        }
    }
    let header = [
        "model",
        "shots",
        "test_sets",
        "tasks",
        "accuracy",
        "standard_error",
        "log_likelihood",
        "paper_accuracy",
        "rate",
    ];
    let averages = csv_of(header, rows)?;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (model, scores) in scored() {
        for target in &scores.targets {
            for &k in &plan.shots {
                let Some(mean) = scores.scores.of_task(&target.name, k) else { continue };
                let stated = paper::of_task(model, &target.name, k);
                rows.push(vec![
                    json!(model),
                    json!(target.name),
                    json!(target.classes),
                    json!(if target.rebuilt { "rebuilt" } else { "original" }),
                    json!(target.rows),
                    json!(k),
                    json!(mean.draws),
                    json!(mean.accuracy),
                    json!(mean.standard_error),
                    json!(mean.log_likelihood),
                    percent(stated.map(|(accuracy, _)| accuracy)),
                    percent(stated.map(|(_, error)| error)),
                    json!(scores.rate_of_scores()),
                ]);
            }
        }
    }
    let header = [
        "model",
        "task",
        "classes",
        "test_set",
        "test_examples",
        "shots",
        "draws",
        "accuracy",
        "standard_error",
        "log_likelihood",
        "paper_accuracy",
        "paper_standard_error",
        "rate",
    ];
    let tasks = csv_of(header, rows)?;
    let rows = scored().flat_map(|(model, scores)| {
        scores.scores.draws.iter().map(move |draw| {
            vec![
                json!(model),
                json!(draw.task),
                json!(draw.shots),
                json!(draw.draw),
                json!(draw.accuracy),
                json!(draw.log_likelihood),
                json!(draw.confidence),
                json!(draw.queries),
                json!(scores.rate_of_scores()),
            ]
        })
    });
    let header = [
        "model",
        "task",
        "shots",
        "draw",
        "accuracy",
        "log_likelihood",
        "confidence",
        "test_examples",
        "rate",
    ];
    let draws = csv_of(header, rows)?;
    Ok(vec![
        NumbersFile { name: "averages.csv", what: "averages over tasks by model and k", content: averages },
        NumbersFile { name: "tasks.csv", what: "one row a model, task and k", content: tasks },
        rates::numbers(plan, runs)?,
        NumbersFile { name: "draws.csv", what: "one row a draw", content: draws },
    ])
}
