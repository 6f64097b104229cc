//! What is left of a run that diverged, and how it goes on.
//!
//! A state is good if an iteration succeeded from it. The one before the iteration that failed is not: whatever the rate, the same
//! numbers lead to the same end. It is removed, so that the newest good one is what a run continues from, unless it is the state of a
//! result: that is never lost. From there another `training.rate` or `training.clip` makes another way, and these two may change until the run
//! is beyond that state; what changed is written down.

use std::fs::{self, OpenOptions};
use std::io::Write;

use serde_json::json;

use super::RunDirectory;
use super::comparison::Change;
use crate::error::{Error, Result};
use crate::training::files::{read_bounded, write_atomically};

/// How a run ended that diverged; there until it is beyond the state that was kept.
pub(super) const DIVERGED: &str = "diverged.json";
const MAX_NOTE: u64 = 1 << 16;
/// The settings that such a run went on with.
pub(crate) const CHANGES: &str = "changes.jsonl";

impl RunDirectory {
    /// Puts the folder in order after an iteration or validation that failed, and adds to the error how to go on. Errors that do not
    /// say of numbers that they are not finite stay as they are.
    pub(crate) fn note_divergence(&self, error: Error) -> Error {
        if !error.is_divergence() {
            return error;
        }
        match self.keep_good_states(&error) {
            Ok(advice) => Error::RunDiverged { reason: Box::new(error), advice },
            // the first error is the one to know of
            Err(_) => error,
        }
    }

    fn keep_good_states(&self, error: &Error) -> Result<String> {
        if let Some(iteration) = error.failing_state().filter(|&iteration| !self.has_prior_of(iteration)) {
            let path = self.state_path(iteration);
            if path.exists() {
                fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
            }
        }
        let kept = self.stored_iterations()?.first().copied();
        let note = json!({ "reason": error.to_string(), "kept": kept });
        write_atomically(self.path.join(DIVERGED), format!("{note}\n").as_bytes())?;
        Ok(match kept {
            Some(iteration) => format!(
                "the checkpoint of iteration {iteration} is kept: the same command with a lower `training.rate` (or `training.clip`) \
                 goes on from it, other settings need another --out"
            ),
            None if Self::began(&self.path) => {
                "no checkpoint is left: the same command with a lower `training.rate` starts anew, other settings need another --out"
                    .to_owned()
            }
            None => "no checkpoint is left: the same command with a lower `training.rate`, or with other settings, starts anew"
                .to_owned(),
        })
    }

    /// Whether the last start of this run diverged.
    pub(super) fn diverged(&self) -> bool {
        self.path.join(DIVERGED).exists()
    }

    /// Writes down what changed after `iteration`; in words, for the user.
    pub(super) fn note_changes(&self, iteration: u64, changes: &[Change]) -> Result<Vec<String>> {
        let path = self.path.join(CHANGES);
        let io_error = |source| Error::io("write", &path, source);
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(io_error)?;
        let mut words = Vec::new();
        for Change { key, from, to } in changes {
            let number =
                |text: &str| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
            let (from, to) = (number(from), number(to));
            let line = json!({ "iteration": iteration, "key": key, "from": from, "to": to });
            writeln!(file, "{line}").map_err(io_error)?;
            words.push(format!(
                "the run diverged, and goes on after iteration {iteration} with `{key}` = {to} in place of {from}; {CHANGES} says so"
            ));
        }
        file.sync_all().map_err(io_error)?;
        Ok(words)
    }

    /// Forgets that the run diverged, once it is beyond the state that was kept.
    pub(super) fn forget_divergence(&self, iteration: u64) -> Result<()> {
        let path = self.path.join(DIVERGED);
        if !path.exists() {
            return Ok(());
        }
        let note: Option<serde_json::Value> =
            read_bounded(&path, MAX_NOTE).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let kept = note.and_then(|note| note.get("kept")?.as_u64()).unwrap_or(0);
        match iteration > kept {
            true => fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source)),
            false => Ok(()),
        }
    }
}
