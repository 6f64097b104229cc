//! The arguments of `pacmeta bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pacmeta::benchmark::ModelShape;
use pacmeta::config::ClassificationMethodKind;
use pacmeta::methods::networks::WayBack;

use crate::arguments::{ObjectiveName, image_method, task_size};

/// Time this machine
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: BenchWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchWhat {
    Gp(BenchGp),
    Conv4(BenchConv4),
    Encoder(BenchEncoder),
    Anil(BenchAnil),
    Text(BenchText),
}

/// One meta-iteration with the Gaussian-process base learner, in the paper's setting
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pacmeta bench gp --method pacmaml --examples 30")]
pub(crate) struct BenchGp {
    /// The method
    #[arg(long, value_enum, default_value = "pacmaml")]
    pub(crate) method: ObjectiveName,
    /// Examples of each task
    #[arg(long, allow_negative_numbers = true, value_name = "M", default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=2000))]
    pub(crate) examples: u32,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Forward and backward of the convolutional body for 84 x 84 pictures
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pacmeta bench conv4 --images 80 --threads 1 --json")]
pub(crate) struct BenchConv4 {
    /// Pictures in the batch
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) images: u32,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Forward and backward of a transformer encoder of BERT's architecture: heads of 64 numbers, four times the hidden size between
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pacmeta bench encoder --layers 12 --hidden 768 --batch 8 --length 64 --json"
)]
pub(crate) struct BenchEncoder {
    /// Layers
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) layers: u32,
    /// Numbers in the state of a token, a multiple of 64
    #[arg(long, value_name = "N", default_value_t = 768, value_parser = clap::value_parser!(u32).range(64..=4096))]
    pub(crate) hidden: u32,
    /// Sequences
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch: u32,
    /// Tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) length: u32,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One meta-iteration on pictures, in the paper's setting: 4 tasks, 84 x 84 pixels, 6 inner steps of the head
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pacmeta bench anil --method maml --examples 10 --json")]
pub(crate) struct BenchAnil {
    /// The method
    #[arg(long, value_name = "NAME", default_value = "pacmaml", value_parser = image_method)]
    pub(crate) method: ClassificationMethodKind,
    /// Pictures of each task, a multiple of 5
    #[arg(long, value_name = "M", default_value = "10", value_parser = task_size)]
    pub(crate) examples: usize,
    /// Write parameters, tasks and gradient of the first iteration to this safetensors file
    #[arg(long, value_name = "OUT.safetensors")]
    pub(crate) gradient: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One meta-iteration on texts with random weights and tokens: its time, and the memory it needs
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pacmeta bench text --shape mini-lm --method maml --threshold 3 --steps 4 --json"
)]
pub(crate) struct BenchText {
    /// The sizes of the encoder
    #[arg(long, value_enum, default_value = "mini-lm")]
    pub(crate) shape: ShapeName,
    /// The method
    #[arg(long, value_name = "NAME", default_value = "pacmaml", value_parser = image_method)]
    pub(crate) method: ClassificationMethodKind,
    /// Layers that are shared; those above adapt [default: all of them]
    #[arg(long, value_name = "V")]
    pub(crate) threshold: Option<usize>,
    /// Inner steps
    #[arg(long, value_name = "K", default_value_t = 50)]
    pub(crate) steps: usize,
    /// How maml and bmaml go back through their steps
    #[arg(long, value_enum, default_value = "tape")]
    pub(crate) way_back: WayBackName,
    /// Examples of the task
    #[arg(long, value_name = "M", default_value_t = 16)]
    pub(crate) examples: usize,
    /// Those of them that are adapted to
    #[arg(long, value_name = "M", default_value_t = 8)]
    pub(crate) support: usize,
    /// Tokens of an example
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) length: usize,
    /// Print results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The sizes of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShapeName {
    /// 24 layers of 1024
    BertLarge,
    /// 12 layers of 768
    BertBase,
    /// 6 layers of 384
    MiniLm,
    /// 4 layers of 32
    Tiny,
}

impl From<ShapeName> for ModelShape {
    fn from(name: ShapeName) -> Self {
        match name {
            ShapeName::BertLarge => Self::BertLarge,
            ShapeName::BertBase => Self::BertBase,
            ShapeName::MiniLm => Self::MiniLm,
            ShapeName::Tiny => Self::Tiny,
        }
    }
}

/// How the way back through inner steps is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WayBackName {
    /// On one tape of all steps
    Tape,
    /// Step by step, each computed again
    Recompute,
}

impl From<WayBackName> for WayBack {
    fn from(name: WayBackName) -> Self {
        match name {
            WayBackName::Tape => Self::Tape,
            WayBackName::Recompute => Self::Recompute,
        }
    }
}
