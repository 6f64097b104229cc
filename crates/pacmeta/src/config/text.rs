//! Configurations of text classification: `data.environment = "text"`.

use std::path::PathBuf;

use pacmeta_tensor::encoder::Pooling;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::classification::{self, ClassificationMethodConfig, MethodDefaults, SubsetSize};
use super::classification_training::{ClassificationTrainingConfig, Kind, TrainingNormalisation};
use super::section::{Domain, Entry, Section, integer, name_of};
use crate::environments::text::TaskSampling;
use crate::error::Result;
use crate::methods::networks::WayBack;

const TRAINING: Kind = Kind::Text;
const DEFAULTS: ClassificationTrainingConfig = ClassificationTrainingConfig {
    iterations: 1000,
    batch: 1,
    rate: PRETRAINED_RATE,
    clip: 1.0,
    normalisation: TrainingNormalisation::Batch,
    dropout: 0.0,
    hyper_prior: 0.0,
    log_every: 10,
    checkpoint_every: 500,
    validate_every: 250,
    validations: 2,
};
/// The paper's rate for a pretrained encoder, where its layers learn or adapt.
const PRETRAINED_RATE: f64 = 1e-5;
/// The rate of heads, and of a small encoder with random weights.
const HEAD_RATE: f64 = 1e-3;
pub(super) const TOP: &[&str] = &["seed", "data", "prior", "method", "training", "evaluation"];
pub(super) const DATA_KEYS: &[&str] = &[
    "environment",
    "path",
    "tasks",
    "held_out",
    "length",
    "examples",
    "support",
    "sampling",
    "smlmt",
    "smlmt_words",
    "smlmt_path",
];
pub(super) const PRIOR_KEYS: &[&str] = &["model", "pooling", "threshold", "head"];
pub(super) const EVALUATION_KEYS: &[&str] = &["shots", "draws", "queries", "steps", "rate"];
/// The least `data.length`: a frame and a few words.
pub(crate) const SHORTEST: usize = 8;
/// The `data.path` and `prior.model` of generated sentences and of a small encoder with random weights.
pub const SYNTHETIC: &str = "synthetic";

/// A checked configuration of text classification.
///
/// | key | default | purpose | range |
/// |---|---|---|---|
/// | `seed` | 0 | of everything random | 0 to 2^63 - 1 |
///
/// and the sections `[data]` ([`TextDataConfig`]), `[prior]` ([`TextPriorConfig`]), `[method]` ([`ClassificationMethodConfig`], without
/// `adapts`, with `way_back`), `[training]` ([`ClassificationTrainingConfig`]), `[evaluation]` ([`TextEvaluationConfig`]).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TextConfig {
    /// The seed of everything random.
    pub seed: u64,
    /// Where sentences come from, and what a task is.
    pub data: TextDataConfig,
    /// The encoder, and what of it adapts.
    pub prior: TextPriorConfig,
    /// The method.
    pub method: ClassificationMethodConfig,
    /// How MAML and BMAML go back through their steps.
    pub way_back: WayBack,
    /// The loop.
    pub training: ClassificationTrainingConfig,
    /// How the result is scored.
    pub evaluation: TextEvaluationConfig,
}

/// Sentences and tasks.
///
/// | key of `[data]` | default | purpose | range |
/// |---|---|---|---|
/// | `environment` | needed | says that tasks are made of sentences | `"text"` |
/// | `path` | needed | a folder with one `.jsonl` or `.jsonl.gz` file a task, or `"synthetic"`: generated sentences | |
/// | `tasks` | all of the folder | the tasks to use, by name | a list of names |
/// | `held_out` | a fifth of the tasks, at least one where there are three | tasks that are not learned from: each is a new task to be scored on | a list of names |
/// | `length` | 128 | tokens of an example; longer ones are cut | 8 to 4096 |
/// | `examples` | 64 | m: examples of a training task; a task that has fewer, but m', gives all of them | 2 to 100000 |
/// | `support` | 32 | m': those of them that the base learner sees, S' | 1 to 100000 |
/// | `sampling` | `"uniform"` | how often a task is drawn | `"uniform"`, `"square-root"` |
/// | `smlmt` | 0 | how often a training task is made from sentences without labels instead: which of some words was masked; words are those of 20 to 500 sentences | at least 0, below 1 |
/// | `smlmt_words` | 3 | the words of such a task | 2 to 20 |
/// | `smlmt_path` | the sentences of the training tasks | where sentences without labels come from: a text file of one sentence a line, a `.jsonl` file, or a folder of such files | |
#[derive(Debug, Clone, PartialEq)]
pub struct TextDataConfig {
    /// A folder, or [`SYNTHETIC`].
    pub path: PathBuf,
    /// The tasks that are used; all if there are none.
    pub tasks: Vec<String>,
    /// The tasks that are held out, where they are named.
    pub held_out: Vec<String>,
    /// Tokens of an example.
    pub length: usize,
    /// m.
    pub examples: usize,
    /// m'.
    pub support: usize,
    /// How often a task is drawn.
    pub sampling: TaskSampling,
    /// The part of tasks that are made from masked words.
    pub smlmt: f64,
    /// The words of such a task.
    pub smlmt_words: usize,
    /// The sentences that words are masked in, where they are not those of the training tasks.
    pub smlmt_path: Option<PathBuf>,
}

