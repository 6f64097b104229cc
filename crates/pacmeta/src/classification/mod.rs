//! What few-shot classification of pictures ([`images`](crate::images)) and of texts ([`text`](crate::text)) have in common.
//!
//! | file | subject |
//! |---|---|
//! | [`descent`] | parameters, the mean gradient of a batch, the step |
//! | [`run`] | the loop of a run in its folder: metrics, checkpoints, validations, and who watches it |
//! | [`free_memory`] | what a run may take of the machine's memory |
//! | `metadata` | what a checkpoint says of its network |
//! | [`scores`] | small parts of scoring |
//! | `rates` | rates that are seldom meant |
//! | `files`, [`curves`] | what a run leaves for reports, and its learning curves |

pub mod curves;
pub mod descent;
pub(crate) mod files;
pub mod free_memory;
pub(crate) mod metadata;
pub(crate) mod rates;
pub mod run;
pub mod scores;

pub use descent::{Descent, Terms};
pub use run::{MetaLearner, Observer, Outcome, Quiet, Validation};
pub use scores::{Stop, Watch, most_probable};
