//! From a configuration to a trained model: tasks, temperatures, the loop, and scores beside their floors.

mod bound;
mod search;
mod train;
mod trial_log;

pub use bound::{RunBound, StatedBound};
pub use search::{TemperatureChoice, Trial};
pub use train::{Observer, Outcome, Silent};

use pacmeta_tensor::{Key, Parameters};
use serde_json::json;

use crate::config::{Config, DataSource, HeldOut};
use crate::environments::table::TaskTable;
use crate::environments::{observed_tasks, table, target_tasks};
use crate::error::{Error, Result};
use crate::evaluation::{Floor, Scores, evaluate, floor_scores, with_support};
use crate::learners::{InnerSteps, Learner, Proximal, TargetTemperature};
use crate::methods::{BatchSampler, Member, MethodSettings, Resample};
use crate::model::{Columns, Model};
use crate::priors::PriorSpec;
use crate::standardisation::Standardisation;
use crate::task::Task;
use crate::training::{HyperPrior, Trainer, TrainerSettings};

/// A configuration with its tasks.
///
/// ```
/// use pacmeta::config::Config;
/// use pacmeta::experiment::{Experiment, Silent};
///
/// let text = "[data]\nexamples = 10\n[method]\nbeta_per_example = 30\nalpha_over_beta = 0.3\n[training]\niterations = 200";
/// let experiment = Experiment::prepare(Config::parse("example", text, &[])?)?;
/// let choice = experiment.choose_temperatures(&mut Silent)?;
/// let model = experiment.train(&choice, &mut Silent)?;
/// let scores = experiment.scores(&model)?;
/// assert!(scores[0].1.rmse.is_finite());
/// # Ok::<(), pacmeta::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Experiment {
    config: Config,
    observed: Vec<Task>,
    standardised: Vec<Task>,
    scored: Vec<Task>,
    standardisation: Option<Standardisation>,
    columns: Columns,
    left_out: Vec<String>,
}

impl Experiment {
    /// Draws or reads the tasks of a configuration. The path of a table is made absolute, seen from the current folder, so
    /// that the run finds it from any other.
    ///
    /// # Errors
    /// When a table cannot be read, or leaves no task to learn from.
    pub fn prepare(mut config: Config) -> Result<Self> {
        if let DataSource::Table(data) = &mut config.data.source
            && data.path.as_os_str() != "-"
        {
            // A run is read again from other folders.
            data.path =
                std::path::absolute(&data.path).map_err(|source| Error::io("find", &data.path, source))?;
        }
        let key = Key::new(config.seed).named("data");
        let support = config.data.support;
        match &config.data.source {
            DataSource::Synthetic(data) => {
                let environment = data.environment.environment();
                let observed =
                    observed_tasks(&*environment, data.tasks, data.examples, key.named("observed"))?;
                let scored =
                    target_tasks(&*environment, data.target_tasks, support, data.query, key.named("target"))?;
                let features = match environment.dimension() {
                    1 => vec!["x".to_owned()],
                    dimension => (0..dimension).map(|index| format!("x{index}")).collect(),
                };
                Self::with_tasks(config, observed, scored, Columns { features, target: "y".to_owned() })
            }
            DataSource::Table(data) => {
                if data.path.as_os_str() == "-" {
                    return Err(Error::config(
                        "data.path",
                        "a run needs its table again when it continues, so standard input will not do; give a file",
                    ));
                }
                let table = table::read_tasks(&data.path, &data.options)?;
                Self::of_table(config, table)
            }
        }
    }

    /// A configuration with a table that was read already: its tasks are held out, or learned from, as [`prepare`] does it.
    ///
    /// [`prepare`]: Self::prepare
    ///
    /// # Errors
    /// When the configuration is for drawn tasks, and as for [`Experiment::prepare`].
    pub fn of_table(config: Config, table: TaskTable) -> Result<Self> {
        let DataSource::Table(data) = &config.data.source else {
            return Err(Error::config("data.environment", "the tasks are given, they cannot be drawn too"));
        };
        let key = Key::new(config.seed).named("data");
        let (observed, scored) = hold_out(table.tasks, data.held_out, config.data.support, key)?;
        let columns = Columns { features: table.feature_names, target: table.target_name };
        Ok(Self { left_out: table.left_out, ..Self::with_tasks(config, observed, scored, columns)? })
    }

    /// A configuration with tasks from elsewhere: `[data]` counts for the support's size and the standardisation only.
    /// The tasks to be scored state their support in `adapt`.
    ///
    /// # Errors
    /// When the tasks cannot be standardised, or all targets are the same.
    pub fn with_tasks(
        mut config: Config,
        observed: Vec<Task>,
        scored: Vec<Task>,
        columns: Columns,
    ) -> Result<Self> {
        config.method.subset = config.method.subset.map(|subset| subset.resolved(&observed));
        let standardisation = if config.data.standardise {
            Some(Standardisation::fit_columns(&observed, &columns.features, &columns.target)?)
        } else {
            None
        };
        if standardisation.as_ref().is_some_and(Standardisation::has_constant_target) {
            return Err(Error::input(
                format!("target `{}`", columns.target),
                "is the same number in every example of every observed task; there is nothing to learn",
            ));
        }
        let standardised = match &standardisation {
            Some(standardisation) => {
                observed.iter().map(|task| standardisation.apply(task)).collect::<Result<_>>()?
            }
            None => observed.clone(),
        };
        Ok(Self { config, observed, standardised, scored, standardisation, columns, left_out: Vec::new() })
    }

