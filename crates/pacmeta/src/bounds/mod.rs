//! Bounds and objectives of a prior on tasks: where priors and data meet the theorems of [`pacmeta_bounds`].
//!
//! * [`objective`](mod@objective): what PACOH and PACMAML minimise, term by term, with its gradient. Not a bound.
//! * [`theorem`]: the bounds themselves, for a Gaussian hyper-posterior around the learned prior.
//! * [`psi`](mod@psi): the cumulant terms by simulation, on synthetic environments.
//! * [`gap`]: the price of observed tasks that are larger than target tasks, on synthetic environments.
//!
//! Everything here is about Gaussian-process priors, whose Gibbs posteriors are closed forms.

mod assumed;
pub mod gap;
pub mod objective;
pub mod psi;
#[cfg(test)]
mod tests;
pub mod theorem;

pub use crate::config::Assumption as LossAssumption;
pub use gap::{GapSettings, gap_by_hyper_prior, gap_by_risk_difference};
pub use objective::{
    ObjectiveKind, ObjectiveReport, ObjectiveRequest, ObjectiveTask, objective, objective_of,
};
pub use psi::{PsiSettings, TaskFunctions, TaskPsiSettings, psi_by_simulation, task_psi_by_simulation};
pub use theorem::{SimulatedPsi, Statement, TheoremReport, TheoremRequest, bound, bound_with_simulated_psi};

use pacmeta_tensor::Key;

use crate::environments::Environment;
use crate::environments::table::counted;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::priors::{GaussianProcessSpec, PriorSpec};
use crate::task::Task;

/// An error about an option of a request, by its name on the command line.
fn option_error(option: &str, message: impl Into<String>) -> Error {
    Error::input(format!("option `{option}`"), message)
}

fn positive_option(option: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(option_error(option, format!("is {value}, expected a number above 0")))
    }
}

fn check_delta(delta: f64) -> Result<()> {
    if delta > 0.0 && delta < 1.0 {
        Ok(())
    } else {
        Err(option_error("--delta", format!("is {delta}, expected a probability above 0 and below 1")))
    }
}

/// The prior's shape, if it is a Gaussian process.
fn gaussian_process(spec: &PriorSpec) -> Result<&GaussianProcessSpec> {
    match spec {
        PriorSpec::GaussianProcess(spec) => Ok(spec),
        PriorSpec::Network(_) => Err(Error::input(
            "the prior",
            "is a network without `features.*` tensors; bounds and objectives need a Gaussian-process prior, whose \
             Gibbs posteriors have closed forms (methods pacoh, pacmaml, pacoh-map)",
        )),
    }
}

/// Refuses an environment whose inputs the prior does not take.
fn same_dimension(environment: &dyn Environment, dimension: usize) -> Result<()> {
    if environment.dimension() == dimension {
        return Ok(());
    }
    Err(Error::input(
        format!("environment `{}`", environment.name()),
        format!(
            "has inputs of {}, the prior expects {dimension}",
            counted(environment.dimension(), "feature")
        ),
    ))
}

/// The tasks in the units of the prior.
fn standardised(model: &Model, tasks: &[Task]) -> Result<Vec<Task>> {
    if tasks.is_empty() {
        return Err(Error::input("the tasks", "there are none; a bound needs at least one"));
    }
    tasks.iter().map(|task| model.standardise(task)).collect()
}

/// Refuses numbers of a task that left the range of `f64`.
fn check_finite(task: &Task, numbers: &[f64]) -> Result<()> {
    if numbers.iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    Err(Error::input(
        format!("task `{}`", task.name()),
        "its risk leaves the range of numbers: its targets, or the parameters of the prior, are too large; use other units",
    ))
}

/// Refuses a prior whose squared norm leaves the range of `f64`.
fn check_norm(model: &Model) -> Result<()> {
    if model.parameters().squared_norm().is_finite() {
        return Ok(());
    }
    Err(Error::input("the prior", "has parameters so large that their squares leave the range of numbers"))
}

/// S' of a task.
fn adapt_of(task: &Task) -> Result<&[usize]> {
    task.adapt().ok_or_else(|| {
        Error::input(
            format!("task `{}`", task.name()),
            "states no `adapt`: the base learner needs the indices of the examples in S'",
        )
    })
}

/// A draw from N(centre, variance I).
fn gaussian_draw(centre: &[f64], variance: f64, key: Key) -> Vec<f64> {
    let (mut generator, deviation) = (key.generator(), variance.sqrt());
    centre.iter().map(|value| value + deviation * generator.normal()).collect()
}
