//! Configurations: what a person writes, and what a run does after every default is settled.
//!
//! A configuration is TOML. Every key has a default, so an empty text is one; an empty file is refused, since it is rather a
//! file that was not written. What is read is checked at once: a
//! [`Config`] holds numbers in their ranges and only keys that have an effect, and [`Config::to_toml`] writes all of
//! those, so that a run can be repeated even if a default changes.
//!
//! ```
//! use pacmeta::config::{Config, MethodKind, Temperature};
//!
//! let text = "seed = 1\n[method]\nname = \"pacoh\"\nbeta_per_example = 30\n";
//! let overrides = [("training.iterations".to_owned(), "2000".to_owned())];
//! let config = Config::parse("example.toml", text, &overrides)?;
//! assert_eq!(config.method.kind, MethodKind::Pacoh);
//! assert_eq!(config.method.beta, Some(Temperature::PerExample(30.0)));
//! assert_eq!(config.training.iterations, 2000);
//! assert_eq!(config.training.rate, 3e-3);
//!
//! let mistake = Config::parse("example.toml", "[training]\niteration = 10", &[]).unwrap_err();
//! assert!(mistake.to_string().starts_with("configuration key `training.iteration`"));
//! assert!(mistake.to_string().contains("did you mean `iterations`?"));
//! # Ok::<(), pacmeta::Error>(())
//! ```

mod any;
mod bound;
#[cfg(any(feature = "images", feature = "text"))]
mod classification;
#[cfg(any(feature = "images", feature = "text"))]
mod classification_training;
mod data;
#[cfg(feature = "images")]
pub mod images;
mod method;
mod prior;
mod section;
mod source;
mod sweep;
mod temperature;
#[cfg(test)]
mod tests;
#[cfg(feature = "text")]
pub mod text;
mod training;

pub use any::AnyConfig;
pub use bound::{Assumption, BoundConfig};
#[cfg(any(feature = "images", feature = "text"))]
pub use classification::{ClassificationMethodConfig, ClassificationMethodKind};
#[cfg(any(feature = "images", feature = "text"))]
pub use classification_training::{ClassificationTrainingConfig, TrainingNormalisation};
pub use data::{DataConfig, DataSource, HeldOut, SyntheticData, SyntheticEnvironment, TableData};
#[cfg(feature = "images")]
pub use images::ImageConfig;
pub use method::{HyperPriorConfig, InnerOptimiser, MethodConfig, MethodKind, ProximalConfig, SubsetConfig};
pub use prior::{KernelConfig, PriorConfig};
pub use sweep::{ResolvedPoint, SweepConfig, SweepFile, SweepMetric};
pub use temperature::{AlphaChoice, Temperature, harmonic_mean};
#[cfg(feature = "text")]
pub use text::TextConfig;
pub use training::{SearchConfig, TrainingConfig};

use std::fmt::Write;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::methods::MethodSettings;
use crate::training::files::read_bounded;
use section::{Entry, Section};

/// Longer files are no configurations.
const MAX_BYTES: u64 = 1 << 20;

const TOP: &[&str] = &["seed", "data", "prior", "method", "training", "search", "bound", "sweep"];

/// A checked configuration.
///
/// | key | default | purpose | range |
/// |---|---|---|---|
/// | `seed` | 0 | of everything random | 0 to 2^63 - 1 |
///
/// and the sections `[data]` ([`DataConfig`]), `[prior]` ([`PriorConfig`]), `[method]` ([`MethodConfig`]), `[training]`
/// ([`TrainingConfig`]), `[search]` ([`SearchConfig`]), `[bound]` ([`BoundConfig`]). A section `[sweep]` is for `pacmeta sweep`
/// ([`SweepConfig`]) and does nothing here.
///
/// Whoever changes fields afterwards can have them checked again by [`Config::check`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The seed of everything random.
    pub seed: u64,
    /// Where tasks come from.
    pub data: DataConfig,
    /// The shape of the prior.
    pub prior: PriorConfig,
    /// The method.
    pub method: MethodConfig,
    /// The loop.
    pub training: TrainingConfig,
    /// How temperatures are chosen; none where nothing is `"auto"`.
    pub search: Option<SearchConfig>,
    /// The bound.
    pub bound: BoundConfig,
}

