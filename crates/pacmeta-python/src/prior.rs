//! Priors and posteriors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use numpy::{PyArray1, PyArrayMethods};
use pacmeta::evaluation::{FittedGp, NORMAL_975, PlainGp, evaluate, normal_cdf, with_support};
use pacmeta::learners::{Adapted, InnerSteps, Learner, Predictive, TargetTemperature};
use pacmeta::priors::{GaussianProcess, NetworkSpec, PriorSpec};
use pacmeta::training::checkpoint::Checkpoint;
use pacmeta::{Error, Model, Result, Task};
use pacmeta_tensor::{Key, Parameters};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;

use crate::arguments;
use crate::arrays::{Rows, targets};
use crate::errors::{exception, wrong};
use crate::tasks::tasks_for;
use crate::values::{object, object_of};

/// Mean and standard deviation, a row each.
type Arrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

fn arrays(py: Python<'_>, predictive: Predictive) -> Arrays<'_> {
    (PyArray1::from_vec(py, predictive.mean), PyArray1::from_vec(py, predictive.std))
}

/// A meta-learned prior.
///
/// >>> import numpy as np, pacmeta
/// >>> x = np.linspace(-1, 1, 8)
/// >>> tasks = [(x, slope * x) for slope in range(1, 9)]
/// >>> prior = pacmeta.meta_learn(tasks, beta=200, alpha=40, iterations=50).prior
/// >>> prior.kind, prior.features, prior.target
/// ('gaussian-process', ['x'], 'y')
#[pyclass(module = "pacmeta._pacmeta", frozen)]
pub(crate) struct Prior {
    pub(crate) model: Arc<Model>,
}

impl Prior {
    pub(crate) fn new(model: Model) -> Self {
        Self { model: Arc::new(model) }
    }

    fn dimension(&self) -> usize {
        self.model.spec().dimension()
    }

    fn support(&self, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Task> {
        let rows = Rows::named(x, "x", &self.features())?;
        task_of(&rows, targets(y, "y")?)
    }

    /// The model with another temperature.
    fn at(&self, temperature: Option<f64>) -> PyResult<Arc<Model>> {
        let Some(temperature) = temperature else { return Ok(Arc::clone(&self.model)) };
        if matches!(self.model.spec(), PriorSpec::Network(_)) {
            return Err(wrong(
                "temperature: the prior is a network, which has none; only Gaussian processes have one",
            ));
        }
        let learner = Learner::Gibbs { temperature, examples: 1.0, rule: TargetTemperature::Fixed };
        learner.check().map_err(|message| wrong(format!("temperature: {message}")))?;
        Ok(Arc::new((*self.model).clone().with_learner(learner)))
    }
}

fn task_of(rows: &Rows<'_>, targets: Vec<f64>) -> PyResult<Task> {
    if rows.count() != targets.len() {
        return Err(wrong(format!("x has {} examples, y has {}", rows.count(), targets.len())));
    }
    Task::new("support", rows.dimension, rows.slice()?.to_vec(), targets).map_err(exception)
}

#[pymethods]
impl Prior {
    /// Reads a checkpoint file, or the folder of a run.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Model::read(&path)).map(Self::new).map_err(exception)
    }

    /// Writes a checkpoint file, as a whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.model.to_checkpoint().write(&path)).map_err(exception)
    }

    /// The bytes of a checkpoint file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.model.to_checkpoint().to_bytes().map_err(exception)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A prior from the bytes of a checkpoint file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let checkpoint = Checkpoint::parse("the bytes", bytes).map_err(exception)?;
        Model::from_checkpoint("the bytes", &checkpoint).map(Self::new).map_err(exception)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((make, (self.to_bytes(py)?,)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| *other.get().model == *self.model)
    }

    fn __hash__(&self) -> u64 {
        let bits = |hash: u64, value: &f64| hash.rotate_left(5) ^ value.to_bits();
        self.model.parameters().values().iter().fold(0, bits)
    }

    fn __repr__(&self) -> String {
        let method = self.model.notes.get("method").and_then(|method| method.get("name"));
        let method = method.and_then(Value::as_str).unwrap_or("unknown method");
        let features = self.model.columns().features.join(", ");
        format!("Prior({}, {method}, features: {features})", self.kind())
    }

    /// `gaussian-process` or `network`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.model.spec() {
            PriorSpec::GaussianProcess(_) => "gaussian-process",
            PriorSpec::Network(_) => "network",
        }
    }

    /// The names of the features.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.model.columns().features
    }

    /// The name of the target.
    #[getter]
    fn target(&self) -> String {
        self.model.columns().target
    }

    /// What is known of how it was learned.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &Value::Object(self.model.notes.clone()))
    }

    /// The tensors by name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensors = PyDict::new(py);
        for (entry, values) in self.model.parameters().iter() {
            let flat = PyArray1::from_slice(py, values);
            let shape: Vec<usize> = entry.shape.to_vec();
            tensors.set_item(&entry.name, flat.reshape(shape)?)?;
        }
        Ok(tensors)
    }

    /// Adapts to a support set.
    ///
    /// The columns of a DataFrame are found by the names of the prior's features.
    ///
    /// >>> prior.adapt(x[:3], 2 * x[:3])
    /// Posterior(adapted prior, 1 features)
    #[pyo3(signature = (x, y, *, temperature = None))]
    fn adapt(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::temperature)] temperature: Option<f64>,
    ) -> PyResult<Posterior> {
        let support = self.support(x, y)?;
        let model = self.at(temperature)?;
        let adapted = py.detach(|| model.adapt(&support)).map_err(|error| match error {
            // The library's words are for the command line here.
            Error::Input(inner) if inner.message.contains("--temperature") => {
                wrong("the prior does not say how to adapt; give a temperature")
            }
            other => exception(other),
        })?;
        Ok(Posterior {
            kind: Kind::Adapted(adapted),
            dimension: self.dimension(),
            features: Some(self.features()),
        })
    }

    /// The prior itself: mean and standard deviation of the function before any example is seen.
    ///
    /// >>> mean, std = prior.predict([0.0, 0.5])
    /// >>> mean.shape, bool((std > 0).all())
    /// ((2,), True)
    fn predict<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Arrays<'py>> {
        let rows = Rows::named(x, "x", &self.features())?;
        let inputs = rows.slice()?;
        py.detach(|| prior_predictive(&self.model, inputs)).map(|made| arrays(py, made)).map_err(exception)
    }

    /// Scores adaptation on tasks: the examples of `adapt`, or some that are drawn, are the support.
    ///
    /// >>> scores = prior.evaluate(tasks, support=3)
    /// >>> len(scores["per_task"]), scores["rmse"] > 0
    /// (8, True)
    #[pyo3(signature = (tasks, *, support = 5, seed = 0, task = "task"))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        tasks: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::support)] support: usize,
        #[pyo3(from_py_with = arguments::seed)] seed: u64,
        #[pyo3(from_py_with = arguments::task)] task: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        if support == 0 {
            return Err(wrong("support: is 0, expected at least 1"));
        }
        let columns = self.model.columns();
        let tasks = tasks_for(tasks, &columns.features, &columns.target, task)?;
        let scores = py.detach(|| {
            let key = Key::new(seed).named("evaluate");
            let tasks: Vec<Task> = tasks
                .into_iter()
                .enumerate()
                .map(|(index, task)| with_support(task, support, key.index(index as u64)))
                .collect::<Result<_>>()?;
            evaluate(&*self.model, &tasks)
        });
        object_of(py, serde_json::to_value(scores.map_err(exception)?))
    }

    /// The objective of PACOH or PACMAML on tasks, or with `theorem` a bound; every term by name.
    ///
    /// >>> observed = [(*task, [0, 1, 2]) for task in tasks]
    /// >>> assumed = {"assume": "non-negative:20", "hyper_posterior_std": 0.05}
    /// >>> bound = prior.bound(observed, theorem=4, beta=30, alpha=5, **assumed)
    /// >>> sorted(bound["terms"])
    /// ['confidence', 'empirical_risk', 'gap', 'hyper_kl', 'psi1', 'psi2', 'task_kl']
    /// >>> terms = sum(term["value"] for term in bound["terms"].values())
    /// >>> bool(np.isclose(terms, bound["total"]["value"]))
    /// True
    #[pyo3(signature = (tasks, *, theorem = None, objective = None, beta = None, alpha = None, assume = None, assume_tasks = None,
        hyper_posterior_std = None, lambda_ = None, delta = 0.05, sigma0_squared = 3.0, draws = 100, seed = 0,
        observed_tasks = None, target_examples = None, gap = None, task = "task"))]
    #[allow(clippy::too_many_arguments)] // named in Python
    fn bound<'py>(
        &self,
        py: Python<'py>,
        tasks: &Bound<'py, PyAny>,
        theorem: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::objective)] objective: Option<String>,
        #[pyo3(from_py_with = arguments::beta)] beta: Option<f64>,
        #[pyo3(from_py_with = arguments::alpha)] alpha: Option<f64>,
        #[pyo3(from_py_with = arguments::assume)] assume: Option<String>,
        #[pyo3(from_py_with = arguments::assume_tasks)] assume_tasks: Option<String>,
        #[pyo3(from_py_with = arguments::hyper_posterior_std)] hyper_posterior_std: Option<f64>,
        #[pyo3(from_py_with = arguments::lambda_)] lambda_: Option<f64>,
        #[pyo3(from_py_with = arguments::delta)] delta: f64,
        #[pyo3(from_py_with = arguments::sigma0_squared)] sigma0_squared: f64,
        #[pyo3(from_py_with = arguments::draws)] draws: usize,
        #[pyo3(from_py_with = arguments::seed)] seed: u64,
        #[pyo3(from_py_with = arguments::observed_tasks)] observed_tasks: Option<usize>,
        #[pyo3(from_py_with = arguments::target_examples)] target_examples: Option<usize>,
        #[pyo3(from_py_with = arguments::gap)] gap: Option<f64>,
        #[pyo3(from_py_with = arguments::task)] task: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = self.model.columns();
        let tasks = tasks_for(tasks, &columns.features, &columns.target, task)?;
        let options = crate::bound::Options {
            theorem: theorem.map(|theorem| theorem.str()).transpose()?.map(|text| text.to_string()),
            objective,
            beta,
            alpha,
            assume,
            assume_tasks,
            hyper_posterior_std,
            lambda: lambda_,
            delta,
            sigma0_squared,
            draws,
            seed,
            observed_tasks,
            target_examples,
            gap,
        };
        let value = py.detach(|| crate::bound::compute(&self.model, &tasks, &options)).map_err(exception)?;
        object(py, &value)
    }
}

