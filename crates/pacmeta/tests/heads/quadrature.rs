//! A head of one feature and two classes, where everything is an integral over two numbers: the logits' difference is
//! a x + c with a, c ~ N(., 2 sigma^2), and quadrature gives the posterior and the gradient of W_1 to many digits.

use pacmeta::learners::head::steps::{HeadSteps, Sampler};
use pacmeta::learners::head::{Examples, HeadShape, predict};
use pacmeta::methods::heads::{
    FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadRoom, Pacoh, PacohEstimator,
};
use pacmeta_tensor::Key;

const SHAPE: HeadShape = HeadShape { features: 1, classes: 2 };
const FEATURES: [f64; 5] = [-1.3, -0.4, 0.2, 0.9, 1.7];
const LABELS: [usize; 5] = [0, 0, 1, 0, 1];
const HEAD: [f64; 4] = [0.3, -0.2, 0.1, 0.4];
const TEMPERATURE: f64 = 6.0;
const SIGMA_SQUARED: f64 = 1.5;

/// What quadrature says at the differences (a, c) of the prior's means.
struct Exact {
    /// -log Z / tau.
    w1: f64,
    /// The posterior's means of a and c, and of the probability of class 1 at x = 0.5.
    means: [f64; 3],
}

fn quadrature([slope, intercept]: [f64; 2]) -> Exact {
    let variance = 2.0 * SIGMA_SQUARED;
    let (count, reach) = (401, 6.0 * variance.sqrt());
    let step = 2.0 * reach / f64::from(count - 1);
    let (mut mass, mut sums) = (0.0, [0.0; 3]);
    for i in 0..count {
        for j in 0..count {
            let (da, dc) = (f64::from(i) * step - reach, f64::from(j) * step - reach);
            let (a, c) = (slope + da, intercept + dc);
            let loss: f64 = FEATURES
                .iter()
                .zip(LABELS)
                .map(|(x, label)| {
                    let margin = if label == 1 { a * x + c } else { -a * x - c };
                    (-margin).exp().ln_1p() / FEATURES.len() as f64
                })
                .sum();
            let density = (-(da * da + dc * dc) / (2.0 * variance) - TEMPERATURE * loss).exp();
            mass += density;
            for (sum, value) in sums.iter_mut().zip([a, c, 1.0 / (1.0 + (-0.5 * a - c).exp())]) {
                *sum += density * value;
            }
        }
    }
    let normal = step * step / (2.0 * std::f64::consts::PI * variance);
    Exact { w1: -(mass * normal).ln() / TEMPERATURE, means: sums.map(|sum| sum / mass) }
}

fn pacoh(inner: HeadSteps, sampler: Sampler) -> Pacoh {
    let learner = GibbsLearner {
        inner,
        sigma_squared: SIGMA_SQUARED,
        alpha: TEMPERATURE,
        beta: Some(TEMPERATURE),
        sampler,
    };
    Pacoh { learner, estimator: PacohEstimator::Posterior }
}

/// The posterior's means by particles, and their standard errors if the particles are independent.
fn sampled(method: &Pacoh) -> [(f64, f64); 3] {
    let support = Examples { features: &FEATURES, labels: &LABELS };
    let heads = method.adapt(&HEAD, SHAPE, support, Key::new(3), &mut HeadRoom::default()).unwrap();
    let statistic = |value: &dyn Fn(&[f64]) -> f64| {
        mean_and_error(&heads.iter().map(|head| value(head)).collect::<Vec<_>>())
    };
    let probability = |head: &[f64]| predict(SHAPE, &[head.to_vec()], &[0.5]).unwrap()[1];
    [statistic(&|head| head[1] - head[0]), statistic(&|head| head[3] - head[2]), statistic(&probability)]
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (square / count).sqrt())
}

fn exact() -> Exact {
    quadrature([HEAD[1] - HEAD[0], HEAD[3] - HEAD[2]])
}

#[test]
fn langevin_and_stein_particles_have_the_posterior_s_means() {
    let exact = exact().means;
    let sgld = sampled(&pacoh(HeadSteps::gradient_descent(400, 0.01), Sampler::Sgld { particles: 1000 }));
    for ((mean, error), exact) in sgld.into_iter().zip(exact) {
        assert!((mean - exact).abs() < 4.0 * error, "Langevin: {mean} +- {error}, {exact}");
        assert!(error < 0.06);
    }
    // Particles at rest have no such noise; what is left is the error of Stein's method with 60 of them.
    let svgd = sampled(&pacoh(HeadSteps::gradient_descent(2000, 0.05), Sampler::Svgd { particles: 60 }));
    for (((mean, _), exact), tolerance) in svgd.into_iter().zip(exact).zip([0.08, 0.04, 0.005]) {
        assert!((mean - exact).abs() < tolerance, "Stein: {mean}, {exact}");
    }
    // The prior's mean is far away.
    assert!((HEAD[1] - HEAD[0] - exact[0]).abs() > 1.0);
}

#[test]
fn pacoh_s_gradient_at_posterior_samples_is_that_of_w1() {
    let method = pacoh(HeadSteps::gradient_descent(400, 0.01), Sampler::Sgld { particles: 500 });
    let task = FeatureTask { shape: SHAPE, features: &FEATURES, labels: &LABELS, subset: 2 };
    let gradients: Vec<Vec<f64>> = (0..16)
        .map(|seed| {
            let mut gradient = HeadGradient::default();
            let key = Key::new(4).index(seed);
            method.task_gradient(&HEAD, &task, key, &mut HeadRoom::default(), &mut gradient).unwrap();
            gradient.head
        })
        .collect();
    let step = 1e-4;
    let (slope, intercept) = (HEAD[1] - HEAD[0], HEAD[3] - HEAD[2]);
    let by_slope =
        (quadrature([slope + step, intercept]).w1 - quadrature([slope - step, intercept]).w1) / (2.0 * step);
    let by_intercept =
        (quadrature([slope, intercept + step]).w1 - quadrature([slope, intercept - step]).w1) / (2.0 * step);
    for (place, expected) in [-by_slope, by_slope, -by_intercept, by_intercept].into_iter().enumerate() {
        let values: Vec<f64> = gradients.iter().map(|gradient| gradient[place]).collect();
        let (mean, error) = mean_and_error(&values);
        // the steps' own bias is of the order of their rate
        assert!((mean - expected).abs() < 4.0 * error + 1e-3, "{mean} +- {error}, expected {expected}");
        assert!(error < 0.003 && expected.abs() > 0.04);
    }
}
