//! Meta-gradients by finite differences: exact ones of the stated objective, first-order ones with w held constant.

use pacmeta::learners::head::steps::{Adaptation, Chain, Gibbs, HeadSteps, Sampler, StepsRoom};
use pacmeta::methods::SubsetRule;
use pacmeta::methods::heads::{Bmaml, GibbsLearner, HeadMethod, Pacmaml, Pacoh, PacohEstimator, Reptile};
use pacmeta_tensor::Key;

use super::{Case, Examples, LABELS, SHAPE, SUBSET, assert_near, differences, learner, loss, method};

const SVGD: Sampler = Sampler::Svgd { particles: 3 };
const RULES: [SubsetRule; 2] = [SubsetRule::Nested, SubsetRule::Disjoint];

fn examples<'a>(features: &'a [f64], range: std::ops::Range<usize>) -> Examples<'a, f64> {
    let width = SHAPE.features;
    Examples { features: &features[range.start * width..range.end * width], labels: &LABELS[range] }
}

fn judged(rule: SubsetRule) -> std::ops::Range<usize> {
    if rule == SubsetRule::Nested { 0..LABELS.len() } else { SUBSET..LABELS.len() }
}

/// Runs a chain as a method would with this key, from its start or onwards.
fn run(
    learner: &GibbsLearner,
    gibbs: Gibbs,
    head: &[f64],
    examples: Examples<'_, f64>,
    chain: &mut Chain<f64>,
    noise: Key,
) {
    let adaptation = Adaptation {
        method: "test",
        shape: SHAPE,
        head,
        examples,
        gibbs,
        inner: &learner.inner,
        sampler: learner.sampler,
    };
    adaptation.run(chain, noise, None, &mut StepsRoom::default()).unwrap();
}

fn sample(learner: &GibbsLearner, gibbs: Gibbs, head: &[f64], examples: Examples<'_, f64>) -> Chain<f64> {
    let key = Key::new(9);
    let mut chain = Chain::default();
    let size = SHAPE.parameters();
    chain.start(size, learner.sampler, &learner.inner, gibbs.sigma_squared, key.named("start"));
    run(learner, gibbs, head, examples, &mut chain, key.named("noise"));
    chain
}

fn gibbs(learner: &GibbsLearner, temperature: f64) -> Gibbs {
    Gibbs { temperature, sigma_squared: learner.sigma_squared }
}

/// The mean of L^(p + w, .) over particles.
fn risk(head: &[f64], chain: &Chain<f64>, examples: Examples<'_, f64>) -> f64 {
    let particles = chain.iter().len() as f64;
    let moved = |offset: &[f64]| head.iter().zip(offset).map(|(p, w)| p + w).collect::<Vec<_>>();
    chain.iter().map(|offset| loss(&moved(offset), examples, None)).sum::<f64>() / particles
}

/// Checks a method against a function of head and features that has the derivative it claims.
fn check(
    what: &str,
    method: &dyn HeadMethod<f64>,
    case: &Case<f64>,
    tolerance: f64,
    objective: impl Fn(&[f64], &[f64]) -> f64,
) {
    let (terms, gradient) = case.gradient(method);
    let expected = objective(&case.head, &case.features);
    assert!((terms.objective - expected).abs() < 1e-12 * expected.abs(), "{what}: {terms:?}, {expected}");
    let by_head = differences(&case.head, |head| objective(head, &case.features));
    assert_near(&format!("{what}, head"), &gradient.head, &by_head, tolerance);
    let by_features = differences(&case.features, |features| objective(&case.head, features));
    assert_near(&format!("{what}, features"), &gradient.features, &by_features, tolerance);
}

