//! Lines of a text file, plain or gzip, with memory bounded whatever the file holds.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};

/// The longest line: some hundred pages of text.
const LONGEST: usize = 1 << 20;

/// The most bytes of a file after unpacking. Few-shot tasks are far smaller, and a gzip file of a megabyte may claim more.
const MOST_BYTES: u64 = 1 << 30;

/// What a file should be, for errors.
const EXPECTED: &str = "a text file, of labelled sentences one JSON object a line such as {\"sentence1\": \"...\", \"label\": \"...\"}; check the path";

/// Lines with their numbers. Blank lines, a byte order mark and carriage returns before line ends are passed over.
pub(super) struct Lines<'a> {
    origin: String,
    reader: Box<dyn BufRead + 'a>,
    packed: bool,
    number: usize,
    bytes: u64,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// The lines of a file; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Lines<'static>> {
        if path == Path::new("-") {
            return Lines::new("standard input".into(), Box::new(BufReader::new(io::stdin())));
        }
        let file = File::open(path).map_err(|source| Error::reading(path, source, EXPECTED))?;
        Lines::new(path.display().to_string(), Box::new(BufReader::new(file)))
    }

    /// The lines of bytes.
    pub(super) fn of_bytes(origin: &str, bytes: &'a [u8]) -> Result<Self> {
        Self::new(origin.to_owned(), Box::new(bytes))
    }

    fn new(origin: String, mut reader: Box<dyn BufRead + 'a>) -> Result<Self> {
        let io_error = |source| Error::reading(&origin, source, EXPECTED);
        // Told by the bytes, not the name: browsers unpack, and rename, as they like.
        let packed = reader.fill_buf().map_err(io_error)?.starts_with(&[0x1f, 0x8b]);
        if packed {
            reader = Box::new(BufReader::new(MultiGzDecoder::new(reader)));
        }
        Ok(Self { origin, reader, packed, number: 0, bytes: 0, line: Vec::new() })
    }

    /// Where the lines are from.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// The next line that is not blank, and its number from 1.
    pub(super) fn next(&mut self) -> Result<Option<(usize, &str)>> {
        loop {
            self.number += 1;
            if !self.fill()? {
                return Ok(None);
            }
            if self.number == 1 {
                if self.line.starts_with(b"\xff\xfe") || self.line.starts_with(b"\xfe\xff") {
                    return Err(Error::input(&self.origin, "the text is in UTF-16; save the file as UTF-8"));
                }
                if self.line.starts_with(b"\xef\xbb\xbf") {
                    self.line.drain(..3);
                }
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        if self.line.contains(&0) {
            return Err(
                self.wrong("the line holds NUL characters, as text in UTF-16 does; save the file as UTF-8, or remove them")
            );
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some((self.number, line.trim()))),
            Err(_) => Err(self.wrong("the text is not UTF-8; save the file as UTF-8")),
        }
    }

    /// Reads a line into the buffer; false at the end.
    fn fill(&mut self) -> Result<bool> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(LONGEST as u64 + 1);
        match limited.read_until(b'\n', &mut self.line) {
            Ok(0) => return Ok(false),
            Ok(count) => self.bytes += count as u64,
            Err(error) => return Err(self.unreadable(error)),
        }
        if self.line.len() > LONGEST {
            let message = format!(
                "the line has more than {LONGEST} bytes; is the whole file one line? JSON lines have an object a line, raw text a sentence"
            );
            return Err(self.wrong(&message));
        }
        if self.bytes > MOST_BYTES {
            let message = format!(
                "the file unpacks to more than {MOST_BYTES} bytes; a task is far smaller: split the file, or leave lines out"
            );
            return Err(self.wrong(&message));
        }
        Ok(true)
    }

    fn unreadable(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof if self.packed => {
                self.wrong("the gzip file is cut off here; copy or download it again")
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if self.packed => {
                self.wrong(&format!("the gzip file is damaged here ({error}); copy or download it again"))
            }
            _ => Error::io("read", &self.origin, error),
        }
    }

    /// An error about the present line.
    pub(super) fn wrong(&self, message: &str) -> Error {
        wrong(&self.origin, self.number, message)
    }
}

/// An error about a line.
pub(super) fn wrong(origin: &str, line: usize, message: &str) -> Error {
    Error::input_at(origin, format!("line {line}"), message)
}
