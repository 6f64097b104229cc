//! One forward and backward pass of pacmeta's networks beside candle and burn, on the same numbers in one process.
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release -- conv4 --images 80
//! RAYON_NUM_THREADS=1 cargo run --release -- encoder --layers 12 --hidden 768 --batch 8 --length 64
//! ```
//!
//! Gradients are compared first; then all take turns, and the fastest of the rounds counts. The other frameworks have the networks as their
//! documentation would write them: their own convolution, pool, product, softmax and activation, and norms from elementwise operations. Burn runs on
//! `Flex`, its own backend for processors, which took a tenth of the time of its `NdArray`.

mod burn;
mod candle;
mod case;
mod ours;

use std::time::Instant;

use ::burn::backend::{Autodiff, Flex};
use anyhow::{Result, ensure};
use case::{Conv4, Encoder};
use clap::{Args, Parser, Subcommand};

/// Times pacmeta, candle and burn in turn
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// MAML's body for miniImageNet
    Conv4 {
        #[arg(long, default_value_t = 80)]
        images: usize,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// BERT's architecture
    Encoder {
        #[command(flatten)]
        sizes: case::Sizes,
        #[command(flatten)]
        rounds: Rounds,
    },
}

#[derive(Args)]
struct Rounds {
    /// Times that each takes its turn
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A network with its batch in one framework.
pub trait Engine {
    /// One forward and backward pass: the gradient of every parameter, in the order of the case.
    fn step(&mut self) -> Result<Vec<Vec<f32>>>;
}

type Engines<'a> = Vec<(&'static str, Box<dyn Engine + 'a>)>;

fn main() -> Result<()> {
    match Arguments::parse().what {
        What::Conv4 { images, rounds } => {
            let case = Conv4::new(images)?;
            println!("Conv4, {images} images of 84 x 84, {} thread(s)", rayon::current_num_threads());
            let engines: Engines<'_> = vec![
                ("pacmeta", Box::new(ours::Conv4Engine::new(&case))),
                ("candle", Box::new(candle::Conv4Engine::new(&case)?)),
                ("burn", Box::new(burn::Conv4Engine::<Autodiff<Flex>>::new(&case))),
            ];
            // single decisions of rectifiers and pools fall otherwise in single precision
            compare(engines, &case.names(), 0.02, rounds.rounds)
        }
        What::Encoder { sizes, rounds } => {
            let case = Encoder::new(sizes)?;
            println!("encoder, {sizes:?}, {} thread(s)", rayon::current_num_threads());
            let engines: Engines<'_> = vec![
                ("pacmeta", Box::new(ours::EncoderEngine::new(&case))),
                ("candle", Box::new(candle::EncoderEngine::new(&case)?)),
                ("burn", Box::new(burn::EncoderEngine::<Autodiff<Flex>>::new(&case))),
            ];
            compare(engines, &case.names(), 1e-3, rounds.rounds)
        }
    }
}

fn compare(mut engines: Engines<'_>, names: &[String], tolerance: f64, rounds: usize) -> Result<()> {
    let mut expected = Vec::new();
    for (name, engine) in &mut engines {
        let found = engine.step()?;
        ensure!(found.len() == names.len(), "{name}: {} gradients, expected {}", found.len(), names.len());
        if expected.is_empty() {
            expected = found;
            continue;
        }
        let (worst, tensor) = names
            .iter()
            .zip(expected.iter().zip(&found))
            // a number added to all scores of a query changes nothing: this gradient is rounding alone
            .filter(|(tensor, _)| !tensor.ends_with("key.bias"))
            .map(|(tensor, (expected, found))| (distance(expected, found), tensor))
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .expect("there are parameters");
        ensure!(worst <= tolerance, "{name}: the gradient of {tensor} is off by {worst:.1e} of its norm");
        println!("{name}: gradients within {worst:.1e} of their norms ({tensor})");
    }
    let mut fastest = vec![f64::INFINITY; engines.len()];
    for _ in 0..rounds {
        for ((_, engine), fastest) in engines.iter_mut().zip(&mut fastest) {
            let start = Instant::now();
            engine.step()?;
            *fastest = fastest.min(1e3 * start.elapsed().as_secs_f64());
        }
    }
    for ((name, _), milliseconds) in engines.iter().zip(&fastest) {
        println!("{name:15} {milliseconds:9.1} ms   {:6.2}", milliseconds / fastest[0]);
    }
    Ok(())
}

/// The norm of the difference by the norm.
fn distance(expected: &[f32], found: &[f32]) -> f64 {
    if expected.len() != found.len() {
        return f64::INFINITY;
    }
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        expected.iter().zip(found).map(|(&one, &other)| of(f64::from(one), f64::from(other))).sum()
    };
    let part = (sum(&|one, other| (one - other).powi(2)) / sum(&|one, _| one * one).max(1e-30)).sqrt();
    if part.is_nan() { f64::INFINITY } else { part }
}
