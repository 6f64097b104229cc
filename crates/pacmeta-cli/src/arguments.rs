//! The arguments of every command.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pacmeta::config::Assumption;
use pacmeta::config::{ClassificationMethodKind, images::Normalisation};

use crate::cluster_arguments::OnCluster;

use crate::bench_arguments::{Bench, ShapeName};

/// Few-shot meta-learning with PAC-Bayes guarantees: learn a prior from many small data sets, adapt it to a new one.
#[derive(Debug, Parser)]
#[command(
    name = "pacmeta",
    version,
    after_help = "Examples:\n  pacmeta reproduce sinusoid\n  pacmeta train configs/own-table.toml --set data.path=measurements.csv\n\n\
                  Exit codes: 0 fine, 1 the run failed, 2 the input, a setting or the usage is wrong, 130 interrupted."
)]
pub(crate) struct Arguments {
    /// Use this many threads (default: one a processor); results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Train(Train),
    Compare(Compare),
    Sweep(Sweep),
    Reproduce(Reproduce),
    Evaluate(Evaluate),
    Adapt(Adapt),
    Bound(Box<Bound>),
    Bench(Bench),
    Report(Report),
    Completions(Completions),
}

/// What changes a configuration from outside.
#[derive(Debug, Args)]
pub(crate) struct Overrides {
    /// Seed of everything random, in place of the configuration's
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Set a key of the configuration, e.g. method.beta=300; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
}

impl Overrides {
    /// All of them, in the order in which they apply.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let seed = self.seed.map(|seed| ("seed".to_owned(), seed.to_string()));
        self.set.iter().cloned().chain(seed).collect()
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, e.g. training.iterations=2000".to_owned()),
    }
}

fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| "expected a whole number from 0 on".to_owned())
}

