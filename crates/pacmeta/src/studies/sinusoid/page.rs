//! The study's report: what was run, the paper's figures in its order, its claims, and the numbers.

use std::cmp::Ordering;

use super::analysis::{Analysis, FOLDS};
use super::claims::claims;
use super::model::{DELTA, EVALUATIONS, SUBSET_DRAWS};
use super::preset::{Plan, Preset};
use super::spec::{OBSERVED_TASKS, QUERY, SUPPORT, StudyMethod, TARGET_TASKS};
use super::{figures, tables};
use crate::error::Result;
use crate::report::{
    Block, Cell, ClaimRow, ClaimVerdict, Column, FileLink, StudyReport, StudySection, StudyTable,
};
use crate::studies::claims::{Claim, Verdict};
use crate::studies::folder::{Session, duration, time_by_the_clock};

/// The report of the study as far as it is recorded.
///
/// # Errors
/// When a gap cannot be computed.
pub fn report(analysis: &Analysis<'_>, command: &str, history: &[Session]) -> Result<StudyReport> {
    Ok(StudyReport {
        title: "The Sinusoid study".to_owned(),
        subtitle: subtitle(analysis),
        command: Some(command.to_owned()),
        facts: facts(analysis, history),
        sections: sections(analysis)?,
        notes: notes(analysis),
        files: files(),
    })
}

/// What the plan has less of than the paper, and more of.
fn scope(plan: &Plan) -> String {
    let paper = Plan::new(Preset::Paper);
    let settings = |plan: &Plan| {
        StudyMethod::ALL.iter().map(|method| plan.settings(*method).len()).sum::<usize>() as u64
    };
    let counts = [
        ("values of mᵢ", plan.examples.len() as u64, paper.examples.len() as u64),
        ("settings", settings(plan), settings(&paper)),
        ("meta-training sets", plan.data_sets, paper.data_sets),
        ("seeds", plan.seeds, paper.seeds),
        ("iterations", plan.iterations, paper.iterations),
    ];
    let of = |wanted: Ordering| -> Vec<&str> {
        counts.iter().filter(|(_, own, papers)| own.cmp(papers) == wanted).map(|(what, ..)| *what).collect()
    };
    let (fewer, more) = (of(Ordering::Less), of(Ordering::Greater));
    let named = |how: &str, list: &[&str]| (!list.is_empty()).then(|| format!("{how} {}", list.join(", ")));
    let differences: Vec<String> =
        [named("fewer", &fewer), named("more", &more)].into_iter().flatten().collect();
    match (fewer.is_empty(), more.is_empty()) {
        (true, true) => "The regression study of the paper on its whole grid".to_owned(),
        (true, false) => {
            format!("The regression study of the paper with {} than it has", differences.join(" and "))
        }
        (false, _) => format!(
            "A small part of the paper's regression study, with {} than the paper, as listed below, so expect wide error bars and \
             undecided claims",
            differences.join(" and ")
        ),
    }
}

