use pacmeta_tensor::Key;

use super::*;

/// A table drawn from the model of the module documentation, with mean 0.
fn draw(key: Key, sets: usize, tasks: usize, deviations: [f64; 3]) -> Vec<Vec<f64>> {
    let mut generator = key.generator();
    let task_effects: Vec<f64> = (0..tasks).map(|_| deviations[1] * generator.normal()).collect();
    (0..sets)
        .map(|_| {
            let set_effect = deviations[0] * generator.normal();
            task_effects
                .iter()
                .map(|effect| set_effect + effect + deviations[2] * generator.normal())
                .collect()
        })
        .collect()
}

#[test]
fn a_summary_is_the_textbook_mean_and_standard_error() {
    let summary = Summary::of(&[2.0, 4.0, 4.0, 6.0]);
    assert_eq!(summary.mean, Some(4.0));
    // Deviations -2, 0, 0, 2: variance 8/3, standard error sqrt(8/3/4).
    assert!((summary.standard_error.unwrap() - (2.0_f64 / 3.0).sqrt()).abs() < 1e-15);
    assert_eq!((summary.observations, summary.failed), (4, 0));
}

#[test]
fn failed_values_are_counted_and_never_averaged() {
    let summary = Summary::of(&[f64::NAN, 1.0, f64::INFINITY, 3.0]);
    assert_eq!((summary.mean, summary.observations, summary.failed), (Some(2.0), 2, 2));
    let none = Summary::of(&[f64::NAN]);
    assert_eq!((none.mean, none.standard_error, none.observations, none.failed), (None, None, 0, 1));
    assert_eq!(Summary::of(&[5.0]).standard_error, None);
    assert_eq!(Summary::of(&[]), Summary { mean: None, standard_error: None, observations: 0, failed: 0 });
}

#[test]
fn a_summary_survives_writing_and_reading() {
    for values in [&[1.0, 2.5][..], &[f64::NAN], &[1.0]] {
        let summary = Summary::of(values);
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }
}

#[test]
fn the_crossed_standard_error_is_the_stated_formula() {
    // Set means 1 and 3, task means 1 and 3, grand mean 2, residuals all +-1/2.
    let values = vec![vec![0.5, 1.5], vec![1.5, 4.5]];
    let estimate = crossed(&values).unwrap();
    // MS_A = 2 * 2 = 4, MS_B = 4, MS_E = 4 * 0.25 / 1 = 1: (4 + 4 - 1)/4.
    assert_eq!(estimate.mean, Some(2.0));
    assert!((estimate.standard_error.unwrap().powi(2) - 7.0 / 4.0).abs() < 1e-15);
    // 49 / (16 + 16 + 1) is above 1, the freedom of the scarcer factor, and below 2.
    assert!((estimate.degrees_of_freedom.unwrap() - 49.0 / 33.0).abs() < 1e-15);
    assert_eq!((estimate.sets, estimate.tasks, estimate.observations()), (2, 2, 4));
}

#[test]
fn negative_variances_are_set_to_zero() {
    // Set and task means are all 0: MS_A = MS_B = 0, MS_E = 4. The naive formula would give -1.
    let estimate = crossed(&[vec![1.0, -1.0], vec![-1.0, 1.0]]).unwrap();
    assert_eq!(estimate.standard_error, Some(1.0));
    assert_eq!(estimate.mean, Some(0.0));
    assert_eq!(estimate.p_below(), Some(0.5));
}

#[test]
fn one_column_is_a_sample_of_sets_and_one_set_has_no_standard_error() {
    let column = crossed(&[vec![2.0], vec![4.0], vec![4.0], vec![6.0]]).unwrap();
    let summary = Summary::of(&[2.0, 4.0, 4.0, 6.0]);
    assert_eq!((column.mean, column.standard_error), (summary.mean, summary.standard_error));
    assert_eq!(column.degrees_of_freedom, Some(3.0));
    let row = crossed(&[vec![2.0, 4.0, 4.0, 6.0]]).unwrap();
    assert_eq!((row.mean, row.standard_error, row.interval(0.95)), (Some(4.0), None, None));
}

#[test]
fn a_set_with_a_failed_value_is_left_out_and_counted() {
    let estimate = crossed(&[vec![1.0, 2.0], vec![f64::NAN, f64::INFINITY], vec![3.0, 4.0]]).unwrap();
    assert_eq!((estimate.sets, estimate.failed, estimate.mean), (2, 2, Some(2.5)));
    let nothing = crossed(&[vec![f64::NAN]]).unwrap();
    assert_eq!((nothing.sets, nothing.mean, nothing.p_above()), (0, None, None));
}

