//! Tasks, supports and queries in CSV.

pub(crate) mod reader;

use std::collections::{HashMap, HashSet};

use super::queries::{Queries, Records};
use super::{ColumnsOf, FeatureNames, Format, SupportTask, TableOptions, TaskTable, finish, listed, quoted};
use crate::error::{Error, Result};
use crate::task::Task;

use reader::Table;

/// Reads tasks from the bytes of a CSV file; `origin` names it in messages. See the [table module](super).
///
/// # Errors
/// When the bytes are not such a table; the error names line and column, and what to do.
pub fn parse_csv(origin: &str, bytes: &[u8], options: &TableOptions) -> Result<TaskTable> {
    parse_csv_for(origin, bytes, options, ColumnsOf::Configuration)
}

/// The same with advice for whoever chose the columns.
///
/// # Errors
/// As for [`parse_csv`].
pub fn parse_csv_for(
    origin: &str,
    bytes: &[u8],
    options: &TableOptions,
    chosen_by: ColumnsOf,
) -> Result<TaskTable> {
    options.check()?;
    let mut table = Table::open(origin, bytes)?;
    let columns = Columns::choose(&table, options, chosen_by)?;
    let mut growing: Vec<Growing> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    while table.next()? {
        let name = table.fields[columns.task].trim();
        if name.is_empty() {
            return Err(table.wrong(columns.task, "the task's name is missing; fill it in or remove the row"));
        }
        let index = by_name.get(name).copied().unwrap_or_else(|| {
            growing.push(Growing::new(name));
            by_name.insert(name.to_string(), growing.len() - 1);
            growing.len() - 1
        });
        let task = &mut growing[index];
        for &feature in &columns.features {
            task.inputs.push(table.number(feature, columns.feature_remedy)?);
        }
        task.targets.push(table.number(columns.target, "")?);
        if let Some(adapt) = columns.adapt {
            match table.fields[adapt].trim() {
                "0" => {}
                "1" => task.adapt.push(task.targets.len() - 1),
                other => {
                    let remedy = match chosen_by {
                        ColumnsOf::Configuration => {
                            "if the column is a feature, rename it or list it in `data.features`"
                        }
                        ColumnsOf::Prior => "rename the column if it means something else",
                    };
                    let message = format!(
                        "expected 1 (the example is in the adaptation set) or 0 (it is not), found {}; the name `adapt` is \
                         reserved for that: {remedy}",
                        quoted(other)
                    );
                    return Err(table.wrong(adapt, &message));
                }
            }
        }
    }
    if growing.is_empty() {
        return Err(table.no_rows());
    }
    if columns.adapt.is_some()
        && let Some(task) = growing.iter().find(|task| task.adapt.is_empty())
    {
        return Err(Error::input_at(
            origin,
            "column `adapt`",
            format!(
                "task {} has no example with 1; mark at least one in every task, or remove the column",
                quoted(&task.name)
            ),
        ));
    }
    let feature_names: Vec<String> =
        columns.features.iter().map(|&index| table.header[index].clone()).collect();
    let dimension = feature_names.len();
    let tasks = growing.into_iter().map(|task| task.finish(dimension)).collect::<Result<_>>()?;
    finish(origin, tasks, feature_names, options)
}

/// The examples of a table with the columns of a prior.
pub(super) fn support(
    origin: &str,
    bytes: &[u8],
    name: &str,
    wanted: &FeatureNames,
    target: &str,
    choice: &SupportTask<'_>,
) -> Result<(Task, FeatureNames)> {
    let mut table = Table::open(origin, bytes)?;
    let target = table.column(target, "the prior was trained on this target; name a column so")?;
    let tasks = match choice {
        SupportTask::All => table.find("task"),
        SupportTask::Named { column, .. } => {
            Some(table.column(column, "--task chooses by it; name the column with --task-column")?)
        }
        SupportTask::Only { column } => table.find(column),
    };
    let features = table.features(wanted, &[tasks, Some(target), table.find("adapt")])?;
    let named = match choice {
        SupportTask::All => None,
        SupportTask::Named { .. } => tasks,
        SupportTask::Only { .. } => tasks.filter(|column| *column != target && !features.contains(column)),
    };
    let (mut names, mut seen): (Vec<String>, HashSet<String>) = Default::default();
    let mut task = Growing::new(name);
    while table.next()? {
        if let Some(column) = named {
            let name = table.fields[column].trim();
            if !seen.contains(name) {
                seen.insert(name.to_owned());
                names.push(name.to_owned());
            }
            if matches!(choice, SupportTask::Named { name: wanted, .. } if *wanted != name) {
                continue;
            }
        }
        for &feature in &features {
            task.inputs.push(table.number(feature, "")?);
        }
        task.targets.push(table.number(target, "")?);
    }
    choice.check(origin, names.iter().map(String::as_str))?;
    if task.targets.is_empty() {
        return Err(table.no_rows());
    }
    let found = features.iter().map(|&column| table.header[column].clone()).collect();
    Ok((task.finish(features.len())?, wanted.of_queries(Some(found))))
}

