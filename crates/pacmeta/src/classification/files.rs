//! What a run leaves in its folder beside the model, for reports.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::report::FileLink;
use crate::training::files::{read_bounded, write_atomically};
use crate::training::metrics::{MetricsLine, read_metrics};
use crate::training::run_directory::last_iteration;

/// The scores of a run.
pub(crate) const SCORES: &str = "scores.json";
const MAX_BYTES: u64 = 1 << 26;

/// The metrics of a run so far.
pub(crate) fn metrics_of(folder: &Path) -> Result<Vec<MetricsLine>> {
    let metrics = folder.join("metrics.jsonl");
    if metrics.exists() { read_metrics(&metrics) } else { Ok(Vec::new()) }
}

/// Iterations that a run has made: metrics are written now and then, and a checkpoint at an interruption too.
pub(crate) fn iterations_of(folder: &Path, metrics: &[MetricsLine]) -> u64 {
    let logged = metrics.last().map_or(0, |line| line.iteration);
    last_iteration(folder).map_or(logged, |kept| kept.max(logged))
}

/// A file that `pacmeta train` can make anew, if it is there.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    serde_json::from_slice(&read_bounded(path, MAX_BYTES)?).map(Some).map_err(|error| {
        Error::input(path.display(), format!("{error}; delete the file, and `pacmeta train` makes it anew"))
    })
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text =
        serde_json::to_string(value).map_err(|error| Error::input(path.display(), error.to_string()))?;
    write_atomically(path, text.as_bytes())
}

/// Links to those files that are there.
pub(crate) fn links(folder: &Path, files: &[(&str, &str)]) -> Vec<FileLink> {
    files
        .iter()
        .filter(|(name, _)| folder.join(name).exists())
        .map(|&(name, what)| FileLink { name: name.to_owned(), href: name.to_owned(), what: what.to_owned() })
        .collect()
}