#[test]
fn exact_methods_have_the_derivative_of_their_objective() {
    let case = Case::<f64>::new(4);
    let adagrad = r#"{"steps": 4, "rate": 0.3, "optimiser": "adagrad"}"#;
    let draws = r#""estimator": {"kind": "prior", "samples": 5}"#;
    for json in [
        r#"{"name": "multi-task", "inner": {"steps": 4, "rate": 0.3}}"#.to_owned(),
        r#"{"name": "maml", "inner": {"steps": 4, "rate": 0.3}}"#.to_owned(),
        r#"{"name": "maml", "inner": {"steps": 4, "rate": 0.3}, "split": "disjoint"}"#.to_owned(),
        format!(r#"{{"name": "maml", "inner": {adagrad}}}"#),
        format!(r#"{{"name": "maml", "inner": {adagrad}, "split": "disjoint"}}"#),
        format!(r#"{{"name": "pacoh", "inner": {adagrad}, "alpha": 3, "sigma_squared": 0.5, {draws}}}"#),
    ] {
        let method = method::<f64>(&json);
        check(&json, &*method, &case, 1e-8, |head, features| {
            let moved = Case { head: head.to_vec(), features: features.to_vec(), ..case.clone() };
            moved.gradient(&*method).0.objective
        });
    }
}

#[test]
fn the_prior_estimator_of_pacoh_is_its_formula() {
    let case = Case::<f64>::new(4);
    let learner = learner(HeadSteps::adagrad(3, 0.1), Sampler::Steps);
    let method = Pacoh { learner: learner.clone(), estimator: PacohEstimator::Prior { samples: 5 } };
    let mut draws = Chain::<f64>::default();
    draws.draw(SHAPE.parameters(), 5, learner.sigma_squared, Key::new(9).named("start"));
    let beta = learner.beta.unwrap();
    let mean: f64 = draws
        .iter()
        .map(|offset| {
            let head: Vec<f64> = case.head.iter().zip(offset).map(|(p, w)| p + w).collect();
            (-beta * loss(&head, examples(&case.features, 0..6), None)).exp() / 5.0
        })
        .sum();
    let (terms, _) = case.gradient(&method);
    assert!((terms.objective + mean.ln() / beta).abs() < 1e-13);
}

#[test]
fn bmaml_is_exact_through_steps_accumulators_and_kernel() {
    let case = Case::<f64>::new(5);
    let four = Sampler::Svgd { particles: 4 };
    for inner in [HeadSteps::gradient_descent(3, 0.1), HeadSteps::adagrad(3, 0.2)] {
        for sampler in [Sampler::Steps, SVGD, four, Sampler::Sgld { particles: 2 }] {
            for split in RULES {
                let learner = learner(inner, sampler);
                let chase = |head: &[f64], features: &[f64]| {
                    let at = gibbs(&learner, learner.alpha);
                    sample(&learner, at, head, examples(features, 0..SUBSET))
                };
                let mut leader = chase(&case.head, &case.features);
                let (at, seen) = (gibbs(&learner, 7.0), examples(&case.features, judged(split)));
                run(&learner, at, &case.head, seen, &mut leader, Key::new(9).named("leader"));
                let what = format!("{inner:?} {sampler:?} {split:?}");
                let method = Bmaml { learner: learner.clone(), split };
                check(&what, &method, &case, 1e-7, |head, features| {
                    let chaser = chase(head, features);
                    let pairs = chaser.iter().zip(leader.iter());
                    pairs
                        .flat_map(|(chaser, leader)| {
                            chaser.iter().zip(leader).zip(head.iter().zip(&case.head))
                        })
                        .map(|((chaser, leader), (p, fixed))| ((p + chaser) - (fixed + leader)).powi(2))
                        .sum()
                });
            }
        }
    }
}

#[test]
fn first_order_methods_hold_w_constant() {
    let case = Case::<f64>::new(6);
    let all = 0..LABELS.len();
    for split in RULES {
        let plain = GibbsLearner {
            sigma_squared: f64::INFINITY,
            ..learner(HeadSteps::gradient_descent(4, 0.3), Sampler::Steps)
        };
        let w = sample(&plain, Gibbs::PLAIN, &case.head, examples(&case.features, 0..SUBSET));
        let fomaml = pacmeta::methods::heads::Fomaml { inner: plain.inner, split };
        check("fomaml", &fomaml, &case, 1e-8, |head, features| {
            risk(head, &w, examples(features, judged(split)))
        });
    }
    for (inner, sampler) in [
        (HeadSteps::adagrad(4, 0.2), Sampler::Steps),
        (HeadSteps::adagrad(4, 0.2), SVGD),
        (HeadSteps::gradient_descent(4, 0.05), Sampler::Sgld { particles: 3 }),
    ] {
        let learner = learner(inner, sampler);
        let (alpha, beta) = (learner.alpha, learner.beta.unwrap());
        let w = sample(&learner, gibbs(&learner, beta), &case.head, examples(&case.features, all.clone()));
        let pacoh = Pacoh { learner: learner.clone(), estimator: PacohEstimator::Posterior };
        check("pacoh", &pacoh, &case, 1e-8, |head, features| risk(head, &w, examples(features, all.clone())));

        for split in RULES {
            let subset = 0..SUBSET;
            let seen = examples(&case.features, subset.clone());
            let w_a = sample(&learner, gibbs(&learner, alpha), &case.head, seen);
            let seen = examples(&case.features, judged(split));
            let w_b = sample(&learner, gibbs(&learner, beta), &case.head, seen);
            let pacmaml = Pacmaml { learner: learner.clone(), split };
            check("pacmaml", &pacmaml, &case, 1e-8, |head, features| {
                let subset = examples(features, subset.clone());
                risk(head, &w_a, examples(features, judged(split)))
                    + alpha / beta * (risk(head, &w_b, subset) - risk(head, &w_a, subset))
            });
        }
    }
}

#[test]
fn reptile_pulls_towards_its_optimum() {
    let case = Case::<f64>::new(7);
    // nearly optimal: many steps
    let learner = learner(HeadSteps::gradient_descent(4000, 0.3), Sampler::Steps);
    let product = learner.beta.unwrap() * learner.sigma_squared;
    let all = examples(&case.features, 0..LABELS.len());
    let at = Gibbs { temperature: 1.0, sigma_squared: product };
    let w = sample(&learner, at, &case.head, all);
    let (terms, gradient) = case.gradient(&Reptile { learner });
    let offset = w.iter().next().unwrap();
    let optimum: Vec<f64> = case.head.iter().zip(offset).map(|(p, w)| p + w).collect();
    let pull: Vec<f64> = offset.iter().map(|w| -w / product).collect();
    assert_near("head", &gradient.head, &pull, 1e-12);
    let at_optimum = differences(&optimum, |q| loss(q, all, None));
    assert_near("the loss's gradient at the optimum", &gradient.head, &at_optimum, 1e-7);
    let by_features =
        differences(&case.features, |features| loss(&optimum, examples(features, 0..LABELS.len()), None));
    assert_near("features", &gradient.features, &by_features, 1e-8);
    let distance: f64 = offset.iter().map(|w| w * w).sum();
    assert!((terms.objective - terms.risk - distance / (2.0 * product)).abs() < 1e-14);
    // at the optimum the whole derivative is that of the optimal objective
    let whole = differences(&case.head, |p| {
        let moved = Case { head: p.to_vec(), ..case.clone() };
        let learner = super::learner(HeadSteps::gradient_descent(4000, 0.3), Sampler::Steps);
        moved.gradient(&Reptile { learner }).0.objective
    });
    assert_near("envelope", &gradient.head, &whole, 1e-6);
}