/// The inputs of a table with the columns of a prior, and its fields as they are.
pub(super) fn queries(origin: &str, bytes: &[u8], wanted: &FeatureNames) -> Result<Queries> {
    let mut table = Table::open(origin, bytes)?;
    let features = table.features(wanted, &["task", "y", "adapt"].map(|name| table.find(name)))?;
    let mut inputs = Vec::new();
    let mut records = Records::new(table.header.len());
    while table.next()? {
        for &feature in &features {
            inputs.push(table.number(feature, "")?);
        }
        table.fields.iter().for_each(|field| records.push(field));
    }
    if inputs.is_empty() {
        return Err(table.no_rows());
    }
    Ok(Queries { format: Format::Csv, columns: table.header, records, features, inputs })
}

/// A task whose rows are still coming.
struct Growing {
    name: String,
    inputs: Vec<f64>,
    targets: Vec<f64>,
    adapt: Vec<usize>,
}

impl Growing {
    fn new(name: &str) -> Self {
        Self { name: name.to_string(), inputs: Vec::new(), targets: Vec::new(), adapt: Vec::new() }
    }

    fn finish(self, dimension: usize) -> Result<Task> {
        let task = Task::new(self.name, dimension, self.inputs, self.targets)?;
        if self.adapt.is_empty() { Ok(task) } else { task.with_adapt(self.adapt) }
    }
}

/// Where a table of tasks has what.
struct Columns {
    task: usize,
    target: usize,
    features: Vec<usize>,
    adapt: Option<usize>,
    /// What else may help when a feature is not a number.
    feature_remedy: &'static str,
}

impl Columns {
    fn choose(table: &Table<'_>, options: &TableOptions, chosen_by: ColumnsOf) -> Result<Self> {
        let [of_task, of_target] = match chosen_by {
            ColumnsOf::Configuration => [
                "it names the task of each row; choose another by `data.task`",
                "it holds the target; choose another by `data.target`",
            ],
            ColumnsOf::Prior => [
                "it names the task of each row; choose another by --task-column",
                "the prior was trained on this target; name a column so",
            ],
        };
        let task = table.column(&options.task, of_task)?;
        let target = table.column(&options.target, of_target)?;
        if task == target {
            return Err(match chosen_by {
                ColumnsOf::Configuration => {
                    Error::config("data.target", "expected another column than `data.task`")
                }
                ColumnsOf::Prior => {
                    Error::input("option `--task-column`", "expected another column than the prior's target")
                }
            });
        }
        let adapt = table.header.iter().position(|name| name == "adapt");
        let mut adapt = adapt.filter(|&column| column != task && column != target);
        if let Some(names) = &options.features {
            let features: Vec<usize> = match chosen_by {
                ColumnsOf::Configuration => {
                    let columns = names.iter().map(|name| table.column(name, "`data.features` asks for it"));
                    columns.collect::<Result<_>>()?
                }
                ColumnsOf::Prior => {
                    let wanted = FeatureNames::Prior(names.clone());
                    table.features(&wanted, &[Some(task), Some(target), adapt])?
                }
            };
            if let Some(&column) = features.iter().find(|column| [task, target].contains(column)) {
                let message =
                    format!("{} is the task or the target, not a feature", quoted(&table.header[column]));
                return Err(match chosen_by {
                    ColumnsOf::Configuration => Error::config("data.features", message),
                    ColumnsOf::Prior => Error::input(table.origin, message),
                });
            }
            adapt = adapt.filter(|column| !features.contains(column));
            return Ok(Self { task, target, features, adapt, feature_remedy: "" });
        }
        let features: Vec<usize> = (0..table.header.len())
            .filter(|&column| column != task && column != target && Some(column) != adapt)
            .collect();
        if let Some(&column) = features.iter().find(|&&column| table.header[column].is_empty()) {
            return Err(Error::input_at(
                table.origin,
                format!("line {}", table.header_line),
                format!(
                    "column {} has no name (an index or a comma too many?); name it, remove it, or list the columns to \
                     use in `data.features`",
                    column + 1
                ),
            ));
        }
        if features.is_empty() {
            return Err(Error::input_at(
                table.origin,
                format!("line {}", table.header_line),
                format!(
                    "there is no feature: the columns are {}; add at least one beside task and target",
                    listed(table.header.iter().map(String::as_str))
                ),
            ));
        }
        let feature_remedy = "; if the column is not a feature, list those that are in `data.features`";
        Ok(Self { task, target, features, adapt, feature_remedy })
    }
}
