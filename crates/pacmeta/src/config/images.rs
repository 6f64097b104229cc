//! Configurations of image classification: `data.environment = "images"`.
//!
//! They have sections of their own, since almost every key differs from those of regression; reading, overriding and
//! error messages are the same.

use std::path::PathBuf;

use pacmeta_tensor::TensorError;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::classification::{
    self, ClassificationMethodConfig, ClassificationMethodKind, MethodDefaults, SubsetSize,
};
use super::classification_training::{ClassificationTrainingConfig, Kind, TrainingNormalisation};
use super::section::{Domain, Entry, Section, integer, name_of, numbers};
use crate::environments::images::Channels;
use crate::error::{Error, Result};
use crate::methods::networks::Adapts;
use crate::priors::{ConvolutionSpec, Downsampling};

const TRAINING: Kind = Kind::Images;
pub(super) const TOP: &[&str] = &["seed", "data", "prior", "method", "training", "evaluation"];
pub(super) const DATA_KEYS: &[&str] = &[
    "environment",
    "path",
    "split",
    "parts",
    "cache",
    "min_examples",
    "side",
    "channels",
    "rotations",
    "way",
    "shots",
    "support",
    "query",
];
pub(super) const PRIOR_KEYS: &[&str] = &["filters", "blocks", "downsampling", "scale", "head"];
pub(super) const EVALUATION_KEYS: &[&str] = &["tasks", "normalisation"];
/// The `data.path` of generated pictures.
pub const SYNTHETIC: &str = "synthetic";
/// Those of miniImageNet's usual split.
pub(crate) const PARTS: [f64; 3] = [0.64, 0.16, 0.20];

/// A checked configuration of image classification.
///
/// | key | default | purpose | range |
/// |---|---|---|---|
/// | `seed` | 0 | of everything random | 0 to 2^63 - 1 |
///
/// and the sections `[data]` ([`ImageDataConfig`]), `[prior]` ([`ImagePriorConfig`]), `[method]` ([`ClassificationMethodConfig`]),
/// `[training]` ([`ClassificationTrainingConfig`]), `[evaluation]` ([`ImageEvaluationConfig`]).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ImageConfig {
    /// The seed of everything random.
    pub seed: u64,
    /// Where pictures come from, and what a task is.
    pub data: ImageDataConfig,
    /// The network.
    pub prior: ImagePriorConfig,
    /// The method.
    pub method: ClassificationMethodConfig,
    /// The loop.
    pub training: ClassificationTrainingConfig,
    /// How the result is scored.
    pub evaluation: ImageEvaluationConfig,
}

/// Pictures and tasks.
///
/// | key of `[data]` | default | purpose | range |
/// |---|---|---|---|
/// | `environment` | needed | says that tasks are made of pictures | `"images"` |
/// | `path` | needed | a folder or a zip file with a folder a class, or `"synthetic"`: generated stroke characters | |
/// | `split` | `split.csv`, or `train.csv`, `val.csv`, `test.csv` beside the pictures, else folders `train`, `val`, `test` of classes, else drawn | which classes are for training, validation and test | a file or folder |
/// | `parts` | `[0.64, 0.16, 0.20]` | the parts of the classes for training, validation and test, where they are divided at random | three numbers from 0 that add up to 1, the first and the last above 0 |
/// | `cache` | the user's cache folder | where decoded pictures are kept | a folder |
/// | `min_examples` | none: small classes are errors | classes with fewer pictures are left out | 2 to 1000000 |
/// | `side` | 84 | rows and columns that pictures are resized to | 8 to 1024 |
/// | `channels` | `"colour"` | what pictures are converted to | `"colour"`, `"grey"` |
/// | `rotations` | false | whether quarter turns of a class are classes of their own | true, false |
/// | `way` | 5 | classes of a task | 2 to 1000 |
/// | `shots` | 2 | pictures of each class in a training task: m_i = way x shots | 1 to 10000 |
/// | `support` | 1 | pictures of each class that the base learner sees: in S', and of a test task | 1 to 10000 |
/// | `query` | 15 | pictures of each class of a test task that are scored | 1 to 10000 |
#[derive(Debug, Clone, PartialEq)]
pub struct ImageDataConfig {
    /// A folder, a zip file, or [`SYNTHETIC`].
    pub path: PathBuf,
    /// The split, where one is named.
    pub split: Option<PathBuf>,
    /// The parts of the classes for training, validation and test, where no file divides them.
    pub parts: [f64; 3],
    /// The folder of decoded pictures, where one is named.
    pub cache: Option<PathBuf>,
    /// Classes with fewer pictures are left out.
    pub min_examples: Option<usize>,
    /// Rows and columns of a picture.
    pub side: usize,
    /// Colour or grey.
    pub channels: Channels,
    /// Whether quarter turns are classes of their own.
    pub rotations: bool,
    /// Classes of a task.
    pub way: usize,
    /// Pictures of a class in a training task.
    pub shots: usize,
    /// Pictures of a class in S', and in the support of a test task.
    pub support: usize,
    /// Pictures of a class that are scored in a test task.
    pub query: usize,
}

