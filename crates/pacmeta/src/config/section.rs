//! Reading one section of a configuration: every getter knows the dotted key, the type and the range it expects.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::environments::table::{did_you_mean, quoted};
use crate::error::{Error, Result};

/// A key with its resolved value, as written by `to_toml`.
pub(super) type Entry = (&'static str, Value);

/// The longest list that a key may hold.
const LONGEST_LIST: usize = 4096;

/// The range of a real number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    Finite,
    Positive,
    NonNegative,
    /// Strictly between 0 and 1.
    Probability,
}

impl Domain {
    fn contains(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Finite => true,
                Self::Positive => value > 0.0,
                Self::NonNegative => value >= 0.0,
                Self::Probability => value > 0.0 && value < 1.0,
            }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Finite => "a finite number",
            Self::Positive => "a number above 0",
            Self::NonNegative => "a number of at least 0",
            Self::Probability => "a number above 0 and below 1",
        }
    }
}

/// What to say to a name that is none of those there are.
pub(super) fn none_called(name: &str, names: &[&str]) -> String {
    let suggestion = did_you_mean(name, names.iter().copied());
    format!("there is none called {}{suggestion}; expected one of {}", quoted(name), listed(names))
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// One `[section]` of the file, or the keys above all sections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    name: &'static str,
    keys: &'a [&'static str],
    table: Option<&'a Table>,
}

/// The table of a section, if there is one; `key` is one of its keys.
pub(super) fn table_of<'a>(root: &'a Table, name: &str, key: Option<&str>) -> Result<Option<&'a Table>> {
    match root.get(name) {
        None => Ok(None),
        Some(Value::Table(table)) => Ok(Some(table)),
        Some(other) => {
            let hint = format!("expected a section [{name}], found {}", described(other));
            let example = key.map(|key| format!("; one of its keys is `{name}.{key}`"));
            Err(Error::config(name, hint + &example.unwrap_or_default()))
        }
    }
}

impl<'a> Section<'a> {
    /// The keys above all sections.
    pub(super) fn root(table: &'a Table, keys: &'a [&'static str]) -> Result<Self> {
        Self { name: "", keys, table: Some(table) }.checked()
    }

    /// The section of this name, empty if the file has none.
    pub(super) fn open(root: &'a Table, name: &'static str, keys: &'a [&'static str]) -> Result<Self> {
        Self { name, keys, table: table_of(root, name, keys.first().copied())? }.checked()
    }

    /// Refuses keys that do not exist.
    fn checked(self) -> Result<Self> {
        let Some(unknown) =
            self.table.into_iter().flat_map(Table::keys).find(|key| !self.keys.contains(&key.as_str()))
        else {
            return Ok(self);
        };
        let suggestion = did_you_mean(unknown, self.keys.iter().copied());
        let place = match self.name {
            "" => "at the top level, where the keys and sections are".to_owned(),
            name => format!("in section [{name}], where the keys are"),
        };
        let message = format!("there is no such key{suggestion} {place} {}", self.keys.join(", "));
        Err(self.error(&quoted_key(unknown), message))
    }

    /// The dotted key.
    fn dotted(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// An error about a key of this section.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> Error {
        Error::config(self.dotted(key), message)
    }

    fn mismatch(&self, key: &str, expected: &str, found: &Value) -> Error {
        self.error(key, format!("expected {expected}, found {}", described(found)))
    }

    /// A number from 0, below 1.
    pub(super) fn part(&self, key: &'static str) -> Result<Option<f64>> {
        match self.number(key, Domain::NonNegative)? {
            Some(part) if part >= 1.0 => {
                Err(self.error(key, format!("expected a number from 0 and below 1, found {part}")))
            }
            part => Ok(part),
        }
    }

    /// Whether a key is one of this section.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }

