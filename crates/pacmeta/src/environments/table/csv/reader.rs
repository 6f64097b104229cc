//! A CSV file row by row, with the line of every row and errors that name line and column.

use ::csv::{Reader, ReaderBuilder, StringRecord};

use super::super::{FeatureNames, counted, did_you_mean, line_ends, listed, quoted, repeated, text};
use crate::error::{Error, Result};

/// A CSV file being read.
pub(crate) struct Table<'a> {
    pub(crate) origin: &'a str,
    bytes: &'a [u8],
    reader: Reader<&'a [u8]>,
    pub(crate) header: Vec<String>,
    pub(crate) header_line: usize,
    /// The fields of the row read last.
    pub(crate) fields: StringRecord,
    /// The line on which that row starts, counted from 1, and its place in the bytes.
    pub(crate) line: usize,
    offset: usize,
}

impl<'a> Table<'a> {
    /// Reads the header.
    pub(crate) fn open(origin: &'a str, bytes: &'a [u8]) -> Result<Self> {
        let bytes = text(origin, bytes)?.as_bytes();
        // Lengths are checked here rather than by the reader, whose messages do not know the file.
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        let mut table = Self {
            origin,
            bytes,
            reader,
            header: Vec::new(),
            header_line: 1,
            fields: StringRecord::new(),
            line: 1,
            offset: 0,
        };
        let blank = bytes.iter().all(u8::is_ascii_whitespace);
        if blank || !table.read()? {
            let message =
                "the file is empty; expected a line with the names of the columns, then one example a line";
            return Err(Error::input(origin, message));
        }
        table.header = table.fields.iter().map(|name| name.trim().to_string()).collect();
        table.header_line = table.line;
        let named = table.header.iter().map(String::as_str).filter(|name| !name.is_empty());
        if let Some(name) = repeated(named) {
            return Err(Error::input_at(
                origin,
                format!("line {}", table.line),
                format!("two columns are called {}; give each its own name", quoted(name)),
            ));
        }
        Ok(table)
    }

    /// Goes to the next row, which has as many fields as the header; false if there is none.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if !self.read()? {
            return Ok(false);
        }
        if self.fields.len() == self.header.len() {
            return Ok(true);
        }
        let hint = self.quote_hint();
        Err(Error::input_at(
            self.origin,
            format!("line {}", self.line),
            format!(
                "expected {} as in the header, found {}{hint}",
                counted(self.header.len(), "field"),
                self.fields.len()
            ),
        ))
    }

    fn read(&mut self) -> Result<bool> {
        let more = self.reader.read_record(&mut self.fields).map_err(|problem| {
            Error::input_at(self.origin, format!("line {} or after", self.line), problem.to_string())
        })?;
        if !more {
            return Ok(false);
        }
        // The reader's own line numbers point at blank lines skipped before the row, so lines are counted here.
        let mut start = self.fields.position().map_or(self.offset, |position| position.byte() as usize);
        while matches!(self.bytes.get(start), Some(b'\r' | b'\n')) {
            start += 1;
        }
        if let Some(passed) = self.bytes.get(self.offset..start) {
            self.line += line_ends(passed, self.bytes.get(start).copied());
            self.offset = start;
        }
        Ok(true)
    }

    /// The index of a column.
    pub(crate) fn column(&self, name: &str, remedy: &str) -> Result<usize> {
        if let Some(column) = self.header.iter().position(|found| found == name.trim() && !found.is_empty()) {
            return Ok(column);
        }
        let names = || self.header.iter().map(String::as_str);
        let suggestion = did_you_mean(name, names().filter(|name| !name.contains([';', '\t'])));
        let hint = match self.header.as_slice() {
            [only] if only.contains([';', '\t']) => "; separate the columns by commas",
            all if all.iter().all(|name| name.parse::<f64>().is_ok()) => {
                "; the first line must name the columns"
            }
            _ => "",
        };
        Err(Error::input_at(
            self.origin,
            format!("line {}", self.header_line),
            format!(
                "there is no column {}{suggestion}: {remedy}; the columns are {}{hint}",
                quoted(name),
                listed(names())
            ),
        ))
    }

    /// The column of this name, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|found| found == name)
    }

    /// The columns of features: by their names, or those left beside `others` where the features are in order.
    pub(crate) fn features(&self, wanted: &FeatureNames, others: &[Option<usize>]) -> Result<Vec<usize>> {
        let left: Vec<usize> = (0..self.header.len()).filter(|&c| !others.contains(&Some(c))).collect();
        let names = || left.iter().map(|&column| self.header[column].as_str());
        // A line of numbers is no header, and one long name has other separators: told below.
        let is_name =
            |name: &str| !name.is_empty() && name.parse::<f64>().is_err() && !name.contains([';', '\t']);
        if !wanted.are_in_order(self.header.iter()) || !names().all(is_name) {
            let remedy = wanted.remedy();
            return wanted.names().iter().map(|name| self.column(name, remedy)).collect();
        }
        if left.len() == wanted.names().len() {
            return Ok(left);
        }
        let expected = listed(wanted.names().iter().map(String::as_str));
        let found = if left.is_empty() { "none".to_owned() } else { listed(names()) };
        Err(Error::input_at(
            self.origin,
            format!("line {}", self.header_line),
            format!(
                "the prior has {}, the columns left beside task, target and `adapt` are {found}; leave exactly as many, or name \
                 those to use {expected}",
                counted(wanted.names().len(), "feature")
            ),
        ))
    }

    /// The finite number in a field of the row.
    pub(crate) fn number(&self, column: usize, remedy: &str) -> Result<f64> {
        let field = self.fields[column].trim();
        if field.is_empty() {
            let message = "the value is missing; fill it in or remove the row";
            return Err(self.wrong(column, message));
        }
        let hint = match field.parse::<f64>() {
            Ok(value) if value.is_finite() => return Ok(value),
            Ok(_) => "; remove the row or replace the value",
            Err(_) if field.contains('\n') => self.quote_hint(),
            Err(_) if field.replacen(',', ".", 1).parse::<f64>().is_ok() => {
                "; write the decimal comma as a point"
            }
            Err(_) => remedy,
        };
        Err(self.wrong(column, &format!("expected a finite number, found {}{hint}", quoted(field))))
    }

    /// A quotation mark left open swallows lines up to the next one.
    fn quote_hint(&self) -> &'static str {
        if self.fields.iter().any(|field| field.contains('\n')) {
            "; a field goes over several lines: is a quotation mark left open?"
        } else {
            ""
        }
    }

    /// An error about a field of the row.
    pub(crate) fn wrong(&self, column: usize, message: &str) -> Error {
        let column = match self.header.get(column) {
            Some(name) if !name.is_empty() => quoted(name),
            _ => (column + 1).to_string(),
        };
        Error::input_at(self.origin, format!("line {}, column {column}", self.line), message)
    }

    pub(crate) fn no_rows(&self) -> Error {
        Error::input(self.origin, "there is no row after the header; expected one example a line")
    }
}