impl Config {
    /// Reads a configuration from a text; `origin` names it in messages.
    ///
    /// An override is a dotted key and its value, in TOML notation or as a bare text: `("method.name", "pacoh")`. It
    /// takes the place of the file's value, and of `beta_per_example` if it is `beta`, and so on.
    ///
    /// # Errors
    /// When the text is not TOML, or a key is unknown, of the wrong type, out of range or without effect.
    pub fn parse(origin: &str, text: &str, overrides: &[(String, String)]) -> Result<Self> {
        let mut table = source::parse(origin, text)?;
        source::set(&mut table, overrides)?;
        Self::from_table(&table)
    }

    /// Reads a configuration from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is empty or is not UTF-8, or as for [`Config::parse`].
    pub fn read(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self> {
        read_file(path.as_ref(), overrides, Self::parse)
    }

    /// The defaults of a method, on the sinusoid environment.
    pub fn default_for(method: MethodKind) -> Self {
        let name = Table::from_iter([("name".to_owned(), Value::from(method.name()))]);
        let table = Table::from_iter([("method".to_owned(), Value::Table(name))]);
        Self::from_table(&table).expect("the defaults of every method are in their ranges")
    }

    fn from_table(table: &Table) -> Result<Self> {
        if any::is_of_classification(table) {
            let message = "pictures and texts are for `pacmeta train` and for studies of their own; this command is for regression";
            return Err(Error::config("data.environment", message));
        }
        any::refuse_unknown_environment(table)?;
        let top = Section::root(table, TOP)?;
        // Opened first, all of them, so that a misspelt key is reported before what follows from its absence.
        let data = Section::open(table, "data", data::KEYS)?;
        let prior = Section::open(table, "prior", prior::KEYS)?;
        let method = Section::open(table, "method", method::KEYS)?;
        let training = Section::open(table, "training", training::TRAINING_KEYS)?;
        let search = Section::open(table, "search", training::SEARCH_KEYS)?;
        let bound = Section::open(table, "bound", bound::KEYS)?;
        sweep::check(table)?;
        let kind = MethodConfig::read_kind(method)?;
        let data = DataConfig::read(data)?;
        let method = MethodConfig::read(method, &data)?;
        Ok(Self {
            seed: top.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(0),
            prior: PriorConfig::read(prior, kind)?,
            training: TrainingConfig::read(training, kind)?,
            search: SearchConfig::read(search, &method)?,
            bound: BoundConfig::read(bound, &data)?,
            data,
            method,
        })
    }

    /// Checks values that were changed after reading.
    ///
    /// # Errors
    /// When the configuration could not have been read like this.
    pub fn check(&self) -> Result<()> {
        let again = Self::parse("the configuration", &self.to_toml(), &[])?;
        if again == *self {
            return Ok(());
        }
        Err(Error::config("method.name", "fields are set that have no effect, or needed ones are missing"))
    }

    /// The sections with their resolved keys, in a fixed order.
    fn sections(&self) -> Vec<(&'static str, Vec<Entry>)> {
        let mut sections = vec![
            ("data", self.data.entries()),
            ("prior", self.prior.entries()),
            ("method", self.method.entries()),
            ("training", self.training.entries()),
        ];
        sections.extend(self.search.as_ref().map(|search| ("search", search.entries())));
        sections.push(("bound", self.bound.entries()));
        sections
    }

    /// The configuration with every key that has an effect, in a fixed order. Reading it gives the same again.
    pub fn to_toml(&self) -> String {
        write_toml(self.seed, self.sections())
    }

    /// The method with its temperatures, once they are numbers: beta for methods that have one (see
    /// [`Temperature::resolve`]), alpha for pacmaml (without it, what `alpha` or `alpha_over_beta` give).
    ///
    /// # Errors
    /// When a temperature that the method needs is not a positive number, or alpha is still to be chosen.
    pub fn method_settings(&self, beta: f64, alpha: Option<f64>) -> Result<MethodSettings> {
        let positive = |key: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(value);
            }
            Err(Error::config(key, format!("the temperature becomes {value}; expected a number above 0")))
        };
        let missing = |key: &str| Error::config(key, format!("the method {} needs it", self.method.kind));
        let inner = || self.method.inner.ok_or_else(|| missing("method.steps"));
        Ok(match self.method.kind {
            MethodKind::Pacoh => MethodSettings::Pacoh { beta: positive("method.beta", beta)? },
            MethodKind::Pacmaml => {
                let beta = positive("method.beta", beta)?;
                let alpha = alpha.or_else(|| self.method.alpha.and_then(|alpha| alpha.resolve(beta)));
                let alpha = alpha.ok_or_else(|| {
                    Error::config("method.alpha", "is \"auto\", and no value was chosen for it yet")
                })?;
                MethodSettings::Pacmaml { alpha: positive("method.alpha", alpha)?, beta }
            }
            MethodKind::PacohMap => MethodSettings::PacohMap,
            MethodKind::MultiTask => MethodSettings::MultiTask,
            MethodKind::Fomaml => MethodSettings::Fomaml { inner: inner()? },
            MethodKind::Maml => MethodSettings::Maml { inner: inner()? },
            MethodKind::Reptile => {
                let proximal = self.method.proximal.ok_or_else(|| missing("method.sigma_squared"))?;
                MethodSettings::Reptile {
                    beta_sigma_squared: positive("method.beta", beta * proximal.sigma_squared)?,
                    optimiser: proximal.optimiser.settings(),
                }
            }
        })
    }
}

