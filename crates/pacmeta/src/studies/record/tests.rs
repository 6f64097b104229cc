use std::fs;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::studies::spec::Stop;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Square(pub(crate) u64);

impl Spec for Square {
    const STUDY: &'static str = "squares";
    const VERSION: u32 = 1;
    type Outcome = u64;
    fn label(&self) -> String {
        format!("square of {}", self.0)
    }
    fn cost(&self) -> f64 {
        1.0
    }
    fn run(&self, _: Stop<'_>) -> Result<u64> {
        Ok(self.0 * self.0)
    }
}

/// The same content in a later version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Later(u64);

impl Spec for Later {
    const STUDY: &'static str = "squares";
    const VERSION: u32 = 2;
    type Outcome = u64;
    fn label(&self) -> String {
        String::new()
    }
    fn cost(&self) -> f64 {
        1.0
    }
    fn run(&self, _: Stop<'_>) -> Result<u64> {
        Ok(self.0)
    }
}

fn filled(folder: &Path, count: u64) -> Vec<u8> {
    let mut records = Records::<Square>::read(folder).unwrap();
    for number in 0..count {
        records.append(&Square(number), Ending::Done(number * number), 0.5).unwrap();
    }
    fs::read(folder.join(RECORDS)).unwrap()
}

fn numbers(records: &Records<Square>, most: u64) -> Vec<u64> {
    (0..most).filter(|number| records.ending(&Square(*number).hash().unwrap()).is_some()).collect()
}

#[test]
fn what_is_appended_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 3);
    let mut records = Records::<Square>::read(folder.path()).unwrap();
    records.append(&Square(7), Ending::Failed("no luck".to_owned()), 1.0).unwrap();
    let records = Records::<Square>::read(folder.path()).unwrap();
    assert_eq!(records.len(), 4);
    assert_eq!(records.ending(&Square(2).hash().unwrap()), Some(&Ending::Done(4)));
    assert_eq!(records.ending(&Square(7).hash().unwrap()), Some(&Ending::Failed("no luck".to_owned())));
    assert_eq!(records.seconds(&Square(0).hash().unwrap()), Some(0.5));
    assert!(!records.torn());
}

#[test]
fn a_file_cut_at_any_byte_loses_the_last_piece_at_most_and_grows_again() {
    let folder = tempfile::tempdir().unwrap();
    let whole = filled(folder.path(), 4);
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1).collect();
    for length in 0..=whole.len() {
        fs::write(folder.path().join(RECORDS), &whole[..length]).unwrap();
        let mut records = Records::<Square>::read(folder.path()).unwrap();
        let lines = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(records.len(), lines.saturating_sub(1), "cut at {length}");
        assert_eq!(records.torn(), length > 0 && !ends.contains(&length), "cut at {length}");
        records.append(&Square(9), Ending::Done(81), 0.0).unwrap();
        let again = Records::<Square>::read(folder.path()).unwrap();
        let mut expected: Vec<u64> = (0..lines.saturating_sub(1) as u64).collect();
        expected.push(9);
        assert_eq!(numbers(&again, 10), expected, "cut at {length}");
        assert!(!again.torn());
    }
}

#[test]
fn damage_inside_is_an_error_that_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = filled(folder.path(), 3);
    let second_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 30;
    bytes[second_line] ^= 1;
    fs::write(folder.path().join(RECORDS), &bytes).unwrap();
    let error = Records::<Square>::read(folder.path()).unwrap_err();
    assert!(error.is_input());
    assert!(error.to_string().contains("line 2") && error.to_string().contains("damaged"), "{error}");
}

#[test]
fn other_versions_and_studies_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 1);
    let error = Records::<Later>::read(folder.path()).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("version 1"), "{error}");
    assert_ne!(Later(0).hash().unwrap(), Square(0).hash().unwrap());
}

#[test]
fn several_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let folder = folder.path();
            scope.spawn(move || {
                // Each has its own view and its own handle, as another process would.
                let mut records = Records::<Square>::read(folder).unwrap();
                for number in 0..25 {
                    let number = writer * 25 + number;
                    records.append(&Square(number), Ending::Done(number * number), 0.0).unwrap();
                }
            });
        }
    });
    let records = Records::<Square>::read(folder.path()).unwrap();
    assert_eq!(numbers(&records, 200), (0..100).collect::<Vec<_>>());
}

#[test]
fn of_two_records_of_the_same_piece_the_first_outcome_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = Records::<Square>::read(folder.path()).unwrap();
    let mut other = Records::<Square>::read(folder.path()).unwrap();
    one.append(&Square(3), Ending::Done(9), 1.0).unwrap();
    other.append(&Square(3), Ending::Done(9), 2.0).unwrap();
    one.append(&Square(4), Ending::Failed("no luck".to_owned()), 1.0).unwrap();
    other.append(&Square(4), Ending::Done(16), 2.0).unwrap();
    let records = Records::<Square>::read(folder.path()).unwrap();
    assert_eq!(records.seconds(&Square(3).hash().unwrap()), Some(1.0));
    assert_eq!(records.ending(&Square(4).hash().unwrap()), Some(&Ending::Done(16)));
}

proptest! {
    /// Whatever the file holds, reading ends with records or with an error of the input.
    #[test]
    fn any_bytes_are_read_without_panic(at in 0_usize..400, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut content = filled(folder.path(), 2);
        let at = at.min(content.len());
        let end = (at + bytes.len()).min(content.len());
        content.splice(at..end, bytes);
        fs::write(folder.path().join(RECORDS), &content).unwrap();
        if let Err(error) = Records::<Square>::read(folder.path()) {
            prop_assert!(error.is_input(), "{error}");
        }
    }
}
