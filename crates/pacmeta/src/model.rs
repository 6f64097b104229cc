//! A model: a meta-learned prior with everything that is needed to use it on a new data set, and its checkpoint file.

mod metadata;
mod shape;

use std::path::Path;

use pacmeta_tensor::Parameters;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::environments::table::counted;
use crate::error::{Error, Result};
use crate::learners::{Adapted, Learner, TargetTemperature};
use crate::priors::{GaussianProcessSpec, Kernel, PriorSpec};
use crate::standardisation::Standardisation;
use crate::task::Task;
use crate::training::checkpoint::{Checkpoint, NamedTensor, Precision};

/// A prior, the base learner it was trained for, and how data are standardised.
///
/// ```
/// use pacmeta::learners::{Learner, TargetTemperature};
/// use pacmeta::priors::{GaussianProcessSpec, PriorSpec};
/// use pacmeta::{Model, Task};
/// use pacmeta_tensor::Key;
///
/// let spec = PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1));
/// let parameters = spec.initialise(Key::new(0))?;
/// let learner = Learner::Gibbs { temperature: 50.0, examples: 5.0, rule: TargetTemperature::PerExample };
/// let model = Model::new(spec, parameters).with_learner(learner);
///
/// let support = Task::new("new", 1, vec![0.0, 1.0], vec![0.2, 0.8])?;
/// let prediction = model.adapt(&support)?.predict(&[0.5])?;
/// assert!(prediction.std[0] > 0.0);
/// # Ok::<(), pacmeta::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    spec: PriorSpec,
    parameters: Parameters<f64>,
    learner: Option<Learner>,
    standardisation: Option<Standardisation>,
    columns: Option<Columns>,
    /// What else the metadata say: method, bound, how the run went. Kept as it was.
    pub notes: serde_json::Map<String, Value>,
}

/// The names of the columns that a model was trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `features` and `target`")]
pub struct Columns {
    /// The features, in order.
    pub features: Vec<String>,
    /// The target.
    pub target: String,
}

impl Model {
    /// A model from a prior alone.
    pub fn new(spec: PriorSpec, parameters: Parameters<f64>) -> Self {
        let notes = serde_json::Map::new();
        Self { spec, parameters, learner: None, standardisation: None, columns: None, notes }
    }

    /// The same with a base learner.
    #[must_use]
    pub fn with_learner(mut self, learner: Learner) -> Self {
        self.learner = Some(learner);
        self
    }

    /// The same with a standardisation.
    #[must_use]
    pub fn with_standardisation(mut self, standardisation: Standardisation) -> Self {
        self.standardisation = Some(standardisation);
        self
    }

    /// The same with column names.
    #[must_use]
    pub fn with_columns(mut self, columns: Columns) -> Self {
        self.columns = Some(columns);
        self
    }

    /// The shape of the prior.
    pub fn spec(&self) -> &PriorSpec {
        &self.spec
    }

    /// The numbers of the prior.
    pub fn parameters(&self) -> &Parameters<f64> {
        &self.parameters
    }

    /// The base learner, where one is known.
    pub fn learner(&self) -> Option<&Learner> {
        self.learner.as_ref()
    }

