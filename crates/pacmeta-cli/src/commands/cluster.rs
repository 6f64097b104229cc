//! `pacmeta sweep plan`, `run`, `status`, `collect` and `slurm`.

use std::path::{Path, PathBuf};

use pacmeta::config::SweepFile;
use pacmeta::studies::cluster::{
    Chunks, ConfigMark, FromPlan, Gathered, Job, PlanFile, Results, ScriptOptions, Survey, USUAL_ARRAY,
    array_expression, limited, script,
};
use pacmeta::studies::sinusoid::{Plan as SinusoidPlan, SinusoidSpec};
use pacmeta::studies::sweep::{Analysis, Plan, SweepSpec, prepare};
use pacmeta::studies::{Failures, Records, Spec, StoredPlan, runner};
use pacmeta::{Error, Result};
use serde_json::{Value, json};

use super::reproduce::sinusoid_plan;
use super::study::open_study;
use super::sweep::{default_folder, refuse_nothing_to_choose, scope};
use crate::cluster_arguments::{
    CollectSweep, LauncherName, OnCluster, PlanSweep, Planned, PlannedStudy, RunPiece, SlurmScript,
    SweepStatus, default_results,
};
use crate::output::{are, plural, print, print_json, remark, warn};
use crate::progress::Verbosity;
use crate::study_progress::StudyProgress;

/// The variables that hold the index of a job, and whose they are.
const INDEX_VARIABLES: [(&str, &str); 3] =
    [("SLURM_ARRAY_TASK_ID", "Slurm"), ("HQ_TASK_ID", "HyperQueue"), ("JOB_COMPLETION_INDEX", "Kubernetes")];

pub(super) fn run(command: &OnCluster) -> Result<()> {
    match command {
        OnCluster::Plan(arguments) => plan(arguments),
        OnCluster::Run(arguments) => run_job(arguments),
        OnCluster::Status(arguments) => status(arguments),
        OnCluster::Collect(arguments) => collect_results(arguments),
        OnCluster::Slurm(arguments) => print_script(arguments),
    }
}

fn plan(arguments: &PlanSweep) -> Result<()> {
    let folder = std::env::current_dir().map_err(|source| Error::io("find", ".", source))?;
    let (file, about) = match (&arguments.config, arguments.study) {
        (Some(config), None) => {
            // First the mark: what changes while the rest is read is noticed by the jobs.
            let mark = ConfigMark::of(config)?;
            let overrides = arguments.overrides.all();
            let file = SweepFile::read(config, &overrides)?;
            let prepared = prepare(&file, &config.display().to_string(), &overrides)?;
            let plan = PlanFile::new(&prepared.plan, &prepared.specs(), &folder, Some(mark))?;
            (plan, scope(&prepared.plan))
        }
        (_, Some(PlannedStudy::Sinusoid)) => {
            let plan =
                sinusoid_plan(arguments.preset, arguments.sets, arguments.seeds, arguments.iterations)?;
            let about = format!("the sinusoid study, preset {}", plan.preset);
            (PlanFile::new(&plan, &plan.specs(), &folder, None)?, about)
        }
        (None, None) => {
            return Err(Error::input("pacmeta sweep plan", "expected a configuration or --study"));
        }
    };
    let out = &arguments.output;
    let results = default_results(out);
    if *out == results {
        return Err(Error::input(out.display(), "is the name of the results; end the plan's with `.jsonl`"));
    }
    let claimed = Results::of(&file, &results)?;
    file.write(out)?;
    claimed.claim()?;
    remark(&about);
    let models = file.lines().len();
    if arguments.json {
        return print_json(&json!({
            "plan": out.display().to_string(),
            "results": results.display().to_string(),
            "models": models,
            "digest": file.digest(),
        }));
    }
    let last = models.saturating_sub(1);
    print(&format!(
        "{}, {} 0 to {last}\nplan      {}\nresults   {}\n",
        plural(models, "model"),
        if models == 1 { "index" } else { "indices" },
        out.display(),
        results.display()
    ))
}

