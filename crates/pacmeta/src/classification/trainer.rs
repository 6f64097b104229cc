//! The loop of image classification: draw episodes, average their gradients, step.
//!
//! ```text
//! minimise over p:  mean over the batch of the method's objective  +  (xi / sigma0^2) |p|^2 / 2
//! ```
//!
//! The episodes of iteration k depend on the seed and k only, and gradients are added in the order of the batch, so that a
//! run continued from a checkpoint, or on another number of threads, is the same run.

use pacmeta_tensor::conv::ConvBody;
use pacmeta_tensor::{Key, Parameters};
use rayon::prelude::*;

use super::pass::{AdaptingMethod, Network, TaskRoom};
use crate::config::ImageConfig;
use crate::config::images::HeadStart;
use crate::environments::images::{ClassId, Episode, EpisodeSampler, ImageSet};
use crate::error::{Error, Result};
use crate::methods::heads::HeadTerms;
use crate::training::checkpoint::TrainingState;
use crate::training::optimiser::Optimiser;

/// From so many pictures on a task alone keeps all threads busy: tasks then run one after another, in one room.
const LARGE_TASK: usize = 40;

/// What one iteration saw, or its mean over several.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ImageTerms {
    /// The method's objective plus the hyper-prior term.
    pub total: f64,
    /// The loss of what adapted, the head or the network, on the judged pictures.
    pub risk: f64,
    /// Its loss on S'.
    pub subset_risk: f64,
    /// The part of the pictures outside S' that it classifies rightly; of all pictures where it adapts to all of
    /// them or to none (PACOH, Reptile, multi-task).
    pub accuracy: f64,
    /// The norm of the gradient, before it is cut.
    pub gradient_norm: f64,
}

impl ImageTerms {
    /// Names and values, for metrics.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("total", self.total),
            ("risk", self.risk),
            ("subset_risk", self.subset_risk),
            ("accuracy", self.accuracy),
            ("gradient_norm", self.gradient_norm),
        ]
    }
}

/// A training run in memory.
pub struct ImageTrainer<'a> {
    config: &'a ImageConfig,
    set: &'a ImageSet,
    classes: &'a [ClassId],
    sampler: EpisodeSampler,
    body: ConvBody,
    method: AdaptingMethod,
    parameters: Parameters<f64>,
    single: Vec<f32>,
    optimiser: Optimiser,
    gradient: Vec<f64>,
    rooms: Vec<TaskRoom>,
    iteration: u64,
    /// Sums since the last [`ImageTrainer::take_window`], and their number.
    window: [f64; 6],
}

impl<'a> ImageTrainer<'a> {
    /// A run from fresh parameters on the pictures of the given classes.
    ///
    /// # Errors
    /// When there are too few classes or pictures for a task.
    pub fn new(config: &'a ImageConfig, set: &'a ImageSet, classes: &'a [ClassId]) -> Result<Self> {
        let spec = config.spec();
        let body = spec.body()?;
        let sampler = EpisodeSampler { way: config.data.way, shots: config.data.shots };
        sampler.check(set, classes, "training")?;
        let mut parameters = spec.initialise(Key::new(config.seed).named("initialisation"))?;
        if config.prior.head == HeadStart::Zero {
            parameters.values_mut()[body.layout().len()..].fill(0.0);
        }
        let examples = config.data.way * config.data.shots;
        let rooms = if examples < LARGE_TASK { config.training.batch } else { 1 };
        let size = parameters.values().len();
        Ok(Self {
            set,
            classes,
            sampler,
            method: AdaptingMethod::build(&config.method.settings(), config.method.adapts)?,
            optimiser: Optimiser::new(size, config.training.rate, 0.0),
            single: vec![0.0; size],
            gradient: vec![0.0; size],
            rooms: (0..rooms).map(|_| TaskRoom::new(&body)).collect(),
            parameters,
            body,
            iteration: 0,
            window: [0.0; 6],
            config,
        })
    }

    /// Iterations made.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The current parameters.
    pub fn parameters(&self) -> &Parameters<f64> {
        &self.parameters
    }

    /// The gradient of the last iteration.
    pub fn gradient(&self) -> &[f64] {
        &self.gradient
    }

    /// A task of an iteration's batch; iterations count from 0.
    pub fn episode(&self, iteration: u64, task: usize) -> Episode {
        self.sampler.draw(
            self.set,
            self.classes,
            task_key(self.config.seed, iteration, task).named("episode"),
        )
    }

