use pacmeta_bounds::{CorollaryGap, Estimate, HyperPriorGap, RiskDifference};
use pacmeta_tensor::{Generator, Key, Parameters};

use super::*;
use crate::environments::{Environment, Function, Sinusoid, observed_tasks};
use crate::learners::TargetTemperature;
use crate::priors::{Kernel, NetworkSpec};
use crate::standardisation::Standardisation;

fn spec() -> PriorSpec {
    PriorSpec::GaussianProcess(GaussianProcessSpec {
        dimension: 1,
        mean_hidden: vec![5],
        feature_hidden: vec![4],
        feature_dimension: 2,
        kernel: Kernel::Paper,
    })
}

/// 20 tasks (more than one chunk) of 6 examples, S' the first three.
fn world() -> (Model, Vec<Task>) {
    let tasks: Vec<Task> = observed_tasks(&Sinusoid, 20, 6, Key::new(1))
        .unwrap()
        .into_iter()
        .map(|task| task.with_adapt(vec![2, 0, 1]).unwrap())
        .collect();
    let parameters = spec().initialise(Key::new(2)).unwrap();
    let standardisation = Standardisation::fit(&tasks).unwrap();
    (Model::new(spec(), parameters).with_standardisation(standardisation), tasks)
}

fn request() -> ObjectiveRequest {
    ObjectiveRequest::new(ObjectiveKind::Pacmaml { alpha: 30.0, beta: 60.0 })
}

fn theorem_request(statement: Statement) -> TheoremRequest {
    TheoremRequest {
        statement,
        beta: 12.0,
        lambda: 20.0,
        delta: 0.05,
        sigma0_squared: 3.0,
        hyper_posterior_variance: 1e-3,
        example_assumption: LossAssumption::NonNegative { second_moment: 1.0 },
        task_assumption: None,
        draws: 40,
        key: Key::new(4),
    }
}

fn threads(count: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap()
}

#[test]
fn the_gradient_is_that_of_the_total() {
    let (model, tasks) = world();
    let request = ObjectiveRequest { lambda: Some(0.7), ..request() };
    let mut gradient = Parameters::zeros(model.parameters().layout().clone());
    let with = objective(&model, &tasks, &request, Some(&mut gradient)).unwrap();
    assert_eq!(with, objective(&model, &tasks, &request, None).unwrap());
    let total = |index: usize, step: f64| {
        let mut moved = model.parameters().clone();
        moved.values_mut()[index] += step;
        let moved = Model::new(spec(), moved).with_standardisation(model.standardisation().unwrap().clone());
        objective(&moved, &tasks, &request, None).unwrap().total
    };
    let scale = gradient.values().iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    for index in 0..gradient.values().len() {
        let difference = (total(index, 1e-5) - total(index, -1e-5)) / 2e-5;
        assert!((gradient.values()[index] - difference).abs() < 1e-6 * scale, "{index}");
    }
}

#[test]
fn the_bias_of_the_features_is_pulled_by_the_hyper_prior_alone() {
    let (paper, tasks) = world();
    let PriorSpec::GaussianProcess(shape) = spec() else { unreachable!() };
    let shape = PriorSpec::GaussianProcess(GaussianProcessSpec { kernel: Kernel::Learned, ..shape });
    let learned = Model::new(shape.clone(), shape.initialise(Key::new(2)).unwrap())
        .with_standardisation(paper.standardisation().unwrap().clone());
    for (model, beta) in [(&paper, 60.0), (&paper, 1e7), (&learned, 60.0), (&learned, 1e7)] {
        for kind in [ObjectiveKind::Pacoh { beta }, ObjectiveKind::Pacmaml { alpha: beta / 2.0, beta }] {
            let mut gradient = Parameters::zeros(model.parameters().layout().clone());
            let report = objective(model, &tasks, &ObjectiveRequest::new(kind), Some(&mut gradient)).unwrap();
            let theta = model.parameters().tensor("features.output.bias").unwrap();
            let expected: Vec<f64> = theta.iter().map(|theta| report.xi / 3.0 * theta).collect();
            assert_eq!(gradient.tensor("features.output.bias").unwrap(), expected);
            // Its neighbour does depend on the data.
            let weight = model.parameters().tensor("features.output.weight").unwrap()[0];
            assert_ne!(gradient.tensor("features.output.weight").unwrap()[0], report.xi / 3.0 * weight);
        }
    }
}

