//! Finished trials of a search for temperatures, one JSON object a line, so that an interrupted search continues from them.
//!
//! Numbers are stored by their bits: the search ends with the same choice to the last one. A line that was cut off by a
//! crash is dropped, and its trial made again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::training::files::{read_bounded, write_atomically};

/// The log-likelihoods of the left-out tasks, or why there are none.
pub(super) type TrialOutcome = std::result::Result<Vec<f64>, String>;

/// Candidate and fold.
pub(super) type Job = (usize, usize);

const MAX_BYTES: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
struct Line {
    candidate: usize,
    fold: usize,
    /// f64 by their bits, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_likelihoods: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Line {
    fn new((candidate, fold): Job, outcome: &TrialOutcome) -> Self {
        let values = outcome.as_ref().ok();
        let hexadecimal =
            |values: &Vec<f64>| values.iter().map(|v| format!("{:016x}", v.to_bits())).collect();
        Self {
            candidate,
            fold,
            log_likelihoods: values.map(hexadecimal),
            failure: outcome.as_ref().err().cloned(),
        }
    }

    fn outcome(self) -> Option<(Job, TrialOutcome)> {
        let number = |text: &String| u64::from_str_radix(text, 16).ok().map(f64::from_bits);
        let outcome = match (self.log_likelihoods, self.failure) {
            (Some(values), None) => Ok(values.iter().map(number).collect::<Option<_>>()?),
            (None, Some(failure)) => Err(failure),
            _ => return None,
        };
        Some(((self.candidate, self.fold), outcome))
    }
}

#[derive(Debug)]
enum Place {
    Nowhere,
    Appended(File, PathBuf),
    /// Several processes may write: each puts its whole list in the place of another's.
    Replaced(PathBuf, String),
}

/// Where finished trials are kept.
#[derive(Debug)]
pub(super) struct TrialLog {
    known: BTreeMap<Job, TrialOutcome>,
    place: Place,
}

impl TrialLog {
    /// Nothing is kept.
    pub(super) fn in_memory() -> Self {
        Self { known: BTreeMap::new(), place: Place::Nowhere }
    }

    /// Kept in this file, with what an earlier search left there.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (known, whole) = read(path)?;
        // Rewritten, so that a line that was cut off does not spoil the next one.
        write_atomically(path, whole.as_bytes())?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|source| Error::io("write", path, source))?;
        Ok(Self { known, place: Place::Appended(file, path.to_path_buf()) })
    }

    /// The same for a file that several processes may write at the same time, without any lock: it is replaced as a whole
    /// with every trial, and the last one counts. Equal jobs have equal outcomes, so nothing but work can be lost.
    pub(super) fn shared(path: &Path) -> Result<Self> {
        let (known, whole) = read(path)?;
        Ok(Self { known, place: Place::Replaced(path.to_path_buf(), whole) })
    }

    /// The trials that were there.
    pub(super) fn take_known(&mut self) -> BTreeMap<Job, TrialOutcome> {
        std::mem::take(&mut self.known)
    }

    /// Keeps one more.
    pub(super) fn append(&mut self, job: Job, outcome: &TrialOutcome) -> Result<()> {
        match &mut self.place {
            Place::Nowhere => Ok(()),
            Place::Appended(file, path) => file
                .write_all(text(job, outcome).as_bytes())
                .map_err(|source| Error::io("write", path, source)),
            Place::Replaced(path, whole) => {
                whole.push_str(&text(job, outcome));
                write_atomically(path, whole.as_bytes())
            }
        }
    }
}

/// What a file holds, and its whole lines.
fn read(path: &Path) -> Result<(BTreeMap<Job, TrialOutcome>, String)> {
    let mut known = BTreeMap::new();
    if path.exists() {
        let bytes = read_bounded(path, MAX_BYTES)?;
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        known.extend(lines.filter_map(Line::outcome));
    }
    let whole = known.iter().map(|(job, outcome)| text(*job, outcome)).collect();
    Ok((known, whole))
}

fn text(job: Job, outcome: &TrialOutcome) -> String {
    serde_json::to_string(&Line::new(job, outcome)).map(|line| line + "\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_come_back_to_the_bit_and_a_cut_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search.jsonl");
        let values: TrialOutcome = Ok(vec![0.1 + 0.2, f64::NAN, -0.0, 1e-310]);
        let failure: TrialOutcome = Err("it \"diverged\"\nat once".to_owned());
        let mut log = TrialLog::open(&path).unwrap();
        assert!(log.take_known().is_empty());
        log.append((3, 1), &values).unwrap();
        log.append((0, 2), &failure).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"candidate\":5,\"fold\":0,\"log_lik");
        std::fs::write(&path, bytes).unwrap();
        let mut log = TrialLog::open(&path).unwrap();
        log.append((7, 0), &values).unwrap();
        for known in [log.take_known(), TrialLog::open(&path).unwrap().take_known()] {
            let bits = |outcome: &TrialOutcome| {
                outcome.clone().unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(bits(&known[&(3, 1)]), bits(&values));
            assert_eq!(known[&(0, 2)], failure);
            assert!(!known.contains_key(&(5, 0)));
        }
        assert!(TrialLog::open(&path).unwrap().take_known().contains_key(&(7, 0)));
    }
}
