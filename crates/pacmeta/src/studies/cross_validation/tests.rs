use proptest::prelude::*;

use super::*;

fn chosen(result: &CrossValidated) -> Vec<usize> {
    result.per_fold.iter().map(|fold| fold.chosen).collect()
}

#[test]
fn folds_in_order_are_consecutive_and_nearly_equal() {
    assert_eq!(Folds::in_order(7, 3).unwrap().of_tasks(), [0, 0, 0, 1, 1, 2, 2]);
    let folds = Folds::in_order(20, 4).unwrap();
    assert!((0..4).all(|fold| folds.of_tasks().iter().filter(|&&own| own == fold).count() == 5));
}

#[test]
fn shuffled_folds_have_the_same_sizes_and_follow_the_key() {
    let folds = |seed| Folds::shuffled(23, 4, Key::new(seed)).unwrap();
    assert_eq!(folds(1), folds(1));
    assert_ne!(folds(1), folds(2));
    let mut sorted = folds(1).of_tasks().to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, Folds::in_order(23, 4).unwrap().of_tasks());
}

#[test]
fn impossible_folds_are_refused() {
    for (tasks, folds, expected) in [(3, 4, "4 folds of 3 tasks"), (3, 1, "at least 2"), (0, 2, "0 tasks")] {
        let error = Folds::in_order(tasks, folds).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(expected), "{error}");
        assert!(Folds::shuffled(tasks, folds, Key::new(0)).is_err());
    }
}

#[test]
fn a_small_case_by_hand() {
    let errors = [vec![1.0, 5.0, 3.0], vec![2.0, 2.0, 4.0]];
    let result = choose(&errors, &Folds::in_order(3, 3).unwrap()).unwrap();
    // Others' means: fold 0 (5+3)/2 = 4 or 3; fold 1 2 or 3; fold 2 3 or 2.
    assert_eq!(chosen(&result), [1, 0, 1]);
    let validation: Vec<f64> = result.per_fold.iter().map(|fold| fold.validation_error).collect();
    assert_eq!(validation, [3.0, 2.0, 2.0]);
    let test: Vec<Option<f64>> = result.per_fold.iter().map(|fold| fold.test_error).collect();
    assert_eq!(test, [Some(2.0), Some(5.0), Some(4.0)]);
    // Over all folds the means are 3 and 8/3.
    assert_eq!(result.chosen, 1);
    assert_eq!(result.test, Summary::of(&[2.0, 5.0, 4.0]));
    // Task 0 was chosen on by folds 1 and 2, which took settings 0 and 1; and so on.
    assert_eq!(result.validation, Summary::of(&[1.5, 2.0, 3.5]));
    assert!((result.validation.mean.unwrap() - 7.0 / 3.0).abs() < 1e-15);
}

#[test]
fn one_setting_is_scored_without_a_choice() {
    let errors = [vec![1.0, 2.0, 3.0, 4.0]];
    let result = choose(&errors, &Folds::in_order(4, 2).unwrap()).unwrap();
    assert_eq!((chosen(&result), result.chosen), (vec![0, 0], 0));
    assert_eq!((result.test, result.validation), (Summary::of(&errors[0]), Summary::of(&errors[0])));
}

#[test]
fn ties_go_to_the_earlier_setting() {
    let errors = [vec![3.0, 3.0], vec![1.0, 1.0], vec![1.0, 1.0]];
    let result = choose(&errors, &Folds::in_order(2, 2).unwrap()).unwrap();
    assert_eq!((chosen(&result), result.chosen), (vec![1, 1], 1));
}

