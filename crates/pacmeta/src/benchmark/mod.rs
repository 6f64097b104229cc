//! Timing of meta-iterations and kernels, for `pacmeta bench` and for comparison with other programs.

#[cfg(feature = "images")]
mod anil;
mod conv4;
mod encoder;
mod passes;
#[cfg(feature = "text")]
mod text_step;

#[cfg(feature = "images")]
pub use anil::{AnilTiming, time_anil};
pub use conv4::{Conv4Timing, time_conv4};
pub use encoder::{EncoderSizes, EncoderTiming, time_encoder};
pub use pacmeta_tensor::simd::instructions;
pub use passes::PassTiming;
#[cfg(feature = "text")]
pub use text_step::{ModelShape, TextStep, TextStepSettings, foreseen_bytes, measure_text_step};

use std::time::{Duration, Instant};

use pacmeta_tensor::Key;
use serde::Serialize;

use crate::environments::{Sinusoid, observed_tasks};
use crate::error::Result;
use crate::methods::{BatchSampler, MethodSettings, Resample, SubsetRule, SubsetSize};
use crate::priors::{GaussianProcessSpec, PriorSpec};
use crate::standardisation::Standardisation;
use crate::task::Task;
use crate::training::{HyperPrior, Trainer, TrainerSettings};

/// The time of one meta-iteration of one model on one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpTiming {
    /// The method.
    pub method: String,
    /// Examples of each task, m.
    pub examples: usize,
    /// Tasks in a batch.
    pub batch: usize,
    /// Median over repeats.
    pub microseconds_per_iteration: f64,
    /// The fastest repeat.
    pub fastest_microseconds: f64,
    /// Repeats.
    pub repeats: usize,
    /// Iterations in a repeat.
    pub iterations: usize,
    /// The instruction set in use.
    pub instructions: &'static str,
}

/// Times the paper's setting: 20 Sinusoid tasks of m examples, 5 a batch, networks 32-32, Adam included;
/// beta = 100 m, alpha = 0.2 beta, m' = 5.
///
/// # Errors
/// When an iteration fails.
pub fn time_gp(pacmaml: bool, examples: usize, budget: Duration) -> Result<GpTiming> {
    let tasks = observed_tasks(&Sinusoid, 20, examples, Key::new(0))?;
    let standardisation = Standardisation::fit(&tasks)?;
    let tasks: Vec<Task> = tasks.iter().map(|task| standardisation.apply(task)).collect::<Result<_>>()?;
    let spec = PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1));
    let beta = 100.0 * examples as f64;
    let method = if pacmaml {
        MethodSettings::Pacmaml { alpha: 0.2 * beta, beta }
    } else {
        MethodSettings::Pacoh { beta }
    };
    let settings = TrainerSettings {
        sampler: BatchSampler {
            size: 5,
            subset: Some(SubsetSize::Count(5)),
            rule: SubsetRule::Nested,
            resample: Resample::EachIteration,
            key: Key::new(1),
        },
        hyper_prior: HyperPrior { xi: 1.0 / (20.0 * beta), sigma0_squared: 3.0 },
        rate: 3e-3,
        weight_decay: 0.0,
    };
    let mut trainer = Trainer::new(method.build(&spec)?, &tasks, spec.initialise(Key::new(2))?, settings)?;
    let mut run = |iterations: usize| -> Result<f64> {
        let start = Instant::now();
        for _ in 0..iterations {
            trainer.step()?;
        }
        Ok(start.elapsed().as_secs_f64())
    };
    let begin = Instant::now();
    let mut warm_up = 0;
    while warm_up < 50 && begin.elapsed() < budget / 4 {
        run(1)?;
        warm_up += 1;
    }
    let once = begin.elapsed().as_secs_f64() / f64::from(warm_up);
    // Repeats of about 2 ms, shorter than a time slice of a busy machine, but never so short that the luck of the draw
    // matters: a batch that holds a task twice is cheaper.
    let iterations =
        ((0.002 / once) as usize).clamp(40, 10_000).min(1 + (0.5 * budget.as_secs_f64() / once) as usize);
    let mut times = Vec::new();
    while times.is_empty() || (begin.elapsed() < budget && times.len() < 2000) {
        times.push(run(iterations)? / iterations as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(GpTiming {
        method: if pacmaml { "pacmaml" } else { "pacoh" }.to_owned(),
        examples,
        batch: 5,
        microseconds_per_iteration: times[times.len() / 2] * 1e6,
        fastest_microseconds: times[0] * 1e6,
        repeats: times.len(),
        iterations,
        instructions: instructions(),
    })
}

/// The most memory that this process has held, where the system tells.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
