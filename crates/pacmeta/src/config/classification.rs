//! `[method]` of classification, of pictures and of texts: what is minimised, and how the head or the network adapts. Keys are the same;
//! defaults are those of the paper's experiments on each.

use serde::{Deserialize, Serialize};
use toml::Value;

use super::section::{Domain, Entry, Section, integer, name_of};
use crate::error::Result;
use crate::learners::head::steps::{HeadSteps, InnerOptimiser, Sampler};
use crate::methods::SubsetRule;
use crate::methods::heads::{HeadMethodSettings, PacohEstimator};
use crate::methods::networks::{Adapts, NO_PRIOR_DRAWS, ONE_CHASER};

/// The keys of both; pictures have `adapts` too, texts `way_back`.
pub(super) const KEYS: &[&str] = &[
    "name",
    "steps",
    "rate",
    "inner_optimiser",
    "accumulator_start",
    "sigma_squared",
    "alpha",
    "beta",
    "sampler",
    "particles",
    "estimator",
    "samples",
    "split",
];

/// A method for networks that adapt, or whose head does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassificationMethodKind {
    /// PACMAML.
    Pacmaml,
    /// PACOH.
    Pacoh,
    /// Bayesian MAML with the chaser loss.
    Bmaml,
    /// MAML, exact.
    Maml,
    /// First-order MAML.
    Fomaml,
    /// Reptile.
    Reptile,
    /// No adaptation in training.
    MultiTask,
}

use ClassificationMethodKind::{Bmaml, Fomaml, Maml, MultiTask, Pacmaml, Pacoh, Reptile};

impl ClassificationMethodKind {
    /// All methods.
    pub const ALL: [Self; 7] = [Pacmaml, Pacoh, Bmaml, Maml, Fomaml, Reptile, MultiTask];
    const NAMES: [&'static str; 7] = ["pacmaml", "pacoh", "bmaml", "maml", "fomaml", "reptile", "multi-task"];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Pacmaml => "pacmaml",
            Pacoh => "pacoh",
            Bmaml => "bmaml",
            Maml => "maml",
            Fomaml => "fomaml",
            Reptile => "reptile",
            MultiTask => "multi-task",
        }
    }

    /// The name in texts.
    pub fn title(self) -> &'static str {
        match self {
            Pacmaml => "PACMAML",
            Pacoh => "PACOH",
            Bmaml => "BMAML",
            Maml => "MAML",
            Fomaml => "FOMAML",
            Reptile => "Reptile",
            MultiTask => "multi-task",
        }
    }

    /// Whether the base learner is a Gibbs posterior with a temperature.
    pub fn is_bayesian(self) -> bool {
        matches!(self, Pacmaml | Pacoh | Bmaml)
    }

    /// Whether the paper found it to need a tenth of the usual rate of the optimiser.
    pub(super) fn takes_small_steps(self) -> bool {
        matches!(self, Pacoh | Bmaml)
    }
}

/// How a Gibbs posterior is approximated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplerKind {
    /// One particle, moved towards the mode.
    Steps,
    /// Stein variational gradient descent.
    Svgd,
    /// Stochastic gradient Langevin dynamics.
    Sgld,
}

/// How PACOH's gradient is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum EstimatorKind {
    /// From samples of the posterior: unbiased if they are exact.
    #[default]
    Posterior,
    /// From samples of the prior, by the logarithm of a mean: PACOH's own, biased.
    Prior,
}

