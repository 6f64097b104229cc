//! Times forward and backward of MAML's miniImageNet body, beside the machine's limit for fused multiply-adds in f32.
//!
//! `cargo run --release -p pacmeta-tensor --example conv4 -- [images threads]...`
//!
//! GFLOP/s count a direct convolution (two operations a multiply-add, no gradient at the images), whatever the
//! algorithm saves; so they may exceed the limit.

use std::hint::black_box;
use std::time::Instant;

use pacmeta_tensor::conv::{ConvBody, ConvShape, Images, Statistics};
use pulp::{Arch, Simd, WithSimd};

/// Twelve independent chains of fused multiply-adds; returns operations a call.
struct Peak(usize);

impl WithSimd for Peak {
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

/// Operations of a direct convolution, forward and backward, for one image.
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

/// Milliseconds that this thread has run on a processor, where the system tells: on a busy machine they say more than a clock.
fn thread_milliseconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e6)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|value| value.parse()).collect::<Result<_, _>>()?;
    let settings = if arguments.len() < 2 { vec![10, 1, 10, 2, 80, 1, 80, 2] } else { arguments };
    let shape = ConvShape::MINI_IMAGENET;
    let body = ConvBody::new(shape)?;
    let parameters: Vec<f32> = body
        .layout()
        .entries()
        .iter()
        .flat_map(|entry| {
            let name = entry.name.clone();
            (0..entry.len)
                .map(move |i| if name.ends_with("scale") { 1.0 } else { 0.1 * (i as f32 * 1.7).sin() })
        })
        .collect();
    for setting in settings.chunks_exact(2) {
        let (images, threads) = (setting[0], setting[1]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let pixels: Vec<f32> =
            (0..images * shape.image_len()).map(|i| 0.5 + 0.5 * (i as f32 * 0.013).sin()).collect();
        let slopes: Vec<f32> = (0..images * body.feature_count()).map(|i| (i as f32 * 0.7).sin()).collect();
        let (mut workspace, mut gradient) = (body.workspace(), vec![0.0; parameters.len()]);
        let (mut times, mut forward_times, mut busy_times) = (Vec::new(), Vec::new(), Vec::new());
        let mut peak = 0.0_f64;
        let repeats = if images > 40 { 7 } else { 25 };
        for repeat in 0..repeats + 2 {
            let start = Instant::now();
            pool.install(|| -> pacmeta_tensor::Result<()> {
                let before = thread_milliseconds();
                body.forward(&parameters, Images::Floats(&pixels), Statistics::Batch, &mut workspace)?;
                forward_times.push(1e3 * start.elapsed().as_secs_f64());
                body.backward(&parameters, &slopes, &mut workspace, &mut gradient)?;
                busy_times.extend(thread_milliseconds().zip(before).map(|(after, before)| after - before));
                Ok(())
            })?;
            if repeat >= 2 {
                times.push(1e3 * start.elapsed().as_secs_f64());
            }
            let start = Instant::now();
            let operations: f64 = pool.broadcast(|_| Arch::new().dispatch(Peak(200_000))).iter().sum();
            peak = peak.max(operations / start.elapsed().as_secs_f64() / 1e9);
        }
        times.sort_by(f64::total_cmp);
        forward_times.sort_by(f64::total_cmp);
        busy_times.sort_by(f64::total_cmp);
        // of one thread it is the whole work
        let busy = match busy_times.first() {
            Some(busy) if threads == 1 => format!("{busy:.1}"),
            _ => "null".to_owned(),
        };
        let rate = images as f64 * direct_operations(&shape) / times[0] / 1e6;
        println!(
            "{{\"images\": {images}, \"threads\": {threads}, \"median_ms\": {:.1}, \"min_ms\": {:.1}, \"forward_min_ms\": {:.1}, \
             \"cpu_min_ms\": {busy}, \
             \"direct_gflops\": {rate:.0}, \"fma_limit_gflops\": {peak:.0}}}",
            times[times.len() / 2],
            times[0],
            forward_times[0]
        );
    }
    Ok(())
}
