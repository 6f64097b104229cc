//! The outer descent of classification: the mean gradient of a batch of tasks, and the step.
//!
//! ```text
//! minimise over p:  mean over the batch of the method's objective  +  (xi / sigma0^2) |p - p_0|^2 / 2
//! ```
//!
//! Parameters are kept in f64 and rounded to f32 for the passes. What an iteration draws depends on the seed and its number only, and
//! gradients are added in the order of the batch, so that a run continued from a checkpoint, or on another number of threads, is the
//! same run.

use pacmeta_tensor::{Key, Parameters};

use crate::config::ClassificationTrainingConfig;
use crate::error::{Error, Result};
use crate::methods::heads::HeadTerms;
use crate::training::checkpoint::TrainingState;
use crate::training::optimiser::Optimiser;
use crate::training::pieces;

/// What one iteration saw, or its mean over several.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Terms {
    /// The method's objective plus the hyper-prior term.
    pub total: f64,
    /// The loss of what adapted, the head or more of the network, on the judged examples.
    pub risk: f64,
    /// Its loss on S'.
    pub subset_risk: f64,
    /// The part of the examples outside S' that it classifies rightly; of all examples where it adapts to all of them or to none
    /// (PACOH, Reptile, multi-task).
    pub accuracy: f64,
    /// The norm of the gradient, before it is cut.
    pub gradient_norm: f64,
}

impl Terms {
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

/// Where the hyper-prior pulls the parameters to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Centre {
    /// 0.
    Zero,
    /// Where they start: those of a pretrained network.
    Start,
}

/// How parameters are moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DescentSettings {
    /// The learning rate of Adam.
    pub(crate) rate: f64,
    /// The norm that a longer gradient is cut to; 0 cuts nothing.
    pub(crate) clip: f64,
    /// xi / sigma0^2.
    pub(crate) hyper_prior: f64,
    pub(crate) centre: Centre,
    /// Tasks in a batch.
    pub(crate) batch: usize,
    /// The seed of everything random.
    pub(crate) seed: u64,
}

impl DescentSettings {
    pub(crate) fn of(training: &ClassificationTrainingConfig, centre: Centre, seed: u64) -> Self {
        let ClassificationTrainingConfig { rate, clip, hyper_prior, batch, .. } = *training;
        Self { rate, clip, hyper_prior, centre, batch, seed }
    }
}

/// The parameters of a network while they are learned.
pub struct Descent {
    settings: DescentSettings,
    parameters: Parameters<f64>,
    /// The centre of the hyper-prior, where that is not 0.
    centre: Vec<f64>,
    /// The parameters in the precision of the passes.
    pub(crate) single: Vec<f32>,
    /// The mean gradient of the batch.
    pub(crate) gradient: Vec<f64>,
    optimiser: Optimiser,
    iteration: u64,
    /// Sums since the last [`Descent::take_window`], and their number.
    window: [f64; 6],
}

