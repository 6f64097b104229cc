//! A JSON file as a tree, walked with errors that name the path to a value.

use serde_json::{Map, Value};

use super::super::strict::Strict;
use super::super::{FeatureNames, counted, did_you_mean, listed, quoted, repeated, text};
use crate::error::{Error, Result};
use crate::task::Task;

/// What a value is, for messages.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("a string ({})", quoted(text)),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// The word at a place of the text, if it is one by which some programs write what is no finite number.
fn not_finite(text: &str, line: usize, column: usize) -> Option<String> {
    let line = text.split('\n').nth(line.checked_sub(1)?)?.as_bytes();
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
    let at = column.saturating_sub(1).min(line.len());
    let at = at + usize::from(line.get(at) == Some(&b'-'));
    let start = at - line[..at].iter().rev().take_while(|byte| is_letter(byte)).count();
    let end = at + line[at..].iter().take_while(|byte| is_letter(byte)).count();
    let word = String::from_utf8_lossy(&line[start..end]).into_owned();
    let sign = if start > 0 && line[start - 1] == b'-' { "-" } else { "" };
    let known = ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known));
    known.then(|| format!("{sign}{word}"))
}

/// The name of a key below a path.
fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// A JSON file being walked.
pub(super) struct File<'a> {
    pub(super) origin: &'a str,
}

