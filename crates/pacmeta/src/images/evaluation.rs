//! Test tasks: adapt to the support, predict the queries.

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::{Images, Statistics, Workspace};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::model::ImageModel;
use super::pass::{AdaptingMethod, Network, TaskRoom};
use crate::classification::scores::{LEAST_PROBABILITY, Stop, most_probable};
use crate::config::images::Normalisation;
use crate::environments::images::{ClassId, Episode, EpisodeSampler, ImageSet};
use crate::error::{Error, Result};
use crate::learners::head::{Examples, predict};
use crate::learners::network::Pictures;

/// Queries that are classified at a time where they do not depend on each other.
const CHUNK: usize = 256;

/// One scored picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// The right class of the task.
    pub label: usize,
    /// The probability of each class of the task.
    pub probabilities: Vec<f32>,
}

impl Query {
    /// The most probable class.
    pub fn predicted(&self) -> usize {
        most_probable(&self.probabilities)
    }

    /// Whether that is the right one.
    pub fn is_right(&self) -> bool {
        self.predicted() == self.label
    }
}

/// The predictions of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskPrediction {
    /// The scored pictures, in the order of the episode.
    pub queries: Vec<Query>,
}

impl TaskPrediction {
    /// The part that is predicted rightly.
    pub fn accuracy(&self) -> f64 {
        self.queries.iter().filter(|query| query.is_right()).count() as f64 / self.queries.len() as f64
    }

    /// The mean log-probability of the right class.
    pub fn log_likelihood(&self) -> f64 {
        let sum: f64 = self
            .queries
            .iter()
            .map(|query| f64::from(query.probabilities[query.label]).max(LEAST_PROBABILITY).ln())
            .sum();
        sum / self.queries.len() as f64
    }
}

/// How a network classifies the pictures of a new task.
pub(super) struct Classifier<'a> {
    pub(super) network: Network<'a>,
    pub(super) method: &'a AdaptingMethod,
    pub(super) normalisation: Normalisation,
}

/// A support set: pixels, a label for each picture.
pub(super) struct Support<'a> {
    pub(super) pixels: &'a [u8],
    pub(super) labels: &'a [usize],
}

impl Classifier<'_> {
    /// The probabilities of each class for each query.
    pub(super) fn classify(
        &self,
        support: &Support<'_>,
        queries: &[u8],
        key: Key,
        room: &mut TaskRoom,
    ) -> Result<Vec<f32>> {
        let shape = self.network.head_shape();
        let (body, head) = self.network.parts();
        match self.method {
            AdaptingMethod::Head(method) => {
                let (features, of_queries) = self.features(body, support, queries, &mut room.workspace)?;
                let examples = Examples { features: &features, labels: support.labels };
                let heads = method.adapt(head, shape, examples, key, &mut room.head)?;
                predict(shape, &heads, &of_queries)
            }
            AdaptingMethod::Network(method) => {
                let together;
                let pixels = match self.normalisation {
                    Normalisation::Batch | Normalisation::Support => support.pixels,
                    // queries have no labels, and count in the statistics of every step
                    Normalisation::Together => {
                        together = [support.pixels, queries].concat();
                        &together
                    }
                };
                let pictures = Pictures { inputs: pixels, labels: support.labels };
                let parameters = self.network.parameters;
                let networks =
                    method.adapt(self.network.whole(), parameters, pictures, key, &mut room.network)?;
                let share = 1.0 / networks.len() as f32;
                let mut mean = Vec::new();
                for network in networks {
                    let (body, head) = network.split_at(body.len());
                    let (_, of_queries) = self.features(body, support, queries, &mut room.workspace)?;
                    let probabilities = predict(shape, &[head.to_vec()], &of_queries)?;
                    mean.resize(probabilities.len(), 0.0);
                    mean.iter_mut().zip(&probabilities).for_each(|(mean, value)| *mean += share * value);
                }
                Ok(mean)
            }
        }
    }

    /// The features of support and queries.
    fn features(
        &self,
        body: &[f32],
        support: &Support<'_>,
        queries: &[u8],
        workspace: &mut Workspace,
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        let forward = |pixels: &[u8], statistics: Statistics<'_>, workspace: &mut _| -> Result<Vec<f32>> {
            Ok(self.network.body.forward(body, Images::Bytes(pixels), statistics, workspace)?.to_vec())
        };
        match self.normalisation {
            Normalisation::Batch => {
                let of_support = forward(support.pixels, Statistics::Batch, workspace)?;
                Ok((of_support, forward(queries, Statistics::Batch, workspace)?))
            }
            Normalisation::Support => {
                let of_support = forward(support.pixels, Statistics::Batch, workspace)?;
                let moments = workspace.moments();
                let mut of_queries = Vec::new();
                for chunk in queries.chunks(CHUNK * self.network.body.shape().image_len()) {
                    of_queries.extend(forward(chunk, Statistics::Given(&moments), workspace)?);
                }
                Ok((of_support, of_queries))
            }
            Normalisation::Together => {
                let all = [support.pixels, queries].concat();
                let mut features = forward(&all, Statistics::Batch, workspace)?;
                let of_queries =
                    features.split_off(support.labels.len() * self.network.head_shape().features);
                Ok((features, of_queries))
            }
        }
    }
}

