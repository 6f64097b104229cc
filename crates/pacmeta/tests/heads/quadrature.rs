//! A head of one feature and two classes, where everything is an integral over two numbers: the logits' difference is
//! a x + c with a, c ~ N(., 2 sigma^2), and quadrature gives posteriors, W_1, W_2 and their gradients to many digits. The
//! methods themselves are compared with it: their samplers, and the equations by which they combine samples.
//!
//! Where samples are exact (drawn from the prior, kept with probability exp(-tau L^)) nothing but Monte-Carlo error is left, and
//! tolerances are five standard errors; Langevin steps add a bias of the order of their rate. Each comparison is shown to be sharp:
//! other temperatures, signs or factors are several tolerances away.

use pacmeta::learners::head::steps::{Chain, HeadSteps, Sampler};
use pacmeta::learners::head::{Examples, HeadShape, predict};
use pacmeta::methods::SubsetRule;
use pacmeta::methods::heads::{
    FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadRoom, HeadTerms, Pacmaml, Pacoh, PacohEstimator,
};
use pacmeta_tensor::Key;

const SHAPE: HeadShape = HeadShape { features: 1, classes: 2 };
const COUNT: usize = 5;
const FEATURES: [f64; COUNT] = [-1.3, -0.4, 0.2, 0.9, 1.7];
const LABELS: [usize; COUNT] = [0, 0, 1, 0, 1];
const HEAD: [f64; 4] = [0.3, -0.2, 0.1, 0.4];
/// The differences of the prior's means, of slope and intercept.
const CENTRE: [f64; 2] = [HEAD[1] - HEAD[0], HEAD[3] - HEAD[2]];
/// beta.
const TEMPERATURE: f64 = 6.0;
const ALPHA: f64 = 3.0;
/// m'.
const SUBSET: usize = 2;
const SIGMA_SQUARED: f64 = 1.5;

/// What quadrature says of a Gibbs posterior.
struct Exact {
    log_partition: f64,
    /// Means of a and c, and of the probability of class 1 at x = 0.5.
    means: [f64; 3],
    /// The expected loss of every example.
    losses: [f64; COUNT],
    /// The expected P_1 - y of every example: its derivative in its logits' difference.
    residuals: [f64; COUNT],
    /// The expected (P_1 - y) a: its derivative in its feature.
    feature_slopes: [f64; COUNT],
}

impl Exact {
    /// L^ of the first examples.
    fn risk(&self, examples: usize) -> f64 {
        self.losses[..examples].iter().sum::<f64>() / examples as f64
    }

    /// The sum of weighted derivatives of the losses, in slope and intercept.
    fn gradient(&self, weight: impl Fn(usize) -> f64) -> [f64; 2] {
        let terms = |factor: fn(f64) -> f64| {
            (0..COUNT).map(|j| weight(j) * self.residuals[j] * factor(FEATURES[j])).sum()
        };
        [terms(|x| x), terms(|_| 1.0)]
    }
}

fn loss(logit: f64, label: usize) -> f64 {
    let margin = if label == 1 { logit } else { -logit };
    (-margin).exp().ln_1p()
}

/// The posterior of the first `seen` examples, the prior's means of slope and intercept being at `centre`.
fn quadrature(features: &[f64; COUNT], centre: [f64; 2], seen: usize, temperature: f64) -> Exact {
    let variance = 2.0 * SIGMA_SQUARED;
    let (points, reach) = (241, 6.0 * variance.sqrt());
    let step = 2.0 * reach / f64::from(points - 1);
    let (mut mass, mut means) = (0.0, [0.0; 3]);
    let (mut losses, mut residuals, mut feature_slopes) = ([0.0; COUNT], [0.0; COUNT], [0.0; COUNT]);
    for i in 0..points {
        for j in 0..points {
            let (da, dc) = (f64::from(i) * step - reach, f64::from(j) * step - reach);
            let (a, c) = (centre[0] + da, centre[1] + dc);
            let each: [f64; COUNT] = std::array::from_fn(|k| loss(a * features[k] + c, LABELS[k]));
            let risk = each[..seen].iter().sum::<f64>() / seen as f64;
            let density = (-(da * da + dc * dc) / (2.0 * variance) - temperature * risk).exp();
            mass += density;
            for (sum, value) in means.iter_mut().zip([a, c, 1.0 / (1.0 + (-0.5 * a - c).exp())]) {
                *sum += density * value;
            }
            for k in 0..COUNT {
                let residual = 1.0 / (1.0 + (-a * features[k] - c).exp()) - LABELS[k] as f64;
                losses[k] += density * each[k];
                residuals[k] += density * residual;
                feature_slopes[k] += density * residual * a;
            }
        }
    }
    let normal = step * step / (2.0 * std::f64::consts::PI * variance);
    Exact {
        log_partition: (mass * normal).ln(),
        means: means.map(|sum| sum / mass),
        losses: losses.map(|sum| sum / mass),
        residuals: residuals.map(|sum| sum / mass),
        feature_slopes: feature_slopes.map(|sum| sum / mass),
    }
}

