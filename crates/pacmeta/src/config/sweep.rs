//! `[sweep]`: many settings of one configuration, for `pacmeta sweep`. A [`Config`] checks the spelling of the section's
//! keys and has no use for them, so that a file with a sweep can be trained like any other.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::any::is_of_classification;
use super::method::{self, MethodConfig};
use super::section::Section;
use super::{Config, prior, read_source, source, training};
use crate::error::{Error, Result};
use crate::training::optimiser::OptimiserKind;

pub(super) const KEYS: &[&str] = &["seeds", "folds", "metric", "grid"];
const MOST_SEEDS: u64 = 1000;
const MOST_FOLDS: usize = 1_000_000;

/// What settings are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepMetric {
    /// Root mean squared error: low is good.
    #[default]
    Rmse,
    /// Log-likelihood of a query point: high is good.
    LogLikelihood,
}

/// A sweep over settings.
///
/// | key of `[sweep]` | default | purpose | range |
/// |---|---|---|---|
/// | `seeds` | 1 | models of each setting: seeds 0, 1, ... in place of `seed`, which still draws or splits the tasks | 1 to 1000 |
/// | `folds` | 4, or as many as there are scored tasks | parts of the scored tasks; each is scored with what the others chose | 2 to the number of scored tasks |
/// | `metric` | `"rmse"` | what chooses | `"rmse"`, `"log_likelihood"` |
/// | `grid` | needed | a section: dotted keys of the configuration with lists of values | |
#[derive(Debug, Clone, PartialEq)]
pub struct SweepConfig {
    /// Models of each setting.
    pub seeds: u64,
    /// Parts of the scored tasks, where the file says.
    pub folds: Option<usize>,
    /// What chooses.
    pub metric: SweepMetric,
    /// Keys and lists of values.
    pub grid: Table,
}

/// Refuses misspelt keys of a section that is otherwise not looked at.
pub(super) fn check(table: &Table) -> Result<()> {
    Section::open(table, "sweep", KEYS).map(|_| ())
}

/// A configuration file with a sweep: its keys before they are checked together, since what is right for one point of
/// the grid may be without effect at another.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepFile {
    /// The sweep.
    pub sweep: SweepConfig,
    /// The rest of the file, overrides included.
    table: Table,
}

/// A point of a grid as a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedPoint {
    /// The configuration.
    pub config: Config,
    /// Dotted keys that were given and have no effect here.
    pub dropped: BTreeSet<String>,
}

impl SweepFile {
    /// Reads a file, see [`Config::read`].
    ///
    /// # Errors
    /// When the file cannot be read, is not TOML, or has no proper `[sweep]`.
    pub fn read(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        Self::parse(&origin, &read_source(path)?, overrides)
    }

    /// Reads a text, see [`Config::parse`].
    ///
    /// # Errors
    /// When it is not TOML, or has no proper `[sweep]`.
    pub fn parse(origin: &str, text: &str, overrides: &[(String, String)]) -> Result<Self> {
        let mut table = source::parse(origin, text)?;
        source::set(&mut table, overrides)?;
        if is_of_classification(&table) {
            let message = "a sweep is for regression, on tables or on drawn tasks; for pictures and texts give every \
                           setting a job and a folder of its own: `pacmeta train CONFIG.toml --set KEY=VALUE --out DIR`";
            return Err(Error::config("data.environment", message));
        }
        let section = Section::open(&table, "sweep", KEYS)?;
        let grid = match section.value("grid") {
            Some(Value::Table(grid)) if !grid.is_empty() => grid.clone(),
            Some(Value::Table(_)) | None => {
                return Err(Error::input(
                    origin,
                    "says nothing to sweep over; add lists of values, for example\n\n  [sweep.grid]\n  \
                     \"method.name\" = [\"pacoh\", \"pacmaml\"]\n  \"method.beta_per_example\" = [10, 30, 100]\n",
                ));
            }
            Some(other) => {
                let message = format!("expected a section [sweep.grid] of keys and lists, found {other}");
                return Err(section.error("grid", message));
            }
        };
        let sweep = SweepConfig {
            seeds: section.whole("seeds", 1..=MOST_SEEDS)?.unwrap_or(1),
            folds: section.count("folds", 2..=MOST_FOLDS)?,
            metric: section.choice("metric", &["rmse", "log_likelihood"])?.unwrap_or_default(),
            grid,
        };
        table.remove("sweep");
        Ok(Self { sweep, table })
    }

    /// The dotted keys of the file, without those of the sweep.
    pub fn keys(&self) -> BTreeSet<String> {
        let dotted = |(section, value): (&String, &Value)| -> Vec<String> {
            match value {
                Value::Table(keys) => keys.keys().map(|key| format!("{section}.{key}")).collect(),
                _ => vec![section.clone()],
            }
        };
        self.table.iter().flat_map(dotted).collect()
    }

    /// The configuration at a point of the grid. Keys that the method there does not use are dropped, whether the file
    /// or the grid gives them.
    ///
    /// # Errors
    /// When a key is unknown, of the wrong type or out of range.
    pub fn resolve(&self, overrides: &[(String, String)]) -> Result<ResolvedPoint> {
        let mut table = self.table.clone();
        source::set(&mut table, overrides)?;
        let mut dropped = BTreeSet::new();
        for (section, key) in without_effect(&table)? {
            if let Some(Value::Table(keys)) = table.get_mut(section) {
                keys.remove(key);
            }
            dropped.insert(format!("{section}.{key}"));
        }
        Ok(ResolvedPoint { config: Config::from_table(&table)?, dropped })
    }

    /// The configuration at a point with every key of the file, as `train` with `--set` would read it.
    ///
    /// # Errors
    /// As for [`Config::parse`].
    pub fn strict(&self, overrides: &[(String, String)]) -> Result<Config> {
        let mut table = self.table.clone();
        source::set(&mut table, overrides)?;
        Config::from_table(&table)
    }
}

/// The given keys that [`Config`] refuses because the method or the optimiser beside them does not use them.
fn without_effect(table: &Table) -> Result<Vec<(&'static str, &'static str)>> {
    let method = Section::open(table, "method", method::KEYS)?;
    let prior = Section::open(table, "prior", prior::KEYS)?;
    let training = Section::open(table, "training", training::TRAINING_KEYS)?;
    let kind = MethodConfig::read_kind(method)?;
    let mut unused: Vec<_> =
        method::KEYS.iter().filter(|key| !method::uses(key, kind)).map(|key| ("method", *key)).collect();
    if !method::uses("beta", kind) && method.value("lambda").is_none() {
        unused.push(("method", "sigma0_squared"));
    }
    if !kind.learns_gaussian_process() {
        unused.extend([("prior", "features"), ("prior", "kernel")]);
    }
    if training::optimiser(training, kind)? == OptimiserKind::Adam {
        unused.push(("training", "weight_decay"));
    }
    unused.sort_unstable();
    unused.dedup();
    let given = |(section, key): &(&'static str, &'static str)| match *section {
        "method" => method.value(key).is_some(),
        "prior" => prior.value(key).is_some(),
        _ => training.value(key).is_some(),
    };
    Ok(unused.into_iter().filter(given).collect())
}
