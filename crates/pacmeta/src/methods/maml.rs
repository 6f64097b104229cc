//! MAML: q = K plain steps on S' from p; the exact derivative of L^(q_K(p), S), second order through every step.

use super::after_steps::AfterSteps;
use super::{Batch, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::InnerSteps;
use crate::learners::squared_loss::Order;
use crate::priors::NetworkSpec;

/// MAML with its exact meta-gradient.
#[derive(Debug, Clone)]
pub struct Maml(AfterSteps);

impl Maml {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec, inner: InnerSteps) -> Self {
        Self(AfterSteps::new(spec, inner, Order::Exact))
    }
}

impl Method for Maml {
    fn name(&self) -> &'static str {
        "maml"
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
