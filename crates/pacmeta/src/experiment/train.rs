//! A training run that lives in a folder: metrics, checkpoints, exact continuation, interruption.

use std::path::Path;

use serde_json::Value;

use super::trial_log::TrialLog;
use super::{Experiment, TemperatureChoice};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::training::IterationTerms;
use crate::training::files::{read_bounded, write_atomically};
use crate::training::run_directory::{DATA, RunDirectory, SEARCH, Start, TEMPERATURES};

/// Watches a run, and may stop it.
pub trait Observer: Send + Sync {
    /// The search for temperatures begins.
    fn searching(&mut self, candidates: usize, folds: usize, iterations: u64);

    /// Temperatures are settled.
    fn chosen(&mut self, choice: &TemperatureChoice);

    /// Something that the user should know.
    fn warning(&mut self, message: &str);

    /// The loop begins after `done` of `total` iterations.
    fn begin(&mut self, done: u64, total: u64);

    /// An iteration is done.
    fn iteration(&mut self, iteration: u64, total: u64, terms: &IterationTerms);

    /// Whether to stop now.
    fn stop(&self) -> bool;
}

/// An observer that says nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn searching(&mut self, _: usize, _: usize, _: u64) {}
    fn chosen(&mut self, _: &TemperatureChoice) {}
    fn warning(&mut self, _: &str) {}
    fn begin(&mut self, _: u64, _: u64) {}
    fn iteration(&mut self, _: u64, _: u64, _: &IterationTerms) {}
    fn stop(&self) -> bool {
        false
    }
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The model.
    pub model: Model,
    /// Its temperatures.
    pub choice: TemperatureChoice,
    /// Iterations made by this call; 0 if the run was finished already.
    pub iterations: u64,
}

impl Experiment {
    /// Trains in a run directory: a fresh one, or one of the same configuration, which is continued.
    ///
    /// # Errors
    /// When the folder holds something else, an iteration fails, or the observer stops (after a checkpoint, or with the
    /// finished trials of the search for temperatures stored).
    pub fn train_in(&self, out: impl AsRef<Path>, observer: &mut dyn Observer) -> Result<Outcome> {
        let training = &self.config().training;
        let accept = |folder: &Path| self.refuse_other_data(folder);
        let (directory, resume) =
            RunDirectory::create_or_resume_if(out.as_ref(), &self.config().to_toml(), accept)?;
        resume.warnings.iter().for_each(|warning| observer.warning(warning));
        self.mark_data(&directory)?;
        let choice = self.stored_temperatures(&directory, observer)?;
        observer.chosen(&choice);
        let mut trainer = self.trainer(&choice)?;
        match &resume.start {
            Start::Fresh => {}
            Start::Continue(state) => trainer.restore(state)?,
            Start::Finished(_) => {
                let model = Model::read(directory.path())?;
                return Ok(Outcome { model, choice, iterations: 0 });
            }
        }
        let first = trainer.iteration();
        let mut metrics = directory.metrics(&resume.start)?;
        let mut events = directory.events(&resume.start)?;
        observer.begin(first, training.iterations);
        while trainer.iteration() < training.iterations {
            if observer.stop() {
                directory.save_state(&trainer.state(), &metrics)?;
                return Err(Error::Interrupted { iteration: trainer.iteration() });
            }
            let terms = trainer.step().map_err(|error| directory.note_divergence(error))?;
            let iteration = trainer.iteration();
            observer.iteration(iteration, training.iterations, &terms);
            if iteration.is_multiple_of(training.log_every) || iteration == training.iterations {
                let mean = trainer.take_window();
                metrics.append(iteration, &mean.named())?;
                events.scalars(iteration, &mean.named())?;
            }
            if iteration.is_multiple_of(training.checkpoint_every) || iteration == training.iterations {
                directory.save_state(&trainer.state(), &metrics)?;
            }
        }
        let model = self.model(trainer.parameters().clone(), &choice)?;
        directory.write_prior(&model.to_checkpoint(), training.iterations)?;
        Ok(Outcome { model, choice, iterations: training.iterations - first })
    }

    /// A run continues on the data it began with: their checksum is stored at the first start. Asked before anything is
    /// written, so that a refused call changes nothing.
    fn refuse_other_data(&self, out: &Path) -> Result<()> {
        let stored = out.join(DATA);
        if !RunDirectory::began(out) || !stored.exists() || self.is_of_these_data(&stored)? {
            return Ok(());
        }
        Err(Error::input(
            out.display(),
            "the run began with other data: the tasks have changed since; restore them, or choose another --out",
        ))
    }

    fn is_of_these_data(&self, stored: &Path) -> Result<bool> {
        Ok(read_bounded(stored, 1 << 10)? == self.data_mark().as_bytes())
    }

    fn data_mark(&self) -> String {
        format!("{:08x}\n", self.data_checksum())
    }

    /// Stores the checksum; temperatures that a failed start chose for other data go.
    fn mark_data(&self, directory: &RunDirectory) -> Result<()> {
        let path = directory.path().join(DATA);
        if path.exists() && self.is_of_these_data(&path)? {
            return Ok(());
        }
        if path.exists() {
            directory.forget_start()?;
        }
        write_atomically(&path, self.data_mark().as_bytes())
    }

    /// A checksum of all tasks: names, examples and subsets.
    pub(crate) fn data_checksum(&self) -> u32 {
        let mut checksum = 0;
        for task in self.observed().iter().chain(self.scored()) {
            checksum = crc32c::crc32c_append(checksum, task.name().as_bytes());
            for value in task.inputs().iter().chain(task.targets()) {
                checksum = crc32c::crc32c_append(checksum, &value.to_le_bytes());
            }
            for index in task.adapt().unwrap_or_default() {
                checksum = crc32c::crc32c_append(checksum, &(*index as u64).to_le_bytes());
            }
        }
        checksum
    }

    /// The temperatures of an earlier start of the same run, else fresh ones, stored.
    fn stored_temperatures(
        &self,
        directory: &RunDirectory,
        observer: &mut dyn Observer,
    ) -> Result<TemperatureChoice> {
        let path = directory.path().join(TEMPERATURES);
        if path.exists() {
            let bytes = read_bounded(&path, 1 << 24)?;
            return serde_json::from_slice(&bytes).map_err(|error| {
                Error::input(
                    path.display(),
                    format!("{error}; delete the file to have temperatures chosen again"),
                )
            });
        }
        let trials = directory.path().join(SEARCH);
        let log = match self.config().search {
            Some(_) => TrialLog::open(&trials)?,
            None => TrialLog::in_memory(),
        };
        let choice = self.choose_temperatures_from(log, observer)?;
        let text = serde_json::to_value(&choice).unwrap_or(Value::Null).to_string();
        write_atomically(&path, text.as_bytes())?;
        // The choice holds all that is to be known of the trials.
        let _ = std::fs::remove_file(trials);
        Ok(choice)
    }
}
