//! Computes the pieces of a study that are not recorded yet, in parallel over cores.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::record::{Ending, Records};
use super::spec::{Keep, Spec};
use crate::error::{Error, Result};

/// Watches a study, and may stop it. Called from several threads.
pub trait StudyObserver: Sync {
    /// The study begins.
    fn begin(&self, progress: &Progress);

    /// A piece ended (or the study began).
    fn finished(&self, label: &str, failure: Option<&str>, progress: &Progress);

    /// Whether to stop now.
    fn stop(&self) -> bool;

    /// Something about a piece that people should know, and that stops nothing.
    fn warning(&self, _label: &str, _message: &str) {}
}

/// An observer that says nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentStudy;

impl StudyObserver for SilentStudy {
    fn begin(&self, _: &Progress) {}
    fn finished(&self, _: &str, _: Option<&str>, _: &Progress) {}
    fn stop(&self) -> bool {
        false
    }
}

/// How far a study is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// All pieces.
    pub total: usize,
    /// Pieces that were recorded before this call.
    pub earlier: usize,
    /// Pieces that this call finished.
    pub done: usize,
    /// Pieces with an error, earlier ones included.
    pub failed: usize,
    /// Effort finished by this call, in the unit of [`Spec::cost`].
    pub cost_done: f64,
    /// Effort left at its beginning.
    pub cost_total: f64,
}

impl Progress {
    /// The part of this call's effort that is done.
    pub fn fraction(&self) -> f64 {
        if self.cost_total > 0.0 { (self.cost_done / self.cost_total).min(1.0) } else { 1.0 }
    }
}

/// What to do with pieces that failed in an earlier call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failures {
    /// They stay failed: the same input gives the same error.
    #[default]
    Keep,
    /// They are tried again.
    Retry,
}

/// Where finished pieces go.
pub trait Recorder<S: Spec>: Send {
    /// How the piece of this hash ended, if it did.
    fn ending(&self, hash: &str) -> Option<&Ending<S::Outcome>>;

    /// Records a piece, on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append(&mut self, spec: &S, ending: Ending<S::Outcome>, seconds: f64) -> Result<()>;

    /// Where the piece of this hash may leave its state when it is stopped, if anywhere.
    fn keep(&self, _hash: &str) -> Option<Keep> {
        None
    }
}

impl<S: Spec> Recorder<S> for Records<S> {
    fn ending(&self, hash: &str) -> Option<&Ending<S::Outcome>> {
        Records::ending(self, hash)
    }

    fn append(&mut self, spec: &S, ending: Ending<S::Outcome>, seconds: f64) -> Result<()> {
        Records::append(self, spec, ending, seconds)
    }
}

/// Computes what is missing and records it. A piece that fails, or panics, is recorded with its error and stops nothing. The record's
/// content does not depend on the number of threads, only the order of its lines does.
///
/// # Errors
/// When the record cannot be written, or the observer stops ([`Error::Interrupted`] with the number of finished pieces).
pub fn run<S: Spec>(
    specs: &[S],
    records: &mut impl Recorder<S>,
    failures: Failures,
    observer: &dyn StudyObserver,
) -> Result<Progress> {
    let mut progress = Progress { total: specs.len(), ..Progress::default() };
    let mut missing = Vec::new();
    for spec in specs {
        let hash = spec.hash()?;
        match records.ending(&hash) {
            Some(Ending::Done(_)) => progress.earlier += 1,
            Some(Ending::Failed(_)) if failures == Failures::Keep => {
                progress.earlier += 1;
                progress.failed += 1;
            }
            _ => missing.push((spec, records.keep(&hash))),
        }
    }
    progress.cost_total = missing.iter().map(|(spec, _)| spec.cost()).sum();
    observer.begin(&progress);
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((records, progress, None::<Error>));
    let locked = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while let Some((spec, keep)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            if observer.stop() || locked().2.is_some() {
                return;
            }
            let start = Instant::now();
            let stop = || observer.stop();
            // A piece owns what it changes, so nothing half-changed is seen after a panic.
            let outcome = catch_unwind(AssertUnwindSafe(|| match keep {
                Some(keep) => {
                    spec.run_keeping(&stop, keep, &|message| observer.warning(&spec.label(), message))
                }
                None => spec.run(&stop),
            }));
            let ending = match outcome {
                Ok(Ok(outcome)) => readable::<S>(outcome),
                Ok(Err(error)) if error.is_interruption() => return,
                // No fault of the model: its state could not be written.
                Ok(Err(source @ Error::Io { .. })) => {
                    locked().2.get_or_insert(source);
                    return;
                }
                Ok(Err(error)) => Ending::Failed(error.to_string()),
                Err(panic) => Ending::Failed(format!("a mistake in this program: {}", message(&*panic))),
            };
            let failure = match &ending {
                Ending::Failed(message) => Some(message.clone()),
                Ending::Done(_) => None,
            };
            let mut guard = locked();
            let (records, progress, error) = &mut *guard;
            if let Err(source) = records.append(spec, ending, start.elapsed().as_secs_f64()) {
                error.get_or_insert(source);
                return;
            }
            keep.iter().for_each(Keep::clear);
            progress.done += 1;
            progress.failed += usize::from(failure.is_some());
            progress.cost_done += spec.cost();
            let progress = *progress;
            drop(guard);
            observer.finished(&spec.label(), failure.as_deref(), &progress);
        }
    };
    // One worker a thread for the whole study: models first, whatever a model does in parallel second.
    rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| work())));
    let (_, progress, error) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = error {
        return Err(error);
    }
    if progress.done < missing.len() {
        return Err(Error::StudyInterrupted {
            done: progress.earlier + progress.done,
            total: progress.total,
        });
    }
    Ok(progress)
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("no message")
}

/// JSON has no NaN and no infinity: an outcome with one of them could not be read again, and is a failure.
fn readable<S: Spec>(outcome: S::Outcome) -> Ending<S::Outcome> {
    let again = serde_json::to_string(&outcome).and_then(|text| serde_json::from_str::<S::Outcome>(&text));
    match again {
        Ok(_) => Ending::Done(outcome),
        Err(_) => Ending::Failed("a measured number is not finite".to_owned()),
    }
}

#[cfg(test)]
mod tests;
