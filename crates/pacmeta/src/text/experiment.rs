//! A run of text classification: tasks and model of a configuration, training in a folder, scores on held-out tasks.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pacmeta_tensor::{Key, Parameters};
use serde_json::json;

use super::adaptation::{FewShot, FineTuning};
use super::evaluation::{NewTask, TextScores};
use super::memory;
use super::model::{TOKENISER, TextModel};
use super::prior::{TextHeads, TextPrior};
use super::trainer::TextTrainer;
use crate::classification::descent::rounded;
use crate::classification::run::{self, Trainable};
use crate::classification::{Observer, Outcome, Stop, Validation, Watch};
use crate::config::text::TextHead;
use crate::config::{ClassificationTrainingConfig, TextConfig};
use crate::environments::text::smlmt::{Smlmt, SmlmtOptions, read_sentences, sentences_of};
use crate::environments::text::{
    EpisodeSource, LabelledTexts, Mixture, TaskPool, TextTask, Tokeniser, glue, read_folder, synthetic,
};
use crate::error::{Error, Result};
use crate::priors::pretrained::{self, Encoder, Pretrained};
use crate::training::checkpoint::Checkpoint;
use crate::training::files::{read_bounded, write_atomically};

/// Tasks and examples of each in a generated environment.
const GENERATED: [usize; 3] = [12, 200, 100];
/// The fewest and most sentences of a masked word.
const MASKED: [usize; 2] = [20, 500];
/// Files that a tokeniser may have.
const TOKENISER_FILES: [&str; 3] = ["tokenizer.json", "vocab.txt", "tokenizer_config.json"];
/// The largest such file.
const MOST_BYTES: u64 = 1 << 28;

/// What several runs may share: the encoder that they start from, and the tasks that they learn from.
#[derive(Clone)]
pub struct TextMaterial {
    /// The encoder and its tokeniser.
    pub pretrained: Arc<Pretrained>,
    /// The tokeniser's files, to be kept with a model.
    tokeniser_files: Arc<Vec<(String, Vec<u8>)>>,
    /// The tasks with their sentences.
    pub tasks: Arc<Vec<LabelledTexts>>,
    /// The sentences that words are masked in, where they are not those of the tasks.
    raw: Option<Arc<Vec<String>>>,
    /// The tasks as tokens, made once for all experiments on them.
    tokenised: Arc<OnceLock<Vec<TextTask>>>,
}

/// A configuration with its tasks and its encoder, ready to be trained.
pub struct TextExperiment {
    config: TextConfig,
    material: TextMaterial,
    prior: TextPrior,
    observed: Vec<TextTask>,
    held_out: Vec<TextTask>,
    source: Box<dyn EpisodeSource>,
    /// The mean length of examples where they are longest.
    tokens: f64,
}

impl TextMaterial {
    /// Opens the model and the tasks of a configuration. Paths are made absolute, seen from the current folder, so that a run can be
    /// read from another one.
    ///
    /// # Errors
    /// When a file is missing or does not hold what it should.
    pub fn open(config: &mut TextConfig) -> Result<Self> {
        let synthetic_model = config.prior.is_synthetic();
        let absolute = |path: &mut std::path::PathBuf| -> Result<()> {
            *path = std::path::absolute(&*path).map_err(|source| Error::io("find", &*path, source))?;
            Ok(())
        };
        let (pretrained, tokeniser_files) = if synthetic_model {
            let limit = config.data.length.min(synthetic::shape().positions);
            let vocabulary = synthetic::words().join("\n").into_bytes();
            (synthetic::model(Key::new(0), limit)?, vec![("vocab.txt".to_owned(), vocabulary)])
        } else {
            absolute(&mut config.prior.model)?;
            let folder = &config.prior.model;
            let opened = pretrained::open(folder, config.data.length, config.prior.pooling)?;
            let mut files = Vec::new();
            for name in TOKENISER_FILES.into_iter().filter(|name| folder.join(name).exists()) {
                files.push((name.to_owned(), read_bounded(folder.join(name), MOST_BYTES)?));
            }
            (opened, files)
        };
        let tasks = if config.data.is_synthetic() {
            let [tasks, train, dev] = GENERATED;
            synthetic::tasks(&synthetic::SyntheticOptions { tasks, train, dev, key: Key::new(0) })?
        } else {
            absolute(&mut config.data.path)?;
            read_tasks(&config.data.path, &config.data.tasks)?
        };
        let raw = match &mut config.data.smlmt_path {
            Some(path) => {
                absolute(path)?;
                Some(Arc::new(read_sentences(path)?))
            }
            None => None,
        };
        Ok(Self {
            raw,
            pretrained: Arc::new(pretrained),
            tokeniser_files: Arc::new(tokeniser_files),
            tasks: Arc::new(tasks),
            tokenised: Arc::default(),
        })
    }