/// The test tasks of a model: episodes of `classes` with `support` and `query` pictures a class.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestTasks<'a> {
    pub(super) set: &'a ImageSet,
    pub(super) classes: &'a [ClassId],
    pub(super) support: usize,
    pub(super) query: usize,
    pub(super) way: usize,
    /// What the classes are for, e.g. `test`.
    pub(super) part: &'static str,
    pub(super) key: Key,
}

impl TestTasks<'_> {
    fn sampler(&self) -> EpisodeSampler {
        EpisodeSampler { way: self.way, shots: self.support + self.query }
    }

    /// Refuses too few classes or pictures.
    pub(super) fn check(&self) -> Result<()> {
        self.sampler().check(self.set, self.classes, self.part)
    }

    /// The episode of a task: the support first.
    pub(super) fn episode(&self, task: usize) -> Episode {
        self.sampler().draw(self.set, self.classes, self.key.index(task as u64).named("episode"))
    }

    /// The predictions of a model on the first `count` tasks.
    pub(super) fn predict(
        &self,
        model: &ImageModel,
        count: usize,
        stop: &Stop<'_>,
    ) -> Result<Vec<TaskPrediction>> {
        self.check()?;
        let body = model.spec().body()?;
        let single = model.rounded();
        let method = AdaptingMethod::build(model.settings(), model.adapts())?;
        let classifier = Classifier {
            network: Network { body: &body, parameters: &single, classes: self.way },
            method: &method,
            normalisation: model.normalisation(),
        };
        (0..count)
            .into_par_iter()
            .map_init(
                || TaskRoom::new(&body),
                |room, task| {
                    if stop() {
                        return Err(Error::ScoringInterrupted);
                    }
                    let episode = self.episode(task);
                    let first = self.way * self.support;
                    let (mut support, mut queries) = (Vec::new(), Vec::new());
                    episode.copy_pixels(self.set, 0..first, &mut support);
                    episode.copy_pixels(self.set, first..episode.len(), &mut queries);
                    let support = Support { pixels: &support, labels: &episode.labels[..first] };
                    let key = self.key.index(task as u64).named("method");
                    let probabilities = classifier.classify(&support, &queries, key, room)?;
                    let queries = episode.labels[first..].iter().zip(probabilities.chunks_exact(self.way));
                    let queries = queries.map(|(&label, probabilities)| Query {
                        label,
                        probabilities: probabilities.to_vec(),
                    });
                    Ok(TaskPrediction { queries: queries.collect() })
                },
            )
            .collect()
    }
}