/// A method and its numbers. Keys that the method does not use are refused.
///
/// | key of `[method]` | methods | default | purpose | range |
/// |---|---|---|---|---|
/// | `name` | all | `"pacmaml"` | the method | `"pacmaml"`, `"pacoh"`, `"bmaml"`, `"maml"`, `"fomaml"`, `"reptile"`, `"multi-task"` |
/// | `adapts` | all, on pictures | `"head"` | what the inner steps move: the head on features computed once, or every parameter, see below | `"head"`, `"network"` |
/// | `steps` | all | 6; texts 50 | K, the inner steps | 0 to 10000 |
/// | `rate` | all | pacmaml 0.03, pacoh 0.01, bmaml 0.003, else 0.1; texts 0.001 | the rate of the inner steps; the paper takes smaller ones for larger tasks | above 0 |
/// | `inner_optimiser` | all | `"adagrad"` for pacmaml, pacoh, bmaml and on texts, else `"gd"` | the precondition of the inner steps | `"gd"`, `"adagrad"` |
/// | `accumulator_start` | with adagrad | 0.1 | where Adagrad's accumulator starts | above 0 |
/// | `sigma_squared` | pacmaml, pacoh, bmaml, reptile | 1; texts 0.0004 | variance of the prior around what adapts | above 0 |
/// | `alpha` | pacmaml, pacoh, bmaml, reptile | pacoh 10, else 1; texts: bmaml 1000, else 10000 | temperature on S', and at test | above 0 |
/// | `beta` | pacmaml, pacoh, bmaml, reptile | alpha m / m' | temperature on S | above 0 |
/// | `sampler` | pacmaml, pacoh, bmaml | `"steps"` | how the Gibbs posterior is approximated. Particles of svgd and sgld start at draws from the prior, where a few small steps leave them: take a small `sigma_squared` with a large `alpha`. sgld needs `inner_optimiser = "gd"`, bmaml cannot have it | `"steps"`, `"svgd"`, `"sgld"` |
/// | `particles` | with svgd or sgld | 5 | samples of the posterior | 1 to 1000 |
/// | `estimator` | pacoh | `"posterior"` | samples of what PACOH's gradient is estimated from | `"posterior"`, `"prior"` |
/// | `samples` | with the estimator `"prior"` | 10 | draws from the prior | 1 to 10000 |
/// | `split` | pacmaml, bmaml, maml, fomaml | `"nested"` | whether the adapted head is judged on all of S or on the rest of it; with pacmaml and m = 2 m' features collapse on the rest alone | `"nested"`, `"disjoint"` |
/// | `way_back` | all, on texts; counts for maml and bmaml | `"tape"` | how the gradient goes back through the inner steps: all on one tape, or one by one, computed again, with less memory | `"tape"`, `"recompute"` |
///
/// With `adapts = "network"` an inner step is a forward and a backward pass of the body, and batch norm takes the statistics of
/// each pass: with six steps an iteration takes four to eight times as long as with an adapting head. Defaults are the same; rates
/// were chosen for heads. The exact gradient of maml goes through a tape then, slowly and with the memory of all steps: it is meant for
/// small networks and for checks (the paper's network with six steps takes 2.3 GB a task and some fifteen times the time of fomaml,
/// its relative of first order). The estimator `"prior"` is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassificationMethodConfig {
    /// The method.
    pub kind: ClassificationMethodKind,
    /// What adapts.
    pub adapts: Adapts,
    /// K.
    pub steps: usize,
    /// The rate of the inner steps.
    pub rate: f64,
    /// Their precondition.
    pub inner_optimiser: InnerOptimiser,
    /// Where Adagrad's accumulator starts.
    pub accumulator_start: f64,
    /// The variance of the prior.
    pub sigma_squared: f64,
    /// The temperature on S'.
    pub alpha: f64,
    /// The temperature on S; none means alpha m / m'.
    pub beta: Option<f64>,
    /// How the Gibbs posterior is approximated.
    pub sampler: SamplerKind,
    /// Samples of the posterior.
    pub particles: usize,
    /// PACOH's estimator.
    pub estimator: EstimatorKind,
    /// Draws from the prior for that estimator.
    pub samples: usize,
    /// Where the adapted head is judged.
    pub split: SubsetRule,
}

/// What a method takes where the file says nothing.
pub(super) struct MethodDefaults {
    pub(super) steps: usize,
    pub(super) rate: fn(ClassificationMethodKind) -> f64,
    pub(super) inner_optimiser: fn(ClassificationMethodKind) -> InnerOptimiser,
    pub(super) sigma_squared: f64,
    pub(super) alpha: fn(ClassificationMethodKind) -> f64,
    /// The key of `[data]` that says how many examples a task has.
    pub(super) examples_key: &'static str,
}

