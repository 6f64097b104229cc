//! `pacmeta reproduce mini-imagenet`, and what `pacmeta report` does for its folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::MultiProgress;
use pacmeta::environments::images::is_mini_imagenet;
use pacmeta::images::ImageExperiment;
use pacmeta::report::ClaimRow;
use pacmeta::studies::folder::of_model;
use pacmeta::studies::mini_imagenet::{
    ImagePlan, ImagePreset, ModelRun, STUDY, numbers, plan_claims, report, runs, what_was_run,
};
use pacmeta::studies::{Session, StoredPlan};
use pacmeta::{Error, Result};
use serde_json::{Value, json};

use super::images::train_in;
use super::scores::wrapped;
use super::study::{ONE_TRAINING, earlier_plan, open_study, verdicts, write_study};
use crate::arguments::{PresetName, Reproduce, image_method};
use crate::classification_progress::ClassificationProgress;
use crate::output::{bold, print, print_json};
use crate::progress::Verbosity;
use crate::table::Table;

pub(super) fn run(arguments: &Reproduce) -> Result<()> {
    let plan = plan(arguments)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(format!("{STUDY}-{}", plan.preset)),
    };
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    train(&plan, &out, verbosity)?;
    show(&out, arguments.json)
}

fn plan(arguments: &Reproduce) -> Result<ImagePlan> {
    let Some(data) = &arguments.data else {
        return Err(Error::input(
            "option `--data`",
            "expected the folder of miniImageNet's pictures (one folder or zip file a class, with split.csv), or `synthetic` \
             for generated characters",
        ));
    };
    let absolute =
        |path: &PathBuf| std::path::absolute(path).map_err(|source| Error::io("find", path, source));
    let data = if data.as_os_str() == "synthetic" { data.clone() } else { absolute(data)? };
    let mut plan = ImagePlan::new(
        match arguments.preset {
            PresetName::Quick => ImagePreset::Quick,
            PresetName::Cpu => ImagePreset::Cpu,
            PresetName::Paper => ImagePreset::Paper,
        },
        data,
    );
    plan.cache = arguments.cache.as_ref().map(absolute).transpose()?;
    if let Some(names) = &arguments.methods {
        let by_name = |name: &String| {
            let refuse =
                |message| Error::input("option `--methods`", format!("there is no `{name}`; {message}"));
            image_method(name).map_err(refuse)
        };
        plan.methods = names.iter().map(by_name).collect::<Result<_>>()?;
    }
    let mut seen = Vec::new();
    plan.methods.retain(|method| {
        !seen.contains(method) && {
            seen.push(*method);
            true
        }
    });
    plan.examples = arguments.examples.clone().unwrap_or(plan.examples);
    plan.examples.sort_unstable();
    plan.examples.dedup();
    plan.iterations = arguments.iterations.unwrap_or(plan.iterations);
    plan.tasks = arguments.tasks.map_or(plan.tasks, |tasks| tasks as usize);
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    plan.settings = arguments.set.iter().map(|(key, value)| (key.clone(), value.trim().to_owned())).collect();
    // Every model's settings are looked at before anything is read or trained.
    plan.models().into_iter().try_for_each(|model| plan.config(model).map(drop))?;
    Ok(plan.without_idle_settings())
}

