//! `[training]` of classification, of pictures and of texts. Keys are the same but for a few; defaults are those of the paper's
//! experiments on each.

use serde::{Deserialize, Serialize};
use toml::Value;

use super::section::{Domain, Entry, Section, integer, name_of};
use super::training::whole;
use crate::error::Result;

const KEYS: &[&str] = &[
    "iterations",
    "batch",
    "rate",
    "clip",
    "hyper_prior",
    "log_every",
    "checkpoint_every",
    "validate_every",
];
const MOST: u64 = 1_000_000_000_000;

/// The loop.
///
/// | key of `[training]` | pictures | texts | purpose | range |
/// |---|---|---|---|---|
/// | `iterations` | 60000 | 1000 | steps of the optimiser | 1 to 10^12 |
/// | `batch` | 4 | 1 | tasks drawn for each step | 1 to 10000 |
/// | `rate` | 0.001; bmaml, pacoh: 0.0001 | 0.00001; the synthetic encoder: 0.001 | the learning rate of Adam | above 0 |
/// | `clip` | 10 | 1 | the norm that a longer gradient is cut to; 0 cuts nothing | at least 0 |
/// | `normalisation` | `"batch"` | - | whose statistics batch norm takes in training, see [`TrainingNormalisation`] | `"batch"`, `"support"`, `"separate"` |
/// | `dropout` | - | 0 | dropout in the shared layers | at least 0, below 1 |
/// | `hyper_prior` | 0 | 0 | xi / sigma0^2, the weight of the hyper-prior term: a pull towards 0, or towards the pretrained weights | at least 0 |
/// | `log_every` | 100 | 10 | iterations between two lines of metrics | 1 to 10^12 |
/// | `checkpoint_every` | 500 | 500 | iterations between two checkpoints; there is one before each validation too | 1 to 10^12 |
/// | `validate_every` | 1000 | 250 | iterations between two validations | 1 to 10^12 |
/// | `validation_tasks` | 100 | - | tasks of a validation, always the same ones; 0 validates never | 0 to 1000000 |
/// | `validation_draws` | - | 2 | draws of each held-out task for a validation; 0 validates never | 0 to 1000 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassificationTrainingConfig {
    /// Steps of the optimiser.
    pub iterations: u64,
    /// Tasks in a batch.
    pub batch: usize,
    /// The learning rate.
    pub rate: f64,
    /// The norm that a longer gradient is cut to; 0 cuts nothing.
    pub clip: f64,
    /// Whose statistics batch norm takes; `Batch` for texts, which have none.
    pub normalisation: TrainingNormalisation,
    /// Dropout in the shared layers; 0 for pictures.
    pub dropout: f64,
    /// xi / sigma0^2.
    pub hyper_prior: f64,
    /// Iterations between two lines of metrics.
    pub log_every: u64,
    /// Iterations between two checkpoints.
    pub checkpoint_every: u64,
    /// Iterations between two validations.
    pub validate_every: u64,
    /// Tasks of a validation, or draws of each held-out task; 0 validates never.
    pub validations: usize,
}

/// Whose statistics batch norm takes in training. Gradients run through them in all cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum TrainingNormalisation {
    /// All pictures of a task together; those of each pass where the whole network adapts. Transductive: what S' looks like to the
    /// head depends on the pictures it is judged on.
    #[default]
    Batch,
    /// Those of S', the pictures that the base learner sees of a new task, for all pictures of the task.
    Support,
    /// Those of S' for S', and of the other pictures for these, in two passes: as in MAML's own code, and at a new task with
    /// `evaluation.normalisation = "batch"`.
    Separate,
}

/// The keys that only pictures, or only texts, have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    #[cfg(feature = "images")]
    Images,
    #[cfg(feature = "text")]
    Text,
}

impl Kind {
    /// The key that says how much a validation is, and the most it can be.
    fn validations(self) -> (&'static str, usize) {
        match self {
            #[cfg(feature = "images")]
            Self::Images => ("validation_tasks", 1_000_000),
            #[cfg(feature = "text")]
            Self::Text => ("validation_draws", 1000),
        }
    }

    fn has_dropout(self) -> bool {
        match self {
            #[cfg(feature = "images")]
            Self::Images => false,
            #[cfg(feature = "text")]
            Self::Text => true,
        }
    }

    pub(super) fn keys(self) -> Vec<&'static str> {
        // texts have no batch norm, pictures no dropout
        let own = if self.has_dropout() { "dropout" } else { "normalisation" };
        [KEYS, &[own], &[self.validations().0]].concat()
    }
}

impl ClassificationTrainingConfig {
    /// Reads the section; what it does not say is as in `defaults`.
    pub(super) fn read(section: Section<'_>, kind: Kind, defaults: Self) -> Result<Self> {
        let every = |key, default| -> Result<u64> { Ok(section.whole(key, 1..=MOST)?.unwrap_or(default)) };
        let number =
            |key, domain, default| -> Result<f64> { Ok(section.number(key, domain)?.unwrap_or(default)) };
        let (validations, most) = kind.validations();
        Ok(Self {
            iterations: every("iterations", defaults.iterations)?,
            batch: section.count("batch", 1..=10_000)?.unwrap_or(defaults.batch),
            rate: number("rate", Domain::Positive, defaults.rate)?,
            clip: number("clip", Domain::NonNegative, defaults.clip)?,
            normalisation: match kind.has_dropout() {
                true => TrainingNormalisation::Batch,
                false => {
                    section.choice("normalisation", &["batch", "support", "separate"])?.unwrap_or_default()
                }
            },
            dropout: match kind.has_dropout() {
                true => section.part("dropout")?.unwrap_or(defaults.dropout),
                false => 0.0,
            },
            hyper_prior: number("hyper_prior", Domain::NonNegative, defaults.hyper_prior)?,
            log_every: every("log_every", defaults.log_every)?,
            checkpoint_every: every("checkpoint_every", defaults.checkpoint_every)?,
            validate_every: every("validate_every", defaults.validate_every)?,
            validations: section.count(validations, 0..=most)?.unwrap_or(defaults.validations),
        })
    }

    pub(super) fn entries(&self, kind: Kind) -> Vec<Entry> {
        let mut entries = vec![
            ("iterations", whole(self.iterations)),
            ("batch", integer(self.batch)),
            ("rate", Value::Float(self.rate)),
            ("clip", Value::Float(self.clip)),
        ];
        entries.extend(kind.has_dropout().then_some(("dropout", Value::Float(self.dropout))));
        // Not otherwise, so that runs from before there was a choice can be continued.
        if self.normalisation != TrainingNormalisation::Batch {
            entries.push(("normalisation", name_of(&self.normalisation)));
        }
        entries.extend([
            ("hyper_prior", Value::Float(self.hyper_prior)),
            ("log_every", whole(self.log_every)),
            ("checkpoint_every", whole(self.checkpoint_every)),
            ("validate_every", whole(self.validate_every)),
            (kind.validations().0, integer(self.validations)),
        ]);
        entries
    }
}
