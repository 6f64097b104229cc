//! No input makes a function panic, and no accepted input gives a bound that is not a number.

use pacmeta_bounds::{
    AveragedPsi, Bound, BoundError, CorollaryGap, EnvironmentSizes, Estimate, ExamplePsi, HyperPriorGap,
    JointPsi, MetaSettings, PacmamlTask, PacohTask, Psi, RiskDifference, RiskPair, SubsampledTask,
    SupervisedSettings, TaskTerms, corollary, diagonal_gaussian_kl, discrete_dirac_kl, discrete_kl,
    gaussian_hyper_kl, gibbs_kl, log_mean_exp_estimate, log_moment_from_losses, log_weighted_mean_exp,
    pacmaml_objective, pacoh_objective, theorem_1, theorem_2, theorem_3, theorem_4,
};
use proptest::prelude::*;

/// Any bit pattern, the awkward values, and ordinary numbers.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            1e308
        ]),
        -2.0..2.0_f64,
        0.0..100.0_f64,
    ]
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(number(), 0..6)
}

fn estimate() -> impl Strategy<Value = Estimate> {
    (number(), prop::option::of(number()))
        .prop_map(|(value, standard_error)| Estimate { value, standard_error })
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0..20_usize, Just(usize::MAX)]
}

fn psi() -> impl Strategy<Value = Psi> {
    prop_oneof![
        (number(), number()).prop_map(|(low, high)| Psi::Bounded { low, high }),
        number().prop_map(|variance| Psi::SubGaussian { variance }),
        (number(), number()).prop_map(|(variance, scale)| Psi::SubGamma { variance, scale }),
        number().prop_map(|second_moment| Psi::NonNegative { second_moment }),
        (number(), number()).prop_map(|(temperature, value)| Psi::Uniform { temperature, value }),
        (number(), size(), numbers()).prop_filter_map("refused", |(temperature, power, values)| {
            AveragedPsi::from_log_moments(temperature, power, &values).ok().map(Psi::Averaged)
        }),
    ]
}

fn example_psi() -> impl Strategy<Value = ExamplePsi> {
    prop_oneof![
        psi().prop_map(ExamplePsi::Shared),
        prop::collection::vec(psi(), 0..4).prop_map(ExamplePsi::PerTask),
        (number(), 0..4_usize, numbers()).prop_filter_map("refused", |(beta, tasks, sums)| {
            JointPsi::from_draws(beta, tasks, &sums).ok().map(ExamplePsi::Joint)
        }),
    ]
}

fn task() -> impl Strategy<Value = TaskTerms> {
    (estimate(), estimate(), size()).prop_map(|(risk, kl, size)| TaskTerms::new(risk, kl, size))
}

