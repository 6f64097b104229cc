//! Meta-learning methods: one file a method, one trait for all.
//!
//! A method takes parameters and a batch of tasks, and returns the batch's objective with its gradient. The hyper-prior
//! term, the optimiser and the loop belong to [`training`](crate::training). Adding a method is one file here, one line
//! in [`MethodSettings`], and it must pass the conformance tests in `tests/conformance.rs`.

mod after_steps;
mod batch;
mod fomaml;
mod gp_batch;
pub mod heads;
mod maml;
mod multitask;
pub mod networks;
mod pacmaml;
mod pacoh;
mod pacoh_map;
mod reptile;
mod settings;

pub use batch::{Batch, BatchSampler, Member, Resample, SubsetRule, SubsetSize};
pub use fomaml::Fomaml;
pub use gp_batch::{GpMethod, TaskObjective};
pub use maml::Maml;
pub use multitask::MultiTask;
pub use pacmaml::Pacmaml;
pub use pacoh::Pacoh;
pub use pacoh_map::PacohMap;
pub use reptile::Reptile;
pub use settings::MethodSettings;

use crate::error::Result;

/// The objective of a batch, averaged over its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ObjectiveTerms {
    /// What the method minimises, without the hyper-prior term: mean W.
    pub objective: f64,
    /// The part of it that is an empirical risk.
    pub risk: f64,
    /// The part of it that is a divergence from the prior, KL/beta.
    pub divergence: f64,
}

/// A meta-learning method with its settings and buffers.
pub trait Method: Send {
    /// The name used in configurations and checkpoints.
    fn name(&self) -> &'static str;

    /// Whether the base learner sees a subset S' of each task.
    fn uses_subset(&self) -> bool;

    /// Adds the gradient of the batch's mean objective to `gradient`.
    ///
    /// # Errors
    /// When a task cannot be computed, e.g. because a covariance matrix is not positive definite.
    fn meta_gradient(
        &mut self,
        parameters: &[f64],
        batch: &Batch<'_>,
        gradient: &mut [f64],
    ) -> Result<ObjectiveTerms>;
}