/// The text of a configuration file.
fn read_source(path: &Path) -> Result<String> {
    let expected = "a configuration in TOML; check the path, or copy one of those in configs/";
    let bytes = read_bounded(path, MAX_BYTES).map_err(|error| match error {
        Error::Io { path, source, .. } => Error::reading(path, source, expected),
        other => other,
    })?;
    source::decode(&path.display().to_string(), &bytes)
}

/// Reads a file with a parser of texts, and names the line of a key that is wrong.
fn read_file<T>(
    path: &Path,
    overrides: &[(String, String)],
    parse: impl FnOnce(&str, &str, &[(String, String)]) -> Result<T>,
) -> Result<T> {
    let origin = path.display().to_string();
    let text = read_source(path)?;
    if text.trim().is_empty() {
        let message = "the file is empty; write the settings into it, or the line `[data]` alone for the defaults of all";
        return Err(Error::input(&origin, message));
    }
    parse(&origin, &text, overrides).map_err(|error| placed(error, &origin, &text, overrides))
}

/// Names file and line in an error about a key that turned up after the file was read, when the tasks were looked at.
pub fn located(error: Error, path: &Path, overrides: &[(String, String)]) -> Error {
    let origin = path.display().to_string();
    match read_bounded(path, MAX_BYTES).and_then(|bytes| source::decode(&origin, &bytes)) {
        Ok(text) => placed(error, &origin, &text, overrides),
        Err(_) => error,
    }
}

/// An error about a key with its file and line, unless the key, or one in the section of this name, was set from outside.
fn placed(error: Error, origin: &str, text: &str, overrides: &[(String, String)]) -> Error {
    let sets = |set: &str, key: &str| {
        set.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    match error {
        Error::Config { key, message } if !overrides.iter().any(|(set, _)| sets(set, &key)) => {
            let place = match source::line_of(text, &key) {
                Some(line) => format!("line {line}, key `{key}`"),
                None => format!("key `{key}`"),
            };
            Error::input_at(origin, place, message)
        }
        other => other,
    }
}

/// The text of a resolved configuration.
fn write_toml(seed: u64, sections: Vec<(&'static str, Vec<Entry>)>) -> String {
    let mut text = format!("seed = {seed}\n");
    for (section, entries) in sections {
        let _ = write!(text, "\n[{section}]\n"); // writing to a string does not fail
        for (key, value) in entries {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}

impl Default for Config {
    fn default() -> Self {
        Self::default_for(MethodKind::Pacmaml)
    }
}

/// The keys of [`Config::to_toml`], for other formats.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let sections = self.sections().into_iter().map(|(section, entries)| {
            let keys = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
            (section.to_owned(), Value::Table(keys.collect()))
        });
        let seed = ("seed".to_owned(), training::whole(self.seed));
        sections.chain([seed]).collect::<Table>().serialize(serializer)
    }
}

/// Checked like a file.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_table(&Table::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