    /// The same tasks under another configuration, whose `[data]` counts as in [`Experiment::with_tasks`].
    ///
    /// # Errors
    /// As for [`Experiment::with_tasks`].
    pub fn with_config(&self, config: Config) -> Result<Self> {
        let (observed, scored) = (self.observed.clone(), self.scored.clone());
        let other = Self::with_tasks(config, observed, scored, self.columns.clone())?;
        Ok(Self { left_out: self.left_out.clone(), ..other })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The observed tasks, in original units.
    pub fn observed(&self) -> &[Task] {
        &self.observed
    }

    /// The tasks that are scored (target tasks, or tasks held out), each with its support in `adapt`.
    pub fn scored(&self) -> &[Task] {
        &self.scored
    }

    /// How many observed tasks mark S' by `adapt` for a method that has an S', and whether training keeps to these subsets.
    pub fn marked_subsets(&self) -> Option<(usize, Resample)> {
        let resample = self.config.method.subset?.resample?;
        let marked = self.observed.iter().filter(|task| task.adapt().is_some()).count();
        (marked > 0).then_some((marked, resample))
    }

    /// Tasks that were too small.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The standardisation.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.standardisation.as_ref()
    }

    /// The shape of the prior.
    pub fn spec(&self) -> PriorSpec {
        self.config.prior.spec(self.columns.features.len())
    }