/// A plan with its results, for people who are going to use them.
fn open(planned: &Planned) -> Result<(PlanFile, Results)> {
    let plan = PlanFile::read(&planned.plan)?;
    let results = Results::of(&plan, &planned.results())?;
    Ok((plan, results))
}

/// The same for those who only look at results: a folder that is named and not there is a slip.
fn open_results(planned: &Planned) -> Result<(PlanFile, Results)> {
    let opened = open(planned)?;
    match &planned.results {
        Some(named) if !named.exists() => {
            let message = "is not there; expected the folder that the jobs wrote their results to";
            Err(Error::input(named.display(), message))
        }
        _ => Ok(opened),
    }
}

/// The index of the job: the option, else that of the scheduler.
fn index(arguments: &RunPiece) -> Result<usize> {
    if let Some(index) = arguments.index {
        return Ok(index);
    }
    let mut found: Option<(&str, usize)> = None;
    for (name, scheduler) in INDEX_VARIABLES {
        let Some(value) = std::env::var_os(name) else { continue };
        let value = value.to_string_lossy();
        let index: usize = value.trim().parse().map_err(|_| {
            let message =
                format!("is `{value}`, expected the index of a job of {scheduler}; or give --index");
            Error::input(format!("environment variable {name}"), message)
        })?;
        match found {
            Some((other, earlier)) if earlier != index => {
                let message =
                    format!("is {index}, but {other} is {earlier}; say which one is meant with --index");
                return Err(Error::input(format!("environment variable {name}"), message));
            }
            _ => found = Some((name, index)),
        }
    }
    found.map(|(_, index)| index).ok_or_else(|| {
        let names = INDEX_VARIABLES.map(|(name, _)| name).join(", ");
        Error::input(
            "option `--index`",
            format!("is missing, and so are {names}; which model shall be trained?"),
        )
    })
}

fn run_job(arguments: &RunPiece) -> Result<()> {
    let (plan, results) = open(&arguments.planned)?;
    plan.check_config()?;
    match plan.study() {
        SweepSpec::STUDY => run_pieces::<SweepSpec>(arguments, &plan, &results),
        SinusoidSpec::STUDY => run_pieces::<SinusoidSpec>(arguments, &plan, &results),
        other => Err(unknown(&arguments.planned.plan, other)),
    }
}

fn unknown(path: &Path, study: &str) -> Error {
    Error::input(path.display(), format!("is a plan of the unknown study `{study}`"))
}

fn run_pieces<S: FromPlan>(arguments: &RunPiece, plan: &PlanFile, results: &Results) -> Result<()> {
    plan.check_study::<S>()?;
    let index = index(arguments)?;
    let chunks = Chunks::new(plan.lines().len(), arguments.chunk);
    let Some(range) = chunks.pieces_of(index) else {
        let jobs = match chunks.size() {
            1 => plural(chunks.jobs(), "model"),
            size => format!("{} of {}", plural(chunks.jobs(), "job"), plural(size, "model")),
        };
        let message =
            format!("is outside the plan, which has {jobs}: 0 to {}", chunks.jobs().saturating_sub(1));
        return Err(Error::input(format!("index {index}"), message));
    };
    let lines = &plan.lines()[range];
    let specs = S::ready(plan, lines)?;
    results.claim()?;
    let mut job = Job::<S>::new(results, lines)?;
    for damaged in job.damaged() {
        warn(&format!("the result of index {damaged} is damaged; that model is trained again"));
    }
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let failures = if arguments.retry_failed { Failures::Retry } else { Failures::Keep };
    let progress = StudyProgress::new(verbosity);
    let outcome = runner::run(&specs, &mut job, failures, &progress);
    drop(progress);
    if outcome.is_err() {
        // Another job of this index may have ended in the meantime, which leaves the state of this one for good.
        let _ = Job::<S>::new(results, lines);
    }
    let trained = outcome?.done;
    let failures = job.failures();
    if arguments.json {
        print_json(&json!({
            "index": index,
            "models": lines.len(),
            "trained": trained,
            "failed": failures.iter().map(|(index, _, reason)| json!({ "index": index, "reason": reason })).collect::<Vec<_>>(),
            "results": results.folder().display().to_string(),
        }))?;
    } else {
        let models = plural(lines.len(), "model");
        print(&format!("{models}, {trained} trained now, {} failed\n", failures.len()))?;
    }
    match failures.first() {
        None => Ok(()),
        Some((index, label, reason)) => Err(Error::ModelFailed {
            index: *index,
            label: (*label).to_owned(),
            reason: (*reason).to_owned(),
        }),
    }
}

