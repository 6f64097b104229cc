//! A study as the jobs of a scheduler: files and indices, no server and no lock.
//!
//! [`PlanFile`] writes one numbered line a piece. Whoever is given an index trains that piece, or a few of them
//! ([`Chunks`]), and writes its result into a folder ([`Results`]): one file an index, under its name as a whole or not at
//! all. So a result is valid or absent at every moment, and two jobs of one index write the same content over each other.
//! A piece that is stopped leaves its state beside it ([`Keep`](super::Keep)); states of one piece are points of the same
//! trajectory, so whoever continues from whichever ends with the same bits. [`Survey`] says what is done, and
//! [`collect`] appends it to the record of a study, as if it had been computed there.

mod indices;
mod plan_file;
mod results;
mod script;
#[cfg(test)]
mod tests;

pub use indices::{Chunks, array_expression};
pub use plan_file::{ConfigMark, PlanFile, PlanLine};
pub use results::{Counted, Job, Results, Survey, collect};
pub use script::{Launcher, ScriptOptions, script};

use std::path::Path;

use super::sinusoid::SinusoidSpec;
use super::spec::Spec;
use super::sweep::{Plan, Prepared, SweepSpec};
use crate::error::Result;

/// A piece that can be computed from its line of a plan.
pub trait FromPlan: Spec {
    /// The pieces of some lines of a plan, with what they need besides their content.
    ///
    /// # Errors
    /// When that cannot be had, or is not what it was when the plan was made.
    fn ready(plan: &PlanFile, lines: &[PlanLine]) -> Result<Vec<Self>>;
}

impl FromPlan for SweepSpec {
    fn ready(plan: &PlanFile, lines: &[PlanLine]) -> Result<Vec<Self>> {
        let pieces = plan.specs::<Self>(lines)?;
        let prepared = Prepared::again(plan.study_plan::<Plan>()?, Path::new(plan.folder()))?;
        let named = pieces.into_iter().zip(lines);
        Ok(named.map(|(piece, line)| piece.with_tasks(&prepared.tasks, &line.label)).collect())
    }
}

impl FromPlan for SinusoidSpec {
    /// They draw their tasks.
    fn ready(plan: &PlanFile, lines: &[PlanLine]) -> Result<Vec<Self>> {
        plan.specs(lines)
    }
}
