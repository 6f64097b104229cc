//! Few-shot classification with a network that adapts, or whose head does: training, scoring, and the model that comes out.
//!
//! ```text
//! pictures --(key)--> episodes --> body: features of S --> head method: gradient at head and features
//!          --> body, backwards --> mean over the batch, hyper-prior term, Adam --> prior
//! ```
//!
//! One forward and one backward pass of the body over S serve every method: see [`methods::heads`](crate::methods::heads). With
//! `method.adapts = "network"` every parameter adapts, and each inner step is such a pass: see
//! [`methods::networks`](crate::methods::networks).

mod evaluation;
mod experiment;
mod files;
mod gallery;
mod memory;
mod model;
mod pass;
mod remarks;
pub mod report;
mod scores;
mod trainer;

pub use evaluation::{Query, TaskPrediction};
pub use experiment::ImageExperiment;
pub use files::{ImageRunFiles, ScoredRun};
pub use model::{ImageModel, LabelledPictures};
pub use scores::{ImageScores, ReliabilityBin};
pub use trainer::ImageTrainer;
