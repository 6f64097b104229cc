//! `[bound]`: how sure the bound is, and what it may assume of the loss.

use pacmeta_bounds::Psi;
use serde::Deserialize;
use toml::Value;

use super::data::DataConfig;
use super::section::{Domain, Entry, Section};
use crate::error::Result;

pub(super) const KEYS: &[&str] =
    &["delta", "hyper_posterior_std", "assumption", "a", "b", "variance", "scale", "second_moment"];

/// The confidence of a bound, and the assumption behind its cumulant terms.
///
/// | key of `[bound]` | default | purpose | range |
/// |---|---|---|---|
/// | `delta` | 0.05 | the bound holds with probability at least 1 - delta | above 0, below 1 |
/// | `hyper_posterior_std` | 0.05 | deviation of the hyper-posterior, a Gaussian around the learned prior | above 0 |
/// | `assumption` | `"simulated"` for tasks that are drawn, `"none"` for tables | what is known of the loss, see [`Assumption`] | `"none"`, `"simulated"`, `"bounded"`, `"sub-gaussian"`, `"sub-gamma"`, `"non-negative"` |
/// | `a`, `b` | needed by bounded | smallest and largest possible loss | a < b |
/// | `variance` | needed by sub-gaussian and sub-gamma | s^2 | at least 0 |
/// | `scale` | needed by sub-gamma | c | at least 0 |
/// | `second_moment` | needed by non-negative | a bound on E\[l^2\] | above 0 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundConfig {
    /// The probability of failure.
    pub delta: f64,
    /// s, the standard deviation of the hyper-posterior N(theta, s^2 I).
    pub hyper_posterior_std: f64,
    /// What is known of the loss.
    pub assumption: Assumption,
}

/// What is known of the loss of every hypothesis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Assumption {
    /// Nothing: the bound is left open.
    None,
    /// Nothing, but tasks can be drawn: the cumulant terms are simulated, which makes the bound an estimate.
    Simulated,
    /// It lies in [a, b].
    Bounded {
        /// Smallest possible loss.
        a: f64,
        /// Largest possible loss.
        b: f64,
    },
    /// Its lower tail is sub-Gaussian.
    SubGaussian {
        /// s^2.
        variance: f64,
    },
    /// Its lower tail is sub-gamma.
    SubGamma {
        /// s^2.
        variance: f64,
        /// c.
        scale: f64,
    },
    /// It is not negative, and its second moment is bounded.
    NonNegative {
        /// The bound on E\[l^2\].
        second_moment: f64,
    },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    None,
    Simulated,
    Bounded,
    SubGaussian,
    SubGamma,
    NonNegative,
}

const NAMES: &[&str] = &["none", "simulated", "bounded", "sub-gaussian", "sub-gamma", "non-negative"];

impl Assumption {
    /// The cumulant bound psi that follows, if any.
    pub fn psi(&self) -> Option<Psi> {
        match *self {
            Self::None | Self::Simulated => None,
            Self::Bounded { a, b } => Some(Psi::Bounded { low: a, high: b }),
            Self::SubGaussian { variance } => Some(Psi::SubGaussian { variance }),
            Self::SubGamma { variance, scale } => Some(Psi::SubGamma { variance, scale }),
            Self::NonNegative { second_moment } => Some(Psi::NonNegative { second_moment }),
        }
    }

    /// The name in configurations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Simulated => "simulated",
            Self::Bounded { .. } => "bounded",
            Self::SubGaussian { .. } => "sub-gaussian",
            Self::SubGamma { .. } => "sub-gamma",
            Self::NonNegative { .. } => "non-negative",
        }
    }

    fn read(section: Section<'_>, data: &DataConfig) -> Result<Self> {
        let drawn = data.synthetic().is_some();
        let default = if drawn { Kind::Simulated } else { Kind::None };
        let kind = section.choice("assumption", NAMES)?.unwrap_or(default);
        let needed = |key, domain| {
            section
                .number(key, domain)?
                .ok_or_else(|| section.error(key, "expected a number: `bound.assumption` needs it"))
        };
        let assumption = match kind {
            Kind::None => Self::None,
            Kind::Simulated if !drawn => {
                let message = "a table cannot be simulated, only tasks that are drawn can (environments sinusoid, cauchy, \
                               gp-draws); state an assumption instead, e.g. \"non-negative\" with `bound.second_moment`";
                return Err(section.error("assumption", message));
            }
            Kind::Simulated => Self::Simulated,
            Kind::Bounded => {
                let (a, b) = (needed("a", Domain::Finite)?, needed("b", Domain::Finite)?);
                if a >= b {
                    return Err(
                        section.error("b", format!("expected a number above `bound.a` = {a}, found {b}"))
                    );
                }
                Self::Bounded { a, b }
            }
            Kind::SubGaussian => Self::SubGaussian { variance: needed("variance", Domain::NonNegative)? },
            Kind::SubGamma => Self::SubGamma {
                variance: needed("variance", Domain::NonNegative)?,
                scale: needed("scale", Domain::NonNegative)?,
            },
            Kind::NonNegative => {
                Self::NonNegative { second_moment: needed("second_moment", Domain::Positive)? }
            }
        };
        let used: Vec<_> = assumption.numbers().into_iter().map(|(key, _)| key).collect();
        for (key, owners) in [
            ("a", "bounded"),
            ("b", "bounded"),
            ("variance", "sub-gaussian and sub-gamma"),
            ("scale", "sub-gamma"),
            ("second_moment", "non-negative"),
        ] {
            if !used.contains(&key) {
                let name = assumption.name();
                let why = format!("it belongs to the assumption {owners}; `bound.assumption` is \"{name}\"");
                section.refuse(&[key], &why)?;
            }
        }
        Ok(assumption)
    }

    fn numbers(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Self::None | Self::Simulated => vec![],
            Self::Bounded { a, b } => vec![("a", a), ("b", b)],
            Self::SubGaussian { variance } => vec![("variance", variance)],
            Self::SubGamma { variance, scale } => vec![("variance", variance), ("scale", scale)],
            Self::NonNegative { second_moment } => vec![("second_moment", second_moment)],
        }
    }
}

impl BoundConfig {
    pub(super) fn read(section: Section<'_>, data: &DataConfig) -> Result<Self> {
        Ok(Self {
            delta: section.number("delta", Domain::Probability)?.unwrap_or(0.05),
            hyper_posterior_std: section.number("hyper_posterior_std", Domain::Positive)?.unwrap_or(0.05),
            assumption: Assumption::read(section, data)?,
        })
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![
            ("delta", Value::Float(self.delta)),
            ("hyper_posterior_std", Value::Float(self.hyper_posterior_std)),
            ("assumption", Value::from(self.assumption.name())),
        ];
        entries
            .extend(self.assumption.numbers().into_iter().map(|(key, number)| (key, Value::Float(number))));
        entries
    }
}
