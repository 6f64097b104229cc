//! One JSON object: a sentence or two, and what is known about them.

use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::lines::wrong;
use super::{Part, Sentences};
use crate::environments::table::{did_you_mean, listed, quoted};
use crate::error::{Error, Result};

/// An object as it is written: fields that matter, null being the same as absent. Others are passed over.
#[derive(Deserialize)]
struct Fields {
    sentence1: Option<Value>,
    sentence2: Option<Value>,
    label: Option<Value>,
    split: Option<Value>,
    k: Option<Value>,
    draw: Option<Value>,
    eval_source: Option<Value>,
}

/// An object that holds what it should.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) sentences: Sentences,
    pub(super) label: Option<String>,
    pub(super) part: Option<Part>,
    /// Shots of each class, and the number of the draw: LEOPARD's.
    pub(super) draw: Option<(usize, usize)>,
    pub(super) eval_source: Option<String>,
}

/// What a line is about, for its errors.
pub(super) struct Place<'a> {
    pub(super) origin: &'a str,
    pub(super) line: usize,
}

impl Place<'_> {
    pub(super) fn wrong(&self, message: &str) -> Error {
        wrong(self.origin, self.line, message)
    }

    /// An error that follows from what fields there are.
    fn missing(&self, field: &str, text: &str, advice: &str) -> Error {
        let found: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        let names = || found.keys().map(String::as_str).filter(|name| *name != field);
        let has = match found.is_empty() {
            true => "the object is empty".to_owned(),
            false => format!("the fields are {}", listed(found.keys().map(String::as_str))),
        };
        let hint = if found.contains_key(field) { String::new() } else { did_you_mean(field, names()) };
        let what = if found.contains_key(field) { "null" } else { "missing" };
        self.wrong(&format!("`{field}` is {what}{hint}; {has}: {advice}"))
    }
}

impl Record {
    /// Reads a line.
    pub(super) fn parse(origin: &str, line: usize, text: &str) -> Result<Self> {
        let place = Place { origin, line };
        if !text.starts_with('{') {
            let problem = serde_json::from_str::<serde::de::IgnoredAny>(text).err();
            let message = match problem {
                Some(_) if text.starts_with('[') => {
                    "a list begins here; expected one JSON object a line (JSON lines), not a list over several lines"
                        .to_owned()
                }
                Some(problem) => not_json(&problem),
                None => format!("expected an object such as {EXAMPLE}, found {}", quoted(text)),
            };
            return Err(place.wrong(&message));
        }
        let fields: Fields =
            serde_json::from_str(text).map_err(|problem| place.wrong(&not_json(&problem)))?;
        let Some(first) = fields.sentence1 else {
            return Err(place.missing("sentence1", text, &advice_on_sentence(text)));
        };
        let first = sentence(&place, "sentence1", first)?;
        let second = fields.sentence2.map(|value| sentence(&place, "sentence2", value)).transpose()?;
        Ok(Self {
            line,
            sentences: Sentences { first, second },
            label: fields.label.map(|value| label(&place, value)).transpose()?,
            part: fields.split.map(|value| part(&place, &value)).transpose()?,
            draw: fields
                .k
                .zip(fields.draw)
                .map(|(k, draw)| Ok::<_, Error>((whole(&place, "k", &k)?, whole(&place, "draw", &draw)?)))
                .transpose()?,
            eval_source: fields.eval_source.and_then(|value| value.as_str().map(str::to_owned)),
        })
    }

    /// The label, which must be there.
    pub(super) fn label<'a>(&'a self, origin: &str, text: &str) -> Result<&'a str> {
        self.label.as_deref().ok_or_else(|| {
            let place = Place { origin, line: self.line };
            place.missing(
                "label",
                text,
                "every line of a task needs a label; remove the line, or use it as a query",
            )
        })
    }
}

/// What to do about a line without `sentence1`: one that has the sentence under another name wants that changed.
fn advice_on_sentence(text: &str) -> String {
    let found: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let is_other = |name: &str| !KNOWN.contains(&name);
    let others = found.iter().filter(|(name, value)| is_other(name) && value.is_string());
    // the longest text is the sentence, others are marks of some kind
    let longest = others.max_by_key(|(_, value)| value.as_str().map_or(0, str::len));
    match (found.contains_key("sentence1"), longest) {
        (false, Some((name, _))) => format!("rename the field {} to `sentence1`", quoted(name)),
        _ => "write a sentence, or remove the line".to_owned(),
    }
}

/// The fields that matter.
const KNOWN: [&str; 7] = ["sentence1", "sentence2", "label", "split", "k", "draw", "eval_source"];

/// An example of a line, for messages.
const EXAMPLE: &str = r#"{"sentence1": "It rained all day.", "label": "weather"}"#;

fn not_json(problem: &serde_json::Error) -> String {
    // The line that serde_json counts is that of the text it was given, always 1.
    let message = problem.to_string();
    let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
    if problem.is_data() {
        return format!("{reason}; expected an object such as {EXAMPLE}");
    }
    format!(
        "is not JSON: {reason} (column {}); expected an object a line such as {EXAMPLE}",
        problem.column()
    )
}

/// What a JSON value is, for people.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn sentence(place: &Place<'_>, name: &str, value: Value) -> Result<String> {
    let Value::String(text) = value else {
        return Err(place.wrong(&format!("`{name}` is {}; expected a text in quotation marks", kind(&value))));
    };
    if text.chars().all(is_invisible) {
        return Err(place.wrong(&format!("`{name}` is empty; write a sentence, or remove the line")));
    }
    Ok(text)
}

/// Whether nothing of a letter can be seen: white space, control characters, and marks of no width.
fn is_invisible(letter: char) -> bool {
    let without_width =
        ['\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{2060}', '\u{feff}'];
    letter.is_whitespace() || letter.is_control() || without_width.contains(&letter)
}

/// A label as text: a number that is whole is written without a fraction, so 1, 1.0 and "1" are one class.
fn label(place: &Place<'_>, value: Value) -> Result<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number_text(&number),
        other => {
            let message = format!("`label` is {}; expected a text, a number, true or false", kind(&other));
            return Err(place.wrong(&message));
        }
    };
    if text.is_empty() {
        return Err(place.wrong("`label` is empty; write a label, or remove the line"));
    }
    Ok(text)
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < 1e15 => {
            format!("{}", value as i64)
        }
        _ => number.to_string(),
    }
}

fn part(place: &Place<'_>, value: &Value) -> Result<Part> {
    let known = ["train", "dev", "val", "validation", "test", "eval"];
    match value.as_str().map(str::trim) {
        Some("train") => Ok(Part::Train),
        Some(word) if known.contains(&word) => Ok(Part::Dev),
        Some(word) => {
            let hint = did_you_mean(word, known);
            Err(place.wrong(&format!(
                "`split` is {}{hint}; expected train, or dev (also val, validation, test, eval)",
                quoted(word)
            )))
        }
        None => Err(place.wrong(&format!("`split` is {}; expected \"train\" or \"dev\"", kind(value)))),
    }
}

fn whole(place: &Place<'_>, name: &str, value: &Value) -> Result<usize> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| place.wrong(&format!("`{name}` is {value}; expected a whole number")))
}
