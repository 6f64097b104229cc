//! Meta-learning from Python: the same runs as those of `pacmeta train`.

use std::path::{Path, PathBuf};

use pacmeta::config::Config;
use pacmeta::environments::table::{TaskTable, parse_csv, tasks_to_csv};
use pacmeta::experiment::Experiment;
use pacmeta::report::{RunResults, assemble, page};
use pacmeta::training::files::write_atomically;
use pacmeta::{Error, Model, Result, Task};
use pacmeta_tensor::Key;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors::{exception, wrong};
use crate::prior::Prior;
use crate::tasks::{TaskParts, task};
use crate::values::object;
use crate::watch::{Watch, watched};

/// The table of a run that began in Python, in its folder.
const TASKS: &str = "tasks.csv";

struct Trained {
    model: Model,
    results: Value,
    html: String,
}

/// Prior, results and report.
type Parts<'py> = (Prior, Bound<'py, PyAny>, String);

fn parts(py: Python<'_>, trained: Trained) -> PyResult<Parts<'_>> {
    Ok((Prior::new(trained.model), object(py, &trained.results)?, trained.html))
}

/// Trains in a folder, or in one that is gone afterwards.
fn train(
    experiment: Experiment,
    out: Option<&Path>,
    csv: Option<&str>,
    watch: &mut Watch<Trained>,
) -> Result<Trained> {
    experiment.sampler(Key::new(experiment.config().seed)).check(experiment.observed())?;
    let scratch = tempfile::tempdir().map_err(|source| Error::io("create", std::env::temp_dir(), source))?;
    let inside = scratch.path().join("run");
    let folder = out.unwrap_or(&inside);
    let outcome = experiment.train_in(folder, watch)?;
    let results = RunResults::new(experiment, outcome.model, outcome.choice, folder)?;
    let mut trained = shown(&results)?;
    // As everybody else will read it, with the number of iterations.
    trained.model = Model::read(folder)?;
    if let Some(out) = out {
        if let Some(csv) = csv {
            write_atomically(out.join(TASKS), csv.as_bytes())?;
        }
        write_atomically(out.join("report.html"), trained.html.as_bytes())?;
    }
    Ok(trained)
}

fn shown(results: &RunResults) -> Result<Trained> {
    let html = page(&assemble(std::slice::from_ref(results), None)?);
    let json =
        |value: serde_json::Result<Value>| value.map_err(|error| Error::input("scores", error.to_string()));
    let mut scores = Map::new();
    for (name, row) in &results.scores {
        scores.insert(name.clone(), json(serde_json::to_value(row))?);
    }
    let summary = json!({
        "method": results.experiment.config().method.kind.name(),
        "iterations": results.experiment.config().training.iterations,
        "beta": results.choice.beta,
        "alpha": results.choice.alpha,
        "explanation": results.choice.explanation(),
        "scores": scores,
        "verdict": results.verdict().map(|verdict| verdict.to_string()),
        "left_out": results.experiment.left_out(),
    });
    Ok(Trained { model: results.model.clone(), results: summary, html })
}

/// Learns a prior from tasks in memory.
#[pyfunction]
#[pyo3(signature = (tasks, features, target, settings, out = None, progress = None))]
pub(crate) fn train_tasks<'py>(
    py: Python<'py>,
    tasks: Vec<TaskParts<'py>>,
    features: Vec<String>,
    target: String,
    settings: Vec<(String, String)>,
    out: Option<PathBuf>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Parts<'py>> {
    if tasks.is_empty() {
        return Err(wrong("tasks: there are none, expected at least one (x, y)"));
    }
    let dimension = features.len();
    let tasks: Vec<Task> = tasks.iter().map(|parts| task(parts, Some(dimension))).collect::<PyResult<_>>()?;
    let table = TaskTable { tasks, feature_names: features, target_name: target, left_out: Vec::new() };
    let trained = watched(py, progress, move |watch| {
        let path = match &out {
            Some(out) => {
                std::path::absolute(out).map_err(|source| Error::io("find", out, source))?.join(TASKS)
            }
            None => PathBuf::from(TASKS),
        };
        let quoted = |text: &str| toml_text(text);
        let mut all = vec![
            ("data.path".to_owned(), quoted(&path.display().to_string())),
            ("data.task".to_owned(), quoted("task")),
            ("data.target".to_owned(), quoted(&table.target_name)),
        ];
        all.extend(settings);
        let config = Config::parse("the arguments", "", &all)?;
        // The same way as a table's, so that the same tasks are the same run.
        let csv = tasks_to_csv(&table, "task")?;
        let pacmeta::config::DataSource::Table(data) = &config.data.source else {
            return Err(Error::config("data.environment", "the tasks are given, they cannot be drawn too"));
        };
        let table = parse_csv("the tasks", csv.as_bytes(), &data.options)?;
        train(Experiment::of_table(config, table)?, out.as_deref(), Some(&csv), watch)
    })?;
    parts(py, trained)
}

fn toml_text(text: &str) -> String {
    json!(text).to_string()
}

/// Trains a configuration file in a folder.
#[pyfunction]
#[pyo3(signature = (config, settings, out = None, progress = None))]
pub(crate) fn train_config<'py>(
    py: Python<'py>,
    config: PathBuf,
    settings: Vec<(String, String)>,
    out: Option<PathBuf>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Parts<'py>> {
    let trained = watched(py, progress, move |watch| {
        let experiment = Experiment::prepare(Config::read(&config, &settings)?)?;
        train(experiment, out.as_deref(), None, watch)
    })?;
    parts(py, trained)
}

/// Reads the folder of a finished run.
#[pyfunction]
pub(crate) fn read_run(py: Python<'_>, folder: PathBuf) -> PyResult<Parts<'_>> {
    let trained =
        py.detach(|| RunResults::read(&folder).and_then(|results| shown(&results))).map_err(exception)?;
    parts(py, trained)
}
