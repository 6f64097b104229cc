//! The record of a study: one line for each finished piece, only ever appended to.
//!
//! Every line is JSON of the fixed shape `{"crc32c":"xxxxxxxx","record":...}`, the checksum being that of the record's
//! bytes. The first line says which study and version the rest belongs to. A line counts once its newline is on the
//! disk, so a process that dies at any byte loses at most the piece in flight: what it leaves behind the last newline is
//! a *torn* line, which readers skip and the next writer cuts off. A line that is damaged before the last newline was
//! whole once; it is an error. Writers of several processes take turns by a lock on the file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::Spec;
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

/// The name of the file in a study's folder.
pub const RECORDS: &str = "records.jsonl";
const FORMAT: u32 = 1;
/// Longer files are not read.
const MAX_BYTES: u64 = 1 << 32;
const OPENING: &str = "{\"crc32c\":\"";
const MIDDLE: &str = "\",\"record\":";

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    study: String,
    version: u32,
}

impl Header {
    fn of<S: Spec>() -> Self {
        Self { format: FORMAT, study: S::STUDY.to_owned(), version: S::VERSION }
    }
}

/// How a piece ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending<T> {
    /// With an outcome.
    Done(T),
    /// With an error, in words.
    Failed(String),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record<S, T> {
    pub(super) hash: String,
    pub(super) seconds: f64,
    pub(super) spec: S,
    pub(super) ending: Ending<T>,
}

/// The hash of a line, read before the rest of it.
#[derive(Deserialize)]
struct Hashed {
    hash: String,
    seconds: f64,
    ending: Value,
}

/// The finished pieces of a study.
#[derive(Debug)]
pub struct Records<S: Spec> {
    path: PathBuf,
    endings: HashMap<String, (f64, Ending<S::Outcome>)>,
    torn: bool,
}

impl<S: Spec> Records<S> {
    /// Reads the record in a folder; one that does not exist yet is empty.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or belongs to another study or version.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(RECORDS);
        let mut records = Self { path, endings: HashMap::new(), torn: false };
        if !records.path.exists() {
            return Ok(records);
        }
        let bytes = read_bounded(&records.path, MAX_BYTES)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        records.torn = whole < bytes.len();
        for (index, line) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
            records.take(index + 1, &line[..line.len() - 1])?;
        }
        Ok(records)
    }

    fn take(&mut self, number: usize, line: &[u8]) -> Result<()> {
        let error = |message: &str| Error::input_at(self.path.display(), format!("line {number}"), message);
        let body = checked_body(line).ok_or_else(|| match number {
            1 => error("is damaged (its checksum does not fit): it should say which study the record belongs to; choose another --out"),
            _ => error("is damaged (its checksum does not fit); remove the line, and that model is trained again"),
        })?;
        if number == 1 {
            let header: Header =
                serde_json::from_slice(body).map_err(|_| error("expected the header of a record"))?;
            let ours = Header::of::<S>();
            if header != ours {
                return Err(error(&format!(
                    "is a record of `{}`, version {}, in format {}; this program writes `{}`, version {}, in format {}: \
                     they do not mix, choose another --out",
                    header.study, header.version, header.format, ours.study, ours.version, ours.format
                )));
            }
            return Ok(());
        }
        let Hashed { hash, seconds, ending } =
            serde_json::from_slice(body).map_err(|source| error(&format!("expected a record: {source}")))?;
        let ending = serde_json::from_value(ending)
            .map_err(|source| error(&format!("expected an outcome: {source}")))?;
        // Of two processes that finished the same piece, the first one counts; an outcome counts more than a failure.
        if !matches!(self.endings.get(&hash), Some((_, Ending::Done(_)))) {
            self.endings.insert(hash, (seconds, ending));
        }
        Ok(())
    }

    /// Whether the last writer died in the middle of a line.
    pub fn torn(&self) -> bool {
        self.torn
    }

    /// How the piece of this hash ended, if it did.
    pub fn ending(&self, hash: &str) -> Option<&Ending<S::Outcome>> {
        self.endings.get(hash).map(|(_, ending)| ending)
    }

    /// The seconds that the piece of this hash took.
    pub fn seconds(&self, hash: &str) -> Option<f64> {
        self.endings.get(hash).map(|(seconds, _)| *seconds)
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.endings.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.endings.is_empty()
    }

    /// Appends a piece, on the disk when this returns.
    ///
    /// # Errors
    /// When the file cannot be written; it then ends as before.
    pub fn append(&mut self, spec: &S, ending: Ending<S::Outcome>, seconds: f64) -> Result<()> {
        let hash = spec.hash()?;
        let record = Record { hash: hash.clone(), seconds, spec: spec.clone(), ending };
        append_line(&self.path, &line_of(&Header::of::<S>())?, &line_of(&record)?)?;
        self.endings.insert(hash, (seconds, record.ending));
        Ok(())
    }
}

/// A value as a line with its checksum.
pub(super) fn line_of(value: &impl Serialize) -> Result<String> {
    let body = serde_json::to_string(value).map_err(|error| Error::input("record", error.to_string()))?;
    Ok(format!("{OPENING}{:08x}{MIDDLE}{body}}}\n", crc32c::crc32c(body.as_bytes())))
}

/// The record inside a line, if the checksum fits.
pub(super) fn checked_body(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(OPENING.as_bytes())?;
    let (checksum, rest) = rest.split_at_checked(8)?;
    let body = rest.strip_prefix(MIDDLE.as_bytes())?.strip_suffix(b"}")?;
    let stated = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    (crc32c::crc32c(body) == stated).then_some(body)
}

/// Appends under the file's lock: cuts off a torn line, begins an empty file with the header.
fn append_line(path: &Path, header: &str, line: &str) -> Result<()> {
    let write_error = |source| Error::io("write", path, source);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(write_error)?;
    file.lock().map_err(write_error)?;
    let whole = whole_length(&mut file).map_err(write_error)?;
    file.set_len(whole).map_err(write_error)?;
    file.seek(SeekFrom::End(0)).map_err(write_error)?;
    let text = if whole == 0 { format!("{header}{line}") } else { line.to_owned() };
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    if written.is_err() {
        // A full disk: what did get through is cut off again, as far as the system lets us.
        let _ = file.set_len(whole);
    }
    written.map_err(write_error)
}

/// The length up to and including the last newline.
fn whole_length(file: &mut File) -> std::io::Result<u64> {
    const BLOCK: u64 = 1 << 16;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.resize(usize::try_from(end - start).unwrap_or_default(), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