/// The mean network and the scale of the kernel, in original units; the noise of a network.
fn prior_predictive(model: &Model, inputs: &[f64]) -> Result<Predictive> {
    let (hidden, variance) = match model.spec() {
        PriorSpec::GaussianProcess(spec) => {
            (spec.mean_hidden.clone(), GaussianProcess::with_parameters(spec, model.parameters()).scale())
        }
        PriorSpec::Network(spec) => {
            let noise = match model.learner() {
                Some(Learner::Steps { noise_variance, .. } | Learner::Proximal { noise_variance, .. }) => {
                    *noise_variance
                }
                _ => 0.0,
            };
            (spec.hidden.clone(), noise)
        }
    };
    let dimension = model.spec().dimension();
    let spec = PriorSpec::Network(NetworkSpec { dimension, hidden });
    let layout = spec.layout()?;
    // The mean network's tensors come first in every layout.
    let values = model.parameters().values()[..layout.len()].to_vec();
    let inner = InnerSteps { steps: 0, rate: 0.0 };
    let learner = Learner::Steps { inner, noise_variance: variance };
    let mut network = Model::new(spec, Parameters::from_values(layout.into(), values)?).with_learner(learner);
    if let Some(standardisation) = model.standardisation() {
        network = network.with_standardisation(standardisation.clone());
    }
    // No step is made on it.
    network.adapt(&Task::new("none", dimension, vec![0.0; dimension], vec![0.0])?)?.predict(inputs)
}

