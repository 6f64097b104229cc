//! The loop of a run in its folder: metrics, checkpoints, validations, and who watches it.

use std::path::Path;

use pacmeta_tensor::Parameters;

use super::descent::{Descent, Terms};
use super::scores::Stop;
use crate::config::ClassificationTrainingConfig;
use crate::error::{Error, Result};
use crate::training::checkpoint::Checkpoint;
use crate::training::files::{read_bounded, write_atomically};
use crate::training::metrics::{MetricsWriter, read_metrics};
use crate::training::run_directory::{DATA, RunDirectory, Start};
use crate::training::tensorboard::EventWriter;

/// The metric by which a line of validation is known.
pub(crate) const VALIDATION: &str = "validation_accuracy";
/// Its standard error.
pub(crate) const VALIDATION_ERROR: &str = "validation_standard_error";

/// Watches a run, and may stop it.
pub trait Observer: Send + Sync {
    /// Something that the user should know.
    fn warning(&mut self, message: &str);

    /// The loop begins after `done` of `total` iterations.
    fn begin(&mut self, done: u64, total: u64);

    /// An iteration is done.
    fn iteration(&mut self, iteration: u64, total: u64, terms: &Terms);

    /// A validation is done.
    fn validated(&mut self, iteration: u64, validation: &Validation);

    /// So many tasks are being scored.
    fn scoring(&mut self, tasks: usize);

    /// `done` of `total` tasks are scored. Not every kind of run tells.
    fn scored(&self, _done: usize, _total: usize) {}

    /// Whether to stop now.
    fn stop(&self) -> bool;
}

/// An observer that says nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn warning(&mut self, _: &str) {}
    fn begin(&mut self, _: u64, _: u64) {}
    fn iteration(&mut self, _: u64, _: u64, _: &Terms) {}
    fn validated(&mut self, _: u64, _: &Validation) {}
    fn scoring(&mut self, _: usize) {}
    fn stop(&self) -> bool {
        false
    }
}

/// The mean scores of a validation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Validation {
    /// The mean accuracy.
    pub accuracy: f64,
    /// Its standard error, where there are several tasks or draws.
    pub standard_error: Option<f64>,
    /// The mean log-probability of the right class.
    pub log_likelihood: f64,
}