impl Descent {
    pub(crate) fn new(parameters: Parameters<f64>, settings: DescentSettings) -> Self {
        let size = parameters.values().len();
        Self {
            centre: match settings.centre {
                Centre::Start if settings.hyper_prior > 0.0 => parameters.values().to_vec(),
                _ => Vec::new(),
            },
            single: vec![0.0; size],
            gradient: vec![0.0; size],
            optimiser: Optimiser::new(size, settings.rate, 0.0),
            parameters,
            settings,
            iteration: 0,
            window: [0.0; 6],
        }
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

    /// The bytes of parameters, gradient, the optimiser's two moments, and their copies in f32.
    pub(crate) fn bytes(&self) -> usize {
        self.single.len() * (4 * size_of::<f64>() + size_of::<f32>()) + self.centre.len() * size_of::<f64>()
    }

    /// The key of everything random about a task of the coming iteration's batch.
    pub(crate) fn task_key(&self, task: usize) -> Key {
        self.task_key_at(self.iteration, task)
    }

    /// The same for any iteration, counted from 0.
    pub(crate) fn task_key_at(&self, iteration: u64, task: usize) -> Key {
        Key::new(self.settings.seed).named("training").index(iteration).index(task as u64)
    }

    /// Begins an iteration: rounded parameters, and a gradient that is the hyper-prior's. Also its term.
    pub(crate) fn begin(&mut self) -> f64 {
        pieces::round_into(self.parameters.values(), &mut self.single);
        let weight = self.settings.hyper_prior;
        if weight == 0.0 {
            pieces::clear(&mut self.gradient);
            return 0.0;
        }
        self.gradient.copy_from_slice(self.parameters.values());
        self.gradient.iter_mut().zip(&self.centre).for_each(|(away, centre)| *away -= centre);
        let squares = pieces::sum_of_squares(&self.gradient);
        pieces::scale(&mut self.gradient, weight);
        0.5 * weight * squares
    }

    /// Ends an iteration, the shares of all of whose tasks were added to the gradient: the mean of their terms, and the step.
    ///
    /// # Errors
    /// When a task failed or a number is not finite; the parameters are then those before the iteration. When the step itself leads
    /// out of single precision; they are then of no use.
    pub(crate) fn finish(&mut self, hyper_prior: f64, tasks: Vec<Result<HeadTerms>>) -> Result<Terms> {
        let terms = self.mean(hyper_prior, tasks)?;
        let longest = self.settings.clip;
        if longest > 0.0 && terms.gradient_norm > longest {
            let factor = longest / terms.gradient_norm;
            pieces::scale(&mut self.gradient, factor);
        }
        self.optimiser.step(self.parameters.values_mut(), &self.gradient);
        if !pieces::fit_single(self.parameters.values()) {
            return Err(Error::StepTooLong { iteration: self.iteration + 1, rate: self.settings.rate });
        }
        self.iteration += 1;
        for (sum, (_, value)) in self.window.iter_mut().zip(terms.named()) {
            *sum += value;
        }
        self.window[5] += 1.0;
        Ok(terms)
    }

    fn mean(&self, hyper_prior: f64, tasks: Vec<Result<HeadTerms>>) -> Result<Terms> {
        let iteration = self.iteration + 1;
        let share = self.share();
        let mut mean = Terms::default();
        for (task, terms) in tasks.into_iter().enumerate() {
            let terms = terms.map_err(|error| match error.is_interruption() {
                true => error,
                false => Error::TaskFailed { iteration, task, reason: Box::new(error) },
            })?;
            if !terms.objective.is_finite() {
                return Err(self.diverged(format!("the loss of task {task} of the batch")));
            }
            mean.total += share * terms.objective;
            mean.risk += share * terms.risk;
            mean.subset_risk += share * terms.subset_risk;
            mean.accuracy += share * terms.accuracy;
        }
        mean.total += hyper_prior;
        mean.gradient_norm = pieces::sum_of_squares(&self.gradient).sqrt();
        match mean.gradient_norm.is_finite() {
            true => Ok(mean),
            false => Err(self.diverged("the gradient".to_owned())),
        }
    }

    /// The error of an iteration one of whose quantities is not finite.
    pub(crate) fn diverged(&self, quantity: String) -> Error {
        Error::Diverged { iteration: self.iteration + 1, quantity }
    }

    /// The share of a task in the mean over the batch.
    pub(crate) fn share(&self) -> f64 {
        1.0 / self.settings.batch as f64
    }

    /// The mean terms since the last call.
    pub fn take_window(&mut self) -> Terms {
        let [total, risk, subset_risk, accuracy, gradient_norm, count] = std::mem::take(&mut self.window);
        let mean = |sum: f64| sum / count.max(1.0);
        Terms {
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

/// Adds a task's share of the mean gradient.
pub(crate) fn add_share<'a>(gradient: &mut [f64], share: f64, of_task: impl IntoIterator<Item = &'a f32>) {
    for (sum, value) in gradient.iter_mut().zip(of_task) {
        *sum += share * f64::from(*value);
    }
}

/// Parameters in the precision of the passes.
pub(crate) fn rounded(parameters: &Parameters<f64>) -> Vec<f32> {
    let mut single = vec![0.0; parameters.values().len()];
    pieces::round_into(parameters.values(), &mut single);
    single
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pacmeta_tensor::ParameterLayout;

    use super::*;

    fn descent(centre: Centre, hyper_prior: f64) -> Descent {
        let layout = Arc::new(ParameterLayout::builder().tensor("w", &[2]).build().unwrap());
        let parameters = Parameters::from_values(layout, vec![3.0, -4.0]).unwrap();
        let settings = DescentSettings { rate: 0.5, clip: 0.0, hyper_prior, centre, batch: 1, seed: 0 };
        Descent::new(parameters, settings)
    }

    fn terms(objective: f64) -> Vec<Result<HeadTerms>> {
        vec![Ok(HeadTerms { objective, risk: 0.5, subset_risk: 0.25, accuracy: 1.0 })]
    }

    #[test]
    fn the_hyper_prior_pulls_to_zero_or_to_the_start() {
        let mut zero = descent(Centre::Zero, 0.1);
        assert_eq!(zero.begin(), 0.5 * 0.1 * 25.0);
        assert_eq!(zero.gradient(), [0.1 * 3.0, 0.1 * -4.0]);

        let mut start = descent(Centre::Start, 0.1);
        assert_eq!((start.begin(), start.gradient()), (0.0, &[0.0, 0.0][..]));
        // one step away from it, Adam's first step being as long as the rate
        add_share(&mut start.gradient, 1.0, &[2.0_f32, 0.0]);
        assert_eq!(start.finish(0.0, terms(1.0)).unwrap().total, 1.0);
        assert!((start.parameters().values()[0] - 2.5).abs() < 1e-6);
        assert!((start.begin() - 0.5 * 0.1 * 0.25).abs() < 1e-6);
        assert!((start.gradient()[0] - 0.1 * -0.5).abs() < 1e-6 && start.gradient()[1] == 0.0);

        // a continued run has the centre of the one it continues
        let mut again = descent(Centre::Start, 0.1);
        again.restore(&start.state()).unwrap();
        assert_eq!((again.begin(), again.gradient()), (start.begin(), start.gradient()));
        assert_eq!(again.iteration(), 1);
    }

    #[test]
    fn a_step_out_of_single_precision_is_an_error() {
        let mut descent = descent(Centre::Zero, 0.0);
        // as long as the rate: far within double precision
        descent.optimiser = Optimiser::new(2, 1e39, 0.0);
        descent.begin();
        add_share(&mut descent.gradient, 1.0, &[1.0_f32, 0.0]);
        let error = descent.finish(0.0, terms(1.0)).unwrap_err();
        assert!(matches!(error, Error::StepTooLong { iteration: 1, .. }), "{error}");
        assert_eq!((error.is_divergence(), error.failing_state()), (true, None));
    }

    #[test]
    fn what_is_not_finite_changes_nothing() {
        let mut descent = descent(Centre::Zero, 0.0);
        let before = descent.parameters().clone();
        descent.begin();
        assert!(matches!(descent.finish(0.0, terms(f64::NAN)), Err(Error::Diverged { iteration: 1, .. })));
        add_share(&mut descent.gradient, 1.0, &[f32::INFINITY]);
        assert!(matches!(descent.finish(0.0, terms(1.0)), Err(Error::Diverged { iteration: 1, .. })));
        let failed = descent.finish(0.0, vec![Err(Error::input("a task", "is empty"))]);
        assert!(matches!(failed, Err(Error::TaskFailed { iteration: 1, task: 0, .. })));
        let given_up = descent.finish(0.0, vec![Err(Error::Interrupted { iteration: 0 })]);
        assert!(matches!(given_up, Err(Error::Interrupted { iteration: 0 })));
        assert_eq!((descent.parameters(), descent.iteration()), (&before, 0));
    }
}
