//! Floors: what is reached without meta-learning, so that people see whether it helped.

use super::{PlainGp, Predictor, Scores, evaluate};
use crate::error::Result;
use crate::learners::{InnerSteps, Learner, Predictive};
use crate::model::Model;
use crate::priors::{NetworkSpec, PriorSpec};
use crate::task::Task;

/// A way to predict that meta-learning should beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// A Gaussian process fitted to the support alone.
    PlainGp,
    /// The learned prior's mean, without adaptation.
    PriorMean,
}

impl Floor {
    /// A name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlainGp => "plain GP, support only",
            Self::PriorMean => "prior mean, not adapted",
        }
    }
}

/// Scores a floor on the same tasks as a model.
///
/// # Errors
/// When a task states no support or a factorisation fails.
pub fn floor_scores(floor: Floor, model: &Model, tasks: &[Task]) -> Result<Scores> {
    match floor {
        Floor::PlainGp => evaluate(&PlainGp, tasks),
        Floor::PriorMean => evaluate(&PriorMean::of(model)?, tasks),
    }
}

/// The prior's mean function; its predictive spread is the spread of the support around it.
struct PriorMean {
    network: Model,
}

impl PriorMean {
    fn of(model: &Model) -> Result<Self> {
        let hidden = match model.spec() {
            PriorSpec::GaussianProcess(spec) => spec.mean_hidden.clone(),
            PriorSpec::Network(spec) => spec.hidden.clone(),
        };
        let spec = PriorSpec::Network(NetworkSpec { dimension: model.spec().dimension(), hidden });
        let layout = spec.layout()?;
        // The mean network's tensors come first in every layout.
        let values = model.parameters().values()[..layout.len()].to_vec();
        let parameters = pacmeta_tensor::Parameters::from_values(layout.into(), values)?;
        let inner = InnerSteps { steps: 0, rate: 0.0 };
        let network =
            Model::new(spec, parameters).with_learner(Learner::Steps { inner, noise_variance: 1.0 });
        Ok(Self {
            network: match model.standardisation() {
                Some(standardisation) => network.with_standardisation(standardisation.clone()),
                None => network,
            },
        })
    }
}

impl Predictor for PriorMean {
    fn predict(&self, support: &Task, query: &Task) -> Result<(Predictive, f64)> {
        let adapted = self.network.adapt(support)?;
        let own = adapted.predict(support.inputs())?;
        let squares: f64 = support.targets().iter().zip(&own.mean).map(|(y, f)| (y - f) * (y - f)).sum();
        // A support that is met exactly must not make the log-likelihood infinite.
        let scale = self.network.standardisation().map_or(1.0, |standardisation| standardisation.y_std());
        let variance = (squares / support.len() as f64).max(1e-12 * scale * scale);
        let mean = adapted.predict(query.inputs())?.mean;
        let squares: f64 = query.targets().iter().zip(&mean).map(|(y, f)| (y - f) * (y - f)).sum();
        let log_density =
            -0.5 * (squares / variance + mean.len() as f64 * (std::f64::consts::TAU * variance).ln());
        let std = vec![variance.sqrt(); mean.len()];
        Ok((Predictive { mean, std }, log_density))
    }
}