/// Learn a prior from the tasks of a configuration, score it, write a report
///
/// The run lives in a folder. The same command continues a run that was interrupted, and shows one that is finished.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pacmeta train configs/sinusoid.toml --seed 1 --set training.iterations=2000"
)]
pub(crate) struct Train {
    /// The configuration
    #[arg(value_name = "CONFIG.toml")]
    pub(crate) config: PathBuf,
    /// The folder of the run (default: runs/ and the name of the configuration)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show neither progress nor remarks
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Train several configurations on the same tasks, and show them side by side
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pacmeta compare configs/sinusoid.toml configs/sinusoid-pacoh.toml --set data.examples=10"
)]
pub(crate) struct Compare {
    /// The configurations; they must have the same data section and seed
    #[arg(value_name = "CONFIG.toml", required = true)]
    pub(crate) configs: Vec<PathBuf>,
    /// The folder; each run gets one of its own in it
    #[arg(long, value_name = "DIR", default_value = "runs/compare")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show neither progress nor remarks
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Train every point of a grid over a configuration, and choose by cross-validation over the scored tasks
///
/// The grid is the section [sweep.grid] of the configuration. Models are recorded one by one as they finish: the same command
/// continues, and trains only what is new when values or seeds are added. Every setting and seed is scored on the same tasks.
/// The subcommands are for clusters: a plan, a job for each of its models, and the results brought together.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  pacmeta sweep configs/own-sweep.toml --set sweep.seeds=3\n  \
                  pacmeta sweep plan configs/own-sweep.toml -o plan.jsonl && pacmeta sweep slurm plan.jsonl > plan.sbatch"
)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    pub(crate) on_cluster: Option<OnCluster>,
    /// The configuration, with a section [sweep.grid]
    #[arg(value_name = "CONFIG.toml", required = true)]
    pub(crate) config: Option<PathBuf>,
    /// The folder of the sweep (default: runs/sweep/ and the name of the configuration)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Try models again that failed in an earlier call
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Print the conclusions as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show neither progress nor remarks
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Run a study of the paper and write its report
///
/// The models of a study are recorded one by one as they finish. The same command continues a study that was
/// interrupted, and trains only what is missing when more sets or seeds are asked for.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pacmeta reproduce sinusoid\n  pacmeta reproduce sinusoid --preset paper --out runs/paper\n  \
                  pacmeta reproduce mini-imagenet --data synthetic\n  \
                  pacmeta reproduce mini-imagenet --data miniimagenet/ --preset paper --examples 10 --methods maml,pacmaml\n  \
                  pacmeta reproduce mini-imagenet --data miniimagenet/ --preset cpu --set prior.head=zero --out runs/zero\n  \
                  pacmeta reproduce leopard --data synthetic --model synthetic\n  \
                  pacmeta reproduce leopard --data texts/ --model all-MiniLM-L6-v2/ --preset cpu --methods pacmaml,pacoh,fine-tuning\n  \
                  pacmeta reproduce memory --preset paper"
)]
pub(crate) struct Reproduce {
    /// The study
    #[arg(value_name = "STUDY")]
    pub(crate) study: StudyName,
    /// How much of it: a small part in a minute or three, or the paper's whole grid
    #[arg(long, value_name = "PRESET", default_value = "quick")]
    pub(crate) preset: PresetName,
    /// The folder of the study (default: runs/, the study and the preset)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The pictures (mini-imagenet), a folder or zip file; or the sentences (leopard), a folder with `glue` and `leopard` in it;
    /// `synthetic` generates them
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,
    /// The pretrained encoder (leopard): a folder with config.json, model.safetensors and tokenizer.json or vocab.txt; or
    /// `synthetic` for a tiny one with random weights
    #[arg(long, value_name = "DIR")]
    pub(crate) model: Option<PathBuf>,
    /// Where decoded pictures are kept (mini-imagenet) [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Only these methods (mini-imagenet, leopard), e.g. maml,pacmaml; leopard also has h-smlmt, multi-task and fine-tuning
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) methods: Option<Vec<String>>,
    /// Only training tasks of these sizes (mini-imagenet), e.g. 10,20
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = task_size)]
    pub(crate) examples: Option<Vec<usize>>,
    /// Test tasks (mini-imagenet), in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub(crate) tasks: Option<u64>,
    /// Seed of training (mini-imagenet, leopard)
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Set a key of all models' configurations (mini-imagenet), e.g. prior.head=zero; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// The sizes of the encoder (memory) [default: bert-base]
    #[arg(long, value_enum, value_name = "SHAPE")]
    pub(crate) model_shape: Option<ShapeName>,
    /// Meta-training sets (sinusoid), in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) sets: Option<u64>,
    /// Seeds for each meta-training set (sinusoid), in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Iterations of each model, in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) iterations: Option<u64>,
    /// Try models again that failed in an earlier call (sinusoid)
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Print the conclusions as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show neither progress nor remarks
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

pub(crate) fn image_method(name: &str) -> Result<ClassificationMethodKind, String> {
    let methods = ClassificationMethodKind::ALL;
    methods.into_iter().find(|method| method.name() == name.trim()).ok_or_else(|| {
        let names: Vec<_> = methods.iter().map(|method| method.name()).collect();
        format!("expected one of {} (or several, separated by commas)", names.join(", "))
    })
}

pub(crate) fn task_size(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(size) if (5..=5000).contains(&size) && size % 5 == 0 => Ok(size),
        _ => {
            Err("expected a multiple of 5, the classes of a task (or several, separated by commas)"
                .to_owned())
        }
    }
}

/// A study of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StudyName {
    /// Regression on the Sinusoid environment
    Sinusoid,
    /// Classification of pictures
    MiniImagenet,
    /// Classification of texts
    Leopard,
    /// The memory that methods need on texts
    Memory,
}

/// How much of a study is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// A small part, in about a minute (sinusoid), three (mini-imagenet) or five (leopard, memory: 1 and 2 inner steps)
    Quick,
    /// What an afternoon allows: 10,000 iterations, the smallest tasks (mini-imagenet); 1,500 smaller iterations, half an hour a method
    /// (leopard); up to 50 inner steps where they fit (memory, `paper` alike)
    Cpu,
    /// The paper's whole grid: about two hours on two cores (sinusoid), days (mini-imagenet, leopard; see --examples and --methods)
    Paper,
}

/// How a Gibbs posterior's temperature is chosen at a new task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TemperatureArgument {
    /// This one.
    Value(f64),
    /// The model's, as it is.
    Fixed,
    /// The model's, per example.
    PerExample,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("expected a number above 0".to_owned()),
    }
}

