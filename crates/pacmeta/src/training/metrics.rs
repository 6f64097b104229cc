//! The numbers of a run, one JSON object a line: `{"iteration":100,"objective":0.25,...}`.
//!
//! The file is part of what must not depend on interruptions, so it holds no times. After a crash the lines beyond
//! the checkpoint that is resumed from, and a torn last line, are cut off; the run then appends the same lines again.
//! A number that is not finite is written as `null`, since JSON has no other word for it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A longer line is not ours; the limit bounds the memory of reading.
const MAX_LINE: u64 = 1 << 20;

/// Appends lines to `metrics.jsonl`, each with a single call of the system.
#[derive(Debug)]
pub struct MetricsWriter {
    path: PathBuf,
    file: File,
    length: u64,
    last_iteration: Option<u64>,
}

impl MetricsWriter {
    /// An empty file for a run that starts from nothing.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::open(path.as_ref(), |_| Ok((0, None)))
    }

    /// The file of a run that continues after `iteration`: later lines and a torn last line are cut off.
    ///
    /// # Errors
    /// When the file cannot be read or written, or a line before its end is not a line of metrics.
    pub fn resume(path: impl AsRef<Path>, iteration: u64) -> Result<Self> {
        let path = path.as_ref();
        Self::open(path, |file| {
            let mut kept = (0, None);
            scan(path, file, |end, line| {
                let goes_on = line.iteration <= iteration;
                if goes_on {
                    kept = (end, Some(line.iteration));
                }
                goes_on
            })?;
            Ok(kept)
        })
    }

    /// Opens the file and cuts it to the length that `keep` finds.
    fn open(path: &Path, keep: impl FnOnce(&File) -> Result<(u64, Option<u64>)>) -> Result<Self> {
        let io_error = |source| Error::io("write", path, source);
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io_error)?;
        let (length, last_iteration) = keep(&file)?;
        file.set_len(length).map_err(io_error)?;
        Ok(Self { path: path.to_path_buf(), file, length, last_iteration })
    }

    /// Appends a line. The names keep their order; iterations never fall.
    ///
    /// # Errors
    /// When the file cannot be written; nothing of the line is left then. When the iteration lies before the last line,
    /// or a name is `iteration` or occurs twice.
    pub fn append(&mut self, iteration: u64, values: &[(&str, f64)]) -> Result<()> {
        let refuse = |message: String| Err(Error::input(self.path.display(), message));
        if let Some(last) = self.last_iteration.filter(|&last| last > iteration) {
            return refuse(format!("iteration {iteration} cannot follow iteration {last}"));
        }
        let mut line = format!("{{\"iteration\":{iteration}");
        for (position, &(name, value)) in values.iter().enumerate() {
            if name == "iteration" || values[..position].iter().any(|&(earlier, _)| earlier == name) {
                return refuse(format!("the metric `{name}` occurs twice in one line"));
            }
            // serde_json writes numbers that are not finite as null.
            line.push_str(&format!(",{}:{}", Value::from(name), Value::from(value)));
        }
        line.push_str("}\n");
        if let Err(source) = self.file.write_all(line.as_bytes()) {
            // Best effort: should this fail too, the torn line is cut off by the next resumption.
            let _ = self.file.set_len(self.length);
            return Err(Error::io("write", &self.path, source));
        }
        self.length += line.len() as u64;
        self.last_iteration = Some(iteration);
        Ok(())
    }

    /// Waits until all lines are on the disk. Due before a checkpoint of the same iteration is written: lines up to a
    /// checkpoint are never produced again.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|source| Error::io("write", &self.path, source))
    }
}

/// A line of metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsLine {
    /// The iteration after which it was written.
    pub iteration: u64,
    /// The other keys; `None` where a number was not finite.
    pub values: Vec<(String, Option<f64>)>,
}

impl MetricsLine {
    /// The number of that name, if it is there and finite.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(key, _)| key == name).and_then(|(_, value)| *value)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut object: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let iteration = object.remove("iteration")?.as_u64()?;
        let number = |(name, value): (String, Value)| match value {
            Value::Null => Some((name, None)),
            Value::Number(number) => Some((name, number.as_f64())),
            _ => None,
        };
        Some(Self { iteration, values: object.into_iter().map(number).collect::<Option<_>>()? })
    }
}

/// Reads all lines; a torn last line, as a crash leaves it, is passed over.
///
/// # Errors
/// When the file cannot be read, or a line before its end is not a line of metrics.
pub fn read_metrics(path: impl AsRef<Path>) -> Result<Vec<MetricsLine>> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
    let mut lines = Vec::new();
    scan(path, &file, |_, line| {
        lines.push(line);
        true
    })?;
    Ok(lines)
}

