//! `pacmeta reproduce memory`: every measurement in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pacmeta::benchmark::{ModelShape, TextStep, TextStepSettings, foreseen_bytes};
use pacmeta::classification::free_memory::allowed_memory;
use pacmeta::methods::networks::WayBack;
use pacmeta::report::study_page;
use pacmeta::studies::StoredPlan;
use pacmeta::studies::memory::{
    Bytes, Contender, Extent, Measurements, PAPER_STEPS, Plan, STUDY, memory_report, table_csv,
};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::json;

use super::study::{earlier_plan, open_study};
use crate::arguments::{PresetName, Reproduce};
use crate::interrupt::{self, InLoop};
use crate::output::{bold, print, print_json, remark};
use crate::table::Table;

/// How often a measurement is looked at.
const POLL: Duration = Duration::from_millis(50);

pub(super) fn run(arguments: &Reproduce) -> Result<()> {
    let extent = match arguments.preset {
        PresetName::Quick => Extent::Short,
        PresetName::Cpu | PresetName::Paper => Extent::Whole,
    };
    let plan = Plan::new(arguments.model_shape.map_or(ModelShape::BertBase, Into::into), extent);
    let out: PathBuf = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(format!("{STUDY}-{}", plan.shape.name())),
    };
    if let Some(earlier) = earlier_plan::<Plan>(&out, STUDY)? {
        plan.check_continues(&earlier)?;
    }
    let _folder = open_study(&out, STUDY, &plan)?;
    measure_all(&plan, &out, arguments.quiet)?;
    show(&out, arguments.json)
}

/// Makes the measurements that are missing, one after another.
fn measure_all(plan: &Plan, out: &Path, quiet: bool) -> Result<()> {
    let _in_loop = InLoop::enter();
    let mut found = Measurements::read(out)?;
    let total = Contender::ALL.len() * plan.thresholds.len() * plan.steps.len();
    for contender in Contender::ALL {
        for &threshold in &plan.thresholds {
            for &steps in &plan.steps {
                let settings = plan.settings(contender, threshold, steps);
                if found.find(settings).is_some() || !found.allows(plan, contender, threshold, steps)? {
                    continue;
                }
                // Others may have taken memory since the plan was made; the measurement itself would refuse.
                if allowed_memory()
                    .is_some_and(|allowed| foreseen_bytes(&settings).is_ok_and(|need| need > allowed))
                {
                    remark(&format!(
                        "{}, v = {threshold}, {steps} inner steps would not fit into the memory that is free now, and are left out",
                        contender.title()
                    ));
                    continue;
                }
                if !quiet {
                    let plural = if steps == 1 { "step" } else { "steps" };
                    remark(&format!("{}, v = {threshold}, {steps} inner {plural}", contender.title()));
                }
                let Some(measured) = measure(settings)? else {
                    return Err(Error::StudyInterrupted { done: found.steps.len(), total });
                };
                found.steps.push(measured);
                found.write(out)?;
            }
        }
    }
    Ok(())
}

/// Runs one measurement in a process of its own; nothing if it is interrupted.
fn measure(settings: TextStepSettings) -> Result<Option<TextStep>> {
    let program = std::env::current_exe().map_err(|source| Error::io("find", "this program", source))?;
    let way_back = match settings.way_back {
        WayBack::Tape => "tape",
        WayBack::Recompute => "recompute",
    };
    let failed = |source| Error::io("run", &program, source);
    let mut child = Command::new(&program)
        .args(["bench", "text", "--json", "--shape", settings.shape.name(), "--way-back", way_back])
        .args(["--method", settings.method.name()])
        .args(["--threshold", &settings.threshold.to_string(), "--steps", &settings.steps.to_string()])
        .args(["--examples", &settings.examples.to_string(), "--support", &settings.support.to_string()])
        .args(["--length", &settings.length.to_string()])
        .args(["--threads", &rayon::current_num_threads().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // What it prints is less than a pipe holds, so that it does not wait for a reader.
    while child.try_wait().map_err(failed)?.is_none() {
        if interrupt::requested() {
            let _ = child.kill();
        }
        std::thread::sleep(POLL);
    }
    let output = child.wait_with_output().map_err(failed)?;
    // Ctrl-C in a terminal reaches both processes, in any order.
    if interrupt::requested() || output.status.code() == Some(i32::from(interrupt::EXIT_CODE)) {
        return Ok(None);
    }
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let what = format!("the measurement of {} at v = {}", settings.method.title(), settings.threshold);
        return Err(Error::input(what, format!("failed ({}): {}", output.status, words.trim())));
    }
    serde_json::from_slice(&output.stdout)
        .map(Some)
        .map_err(|error| Error::input("the measurement's output", error.to_string()))
}

/// Writes page and numbers, and prints the table.
pub(super) fn show(folder: &Path, as_json: bool) -> Result<()> {
    let Some(stored) = StoredPlan::read(folder)? else {
        return Err(Error::input(folder.display(), "is no study's folder"));
    };
    let plan: Plan = stored.plan(folder)?;
    let found = Measurements::read(folder)?;
    let report = memory_report(&plan, &found, Some(stored.command.clone()));
    let page = folder.join("report.html");
    write_atomically(folder.join("measurements.csv"), table_csv(&plan, &found).as_bytes())?;
    write_atomically(&page, study_page(&report).as_bytes())?;
    if as_json {
        return print_json(&json!({
            "measurements": found.steps,
            "report": page.display().to_string(),
        }));
    }
    let head = std::iter::once(format!("GB with {PAPER_STEPS} inner steps (~: extrapolated)"))
        .chain(plan.thresholds.iter().map(|v| format!("v = {v}")));
    let mut table = Table::new(head);
    for contender in Contender::ALL {
        let cells = plan.thresholds.iter().map(|&threshold| {
            let bytes = found.bytes_at(&plan, contender, threshold, PAPER_STEPS);
            bytes.map_or("-".to_owned(), Bytes::in_gigabytes)
        });
        table.row(std::iter::once(contender.title()).chain(cells));
    }
    print(&format!("{}\n{}\nreport   {}\n", bold(&report.title), table.render(), page.display()))
}
