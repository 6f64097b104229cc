//! A linear head with squared loss and a Gaussian prior, where Q, Z, both W and their gradients are closed forms: how good
//! the estimators of the gradients of W_1 and W_2 are, as formulas. Nothing of the library is used here, whose heads have a softmax: that
//! the methods compute these formulas is tested by quadrature in `quadrature.rs`.
//!
//! With v = p + w, w ~ N(0, sigma^2), L^(v, S) = |F v - y|^2/m, the Gibbs posterior at temperature tau is Gaussian with
//! precision A = 1/sigma^2 + (2 tau/m) F'F and mean mu = A^-1 (2 tau/m) F'(y - F p).

use pacmeta_tensor::{Generator, Key};

const SIZE: usize = 6;
const SIGMA_SQUARED: f64 = 1.0;

type Vector = [f64; SIZE];
type Matrix = [[f64; SIZE]; SIZE];

struct Data {
    features: Vec<Vector>,
    targets: Vec<f64>,
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn times(matrix: &Matrix, vector: &Vector) -> Vector {
    std::array::from_fn(|i| dot(&matrix[i], vector))
}

/// Cholesky factor L of a positive definite matrix.
fn factor(matrix: &Matrix) -> Matrix {
    let mut lower = [[0.0; SIZE]; SIZE];
    for i in 0..SIZE {
        for j in 0..=i {
            let rest: f64 = matrix[i][j] - (0..j).map(|k| lower[i][k] * lower[j][k]).sum::<f64>();
            lower[i][j] = if i == j { rest.sqrt() } else { rest / lower[j][j] };
        }
    }
    lower
}

/// L'^-1 b.
fn back(lower: &Matrix, b: &Vector) -> Vector {
    let mut x = *b;
    for i in (0..SIZE).rev() {
        x[i] = (x[i] - (i + 1..SIZE).map(|k| lower[k][i] * x[k]).sum::<f64>()) / lower[i][i];
    }
    x
}

/// (L L')^-1 b.
fn solve(lower: &Matrix, b: &Vector) -> Vector {
    let mut x = *b;
    for i in 0..SIZE {
        x[i] = (x[i] - (0..i).map(|k| lower[i][k] * x[k]).sum::<f64>()) / lower[i][i];
    }
    back(lower, &x)
}

impl Data {
    /// y = F truth + noise; the truth differs from the prior's mean 0.
    fn draw(generator: &mut Generator, truth: &Vector, examples: usize) -> Self {
        let features: Vec<Vector> =
            (0..examples).map(|_| std::array::from_fn(|_| generator.normal())).collect();
        let targets = features.iter().map(|f| dot(f, truth) + 0.3 * generator.normal()).collect();
        Self { features, targets }
    }

    fn first(&self, count: usize) -> Self {
        Self { features: self.features[..count].to_vec(), targets: self.targets[..count].to_vec() }
    }

    /// (2/m) F'F.
    fn curvature(&self) -> Matrix {
        let factor = 2.0 / self.targets.len() as f64;
        std::array::from_fn(|i| {
            std::array::from_fn(|j| factor * self.features.iter().map(|f| f[i] * f[j]).sum::<f64>())
        })
    }

    /// The derivative of L^ at v.
    fn slope(&self, v: &Vector) -> Vector {
        let factor = 2.0 / self.targets.len() as f64;
        let mut slope = [0.0; SIZE];
        for (f, y) in self.features.iter().zip(&self.targets) {
            let residual = factor * (dot(f, v) - y);
            for i in 0..SIZE {
                slope[i] += residual * f[i];
            }
        }
        slope
    }

    fn loss(&self, v: &Vector) -> f64 {
        let squares = self.features.iter().zip(&self.targets).map(|(f, y)| (dot(f, v) - y).powi(2));
        squares.sum::<f64>() / self.targets.len() as f64
    }
}

/// A Gibbs posterior over w.
struct Posterior {
    lower: Matrix,
    mean: Vector,
}

impl Posterior {
    fn new(p: &Vector, data: &Data, temperature: f64) -> Self {
        let mut precision = data.curvature();
        for (i, row) in precision.iter_mut().enumerate() {
            for value in row.iter_mut() {
                *value *= temperature;
            }
            row[i] += 1.0 / SIGMA_SQUARED;
        }
        let lower = factor(&precision);
        let mean = solve(&lower, &data.slope(p).map(|slope| -temperature * slope));
        Self { lower, mean }
    }

    fn sample(&self, generator: &mut Generator) -> Vector {
        let noise = back(&self.lower, &std::array::from_fn(|_| generator.normal()));
        std::array::from_fn(|i| self.mean[i] + noise[i])
    }

