//! Prints the time of a head's three products (logits, derivative in the head, derivative in the features) beside that of a
//! general product, in f32 on one thread.
//!
//! `cargo run --release -p pacmeta-tensor --example skinny`

use std::hint::black_box;
use std::time::Instant;

use pacmeta_tensor::simd::skinny::{Begin, Coefficients, combinations, inner_products};

const FEATURES: usize = 1600;
const CLASSES: usize = 5;

/// The fastest of many short repeats, in microseconds a call.
fn fastest(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..400 {
        let start = Instant::now();
        (0..10).for_each(|_| call());
        best = best.min(start.elapsed().as_secs_f64() * 1e5);
    }
    best
}

/// output = left right; each matrix with its steps to the next row and to the next column.
fn general(
    [rows, depth, columns]: [usize; 3],
    (left, left_steps): (&[f32], [isize; 2]),
    (right, right_steps): (&[f32], [isize; 2]),
    output: &mut [f32],
) {
    assert!(left.len() == rows * depth && right.len() == depth * columns && output.len() == rows * columns);
    // SAFETY: the lengths were checked, and every caller's steps address each matrix exactly.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            output.as_mut_ptr(),
            1,
            columns as isize,
            false,
            left.as_ptr(),
            left_steps[1],
            left_steps[0],
            right.as_ptr(),
            right_steps[1],
            right_steps[0],
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn main() {
    let (wide, narrow) = (FEATURES as isize, CLASSES as isize);
    println!("microseconds, own / general (general over own), {FEATURES} features, {CLASSES} classes");
    println!("{:>4}{:>30}{:>30}{:>30}", "m", "logits F W'", "R' F", "R W");
    for count in [5, 10, 20, 80] {
        let features: Vec<f32> = (0..count * FEATURES).map(|index| (index as f32).sin()).collect();
        let weight: Vec<f32> = (0..CLASSES * FEATURES).map(|index| (index as f32).cos()).collect();
        let residuals: Vec<f32> = (0..count * CLASSES).map(|index| (index as f32).cos()).collect();
        let bias = [0.0; CLASSES];
        let mut logits = vec![0.0; count * CLASSES];
        let (mut of_head, mut of_features) = (weight.clone(), features.clone());
        let by_rows = Coefficients { values: &residuals, term_stride: CLASSES, row_stride: 1 };
        let by_columns = Coefficients { values: &residuals, term_stride: 1, row_stride: CLASSES };
        let own = [
            fastest(|| inner_products(FEATURES, &bias, &features, black_box(&weight), &mut logits)),
            fastest(|| {
                combinations([count, FEATURES], Begin::Zero, by_rows, black_box(&features), &mut of_head)
            }),
            fastest(|| {
                combinations(
                    [CLASSES, FEATURES],
                    Begin::Zero,
                    by_columns,
                    black_box(&weight),
                    &mut of_features,
                );
            }),
        ];
        let others = [
            fastest(|| {
                let right = (black_box(&weight[..]), [1, wide]);
                general([count, FEATURES, CLASSES], (&features, [wide, 1]), right, &mut logits);
            }),
            fastest(|| {
                let right = (black_box(&features[..]), [wide, 1]);
                general([CLASSES, count, FEATURES], (&residuals, [1, narrow]), right, &mut of_head);
            }),
            fastest(|| {
                let right = (black_box(&weight[..]), [wide, 1]);
                general([count, CLASSES, FEATURES], (&residuals, [narrow, 1]), right, &mut of_features);
            }),
        ];
        print!("{count:4}");
        for (own, other) in own.iter().zip(others) {
            print!("{:>30}", format!("{own:.1} / {other:.1} ({:.1})", other / own));
        }
        println!();
    }
}
