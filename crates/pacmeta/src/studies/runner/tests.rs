use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use serde::{Deserialize, Serialize};

use super::*;
use crate::studies::spec::Stop;

static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Counts how often it is computed; multiples of 5 fail, 77 panics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Piece(u64);

impl Spec for Piece {
    const STUDY: &'static str = "pieces";
    const VERSION: u32 = 1;
    type Outcome = u64;
    fn label(&self) -> String {
        self.0.to_string()
    }
    fn cost(&self) -> f64 {
        self.0 as f64
    }
    fn run(&self, stop: Stop<'_>) -> Result<u64> {
        RUNS.fetch_add(1, Ordering::SeqCst);
        if stop() {
            return Err(Error::Interrupted { iteration: 0 });
        }
        assert!(self.0 != 77, "piece {} is too much", self.0);
        if self.0.is_multiple_of(5) {
            return Err(Error::input("piece", format!("{} is a multiple of 5", self.0)));
        }
        Ok(self.0 + 1)
    }
}

struct StopAfter(usize, AtomicUsize, AtomicBool);

impl StudyObserver for StopAfter {
    fn begin(&self, _: &Progress) {}
    fn finished(&self, _: &str, _: Option<&str>, _: &Progress) {
        if self.1.fetch_add(1, Ordering::SeqCst) + 1 >= self.0 {
            self.2.store(true, Ordering::SeqCst);
        }
    }
    fn stop(&self) -> bool {
        self.2.load(Ordering::SeqCst)
    }
}

fn endings(folder: &Path, specs: &[Piece]) -> Vec<Option<Ending<u64>>> {
    let records = Records::<Piece>::read(folder).unwrap();
    specs.iter().map(|spec| records.ending(&spec.hash().unwrap()).cloned()).collect()
}

#[test]
fn a_panic_in_one_piece_is_its_failure() {
    let folder = tempfile::tempdir().unwrap();
    let specs: Vec<Piece> = [76, 77, 78].map(Piece).to_vec();
    let mut records = Records::read(folder.path()).unwrap();
    let progress = run(&specs, &mut records, Failures::Keep, &SilentStudy).unwrap();
    assert_eq!((progress.done, progress.failed), (3, 1));
    let endings = endings(folder.path(), &specs);
    assert_eq!((&endings[0], &endings[2]), (&Some(Ending::Done(77)), &Some(Ending::Done(79))));
    assert!(matches!(&endings[1], Some(Ending::Failed(message)) if message.contains("piece 77 is too much")));
}

#[test]
fn only_what_is_missing_is_computed_and_failures_stop_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let specs: Vec<Piece> = (1..=12).map(Piece).collect();
    let mut records = Records::read(folder.path()).unwrap();
    let first = run(&specs[..8], &mut records, Failures::Keep, &SilentStudy).unwrap();
    assert_eq!((first.total, first.earlier, first.done, first.failed), (8, 0, 8, 1));
    assert_eq!(first.fraction(), 1.0);
    let before = RUNS.load(Ordering::SeqCst);
    let mut records = Records::read(folder.path()).unwrap();
    let second = run(&specs, &mut records, Failures::Keep, &SilentStudy).unwrap();
    assert_eq!((second.earlier, second.done, second.failed), (8, 4, 2));
    assert_eq!(RUNS.load(Ordering::SeqCst) - before, 4);
    let mut records = Records::read(folder.path()).unwrap();
    let third = run(&specs, &mut records, Failures::Retry, &SilentStudy).unwrap();
    assert_eq!((third.earlier, third.done, third.failed), (10, 2, 2));
    let endings = endings(folder.path(), &specs);
    assert_eq!(endings[0], Some(Ending::Done(2)));
    assert!(matches!(&endings[4], Some(Ending::Failed(message)) if message.contains("multiple of 5")));

    // Stopped after two pieces: what is finished is kept, the rest follows later.
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::read(folder.path()).unwrap();
    let observer = StopAfter(2, AtomicUsize::new(0), AtomicBool::new(false));
    let stopped = run(&specs, &mut records, Failures::Keep, &observer).unwrap_err();
    assert!(
        matches!(stopped, Error::StudyInterrupted { done, total: 12 } if (2..12).contains(&done)),
        "{stopped}"
    );
    let mut records = Records::read(folder.path()).unwrap();
    let kept = records.len();
    let rest = run(&specs, &mut records, Failures::Keep, &SilentStudy).unwrap();
    assert_eq!((rest.earlier, rest.done), (kept, 12 - kept));

    // One thread and two give the same endings.
    let outcomes = [1, 2].map(|threads| {
        let folder = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut records = Records::read(folder.path()).unwrap();
        pool.install(|| run(&specs, &mut records, Failures::Keep, &SilentStudy)).unwrap();
        self::endings(folder.path(), &specs)
    });
    assert_eq!(outcomes[0], outcomes[1]);
}

/// Outcomes as a diverged model leaves them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Number(u64);

impl Spec for Number {
    const STUDY: &'static str = "numbers";
    const VERSION: u32 = 1;
    type Outcome = f64;
    fn label(&self) -> String {
        self.0.to_string()
    }
    fn cost(&self) -> f64 {
        1.0
    }
    fn run(&self, _: Stop<'_>) -> Result<f64> {
        Ok(if self.0 == 0 { f64::NAN } else { f64::INFINITY.min(self.0 as f64) })
    }
}

#[test]
fn an_outcome_that_could_not_be_read_again_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::read(folder.path()).unwrap();
    let progress = run(&[Number(0), Number(1)], &mut records, Failures::Keep, &SilentStudy).unwrap();
    assert_eq!((progress.done, progress.failed), (2, 1));
    let records = Records::<Number>::read(folder.path()).unwrap();
    assert_eq!(records.ending(&Number(1).hash().unwrap()), Some(&Ending::Done(1.0)));
    assert!(matches!(records.ending(&Number(0).hash().unwrap()), Some(Ending::Failed(_))));
}

#[test]
fn a_record_that_cannot_be_written_stops_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::<Piece>::read(folder.path()).unwrap();
    std::fs::create_dir(folder.path().join(crate::studies::record::RECORDS)).unwrap();
    let error = run(&[Piece(1), Piece(2)], &mut records, Failures::Keep, &SilentStudy).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}
