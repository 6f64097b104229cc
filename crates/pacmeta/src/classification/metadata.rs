//! What a checkpoint says of its network, in its metadata.

use pacmeta_tensor::Parameters;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result, json_in_words};
use crate::training::checkpoint::{Checkpoint, NamedTensor, Precision};

/// Keys that every checkpoint has.
const COMMON: [&str; 3] = ["format", "written_by", "prior"];

/// The kind of network that a checkpoint says it holds.
pub(crate) fn kind_of(checkpoint: &Checkpoint) -> Option<&str> {
    checkpoint.metadata.as_ref()?.get("prior")?.get("kind")?.as_str()
}

/// The metadata of a checkpoint while it is interpreted.
pub(crate) struct Metadata<'a> {
    origin: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Metadata<'a> {
    /// # Errors
    /// When there are none.
    pub(crate) fn of(origin: &'a str, checkpoint: &'a Checkpoint) -> Result<Self> {
        match &checkpoint.metadata {
            Some(Value::Object(map)) => Ok(Self { origin, map }),
            _ => Err(Error::input(origin, "says nothing about its network (metadata key `pacmeta`)")),
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// # Errors
    /// When a key is missing or not what it should be.
    pub(crate) fn part<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let value = self.map.get(key).cloned().unwrap_or_default();
        serde_json::from_value(value).map_err(|error| self.error(key, json_in_words(&error)))
    }

    pub(crate) fn error(&self, key: &str, message: String) -> Error {
        Error::input_at(self.origin, format!("metadata `pacmeta`, key `{key}`"), message)
    }

    /// All but the keys that were interpreted.
    pub(crate) fn notes(&self, interpreted: &[&str]) -> Map<String, Value> {
        let known = |key: &str| COMMON.contains(&key) || interpreted.contains(&key);
        let others = self.map.iter().filter(|(key, _)| !known(key));
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// A network as a checkpoint. Parameters are stored in the precision in which they are used.
pub(crate) fn checkpoint(
    parameters: &Parameters<f64>,
    kind: &str,
    mut prior: Value,
    notes: &Map<String, Value>,
    parts: impl IntoIterator<Item = (&'static str, Value)>,
) -> Checkpoint {
    let mut metadata = notes.clone();
    prior["kind"] = json!(kind);
    metadata.insert("prior".into(), prior);
    metadata.extend(parts.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Checkpoint {
        tensors: NamedTensor::of_parameters(parameters),
        precision: Precision::F32,
        metadata: Some(Value::Object(metadata)),
    }
}
