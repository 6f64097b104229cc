//! Plain gradient steps as a base learner: q_(k+1) = q_k - rate * grad L^(q_k, S'), K times from p.

use serde::{Deserialize, Serialize};

/// Plain gradient steps of a base learner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InnerSteps {
    /// K.
    pub steps: usize,
    /// The rate of each step.
    pub rate: f64,
}

impl InnerSteps {
    /// The most steps: MAML keeps the parameters after each.
    pub const MOST: usize = 10_000;
}
