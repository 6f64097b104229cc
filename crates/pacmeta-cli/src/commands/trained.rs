//! What `train` says and leaves at its end, whatever was trained, and how `report` draws it anew.

use std::path::{Path, PathBuf};

use pacmeta::config::AnyConfig;
use pacmeta::report::{StudyReport, study_page};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Result};
use serde_json::{Map, Value, json};

use crate::output::{command_line, print, print_json, remark};

/// The command of a run, for its report.
const COMMAND_FILE: &str = "command.txt";

/// A run that has just been trained, or was found finished.
pub(super) struct Trained<'a> {
    pub(super) out: &'a Path,
    /// Iterations of the run, and those made now.
    pub(super) iterations: [u64; 2],
    pub(super) seconds: f64,
    pub(super) report: PathBuf,
}

impl Trained<'_> {
    /// Prints the scores with all around them.
    pub(super) fn print(
        self,
        as_json: bool,
        in_json: impl FnOnce() -> Result<Map<String, Value>>,
        in_words: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        let Self { out, iterations: [total, made], seconds, report } = self;
        let (prior, report) = (out.join("prior.safetensors"), report.display().to_string());
        if as_json {
            let mut map = in_json()?;
            map.insert("run".into(), json!(out.display().to_string()));
            map.insert("iterations".into(), json!(total));
            map.insert("iterations_now".into(), json!(made));
            map.insert("seconds".into(), json!(seconds));
            map.insert("prior".into(), json!(prior.display().to_string()));
            map.insert("report".into(), json!(report));
            return print_json(&map);
        }
        let opening = match made {
            0 => format!("The run in {} is finished ({total} iterations).\n", out.display()),
            made => format!("Trained {made} iterations; {seconds:.1} s in all.\n"),
        };
        print(&format!("{opening}{}\nprior    {}\nreport   {report}\n", in_words()?, prior.display()))
    }
}

/// Remembers the command that trained a run, for its report.
pub(super) fn remember_command(out: &Path, trained: bool) -> Result<()> {
    let path = out.join(COMMAND_FILE);
    if trained || !path.exists() {
        write_atomically(&path, format!("{}\n", command_line()).as_bytes())?;
    }
    Ok(())
}

/// The command that trained a run.
pub(super) fn remembered_command(out: &Path) -> Option<String> {
    std::fs::read_to_string(out.join(COMMAND_FILE)).ok().map(|text| text.trim().to_owned())
}

/// Tells where an interrupted run can be continued from.
pub(super) fn tell_checkpoint(error: &Error, out: &Path) {
    if let Error::Interrupted { .. } = error {
        remark(&format!("a checkpoint is in {}", out.join("checkpoints").display()));
    }
}

/// The files of a run of classification, as commands show them.
pub(super) trait ClassificationRun: Sized {
    fn is_configured_by(config: &AnyConfig) -> bool;
    fn read(folder: &Path) -> Result<Self>;
    fn folder(&self) -> &Path;
    fn page(&self, command: Option<String>) -> StudyReport;
    /// The scores for `--json`; those of single tasks are in the run's folder.
    fn scores_json(&self) -> Map<String, Value>;

    fn write_report(&self) -> Result<PathBuf> {
        let path = self.folder().join("report.html");
        write_atomically(&path, study_page(&self.page(remembered_command(self.folder()))).as_bytes())?;
        Ok(path)
    }
}

/// Draws the report of a run of classification anew; false if the folder holds none.
pub(super) fn report_of_run<R: ClassificationRun>(folder: &Path, as_json: bool) -> Result<bool> {
    let config = folder.join("config.toml");
    if !config.exists() || !AnyConfig::read(&config, &[]).is_ok_and(|config| R::is_configured_by(&config)) {
        return Ok(false);
    }
    let run = R::read(folder)?;
    let report = run.write_report()?.display().to_string();
    if as_json {
        let mut map = run.scores_json();
        map.insert("report".into(), json!(report));
        print_json(&map)?;
    } else {
        print(&format!("{report}\n"))?;
    }
    Ok(true)
}