fn status(arguments: &SweepStatus) -> Result<()> {
    let (plan, results) = open_results(&arguments.planned)?;
    if let Err(error) = plan.check_config() {
        warn(&error.to_string());
    }
    let survey = Survey::of(&plan, &results)?;
    survey.instructions.warning().iter().for_each(|warning| warn(warning));
    let failed: Vec<usize> = survey.failed.iter().map(|(index, _)| *index).collect();
    let mut again = survey.missing.clone();
    if arguments.retry_failed {
        again.extend(&failed);
        again.sort_unstable();
    }
    let chunks = Chunks::new(survey.pieces, arguments.chunk);
    let array = limited(&array_expression(&chunks.jobs_of(&again)), arguments.max_running.map(Into::into));
    if arguments.array {
        return print(&if array.is_empty() { String::new() } else { format!("{array}\n") });
    }
    if arguments.json {
        let reasons = survey.failed.iter().map(|(index, reason)| json!({ "index": index, "reason": reason }));
        return print_json(&json!({
            "models": survey.pieces,
            "done": survey.done.len(),
            "failed": reasons.collect::<Vec<_>>(),
            "missing": survey.missing,
            "damaged": survey.damaged,
            "begun": survey.begun,
            "array": array,
            "instructions": survey.instructions,
        }));
    }
    let counted =
        |count: usize, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
    let mut text = format!(
        "{}: {} done, {} failed, {} missing{}{}\n",
        plural(survey.pieces, "model"),
        survey.done.len(),
        failed.len(),
        survey.missing.len(),
        counted(survey.damaged.len(), "of them damaged"),
        counted(survey.begun.len(), "of them with a checkpoint"),
    );
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10}{value}\n"));
        }
    };
    row("failed", array_expression(&failed));
    row("missing", array_expression(&survey.missing));
    if arguments.chunk.get() > 1 {
        row("jobs", array.clone());
    }
    row("damaged", array_expression(&survey.damaged));
    if !array.is_empty() {
        row("resubmit", format!("sbatch --array={array} SCRIPT"));
    }
    if let Some((index, reason)) = survey.failed.first() {
        row("reason", format!("index {index}: {reason}"));
    }
    print(&text)
}

fn collect_results(arguments: &CollectSweep) -> Result<()> {
    let (plan, results) = open_results(&arguments.planned)?;
    plan.check_config()?;
    match plan.study() {
        SweepSpec::STUDY => {
            let study: Plan = plan.study_plan()?;
            let out = match &arguments.out {
                Some(out) => out.clone(),
                None => default_folder(Path::new(&study.config))?,
            };
            let (records, gathered) = collect_into::<SweepSpec>(&out, &plan, &results)?;
            super::sweep::show(&out, arguments.json, more(&gathered))?;
            match gathered.missing[..] {
                [] => refuse_nothing_to_choose(&Analysis::new(&study, &records)?),
                _ => Ok(()),
            }
        }
        SinusoidSpec::STUDY => {
            let study: SinusoidPlan = plan.study_plan()?;
            study.check()?;
            let default = || Path::new("runs").join(format!("{}-{}", SinusoidSpec::STUDY, study.preset));
            let out: PathBuf = arguments.out.clone().unwrap_or_else(default);
            let (_, gathered) = collect_into::<SinusoidSpec>(&out, &plan, &results)?;
            super::reproduce::show(&out, arguments.json, more(&gathered))
        }
        other => Err(unknown(&arguments.planned.plan, other)),
    }
}

