//! Risks of priors drawn from the hyper-prior: what the first form of Theorem 3's gap is made of.
//!
//! The draws are kept, not the gap: then it can be had at any lambda, with its Monte-Carlo error.

use pacmeta_bounds::{HyperPriorGap, RiskPair};
use pacmeta_tensor::{Key, Parameters};
use serde::{Deserialize, Serialize};

use super::model::{meta_training_set, standardisation_of};
use super::spec::SUPPORT;
use crate::bounds::gap::{GapSettings, risk_pairs};
use crate::environments::Sinusoid;
use crate::error::Result;
use crate::learners::TargetTemperature;
use crate::model::Model;
use crate::priors::{GaussianProcessSpec, PriorSpec};

/// sigma0^2 of the paper's hyper-prior.
pub const SIGMA0_SQUARED: f64 = 3.0;
const TASKS_PER_DRAW: usize = 20;
const FRESH_EXAMPLES: usize = 50;

/// R(P, T) and R(P, T~) of each prior, in squared standardised units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapDraws {
    /// Target and observed risk.
    pub risks: Vec<(f64, f64)>,
}

impl GapDraws {
    /// The gap at lambda.
    ///
    /// # Errors
    /// When lambda is not positive.
    pub fn at(&self, lambda: f64) -> Result<HyperPriorGap> {
        let pairs: Vec<RiskPair> =
            self.risks.iter().map(|&(target, observed)| RiskPair { target, observed }).collect();
        Ok(HyperPriorGap::from_draws(lambda, &pairs)?)
    }
}

/// Draws priors and measures their risks with m = 5 and with m_i examples, at the same temperature per example. The data
/// are standardised as in the first meta-training set.
pub(super) fn draw(examples: usize, beta_per_example: f64, draws: usize) -> Result<GapDraws> {
    let spec = PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1));
    let parameters = Parameters::zeros(spec.layout()?.into());
    let centre = parameters.values().to_vec();
    let standardisation = standardisation_of(&meta_training_set(0, examples)?)?;
    let model = Model::new(spec, parameters).with_standardisation(standardisation);
    let settings = GapSettings {
        target_examples: SUPPORT,
        observed_examples: examples,
        beta: beta_per_example * examples as f64,
        rule: TargetTemperature::PerExample,
        draws,
        tasks_per_draw: TASKS_PER_DRAW,
        fresh_examples: FRESH_EXAMPLES,
        key: Key::new(0).named("sinusoid study"),
    };
    let pairs = risk_pairs(&Sinusoid, &model, &centre, SIGMA0_SQUARED, &settings, "hyper-prior")?;
    Ok(GapDraws { risks: pairs.iter().map(|pair| (pair.target, pair.observed)).collect() })
}
