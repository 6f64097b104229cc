//! The registry of methods: the settings of each, and how to build it on a prior.

use serde::{Deserialize, Serialize};

use super::{Fomaml, Maml, Method, MultiTask, Pacmaml, Pacoh, PacohMap, Reptile};
use crate::error::{Error, Result};
use crate::learners::lbfgs::Lbfgs;
use crate::learners::{InnerSteps, Proximal};
use crate::priors::PriorSpec;

/// A method with its numbers, as stored in checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MethodSettings {
    /// PACOH with Gibbs posteriors at temperature beta.
    Pacoh {
        /// The temperature.
        beta: f64,
    },
    /// PACOH's own recipe: marginal likelihood with learned noise.
    PacohMap,
    /// PACMAML.
    Pacmaml {
        /// The base learner's temperature on S'.
        alpha: f64,
        /// The bound's temperature.
        beta: f64,
    },
    /// One network for all tasks.
    MultiTask,
    /// First-order MAML.
    Fomaml {
        /// The base learner's steps.
        inner: InnerSteps,
    },
    /// MAML, exact.
    Maml {
        /// The base learner's steps.
        inner: InnerSteps,
    },
    /// Reptile with optimal q.
    Reptile {
        /// beta sigma^2.
        beta_sigma_squared: f64,
        /// The search for q*.
        optimiser: Lbfgs,
    },
}

impl MethodSettings {
    /// The names of all methods.
    pub const NAMES: [&'static str; 7] =
        ["pacmaml", "pacoh", "pacoh-map", "maml", "fomaml", "reptile", "multi-task"];

    /// Builds the method on a prior.
    ///
    /// # Errors
    /// When the prior is not of the kind that the method learns.
    pub fn build(&self, prior: &PriorSpec) -> Result<Box<dyn Method>> {
        Ok(match (self, prior) {
            (Self::Pacoh { beta }, PriorSpec::GaussianProcess(spec)) => {
                Box::new(Pacoh { beta: *beta }.on(spec))
            }
            (Self::PacohMap, PriorSpec::GaussianProcess(spec)) => Box::new(PacohMap.on(spec)?),
            (Self::Pacmaml { alpha, beta }, PriorSpec::GaussianProcess(spec)) => {
                Box::new(Pacmaml { alpha: *alpha, beta: *beta }.on(spec))
            }
            (Self::MultiTask, PriorSpec::Network(spec)) => Box::new(MultiTask::new(spec)),
            (Self::Fomaml { inner }, PriorSpec::Network(spec)) => Box::new(Fomaml::new(spec, *inner)),
            (Self::Maml { inner }, PriorSpec::Network(spec)) => Box::new(Maml::new(spec, *inner)),
            (Self::Reptile { beta_sigma_squared, optimiser }, PriorSpec::Network(spec)) => {
                let proximal = Proximal { beta_sigma_squared: *beta_sigma_squared, optimiser: *optimiser };
                Box::new(Reptile::new(spec, proximal))
            }
            _ => {
                return Err(Error::config(
                    "method.name",
                    "this method does not learn this kind of prior: pacoh, pacmaml and pacoh-map learn a Gaussian \
                     process, the others a network",
                ));
            }
        })
    }

    /// beta, where the method has one.
    pub fn beta(&self) -> Option<f64> {
        match self {
            Self::Pacoh { beta } | Self::Pacmaml { beta, .. } => Some(*beta),
            _ => None,
        }
    }
}
