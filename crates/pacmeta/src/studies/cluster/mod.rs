//! A study as the jobs of a scheduler: files and indices, no server and no lock.
//!
//! [`PlanFile`] writes one numbered line a piece. Whoever is given an index trains that piece, or a few of them
//! ([`Chunks`]), and writes its result into a folder ([`Results`]): one file an index, under its name as a whole or not at
//! all. So a result is valid or absent at every moment, and two jobs of one index write the same content over each other.
//! A piece that is stopped leaves its state beside it ([`Keep`](super::Keep)); states of one piece are points of the same
//! trajectory, so whoever continues from whichever ends with the same bits. [`Survey`] says what is done, and
//! [`Gathered`] appends it to the record of a study, as if it had been computed there.

mod indices;
mod instructions;
mod plan_file;
mod results;
mod script;
#[cfg(test)]
mod tests;

pub use indices::{Chunks, array_expression, limited};
pub use instructions::InstructionSets;
pub use plan_file::{ConfigMark, PlanFile, PlanLine};
pub use results::{Gathered, Job, Results, Survey};
pub use script::{Launcher, SHORTEST_MINUTES, ScriptOptions, USUAL_ARRAY, script};

use std::path::{Path, PathBuf};

use super::sinusoid::SinusoidSpec;
use super::spec::Spec;
use super::sweep::{Plan, Prepared, SweepSpec};
use crate::error::{Error, InputError, Result};

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
        let study = plan.study_plan::<Plan>()?;
        let table = table_of(&study, plan);
        let prepared = Prepared::again(study, table.as_deref()).map_err(|error| match table {
            Some(table) => about_table(&table, plan.folder(), error),
            None => error,
        })?;
        let named = pieces.into_iter().zip(lines);
        Ok(named.map(|(piece, line)| piece.with_tasks(&prepared.tasks, &line.label)).collect())
    }
}

/// The table of a sweep, which is the one thing that its plan does not hold: where it was when the plan was made; where
/// there is none, beside the plan. A checksum of the tasks tells a wrong one.
fn table_of(study: &Plan, plan: &PlanFile) -> Option<PathBuf> {
    let path = &study.settings.first()?.config.data.table()?.path;
    let planned = std::path::absolute(Path::new(plan.folder()).join(path)).ok()?;
    let beside = [path.as_path(), Path::new(path.file_name()?)].map(|name| plan.beside().join(name));
    let found = beside.into_iter().find(|other| !planned.exists() && other.exists());
    found.map_or(Some(planned), |other| std::path::absolute(other).ok())
}

/// What is wrong with the table: it could be read when the plan was made in `folder`, so it is away, or has changed.
fn about_table(table: &Path, folder: &str, error: Error) -> Error {
    let restore = "restore it, or plan again under another name";
    match error {
        error if !error.is_input() => error,
        Error::Io { source, .. } => {
            let message = format!(
                "cannot be read ({source}); the plan was made in {folder}: bring the table there or beside the plan, or \
                 plan again here under another name"
            );
            Error::input(table.display(), message)
        }
        Error::Input(InputError { origin, place, message }) if Path::new(&origin) == table => {
            let message =
                format!("{message}; the table has changed since the plan was made in {folder}: {restore}");
            Error::Input(InputError { origin, place, message })
        }
        _ => Error::input(
            table.display(),
            format!("has changed since the plan was made in {folder}; {restore}"),
        ),
    }
}

impl FromPlan for SinusoidSpec {
    /// They draw their tasks.
    fn ready(plan: &PlanFile, lines: &[PlanLine]) -> Result<Vec<Self>> {
        plan.specs(lines)
    }
}
