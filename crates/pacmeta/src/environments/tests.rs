//! Draws against theory. A sample mean may be off by at most five standard errors; keys are fixed, so are outcomes.

use super::*;

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count)
}

/// Checks mean and variance of (nearly) normal values; `kurtosis` is E(v - mean)⁴ / variance².
fn assert_moments(values: &[f64], mean: f64, variance: f64, kurtosis: f64, what: &str) {
    let count = values.len() as f64;
    let (found_mean, found_variance) = mean_and_variance(values);
    let mean_error = (variance / count).sqrt();
    let variance_error = variance * ((kurtosis - 1.0) / count).sqrt();
    assert!((found_mean - mean).abs() < 5.0 * mean_error, "{what}: mean {found_mean}, expected {mean}");
    assert!(
        (found_variance - variance).abs() < 5.0 * variance_error,
        "{what}: variance {found_variance}, expected {variance}"
    );
}

fn values_at(environment: &dyn Environment, input: &[f64], draws: u64) -> Vec<f64> {
    let key = Key::new(7);
    (0..draws).map(|index| environment.truth(key.index(index), input).unwrap()).collect()
}

#[test]
fn sinusoid_has_the_stated_moments_at_fixed_inputs() {
    for x in [-4.0f64, 0.0, 0.7, 3.0] {
        // E sin(1.5 (x - c)) = sin(1.5 x) exp(-0.15²/2), E sin² = (1 - cos(3 x) exp(-0.3²/2)) / 2, E A² = 1 + 0.6²/12.
        let sine = (1.5 * x).sin() * (-0.15f64.powi(2) / 2.0).exp();
        let sine_squared = 0.5 * (1.0 - (3.0 * x).cos() * (-0.3f64.powi(2) / 2.0).exp());
        let variance = 0.04 * x * x + 0.01 + 1.03 * sine_squared - sine * sine;
        assert_moments(&values_at(&Sinusoid, &[x], 20_000), 0.5 * x + sine + 5.0, variance, 3.0, "sinusoid");
    }
}

#[test]
fn gp_draws_have_unit_variance_and_the_covariance_of_the_kernel() {
    let key = Key::new(8);
    let inputs = [[-5.0], [-4.0], [0.0], [5.0]];
    let draws: Vec<Vec<f64>> = (0..20_000)
        .map(|index| {
            let function = GpDraws.function(key.index(index));
            inputs.iter().map(|input| function(input)).collect()
        })
        .collect();
    for first in 0..inputs.len() {
        let values: Vec<f64> = draws.iter().map(|draw| draw[first]).collect();
        assert_moments(&values, 0.0, 1.0, 3.0, "gp-draws");
        for second in 0..first {
            let covariance = (-(inputs[first][0] - inputs[second][0]).powi(2) / 2.0f64).exp();
            let products: Vec<f64> = draws.iter().map(|draw| draw[first] * draw[second]).collect();
            // The product of two standard normals of correlation r has variance 1 + r².
            let error = ((1.0 + covariance * covariance) / products.len() as f64).sqrt();
            let found = mean_and_variance(&products).0;
            assert!((found - covariance).abs() < 5.0 * error, "covariance {found}, expected {covariance}");
        }
    }
}

#[test]
fn cauchy_has_the_stated_mean_and_a_process_of_scale_0_2() {
    // At (-1, -1): 6/π + 3/(π (1 + 18)) + 1.
    let expected = 6.0 / std::f64::consts::PI + 3.0 / (19.0 * std::f64::consts::PI) + 1.0;
    assert!((Cauchy::mean(&[-1.0, -1.0]) - expected).abs() < 1e-14);
    let inputs = [[-1.0, -1.0], [4.5, -7.0], [4.5, -6.7]];
    let key = Key::new(9);
    let draws: Vec<[f64; 3]> = (0..1_000)
        .map(|index| {
            let function = Cauchy.function(key.index(index));
            inputs.map(|input| function(&input) - Cauchy::mean(&input))
        })
        .collect();
    for place in 0..inputs.len() {
        let values: Vec<f64> = draws.iter().map(|draw| draw[place]).collect();
        assert_moments(&values, 0.0, 0.04, 3.0, "cauchy");
    }
    // Neighbours at a distance of 0.3 differ by a variance of 2 · 0.04 (1 - exp(-0.3² / (2 · 0.5))).
    let differences: Vec<f64> = draws.iter().map(|draw| draw[1] - draw[2]).collect();
    assert_moments(&differences, 0.0, 0.08 * (1.0 - (-0.09f64).exp()), 3.0, "differences");
}