fn temperature(text: &str) -> Result<TemperatureArgument, String> {
    match text {
        "fixed" => Ok(TemperatureArgument::Fixed),
        "per-example" | "per_example" => Ok(TemperatureArgument::PerExample),
        _ => match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => Ok(TemperatureArgument::Value(value)),
            _ => Err("expected a number above 0, `fixed` or `per-example`".to_owned()),
        },
    }
}

/// Score a prior on tasks: adapt to the support of each, predict the rest
///
/// The examples marked by `adapt` are the support, or some that --support draws. Numbers are in the units of the file,
/// averaged over tasks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pacmeta evaluate runs/sinusoid --tasks new-tasks.csv --json\n  \
                        pacmeta evaluate runs/sinusoid --tasks unmarked.csv --support 5 --seed 1")]
pub(crate) struct Evaluate {
    /// The folder of a run, or a checkpoint file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The tasks, CSV or JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: PathBuf,
    /// The CSV column that names the task [default: that of the run, else `task`]
    #[arg(long, value_name = "NAME")]
    pub(crate) task_column: Option<String>,
    /// Leave tasks of fewer examples out, with a count; without it a task of one example is an error, for nothing of it is scored
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), allow_negative_numbers = true)]
    pub(crate) min_examples: Option<u32>,
    /// Draw so many examples as the support of tasks that mark none by `adapt`; at least one is left to be scored
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) support: Option<u32>,
    /// Seed of that draw
    #[arg(long, value_name = "N", default_value_t = 0, requires = "support", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Temperature of the Gibbs posterior: a number, or how the model's carries over: `fixed`, `per-example`
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    pub(crate) temperature: Option<TemperatureArgument>,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Comma-separated values
    Csv,
    /// JSON
    Json,
}

/// Adapt a prior to a small data set and predict
///
/// Predictions are the query's columns with mean, std, lower95 and upper95 of a new observation, in original units. Pictures
/// come as folders: --support with a folder a class, --query with the pictures to classify. Texts come as JSON lines: --support
/// with lines {"sentence1": "...", "label": "..."}, and "sentence2" where sentences are pairs, --query with the sentences to classify.
/// Predictions of both are a class and the probability of each.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pacmeta adapt runs/sinusoid --support support.csv --query query.csv --output predictions.csv\n  \
                        pacmeta adapt runs/own-images --support labelled/ --query new/ --output classes.csv\n  \
                        pacmeta adapt runs/own-text --support few.jsonl --query new.jsonl --steps 100\n  \
                        cut -d, -f1 query.csv | pacmeta adapt runs/sinusoid --support support.csv --json"
)]
pub(crate) struct Adapt {
    /// The folder of a run, or a checkpoint file
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The examples to adapt to: features and target, CSV or JSON; a folder (or zip) of labelled pictures; or JSON lines of labelled
    /// sentences, .jsonl or .jsonl.gz
    #[arg(long, value_name = "PATH")]
    pub(crate) support: PathBuf,
    /// The task in that file to adapt to, where it holds several
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// The CSV column that names the task [default: that of the run, else `task`]
    #[arg(long, value_name = "NAME")]
    pub(crate) task_column: Option<String>,
    /// The inputs to predict at (standard input if `-` or absent), a picture or a folder (or zip) of pictures, or JSON lines of sentences
    /// (standard input if `-`)
    #[arg(long, value_name = "PATH")]
    pub(crate) query: Option<PathBuf>,
    /// Where predictions go [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the predictions [default: by the ending of the output, else that of the query]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// Temperature of the Gibbs posterior: a number, or how the model's carries over: `fixed`, `per-example`
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    pub(crate) temperature: Option<TemperatureArgument>,
    /// Whose statistics batch norm takes (pictures) [default: as in the run's configuration]
    #[arg(long, value_enum)]
    pub(crate) normalisation: Option<NormalisationName>,
    /// Steps of Adam on the support (texts) [default: the run's `evaluation.steps`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000), allow_negative_numbers = true)]
    pub(crate) steps: Option<u32>,
    /// Learning rate of these steps (texts) [default: the run's `evaluation.rate`]
    #[arg(long, value_name = "RATE", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    /// Print predictions as JSON; the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

/// Whose statistics batch norm takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NormalisationName {
    /// Labelled and new pictures each their own
    Batch,
    /// All of them together
    Together,
    /// Those of the labelled pictures: each prediction stands alone
    Support,
}

