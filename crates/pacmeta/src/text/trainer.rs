//! The loop of text classification: draw a task, its gradient, step.
//!
//! ```text
//! minimise over p:  mean over the batch of the method's objective  +  (xi / sigma0^2) |p - p_pretrained|^2 / 2
//! ```
//!
//! The hyper-prior is centred at the pretrained encoder, as in the paper. The tasks of iteration k depend on the seed and k only, so
//! that a run continued from a checkpoint, or on another number of threads, is the same run.

use pacmeta_tensor::{Key, Parameters};

use super::pass::{AdaptingMethod, TaskRoom, TextNetwork};
use super::prior::TextPrior;
use crate::config::TextConfig;
use crate::environments::text::{Balance, EpisodeSampler, EpisodeSource};
use crate::error::{Error, Result};
use crate::learners::network::RoomBytes;
use crate::training::checkpoint::TrainingState;
use crate::training::optimiser::Optimiser;

/// What one iteration saw, or its mean over several.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TextTerms {
    /// The method's objective plus the hyper-prior term.
    pub total: f64,
    /// The loss of what adapted on the judged examples.
    pub risk: f64,
    /// Its loss on S'.
    pub subset_risk: f64,
    /// The part of the examples outside S' that it classifies rightly; of all examples where it adapts to all of them or to none.
    pub accuracy: f64,
    /// The norm of the gradient, before it is cut.
    pub gradient_norm: f64,
}

impl TextTerms {
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
    method: AdaptingMethod,
    /// p of the pretrained encoder, where a hyper-prior pulls to it.
    centre: Vec<f64>,
    parameters: Parameters<f64>,
    single: Vec<f32>,
    task_gradient: Vec<f32>,
    gradient: Vec<f64>,
    optimiser: Optimiser,
    room: TaskRoom,
    iteration: u64,
    window: [f64; 6],
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
        let size = parameters.values().len();
        let centre = match config.training.hyper_prior {
            0.0 => Vec::new(),
            _ => parameters.values().to_vec(),
        };
        Ok(Self {
            config,
            source,
            sampler,
            prior,
            room: TaskRoom::new(&method),
            method,
            centre,
            optimiser: Optimiser::new(size, config.training.rate, 0.0),
            parameters,
            single: vec![0.0; size],
            task_gradient: vec![0.0; size],
            gradient: vec![0.0; size],
            iteration: 0,
            window: [0.0; 6],
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

    /// The most bytes needed so far.
    pub fn bytes(&self) -> TrainingBytes {
        let size = self.parameters.values().len();
        // parameters, gradient and two moments in f64, rounded parameters and a task's gradient in f32
        let parameters =
            size * (4 * size_of::<f64>() + 2 * size_of::<f32>()) + self.centre.len() * size_of::<f64>();
        let (passes, inner) = self.room.bytes();
        TrainingBytes { parameters, passes, inner }
    }

    /// One iteration.
    ///
    /// # Errors
    /// When a number is not finite; the parameters are then those before it.
    pub fn step(&mut self) -> Result<TextTerms> {
        round(self.parameters.values(), &mut self.single);
        let weight = self.config.training.hyper_prior;
        let mut squares = 0.0;
        self.gradient.fill(0.0);
        for ((gradient, value), centre) in
            self.gradient.iter_mut().zip(self.parameters.values()).zip(&self.centre)
        {
            *gradient = weight * (value - centre);
            squares += (value - centre).powi(2);
        }
        let network = TextNetwork {
            prior: self.prior,
            parameters: &self.single,
            dropout: self.config.training.dropout,
        };
        let batch = self.config.training.batch;
        let share = 1.0 / batch as f64;
        let mut mean = TextTerms { total: 0.5 * weight * squares, ..TextTerms::default() };
        for task in 0..batch {
            let key = Key::new(self.config.seed).named("training").index(self.iteration).index(task as u64);
            let iteration = self.iteration + 1;
            let named = |error| Error::TaskFailed { iteration, task, reason: Box::new(error) };
            let episode = self.source.draw(&self.sampler, key.named("episode")).map_err(named)?;
            let (room, to) = (&mut self.room, &mut self.task_gradient);
            let terms = network.gradient(&self.method, &episode, key, room, to).map_err(named)?;
            if !terms.objective.is_finite() {
                return Err(self.diverged(format!("the loss of a task of {}", episode.task)));
            }
            for (sum, &value) in self.gradient.iter_mut().zip(&self.task_gradient) {
                *sum += share * f64::from(value);
            }
            mean.total += share * terms.objective;
            mean.risk += share * terms.risk;
            mean.subset_risk += share * terms.subset_risk;
            mean.accuracy += share * terms.accuracy;
        }
        mean.gradient_norm = self.gradient.iter().map(|value| value * value).sum::<f64>().sqrt();
        if !mean.gradient_norm.is_finite() {
            return Err(self.diverged("the gradient".to_owned()));
        }
        let longest = self.config.training.clip;
        if longest > 0.0 && mean.gradient_norm > longest {
            let factor = longest / mean.gradient_norm;
            self.gradient.iter_mut().for_each(|value| *value *= factor);
        }
        self.optimiser.step(self.parameters.values_mut(), &self.gradient);
        self.iteration += 1;
        for (sum, (_, value)) in self.window.iter_mut().zip(mean.named()) {
            *sum += value;
        }
        self.window[5] += 1.0;
        Ok(mean)
    }

    fn diverged(&self, quantity: String) -> Error {
        Error::Diverged { iteration: self.iteration + 1, quantity }
    }

    /// The mean terms since the last call.
    pub fn take_window(&mut self) -> TextTerms {
        let [total, risk, subset_risk, accuracy, gradient_norm, count] = std::mem::take(&mut self.window);
        let mean = |sum: f64| sum / count.max(1.0);
        TextTerms {
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
    /// When the state is that of another model.
    pub fn restore(&mut self, state: &TrainingState) -> Result<()> {
        state.restore_loop(&mut self.parameters, &mut self.optimiser, &mut self.window)?;
        self.iteration = state.iteration;
        Ok(())
    }
}

/// The episodes of a configuration.
pub(super) fn sampler(config: &TextConfig) -> EpisodeSampler {
    let (examples, subset) = (config.data.examples, config.data.support);
    EpisodeSampler { examples, subset, balance: Balance::Balanced }
}

/// Parameters in the precision of the passes.
pub(super) fn round(parameters: &[f64], single: &mut [f32]) {
    for (single, value) in single.iter_mut().zip(parameters) {
        *single = *value as f32;
    }
}
