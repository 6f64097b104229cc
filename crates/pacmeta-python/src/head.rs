//! Linear heads on arrays of features: the classifiers of pictures and text, without their bodies.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pacmeta::learners::head::{Examples, HeadShape, predict};
use pacmeta::methods::heads::{FeatureTask, HeadGradient, HeadMethodSettings, HeadRoom};
use pacmeta::training::Optimiser;
use pacmeta::{Error, Result};
use pacmeta_tensor::Key;
use pyo3::prelude::*;

use crate::arrays::{Numbers, Rows, labels};
use crate::errors::{exception, wrong};
use crate::watch::watched;

/// The most parameters of a head. Without a limit an allocation that fails would end the process.
const MOST_PARAMETERS: usize = 1 << 27;

/// The shape of a head on these features, if its parameters can be held.
fn shape_of(features: usize, classes: usize) -> PyResult<HeadShape> {
    let parameters = features.checked_add(1).and_then(|width| width.checked_mul(classes));
    match parameters {
        _ if classes < 2 => Err(wrong(format!("classes: is {classes}, expected at least 2"))),
        Some(parameters) if parameters <= MOST_PARAMETERS => Ok(HeadShape { features, classes }),
        _ => Err(wrong(format!(
            "classes: is {classes}, on {features} features a head of more than {MOST_PARAMETERS} parameters"
        ))),
    }
}

fn settings_of(text: &str) -> PyResult<HeadMethodSettings> {
    serde_json::from_str(text).map_err(|error| wrong(format!("method: {error}")))
}

/// The head to start from: one that is given, else zeros.
fn start(head: Option<&Bound<'_, PyAny>>, shape: HeadShape) -> PyResult<Vec<f64>> {
    let Some(head) = head else { return Ok(vec![0.0; shape.parameters()]) };
    let numbers = Numbers::of(head, "head")?.slice()?.to_vec();
    if numbers.len() != shape.parameters() || numbers.iter().any(|value| !value.is_finite()) {
        return Err(wrong(format!(
            "head: has {} numbers, expected {} finite ones ({} classes of {} features and a bias)",
            numbers.len(),
            shape.parameters(),
            shape.classes,
            shape.features
        )));
    }
    Ok(numbers)
}

/// Adapts a head to labelled features: one row a particle.
#[pyfunction]
#[pyo3(signature = (settings, features, labels, classes, head = None, seed = 0))]
pub(crate) fn adapt_head<'py>(
    py: Python<'py>,
    settings: &str,
    features: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyAny>,
    classes: usize,
    head: Option<&Bound<'py, PyAny>>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let settings = settings_of(settings)?;
    let rows = Rows::of(features, "features", None)?;
    let labels = self::labels(labels, "labels")?;
    let shape = shape_of(rows.dimension, classes)?;
    if rows.count() != labels.len() || labels.is_empty() {
        return Err(wrong(format!("features has {} examples, labels has {}", rows.count(), labels.len())));
    }
    let start = start(head, shape)?;
    let numbers = rows.slice()?;
    let heads = py.detach(|| {
        let method = settings.build::<f64>()?;
        let examples = Examples { features: numbers, labels: &labels };
        method.adapt(&start, shape, examples, Key::new(seed).named("adapt"), &mut HeadRoom::default())
    });
    let heads = heads.map_err(exception)?;
    PyArray2::from_vec2(py, &heads).map_err(|error| wrong(error.to_string()))
}

/// Class probabilities, averaged over heads.
#[pyfunction]
pub(crate) fn head_probabilities<'py>(
    py: Python<'py>,
    heads: &Bound<'py, PyAny>,
    features: &Bound<'py, PyAny>,
    classes: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let rows = Rows::of(features, "features", None)?;
    let stored = Numbers::of(heads, "heads")?;
    let shape = shape_of(rows.dimension, classes)?;
    let heads: Vec<Vec<f64>> =
        stored.slice()?.chunks(shape.parameters().max(1)).map(<[f64]>::to_vec).collect();
    let numbers = rows.slice()?;
    let flat = py.detach(|| predict(shape, &heads, numbers)).map_err(exception)?;
    PyArray1::from_vec(py, flat).reshape([rows.count(), classes])
}

