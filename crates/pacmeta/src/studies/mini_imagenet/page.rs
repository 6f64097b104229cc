//! The report of the study: the paper's Table 1 beside ours, claims, curves, reliability, example tasks.

use serde_json::{Value, json};

use super::plan::{ImagePlan, ImagePreset, Model, look};
use super::{ModelRun, claims};
use crate::config::{ClassificationMethodKind, images::Normalisation};
use crate::error::Result;
use crate::images::report::{
    NamedRun, curves, gallery_section, normalisation_note, reliability_section, score_table,
};
use crate::images::{ImageRunFiles, ImageScores};
use crate::report::{
    Axis, Cell, ClaimRow, Column, FileLink, LineChart, Point, Series, StudyFigure, StudyReport, StudySection,
    StudyTable,
};
use crate::studies::folder::{Session, time_by_the_clock};
use crate::studies::numbers::{NumbersFile, csv_of};

/// Everything that the page shows.
pub fn report(plan: &ImagePlan, runs: &[ModelRun], command: &str, history: &[Session]) -> StudyReport {
    let finished = runs.iter().filter(|run| run.scores().is_some()).count();
    let heading = if plan.is_comparable() { "The paper's Table 1" } else { "Accuracy" };
    let mut results = StudySection::new("table-1", heading)
        .paragraph(
            "Test accuracy on 5-way 1-shot tasks of classes that training never saw, for training tasks of mᵢ pictures.",
        )
        .with(main_table(plan, runs));
    if plan.examples.len() > 1 {
        results = results.with(size_figure(plan, runs));
    }
    let mut sections = vec![results];
    let rows = plan_claims(plan, runs);
    if !rows.is_empty() {
        sections.push(
            StudySection::new("claims", "The paper's claims")
                .paragraph(
                    "Each claim is tested on the test tasks of this study. There is one model of each kind: standard errors are over \
                     tasks, and do not cover what another training run would have given.",
                )
                .with(rows),
        );
    }
    for &examples in &plan.examples {
        let named = named_runs(runs, examples);
        for section in [curves(&named), reliability_section(&named)].into_iter().flatten() {
            sections.push(numbered(section, plan, examples));
        }
        let rows: Vec<(String, &ImageScores)> = runs
            .iter()
            .filter(|run| run.model.examples == examples)
            .filter_map(|run| Some((run.model.method.title().to_owned(), run.scores()?)))
            .collect();
        if !rows.is_empty() {
            let section = StudySection::new("scores", "All scores").with(score_table("all-scores", &rows));
            sections.push(numbered(section, plan, examples));
        }
    }
    if let Some(run) = shown_run(runs) {
        let (model, files) = run;
        sections.extend(gallery_section(files, model.method.title()));
    }
    StudyReport {
        title: match (plan.is_comparable(), plan.is_generated()) {
            (true, _) => "Few-shot pictures: miniImageNet",
            (false, true) => "Few-shot pictures: generated characters",
            (false, false) => "Few-shot pictures",
        }
        .to_owned(),
        subtitle: format!("{} {finished} of {} models are finished.", what_was_run(plan), runs.len()),
        command: (!command.is_empty()).then(|| command.to_owned()),
        facts: facts(plan, runs, history, finished),
        sections,
        notes: notes(plan),
        files: vec![
            FileLink {
                name: "accuracy.csv".to_owned(),
                href: "accuracy.csv".to_owned(),
                what: "one row a model: accuracy, intervals, likelihood, calibration, the paper's number"
                    .to_owned(),
            },
            FileLink {
                name: "curves.csv".to_owned(),
                href: "curves.csv".to_owned(),
                what: "accuracy on validation tasks along training".to_owned(),
            },
        ],
    }
}

fn named_runs(runs: &[ModelRun], examples: usize) -> Vec<NamedRun<'_>> {
    let of_size = runs.iter().filter(|run| run.model.examples == examples);
    of_size
        .filter_map(|run| {
            let method = run.model.method;
            Some(NamedRun { name: method.title(), look: look(method), run: run.run.as_ref()? })
        })
        .collect()
}

/// The run whose tasks are shown: PACMAML's with the largest tasks, else any.
fn shown_run(runs: &[ModelRun]) -> Option<(Model, &ImageRunFiles)> {
    let scored = || {
        let scored = runs.iter().rev().filter(|run| run.scores().is_some());
        scored.filter_map(|run| Some((run.model, run.run.as_ref()?)))
    };
    scored().find(|(model, _)| model.method == ClassificationMethodKind::Pacmaml).or_else(|| scored().next())
}

