//! A run of image classification: pictures and classes of a configuration, training in a folder, scores.

use std::path::Path;
use std::sync::Arc;

use pacmeta_tensor::{Key, Parameters};
use serde_json::json;

use super::evaluation::{Stop, TaskPrediction, TestTasks};
use super::model::ImageModel;
use super::scores::ImageScores;
use super::trainer::{ImageTerms, ImageTrainer};
use crate::config::ImageConfig;
use crate::config::images::ImageDataConfig;
use crate::environments::images::{
    ClassId, Episode, ImageOptions, ImageSet, OpenedImages, PictureShape, Progress, RootPictures,
    SplitChoice, SplitRecipe, Splits, Storage, StrokeOptions, open_images, strokes,
};
use crate::error::{Error, Result};
use crate::training::files::{read_bounded, write_atomically};
use crate::training::metrics::{MetricsWriter, read_metrics};
use crate::training::run_directory::{DATA, RunDirectory, Start};
use crate::training::tensorboard::EventWriter;

/// The classes of each part, as a file of the run.
const SPLIT: &str = "split.csv";

/// Classes and pictures of each in a generated set.
const STROKES: [usize; 2] = [100, 60];

/// Watches a run, and may stop it.
pub trait ImageObserver: Send + Sync {
    /// Something that the user should know.
    fn warning(&mut self, message: &str);

    /// The loop begins after `done` of `total` iterations.
    fn begin(&mut self, done: u64, total: u64);

    /// An iteration is done.
    fn iteration(&mut self, iteration: u64, total: u64, terms: &ImageTerms);

    /// A validation is done.
    fn validated(&mut self, iteration: u64, scores: &ImageScores);

    /// The test tasks are being scored.
    fn scoring(&mut self, tasks: usize);

    /// Whether to stop now.
    fn stop(&self) -> bool;
}

/// An observer that says nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl ImageObserver for Quiet {
    fn warning(&mut self, _: &str) {}
    fn begin(&mut self, _: u64, _: u64) {}
    fn iteration(&mut self, _: u64, _: u64, _: &ImageTerms) {}
    fn validated(&mut self, _: u64, _: &ImageScores) {}
    fn scoring(&mut self, _: usize) {}
    fn stop(&self) -> bool {
        false
    }
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct ImageOutcome {
    /// The model.
    pub model: ImageModel,
    /// Iterations made by this call; 0 if the run was finished already.
    pub iterations: u64,
}

/// The pictures of a configuration, ready to be learned from.
pub struct ImageExperiment {
    config: ImageConfig,
    set: Arc<ImageSet>,
    splits: Splits,
}

impl ImageExperiment {
    /// Opens the pictures of a configuration, decoding them if that was not done before. Also what the user should know. Paths
    /// are made absolute, seen from the current folder, so that a run can be read from another one.
    ///
    /// # Errors
    /// When pictures cannot be read, or are too few for the tasks of the configuration.
    pub fn prepare(mut config: ImageConfig, progress: &mut dyn Progress) -> Result<(Self, Vec<String>)> {
        let data = &mut config.data;
        let shape = PictureShape { side: data.side, channels: data.channels };
        let [train, validation, test] = data.parts;
        // Not of the run's seed: runs that differ in it are trained and scored on the same classes.
        let recipe = SplitRecipe { train, validation, test, way: data.way, key: Key::new(0) };
        let (set, splits, notes) = if data.is_synthetic() {
            let [classes, pictures] = STROKES;
            // The same characters for every seed, as files would be.
            let set = strokes(&StrokeOptions { classes, pictures, shape, seed: 0 })?;
            let splits = Splits::made(&set, &recipe)?;
            (set, splits, vec![format!("generated {classes} characters, {pictures} pictures of each")])
        } else {
            for path in [Some(&mut data.path), data.split.as_mut(), data.cache.as_mut()].into_iter().flatten()
            {
                *path = std::path::absolute(&*path).map_err(|source| Error::io("find", &*path, source))?;
            }
            let options = ImageOptions {
                path: data.path.clone(),
                shape,
                storage: data.cache.clone().map_or(Storage::Cache, Storage::CacheIn),
                split: data.split.clone().map_or(SplitChoice::Automatic(recipe), SplitChoice::Path),
                min_pictures: data.min_examples,
                root_pictures: RootPictures::Refused,
            };
            let OpenedImages { set, splits, notes, .. } = open_images(&options, progress)?;
            (set, splits, notes)
        };
        let splits = if data.rotations { splits.with_rotations() } else { splits };
        Ok((Self::new(config, Arc::new(set), splits)?, notes))
    }

