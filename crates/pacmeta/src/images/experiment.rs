//! A run of image classification: pictures and classes of a configuration, training in a folder, scores.

use std::path::Path;
use std::sync::Arc;

use pacmeta_tensor::{Key, Parameters};
use serde_json::json;

use super::evaluation::{TaskPrediction, TestTasks};
use super::model::ImageModel;
use super::scores::ImageScores;
use super::trainer::ImageTrainer;
use super::{memory, remarks};
use crate::classification::run::{self, Trainable};
use crate::classification::{Observer, Outcome, Stop, Validation};
use crate::config::images::{ImageDataConfig, PARTS};
use crate::config::{ClassificationTrainingConfig, ImageConfig};
use crate::environments::images::{
    ClassId, Episode, EpisodeSampler, FoundImages, ImageOptions, ImageSet, OpenedImages, PictureShape,
    Progress, RootPictures, SplitChoice, SplitRecipe, Splits, Storage, StrokeOptions, find_images, strokes,
};
use crate::error::{Error, Result};
use crate::training::checkpoint::Checkpoint;
use crate::training::files::write_atomically;

/// The classes of each part, as a file of the run.
const SPLIT: &str = "split.csv";

/// Classes and pictures of each in a generated set.
const STROKES: [usize; 2] = [100, 60];

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
            memory::check(&config)?; // before pictures are decoded
            let found = find_images(&options)?;
            check_sizes(&config, &found)?;
            let unused = (!found.is_drawn() && config.data.parts != PARTS).then(|| {
                "`data.parts` is not used: it is for classes that no file or folder divides".to_owned()
            });
            let OpenedImages { set, splits, mut notes, .. } = found.open(progress)?;
            notes.extend(unused);
            (set, splits, notes)
        };
        let splits = if config.data.rotations { splits.with_rotations() } else { splits };
        let mut notes = notes;
        notes.extend(remarks::slow_body(&config)?);
        Ok((Self::new(config, Arc::new(set), splits)?, notes))
    }

    /// An experiment on pictures that were opened before.
    ///
    /// # Errors
    /// When classes or pictures are too few for the tasks of the configuration.
    pub fn new(config: ImageConfig, set: Arc<ImageSet>, splits: Splits) -> Result<Self> {
        memory::check(&config)?;
        let experiment = Self { config, set, splits };
        ImageTrainer::new(&experiment.config, &experiment.set, &experiment.splits.train)?;
        experiment.test_tasks().check()?;
        if experiment.config.training.validations > 0 {
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

    /// What the user should know of how the method learns from its tasks: settings that are allowed, and seldom meant.
    pub fn remarks(&self) -> Vec<String> {
        remarks::of_method(&self.config)
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
        let tasks = self.config.training.validations;
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
    pub fn train_in(
        &self,
        out: impl AsRef<Path>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome<ImageModel>> {
        run::train_in(self, out.as_ref(), observer).map(|(outcome, _)| outcome)
    }
}

/// Refuses pictures that are too few for the tasks of the configuration before they are decoded.
fn check_sizes(config: &ImageConfig, found: &FoundImages) -> Result<()> {
    let data = &config.data;
    let parts = if data.rotations { found.splits().with_rotations() } else { found.splits().clone() };
    let observed = EpisodeSampler { way: data.way, shots: data.shots };
    let target = EpisodeSampler { way: data.way, shots: data.support + data.query };
    found.check(&observed, &parts.train, "training")?;
    found.check(&target, &parts.test, "test")?;
    if config.training.validations > 0 {
        found.check(&target, &parts.validation, "validation")?;
    }
    Ok(())
}

impl Trainable for ImageExperiment {
    type Model = ImageModel;
    type Trainer<'a> = ImageTrainer<'a>;
    const OTHER_DATA: &'static str = "the run began with other pictures, or another split of their classes; restore them, or choose another --out";

    fn training(&self) -> &ClassificationTrainingConfig {
        &self.config.training
    }

    fn to_toml(&self) -> String {
        self.config.to_toml()
    }

    /// A checksum of the parts, and of the names and pixels of all pictures.
    fn mark(&self) -> String {
        let mut checksum = crc32c::crc32c(self.splits.to_csv(&self.set).as_bytes());
        for picture in 0..self.set.len() {
            checksum = crc32c::crc32c_append(checksum, self.set.picture_name(picture).as_bytes());
        }
        format!("{:08x}\n", crc32c::crc32c_append(checksum, &self.set.checksum().to_le_bytes()))
    }

    fn write_files(&self, folder: &Path) -> Result<()> {
        write_atomically(folder.join(SPLIT), self.splits.to_csv(&self.set).as_bytes())
    }

    fn trainer(&self) -> Result<ImageTrainer<'_>> {
        ImageTrainer::new(&self.config, &self.set, &self.splits.train)
    }

    fn read_model(&self, folder: &Path) -> Result<ImageModel> {
        ImageModel::read(folder)
    }

    fn model(&self, parameters: Parameters<f64>) -> ImageModel {
        Self::model(self, parameters)
    }

    fn checkpoint(model: &ImageModel) -> Checkpoint {
        model.to_checkpoint()
    }

    /// Not at the start, where the network is random.
    fn can_validate(&self, iteration: u64) -> bool {
        iteration > 0
    }

    fn validate(&self, parameters: &Parameters<f64>, stop: &Stop<'_>) -> Result<Validation> {
        let model = Self::model(self, parameters.clone());
        let scores = self.validation_scores(&model, stop)?;
        Ok(Validation {
            accuracy: scores.accuracy,
            standard_error: scores.accuracy_standard_error,
            log_likelihood: scores.log_likelihood,
        })
    }
}
