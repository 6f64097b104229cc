//! The arguments of the subcommands of `sweep`, which take a sweep or a study to a cluster.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pacmeta::studies::cluster::{Launcher, SHORTEST_MINUTES};

use crate::arguments::{Overrides, PresetName};

#[derive(Debug, Subcommand)]
pub(crate) enum OnCluster {
    Plan(PlanSweep),
    Run(RunPiece),
    Status(SweepStatus),
    Collect(CollectSweep),
    Slurm(SlurmScript),
}

/// A study that can be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlannedStudy {
    /// The paper's regression study
    Sinusoid,
}

/// Write a plan: one numbered line for each model of a sweep, or of a study of the paper
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pacmeta sweep plan configs/own-sweep.toml -o plan.jsonl\n  \
                        pacmeta sweep plan --study sinusoid --preset paper -o paper.jsonl")]
pub(crate) struct PlanSweep {
    /// The configuration, with a section [sweep.grid]
    #[arg(value_name = "CONFIG.toml", required_unless_present = "study")]
    pub(crate) config: Option<PathBuf>,
    /// The plan; results go to the folder of the same name with the ending `.results`
    #[arg(long, short, value_name = "PLAN.jsonl")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// A study of the paper instead of a configuration
    #[arg(long, value_enum, conflicts_with_all = ["config", "set", "seed"])]
    pub(crate) study: Option<PlannedStudy>,
    /// How much of the study
    #[arg(
        long,
        value_name = "PRESET",
        default_value = "quick",
        requires = "study",
        conflicts_with = "config"
    )]
    pub(crate) preset: PresetName,
    /// Meta-training sets of the study, in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000), requires = "study",
          conflicts_with = "config")]
    pub(crate) sets: Option<u64>,
    /// Seeds for each meta-training set of the study, in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000), requires = "study",
          conflicts_with = "config")]
    pub(crate) seeds: Option<u64>,
    /// Iterations of each model of the study, in place of the preset's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), requires = "study",
          conflicts_with = "config")]
    pub(crate) iterations: Option<u64>,
    /// Print what was planned as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A plan and the folder of its results.
#[derive(Debug, Args)]
pub(crate) struct Planned {
    /// The plan
    #[arg(value_name = "PLAN.jsonl")]
    pub(crate) plan: PathBuf,
    /// The folder of results [default: the plan's name with the ending `.results`]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
}

impl Planned {
    /// The folder of results.
    pub(crate) fn results(&self) -> PathBuf {
        self.results.clone().unwrap_or_else(|| default_results(&self.plan))
    }
}

/// The folder of a plan's results unless somebody says otherwise.
pub(crate) fn default_results(plan: &std::path::Path) -> PathBuf {
    plan.with_extension("results")
}

/// Train one model of a plan, or a few, and write the result
///
/// The index is that of the array job: SLURM_ARRAY_TASK_ID (Slurm), HQ_TASK_ID (HyperQueue) or JOB_COMPLETION_INDEX
/// (Kubernetes). A result that is there already is left alone. SIGTERM and SIGUSR1 write a checkpoint and end with exit code
/// 130; the same command continues from it, to the same bits.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pacmeta sweep run plan.jsonl --index 7\n  pacmeta sweep run plan.jsonl --index 3 --chunk 10\n\n\
                        Exit codes: 0 done, 1 a model failed (which is recorded) or a file cannot be written, 2 the input is \
                        wrong,\n130 stopped by a signal after writing a checkpoint."
)]
pub(crate) struct RunPiece {
    #[command(flatten)]
    pub(crate) planned: Planned,
    /// The index, from 0 [default: that of the array job]
    #[arg(long, value_name = "N", value_parser = from_zero, allow_negative_numbers = true)]
    pub(crate) index: Option<usize>,
    /// Models in a job: index N stands for the models N C to N C + C - 1
    #[arg(long, value_name = "C", default_value = "1", value_parser = from_one, allow_negative_numbers = true)]
    pub(crate) chunk: NonZeroUsize,
    /// Try models again that failed
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Show neither progress nor remarks
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say which models of a plan are done, failed or missing
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pacmeta sweep status plan.jsonl\n  \
                        missing=$(pacmeta sweep status plan.jsonl --array)\n  \
                        [ -z \"$missing\" ] || sbatch --array=\"$missing\" plan.sbatch")]
