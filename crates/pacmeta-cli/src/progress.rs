//! What is seen of a run while it goes on: a bar on a terminal, a few lines elsewhere.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use pacmeta::experiment::{Observer, TemperatureChoice};
use pacmeta::training::IterationTerms;

use crate::interrupt::{self, InLoop};
use crate::output::{remark, warn};

/// How much a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Warnings only.
    Quiet,
    /// Progress too.
    Normal,
}

/// Shows a run on standard error, beside others, and stops it on Ctrl-C.
pub(crate) struct Progress {
    name: String,
    verbosity: Verbosity,
    bars: MultiProgress,
    bar: ProgressBar,
    in_loop: Option<InLoop>,
    shown: Instant,
}

/// The eye sees no more often.
const REFRESH: Duration = Duration::from_millis(100);

impl Progress {
    /// Progress of the run in `folder`, its bar among `bars`.
    pub(crate) fn new(folder: &Path, verbosity: Verbosity, bars: &MultiProgress) -> Self {
        Self {
            name: folder.display().to_string(),
            verbosity,
            bars: bars.clone(),
            bar: ProgressBar::hidden(),
            in_loop: None,
            shown: Instant::now(),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&mut self) {
        self.bar.finish_and_clear();
        self.in_loop = None;
    }

    fn say(&self, text: &str) {
        if self.verbosity == Verbosity::Normal {
            self.bars.suspend(|| remark(text));
        }
    }

    fn draws(&self) -> bool {
        self.verbosity == Verbosity::Normal && std::io::stderr().is_terminal()
    }
}

impl Observer for Progress {
    fn searching(&mut self, candidates: usize, folds: usize, iterations: u64) {
        self.in_loop.get_or_insert_with(InLoop::enter);
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
        self.bars.suspend(|| warn(message));
    }

    fn begin(&mut self, done: u64, total: u64) {
        self.in_loop.get_or_insert_with(InLoop::enter);
        if done > 0 {
            self.say(&format!("{}: continues after iteration {done} of {total}", self.name));
        }
        if self.draws() {
            let template = "{prefix} {bar:24} {pos}/{len} iterations, {per_sec}, {eta} left, {msg}";
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(total)
                .with_style(style.with_key(
                    "per_sec",
                    |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                        let _ = write!(out, "{:.0} it/s", state.per_sec());
                    },
                ))
                .with_prefix(self.name.clone());
            self.bar = self.bars.add(bar);
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
