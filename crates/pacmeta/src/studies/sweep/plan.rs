//! From a file with a grid to the settings that differ, and the pieces to be computed.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pacmeta_tensor::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::SweepSpec;
use crate::config::{Assumption, Config, DataSource, SweepFile, SweepMetric};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::studies::cross_validation::Folds;
use crate::studies::grid::{Axis, Grid, GridPoint};

/// The most settings of one sweep.
pub const MOST_SETTINGS: usize = 5000;
const MOST_POINTS: usize = 100_000;
const DEFAULT_FOLDS: usize = 4;

/// What is to be run; everything that a report needs besides the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The configuration file as it was given.
    pub config: String,
    /// What was set over the file.
    pub overrides: Vec<(String, String)>,
    /// The configuration's own seed, which draws or splits the tasks.
    pub seed: u64,
    /// The axes of the grid; those that are no numbers first.
    pub axes: Vec<Axis>,
    /// Points of the grid.
    pub points: usize,
    /// The settings that differ.
    pub settings: Vec<Setting>,
    /// Models of each setting.
    pub seeds: u64,
    /// Parts of the scored tasks.
    pub folds: usize,
    /// What chooses.
    pub metric: SweepMetric,
    /// The tasks.
    pub data: DataDescription,
}

/// A configuration that one or more points of the grid stand for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The value on each axis, in the order of the axes; none where it has no effect.
    pub values: Vec<Option<Value>>,
    /// Points of the grid that resolve to it.
    pub points: usize,
    /// The values as `--set` of `train`, where the file needs no other change for them.
    pub overrides: Option<Vec<(String, String)>>,
    /// The configuration, with the configuration's own seed.
    pub config: Config,
}

/// The tasks of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataDescription {
    /// The checksum of all tasks.
    pub checksum: String,
    /// Where the table lies, seen from anywhere; none for drawn tasks.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// How many tasks are learned from.
    pub observed: usize,
    /// The names of the scored tasks.
    pub scored: Vec<String>,
    /// Tasks that were too small.
    pub left_out: Vec<String>,
}

/// A plan with its tasks.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// The tasks, under the configuration of the first setting.
    pub tasks: Arc<Experiment>,
}

impl Prepared {
    /// The tasks of a plan that was made earlier, had once more; those of a table are read from `table`.
    ///
    /// # Errors
    /// When the tasks cannot be had, or are not those of the plan.
    pub fn again(plan: Plan, table: Option<&Path>) -> Result<Self> {
        let Some(first) = plan.settings.first() else {
            return Err(Error::input("the plan of the sweep", "has no settings"));
        };
        let mut config = first.config.clone();
        if let (DataSource::Table(data), Some(table)) = (&mut config.data.source, table) {
            data.path = table.to_owned();
        }
        let tasks = Experiment::prepare(config)?;
        let checksum = format!("{:08x}", tasks.data_checksum());
        if checksum != plan.data.checksum {
            let message = "have changed since the sweep was planned; restore them, or plan it again";
            return Err(Error::input("the tasks", message));
        }
        Ok(Self { plan, tasks: Arc::new(tasks) })
    }

    /// The pieces, ready to be computed.
    pub fn specs(&self) -> Vec<SweepSpec> {
        self.plan.specs_with(Some(&self.tasks))
    }
}

impl Plan {
    /// The pieces by content, for looking them up.
    pub fn specs(&self) -> Vec<SweepSpec> {
        self.specs_with(None)
    }

    fn specs_with(&self, tasks: Option<&Arc<Experiment>>) -> Vec<SweepSpec> {
        let plain = SweepSpec::PlainGp { data: self.data.checksum.clone(), tasks: tasks.cloned() };
        // Seeds outside: whoever looks early sees every setting once before any of them twice.
        let models = (0..self.seeds)
            .flat_map(|seed| self.settings.iter().map(move |setting| self.model_with(setting, seed, tasks)));
        std::iter::once(plain).chain(models).collect()
    }

    /// The piece of the plain Gaussian process.
    pub(super) fn plain_gp(&self) -> SweepSpec {
        SweepSpec::PlainGp { data: self.data.checksum.clone(), tasks: None }
    }

    /// The model of a setting from a seed. Keys that do not touch the outcome take their defaults.
    pub(super) fn model(&self, setting: &Setting, seed: u64) -> SweepSpec {
        self.model_with(setting, seed, None)
    }

