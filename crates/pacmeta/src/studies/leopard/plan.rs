//! What is trained: models, and the hyper-parameters of the paper's Table 6.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::config::text::SYNTHETIC;
use crate::config::{ClassificationMethodKind, TextConfig};
use crate::environments::text::leopard::{DRAWS, SHOTS};
use crate::error::{Error, Result};
use crate::studies::folder::check_iterations;

/// How much of the study is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeopardPreset {
    /// A few minutes: a few iterations, a few draws, a part of the test sets.
    Quick,
    /// About half an hour a method on two cores with an encoder of 22 million parameters.
    Cpu,
    /// The paper's: 10,000 iterations of tasks of 256 examples.
    Paper,
}

impl fmt::Display for LeopardPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Cpu => "cpu",
            Self::Paper => "paper",
        })
    }
}

/// A model of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeopardModel {
    /// MAML with generated heads on GLUE's tasks and on masked words (Bansal et al., 2020).
    HSmlmt,
    /// MAML.
    Maml,
    /// BMAML.
    Bmaml,
    /// PACOH.
    Pacoh,
    /// PACMAML.
    Pacmaml,
    /// The encoder trained on all tasks without adaptation.
    MultiTask,
    /// The pretrained encoder as it is.
    FineTuning,
}

use LeopardModel::{Bmaml, FineTuning, HSmlmt, Maml, MultiTask, Pacmaml, Pacoh};

impl LeopardModel {
    /// All models: the paper's in its order, then what they have to beat.
    pub const ALL: [Self; 7] = [HSmlmt, Maml, Bmaml, Pacoh, Pacmaml, MultiTask, FineTuning];

    /// The name in commands and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            HSmlmt => "h-smlmt",
            Maml => "maml",
            Bmaml => "bmaml",
            Pacoh => "pacoh",
            Pacmaml => "pacmaml",
            MultiTask => "multi-task",
            FineTuning => "fine-tuning",
        }
    }

    /// The name in texts.
    pub fn title(self) -> &'static str {
        match self {
            HSmlmt => "H-SMLMT",
            Maml => "MAML",
            Bmaml => "BMAML",
            Pacoh => "PACOH",
            Pacmaml => "PACMAML",
            MultiTask => "multi-task",
            FineTuning => "fine-tuning only",
        }
    }

    /// The model of a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Its run directory in the study's folder.
    pub fn folder(self) -> PathBuf {
        Path::new("models").join(self.name())
    }

    /// The place in tables and figures.
    pub(super) fn look(self) -> usize {
        Self::ALL.iter().position(|&other| other == self).unwrap_or(Self::ALL.len())
    }

    /// Whether it is trained on other tasks at all.
    pub fn is_meta_trained(self) -> bool {
        self != FineTuning
    }

    /// Whether it has the temperature alpha.
    pub(super) fn has_alpha(self) -> bool {
        self.method().is_bayesian()
    }

    fn method(self) -> ClassificationMethodKind {
        match self {
            HSmlmt | Maml => ClassificationMethodKind::Maml,
            Bmaml => ClassificationMethodKind::Bmaml,
            Pacoh => ClassificationMethodKind::Pacoh,
            Pacmaml => ClassificationMethodKind::Pacmaml,
            MultiTask | FineTuning => ClassificationMethodKind::MultiTask,
        }
    }

    /// 12 - v: the layers that adapt beside the head in the paper.
    fn layers_in_paper(self) -> usize {
        usize::from(self == Pacmaml)
    }
}

/// What adapts to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adapting {
    /// What the paper chose: the head, and for PACMAML the last layer.
    Paper,
    /// The head: all of the encoder is shared.
    Head,
}

