//! Text classification: meta-learned encoders whose head, or whose upper layers, adapt to a task of a few sentences.
//!
//! | file | subject |
//! |---|---|
//! | [`prior`] | the parameters: an encoder, and the heads of training tasks or a network that makes heads |
//! | [`generator`] | that network |
//! | `pass` | one task: sentences through the shared layers, the method, and back |
//! | [`trainer`] | an iteration |
//! | [`adaptation`] | a new task: Adam on what adapts, and predictions |
//! | [`evaluation`] | scores on draws of new tasks |
//! | [`model`] | the checkpoint, with its tokeniser |
//! | [`experiment`], [`files`] | a run in a folder |
//! | [`memory`] | what a task needs, before it runs |
//! | `remarks` | what the user should know before a run |
//! | [`report`] | the page of a run |
//!
//! The threshold v cuts the encoder: embeddings and layers below are shared, computed once for a task and trained by the outer loop;
//! layers above, and the head, adapt. With v at the top only the head adapts, and everything of
//! [`methods::heads`](crate::methods::heads) applies; below it, [`methods::networks`](crate::methods::networks).

pub mod adaptation;
pub mod evaluation;
pub mod experiment;
pub mod files;
pub mod generator;
pub mod memory;
pub mod model;
mod pass;
pub mod prior;
mod remarks;
pub mod report;
pub mod trainer;

pub use adaptation::{FewShot, FineTuning};
pub use evaluation::{DrawScore, ShotScores, TextScores};
pub use experiment::TextExperiment;
pub use files::{TextRunFiles, TextRunScores};
pub use model::TextModel;
pub use prior::{TextHeads, TextPrior};
pub use report::text_report;
pub use trainer::TextTrainer;