#[test]
fn the_report_adds_up_and_has_the_documented_keys() {
    let (model, tasks) = world();
    let request = ObjectiveRequest {
        observed_tasks: Some(50),
        lambda: Some(10.0),
        delta: Some(0.1),
        sigma0_squared: 2.0,
        ..request()
    };
    let report = objective(&model, &tasks, &request, None).unwrap();
    assert!((report.xi - (0.1 + 1.0 / 3000.0)).abs() < 1e-15);
    assert!((report.hyper_kl - model.parameters().squared_norm() / 4.0).abs() < 1e-12);
    let mean_w = report.tasks.iter().map(|task| task.w).sum::<f64>() / 20.0;
    assert!((report.mean_w - mean_w).abs() < 1e-12 * mean_w.abs());
    assert!((report.total - (mean_w + report.xi * report.hyper_kl)).abs() < 1e-12);
    assert!((report.confidence.unwrap() - report.xi * 20.0_f64.ln()).abs() < 1e-14);
    for task in &report.tasks {
        assert!((task.w - (task.risk + task.kl / 60.0)).abs() < 1e-11 * task.w.abs().max(1.0));
    }
    let value = serde_json::to_value(&report).unwrap();
    for key in ["objective", "xi", "hyper_kl", "total", "tasks", "mean_w", "beta", "alpha", "confidence"] {
        assert!(value.get(key).is_some(), "{key}");
    }
    for key in ["name", "log_z", "risk", "risk_adapt", "kl", "w"] {
        assert!(value["tasks"][0].get(key).is_some(), "{key}");
    }
    let pacoh = ObjectiveRequest::new(ObjectiveKind::Pacoh { beta: 60.0 });
    let value = serde_json::to_value(objective(&model, &tasks, &pacoh, None).unwrap()).unwrap();
    assert_eq!(value["objective"], "pacoh");
    assert!(value.get("alpha").is_none());
    assert_eq!(value["tasks"][0]["risk_adapt"], value["tasks"][0]["risk"], "PACOH's learner sees all of S");
    assert_eq!(value["observed_tasks"], 20);
}

#[test]
fn bad_requests_name_the_option_or_the_task() {
    let (model, tasks) = world();
    let message = |request: ObjectiveRequest| {
        let error = objective(&model, &tasks, &request, None).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let kind = ObjectiveKind::Pacmaml { alpha: bad, beta: 1.0 };
        assert!(message(ObjectiveRequest { kind, ..request() }).contains("--alpha"));
        let kind = ObjectiveKind::Pacoh { beta: bad };
        assert!(message(ObjectiveRequest { kind, ..request() }).contains("--beta"));
        assert!(message(ObjectiveRequest { sigma0_squared: bad, ..request() }).contains("--sigma0-squared"));
        assert!(message(ObjectiveRequest { lambda: Some(bad), ..request() }).contains("--lambda"));
        assert!(message(ObjectiveRequest { delta: Some(bad), ..request() }).contains("--delta"));
    }
    assert!(message(ObjectiveRequest { delta: Some(1.0), ..request() }).contains("--delta"));
    assert!(message(ObjectiveRequest { observed_tasks: Some(0), ..request() }).contains("--observed-tasks"));
    let plain = Task::new("bare", 1, vec![1.0], vec![2.0]).unwrap();
    let error = objective(&model, std::slice::from_ref(&plain), &request(), None).unwrap_err().to_string();
    assert!(error.contains("`bare`") && error.contains("adapt"), "{error}");
    let pacoh = ObjectiveRequest::new(ObjectiveKind::Pacoh { beta: 60.0 });
    assert!(objective(&model, &[plain], &pacoh, None).is_ok(), "one example is fine");
    assert!(objective(&model, &[], &pacoh, None).unwrap_err().to_string().contains("none"));
    let network = PriorSpec::Network(NetworkSpec { dimension: 1, hidden: vec![3] });
    let network = Model::new(network.clone(), network.initialise(Key::new(1)).unwrap());
    let error = objective(&network, &tasks, &pacoh, None).unwrap_err().to_string();
    assert!(error.contains("Gaussian-process prior"), "{error}");
}