#[test]
fn inputs_have_the_stated_distributions() {
    let uniform = Sinusoid.task("a", 50_000, Key::new(1)).unwrap();
    assert!(uniform.inputs().iter().all(|x| (-5.0..5.0).contains(x)));
    assert_moments(uniform.inputs(), 0.0, 100.0 / 12.0, 1.8, "x of sinusoid");

    // A normal variable cut to (a, b) has mean (φ(a) - φ(b)) / Z and second moment 1 + (a φ(a) - b φ(b)) / Z.
    let density = |u: f64| (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let probability = 0.975_900_0; // Φ(2) - Φ(-3) = 0.9772499 - 0.0013499
    let mean = (density(-3.0) - density(2.0)) / probability;
    let second = 1.0 + (-3.0 * density(-3.0) - 2.0 * density(2.0)) / probability;
    let mut generator = Key::new(2).generator();
    let mut inputs = vec![0.0; 50_000];
    Cauchy.draw_input(&mut generator, &mut inputs);
    assert!(inputs.iter().all(|x| (-7.5..=5.0).contains(x)));
    assert_moments(&inputs, 2.5 * mean, 6.25 * (second - mean * mean), 3.0, "x of cauchy");
}

#[test]
fn noise_is_what_examples_differ_from_the_truth_by() {
    for environment in [&Sinusoid as &dyn Environment, &GpDraws, &Cauchy] {
        let (function_key, example_key) = (Key::new(5).named("function"), Key::new(5).named("examples"));
        let task = environment.examples("a", 500, function_key, example_key).unwrap();
        let function = environment.function(function_key);
        let residuals: Vec<f64> =
            (0..task.len()).map(|index| task.targets()[index] - function(task.input(index))).collect();
        assert!((0..task.len()).all(|index| environment.covers(task.input(index))));
        assert_moments(&residuals, 0.0, environment.noise_std().powi(2), 3.0, environment.name());
    }
}

#[test]
fn same_key_same_bits_and_more_examples_of_the_same_function() {
    for name in ["sinusoid", "gp-draws", "cauchy"] {
        let environment = by_name(name).unwrap();
        let key = Key::new(11);
        let task = environment.task("a", 10, key).unwrap();
        assert_eq!(task, environment.task("a", 10, key).unwrap());
        assert_ne!(task, environment.task("a", 10, Key::new(12)).unwrap());
        assert_eq!(task.dimension(), environment.dimension());

        let longer = environment.task("a", 25, key).unwrap();
        assert_eq!(longer.select(&(0..10).collect::<Vec<_>>()), task);

        let other = environment.examples("b", 10, key.named("function"), Key::new(13)).unwrap();
        assert_ne!(other.inputs(), task.inputs());
        let function = environment.function(key.named("function"));
        for (index, target) in other.targets().iter().enumerate() {
            assert!((target - function(other.input(index))).abs() < 6.0 * environment.noise_std());
        }
    }
}

#[test]
fn observed_and_target_tasks_are_named_and_keyed_by_index() {
    let key = Key::new(21);
    let observed = observed_tasks(&Sinusoid, 12, 5, key).unwrap();
    assert_eq!(observed.len(), 12);
    assert_eq!(observed[11], Sinusoid.task("task-011", 5, key.index(11)).unwrap());
    assert!(observed.iter().all(|task| task.adapt().is_none()));

    let targets = target_tasks(&Sinusoid, 3, 5, 100, key).unwrap();
    assert_eq!((targets[2].name(), targets[2].len()), ("target-002", 105));
    assert_eq!(targets[2].adapt(), Some(&[0, 1, 2, 3, 4][..]));
    assert_eq!(targets[2].support_and_query().unwrap().1.len(), 100);
}

#[test]
fn nothing_asked_is_refused() {
    assert!(
        observed_tasks(&Sinusoid, 1, 0, Key::new(1))
            .unwrap_err()
            .to_string()
            .contains("at least one example")
    );
    for (support, query) in [(0, 5), (5, 0)] {
        let message = target_tasks(&Sinusoid, 1, support, query, Key::new(1)).unwrap_err().to_string();
        assert!(message.contains(&format!("found {support} and {query}")), "{message}");
    }
    let message = by_name("sinusiod").err().unwrap().to_string();
    assert_eq!(
        message,
        "environment: there is none called `sinusiod` (did you mean `sinusoid`?); expected one of sinusoid, cauchy, \
         gp-draws"
    );
}
