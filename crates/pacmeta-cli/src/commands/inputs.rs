//! Models and tasks that several commands read.

use std::path::Path;

use pacmeta::config::Config;
use pacmeta::environments::table::{
    ColumnsOf, Format, TableOptions, TaskTable, are_default_names, parse_csv_for, parse_json, parse_json_for,
    read_bytes,
};
use pacmeta::learners::{Learner, TargetTemperature};
use pacmeta::{Error, Model, Result, Task};

use crate::arguments::TemperatureArgument;
use crate::output::warn;

/// Reads a model and applies `--temperature`.
pub(super) fn read_model(run: &Path, temperature: Option<TemperatureArgument>) -> Result<Model> {
    let model = Model::read(run)?;
    let Some(temperature) = temperature else { return Ok(model) };
    let refuse = |message: &str| Err(Error::input("option `--temperature`", message));
    if matches!(model.spec(), pacmeta::priors::PriorSpec::Network(_)) {
        return refuse(
            "the prior is a network, which has no temperature; only Gaussian-process priors have one",
        );
    }
    let learner = match (temperature, model.learner()) {
        (TemperatureArgument::Value(temperature), _) => {
            Learner::Gibbs { temperature, examples: 1.0, rule: TargetTemperature::Fixed }
        }
        (TemperatureArgument::Fixed, Some(Learner::Gibbs { temperature, examples, .. })) => {
            Learner::Gibbs { temperature: *temperature, examples: *examples, rule: TargetTemperature::Fixed }
        }
        // A checkpoint that states a temperature only has no number of examples to go with it.
        (TemperatureArgument::PerExample, Some(Learner::Gibbs { temperature, examples, rule }))
            if *rule == TargetTemperature::PerExample || *examples != 1.0 =>
        {
            let rule = TargetTemperature::PerExample;
            Learner::Gibbs { temperature: *temperature, examples: *examples, rule }
        }
        (TemperatureArgument::Fixed, _) => {
            return refuse("the checkpoint states no temperature to keep; give a number");
        }
        (TemperatureArgument::PerExample, _) => {
            return refuse(
                "the checkpoint does not say for how many examples its temperature is; give a number",
            );
        }
    };
    Ok(model.with_learner(learner))
}

/// The same for a command that adapts: the model says how.
pub(super) fn read_adaptable_model(run: &Path, temperature: Option<TemperatureArgument>) -> Result<Model> {
    let model = read_model(run, temperature)?;
    model.learner_for(run.display())?;
    Ok(model)
}

/// Names the files in errors about a task or the prior, which do not know where these came from.
pub(super) fn in_files(error: Error, run: &Path, tasks: &Path) -> Error {
    let Error::Input(problem) = error else { return error };
    if problem.origin.starts_with("task `") {
        let place =
            problem.place.iter().fold(problem.origin.clone(), |task, place| format!("{task}, {place}"));
        return Error::input_at(tasks.display(), place, problem.message);
    }
    match problem.origin.as_str() {
        "the prior" => Error::input(run.display(), format!("the prior {}", problem.message)),
        "the checkpoint" => Error::input(run.display(), problem.message),
        _ => Error::Input(problem),
    }
}

/// Reads tasks with the columns of a model, whatever their sizes; see [`large_enough`].
pub(super) fn read_tasks(
    path: &Path,
    model: &Model,
    run: &Path,
    task_column: Option<&str>,
) -> Result<TaskTable> {
    let (origin, bytes) = read_bytes(path)?;
    let columns = model.columns();
    let positional = |names: &[String]| {
        let others = || !names.iter().any(|name| columns.features.contains(name));
        names.len() == columns.features.len()
            && (are_default_names(names) || (are_default_names(&columns.features) && others()))
    };
    let mut options = TableOptions {
        task: task_column.map_or_else(|| task_column_of(run), str::to_owned),
        target: columns.target.clone(),
        features: None,
        min_examples: Some(1),
    };
    match Format::of(&origin, &bytes) {
        Format::Json => {
            let table = parse_json(&origin, &bytes, &options)?;
            if positional(&table.feature_names) || table.feature_names == columns.features {
                return Ok(table);
            }
            if are_default_names(&table.feature_names) {
                return Err(Error::input(
                    origin,
                    format!(
                        "the number of features of x is {}, the prior expects {}: {}",
                        table.feature_names.len(),
                        columns.features.len(),
                        columns.features.join(", ")
                    ),
                ));
            }
            options.features = Some(columns.features);
            parse_json_for(&origin, &bytes, &options, ColumnsOf::Prior)
        }
        Format::Csv => {
            options.features = Some(columns.features);
            parse_csv_for(&origin, &bytes, &options, ColumnsOf::Prior)
        }
    }
}

/// The tasks of at least `--min-examples` examples, and the names of those that are left out, which are told. Without the option
/// a task of one example is an error; `why` says what is wrong with it, `remedy` what to do.
pub(super) fn large_enough(
    tasks: Vec<Task>,
    min_examples: Option<u32>,
    path: &Path,
    [why, remedy]: [&str; 2],
) -> Result<(Vec<Task>, Vec<String>)> {
    let smallest = min_examples.unwrap_or(2) as usize;
    let (total, largest) = (tasks.len(), tasks.iter().map(Task::len).max().unwrap_or(0));
    let (tasks, small): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(|task| task.len() >= smallest);
    let names: Vec<String> = small.iter().map(|task| task.name().to_owned()).collect();
    if min_examples.is_none() && !names.is_empty() {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let have = if names.len() == 1 { "has" } else { "have" };
        return Err(Error::input(
            path.display(),
            format!(
                "{} of {total} tasks {have} one example only, {why}: {}; add examples, {remedy}",
                names.len(),
                first_of(&quoted)
            ),
        ));
    }
    if tasks.is_empty() {
        return Err(Error::input(
            path.display(),
            format!(
                "none of the {total} tasks has {smallest} examples, the largest has {largest}; lower --min-examples"
            ),
        ));
    }
    if !names.is_empty() {
        let noun = if names.len() == 1 { "task" } else { "tasks" };
        let names = format!(
            "{} {noun} of fewer than {smallest} examples left out: {}",
            names.len(),
            first_of(&names)
        );
        warn(&format!("{}: {names}", path.display()));
    }
    Ok((tasks, names))
}

/// The first few names, and how many more there are.
pub(super) fn first_of(names: &[String]) -> String {
    const NAMED: usize = 5;
    let mut text = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

/// The column of task names that a run was trained with, where it can be told.
pub(super) fn task_column_of(run: &Path) -> String {
    let config = Config::read(run.join("config.toml"), &[]).ok();
    let table = config.as_ref().and_then(|config| config.data.table());
    table.map_or_else(|| TableOptions::default().task, |table| table.options.task.clone())
}

/// Refuses an output in a folder that is not there, or over a file that was read.
pub(super) fn check_output<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let folder = output.parent().unwrap_or(Path::new(""));
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(Error::input(
            output.display(),
            format!(
                "there is no folder `{}` to write to; create it, or choose another output",
                folder.display()
            ),
        ));
    }
    if folder.join("config.toml").is_file() && folder.join("checkpoints").is_dir() {
        return Err(Error::input(output.display(), "lies in the folder of a run; choose another output"));
    }
    let Ok(output_path) = output.canonicalize() else { return Ok(()) };
    for input in inputs {
        if input.canonicalize().is_ok_and(|input| input == output_path) {
            return Err(Error::input(output.display(), "is an input of this command; choose another output"));
        }
    }
    Ok(())
}