    /// The standardisation, where there is one.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.standardisation.as_ref()
    }

    /// The names of features (`x`, or `x0`, `x1`, ... if unknown) and target.
    pub fn columns(&self) -> Columns {
        self.columns.clone().unwrap_or_else(|| {
            let features = match self.spec.dimension() {
                1 => vec!["x".to_owned()],
                dimension => (0..dimension).map(|index| format!("x{index}")).collect(),
            };
            Columns { features, target: "y".to_owned() }
        })
    }

    /// The task in the units of the prior.
    ///
    /// # Errors
    /// When the task's inputs have another dimension.
    pub fn standardise(&self, task: &Task) -> Result<Task> {
        if task.dimension() != self.spec.dimension() {
            return Err(Error::input(
                format!("task `{}`", task.name()),
                format!(
                    "has {}, the prior expects {}",
                    counted(task.dimension(), "feature"),
                    self.spec.dimension()
                ),
            ));
        }
        match &self.standardisation {
            Some(standardisation) => standardisation.apply(task),
            None => Ok(task.clone()),
        }
    }

    /// Adapts the prior to a support set (original units).
    ///
    /// # Errors
    /// When no base learner is known, the dimension differs or the posterior cannot be computed.
    pub fn adapt(&self, support: &Task) -> Result<Adapted> {
        let learner = self.learner_for("the checkpoint")?;
        let standardised = self.standardise(support)?;
        Adapted::new(&self.spec, &self.parameters, learner, &standardised, self.standardisation.clone())
    }

    /// The base learner, or what to do about a checkpoint (`origin`) that states none.
    ///
    /// # Errors
    /// When no base learner is known.
    pub fn learner_for(&self, origin: impl std::fmt::Display) -> Result<&Learner> {
        self.learner.as_ref().ok_or_else(|| {
            let remedy = match self.spec {
                PriorSpec::GaussianProcess(_) => "no `learner` or `method` in its metadata); state a temperature with --temperature",
                PriorSpec::Network(_) => {
                    "no `learner` in its metadata); add one of kind `steps` or `proximal`, as docs/formats.md describes it"
                }
            };
            Error::input(origin, format!("does not say how to adapt ({remedy}"))
        })
    }

    /// Reads a checkpoint file, or the `prior.safetensors` of a run directory.
    ///
    /// # Errors
    /// When the file cannot be read or does not hold a prior.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let prior = path.join("prior.safetensors");
            if path.join("study.json").exists() {
                return Err(Error::input(
                    path.display(),
                    "is the folder of a study or sweep, not of a run: look at its report.html, or train a run with `pacmeta train`",
                ));
            }
            if !prior.exists() {
                let message = match path.join("config.toml").exists() {
                    true => {
                        "the folder has no prior.safetensors: it is not a finished run; continue it with the same `pacmeta train` \
                         command"
                    }
                    false => {
                        "the folder has no prior.safetensors: it is not that of a run; give the folder that `pacmeta train` wrote"
                    }
                };
                return Err(Error::input(path.display(), message));
            }
            return Self::from_checkpoint(prior.display(), &Checkpoint::read(&prior)?);
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            return Err(Error::input(
                path.display(),
                "is a configuration, not a run or a checkpoint; learn a prior from it with `pacmeta train`, and give the \
                 folder of that run",
            ));
        }
        if let Err(source) = std::fs::metadata(path) {
            let expected =
                "the folder of a run or a checkpoint; check the path, or make a run with `pacmeta train`";
            return Err(Error::reading(path, source, expected));
        }
        Self::from_checkpoint(path.display(), &Checkpoint::read(path)?)
    }

    /// Interprets a checkpoint. The prior's shape comes from the tensors; metadata add what tensors cannot say.
    ///
    /// # Errors
    /// When tensors are missing, unknown or of the wrong shape, or the metadata contradict them.
    pub fn from_checkpoint(origin: impl std::fmt::Display, checkpoint: &Checkpoint) -> Result<Self> {
        let origin = origin.to_string();
        if checkpoint.tensor("head.weight").is_some() {
            return Err(Error::input(
                &origin,
                "is a network for pictures: use it with `pacmeta adapt RUN --support FOLDER --query FOLDER`; this command is for \
                 regression",
            ));
        }
        if checkpoint.tensor("embeddings.word").is_some() {
            return Err(Error::input(
                &origin,
                "is an encoder of texts: use it with `pacmeta adapt RUN --support FILE --query FILE`; this command is for regression",
            ));
        }
        if checkpoint.tensors.iter().any(|tensor| tensor.name.starts_with("parameters.")) {
            return Err(Error::input(
                &origin,
                "is the state of a training run, not a prior; take the prior.safetensors of the finished run, or its folder",
            ));
        }
        let spec = shape::infer(&origin, checkpoint)?;
        let parameters = checkpoint.parameters(&origin, spec.layout()?)?;
        let mut model = Self::new(spec, parameters);
        if let Some(metadata) = &checkpoint.metadata {
            model.read_metadata(&origin, metadata)?;
        }
        model.check_temperatures(&origin)?;
        if model.learner.is_none() {
            model.learner = model.learner_of_method();
        }
        Ok(model)
    }

    fn read_metadata(&mut self, origin: &str, stated: &Value) -> Result<()> {
        let Value::Object(entries) = stated else {
            return Err(Error::input_at(origin, "metadata `pacmeta`", "expected a JSON object"));
        };
        for (key, value) in entries {
            let place = || metadata::place(key);
            match key.as_str() {
                "format" | "written_by" => {}
                "prior" => check_prior(origin, value, &self.spec)?,
                "standardisation" if !value.is_null() => {
                    let standardisation: Standardisation = metadata::part(origin, key, value)?;
                    standardisation
                        .check_dimension(self.spec.dimension())
                        .map_err(|error| Error::input_at(origin, place(), error.to_string()))?;
                    self.standardisation = Some(standardisation);
                }
                "learner" if !value.is_null() => {
                    let learner: Learner = metadata::part(origin, key, value)?;
                    learner.check().map_err(|message| Error::input_at(origin, place(), message))?;
                    self.learner = Some(learner);
                }
                "columns" if !value.is_null() => {
                    let columns: Columns = metadata::part(origin, key, value)?;
                    if columns.features.len() != self.spec.dimension() {
                        let message = format!(
                            "names {}, the prior has {}",
                            counted(columns.features.len(), "feature"),
                            self.spec.dimension()
                        );
                        return Err(Error::input_at(origin, place(), message));
                    }
                    self.columns = Some(columns);
                }
                _ => {
                    self.notes.insert(key.clone(), value.clone());
                }
            }
        }
        Ok(())
    }

    /// Refuses temperatures among the metadata that are none.
    fn check_temperatures(&self, origin: &str) -> Result<()> {
        for name in ["alpha", "beta"] {
            let stated = self.notes.get("method").and_then(|method| method.get(name));
            if let Some(value) = stated.filter(|value| !value.is_null())
                && !value.as_f64().is_some_and(|value| value.is_finite() && value > 0.0)
            {
                let place = format!("metadata `pacmeta`, key `method.{name}`");
                return Err(Error::input_at(origin, place, format!("is {value}, expected a number above 0")));
            }
        }
        Ok(())
    }

    /// A checkpoint of another program may state `method.alpha` or `method.beta` only, or have its noise among the
    /// tensors.
    fn learner_of_method(&self) -> Option<Learner> {
        if let PriorSpec::GaussianProcess(GaussianProcessSpec { kernel: Kernel::Learned, .. }) = self.spec {
            return Some(Learner::LearnedNoise);
        }
        let method = self.notes.get("method")?;
        let temperature = method.get("alpha").or_else(|| method.get("beta"))?.as_f64()?;
        let learner = Learner::Gibbs { temperature, examples: 1.0, rule: TargetTemperature::Fixed };
        learner.check().is_ok().then_some(learner)
    }

    /// The model as a checkpoint in double precision.
    pub fn to_checkpoint(&self) -> Checkpoint {
        let tensors = NamedTensor::of_parameters(&self.parameters);
        let mut metadata = self.notes.clone();
        metadata.insert("prior".into(), json!(self.spec));
        if let Some(learner) = &self.learner {
            metadata.insert("learner".into(), json!(learner));
        }
        if let Some(standardisation) = &self.standardisation {
            metadata.insert("standardisation".into(), json!(standardisation));
        }
        if let Some(columns) = &self.columns {
            metadata.insert("columns".into(), json!(columns));
        }
        Checkpoint { tensors, precision: Precision::F64, metadata: Some(Value::Object(metadata)) }
    }
}

/// Metadata may repeat the prior's shape; what they repeat must agree with the tensors.
fn check_prior(origin: &str, stated: &Value, spec: &PriorSpec) -> Result<()> {
    let Value::Object(stated) = stated else {
        return Err(Error::input_at(origin, "metadata `pacmeta`, key `prior`", "expected a JSON object"));
    };
    let found = json!(spec);
    for (key, value) in stated {
        if let Some(actual) = found.get(key)
            && actual != value
        {
            return Err(Error::input_at(
                origin,
                format!("metadata `pacmeta`, key `prior.{key}`"),
                format!("says {value}, the tensors say {actual}"),
            ));
        }
    }
    Ok(())
}