struct LabelledTask {
    features: Vec<f64>,
    labels: Vec<usize>,
}

/// Learns the start of a head from tasks of labelled features.
#[pyfunction]
#[pyo3(signature = (settings, tasks, classes, subset, iterations, rate, batch, seed = 0, progress = None))]
#[allow(clippy::too_many_arguments)] // named in Python
pub(crate) fn meta_learn_head<'py>(
    py: Python<'py>,
    settings: &str,
    tasks: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    classes: usize,
    subset: usize,
    iterations: u64,
    rate: f64,
    batch: usize,
    seed: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let settings = settings_of(settings)?;
    if tasks.is_empty() || batch == 0 {
        return Err(wrong("expected at least one task and a batch of at least 1"));
    }
    if !(rate.is_finite() && rate > 0.0) {
        return Err(wrong(format!("learning_rate: is {rate}, expected a number above 0")));
    }
    let mut dimension = None;
    let tasks: Vec<LabelledTask> = tasks
        .iter()
        .enumerate()
        .map(|(index, (features, classes_of))| {
            let rows = Rows::of(features, &format!("task {index}, features"), dimension)?;
            dimension = Some(rows.dimension);
            let labels = labels(classes_of, &format!("task {index}, labels"))?;
            if labels.len() != rows.count() || labels.is_empty() {
                return Err(wrong(format!(
                    "task {index}: {} rows of features, {} labels",
                    rows.count(),
                    labels.len()
                )));
            }
            if let Some(label) = labels.iter().find(|&&label| label >= classes) {
                return Err(wrong(format!("task {index}: has label {label}, expected one below {classes}")));
            }
            Ok(LabelledTask { features: rows.slice()?.to_vec(), labels })
        })
        .collect::<PyResult<_>>()?;
    let shape = shape_of(dimension.unwrap_or(1), classes)?;
    let learned = watched(py, progress, move |watch| -> Result<Vec<f64>> {
        let method = settings.build::<f64>()?;
        let key = Key::new(seed).named("head");
        let mut head = vec![0.0; shape.parameters()];
        let mut optimiser = Optimiser::new(head.len(), rate, 0.0);
        let (mut room, mut gradient) = (HeadRoom::default(), HeadGradient::default());
        for iteration in 0..iterations {
            let drawn = key.index(iteration);
            let mut total = vec![0.0; head.len()];
            let mut objective = 0.0;
            for place in 0..batch {
                if watch.stopped() {
                    return Err(Error::Interrupted { iteration });
                }
                let key = drawn.index(place as u64);
                let mut generator = key.named("task").generator();
                let task = &tasks[generator.below(tasks.len())];
                let mut order: Vec<usize> = (0..task.labels.len()).collect();
                generator.shuffle(&mut order);
                let width = shape.features;
                let features: Vec<f64> = order
                    .iter()
                    .flat_map(|&row| &task.features[row * width..(row + 1) * width])
                    .copied()
                    .collect();
                let labels: Vec<usize> = order.iter().map(|&row| task.labels[row]).collect();
                let subset = subset.min(labels.len());
                let shuffled = FeatureTask { shape, features: &features, labels: &labels, subset };
                let terms =
                    method.task_gradient(&head, &shuffled, key.named("steps"), &mut room, &mut gradient)?;
                objective += terms.objective / batch as f64;
                total.iter_mut().zip(&gradient.head).for_each(|(sum, value)| *sum += value / batch as f64);
            }
            optimiser.step(&mut head, &total);
            watch.tell(iteration + 1, iterations, objective);
        }
        Ok(head)
    })?;
    Ok(PyArray1::from_vec(py, learned))
}