/// Trains what is missing, one model after another, each on all threads.
fn train(plan: &ImagePlan, out: &Path, verbosity: Verbosity) -> Result<()> {
    // reading and decoding count as well
    let start = Instant::now();
    let bars = MultiProgress::new();
    let models = plan.models();
    let first = models.first().ok_or_else(|| Error::input("the plan", "has no models"))?;
    let earlier = earlier_plan::<ImagePlan>(out, STUDY)?;
    let mut shown = earlier.map_or_else(|| Ok(plan.clone()), |earlier| plan.including(&earlier))?;
    // A run that does not belong to this study is refused before anything is written.
    runs(&shown, out)?;
    let mut progress = ClassificationProgress::new(out, verbosity, &bars);
    // Pictures that cannot be used are refused before anything is written.
    let (pictures, notes) = ImageExperiment::prepare(plan.config(*first)?, &mut progress)?;
    notes.iter().for_each(|note| progress.say(note));
    shown.is_mini_imagenet = is_mini_imagenet(pictures.set(), pictures.splits());
    if !shown.is_mini_imagenet && !shown.is_generated() {
        progress.say(
            "these pictures are not miniImageNet in its usual division: the paper's numbers are left out",
        );
    }
    drop(progress);
    let folder = open_study(out, STUDY, &shown)?;
    let (mut finished, mut outcome) = (0, Ok(()));
    for model in models {
        let run = out.join(model.folder());
        let mut progress = ClassificationProgress::new(&run, verbosity, &bars);
        let scored = pictures
            .with_config(plan.config(model)?)
            .and_then(|experiment| train_in(&experiment, &run, &mut progress))
            .map_err(|error| of_model(error, &run));
        match scored {
            Ok(scored) => finished += usize::from(scored.outcome.iterations > 0),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    let session = Session {
        models: finished,
        seconds: start.elapsed().as_secs_f64(),
        threads: rayon::current_num_threads(),
    };
    folder.remember(session)?;
    outcome
}

/// Writes page and numbers from the files of the runs, and prints the conclusions.
pub(super) fn show(folder: &Path, as_json: bool) -> Result<()> {
    let Some(stored) = StoredPlan::read(folder)? else {
        return Err(Error::input(folder.display(), "is no study's folder"));
    };
    let plan: ImagePlan = stored.plan(folder)?;
    let runs = runs(&plan, folder)?;
    let page = report(&plan, &runs, &stored.command, &stored.history);
    let page = write_study(folder, numbers(&plan, &runs)?, &page)?;
    let claims = plan_claims(&plan, &runs);
    if as_json {
        return print_json(&conclusions(&plan, &runs, &claims, &page));
    }
    print(&in_words(&plan, &runs, &claims, &page))
}

fn conclusions(plan: &ImagePlan, runs: &[ModelRun], claims: &[ClaimRow], page: &Path) -> Value {
    let models: Vec<Value> = runs
        .iter()
        .map(|run| {
            let scores = run.scores();
            json!({
                "method": run.model.method,
                "examples": run.model.examples,
                "iterations": run.run.as_ref().map(pacmeta::images::ImageRunFiles::iterations),
                "accuracy": scores.map(|scores| scores.accuracy),
                "standard_error": scores.and_then(|scores| scores.accuracy_standard_error),
                "interval95": scores.and_then(|scores| scores.accuracy_interval95),
                "log_likelihood": scores.map(|scores| scores.log_likelihood),
                "calibration_error": scores.map(|scores| scores.calibration_error),
                "paper_accuracy": run.model.accuracy_in_paper().filter(|_| plan.is_comparable()).map(|percent| percent / 100.0),
            })
        })
        .collect();
    json!({ "models": models, "settings": plan.settings, "claims": claims, "caveat": ONE_TRAINING, "report": page.display().to_string() })
}

fn in_words(plan: &ImagePlan, runs: &[ModelRun], claims: &[ClaimRow], page: &Path) -> String {
    let paper = if plan.is_comparable() { " (in brackets: the paper's)" } else { "" };
    let mut text = wrapped(&what_was_run(plan), "");
    text.push_str(&format!(
        "\n{}\n",
        bold(&format!("Test accuracy in percent: mean over test tasks ± half of its 95 % interval{paper}"))
    ));
    let header =
        std::iter::once(String::new()).chain(plan.methods.iter().map(|method| method.title().to_owned()));
    let mut table = Table::new(header);
    for &examples in &plan.examples {
        let cells = runs.iter().filter(|run| run.model.examples == examples).map(|run| {
            let ours = match run.scores() {
                Some(scores) => {
                    let half = scores.accuracy_interval95;
                    let half = half.map_or(String::new(), |half| format!(" ± {:.1}", 100.0 * half));
                    format!("{:.1}{half}", 100.0 * scores.accuracy)
                }
                None => run.progress(plan).unwrap_or_else(|| "-".to_owned()),
            };
            match run.model.accuracy_in_paper().filter(|_| plan.is_comparable()) {
                Some(paper) => format!("{ours} ({paper:.1})"),
                None => ours,
            }
        });
        table.row(std::iter::once(format!("mᵢ = {examples}")).chain(cells));
    }
    text.push_str(&table.render());
    text.push_str(&verdicts(claims, page));
    text
}
