//! What commands that run a study do: take the folder, compute what is missing, remember the call, write and tell what came out.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pacmeta::Result;
use pacmeta::report::{ClaimRow, StudyReport, study_page};
use pacmeta::studies::numbers::NumbersFile;
use pacmeta::studies::{Failures, Records, Session, Spec, StoredPlan, StudyFolder, runner};
use pacmeta::training::files::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::scores::wrapped;
use crate::output::{bold, command_line, warn};
use crate::progress::Verbosity;
use crate::study_progress::StudyProgress;

/// How a study is run.
pub(super) struct Manner {
    pub(super) verbosity: Verbosity,
    pub(super) failures: Failures,
}

impl Manner {
    /// From the options that all studies share.
    pub(super) fn new(quiet: bool, retry_failed: bool) -> Self {
        Self {
            verbosity: if quiet { Verbosity::Quiet } else { Verbosity::Normal },
            failures: if retry_failed { Failures::Retry } else { Failures::Keep },
        }
    }
}

/// Takes the folder of a study for this command.
pub(super) fn open_study(out: &Path, study: &str, plan: &impl Serialize) -> Result<StudyFolder> {
    let folder = StudyFolder::open(out, study, plan, &command_line())?;
    folder.warning().into_iter().for_each(warn);
    Ok(folder)
}

/// The plan of an earlier call in the folder. A folder of another study is refused when it is opened.
pub(super) fn earlier_plan<P: DeserializeOwned>(out: &Path, study: &str) -> Result<Option<P>> {
    let stored = if out.exists() { StoredPlan::read(out)? } else { None };
    stored.filter(|stored| stored.study == study).map(|stored| stored.plan(out)).transpose()
}

/// Runs the pieces of a plan in a folder, and gives the record.
pub(super) fn run_in<S: Spec>(
    out: &Path,
    plan: &impl Serialize,
    specs: &[S],
    manner: &Manner,
) -> Result<Records<S>> {
    // A record that cannot be continued is refused before anything is written.
    Records::<S>::read(out)?;
    let folder = open_study(out, S::STUDY, plan)?;
    let mut records = Records::read(out)?;
    if records.torn() {
        warn(&format!(
            "{}: the last line of the record is torn; that piece is computed again",
            out.display()
        ));
    }
    let start = Instant::now();
    let progress = StudyProgress::new(manner.verbosity);
    let outcome = runner::run(specs, &mut records, manner.failures, &progress);
    let models = progress.finished_pieces();
    drop(progress);
    let seconds = start.elapsed().as_secs_f64();
    let remembered = folder.remember(Session { models, seconds, threads: rayon::current_num_threads() });
    outcome?;
    remembered?;
    Ok(records)
}

/// Writes numbers and page of a study of models into its folder.
pub(super) fn write_study(folder: &Path, numbers: Vec<NumbersFile>, report: &StudyReport) -> Result<PathBuf> {
    for file in numbers {
        write_atomically(folder.join(file.name), file.content.as_bytes())?;
    }
    let page = folder.join("report.html");
    write_atomically(&page, study_page(report).as_bytes())?;
    Ok(page)
}

/// What verdicts on single models leave out: beside them wherever they are told.
pub(super) const ONE_TRAINING: &str = "There is one model of each kind: another training run, even one that differs by rounding alone, may turn a verdict on small \
     differences around.";

/// Verdicts on claims, one model of each kind, and where the page is: how what a study says ends.
pub(super) fn verdicts(claims: &[ClaimRow], page: &Path) -> String {
    let mut text = match claims {
        [] => String::new(),
        _ => format!("\n{}\n", bold("The paper's claims on these numbers")),
    };
    for claim in claims {
        let verdict = claim.verdict.words();
        text.push_str(&format!("  {verdict:<13}  {}", wrapped(&claim.statement, "                 ")));
    }
    if !claims.is_empty() {
        text.push_str(&format!("  {}", wrapped(ONE_TRAINING, "  ")));
    }
    text.push_str(&format!("\nreport   {}\n", page.display()));
    text
}
