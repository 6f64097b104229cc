//! One battery for every method: the gradient is that of the stated objective, special cases coincide, the order of
//! tasks does not matter, the same key gives the same bits, extreme settings give an error or a finite number.

#![allow(clippy::unwrap_used)] // a failure in a helper is a failed test

use pacmeta::Task;
use pacmeta::environments::{Sinusoid, observed_tasks};
use pacmeta::learners::InnerSteps;
use pacmeta::learners::lbfgs::Lbfgs;
use pacmeta::methods::{
    Batch, BatchSampler, Member, MethodSettings, Pacmaml, Pacoh, Resample, SubsetRule, SubsetSize,
};
use pacmeta::priors::{GaussianProcessSpec, Kernel, NetworkSpec, PriorSpec};
use pacmeta::standardisation::Standardisation;
use pacmeta_tensor::mlp::parameter_count;
use pacmeta_tensor::{Key, Parameters};

fn gp(kernel: Kernel) -> PriorSpec {
    PriorSpec::GaussianProcess(GaussianProcessSpec {
        dimension: 1,
        mean_hidden: vec![9, 6],
        feature_hidden: vec![5, 10],
        feature_dimension: 3,
        kernel,
    })
}

fn network() -> PriorSpec {
    PriorSpec::Network(NetworkSpec { dimension: 1, hidden: vec![9, 6] })
}

fn tasks() -> Vec<Task> {
    let tasks = observed_tasks(&Sinusoid, 4, 12, Key::new(5)).unwrap();
    let standardisation = Standardisation::fit(&tasks).unwrap();
    tasks.iter().map(|task| standardisation.apply(task).unwrap()).collect()
}

fn members(rule: SubsetRule) -> Vec<Member> {
    let subset = Some(SubsetSize::Count(4));
    let sampler = BatchSampler { size: 3, subset, rule, resample: Resample::EachIteration, key: Key::new(8) };
    let mut members = Vec::new();
    sampler.draw(&tasks(), 11, &mut members);
    members
}

/// Every method with settings that are neither trivial nor extreme, and whether its gradient is the derivative of its
/// objective (FOMAML's is not, by design; Reptile's is when q is optimal).
fn registry() -> Vec<(MethodSettings, PriorSpec, bool)> {
    let inner = InnerSteps { steps: 3, rate: 0.05 };
    vec![
        (MethodSettings::Pacoh { beta: 120.0 }, gp(Kernel::Paper), true),
        (MethodSettings::Pacoh { beta: 120.0 }, gp(Kernel::Learned), true),
        (MethodSettings::PacohMap, gp(Kernel::Learned), true),
        (MethodSettings::Pacmaml { alpha: 60.0, beta: 300.0 }, gp(Kernel::Paper), true),
        (MethodSettings::Pacmaml { alpha: 60.0, beta: 300.0 }, gp(Kernel::Learned), true),
        (MethodSettings::MultiTask, network(), true),
        (MethodSettings::Maml { inner }, network(), true),
        (MethodSettings::Fomaml { inner }, network(), false),
        (MethodSettings::Reptile { beta_sigma_squared: 2.0, optimiser: Lbfgs::CONVERGED }, network(), true),
    ]
}

/// Parameters away from the start, so that no part of the gradient is small by accident.
fn parameters(prior: &PriorSpec) -> Parameters<f64> {
    let mut parameters = prior.initialise(Key::new(2)).unwrap();
    let mut generator = Key::new(3).generator();
    parameters.values_mut().iter_mut().for_each(|value| *value = 1.7 * *value + 0.1 * generator.normal());
    parameters
}

fn objective(
    settings: &MethodSettings,
    prior: &PriorSpec,
    values: &[f64],
    members: &[Member],
) -> (f64, Vec<f64>) {
    let mut gradient = vec![0.0; values.len()];
    let tasks = tasks();
    let batch = Batch { tasks: &tasks, members };
    let terms = settings.build(prior).unwrap().meta_gradient(values, &batch, &mut gradient).unwrap();
    (terms.objective, gradient)
}