/// Calls `visit` with every whole line and the position of its end, until it says to stop.
fn scan(path: &Path, file: &File, mut visit: impl FnMut(u64, MetricsLine) -> bool) -> Result<()> {
    let io_error = |source| Error::io("read", path, source);
    let mut reader = BufReader::new(file);
    let (mut end, mut buffer) = (0, Vec::new());
    for number in 1_u64.. {
        buffer.clear();
        reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut buffer).map_err(io_error)?;
        if buffer.is_empty() {
            break;
        }
        end += buffer.len() as u64;
        let whole = buffer.ends_with(b"\n").then(|| MetricsLine::parse(&buffer)).flatten();
        match whole {
            Some(line) => {
                if !visit(end, line) {
                    break;
                }
            }
            // Only the last line can be torn: by a kill in the middle, or as a run of zeros by a power cut.
            None if reader.fill_buf().map_err(io_error)?.is_empty() => break,
            None => {
                return Err(Error::input_at(
                    path.display(),
                    format!("line {number}"),
                    "expected {\"iteration\": _, ...} with numbers or null: the file was changed; restore it or delete it",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn write_run(path: &Path, iterations: std::ops::RangeInclusive<u64>) {
        let mut writer = MetricsWriter::create(path).unwrap();
        append(&mut writer, iterations);
    }

    fn append(writer: &mut MetricsWriter, iterations: std::ops::RangeInclusive<u64>) {
        for iteration in iterations {
            writer.append(iteration, &[("objective", 1.0 / iteration as f64), ("rmse", 0.1)]).unwrap();
        }
    }

    #[test]
    fn lines_are_json_in_the_given_order_and_not_finite_is_null() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut writer = MetricsWriter::create(&path).unwrap();
        writer.append(100, &[("objective", 0.25), ("a \"b\"", f64::NAN), ("rmse", 1e-300)]).unwrap();
        writer.append(100, &[("x", f64::INFINITY)]).unwrap();
        writer.sync().unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\"iteration\":100,\"objective\":0.25,\"a \\\"b\\\"\":null,\"rmse\":1e-300}\n{\"iteration\":100,\"x\":null}\n"
        );
        let lines = read_metrics(&path).unwrap();
        assert_eq!(lines[0].get("rmse"), Some(1e-300));
        assert_eq!(lines[1].values, [("x".to_owned(), None)]);
    }

    #[test]
    fn lines_that_could_not_be_resumed_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::create(folder.path().join("m")).unwrap();
        writer.append(5, &[]).unwrap();
        assert!(
            writer.append(4, &[]).unwrap_err().to_string().contains("iteration 4 cannot follow iteration 5")
        );
        assert!(writer.append(6, &[("iteration", 1.0)]).is_err());
        assert!(writer.append(6, &[("a", 1.0), ("a", 1.0)]).is_err());
        assert_eq!(read_metrics(folder.path().join("m")).unwrap().len(), 1);
    }

    #[test]
    fn a_resumed_file_equals_an_undisturbed_one_wherever_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, path) = (folder.path().join("whole"), folder.path().join("cut"));
        write_run(&whole, 1..=12);
        let expected = fs::read(&whole).unwrap();
        let checkpoint = 5;
        let through_checkpoint = {
            write_run(&path, 1..=checkpoint);
            fs::read(&path).unwrap().len()
        };
        for length in through_checkpoint..=expected.len() {
            fs::write(&path, &expected[..length]).unwrap();
            append(&mut MetricsWriter::resume(&path, checkpoint).unwrap(), checkpoint + 1..=12);
            assert_eq!(fs::read(&path).unwrap(), expected, "cut at {length}");
        }
    }

    #[test]
    fn a_fresh_start_forgets_earlier_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        write_run(&path, 1..=3);
        write_run(&path, 1..=2);
        assert_eq!(read_metrics(&path).unwrap().len(), 2);
    }

    #[test]
    fn only_the_last_line_may_be_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        for torn in ["{\"iteration\":2", "{\"iteration\":2,\"a\":1}", "\0\0\0\0", "{\"a\":1}\n"] {
            fs::write(&path, format!("{{\"iteration\":1}}\n{torn}")).unwrap();
            assert_eq!(read_metrics(&path).unwrap().len(), 1, "{torn:?}");
        }
        fs::write(&path, "{\"iteration\":1}\nnonsense\n{\"iteration\":2}\n").unwrap();
        assert!(read_metrics(&path).unwrap_err().to_string().contains("line 2"));
        assert!(MetricsWriter::resume(&path, 1).unwrap_err().is_input());
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3, "a refused file is left alone");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("m");
            fs::write(&path, &bytes).unwrap();
            if let Ok(lines) = read_metrics(&path) {
                prop_assert!(lines.len() <= bytes.iter().filter(|&&byte| byte == b'\n').count());
            }
        }
    }
}