impl TextDataConfig {
    /// Whether the sentences are generated.
    pub fn is_synthetic(&self) -> bool {
        self.path.as_os_str() == SYNTHETIC
    }
}

/// The encoder, and what of it adapts.
///
/// | key of `[prior]` | default | purpose | range |
/// |---|---|---|---|
/// | `model` | needed | a folder with `config.json`, `model.safetensors` and `tokenizer.json` or `vocab.txt`, or `"synthetic"`: a small encoder with random weights | |
/// | `pooling` | what the model was made for | how the states of a text become its features | `"first"`, `"mean"`, `"pooler"` |
/// | `threshold` | all layers | v: layers up to it are shared, those above adapt with the head | 0 to the number of layers |
/// | `head` | `"learned"` | where the head of a training task starts: at weights of its own that are learned, at zero, or at weights made from the support by a small network | `"learned"`, `"zero"`, `"generated"` |
///
/// The head of a new task starts at zero, or is made from its support.
#[derive(Debug, Clone, PartialEq)]
pub struct TextPriorConfig {
    /// A folder, or [`SYNTHETIC`].
    pub model: PathBuf,
    /// How states become features, where it is said.
    pub pooling: Option<Pooling>,
    /// v, where it is said.
    pub threshold: Option<usize>,
    /// Where heads start.
    pub head: TextHead,
}

impl TextPriorConfig {
    /// Whether the encoder is the small one with random weights.
    pub fn is_synthetic(&self) -> bool {
        self.model.as_os_str() == SYNTHETIC
    }

    /// The default of `training.rate`.
    fn outer_rate(&self) -> f64 {
        if self.is_synthetic() { HEAD_RATE } else { PRETRAINED_RATE }
    }

    /// The default of `evaluation.rate`. Without a threshold only the head adapts.
    fn new_task_rate(&self) -> f64 {
        if self.is_synthetic() || self.threshold.is_none() { HEAD_RATE } else { PRETRAINED_RATE }
    }
}

/// Where the head of a task starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum TextHead {
    /// At weights of the task's own, which are learned.
    #[default]
    Learned,
    /// At zero.
    Zero,
    /// At weights that a small network makes from the support (LEOPARD).
    Generated,
}

/// How the result is scored: each held-out task is a new one, of which a few examples of each class are seen.
///
/// | key of `[evaluation]` | default | purpose | range |
/// |---|---|---|---|
/// | `shots` | `[4, 8, 16]` | k: examples of each class that are adapted to | 1 to 10000 each |
/// | `draws` | 10 | draws of these examples | 1 to 10000 |
/// | `queries` | 500 | the most other examples that are scored | 1 to 1000000 |
/// | `steps` | 200 | steps of Adam that adapt to a new task | 0 to 100000 |
/// | `rate` | 0.001; with `prior.threshold` on a pretrained encoder, whose layers adapt then, 0.00001 | their learning rate | above 0 |
#[derive(Debug, Clone, PartialEq)]
pub struct TextEvaluationConfig {
    /// k.
    pub shots: Vec<usize>,
    /// Draws of each k.
    pub draws: usize,
    /// The most examples of a task that are scored.
    pub queries: usize,
    /// Steps of Adam.
    pub steps: usize,
    /// Their learning rate.
    pub rate: f64,
}