enum Kind {
    Adapted(Adapted),
    Plain(Box<FittedGp>),
}

/// A prior after adaptation.
///
/// >>> import numpy as np, pacmeta
/// >>> x = np.linspace(-1, 1, 8)
/// >>> tasks = [(x, slope * x) for slope in range(1, 9)]
/// >>> prior = pacmeta.meta_learn(tasks, beta=200, alpha=40, iterations=50).prior
/// >>> posterior = prior.adapt(x[:3], 2 * x[:3])
#[pyclass(module = "pacmeta._pacmeta", frozen)]
pub(crate) struct Posterior {
    kind: Kind,
    dimension: usize,
    /// The names of the features, where there is a prior that knows them.
    features: Option<Vec<String>>,
}

impl Posterior {
    fn rows<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
        match &self.features {
            Some(features) => Rows::named(x, "x", features),
            None => Rows::of(x, "x", Some(self.dimension)),
        }
    }

    fn predictive(&self, inputs: &[f64]) -> Result<Predictive> {
        match &self.kind {
            Kind::Adapted(adapted) => adapted.predict(inputs),
            Kind::Plain(_) if inputs.is_empty() => Ok(Predictive { mean: Vec::new(), std: Vec::new() }),
            Kind::Plain(fitted) => {
                let count = inputs.len() / self.dimension;
                fitted.predict(&Task::new("query", self.dimension, inputs.to_vec(), vec![0.0; count])?)
            }
        }
    }
}

