//! The loop: draw a batch, ask the method for its objective and gradient, add the hyper-prior term, step.
//!
//! ```text
//! minimise over theta:  mean over the batch of W(theta)  +  xi |theta|^2 / (2 sigma0^2)
//! ```
//!
//! The batch of iteration k depends on the seed and k only, so a run continued from a checkpoint is the same run.

use pacmeta_tensor::Parameters;
use pacmeta_tensor::simd::dot;
use pulp::{Arch, Simd, WithSimd};

use super::checkpoint::TrainingState;
use super::optimiser::Optimiser;
use crate::error::{Error, Result};
use crate::methods::{Batch, BatchSampler, Member, Method};
use crate::task::Task;

/// The hyper-prior N(0, sigma0^2 I) and its weight xi in the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperPrior {
    /// xi = 1/lambda + 1/(n beta), or 1/(n beta) as in the paper's experiments.
    pub xi: f64,
    /// sigma0^2.
    pub sigma0_squared: f64,
}

/// What a trainer needs besides a method and tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainerSettings {
    /// How batches are drawn.
    pub sampler: BatchSampler,
    /// The hyper-prior term.
    pub hyper_prior: HyperPrior,
    /// The learning rate of Adam(W).
    pub rate: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

/// The objective of one iteration, or its mean over several.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IterationTerms {
    /// Mean W plus the hyper-prior term.
    pub total: f64,
    /// Mean W over the batch.
    pub objective: f64,
    /// The empirical risk in it.
    pub risk: f64,
    /// The divergence from the prior in it.
    pub divergence: f64,
    /// xi |theta|^2 / (2 sigma0^2).
    pub hyper_prior: f64,
}

impl IterationTerms {
    /// Names and values, for metrics.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("total", self.total),
            ("objective", self.objective),
            ("risk", self.risk),
            ("divergence", self.divergence),
            ("hyper_prior", self.hyper_prior),
        ]
    }
}

/// Numbers side by side: enough vectors to hide the latency of a sum.
const LANES: usize = 32;

/// Writes weight * theta and returns |theta|^2.
struct HyperPriorGradient<'a> {
    weight: f64,
    values: &'a [f64],
    gradient: &'a mut [f64],
}

impl WithSimd for HyperPriorGradient<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let (gradients, gradient_rest) = self.gradient.as_chunks_mut::<LANES>();
        let (values, rest) = self.values.as_chunks::<LANES>();
        let mut squares = [0.0_f64; LANES];
        for (gradient, value) in gradients.iter_mut().zip(values) {
            for lane in 0..LANES {
                gradient[lane] = self.weight * value[lane];
                squares[lane] = value[lane].mul_add(value[lane], squares[lane]);
            }
        }
        for (gradient, value) in gradient_rest.iter_mut().zip(rest) {
            *gradient = self.weight * value;
        }
        squares.iter().sum::<f64>() + dot(rest, rest)
    }
}

/// Whether every number is finite: 0 times one that is not is not 0.
struct AllFinite<'a>(&'a [f64]);

impl WithSimd for AllFinite<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let (chunks, rest) = self.0.as_chunks::<8>();
        let mut sums = [0.0; 8];
        for chunk in chunks {
            for lane in 0..8 {
                sums[lane] += 0.0 * chunk[lane];
            }
        }
        sums.iter().all(|sum| *sum == 0.0) && rest.iter().all(|value| value.is_finite())
    }
}

/// A training run in memory.
pub struct Trainer<'a> {
    method: Box<dyn Method>,
    tasks: &'a [Task],
    settings: TrainerSettings,
    parameters: Parameters<f64>,
    optimiser: Optimiser,
    iteration: u64,
    members: Vec<Member>,
    gradient: Vec<f64>,
    /// Sums since the last [`Trainer::take_window`], and their number.
    window: [f64; 6],
}