pub(crate) struct SweepStatus {
    #[command(flatten)]
    pub(crate) planned: Planned,
    /// Models in a job, as for `run`: indices are those of jobs
    #[arg(long, value_name = "C", default_value = "1", value_parser = from_one, allow_negative_numbers = true)]
    pub(crate) chunk: NonZeroUsize,
    /// Print only the missing indices, as `sbatch --array` takes them; nothing if there are none
    #[arg(long, conflicts_with = "json")]
    pub(crate) array: bool,
    /// The most jobs at the same time, as for `slurm`: behind the indices, as Slurm takes it
    #[arg(long, value_name = "N", value_parser = from_one, allow_negative_numbers = true)]
    pub(crate) max_running: Option<NonZeroUsize>,
    /// Count failed models as missing
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring the results of a plan together in a folder, as if the sweep had been run there
///
/// What is missing is counted; the same command later adds it. `pacmeta report` works on the folder.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pacmeta sweep collect plan.jsonl --out runs/sweep/own")]
pub(crate) struct CollectSweep {
    #[command(flatten)]
    pub(crate) planned: Planned,
    /// The folder [default: as for `pacmeta sweep`, or `pacmeta reproduce` for a study]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the conclusions as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who starts the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LauncherName {
    /// An array of Slurm
    Slurm,
    /// GNU parallel, on one machine
    Parallel,
}

impl From<LauncherName> for Launcher {
    fn from(name: LauncherName) -> Self {
        match name {
            LauncherName::Slurm => Self::Slurm,
            LauncherName::Parallel => Self::Parallel,
        }
    }
}

/// Print the script that hands a plan to a scheduler
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pacmeta sweep slurm plan.jsonl --time 01:00:00 --max-running 50 > plan.sbatch && sbatch plan.sbatch\n  \
                        pacmeta sweep slurm plan.jsonl --launcher parallel | bash"
)]
pub(crate) struct SlurmScript {
    #[command(flatten)]
    pub(crate) planned: Planned,
    /// The limit of a job's time, e.g. 01:00:00; without it that of the partition (Slurm only)
    #[arg(long, value_name = "TIME", value_parser = slurm_time, allow_negative_numbers = true)]
    pub(crate) time: Option<String>,
    /// The partition (Slurm only)
    #[arg(long, value_name = "NAME", value_parser = word)]
    pub(crate) partition: Option<String>,
    /// The most jobs at the same time
    #[arg(long, value_name = "N", value_parser = from_one, allow_negative_numbers = true)]
    pub(crate) max_running: Option<NonZeroUsize>,
    /// Models in a job, one after the other on each processor
    #[arg(long, value_name = "C", default_value = "1", value_parser = from_one, allow_negative_numbers = true)]
    pub(crate) chunk: NonZeroUsize,
    /// Processors of a job
    #[arg(long, value_name = "N", default_value = "1", value_parser = from_one, allow_negative_numbers = true)]
    pub(crate) processors: NonZeroUsize,
    /// Who starts the jobs
    #[arg(long, value_enum, default_value = "slurm")]
    pub(crate) launcher: LauncherName,
}

/// The most of anything that is counted here, far above what a plan can hold.
const MOST: usize = 1_000_000_000;

fn from_zero(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number <= MOST).ok_or_else(|| expected_from(0))
}

fn from_one(text: &str) -> Result<NonZeroUsize, String> {
    from_zero(text).ok().and_then(NonZeroUsize::new).ok_or_else(|| expected_from(1))
}

fn expected_from(first: usize) -> String {
    format!("expected a whole number from {first} to {MOST}")
}

fn slurm_time(text: &str) -> Result<String, String> {
    match seconds(text) {
        None => Err(
            "expected a time as Slurm takes it: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS, \
             DAYS-HOURS:MINUTES or DAYS-HOURS:MINUTES:SECONDS"
                .to_owned(),
        ),
        // Slurm takes 0 for no limit.
        Some(seconds) if (1..60 * SHORTEST_MINUTES).contains(&seconds) => Err(format!(
            "expected at least {SHORTEST_MINUTES} minutes: two or three before the limit a job is told to stop"
        )),
        Some(_) => Ok(text.to_owned()),
    }
}

/// The seconds of a time as Slurm takes it.
fn seconds(text: &str) -> Option<u64> {
    let number = |part: &str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u32>().ok().filter(|_| digits).map(u64::from)
    };
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text),
    };
    let parts = rest.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let (hours, minutes, seconds) = match (days, parts.as_slice()) {
        (None, &[minutes]) => (0, minutes, 0),
        (None, &[minutes, seconds]) => (0, minutes, seconds),
        (Some(_), &[hours]) => (hours, 0, 0),
        (Some(_), &[hours, minutes]) => (hours, minutes, 0),
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        _ => return None,
    };
    Some(((days.unwrap_or(0) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn word(text: &str) -> Result<String, String> {
    let fine = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.,".contains(c));
    fine.then(|| text.to_owned()).ok_or_else(|| "expected the name of a partition".to_owned())
}