    fn model_with(&self, setting: &Setting, seed: u64, tasks: Option<&Arc<Experiment>>) -> SweepSpec {
        let mut config = setting.config.clone();
        let defaults = Config::default();
        config.seed = seed;
        config.training.log_every = defaults.training.log_every;
        config.training.checkpoint_every = defaults.training.checkpoint_every;
        config.bound = defaults.bound;
        if config.data.synthetic().is_none() {
            // The default of a table: only drawn tasks can be simulated.
            config.bound.assumption = Assumption::None;
        }
        SweepSpec::Model {
            config: Box::new(config),
            data: self.data.checksum.clone(),
            label: self.label(setting),
            tasks: tasks.cloned(),
        }
    }

    /// A setting in words: `method.name=pacoh, method.beta_per_example=30`.
    pub fn label(&self, setting: &Setting) -> String {
        let values = self.axes.iter().zip(&setting.values);
        let given = values.filter_map(|(axis, value)| Some((axis.name.clone(), value.clone()?)));
        GridPoint { index: 0, values: given.collect() }.label()
    }

    /// Points of the grid that have the same configuration as another.
    pub fn collapsed(&self) -> usize {
        self.points - self.settings.len()
    }

    /// The folds of the scored tasks, in random order: that of a table may mean something.
    ///
    /// # Errors
    /// When the plan was changed so that they do not fit.
    pub fn split(&self) -> Result<Folds> {
        let key = Key::new(self.seed).named("sweep").named("folds");
        Folds::shuffled(self.data.scored.len(), self.folds, key)
    }
}

/// Checks a grid, its points one by one and against the tasks, before anything is trained.
///
/// # Errors
/// When an axis cannot be swept or has no effect anywhere, a value cannot be used (the axis and the value are named), the
/// tasks cannot be had, or fewer than two of them are scored.
pub fn prepare(file: &SweepFile, origin: &str, overrides: &[(String, String)]) -> Result<Prepared> {
    let mut axes = Grid::from_toml(&file.sweep.grid)?.axes().to_vec();
    axes.sort_by_key(is_numeric);
    axes.iter().try_for_each(|axis| refuse_axis(axis, overrides))?;
    let grid = Grid::new(axes)?;
    if grid.count() > MOST_POINTS {
        return Err(Error::config(
            "sweep.grid",
            format!(
                "has {} points, expected at most {MOST_POINTS}; take values away or split it",
                grid.count()
            ),
        ));
    }
    let settings = settings(file, &grid)?;
    let Some(first) = settings.first() else {
        return Err(Error::config("sweep.grid", "has no points"));
    };
    let tasks = Experiment::prepare(first.config.clone())?;
    let folds = folds(file, tasks.scored().len())?;
    let plan = Plan {
        config: origin.to_owned(),
        overrides: overrides.to_vec(),
        seed: first.config.seed,
        axes: grid.axes().to_vec(),
        points: grid.count(),
        seeds: file.sweep.seeds,
        folds,
        metric: file.sweep.metric,
        data: DataDescription {
            checksum: format!("{:08x}", tasks.data_checksum()),
            path: match &tasks.config().data.source {
                DataSource::Table(table) => Some(table.path.clone()),
                DataSource::Synthetic(_) => None,
            },
            observed: tasks.observed().len(),
            scored: tasks.scored().iter().map(|task| task.name().to_owned()).collect(),
            left_out: tasks.left_out().to_vec(),
        },
        settings,
    };
    for setting in &plan.settings {
        let experiment = tasks.with_config(setting.config.clone())?;
        let checked = experiment.sampler(Key::new(0)).check(experiment.observed());
        checked.map_err(|error| at_point(error, &plan.axes, &setting.values))?;
    }
    Ok(Prepared { plan, tasks: Arc::new(tasks) })
}

/// Whether all values of an axis are numbers.
pub(super) fn is_numeric(axis: &Axis) -> bool {
    axis.values.iter().all(Value::is_number)
}