/// A study: every model scored on the same draws of the same target tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeopardPlan {
    /// The preset it started from.
    pub preset: LeopardPreset,
    /// The folder with `glue` and `leopard`, or `synthetic`.
    pub data: PathBuf,
    /// The folder of the pretrained encoder, or `synthetic`.
    pub encoder: PathBuf,
    /// The models.
    pub models: Vec<LeopardModel>,
    /// Iterations of each model.
    pub iterations: u64,
    /// m: examples of a training task.
    pub examples: usize,
    /// m', where it is not the paper's.
    pub support: Option<usize>,
    /// What adapts.
    pub adapting: Adapting,
    /// Tokens of an example.
    pub length: usize,
    /// k.
    pub shots: Vec<usize>,
    /// Draws of each k.
    pub draws: usize,
    /// The most test examples of a target task; all if it is absent.
    pub queries: Option<usize>,
    /// Steps of Adam on a target task.
    pub steps: usize,
    /// Their rates: where there are several, what is best on the validation tasks is taken (`rates`).
    pub rates: Vec<f64>,
    /// Values of alpha to choose from on the validation tasks; the paper's choice if there are none.
    pub alphas: Vec<f64>,
    /// Tasks that are held out from training to choose by.
    pub validation: Vec<String>,
    /// Draws of each validation task and each k.
    pub validation_draws: usize,
    /// The most examples of a validation task that are scored.
    pub validation_queries: usize,
    /// The seed of training.
    pub seed: u64,
}

impl LeopardPlan {
    /// The plan of a preset.
    pub fn new(preset: LeopardPreset, data: PathBuf, encoder: PathBuf) -> Self {
        let generated = data.as_os_str() == SYNTHETIC;
        let plan = Self {
            preset,
            data,
            encoder,
            models: LeopardModel::ALL.to_vec(),
            iterations: 10_000,
            examples: 256,
            support: None,
            adapting: Adapting::Paper,
            length: 128,
            shots: SHOTS.to_vec(),
            draws: DRAWS,
            queries: None,
            steps: 200,
            rates: vec![1e-5, 1e-4, 1e-3, 1e-2],
            alphas: vec![1e2, 1e3, 1e4, 1e5, 1e6, 1e7],
            // Generated tasks have other names: a fifth of them is held out.
            validation: if generated { Vec::new() } else { vec!["MRPC".to_owned(), "SNLI".to_owned()] },
            validation_draws: 5,
            validation_queries: 200,
            seed: 0,
        };
        let plan = match preset {
            LeopardPreset::Quick => Self {
                models: vec![Maml, Bmaml, Pacoh, Pacmaml],
                iterations: 10,
                examples: 32,
                support: Some(16),
                adapting: Adapting::Head,
                length: 48,
                draws: 3,
                queries: Some(100),
                rates: vec![1e-3],
                alphas: Vec::new(),
                validation_draws: 1,
                validation_queries: 50,
                ..plan
            },
            LeopardPreset::Cpu => Self {
                iterations: 1500,
                examples: 64,
                support: Some(32),
                adapting: Adapting::Head,
                queries: Some(1000),
                alphas: Vec::new(),
                validation_draws: 10,
                validation_queries: 500,
                ..plan
            },
            LeopardPreset::Paper => plan,
        };
        // Generated tasks have no more examples.
        if generated {
            Self { examples: plan.examples.min(64), support: plan.support.or(Some(32)), ..plan }
        } else {
            plan
        }
    }

    /// Whether the numbers can be compared with the paper's: not on generated sentences.
    pub fn is_comparable(&self) -> bool {
        self.data.as_os_str() != SYNTHETIC
    }

    /// The same plan with the models of an earlier one in the same folder: what was trained before stays on the page.
    ///
    /// # Errors
    /// When the earlier plan is another study, or has more iterations, or fewer and not all of its models are
    /// in this one.
    pub fn including(&self, earlier: &Self) -> Result<Self> {
        let refuse = |what: String| {
            let message = format!("the folder holds a study with {what}; choose another --out");
            Err(Error::input("the plan of the study", message))
        };
        let same = Self { models: earlier.models.clone(), iterations: earlier.iterations, ..self.clone() };
        if same != *earlier {
            let (before, now) = (json_of(earlier), json_of(&same));
            let differs = before.iter().find(|(key, value)| now.get(*key) != Some(value));
            return match differs {
                Some((key, value)) => {
                    let other = now.get(key).cloned().unwrap_or_default();
                    refuse(format!("`{key}` {value}, not {other}"))
                }
                None => refuse("other settings".to_owned()),
            };
        }
        let all = earlier.models.iter().all(|model| self.models.contains(model));
        check_iterations(earlier.iterations, self.iterations, all)?;
        let mut plan = self.clone();
        plan.models.extend(earlier.models.iter().filter(|model| !self.models.contains(model)));
        plan.models.sort_by_key(|model| model.look());
        Ok(plan)
    }

