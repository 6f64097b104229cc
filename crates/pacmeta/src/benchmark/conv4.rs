//! Forward and backward of MAML's miniImageNet body, beside the machine's limit for fused multiply-adds in f32.

use std::hint::black_box;
use std::time::{Duration, Instant};

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::{ConvShape, Images, Statistics};
use pulp::{Arch, Simd, WithSimd};
use serde::Serialize;

use super::instructions;
use crate::error::Result;
use crate::priors::ConvolutionSpec;

/// The time of one forward and one backward pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conv4Timing {
    /// Pictures in the batch.
    pub images: usize,
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
    /// 10^9 operations a second in the fastest repeat, counted as a direct convolution (two a multiply-add, no gradient at the
    /// pictures), whatever the algorithm saves; so they may exceed the limit.
    pub gflops: f64,
    /// The measured limit for fused multiply-adds on the same threads.
    pub peak_gflops: f64,
    /// Repeats.
    pub repeats: usize,
    /// The instruction set in use.
    pub instructions: &'static str,
}

/// Times the body on `images` pictures of noise with the threads of the current pool.
///
/// # Errors
/// When the body refuses the pictures.
pub fn time_conv4(images: usize, budget: Duration) -> Result<Conv4Timing> {
    // on a thread of the pool, whose processor time is then that of the work
    rayon::scope(|_| measure(images, budget))
}

fn measure(images: usize, budget: Duration) -> Result<Conv4Timing> {
    let spec = ConvolutionSpec::mini_imagenet(5);
    let body = spec.body()?;
    let key = Key::new(0);
    let parameters: Vec<f32> =
        spec.initialise(key)?.values()[..body.layout().len()].iter().map(|value| *value as f32).collect();
    let mut generator = key.named("pictures").generator();
    let pixels: Vec<u8> =
        (0..images * body.shape().image_len()).map(|_| generator.below(256) as u8).collect();
    let slopes: Vec<f32> = (0..images * body.feature_count()).map(|_| generator.normal() as f32).collect();
    let (mut workspace, mut gradient) = (body.workspace(), vec![0.0; parameters.len()]);
    let (mut times, mut forward, mut busy, mut peak) = (Vec::new(), Vec::new(), Vec::new(), 0.0_f64);
    let begin = Instant::now();
    let mut warm_up = 2;
    while times.len() < 3 || (begin.elapsed() < budget && times.len() < 1000) {
        let (start, before) = (Instant::now(), thread_milliseconds());
        body.forward(&parameters, Images::Bytes(&pixels), Statistics::Batch, &mut workspace)?;
        let forward_time = milliseconds(start);
        body.backward(&parameters, &slopes, &mut workspace, &mut gradient)?;
        let time = milliseconds(start);
        if warm_up > 0 {
            warm_up -= 1;
            continue;
        }
        times.push(time);
        forward.push(forward_time);
        busy.extend(thread_milliseconds().zip(before).map(|(after, before)| after - before));
        peak = peak.max(peak_gflops());
    }
    for times in [&mut times, &mut forward, &mut busy] {
        times.sort_by(f64::total_cmp);
    }
    let threads = rayon::current_num_threads();
    Ok(Conv4Timing {
        images,
        threads,
        milliseconds: times[times.len() / 2],
        fastest_milliseconds: times[0],
        fastest_forward_milliseconds: forward[0],
        processor_milliseconds: busy.first().copied().filter(|_| threads == 1),
        gflops: images as f64 * direct_operations(body.shape()) / times[0] / 1e6,
        peak_gflops: peak,
        repeats: times.len(),
        instructions: instructions(),
    })
}

pub(super) fn milliseconds(start: Instant) -> f64 {
    1e3 * start.elapsed().as_secs_f64()
}

/// Milliseconds that this thread has run on a processor: on a busy machine they say more than a clock.
pub(super) fn thread_milliseconds() -> Option<f64> {
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

pub(super) fn peak_gflops() -> f64 {
    let start = Instant::now();
    let operations: f64 = rayon::broadcast(|_| Arch::new().dispatch(Chains(200_000))).iter().sum();
    operations / start.elapsed().as_secs_f64() / 1e9
}

/// Operations of a direct convolution, forward and backward, for one picture.
fn direct_operations(shape: &ConvShape) -> f64 {
    let (mut height, mut width, mut channels) = (shape.height, shape.width, shape.channels);
    let mut total = 0;
    for block in 0..shape.blocks {
        let passes = if block == 0 { 2 } else { 3 };
        total += passes * 2 * 9 * height * width * channels * shape.filters;
        (height, width, channels) = (height / 2, width / 2, shape.filters);
    }
    total as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_table() {
        // 2 x 24.4 + 3 x (130.1 + 32.5 + 7.4) million a picture
        assert!((direct_operations(&ConvShape::MINI_IMAGENET) / 1e6 - 558.6).abs() < 0.5);
    }

    #[test]
    fn a_short_measurement_makes_sense() {
        let timing = time_conv4(2, Duration::from_millis(1)).unwrap();
        assert!(timing.repeats >= 3 && timing.fastest_milliseconds <= timing.milliseconds, "{timing:?}");
        assert!(timing.fastest_forward_milliseconds < timing.fastest_milliseconds, "{timing:?}");
        assert!(timing.gflops > 0.0 && timing.peak_gflops > 0.0, "{timing:?}");
    }
}
