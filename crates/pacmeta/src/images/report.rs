//! The report of image classification: scores, learning curves, reliability, example tasks.

use super::files::ImageRunFiles;
use super::scores::ImageScores;
use crate::classification::curves::{Curve, CurveWords, curve_section};
use crate::classification::files::links;
use crate::config::TrainingNormalisation;
use crate::config::images::{HeadStart, NormScale, Normalisation};
use crate::report::{
    Axis, Block, Cell, Column, Guide, LineChart, Point, Proportion, Series, StudyFigure, StudyReport,
    StudySection, StudyTable,
};
use crate::training::run_directory::CHANGES;

/// A run with the name and the look that it has in every figure.
#[derive(Debug, Clone, Copy)]
pub struct NamedRun<'a> {
    /// The name.
    pub name: &'a str,
    /// Colour and marker, from 0.
    pub look: usize,
    /// The run.
    pub run: &'a ImageRunFiles,
}

/// The page of one run.
pub fn image_report(run: &ImageRunFiles, command: Option<String>) -> StudyReport {
    let config = &run.config;
    let title = config.method.kind.title();
    let named = [NamedRun { name: title, look: 0, run }];
    let data = &config.data;
    let mut sections = Vec::new();
    if let Some(scores) = &run.scores {
        let table = score_table("scores", &[(title.to_owned(), scores)]);
        sections.push(StudySection::new("results", "Results").with(table));
    }
    sections.extend(curves(&named));
    sections.extend(reliability_section(&named));
    sections.extend(gallery_section(run, title));
    let files = [
        ("config.toml", "the resolved configuration"),
        ("metrics.jsonl", "the numbers of training"),
        (CHANGES, "settings that changed after the run diverged"),
        ("scores.json", "the scores, those of each test task among them"),
        ("split.csv", "which classes were for training, validation and test"),
        ("prior.safetensors", "the network"),
    ];
    StudyReport {
        title: format!("{title} on pictures"),
        subtitle: format!(
            "A network of {} blocks with {} filters learned features from {}-way tasks of {} pictures, {} of each class for its \
             head to adapt to. {}",
            config.prior.blocks,
            config.prior.filters,
            data.way,
            data.way * data.shots,
            data.support,
            match run.scores {
                Some(_) => "It was then scored on classes it never saw.",
                None if run.iterations() >= config.training.iterations => "It has not been scored.",
                None => "The run is not finished.",
            }
        ),
        command,
        facts: vec![
            ("Pictures".to_owned(), data.path.display().to_string()),
            ("Size".to_owned(), format!("{0} x {0}, {1} channels", data.side, data.channels.count())),
            ("Iterations".to_owned(), format!("{} of {}", run.iterations(), config.training.iterations)),
            ("Tasks a batch".to_owned(), config.training.batch.to_string()),
            ("Inner steps".to_owned(), format!("{} at rate {}", config.method.steps, config.method.rate)),
            ("Scale behind batch norm".to_owned(), scale(config.prior.scale).to_owned()),
            ("Start of the head".to_owned(), head_start(config.prior.head).to_owned()),
            ("Seed".to_owned(), config.seed.to_string()),
        ],
        sections,
        notes: [
            Some(normalisation_note(config.evaluation.normalisation)),
            training_note(config.training.normalisation),
        ]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect(),
        files: links(&run.folder, &files),
    }
}

fn scale(scale: NormScale) -> &'static str {
    match scale {
        NormScale::Learned => "learned",
        NormScale::One => "one",
    }
}

fn head_start(head: HeadStart) -> &'static str {
    match head {
        HeadStart::Learned => "learned",
        HeadStart::Zero => "zero",
    }
}

/// What a reader should know of training that is not usual.
fn training_note(normalisation: TrainingNormalisation) -> Option<&'static str> {
    match normalisation {
        TrainingNormalisation::Batch => None,
        TrainingNormalisation::Support => Some(
            "In training, batch norm took its statistics from S', as many pictures of each class as a new task has, for all pictures of a task.",
        ),
        TrainingNormalisation::Separate => Some(
            "In training, the pictures of S', as many of each class as a new task has, and the others of a task were normalised each by their own statistics.",
        ),
    }
}

