//! The pieces of a sweep: one model of one setting, trained and scored; and the floor that needs no training.

use std::sync::Arc;
use std::time::Instant;

use pacmeta_tensor::simd::instructions;
use serde::{Deserialize, Serialize};

use crate::config::{Config, MethodKind};
use crate::error::{Error, Result};
use crate::evaluation::{Floor, PlainGp, Scores, evaluate, floor_scores};
use crate::experiment::{Experiment, Observer, TemperatureChoice};
use crate::studies::spec::{Keep, Spec, Stop, Tell};
use crate::training::IterationTerms;
use crate::training::checkpoint::TrainingState;

/// A piece of a sweep. Its content is a resolved configuration and a checksum of all tasks, so that changed data are other
/// models.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SweepSpec {
    /// A model.
    Model {
        /// The configuration; its seed is that of the model.
        config: Box<Config>,
        /// The checksum of the tasks.
        data: String,
        /// The setting in words.
        #[serde(skip)]
        label: String,
        /// The tasks; absent in what was read from a file, which cannot be trained.
        #[serde(skip)]
        tasks: Option<Arc<Experiment>>,
    },
    /// A Gaussian process fitted to each support alone.
    PlainGp {
        /// The checksum of the tasks.
        data: String,
        /// The tasks.
        #[serde(skip)]
        tasks: Option<Arc<Experiment>>,
    },
}

/// What came out of a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepOutcome {
    /// Scores of each scored task, after adaptation.
    pub scores: TaskErrors,
    /// The same of the prior's mean without adaptation, for models.
    pub prior_mean: Option<TaskErrors>,
    /// beta, where the method has one.
    pub beta: Option<f64>,
    /// alpha, where it was searched for.
    pub alpha: Option<f64>,
}

/// Scores by task, in original units, in the order of the scored tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskErrors {
    /// Root mean squared error.
    pub rmse: Vec<f64>,
    /// Log-likelihood of a query point.
    pub log_likelihood: Vec<f64>,
    /// Calibration error.
    pub calibration_error: Vec<f64>,
    /// Coverage of the 95% interval.
    pub coverage95: Vec<f64>,
}

impl TaskErrors {
    /// None if a number is not finite: it could not be written, and stands for a failure.
    fn of(scores: &Scores) -> Option<Self> {
        let list = |value: fn(&crate::evaluation::TaskScores) -> f64| -> Option<Vec<f64>> {
            let values: Vec<f64> = scores.per_task.iter().map(value).collect();
            values.iter().all(|value| value.is_finite()).then_some(values)
        };
        Some(Self {
            rmse: list(|task| task.rmse)?,
            log_likelihood: list(|task| task.log_likelihood)?,
            calibration_error: list(|task| task.calibration_error)?,
            coverage95: list(|task| task.coverage95)?,
        })
    }
}

impl Spec for SweepSpec {
    const STUDY: &'static str = "sweep";
    const VERSION: u32 = 1;
    type Outcome = SweepOutcome;

    fn label(&self) -> String {
        match self {
            Self::Model { config, label, .. } => format!("{label}, seed {}", config.seed),
            Self::PlainGp { .. } => Floor::PlainGp.name().to_owned(),
        }
    }

    /// Iterations, weighted by method; trials of a search for temperatures included.
    fn cost(&self) -> f64 {
        let Self::Model { config, .. } = self else { return 100.0 };
        let weight = match config.method.kind {
            MethodKind::Reptile => 10.0,
            MethodKind::Maml => 3.0,
            _ => 1.0,
        };
        let search = config.search.as_ref().map_or(0, |search| {
            let candidates = search.beta_per_example.len().max(1) * search.alpha_per_example.len().max(1);
            candidates as u64 * search.folds as u64 * search.iterations
        });
        100.0 + weight * config.training.iterations.saturating_add(search) as f64
    }

    fn run(&self, stop: Stop<'_>) -> Result<SweepOutcome> {
        self.compute(stop, None)
    }

    fn run_keeping(&self, stop: Stop<'_>, keep: &Keep, tell: Tell<'_>) -> Result<SweepOutcome> {
        self.compute(stop, Some((keep, tell)))
    }
}