    /// A fresh training run in memory.
    ///
    /// # Errors
    /// When S' does not fit into a task, or a width is out of range.
    pub fn trainer(&self, choice: &TemperatureChoice) -> Result<Trainer<'_>> {
        self.trainer_on(&self.standardised, choice, Key::new(self.config.seed))
    }

    fn trainer_on<'a>(&self, tasks: &'a [Task], choice: &TemperatureChoice, key: Key) -> Result<Trainer<'a>> {
        let spec = self.spec();
        let method = self.config.method_settings(choice.beta.unwrap_or(f64::NAN), choice.alpha)?;
        let hyper_prior = match &self.config.method.hyper_prior {
            Some(hyper_prior) => hyper_prior.resolve(choice.beta, tasks.len()),
            None => HyperPrior { xi: 0.0, sigma0_squared: 1.0 },
        };
        let settings = TrainerSettings {
            sampler: self.sampler(key),
            hyper_prior,
            rate: self.config.training.rate,
            weight_decay: self.config.training.weight_decay,
        };
        // First, since it refuses a prior that is too large.
        let start = spec.initialise(key.named("prior"))?;
        Trainer::new(method.build(&spec)?, tasks, start, settings)
    }

    /// How batches are drawn.
    pub fn sampler(&self, key: Key) -> BatchSampler {
        let subset = self.config.method.subset.as_ref();
        BatchSampler {
            size: self.config.training.batch,
            subset: subset.map(|subset| subset.size),
            rule: subset.map(|subset| subset.split).unwrap_or_default(),
            resample: subset.and_then(|subset| subset.resample).unwrap_or_default(),
            key: key.named("training"),
        }
    }

    /// Every observed task once, with the S' and S that training uses: the same ones where `method.resample` is `fixed`,
    /// else one more draw.
    pub fn members(&self) -> Vec<Member> {
        let key = Key::new(self.config.seed);
        self.sampler(key).each_once(&self.observed, key.named("objective"))
    }

    /// Trains in memory, without leaving anything on disk.
    ///
    /// # Errors
    /// When an iteration fails or the observer stops.
    pub fn train(&self, choice: &TemperatureChoice, observer: &mut dyn Observer) -> Result<Model> {
        let mut trainer = self.trainer(choice)?;
        while trainer.iteration() < self.config.training.iterations {
            if observer.stop() {
                return Err(Error::Interrupted { iteration: trainer.iteration() });
            }
            let terms = trainer.step()?;
            observer.iteration(trainer.iteration(), self.config.training.iterations, &terms);
        }
        self.model(trainer.parameters().clone(), choice)
    }

    /// The model with these parameters: prior, base learner, standardisation, names.
    ///
    /// # Errors
    /// When the noise of a network's predictions cannot be estimated.
    pub fn model(&self, parameters: Parameters<f64>, choice: &TemperatureChoice) -> Result<Model> {
        let mut model = Model::new(self.spec(), parameters).with_columns(self.columns.clone());
        if let Some(standardisation) = &self.standardisation {
            model = model.with_standardisation(standardisation.clone());
        }
        let settings = self.config.method_settings(choice.beta.unwrap_or(f64::NAN), choice.alpha)?;
        let rule = self.config.method.target_temperature.unwrap_or_default();
        let learner = self.learner(&model, &settings, rule)?;
        model = model.with_learner(learner);
        model.notes.insert("method".into(), json!(settings));
        model.notes.insert("seed".into(), json!(self.config.seed));
        model.notes.insert("observed_tasks".into(), json!(self.observed.len()));
        if !choice.trials.is_empty() {
            model.notes.insert("temperature_search".into(), json!(choice));
        }
        Ok(model)
    }

    fn learner(&self, model: &Model, settings: &MethodSettings, rule: TargetTemperature) -> Result<Learner> {
        let sizes = || self.observed.iter().map(Task::len);
        let network = |inner: InnerSteps| -> Result<Learner> {
            let unit = Learner::Steps { inner, noise_variance: 1.0 };
            let noise_variance = self.network_noise(&model.clone().with_learner(unit))?;
            Ok(Learner::Steps { inner, noise_variance })
        };
        Ok(match settings {
            MethodSettings::Pacoh { beta } => {
                Learner::Gibbs { temperature: *beta, examples: crate::config::harmonic_mean(sizes()), rule }
            }
            MethodSettings::Pacmaml { alpha, .. } => Learner::Gibbs {
                temperature: *alpha,
                examples: crate::config::harmonic_mean(self.subset_sizes(&self.observed)),
                rule,
            },
            MethodSettings::PacohMap => Learner::LearnedNoise,
            MethodSettings::MultiTask => {
                network(self.config.method.inner.unwrap_or(InnerSteps { steps: 0, rate: 0.0 }))?
            }
            MethodSettings::Maml { inner } | MethodSettings::Fomaml { inner } => network(*inner)?,
            MethodSettings::Reptile { beta_sigma_squared, optimiser } => {
                let proximal = Proximal { beta_sigma_squared: *beta_sigma_squared, optimiser: *optimiser };
                let unit = Learner::Proximal { proximal, noise_variance: 1.0 };
                let noise_variance = self.network_noise(&model.clone().with_learner(unit))?;
                Learner::Proximal { proximal, noise_variance }
            }
        })
    }

    /// m' of each task.
    fn subset_sizes<'a>(&self, tasks: &'a [Task]) -> impl Iterator<Item = usize> + use<'a> {
        let subset = self.config.method.subset;
        tasks.iter().map(move |task| {
            subset
                .map_or(task.len(), |subset| subset.size.for_task(subset.resample.unwrap_or_default(), task))
        })
    }

    /// Networks predict without a variance of their own: theirs is the mean squared error on the rest of each observed
    /// task after adapting to as many examples as a target task has, in standardised units.
    fn network_noise(&self, model: &Model) -> Result<f64> {
        let tasks = self.with_support(&self.observed, Key::new(self.config.seed).named("noise"))?;
        let scale = self.standardisation.as_ref().map_or(1.0, Standardisation::y_std);
        let scores = evaluate(model, &tasks)?;
        let (squares, count) = scores.per_task.iter().fold((0.0, 0.0), |(squares, count), task| {
            (squares + task.rmse * task.rmse * task.query as f64, count + task.query as f64)
        });
        Ok((squares / count / (scale * scale)).max(1e-12))
    }

    /// Tasks with `support` examples in `adapt`: those that the file names, else drawn.
    fn with_support(&self, tasks: &[Task], key: Key) -> Result<Vec<Task>> {
        tasks
            .iter()
            .enumerate()
            .map(|(index, task)| {
                with_support(task.clone(), self.config.data.support, key.index(index as u64))
            })
            .collect()
    }

    /// The scores of a model and of the floors on the scored tasks; empty when no task was kept out.
    ///
    /// # Errors
    /// When adaptation to a task fails.
    pub fn scores(&self, model: &Model) -> Result<Vec<(String, Scores)>> {
        if self.scored.is_empty() {
            return Ok(Vec::new());
        }
        let name = self.config.method.kind.name().to_owned();
        let mut rows = vec![(name, evaluate(model, &self.scored)?)];
        for floor in [Floor::PlainGp, Floor::PriorMean] {
            rows.push((floor.name().to_owned(), floor_scores(floor, model, &self.scored)?));
        }
        Ok(rows)
    }
}

/// Splits tasks into observed ones and ones held out for scoring.
fn hold_out(tasks: Vec<Task>, held_out: HeldOut, support: usize, key: Key) -> Result<(Vec<Task>, Vec<Task>)> {
    let count = held_out.of(tasks.len());
    if count >= tasks.len() {
        return Err(Error::config(
            "data.held_out",
            format!("{count} tasks cannot be held out of {}; lower it (0 holds out none)", tasks.len()),
        ));
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    key.named("held out").generator().shuffle(&mut order);
    let chosen = &order[..count];
    let (mut observed, mut scored) = (Vec::new(), Vec::new());
    for (index, task) in tasks.into_iter().enumerate() {
        if chosen.contains(&index) {
            scored.push(with_support(task, support, key.named("support").index(index as u64))?);
        } else {
            observed.push(task);
        }
    }
    Ok((observed, scored))
}