/// What a reader should know of batch norm.
pub(crate) fn normalisation_note(normalisation: Normalisation) -> &'static str {
    match normalisation {
        Normalisation::Batch => {
            "Batch norm takes its statistics from the batch at hand, support and queries each their own: a prediction depends on \
             the other queries of its task (transductive), as in MAML's experiments."
        }
        Normalisation::Together => {
            "Batch norm takes its statistics from support and queries together: a prediction depends on the other queries of its \
             task (transductive)."
        }
        Normalisation::Support => {
            "Batch norm takes its statistics from the support: a prediction depends on its own picture only."
        }
    }
}

/// A table of scores, one row a name.
pub fn score_table(id: &str, rows: &[(String, &ImageScores)]) -> StudyTable {
    let row = |(name, scores): &(String, &ImageScores)| {
        let percent = |value: f64| 100.0 * value;
        let error = scores.accuracy_standard_error.unwrap_or(f64::NAN);
        vec![
            Cell::text(name.clone()),
            Cell::estimate(percent(scores.accuracy), percent(error), scores.tasks),
            Cell::number(scores.accuracy_interval95.map_or(f64::NAN, percent)),
            Cell::estimate(
                scores.log_likelihood,
                scores.log_likelihood_standard_error.unwrap_or(f64::NAN),
                scores.tasks,
            ),
            Cell::number(percent(scores.calibration_error)),
        ]
    };
    StudyTable {
        id: id.to_owned(),
        heading: "Scores on test tasks".to_owned(),
        columns: vec![
            Column::text(""),
            Column::number("accuracy (%)"),
            Column::number("95% interval (±)"),
            Column::number("log-likelihood a query"),
            Column::number("calibration error (%)"),
        ],
        rows: rows.iter().map(row).collect(),
        caption: "Means over test tasks with their standard errors. The interval is by Student's t. In log-likelihoods a \
                  probability counts as 2⁻²⁴ at least, so that a query costs 16.64 at most. The calibration error is the mean distance between \
                  how sure a prediction is and how often such predictions are right."
            .to_owned(),
        csv: None,
    }
}

/// How learning went on validation tasks and in training.
pub fn curves(runs: &[NamedRun<'_>]) -> Option<StudySection> {
    let chance = runs.first().map(|named| 1.0 / named.run.config.data.way as f64);
    let curves: Vec<Curve<'_>> = runs
        .iter()
        .map(|&NamedRun { name, look, run }| Curve { name, look, metrics: &run.metrics })
        .collect();
    curve_section(
        &curves,
        &CurveWords {
            accuracy: "Accuracy on validation tasks",
            accuracy_caption: "Classes that training never saw, always the same tasks. A curve that still rises at its end has not seen \
                               enough iterations.",
            loss_caption: "The loss of the adapted head on the judged pictures of training tasks, averaged over neighbouring lines of \
                           metrics. PACOH and Reptile adapt to all of these pictures, multi-task learning to none. A loss near zero leaves \
                           the body nothing to learn from.",
            chance,
        },
    )
}

/// Whether probabilities mean what they say.
pub fn reliability_section(runs: &[NamedRun<'_>]) -> Option<StudySection> {
    let mut chart = LineChart::new(
        "Reliability",
        Axis::new("probability of the predicted class").percent().range(0.0, 1.0),
        Axis::new("part that is right").percent().range(0.0, 1.0),
    )
    .guide(Guide::Diagonal("what it should be".to_owned()));
    chart.proportion = Proportion::Square;
    for NamedRun { name, look, run } in runs.iter().copied() {
        let Some(scores) = &run.scores else { continue };
        let bins = scores.reliability.iter().filter(|bin| bin.queries > 0);
        let points = bins.map(|bin| Point::new(bin.confidence, bin.accuracy).observations(bin.queries));
        chart = chart.with(Series::new(name, points).observations_are("queries").look(look));
    }
    (!chart.series.is_empty()).then(|| {
        StudySection::new("reliability", "Reliability").with(StudyFigure::new(
            "reliability-figure",
            "How often a prediction is right, against how sure it is",
            chart,
            "Queries of all test tasks in ten bins. Below the diagonal, predictions are surer than they should be.",
        ))
    })
}

/// What the tasks look like.
pub fn gallery_section(run: &ImageRunFiles, name: &str) -> Option<StudySection> {
    (!run.gallery.is_empty()).then(|| {
        StudySection::new("tasks", "Test tasks")
            .paragraph(format!(
                "The first test tasks as {name} sees them. The head adapts to the labelled pictures; the others are what it \
                 makes of pictures it never saw, with the probability of its choice."
            ))
            .with(Block::Gallery(run.gallery.clone()))
    })
}