impl<'a> Trainer<'a> {
    /// A run from the given parameters on (standardised) tasks.
    ///
    /// # Errors
    /// When there are no tasks, or S' does not fit into one.
    pub fn new(
        method: Box<dyn Method>,
        tasks: &'a [Task],
        parameters: Parameters<f64>,
        mut settings: TrainerSettings,
    ) -> Result<Self> {
        if tasks.is_empty() {
            return Err(Error::input("training", "there are no observed tasks"));
        }
        if !method.uses_subset() {
            settings.sampler.subset = None;
        }
        settings.sampler.check(tasks)?;
        let size = parameters.values().len();
        Ok(Self {
            method,
            tasks,
            optimiser: Optimiser::new(size, settings.rate, settings.weight_decay),
            settings,
            gradient: vec![0.0; size],
            parameters,
            iteration: 0,
            members: Vec::new(),
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

    /// One iteration.
    ///
    /// # Errors
    /// When a task cannot be computed or the objective is not finite; the parameters are then those before it.
    pub fn step(&mut self) -> Result<IterationTerms> {
        let HyperPrior { xi, sigma0_squared } = self.settings.hyper_prior;
        self.settings.sampler.draw(self.tasks, self.iteration, &mut self.members);
        let weight = xi / sigma0_squared;
        let values = self.parameters.values();
        let arch = Arch::new();
        let squared_norm = arch.dispatch(HyperPriorGradient { weight, values, gradient: &mut self.gradient });
        let batch = Batch { tasks: self.tasks, members: &self.members };
        let terms = self.method.meta_gradient(values, &batch, &mut self.gradient)?;
        let hyper_prior = 0.5 * weight * squared_norm;
        let terms = IterationTerms {
            total: terms.objective + hyper_prior,
            objective: terms.objective,
            risk: terms.risk,
            divergence: terms.divergence,
            hyper_prior,
        };
        if !terms.total.is_finite() || !arch.dispatch(AllFinite(&self.gradient)) {
            return Err(Error::Diverged {
                iteration: self.iteration + 1,
                quantity: if terms.total.is_finite() { "the gradient" } else { "the objective" }.to_owned(),
            });
        }
        self.optimiser.step(self.parameters.values_mut(), &self.gradient);
        self.iteration += 1;
        for (sum, (_, value)) in self.window.iter_mut().zip(terms.named()) {
            *sum += value;
        }
        self.window[5] += 1.0;
        Ok(terms)
    }

    /// The mean terms since the last call.
    pub fn take_window(&mut self) -> IterationTerms {
        let [total, objective, risk, divergence, hyper_prior, count] = self.window;
        self.window = [0.0; 6];
        let mean = |sum: f64| sum / count.max(1.0);
        IterationTerms {
            total: mean(total),
            objective: mean(objective),
            risk: mean(risk),
            divergence: mean(divergence),
            hyper_prior: mean(hyper_prior),
        }
    }

    /// Everything that a continued run needs.
    pub fn state(&self) -> TrainingState {
        TrainingState::of_loop(self.iteration, &self.parameters, &self.optimiser, &self.window)
    }

    /// Continues from a stored state.
    ///
    /// # Errors
    /// When the state belongs to another prior.
    pub fn restore(&mut self, state: &TrainingState) -> Result<()> {
        state.restore_loop(&mut self.parameters, &mut self.optimiser, &mut self.window)?;
        self.iteration = state.iteration;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pacmeta_tensor::Key;
    use pacmeta_tensor::simd::every_arch;

    use super::*;
    use crate::bounds::{ObjectiveKind, ObjectiveRequest, objective};
    use crate::methods::{MethodSettings, Resample, SubsetRule};
    use crate::model::Model;
    use crate::priors::{GaussianProcessSpec, PriorSpec};

    #[test]
    fn the_hyper_prior_s_gradient_is_right_at_every_length() {
        for arch in every_arch() {
            for length in [1, 7, 31, 32, 33, 63, 77, 96, 131] {
                let values: Vec<f64> = (0..length).map(|i| (0.7 * i as f64 + 0.3).sin()).collect();
                let mut gradient = vec![f64::NAN; length];
                let squares = arch.dispatch(HyperPriorGradient {
                    weight: 0.3,
                    values: &values,
                    gradient: &mut gradient,
                });
                let expected: f64 = values.iter().map(|value| value * value).sum();
                assert!((squares - expected).abs() < 1e-13 * expected, "{arch:?}, {length}: {squares}");
                assert!(
                    gradient.iter().zip(&values).all(|(g, value)| *g == 0.3 * value),
                    "{arch:?}, {length}"
                );
            }
        }
    }

    #[test]
    fn the_first_step_goes_along_the_gradient_of_the_whole_objective() {
        let spec = PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1));
        let start = spec.initialise(Key::new(1)).unwrap();
        let task = Task::new("a", 1, vec![0.1, -0.7, 1.2], vec![0.5, -1.0, 0.8]).unwrap();
        // xi = 1/(n beta) = 1/2.
        let (beta, sigma0_squared) = (2.0, 0.5);
        let request =
            ObjectiveRequest { sigma0_squared, ..ObjectiveRequest::new(ObjectiveKind::Pacoh { beta }) };
        let model = Model::new(spec.clone(), start.clone());
        let mut gradient = start.clone();
        let expected = objective(&model, std::slice::from_ref(&task), &request, Some(&mut gradient)).unwrap();
        let settings = TrainerSettings {
            sampler: BatchSampler {
                size: 1,
                subset: None,
                rule: SubsetRule::Nested,
                resample: Resample::EachIteration,
                key: Key::new(2),
            },
            hyper_prior: HyperPrior { xi: 0.5, sigma0_squared },
            rate: 1e-3,
            weight_decay: 0.0,
        };
        let method = MethodSettings::Pacoh { beta }.build(&spec).unwrap();
        let mut trainer = Trainer::new(method, std::slice::from_ref(&task), start.clone(), settings).unwrap();
        let terms = trainer.step().unwrap();
        assert!((terms.total - expected.total).abs() < 1e-12 * expected.total.abs());
        assert!((terms.hyper_prior - expected.xi * expected.hyper_kl).abs() < 1e-12 * terms.hyper_prior);
        let state = trainer.state();
        let (name, first_moment) = &state.optimiser[0];
        assert_eq!((name.as_str(), first_moment.len()), ("first_moment", start.values().len()));
        let mut pull: f64 = 0.0;
        for ((moment, gradient), theta) in first_moment.iter().zip(gradient.values()).zip(start.values()) {
            assert!((moment - 0.1 * gradient).abs() < 1e-13, "{moment} for {gradient}");
            pull = pull.max(0.1 * theta.abs()); // xi/sigma0^2 = 1
        }
        assert!(pull > 1e-2, "the hyper-prior's part, {pull}, is large enough to be missed");
    }
}
