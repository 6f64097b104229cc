//! The report of the study.

use super::plan::{Adapting, LeopardModel, LeopardPlan, LeopardPreset};
use super::{ModelRun, claims, paper, rates, tables};
use crate::classification::curves::Curve;
use crate::config::text::SYNTHETIC;
use crate::report::{ClaimRow, FileLink, StudyReport, StudySection};
use crate::studies::folder::{Session, time_by_the_clock};
use crate::text::report::curves;

/// Everything that the page shows.
pub fn report(plan: &LeopardPlan, runs: &[ModelRun], command: &str, history: &[Session]) -> StudyReport {
    let scored = runs.iter().filter(|run| run.scores.is_some()).count();
    let mut sections = Vec::new();
    if scored > 0 {
        let heading = if plan.is_comparable() { "The paper's Table 2" } else { "Averages" };
        let mut section = StudySection::new("table-2", heading).paragraph(
            "Accuracy on tasks that training never saw, after adapting to k examples of each class: averages over the target tasks.",
        );
        if let Some(words) = rates::how_compared(plan, runs) {
            section = section.paragraph(words);
        }
        section = section.with(tables::averages(plan, runs));
        if let Some(gains) = tables::gains(plan, runs) {
            section = section.with(gains);
        }
        for table in rates::tables(plan, runs) {
            section = section.with(table);
        }
        sections.push(section);
        let rows = plan_claims(plan, runs);
        if !rows.is_empty() {
            sections.push(
                StudySection::new("claims", "The paper's claims")
                    .paragraph(
                        "Each claim is tested on the draws of this study, model against model on the same draws. There is one model of each \
                         kind: standard errors are over draws, and do not cover what another training run would have given.",
                    )
                    .with(rows),
            );
        }
        let heading = if plan.is_comparable() { "The paper's Table 7" } else { "The tasks" };
        sections.push(
            StudySection::new("table-7", heading)
                .with(tables::tasks(plan, runs))
                .with(tables::about_targets(runs)),
        );
    }
    sections.push(StudySection::new("settings", "What was chosen").with(tables::chosen(plan, runs)));
    let trained = runs.iter().filter_map(|run| Some((run.model.title(), run.run.as_ref()?)));
    let of_runs: Vec<Curve<'_>> = trained
        .enumerate()
        .map(|(look, (name, files))| Curve { name, look, metrics: &files.metrics })
        .collect();
    sections.extend(curves(&of_runs));
    let files = [
        ("averages.csv", "averages over tasks by model and k, with the paper's numbers"),
        ("tasks.csv", "one row a model, task and k"),
        ("rates.csv", "averages at every rate of the fine-tuning that was tried"),
        ("draws.csv", "one row a draw"),
    ];
    StudyReport {
        title: if plan.is_comparable() {
            "Few-shot texts: GLUE to LEOPARD"
        } else {
            "Few-shot texts: generated sentences"
        }
        .to_owned(),
        subtitle: format!("{} {scored} of {} models are scored.", what_was_run(plan), runs.len()),
        command: (!command.is_empty()).then(|| command.to_owned()),
        facts: facts(plan, runs, history, scored),
        sections,
        notes: notes(plan),
        files: files
            .into_iter()
            .map(|(name, what)| FileLink {
                name: name.to_owned(),
                href: name.to_owned(),
                what: what.to_owned(),
            })
            .collect(),
    }
}

/// The paper's claims, where they can be tested on these sentences.
pub fn plan_claims(plan: &LeopardPlan, runs: &[ModelRun]) -> Vec<ClaimRow> {
    if plan.is_comparable() { claims(runs) } else { Vec::new() }
}

/// The paper's average accuracy in percent, where the plan can be compared with it.
pub fn paper_average(plan: &LeopardPlan, model: LeopardModel, shots: usize) -> Option<f64> {
    paper::average(model, shots).filter(|_| plan.is_comparable())
}