#[test]
fn a_narrow_hyper_posterior_has_the_risks_of_its_centre() {
    let (model, tasks) = world();
    let narrow = TheoremRequest {
        hyper_posterior_variance: 1e-18,
        ..theorem_request(Statement::Subsampling { alpha: 6.0 })
    };
    let report = bound(&model, &tasks, &narrow).unwrap();
    let kind = ObjectiveKind::Pacmaml { alpha: 6.0, beta: 12.0 };
    let centre = objective(&model, &tasks, &ObjectiveRequest::new(kind), None).unwrap();
    for (averaged, exact) in report.tasks.iter().zip(&centre.tasks) {
        assert!((averaged.risk.value - exact.risk).abs() < 1e-6 * exact.risk, "{averaged:?} {exact:?}");
        assert!((averaged.kl.value - exact.kl).abs() < 1e-6 * exact.kl);
        assert_eq!((averaged.examples, averaged.adapt_examples), (6, Some(3)));
    }
    let sum = report.terms.empirical_risk.value + report.terms.task_kl.value;
    assert!((sum - centre.mean_w).abs() < 1e-6 * centre.mean_w);
    // Narrower means farther from the hyper-prior, without limit: a Dirac is refused.
    let wide = bound(&model, &tasks, &theorem_request(Statement::Subsampling { alpha: 6.0 })).unwrap();
    assert!(wide.hyper_divergence < report.hyper_divergence);
    let dirac = TheoremRequest { hyper_posterior_variance: 0.0, ..narrow };
    assert!(bound(&model, &tasks, &dirac).unwrap_err().to_string().contains("Dirac"));
}

#[test]
fn estimates_stay_within_their_standard_errors() {
    let (model, tasks) = world();
    let few = TheoremRequest { hyper_posterior_variance: 0.05, ..theorem_request(Statement::OneEnvironment) };
    let many = TheoremRequest { draws: 2000, key: Key::new(99), ..few.clone() };
    let (few, many) = (bound(&model, &tasks, &few).unwrap(), bound(&model, &tasks, &many).unwrap());
    assert_eq!(few.certainty, "estimated");
    for (one, other) in [
        (few.terms.empirical_risk, many.terms.empirical_risk),
        (few.terms.task_kl, many.terms.task_kl),
        (few.total, many.total),
    ] {
        let (error, smaller) = (one.standard_error.unwrap(), other.standard_error.unwrap());
        assert!((one.value - other.value).abs() < 4.0 * error.hypot(smaller), "{one:?} {other:?}");
        assert!(smaller < 0.4 * error, "50 times the draws should leave about a seventh of the error");
    }
    assert_eq!(few.terms.psi1.standard_error, None);
    // psi1: mean (m/beta) (beta/m)^2 s^2/2 = beta s^2/(2 m); psi2: lambda s^2/(2 n).
    assert!((few.terms.psi1.value - 12.0 / (2.0 * 6.0)).abs() < 1e-12);
    assert!((few.terms.psi2.value - 20.0 / (2.0 * 20.0)).abs() < 1e-12);
}

