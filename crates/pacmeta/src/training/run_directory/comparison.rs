//! Whether two resolved configurations describe the same run.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::path::Path;

use crate::error::{Error, Result};

const ITERATIONS: &str = "training.iterations";
/// Keys of which a trained prior does not depend: where decoded pictures are kept, how often training writes and is looked at, and how
/// the result is scored.
const FREE: [&str; 6] = [
    "data.cache",
    "training.log_every",
    "training.checkpoint_every",
    "training.validate_every",
    "evaluation.tasks",
    "evaluation.normalisation",
];
/// Keys that a run that diverged may go on with other values of: how far a step goes.
const STEP: [&str; 2] = ["training.rate", "training.clip"];
/// How many differing keys a message names.
const NAMED: usize = 3;

/// A configuration as dotted keys with their values in TOML notation.
#[derive(Debug)]
pub(super) struct Settings {
    /// The value of `training.iterations`, which is not among the keys.
    pub(super) iterations: u64,
    keys: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn parse(origin: impl Display, text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            Error::input(&origin, format!("is not TOML: {}", error.message()))
        })?;
        let mut keys = BTreeMap::new();
        flatten("", &table, &mut keys);
        keys.retain(|key, _| !FREE.contains(&key.as_str()));
        let iterations = keys.remove(ITERATIONS).and_then(|value| value.parse().ok());
        let iterations = iterations.ok_or_else(|| {
            Error::input_at(&origin, format!("key `{ITERATIONS}`"), "expected a whole number of iterations")
        })?;
        Ok(Self { iterations, keys })
    }
}

/// A key of which a run goes on with another value, in TOML notation.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    pub(super) key: &'static str,
    pub(super) from: String,
    pub(super) to: String,
}

impl Settings {
    /// Takes the values of `wanted` for the keys that say how far a step goes; those that differed.
    pub(super) fn take_step_of(&mut self, wanted: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for key in STEP {
            if let (Some(from), Some(to)) = (self.keys.get_mut(key), wanted.keys.get(key))
                && from != to
            {
                changes.push(Change { key, from: std::mem::replace(from, to.clone()), to: to.clone() });
            }
        }
        changes
    }
}

fn flatten(prefix: &str, table: &toml::Table, keys: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, keys),
            value => {
                keys.insert(key, value.to_string());
            }
        }
    }
}

/// Refuses to continue the run `stored` with settings that would give another result.
pub(super) fn refuse_another_run(folder: &Path, stored: &Settings, wanted: &Settings) -> Result<()> {
    let mut names: Vec<_> = stored.keys.keys().chain(wanted.keys.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| stored.keys.get(*name) != wanted.keys.get(*name));
    if !names.is_empty() {
        let mut message = "the folder holds a run with other settings: ".to_owned();
        for (position, name) in names.iter().take(NAMED).enumerate() {
            let show = |settings: &Settings| {
                settings.keys.get(*name).map_or("absent".to_owned(), |value| shorten(value))
            };
            let separator = if position == 0 { "" } else { ", " };
            let _ =
                write!(message, "{separator}`{name}` is {} there and {} here", show(stored), show(wanted));
        }
        if names.len() > NAMED {
            let _ = write!(message, ", and {} more keys", names.len() - NAMED);
        }
        message.push_str("; choose another --out");
        return Err(Error::input(folder.display(), message));
    }
    if wanted.iterations < stored.iterations {
        return Err(Error::input(
            folder.display(),
            format!(
                "the folder holds a run of {} iterations, `{ITERATIONS}` is {} here; it can be raised, not lowered: choose \
                 another --out",
                stored.iterations, wanted.iterations
            ),
        ));
    }
    Ok(())
}

fn shorten(value: &str) -> String {
    const LONGEST: usize = 40;
    if value.chars().count() <= LONGEST {
        return value.to_owned();
    }
    value.chars().take(LONGEST - 3).chain("...".chars()).collect()
}
