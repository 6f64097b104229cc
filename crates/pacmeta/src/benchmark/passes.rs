//! Times of forward and backward passes, beside the machine's limit for fused multiply-adds in f32.

use std::hint::black_box;
use std::time::{Duration, Instant};

use pulp::{Arch, Simd, WithSimd};
use serde::Serialize;

use super::instructions;
use crate::error::Result;

/// The time of one forward and one backward pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassTiming {
    /// Threads.
    pub threads: usize,
    /// Median over repeats.
    pub milliseconds: f64,
    /// The fastest repeat.
    pub fastest_milliseconds: f64,
    /// The fastest forward pass.
    pub fastest_forward_milliseconds: f64,
    /// The smallest processor time of a repeat, where one thread does all the work and the system tells.
    pub processor_milliseconds: Option<f64>,
    /// 10^9 operations a second in the fastest repeat.
    pub gflops: f64,
    /// The measured limit for fused multiply-adds on the same threads.
    pub peak_gflops: f64,
    /// Repeats.
    pub repeats: usize,
    /// The instruction set in use.
    pub instructions: &'static str,
}

/// Repeats passes of so many operations, the first `warm_up` of which do not count. A pass returns when its forward part ended.
///
/// # Errors
/// When a pass fails.
pub(super) fn time_passes(
    budget: Duration,
    mut warm_up: usize,
    operations: f64,
    mut pass: impl FnMut() -> Result<Instant>,
) -> Result<PassTiming> {
    let (mut times, mut forward, mut busy, mut peak) = (Vec::new(), Vec::new(), Vec::new(), 0.0_f64);
    let begin = Instant::now();
    while times.len() < 3 || (begin.elapsed() < budget && times.len() < 1000) {
        let (start, before) = (Instant::now(), thread_milliseconds());
        let forward_end = pass()?;
        let time = start.elapsed();
        if warm_up > 0 {
            warm_up -= 1;
            continue;
        }
        times.push(1e3 * time.as_secs_f64());
        forward.push(1e3 * (forward_end - start).as_secs_f64());
        busy.extend(thread_milliseconds().zip(before).map(|(after, before)| after - before));
        peak = peak.max(peak_gflops());
    }
    for times in [&mut times, &mut forward, &mut busy] {
        times.sort_by(f64::total_cmp);
    }
    let threads = rayon::current_num_threads();
    Ok(PassTiming {
        threads,
        milliseconds: times[times.len() / 2],
        fastest_milliseconds: times[0],
        fastest_forward_milliseconds: forward[0],
        // the system counts in steps that may be longer than a pass
        processor_milliseconds: busy.first().copied().filter(|&busy| threads == 1 && busy > 0.0),
        gflops: operations / times[0] / 1e6,
        peak_gflops: peak,
        repeats: times.len(),
        instructions: instructions(),
    })
}

/// Milliseconds that this thread has run on a processor: on a busy machine they say more than a clock.
fn thread_milliseconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e6)
}

/// Twelve independent chains of fused multiply-adds; returns their operations.
struct Chains(usize);

impl WithSimd for Chains {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let factor = simd.splat_f32s(black_box(1.0 - 1e-6));
        let mut sums = [simd.splat_f32s(black_box(1e-3)); 12];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = simd.mul_add_e_f32s(*sum, factor, factor);
            }
        }
        let total = sums.into_iter().fold(simd.splat_f32s(0.0), |a, b| simd.add_f32s(a, b));
        black_box(simd.reduce_sum_f32s(total));
        (2 * 12 * self.0 * S::F32_LANES) as f64
    }
}

fn peak_gflops() -> f64 {
    let start = Instant::now();
    let operations: f64 = rayon::broadcast(|_| Arch::new().dispatch(Chains(200_000))).iter().sum();
    operations / start.elapsed().as_secs_f64() / 1e9
}