/// Axes that are of no use: they change the tasks, or nothing.
fn refuse_axis(axis: &Axis, overrides: &[(String, String)]) -> Result<()> {
    let name = axis.name.as_str();
    let refuse = |why: &str| Err(Error::config(name, format!("cannot be an axis of `sweep.grid`: {why}")));
    if overrides.iter().any(|(key, _)| key.trim() == name) {
        return refuse("it is also given by an override; remove one of them");
    }
    match name {
        "seed" => refuse("say how many seeds with `sweep.seeds`"),
        "data.standardise" => Ok(()),
        "training.log_every" | "training.checkpoint_every" => refuse("it does not change what is learned"),
        _ if name.starts_with("sweep.") => refuse("it belongs to the sweep itself"),
        _ if name.starts_with("bound.") => refuse("it does not change what is learned"),
        _ if name.starts_with("data.") => refuse(
            "it changes the tasks, and all settings are scored on the same ones; make a sweep for each",
        ),
        _ => Ok(()),
    }
}

/// Resolves every point; points with the same configuration become one setting.
fn settings(file: &SweepFile, grid: &Grid) -> Result<Vec<Setting>> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut by_content: HashMap<String, usize> = HashMap::new();
    let mut never_used: Option<BTreeSet<String>> = None;
    for point in grid.points() {
        let all: Vec<Option<Value>> = point.values.iter().map(|(_, value)| Some(value.clone())).collect();
        let overrides = point.overrides()?;
        let resolved = file.resolve(&overrides).map_err(|error| at_point(error, grid.axes(), &all))?;
        never_used = Some(match never_used {
            None => resolved.dropped.clone(),
            Some(before) => before.intersection(&resolved.dropped).cloned().collect(),
        });
        let content = resolved.config.to_toml();
        if let Some(&index) = by_content.get(&content) {
            settings[index].points += 1;
            continue;
        }
        if settings.len() == MOST_SETTINGS {
            return Err(Error::config(
                "sweep.grid",
                format!("has more than {MOST_SETTINGS} different settings; take values away or split it"),
            ));
        }
        by_content.insert(content, settings.len());
        let used = |name: &str| !resolved.dropped.contains(name);
        let overrides: Vec<_> = overrides.into_iter().filter(|(name, _)| used(name)).collect();
        let direct = file.strict(&overrides).is_ok_and(|config| config == resolved.config);
        settings.push(Setting {
            values: point.values.into_iter().map(|(name, value)| used(&name).then_some(value)).collect(),
            points: 1,
            overrides: direct.then_some(overrides),
            config: resolved.config,
        });
    }
    let never_used = never_used.unwrap_or_default();
    for (index, axis) in grid.axes().iter().enumerate() {
        let differs = settings.iter().any(|setting| setting.values[index] != settings[0].values[index]);
        if never_used.contains(&axis.name) || (axis.values.len() > 1 && !differs) {
            let message = "is an axis of `sweep.grid`, but has no effect at any point of it; remove it, or add a method \
                           that uses it to `method.name`";
            return Err(Error::config(&axis.name, message));
        }
    }
    if let Some(key) = file.keys().iter().find(|key| never_used.contains(*key)) {
        return Err(Error::config(key, "has no effect at any point of `sweep.grid`; remove it"));
    }
    Ok(settings)
}

/// An error about a point, with the axis and the value that it comes from.
fn at_point(error: Error, axes: &[Axis], values: &[Option<Value>]) -> Error {
    let Error::Config { key, message } = error else { return error };
    let of_axis = axes.iter().zip(values).find_map(|(axis, value)| {
        let own = axis.name == key || axis.name.starts_with(&format!("{key}."));
        own.then_some((axis, value.as_ref()?))
    });
    if let Some((axis, value)) = of_axis {
        return Error::config(&axis.name, format!("{message} (the value {value} in `sweep.grid`)"));
    }
    let given = axes.iter().zip(values).filter_map(|(axis, value)| Some((axis.name.clone(), value.clone()?)));
    let label = GridPoint { index: 0, values: given.collect() }.label();
    Error::config(key, format!("{message} (at the point {label} of `sweep.grid`)"))
}

fn folds(file: &SweepFile, scored: usize) -> Result<usize> {
    if scored < 2 {
        return Err(Error::config(
            "data.held_out",
            format!(
                "{scored} tasks are kept out of training; a sweep chooses on some of them and scores on others, so it needs at \
                 least 2 (for drawn tasks: `data.target_tasks`)"
            ),
        ));
    }
    match file.sweep.folds {
        Some(folds) if folds > scored => Err(Error::config(
            "sweep.folds",
            format!("is {folds}, but only {scored} tasks are scored; lower it, or raise `data.held_out`"),
        )),
        Some(folds) => Ok(folds),
        None => Ok(DEFAULT_FOLDS.min(scored)),
    }
}