    /// An experiment on pictures that were opened before.
    ///
    /// # Errors
    /// When classes or pictures are too few for the tasks of the configuration.
    pub fn new(config: ImageConfig, set: Arc<ImageSet>, splits: Splits) -> Result<Self> {
        let experiment = Self { config, set, splits };
        ImageTrainer::new(&experiment.config, &experiment.set, &experiment.splits.train)?;
        experiment.test_tasks().check()?;
        if experiment.config.training.validation_tasks > 0 {
            experiment.validation_tasks().check()?;
        }
        Ok(experiment)
    }

    /// Another configuration on the same pictures; its section `[data]` may differ in the sizes of tasks only.
    ///
    /// # Errors
    /// When it asks for other pictures, or they are too few for its tasks.
    pub fn with_config(&self, config: ImageConfig) -> Result<Self> {
        let (ours, theirs) = (&self.config.data, &config.data);
        let sizes = ImageDataConfig {
            way: theirs.way,
            shots: theirs.shots,
            support: theirs.support,
            query: theirs.query,
            ..ours.clone()
        };
        if sizes != *theirs {
            return Err(Error::config("data", "asks for other pictures than those that were opened"));
        }
        Self::new(config, Arc::clone(&self.set), self.splits.clone())
    }

    /// The configuration.
    pub fn config(&self) -> &ImageConfig {
        &self.config
    }

    /// The pictures.
    pub fn set(&self) -> &ImageSet {
        &self.set
    }

    /// The classes of each part.
    pub fn splits(&self) -> &Splits {
        &self.splits
    }

