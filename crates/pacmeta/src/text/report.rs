//! The page of a run of text classification: scores by task and shots beside the pretrained encoder's, learning curves.

use super::evaluation::{ShotScores, TextScores};
use super::files::TextRunFiles;
use crate::classification::curves::{Curve, CurveWords, curve_section};
use crate::classification::files::links;
use crate::report::{Cell, Column, StudyReport, StudySection, StudyTable};
use crate::training::run_directory::CHANGES;

impl TextScores {
    /// The number of sentences of a task that every draw classifies, always the same ones.
    pub fn queries(&self, task: &str) -> usize {
        self.draws.iter().find(|draw| draw.task == task).map_or(0, |draw| draw.queries)
    }
}

/// The page of one run.
pub fn text_report(run: &TextRunFiles, command: Option<String>) -> StudyReport {
    let config = &run.config;
    let title = config.method.kind.title();
    let data = &config.data;
    let mut sections = Vec::new();
    if let Some(scores) = &run.scores {
        let rows = [(title, &scores.model), ("pretrained only", &scores.pretrained)];
        let names = scores.model.tasks();
        let mut section = StudySection::new("results", "Results");
        section = section.with(average_table("averages", &rows, &names));
        for &task in &names {
            section = section.with(task_table(task, &rows));
        }
        sections.push(section);
    }
    sections.extend(curves(&[Curve { name: title, look: 0, metrics: &run.metrics }]));
    let files = [
        ("config.toml", "the resolved configuration"),
        ("metrics.jsonl", "the numbers of training"),
        (CHANGES, "settings that changed after the run diverged"),
        ("scores.json", "the scores of every draw"),
        ("prior.safetensors", "the encoder"),
        ("tokeniser", "the tokeniser's files"),
    ];
    let adapts = match config.prior.threshold {
        Some(threshold) => format!("the head and the layers above {threshold}"),
        None => "the head".to_owned(),
    };
    StudyReport {
        title: format!("{title} on texts"),
        subtitle: format!(
            "An encoder learned from tasks of {} examples, {} of which {adapts} adapted to. {}",
            data.examples,
            data.support,
            match run.scores {
                Some(_) =>
                    "It was then scored on tasks that it never saw, beside the same encoder without meta-learning.",
                None if run.iterations() >= config.training.iterations => "It has not been scored.",
                None => "The run is not finished.",
            }
        ),
        command,
        facts: vec![
            ("Sentences".to_owned(), data.path.display().to_string()),
            ("Encoder".to_owned(), config.prior.model.display().to_string()),
            ("Adapts".to_owned(), adapts.clone()),
            ("Iterations".to_owned(), format!("{} of {}", run.iterations(), config.training.iterations)),
            ("Inner steps".to_owned(), format!("{} at rate {}", config.method.steps, config.method.rate)),
            (
                "On a new task".to_owned(),
                format!("{} steps of Adam at rate {}", config.evaluation.steps, config.evaluation.rate),
            ),
            ("Scored sentences".to_owned(), scored_sentences(run)),
            ("Seed".to_owned(), config.seed.to_string()),
        ],
        sections,
        notes: Vec::new(),
        files: links(&run.folder, &files),
    }
}

/// How many sentences of each task the scores rest on.
fn scored_sentences(run: &TextRunFiles) -> String {
    let Some(scores) = &run.scores else { return "none yet".to_owned() };
    let of_task = |task: &&str| format!("{task}: {}", scores.model.queries(task));
    let tasks: Vec<String> = scores.model.tasks().iter().map(of_task).collect();
    if tasks.is_empty() { "none".to_owned() } else { tasks.join(", ") }
}

/// A mean accuracy in percent with its standard error.
pub(crate) fn accuracy_cell(scores: Option<ShotScores>) -> Cell {
    match scores {
        Some(scores) => Cell::estimate(
            100.0 * scores.accuracy,
            100.0 * scores.standard_error.unwrap_or(f64::NAN),
            scores.draws,
        ),
        None => Cell::text("-"),
    }
}

/// Averages over tasks: one row a model, one column a number of shots.
pub(crate) fn average_table(id: &str, rows: &[(&str, &TextScores)], tasks: &[&str]) -> StudyTable {
    let heading = match tasks.len() {
        1 => format!("Accuracy on {}", tasks[0]),
        count => format!("Average accuracy over {count} tasks"),
    };
    table(
        id,
        heading,
        rows,
        |scores, shots| scores.average(tasks, shots),
        "Accuracy in percent on tasks that were not learned from: means over tasks and draws, with the standard error over draws.",
    )
}

fn counted_queries(count: usize) -> String {
    if count == 1 { "1 sentence".to_owned() } else { format!("{count} sentences") }
}

fn task_table(task: &str, rows: &[(&str, &TextScores)]) -> StudyTable {
    let id = format!("task-{}", task.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    table(
        &id,
        format!("Accuracy on {task}"),
        rows,
        |scores, shots| scores.of_task(task, shots),
        &format!(
            "Accuracy in percent on {}, the same in all draws: means over draws of the examples that are adapted to, with their \
             standard errors.",
            counted_queries(rows.first().map_or(0, |(_, scores)| scores.queries(task)))
        ),
    )
}

fn table(
    id: &str,
    heading: String,
    rows: &[(&str, &TextScores)],
    score: impl Fn(&TextScores, usize) -> Option<ShotScores>,
    caption: &str,
) -> StudyTable {
    let shots = rows.first().map(|(_, scores)| scores.shots()).unwrap_or_default();
    let mut columns = vec![Column::text("")];
    columns.extend(shots.iter().map(|k| Column::number(format!("{k} a class"))));
    let row = |(name, scores): &(&str, &TextScores)| {
        let mut cells = vec![Cell::text((*name).to_owned())];
        cells.extend(shots.iter().map(|&k| accuracy_cell(score(scores, k))));
        cells
    };
    StudyTable {
        id: id.to_owned(),
        heading,
        columns,
        rows: rows.iter().map(row).collect(),
        caption: caption.to_owned(),
        csv: None,
    }
}

/// How learning went on held-out tasks and in training.
pub(crate) fn curves(curves: &[Curve<'_>]) -> Option<StudySection> {
    curve_section(
        curves,
        &CurveWords {
            accuracy: "Accuracy on held-out tasks",
            accuracy_caption: "Tasks that training never saw, always the same draws, with the fewest shots. The first point is the encoder \
                               before meta-learning.",
            loss_caption: "The loss of what adapted on the judged examples of training tasks, averaged over neighbouring lines of metrics. \
                           PACOH and Reptile adapt to all of these examples, multi-task learning to none.",
            chance: None,
        },
    )
}