    /// One iteration.
    ///
    /// # Errors
    /// When a number is not finite; the parameters are then those before it.
    pub fn step(&mut self) -> Result<ImageTerms> {
        round(self.parameters.values(), &mut self.single);
        let weight = self.config.training.hyper_prior;
        for (gradient, value) in self.gradient.iter_mut().zip(self.parameters.values()) {
            *gradient = weight * value;
        }
        let network = Network { body: &self.body, parameters: &self.single, classes: self.config.data.way };
        let (method, set, classes, sampler) = (&self.method, self.set, self.classes, &self.sampler);
        let (seed, iteration) = (self.config.seed, self.iteration);
        let subset = self.config.data.way * self.config.data.support;
        let pass = |task: usize, room: &mut TaskRoom| {
            let key = task_key(seed, iteration, task);
            let episode = sampler.draw(set, classes, key.named("episode"));
            network.gradient(method, set, &episode, subset, key.named("method"), room)
        };
        let batch = self.config.training.batch;
        let mut terms = Vec::with_capacity(batch);
        if self.rooms.len() < batch {
            for task in 0..batch {
                terms.push(pass(task, &mut self.rooms[0]));
                add(&self.rooms[0], batch, &mut self.gradient);
            }
        } else {
            let rooms = self.rooms.par_iter_mut().with_max_len(1).enumerate();
            terms = rooms.map(|(task, room)| pass(task, room)).collect();
            self.rooms.iter().for_each(|room| add(room, batch, &mut self.gradient));
        }
        let terms = self.mean(terms)?;
        if self.config.prior.head == HeadStart::Zero {
            self.gradient[self.body.layout().len()..].fill(0.0);
        }
        let terms = self.clip(terms)?;
        self.optimiser.step(self.parameters.values_mut(), &self.gradient);
        self.iteration += 1;
        for (sum, (_, value)) in self.window.iter_mut().zip(terms.named()) {
            *sum += value;
        }
        self.window[5] += 1.0;
        Ok(terms)
    }

    /// The mean over the batch; a failed task is named with its iteration.
    fn mean(&self, terms: Vec<Result<HeadTerms>>) -> Result<ImageTerms> {
        let mut mean = ImageTerms::default();
        let share = 1.0 / terms.len() as f64;
        let mut objective = 0.0;
        for (task, terms) in terms.into_iter().enumerate() {
            let iteration = self.iteration + 1;
            let terms =
                terms.map_err(|error| Error::TaskFailed { iteration, task, reason: Box::new(error) })?;
            if !terms.objective.is_finite() {
                return Err(self.diverged(format!("the loss of task {task} of the batch")));
            }
            objective += share * terms.objective;
            mean.risk += share * terms.risk;
            mean.subset_risk += share * terms.subset_risk;
            mean.accuracy += share * terms.accuracy;
        }
        let squares: f64 = match self.config.training.hyper_prior {
            0.0 => 0.0,
            weight => 0.5 * weight * self.parameters.squared_norm(),
        };
        mean.total = objective + squares;
        Ok(mean)
    }

    /// Cuts a gradient that is too long.
    fn clip(&mut self, terms: ImageTerms) -> Result<ImageTerms> {
        let gradient_norm = self.gradient.iter().map(|value| value * value).sum::<f64>().sqrt();
        if !gradient_norm.is_finite() {
            return Err(self.diverged("the gradient".to_owned()));
        }
        let longest = self.config.training.clip;
        if longest > 0.0 && gradient_norm > longest {
            let factor = longest / gradient_norm;
            self.gradient.iter_mut().for_each(|value| *value *= factor);
        }
        Ok(ImageTerms { gradient_norm, ..terms })
    }

    fn diverged(&self, quantity: String) -> Error {
        Error::Diverged { iteration: self.iteration + 1, quantity }
    }

    /// The mean terms since the last call.
    pub fn take_window(&mut self) -> ImageTerms {
        let [total, risk, subset_risk, accuracy, gradient_norm, count] = std::mem::take(&mut self.window);
        let mean = |sum: f64| sum / count.max(1.0);
        ImageTerms {
            total: mean(total),
            risk: mean(risk),
            subset_risk: mean(subset_risk),
            accuracy: mean(accuracy),
            gradient_norm: mean(gradient_norm),
        }
    }

    /// The state to be stored.
    pub fn state(&self) -> TrainingState {
        TrainingState::of_loop(self.iteration, &self.parameters, &self.optimiser, &self.window)
    }

    /// Continues from a stored state.
    ///
    /// # Errors
    /// When the state is that of another network.
    pub fn restore(&mut self, state: &TrainingState) -> Result<()> {
        state.restore_loop(&mut self.parameters, &mut self.optimiser, &mut self.window)?;
        self.iteration = state.iteration;
        Ok(())
    }
}

/// The key of everything random about a task of a batch.
fn task_key(seed: u64, iteration: u64, task: usize) -> Key {
    Key::new(seed).named("training").index(iteration).index(task as u64)
}

/// Adds a task's share of the mean gradient.
fn add(room: &TaskRoom, batch: usize, gradient: &mut [f64]) {
    let share = 1.0 / batch as f64;
    let values = room.body_gradient.iter().chain(&room.head_gradient.head);
    for (gradient, value) in gradient.iter_mut().zip(values) {
        *gradient += share * f64::from(*value);
    }
}

/// Parameters in the precision of the body.
pub(super) fn round(parameters: &[f64], single: &mut [f32]) {
    for (single, value) in single.iter_mut().zip(parameters) {
        *single = *value as f32;
    }
}