impl TextConfig {
    pub(crate) fn from_table(table: &Table) -> Result<Self> {
        let top = Section::root(table, TOP)?;
        let data = read_data(Section::open(table, "data", DATA_KEYS)?)?;
        let prior = read_prior(Section::open(table, "prior", PRIOR_KEYS)?)?;
        let method_keys = [classification::KEYS, &["way_back"]].concat();
        let method = Section::open(table, "method", &method_keys)?;
        let training_keys = TRAINING.keys();
        let training = Section::open(table, "training", &training_keys)?;
        let subset = if data.support == data.examples { SubsetSize::Whole } else { SubsetSize::Part };
        let defaults = ClassificationTrainingConfig { rate: prior.outer_rate(), ..DEFAULTS };
        let evaluation = Section::open(table, "evaluation", EVALUATION_KEYS)?;
        Ok(Self {
            seed: top.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(0),
            method: ClassificationMethodConfig::read(method, &MethodDefaults::TEXT, subset)?,
            way_back: method.choice("way_back", &["tape", "recompute"])?.unwrap_or_default(),
            training: ClassificationTrainingConfig::read(training, TRAINING, defaults)?,
            evaluation: read_evaluation(evaluation, &prior)?,
            data,
            prior,
        })
    }

    fn sections(&self) -> Vec<(&'static str, Vec<Entry>)> {
        let (data, prior, evaluation) = (&self.data, &self.prior, &self.evaluation);
        let path = |path: &PathBuf| Value::String(path.display().to_string());
        let names = |list: &[String]| Value::Array(list.iter().cloned().map(Value::String).collect());
        let mut of_data = vec![("environment", Value::from("text")), ("path", path(&data.path))];
        for (key, list) in [("tasks", &data.tasks), ("held_out", &data.held_out)] {
            of_data.extend((!list.is_empty()).then(|| (key, names(list))));
        }
        of_data.extend([
            ("length", integer(data.length)),
            ("examples", integer(data.examples)),
            ("support", integer(data.support)),
            ("sampling", name_of(&data.sampling)),
            ("smlmt", Value::Float(data.smlmt)),
            ("smlmt_words", integer(data.smlmt_words)),
        ]);
        of_data.extend(data.smlmt_path.as_ref().map(|raw| ("smlmt_path", path(raw))));
        let mut of_prior = vec![("model", path(&prior.model))];
        of_prior.extend(prior.pooling.map(|pooling| ("pooling", name_of(&pooling))));
        of_prior.extend(prior.threshold.map(|threshold| ("threshold", integer(threshold))));
        of_prior.push(("head", name_of(&prior.head)));
        let mut of_method = self.method.entries();
        of_method.push(("way_back", name_of(&self.way_back)));
        vec![
            ("data", of_data),
            ("prior", of_prior),
            ("method", of_method),
            ("training", self.training.entries(TRAINING)),
            (
                "evaluation",
                vec![
                    ("shots", Value::Array(evaluation.shots.iter().map(|&k| integer(k)).collect())),
                    ("draws", integer(evaluation.draws)),
                    ("queries", integer(evaluation.queries)),
                    ("steps", integer(evaluation.steps)),
                    ("rate", Value::Float(evaluation.rate)),
                ],
            ),
        ]
    }

    /// The configuration with every key, in a fixed order. Reading it gives the same again.
    pub fn to_toml(&self) -> String {
        super::write_toml(self.seed, self.sections())
    }
}

fn read_data(section: Section<'_>) -> Result<TextDataConfig> {
    let Some(path) = section.text("path")? else {
        let message = "is missing: expected a folder with one .jsonl file a task, or \"synthetic\" for generated sentences";
        return Err(section.error("path", message));
    };
    let data = TextDataConfig {
        path: PathBuf::from(path),
        tasks: section.texts("tasks")?.unwrap_or_default(),
        held_out: section.texts("held_out")?.unwrap_or_default(),
        length: section.count("length", SHORTEST..=4096)?.unwrap_or(128),
        examples: section.count("examples", 2..=100_000)?.unwrap_or(64),
        support: section.count("support", 1..=100_000)?.unwrap_or(32),
        sampling: section.choice("sampling", &["uniform", "square-root"])?.unwrap_or_default(),
        smlmt: section.part("smlmt")?.unwrap_or(0.0),
        smlmt_words: section.count("smlmt_words", 2..=20)?.unwrap_or(3),
        smlmt_path: section.text("smlmt_path")?.map(PathBuf::from),
    };
    if data.smlmt_path.is_some() && data.smlmt == 0.0 {
        let message = "has no effect, since no task is made of masked words; set `data.smlmt`, for example to 0.5, or remove it";
        return Err(section.error("smlmt_path", message));
    }
    if data.support > data.examples {
        let message = format!(
            "{} examples cannot be chosen from {}: `data.support` is at most `data.examples`",
            data.support, data.examples
        );
        return Err(section.error("support", message));
    }
    Ok(data)
}