#[test]
fn every_name_is_in_the_registry() {
    let mut names: Vec<_> =
        registry().iter().map(|(settings, prior, _)| settings.build(prior).unwrap().name()).collect();
    names.sort_unstable();
    names.dedup();
    let mut expected = MethodSettings::NAMES.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn gradients_are_those_of_the_stated_objectives() {
    for (settings, prior, exact) in registry() {
        for rule in [SubsetRule::Nested, SubsetRule::Disjoint] {
            let members = members(rule);
            let start = parameters(&prior);
            let (_, gradient) = objective(&settings, &prior, start.values(), &members);
            let mut largest_difference: f64 = 0.0;
            let scale = gradient.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
            for index in 0..gradient.len() {
                let step = 1e-5;
                let mut moved = start.values().to_vec();
                moved[index] += step;
                let up = objective(&settings, &prior, &moved, &members).0;
                moved[index] -= 2.0 * step;
                let down = objective(&settings, &prior, &moved, &members).0;
                largest_difference =
                    largest_difference.max((gradient[index] - (up - down) / (2.0 * step)).abs() / scale);
            }
            if exact {
                assert!(largest_difference < 2e-6, "{settings:?} {rule:?}: {largest_difference:e}");
            } else {
                assert!(largest_difference > 1e-3, "{settings:?}: first order should differ from exact");
            }
        }
    }
}

#[test]
fn order_of_tasks_does_not_matter_and_the_same_input_gives_the_same_bits() {
    for (settings, prior, _) in registry() {
        let start = parameters(&prior);
        let members = members(SubsetRule::Nested);
        let (value, gradient) = objective(&settings, &prior, start.values(), &members);
        let again = objective(&settings, &prior, start.values(), &members);
        assert_eq!((value.to_bits(), &gradient), (again.0.to_bits(), &again.1));
        let reversed: Vec<_> = members.iter().rev().cloned().collect();
        let (other, other_gradient) = objective(&settings, &prior, start.values(), &reversed);
        assert!((value - other).abs() < 1e-12 * (1.0 + value.abs()), "{settings:?}");
        let scale = gradient.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        for (a, b) in gradient.iter().zip(&other_gradient) {
            assert!((a - b).abs() < 1e-10 * scale, "{settings:?}");
        }
    }
}

#[test]
fn a_method_keeps_nothing_from_one_batch_to_the_next() {
    for (settings, prior, _) in registry() {
        let start = parameters(&prior);
        let tasks = tasks();
        let mut method = settings.build(&prior).unwrap();
        let mut gradient = vec![0.0; start.values().len()];
        let large = [members(SubsetRule::Nested), members(SubsetRule::Disjoint)].concat();
        method
            .meta_gradient(start.values(), &Batch { tasks: &tasks, members: &large }, &mut gradient)
            .unwrap();
        let members = members(SubsetRule::Disjoint);
        gradient.fill(0.0);
        let terms = method
            .meta_gradient(start.values(), &Batch { tasks: &tasks, members: &members }, &mut gradient)
            .unwrap();
        let fresh = objective(&settings, &prior, start.values(), &members);
        assert_eq!((terms.objective, gradient), fresh, "{settings:?}");
    }
}

#[test]
fn pacmaml_with_all_examples_and_equal_temperatures_is_pacoh() {
    let prior = gp(Kernel::Paper);
    let start = parameters(&prior);
    let all: Vec<Member> = members(SubsetRule::Nested)
        .into_iter()
        .map(|member| Member { adapt: (0..12).collect(), ..member })
        .collect();
    let pacoh = objective(&MethodSettings::Pacoh { beta: 80.0 }, &prior, start.values(), &all);
    let pacmaml =
        objective(&MethodSettings::Pacmaml { alpha: 80.0, beta: 80.0 }, &prior, start.values(), &all);
    assert!((pacoh.0 - pacmaml.0).abs() < 1e-12 * pacoh.0.abs());
    for (a, b) in pacoh.1.iter().zip(&pacmaml.1) {
        assert!((a - b).abs() < 1e-10);
    }
}

#[test]
fn without_steps_maml_and_fomaml_are_multi_task() {
    let prior = network();
    let start = parameters(&prior);
    let members = members(SubsetRule::Nested);
    let expected = objective(&MethodSettings::MultiTask, &prior, start.values(), &members);
    let inner = InnerSteps { steps: 0, rate: 0.1 };
    assert_eq!(expected, objective(&MethodSettings::Maml { inner }, &prior, start.values(), &members));
    assert_eq!(expected, objective(&MethodSettings::Fomaml { inner }, &prior, start.values(), &members));
}

#[test]
fn reptile_at_the_optimum_has_the_gradient_of_the_loss_there() {
    // (p - q*)/(beta sigma^2) = grad L^(q*, S): compare with FOMAML-like gradient at q* by a second, shorter search.
    let prior = network();
    let start = parameters(&prior);
    let members = &members(SubsetRule::Nested)[..1];
    let settings = |optimiser| MethodSettings::Reptile { beta_sigma_squared: 0.5, optimiser };
    let (_, pull) = objective(&settings(Lbfgs::CONVERGED), &prior, start.values(), members);
    let optimum: Vec<f64> = start.values().iter().zip(&pull).map(|(p, g)| p - 0.5 * g).collect();
    let (_, gradient) = objective(&MethodSettings::MultiTask, &prior, &optimum, members);
    for (a, b) in pull.iter().zip(&gradient) {
        assert!((a - b).abs() < 1e-5, "{a} against {b}");
    }
}

#[test]
fn the_kl_identity_and_the_definition_of_w_hold() {
    let prior = gp(Kernel::Paper);
    let PriorSpec::GaussianProcess(spec) = &prior else { unreachable!() };
    let start = parameters(&prior);
    let (tasks, members) = (tasks(), members(SubsetRule::Nested));
    let batch = Batch { tasks: &tasks, members: &members };
    for values in (Pacmaml { alpha: 70.0, beta: 200.0 }).on(spec).tasks(start.values(), &batch).unwrap() {
        assert!((values.w - (values.risk + values.kl / 200.0)).abs() < 1e-12 * values.w.abs().max(1.0));
        assert!(values.kl > 0.0 && values.risk > 0.0 && values.risk_adapt.unwrap() > 0.0);
    }
    for values in (Pacoh { beta: 200.0 }).on(spec).tasks(start.values(), &batch).unwrap() {
        assert!((values.w - (values.risk + values.kl / 200.0)).abs() < 1e-12 * values.w.abs().max(1.0));
    }
}

/// In the two limits the objectives are closed forms: as the temperature goes to 0 the posterior is the prior, and W is its
/// risk. In between, a number that is given is finite, and what is not given is refused with the task.
#[test]
fn extreme_temperatures_give_an_error_or_the_limit() {
    let tasks = tasks();
    let members = members(SubsetRule::Nested);
    let batch = Batch { tasks: &tasks, members: &members };
    let prior = gp(Kernel::Paper);
    let start = parameters(&prior);
    let PriorSpec::GaussianProcess(spec) = &prior else { unreachable!() };
    // E_{h ~ P} L^(h, S) = mean (y - mu)^2 + k(x, x); the mean network alone is a network prior.
    let means = NetworkSpec { dimension: 1, hidden: spec.mean_hidden.clone() };
    let count = parameter_count(&means.widths());
    let network = PriorSpec::Network(means);
    let (squared, _) = objective(&MethodSettings::MultiTask, &network, &start.values()[..count], &members);
    let prior_risk = squared + 0.5;
    let mut refused = 0;
    for exponent in (-300..=300).step_by(25) {
        let temperature = 10.0_f64.powi(exponent);
        for settings in [
            MethodSettings::Pacoh { beta: temperature },
            MethodSettings::Pacmaml { alpha: temperature, beta: 1.0 },
            MethodSettings::Pacmaml { alpha: 1.0, beta: temperature },
        ] {
            let mut gradient = vec![0.0; start.values().len()];
            match settings.build(&prior).unwrap().meta_gradient(start.values(), &batch, &mut gradient) {
                Ok(terms) => {
                    assert!(
                        terms.objective.is_finite() && gradient.iter().all(|value| value.is_finite()),
                        "{settings:?}: {terms:?}"
                    );
                    let prior_is_kept = matches!(settings,
                        MethodSettings::Pacoh { beta: low } | MethodSettings::Pacmaml { alpha: low, .. } if low <= 1e-25);
                    let error = (terms.objective - prior_risk).abs();
                    assert!(
                        !prior_is_kept || error < 1e-9 * prior_risk,
                        "{settings:?}: {terms:?}, {prior_risk}"
                    );
                }
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().contains("task `"), "{error}");
                }
            }
        }
    }
    assert!((26..60).contains(&refused), "{refused} of 75 are refused");
}