impl Validation {
    fn named(&self) -> [(&'static str, f64); 3] {
        [
            (VALIDATION, self.accuracy),
            (VALIDATION_ERROR, self.standard_error.unwrap_or(f64::NAN)),
            ("validation_log_likelihood", self.log_likelihood),
        ]
    }
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct Outcome<M> {
    /// The model.
    pub model: M,
    /// Iterations made by this call; 0 if the run was finished already.
    pub iterations: u64,
}

/// What learns, one iteration at a time.
pub trait MetaLearner {
    /// Parameters, and the gradient of the last iteration.
    fn descent(&self) -> &Descent;

    /// The same, to be continued from a stored state.
    fn descent_mut(&mut self) -> &mut Descent;

    /// One iteration.
    ///
    /// # Errors
    /// When a number is not finite; the parameters are then those before it.
    fn step(&mut self) -> Result<Terms> {
        self.step_unless(&|| false)
    }

    /// One iteration, given up before a task if asked to stop: iterations of large networks take minutes.
    ///
    /// # Errors
    /// As [`Self::step`], and when stopped, as an interruption; the parameters are then those before it, too.
    fn step_unless(&mut self, stop: &Stop<'_>) -> Result<Terms>;
}

/// What a run in a folder needs of pictures or texts.
pub(crate) trait Trainable {
    type Model;
    type Trainer<'a>: MetaLearner
    where
        Self: 'a;

    fn training(&self) -> &ClassificationTrainingConfig;
    fn to_toml(&self) -> String;

    /// A line that no other data have, and what to say to a run that began with others.
    fn mark(&self) -> String;
    const OTHER_DATA: &'static str;

    /// Files of the run beside those that every run has.
    fn write_files(&self, folder: &Path) -> Result<()>;

    fn trainer(&self) -> Result<Self::Trainer<'_>>;
    fn read_model(&self, folder: &Path) -> Result<Self::Model>;
    fn model(&self, parameters: Parameters<f64>) -> Self::Model;
    fn checkpoint(model: &Self::Model) -> Checkpoint;

    /// Whether there is something to be validated on after this iteration, if it is due.
    fn can_validate(&self, iteration: u64) -> bool;
    fn validate(&self, parameters: &Parameters<f64>, stop: &Stop<'_>) -> Result<Validation>;
}

/// Trains in a folder, fresh or continued. Also the folder, still held.
///
/// # Errors
/// When the folder holds something else, an iteration fails, or the observer stops (after a checkpoint).
pub(crate) fn train_in<T: Trainable>(
    experiment: &T,
    out: &Path,
    observer: &mut dyn Observer,
) -> Result<(Outcome<T::Model>, RunDirectory)> {
    let mark = experiment.mark();
    let accept = |folder: &Path| refuse_other_data(folder, &mark, T::OTHER_DATA);
    let (directory, resume) = RunDirectory::create_or_resume_if(out, &experiment.to_toml(), accept)?;
    resume.warnings.iter().for_each(|warning| observer.warning(warning));
    write_atomically(directory.path().join(DATA), mark.as_bytes())?;
    experiment.write_files(directory.path())?;
    if let Start::Finished(_) = resume.start {
        let model = experiment.read_model(directory.path())?;
        return Ok((Outcome { model, iterations: 0 }, directory));
    }
    let mut trainer = experiment.trainer()?;
    if let Start::Continue(state) = &resume.start {
        trainer.descent_mut().restore(state)?;
    }
    let first = trainer.descent().iteration();
    let mut log =
        Log { metrics: directory.metrics(&resume.start)?, events: directory.events(&resume.start)? };
    go_on(experiment, &mut trainer, &directory, &mut log, observer)?;
    let model = experiment.model(trainer.descent().parameters().clone());
    let total = experiment.training().iterations;
    directory.write_prior(&T::checkpoint(&model), total)?;
    Ok((Outcome { model, iterations: total - first }, directory))
}

fn go_on<T: Trainable>(
    experiment: &T,
    trainer: &mut T::Trainer<'_>,
    directory: &RunDirectory,
    log: &mut Log,
    observer: &mut dyn Observer,
) -> Result<()> {
    let training = experiment.training();
    let validates = |iteration: u64| {
        let due = iteration.is_multiple_of(training.validate_every) || iteration == training.iterations;
        due && training.validations > 0 && experiment.can_validate(iteration)
    };
    let validate = |descent: &Descent, log: &mut Log, observer: &mut dyn Observer| -> Result<()> {
        let watching: &dyn Observer = &*observer;
        let validation = experiment
            .validate(descent.parameters(), &|| watching.stop())
            .map_err(|error| directory.note_divergence(in_validation(error, descent.iteration())))?;
        log.append(descent.iteration(), &validation.named())?;
        observer.validated(descent.iteration(), &validation);
        Ok(())
    };
    let first = trainer.descent().iteration();
    observer.begin(first, training.iterations);
    if validates(first) && !is_validated(&directory.metrics_path(), first)? {
        validate(trainer.descent(), log, observer)?;
    }
    while trainer.descent().iteration() < training.iterations {
        let watching: &dyn Observer = &*observer;
        let terms = match trainer.step_unless(&|| watching.stop()) {
            Ok(terms) => terms,
            Err(error) if error.is_interruption() => {
                directory.save_state(&trainer.descent().state(), &log.metrics)?;
                return Err(error);
            }
            Err(error) => return Err(directory.note_divergence(error)),
        };
        let iteration = trainer.descent().iteration();
        observer.iteration(iteration, training.iterations, &terms);
        let last = iteration == training.iterations;
        if iteration.is_multiple_of(training.log_every) || last {
            log.append(iteration, &trainer.descent_mut().take_window().named())?;
        }
        // Before a validation, which takes a while: an interrupted one is done again from here.
        if iteration.is_multiple_of(training.checkpoint_every) || validates(iteration) || last {
            directory.save_state(&trainer.descent().state(), &log.metrics)?;
        }
        if validates(iteration) {
            validate(trainer.descent(), log, observer)?;
        }
    }
    Ok(())
}

/// A failed validation says of which parameters it was.
fn in_validation(error: Error, iteration: u64) -> Error {
    match error.is_divergence() {
        true => Error::ValidationDiverged { iteration, reason: Box::new(error) },
        false => error,
    }
}

/// Where the numbers of training go.
struct Log {
    metrics: MetricsWriter,
    events: EventWriter,
}

impl Log {
    fn append(&mut self, iteration: u64, values: &[(&str, f64)]) -> Result<()> {
        self.metrics.append(iteration, values)?;
        self.events.scalars(iteration, values)
    }
}

/// A run continues on the data it began with.
fn refuse_other_data(out: &Path, mark: &str, message: &str) -> Result<()> {
    let stored = out.join(DATA);
    if !RunDirectory::began(out) || !stored.exists() || read_bounded(&stored, 1 << 10)? == mark.as_bytes() {
        return Ok(());
    }
    Err(Error::input(out.display(), message))
}

/// Whether the metrics hold a validation of this iteration.
fn is_validated(metrics: &Path, iteration: u64) -> Result<bool> {
    if !metrics.exists() {
        return Ok(false);
    }
    let lines = read_metrics(metrics)?;
    Ok(lines.iter().rev().any(|line| line.iteration == iteration && line.get(VALIDATION).is_some()))
}