impl From<NormalisationName> for Normalisation {
    fn from(name: NormalisationName) -> Self {
        match name {
            NormalisationName::Batch => Self::Batch,
            NormalisationName::Together => Self::Together,
            NormalisationName::Support => Self::Support,
        }
    }
}

/// Whose objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveName {
    /// W_1: the base learner sees all of S
    Pacoh,
    /// W_2: the base learner sees the subset S'
    Pacmaml,
}

/// The objective of PACOH or PACMAML on tasks, term by term, or a bound of the paper
///
/// Without --theorem: the objective, which leaves out constants and bounds nothing. With it: the bound itself, under the
/// assumption that --assume states, or with simulated cumulant terms.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pacmeta bound runs/sinusoid --tasks tasks.json\n  \
                        pacmeta bound prior.safetensors --tasks tasks.json --objective pacmaml --beta 300 --alpha 60 --json\n  \
                        pacmeta bound runs/sinusoid --tasks tasks.json --theorem 4 --assume non-negative:20 \\\n      \
                        --hyper-posterior-std 0.05 --beta 30 --alpha 5\n  \
                        pacmeta bound runs/sinusoid --tasks tasks.json --theorem 4 --psi simulate --environment sinusoid \\\n      \
                        --hyper-posterior-std 0.05 --draws 400")]
pub(crate) struct Bound {
    /// The folder of a run, or a checkpoint file
    #[arg(value_name = "CKPT")]
    pub(crate) run: PathBuf,
    /// The tasks, CSV or JSON; PACMAML's S' are the examples marked by `adapt`
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: PathBuf,
    /// The CSV column that names the task [default: that of the run, else `task`]
    #[arg(long, value_name = "NAME")]
    pub(crate) task_column: Option<String>,
    /// Leave tasks of fewer examples out, with a count; without it a task of one example is an error, and 1 accepts it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) min_examples: Option<u32>,
    /// Whose objective [default: the checkpoint's]
    #[arg(long, value_enum)]
    pub(crate) objective: Option<ObjectiveName>,
    /// Temperature of the bound [default: the checkpoint's]
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    pub(crate) beta: Option<f64>,
    /// Temperature of PACMAML's base learner [default: the checkpoint's]
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub(crate) alpha: Option<f64>,
    /// N, the observed tasks behind xi [default: the tasks given]
    #[arg(long, value_name = "N", conflicts_with = "theorem", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub(crate) observed_tasks: Option<usize>,
    /// Variance of the hyper-prior
    #[arg(long, value_name = "S", default_value_t = 3.0, allow_negative_numbers = true)]
    pub(crate) sigma0_squared: f64,
    /// Probability of failure
    #[arg(long, value_name = "D", default_value_t = 0.05, allow_negative_numbers = true)]
    pub(crate) delta: f64,
    /// Temperature of the environment level [default: none, xi = 1/(N beta); with --theorem: the number of tasks]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    pub(crate) lambda: Option<f64>,
    /// Write the derivative of the objective's total by every parameter to this safetensors file
    #[arg(long, value_name = "OUT.safetensors", conflicts_with = "theorem")]
    pub(crate) gradient: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) theorem: TheoremOptions,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A theorem of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TheoremName {
    /// Target tasks like the observed ones
    #[value(name = "2")]
    Two,
    /// Target tasks smaller than the observed ones, and a gap
    #[value(name = "3")]
    Three,
    /// The base learner sees subsets S' of the size of target tasks
    #[value(name = "4")]
    Four,
    /// Of Theorem 3: the smaller of two gaps
    Corollary,
}

/// Where the cumulant terms of a bound come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PsiSource {
    /// From what --assume states: a guarantee under that assumption
    Assume,
    /// By Monte Carlo on --environment, with standard errors: an estimate, no guarantee
    Simulate,
}

