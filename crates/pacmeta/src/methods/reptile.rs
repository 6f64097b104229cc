//! Reptile with (nearly) optimal q: q* ~ argmin_q L^(q, S) + |p - q|^2/(2 beta sigma^2); meta-gradient
//! (p - q*)/(beta sigma^2), which is grad L^(q*, S) when q* is optimal.

use super::{Batch, Method, ObjectiveTerms};
use crate::error::Result;
use crate::learners::Proximal;
use crate::learners::flat::add_pull;
use crate::learners::lbfgs::Buffers;
use crate::learners::squared_loss::SquaredLoss;
use crate::priors::NetworkSpec;

/// Reptile.
#[derive(Debug, Clone)]
pub struct Reptile {
    proximal: Proximal,
    loss: SquaredLoss,
    buffers: Buffers,
    optimum: Vec<f64>,
    /// The tasks of a batch, each once, and how often they were drawn.
    drawn: Vec<(usize, usize)>,
}

impl Reptile {
    /// The method on a network.
    pub fn new(spec: &NetworkSpec, proximal: Proximal) -> Self {
        Self {
            proximal,
            loss: SquaredLoss::new(&spec.widths()),
            buffers: Buffers::default(),
            optimum: Vec::new(),
            drawn: Vec::new(),
        }
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
        self.drawn.clear();
        for member in batch.members {
            match self.drawn.iter_mut().find(|(task, _)| *task == member.task) {
                Some((_, times)) => *times += 1,
                None => self.drawn.push((member.task, 1)),
            }
        }
        let mut terms = ObjectiveTerms::default();
        for &(task, times) in &self.drawn {
            let weight = times as f64 / batch.members.len() as f64;
            let pull = weight / self.proximal.beta_sigma_squared;
            self.optimum.clear();
            self.optimum.extend_from_slice(parameters);
            terms.risk += weight
                * self.proximal.minimise_in(
                    &mut self.buffers,
                    &mut self.loss,
                    parameters,
                    batch.tasks[task].examples(),
                    &mut self.optimum,
                );
            terms.divergence += 0.5 * pull * add_pull(gradient, pull, parameters, &self.optimum);
        }
        terms.objective = terms.risk + terms.divergence;
        Ok(terms)
    }
}