#[test]
fn failed_settings_are_not_chosen_while_another_works() {
    for failure in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY] {
        let errors = [vec![0.1, failure, 0.1, 0.1], vec![5.0; 4]];
        let result = choose(&errors, &Folds::in_order(4, 2).unwrap()).unwrap();
        // Fold 0 holds the failure out, so it cannot know; it is scored with it and says so.
        assert_eq!((chosen(&result), result.chosen), (vec![0, 1], 1));
        assert_eq!((result.per_fold[0].test_error, result.test.failed), (None, 1));
    }
    let errors = [vec![f64::NAN; 4], vec![f64::NAN; 4]];
    let error = choose(&errors, &Folds::in_order(4, 2).unwrap()).unwrap_err();
    assert!(error.to_string().contains("none can be chosen"), "{error}");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let folds = Folds::in_order(2, 2).unwrap();
    assert!(choose(&[], &folds).unwrap_err().to_string().contains("no settings"));
    assert!(choose(&[vec![1.0, 2.0], vec![1.0]], &folds).unwrap_err().to_string().contains("setting 1"));
    assert!(choose_over_models(&[], &folds).is_err());
    assert!(choose_over_models(&[vec![]], &folds).is_err());
    let uneven = [vec![vec![1.0, 2.0]], vec![vec![1.0, 2.0], vec![1.0, 2.0]]];
    assert!(
        choose_over_models(&uneven, &folds).unwrap_err().to_string().contains("has 2 models, expected 1")
    );
    let short = [vec![vec![1.0, 2.0], vec![1.0]]];
    assert!(choose_over_models(&short, &folds).unwrap_err().to_string().contains("model 1 has 1 errors"));
}

#[test]
fn models_are_scored_under_the_common_choice() {
    let errors =
        [vec![vec![1.0, 5.0, 3.0], vec![1.0, 5.0, 3.0]], vec![vec![1.0, 2.0, 3.0], vec![3.0, 2.0, 5.0]]];
    let folds = Folds::in_order(3, 3).unwrap();
    let result = choose_over_models(&errors, &folds).unwrap();
    // The averages are those of the small case, so the choices are 1, 0, 1.
    assert_eq!(result.choices, choose(&[vec![1.0, 5.0, 3.0], vec![2.0, 2.0, 4.0]], &folds).unwrap());
    assert_eq!(result.held_out, [vec![1.0, 5.0, 3.0], vec![3.0, 5.0, 5.0]]);
    assert_eq!(result.test_over_models, Summary::of(&[3.0, 13.0 / 3.0]));
    // Averages over models and over tasks can be taken in either order.
    let difference = result.test_over_models.mean.unwrap() - result.choices.test.mean.unwrap();
    assert!(difference.abs() < 1e-12);
    let difference = result.validation_over_models.mean.unwrap() - result.choices.validation.mean.unwrap();
    assert!(difference.abs() < 1e-12);
}

#[test]
fn a_setting_with_one_failed_model_is_not_chosen() {
    let errors = [vec![vec![0.1; 4], vec![f64::NAN; 4]], vec![vec![1.0; 4], vec![2.0; 4]]];
    let result = choose_over_models(&errors, &Folds::in_order(4, 2).unwrap()).unwrap();
    assert_eq!((chosen(&result.choices), result.choices.chosen), (vec![1, 1], 1));
    assert_eq!(result.test_over_models, Summary::of(&[1.0, 2.0]));
}

proptest! {
    /// Whatever happens on a fold, its own setting was chosen without it.
    #[test]
    fn a_fold_never_sees_its_own_tasks(
        errors in proptest::collection::vec(proptest::collection::vec(0.0..1.0_f64, 12), 1..5),
        replacement in proptest::collection::vec(proptest::collection::vec(-1e3..1e3_f64, 12), 5),
        failing in proptest::option::of(0..12_usize),
        count in 2..=12_usize,
        fold in 0..12_usize,
        seed in any::<u64>(),
    ) {
        let fold = fold % count;
        let folds = Folds::shuffled(12, count, Key::new(seed)).unwrap();
        // The last setting always works, so that there is something to choose.
        let mut errors = errors;
        errors.push(vec![0.5; 12]);
        let before = choose(&errors, &folds).unwrap();
        let last = errors.len() - 1;
        let mut changed = errors.clone();
        for (setting, row) in changed.iter_mut().enumerate() {
            for (task, error) in row.iter_mut().enumerate().filter(|(task, _)| folds.of_tasks()[*task] == fold) {
                let fails = setting != last && failing == Some(task);
                *error = if fails { f64::NAN } else { replacement[setting][task] };
            }
        }
        let after = choose(&changed, &folds).unwrap();
        prop_assert_eq!(before.per_fold[fold].chosen, after.per_fold[fold].chosen);
        prop_assert_eq!(before.per_fold[fold].validation_error, after.per_fold[fold].validation_error);
        // And the test error is that of the choice on the new values.
        let own = folds.inside(fold, &changed[after.per_fold[fold].chosen]);
        prop_assert_eq!(after.per_fold[fold].test_error, Some(mean(&own)).filter(|error| error.is_finite()));
    }
}
