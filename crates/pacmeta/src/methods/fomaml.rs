//! First-order MAML: q = K plain steps on S' from p; the gradient of L^(q, S) at q is applied to p.

use super::{Batch, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::InnerSteps;
use crate::learners::squared_loss::SquaredLoss;
use crate::methods::maml::split;
use crate::priors::NetworkSpec;

/// First-order MAML.
#[derive(Debug, Clone)]
pub struct Fomaml {
    inner: InnerSteps,
    loss: SquaredLoss,
    path: Vec<f64>,
}

impl Fomaml {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec, inner: InnerSteps) -> Self {
        Self { inner, loss: SquaredLoss::new(&spec.widths()), path: Vec::new() }
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
        let weight = 1.0 / batch.members.len() as f64;
        let mut terms = ObjectiveTerms::default();
        for (member, task) in batch.iter() {
            let (adapt, judged) = split(member, task)?;
            let InnerSteps { steps, rate } = self.inner;
            self.loss.descend(parameters, adapt.examples(), steps, rate, &mut self.path);
            let adapted = &self.path[steps * parameters.len()..];
            terms.risk += weight * self.loss.add_gradient(adapted, judged.examples(), weight, gradient);
        }
        terms.objective = terms.risk;
        Ok(terms)
    }
}
