//! `[data]`: where tasks come from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::section::{CountOrFraction, Entry, Section, integer, name_of};
use crate::environments::table::{TableOptions, quoted};
use crate::environments::{self, Environment};
use crate::error::Result;

/// The most tasks, and the most examples of one, that are drawn.
const MOST: usize = 1_000_000;
/// The most examples of all observed tasks, and of all target tasks, that are drawn.
const MOST_IN_ALL: usize = 20_000_000;

pub(super) const KEYS: &[&str] = &[
    "environment",
    "path",
    "task",
    "target",
    "features",
    "min_examples",
    "tasks",
    "examples",
    "target_tasks",
    "support",
    "query",
    "held_out",
    "standardise",
];
const OF_TABLES: &[&str] = &["path", "task", "target", "features", "min_examples", "held_out"];
const OF_SYNTHETIC: &[&str] = &["tasks", "examples", "target_tasks", "query"];
/// The environments of regression.
pub(super) const ENVIRONMENTS: &[&str] = &["sinusoid", "cauchy", "gp-draws", "table"];

/// The tasks of a run.
///
/// | key of `[data]` | default | purpose | range |
/// |---|---|---|---|
/// | `environment` | `"table"` with a `path`, else `"sinusoid"` | where tasks come from | `"sinusoid"`, `"cauchy"`, `"gp-draws"`, `"table"` |
/// | `support` | 5 | m: the examples of a target or held-out task that the learner may see | 1 to 1000000 |
/// | `standardise` | true | whether features and targets are scaled to mean 0 and deviation 1 | true, false |
///
/// The other keys depend on the environment: see [`SyntheticData`] and [`TableData`].
#[derive(Debug, Clone, PartialEq)]
pub struct DataConfig {
    /// Where tasks come from.
    pub source: DataSource,
    /// m, the examples of a target or held-out task that the learner may see.
    pub support: usize,
    /// Whether features and targets are standardised before learning.
    pub standardise: bool,
}

/// Where tasks come from.
#[derive(Debug, Clone, PartialEq)]
pub enum DataSource {
    /// Tasks are drawn.
    Synthetic(SyntheticData),
    /// Tasks are read.
    Table(TableData),
}

/// Tasks that are drawn from one of the known environments.
///
/// | key of `[data]` | default | purpose | range |
/// |---|---|---|---|
/// | `tasks` | 20 | n: observed tasks | 1 to 1000000 |
/// | `examples` | 30 | m_i: examples of each | 2 to 1000000 |
/// | `target_tasks` | 20 | tasks that are scored in the end | 1 to 1000000 |
/// | `query` | 100 | examples of each target task that are scored, besides the support | 1 to 1000000 |
///
/// Observed tasks have at most 20 million examples together, and so have target tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticData {
    /// Which environment.
    pub environment: SyntheticEnvironment,
    /// n, the observed tasks.
    pub tasks: usize,
    /// m_i, the examples of each.
    pub examples: usize,
    /// The tasks that are scored in the end.
    pub target_tasks: usize,
    /// The examples of each target task that are scored.
    pub query: usize,
}

/// Tasks that are read from a file.
///
/// | key of `[data]` | default | purpose | range |
/// |---|---|---|---|
/// | `path` | needed | the file, CSV or JSON; seen from the current folder, and stored in a run as an absolute path | |
/// | `task` | `"task"` | the column that names the task | |
/// | `target` | `"y"` | the column to be predicted | |
/// | `features` | all other columns | the columns to predict from | a list of names, each once |
/// | `min_examples` | none: small tasks are errors | tasks with fewer examples are left out | 2 to 1000000 |
/// | `held_out` | 0.2 | tasks kept out of training and scored in the end | a count from 0, or a fraction below 1 |
#[derive(Debug, Clone, PartialEq)]
pub struct TableData {
    /// The file.
    pub path: PathBuf,
    /// Which columns mean what.
    pub options: TableOptions,
    /// How many tasks are kept out of training.
    pub held_out: HeldOut,
}

/// An environment that tasks can be drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyntheticEnvironment {
    /// Sines with a slope and an offset.
    Sinusoid,
    /// Two-dimensional Cauchy bumps.
    Cauchy,
    /// Draws of a Gaussian process.
    GpDraws,
}

impl SyntheticEnvironment {
    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sinusoid => "sinusoid",
            Self::Cauchy => "cauchy",
            Self::GpDraws => "gp-draws",
        }
    }

    /// The environment itself.
    pub fn environment(self) -> Box<dyn Environment> {
        match self {
            Self::Sinusoid => Box::new(environments::Sinusoid),
            Self::Cauchy => Box::new(environments::Cauchy),
            Self::GpDraws => Box::new(environments::GpDraws),
        }
    }
}

/// How many tasks of a table are kept out of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeldOut {
    /// That many; 0 is none.
    Count(usize),
    /// This part of them, above 0 and below 1.
    Fraction(f64),
}

impl HeldOut {
    /// The number of tasks held out of `tasks`; a fraction is rounded, keeps at least one out and one in.
    ///
    /// A count is returned as it is, even if so many tasks do not exist.
    pub fn of(self, tasks: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Fraction(fraction) => {
                let most = tasks.saturating_sub(1);
                ((tasks as f64 * fraction).round() as usize).clamp(1.min(most), most)
            }
        }
    }
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum AnyEnvironment {
    Table,
    #[serde(untagged)]
    Synthetic(SyntheticEnvironment),
}