#[test]
fn special_cases_of_the_theorems_coincide() {
    let (model, tasks) = world();
    let all: Vec<Task> =
        tasks.iter().map(|task| task.clone().with_adapt((0..6).collect()).unwrap()).collect();
    let second = bound(&model, &all, &theorem_request(Statement::OneEnvironment)).unwrap();
    let fourth = bound(&model, &all, &theorem_request(Statement::Subsampling { alpha: 12.0 })).unwrap();
    assert!((second.total.value - fourth.total.value).abs() < 1e-10 * second.total.value);
    let gap = HyperPriorGap::identical();
    let third =
        bound(&model, &all, &theorem_request(Statement::TwoEnvironments { target_examples: 6.0, gap }))
            .unwrap();
    assert_eq!(third.total, second.total);
    let gap = CorollaryGap::Difference(RiskDifference::from_risks(0.5, 0.2).unwrap());
    let statement = Statement::Corollary { target_examples: 3.0, gap };
    let corollary = bound(&model, &all, &theorem_request(statement)).unwrap();
    assert!((corollary.total.value - second.total.value - 0.3).abs() < 1e-12);
    assert_ne!(corollary.assumed, second.assumed);
    let larger = Statement::TwoEnvironments { target_examples: 7.0, gap: HyperPriorGap::identical() };
    assert!(bound(&model, &all, &theorem_request(larger)).is_err());
}

#[test]
fn a_bound_needs_an_assumption_and_says_what_it_assumed() {
    let (model, tasks) = world();
    let request = theorem_request(Statement::OneEnvironment);
    let none = TheoremRequest { example_assumption: LossAssumption::None, ..request.clone() };
    let error = bound(&model, &tasks, &none).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("--assume"), "{error}");
    let few = TheoremRequest { draws: 1, ..request.clone() };
    assert!(bound(&model, &tasks, &few).unwrap_err().to_string().contains("--draws"));
    let report = bound(&model, &tasks, &request).unwrap();
    let words = report.assumed.join("\n");
    assert!(words.contains("second moment is at most 1") && words.contains("follows from"), "{words}");
    assert!(words.contains("standardised units"), "{words}");
    let own = TheoremRequest { task_assumption: Some(LossAssumption::Bounded { a: 0.0, b: 2.0 }), ..request };
    let report = bound(&model, &tasks, &own).unwrap();
    assert!((report.terms.psi2.value - 20.0 / 20.0 * 4.0 / 8.0).abs() < 1e-12);
    assert!(report.assumed.join("\n").contains("between 0 and 2"));
    let value = serde_json::to_value(&report).unwrap();
    assert!(value["terms"]["empirical_risk"]["standard_error"].is_f64());
    assert!(value["terms"]["psi1"].get("standard_error").is_none());
    assert_eq!(value["theorem"], "Theorem 2 (one environment)");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (model, tasks) = world();
    let all = || {
        let mut gradient = Parameters::zeros(model.parameters().layout().clone());
        let objective = objective(&model, &tasks, &request(), Some(&mut gradient)).unwrap();
        let bound = bound(&model, &tasks, &theorem_request(Statement::OneEnvironment)).unwrap();
        let gap = gap_by_hyper_prior(&Sinusoid, &model, 3.0, 1.0, &gap_settings(5, 2)).unwrap();
        (objective, gradient, bound, gap)
    };
    assert_eq!(threads(1).install(all), threads(3).install(all));
}

/// Tasks y = c + noise, c ~ N(0, 1), noise of standard deviation 0.3: all risks below are finite sums.
struct Constants;

impl Environment for Constants {
    fn name(&self) -> &'static str {
        "constants"
    }

    fn dimension(&self) -> usize {
        1
    }

    fn noise_std(&self) -> f64 {
        0.3
    }

    fn function(&self, key: Key) -> Function {
        let level = key.generator().normal();
        Box::new(move |_| level)
    }

    fn draw_input(&self, generator: &mut Generator, input: &mut [f64]) {
        input[0] = generator.uniform_in(-1.0, 1.0);
    }
}

fn gap_settings(observed_examples: usize, target_examples: usize) -> GapSettings {
    GapSettings {
        target_examples,
        observed_examples,
        beta: 10.0,
        rule: TargetTemperature::Fixed,
        draws: 200,
        tasks_per_draw: 20,
        fresh_examples: 3,
        key: Key::new(6),
    }
}

