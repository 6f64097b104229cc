//! Prints what the f64 kernels reach on this machine, beside its limit for fused multiply-adds.
//!
//! `cargo run --release -p pacmeta-tensor --example kernels`

use std::hint::black_box;
use std::time::Instant;

use pacmeta_tensor::mlp::{Perceptron, parameter_count};
use pacmeta_tensor::simd::elementary::{exp_in_place, tanh_in_place};
use pacmeta_tensor::simd::factor::{cholesky, inverse_factor, upper_inverse};
use pacmeta_tensor::simd::padded;
use pacmeta_tensor::simd::product::{Left, Sizes, Start, product};
use pulp::{Arch, Simd, WithSimd};

/// The fastest of many short repeats, in seconds a call.
fn fastest(calls: usize, mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..400 {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        best = best.min(start.elapsed().as_secs_f64() / calls as f64);
    }
    best
}

/// Twelve independent chains of fused multiply-adds; returns multiply-adds a call.
struct Peak(usize);

impl WithSimd for Peak {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let factor = simd.splat_f64s(black_box(1.0 - 1e-9));
        let mut sums = [simd.splat_f64s(black_box(1e-3)); 12];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = simd.mul_add_e_f64s(*sum, factor, factor);
            }
        }
        let total = sums.into_iter().fold(simd.splat_f64s(0.0), |a, b| simd.add_f64s(a, b));
        black_box(simd.reduce_sum_f64s(total));
        (12 * self.0 * S::F64_LANES) as f64
    }
}

fn main() {
    let arch = Arch::new();
    let count = arch.dispatch(Peak(1000));
    let peak = count
        / fastest(20, || {
            black_box(arch.dispatch(Peak(1000)));
        });
    println!("limit                         {:7.1} G multiply-adds/s", peak / 1e9);
    let report = |name: &str, work: f64, seconds: f64| {
        println!(
            "{name:30}{:7.1} G multiply-adds/s, {:3.0}% of the limit, {:8.2} us",
            work / seconds / 1e9,
            100.0 * work / seconds / peak,
            seconds * 1e6
        );
    };

    let (weights, bias, inputs) = (vec![0.01; 32 * 32], vec![0.0; 32], vec![0.5; 60 * 32]);
    let mut outputs = vec![0.0; 60 * 32];
    let seconds = fastest(50, || {
        let sizes = Sizes { rows: 60, columns: 32, depth: 32 };
        let left = Left::Plain { values: &inputs, stride: 32 };
        product(arch, sizes, Start::Row(&bias), left, (&weights, 32), (&mut outputs, 32));
    });
    report("layer 32-32, 60 points", 60.0 * 32.0 * 32.0, seconds);

    let mut values: Vec<f64> = (0..1920).map(|i| f64::from(i) / 500.0 - 2.0).collect();
    let seconds = fastest(20, || tanh_in_place(arch, &mut values)) / 1920.0;
    println!("tanh                          {:7.2} ns each", seconds * 1e9);
    let mut values: Vec<f64> = (0..1920).map(|i| -f64::from(i) / 500.0).collect();
    let seconds = fastest(20, || {
        exp_in_place(arch, &mut values);
        values.iter_mut().for_each(|value| *value = -*value);
    }) / 1920.0;
    println!("exp                           {:7.2} ns each", seconds * 1e9);

    let widths = [1, 32, 32, 2];
    let parameters: Vec<f64> =
        (0..parameter_count(&widths)).map(|i| 0.2 * f64::from(i as u32).sin()).collect();
    for points in [25, 100] {
        let x: Vec<f64> = (0..points).map(|i| f64::from(i) / 10.0).collect();
        let mut perceptron = Perceptron::new(&widths);
        let errors = vec![0.1; points as usize * perceptron.output_stride()];
        perceptron.load(&parameters);
        let seconds = fastest(10, || {
            perceptron.forward(&x);
            perceptron.backward(&errors);
        });
        // forward, weight gradients, and errors of both inner layers
        let work = f64::from(points) * (3.0 * (32.0 * 32.0 + 64.0) + 2.0 * 32.0);
        report(&format!("1-32-32-2 both ways, {points} points"), work, seconds);
    }

    for size in [5_usize, 30, 100] {
        let stride = padded(size);
        let mut matrix = vec![0.0; size * stride];
        for i in 0..size {
            for j in 0..size {
                matrix[i * stride + j] = (-((i as f64 - j as f64) / 9.0).powi(2)).exp() / 2.0;
            }
            matrix[i * stride + i] += 0.005;
        }
        let (mut factor, mut x, mut inverse) = (matrix.clone(), matrix.clone(), matrix.clone());
        let seconds = fastest(5, || {
            factor.copy_from_slice(&matrix);
            let _ = black_box(cholesky(arch, &mut factor, size));
            inverse_factor(arch, &factor, &mut x, size);
            upper_inverse(arch, &x, &mut inverse, size);
        });
        report(&format!("Cholesky and inverse, {size}"), (size as f64).powi(3) / 2.0, seconds);
    }
}