fn read_prior(section: Section<'_>) -> Result<TextPriorConfig> {
    let Some(model) = section.text("model")? else {
        let message = "is missing: expected the folder of a BERT-like model (config.json, model.safetensors, tokenizer.json), or \
                       \"synthetic\" for a small one with random weights";
        return Err(section.error("model", message));
    };
    Ok(TextPriorConfig {
        model: PathBuf::from(model),
        pooling: section.choice("pooling", &["first", "mean", "pooler"])?,
        threshold: section.count("threshold", 0..=1000)?,
        head: section.choice("head", &["learned", "zero", "generated"])?.unwrap_or_default(),
    })
}

fn read_evaluation(section: Section<'_>, prior: &TextPriorConfig) -> Result<TextEvaluationConfig> {
    Ok(TextEvaluationConfig {
        shots: section.counts("shots", 1..=10_000)?.unwrap_or_else(|| vec![4, 8, 16]),
        draws: section.count("draws", 1..=10_000)?.unwrap_or(10),
        queries: section.count("queries", 1..=1_000_000)?.unwrap_or(500),
        steps: section.count("steps", 0..=100_000)?.unwrap_or(200),
        rate: section.number("rate", Domain::Positive)?.unwrap_or_else(|| prior.new_task_rate()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::ClassificationMethodKind;
    use super::*;

    const LEAST: &str = "[data]\nenvironment = \"text\"\npath = \"p\"\n[prior]\nmodel = \"m\"\n";

    #[test]
    fn what_is_written_reads_as_the_same() {
        for kind in ClassificationMethodKind::ALL {
            let text = format!(
                "seed = 3\n{LEAST}threshold = 2\npooling = \"first\"\n[method]\nname = \"{}\"\n",
                kind.name()
            );
            let config = TextConfig::parse("a.toml", &text, &[]).unwrap();
            assert_eq!(
                (config.method.kind, config.method.steps, config.method.sigma_squared),
                (kind, 50, 4e-4)
            );
            assert_eq!(TextConfig::parse("b.toml", &config.to_toml(), &[]).unwrap(), config);
        }
        let named = LEAST.replace(
            "path",
            "tasks = [\"a\", \"b\"]\nheld_out = [\"b\"]\nsmlmt = 0.5\nsmlmt_path = \"raw.txt\"\npath",
        );
        let config = TextConfig::parse("a.toml", &named, &[]).unwrap();
        assert_eq!(config.data.smlmt_path, Some(PathBuf::from("raw.txt")));
        assert_eq!(TextConfig::parse("b.toml", &config.to_toml(), &[]).unwrap(), config);
    }

    #[test]
    fn default_rates_follow_the_encoder_and_what_adapts() {
        let rates = |text: &str| {
            let config = TextConfig::parse("a.toml", text, &[]).unwrap();
            assert_eq!(TextConfig::parse("b.toml", &config.to_toml(), &[]).unwrap(), config);
            [config.training.rate, config.evaluation.rate]
        };
        let synthetic = LEAST.replace("model = \"m\"", "model = \"synthetic\"");
        assert_eq!(rates(LEAST), [1e-5, 1e-3]);
        assert_eq!(rates(&format!("{LEAST}threshold = 2\n")), [1e-5, 1e-5]);
        assert_eq!(rates(&synthetic), [1e-3, 1e-3]);
        assert_eq!(rates(&format!("{synthetic}threshold = 1\n")), [1e-3, 1e-3]);
        let said = format!("{LEAST}threshold = 2\n[training]\nrate = 0.5\n[evaluation]\nrate = 0.25\n");
        assert_eq!(rates(&said), [0.5, 0.25]);
    }

    #[test]
    fn mistakes_name_their_key() {
        let with = |section: &str, line: &str| LEAST.replace(section, &format!("{section}\n{line}"));
        for (text, key) in [
            ("[data]\nenvironment = \"text\"\n[prior]\nmodel = \"m\"".to_owned(), "data.path"),
            ("[data]\nenvironment = \"text\"\npath = \"p\"".to_owned(), "prior.model"),
            (with("[data]", "support = 65"), "data.support"),
            (with("[data]", "smlmt = 1.0"), "data.smlmt"),
            (with("[data]", "smlmt_path = \"raw.txt\""), "data.smlmt_path"),
            (with("[prior]", "pooling = \"max\""), "prior.pooling"),
            (with("[prior]", "layers = 2"), "prior.layers"),
            (format!("{LEAST}[method]\nadapts = \"network\""), "method.adapts"),
            (format!("{LEAST}[evaluation]\nshots = []"), "evaluation.shots"),
            (with("[data]", "support = 64") + "[method]\nsplit = \"disjoint\"", "method.split"),
        ] {
            let error = TextConfig::parse("a.toml", &text, &[]).unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