impl DataConfig {
    pub(super) fn read(section: Section<'_>) -> Result<Self> {
        let environment = section.choice("environment", ENVIRONMENTS)?;
        let has_path = section.value("path").is_some();
        let source = match environment {
            Some(AnyEnvironment::Synthetic(environment)) => {
                let why = format!(
                    "only the environment \"table\" reads it, and `data.environment` is \"{}\"; remove one of them",
                    environment.name()
                );
                section.refuse(OF_TABLES, &why)?;
                DataSource::Synthetic(SyntheticData::read(section, environment)?)
            }
            None if !has_path => {
                let why = "only tables have it; name the table with `data.path`";
                section.refuse(OF_TABLES, why)?;
                DataSource::Synthetic(SyntheticData::read(section, SyntheticEnvironment::Sinusoid)?)
            }
            Some(AnyEnvironment::Table) | None => {
                let why = "only tasks that are drawn have it (environments sinusoid, cauchy, gp-draws); a table has the \
                           tasks and examples that are in it";
                section.refuse(OF_SYNTHETIC, why)?;
                DataSource::Table(TableData::read(section)?)
            }
        };
        Ok(Self {
            source,
            support: section.count("support", 1..=MOST)?.unwrap_or(5),
            standardise: section.flag("standardise")?.unwrap_or(true),
        })
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = match &self.source {
            DataSource::Synthetic(data) => vec![
                ("environment", name_of(&data.environment)),
                ("tasks", integer(data.tasks)),
                ("examples", integer(data.examples)),
                ("target_tasks", integer(data.target_tasks)),
                ("query", integer(data.query)),
            ],
            DataSource::Table(data) => data.entries(),
        };
        entries.push(("support", integer(self.support)));
        entries.push(("standardise", Value::Boolean(self.standardise)));
        entries
    }

    /// The table, where tasks come from one.
    pub fn table(&self) -> Option<&TableData> {
        match &self.source {
            DataSource::Table(data) => Some(data),
            DataSource::Synthetic(_) => None,
        }
    }

    /// The environment and its numbers, where tasks are drawn.
    pub fn synthetic(&self) -> Option<&SyntheticData> {
        match &self.source {
            DataSource::Synthetic(data) => Some(data),
            DataSource::Table(_) => None,
        }
    }
}

impl SyntheticData {
    fn read(section: Section<'_>, environment: SyntheticEnvironment) -> Result<Self> {
        let data = Self {
            environment,
            tasks: section.count("tasks", 1..=MOST)?.unwrap_or(20),
            examples: section.count("examples", 2..=MOST)?.unwrap_or(30),
            target_tasks: section.count("target_tasks", 1..=MOST)?.unwrap_or(20),
            query: section.count("query", 1..=MOST)?.unwrap_or(100),
        };
        for (tasks, count, key, examples) in [
            ("tasks", data.tasks, "examples", data.examples),
            ("target_tasks", data.target_tasks, "query", data.query),
        ] {
            if count * examples > MOST_IN_ALL {
                let message = format!(
                    "{examples} examples of each of {count} tasks are more than {MOST_IN_ALL} in all; lower it, or `data.{tasks}`"
                );
                return Err(section.error(key, message));
            }
        }
        Ok(data)
    }
}

impl TableData {
    fn read(section: Section<'_>) -> Result<Self> {
        let path = section.text("path")?.map(PathBuf::from).ok_or_else(|| {
            section
                .error("path", "expected the CSV or JSON file with the tasks, e.g. data.path = \"tasks.csv\"")
        })?;
        let defaults = TableOptions::default();
        let options = TableOptions {
            task: section.text("task")?.unwrap_or(defaults.task),
            target: section.text("target")?.unwrap_or(defaults.target),
            features: section.texts("features")?,
            min_examples: section.count("min_examples", 2..=MOST)?,
        };
        if options.task == options.target {
            let message = format!("the column {} cannot be both task and target", quoted(&options.task));
            return Err(section.error("target", message));
        }
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = options.features.iter().flatten().find(|name| !seen.insert(name.as_str())) {
            return Err(section.error("features", format!("{} is listed twice", quoted(twice))));
        }
        let held_out = match section.count_or_fraction("held_out", 0, MOST)? {
            None => HeldOut::Fraction(0.2),
            Some(CountOrFraction::Count(count)) => HeldOut::Count(count),
            Some(CountOrFraction::Fraction(fraction)) => HeldOut::Fraction(fraction),
        };
        Ok(Self { path, options, held_out })
    }

    fn entries(&self) -> Vec<Entry> {
        let options = &self.options;
        let mut entries = vec![
            ("environment", Value::from("table")),
            ("path", Value::from(self.path.to_string_lossy().into_owned())),
            ("task", Value::from(options.task.as_str())),
            ("target", Value::from(options.target.as_str())),
        ];
        if let Some(features) = &options.features {
            entries.push(("features", Value::from(features.clone())));
        }
        entries.extend(options.min_examples.map(|count| ("min_examples", integer(count))));
        let held_out = match self.held_out {
            HeldOut::Count(count) => integer(count),
            HeldOut::Fraction(fraction) => Value::Float(fraction),
        };
        entries.push(("held_out", held_out));
        entries
    }
}