    fn tasks<'a>(&'a self, classes: &'a [ClassId], part: &'static str) -> TestTasks<'a> {
        let data = &self.config.data;
        TestTasks {
            set: &self.set,
            classes,
            support: data.support,
            query: data.query,
            way: data.way,
            part,
            // Not of the run's seed: all runs on the same pictures are scored on the same tasks.
            key: Key::new(0).named("target tasks").named(part),
        }
    }

    fn validation_tasks(&self) -> TestTasks<'_> {
        self.tasks(&self.splits.validation, "validation")
    }

    fn test_tasks(&self) -> TestTasks<'_> {
        self.tasks(&self.splits.test, "test")
    }

    /// The pictures of a test task: the support first, then the queries.
    pub fn test_episode(&self, task: usize) -> Episode {
        self.test_tasks().episode(task)
    }

    /// The predictions of a model on the first `count` test tasks; `stop` is asked before each.
    ///
    /// # Errors
    /// When a number is not finite, or when stopped.
    pub fn predictions(
        &self,
        model: &ImageModel,
        count: usize,
        stop: &Stop<'_>,
    ) -> Result<Vec<TaskPrediction>> {
        self.test_tasks().predict(model, count, stop)
    }

    /// The scores of a model on the test tasks.
    ///
    /// # Errors
    /// As [`Self::predictions`].
    pub fn scores(&self, model: &ImageModel, stop: &Stop<'_>) -> Result<ImageScores> {
        Ok(ImageScores::of(&self.predictions(model, self.config.evaluation.tasks, stop)?))
    }

    /// The scores of a model on the validation tasks.
    ///
    /// # Errors
    /// As [`Self::predictions`].
    pub fn validation_scores(&self, model: &ImageModel, stop: &Stop<'_>) -> Result<ImageScores> {
        let tasks = self.config.training.validation_tasks;
        Ok(ImageScores::of(&self.validation_tasks().predict(model, tasks, stop)?))
    }

    /// The model with these parameters.
    pub fn model(&self, parameters: Parameters<f64>) -> ImageModel {
        let config = &self.config;
        let settings = config.method.settings();
        let mut model = ImageModel::new(config.spec(), parameters, settings, config.evaluation.normalisation)
            .adapting(config.method.adapts);
        model.notes.insert("seed".into(), json!(config.seed));
        model.notes.insert("shots".into(), json!(config.data.shots));
        model.notes.insert("support".into(), json!(config.data.support));
        model
    }

    /// Trains in a run directory: a fresh one, or one of the same configuration, which is continued.
    ///
    /// # Errors
    /// When the folder holds something else, an iteration fails, or the observer stops (after a checkpoint).
    pub fn train_in(&self, out: impl AsRef<Path>, observer: &mut dyn ImageObserver) -> Result<ImageOutcome> {
        self.train_holding(out.as_ref(), observer).map(|(outcome, _)| outcome)
    }

    /// The same, with the folder still held.
    pub(super) fn train_holding(
        &self,
        out: &Path,
        observer: &mut dyn ImageObserver,
    ) -> Result<(ImageOutcome, RunDirectory)> {
        let training = &self.config.training;
        let accept = |folder: &Path| self.refuse_other_pictures(folder);
        let (directory, resume) = RunDirectory::create_or_resume_if(out, &self.config.to_toml(), accept)?;
        resume.warnings.iter().for_each(|warning| observer.warning(warning));
        write_atomically(directory.path().join(DATA), self.mark().as_bytes())?;
        write_atomically(directory.path().join(SPLIT), self.splits.to_csv(&self.set).as_bytes())?;
        let mut trainer = ImageTrainer::new(&self.config, &self.set, &self.splits.train)?;
        match &resume.start {
            Start::Fresh => {}
            Start::Continue(state) => trainer.restore(state)?,
            Start::Finished(_) => {
                let model = ImageModel::read(directory.path())?;
                return Ok((ImageOutcome { model, iterations: 0 }, directory));
            }
        }
        let first = trainer.iteration();
        let mut metrics = directory.metrics(&resume.start)?;
        let mut events = directory.events(&resume.start)?;
        observer.begin(first, training.iterations);
        if self.validates(first) && !is_validated(&directory.metrics_path(), first)? {
            self.validate(&trainer, &mut metrics, &mut events, observer)?;
        }
        while trainer.iteration() < training.iterations {
            if observer.stop() {
                directory.save_state(&trainer.state(), &metrics)?;
                return Err(Error::Interrupted { iteration: trainer.iteration() });
            }
            let terms = trainer.step()?;
            let iteration = trainer.iteration();
            observer.iteration(iteration, training.iterations, &terms);
            let last = iteration == training.iterations;
            if iteration.is_multiple_of(training.log_every) || last {
                let mean = trainer.take_window();
                metrics.append(iteration, &mean.named())?;
                events.scalars(iteration, &mean.named())?;
            }
            // Before a validation, which takes a while: an interrupted one is done again from here.
            if iteration.is_multiple_of(training.checkpoint_every) || self.validates(iteration) || last {
                directory.save_state(&trainer.state(), &metrics)?;
            }
            if self.validates(iteration) {
                self.validate(&trainer, &mut metrics, &mut events, observer)?;
            }
        }
        let model = self.model(trainer.parameters().clone());
        directory.write_prior(&model.to_checkpoint(), training.iterations)?;
        Ok((ImageOutcome { model, iterations: training.iterations - first }, directory))
    }

    /// Whether validation tasks are scored after this iteration.
    fn validates(&self, iteration: u64) -> bool {
        let training = &self.config.training;
        let due = iteration.is_multiple_of(training.validate_every) || iteration == training.iterations;
        training.validation_tasks > 0 && iteration > 0 && due
    }

    fn validate(
        &self,
        trainer: &ImageTrainer<'_>,
        metrics: &mut MetricsWriter,
        events: &mut EventWriter,
        observer: &mut dyn ImageObserver,
    ) -> Result<()> {
        let model = self.model(trainer.parameters().clone());
        let watching: &dyn ImageObserver = &*observer;
        let scores = self.validation_scores(&model, &|| watching.stop())?;
        let named = validation_metrics(&scores);
        metrics.append(trainer.iteration(), &named)?;
        events.scalars(trainer.iteration(), &named)?;
        observer.validated(trainer.iteration(), &scores);
        Ok(())
    }

    /// A checksum of the parts, and of the names and pixels of all pictures.
    fn mark(&self) -> String {
        let mut checksum = crc32c::crc32c(self.splits.to_csv(&self.set).as_bytes());
        for picture in 0..self.set.len() {
            checksum = crc32c::crc32c_append(checksum, self.set.picture_name(picture).as_bytes());
        }
        format!("{:08x}\n", crc32c::crc32c_append(checksum, &self.set.checksum().to_le_bytes()))
    }

    /// A run continues on the pictures it began with.
    fn refuse_other_pictures(&self, out: &Path) -> Result<()> {
        let stored = out.join(DATA);
        if !RunDirectory::began(out)
            || !stored.exists()
            || read_bounded(&stored, 1 << 10)? == self.mark().as_bytes()
        {
            return Ok(());
        }
        Err(Error::input(
            out.display(),
            "the run began with other pictures, or another split of their classes; restore them, or choose another --out",
        ))
    }
}

/// Whether the metrics hold a validation of this iteration.
fn is_validated(metrics: &Path, iteration: u64) -> Result<bool> {
    let lines = read_metrics(metrics)?;
    Ok(lines.iter().rev().any(|line| line.iteration == iteration && line.get(VALIDATION).is_some()))
}

/// The metric by which a line of validation is known.
const VALIDATION: &str = "validation_accuracy";

/// The names of a validation's scores in the metrics.
fn validation_metrics(scores: &ImageScores) -> [(&'static str, f64); 3] {
    [
        (VALIDATION, scores.accuracy),
        ("validation_standard_error", scores.accuracy_standard_error.unwrap_or(f64::NAN)),
        ("validation_log_likelihood", scores.log_likelihood),
    ]
}