    fn tokenised(&self) -> Result<&[TextTask]> {
        if self.tokenised.get().is_none() {
            let tasks: Result<Vec<_>> =
                self.tasks.iter().map(|texts| texts.tokenise(self.tokeniser())).collect();
            let _ = self.tokenised.set(tasks?); // another thread has made the same
        }
        Ok(self.tokenised.get().map_or(&[], Vec::as_slice))
    }

    /// The encoder's tokeniser.
    pub fn tokeniser(&self) -> &Tokeniser {
        &self.pretrained.tokeniser
    }
}

/// The tasks of a folder: GLUE's in their order where they are all there, one a file otherwise.
fn read_tasks(folder: &Path, names: &[String]) -> Result<Vec<LabelledTexts>> {
    if glue::is_here(folder, names) {
        return glue::read(folder, names);
    }
    let mut tasks = read_folder(folder)?;
    if let Some(missing) = names.iter().find(|name| !tasks.iter().any(|task| task.name == **name)) {
        let known: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let message = format!("there is no task `{missing}`; the folder has {}", known.join(", "));
        return Err(Error::config("data.tasks", message));
    }
    if !names.is_empty() {
        tasks.retain(|task| names.contains(&task.name));
    }
    Ok(tasks)
}

impl TextExperiment {
    /// Opens everything that a configuration names. Also what the user should know.
    ///
    /// # Errors
    /// When files are missing or wrong, tasks are too small, or the run would not fit into memory.
    pub fn prepare(mut config: TextConfig) -> Result<(Self, Vec<String>)> {
        let material = TextMaterial::open(&mut config)?;
        let experiment = Self::new(config, material)?;
        let notes = experiment.remarks();
        Ok((experiment, notes))
    }

    /// An experiment on material that was opened before.
    ///
    /// # Errors
    /// When tasks are too small for the configuration, or the run would not fit into memory.
    pub fn new(config: TextConfig, material: TextMaterial) -> Result<Self> {
        let Pretrained { encoder: Encoder { shape, .. }, tokeniser } = &*material.pretrained;
        let held_out = choose_held_out(&config, &material.tasks)?;
        let (mut observed, mut unseen) = (Vec::new(), Vec::new());
        for task in material.tokenised()? {
            let part = if held_out.contains(&task.name) { &mut unseen } else { &mut observed };
            part.push(task.clone());
        }
        if observed.is_empty() {
            return Err(Error::config(
                "data.held_out",
                "holds out every task, which leaves none to learn from",
            ));
        }
        let threshold = config.prior.threshold.unwrap_or(shape.layers);
        let heads = match config.prior.head {
            TextHead::Zero => TextHeads::Zero,
            TextHead::Generated => TextHeads::Generated,
            TextHead::Learned => TextHeads::Learned {
                tasks: observed.iter().map(|task| (task.name.clone(), task.classes.len())).collect(),
            },
        };
        let prior = TextPrior::new(*shape, threshold, heads)?;
        let sampling = config.data.sampling;
        let mut tokens = memory::longest_mean(&observed);
        let pool = TaskPool::new("the training tasks", observed.clone(), sampling)?;
        let source: Box<dyn EpisodeSource> = match config.data.smlmt {
            0.0 => Box::new(pool),
            part => {
                let [least, most] = MASKED;
                let options = SmlmtOptions { classes: config.data.smlmt_words, least, most };
                let texts: Vec<LabelledTexts> =
                    material.tasks.iter().filter(|task| !held_out.contains(&task.name)).cloned().collect();
                let own = || sentences_of(&texts);
                let sentences = material.raw.as_ref().map_or_else(own, |raw| raw.to_vec());
                let masked = Smlmt::new(sentences, tokeniser, options)?;
                tokens = tokens.max(masked.mean_length()?);
                Box::new(Mixture::new(vec![(1.0 - part, Box::new(pool)), (part, Box::new(masked))])?)
            }
        };
        memory::check(&memory::as_drawn(&config, &observed, MASKED[1]), &prior, tokens)?;
        let experiment = Self { config, material, prior, observed, held_out: unseen, source, tokens };
        let evaluation = &experiment.config.evaluation;
        let drawn = experiment.new_tasks(&evaluation.shots, evaluation.draws).map(drop);
        super::remarks::together(drawn, experiment.trainer().map(drop))?;
        Ok(experiment)
    }