impl MethodDefaults {
    /// Those of the paper's image experiments at m_i = 10.
    pub(super) const IMAGES: Self = Self {
        steps: 6,
        rate: |kind| match kind {
            Pacmaml => 0.03,
            Pacoh => 0.01,
            Bmaml => 0.003,
            _ => 0.1,
        },
        inner_optimiser: |kind| match kind.is_bayesian() {
            true => InnerOptimiser::Adagrad,
            false => InnerOptimiser::Gd,
        },
        sigma_squared: 1.0,
        alpha: |kind| if kind == Pacoh { 10.0 } else { 1.0 },
        examples_key: "shots",
    };
    /// Those of the paper's text experiments.
    pub(super) const TEXT: Self = Self {
        steps: 50,
        rate: |_| 0.001,
        inner_optimiser: |_| InnerOptimiser::Adagrad,
        sigma_squared: 0.0004,
        alpha: |kind| if kind == Bmaml { 1e3 } else { 1e4 },
        examples_key: "examples",
    };
}

/// Whether S' leaves examples of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubsetSize {
    Part,
    Whole,
}

/// The methods that use a key; all those that are not listed.
fn users(key: &str) -> &'static [ClassificationMethodKind] {
    match key {
        "sampler" | "particles" => &[Pacmaml, Pacoh, Bmaml],
        "sigma_squared" | "alpha" | "beta" => &[Pacmaml, Pacoh, Bmaml, Reptile],
        "estimator" | "samples" => &[Pacoh],
        "split" => &[Pacmaml, Bmaml, Maml, Fomaml],
        _ => &ClassificationMethodKind::ALL,
    }
}