impl ImageDataConfig {
    /// Whether the pictures are generated.
    pub fn is_synthetic(&self) -> bool {
        self.path.as_os_str() == SYNTHETIC
    }
}

/// The network.
///
/// | key of `[prior]` | default | purpose | range |
/// |---|---|---|---|
/// | `filters` | 64 | filters of each block; 64 has the fast path | 1 to 4096 |
/// | `blocks` | 4 | blocks, each of which halves the picture | 1 to 12 |
/// | `downsampling` | `"max-pool"` | how a block halves | `"max-pool"`, `"stride"` |
/// | `scale` | `"learned"` | the factor of each filter behind batch norm: learned, or one, as in MAML's own code | `"learned"`, `"one"` |
/// | `head` | `"learned"` | where the head starts on training, validation and test tasks: at learned weights, or at zero; for `adapt` at zero always | `"learned"`, `"zero"` |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImagePriorConfig {
    /// Filters of each block.
    pub filters: usize,
    /// Blocks.
    pub blocks: usize,
    /// How a block halves.
    pub downsampling: Downsampling,
    /// The factor of each filter behind batch norm.
    pub scale: NormScale,
    /// Where the head starts.
    pub head: HeadStart,
}

/// What a filter's normalised output is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum NormScale {
    /// A number that is meta-learned like all others.
    #[default]
    Learned,
    /// One, fixed: features have the size that batch norm gives them.
    One,
}

/// Where the head starts on a new task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum HeadStart {
    /// At weights that are meta-learned like all others.
    #[default]
    Learned,
    /// At zero, fixed: labels are random in every task, so that there is nothing to learn about a class.
    Zero,
}

/// How the result is scored.
///
/// | key of `[evaluation]` | default | purpose | range |
/// |---|---|---|---|
/// | `tasks` | 600 | test tasks | 1 to 1000000 |
/// | `normalisation` | `"batch"` | whose statistics batch norm takes at a new task, see [`Normalisation`] | `"batch"`, `"together"`, `"support"` |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageEvaluationConfig {
    /// Test tasks.
    pub tasks: usize,
    /// Whose statistics batch norm takes.
    pub normalisation: Normalisation,
}

/// Whose statistics batch norm takes at a new task; in training it is [`TrainingNormalisation`] that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Normalisation {
    /// Support and queries each their own. Transductive: a prediction depends on the other queries.
    #[default]
    Batch,
    /// Support and queries in one batch. Transductive too.
    Together,
    /// The support's for both: a prediction depends on its own picture only.
    Support,
}

