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
//! Parameters are kept in f64 and rounded to f32 for the body.

mod evaluation;
mod experiment;
mod files;
mod gallery;
mod model;
mod pass;
pub mod report;
mod scores;
mod trainer;

pub use evaluation::{Query, Stop, TaskPrediction, most_probable};
pub use experiment::{ImageExperiment, ImageObserver, ImageOutcome, Quiet};
pub use files::{ImageRunFiles, ScoredRun};
pub use model::{ImageModel, LabelledPictures};
pub(crate) use scores::mean_and_error;
pub use scores::{ImageScores, ReliabilityBin};
pub use trainer::{ImageTerms, ImageTrainer};