/// Where there are several sizes, a section says which one it is about.
fn numbered(mut section: StudySection, plan: &ImagePlan, examples: usize) -> StudySection {
    if plan.examples.len() > 1 {
        section.heading = format!("{}, mᵢ = {examples}", section.heading);
    }
    section.id = format!("{}-m{examples}", section.id);
    section
}

/// The paper's claims for every size, where they can be tested on these pictures.
pub fn plan_claims(plan: &ImagePlan, runs: &[ModelRun]) -> Vec<ClaimRow> {
    let sizes = plan.examples.iter().filter(|_| plan.is_comparable());
    sizes.flat_map(|&examples| claims(runs, examples)).collect()
}

/// What was run, in a sentence or two.
pub fn what_was_run(plan: &ImagePlan) -> String {
    let what = match plan.preset {
        ImagePreset::Quick => format!(
            "A small part of the paper's study on pictures: pictures of {0} x {0} instead of 84 x 84, {1} iterations instead of 60,000, \
             {2} test tasks instead of 600. It shows that everything runs, and not what the methods reach.",
            plan.side, plan.iterations, plan.tasks
        ),
        ImagePreset::Cpu => format!(
            "The paper's study on pictures with {} iterations instead of 60,000: early differences, not end values.",
            plan.iterations
        ),
        ImagePreset::Paper => {
            format!("The paper's study on pictures, {} iterations a model.", plan.iterations)
        }
    };
    match plan.settings_in_words() {
        Some(settings) => format!("{what} All models have other settings than the paper's: {settings}."),
        None => what,
    }
}

fn facts(plan: &ImagePlan, runs: &[ModelRun], history: &[Session], finished: usize) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Pictures".to_owned(), plan.data.display().to_string()),
        ("Models".to_owned(), format!("{finished} of {} finished", runs.len())),
        ("Iterations".to_owned(), plan.iterations.to_string()),
        ("Test tasks".to_owned(), format!("{}, the same for all models", plan.tasks)),
        ("Seed".to_owned(), plan.seed.to_string()),
    ];
    facts.extend(plan.settings_in_words().map(|settings| ("Other settings".to_owned(), settings)));
    facts.extend(time_by_the_clock(history, None));
    facts
}

fn notes(plan: &ImagePlan) -> Vec<String> {
    let config = plan.models().first().and_then(|&model| plan.config(model).ok());
    let normalisation = config.map_or(Normalisation::Batch, |config| config.evaluation.normalisation);
    let hyper_parameters = match plan.settings_in_words() {
        None => "Hyper-parameters are those of the paper's table; the head's start and a scale behind batch norm are learned, S' is part of S, and the \
                 pictures of a training task are normalised in one batch. Gradients longer than 10 are cut to that norm, which tames MAML's first iterations."
            .to_owned(),
        Some(settings) => format!(
            "Hyper-parameters are those of the paper's table, and the rest as in a study of the paper's own settings, but for {settings}."
        ),
    };
    vec![
        normalisation_note(normalisation).to_owned(),
        hyper_parameters,
        "The paper's \"standard error\" of 0.9 is the size of a 95% interval over 600 tasks: compare it with the intervals here.".to_owned(),
        if plan.is_generated() {
            "The pictures are generated stroke characters: neither the paper's numbers nor its claims are about them.".to_owned()
        } else if !plan.is_comparable() {
            "The pictures are not miniImageNet in its usual division (64, 16 and 20 classes, named like n01532829): neither the paper's \
             numbers nor its claims are about them. `pacmeta train configs/own-images.toml` has all settings for pictures of one's own."
                .to_owned()
        } else {
            "The split has 64 classes for training, 16 for validation and 20 for the test if the data's split file is Ravi and \
             Larochelle's; the paper speaks of 64, 12 and 24."
                .to_owned()
        },
    ]
}