/// With all parameters 0 the prior is a constant function of variance 1/2, and
/// R(m) = (1 - g)^2 + g^2 0.09/m + 0.09 + s2/2/(m/2 + s2),   g = (m/2)/(m/2 + s2).
fn constant_risk(examples: usize, noise_variance: f64) -> f64 {
    let m = examples as f64;
    let denominator = 0.5 * m + noise_variance;
    let g = 0.5 * m / denominator;
    (1.0 - g).powi(2) + g * g * 0.09 / m + 0.09 + 0.5 * noise_variance / denominator
}

#[test]
fn gaps_agree_with_closed_forms() {
    let model = Model::new(spec(), Parameters::zeros(spec().layout().unwrap().into()));
    for (rule, target_noise) in
        [(TargetTemperature::Fixed, 2.0 / 20.0), (TargetTemperature::PerExample, 8.0 / 20.0)]
    {
        let settings = GapSettings { rule, ..gap_settings(8, 2) };
        let expected = constant_risk(2, target_noise) - constant_risk(8, 8.0 / 20.0);
        let difference = gap_by_risk_difference(&Constants, &model, 0.0, &settings).unwrap().value();
        let error = difference.standard_error.unwrap();
        assert!((difference.value - expected).abs() < 4.0 * error, "{rule:?} {difference:?} {expected}");
        assert!(error < 0.1 * expected, "{rule:?} {difference:?}");
        // A hyper-prior that hardly varies, at a lambda that hardly bends: the same number.
        let gap = gap_by_hyper_prior(&Constants, &model, 1e-14, 1e-3, &settings).unwrap();
        let error = gap.value().standard_error.unwrap();
        assert!((gap.value().value - expected).abs() < 4.0 * error, "{rule:?} {gap:?} {expected}");
        assert!(gap.effective_draws().unwrap() > 199.0);
    }
}

#[test]
fn equal_sizes_have_no_gap_and_a_larger_lambda_has_more() {
    let (model, _) = world();
    let same = gap_settings(4, 4);
    let gap = gap_by_hyper_prior(&Sinusoid, &model, 3.0, 2.0, &same).unwrap();
    assert_eq!(gap, HyperPriorGap::identical());
    let difference = gap_by_risk_difference(&Sinusoid, &model, 0.1, &same).unwrap();
    assert_eq!(difference, RiskDifference::identical());
    let value = |lambda| {
        let gap = gap_by_hyper_prior(&Sinusoid, &model, 3.0, lambda, &gap_settings(6, 2)).unwrap();
        gap.value().value
    };
    assert!(value(0.01) > 0.0 && value(1.0) > value(0.01));
    let bad = GapSettings { draws: 1, ..gap_settings(6, 2) };
    let error = gap_by_risk_difference(&Sinusoid, &model, 0.1, &bad).unwrap_err().to_string();
    assert!(error.contains("--draws"), "{error}");
}

/// Psi1 of constant functions in closed form: the prior's features are 0, so that h is a constant c ~ N(0, 1/2), and for
/// y ~ N(f, s^2): psi_c(t) = t (c - f)^2 + t s^2 - 1/2 log(1 + 2 t s^2) - t (c - f)^2/(1 + 2 t s^2).
#[test]
fn simulated_psi_agrees_with_its_closed_form_for_constants() {
    let spec = PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1));
    let model = Model::new(spec.clone(), pacmeta_tensor::Parameters::zeros(spec.layout().unwrap().into()));
    let function = Key::new(3);
    let level = Constants.function(function)(&[0.0]);
    let (beta, examples, noise) = (2.0, 4, Constants.noise_std());
    let settings = PsiSettings {
        functions: TaskFunctions::Known(vec![function]),
        examples,
        beta,
        // Priors so close to 0 that their means and features vanish.
        sigma0_squared: 1e-12,
        draws: 2000,
        fresh_examples: 100,
        key: Key::new(9),
    };
    let simulated = psi_by_simulation(&Constants, &model, &settings).unwrap().log_moment();
    let t = beta / examples as f64;
    let shrunk = 1.0 + 2.0 * t * noise * noise;
    let psi = |c: f64| {
        let distance = (c - level).powi(2);
        t * distance + t * noise * noise - 0.5 * shrunk.ln() - t * distance / shrunk
    };
    // E_c exp(m psi_c(t)) by the trapezoidal rule over eight standard deviations.
    let (steps, width) = (4000, 8.0 * 0.5_f64.sqrt());
    let mut moment = 0.0;
    for step in 0..=steps {
        let c = -width + 2.0 * width * f64::from(step) / f64::from(steps);
        moment += (examples as f64 * psi(c) - c * c).exp() / std::f64::consts::PI.sqrt();
    }
    let exact = (moment * 2.0 * width / f64::from(steps)).ln();
    let error = simulated.standard_error.unwrap();
    // The inner mean over 100 examples adds a bias of order 1/100.
    assert!(
        (simulated.value - exact).abs() < 5.0 * error + 0.03,
        "{} ± {error} against {exact}",
        simulated.value
    );
    assert!(error < 0.1 * exact, "{error} of {exact}");
}

