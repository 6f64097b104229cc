//! The theorems against hand calculations, their special cases, and what they refuse.

use pacmeta_bounds::{
    AveragedPsi, Bound, BoundError, Certainty, CorollaryGap, EnvironmentSizes, Estimate, ExamplePsi,
    HyperPriorGap, JointPsi, MetaSettings, Psi, RiskDifference, RiskPair, SubsampledTask, SupervisedSettings,
    TaskTerms, Theorem, corollary, theorem_1, theorem_2, theorem_3, theorem_4, xi,
};

const UNIT: Psi = Psi::Bounded { low: 0.0, high: 1.0 };
const SIZES: EnvironmentSizes = EnvironmentSizes { observed: 15.0, target: 5.0 };

fn settings() -> MetaSettings {
    MetaSettings { beta: 8.0, lambda: 12.0, delta: 0.1, example_psi: UNIT.into(), task_psi: UNIT }
}

fn tasks() -> Vec<TaskTerms> {
    vec![TaskTerms::new(0.2, 1.0, 10), TaskTerms::new(0.3, 2.5, 20), TaskTerms::new(0.1, 0.4, 15)]
}

fn close(first: f64, second: f64) -> bool {
    (first - second).abs() <= 1e-12 * (1.0 + second.abs())
}

/// Same terms, whatever the theorem's name.
fn same_terms(first: &Bound, second: &Bound) -> bool {
    first.terms() == second.terms() && first.xi == second.xi
}

#[test]
fn theorem_1_is_its_formula() {
    let supervised = SupervisedSettings { beta: 8.0, delta: 0.1, psi: UNIT };
    let bound = theorem_1(&supervised, &TaskTerms::new(0.2, 1.0, 10)).unwrap();
    // 0.2 + (1 + log 10)/8 + (10/8) (0.8^2/8)
    let expected = 0.2 + (1.0 + 10.0_f64.ln()) / 8.0 + 10.0 / 8.0 * 0.64 / 8.0;
    assert!(close(bound.total().value, expected));
    assert!(close(bound.confidence.value, 10.0_f64.ln() / 8.0));
    assert_eq!(bound.certainty(), Certainty::Guaranteed);
    assert_eq!(bound.theorem, Theorem::Supervised);
}

#[test]
fn theorem_2_is_its_formula() {
    let bound = theorem_2(&settings(), &tasks(), 0.7).unwrap();
    let expected_xi = 1.0 / 12.0 + 1.0 / 24.0;
    assert!(close(bound.xi, expected_xi));
    assert!(close(bound.empirical_risk.value, 0.2));
    assert!(close(bound.task_kl.value, 3.9 / 24.0));
    assert!(close(bound.hyper_kl.value, expected_xi * 0.7));
    assert!(close(bound.confidence.value, expected_xi * 20.0_f64.ln()));
    // mean_i (m_i/beta) (beta/m_i)^2/8 = mean_i beta/(8 m_i)
    assert!(close(bound.psi1.value, (1.0 / 10.0 + 1.0 / 20.0 + 1.0 / 15.0) / 3.0));
    // (n/lambda) (lambda/n)^2/8 = lambda/(8 n)
    assert!(close(bound.psi2.value, 0.5));
    assert_eq!(bound.gap.value, 0.0);
    let sum: f64 = bound.terms().iter().map(|(_, term)| term.value).sum();
    assert!(close(bound.total().value, sum));
    let printed = format!("{bound:.3}");
    assert!(printed.contains("task_kl") && printed.contains("1.397"), "{printed}");
}

