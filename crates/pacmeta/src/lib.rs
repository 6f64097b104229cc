//! Few-shot meta-learning with PAC-Bayes guarantees.

pub mod environments;
pub mod error;
pub mod learners;
pub mod methods;
pub mod priors;
pub mod report;
pub mod standardisation;
pub mod task;
pub mod training;

pub use error::{Error, Result};
pub use task::Task;