impl SweepSpec {
    /// A piece that was read from a file, with its tasks and its [label](Spec::label), so that it can be computed.
    pub(in crate::studies) fn with_tasks(mut self, experiment: &Arc<Experiment>, text: &str) -> Self {
        match &mut self {
            Self::Model { config, label, tasks, .. } => {
                let seed = format!(", seed {}", config.seed);
                *label = text.strip_suffix(&seed).unwrap_or(text).to_owned();
                *tasks = Some(Arc::clone(experiment));
            }
            Self::PlainGp { tasks, .. } => *tasks = Some(Arc::clone(experiment)),
        }
        self
    }

    fn compute(&self, stop: Stop<'_>, keep: Option<(&Keep, Tell<'_>)>) -> Result<SweepOutcome> {
        let (Self::Model { tasks, .. } | Self::PlainGp { tasks, .. }) = self;
        let tasks = tasks
            .as_ref()
            .ok_or_else(|| Error::input("sweep", "a piece that was read from a record has no tasks"))?;
        match self {
            Self::Model { config, .. } => measure(&tasks.with_config((**config).clone())?, stop, keep),
            Self::PlainGp { .. } => {
                let scores = finite(&evaluate(&PlainGp, tasks.scored())?)?;
                Ok(SweepOutcome { scores, prior_mean: None, beta: None, alpha: None })
            }
        }
    }
}

fn finite(scores: &Scores) -> Result<TaskErrors> {
    TaskErrors::of(scores).ok_or_else(|| Error::input("scores", "a score of a task is not a finite number"))
}

/// An observer that says nothing, and passes on whether to stop.
struct Asking<'a>(Stop<'a>);

impl Observer for Asking<'_> {
    fn searching(&mut self, _: usize, _: usize, _: u64) {}
    fn chosen(&mut self, _: &TemperatureChoice) {}
    fn warning(&mut self, _: &str) {}
    fn begin(&mut self, _: u64, _: u64) {}
    fn iteration(&mut self, _: u64, _: u64, _: &IterationTerms) {}
    fn stop(&self) -> bool {
        (self.0)()
    }
}

fn measure(experiment: &Experiment, stop: Stop<'_>, keep: Option<(&Keep, Tell<'_>)>) -> Result<SweepOutcome> {
    let choice = match keep {
        Some((keep, _)) => experiment.choose_temperatures_keeping(&keep.trials(), &mut Asking(stop))?,
        None => experiment.choose_temperatures(&mut Asking(stop))?,
    };
    let mut trainer = experiment.trainer(&choice)?;
    if let Some((keep, tell)) = keep
        && let Ok(state) = TrainingState::read(keep.state())
    {
        if trainer.restore(&state).is_err() {
            // A state that cannot be used costs the work behind it, nothing else.
            trainer = experiment.trainer(&choice)?;
        } else if let Some(made) = state.other_instructions() {
            tell(&format!(
                "continues from iteration {}, which was computed with {made}, with {}: the last bits may differ from those \
                 of a run on one machine",
                state.iteration,
                instructions()
            ));
        }
    }
    let mut kept = Instant::now();
    while trainer.iteration() < experiment.config().training.iterations {
        let stopped = stop();
        if let Some((keep, tell)) = keep
            && trainer.iteration() > 0
            && (stopped || kept.elapsed() >= keep.every())
        {
            match trainer.state().write(keep.state()) {
                // Needed only if the end comes without a warning, and tried again after a while.
                Err(error) if !stopped => tell(&format!("{error}; the training goes on")),
                written => written?,
            }
            kept = Instant::now();
        }
        if stopped {
            return Err(Error::Interrupted { iteration: trainer.iteration() });
        }
        trainer.step()?;
    }
    let model = experiment.model(trainer.parameters().clone(), &choice)?;
    let scores = finite(&evaluate(&model, experiment.scored())?)?;
    let prior_mean = TaskErrors::of(&floor_scores(Floor::PriorMean, &model, experiment.scored())?);
    Ok(SweepOutcome { scores, prior_mean, beta: choice.beta, alpha: choice.alpha })
}