    /// The configuration.
    pub fn config(&self) -> &TextConfig {
        &self.config
    }

    /// The shape of the model.
    pub fn prior(&self) -> &TextPrior {
        &self.prior
    }

    /// The tasks that are learned from.
    pub fn observed(&self) -> &[TextTask] {
        &self.observed
    }

    /// The tasks that are held out.
    pub fn held_out(&self) -> &[TextTask] {
        &self.held_out
    }

    /// The parameters at the start.
    ///
    /// # Errors
    /// When the encoder's parameters are not those of its shape.
    pub fn start(&self) -> Result<Parameters<f64>> {
        self.prior.start(
            &self.material.pretrained.encoder.parameters,
            Key::new(self.config.seed).named("initialisation"),
        )
    }

    /// Refuses a task of this many tokens that could not be scored in the memory that is free.
    pub(crate) fn check_states(&self, task: &str, held: usize) -> Result<()> {
        memory::check_states(&self.config, &self.prior, self.tokens, task, held)
    }

    /// What the user should know about the encoder's words and the examples.
    pub(crate) fn remarks_on_tokens(&self) -> Vec<String> {
        super::remarks::of_tokens(&self.material.pretrained, self.observed.iter().chain(&self.held_out))
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = super::remarks::of_rates(&self.config, &self.prior);
        remarks.extend(self.remarks_on_tokens());
        remarks.extend(super::remarks::of_files(&self.config.data));
        if self.held_out.is_empty() {
            remarks.push("no task is held out (`data.held_out`), so nothing will be scored".to_owned());
        }
        remarks
    }

    /// The held-out tasks with drawn supports. They do not depend on the run's seed: all runs on the same tasks are scored alike.
    fn new_tasks(&self, shots: &[usize], draws: usize) -> Result<Vec<NewTask>> {
        let key = Key::new(0).named("held-out tasks");
        let most = self.config.evaluation.queries;
        self.held_out.iter().map(|task| NewTask::drawn(task, shots, draws, most, key)).collect()
    }

    fn tuning(&self) -> FineTuning {
        FineTuning { steps: self.config.evaluation.steps, rate: self.config.evaluation.rate }
    }

    /// The scores of parameters on the held-out tasks.
    ///
    /// # Errors
    /// When a number is not finite, or when stopped.
    pub fn scores(&self, parameters: &Parameters<f64>, watch: Watch<'_>) -> Result<TextScores> {
        let evaluation = &self.config.evaluation;
        self.scores_of(parameters, &self.new_tasks(&evaluation.shots, evaluation.draws)?, watch)
    }

    /// The scores of parameters on new tasks.
    ///
    /// # Errors
    /// As [`Self::scores`].
    pub fn scores_of(
        &self,
        parameters: &Parameters<f64>,
        tasks: &[NewTask],
        watch: Watch<'_>,
    ) -> Result<TextScores> {
        TextScores::of(&FewShot::new(&self.prior, &rounded(parameters))?, tasks, self.tuning(), watch)
    }

    /// The model with these parameters.
    pub fn model(&self, parameters: Parameters<f64>) -> TextModel {
        let tokeniser = self.material.tokeniser().clone();
        let mut model = TextModel::new(self.prior.clone(), parameters, tokeniser, self.tuning());
        model.notes.insert("method".into(), json!(self.config.method.settings()));
        model.notes.insert("seed".into(), json!(self.config.seed));
        model
    }

    /// Trains in a run directory: a fresh one, or one of the same configuration, which is continued.
    ///
    /// # Errors
    /// When the folder holds something else, an iteration fails, or the observer stops (after a checkpoint).
    pub fn train_in(&self, out: impl AsRef<Path>, observer: &mut dyn Observer) -> Result<Outcome<TextModel>> {
        run::train_in(self, out.as_ref(), observer).map(|(outcome, _)| outcome)
    }
}