/// Refused, or finite in every term.
fn finite_or_refused(result: Result<Bound, BoundError>) -> Result<(), TestCaseError> {
    match result {
        Err(error) => prop_assert!(!error.to_string().is_empty()),
        Ok(bound) => {
            prop_assert!(bound.total().value.is_finite());
            for (name, term) in bound.terms() {
                prop_assert!(term.value.is_finite(), "{name}");
            }
            prop_assert!(
                bound.task_kl.value >= 0.0 && bound.hyper_kl.value >= 0.0 && bound.confidence.value >= 0.0
            );
            prop_assert!(!bound.to_string().is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn theorems(
        (beta, lambda, delta) in (number(), number(), prop_oneof![number(), 0.0..1.0_f64]),
        (psi, example_psi, task_psi) in (psi(), example_psi(), psi()),
        tasks in prop::collection::vec(task(), 0..4),
        adapt_sizes in prop::collection::vec(size(), 4),
        hyper_kl in estimate(),
        (observed, target) in (number(), number()),
        (gap_lambda, risks) in (number(), prop::collection::vec((number(), number()), 0..4)),
    ) {
        let settings = MetaSettings { beta, lambda, delta, example_psi, task_psi };
        if let Some(first) = tasks.first() {
            finite_or_refused(theorem_1(&SupervisedSettings { beta, delta, psi }, first))?;
        }
        finite_or_refused(theorem_2(&settings, &tasks, hyper_kl))?;
        let subsampled: Vec<_> = tasks
            .iter()
            .zip(adapt_sizes)
            .map(|(&terms, adapt_size)| SubsampledTask { terms, adapt_size })
            .collect();
        finite_or_refused(theorem_4(&settings, &subsampled, hyper_kl))?;
        let sizes = EnvironmentSizes { observed, target };
        let pairs: Vec<_> = risks.iter().map(|&(target, observed)| RiskPair { target, observed }).collect();
        let hyper_prior = HyperPriorGap::from_draws(gap_lambda, &pairs)
            .or_else(|_| HyperPriorGap::from_draws(lambda, &pairs))
            .unwrap_or(HyperPriorGap::identical());
        let difference = RiskDifference::from_pairs(&pairs).unwrap_or(RiskDifference::identical());
        finite_or_refused(theorem_3(&settings, &tasks, hyper_kl, sizes, &hyper_prior))?;
        for gap in [CorollaryGap::Difference(difference), CorollaryGap::Smaller { hyper_prior, difference }] {
            finite_or_refused(corollary(&settings, &tasks, hyper_kl, sizes, &gap))?;
        }
    }

    /// The same with numbers that are mostly in range, so that bounds are reached and not only refusals.
    #[test]
    fn theorems_in_range(
        (beta, lambda, delta) in (1e-3..1e3_f64, 1e-3..1e3_f64, 1e-6..1.0_f64),
        variance in 0.0..10.0_f64,
        tasks in prop::collection::vec((-1.0..10.0_f64, 0.0..50.0_f64, 1..100_usize), 1..5),
        hyper_kl in 0.0..100.0_f64,
    ) {
        let psi = Psi::SubGaussian { variance };
        let settings = MetaSettings { beta, lambda, delta, example_psi: psi.into(), task_psi: psi };
        let tasks: Vec<_> = tasks.into_iter().map(|(risk, kl, size)| TaskTerms::new(risk, kl, size)).collect();
        let bound = theorem_2(&settings, &tasks, hyper_kl).expect("in range");
        prop_assert!(bound.total().value >= bound.empirical_risk.value);
        // Monotone in the divergences and in the confidence.
        let more = theorem_2(&settings, &tasks, hyper_kl + 1.0).expect("in range");
        prop_assert!((more.total().value - bound.total().value - bound.xi).abs() < 1e-6 * (1.0 + more.total().value.abs()));
        let surer = theorem_2(&MetaSettings { delta: delta / 2.0, ..settings }, &tasks, hyper_kl).expect("in range");
        prop_assert!(surer.total().value > bound.total().value);
    }

    #[test]
    fn divergences_and_estimators(
        (first, second, third, fourth) in (numbers(), numbers(), numbers(), numbers()),
        (a, b, c) in (number(), number(), number()),
        (atom, power) in (size(), size()),
    ) {
        for result in [
            gaussian_hyper_kl(&first, a, b),
            diagonal_gaussian_kl(&first, &second, &third, &fourth),
            discrete_kl(&first, &second),
            discrete_dirac_kl(atom, &first),
            gibbs_kl(a, b, c),
        ] {
            prop_assert!(result.is_err() || result.is_ok_and(|value| value >= 0.0 && value.is_finite()));
        }
        if let Ok((estimate, effective)) = log_mean_exp_estimate(&first) {
            prop_assert!(estimate.value.is_finite() && effective >= 1.0 - 1e-9);
        }
        if let Ok(value) = log_weighted_mean_exp(&first, &second) {
            prop_assert!(value.is_finite());
        }
        if let Ok(estimate) = log_moment_from_losses(a, &first) {
            prop_assert!(estimate.value.is_finite());
        }
        if let Ok(average) = AveragedPsi::from_masses(a, power, &first, &second) {
            prop_assert!(average.value().value.is_finite());
        }
        let pacoh: Vec<_> = first.iter().map(|&log_partition| PacohTask { log_partition }).collect();
        let pacmaml: Vec<_> = first
            .iter()
            .map(|&log_partition| PacmamlTask { log_partition, risk: b, adapt_risk: c })
            .collect();
        for objective in [pacoh_objective(a, b, &pacoh, c, a), pacmaml_objective(a, b, c, &pacmaml, c, a)] {
            prop_assert!(objective.is_err() || objective.is_ok_and(|objective| objective.total().is_finite()));
        }
    }
}
