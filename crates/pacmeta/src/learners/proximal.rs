//! The proximal optimum as a base learner: q* ~ argmin_q L^(q, S) + |p - q|^2/(2 beta sigma^2).

use serde::{Deserialize, Serialize};

use super::flat::add_pull;
use super::lbfgs::{Buffers, Lbfgs};
use super::squared_loss::{Examples, SquaredLoss};

/// The search for q*.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proximal {
    /// beta sigma^2, the weight of closeness to p.
    pub beta_sigma_squared: f64,
    /// The optimiser.
    pub optimiser: Lbfgs,
}

impl Proximal {
    /// Moves `q`, which starts at p, towards q*; returns L^(q, S).
    pub fn minimise(&self, loss: &mut SquaredLoss, p: &[f64], examples: Examples<'_>, q: &mut [f64]) -> f64 {
        self.minimise_in(&mut Buffers::default(), loss, p, examples, q)
    }

    /// The same with buffers that serve many searches.
    pub(crate) fn minimise_in(
        &self,
        buffers: &mut Buffers,
        loss: &mut SquaredLoss,
        p: &[f64],
        examples: Examples<'_>,
        q: &mut [f64],
    ) -> f64 {
        let pull = 1.0 / self.beta_sigma_squared;
        self.optimiser.search(buffers, q, |q, gradient| {
            let risk = loss.add_gradient(q, examples, 1.0, gradient);
            risk + 0.5 * pull * add_pull(gradient, pull, q, p)
        });
        loss.loss(q, examples)
    }
}
