//! `[method]`: what is minimised, and how a base learner sees a task.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::data::{DataConfig, DataSource};
use super::section::{CountOrFraction, Domain, Entry, Section, integer, name_of};
use super::temperature::{AlphaChoice, Temperature};
use crate::environments::table::{did_you_mean, quoted};
use crate::error::{Error, Result};
use crate::learners::lbfgs::Lbfgs;
use crate::learners::{InnerSteps, TargetTemperature};
use crate::methods::{MethodSettings, Resample, SubsetRule, SubsetSize};
use crate::task::Task;
use crate::training::HyperPrior;

/// The most steps of an inner loop, and the largest S'.
const MOST: usize = 1_000_000;

/// A method by name, see [`MethodSettings::NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MethodKind {
    /// PACMAML.
    Pacmaml,
    /// PACOH with Gibbs posteriors.
    Pacoh,
    /// PACOH's own recipe.
    PacohMap,
    /// MAML, exact.
    Maml,
    /// First-order MAML.
    Fomaml,
    /// Reptile.
    Reptile,
    /// One network for all tasks.
    MultiTask,
}

use MethodKind::{Fomaml, Maml, MultiTask, Pacmaml, Pacoh, PacohMap, Reptile};

impl MethodKind {
    /// All methods, in the order of [`MethodSettings::NAMES`].
    pub const ALL: [Self; 7] = [Pacmaml, Pacoh, PacohMap, Maml, Fomaml, Reptile, MultiTask];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Pacmaml => "pacmaml",
            Pacoh => "pacoh",
            PacohMap => "pacoh-map",
            Maml => "maml",
            Fomaml => "fomaml",
            Reptile => "reptile",
            MultiTask => "multi-task",
        }
    }

    /// Whether the prior is a Gaussian process; otherwise it is a network.
    pub fn learns_gaussian_process(self) -> bool {
        matches!(self, Pacmaml | Pacoh | PacohMap)
    }

    /// Whether the base learner sees a subset S' in training.
    pub fn uses_subset(self) -> bool {
        uses("subset", self)
    }
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MethodKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = MethodSettings::NAMES;
            let suggestion = did_you_mean(name, names);
            let names = names.join(", ");
            let message =
                format!("there is none called {}{suggestion}; expected one of {names}", quoted(name));
            Error::config("method.name", message)
        })
    }
}

pub(super) const KEYS: &[&str] = &[
    "name",
    "beta",
    "beta_per_example",
    "alpha",
    "alpha_over_beta",
    "lambda",
    "sigma0_squared",
    "subset",
    "split",
    "resample",
    "target_temperature",
    "steps",
    "rate",
    "sigma_squared",
    "inner_optimiser",
];

/// The methods that use a key.
fn users(key: &str) -> &'static [MethodKind] {
    match key {
        "beta" | "beta_per_example" => &[Pacmaml, Pacoh, Reptile],
        "alpha" | "alpha_over_beta" => &[Pacmaml],
        "lambda" | "sigma0_squared" => &[Pacmaml, Pacoh, Maml, Fomaml, Reptile, MultiTask],
        "subset" | "split" | "resample" => &[Pacmaml, Maml, Fomaml],
        "target_temperature" => &[Pacmaml, Pacoh],
        "steps" | "rate" => &[Maml, Fomaml, MultiTask],
        "sigma_squared" | "inner_optimiser" => &[Reptile],
        _ => &MethodKind::ALL,
    }
}

pub(super) fn uses(key: &str, method: MethodKind) -> bool {
    users(key).contains(&method)
}