impl ImageConfig {
    pub(crate) fn from_table(table: &Table) -> Result<Self> {
        let top = Section::root(table, TOP)?;
        let data = Section::open(table, "data", DATA_KEYS)?;
        let prior = Section::open(table, "prior", PRIOR_KEYS)?;
        let method_keys = [classification::KEYS, &["adapts"]].concat();
        let method = Section::open(table, "method", &method_keys)?;
        let training_keys = TRAINING.keys();
        let training = Section::open(table, "training", &training_keys)?;
        let evaluation = Section::open(table, "evaluation", EVALUATION_KEYS)?;
        let data = read_data(data)?;
        let subset = if data.support == data.shots { SubsetSize::Whole } else { SubsetSize::Part };
        let method = ClassificationMethodConfig::read(method, &MethodDefaults::IMAGES, subset)?;
        let config = Self {
            seed: top.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(0),
            prior: read_prior(prior)?,
            training: ClassificationTrainingConfig::read(training, TRAINING, defaults(method.kind))?,
            evaluation: ImageEvaluationConfig {
                tasks: evaluation.count("tasks", 1..=1_000_000)?.unwrap_or(600),
                normalisation: evaluation
                    .choice("normalisation", &["batch", "together", "support"])?
                    .unwrap_or_default(),
            },
            data,
            method,
        };
        let adapts = config.method.steps > 0 && config.method.kind != ClassificationMethodKind::MultiTask;
        if config.prior.head == HeadStart::Zero && !adapts {
            let message = "a head that starts at zero and does not adapt in training lets no gradient through to the body, which would \
                           learn nothing; choose \"learned\"";
            return Err(prior.error("head", message));
        }
        if config.method.adapts == Adapts::Network {
            if config.training.normalisation != TrainingNormalisation::Batch {
                let message = "it is for `method.adapts` = \"head\", where the pictures of a task pass the body once; where the whole \
                               network adapts, each pass has its own statistics: remove it";
                return Err(training.error("normalisation", message));
            }
            if config.prior.scale == NormScale::One {
                let message = "\"one\" is for `method.adapts` = \"head\"; where the whole network adapts, every parameter does: remove it";
                return Err(prior.error("scale", message));
            }
        }
        config.spec().layout().map_err(|error| {
            let message = match error {
                Error::Tensor(TensorError::Fused { reason, .. }) => reason,
                other => other.to_string(),
            };
            prior.error("blocks", message)
        })?;
        Ok(config)
    }

    /// The shape of the network.
    pub fn spec(&self) -> ConvolutionSpec {
        ConvolutionSpec {
            side: self.data.side,
            channels: self.data.channels.count(),
            filters: self.prior.filters,
            blocks: self.prior.blocks,
            downsampling: self.prior.downsampling,
            classes: self.data.way,
        }
    }

    pub(super) fn sections(&self) -> Vec<(&'static str, Vec<Entry>)> {
        let data = &self.data;
        let path = |path: &PathBuf| Value::String(path.display().to_string());
        let mut of_data = vec![("environment", Value::from("images")), ("path", path(&data.path))];
        of_data.extend(data.split.as_ref().map(|split| ("split", path(split))));
        of_data.push(("parts", numbers(&data.parts)));
        of_data.extend(data.cache.as_ref().map(|cache| ("cache", path(cache))));
        of_data.extend(data.min_examples.map(|least| ("min_examples", integer(least))));
        of_data.extend([
            ("side", integer(data.side)),
            ("channels", name_of(&data.channels)),
            ("rotations", Value::Boolean(data.rotations)),
            ("way", integer(data.way)),
            ("shots", integer(data.shots)),
            ("support", integer(data.support)),
            ("query", integer(data.query)),
        ]);
        let mut of_prior = vec![
            ("filters", integer(self.prior.filters)),
            ("blocks", integer(self.prior.blocks)),
            ("downsampling", name_of(&self.prior.downsampling)),
        ];
        // Not otherwise, so that runs from before there was a choice can be continued.
        if self.prior.scale == NormScale::One {
            of_prior.push(("scale", name_of(&self.prior.scale)));
        }
        of_prior.push(("head", name_of(&self.prior.head)));
        vec![
            ("data", of_data),
            ("prior", of_prior),
            ("method", self.method.entries()),
            ("training", self.training.entries(TRAINING)),
            (
                "evaluation",
                vec![
                    ("tasks", integer(self.evaluation.tasks)),
                    ("normalisation", name_of(&self.evaluation.normalisation)),
                ],
            ),
        ]
    }

