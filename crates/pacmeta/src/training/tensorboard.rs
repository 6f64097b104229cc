//! TensorBoard scalars: an event file that `tensorboard --logdir` shows while the run goes on.
//!
//! The file is a sequence of TFRecords: length (u64), masked CRC-32C of the length, data, masked CRC-32C of the data, all
//! little endian. Each data is a protocol buffer `Event`; few of its fields matter here:
//!
//! ```text
//! Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
//!           SessionLog session_log = 7; }
//! Summary { repeated Value value = 1; }   Value { string tag = 1; float simple_value = 2; }
//! SessionLog { Status status = 1; }       Status { START = 1; }
//! ```
//!
//! Every start of a run writes a new file. It begins with a session start at its first step, by which readers drop what
//! an interrupted run had written beyond its checkpoint. Wall-clock times live here only.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

const FILE_VERSION: &str = "brain.Event:2";

/// Writes scalars to a new event file.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: File,
}

impl EventWriter {
    /// A new file in `folder`. Readers drop earlier events of this folder from `first_iteration` on.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(folder: impl AsRef<Path>, first_iteration: u64) -> Result<Self> {
        let wall_time = seconds_since_epoch();
        let (path, file) = new_file(folder.as_ref(), wall_time as u64)?;
        let mut writer = Self { path, file };
        let mut start = framed(&event(wall_time, 0, &Payload::FileVersion(FILE_VERSION)));
        start.extend(framed(&event(wall_time, first_iteration, &Payload::SessionStart)));
        writer.write(&start)?;
        Ok(writer)
    }

    /// Adds the scalars of an iteration, stamped with the present time.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn scalars(&mut self, iteration: u64, values: &[(&str, f64)]) -> Result<()> {
        self.write(&framed(&event(seconds_since_epoch(), iteration, &Payload::Scalars(values))))
    }

    /// The file written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|source| Error::io("write", &self.path, source))
    }
}

fn seconds_since_epoch() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// Readers take event files in the order of their names, so the time comes first and the counter is padded.
fn new_file(folder: &Path, seconds: u64) -> Result<(PathBuf, File)> {
    let mut attempt = 0;
    loop {
        let name = format!("events.out.tfevents.{seconds:010}.{attempt:04}.pacmeta");
        let path = folder.join(name);
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < 9999 => attempt += 1,
            Err(error) => return Err(Error::io("write", &path, error)),
        }
    }
}

/// What an event carries.
enum Payload<'a> {
    FileVersion(&'a str),
    Scalars(&'a [(&'a str, f64)]),
    SessionStart,
}

/// A TFRecord around `data`.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc(data).to_le_bytes());
    record
}

/// The checksum of TFRecords: rotated and shifted, so that a checksum of data that holds checksums stays strong.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn event(wall_time: f64, step: u64, payload: &Payload<'_>) -> Vec<u8> {
    let mut message = Message::default();
    message.double(1, wall_time);
    message.varint(2, step);
    match payload {
        Payload::FileVersion(version) => message.bytes(3, version.as_bytes()),
        Payload::Scalars(values) => {
            let mut summary = Message::default();
            for (tag, value) in *values {
                let mut entry = Message::default();
                entry.bytes(1, tag.as_bytes());
                entry.float(2, *value as f32);
                summary.bytes(1, &entry.0);
            }
            message.bytes(5, &summary.0);
        }
        Payload::SessionStart => {
            let mut log = Message::default();
            log.varint(1, 1);
            message.bytes(7, &log.0);
        }
    }
    message.0
}

/// A protocol buffer under construction. A field is a key, 8 number + wire type, and its value.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, wire_type: u64) {
        self.raw_varint(field << 3 | wire_type);
    }

    /// Seven bits a byte, lowest first; the high bit says that more follow.
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn varint(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.raw_varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.raw_varint(value.len() as u64);
        self.0.extend(value);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