/// Psi2 of constant functions in closed form: without parameters the posterior's mean misses the level by X ~ N(0, V) with
/// V = (1 - g)^2 + g^2 0.09/m, so that the risk is X^2 and a constant, and psi(t) = t V - 1/2 log(1 + 2 t V).
#[test]
fn simulated_task_psi_agrees_with_its_closed_form_for_constants() {
    let model = Model::new(spec(), Parameters::zeros(spec().layout().unwrap().into()));
    let settings = TaskPsiSettings {
        tasks: 5,
        examples: 2,
        temperature: 2.0,
        lambda: 20.0,
        // Priors so close to 0 that all draws have the same psi.
        sigma0_squared: 1e-12,
        draws: 40,
        tasks_per_draw: 400,
        fresh_examples: 200,
        key: Key::new(9),
    };
    let (m, t) = (2.0, 20.0 / 5.0);
    let g = 0.5 * m / (0.5 * m + m / (2.0 * settings.temperature));
    let variance = (1.0 - g).powi(2) + g * g * 0.09 / m;
    let exact = t * variance - 0.5 * (2.0 * t * variance).ln_1p();
    let simulated = task_psi_by_simulation(&Constants, &model, &settings).unwrap();
    assert_eq!(simulated.power(), 5);
    let Estimate { value, standard_error } = simulated.value();
    let error = standard_error.unwrap();
    // The risk on 200 examples in place of the true one adds t^2/2 of its variance, about 0.0025.
    assert!((value - exact).abs() < 4.0 * error + 0.004, "{value} ± {error} against {exact}");
    assert!(error < 0.05 * exact, "{error} of {exact}");
}

/// Two examples at one input: K = 1/2 [[1, 1], [1, 1]] has the eigenvalues 1 and 0, so that with p and q the parts of y along
/// (1, 1) and (1, -1), and s2 = 1/beta, everything is a closed form. What rounding leaves is a multiple of eps/s2.
#[test]
fn twins_agree_with_their_closed_form_until_they_are_refused() {
    let model = Model::new(spec(), Parameters::zeros(spec().layout().unwrap().into()));
    let twins = Task::new("twins", 1, vec![0.0, 0.0], vec![1.0, 2.0]).unwrap();
    let (p, q) = (4.5_f64, 0.5_f64); // their squares
    let mut refused = Vec::new();
    for exponent in -20..=18 {
        let beta = 10.0_f64.powi(exponent);
        let request = ObjectiveRequest::new(ObjectiveKind::Pacoh { beta });
        let report = match objective(&model, std::slice::from_ref(&twins), &request, None) {
            Ok(report) => report,
            Err(error) => {
                assert!(matches!(error, Error::Factorisation { size: 2, .. }), "{error}");
                let words = error.to_string();
                assert!(words.contains("`twins`") && words.contains("temperature"), "{words}");
                refused.push(exponent);
                continue;
            }
        };
        let s = 1.0 / beta;
        let log_ratio = (1.0 / s).ln_1p();
        let log_z = -0.5 * (p / (1.0 + s) + q / s) - 0.5 * log_ratio;
        let risk = 0.5 * (s * s * p / (1.0 + s).powi(2) + q + s / (1.0 + s));
        let kl = 0.5 * (p / (1.0 + s).powi(2) - 1.0 / (1.0 + s) + log_ratio);
        let rounding = 8.0 * f64::EPSILON / s;
        let found = &report.tasks[0];
        let tolerance = 1e-12 + rounding;
        let mut numbers =
            vec![("log Z", found.log_z, log_z, tolerance), ("risk", found.risk, risk, tolerance)];
        if exponent >= 0 {
            // Below, its closed form is a difference of nearly equal numbers.
            numbers.push(("kl", found.kl, kl, 1e-8 + rounding));
        }
        for (name, found, expected, tolerance) in numbers {
            let error = (found / expected - 1.0).abs();
            assert!(error < tolerance, "{name} at 1e{exponent}: {found} for {expected}, {error:e}");
        }
    }
    assert!(refused.iter().all(|exponent| *exponent > 10) && refused.contains(&13), "{refused:?}");
    assert!(refused.is_sorted() && refused.last() == Some(&18), "{refused:?}");
}

