//! Studies: many models from one list of specifications, their record, and what is concluded from it.
//!
//! * [`spec`]: what a piece of a study is, and its content hash.
//! * [`record`]: an append-only file of what came out, which survives a crash at any byte.
//! * [`folder`]: the plan of a study beside its record.
//! * [`runner`]: computes what is missing, in parallel.
//! * [`cluster`]: the pieces of a study as the jobs of a scheduler: a plan file, an index, atomic results.
//! * [`grid`]: points of several axes in a stable order.
//! * [`summary`]: means with standard errors, also of models crossed with tasks.
//! * [`cross_validation`]: settings chosen on other tasks than they are scored on.
//! * [`numbers`]: files of numbers beside a page.
//! * [`sinusoid`]: the paper's regression study.
//! * `mini_imagenet`: the paper's study on pictures (feature `images`).
//! * `leopard`: the paper's study on texts (feature `text`).
//! * `memory`: the paper's memory table on texts (feature `text`).
//! * [`sweep`]: a grid over anybody's configuration and tasks.

pub mod claims;
pub mod cluster;
pub mod cross_validation;
pub mod folder;
pub mod grid;
#[cfg(feature = "text")]
pub mod leopard;
#[cfg(feature = "text")]
pub mod memory;
#[cfg(feature = "images")]
pub mod mini_imagenet;
pub mod numbers;
pub mod record;
pub mod runner;
pub mod sinusoid;
pub mod spec;
pub mod summary;
pub mod sweep;

pub use folder::{Session, StoredPlan, StudyFolder};
pub use numbers::NumbersFile;
pub use record::{Ending, Records};
pub use runner::{Failures, Progress, Recorder, SilentStudy, StudyObserver};
pub use spec::{Keep, Spec, Stop, Tell};
