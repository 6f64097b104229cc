//! Reptile with (nearly) optimal q: q* ~ argmin_q L^(q, S) + |p - q|^2/(2 beta sigma^2); meta-gradient
//! (p - q*)/(beta sigma^2), which is grad L^(q*, S) when q* is optimal.

use super::{Batch, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::Proximal;
use crate::learners::squared_loss::SquaredLoss;
use crate::priors::NetworkSpec;

/// Reptile.
#[derive(Debug, Clone)]
pub struct Reptile {
    proximal: Proximal,
    loss: SquaredLoss,
    optimum: Vec<f64>,
}

impl Reptile {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec, proximal: Proximal) -> Self {
        Self { proximal, loss: SquaredLoss::new(&spec.widths()), optimum: Vec::new() }
    }
}

impl Method for Reptile {
    fn name(&self) -> &'static str {
        "reptile"
    }

    fn uses_subset(&self) -> bool {
        false
    }

    fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms> {
        let weight = 1.0 / batch.members.len() as f64;
        let pull = weight / self.proximal.beta_sigma_squared;
        let mut terms = ObjectiveTerms::default();
        for (_, task) in batch.iter() {
            self.optimum.clear();
            self.optimum.extend_from_slice(parameters);
            terms.risk += weight
                * self.proximal.minimise(&mut self.loss, parameters, task.examples(), &mut self.optimum);
            for ((sum, p), q) in gradient.iter_mut().zip(parameters).zip(&self.optimum) {
                *sum += pull * (p - q);
                terms.divergence += 0.5 * pull * (p - q) * (p - q);
            }
        }
        terms.objective = terms.risk + terms.divergence;
        Ok(terms)
    }
}
