//! A grid of settings over anybody's configuration and tasks: `pacmeta sweep`.
//!
//! The tasks are drawn or read once, with the configuration's own seed, and shared by all models: every setting and seed is
//! scored on the same tasks (held out of a table, or target tasks), so that differences are paired. [`prepare`] turns a
//! file into a [`Plan`] and its pieces; the [runner](super::runner) trains what is not recorded; [`Analysis`] chooses by
//! [cross-validation](super::cross_validation) over the scored tasks; [`report`] and [`numbers`] show it.

mod analysis;
mod figures;
mod files;
mod model;
mod page;
mod plan;
#[cfg(test)]
mod tests;

pub use analysis::{Analysis, Chosen, SettingResult, TaskResult};
pub use files::{OF_THE_CHOICE, conclusions, numbers};
pub use model::{SweepOutcome, SweepSpec, TaskErrors};
pub use page::{report, train_command};
pub use plan::{DataDescription, MOST_SETTINGS, Plan, Prepared, Setting, prepare};