fn subtitle(analysis: &Analysis<'_>) -> String {
    let plan = analysis.plan;
    let (done, failed, total) = analysis.counts();
    let scope = scope(plan);
    let state = if done + failed < total {
        format!(" So far {} of {total} pieces are recorded; the same command continues.", done + failed)
    } else {
        String::new()
    };
    format!(
        "{scope}. Priors are learned from {OBSERVED_TASKS} sinusoid tasks of mᵢ examples, adapted to {SUPPORT} examples of each of \
         {TARGET_TASKS} target tasks, and scored on {QUERY} others; {} a setting ({} times {}), {} \
         iterations each; settings are chosen by {FOLDS}-fold cross-validation over the target tasks.{state}",
        counted(plan.data_sets * plan.seeds, "model"),
        counted(plan.data_sets, "meta-training set"),
        counted(plan.seeds, "seed"),
        plan.iterations,
    )
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn facts(analysis: &Analysis<'_>, history: &[Session]) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let (done, failed, total) = analysis.counts();
    let mut facts = vec![
        fact("Preset", analysis.plan.preset.to_string()),
        fact("Pieces recorded", format!("{done} of {total}, {failed} failed")),
    ];
    facts.extend(time_by_the_clock(history, Some(done + failed)));
    facts.push(fact("Times of all pieces, added up", duration(analysis.seconds())));
    facts.push(fact("Version", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}

fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// What was run, exactly; where the preset is smaller than the paper, what the paper has.
fn run_table(plan: &Plan) -> StudyTable {
    let paper = Plan::new(Preset::Paper);
    let models = |plan: &Plan, method: StudyMethod| {
        plan.settings(method).len() as u64 * plan.examples.len() as u64 * plan.data_sets * plan.seeds
    };
    let mut rows: Vec<(String, String, String)> = vec![
        ("mᵢ".to_owned(), list(&plan.examples), list(&paper.examples)),
        (
            "β/mᵢ (PACOH, PACMAML, Reptile)".to_owned(),
            list(&plan.beta_per_example),
            list(&paper.beta_per_example),
        ),
        ("α/β (PACMAML)".to_owned(), list(&plan.alpha_over_beta), list(&paper.alpha_over_beta)),
        (
            "inner rates (MAML, FOMAML, fine-tuning)".to_owned(),
            list(&plan.inner_rates),
            list(&paper.inner_rates),
        ),
        ("inner steps (MAML, FOMAML)".to_owned(), list(&plan.inner_steps), list(&paper.inner_steps)),
        ("meta-training sets".to_owned(), plan.data_sets.to_string(), paper.data_sets.to_string()),
        ("seeds for each".to_owned(), plan.seeds.to_string(), paper.seeds.to_string()),
        ("iterations".to_owned(), plan.iterations.to_string(), paper.iterations.to_string()),
    ];
    for method in StudyMethod::ALL.into_iter().filter(|method| *method != StudyMethod::PlainGp) {
        let counted = |plan: &Plan| models(plan, method).to_string();
        rows.push((format!("models of {}", method.name()), counted(plan), counted(&paper)));
    }
    let ablated = |plan: &Plan| {
        let models =
            plan.ablations().len() as u64 * plan.ablation_examples().len() as u64 * plan.ablation_sets;
        if models == 0 { "none".to_owned() } else { models.to_string() }
    };
    rows.push(("models of the ablation".to_owned(), ablated(plan), ablated(&paper)));
    rows.push(("plain GPs".to_owned(), "1".to_owned(), "1".to_owned()));
    let draws = |plan: &Plan| {
        let places = plan.examples.len() * plan.beta_per_example.len();
        format!("{} at each of {places} mᵢ and β/mᵢ", plan.hyper_prior_draws)
    };
    rows.push(("draws from the hyper-prior".to_owned(), draws(plan), draws(&paper)));
    StudyTable {
        id: "run".to_owned(),
        heading: String::new(),
        columns: vec![Column::text("what"), Column::text("this run"), Column::text("preset paper")],
        rows: rows.into_iter().map(|(what, run, paper)| [what, run, paper].map(Cell::text).into()).collect(),
        caption: "The paper gives the grids of PACOH and PACMAML (α/β as in its appendix; its text has α/mᵢ); those of inner rates and \
                  steps are ours, as it says only that they were chosen in the same way. Every row of models, and every place of the \
                  hyper-prior's draws, is made of pieces that the record counts."
            .to_owned(),
        csv: None,
    }
}

fn claim_rows(claims: &[Claim]) -> Vec<ClaimRow> {
    claims
        .iter()
        .map(|claim| ClaimRow {
            statement: claim.statement.clone(),
            test: claim.test.clone(),
            effect: claim.effect.unwrap_or(f64::NAN),
            standard_error: claim.standard_error,
            observations: claim.observations,
            verdict: match claim.verdict {
                Verdict::Supported => ClaimVerdict::Supported,
                Verdict::NotSupported => ClaimVerdict::NotSupported,
                Verdict::Undecided => ClaimVerdict::Undecided,
            },
            detail: claim.detail.clone(),
        })
        .collect()
}

fn sections(analysis: &Analysis<'_>) -> Result<Vec<StudySection>> {
    let claims = claims(analysis);
    let mut bounds = StudySection::new("bounds", "Bounds against mᵢ (Theorems 2, 3 and 4)");
    bounds.blocks.extend(figures::theorems(analysis).map(Block::Figure));
    let mut sections = vec![
        StudySection::new("run-section", "What was run").with(run_table(analysis.plan)),
        StudySection::new("claims", "The paper's claims")
            .paragraph(
                "Each claim is tested on this run's numbers, errors by the last iterate: paired differences over meta-training sets, and \
                 target tasks where the claim is about errors, one-sided at 5%. \
                 Supported: the data would be surprising if the claim were false; a claim about every step or every comparison needs evidence \
                 for each of them. Not supported: surprising if it were true. Undecided: neither.",
            )
            .with(claim_rows(&claims)),
        bounds,
        StudySection::new("generalisation", "Generalisation error against mᵢ")
            .with(figures::errors(analysis))
            .with(figures::errors_close(analysis))
            .with(tables::errors(analysis)),
        StudySection::new("validation", "Validation and test error")
            .paragraph(format!(
                "Settings are chosen on three quarters of the target tasks and scored on the rest, in turn. Lowest during training looks at \
                 the test tasks {EVALUATIONS} times and keeps the best."
            ))
            .with(figures::validation(analysis, &[StudyMethod::Pacoh, StudyMethod::Pacmaml], "validation"))
            .with(figures::temperatures(analysis))
            .with(tables::quality(analysis)),
        StudySection::new("dependence", "Dependence on β and α")
            .with(figures::dependence(analysis))
            .with(tables::chosen(analysis)),
        StudySection::new("terms-pacoh", "Terms of PACOH's bound")
            .paragraph(format!(
                "Means over models, δ = {DELTA}. The confidence term is ξ log(2/δ), as two events are joined; the paper writes log(1/δ) in \
                 places. Psi terms are the same for all mᵢ when β/mᵢ is held, and left out as in the paper: \
                 the totals are to be compared with each other, and bound nothing."
            ))
            .with(figures::terms(analysis, StudyMethod::Pacoh))
            .with(tables::hyper_prior_gap(analysis)?),
        StudySection::new("terms-pacmaml", "Terms of PACMAML's bound")
            .paragraph(format!(
                "At the best α for each mᵢ and β. W₂ is a mean over {SUBSET_DRAWS} draws of S'. Totals without constants, as above."
            ))
            .with(figures::terms(analysis, StudyMethod::Pacmaml)),
        StudySection::new("comparison", "PACOH's total against PACMAML's").with(figures::comparison(analysis)),
        StudySection::new("points", "Reptile and MAML: points as base learners")
            .with(figures::validation(analysis, &[StudyMethod::Reptile, StudyMethod::Maml], "points"))
            .with(figures::dirac(analysis)),
    ];
    sections.push(differences(analysis, &claims));
    let predictions = figures::predictions(analysis);
    if !predictions.is_empty() {
        sections.push(
            StudySection::new("predictions", "Predictions on target tasks")
                .paragraph(
                    "Learned from the first meta-training set with the first seed, at the chosen settings.",
                )
                .with(predictions),
        );
    }
    Ok(sections)
}

/// Where this run does not show what the paper says, and what was tried to find out why.
fn differences(analysis: &Analysis<'_>, claims: &[Claim]) -> StudySection {
    let refuted: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.verdict == Verdict::NotSupported)
        .map(|claim| claim.statement.trim_end_matches('.'))
        .collect();
    let mut section =
        StudySection::new("ablation", "Where we differ from the paper").paragraph(match &refuted[..] {
            [] => "No claim of the paper is contradicted by this run.".to_owned(),
            list => format!("Claims that this run contradicts: {}.", list.join("; ")),
        });
    section = section.paragraph(match &tables::other_choices(analysis)[..] {
        [] => "Cross-validation chose what the paper's chose, where it names a choice.".to_owned(),
        list => format!("Cross-validation chose otherwise: {}.", list.join("; ")),
    });
    section.text.extend(tables::other_temperature(analysis));
    match tables::ablations(analysis) {
        Some(table) => section
            .paragraph(
                "What the paper leaves open, tried the other way: whether S' is drawn once or at each iteration, whether data are \
                 standardised, whether the hyper-prior acts. At mᵢ = m, where S' is S, drawing it once changes nothing but the order \
                 of sums: that row shows how far two runs of the same thing can be apart.",
            )
            .with(table),
        None => section.paragraph("The ablation is not part of this run; the preset paper has it."),
    }
}

/// Failures that the page names.
const NAMED_FAILURES: usize = 5;

fn notes(analysis: &Analysis<'_>) -> Vec<String> {
    let mut notes = vec![
        "Errors are in original units, bounds in squared standardised units. Data of a smaller mᵢ are the first examples of those of a \
         larger one; all models share the target tasks; methods share meta-training sets and initialisations. Risks behind the gap and the \
         true risk are measured on the same 100 fresh tasks for all models: their standard errors are over meta-training sets and do not \
         include the choice of these tasks."
            .to_owned(),
    ];
    let failures = analysis.failures();
    if !failures.is_empty() {
        let named: Vec<String> = failures
            .iter()
            .take(NAMED_FAILURES)
            .map(|(piece, reason)| format!("{piece} ({reason})"))
            .collect();
        let more = if failures.len() > named.len() { ", and more in records.jsonl" } else { "" };
        notes.push(format!(
            "{} pieces failed; their settings cannot be chosen at that mᵢ: {}{more}.",
            failures.len(),
            named.join(", ")
        ));
    }
    notes
}

fn files() -> Vec<FileLink> {
    let link = |name: &str, what: &str| FileLink {
        name: name.to_owned(),
        href: name.to_owned(),
        what: what.to_owned(),
    };
    vec![
        link("errors.csv", "Errors of every method at every mᵢ, with the chosen settings."),
        link("settings.csv", "Errors of every setting."),
        link("bounds.csv", "Every term of the bounds."),
        link("gaps.csv", "The gap over the hyper-prior."),
        link("ablations.csv", "Departures from the paper's protocol."),
        link("claims.json", "The paper's claims and their tests."),
        link("predictions.csv", "The drawn predictions, priors and truths."),
        link("errors.svg", "The figure of PACMAML, PACOH and MAML."),
        link("records.jsonl", "One line for each piece."),
        link("study.json", "What was to be run."),
    ]
}