/// A method and its numbers. A field is there exactly if the method uses it.
///
/// ```text
/// xi = 1/lambda + 1/(n beta)        with `lambda`
/// xi = 1/(n beta)                   without (the paper's experiments)
/// ```
///
/// | key of `[method]` | methods | default | purpose | range |
/// |---|---|---|---|---|
/// | `name` | all | `"pacmaml"` | the method | [`MethodSettings::NAMES`] |
/// | `beta` | pacmaml, pacoh, reptile | `"auto"`; reptile: see below | the bound's temperature | `"auto"` (not reptile), or above 0 |
/// | `beta_per_example` | pacmaml, pacoh, reptile | reptile: 100 | beta as this times the harmonic mean of the m_i | above 0 |
/// | `alpha` | pacmaml | `"auto"` | the base learner's temperature on S' | `"auto"`, or above 0 |
/// | `alpha_over_beta` | pacmaml | none | alpha as this times beta | above 0 |
/// | `lambda` | all but pacoh-map | none | the other temperature in xi | above 0 |
/// | `sigma0_squared` | all but pacoh-map | 3 | variance of the hyper-prior; methods without beta need `lambda` for it | above 0 |
/// | `subset` | pacmaml, maml, fomaml | `data.support` | m', the size of S' | a count from 1, or a fraction between 0 and 1 |
/// | `split` | pacmaml, maml, fomaml | `"nested"` | whether S' is judged on all of S or on the rest of it | `"nested"`, `"disjoint"` |
/// | `resample` | pacmaml, maml, fomaml | `"fixed"` if a table marks S' by `adapt`, else `"each_iteration"` | when S' is drawn: anew, or once and as marked | `"each_iteration"`, `"fixed"` |
/// | `target_temperature` | pacmaml, pacoh | `"per_example"` | what stays the same for supports of another size | `"per_example"`, `"fixed"` |
/// | `steps` | maml, fomaml, multi-task | 5; multi-task: 0 | gradient steps of the base learner (multi-task: at target tasks only) | 0 to 10000 |
/// | `rate` | maml, fomaml, multi-task | 0.01 | the rate of each | above 0 |
/// | `sigma_squared` | reptile | 1 | variance of the prior around its centre | above 0 |
/// | `inner_optimiser` | reptile | `"paper"` | ten tiny steps of L-BFGS, or all the way | `"paper"`, `"converged"` |
#[derive(Debug, Clone, PartialEq)]
pub struct MethodConfig {
    /// The method.
    pub kind: MethodKind,
    /// beta.
    pub beta: Option<Temperature>,
    /// alpha.
    pub alpha: Option<AlphaChoice>,
    /// The hyper-prior's term; none is weight 0.
    pub hyper_prior: Option<HyperPriorConfig>,
    /// S'.
    pub subset: Option<SubsetConfig>,
    /// What a temperature means for supports of another size.
    pub target_temperature: Option<TargetTemperature>,
    /// Gradient steps of the base learner.
    pub inner: Option<InnerSteps>,
    /// The search for Reptile's optimum.
    pub proximal: Option<ProximalConfig>,
}

/// N(0, sigma0^2 I) over the prior's parameters, and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperPriorConfig {
    /// sigma0^2.
    pub sigma0_squared: f64,
    /// lambda, if it counts.
    pub lambda: Option<f64>,
}

impl HyperPriorConfig {
    /// The term in the objective of `tasks` tasks; methods without beta have none of its part of xi.
    pub fn resolve(&self, beta: Option<f64>, tasks: usize) -> HyperPrior {
        let of_lambda = self.lambda.map_or(0.0, |lambda| 1.0 / lambda);
        let of_beta = beta.map_or(0.0, |beta| 1.0 / (tasks as f64 * beta));
        HyperPrior { xi: of_lambda + of_beta, sigma0_squared: self.sigma0_squared }
    }
}

/// The subset S' of each task that the base learner sees in training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubsetConfig {
    /// m'.
    pub size: SubsetSize,
    /// Where the posterior of S' is judged.
    pub split: SubsetRule,
    /// When S' is drawn. Not known for a table without the key until its tasks are: see [`SubsetConfig::resolved`].
    pub resample: Option<Resample>,
}

/// Reptile's search for q*.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProximalConfig {
    /// sigma^2.
    pub sigma_squared: f64,
    /// Which optimiser.
    pub optimiser: InnerOptimiser,
}

/// The optimiser of Reptile's search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum InnerOptimiser {
    /// [`Lbfgs::PAPER`].
    #[default]
    Paper,
    /// [`Lbfgs::CONVERGED`].
    Converged,
}

impl InnerOptimiser {
    /// The optimiser's numbers.
    pub fn settings(self) -> Lbfgs {
        match self {
            Self::Paper => Lbfgs::PAPER,
            Self::Converged => Lbfgs::CONVERGED,
        }
    }
}

impl MethodConfig {
    pub(super) fn read_kind(section: Section<'_>) -> Result<MethodKind> {
        section.text("name")?.map_or(Ok(Pacmaml), |name| name.parse())
    }