#[test]
fn an_assumption_that_the_tasks_contradict_is_refused() {
    let (model, tasks) = world();
    let request = theorem_request(Statement::OneEnvironment);
    let with = |example_assumption, task_assumption| {
        bound(&model, &tasks, &TheoremRequest { example_assumption, task_assumption, ..request.clone() })
    };
    let risks: Vec<f64> =
        with(request.example_assumption, None).unwrap().tasks.iter().map(|task| task.risk.value).collect();
    let (lowest, highest) =
        (risks.iter().copied().fold(f64::MAX, f64::min), risks.iter().copied().fold(0.0, f64::max));
    let bounded = |a, b| LossAssumption::Bounded { a, b };
    assert!(with(bounded(0.0, 1.01 * highest), None).is_ok());
    for contradicted in [bounded(0.0, 0.99 * highest), bounded(1.01 * lowest, 9.0)] {
        let message = with(contradicted, None).unwrap_err().to_string();
        assert!(message.contains("--assume") && message.contains("the mean loss on task `"), "{message}");
    }
    let nothing = LossAssumption::NonNegative { second_moment: 0.0 };
    assert!(with(nothing, None).unwrap_err().to_string().contains("second moment of the loss is 0"));
    let message = with(request.example_assumption, Some(nothing)).unwrap_err().to_string();
    assert!(message.contains("--assume-tasks"), "{message}");
}

#[test]
fn numbers_that_overflow_are_blamed_on_the_task_or_the_prior() {
    let (model, _) = world();
    let plain = Model::new(spec(), model.parameters().clone());
    let large = Task::new("large", 1, vec![0.0, 1.0], vec![2e200, 1.0]).unwrap();
    let tasks = [Task::new("fine", 1, vec![0.0, 1.0], vec![2.0, 1.0]).unwrap(), large];
    let pacoh = ObjectiveRequest::new(ObjectiveKind::Pacoh { beta: 3.0 });
    let message = objective(&plain, &tasks, &pacoh, None).unwrap_err().to_string();
    assert!(message.starts_with("task `large`: its risk leaves the range"), "{message}");
    let message = bound(&plain, &tasks, &theorem_request(Statement::OneEnvironment)).unwrap_err().to_string();
    assert!(message.starts_with("task `large`"), "{message}");
    let mut parameters = model.parameters().clone();
    parameters.values_mut()[0] = 1e300;
    let huge = Model::new(spec(), parameters);
    for message in [
        objective(&huge, &tasks[..1], &pacoh, None).unwrap_err().to_string(),
        bound(&huge, &tasks[..1], &theorem_request(Statement::OneEnvironment)).unwrap_err().to_string(),
    ] {
        assert!(message.starts_with("the prior: has parameters so large"), "{message}");
    }
}
