//! Parts of the metadata, with errors that name the key and say what it should hold.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::environments::table::quoted;
use crate::error::{Error, Result, json_in_words};

/// What a key holds.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    Whole,
    Numbers,
    Text,
    Texts,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        let all = |fits: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(fits));
        match self {
            Self::Number => value.is_number(),
            Self::Whole => value.is_u64(),
            Self::Numbers => all(Value::is_number),
            Self::Text => value.is_string(),
            Self::Texts => all(Value::is_string),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Whole => "a whole number from 0 on",
            Self::Numbers => "a list of numbers",
            Self::Text => "a text",
            Self::Texts => "a list of texts",
        }
    }
}

/// The keys of all parts. A reader of types alone knows what was expected, but not where.
const KEYS: [(&str, Kind); 16] = [
    ("standardisation.x_mean", Kind::Numbers),
    ("standardisation.x_std", Kind::Numbers),
    ("standardisation.y_mean", Kind::Number),
    ("standardisation.y_std", Kind::Number),
    ("learner.kind", Kind::Text),
    ("learner.temperature", Kind::Number),
    ("learner.examples", Kind::Number),
    ("learner.noise_variance", Kind::Number),
    ("learner.beta_sigma_squared", Kind::Number),
    ("learner.inner.steps", Kind::Whole),
    ("learner.inner.rate", Kind::Number),
    ("learner.optimiser.history", Kind::Whole),
    ("learner.optimiser.iterations", Kind::Whole),
    ("learner.optimiser.gradient_tolerance", Kind::Number),
    ("columns.features", Kind::Texts),
    ("columns.target", Kind::Text),
];

/// The place of a key, for messages.
pub(super) fn place(key: &str) -> String {
    format!("metadata `pacmeta`, key `{key}`")
}

/// A part of the metadata as a type.
///
/// # Errors
/// When it does not hold what it should.
pub(super) fn part<T: DeserializeOwned>(origin: &str, key: &str, value: &Value) -> Result<T> {
    for (path, kind) in KEYS {
        let Some(inside) = path.strip_prefix(key).filter(|inside| inside.starts_with('.')) else { continue };
        if let Some(found) = value.pointer(&inside.replace('.', "/")).filter(|found| !kind.fits(found)) {
            let message = format!("expected {}, found {}", kind.words(), quoted(&found.to_string()));
            return Err(Error::input_at(origin, place(path), message));
        }
    }
    serde_json::from_value(value.clone())
        .map_err(|error| Error::input_at(origin, place(key), json_in_words(&error)))
}