/// What was run, in a sentence or two.
pub fn what_was_run(plan: &LeopardPlan) -> String {
    let test = match plan.queries {
        Some(rows) => format!("at most {rows} test examples of a task"),
        None => "whole test sets".to_owned(),
    };
    let size = format!(
        "{} iterations instead of 10,000, tasks of {} examples instead of 256, {} of 10 draws, {test}",
        plan.iterations, plan.examples, plan.draws
    );
    match plan.preset {
        LeopardPreset::Quick => format!(
            "A small part of the paper's study on texts: {size}, sentences cut at {} tokens. It shows that everything runs, and not what the \
             methods reach.",
            plan.length
        ),
        LeopardPreset::Cpu => format!("The paper's study on texts, smaller: {size}."),
        LeopardPreset::Paper => format!(
            "The paper's study on texts, {} iterations a model with tasks of {} examples, {test}.",
            plan.iterations, plan.examples
        ),
    }
}

fn facts(plan: &LeopardPlan, runs: &[ModelRun], history: &[Session], scored: usize) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        fact("Sentences", plan.data.display().to_string()),
        fact("Encoder", plan.encoder.display().to_string()),
        fact("Models", format!("{scored} of {} scored", runs.len())),
        fact("Iterations", plan.iterations.to_string()),
        fact(
            "Adapts",
            match plan.adapting {
                Adapting::Paper => "the head, and for PACMAML the last layer",
                Adapting::Head => "the head",
            }
            .to_owned(),
        ),
        fact("Draws", format!("{} of each k, the same for all models", plan.draws)),
        fact("Seed", plan.seed.to_string()),
    ];
    facts.extend(time_by_the_clock(history, None));
    facts
}

/// What a reader must know beside the numbers.
pub fn notes(plan: &LeopardPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if !plan.is_comparable() {
        notes.push(
            "The sentences are generated: neither the paper's numbers nor its claims are about them."
                .to_owned(),
        );
    } else {
        notes.push(
            "The paper meta-trained BERT-base, of 110 million parameters. all-MiniLM-L6-v2, the small encoder that this study is usually run \
             with, was trained as a sentence encoder on public pairs of sentences, and sources of some of GLUE's tasks were among them (SNLI, \
             MNLI, the question pairs of QQP, and SQuAD, of which QNLI is made): what it learned there counts for all models, the one without \
             meta-training included."
                .to_owned(),
        );
        notes.push(
            "Tasks marked \"rebuilt eval\" are scored on another sample of the same source than the original test set: numbers on them are \
             not comparable with the paper's, and the averages without them are given. disaster has nine draws of k = \
             16, since one is empty in the published data."
                .to_owned(),
        );
        notes.push(
            "The paper's text speaks of 2 to 12 classes, its table and the data have up to 13.".to_owned(),
        );
    }
    if plan.encoder.as_os_str() == SYNTHETIC {
        notes.push(
            "The encoder is a tiny one with random weights, good for trying the command only.".to_owned(),
        );
    }
    if let Some(rows) = plan.queries.filter(|_| plan.is_comparable()) {
        notes.push(format!(
            "Test sets of more than {rows} examples are replaced by {rows} of them, drawn at random, the same for all models."
        ));
    }
    if plan.adapting == Adapting::Head {
        notes.push(
            "Only the head adapts, in training and on target tasks. In the paper that is so for MAML, BMAML and PACOH (v = 12), and PACMAML \
             adapts the last layer too (v = 11), which takes some twenty times as long here: the preset `paper` does it."
                .to_owned(),
        );
    }
    if plan.models.contains(&LeopardModel::HSmlmt) {
        notes.push(
            "H-SMLMT: MAML with heads that a network makes from the support, on tasks of which half are made from masked words. The paper \
             quotes its numbers from another paper (Bansal et al., 2020), which had a larger collection of sentences."
                .to_owned(),
        );
    }
    notes
}
