//! Tasks, supports and queries in JSON.
//!
//! The text becomes a tree of values first, which is then walked: so every error can name the path to the value it is
//! about, such as `tasks[3].y[7]`.

mod walk;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::queries::{Queries, Records};
use super::{ColumnsOf, FeatureNames, Format, SupportTask, TableOptions, TaskTable, counted, finish, quoted};
use crate::error::Result;
use crate::task::Task;

use walk::File;

/// Reads tasks from the bytes of a JSON file; `origin` names it in messages. See the [table module](super).
///
/// # Errors
/// When the bytes are not such a file; the error names the line and column or the path, and what to do.
pub fn parse_json(origin: &str, bytes: &[u8], options: &TableOptions) -> Result<TaskTable> {
    parse_json_for(origin, bytes, options, ColumnsOf::Configuration)
}

/// The same with advice for whoever chose the features.
///
/// # Errors
/// As for [`parse_json`].
pub fn parse_json_for(
    origin: &str,
    bytes: &[u8],
    options: &TableOptions,
    chosen_by: ColumnsOf,
) -> Result<TaskTable> {
    options.check()?;
    let file = File { origin };
    let root = file.parse(bytes)?;
    let root = file.object(&root, "", &["tasks", "features"])?;
    let list = file.list(file.required(root, "", "tasks")?, "tasks")?;
    if list.is_empty() {
        return Err(file.wrong("tasks", "expected at least one task, found an empty list"));
    }
    let mut tasks = Vec::with_capacity(list.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, value) in list.iter().enumerate() {
        let path = format!("tasks[{index}]");
        let task = file.task(value, &path, &format!("task-{index:03}"), &TASK_KEYS)?;
        if let Some(other) = places.insert(task.name().to_string(), index) {
            return Err(file.wrong(
                &format!("{path}.name"),
                format!("{} is the name of tasks[{other}] too; give each task its own", quoted(task.name())),
            ));
        }
        let dimension = tasks.first().map_or(task.dimension(), Task::dimension);
        if task.dimension() != dimension {
            return Err(file.wrong(
                &format!("{path}.x"),
                format!(
                    "expected {} as in tasks[0], found {}",
                    counted(dimension, "feature"),
                    task.dimension()
                ),
            ));
        }
        tasks.push(task);
    }
    let dimension = tasks[0].dimension();
    let names = file.features(root, dimension)?.unwrap_or_else(|| default_names(dimension));
    let Some(wanted) = &options.features else {
        return finish(origin, tasks, names, options);
    };
    let remedy = match chosen_by {
        ColumnsOf::Configuration => "`data.features` asks for it",
        ColumnsOf::Prior => FeatureNames::Prior(wanted.clone()).remedy(),
    };
    let columns = file.select(&names, wanted, remedy)?;
    let tasks = tasks.iter().map(|task| with_columns(task, &columns)).collect::<Result<_>>()?;
    finish(origin, tasks, wanted.clone(), options)
}

/// The examples of `{"x": ..., "y": ...}`, of the only task or of the one that was chosen by its name.
pub(super) fn support(
    origin: &str,
    bytes: &[u8],
    name: &str,
    wanted: &FeatureNames,
    choice: &SupportTask<'_>,
) -> Result<(Task, FeatureNames)> {
    let file = File { origin };
    let value = file.parse(bytes)?;
    let root = file.object(&value, "", &["x", "y", "name", "adapt", "features", "tasks"])?;
    let task = match root.get("tasks") {
        None => file.task(&value, "", name, &["x", "y", "name", "adapt", "features"])?,
        Some(tasks) => {
            if let Some(key) = ["x", "y", "name", "adapt"].into_iter().find(|key| root.contains_key(*key)) {
                return Err(file.wrong(key, "expected either `tasks` or `x` and `y`, found both; remove one"));
            }
            match file.list(tasks, "tasks")?.as_slice() {
                [task] if !matches!(choice, SupportTask::Named { .. }) => {
                    file.task(task, "tasks[0]", name, &TASK_KEYS)?
                }
                several => {
                    let name_of = |task: &Value| task.get("name").and_then(Value::as_str).map(str::to_owned);
                    let names: Vec<String> = several.iter().filter_map(name_of).collect();
                    choice.check(origin, names.iter().map(String::as_str))?;
                    let wanted = match choice {
                        SupportTask::Named { name, .. } => {
                            several.iter().position(|task| name_of(task).as_deref() == Some(*name))
                        }
                        _ => None,
                    };
                    let Some(index) = wanted else {
                        let message =
                            format!("expected exactly one task to adapt to, found {}", several.len());
                        return Err(file.wrong("tasks", message));
                    };
                    file.task(&several[index], &format!("tasks[{index}]"), name, &TASK_KEYS)?
                }
            }
        }
    };
    let columns = file.columns_of(root, task.dimension(), wanted)?;
    let found = file.features(root, task.dimension())?;
    let found = found.map(|names| columns.iter().map(|&column| names[column].clone()).collect());
    Ok((with_columns(&task, &columns)?, wanted.of_queries(found)))
}

/// The inputs of `{"x": ...}` or of a plain list.
pub(super) fn queries(origin: &str, bytes: &[u8], wanted: &FeatureNames) -> Result<Queries> {
    let file = File { origin };
    let value = file.parse(bytes)?;
    let empty = Map::new();
    let (root, rows, path) = if value.is_array() {
        (&empty, &value, "list")
    } else {
        let root = file.object(&value, "", &["x", "y", "name", "adapt", "features"])?;
        (root, file.required(root, "", "x")?, "x")
    };
    let (dimension, numbers) = file.rows(rows, path)?;
    let features = file.columns_of(root, dimension, wanted)?;
    let columns = file.features(root, dimension)?.unwrap_or_else(|| wanted.names().to_vec());
    let inputs =
        numbers.chunks_exact(dimension).flat_map(|row| features.iter().map(|&column| row[column])).collect();
    let mut records = Records::new(dimension);
    numbers.iter().for_each(|number| records.push(&format!("{number:?}")));
    Ok(Queries { format: Format::Json, columns, records, features, inputs })
}

const TASK_KEYS: [&str; 4] = ["name", "x", "y", "adapt"];

/// `x` for one feature, else `x0`, `x1`, ...
fn default_names(dimension: usize) -> Vec<String> {
    match dimension {
        1 => vec!["x".into()],
        _ => (0..dimension).map(|index| format!("x{index}")).collect(),
    }
}

/// The task with some of its features, in the order of `columns`.
fn with_columns(task: &Task, columns: &[usize]) -> Result<Task> {
    let rows = task.inputs().chunks_exact(task.dimension());
    let inputs = rows.flat_map(|row| columns.iter().map(|&column| row[column])).collect();
    let chosen = Task::new(task.name(), columns.len(), inputs, task.targets().to_vec())?;
    match task.adapt() {
        None => Ok(chosen),
        Some(adapt) => chosen.with_adapt(adapt.to_vec()),
    }
}
