//! What is seen of classification, of pictures and of texts, while it goes on: bars on a terminal, a few lines elsewhere.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use pacmeta::classification::{Observer, Terms, Validation};
use pacmeta::environments::images;

use crate::interrupt::{self, InLoop};
use crate::output::{remark, warn};
use crate::progress::Verbosity;

/// The eye sees no more often.
const REFRESH: Duration = Duration::from_millis(100);

/// Shows a run on standard error, and stops it on Ctrl-C.
pub(crate) struct ClassificationProgress {
    name: String,
    verbosity: Verbosity,
    bars: MultiProgress,
    bar: ProgressBar,
    decoding: Option<ProgressBar>,
    in_loop: Option<InLoop>,
    shown: Instant,
    accuracy: Option<f64>,
}

impl ClassificationProgress {
    /// Progress of the run in `folder`, its bar among `bars`.
    pub(crate) fn new(folder: &Path, verbosity: Verbosity, bars: &MultiProgress) -> Self {
        Self {
            name: folder.display().to_string(),
            verbosity,
            bars: bars.clone(),
            bar: ProgressBar::hidden(),
            decoding: None,
            in_loop: None,
            shown: Instant::now(),
            accuracy: None,
        }
    }

    /// Removes the bars.
    pub(crate) fn finish(&mut self) {
        self.bar.finish_and_clear();
        if let Some(bar) = self.decoding.take() {
            bar.finish_and_clear();
        }
        self.in_loop = None;
    }

    /// A remark, unless the user wants none.
    pub(crate) fn say(&self, text: &str) {
        if self.verbosity == Verbosity::Normal {
            self.bars.suspend(|| remark(text));
        }
    }

    fn draws(&self) -> bool {
        self.verbosity == Verbosity::Normal && std::io::stderr().is_terminal()
    }

    fn new_bar(&self, total: u64, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bars.add(ProgressBar::new(total).with_style(style).with_prefix(self.name.clone()))
    }
}

/// Whether this task completes a quarter, a half or three quarters of all.
fn passes_quarter(done: usize, total: usize) -> bool {
    (1..total).contains(&done) && 4 * done / total > 4 * (done - 1) / total
}

impl images::Progress for ClassificationProgress {
    fn decoded(&mut self, done: usize, total: usize) {
        self.in_loop.get_or_insert_with(InLoop::enter);
        if self.decoding.is_none() {
            self.decoding = Some(if self.draws() {
                self.new_bar(total as u64, "decoding {bar:24} {pos}/{len} pictures, {eta} left")
            } else {
                self.say(&format!("decoding {total} pictures, once"));
                ProgressBar::hidden()
            });
        }
        if let Some(bar) = &self.decoding {
            bar.set_position(done as u64);
            if done == total {
                bar.finish_and_clear();
            }
        }
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

impl Observer for ClassificationProgress {
    fn warning(&mut self, message: &str) {
        self.bars.suspend(|| warn(message));
    }

    fn begin(&mut self, done: u64, total: u64) {
        self.in_loop.get_or_insert_with(InLoop::enter);
        if done > 0 {
            self.say(&format!("{}: continues after iteration {done} of {total}", self.name));
        }
        if self.draws() {
            self.bar = self.new_bar(total, "{prefix} {bar:24} {pos}/{len} iterations, {eta} left, {msg}");
            self.bar.reset_elapsed();
            self.bar.set_position(done);
            self.bar.reset_eta();
        } else {
            self.say(&format!("{}: training, {} iterations", self.name, total - done));
        }
    }

    fn iteration(&mut self, iteration: u64, _: u64, terms: &Terms) {
        if !self.bar.is_hidden() && self.shown.elapsed() >= REFRESH {
            self.shown = Instant::now();
            let validation = self
                .accuracy
                .map_or(String::new(), |accuracy| format!(", validation accuracy {:.1} %", 100.0 * accuracy));
            self.bar.set_message(format!("loss {:.3}{validation}", terms.risk));
            self.bar.set_position(iteration);
        }
    }

    fn validated(&mut self, iteration: u64, validation: &Validation) {
        self.accuracy = Some(validation.accuracy);
        if !self.draws() {
            self.say(&format!(
                "{}: iteration {iteration}, validation accuracy {:.1} %",
                self.name,
                100.0 * validation.accuracy
            ));
        }
    }

    fn scoring(&mut self, tasks: usize) {
        self.bar.finish_and_clear();
        self.say(&format!("{}: scoring {tasks} new tasks", self.name));
        // not drawn before a first task is said to be scored, which pictures never say
        if self.draws() {
            self.bar =
                self.new_bar(tasks as u64, "{prefix} {bar:24} scored {pos} of {len} tasks, {eta} left");
        }
    }

    fn scored(&self, done: usize, total: usize) {
        self.bar.set_position(done as u64);
        if !self.draws() && passes_quarter(done, total) {
            self.say(&format!("{}: scored {done} of {total} tasks", self.name));
        }
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

impl Drop for ClassificationProgress {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::passes_quarter;

    #[test]
    fn a_log_gets_three_lines_of_scoring_at_most() {
        let said = |total: usize| -> Vec<usize> {
            (1..=total).filter(|&done| passes_quarter(done, total)).collect()
        };
        assert_eq!(said(12), [3, 6, 9]);
        assert_eq!(said(4), [1, 2, 3]);
        assert_eq!(said(2), [1]);
        assert_eq!(said(10), [3, 5, 8]);
        assert!(said(1).is_empty());
    }
}
