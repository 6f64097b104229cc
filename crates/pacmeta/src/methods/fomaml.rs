//! First-order MAML: q = K plain steps on S' from p; the gradient of L^(q, S) at q is applied to p.

use super::after_steps::AfterSteps;
use super::{Batch, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::InnerSteps;
use crate::learners::squared_loss::Order;
use crate::priors::NetworkSpec;

/// First-order MAML.
#[derive(Debug, Clone)]
pub struct Fomaml(AfterSteps);

impl Fomaml {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec, inner: InnerSteps) -> Self {
        Self(AfterSteps::new(spec, inner, Order::First))
    }
}

impl Method for Fomaml {
    fn name(&self) -> &'static str {
        "fomaml"
    }

    fn uses_subset(&self) -> bool {
        true
    }

    fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms> {
        self.0.meta_gradient(parameters, batch, gradient)
    }
}
