//! What is trained: methods, sizes of tasks, and the hyper-parameters of the paper's table.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::config::ClassificationMethodKind::{self, Bmaml, Fomaml, Maml, Pacmaml, Pacoh};
use crate::config::ImageConfig;
use crate::config::images::SYNTHETIC;
use crate::error::{Error, Result};
use crate::studies::folder::check_iterations;

/// How much of the study is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImagePreset {
    /// A few minutes: half-size pictures, a few hundred iterations, m_i = 10.
    Quick,
    /// About an hour on two cores: 10,000 iterations, m_i = 10.
    Cpu,
    /// The paper's: 60,000 iterations, every m_i.
    Paper,
}

impl fmt::Display for ImagePreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Cpu => "cpu",
            Self::Paper => "paper",
        })
    }
}

/// A study: every method with every size of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImagePlan {
    /// The preset it started from.
    pub preset: ImagePreset,
    /// The pictures: a path, or `synthetic`.
    pub data: PathBuf,
    /// The folder of decoded pictures, if not the user's own.
    pub cache: Option<PathBuf>,
    /// The methods.
    pub methods: Vec<ClassificationMethodKind>,
    /// m_i: pictures in a training task, a multiple of 5.
    pub examples: Vec<usize>,
    /// Iterations of each model.
    pub iterations: u64,
    /// Test tasks.
    pub tasks: usize,
    /// Rows and columns of a picture.
    pub side: usize,
    /// The seed.
    pub seed: u64,
    /// Settings that all models have in place of the paper's or the program's own: keys of a configuration and their values.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Whether the pictures, once opened, are miniImageNet in its usual division.
    #[serde(default = "yes")]
    pub is_mini_imagenet: bool,
}

/// Plans that were written before pictures were looked at are of miniImageNet, unless these are generated.
fn yes() -> bool {
    true
}

/// One model of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// The method.
    pub method: ClassificationMethodKind,
    /// m_i.
    pub examples: usize,
}

impl Model {
    /// The name of its run directory.
    pub fn folder(&self) -> String {
        format!("{}-m{}", self.method.name(), self.examples)
    }
}

/// Classes of a task.
pub(super) const WAY: usize = 5;
/// The place of a method in tables and figures.
pub(super) fn look(method: ClassificationMethodKind) -> usize {
    METHODS.iter().position(|&other| other == method).unwrap_or(METHODS.len())
}

/// m_i in the paper.
const EXAMPLES: [usize; 4] = [10, 20, 40, 80];
/// The paper's methods, in its order.
pub(super) const METHODS: [ClassificationMethodKind; 5] = [Fomaml, Maml, Bmaml, Pacoh, Pacmaml];
/// The paper's Table 1: test accuracy in percent, one row an m_i, one column a method.
const PAPER: [[f64; 5]; 4] = [
    [41.8, 47.3, 29.9, 31.2, 47.8],
    [44.3, 48.0, 34.3, 37.0, 49.1],
    [46.2, 47.8, 41.5, 41.6, 48.9],
    [45.7, 48.1, 44.2, 44.6, 50.1],
];
/// The paper's inner rates, in the same order.
const INNER_RATES: [[f64; 5]; 4] = [
    [0.1, 0.1, 0.003, 0.01, 0.03],
    [0.03, 0.1, 0.003, 0.003, 0.01],
    [0.03, 0.03, 0.003, 0.003, 0.01],
    [0.03, 0.03, 0.0003, 0.003, 0.01],
];
/// The paper's alpha; FOMAML and MAML have none.
const ALPHAS: [[f64; 5]; 4] = [
    [f64::NAN, f64::NAN, 1.0, 10.0, 1.0],
    [f64::NAN, f64::NAN, 0.1, 1.0, 1.0],
    [f64::NAN, f64::NAN, 0.1, 1.0, 10.0],
    [f64::NAN, f64::NAN, 0.1, 1.0, 1.0],
];