    /// The expected loss: at the mean, plus half the curvature times the covariance.
    fn risk(&self, p: &Vector, data: &Data) -> f64 {
        let curvature = data.curvature();
        let spread: f64 = (0..SIZE)
            .map(|i| {
                let column = solve(&self.lower, &std::array::from_fn(|k| f64::from(u8::from(k == i))));
                0.5 * dot(&curvature[i], &column)
            })
            .sum();
        data.loss(&std::array::from_fn(|i| p[i] + self.mean[i])) + spread
    }

    /// KL(Q||P).
    fn divergence(&self) -> f64 {
        let trace: f64 = (0..SIZE)
            .map(|i| solve(&self.lower, &std::array::from_fn(|k| f64::from(u8::from(k == i))))[i])
            .sum();
        let log_determinant: f64 = (0..SIZE).map(|i| 2.0 * self.lower[i][i].ln()).sum();
        0.5 * ((trace + dot(&self.mean, &self.mean)) / SIGMA_SQUARED - SIZE as f64
            + log_determinant
            + SIZE as f64 * SIGMA_SQUARED.ln())
    }
}

fn plus(p: &Vector, w: &Vector) -> Vector {
    std::array::from_fn(|i| p[i] + w[i])
}

/// W_1 = L^(Q_beta, S) + KL/beta.
fn w1(p: &Vector, data: &Data, beta: f64) -> f64 {
    let posterior = Posterior::new(p, data, beta);
    posterior.risk(p, data) + posterior.divergence() / beta
}

/// W_2 = L^(Q_alpha(S'), S) + KL/beta.
fn w2(p: &Vector, data: &Data, subset: usize, alpha: f64, beta: f64) -> f64 {
    let posterior = Posterior::new(p, &data.first(subset), alpha);
    posterior.risk(p, data) + posterior.divergence() / beta
}

fn differences(p: &Vector, function: impl Fn(&Vector) -> f64) -> Vector {
    std::array::from_fn(|i| {
        let (mut up, mut down) = (*p, *p);
        up[i] += 1e-4;
        down[i] -= 1e-4;
        (function(&up) - function(&down)) / 2e-4
    })
}

/// The exact gradient of W_2: through the posterior's mean, which follows p by -G = -A^-1 alpha (2/m') F''F'.
fn exact_w2(p: &Vector, data: &Data, subset: usize, alpha: f64, beta: f64) -> Vector {
    let small = data.first(subset);
    let posterior = Posterior::new(p, &small, alpha);
    let slope = data.slope(&plus(p, &posterior.mean));
    // G' x = alpha (2/m') F''F' A^-1 x
    let x = std::array::from_fn(|i| slope[i] + posterior.mean[i] / (beta * SIGMA_SQUARED));
    let pulled = times(&small.curvature(), &solve(&posterior.lower, &x));
    std::array::from_fn(|i| slope[i] - alpha * pulled[i])
}

/// The expectation of PACMAML's estimator: losses are quadratic, so their slopes at the posterior means.
fn approximate_w2(p: &Vector, data: &Data, subset: usize, alpha: f64, beta: f64) -> Vector {
    let small = data.first(subset);
    let w_a = plus(p, &Posterior::new(p, &small, alpha).mean);
    let w_b = plus(p, &Posterior::new(p, data, beta).mean);
    let (first, at_b, at_a) = (data.slope(&w_a), small.slope(&w_b), small.slope(&w_a));
    std::array::from_fn(|i| first[i] + alpha / beta * (at_b[i] - at_a[i]))
}

fn norm(a: &Vector) -> f64 {
    dot(a, a).sqrt()
}

fn draw(key: Key, examples: usize) -> (Data, Vector) {
    let mut generator = key.generator();
    let truth = std::array::from_fn(|_| generator.normal());
    let data = Data::draw(&mut generator, &truth, examples);
    (data, std::array::from_fn(|_| 0.5 * generator.normal()))
}

#[test]
fn the_w1_estimator_at_exact_samples_averages_to_the_exact_gradient() {
    let (data, p) = draw(Key::new(1), 10);
    for beta in [1.0, 10.0] {
        let exact = differences(&p, |p| w1(p, &data, beta));
        let posterior = Posterior::new(&p, &data, beta);
        let mut generator = Key::new(2).generator();
        let draws = 40_000;
        let (mut sum, mut squares) = ([0.0; SIZE], [0.0; SIZE]);
        for _ in 0..draws {
            let slope = data.slope(&plus(&p, &posterior.sample(&mut generator)));
            for i in 0..SIZE {
                sum[i] += slope[i];
                squares[i] += slope[i] * slope[i];
            }
        }
        for i in 0..SIZE {
            let mean = sum[i] / f64::from(draws);
            let deviation = (squares[i] / f64::from(draws) - mean * mean).sqrt();
            let standard_error = deviation / f64::from(draws).sqrt();
            assert!(
                (mean - exact[i]).abs() < 4.0 * standard_error,
                "{mean}, {} +- {standard_error}",
                exact[i]
            );
            assert!(standard_error < 0.02);
        }
    }
}

#[test]
fn the_exact_w2_gradient_is_the_derivative_of_w2() {
    let (data, p) = draw(Key::new(3), 10);
    for (alpha, beta) in [(0.5, 1.0), (5.0, 10.0), (50.0, 30.0)] {
        let exact = exact_w2(&p, &data, 5, alpha, beta);
        let by_differences = differences(&p, |p| w2(p, &data, 5, alpha, beta));
        let error = norm(&std::array::from_fn(|i| exact[i] - by_differences[i]));
        assert!(error < 1e-7 * norm(&exact), "{error:e}");
    }
}

#[test]
fn the_w2_estimator_is_exact_where_it_is_w1_and_where_temperatures_are_small() {
    let (data, p) = draw(Key::new(4), 10);
    let (exact, approximate) = (exact_w2(&p, &data, 10, 7.0, 7.0), approximate_w2(&p, &data, 10, 7.0, 7.0));
    let by_w1 = differences(&p, |p| w1(p, &data, 7.0));
    for i in 0..SIZE {
        assert!((exact[i] - approximate[i]).abs() < 1e-12);
        assert!((exact[i] - by_w1[i]).abs() < 1e-7);
    }
    // the difference is of second order in the temperatures
    let difference = |alpha: f64| {
        let beta = 2.0 * alpha;
        let (exact, approximate) =
            (exact_w2(&p, &data, 5, alpha, beta), approximate_w2(&p, &data, 5, alpha, beta));
        norm(&std::array::from_fn(|i| exact[i] - approximate[i]))
    };
    let ratio = difference(2e-3) / difference(1e-3);
    assert!((ratio - 4.0).abs() < 0.1, "{ratio}");
}

/// The table of `docs/theory.md`, section 8: m, alpha; the estimator's relative difference from the exact gradient, cosine
/// with it and relative length; difference and cosine of its first term alone.
const MEASURED: [[f64; 7]; 8] = [
    [10.0, 0.1, 0.035, 1.000, 1.023, 0.119, 0.997],
    [10.0, 1.0, 0.363, 0.963, 1.212, 0.530, 0.940],
    [10.0, 10.0, 1.114, 0.788, 1.697, 1.284, 0.760],
    [10.0, 100.0, 2.226, 0.637, 2.643, 2.531, 0.612],
    [40.0, 0.1, 0.090, 0.998, 1.064, 0.158, 0.995],
    [40.0, 1.0, 0.401, 0.963, 1.252, 0.459, 0.955],
    [40.0, 10.0, 0.783, 0.888, 1.482, 0.829, 0.879],
    [40.0, 100.0, 1.732, 0.787, 2.298, 1.810, 0.778],
];

#[test]
fn the_w2_estimator_differs_from_the_exact_gradient_by_a_measured_amount() {
    let (subset, tasks) = (5, 400);
    for [examples, alpha, expected @ ..] in MEASURED {
        let beta = alpha * examples / subset as f64;
        let mut means = [0.0; 5];
        for task in 0..tasks {
            let (data, p) = draw(Key::new(5).index(task), examples as usize);
            let exact = exact_w2(&p, &data, subset, alpha, beta);
            let estimate = approximate_w2(&p, &data, subset, alpha, beta);
            let first = data.slope(&plus(&p, &Posterior::new(&p, &data.first(subset), alpha).mean));
            let difference =
                |other: &Vector| norm(&std::array::from_fn(|i| exact[i] - other[i])) / norm(&exact);
            let cosine = |other: &Vector| dot(&exact, other) / (norm(&exact) * norm(other));
            let length = norm(&estimate) / norm(&exact);
            let values =
                [difference(&estimate), cosine(&estimate), length, difference(&first), cosine(&first)];
            for (mean, value) in means.iter_mut().zip(values) {
                *mean += value / tasks as f64;
            }
        }
        for (mean, expected) in means.iter().zip(expected) {
            assert!((mean - expected).abs() < 1e-3, "m = {examples}, alpha = {alpha}: {means:.3?}");
        }
    }
}
