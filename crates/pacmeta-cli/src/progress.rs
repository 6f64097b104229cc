//! What is seen of a run while it goes on: a bar on a terminal, a few lines elsewhere.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pacmeta::experiment::{Observer, TemperatureChoice};
use pacmeta::training::IterationTerms;

use crate::interrupt;
use crate::output::{remark, warn};

/// How much a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Warnings only.
    Quiet,
    /// Progress too.
    Normal,
}

/// Shows a run on standard error, and stops it on Ctrl-C.
pub(crate) struct Progress {
    name: String,
    verbosity: Verbosity,
    bar: ProgressBar,
    shown: Instant,
}

/// The eye sees no more often.
const REFRESH: Duration = Duration::from_millis(100);

impl Progress {
    /// Progress of the run in `folder`.
    pub(crate) fn new(folder: &Path, verbosity: Verbosity) -> Self {
        Self {
            name: folder.display().to_string(),
            verbosity,
            bar: ProgressBar::hidden(),
            shown: Instant::now(),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&mut self) {
        self.bar.finish_and_clear();
        interrupt::leave_loop();
    }

    fn say(&self, text: &str) {
        if self.verbosity == Verbosity::Normal {
            self.bar.suspend(|| remark(text));
        }
    }

    fn draws(&self) -> bool {
        self.verbosity == Verbosity::Normal && std::io::stderr().is_terminal()
    }
}

impl Observer for Progress {
    fn searching(&mut self, candidates: usize, folds: usize, iterations: u64) {
        self.say(&format!(
            "{}: choosing temperatures: {candidates} candidates, each trained {folds} times for {iterations} iterations \
             without some of the tasks",
            self.name
        ));
    }

    fn chosen(&mut self, choice: &TemperatureChoice) {
        if let Some(text) = choice.explanation() {
            self.say(&format!("{}: {text}", self.name));
        }
    }

    fn warning(&mut self, message: &str) {
        self.bar.suspend(|| warn(message));
    }

    fn begin(&mut self, done: u64, total: u64) {
        interrupt::enter_loop();
        if done > 0 {
            self.say(&format!("{}: continues after iteration {done} of {total}", self.name));
        }
        if self.draws() {
            let template = "{prefix} {bar:24} {pos}/{len} iterations, {per_sec}, {eta} left, {msg}";
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
                .with_style(style.with_key(
                    "per_sec",
                    |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                        let _ = write!(out, "{:.0} it/s", state.per_sec());
                    },
                ))
                .with_prefix(self.name.clone());
            self.bar.reset_elapsed();
            self.bar.set_position(done);
            self.bar.reset_eta();
        } else {
            self.say(&format!("{}: training, {} iterations", self.name, total - done));
        }
    }

    fn iteration(&mut self, iteration: u64, _: u64, terms: &IterationTerms) {
        if !self.bar.is_hidden() && self.shown.elapsed() >= REFRESH {
            self.shown = Instant::now();
            self.bar.set_message(format!("objective {:.4}", terms.total));
            self.bar.set_position(iteration);
        }
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
