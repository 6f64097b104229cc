//! `pacmeta bound`.

use pacmeta::bounds::{ObjectiveKind, ObjectiveReport, ObjectiveRequest, objective};
use pacmeta::training::checkpoint::{Checkpoint, NamedTensor, Precision};
use pacmeta::{Error, Model, Result, Task};
use serde_json::Value;

use super::inputs::{check_output, in_files, large_enough, read_model, read_tasks};
use super::scores::{not_a_bound, objective_table};
use super::theorem;
use crate::arguments::{Bound, ObjectiveName};
use crate::output::{print, print_json};
use crate::table::{Table, number};

pub(crate) fn run(arguments: &Bound) -> Result<()> {
    let model = read_model(&arguments.run, None)?;
    let table = read_tasks(&arguments.tasks, &model, &arguments.run, arguments.task_column.as_deref())?;
    let advice = [
        "and learning from a task takes two",
        "leave such tasks out with --min-examples 2, or accept them with --min-examples 1",
    ];
    let (tasks, _) = large_enough(table.tasks, arguments.min_examples, &arguments.tasks, advice)?;
    compute(arguments, &model, &tasks).map_err(|error| in_files(error, &arguments.run, &arguments.tasks))
}

fn compute(arguments: &Bound, model: &Model, tasks: &[Task]) -> Result<()> {
    if let Some(name) = arguments.theorem.theorem {
        return theorem::run(arguments, name, model, tasks);
    }
    let request = ObjectiveRequest {
        kind: kind(arguments, model)?,
        observed_tasks: arguments.observed_tasks,
        lambda: arguments.lambda,
        sigma0_squared: arguments.sigma0_squared,
        delta: Some(arguments.delta),
    };
    let report = match &arguments.gradient {
        None => objective(model, tasks, &request, None)?,
        Some(path) => {
            let prior = arguments.run.join("prior.safetensors");
            check_output(path, [&*arguments.run, &*prior, &*arguments.tasks])?;
            let mut gradient = model.parameters().clone();
            let report = objective(model, tasks, &request, Some(&mut gradient))?;
            let tensors = NamedTensor::of_parameters(&gradient);
            Checkpoint { tensors, precision: Precision::F64, metadata: None }.write(path)?;
            report
        }
    };
    if arguments.json { print_json(&report) } else { print(&as_text(&report, model)) }
}

/// The objective: as the options say, else as the checkpoint was trained.
fn kind(arguments: &Bound, model: &Model) -> Result<ObjectiveKind> {
    let method = model.notes.get("method");
    let trained = method.and_then(|method| method.get("name")).and_then(Value::as_str);
    let name = match (arguments.objective, trained) {
        (Some(name), _) => name,
        (None, Some("pacoh")) => ObjectiveName::Pacoh,
        (None, Some("pacmaml")) => ObjectiveName::Pacmaml,
        (None, _) => {
            return Err(Error::input(
                "option `--objective`",
                "the checkpoint was not trained with pacoh or pacmaml; say whose objective is wanted",
            ));
        }
    };
    let beta = temperature(model, "beta", arguments.beta)?;
    match name {
        ObjectiveName::Pacoh if arguments.alpha.is_some() => {
            Err(Error::input("option `--alpha`", "belongs to the objective pacmaml; pacoh has beta only"))
        }
        ObjectiveName::Pacoh => Ok(ObjectiveKind::Pacoh { beta }),
        ObjectiveName::Pacmaml => {
            Ok(ObjectiveKind::Pacmaml { alpha: temperature(model, "alpha", arguments.alpha)?, beta })
        }
    }
}

/// A temperature as given, else as the checkpoint states it.
pub(super) fn temperature(model: &Model, name: &str, given: Option<f64>) -> Result<f64> {
    let stored = || model.notes.get("method")?.get(name)?.as_f64();
    given.or_else(stored).ok_or_else(|| {
        Error::input(format!("option `--{name}`"), "the checkpoint does not state this temperature; give it")
    })
}

fn as_text(report: &ObjectiveReport, model: &Model) -> String {
    let mut table = Table::new(["task", "log Z", "risk on S", "risk on S'", "KL", "W"]);
    for task in &report.tasks {
        table.row([
            task.name.clone(),
            number(task.log_z),
            number(task.risk),
            number(task.risk_adapt),
            number(task.kl),
            number(task.w),
        ]);
    }
    let objective = objective_table(&[(report.objective.to_owned(), report)]);
    format!("{}\n{objective}{}", table.render(), not_a_bound(model))
}