/// Keys that the plan gives each model, and the option that changes them.
const PLANNED: [(&str, &str); 7] = [
    ("seed", "--seed"),
    ("data.path", "--data"),
    ("data.cache", "--cache"),
    ("data.shots", "--examples"),
    ("method.name", "--methods"),
    ("training.iterations", "--iterations"),
    ("evaluation.tasks", "--tasks"),
];

fn refuse_what_the_plan_sets(key: &str) -> Result<()> {
    let refuse = |message: String| Err(Error::input("option `--set`", message));
    if let Some((_, option)) = PLANNED.iter().find(|(planned, _)| *planned == key) {
        return refuse(format!("`{key}` has an option of its own, {option}: use that instead"));
    }
    if !key.contains('.') {
        return refuse(format!("`{key}`: expected a section, a point and a key, e.g. prior.head"));
    }
    if key.starts_with("data.") {
        return refuse(format!(
            "`{key}`: the tasks of this study are the paper's; `pacmeta train` takes tasks of any kind"
        ));
    }
    Ok(())
}

/// A number of a table; for an m_i that the paper does not have, that of the nearest smaller one.
fn of_table(table: &[[f64; 5]; 4], model: Model) -> Option<f64> {
    let row = EXAMPLES.iter().rposition(|&examples| examples <= model.examples).unwrap_or(0);
    let column = METHODS.iter().position(|&method| method == model.method)?;
    Some(table[row][column]).filter(|value| !value.is_nan())
}

impl Model {
    /// The accuracy that the paper reports, in percent.
    pub fn accuracy_in_paper(&self) -> Option<f64> {
        EXAMPLES.contains(&self.examples).then(|| of_table(&PAPER, *self)).flatten()
    }
}

impl ImagePlan {
    /// The plan of a preset.
    pub fn new(preset: ImagePreset, data: PathBuf) -> Self {
        let plan = Self {
            preset,
            data,
            cache: None,
            methods: METHODS.to_vec(),
            examples: EXAMPLES.to_vec(),
            iterations: 60_000,
            tasks: 600,
            side: 84,
            seed: 0,
            settings: BTreeMap::new(),
            is_mini_imagenet: true,
        };
        match preset {
            ImagePreset::Quick => Self { examples: vec![10], iterations: 600, tasks: 200, side: 42, ..plan },
            ImagePreset::Cpu => Self { examples: vec![10], iterations: 10_000, ..plan },
            ImagePreset::Paper => plan,
        }
    }

    /// The same plan with the models of an earlier one in the same folder: what was trained before stays on the page.
    ///
    /// # Errors
    /// When the earlier plan is another study: other pictures, sizes, seed or test tasks, or fewer iterations now, or more
    /// for some of the models only.
    pub fn including(&self, earlier: &Self) -> Result<Self> {
        let refuse = |what: &str, before: String, now: String| {
            let message =
                format!("the folder holds a study with {what} {before}, not {now}; choose another --out");
            Err(Error::input("the plan of the study", message))
        };
        if self.data != earlier.data {
            let show = |plan: &Self| plan.data.display().to_string();
            return refuse("the pictures", show(earlier), show(self));
        }
        for (what, before, now) in [
            ("the side", earlier.side as u64, self.side as u64),
            ("the seed", earlier.seed, self.seed),
            ("a number of test tasks of", earlier.tasks as u64, self.tasks as u64),
        ] {
            if before != now {
                return refuse(what, before.to_string(), now.to_string());
            }
        }
        let mut plan = self.clone();
        plan.methods.extend(earlier.methods.iter().filter(|method| !self.methods.contains(method)));
        plan.methods.sort_by_key(|&method| look(method));
        plan.examples.extend(earlier.examples.iter().filter(|size| !self.examples.contains(size)));
        plan.examples.sort_unstable();
        // a setting may be idle in one of the calls, and is left out there
        if earlier.is_changed_by(&self.settings) {
            if self.is_changed_by(&earlier.settings) {
                let show =
                    |plan: &Self| plan.settings_in_words().unwrap_or_else(|| "of the paper".to_owned());
                return refuse("the settings", show(earlier), show(self));
            }
            plan.settings.clone_from(&earlier.settings);
        }
        let all = earlier.models().iter().all(|model| self.models().contains(model));
        check_iterations(earlier.iterations, self.iterations, all)?;
        Ok(plan)
    }