impl Trainable for TextExperiment {
    type Model = TextModel;
    type Trainer<'a> = TextTrainer<'a>;
    const OTHER_DATA: &'static str =
        "the run began with other sentences, or another encoder; restore them, or choose another --out";

    fn training(&self) -> &ClassificationTrainingConfig {
        &self.config.training
    }

    fn to_toml(&self) -> String {
        self.config.to_toml()
    }

    /// A checksum of tasks and encoder.
    fn mark(&self) -> String {
        let mut checksum = 0;
        for task in self.observed.iter().chain(&self.held_out) {
            checksum = crc32c::crc32c_append(checksum, task.name.as_bytes());
            for set in [&task.train, &task.dev] {
                for (id, start) in set.ids.iter().zip(set.starts.iter().chain(std::iter::repeat(&0))) {
                    checksum = crc32c::crc32c_append(checksum, &id.to_le_bytes());
                    checksum = crc32c::crc32c_append(checksum, &start.to_le_bytes());
                }
                for label in &set.labels {
                    checksum = crc32c::crc32c_append(checksum, &label.to_le_bytes());
                }
            }
        }
        for sentence in self.material.raw.iter().flat_map(|raw| raw.iter()) {
            checksum = crc32c::crc32c_append(checksum, sentence.as_bytes());
        }
        for value in self.material.pretrained.encoder.parameters.values() {
            checksum = crc32c::crc32c_append(checksum, &value.to_le_bytes());
        }
        format!("text {checksum:08x}\n")
    }

    /// The tokeniser, with which the model can be used elsewhere.
    fn write_files(&self, folder: &Path) -> Result<()> {
        let folder = folder.join(TOKENISER);
        std::fs::create_dir_all(&folder).map_err(|source| Error::io("create the folder", &folder, source))?;
        for (name, bytes) in self.material.tokeniser_files.iter() {
            write_atomically(folder.join(name), bytes)?;
        }
        Ok(())
    }

    fn trainer(&self) -> Result<TextTrainer<'_>> {
        TextTrainer::new(&self.config, &*self.source, &self.prior, self.start()?)
    }

    fn read_model(&self, folder: &Path) -> Result<TextModel> {
        TextModel::read(folder)
    }

    fn model(&self, parameters: Parameters<f64>) -> TextModel {
        Self::model(self, parameters)
    }

    fn checkpoint(model: &TextModel) -> Checkpoint {
        model.to_checkpoint()
    }

    /// Already at the start: what the encoder does before meta-learning.
    fn can_validate(&self, _: u64) -> bool {
        !self.held_out.is_empty()
    }

    /// The mean scores on the held-out tasks with the fewest shots.
    fn validate(&self, parameters: &Parameters<f64>, stop: &Stop<'_>) -> Result<Validation> {
        let shots = self.config.evaluation.shots.iter().copied().min().unwrap_or(1);
        let tasks = self.new_tasks(&[shots], self.config.training.validations)?;
        let scores = self.scores_of(parameters, &tasks, Watch::stopping(stop))?;
        let names = scores.tasks();
        let mean = scores.average(&names, shots);
        Ok(Validation {
            accuracy: mean.as_ref().map_or(f64::NAN, |mean| mean.accuracy),
            standard_error: mean.as_ref().and_then(|mean| mean.standard_error),
            log_likelihood: mean.as_ref().map_or(f64::NAN, |mean| mean.log_likelihood),
        })
    }
}

/// The names of the tasks that are held out.
fn choose_held_out(config: &TextConfig, tasks: &[LabelledTexts]) -> Result<Vec<String>> {
    let names = &config.data.held_out;
    if let Some(missing) = names.iter().find(|name| !tasks.iter().any(|task| task.name == **name)) {
        let known: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let message = format!("there is no task `{missing}`; the tasks are {}", known.join(", "));
        return Err(Error::config("data.held_out", message));
    }
    if !names.is_empty() {
        return Ok(names.clone());
    }
    let count = if tasks.len() < 3 { 0 } else { (tasks.len() as f64 / 5.0).round().max(1.0) as usize };
    let mut order: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    order.sort_unstable();
    Key::new(0).named("held-out tasks").generator().shuffle(&mut order);
    Ok(order[..count].iter().map(|name| (*name).to_owned()).collect())
}
