//! What is seen of a study while it goes on: one bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pacmeta::studies::{Progress, StudyObserver};

use crate::interrupt::{self, InLoop};
use crate::output::{are, plural, remark, warn};
use crate::progress::Verbosity;

/// Where there is no terminal, a line appears this often.
const EVERY: Duration = Duration::from_secs(30);
/// Failures that are told one by one; the rest is only counted.
const TOLD: usize = 5;

/// Shows a study on standard error, and stops it on Ctrl-C.
pub(crate) struct StudyProgress {
    verbosity: Verbosity,
    bar: ProgressBar,
    start: Instant,
    /// When the last line appeared, and how many failures were told.
    told: Mutex<(Instant, usize)>,
    pieces: AtomicUsize,
    _in_loop: InLoop,
}

impl StudyProgress {
    /// Begins to watch.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let draws = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        let bar = if draws {
            let style = ProgressStyle::with_template("{bar:24} {msg}");
            ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr())
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        } else {
            ProgressBar::hidden()
        };
        Self {
            verbosity,
            bar,
            start: Instant::now(),
            told: Mutex::new((Instant::now(), 0)),
            pieces: AtomicUsize::new(0),
            _in_loop: InLoop::enter(),
        }
    }

    /// Pieces (models, the plain Gaussian process, draws) that were finished while this was watching.
    pub(crate) fn finished_pieces(&self) -> usize {
        self.pieces.load(Ordering::SeqCst)
    }

    fn state(&self, progress: &Progress) -> String {
        state_after(self.start.elapsed().as_secs_f64(), progress)
    }
}

/// What is there, and what is to be done.
fn beginning(progress: &Progress) -> String {
    let missing = progress.total - progress.earlier;
    match (progress.earlier, missing) {
        (1, 0) => "the piece is recorded".to_owned(),
        (earlier, 0) => format!("all {earlier} pieces are recorded"),
        (0, _) => format!("{} to compute", plural(missing, "piece")),
        (earlier, _) => {
            format!("{earlier} of {} pieces {} recorded, {missing} to compute", progress.total, are(earlier))
        }
    }
}

/// How far a study is, its rate in this call and the time left.
fn state_after(seconds: f64, progress: &Progress) -> String {
    let fraction = progress.fraction();
    let rate = progress.done as f64 / seconds.max(1e-9);
    // The first few pieces say little about the rest.
    let left = if fraction > 0.01 || progress.done >= 10 {
        let left = Duration::from_secs_f64(seconds * (1.0 - fraction) / fraction.max(1e-9));
        format!("{} left", HumanDuration(left))
    } else {
        "time left not yet known".to_owned()
    };
    let failed = match progress.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let done = progress.earlier + progress.done;
    let pieces = plural(progress.total, "piece");
    format!("{done}/{pieces}{failed}, {rate:.1} pieces/s, {left}")
}

impl StudyObserver for StudyProgress {
    fn begin(&self, progress: &Progress) {
        if self.verbosity == Verbosity::Normal {
            remark(&beginning(progress));
        }
        self.bar.set_message(self.state(progress));
    }

    fn finished(&self, label: &str, failure: Option<&str>, progress: &Progress) {
        self.pieces.store(progress.done, Ordering::SeqCst);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = failure {
            told.1 += 1;
            if told.1 <= TOLD {
                self.bar.suspend(|| warn(&format!("{label}: {failure}")));
            }
        }
        if !self.bar.is_hidden() {
            self.bar.set_position((1000.0 * progress.fraction()) as u64);
            self.bar.set_message(self.state(progress));
        } else if self.verbosity == Verbosity::Normal && told.0.elapsed() >= EVERY {
            told.0 = Instant::now();
            remark(&self.state(progress));
        }
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }

    fn warning(&self, label: &str, message: &str) {
        self.bar.suspend(|| warn(&format!("{label}: {message}")));
    }
}

impl Drop for StudyProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_not_spoken_of_as_many() {
        let begun = |total, earlier| beginning(&Progress { total, earlier, ..Progress::default() });
        assert_eq!(begun(1, 0), "1 piece to compute");
        assert_eq!(begun(5, 0), "5 pieces to compute");
        assert_eq!(begun(1, 1), "the piece is recorded");
        assert_eq!(begun(5, 5), "all 5 pieces are recorded");
        assert_eq!(begun(5, 1), "1 of 5 pieces is recorded, 4 to compute");
    }

    #[test]
    fn the_line_says_what_is_done_the_rate_and_the_time_left() {
        let progress =
            Progress { total: 200, earlier: 100, done: 40, failed: 0, cost_done: 25.0, cost_total: 100.0 };
        // A quarter of the effort in a minute leaves three; pieces of earlier calls are not part of the rate.
        assert_eq!(state_after(60.0, &progress), "140/200 pieces, 0.7 pieces/s, 3 minutes left");
        let failed = Progress { failed: 3, ..progress };
        assert_eq!(state_after(60.0, &failed), "140/200 pieces, 3 failed, 0.7 pieces/s, 3 minutes left");
        let begun = Progress { done: 1, cost_done: 0.1, ..progress };
        assert_eq!(state_after(2.0, &begun), "101/200 pieces, 0.5 pieces/s, time left not yet known");
    }
}