    /// The configuration with every key, in a fixed order. Reading it gives the same again.
    pub fn to_toml(&self) -> String {
        super::write_toml(self.seed, self.sections())
    }
}

fn read_data(section: Section<'_>) -> Result<ImageDataConfig> {
    let Some(path) = section.text("path")? else {
        let message = "is missing: expected a folder or a zip file with one folder a class, or \"synthetic\" for \
                       generated stroke characters";
        return Err(section.error("path", message));
    };
    let data = ImageDataConfig {
        path: PathBuf::from(path),
        split: section.text("split")?.map(PathBuf::from),
        parts: read_parts(section)?,
        cache: section.text("cache")?.map(PathBuf::from),
        min_examples: section.count("min_examples", 2..=1_000_000)?,
        side: section.count("side", 8..=1024)?.unwrap_or(84),
        channels: section.choice("channels", &["colour", "grey"])?.unwrap_or(Channels::Colour),
        rotations: section.flag("rotations")?.unwrap_or(false),
        way: section.count("way", 2..=1000)?.unwrap_or(5),
        shots: section.count("shots", 1..=10_000)?.unwrap_or(2),
        support: section.count("support", 1..=10_000)?.unwrap_or(1),
        query: section.count("query", 1..=10_000)?.unwrap_or(15),
    };
    if data.is_synthetic() {
        section.refuse(&["split", "cache", "min_examples"], "generated pictures have none; remove it")?;
    }
    if data.support > data.shots {
        let message = format!(
            "{} pictures of a class cannot be chosen from {}: `data.support` is at most `data.shots`",
            data.support, data.shots
        );
        return Err(section.error("support", message));
    }
    Ok(data)
}

fn read_parts(section: Section<'_>) -> Result<[f64; 3]> {
    let message = "expected three numbers from 0 that add up to 1, for training, validation and test; the first and the last above 0";
    let wrong = || section.error("parts", message);
    let Some(parts) = section.numbers("parts", Domain::NonNegative).map_err(|_| wrong())? else {
        return Ok(PARTS);
    };
    let whole = (parts.iter().sum::<f64>() - 1.0).abs() < 1e-6;
    match <[f64; 3]>::try_from(parts) {
        Ok(parts) if whole && parts[0] > 0.0 && parts[2] > 0.0 => Ok(parts),
        _ => Err(wrong()),
    }
}

fn read_prior(section: Section<'_>) -> Result<ImagePriorConfig> {
    Ok(ImagePriorConfig {
        filters: section.count("filters", 1..=4096)?.unwrap_or(64),
        blocks: section.count("blocks", 1..=12)?.unwrap_or(4),
        downsampling: section.choice("downsampling", &["max-pool", "stride"])?.unwrap_or_default(),
        scale: section.choice("scale", &["learned", "one"])?.unwrap_or_default(),
        head: section.choice("head", &["learned", "zero"])?.unwrap_or_default(),
    })
}

