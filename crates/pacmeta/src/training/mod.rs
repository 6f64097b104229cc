//! The one training loop, its optimisers, and what it leaves on disk.

pub mod checkpoint;
pub mod files;
pub mod metrics;
pub mod optimiser;
#[cfg_attr(not(feature = "text"), allow(dead_code))]
pub(crate) mod pieces;
pub mod run_directory;
pub mod tensorboard;
mod trainer;

pub use optimiser::{Optimiser, OptimiserKind};
pub use trainer::{HyperPrior, IterationTerms, Trainer, TrainerSettings};
