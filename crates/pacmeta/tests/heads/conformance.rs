//! What every method must do: special cases coincide, results depend on nothing but the arguments, bad input is an error.

use pacmeta::learners::head::steps::{HeadSteps, Sampler};
use pacmeta::learners::head::{Examples, HeadShape, predict};
use pacmeta::methods::SubsetRule;
use pacmeta::methods::heads::{
    FeatureTask, Fomaml, GibbsLearner, HeadGradient, HeadMethod, HeadMethodSettings, HeadRoom, Pacmaml,
    Pacoh, PacohEstimator,
};
use pacmeta_tensor::Key;

use super::{Case, SHAPE, assert_near, learner, method, settings};

/// Every method, several particles where it can.
fn all() -> Vec<String> {
    let adagrad = r#""inner": {"steps": 3, "rate": 0.1, "optimiser": "adagrad"}, "alpha": 3"#;
    let svgd = r#""sampler": {"kind": "svgd", "particles": 3}"#;
    let sgld =
        r#""inner": {"steps": 3, "rate": 0.02}, "sampler": {"kind": "sgld", "particles": 2}, "alpha": 3"#;
    vec![
        r#"{"name": "multi-task", "inner": {"steps": 3, "rate": 0.1}}"#.to_owned(),
        r#"{"name": "fomaml", "inner": {"steps": 3, "rate": 0.1}}"#.to_owned(),
        r#"{"name": "maml", "inner": {"steps": 3, "rate": 0.1}, "split": "disjoint"}"#.to_owned(),
        r#"{"name": "reptile", "inner": {"steps": 3, "rate": 0.1}, "alpha": 3}"#.to_owned(),
        format!(r#"{{"name": "bmaml", {adagrad}}}"#),
        format!(r#"{{"name": "bmaml", {adagrad}, {svgd}}}"#),
        format!(r#"{{"name": "pacoh", {adagrad}, {svgd}}}"#),
        format!(r#"{{"name": "pacoh", {adagrad}, "estimator": {{"kind": "prior", "samples": 4}}}}"#),
        format!(r#"{{"name": "pacmaml", {adagrad}}}"#),
        format!(r#"{{"name": "pacmaml", {adagrad}, {svgd}, "beta": 9}}"#),
        format!(r#"{{"name": "pacmaml", {sgld}, "split": "disjoint"}}"#),
    ]
}

fn assert_same(
    what: &str,
    case: &Case<f64>,
    one: &dyn HeadMethod<f64>,
    other: &dyn HeadMethod<f64>,
    tolerance: f64,
) {
    let ((one_terms, one), (other_terms, other)) = (case.gradient(one), case.gradient(other));
    assert!((one_terms.risk - other_terms.risk).abs() < tolerance, "{what}: {one_terms:?}, {other_terms:?}");
    assert_near(what, &one.head, &other.head, tolerance);
    assert_near(what, &one.features, &other.features, tolerance);
}

#[test]
fn without_steps_every_method_is_multi_task() {
    let case = Case::<f64>::new(10);
    let multitask = method::<f64>(r#"{"name": "multi-task", "inner": {"steps": 0, "rate": 0.1}}"#);
    for json in [
        r#"{"name": "fomaml", "inner": {"steps": 0, "rate": 0.1}}"#,
        r#"{"name": "maml", "inner": {"steps": 0, "rate": 0.1}}"#,
        r#"{"name": "pacoh", "inner": {"steps": 0, "rate": 0.1}, "alpha": 3}"#,
        r#"{"name": "pacmaml", "inner": {"steps": 0, "rate": 0.1}, "alpha": 3}"#,
        r#"{"name": "pacmaml", "inner": {"steps": 0, "rate": 0.1}, "alpha": 3, "beta": 11}"#,
    ] {
        assert_same(json, &case, &*method(json), &*multitask, 1e-13);
    }
    let bmaml = method(r#"{"name": "bmaml", "inner": {"steps": 0, "rate": 0.1}, "alpha": 3}"#);
    let (terms, gradient) = case.gradient(&*bmaml);
    assert_eq!(terms.objective, 0.0);
    assert!(gradient.head.iter().chain(&gradient.features).all(|value| *value == 0.0));
}

#[test]
fn gibbs_steps_without_a_prior_at_temperature_one_are_plain() {
    let case = Case::<f64>::new(11);
    for inner in [HeadSteps::gradient_descent(5, 0.3), HeadSteps::adagrad(5, 0.3)] {
        let fomaml = Fomaml { inner, split: SubsetRule::Nested };
        for (sigma_squared, tolerance) in [(f64::INFINITY, 1e-15), (1e12, 1e-10)] {
            let learner =
                GibbsLearner { inner, sigma_squared, alpha: 1.0, beta: None, sampler: Sampler::Steps };
            let support =
                Examples { features: &case.features[..3 * SHAPE.features], labels: &case.labels[..3] };
            let mut room = HeadRoom::default();
            let pacmaml = Pacmaml { learner, split: SubsetRule::Nested };
            let plain = fomaml.adapt(&case.head, SHAPE, support, Key::new(1), &mut room).unwrap();
            let gibbs = pacmaml.adapt(&case.head, SHAPE, support, Key::new(1), &mut room).unwrap();
            assert_near("adapted head", &gibbs[0], &plain[0], tolerance);
        }
    }
}

#[test]
fn pacmaml_with_all_examples_and_equal_temperatures_is_pacoh() {
    let case = Case { subset: 6, ..Case::<f64>::new(12) };
    for (inner, sampler) in [
        (HeadSteps::adagrad(3, 0.1), Sampler::Steps),
        (HeadSteps::adagrad(3, 0.1), Sampler::Svgd { particles: 4 }),
        (HeadSteps::gradient_descent(3, 0.01), Sampler::Sgld { particles: 4 }),
    ] {
        let learner = GibbsLearner { beta: Some(3.0), ..learner(inner, sampler) };
        let pacoh = Pacoh { learner: learner.clone(), estimator: PacohEstimator::Posterior };
        let pacmaml = Pacmaml { learner, split: SubsetRule::Nested };
        assert_same("pacmaml", &case, &pacmaml, &pacoh, 1e-13);
    }
}

#[test]
fn one_particle_makes_svgd_plain() {
    let case = Case::<f64>::new(13);
    for name in ["pacoh", "pacmaml", "bmaml"] {
        let rest = r#""inner": {"steps": 3, "rate": 0.1, "optimiser": "adagrad"}, "alpha": 3"#;
        let plain = method::<f64>(&format!(r#"{{"name": "{name}", {rest}}}"#));
        let one = r#"{"kind": "svgd", "particles": 1}"#;
        let svgd = method::<f64>(&format!(r#"{{"name": "{name}", {rest}, "sampler": {one}}}"#));
        assert_eq!(case.gradient(&*plain), case.gradient(&*svgd));
    }
}

#[test]
fn nested_pacmaml_at_equal_temperatures_per_example_judges_each_set_by_the_other_posterior() {
    let case = Case::<f64>::new(14);
    let pacmaml = Pacmaml {
        learner: GibbsLearner { beta: None, ..learner(HeadSteps::adagrad(3, 0.1), Sampler::Steps) },
        split: SubsetRule::Nested,
    };
    // rows outside S' come from w_a alone: they are those of FOMAML with the same adapted head, whatever beta's steps do
    let (_, gradient) = case.gradient(&pacmaml);
    let adapted = {
        let support = Examples { features: &case.features[..3 * SHAPE.features], labels: &case.labels[..3] };
        pacmaml.adapt(&case.head, SHAPE, support, Key::new(9), &mut HeadRoom::default()).unwrap()
    };
    let stuck = Case { head: adapted[0].clone(), ..case.clone() };
    let (_, at_adapted) =
        stuck.gradient(&*method(r#"{"name": "multi-task", "inner": {"steps": 0, "rate": 0}}"#));
    let rows = 3 * SHAPE.features..;
    assert_near("outside", &gradient.features[rows.clone()], &at_adapted.features[rows], 1e-13);
}

#[test]
fn the_order_of_examples_does_not_matter() {
    let case = Case::<f64>::new(15);
    // within S' and outside of it
    let order = [2, 0, 1, 5, 3, 4];
    let row = |index: usize| &case.features[index * SHAPE.features..(index + 1) * SHAPE.features];
    let shuffled = Case {
        features: order.iter().flat_map(|&index| row(index)).copied().collect(),
        labels: order.iter().map(|&index| case.labels[index]).collect(),
        ..case.clone()
    };
    for json in all() {
        let method = method::<f64>(&json);
        let ((terms, gradient), (other_terms, other)) =
            (case.gradient(&*method), shuffled.gradient(&*method));
        assert_near(&json, &other.head, &gradient.head, 1e-11);
        assert!((terms.objective - other_terms.objective).abs() < 1e-11);
        assert_eq!(terms.accuracy, other_terms.accuracy);
        let back: Vec<f64> = order
            .iter()
            .flat_map(|&index| &gradient.features[index * SHAPE.features..(index + 1) * SHAPE.features])
            .copied()
            .collect();
        assert_near(&json, &other.features, &back, 1e-11);
    }
}

#[test]
fn same_key_same_bits_whatever_the_thread_and_the_room() {
    let case = Case::<f32>::new(16);
    for json in all() {
        let method = method::<f32>(&json);
        let expected = case.gradient(&*method);
        // a room and a gradient that served a larger task of another shape
        let (mut room, mut gradient) = (HeadRoom::default(), HeadGradient::default());
        let shape = HeadShape { features: 40, classes: 4 };
        let features: Vec<f32> = (0..400).map(|index| (index as f32).sin()).collect();
        let labels: Vec<usize> = (0..10).map(|index| index % 4).collect();
        let large = FeatureTask { shape, features: &features, labels: &labels, subset: 4 };
        method.task_gradient(&[0.01; 164], &large, Key::new(2), &mut room, &mut gradient).unwrap();
        let terms =
            method.task_gradient(&case.head, &case.task(), Key::new(9), &mut room, &mut gradient).unwrap();
        assert_eq!((terms, gradient), expected, "{json}");
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| case.gradient(&*method)).join().unwrap());
        assert_eq!(elsewhere, expected, "{json}");
    }
}

#[test]
fn other_keys_give_other_particles() {
    let case = Case::<f64>::new(17);
    let json = r#"{"name": "pacoh", "alpha": 3, "inner": {"steps": 2, "rate": 0.01},
        "sampler": {"kind": "sgld", "particles": 2}}"#;
    let method = method::<f64>(json);
    let support = Examples { features: &case.features, labels: &case.labels };
    let adapt =
        |seed| method.adapt(&case.head, SHAPE, support, Key::new(seed), &mut HeadRoom::default()).unwrap();
    assert_eq!(adapt(1).len(), 2);
    assert_eq!(adapt(1), adapt(1));
    assert_ne!(adapt(1), adapt(2));
    assert_ne!(adapt(1)[0], adapt(1)[1]);
}

#[test]
fn single_precision_is_close_to_double() {
    // the size of the paper's images, where sums are long
    let shape = HeadShape { features: 1600, classes: 5 };
    let mut generator = Key::new(18).generator();
    let mut draw = |count: usize, scale: f64| {
        (0..count).map(|_| (scale * generator.normal()) as f32).collect::<Vec<f32>>()
    };
    let head = draw(shape.parameters(), 0.03);
    let features: Vec<f32> = draw(10 * shape.features, 1.0).iter().map(|value| value.max(0.0)).collect();
    let labels: Vec<usize> = (0..10).map(|index| index % 5).collect();
    let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
    let (wide_head, wide_features) = (wide(&head), wide(&features));
    for json in [
        r#"{"name": "maml", "inner": {"steps": 6, "rate": 0.003}}"#,
        r#"{"name": "bmaml", "inner": {"steps": 6, "rate": 0.003, "optimiser": "adagrad"}, "alpha": 10}"#,
        r#"{"name": "pacoh", "inner": {"steps": 6, "rate": 0.01, "optimiser": "adagrad"}, "alpha": 10}"#,
        r#"{"name": "pacmaml", "inner": {"steps": 6, "rate": 0.01, "optimiser": "adagrad"}, "alpha": 10}"#,
    ] {
        let mut single = HeadGradient::default();
        let task = FeatureTask { shape, features: &features, labels: &labels, subset: 5 };
        let single_terms = method::<f32>(json)
            .task_gradient(&head, &task, Key::new(9), &mut HeadRoom::default(), &mut single)
            .unwrap();
        let mut double = HeadGradient::default();
        let task = FeatureTask { shape, features: &wide_features, labels: &labels, subset: 5 };
        let terms = method::<f64>(json)
            .task_gradient(&wide_head, &task, Key::new(9), &mut HeadRoom::default(), &mut double)
            .unwrap();
        assert_near(json, &single.head, &double.head, 2e-4);
        assert_near(json, &single.features, &double.features, 2e-4);
        assert!((single_terms.objective / terms.objective - 1.0).abs() < 1e-4, "{json}");
    }
}

#[test]
fn extreme_temperatures_and_rates_give_finite_numbers_or_an_error() {
    let case = Case::<f32>::new(19);
    let (mut finite, mut errors) = (0, 0);
    for name in ["reptile", "bmaml", "pacoh", "pacmaml"] {
        for optimiser in ["gd", "adagrad"] {
            for alpha in [1e-300, 1e-30, 1e-3, 1e7, 1e30, 1e300] {
                for rate in [0.0, 1e-3, 1e3, 1e30] {
                    let method = method::<f32>(&format!(
                        r#"{{"name": "{name}", "alpha": {alpha:e},
                            "inner": {{"steps": 4, "rate": {rate:e}, "optimiser": "{optimiser}"}}}}"#
                    ));
                    match case.try_gradient(&*method) {
                        Ok((terms, gradient)) => {
                            finite += 1;
                            assert!(terms.objective.is_finite() && terms.risk.is_finite());
                            assert!(gradient.head.iter().chain(&gradient.features).all(|x| x.is_finite()));
                        }
                        Err(error) => {
                            errors += 1;
                            let text = error.to_string();
                            assert!(text.contains(name) && text.contains("method.rate"), "{text}");
                        }
                    }
                }
            }
        }
    }
    assert!(finite > 20 && errors > 20, "{finite} finite, {errors} errors");
}

#[test]
fn a_diverging_rate_is_named_with_its_step() {
    let case = Case::<f32>::new(20);
    let maml = method::<f32>(r#"{"name": "maml", "inner": {"steps": 9, "rate": 1e38}}"#);
    let error = case.try_gradient(&*maml).unwrap_err().to_string();
    assert!(error.starts_with("maml: what adapts is not finite after inner step "), "{error}");
    let broken = Case { head: vec![f32::NAN; SHAPE.parameters()], ..case };
    let error = broken.try_gradient(&*maml).unwrap_err().to_string();
    assert!(error.contains("before the first inner step"), "{error}");
}

#[test]
fn settings_are_read_and_written_and_checked() {
    for json in all() {
        let read = settings(&json);
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<HeadMethodSettings>(&written).unwrap(), read);
        let name = read.build::<f32>().unwrap().name();
        assert!(HeadMethodSettings::NAMES.contains(&name) && json.contains(name));
    }
    let inner = r#""inner": {"steps": 3, "rate": 0.1, "optimiser": "adagrad", "accumulator_start": 0}"#;
    for (json, key) in [
        (format!(r#"{{"name": "maml", {inner}}}"#), "inner.accumulator_start"),
        (format!(r#"{{"name": "bmaml", "alpha": 1, {inner}}}"#), "inner.accumulator_start"),
        (format!(r#"{{"name": "pacmaml", "alpha": 0, {inner}}}"#), "alpha"),
        (format!(r#"{{"name": "pacmaml", "alpha": 1, "beta": -1, {inner}}}"#), "beta"),
        (format!(r#"{{"name": "pacmaml", "alpha": 1, "sigma_squared": 0, {inner}}}"#), "sigma_squared"),
        (r#"{"name": "fomaml", "inner": {"steps": 10001, "rate": 0.1}}"#.to_owned(), "inner.steps"),
        (r#"{"name": "fomaml", "inner": {"steps": 1, "rate": -0.1}}"#.to_owned(), "inner.rate"),
        (
            format!(
                r#"{{"name": "pacoh", "alpha": 1, {inner}, "sampler": {{"kind": "sgld", "particles": 2}}}}"#
            ),
            "inner.optimiser",
        ),
        (
            format!(
                r#"{{"name": "pacoh", "alpha": 1, {inner}, "sampler": {{"kind": "svgd", "particles": 0}}}}"#
            ),
            "sampler.particles",
        ),
        (
            format!(
                r#"{{"name": "pacoh", "alpha": 1, {inner}, "estimator": {{"kind": "prior", "samples": 0}}}}"#
            ),
            "estimator.samples",
        ),
    ] {
        let error = settings(&json).build::<f32>().err().unwrap().to_string();
        assert!(error.contains(&format!("`{key}`")), "{json}: {error}");
    }
    assert!(serde_json::from_str::<HeadMethodSettings>(r#"{"name": "maml", "inner": {"step": 3}}"#).is_err());
    // an accumulator that starts at 0 is fine where nothing is differentiated through it
    let (_, gradient) =
        Case::<f64>::new(1).gradient(&*method(&format!(r#"{{"name": "pacmaml", "alpha": 1, {inner}}}"#)));
    assert!(gradient.head.iter().all(|value| value.is_finite()));
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let case = Case::<f64>::new(21);
    let fomaml =
        method::<f64>(r#"{"name": "fomaml", "inner": {"steps": 1, "rate": 0.1}, "split": "disjoint"}"#);
    for (broken, words) in [
        (Case { head: vec![0.0; 5], ..case.clone() }, "5 parameters, expected 24"),
        (Case { features: vec![0.0; 41], ..case.clone() }, "41 numbers for 6 examples"),
        (Case { labels: vec![0, 1, 3, 2, 0, 1], ..case.clone() }, "example 2 has label 3"),
        (Case { subset: 0, ..case.clone() }, "S' has 0 of 6"),
        (Case { subset: 7, ..case.clone() }, "S' has 7 of 6"),
        (Case { subset: 6, ..case.clone() }, "leaves none to judge on"),
    ] {
        let error = broken.try_gradient(&*fomaml).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(words), "{error}");
    }
    let none = Examples { features: &[], labels: &[] };
    assert!(fomaml.adapt(&case.head, SHAPE, none, Key::new(1), &mut HeadRoom::default()).is_err());
    assert!(predict(SHAPE, &[], &case.features).is_err());
    assert!(predict(SHAPE, &[vec![0.0; 5]], &case.features).is_err());
    assert!(predict(SHAPE, std::slice::from_ref(&case.head), &case.features[1..]).is_err());
}

#[test]
fn predictions_average_probabilities_and_steps_fit_the_support() {
    let case = Case::<f64>::new(22);
    let support = Examples { features: &case.features, labels: &case.labels };
    let fomaml = method::<f64>(r#"{"name": "fomaml", "inner": {"steps": 200, "rate": 0.5}}"#);
    let heads = fomaml.adapt(&case.head, SHAPE, support, Key::new(1), &mut HeadRoom::default()).unwrap();
    let probabilities = predict(SHAPE, &heads, &case.features).unwrap();
    for (row, &label) in probabilities.chunks_exact(SHAPE.classes).zip(&case.labels) {
        assert!(row[label] > 0.9, "{row:?}");
    }
    let pair = [heads[0].clone(), case.head.clone()];
    let other = predict(SHAPE, &pair[1..], &case.features).unwrap();
    let both = predict(SHAPE, &pair, &case.features).unwrap();
    for place in 0..both.len() {
        assert!((both[place] - 0.5 * (probabilities[place] + other[place])).abs() < 1e-15);
    }
    let judged = Case { head: heads[0].clone(), ..case };
    let multitask = method(r#"{"name": "multi-task", "inner": {"steps": 0, "rate": 0}}"#);
    assert_eq!(judged.gradient(&*multitask).0.accuracy, 1.0);
}
