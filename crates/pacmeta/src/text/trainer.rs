//! An iteration of text classification: draw tasks, average their gradients, step ([`Descent`]).
//!
//! The hyper-prior is centred at the pretrained encoder, as in the paper.

use pacmeta_tensor::Parameters;

use super::pass::{AdaptingMethod, TaskRoom, TextNetwork};
use super::prior::TextPrior;
use crate::classification::descent::{Centre, DescentSettings};
use crate::classification::{Descent, MetaLearner, Stop, Terms};
use crate::config::TextConfig;
use crate::environments::text::{Balance, EpisodeSampler, EpisodeSource};
use crate::error::{Error, Result};
use crate::learners::network::RoomBytes;
use crate::methods::SubsetRule;
use crate::training::pieces;

/// The most bytes that training has needed so far, by phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrainingBytes {
    /// Parameters, gradient and the optimiser's moments.
    pub parameters: usize,
    /// Activations of forward and backward passes.
    pub passes: usize,
    /// Inner steps, tapes, and states kept between steps.
    pub inner: RoomBytes,
}

impl TrainingBytes {
    /// Their sum.
    pub fn total(&self) -> usize {
        self.parameters + self.passes + self.inner.total()
    }
}

/// A training run in memory.
pub struct TextTrainer<'a> {
    config: &'a TextConfig,
    source: &'a dyn EpisodeSource,
    sampler: EpisodeSampler,
    prior: &'a TextPrior,
    method: AdaptingMethod<f32>,
    descent: Descent,
    task_gradient: Vec<f32>,
    room: TaskRoom<f32>,
}

impl<'a> TextTrainer<'a> {
    /// A run from given parameters on episodes of a source.
    ///
    /// # Errors
    /// When the method cannot be built, or episodes cannot be drawn.
    pub fn new(
        config: &'a TextConfig,
        source: &'a dyn EpisodeSource,
        prior: &'a TextPrior,
        parameters: Parameters<f64>,
    ) -> Result<Self> {
        let sampler = sampler(config);
        source.check(&sampler)?;
        let method = AdaptingMethod::build(prior, &config.method.settings(), config.way_back)?;
        let settings = DescentSettings::of(&config.training, Centre::Start, config.seed);
        Ok(Self {
            config,
            source,
            sampler,
            prior,
            room: TaskRoom::new(&method),
            method,
            task_gradient: vec![0.0; parameters.values().len()],
            descent: Descent::new(parameters, settings),
        })
    }

    /// The most bytes needed so far.
    pub fn bytes(&self) -> TrainingBytes {
        let parameters = self.descent.bytes() + self.task_gradient.len() * size_of::<f32>();
        let (passes, inner) = self.room.bytes();
        TrainingBytes { parameters, passes, inner }
    }
}

impl MetaLearner for TextTrainer<'_> {
    fn descent(&self) -> &Descent {
        &self.descent
    }

    fn descent_mut(&mut self) -> &mut Descent {
        &mut self.descent
    }

    fn step_unless(&mut self, stop: &Stop<'_>) -> Result<Terms> {
        let hyper_prior = self.descent.begin();
        let batch = self.config.training.batch;
        let mut terms = Vec::with_capacity(batch);
        for task in 0..batch {
            let descent = &mut self.descent;
            if stop() {
                return Err(Error::Interrupted { iteration: descent.iteration() });
            }
            let key = descent.task_key(task);
            let network = TextNetwork {
                prior: self.prior,
                parameters: &descent.single,
                dropout: self.config.training.dropout,
            };
            let (room, to) = (&mut self.room, &mut self.task_gradient);
            let episode = self.source.draw(&self.sampler, key.named("episode"));
            let name = episode.as_ref().map_or_else(|_| String::new(), |episode| episode.task.clone());
            let of_task = episode.and_then(|episode| network.gradient(&self.method, &episode, key, room, to));
            if of_task.as_ref().is_ok_and(|terms| !terms.objective.is_finite()) {
                return Err(descent.diverged(format!("the loss of a task of {name}")));
            }
            let failed = of_task.is_err();
            terms.push(of_task);
            if failed {
                break;
            }
            let share = descent.share();
            pieces::add_scaled(&mut descent.gradient, share, &self.task_gradient);
        }
        self.descent.finish(hyper_prior, terms)
    }
}

/// The episodes of a configuration.
pub(super) fn sampler(config: &TextConfig) -> EpisodeSampler {
    let (examples, subset) = (config.data.examples, config.data.support);
    let outside = usize::from(config.method.split == SubsetRule::Disjoint);
    EpisodeSampler { examples, subset, outside, balance: Balance::Balanced }
}
