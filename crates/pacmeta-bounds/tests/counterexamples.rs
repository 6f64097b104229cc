//! Why averages are checked: three small worlds in which a bound with a carelessly averaged psi fails more often than
//! delta allows, while what the crate accepts holds.
//!
//! All share one idea. A rare hypothesis (or prior) of mass epsilon varies a lot and everything else not at all. An
//! average with the power outside sees epsilon times a moment; the proof needs epsilon times a product of moments.

use pacmeta_bounds::{
    AveragedPsi, BoundError, EnvironmentSizes, HyperPriorGap, JointPsi, MetaSettings, Psi, RiskPair,
    SupervisedSettings, TaskTerms, discrete_dirac_kl, theorem_1, theorem_2, theorem_3,
};

const DELTA: f64 = 0.2;
/// No variation at all.
const CONSTANT: Psi = Psi::Bounded { low: 0.0, high: 0.0 };

/// log E exp(t (1/2 - l)) for a fair 0/1 loss.
fn fair_psi(t: f64) -> f64 {
    (t / 2.0).cosh().ln()
}

/// Theorem 1 with two examples. The posterior is the rare hypothesis, whose loss is a fair coin: risk 1/2. With
/// probability 1/4 > delta it shows no error on either example.
#[test]
fn the_power_must_be_inside_the_average_over_hypotheses() {
    let (mass, beta) = (1e-3, 2.0 * 1e4_f64.ln());
    let (masses, log_moments) = ([1.0 - mass, mass], [0.0, fair_psi(beta / 2.0)]);
    let average = |power| AveragedPsi::from_masses(beta / 2.0, power, &masses, &log_moments).unwrap();
    let bound = |power| {
        let settings = SupervisedSettings { beta, delta: DELTA, psi: Psi::Averaged(average(power)) };
        theorem_1(&settings, &TaskTerms::new(0.0, discrete_dirac_kl(1, &masses).unwrap(), 2))
    };
    let valid = bound(2).unwrap();
    assert!(valid.total().value > 0.5);
    let careless = valid.total().value - valid.psi1.value + 2.0 / beta * average(1).value().value;
    assert!(careless < 0.5, "{careless}");
    assert!(matches!(bound(1), Err(BoundError::PsiPower { .. })));
}

/// Theorem 2 with two tasks of one example each. The hyper-posterior is the rare prior, which holds the fair hypothesis:
/// risk 1/2 on every task, so Psi2 = 0 and lambda may be huge. With probability 1/4 > delta no error is seen. Tasks
/// share the prior, so their product belongs inside the expectation over it.
#[test]
fn the_product_over_tasks_must_be_inside_the_average_over_priors() {
    let (mass, beta) = (2e-4, 1e5_f64.ln());
    let (masses, log_moments) = ([1.0 - mass, mass], [0.0, fair_psi(beta)]);
    let per_task = |power| AveragedPsi::from_masses(beta, power, &masses, &log_moments).unwrap();
    let moment: f64 = 1.0 - mass + mass * (2.0 * fair_psi(beta)).exp();
    let tasks = [TaskTerms::new(0.0, 0.0, 1); 2];
    let bound = |example_psi| {
        let settings = MetaSettings { beta, lambda: 1e12, delta: DELTA, example_psi, task_psi: CONSTANT };
        theorem_2(&settings, &tasks, discrete_dirac_kl(1, &masses).unwrap())
    };
    let joint =
        bound(pacmeta_bounds::ExamplePsi::Joint(JointPsi::exact(beta, 2, moment.ln()).unwrap())).unwrap();
    assert!(joint.total().value > 0.5);
    assert!(bound(Psi::Averaged(per_task(2)).into()).unwrap().total().value > 0.5);
    // Power m_i = 1 is what one task would need.
    let careless = joint.total().value - joint.psi1.value + per_task(1).value().value / beta;
    assert!(careless < 0.5, "{careless}");
    assert!(matches!(bound(Psi::Averaged(per_task(1)).into()), Err(BoundError::PsiPower { needed: 2, .. })));
}

/// Theorem 3 with one task. The rare prior has risk 0 or 1 on observed tasks, evenly, and risk 1 on target tasks. With
/// probability 1/2 > delta its observed risk is 0. Where the gap is large psi2 is large too, and the expectation of the
/// product is not the product of the expectations.
#[test]
fn an_averaged_psi2_breaks_theorem_3() {
    let (mass, lambda) = (1e-3, 2.0 * 1e3_f64.ln());
    let masses = [1.0 - mass, mass];
    let pairs = [RiskPair { target: 0.0, observed: 0.0 }, RiskPair { target: 1.0, observed: 0.5 }];
    let gap = HyperPriorGap::from_masses(lambda, &masses, &pairs).unwrap();
    let average = AveragedPsi::from_masses(lambda, 1, &masses, &[0.0, fair_psi(lambda)]).unwrap();
    let bound = |task_psi| {
        let settings =
            MetaSettings { beta: 1e12, lambda, delta: DELTA, example_psi: CONSTANT.into(), task_psi };
        let sizes = EnvironmentSizes { observed: 8.0, target: 2.0 };
        let kl = discrete_dirac_kl(1, &masses).unwrap();
        theorem_3(&settings, &[TaskTerms::new(0.0, 0.0, 8)], kl, sizes, &gap)
    };
    let valid = bound(Psi::Uniform { temperature: lambda, value: fair_psi(lambda) }).unwrap();
    assert!(valid.total().value > 1.0);
    let careless = valid.total().value - valid.psi2.value + average.value().value / lambda;
    assert!(careless < 1.0, "{careless}");
    assert_eq!(bound(Psi::Averaged(average)), Err(BoundError::AveragedTaskPsi));
}