/// What the loop takes where the file says nothing.
fn defaults(method: ClassificationMethodKind) -> ClassificationTrainingConfig {
    ClassificationTrainingConfig {
        iterations: 60_000,
        batch: 4,
        rate: if method.takes_small_steps() { 1e-4 } else { 1e-3 },
        clip: 10.0,
        normalisation: TrainingNormalisation::Batch,
        dropout: 0.0,
        hyper_prior: 0.0,
        log_every: 100,
        checkpoint_every: 500,
        validate_every: 1000,
        validations: 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "[data]\nenvironment = \"images\"\npath = \"p\"\n";

    #[test]
    fn what_is_written_reads_as_the_same() {
        for kind in ClassificationMethodKind::ALL {
            for more in ["", "steps = 2\nrate = 0.5\ninner_optimiser = \"gd\"\n"] {
                let text =
                    format!("{LEAST}parts = [0.5, 0.0, 0.5]\n[method]\nname = \"{}\"\n{more}", kind.name());
                let config = ImageConfig::parse("a.toml", &text, &[]).unwrap();
                assert_eq!(config.method.kind, kind);
                assert_eq!(ImageConfig::parse("b.toml", &config.to_toml(), &[]).unwrap(), config);
            }
        }
        for (name, normalisation) in
            [("support", TrainingNormalisation::Support), ("separate", TrainingNormalisation::Separate)]
        {
            let text = format!("{LEAST}[prior]\nscale = \"one\"\n[training]\nnormalisation = \"{name}\"\n");
            let config = ImageConfig::parse("a.toml", &text, &[]).unwrap();
            assert_eq!((config.training.normalisation, config.prior.scale), (normalisation, NormScale::One));
            assert_eq!(ImageConfig::parse("b.toml", &config.to_toml(), &[]).unwrap(), config);
        }
        // runs from before there was a choice have no such keys, and are continued
        let before = ImageConfig::parse("a.toml", LEAST, &[]).unwrap().to_toml();
        assert_eq!((before.matches("normalisation").count(), before.contains("[evaluation]")), (1, true));
        assert!(!before.contains("scale"), "{before}");
        let sampled = "[method]\nname = \"pacoh\"\nsampler = \"svgd\"\nestimator = \"prior\"\nbeta = 3\n";
        let config = ImageConfig::parse("a.toml", &format!("{LEAST}{sampled}"), &[]).unwrap();
        assert_eq!(ImageConfig::parse("b.toml", &config.to_toml(), &[]).unwrap(), config);
    }

    #[test]
    fn the_papers_hyper_parameters_are_the_defaults() {
        let of = |name: &str| {
            let text = format!("{LEAST}[method]\nname = \"{name}\"\n");
            let config = ImageConfig::parse("a.toml", &text, &[]).unwrap();
            (config.method.rate, config.method.alpha, config.training.rate, config.method.steps)
        };
        assert_eq!(of("pacmaml"), (0.03, 1.0, 1e-3, 6));
        assert_eq!(of("pacoh"), (0.01, 10.0, 1e-4, 6));
        assert_eq!(of("bmaml"), (0.003, 1.0, 1e-4, 6));
        assert_eq!((of("maml").0, of("fomaml").2), (0.1, 1e-3));
    }

    #[test]
    fn mistakes_name_their_key() {
        for (text, key) in [
            ("parts = [0.5, 0.5]", "`data.parts`: expected three numbers from 0 that add up to 1"),
            ("parts = 0.5", "`data.parts`: expected three numbers from 0 that add up to 1"),
            ("parts = [0.8, -0.1, 0.3]", "`data.parts`: expected three numbers from 0 that add up to 1"),
            ("parts = [0.5, 0.4, 0.3]", "data.parts"),
            ("support = 3", "data.support"),
            ("way = 1", "data.way"),
            ("[method]\nname = \"maml\"\nalpha = 1.0", "method.alpha"),
            ("[method]\nname = \"bmaml\"\nsampler = \"sgld\"", "method.sampler"),
            ("[method]\nname = \"maml\"\naccumulator_start = 0.1", "method.accumulator_start"),
            ("shots = 1\n[method]\nsplit = \"disjoint\"", "method.split"),
            ("[training]\nnormalisation = \"together\"", "training.normalisation"),
            (
                "[method]\nadapts = \"network\"\n[training]\nnormalisation = \"support\"",
                "training.normalisation",
            ),
            (
                "[method]\nadapts = \"network\"\n[training]\nnormalisation = \"separate\"",
                "training.normalisation",
            ),
            ("[prior]\nscale = \"one\"\n[method]\nadapts = \"network\"", "prior.scale"),
            ("[prior]\nscale = \"1\"", "prior.scale"),
            ("side = 8", "prior.blocks"),
        ] {
            let error =
                ImageConfig::parse("a.toml", &format!("{LEAST}{text}\n"), &[]).unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