/// One row an m_i; ours, and the paper's below it.
fn main_table(plan: &ImagePlan, runs: &[ModelRun]) -> StudyTable {
    let mut rows = Vec::new();
    for &examples in &plan.examples {
        let of = |method| runs.iter().find(|run| run.model == Model { method, examples });
        let best = plan
            .methods
            .iter()
            .filter_map(|&method| Some((method, of(method)?.scores()?.accuracy)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(method, _)| method);
        let ours = plan.methods.iter().map(|&method| match of(method).and_then(ModelRun::scores) {
            Some(scores) => {
                let error = scores.accuracy_standard_error.unwrap_or(f64::NAN);
                let cell = Cell::estimate(100.0 * scores.accuracy, 100.0 * error, scores.tasks);
                if best == Some(method) { cell.best() } else { cell }
            }
            None => of(method).and_then(|run| run.progress(plan)).map_or_else(Cell::missing, Cell::text),
        });
        rows.push(std::iter::once(Cell::text(format!("mᵢ = {examples}"))).chain(ours).collect());
        if !plan.is_comparable() {
            continue;
        }
        let papers =
            plan.methods.iter().map(|&method| match (Model { method, examples }).accuracy_in_paper() {
                Some(value) => Cell::number(value),
                None => Cell::missing(),
            });
        rows.push(std::iter::once(Cell::text("paper")).chain(papers).collect());
    }
    let columns = plan.methods.iter().map(|method| Column::number(method.title()));
    StudyTable {
        id: "accuracy".to_owned(),
        heading: "Test accuracy in percent".to_owned(),
        columns: std::iter::once(Column::text("")).chain(columns).collect(),
        rows,
        caption: "Means over test tasks with their standard errors; about two of them make the 95% interval. Where a model is not \
                  finished: its iterations so far."
            .to_owned(),
        csv: Some("accuracy.csv".to_owned()),
    }
}

fn size_figure(plan: &ImagePlan, runs: &[ModelRun]) -> StudyFigure {
    let axis =
        Axis::new("pictures in a training task").log().ticks(plan.examples.iter().map(|&size| size as f64));
    let mut chart = LineChart::new("Accuracy", axis, Axis::new("test accuracy").percent());
    for &method in &plan.methods {
        let points = runs.iter().filter(|run| run.model.method == method).filter_map(|run| {
            let scores = run.scores()?;
            let point = Point::new(run.model.examples as f64, scores.accuracy).observations(scores.tasks);
            Some(match scores.accuracy_interval95 {
                Some(half) => point.error(half),
                None => point,
            })
        });
        let series =
            Series::new(method.title(), points).intervals_are("95% interval").observations_are("tasks");
        chart = chart.with(series.look(look(method)));
    }
    StudyFigure::new(
        "sizes",
        "Test accuracy against the size of training tasks",
        chart,
        "The paper finds PACMAML and MAML nearly flat, and PACOH and BMAML far below where tasks are small.",
    )
}

/// The numbers behind the page.
///
/// # Errors
/// Never in practice: they are written to memory.
pub fn numbers(plan: &ImagePlan, runs: &[ModelRun]) -> Result<Vec<NumbersFile>> {
    let rows = runs.iter().map(|run| {
        let scores = run.scores();
        let of = |value: fn(&ImageScores) -> Value| scores.map_or(Value::Null, value);
        vec![
            json!(run.model.method),
            json!(run.model.examples),
            json!(run.run.as_ref().map(ImageRunFiles::iterations)),
            json!(plan.iterations),
            of(|scores| json!(scores.accuracy)),
            of(|scores| json!(scores.accuracy_standard_error)),
            of(|scores| json!(scores.accuracy_interval95)),
            of(|scores| json!(scores.log_likelihood)),
            of(|scores| json!(scores.calibration_error)),
            of(|scores| json!(scores.tasks)),
            json!(
                run.model.accuracy_in_paper().filter(|_| plan.is_comparable()).map(|percent| percent / 100.0)
            ),
        ]
    });
    let header = [
        "method",
        "examples",
        "iterations_done",
        "iterations",
        "accuracy",
        "standard_error",
        "interval95",
        "log_likelihood",
        "calibration_error",
        "tasks",
        "paper_accuracy",
    ];
    let accuracy = csv_of(header, rows)?;
    let curves = runs.iter().flat_map(|run| {
        let lines = run.run.iter().flat_map(|files| &files.metrics);
        lines.filter_map(|line| {
            Some(vec![
                json!(run.model.method),
                json!(run.model.examples),
                json!(line.iteration),
                json!(line.get("validation_accuracy")?),
                json!(line.get("validation_standard_error")),
            ])
        })
    });
    let curves = csv_of(["method", "examples", "iteration", "accuracy", "standard_error"], curves)?;
    Ok(vec![
        NumbersFile { name: "accuracy.csv", what: "one row a model", content: accuracy },
        NumbersFile { name: "curves.csv", what: "validation along training", content: curves },
    ])
}
