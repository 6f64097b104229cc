//! `[training]`, `[search]`: how long, how fast, and how temperatures are chosen.

use toml::Value;

use super::method::{MethodConfig, MethodKind};
use super::section::{Domain, Entry, Section, integer, name_of, numbers};
use super::temperature::{AlphaChoice, Temperature};
use crate::error::Result;
use crate::training::optimiser::OptimiserKind;

/// The most iterations of a run: years, on any machine.
const MOST_ITERATIONS: u64 = 1_000_000_000_000;
const MOST: usize = 1_000_000;

pub(super) const TRAINING_KEYS: &[&str] =
    &["iterations", "batch", "optimiser", "rate", "weight_decay", "log_every", "checkpoint_every"];
pub(super) const SEARCH_KEYS: &[&str] = &["iterations", "folds", "beta_per_example", "alpha_per_example"];

/// The loop.
///
/// | key of `[training]` | default | pacoh-map | purpose | range |
/// |---|---|---|---|---|
/// | `iterations` | 8000 | | steps of the optimiser | 1 to 10^12 |
/// | `batch` | 5 | | tasks drawn for each step, with replacement | 1 to 1000000 |
/// | `optimiser` | `"adam"` | `"adamw"` | see [`OptimiserKind`] | `"adam"`, `"adamw"` |
/// | `rate` | 0.003 | 0.001 | the learning rate | above 0 |
/// | `weight_decay` | 0 | 0.2 | decay of all parameters, with adamw | at least 0 |
/// | `log_every` | 50 | | iterations between two lines of metrics | 1 to 10^12 |
/// | `checkpoint_every` | 1000 | | iterations between two checkpoints | 1 to 10^12 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingConfig {
    /// Steps of the optimiser.
    pub iterations: u64,
    /// Tasks in a batch.
    pub batch: usize,
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// Its learning rate.
    pub rate: f64,
    /// Decoupled weight decay; 0 for Adam.
    pub weight_decay: f64,
    /// Iterations between two lines of metrics.
    pub log_every: u64,
    /// Iterations between two checkpoints.
    pub checkpoint_every: u64,
}

/// The optimiser that is given, else that of the method.
pub(super) fn optimiser(section: Section<'_>, method: MethodKind) -> Result<OptimiserKind> {
    let of_method = if method == MethodKind::PacohMap { OptimiserKind::Adamw } else { OptimiserKind::Adam };
    Ok(section.choice("optimiser", &["adam", "adamw"])?.unwrap_or(of_method))
}

impl TrainingConfig {
    pub(super) fn read(section: Section<'_>, method: MethodKind) -> Result<Self> {
        let recipe = method == MethodKind::PacohMap;
        let optimiser = optimiser(section, method)?;
        if optimiser == OptimiserKind::Adam {
            let why = "only the optimiser adamw has it; add training.optimiser = \"adamw\" or remove it";
            section.refuse(&["weight_decay"], why)?;
        }
        let weight_decay = match optimiser {
            OptimiserKind::Adamw if recipe => 0.2,
            _ => 0.0,
        };
        let every = 1..=MOST_ITERATIONS;
        Ok(Self {
            iterations: section.whole("iterations", every.clone())?.unwrap_or(8000),
            batch: section.count("batch", 1..=MOST)?.unwrap_or(5),
            optimiser,
            rate: section.number("rate", Domain::Positive)?.unwrap_or(if recipe { 1e-3 } else { 3e-3 }),
            weight_decay: section.number("weight_decay", Domain::NonNegative)?.unwrap_or(weight_decay),
            log_every: section.whole("log_every", every.clone())?.unwrap_or(50),
            checkpoint_every: section.whole("checkpoint_every", every)?.unwrap_or(1000),
        })
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![
            ("iterations", whole(self.iterations)),
            ("batch", integer(self.batch)),
            ("optimiser", name_of(&self.optimiser)),
            ("rate", Value::Float(self.rate)),
        ];
        if self.optimiser == OptimiserKind::Adamw {
            entries.push(("weight_decay", Value::Float(self.weight_decay)));
        }
        entries.push(("log_every", whole(self.log_every)));
        entries.push(("checkpoint_every", whole(self.checkpoint_every)));
        entries
    }
}

/// How temperatures that are `"auto"` are chosen: from a grid, by training without some tasks and scoring on them.
///
/// | key of `[search]` | default | purpose | range |
/// |---|---|---|---|
/// | `iterations` | 1000 | steps of each trial | 1 to 10^12 |
/// | `folds` | 3 | parts of the tasks, each left out once | 2 to 1000000 |
/// | `beta_per_example` | `[10, 30, 100]` | candidates; beta = this times the harmonic mean of the m_i | above 0 |
/// | `alpha_per_example` | `[10, 30, 100, 300]` | candidates; alpha = this times m' | above 0 |
#[derive(Debug, Clone, PartialEq)]
pub struct SearchConfig {
    /// Steps of each trial.
    pub iterations: u64,
    /// Parts of the tasks, each left out once.
    pub folds: usize,
    /// Candidates for beta per example; empty where beta is given.
    pub beta_per_example: Vec<f64>,
    /// Candidates for alpha per example of S'; empty where alpha is given or not used.
    pub alpha_per_example: Vec<f64>,
}

impl SearchConfig {
    /// None where nothing is to be chosen. The section is checked all the same, and may stay in a file whose
    /// temperatures are overridden.
    pub(super) fn read(section: Section<'_>, method: &MethodConfig) -> Result<Option<Self>> {
        let grid = |key, default: &[f64]| -> Result<Vec<f64>> {
            Ok(section.numbers(key, Domain::Positive)?.unwrap_or_else(|| default.to_vec()))
        };
        let mut search = Self {
            iterations: section.whole("iterations", 1..=MOST_ITERATIONS)?.unwrap_or(1000),
            folds: section.count("folds", 2..=MOST)?.unwrap_or(3),
            beta_per_example: grid("beta_per_example", &[10.0, 30.0, 100.0])?,
            alpha_per_example: grid("alpha_per_example", &[10.0, 30.0, 100.0, 300.0])?,
        };
        if method.beta != Some(Temperature::Auto) {
            search.beta_per_example.clear();
        }
        if method.alpha != Some(AlphaChoice::Auto) {
            search.alpha_per_example.clear();
        }
        let nothing = search.beta_per_example.is_empty() && search.alpha_per_example.is_empty();
        Ok((!nothing).then_some(search))
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![("iterations", whole(self.iterations)), ("folds", integer(self.folds))];
        if !self.beta_per_example.is_empty() {
            entries.push(("beta_per_example", numbers(&self.beta_per_example)));
        }
        if !self.alpha_per_example.is_empty() {
            entries.push(("alpha_per_example", numbers(&self.alpha_per_example)));
        }
        entries
    }
}

/// A resolved whole number; every accepted one fits.
pub(super) fn whole(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