/// W_1 = -log Z / beta.
fn w1(features: &[f64; COUNT], centre: [f64; 2]) -> f64 {
    -quadrature(features, centre, COUNT, TEMPERATURE).log_partition / TEMPERATURE
}

/// W_2 = L^(Q_alpha(S'), S) + KL/beta, KL = -alpha L^(Q_alpha, S') - log Z.
fn w2(centre: [f64; 2], subset: usize, alpha: f64, beta: f64) -> f64 {
    let posterior = quadrature(&FEATURES, centre, subset, alpha);
    posterior.risk(COUNT) + (-alpha * posterior.risk(subset) - posterior.log_partition) / beta
}

/// Central differences in the prior's means of slope and intercept.
fn differences(function: impl Fn([f64; 2]) -> f64) -> [f64; 2] {
    let step = 1e-4;
    std::array::from_fn(|place| {
        let moved = |by: f64| {
            let mut centre = CENTRE;
            centre[place] += by;
            function(centre)
        };
        (moved(step) - moved(-step)) / (2.0 * step)
    })
}

/// The equation of PACMAML by quadrature, in slope and intercept, with a factor before its second term.
fn approximate_w2(subset: usize, alpha: f64, beta: f64, factor: f64) -> [f64; 2] {
    let posterior = quadrature(&FEATURES, CENTRE, subset, alpha);
    let of_all = quadrature(&FEATURES, CENTRE, COUNT, beta);
    let on_subset = |j: usize| if j < subset { factor / subset as f64 } else { 0.0 };
    let first = posterior.gradient(|j| 1.0 / COUNT as f64 - on_subset(j));
    let second = of_all.gradient(on_subset);
    [first[0] + second[0], first[1] + second[1]]
}

fn distance(left: [f64; 2], right: [f64; 2]) -> f64 {
    (left[0] - right[0]).hypot(left[1] - right[1])
}

fn learner(inner: HeadSteps, sampler: Sampler, alpha: f64) -> GibbsLearner {
    GibbsLearner { inner, sigma_squared: SIGMA_SQUARED, alpha, beta: Some(TEMPERATURE), sampler }
}

fn pacoh(inner: HeadSteps, sampler: Sampler) -> Pacoh {
    Pacoh { learner: learner(inner, sampler, TEMPERATURE), estimator: PacohEstimator::Posterior }
}

fn pacmaml(inner: HeadSteps, sampler: Sampler) -> Pacmaml {
    Pacmaml { learner: learner(inner, sampler, ALPHA), split: SubsetRule::Nested }
}

fn task() -> FeatureTask<'static, f64> {
    FeatureTask { shape: SHAPE, features: &FEATURES, labels: &LABELS, subset: SUBSET }
}