/// What the conclusions of a study do not say.
fn more<S: Spec>(gathered: &Gathered<S>) -> Value {
    json!({ "instructions": gathered.instructions })
}

/// The record with the results of a plan, and these. All is read and checked before anything is written.
fn collect_into<S: Spec>(
    out: &Path,
    plan: &PlanFile,
    results: &Results,
) -> Result<(Records<S>, Gathered<S>)> {
    let gathered = Gathered::<S>::of(plan, results)?;
    refuse_empty_study(out, plan, &gathered)?;
    Records::<S>::read(out)?;
    let _folder = open_study(out, S::STUDY, plan.study_value())?;
    let mut records = Records::<S>::read(out)?;
    let new = gathered.append_to(&mut records)?;
    remark(&format!("{} {} new in {}", plural(new, "result"), are(new), out.display()));
    let Gathered { missing, damaged, instructions, .. } = &gathered;
    instructions.warning().iter().for_each(|warning| warn(warning));
    if !damaged.is_empty() {
        warn(&format!("results that are damaged, and count as missing: {}", array_expression(damaged)));
    }
    if !missing.is_empty() {
        let models = plural(plan.lines().len(), "model");
        let expression = array_expression(missing);
        warn(&format!("{} of {models} {} missing: {expression}", missing.len(), are(missing.len())));
    }
    Ok((records, gathered))
}

/// A plan without any result would put an empty study in the place of the one that a folder holds.
fn refuse_empty_study<S: Spec>(out: &Path, plan: &PlanFile, gathered: &Gathered<S>) -> Result<()> {
    match StoredPlan::read(out)? {
        Some(stored) if gathered.is_empty() && !stored.is_of(plan.study_value()) => {
            let message = "holds a study of another plan, and of this one there is no result yet; choose another --out, or \
                           collect when models are trained";
            Err(Error::input(out.display(), message))
        }
        _ => Ok(()),
    }
}

fn print_script(arguments: &SlurmScript) -> Result<()> {
    let of_slurm = [("--time", arguments.time.is_some()), ("--partition", arguments.partition.is_some())];
    for (option, given) in of_slurm {
        if given && arguments.launcher != LauncherName::Slurm {
            let message = "is for Slurm; remove it, or --launcher";
            return Err(Error::input(format!("option `{option}`"), message));
        }
    }
    let (plan, results) = open(&arguments.planned)?;
    plan.check_config()?;
    // Slurm opens a job's log before the job runs, and says nothing if there is no folder for it.
    results.claim()?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(|source| Error::io("find", path, source));
    let program = std::env::current_exe().map_err(|source| Error::io("find", "pacmeta", source))?;
    let name = arguments.planned.plan.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name: String =
        name.unwrap_or_default().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let options = ScriptOptions {
        launcher: arguments.launcher.into(),
        program,
        plan: absolute(&arguments.planned.plan)?,
        results: absolute(results.folder())?,
        name: format!("pacmeta-{name}"),
        time: arguments.time.clone(),
        partition: arguments.partition.clone(),
        max_running: arguments.max_running.map(Into::into),
        processors: arguments.processors.into(),
    };
    let chunks = Chunks::new(plan.lines().len(), arguments.chunk);
    if arguments.launcher == LauncherName::Slurm && chunks.jobs() > USUAL_ARRAY {
        warn(&format!(
            "the array has {} indices; Slurm takes up to {USUAL_ARRAY} unless MaxArraySize is larger: --chunk packs several \
             models into a job",
            chunks.jobs()
        ));
    }
    print(&script(&options, &chunks))
}
