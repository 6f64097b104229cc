//! Temperatures as people write them, and as numbers once the tasks are known.

use toml::Value;

use super::method::MethodKind;
use super::section::{Domain, Entry, Section};
use crate::error::Result;

/// beta, as configured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Temperature {
    /// To be chosen by leaving tasks out.
    Auto,
    /// The number itself.
    Value(f64),
    /// This times the harmonic mean of the m_i.
    PerExample(f64),
}

/// alpha, as configured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AlphaChoice {
    /// To be chosen by leaving tasks out.
    Auto,
    /// The number itself.
    Value(f64),
    /// This times beta.
    OverBeta(f64),
}

impl Temperature {
    pub(super) fn read(section: Section<'_>, kind: MethodKind) -> Result<Self> {
        let beta = section.number_or_auto("beta")?;
        let per_example = section.number("beta_per_example", Domain::Positive)?;
        let default = match kind {
            MethodKind::Reptile => Self::PerExample(100.0),
            _ => Self::Auto,
        };
        match (beta, per_example) {
            (Some(_), Some(_)) => {
                Err(section.error("beta_per_example", "`method.beta` is given too; remove one of them"))
            }
            (Some(None), None) if kind == MethodKind::Reptile => {
                let message = "only pacmaml and pacoh choose it by themselves; give reptile a number above 0";
                Err(section.error("beta", message))
            }
            (Some(None), None) => Ok(Self::Auto),
            (Some(Some(value)), None) => Ok(Self::Value(value)),
            (None, Some(value)) => Ok(Self::PerExample(value)),
            (None, None) => Ok(default),
        }
    }

    pub(super) fn entry(self) -> Entry {
        match self {
            Self::Auto => ("beta", Value::from("auto")),
            Self::Value(value) => ("beta", Value::Float(value)),
            Self::PerExample(value) => ("beta_per_example", Value::Float(value)),
        }
    }

    /// beta for tasks of these sizes; none for [`Temperature::Auto`].
    pub fn resolve(self, sizes: impl IntoIterator<Item = usize>) -> Option<f64> {
        match self {
            Self::Auto => None,
            Self::Value(value) => Some(value),
            Self::PerExample(value) => Some(value * harmonic_mean(sizes)),
        }
    }
}

impl AlphaChoice {
    pub(super) fn read(section: Section<'_>) -> Result<Self> {
        let alpha = section.number_or_auto("alpha")?;
        let over_beta = section.number("alpha_over_beta", Domain::Positive)?;
        match (alpha, over_beta) {
            (Some(_), Some(_)) => {
                Err(section.error("alpha_over_beta", "`method.alpha` is given too; remove one of them"))
            }
            (Some(Some(value)), None) => Ok(Self::Value(value)),
            (None, Some(value)) => Ok(Self::OverBeta(value)),
            (Some(None) | None, None) => Ok(Self::Auto),
        }
    }

    pub(super) fn entry(self) -> Entry {
        match self {
            Self::Auto => ("alpha", Value::from("auto")),
            Self::Value(value) => ("alpha", Value::Float(value)),
            Self::OverBeta(value) => ("alpha_over_beta", Value::Float(value)),
        }
    }

    /// alpha for this beta; none for [`AlphaChoice::Auto`].
    pub fn resolve(self, beta: f64) -> Option<f64> {
        match self {
            Self::Auto => None,
            Self::Value(value) => Some(value),
            Self::OverBeta(value) => Some(value * beta),
        }
    }
}

/// n / sum 1/m_i, which makes the mean of beta/m_i the temperature per example; 0 without sizes.
pub fn harmonic_mean(sizes: impl IntoIterator<Item = usize>) -> f64 {
    let (mut count, mut sum) = (0.0, 0.0);
    for size in sizes {
        count += 1.0;
        sum += 1.0 / size as f64;
    }
    if count == 0.0 { 0.0 } else { count / sum }
}