#[test]
fn theorem_3_without_a_gap_is_theorem_2() {
    let second = theorem_2(&settings(), &tasks(), 0.7).unwrap();
    let third = theorem_3(&settings(), &tasks(), 0.7, SIZES, &HyperPriorGap::identical()).unwrap();
    assert!(same_terms(&second, &third));
    let difference = CorollaryGap::Difference(RiskDifference::identical());
    assert!(same_terms(&second, &corollary(&settings(), &tasks(), 0.7, SIZES, &difference).unwrap()));

    let pairs = [RiskPair { target: 0.5, observed: 0.3 }, RiskPair { target: 0.4, observed: 0.4 }];
    let gap = HyperPriorGap::from_masses(12.0, &[0.5, 0.5], &pairs).unwrap();
    let third = theorem_3(&settings(), &tasks(), 0.7, SIZES, &gap).unwrap();
    let expected = ((2.4_f64.exp() + 1.0) / 2.0).ln() / 12.0;
    assert!(close(third.gap.value, expected));
    assert!(close(third.total().value, second.total().value + expected));
}

#[test]
fn the_corollary_takes_the_smaller_gap_and_pays_for_a_third_event() {
    let pairs = [RiskPair { target: 0.5, observed: 0.3 }, RiskPair { target: 0.4, observed: 0.4 }];
    let hyper_prior = HyperPriorGap::from_masses(12.0, &[0.5, 0.5], &pairs).unwrap();
    for (difference, smaller) in [(0.05, 0.05), (0.4, hyper_prior.value().value)] {
        let difference = RiskDifference::from_risks(difference, 0.0).unwrap();
        let gap = CorollaryGap::Smaller { hyper_prior, difference };
        let bound = corollary(&settings(), &tasks(), 0.7, SIZES, &gap).unwrap();
        assert!(close(bound.gap.value, smaller));
        assert!(close(bound.confidence.value, bound.xi * 30.0_f64.ln()));
        let alone = CorollaryGap::Difference(difference);
        let bound = corollary(&settings(), &tasks(), 0.7, SIZES, &alone).unwrap();
        assert!(close(bound.confidence.value, bound.xi * 20.0_f64.ln()));
    }
}

#[test]
fn theorem_4_on_the_whole_task_is_theorem_2() {
    let whole: Vec<_> =
        tasks().iter().map(|&terms| SubsampledTask { terms, adapt_size: terms.size }).collect();
    let second = theorem_2(&settings(), &tasks(), 0.7).unwrap();
    assert!(same_terms(&second, &theorem_4(&settings(), &whole, 0.7).unwrap()));
}

/// One task, a hyper-prior with one atom (divergence 0) and no variation between tasks (Psi2 = 0): as lambda grows,
/// Theorem 2 becomes Theorem 1, except that the union bound has bought an event that is not needed: log(2/delta)
/// instead of log(1/delta).
#[test]
fn one_task_and_one_prior_give_theorem_1_with_half_of_delta() {
    let task = TaskTerms::new(0.2, 1.0, 10);
    let none = Psi::Bounded { low: 0.3, high: 0.3 };
    let meta = MetaSettings { lambda: 1e15, task_psi: none, ..settings() };
    let second = theorem_2(&meta, &[task], pacmeta_bounds::discrete_dirac_kl(0, &[1.0]).unwrap()).unwrap();
    let half = theorem_1(&SupervisedSettings { beta: 8.0, delta: 0.05, psi: UNIT }, &task).unwrap();
    assert!(close(second.total().value, half.total().value));
    let first = theorem_1(&SupervisedSettings { beta: 8.0, delta: 0.1, psi: UNIT }, &task).unwrap();
    assert!(close(second.total().value - first.total().value, 2.0_f64.ln() / 8.0));
}

#[test]
fn estimates_make_the_bound_an_estimate() {
    let mut measured = tasks();
    measured[1].empirical_risk = Estimate::monte_carlo(0.3, 0.06);
    let bound = theorem_2(&settings(), &measured, Estimate::monte_carlo(0.7, 0.08)).unwrap();
    // 0.06/3 from the risk, xi 0.08 = 0.01 from the divergence
    assert!(close(bound.standard_error().unwrap(), 0.03));
    assert!(matches!(bound.certainty(), Certainty::Estimated { .. }));
    assert_eq!(bound.total().value, theorem_2(&settings(), &tasks(), 0.7).unwrap().total().value);
    assert!(bound.to_string().contains("estimate"));
    assert!(!theorem_2(&settings(), &tasks(), 0.7).unwrap().to_string().contains("estimate"));
}

