//! From a text and overrides to a table of keys.

use toml::{Table, Value};

use super::section::quoted_key;
use crate::error::{Error, Result};

/// Keys of which only one can be given: an override of one takes the place of the other.
const RIVALS: [[&str; 2]; 2] =
    [["method.beta", "method.beta_per_example"], ["method.alpha", "method.alpha_over_beta"]];

/// The text of a file; the byte order mark that some editors put in front is dropped.
pub(super) fn decode(origin: &str, bytes: &[u8]) -> Result<String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(problem) => {
            let before = bytes.get(..problem.valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            let message = "the text is not UTF-8; save the file as UTF-8";
            Err(Error::input_at(origin, format!("line {line}"), message))
        }
    }
}

/// The table that a text describes.
pub(super) fn parse(origin: &str, text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let message = format!("is not TOML: {}", error.message().trim_end().replace('\n', ", "));
        match error.span().and_then(|span| text.get(..span.start)) {
            Some(before) => {
                let line = 1 + before.matches('\n').count();
                let column = 1 + before.rsplit('\n').next().map_or(0, |start| start.chars().count());
                Error::input_at(origin, format!("line {line}, column {column}"), message)
            }
            None => Error::input(origin, message),
        }
    })
}

/// Sets dotted keys over those of the file.
pub(super) fn set(table: &mut Table, overrides: &[(String, String)]) -> Result<()> {
    for (key, _) in overrides {
        for rival in RIVALS.iter().filter(|pair| pair.contains(&key.as_str())).flatten() {
            remove(table, rival);
        }
    }
    for (key, text) in overrides {
        insert(table, key.trim(), value(text))?;
    }
    Ok(())
}

/// A TOML value, or else the text itself, so that nobody has to quote for a shell and for TOML.
fn value(text: &str) -> Value {
    text.trim().parse().unwrap_or_else(|_| Value::String(text.trim().to_owned()))
}

fn remove(table: &mut Table, key: &str) {
    if let Some((section, name)) = key.split_once('.')
        && let Some(Value::Table(section)) = table.get_mut(section)
    {
        section.remove(name);
    }
}

fn insert(table: &mut Table, key: &str, value: Value) -> Result<()> {
    let malformed = |message: &str| Error::config(quoted_key(key), message);
    match key.split('.').collect::<Vec<_>>()[..] {
        [""] => Err(Error::config("--set", "expected a key before the equals sign, e.g. method.beta=100")),
        [name] => {
            table.insert(name.to_owned(), value);
            Ok(())
        }
        ["", _] | [_, ""] => Err(malformed("expected a section, a point and a key, e.g. method.beta")),
        [section, name] => {
            match table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
                Value::Table(section) => section.insert(name.to_owned(), value),
                _ => return Err(malformed("the file has a value in place of this section")),
            };
            Ok(())
        }
        _ => Err(malformed("expected one point, between section and key, e.g. method.beta")),
    }
}

/// The line of a dotted key, where it is written in one of the usual ways; from 1.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut section = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim().to_owned();
            if section == key {
                return Some(index + 1);
            }
            continue;
        }
        let Some((name, _)) = line.split_once('=') else { continue };
        let name = name.trim();
        let dotted = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        if dotted == key {
            return Some(index + 1);
        }
    }
    None
}