    /// The value as the file has it.
    pub(super) fn value(&self, key: &'static str) -> Option<&'a Value> {
        debug_assert!(self.keys.contains(&key), "{key} is not listed among the keys of [{}]", self.name);
        self.table.and_then(|table| table.get(key))
    }

    /// The first of these keys that the file has.
    pub(super) fn first_of(&self, keys: &[&'static str]) -> Option<&'static str> {
        keys.iter().copied().find(|key| self.value(key).is_some())
    }

    /// Refuses a key, saying why, if the file has it.
    pub(super) fn refuse(&self, keys: &[&'static str], why: &str) -> Result<()> {
        self.first_of(keys).map_or(Ok(()), |key| Err(self.error(key, why)))
    }

    /// A real number; whole numbers are real numbers too.
    pub(super) fn number(&self, key: &'static str, domain: Domain) -> Result<Option<f64>> {
        self.value(key).map(|value| self.number_in(key, value, domain)).transpose()
    }

    fn number_in(&self, key: &str, value: &Value, domain: Domain) -> Result<f64> {
        match value {
            Value::Float(number) if domain.contains(*number) => Ok(*number),
            Value::Integer(number) if domain.contains(*number as f64) => Ok(*number as f64),
            other => Err(self.mismatch(key, domain.words(), other)),
        }
    }

    /// A number in this domain, or the word `auto`.
    pub(super) fn number_or_auto(&self, key: &'static str) -> Result<Option<Option<f64>>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value {
            Value::String(word) if word == "auto" => Ok(Some(None)),
            Value::Float(_) | Value::Integer(_) => {
                self.number_in(key, value, Domain::Positive).map(|number| Some(Some(number)))
            }
            other => Err(self.mismatch(key, "\"auto\" or a number above 0", other)),
        }
    }

    /// A whole number in a range.
    pub(super) fn whole(&self, key: &'static str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
        self.value(key).map(|value| self.whole_in(key, value, &range)).transpose()
    }

    fn whole_in(&self, key: &str, value: &Value, range: &RangeInclusive<u64>) -> Result<u64> {
        if let Value::Integer(number) = value
            && let Ok(number) = u64::try_from(*number)
            && range.contains(&number)
        {
            return Ok(number);
        }
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        Err(self.mismatch(key, &expected, value))
    }

    /// A number of things in a range.
    pub(super) fn count(&self, key: &'static str, range: RangeInclusive<usize>) -> Result<Option<usize>> {
        let range = *range.start() as u64..=*range.end() as u64;
        Ok(self.whole(key, range)?.map(|number| number as usize))
    }

    /// A count or a fraction, as the file has it: the caller knows their ranges.
    pub(super) fn count_or_fraction(
        &self,
        key: &'static str,
        least: usize,
        most: usize,
    ) -> Result<Option<CountOrFraction>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let expected = format!("a whole number from {least} to {most}, or a fraction above 0 and below 1");
        match value {
            Value::Integer(number) => match usize::try_from(*number) {
                Ok(count) if (least..=most).contains(&count) => Ok(Some(CountOrFraction::Count(count))),
                _ => Err(self.mismatch(key, &expected, value)),
            },
            Value::Float(0.0) if least == 0 => Ok(Some(CountOrFraction::Count(0))),
            Value::Float(number) if Domain::Probability.contains(*number) => {
                Ok(Some(CountOrFraction::Fraction(*number)))
            }
            other => Err(self.mismatch(key, &expected, other)),
        }
    }

    /// true or false.
    pub(super) fn flag(&self, key: &'static str) -> Result<Option<bool>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.mismatch(key, "true or false", value))
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>> {
        self.value(key).map(|value| self.text_in(key, value)).transpose()
    }

    fn text_in(&self, key: &str, value: &Value) -> Result<String> {
        match value {
            Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
            other => Err(self.mismatch(key, "a text in quotes that is not empty", other)),
        }
    }

    /// One of a few names.
    pub(super) fn choice<T: DeserializeOwned>(
        &self,
        key: &'static str,
        names: &[&'static str],
    ) -> Result<Option<T>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let Value::String(name) = value else {
            return Err(self.mismatch(key, &format!("one of {}", listed(names)), value));
        };
        if let (true, Ok(chosen)) = (names.contains(&name.as_str()), value.clone().try_into()) {
            return Ok(Some(chosen));
        }
        Err(self.error(key, none_called(name, names)))
    }

    fn list<T>(
        &self,
        key: &'static str,
        of: &str,
        element: impl Fn(&Value) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let expected = format!("a list of 1 to {LONGEST_LIST} {of}");
        match value {
            Value::Array(list) if (1..=LONGEST_LIST).contains(&list.len()) => {
                list.iter().map(element).collect::<Result<_>>().map(Some)
            }
            other => Err(self.mismatch(key, &expected, other)),
        }
    }

    /// A list of real numbers, not empty.
    pub(super) fn numbers(&self, key: &'static str, domain: Domain) -> Result<Option<Vec<f64>>> {
        self.list(key, "numbers", |value| self.number_in(key, value, domain))
    }

    /// A list of whole numbers, not empty.
    pub(super) fn counts(&self, key: &'static str, range: RangeInclusive<u64>) -> Result<Option<Vec<usize>>> {
        self.list(key, "whole numbers", |value| {
            self.whole_in(key, value, &range).map(|number| number as usize)
        })
    }

    /// A list of texts, not empty.
    pub(super) fn texts(&self, key: &'static str) -> Result<Option<Vec<String>>> {
        self.list(key, "texts", |value| self.text_in(key, value))
    }
}

/// A whole number is a count, a number with a decimal point a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CountOrFraction {
    Count(usize),
    Fraction(f64),
}

/// A value in words: its type, and what it is if that is short.
fn described(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Integer(number) => format!("the whole number {number}"),
        Value::Float(number) => format!("the number {number:?}"),
        Value::Boolean(flag) => format!("the flag {flag}"),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Table(_) => "a section".to_owned(),
    }
}

/// A key for messages: short, and with control characters made visible.
pub(super) fn quoted_key(key: &str) -> String {
    quoted(key).trim_matches('`').to_owned()
}

/// A resolved count; every accepted count fits, because files hold no larger ones.
pub(super) fn integer(count: usize) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The name of a choice.
pub(super) fn name_of(choice: &impl serde::Serialize) -> Value {
    Value::try_from(choice).unwrap_or_else(|_| Value::String(String::new()))
}

/// A list of numbers.
pub(super) fn numbers(list: &[f64]) -> Value {
    Value::Array(list.iter().copied().map(Value::Float).collect())
}