/// Exact samples of w from the posterior of the first `seen` examples.
fn exact_samples(count: usize, seen: usize, temperature: f64, key: Key) -> Chain<f64> {
    let mut generator = key.generator();
    let mut offsets = Vec::with_capacity(HEAD.len() * count);
    while offsets.len() < HEAD.len() * count {
        let w: [f64; 4] = std::array::from_fn(|_| SIGMA_SQUARED.sqrt() * generator.normal());
        let (a, c) = (CENTRE[0] + w[1] - w[0], CENTRE[1] + w[3] - w[2]);
        // kept if u < exp(-tau L^)
        let most = -generator.uniform().ln() * seen as f64 / temperature;
        let mut total = 0.0;
        let kept = FEATURES.iter().zip(LABELS).take(seen).all(|(x, label)| {
            total += loss(a * x + c, label);
            total < most
        });
        if kept {
            offsets.extend(w);
        }
    }
    Chain::at(HEAD.len(), offsets, &HeadSteps::gradient_descent(0, 0.0))
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

/// Estimates that do not depend on each other.
struct Estimates(Vec<(HeadTerms, HeadGradient<f64>)>);

impl Estimates {
    fn of(count: u64, mut estimate: impl FnMut(u64, &mut HeadGradient<f64>) -> HeadTerms) -> Self {
        let each = |index| {
            let mut gradient = HeadGradient::default();
            (estimate(index, &mut gradient), gradient)
        };
        Self((0..count).map(each).collect())
    }

    /// Their mean and its standard error.
    fn of_value(&self, value: impl Fn(&HeadTerms, &HeadGradient<f64>) -> f64) -> (f64, f64) {
        let values: Vec<f64> = self.0.iter().map(|(terms, gradient)| value(terms, gradient)).collect();
        mean_and_error(&values)
    }

    /// The mean is what it should be, within five standard errors and a bias.
    #[track_caller]
    fn check(
        &self,
        what: &str,
        expected: f64,
        bias: f64,
        value: impl Fn(&HeadTerms, &HeadGradient<f64>) -> f64,
    ) {
        let (mean, error) = self.of_value(value);
        assert!(error > 0.0, "{what}: no noise at all");
        assert!(
            (mean - expected).abs() < 5.0 * error + bias,
            "{what}: {mean} +- {error}, expected {expected}"
        );
    }

    /// The gradient in the head is that in slope and intercept; returns its mean and the tolerance of each.
    #[track_caller]
    fn check_head(&self, expected: [f64; 2], bias: f64, largest_error: f64) -> [(f64, f64); 2] {
        let [slope, intercept] = expected;
        for (place, expected) in [-slope, slope, -intercept, intercept].into_iter().enumerate() {
            self.check(&format!("head {place}"), expected, bias, |_, gradient| gradient.head[place]);
        }
        [1, 3].map(|place| {
            let (mean, error) = self.of_value(|_, gradient| gradient.head[place]);
            assert!(error < largest_error, "too noisy to say anything: {error}");
            (mean, 5.0 * error + bias)
        })
    }
}

/// How many tolerances another answer is away, at the place where that is most.
fn tolerances_away(found: [(f64, f64); 2], other: [f64; 2]) -> f64 {
    found
        .iter()
        .zip(other)
        .map(|((mean, tolerance), other)| (mean - other).abs() / tolerance)
        .fold(0.0, f64::max)
}

#[test]
fn langevin_and_stein_particles_have_the_posterior_s_means() {
    let exact = quadrature(&FEATURES, CENTRE, COUNT, TEMPERATURE).means;
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
    assert!((CENTRE[0] - exact[0]).abs() > 1.0);
}

#[test]
fn pacoh_s_gradient_at_posterior_samples_is_that_of_w1() {
    let method = pacoh(HeadSteps::gradient_descent(400, 0.01), Sampler::Sgld { particles: 500 });
    let estimates = Estimates::of(16, |seed, gradient| {
        let key = Key::new(4).index(seed);
        method.task_gradient(&HEAD, &task(), key, &mut HeadRoom::default(), gradient).unwrap()
    });
    let exact = differences(|centre| w1(&FEATURES, centre));
    assert!(exact.iter().all(|value| value.abs() > 0.04));
    // the steps' own bias is of the order of their rate
    estimates.check_head(exact, 1e-3, 0.003);
}

/// 40,000 samples: the standard error of the gradient is 0.15/200.
#[test]
fn pacoh_s_estimate_is_unbiased_at_exact_samples() {
    let method = pacoh(HeadSteps::gradient_descent(0, 0.0), Sampler::Steps);
    let mut room = HeadRoom::default();
    let estimates = Estimates::of(40, |batch, gradient| {
        let samples = exact_samples(1000, COUNT, TEMPERATURE, Key::new(6).index(batch));
        method.estimate(&HEAD, &task(), &samples, &mut room, gradient).unwrap()
    });
    // of W_1 itself, by differences
    let found = estimates.check_head(differences(|centre| w1(&FEATURES, centre)), 0.0, 0.0012);
    for j in 0..COUNT {
        let moved = |by: f64| {
            let mut features = FEATURES;
            features[j] += by;
            w1(&features, CENTRE)
        };
        let expected = (moved(1e-4) - moved(-1e-4)) / 2e-4;
        estimates.check(&format!("feature {j}"), expected, 0.0, |_, gradient| gradient.features[j]);
    }
    let posterior = quadrature(&FEATURES, CENTRE, COUNT, TEMPERATURE);
    estimates.check("risk", posterior.risk(COUNT), 0.0, |terms, _| terms.risk);
    // other temperatures are seen
    for temperature in [0.5 * TEMPERATURE, 2.0 * TEMPERATURE] {
        let other = quadrature(&FEATURES, CENTRE, COUNT, temperature).gradient(|_| 1.0 / COUNT as f64);
        assert!(tolerances_away(found, other) > 4.0, "{temperature}");
    }
}

/// PACOH's own estimator: the logarithm of a mean over draws from the prior, of which one in four counts here.
#[test]
fn the_prior_s_estimate_is_w1_for_many_draws_and_above_it_for_few() {
    let exact = w1(&FEATURES, CENTRE);
    let run = |samples: usize, count: u64| {
        let estimator = PacohEstimator::Prior { samples };
        let method = Pacoh { estimator, ..pacoh(HeadSteps::gradient_descent(0, 0.0), Sampler::Steps) };
        let mut room = HeadRoom::default();
        Estimates::of(count, |seed, gradient| {
            let key = Key::new(7).named("draws").index(samples as u64).index(seed);
            method.task_gradient(&HEAD, &task(), key, &mut room, gradient).unwrap()
        })
    };
    // the biases that are left are of the order of 1/500
    let many = run(2000, 24);
    many.check("W_1", exact, 1e-3, |terms, _| terms.objective);
    many.check_head(differences(|centre| w1(&FEATURES, centre)), 2e-3, 0.004);
    // with ten draws 0.036 too large, with a standard error of 0.002
    let (few, error) = run(10, 4000).of_value(|terms, _| terms.objective);
    assert!(error < 0.003 && few > exact + 0.02 && few < exact + 0.06, "{few} +- {error}, {exact}");
}

/// 40,000 samples of each posterior: the standard error of the gradient is 0.21/200.
#[test]
fn pacmaml_s_estimate_at_exact_samples_is_its_equation_of_w2() {
    let method = pacmaml(HeadSteps::gradient_descent(0, 0.0), Sampler::Steps);
    let mut room = HeadRoom::default();
    let estimates = Estimates::of(40, |batch, gradient| {
        let w_a = exact_samples(1000, SUBSET, ALPHA, Key::new(8).named("alpha").index(batch));
        let w_b = exact_samples(1000, COUNT, TEMPERATURE, Key::new(8).named("beta").index(batch));
        method.estimate(&HEAD, &task(), [&w_a, &w_b], &mut room, gradient).unwrap()
    });
    let ratio = ALPHA / TEMPERATURE;
    let found = estimates.check_head(approximate_w2(SUBSET, ALPHA, TEMPERATURE, ratio), 0.0, 0.0016);
    let posterior = quadrature(&FEATURES, CENTRE, SUBSET, ALPHA);
    let of_all = quadrature(&FEATURES, CENTRE, COUNT, TEMPERATURE);
    for j in 0..COUNT {
        let on_subset = if j < SUBSET { ratio / SUBSET as f64 } else { 0.0 };
        let expected = (1.0 / COUNT as f64 - on_subset) * posterior.feature_slopes[j]
            + on_subset * of_all.feature_slopes[j];
        estimates.check(&format!("feature {j}"), expected, 0.0, |_, gradient| gradient.features[j]);
    }
    // the terms of W_2
    let (risk, subset_risk) = (posterior.risk(COUNT), posterior.risk(SUBSET));
    estimates.check("risk", risk, 0.0, |terms, _| terms.risk);
    estimates.check("risk on S'", subset_risk, 0.0, |terms, _| terms.subset_risk);
    let objective = risk + ratio * (of_all.risk(SUBSET) - subset_risk);
    estimates.check("objective", objective, 0.0, |terms, _| terms.objective);
    // the first term alone, the second with the other sign, or without its factor; temperatures exchanged
    for factor in [0.0, -ratio, 1.0] {
        assert!(tolerances_away(found, approximate_w2(SUBSET, ALPHA, TEMPERATURE, factor)) > 3.0, "{factor}");
    }
    let exchanged = approximate_w2(SUBSET, TEMPERATURE, ALPHA, ratio);
    assert!(tolerances_away(found, exchanged) > 3.0);
    // and it is not the exact gradient
    let exact = differences(|centre| w2(centre, SUBSET, ALPHA, TEMPERATURE));
    assert!(tolerances_away(found, exact) > 1.5);
}

/// Both chains of the method itself, 8,000 particles each: the standard error is 0.21/90 at most.
#[test]
fn pacmaml_with_langevin_particles_samples_both_posteriors() {
    let method = pacmaml(HeadSteps::gradient_descent(500, 0.015), Sampler::Sgld { particles: 250 });
    let mut room = HeadRoom::default();
    let estimates = Estimates::of(32, |seed, gradient| {
        method.task_gradient(&HEAD, &task(), Key::new(9).index(seed), &mut room, gradient).unwrap()
    });
    let ratio = ALPHA / TEMPERATURE;
    let found = estimates.check_head(approximate_w2(SUBSET, ALPHA, TEMPERATURE, ratio), 3e-3, 0.0045);
    let posterior = quadrature(&FEATURES, CENTRE, SUBSET, ALPHA);
    estimates.check("risk", posterior.risk(COUNT), 0.02, |terms, _| terms.risk);
    estimates.check("risk on S'", posterior.risk(SUBSET), 0.02, |terms, _| terms.subset_risk);
    assert!(tolerances_away(found, approximate_w2(SUBSET, TEMPERATURE, ALPHA, ratio)) > 1.5);
    assert!(tolerances_away(found, approximate_w2(SUBSET, ALPHA, TEMPERATURE, -ratio)) > 1.5);
}

/// The numbers of `docs/theory.md`, section 8, for this head.
#[test]
fn the_equation_of_w2_differs_from_its_gradient_by_a_measured_amount() {
    let exact = differences(|centre| w2(centre, SUBSET, ALPHA, TEMPERATURE));
    let size = exact[0].hypot(exact[1]);
    let cosine =
        |other: [f64; 2]| (exact[0] * other[0] + exact[1] * other[1]) / (size * other[0].hypot(other[1]));
    let estimate = approximate_w2(SUBSET, ALPHA, TEMPERATURE, ALPHA / TEMPERATURE);
    let first = approximate_w2(SUBSET, ALPHA, TEMPERATURE, 0.0);
    let measured = [
        distance(estimate, exact) / size,
        cosine(estimate),
        estimate[0].hypot(estimate[1]) / size,
        distance(first, exact) / size,
        cosine(first),
    ];
    for (measured, expected) in measured.iter().zip([0.079, 1.000, 1.079, 0.201, 0.981]) {
        assert!((measured - expected).abs() < 1e-3, "{measured} for {expected}");
    }
    // where S' = S and alpha = beta, both are the gradient of W_1
    let same = approximate_w2(COUNT, TEMPERATURE, TEMPERATURE, 1.0);
    assert!(distance(same, differences(|centre| w1(&FEATURES, centre))) < 1e-7);
    assert!(distance(same, differences(|centre| w2(centre, COUNT, TEMPERATURE, TEMPERATURE))) < 1e-7);
}

#[test]
fn samples_of_other_sizes_are_refused() {
    let method = pacoh(HeadSteps::gradient_descent(0, 0.0), Sampler::Steps);
    for (size, offsets) in [(3, vec![0.0; 6]), (4, Vec::new())] {
        let samples = Chain::at(size, offsets, &HeadSteps::gradient_descent(0, 0.0));
        let refused =
            method.estimate(&HEAD, &task(), &samples, &mut HeadRoom::default(), &mut HeadGradient::default());
        assert!(refused.unwrap_err().to_string().contains("samples: expected at least one, of 4 numbers"));
    }
}
