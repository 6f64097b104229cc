//! `pacmeta reproduce`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pacmeta::Result;
use pacmeta::studies::sinusoid::{Plan, Preset, SinusoidSpec};
use pacmeta::studies::{Failures, Records, Session, Spec, StudyFolder, runner};

use crate::arguments::{PresetName, Reproduce, StudyName};
use crate::output::{command_line, warn};
use crate::progress::Verbosity;
use crate::study_progress::StudyProgress;

pub(crate) fn run(arguments: &Reproduce) -> Result<()> {
    match arguments.study {
        StudyName::Sinusoid => sinusoid(arguments),
    }
}

fn plan(arguments: &Reproduce) -> Plan {
    let mut plan = Plan::new(match arguments.preset {
        PresetName::Quick => Preset::Quick,
        PresetName::Paper => Preset::Paper,
    });
    plan.data_sets = arguments.sets.unwrap_or(plan.data_sets);
    plan.seeds = arguments.seeds.unwrap_or(plan.seeds);
    plan.iterations = arguments.iterations.unwrap_or(plan.iterations);
    plan.ablation_sets = plan.ablation_sets.min(plan.data_sets);
    plan
}

fn sinusoid(arguments: &Reproduce) -> Result<()> {
    let plan = plan(arguments);
    let out: PathBuf = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(format!("{}-{}", SinusoidSpec::STUDY, plan.preset)),
    };
    let folder = StudyFolder::open(&out, SinusoidSpec::STUDY, &plan, &command_line())?;
    let mut records = Records::<SinusoidSpec>::read(&out)?;
    if records.torn() {
        warn(&format!("{}: the last line of the record is torn; that model is trained again", out.display()));
    }
    let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let failures = if arguments.retry_failed { Failures::Retry } else { Failures::Keep };
    let (start, before) = (Instant::now(), records.len());
    let progress = StudyProgress::new(verbosity);
    let outcome = runner::run(&plan.specs(), &mut records, failures, &progress);
    drop(progress);
    folder.remember(Session {
        models: records.len() - before,
        seconds: start.elapsed().as_secs_f64(),
        threads: rayon::current_num_threads(),
    })?;
    outcome?;
    Ok(())
}