/// What a real bound needs beyond the objective.
#[derive(Debug, Args)]
#[command(next_help_heading = "A bound instead of the objective")]
pub(crate) struct TheoremOptions {
    /// The theorem
    #[arg(long, value_enum, requires_all = ["hyper_posterior_std"])]
    pub(crate) theorem: Option<TheoremName>,
    /// What is known of the loss, for every hypothesis, in the units of the prior: bounded:A,B sub-gaussian:VARIANCE
    /// sub-gamma:VARIANCE,SCALE non-negative:SECOND_MOMENT
    #[arg(long, value_name = "WHAT", value_parser = assumption, requires = "theorem", allow_hyphen_values = true)]
    pub(crate) assume: Option<Assumption>,
    /// The same for the true risk of the base learner on a task [default: as --assume]
    #[arg(long, value_name = "WHAT", value_parser = assumption, requires = "theorem", allow_hyphen_values = true)]
    pub(crate) assume_tasks: Option<Assumption>,
    /// Where the cumulant terms Psi1 and Psi2 come from
    #[arg(long, value_enum, default_value = "assume", requires = "theorem")]
    pub(crate) psi: PsiSource,
    /// Standard deviation of the hyper-posterior, a Gaussian around the learned prior
    #[arg(long, value_name = "S", requires = "theorem", allow_negative_numbers = true)]
    pub(crate) hyper_posterior_std: Option<f64>,
    /// Draws of priors for expectations
    #[arg(long, value_name = "K", default_value_t = 100, requires = "theorem", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub(crate) draws: usize,
    /// Examples of a target task (Theorem 3 and its corollary)
    #[arg(long, value_name = "M", requires = "theorem", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub(crate) target_examples: Option<usize>,
    /// Estimate the gap, and the cumulant terms with --psi simulate, on this environment: sinusoid, cauchy or gp-draws
    #[arg(long, value_name = "NAME", requires = "theorem", conflicts_with = "gap")]
    pub(crate) environment: Option<String>,
    /// The gap, where you know it
    #[arg(long, value_name = "VALUE", requires = "theorem", allow_negative_numbers = true)]
    pub(crate) gap: Option<f64>,
    /// Tasks for each prior in simulations
    #[arg(long, value_name = "N", default_value_t = 20, requires = "theorem", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub(crate) tasks_per_draw: usize,
    /// Fresh examples of each task in simulations
    #[arg(long, value_name = "N", default_value_t = 50, requires = "theorem", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub(crate) fresh_examples: usize,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0, requires = "theorem", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: u64,
}

fn assumption(text: &str) -> Result<Assumption, String> {
    const EXPECTED: &str = "expected bounded:A,B with A < B, sub-gaussian:VARIANCE, sub-gamma:VARIANCE,SCALE or \
                            non-negative:SECOND_MOMENT, numbers not negative but for A and B";
    let (name, numbers) = text.split_once(':').ok_or(EXPECTED)?;
    let numbers: Vec<f64> = numbers
        .split(',')
        .map(|number| number.trim().parse::<f64>().ok().filter(|number| number.is_finite()))
        .collect::<Option<_>>()
        .ok_or(EXPECTED)?;
    match (name, &numbers[..]) {
        ("bounded", &[a, b]) if a < b => Ok(Assumption::Bounded { a, b }),
        ("sub-gaussian", &[variance]) if variance >= 0.0 => Ok(Assumption::SubGaussian { variance }),
        ("sub-gamma", &[variance, scale]) if variance >= 0.0 && scale >= 0.0 => {
            Ok(Assumption::SubGamma { variance, scale })
        }
        ("non-negative", &[second_moment]) if second_moment >= 0.0 => {
            Ok(Assumption::NonNegative { second_moment })
        }
        _ => Err(EXPECTED.to_owned()),
    }
}

/// Write the report of a finished run again, from its files
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pacmeta report runs/sinusoid")]
pub(crate) struct Report {
    /// The folder of a run or of a study
    #[arg(value_name = "DIR")]
    pub(crate) run: PathBuf,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pacmeta completions bash > ~/.local/share/bash-completion/completions/pacmeta"
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