impl ClassificationMethodConfig {
    pub(super) fn read(section: Section<'_>, defaults: &MethodDefaults, subset: SubsetSize) -> Result<Self> {
        let kind = section.choice("name", &ClassificationMethodKind::NAMES)?.unwrap_or(Pacmaml);
        for key in KEYS.iter().copied().filter(|key| section.knows(key)) {
            if !users(key).contains(&kind) {
                let names: Vec<_> = users(key).iter().map(|kind| kind.name()).collect();
                let why = format!(
                    "the method {} does not use it, only {}; remove it",
                    kind.name(),
                    names.join(", ")
                );
                section.refuse(&[key], &why)?;
            }
        }
        let inner_optimiser = (defaults.inner_optimiser)(kind);
        let inner_optimiser =
            section.choice("inner_optimiser", &["gd", "adagrad"])?.unwrap_or(inner_optimiser);
        if inner_optimiser == InnerOptimiser::Gd {
            section.refuse(&["accumulator_start"], "only the inner optimiser adagrad has one; remove it")?;
        }
        let positive =
            |key, default| -> Result<f64> { Ok(section.number(key, Domain::Positive)?.unwrap_or(default)) };
        let config = Self {
            kind,
            adapts: match section.knows("adapts") {
                true => section.choice("adapts", &["head", "network"])?.unwrap_or_default(),
                false => Adapts::Head,
            },
            steps: section.count("steps", 0..=10_000)?.unwrap_or(defaults.steps),
            rate: positive("rate", (defaults.rate)(kind))?,
            inner_optimiser,
            accumulator_start: positive("accumulator_start", 0.1)?,
            sigma_squared: positive("sigma_squared", defaults.sigma_squared)?,
            alpha: positive("alpha", (defaults.alpha)(kind))?,
            beta: section.number("beta", Domain::Positive)?,
            sampler: section.choice("sampler", &["steps", "svgd", "sgld"])?.unwrap_or(SamplerKind::Steps),
            particles: section.count("particles", 1..=1000)?.unwrap_or(5),
            estimator: section.choice("estimator", &["posterior", "prior"])?.unwrap_or_default(),
            samples: section.count("samples", 1..=10_000)?.unwrap_or(10),
            split: section.choice("split", &["nested", "disjoint"])?.unwrap_or_default(),
        };
        if config.sampler == SamplerKind::Steps {
            section.refuse(
                &["particles"],
                "steps move one particle; add method.sampler = \"svgd\" or \"sgld\"",
            )?;
        }
        if config.estimator == EstimatorKind::Posterior {
            section.refuse(&["samples"], "only the estimator \"prior\" draws them; remove it")?;
        }
        if config.sampler == SamplerKind::Sgld {
            let message = match (kind, inner_optimiser) {
                (Bmaml, _) => Some("the chaser of bmaml cannot move at random; choose \"steps\" or \"svgd\""),
                (_, InnerOptimiser::Adagrad) => {
                    Some("Langevin steps are plain ones; add method.inner_optimiser = \"gd\"")
                }
                _ => None,
            };
            message.map_or(Ok(()), |message| Err(section.error("sampler", message)))?;
        }
        match (config.adapts, kind, config.estimator) {
            (Adapts::Network, Bmaml, _) if config.sampler != SamplerKind::Steps && config.particles > 1 => {
                return Err(section.error("sampler", ONE_CHASER));
            }
            (Adapts::Network, Pacoh, EstimatorKind::Prior) => {
                return Err(section.error("estimator", NO_PRIOR_DRAWS));
            }
            _ => {}
        }
        if config.split == SubsetRule::Disjoint && subset == SubsetSize::Whole {
            let message = format!(
                "\"disjoint\" judges on examples outside S', and `data.support` = `data.{}` leaves none",
                defaults.examples_key
            );
            return Err(section.error("split", message));
        }
        Ok(config)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![("name", name_of(&self.kind))];
        // Not otherwise, so that runs from before there was a choice can be continued.
        if self.adapts == Adapts::Network {
            entries.push(("adapts", name_of(&self.adapts)));
        }
        entries.extend([
            ("steps", integer(self.steps)),
            ("rate", Value::Float(self.rate)),
            ("inner_optimiser", name_of(&self.inner_optimiser)),
        ]);
        if self.inner_optimiser == InnerOptimiser::Adagrad {
            entries.push(("accumulator_start", Value::Float(self.accumulator_start)));
        }
        let others = [
            ("sigma_squared", Some(Value::Float(self.sigma_squared))),
            ("alpha", Some(Value::Float(self.alpha))),
            ("beta", self.beta.map(Value::Float)),
            ("sampler", Some(name_of(&self.sampler))),
            ("particles", (self.sampler != SamplerKind::Steps).then(|| integer(self.particles))),
            ("estimator", Some(name_of(&self.estimator))),
            ("samples", (self.estimator == EstimatorKind::Prior).then(|| integer(self.samples))),
            ("split", Some(name_of(&self.split))),
        ];
        entries.extend(others.into_iter().filter_map(|(key, value)| {
            value.filter(|_| users(key).contains(&self.kind)).map(|value| (key, value))
        }));
        entries
    }

    /// The method itself, whatever adapts.
    pub fn settings(&self) -> HeadMethodSettings {
        let inner = HeadSteps {
            steps: self.steps,
            rate: self.rate,
            optimiser: self.inner_optimiser,
            accumulator_start: self.accumulator_start,
        };
        let Self { alpha, beta, sigma_squared, particles, split, .. } = *self;
        let sampler = match self.sampler {
            SamplerKind::Steps => Sampler::Steps,
            SamplerKind::Svgd => Sampler::Svgd { particles },
            SamplerKind::Sgld => Sampler::Sgld { particles },
        };
        match self.kind {
            Pacmaml => HeadMethodSettings::Pacmaml { inner, alpha, beta, sigma_squared, sampler, split },
            Pacoh => {
                let estimator = match self.estimator {
                    EstimatorKind::Posterior => PacohEstimator::Posterior,
                    EstimatorKind::Prior => PacohEstimator::Prior { samples: self.samples },
                };
                HeadMethodSettings::Pacoh { inner, alpha, beta, sigma_squared, sampler, estimator }
            }
            Bmaml => HeadMethodSettings::Bmaml { inner, alpha, beta, sigma_squared, sampler, split },
            Maml => HeadMethodSettings::Maml { inner, split },
            Fomaml => HeadMethodSettings::Fomaml { inner, split },
            Reptile => HeadMethodSettings::Reptile { inner, alpha, beta, sigma_squared },
            MultiTask => HeadMethodSettings::MultiTask { inner },
        }
    }
}