#[test]
fn averages_are_accepted_with_the_right_power_only() {
    let task = TaskTerms::new(0.2, 1.0, 10);
    let moments = [0.01, 0.05, 0.02];
    let average =
        |t: f64, power: usize| Psi::Averaged(AveragedPsi::from_log_moments(t, power, &moments).unwrap());
    let supervised = |psi| theorem_1(&SupervisedSettings { beta: 8.0, delta: 0.1, psi }, &task);
    let bound = supervised(average(0.8, 10)).unwrap();
    // (m/beta) (1/m) log mean exp(m psi) = (1/beta) log mean exp(m psi)
    let direct = ((0.1_f64.exp() + 0.5_f64.exp() + 0.2_f64.exp()) / 3.0).ln() / 8.0;
    assert!(close(bound.psi1.value, direct));
    assert!(bound.standard_error().is_some());
    assert!(matches!(supervised(average(0.8, 9)), Err(BoundError::PsiPower { needed: 10, given: 9, .. })));
    assert!(matches!(supervised(average(0.7, 10)), Err(BoundError::PsiTemperature { .. })));

    // Two tasks of ten examples share the prior: power 20.
    let pair = [task, task];
    let meta = |example_psi: ExamplePsi, task_psi| {
        theorem_2(&MetaSettings { example_psi, task_psi, ..settings() }, &pair, 0.1)
    };
    assert!(matches!(meta(average(0.8, 10).into(), UNIT), Err(BoundError::PsiPower { needed: 20, .. })));
    let both = meta(average(0.8, 20).into(), UNIT).unwrap();
    let listed = meta(ExamplePsi::PerTask(vec![average(0.8, 20); 2]), UNIT).unwrap();
    assert!(close(both.psi1.value, listed.psi1.value));
    assert!(matches!(meta(ExamplePsi::PerTask(vec![UNIT]), UNIT), Err(BoundError::LengthMismatch { .. })));
    let joint = ExamplePsi::Joint(JointPsi::exact(8.0, 2, 0.32).unwrap());
    assert!(close(meta(joint, UNIT).unwrap().psi1.value, 0.02));
    let other = ExamplePsi::Joint(JointPsi::exact(8.0, 3, 0.32).unwrap());
    assert!(matches!(meta(other, UNIT), Err(BoundError::JointPsiMismatch { .. })));

    // Psi2 at lambda/n = 6 with power 2.
    assert!(meta(UNIT.into(), average(6.0, 2)).is_ok());
    assert!(matches!(meta(UNIT.into(), average(6.0, 1)), Err(BoundError::PsiPower { needed: 2, .. })));
}

#[test]
fn an_averaged_psi2_is_refused_where_the_expectation_was_split() {
    let average = Psi::Averaged(AveragedPsi::from_log_moments(4.0, 3, &[0.1, 0.2]).unwrap());
    let averaged = MetaSettings { task_psi: average, ..settings() };
    let identical = HyperPriorGap::identical();
    let refused = theorem_3(&averaged, &tasks(), 0.7, SIZES, &identical).unwrap_err();
    assert_eq!(refused, BoundError::AveragedTaskPsi);
    assert!(refused.to_string().contains("every prior"));
    let difference = RiskDifference::from_risks(0.4, 0.3).unwrap();
    let both = CorollaryGap::Smaller { hyper_prior: identical, difference };
    assert_eq!(corollary(&averaged, &tasks(), 0.7, SIZES, &both), Err(BoundError::AveragedTaskPsi));
    // Theorem 2's argument on the observed environment splits nothing.
    let alone = corollary(&averaged, &tasks(), 0.7, SIZES, &CorollaryGap::Difference(difference)).unwrap();
    assert!(matches!(alone.certainty(), Certainty::Estimated { .. }));
    assert!(theorem_2(&averaged, &tasks(), 0.7).is_ok());
}

