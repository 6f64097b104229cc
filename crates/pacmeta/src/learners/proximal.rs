//! The proximal optimum as a base learner: q* ~ argmin_q L^(q, S) + |p - q|^2/(2 beta sigma^2).

use serde::{Deserialize, Serialize};

use super::lbfgs::Lbfgs;
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
        let pull = 1.0 / self.beta_sigma_squared;
        self.optimiser.minimise(q, |q, gradient| {
            let risk = loss.add_gradient(q, examples, 1.0, gradient);
            let mut distance = 0.0;
            for ((q, p), gradient) in q.iter().zip(p).zip(gradient.iter_mut()) {
                let difference = q - p;
                distance += difference * difference;
                *gradient += pull * difference;
            }
            risk + 0.5 * pull * distance
        });
        let mut unused = vec![0.0; q.len()];
        loss.add_gradient(q, examples, 1.0, &mut unused)
    }
}
