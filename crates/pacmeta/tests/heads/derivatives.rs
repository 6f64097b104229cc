//! The head's own derivatives, by finite differences.

use pacmeta::learners::head::derivatives::{add_mixed_derivative, hessian_product, residual_changes};
use pacmeta::learners::head::svgd::Stein;
use pacmeta::learners::head::{Outputs, Weights};
use pacmeta_tensor::Key;
use pacmeta_tensor::simd::skinny::Begin;

use super::{Case, Examples, LABELS, SHAPE, assert_near, differences, loss};

const WEIGHTS: [f64; 6] = [0.3, 0.0, -0.2, 1.1, 0.7, 0.05];

/// The gradients in head and features of a weighted loss.
fn gradients(head: &[f64], features: &[f64], weights: Weights<'_, f64>) -> (Vec<f64>, Vec<f64>) {
    let (mut outputs, mut residuals) = (Outputs::default(), Vec::new());
    SHAPE.outputs(head, Examples { features, labels: &LABELS }, &mut outputs);
    SHAPE.residuals(&outputs.probabilities, &LABELS, weights, &mut residuals);
    let mut of_head = vec![0.0; head.len()];
    let mut of_features = vec![0.0; features.len()];
    SHAPE.head_gradient(Begin::Zero, &residuals, features, &mut of_head);
    SHAPE.feature_gradient(Begin::Zero, &residuals, head, &mut of_features);
    (of_head, of_features)
}

#[test]
fn losses_and_gradients_in_head_and_features() {
    let Case { head, features, .. } = Case::<f64>::new(1);
    let mut outputs = Outputs::default();
    SHAPE.outputs(&head, Examples { features: &features, labels: &LABELS }, &mut outputs);
    let examples = Examples { features: &features, labels: &LABELS };
    let total: f64 = outputs.losses.iter().zip(WEIGHTS).map(|(loss, weight)| loss * weight).sum();
    assert!((total - loss(&head, examples, Some(&WEIGHTS))).abs() < 1e-14);
    for row in outputs.probabilities.chunks_exact(SHAPE.classes) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }

    let (of_head, of_features) = gradients(&head, &features, Weights::Each(&WEIGHTS));
    assert_near("head", &of_head, &differences(&head, |head| loss(head, examples, Some(&WEIGHTS))), 1e-9);
    let by_features = differences(&features, |features| {
        loss(&head, Examples { features, labels: &LABELS }, Some(&WEIGHTS))
    });
    assert_near("features", &of_features, &by_features, 1e-9);
}

#[test]
fn a_nearly_certain_head_keeps_its_digits_in_single_precision() {
    let mut head = vec![0.0_f32; SHAPE.parameters()];
    head[SHAPE.classes * SHAPE.features] = 20.0;
    let features = [0.0_f32; 7];
    let (mut outputs, mut residuals) = (Outputs::default(), Vec::new());
    SHAPE.outputs(
        &head,
        pacmeta::learners::head::Examples { features: &features, labels: &[0] },
        &mut outputs,
    );
    SHAPE.residuals(&outputs.probabilities, &[0], Weights::Mean(1.0), &mut residuals);
    let expected = 2.0 * (-20.0_f64).exp();
    assert!((f64::from(outputs.losses[0]) / expected - 1.0).abs() < 1e-6);
    assert!((f64::from(-residuals[0]) / expected - 1.0).abs() < 1e-6);
}

#[test]
fn hessian_products_and_mixed_derivatives() {
    let Case { head, features, .. } = Case::<f64>::new(2);
    let direction = Case::<f64>::new(3).head;
    let examples = Examples { features: &features, labels: &LABELS };
    let (mut outputs, mut residuals, mut changes) = (Outputs::default(), Vec::new(), Vec::new());
    SHAPE.outputs(&head, examples, &mut outputs);
    let factor = 2.5;
    SHAPE.residuals(&outputs.probabilities, &LABELS, Weights::Mean(factor), &mut residuals);
    residual_changes(SHAPE, &outputs.probabilities, &features, &direction, factor / 6.0, &mut changes);
    let mut product = vec![0.0; head.len()];
    hessian_product(SHAPE, &changes, &features, &mut product);
    let mut mixed = vec![0.0; features.len()];
    add_mixed_derivative(SHAPE, (&residuals, &changes), (&head, &direction), &mut mixed);

    // the gradient was compared with differences of the loss above
    let slope = |head: &[f64], features: &[f64]| {
        let (gradient, _) = gradients(head, features, Weights::Mean(factor));
        gradient.iter().zip(&direction).map(|(a, b)| a * b).sum::<f64>()
    };
    assert_near("Hessian", &product, &differences(&head, |head| slope(head, &features)), 1e-9);
    assert_near("mixed", &mixed, &differences(&features, |features| slope(&head, features)), 1e-9);
}

#[test]
fn stein_directions_and_their_derivatives() {
    // an odd and an even number of pairs
    for count in [2, 3, 4, 5] {
        let size = 9;
        let mut generator = Key::new(count as u64).generator();
        let mut draw = || (0..count * size).map(|_| generator.normal()).collect::<Vec<f64>>();
        let (offsets, slopes, adjoints) = (draw(), draw(), draw());
        let directions = |offsets: &[f64], slopes: &[f64]| {
            let mut stein = Stein::default();
            let mut directions = vec![0.0; count * size];
            stein.kernel(size, offsets);
            stein.directions(size, offsets, slopes, &mut directions);
            directions
        };
        assert_near(
            "directions",
            &directions(&offsets, &slopes),
            &plain_stein(size, &offsets, &slopes),
            1e-13,
        );

        let project = |offsets: &[f64], slopes: &[f64]| {
            directions(offsets, slopes).iter().zip(&adjoints).map(|(a, b)| a * b).sum::<f64>()
        };
        let (mut of_slopes, mut of_offsets) = (vec![0.0; count * size], vec![0.0; count * size]);
        let mut stein = Stein::default();
        stein.kernel(size, &offsets);
        stein.pull_back(size, (&offsets, &slopes), &adjoints, &mut of_slopes, &mut of_offsets);
        assert_near("slopes", &of_slopes, &differences(&slopes, |slopes| project(&offsets, slopes)), 1e-8);
        assert_near("offsets", &of_offsets, &differences(&offsets, |w| project(w, &slopes)), 1e-8);
    }
}

/// d_i = (1/M) sum_j k_ij [g_j + (2/h)(w_j - w_i)], as it is written.
fn plain_stein(size: usize, offsets: &[f64], slopes: &[f64]) -> Vec<f64> {
    let count = offsets.len() / size;
    let square = |i: usize, j: usize| -> f64 {
        (0..size).map(|k| (offsets[i * size + k] - offsets[j * size + k]).powi(2)).sum()
    };
    let mut distances: Vec<f64> =
        (0..count).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| square(i, j).sqrt()).collect();
    distances.sort_by(f64::total_cmp);
    let median = 0.5 * (distances[(distances.len() - 1) / 2] + distances[distances.len() / 2]);
    let bandwidth = median * median / (count as f64).ln();
    let mut directions = vec![0.0; offsets.len()];
    for i in 0..count {
        for j in 0..count {
            let kernel = (-square(i, j) / bandwidth).exp() / count as f64;
            for k in 0..size {
                let repulsion = 2.0 / bandwidth * (offsets[j * size + k] - offsets[i * size + k]);
                directions[i * size + k] += kernel * (slopes[j * size + k] + repulsion);
            }
        }
    }
    directions
}