#[pymethods]
impl Posterior {
    /// Mean and standard deviation of a new observation at each row.
    ///
    /// >>> mean, std = posterior.predict(x)
    /// >>> mean.shape, bool((std > 0).all())
    /// ((8,), True)
    fn predict<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Arrays<'py>> {
        let rows = self.rows(x)?;
        let inputs = rows.slice()?;
        let predictive = py.detach(|| self.predictive(inputs)).map_err(exception)?;
        Ok(arrays(py, predictive))
    }

    /// The interval that holds a new observation with this probability, at each row.
    ///
    /// >>> lower, upper = posterior.interval(x, 0.8)
    /// >>> bool((lower < upper).all())
    /// True
    #[pyo3(signature = (x, level = 0.95))]
    fn interval<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::level)] level: f64,
    ) -> PyResult<Arrays<'py>> {
        if !(level > 0.0 && level < 1.0) {
            return Err(wrong(format!("level: is {level}, expected a number between 0 and 1")));
        }
        let rows = self.rows(x)?;
        let inputs = rows.slice()?;
        let factor = if level == 0.95 { NORMAL_975 } else { normal_quantile(0.5 + 0.5 * level) };
        let made = py.detach(|| self.predictive(inputs)).map_err(exception)?;
        let ends = |sign: f64| {
            made.mean.iter().zip(&made.std).map(|(m, s)| m + sign * factor * s).collect::<Vec<_>>()
        };
        Ok((PyArray1::from_vec(py, ends(-1.0)), PyArray1::from_vec(py, ends(1.0))))
    }

    fn __repr__(&self) -> String {
        let what = match self.kind {
            Kind::Adapted(_) => "adapted prior",
            Kind::Plain(_) => "plain Gaussian process",
        };
        format!("Posterior({what}, {} features)", self.dimension)
    }
}

/// By halving: the distribution function is monotone.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0_f64, 40.0_f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if normal_cdf(middle) < probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A Gaussian process fitted to a support set alone, without any prior knowledge.
#[pyfunction]
pub(crate) fn fit_plain_gp(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Posterior> {
    let rows = Rows::of(x, "x", None)?;
    let dimension = rows.dimension;
    let support = task_of(&rows, targets(y, "y")?)?;
    let fitted = py.detach(|| PlainGp.fit(&support)).map_err(exception)?;
    Ok(Posterior { kind: Kind::Plain(Box::new(fitted)), dimension, features: None })
}

/// Seconds that the library itself takes to adapt, and to predict, without Python: the best of `repeats`.
#[pyfunction]
pub(crate) fn rust_seconds(
    py: Python<'_>,
    prior: &Prior,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    query: &Bound<'_, PyAny>,
    repeats: usize,
) -> PyResult<(f64, f64)> {
    let rows = Rows::of(x, "x", Some(prior.dimension()))?;
    let (inputs, targets) = (rows.slice()?, targets(y, "y")?);
    let queries = Rows::of(query, "query", Some(prior.dimension()))?;
    let queries = queries.slice()?;
    let measured = py.detach(|| -> Result<(f64, f64)> {
        let (mut adapting, mut predicting) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..repeats {
            let start = Instant::now();
            let support =
                Task::new("support", rows_dimension(inputs, &targets), inputs.to_vec(), targets.clone())?;
            let adapted = prior.model.adapt(&support)?;
            let middle = Instant::now();
            let predictive = adapted.predict(queries)?;
            predicting = predicting.min(middle.elapsed().as_secs_f64());
            adapting = adapting.min((middle - start).as_secs_f64());
            std::hint::black_box(predictive);
        }
        Ok((adapting, predicting))
    });
    measured.map_err(exception)
}

fn rows_dimension(inputs: &[f64], targets: &[f64]) -> usize {
    inputs.len() / targets.len().max(1)
}
