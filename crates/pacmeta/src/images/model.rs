//! A model of image classification: a meta-learned network with everything that is needed to use it on new pictures, and
//! its checkpoint file.

use std::path::Path;

use pacmeta_tensor::{Key, Parameters};
use serde_json::{Map, Value, json};

use super::evaluation::{Classifier, Support};
use super::pass::{AdaptingMethod, Network, TaskRoom};
use crate::classification::descent::rounded;
use crate::classification::metadata::{self, Metadata};
use crate::config::images::Normalisation;
use crate::error::{Error, Result};
use crate::methods::heads::HeadMethodSettings;
use crate::methods::networks::Adapts;
use crate::priors::ConvolutionSpec;
use crate::training::checkpoint::Checkpoint;

/// The `kind` of the prior in the metadata.
const KIND: &str = "convolution";

/// A network, the method that it or its head adapts by, and how pictures are normalised.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageModel {
    spec: ConvolutionSpec,
    parameters: Parameters<f64>,
    settings: HeadMethodSettings,
    adapts: Adapts,
    normalisation: Normalisation,
    /// What else the metadata say: data, seed, how the run went. Kept as it was.
    pub notes: Map<String, Value>,
}

/// Pictures of a new task with their classes.
#[derive(Debug, Clone, Copy)]
pub struct LabelledPictures<'a> {
    /// Bytes in the order picture, row, column, channel, of the size of [`ImageModel::spec`].
    pub pixels: &'a [u8],
    /// A class for each picture, below `classes`.
    pub labels: &'a [usize],
    /// The number of classes.
    pub classes: usize,
}

impl ImageModel {
    /// A model whose head adapts, from its parts.
    pub fn new(
        spec: ConvolutionSpec,
        parameters: Parameters<f64>,
        settings: HeadMethodSettings,
        normalisation: Normalisation,
    ) -> Self {
        Self { spec, parameters, settings, adapts: Adapts::Head, normalisation, notes: Map::new() }
    }

    /// The shape of the network.
    pub fn spec(&self) -> &ConvolutionSpec {
        &self.spec
    }

    /// Its numbers.
    pub fn parameters(&self) -> &Parameters<f64> {
        &self.parameters
    }

    /// The same, but that this adapts.
    #[must_use]
    pub fn adapting(mut self, adapts: Adapts) -> Self {
        self.adapts = adapts;
        self
    }

    /// What adapts to a new task.
    pub fn adapts(&self) -> Adapts {
        self.adapts
    }

    /// How it adapts.
    pub fn settings(&self) -> &HeadMethodSettings {
        &self.settings
    }

    /// Whose statistics batch norm takes at a new task.
    pub fn normalisation(&self) -> Normalisation {
        self.normalisation
    }

    /// The same with another normalisation.
    #[must_use]
    pub fn with_normalisation(mut self, normalisation: Normalisation) -> Self {
        self.normalisation = normalisation;
        self
    }

    /// The parameters in the precision of the body.
    pub(super) fn rounded(&self) -> Vec<f32> {
        rounded(&self.parameters)
    }

    /// Adapts to a few labelled pictures and classifies others: for each query, the probability of each class.
    ///
    /// The head starts at zero, whatever was learned: weights of the first class in training tasks say nothing about the one
    /// that happens to be first here, and answers would depend on the order of the classes.
    ///
    /// # Errors
    /// When sizes do not fit, or a number is not finite.
    pub fn classify(&self, support: LabelledPictures<'_>, queries: &[u8], key: Key) -> Result<Vec<Vec<f32>>> {
        let body = self.spec.body()?;
        let picture = body.shape().image_len();
        if support.labels.is_empty() || support.pixels.len() != picture * support.labels.len() {
            return Err(Error::input("the support", "has another number of pixels than its pictures"));
        }
        if queries.is_empty() || !queries.len().is_multiple_of(picture) {
            return Err(Error::input("the queries", "expected at least one picture, of the network's size"));
        }
        if support.classes < 2 || support.labels.iter().any(|&label| label >= support.classes) {
            return Err(Error::input(
                "the support",
                "expected at least two classes, and labels below their number",
            ));
        }
        let mut single = self.rounded();
        single.truncate(body.layout().len());
        single.resize(single.len() + support.classes * (body.feature_count() + 1), 0.0);
        let method = AdaptingMethod::build(&self.settings, self.adapts)?;
        let classifier = Classifier {
            network: Network { body: &body, parameters: &single, classes: support.classes },
            method: &method,
            normalisation: self.normalisation,
        };
        let set = Support { pixels: support.pixels, labels: support.labels };
        let probabilities = classifier.classify(&set, queries, key, &mut TaskRoom::new(&body))?;
        Ok(probabilities.chunks_exact(support.classes).map(<[f32]>::to_vec).collect())
    }

    /// Whether a checkpoint holds such a model.
    pub fn is_in(checkpoint: &Checkpoint) -> bool {
        metadata::kind_of(checkpoint) == Some(KIND)
    }

    /// Reads a checkpoint file, or the `prior.safetensors` of a run directory.
    ///
    /// # Errors
    /// When the file cannot be read or does not hold such a model.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = if path.is_dir() { path.join("prior.safetensors") } else { path.to_path_buf() };
        Self::from_checkpoint(file.display(), &Checkpoint::read(&file)?)
    }

    /// Interprets a checkpoint.
    ///
    /// # Errors
    /// When tensors are missing, unknown or of the wrong shape, or the metadata do not say what the network is.
    pub fn from_checkpoint(origin: impl std::fmt::Display, checkpoint: &Checkpoint) -> Result<Self> {
        let origin = origin.to_string();
        let metadata = Metadata::of(&origin, checkpoint)?;
        let spec: ConvolutionSpec = metadata.part("prior")?;
        let layout = spec.layout().map_err(|error| Error::input(&origin, error.to_string()))?;
        let parameters = checkpoint.parameters(&origin, layout)?;
        let settings: HeadMethodSettings = metadata.part("method")?;
        let adapts = match metadata.has("adapts") {
            true => metadata.part("adapts")?,
            false => Adapts::Head,
        };
        AdaptingMethod::build(&settings, adapts)
            .map_err(|error| metadata.error("method", error.to_string()))?;
        let normalisation = metadata.part("normalisation")?;
        let mut model = Self::new(spec, parameters, settings, normalisation).adapting(adapts);
        model.notes = metadata.notes(&["method", "adapts", "normalisation"]);
        Ok(model)
    }

    /// The model as a checkpoint. Parameters are stored in the precision in which they are used.
    pub fn to_checkpoint(&self) -> Checkpoint {
        let parts = [
            ("method", json!(self.settings)),
            ("adapts", json!(self.adapts)),
            ("normalisation", json!(self.normalisation)),
        ];
        metadata::checkpoint(&self.parameters, KIND, json!(self.spec), &self.notes, parts)
    }
}