impl File<'_> {
    pub(super) fn wrong(&self, path: &str, message: impl Into<String>) -> Error {
        if path.is_empty() {
            Error::input(self.origin, message)
        } else {
            Error::input_at(self.origin, path, message)
        }
    }

    pub(super) fn parse(&self, bytes: &[u8]) -> Result<Value> {
        let text = text(self.origin, bytes)?;
        if text.trim().is_empty() {
            return Err(Error::input(
                self.origin,
                "the file is empty; expected an object with the key `tasks` or `x`",
            ));
        }
        serde_json::from_str(text).map(|Strict(value)| value).map_err(|problem| {
            let place = format!("line {}, column {}", problem.line(), problem.column());
            let full = problem.to_string();
            let what = full.rsplit_once(" at line ").map_or(full.as_str(), |(what, _)| what);
            let message = match what {
                "recursion limit exceeded" => {
                    "lists or objects are nested too deep; expected at most four levels".into()
                }
                "number out of range" => {
                    "expected a finite number, found one that is too large for 64 bits".into()
                }
                "trailing characters" => {
                    "expected nothing after the end of the JSON value; remove the rest".into()
                }
                _ if problem.is_data() => what.to_string(),
                _ if problem.is_eof() => format!("the file ends too early ({what}); is it cut off?"),
                _ => match not_finite(text, problem.line(), problem.column()) {
                    Some(word) => format!(
                        "expected a finite number, found {word}, which JSON does not have; remove the example or replace the value"
                    ),
                    None => format!("this is not JSON: {what}"),
                },
            };
            Error::input_at(self.origin, place, message)
        })
    }

    pub(super) fn object<'v>(
        &self,
        value: &'v Value,
        path: &str,
        keys: &[&str],
    ) -> Result<&'v Map<String, Value>> {
        let Value::Object(map) = value else {
            let message = format!(
                "expected an object with the keys {}, found {}",
                listed(keys.iter().copied()),
                kind(value)
            );
            return Err(self.wrong(path, message));
        };
        match map.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(map),
            Some(key) => Err(self.wrong(
                path,
                format!(
                    "unknown key {}{}; expected {}",
                    quoted(key),
                    did_you_mean(key, keys.iter().copied()),
                    listed(keys.iter().copied())
                ),
            )),
        }
    }

    pub(super) fn required<'v>(
        &self,
        map: &'v Map<String, Value>,
        path: &str,
        key: &str,
    ) -> Result<&'v Value> {
        map.get(key).ok_or_else(|| {
            let found = if map.is_empty() { "none".into() } else { listed(map.keys().map(String::as_str)) };
            self.wrong(path, format!("the key `{key}` is missing; the keys found are {found}"))
        })
    }

    pub(super) fn list<'v>(&self, value: &'v Value, path: &str) -> Result<&'v Vec<Value>> {
        let Value::Array(list) = value else {
            return Err(self.wrong(path, format!("expected a list, found {}", kind(value))));
        };
        Ok(list)
    }

    fn number(&self, value: &Value, path: impl Fn() -> String) -> Result<f64> {
        match value.as_f64() {
            Some(number) if number.is_finite() => Ok(number),
            _ => Err(self.wrong(&path(), format!("expected a finite number, found {}", kind(value)))),
        }
    }

    /// A text without the spaces around it, which must not be all there is.
    fn name(&self, value: &Value, path: &str) -> Result<String> {
        match value.as_str().map(str::trim) {
            Some(name) if !name.is_empty() => Ok(name.to_string()),
            _ => Err(self.wrong(path, format!("expected a name, found {}", kind(value)))),
        }
    }

    /// Inputs: the number of features, and the numbers in row-major order.
    pub(super) fn rows(&self, value: &Value, path: &str) -> Result<(usize, Vec<f64>)> {
        let list = self.list(value, path)?;
        let dimension = match list.first() {
            None => return Err(self.wrong(path, "expected at least one example, found an empty list")),
            Some(Value::Array(first)) if first.is_empty() => {
                return Err(
                    self.wrong(&format!("{path}[0]"), "expected at least one feature, found an empty list")
                );
            }
            Some(Value::Array(first)) => first.len(),
            Some(_) => {
                let numbers =
                    list.iter().enumerate().map(|(i, value)| self.number(value, || format!("{path}[{i}]")));
                return Ok((1, numbers.collect::<Result<_>>()?));
            }
        };
        let mut numbers = Vec::with_capacity(list.len());
        for (i, row) in list.iter().enumerate() {
            let row_path = || format!("{path}[{i}]");
            let Value::Array(row) = row else {
                let message = format!(
                    "expected a list of {} as in {path}[0], found {}",
                    counted(dimension, "number"),
                    kind(row)
                );
                return Err(self.wrong(&row_path(), message));
            };
            if row.len() != dimension {
                let message =
                    format!("expected {} as in {path}[0], found {}", counted(dimension, "number"), row.len());
                return Err(self.wrong(&row_path(), message));
            }
            for (j, value) in row.iter().enumerate() {
                numbers.push(self.number(value, || format!("{path}[{i}][{j}]"))?);
            }
        }
        Ok((dimension, numbers))
    }

    pub(super) fn task(&self, value: &Value, path: &str, default_name: &str, keys: &[&str]) -> Result<Task> {
        let map = self.object(value, path, keys)?;
        let name = match map.get("name") {
            None => default_name.to_string(),
            Some(name) => self.name(name, &below(path, "name"))?,
        };
        let (dimension, inputs) = self.rows(self.required(map, path, "x")?, &below(path, "x"))?;
        let y_path = below(path, "y");
        let y = self.list(self.required(map, path, "y")?, &y_path)?;
        let rows = inputs.len() / dimension;
        if y.len() != rows {
            let message =
                format!("expected {}, one for each example of x, found {}", counted(rows, "number"), y.len());
            return Err(self.wrong(&y_path, message));
        }
        let targets = y.iter().enumerate().map(|(i, value)| self.number(value, || format!("{y_path}[{i}]")));
        let task = Task::new(name, dimension, inputs, targets.collect::<Result<_>>()?)?;
        match map.get("adapt") {
            None => Ok(task),
            Some(adapt) => task.with_adapt(self.adapt(adapt, &below(path, "adapt"), rows)?),
        }
    }

    fn adapt(&self, value: &Value, path: &str, rows: usize) -> Result<Vec<usize>> {
        let list = self.list(value, path)?;
        if list.is_empty() {
            return Err(
                self.wrong(path, "expected at least one index, found an empty list; or leave `adapt` out")
            );
        }
        let mut seen = vec![false; rows];
        let mut indices = Vec::with_capacity(list.len());
        for (i, value) in list.iter().enumerate() {
            let index = value.as_u64().and_then(|index| usize::try_from(index).ok());
            let Some((index, place)) = index.and_then(|index| Some((index, seen.get_mut(index)?))) else {
                let message = format!("expected an index from 0 to {}, found {}", rows - 1, kind(value));
                return Err(self.wrong(&format!("{path}[{i}]"), message));
            };
            if std::mem::replace(place, true) {
                return Err(
                    self.wrong(&format!("{path}[{i}]"), format!("index {index} occurs twice; remove one"))
                );
            }
            indices.push(index);
        }
        Ok(indices)
    }

    /// The names of the features that the file states.
    pub(super) fn features(
        &self,
        root: &Map<String, Value>,
        dimension: usize,
    ) -> Result<Option<Vec<String>>> {
        let Some(value) = root.get("features") else {
            return Ok(None);
        };
        let list = self.list(value, "features")?;
        if list.len() != dimension {
            let message = format!(
                "expected {}, one for each feature of x, found {}",
                counted(dimension, "name"),
                list.len()
            );
            return Err(self.wrong("features", message));
        }
        let names = list.iter().enumerate().map(|(i, value)| self.name(value, &format!("features[{i}]")));
        let names: Vec<String> = names.collect::<Result<_>>()?;
        match repeated(names.iter().map(String::as_str)) {
            None => Ok(Some(names)),
            Some(name) => Err(self.wrong(
                "features",
                format!("two features are called {}; give each its own name", quoted(name)),
            )),
        }
    }

    /// Where the wanted features stand among the names.
    pub(super) fn select(&self, names: &[String], wanted: &[String], remedy: &str) -> Result<Vec<usize>> {
        let position = |name: &String| {
            names.iter().position(|found| found == name.trim()).ok_or_else(|| {
                let known = || names.iter().map(String::as_str);
                self.wrong(
                    "features",
                    format!(
                        "there is no feature {}{}: {remedy}; the features are {}",
                        quoted(name),
                        did_you_mean(name, known()),
                        listed(known())
                    ),
                )
            })
        };
        wanted.iter().map(position).collect()
    }

    /// Where the wanted features stand: by name where the file states names, else all of them in order.
    pub(super) fn columns_of(
        &self,
        root: &Map<String, Value>,
        dimension: usize,
        wanted: &FeatureNames,
    ) -> Result<Vec<usize>> {
        let feature_names = wanted.names();
        let names = self.features(root, dimension)?;
        let in_order = names.as_ref().is_none_or(|names| wanted.are_in_order(names.iter()));
        if let Some(names) = names.filter(|_| !in_order) {
            return self.select(&names, feature_names, wanted.remedy());
        }
        if dimension == feature_names.len() {
            return Ok((0..dimension).collect());
        }
        Err(self.wrong(
            "x",
            format!(
                "expected {} as the prior has ({}), found {dimension}",
                counted(feature_names.len(), "feature"),
                listed(feature_names.iter().map(String::as_str))
            ),
        ))
    }
}