    /// Whether one of its models would be another with these settings, or one of the two cannot be.
    fn is_changed_by(&self, settings: &BTreeMap<String, String>) -> bool {
        let other = Self { settings: settings.clone(), ..self.clone() };
        self.models().into_iter().any(|model| match (self.config(model), other.config(model)) {
            (Ok(ours), Ok(theirs)) => ours.to_toml() != theirs.to_toml(),
            _ => true,
        })
    }

    /// The plan without settings that make no model another one: those that the paper or the program has anyway.
    #[must_use]
    pub fn without_idle_settings(mut self) -> Self {
        for key in self.settings.clone().keys() {
            let mut others = self.settings.clone();
            others.remove(key);
            if !self.is_changed_by(&others) {
                self.settings = others;
            }
        }
        self
    }

    /// Whether the pictures are generated.
    pub fn is_generated(&self) -> bool {
        self.data.as_os_str() == SYNTHETIC
    }

    /// Whether the numbers can be compared with the paper's: on its pictures only.
    pub fn is_comparable(&self) -> bool {
        self.is_mini_imagenet && !self.is_generated()
    }

    /// The models, smallest tasks first.
    pub fn models(&self) -> Vec<Model> {
        let sizes = self.examples.iter();
        sizes
            .flat_map(|&examples| self.methods.iter().map(move |&method| Model { method, examples }))
            .collect()
    }

    /// The configuration of a model: the paper's hyper-parameters.
    ///
    /// # Errors
    /// When a number of the plan is out of range.
    pub fn config(&self, model: Model) -> Result<ImageConfig> {
        let text = |path: &PathBuf| Value::String(path.display().to_string());
        let whole = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let mut data = Table::from_iter([
            ("environment".to_owned(), Value::from("images")),
            ("path".to_owned(), text(&self.data)),
            ("side".to_owned(), whole(self.side as u64)),
            ("way".to_owned(), whole(WAY as u64)),
            ("shots".to_owned(), whole((model.examples / WAY) as u64)),
        ]);
        data.extend(self.cache.as_ref().map(|cache| ("cache".to_owned(), text(cache))));
        let mut method = Table::from_iter([("name".to_owned(), Value::from(model.method.name()))]);
        for (key, table) in [("rate", &INNER_RATES), ("alpha", &ALPHAS)] {
            method.extend(of_table(table, model).map(|value| (key.to_owned(), Value::Float(value))));
        }
        // A validation costs as much as a hundred iterations.
        let validate_every = (self.iterations / 10).clamp(100, 1000).min(self.iterations);
        let training = Table::from_iter([
            ("iterations".to_owned(), whole(self.iterations)),
            ("validate_every".to_owned(), whole(validate_every)),
            ("validation_tasks".to_owned(), whole((self.tasks as u64 / 6).max(1))),
        ]);
        let evaluation = Table::from_iter([("tasks".to_owned(), whole(self.tasks as u64))]);
        let sections =
            [("data", data), ("method", method), ("training", training), ("evaluation", evaluation)];
        let mut table: Table =
            sections.into_iter().map(|(name, section)| (name.to_owned(), Value::Table(section))).collect();
        table.insert("seed".to_owned(), whole(self.seed));
        for key in self.settings.keys() {
            refuse_what_the_plan_sets(key)?;
        }
        let settings: Vec<_> = self.settings.clone().into_iter().collect();
        ImageConfig::with_settings(table, &settings)
    }

    /// The settings that were changed, as `key = value`, if there are any.
    pub fn settings_in_words(&self) -> Option<String> {
        let settings: Vec<String> =
            self.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        (!settings.is_empty()).then(|| settings.join(", "))
    }
}