#[test]
fn tables_that_are_no_tables_are_refused() {
    assert!(crossed(&[]).unwrap_err().is_input());
    assert!(crossed(&[vec![]]).unwrap_err().is_input());
    let message = crossed(&[vec![1.0, 2.0], vec![1.0]]).unwrap_err().to_string();
    assert!(message.contains("set 1") && message.contains("has 1 tasks, but set 0 has 2"), "{message}");
}

#[test]
fn values_too_large_to_square_have_no_standard_error() {
    let estimate = crossed(&[vec![1e200, 1.0], vec![-1e200, 3.0]]).unwrap();
    assert_eq!(estimate.standard_error, None);
}

#[test]
fn p_values_and_interval_agree() {
    let values = draw(Key::new(4), 8, 20, [0.3, 0.2, 1.0]);
    let estimate = crossed(&values).unwrap();
    let (low, high) = estimate.interval(0.9).unwrap();
    assert!(low < high);
    // Moved so that an end of the 90% interval is 0, a one-sided p-value is 5%.
    let moved = |by: f64| {
        let values: Vec<Vec<f64>> =
            values.iter().map(|row| row.iter().map(|value| value - by).collect()).collect();
        crossed(&values).unwrap()
    };
    assert!((moved(high).p_below().unwrap() - 0.05).abs() < 1e-9);
    assert!((moved(low).p_above().unwrap() - 0.05).abs() < 1e-9);
    assert!((estimate.p_below().unwrap() + estimate.p_above().unwrap() - 1.0).abs() < 1e-12);
}

#[test]
fn no_variation_decides_with_certainty() {
    let estimate = crossed(&[vec![-1.0, -1.0], vec![-1.0, -1.0]]).unwrap();
    assert_eq!((estimate.p_below(), estimate.p_above()), (Some(0.0), Some(1.0)));
}

/// The interval holds the truth in about 95% of draws, whichever factor the variation comes from.
#[test]
fn ninety_five_per_cent_intervals_cover() {
    let draws = 4000;
    for (case, (deviations, least, most)) in [
        // All three sources; mostly sets; mostly tasks: nominal, within three Monte-Carlo errors (0.0103) and what the
        // approximate degrees of freedom cost.
        ([0.4, 0.5, 1.0], 0.935, 0.965),
        ([1.0, 0.1, 0.3], 0.935, 0.965),
        ([0.05, 1.0, 0.3], 0.935, 0.965),
        // Noise alone: variances are cut off at 0, so the interval is too wide, never too narrow.
        ([0.0, 0.0, 1.0], 0.940, 0.990),
    ]
    .into_iter()
    .enumerate()
    {
        let key = Key::new(20).named("coverage").index(case as u64);
        let covered = (0..draws)
            .filter(|&draw_index| {
                let estimate = crossed(&draw(key.index(draw_index), 8, 20, deviations)).unwrap();
                let (low, high) = estimate.interval(0.95).unwrap();
                low <= 0.0 && 0.0 <= high
            })
            .count() as f64
            / draws as f64;
        assert!((least..=most).contains(&covered), "{deviations:?}: {covered}");
    }
}

/// What the plain standard error over all 160 values would do: it is why the crossed one exists.
#[test]
fn treating_the_values_as_independent_covers_far_less() {
    let key = Key::new(21);
    let covered = (0..1000)
        .filter(|&draw_index| {
            let values: Vec<f64> = draw(key.index(draw_index), 8, 20, [0.4, 0.5, 1.0]).concat();
            let summary = Summary::of(&values);
            summary.mean.unwrap().abs() <= 1.96 * summary.standard_error.unwrap()
        })
        .count();
    assert!(covered < 750, "{covered} of 1000");
}

#[test]
fn values_of_a_group_count_once_for_the_error() {
    // Seeds that agree tell nothing new about sets: the same error as from one value a set.
    let (sets, seeds) = ([0.3, 0.5, 0.1], 5);
    let groups: Vec<u64> = (0..3).flat_map(|set| [set; 5]).collect();
    let values: Vec<f64> = sets.iter().flat_map(|value| [*value; 5]).collect();
    let (once, grouped) = (Summary::of(&sets), Summary::of_groups(&groups, &values));
    assert!((grouped.mean.unwrap() - once.mean.unwrap()).abs() < 1e-15);
    assert!((grouped.standard_error.unwrap() - once.standard_error.unwrap()).abs() < 1e-15);
    assert_eq!(grouped.observations, 3 * seeds);
    assert!(Summary::of(&values).standard_error.unwrap() < 0.5 * grouped.standard_error.unwrap());
    // The order of models does not matter, one group has no error, and a failure is counted.
    let mixed = Summary::of_groups(&[1, 0, 1, 0], &[3.0, 1.0, f64::NAN, 1.0]);
    assert_eq!((mixed.standard_error, mixed.observations, mixed.failed), (Some(1.0), 3, 1));
    assert_eq!(Summary::of_groups(&[4, 4], &[1.0, 2.0]).standard_error, None);
}