#[test]
fn meaningless_input_is_refused_with_its_reason() {
    let refused = |change: fn(&mut MetaSettings)| {
        let mut changed = settings();
        change(&mut changed);
        theorem_2(&changed, &tasks(), 0.7).unwrap_err()
    };
    for delta in [0.0, -0.1, 1.1, f64::NAN] {
        let changed = MetaSettings { delta, ..settings() };
        assert!(matches!(theorem_2(&changed, &tasks(), 0.7), Err(BoundError::Confidence { .. })));
    }
    assert!(theorem_2(&MetaSettings { delta: 1.0, ..settings() }, &tasks(), 0.7).is_ok());
    assert!(matches!(refused(|s| s.beta = 0.0), BoundError::NotPositive { what: "beta", .. }));
    assert!(matches!(refused(|s| s.beta = f64::INFINITY), BoundError::NotPositive { what: "beta", .. }));
    assert!(matches!(refused(|s| s.lambda = -1.0), BoundError::NotPositive { what: "lambda", .. }));
    assert!(matches!(refused(|s| s.lambda = f64::NAN), BoundError::NotPositive { what: "lambda", .. }));
    assert!(matches!(
        refused(|s| s.task_psi = Psi::SubGamma { variance: 1.0, scale: 0.25 }),
        BoundError::SubGammaRange { .. }
    ));
    assert_eq!(theorem_2(&settings(), &[], 0.7), Err(BoundError::NoTasks));
    assert_eq!(xi(1.0, 1.0, 0), Err(BoundError::NoTasks));

    let with = |task| theorem_2(&settings(), &[tasks()[0], task], 0.7).unwrap_err();
    assert_eq!(with(TaskTerms::new(0.1, 0.1, 0)), BoundError::EmptyTask { task: 1 });
    assert!(matches!(with(TaskTerms::new(f64::NAN, 0.1, 5)), BoundError::NotFinite { .. }));
    assert!(matches!(with(TaskTerms::new(0.1, -0.1, 5)), BoundError::Negative { .. }));
    assert!(matches!(with(TaskTerms::new(0.1, f64::NAN, 5)), BoundError::Negative { .. }));
    assert!(matches!(with(TaskTerms::new(0.1, f64::INFINITY, 5)), BoundError::InfiniteKl { .. }));
    let wrong_error = Estimate::monte_carlo(0.1, -1.0);
    assert!(matches!(with(TaskTerms::new(wrong_error, 0.1, 5)), BoundError::Negative { .. }));

    let infinite = theorem_2(&settings(), &tasks(), f64::INFINITY).unwrap_err();
    assert!(infinite.to_string().contains("Gaussian") && infinite.to_string().contains("objective"));
    assert!(matches!(theorem_2(&settings(), &tasks(), -1e-9), Err(BoundError::Negative { .. })));

    let subset = [SubsampledTask { terms: tasks()[0], adapt_size: 11 }];
    let too_large = BoundError::SubsetTooLarge { task: 0, adapt_size: 11, size: 10 };
    assert_eq!(theorem_4(&settings(), &subset, 0.7), Err(too_large));

    let small = EnvironmentSizes { observed: 4.0, target: 5.0 };
    let identical = HyperPriorGap::identical();
    let error = theorem_3(&settings(), &tasks(), 0.7, small, &identical).unwrap_err();
    assert_eq!(error, BoundError::ObservedSmallerThanTarget { observed: 4.0, target: 5.0 });
    let pairs = [RiskPair { target: 0.5, observed: 0.3 }; 2];
    let gap = HyperPriorGap::from_draws(11.0, &pairs).unwrap();
    let error = theorem_3(&settings(), &tasks(), 0.7, SIZES, &gap).unwrap_err();
    assert_eq!(error, BoundError::GapLambda { given: 11.0, lambda: 12.0 });
}
