//! Tasks from Python.

use pacmeta::{Result, Task};
use pyo3::prelude::*;

use crate::arrays::{Rows, targets};
use crate::errors::{exception, wrong};

/// Name, x, y and the indices of the subset, as `pacmeta._tasks` makes them of whatever it is given.
pub(crate) type TaskParts<'py> = (String, Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Vec<usize>>);

/// A task from arrays.
pub(crate) fn task(parts: &TaskParts<'_>, expected: Option<usize>) -> PyResult<Task> {
    let (name, x, y, adapt) = parts;
    let rows = Rows::of(x, &format!("task `{name}`, x"), expected)?;
    let targets = targets(y, &format!("task `{name}`, y"))?;
    if rows.count() != targets.len() {
        let message = format!("task `{name}`: x has {} examples, y has {}", rows.count(), targets.len());
        return Err(wrong(message));
    }
    let made: Result<Task> = Task::new(name, rows.dimension, rows.slice()?.to_vec(), targets);
    let task = made.map_err(exception)?;
    match adapt {
        Some(adapt) => task.with_adapt(adapt.clone()).map_err(exception),
        None => Ok(task),
    }
}

/// Tasks as `pacmeta._tasks.as_tasks` understands them, with the columns of a prior.
pub(crate) fn tasks_for(
    value: &Bound<'_, PyAny>,
    features: &[String],
    target: &str,
    column: &str,
) -> PyResult<Vec<Task>> {
    let helper = value.py().import("pacmeta._tasks")?;
    let parts: Vec<TaskParts<'_>> =
        helper.call_method1("task_parts", (value, features.to_vec(), target, column))?.extract()?;
    parts.iter().map(|parts| task(parts, Some(features.len()))).collect()
}