    pub(super) fn read(section: Section<'_>, data: &DataConfig) -> Result<Self> {
        let kind = Self::read_kind(section)?;
        for &key in KEYS {
            let names: Vec<_> = users(key).iter().map(|kind| kind.name()).collect();
            if !uses(key, kind) {
                let why = format!("the method {kind} does not use it; it belongs to {}", names.join(", "));
                section.refuse(&[key], &why)?;
            }
        }
        let used = |key: &str| uses(key, kind);
        Ok(Self {
            kind,
            beta: used("beta").then(|| Temperature::read(section, kind)).transpose()?,
            alpha: used("alpha").then(|| AlphaChoice::read(section)).transpose()?,
            hyper_prior: HyperPriorConfig::read(section, kind)?,
            subset: used("subset").then(|| SubsetConfig::read(section, data)).transpose()?,
            target_temperature: section
                .choice("target_temperature", &["per_example", "fixed"])?
                .or_else(|| used("target_temperature").then(TargetTemperature::default)),
            inner: used("steps").then(|| read_inner(section, kind)).transpose()?,
            proximal: used("sigma_squared").then(|| ProximalConfig::read(section)).transpose()?,
        })
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![("name", Value::from(self.kind.name()))];
        entries.extend(self.beta.map(|beta| beta.entry()));
        entries.extend(self.alpha.map(|alpha| alpha.entry()));
        if let Some(hyper_prior) = &self.hyper_prior {
            entries.extend(hyper_prior.lambda.map(|lambda| ("lambda", Value::Float(lambda))));
            entries.push(("sigma0_squared", Value::Float(hyper_prior.sigma0_squared)));
        }
        if let Some(subset) = &self.subset {
            let size = match subset.size {
                SubsetSize::Count(count) => integer(count),
                SubsetSize::Fraction(fraction) => Value::Float(fraction),
            };
            entries.push(("subset", size));
            entries.push(("split", name_of(&subset.split)));
            entries.extend(subset.resample.map(|resample| ("resample", name_of(&resample))));
        }
        entries.extend(self.target_temperature.map(|rule| ("target_temperature", name_of(&rule))));
        if let Some(inner) = &self.inner {
            entries.push(("steps", integer(inner.steps)));
            entries.push(("rate", Value::Float(inner.rate)));
        }
        if let Some(proximal) = &self.proximal {
            entries.push(("sigma_squared", Value::Float(proximal.sigma_squared)));
            entries.push(("inner_optimiser", name_of(&proximal.optimiser)));
        }
        entries
    }
}

impl HyperPriorConfig {
    /// Without beta and lambda the weight xi would be 0: then there is no term, and its variance has no meaning.
    fn read(section: Section<'_>, kind: MethodKind) -> Result<Option<Self>> {
        let lambda = section.number("lambda", Domain::Positive)?;
        let sigma0_squared = section.number("sigma0_squared", Domain::Positive)?;
        if !uses("beta", kind) && lambda.is_none() {
            let why = format!("for the method {kind} it counts only together with `method.lambda`");
            section.refuse(&["sigma0_squared"], &why)?;
            return Ok(None);
        }
        Ok(Some(Self { sigma0_squared: sigma0_squared.unwrap_or(3.0), lambda }))
    }
}

impl SubsetConfig {
    fn read(section: Section<'_>, data: &DataConfig) -> Result<Self> {
        let split = section.choice("split", &["nested", "disjoint"])?.unwrap_or_default();
        let size = section.count_or_fraction("subset", 1, MOST)?;
        let default = if size.is_none() { " (the default, `data.support`)" } else { "" };
        let size = match size {
            None => SubsetSize::Count(data.support),
            Some(CountOrFraction::Count(count)) => SubsetSize::Count(count),
            Some(CountOrFraction::Fraction(fraction)) => SubsetSize::Fraction(fraction),
        };
        // The sizes of a table's tasks are known only once it is read.
        if let (SubsetSize::Count(count), DataSource::Synthetic(data)) = (size, &data.source) {
            let (room, hint) = match split {
                SubsetRule::Nested => (data.examples, ""),
                SubsetRule::Disjoint => (data.examples - 1, " (one must remain outside S')"),
            };
            if count > room {
                let message = format!(
                    "S' of {count} examples{default} does not fit into tasks of {} examples{hint}; lower it or raise \
                     `data.examples`",
                    data.examples
                );
                return Err(section.error("subset", message));
            }
        }
        let resample = section.choice("resample", &["each_iteration", "fixed"])?;
        // Drawn tasks mark no subsets, the tasks of a table may.
        let resample = resample.or_else(|| data.synthetic().map(|_| Resample::default()));
        Ok(Self { size, split, resample })
    }

    /// The same once the observed tasks are known: where nobody said when S' is drawn, subsets that tasks mark by `adapt` stay.
    #[must_use]
    pub fn resolved(self, observed: &[Task]) -> Self {
        let marked = observed.iter().any(|task| task.adapt().is_some());
        let default = if marked { Resample::Fixed } else { Resample::EachIteration };
        Self { resample: Some(self.resample.unwrap_or(default)), ..self }
    }
}

impl ProximalConfig {
    fn read(section: Section<'_>) -> Result<Self> {
        Ok(Self {
            sigma_squared: section.number("sigma_squared", Domain::Positive)?.unwrap_or(1.0),
            optimiser: section.choice("inner_optimiser", &["paper", "converged"])?.unwrap_or_default(),
        })
    }
}

fn read_inner(section: Section<'_>, kind: MethodKind) -> Result<InnerSteps> {
    let default = if kind == MultiTask { 0 } else { 5 };
    Ok(InnerSteps {
        steps: section.count("steps", 0..=InnerSteps::MOST)?.unwrap_or(default),
        rate: section.number("rate", Domain::Positive)?.unwrap_or(0.01),
    })
}
