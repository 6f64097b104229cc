//! Base learners: from a prior and a small data set to a posterior.

mod adapted;
pub(crate) mod flat;
pub mod gibbs_gp;
pub mod head;
pub mod lbfgs;
pub mod network;
mod proximal;
pub mod squared_loss;
mod steps;

pub use adapted::{Adapted, Predictive};
pub use proximal::Proximal;
pub use steps::InnerSteps;

use serde::{Deserialize, Serialize};

/// How a temperature chosen for m examples carries over to a support of another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum TargetTemperature {
    /// The same temperature per example: the noise variance stays m/(2 temperature).
    #[default]
    PerExample,
    /// The same temperature: the noise variance is (support size)/(2 temperature).
    Fixed,
}

/// What happens to a prior when a support set arrives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", expecting = "an object with `kind` and its numbers")]
#[non_exhaustive]
pub enum Learner {
    /// The Gibbs posterior of a Gaussian process.
    Gibbs {
        /// The temperature.
        temperature: f64,
        /// The number of examples it was chosen for (the harmonic mean of several).
        examples: f64,
        /// What it means for other numbers.
        rule: TargetTemperature,
    },
    /// The posterior of a Gaussian process with its learned noise.
    LearnedNoise,
    /// Plain gradient steps on the network; predictions have a constant noise variance.
    Steps {
        /// The steps.
        inner: InnerSteps,
        /// The noise variance of predictions, in standardised units.
        noise_variance: f64,
    },
    /// Reptile's proximal optimum; predictions have a constant noise variance.
    Proximal {
        /// The search.
        #[serde(flatten)]
        proximal: Proximal,
        /// The noise variance of predictions, in standardised units.
        noise_variance: f64,
    },
}

impl Learner {
    /// Checks numbers that come from a file.
    ///
    /// # Errors
    /// A message about the first number out of range.
    pub fn check(&self) -> std::result::Result<(), String> {
        let positive = |name: &str, value: f64| {
            (value.is_finite() && value > 0.0)
                .then_some(())
                .ok_or_else(|| format!("`{name}` is {value}, expected a positive number"))
        };
        match self {
            Self::Gibbs { temperature, examples, .. } => {
                positive("temperature", *temperature)?;
                positive("examples", *examples)
            }
            Self::LearnedNoise => Ok(()),
            Self::Steps { inner, noise_variance } => {
                if !inner.rate.is_finite() || inner.rate < 0.0 || inner.steps > InnerSteps::MOST {
                    return Err(format!(
                        "`inner` is out of range: expected at most {} steps at a rate from 0",
                        InnerSteps::MOST
                    ));
                }
                positive("noise_variance", *noise_variance)
            }
            Self::Proximal { proximal, noise_variance } => {
                positive("beta_sigma_squared", proximal.beta_sigma_squared)?;
                proximal.optimiser.check()?;
                positive("noise_variance", *noise_variance)
            }
        }
    }

    /// The noise variance of a Gibbs learner for a support of this size.
    pub(crate) fn gibbs_noise(
        temperature: f64,
        examples: f64,
        rule: TargetTemperature,
        support: usize,
    ) -> f64 {
        let examples = match rule {
            TargetTemperature::PerExample => examples,
            TargetTemperature::Fixed => support as f64,
        };
        examples / (2.0 * temperature)
    }
}