    /// m' of a model: the paper's, all of m where the base learner sees everything, or the plan's.
    pub(super) fn support(&self, model: LeopardModel) -> usize {
        let support = match (model, self.support) {
            (Pacoh | MultiTask | FineTuning, _) => self.examples,
            (_, Some(support)) => support,
            (HSmlmt | Maml, None) => 32,
            (Bmaml | Pacmaml, None) => 64,
        };
        support.min(self.examples)
    }

    /// v of a model whose encoder has so many layers: as many layers from the top adapt as in the paper.
    pub(super) fn threshold(&self, model: LeopardModel, layers: usize) -> usize {
        match self.adapting {
            Adapting::Paper => layers - model.layers_in_paper().min(layers),
            Adapting::Head => layers,
        }
    }

    /// The configuration of a model: the paper's hyper-parameters. `alpha` replaces the paper's where a search chose it.
    ///
    /// # Errors
    /// When a number of the plan is out of range.
    pub fn config(
        &self,
        model: LeopardModel,
        layers: Option<usize>,
        alpha: Option<f64>,
    ) -> Result<TextConfig> {
        let text = |path: &Path| Value::String(path.display().to_string());
        let whole = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let count = |number: usize| whole(number as u64);
        let section = |entries: Vec<(&str, Value)>| {
            Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Table>())
        };
        let path = if self.is_comparable() { self.data.join("glue") } else { self.data.clone() };
        let mut data = vec![
            ("environment", Value::from("text")),
            ("path", text(&path)),
            ("length", count(self.length)),
            ("examples", count(self.examples)),
            ("support", count(self.support(model))),
        ];
        if !self.validation.is_empty() {
            data.push((
                "held_out",
                Value::Array(self.validation.iter().cloned().map(Value::String).collect()),
            ));
        }
        let mut prior = vec![("model", text(&self.encoder))];
        prior.extend(layers.map(|layers| ("threshold", count(self.threshold(model, layers)))));
        if model == HSmlmt {
            data.push(("smlmt", Value::Float(0.5)));
            prior.push(("head", Value::from("generated")));
        }
        let mut method = vec![("name", Value::from(model.method().name()))];
        method.extend(alpha.filter(|_| model.has_alpha()).map(|alpha| ("alpha", Value::Float(alpha))));
        let training = vec![
            ("iterations", whole(self.iterations)),
            ("log_every", whole((self.iterations / 200).max(1))),
            // A checkpoint holds the encoder and its moments in f64, half a gigabyte for a small one.
            ("checkpoint_every", whole((self.iterations / 6).clamp(10, 500))),
            ("validate_every", whole((self.iterations / 6).max(10))),
            ("validation_draws", count(self.validation_draws.min(2))),
        ];
        let evaluation = vec![
            ("shots", Value::Array(self.shots.iter().map(|&k| count(k)).collect())),
            ("draws", count(self.validation_draws)),
            ("queries", count(self.validation_queries)),
            ("steps", count(self.steps)),
            ("rate", Value::Float(self.usual_rate())),
        ];
        let table = Table::from_iter([
            ("seed".to_owned(), whole(self.seed)),
            ("data".to_owned(), section(data)),
            ("prior".to_owned(), section(prior)),
            ("method".to_owned(), section(method)),
            ("training".to_owned(), section(training)),
            ("evaluation".to_owned(), section(evaluation)),
        ]);
        TextConfig::from_table(&table)
    }

    /// The rate by which runs are watched while they train: that of the list in the middle.
    fn usual_rate(&self) -> f64 {
        self.rates.get(self.rates.len() / 2).copied().unwrap_or(1e-3)
    }
}

/// The settings of a plan by name.
fn json_of(plan: &LeopardPlan) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(plan) {
        Ok(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}
