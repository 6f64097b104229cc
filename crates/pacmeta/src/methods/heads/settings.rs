//! The registry of methods on heads: the settings of each, and how to build it.

use pacmeta_tensor::Element;
use serde::{Deserialize, Serialize};

use super::{Bmaml, Fomaml, HeadMethod, Maml, MultiTask, Pacmaml, Pacoh, PacohEstimator, Reptile};
use crate::error::{Error, Result};
use crate::learners::head::steps::{Adaptation, Gibbs, HeadSteps, InnerOptimiser, Sampler};
use crate::learners::head::{Examples, HeadShape};
use crate::methods::SubsetRule;

/// A base learner that samples a Gibbs posterior over heads.
#[derive(Debug, Clone, PartialEq)]
pub struct GibbsLearner {
    /// The inner steps.
    pub inner: HeadSteps,
    /// The variance of the prior N(p, sigma^2).
    pub sigma_squared: f64,
    /// The temperature on S', and on the support of a new task.
    pub alpha: f64,
    /// The temperature on S; without one, alpha m/m'.
    pub beta: Option<f64>,
    /// One particle or several.
    pub sampler: Sampler,
}

impl GibbsLearner {
    /// beta for m examples in S and m' in S'.
    pub fn beta(&self, (examples, subset): (usize, usize)) -> f64 {
        self.beta.unwrap_or(self.alpha * examples as f64 / subset as f64)
    }

    /// The adaptation to examples at a temperature.
    pub(super) fn at<'a, E>(
        &'a self,
        method: &'static str,
        (head, shape): (&'a [E], HeadShape),
        examples: Examples<'a, E>,
        temperature: f64,
    ) -> Adaptation<'a, E> {
        let gibbs = Gibbs { temperature, sigma_squared: self.sigma_squared };
        Adaptation { method, shape, head, examples, gibbs, inner: &self.inner, sampler: self.sampler }
    }

    /// Checks numbers that come from a file.
    ///
    /// # Errors
    /// An error that names the key.
    pub fn check(&self) -> Result<()> {
        self.inner.check()?;
        let positive = |key: &str, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Error::config(key, format!("it is {value}, expected a positive number"))),
        };
        positive("alpha", self.alpha)?;
        self.beta.map_or(Ok(()), |beta| positive("beta", beta))?;
        positive("sigma_squared", self.sigma_squared)?;
        let particles = self.sampler.particles();
        if particles == 0 || particles > Sampler::MOST {
            return Err(Error::config(
                "sampler.particles",
                format!("it is {particles}, expected 1 to {}", Sampler::MOST),
            ));
        }
        if matches!(self.sampler, Sampler::Sgld { .. }) && self.inner.optimiser != InnerOptimiser::Gd {
            return Err(Error::config(
                "inner.optimiser",
                "Langevin steps need \"gd\": other step sizes change what is sampled",
            ));
        }
        Ok(())
    }
}

fn one() -> f64 {
    1.0
}

/// A method with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum HeadMethodSettings {
    /// One head for all tasks.
    MultiTask {
        /// How a new task is adapted to; training takes no steps.
        inner: HeadSteps,
    },
    /// First-order MAML.
    Fomaml {
        /// The inner steps.
        inner: HeadSteps,
        /// What q is judged on.
        #[serde(default)]
        split: SubsetRule,
    },
    /// MAML, exact.
    Maml {
        /// The inner steps.
        inner: HeadSteps,
        /// What q is judged on.
        #[serde(default)]
        split: SubsetRule,
    },
    /// Reptile with nearly optimal q.
    Reptile {
        /// The steps on the proximal objective.
        inner: HeadSteps,
        /// The temperature for m' examples.
        alpha: f64,
        /// The temperature for m examples; without one, alpha m/m'.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beta: Option<f64>,
        /// The variance of the prior.
        #[serde(default = "one")]
        sigma_squared: f64,
    },
    /// Bayesian MAML with a chaser and a leader.
    Bmaml {
        /// The inner steps of both.
        inner: HeadSteps,
        /// The chaser's temperature on S'.
        alpha: f64,
        /// The leader's temperature on S; without one, alpha m/m'.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beta: Option<f64>,
        /// The variance of the prior.
        #[serde(default = "one")]
        sigma_squared: f64,
        /// One particle or several.
        #[serde(default)]
        sampler: Sampler,
        /// What the leader sees.
        #[serde(default)]
        split: SubsetRule,
    },
    /// PACOH.
    Pacoh {
        /// The inner steps.
        inner: HeadSteps,
        /// The temperature for m' examples, used on the support of a new task.
        alpha: f64,
        /// The temperature on S; without one, alpha m/m'.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beta: Option<f64>,
        /// The variance of the prior.
        #[serde(default = "one")]
        sigma_squared: f64,
        /// One particle or several.
        #[serde(default)]
        sampler: Sampler,
        /// Posterior samples, or PACOH's original estimator.
        #[serde(default)]
        estimator: PacohEstimator,
    },
    /// PACMAML.
    Pacmaml {
        /// The inner steps.
        inner: HeadSteps,
        /// The temperature on S'.
        alpha: f64,
        /// The temperature on S; without one, alpha m/m'.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beta: Option<f64>,
        /// The variance of the prior.
        #[serde(default = "one")]
        sigma_squared: f64,
        /// One particle or several.
        #[serde(default)]
        sampler: Sampler,
        /// What is S.
        #[serde(default)]
        split: SubsetRule,
    },
}

impl HeadMethodSettings {
    /// The names of all methods.
    pub const NAMES: [&'static str; 7] =
        ["multi-task", "fomaml", "maml", "reptile", "bmaml", "pacoh", "pacmaml"];

    /// Builds the method.
    ///
    /// # Errors
    /// When a number is out of range; the error names its key.
    pub fn build<E: Element>(&self) -> Result<Box<dyn HeadMethod<E>>> {
        let gibbs =
            |inner: &HeadSteps, alpha: f64, beta: Option<f64>, sigma_squared: f64, sampler: Sampler| {
                let learner = GibbsLearner { inner: *inner, sigma_squared, alpha, beta, sampler };
                learner.check().map(|()| learner)
            };
        Ok(match self {
            Self::MultiTask { inner } => {
                inner.check()?;
                Box::new(MultiTask { inner: *inner })
            }
            Self::Fomaml { inner, split } => {
                inner.check()?;
                Box::new(Fomaml { inner: *inner, split: *split })
            }
            Self::Maml { inner, split } => {
                inner.check()?;
                inner.check_differentiable()?;
                Box::new(Maml { inner: *inner, split: *split })
            }
            Self::Reptile { inner, alpha, beta, sigma_squared } => {
                Box::new(Reptile { learner: gibbs(inner, *alpha, *beta, *sigma_squared, Sampler::Steps)? })
            }
            Self::Bmaml { inner, alpha, beta, sigma_squared, sampler, split } => {
                inner.check_differentiable()?;
                let learner = gibbs(inner, *alpha, *beta, *sigma_squared, *sampler)?;
                Box::new(Bmaml { learner, split: *split })
            }
            Self::Pacoh { inner, alpha, beta, sigma_squared, sampler, estimator } => {
                estimator.check()?;
                let learner = gibbs(inner, *alpha, *beta, *sigma_squared, *sampler)?;
                Box::new(Pacoh { learner, estimator: *estimator })
            }
            Self::Pacmaml { inner, alpha, beta, sigma_squared, sampler, split } => {
                let learner = gibbs(inner, *alpha, *beta, *sigma_squared, *sampler)?;
                Box::new(Pacmaml { learner, split: *split })
            }
        })
    }
}
