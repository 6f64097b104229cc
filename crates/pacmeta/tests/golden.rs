//! Against independent implementations: bounds and gradients, predictions and metrics, PACOH's own recipe, MAML and
//! Reptile. What computed the numbers in `golden/` is in its README.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::path::PathBuf;
use std::sync::Arc;

use pacmeta::bounds::{ObjectiveKind, ObjectiveReport, ObjectiveRequest, objective};
use pacmeta::environments::table::{TableOptions, read_tasks};
use pacmeta::evaluation::evaluate;
use pacmeta::learners::lbfgs::{Lbfgs, Step};
use pacmeta::learners::squared_loss::{Examples, SquaredLoss};
use pacmeta::learners::{InnerSteps, Learner, Proximal, TargetTemperature};
use pacmeta::methods::{Batch, Fomaml, Maml, Member, Method, MethodSettings, PacohMap};
use pacmeta::priors::{GaussianProcessSpec, Kernel, NetworkSpec, PriorSpec};
use pacmeta::training::checkpoint::Checkpoint;
use pacmeta::{Model, Task};
use pacmeta_tensor::{Key, Parameters};
use serde_json::Value;

/// The accuracy demanded of every number.
const TOLERANCE: f64 = 1e-8;

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

fn json(file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(file)).unwrap()).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("`{key}` in {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn rows(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().flat_map(numbers).collect()
}

fn tasks(file: &str) -> Vec<Task> {
    let options = TableOptions { min_examples: Some(1), ..TableOptions::default() };
    read_tasks(path(file), &options).unwrap().tasks
}

fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs() / expected.abs();
    assert!(error < tolerance, "{what}: {found:e}, expected {expected:e}, relative error {error:.1e}");
}

fn assert_all_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_close(&format!("{what} {index}"), *found, *expected, TOLERANCE);
    }
}

/// |found - expected| / |expected| over tensors named by `rename` in a file; every tensor of the file must be asked for.
fn gradient_error(found: &Parameters<f64>, file: &str, count: usize, rename: impl Fn(&str) -> String) -> f64 {
    let checkpoint = Checkpoint::read(path(file)).unwrap();
    assert_eq!(found.iter().len(), count);
    let (mut difference, mut norm) = (0.0, 0.0);
    for (entry, values) in found.iter() {
        let expected = &checkpoint.tensor(&rename(&entry.name)).unwrap().values;
        assert_eq!(expected.len(), values.len(), "{}", entry.name);
        for (value, expected) in values.iter().zip(expected) {
            difference += (value - expected) * (value - expected);
            norm += expected * expected;
        }
    }
    (difference / norm).sqrt()
}

/// Every field of every task. `kl` of the hot cases is nearly zero, and a formula that takes the logarithms of |A| and s2
/// apart loses it to rounding (3e-8 of the largest task); ours does not, so no field needs an exception.
fn assert_tasks(case: &str, report: &ObjectiveReport, expected: &Value) {
    let expected = expected["tasks"].as_array().unwrap();
    assert_eq!(report.tasks.len(), expected.len());
    for (task, expected) in report.tasks.iter().zip(expected) {
        let what = |field: &str| format!("{case}, {}, {field}", task.name);
        assert_close(&what("log_z"), task.log_z, number(expected, "log_z"), TOLERANCE);
        assert_close(&what("risk"), task.risk, number(expected, "risk"), TOLERANCE);
        assert_close(&what("w"), task.w, number(expected, "w"), TOLERANCE);
        assert_close(&what("kl"), task.kl, number(expected, "kl"), TOLERANCE);
        // The reference has none for PACOH, whose base learner sees all of S.
        let seen = if expected.get("risk_adapt").is_some() { "risk_adapt" } else { "risk" };
        assert_close(&what("risk_adapt"), task.risk_adapt, number(expected, seen), TOLERANCE);
    }
}

#[test]
fn bounds_and_their_gradients() {
    let manifest = json("bounds.json");
    let cases = manifest["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let name = text(case, "name");
        let model = Model::read(path(text(case, "prior"))).unwrap();
        let beta = number(case, "beta");
        let kind = match text(case, "objective") {
            "pacoh" => ObjectiveKind::Pacoh { beta },
            _ => ObjectiveKind::Pacmaml { alpha: number(case, "alpha"), beta },
        };
        let mut gradient = Parameters::zeros(model.parameters().layout().clone());
        let report =
            objective(&model, &tasks(text(case, "tasks")), &ObjectiveRequest::new(kind), Some(&mut gradient))
                .unwrap();
        let expected = json(text(case, "expected"));
        assert_eq!(report.objective, text(&expected, "objective"));
        for (field, found) in [("xi", report.xi), ("hyper_kl", report.hyper_kl), ("total", report.total)] {
            assert_close(&format!("{name}, {field}"), found, number(&expected, field), TOLERANCE);
        }
        assert_tasks(name, &report, &expected);
        let error = gradient_error(&gradient, text(case, "gradient"), 12, str::to_owned);
        assert!(error < TOLERANCE, "{name}, gradient: {error:.1e}");
    }
}

#[test]
fn predictions_and_metrics() {
    for (key, case) in json("predictions.json").as_object().unwrap() {
        let temperature = number(case, "alpha");
        let learner = Learner::Gibbs { temperature, examples: 1.0, rule: TargetTemperature::Fixed };
        let model = Model::read(path(text(case, "prior"))).unwrap().with_learner(learner);
        assert_eq!(model.standardisation().is_some(), key == "standardised");
        let tasks = tasks(text(case, "tasks"));
        let (support, _) = tasks[0].support_and_query().unwrap();
        let prediction = model.adapt(&support).unwrap().predict(&rows(&case["queries"])).unwrap();
        assert_all_close(&format!("{key}, mean"), &prediction.mean, &numbers(&case["mean"]));
        assert_all_close(&format!("{key}, std"), &prediction.std, &numbers(&case["std"]));

        let scores = evaluate(&model, &tasks).unwrap();
        for (metric, average, per_task) in [
            ("rmse", scores.rmse, scores.per_task.iter().map(|task| task.rmse).collect::<Vec<_>>()),
            (
                "log_likelihood",
                scores.log_likelihood,
                scores.per_task.iter().map(|task| task.log_likelihood).collect(),
            ),
            (
                "calibration_error",
                scores.calibration_error,
                scores.per_task.iter().map(|task| task.calibration_error).collect(),
            ),
        ] {
            let what = format!("{key}, {metric}");
            assert_all_close(&what, &per_task, &numbers(&case["metrics"][metric]));
            assert_close(&what, average, number(&case["averages"], metric), TOLERANCE);
        }
    }
}

/// The recipe's prior: the networks of a file, and raw kernel values under this library's names.
fn recipe_model(case: &Value) -> Model {
    let networks = Model::read(path(text(case, "prior"))).unwrap();
    let PriorSpec::GaussianProcess(spec) = networks.spec() else { panic!("not a Gaussian process") };
    let spec = PriorSpec::GaussianProcess(GaussianProcessSpec { kernel: Kernel::Learned, ..spec.clone() });
    let mut values = networks.parameters().values().to_vec();
    values.push(number(&case["raw"], "kernel.raw_outputscale"));
    values.extend(numbers(&case["raw"]["kernel.raw_lengthscale"]));
    values.push(number(&case["raw"], "noise.raw"));
    let parameters = Parameters::from_values(Arc::new(spec.layout().unwrap()), values).unwrap();
    Model::new(spec, parameters).with_learner(Learner::LearnedNoise)
}

#[test]
fn pacohs_own_recipe() {
    let case = json("pacoh_recipe.json");
    let model = recipe_model(&case);
    let PriorSpec::GaussianProcess(spec) = model.spec() else { panic!("not a Gaussian process") };
    let tasks = tasks(text(&case, "tasks"));
    let members: Vec<Member> = (0..tasks.len()).map(|task| Member { task, ..Member::default() }).collect();
    let batch = Batch { tasks: &tasks, members: &members };
    let mut method = PacohMap.on(spec).unwrap();

    let per_task: Vec<f64> =
        method.tasks(model.parameters().values(), &batch).unwrap().iter().map(|task| task.w).collect();
    assert_all_close("objective of task", &per_task, &numbers(&case["per_task"]));
    let mut gradient = Parameters::zeros(model.parameters().layout().clone());
    let terms = method.meta_gradient(model.parameters().values(), &batch, gradient.values_mut()).unwrap();
    assert_close("mean objective", terms.objective, number(&case, "mean"), TOLERANCE);
    let error = gradient_error(&gradient, text(&case, "gradient"), 15, |name| match name {
        "kernel.raw_output_scale" => "kernel.raw_outputscale".to_owned(),
        "kernel.raw_length_scale" => "kernel.raw_lengthscale".to_owned(),
        "likelihood.raw_noise" => "noise.raw".to_owned(),
        other => other.to_owned(),
    });
    assert!(error < TOLERANCE, "gradient: {error:.1e}");

    let task = &tasks[case["support_of_task"].as_u64().unwrap() as usize];
    let support = task.select(task.adapt().unwrap());
    let prediction = model.adapt(&support).unwrap().predict(&rows(&case["queries"])).unwrap();
    assert_all_close("predictive mean", &prediction.mean, &numbers(&case["predictive_mean"]));
    assert_all_close("predictive std", &prediction.std, &numbers(&case["predictive_std"]));
}

/// The mean network of a Gaussian-process prior on its own.
fn mean_network(file: &str) -> (NetworkSpec, Parameters<f64>) {
    let model = Model::read(path(file)).unwrap();
    let PriorSpec::GaussianProcess(spec) = model.spec() else { panic!("not a Gaussian process") };
    let spec = NetworkSpec { dimension: spec.dimension, hidden: spec.mean_hidden.clone() };
    let layout = Arc::new(PriorSpec::Network(spec.clone()).layout().unwrap());
    let values = model.parameters().values()[..layout.len()].to_vec();
    (spec, Parameters::from_values(layout, values).unwrap())
}

#[test]
fn maml_exact_and_first_order() {
    let case = json("maml.json");
    let (spec, start) = mean_network(text(&case, "prior"));
    let tasks = tasks(text(&case, "tasks"));
    let inner = InnerSteps { steps: case["steps"].as_u64().unwrap() as usize, rate: number(&case, "rate") };
    let methods: [(&str, Box<dyn Method>); 2] =
        [("maml", Box::new(Maml::new(&spec, inner))), ("fomaml", Box::new(Fomaml::new(&spec, inner)))];
    for (name, mut method) in methods {
        for (position, expected) in case["per_task"].as_array().unwrap().iter().enumerate() {
            let task = expected["task"].as_u64().unwrap() as usize;
            let adapt = tasks[task].adapt().unwrap().to_vec();
            let members = [Member { task, adapt, judged: Vec::new() }];
            let mut gradient = Parameters::zeros(start.layout().clone());
            let terms = method
                .meta_gradient(
                    start.values(),
                    &Batch { tasks: &tasks, members: &members },
                    gradient.values_mut(),
                )
                .unwrap();
            let loss = number(expected, "query_loss");
            assert_close(&format!("{name} {position}, loss"), terms.objective, loss, TOLERANCE);
            let rename = |entry: &str| format!("{name}.{position}.{entry}");
            let error = gradient_error(&gradient, text(&case, "tensors"), 6, rename);
            assert!(error < TOLERANCE, "{name} {position}, gradient: {error:.1e}");
        }
    }
}

#[test]
fn reptile_with_the_papers_optimiser() {
    let case = json("maml.json");
    let (spec, start) = mean_network(text(&case, "prior"));
    let tasks = tasks(text(&case, "tasks"));
    let reptile = &case["reptile"];
    let optimiser = Lbfgs::PAPER;
    assert_eq!(optimiser.step, Step::Fixed { rate: number(reptile, "rate") });
    assert_eq!(reptile["history"].as_u64().unwrap() as usize, optimiser.history);
    assert_eq!(reptile["iterations"].as_u64().unwrap() as usize, optimiser.iterations);
    let beta_sigma_squared = number(reptile, "beta") * number(reptile, "variance");
    let proximal = Proximal { beta_sigma_squared, optimiser };
    for (position, expected) in case["per_task"].as_array().unwrap().iter().enumerate() {
        let task = &tasks[expected["task"].as_u64().unwrap() as usize];
        let examples = Examples { inputs: task.inputs(), targets: task.targets() };
        let mut loss = SquaredLoss::new(&spec.widths());
        let mut unused = vec![0.0; start.values().len()];
        let before = loss.add_gradient(start.values(), examples, 1.0, &mut unused);
        assert_close("before", before, number(expected, "reptile_before"), TOLERANCE);
        let mut optimum = start.clone();
        let after = proximal.minimise(&mut loss, start.values(), examples, optimum.values_mut());
        let distance: f64 = start.values().iter().zip(optimum.values()).map(|(p, q)| (p - q) * (p - q)).sum();
        let total = after + distance / (2.0 * beta_sigma_squared);
        assert_close("after", total, number(expected, "reptile_after"), TOLERANCE);
        let rename = |entry: &str| format!("reptile.{position}.{entry}");
        let error = gradient_error(&optimum, text(&case, "tensors"), 6, rename);
        assert!(error < TOLERANCE, "q* of {position}: {error:.1e}");
    }
    let settings = MethodSettings::Reptile { beta_sigma_squared, optimiser };
    assert!(settings.build(&PriorSpec::Network(spec)).is_ok());
}

/// A perceptron with tanh, one input at a time, from named tensors.
fn perceptron(parameters: &Parameters<f64>, prefix: &str, layers: &[&str], input: &[f64]) -> Vec<f64> {
    let mut values = input.to_vec();
    for (index, layer) in layers.iter().enumerate() {
        let weight = parameters.tensor(&format!("{prefix}.{layer}.weight")).unwrap();
        let bias = parameters.tensor(&format!("{prefix}.{layer}.bias")).unwrap();
        let sums = weight.chunks_exact(values.len()).zip(bias);
        let next = sums.map(|(row, bias)| bias + row.iter().zip(&values).map(|(w, x)| w * x).sum::<f64>());
        let last = index + 1 == layers.len();
        values = next.map(|sum| if last { sum } else { sum.tanh() }).collect();
    }
    values
}

/// Mean and a Cholesky factor of the covariance of h at the points of a task.
fn prior_at(parameters: &Parameters<f64>, task: &Task) -> (Vec<f64>, Vec<Vec<f64>>) {
    let layers = ["hidden.0", "hidden.1", "output"];
    let at = |prefix: &str, index| perceptron(parameters, prefix, &layers, task.input(index));
    let mean = (0..task.len()).map(|index| at("mean", index)[0]).collect();
    let features: Vec<Vec<f64>> = (0..task.len()).map(|index| at("features", index)).collect();
    let kernel = |i: usize, j: usize| {
        let squares: f64 = features[i].iter().zip(&features[j]).map(|(a, b)| (a - b) * (a - b)).sum();
        0.5 * (-squares).exp()
    };
    let mut factor = vec![vec![0.0; task.len()]; task.len()];
    for i in 0..task.len() {
        for j in 0..=i {
            let rest = kernel(i, j) - (0..j).map(|k| factor[i][k] * factor[j][k]).sum::<f64>();
            factor[i][j] = if i == j { rest.sqrt() } else { rest / factor[j][j] };
        }
    }
    (mean, factor)
}

/// log Z, risks and KL by sampling functions from the prior and weighting them with exp(-temperature L^).
#[test]
fn closed_forms_agree_with_sampled_functions() {
    let model = Model::read(path("gp_prior.safetensors")).unwrap();
    let inputs = vec![-3.0, -0.4, 0.9, 2.6];
    let (mean, _) = prior_at(model.parameters(), &Task::new("a", 1, inputs.clone(), vec![0.0; 4]).unwrap());
    let targets = mean.iter().zip([0.7, -0.5, 0.2, 0.4]).map(|(mean, shift)| mean + shift).collect();
    let task = Task::new("a", 1, inputs, targets).unwrap().with_adapt(vec![2, 0, 3]).unwrap();
    let (mean, factor) = prior_at(model.parameters(), &task);
    let everything: Vec<usize> = (0..4).collect();
    for kind in [ObjectiveKind::Pacoh { beta: 2.5 }, ObjectiveKind::Pacmaml { alpha: 3.0, beta: 7.0 }] {
        let temperature = kind.alpha().unwrap_or(kind.beta());
        let seen = if kind.alpha().is_some() { task.adapt().unwrap() } else { &everything };
        let mut generator = Key::new(17).generator();
        let draws: Vec<[f64; 2]> = (0..100_000)
            .map(|_| {
                let noise: Vec<f64> = (0..4).map(|_| generator.normal()).collect();
                let squares: Vec<f64> = (0..4)
                    .map(|i| {
                        let h = mean[i] + (0..=i).map(|k| factor[i][k] * noise[k]).sum::<f64>();
                        (h - task.targets()[i]).powi(2)
                    })
                    .collect();
                let over = |indices: &[usize]| {
                    indices.iter().map(|&index| squares[index]).sum::<f64>() / indices.len() as f64
                };
                [over(seen), over(&everything)]
            })
            .collect();
        let count = draws.len() as f64;
        let weights: Vec<f64> = draws.iter().map(|[own, _]| (-temperature * own).exp()).collect();
        let z = weights.iter().sum::<f64>() / count;
        let average = |column: usize| {
            draws.iter().zip(&weights).map(|(draw, weight)| weight * draw[column]).sum::<f64>() / (count * z)
        };
        let (own, risk) = (average(0), average(1));
        // The standard error is that of the mean of what one draw contributes to each number (delta method).
        let error = |influence: &dyn Fn([f64; 2], f64) -> f64| {
            let squares: f64 =
                draws.iter().zip(&weights).map(|(draw, weight)| influence(*draw, weight / z).powi(2)).sum();
            squares.sqrt() / count
        };
        let report =
            objective(&model, std::slice::from_ref(&task), &ObjectiveRequest::new(kind), None).unwrap();
        let found = &report.tasks[0];
        let kl = -temperature * own - z.ln();
        for (what, closed, sampled, error) in [
            ("log_z", found.log_z, z.ln(), error(&|_, w| w - 1.0)),
            ("risk", found.risk, risk, error(&|draw, w| w * (draw[1] - risk))),
            ("own risk", found.risk_adapt, own, error(&|draw, w| w * (draw[0] - own))),
            ("kl", found.kl, kl, error(&|draw, w| -temperature * w * (draw[0] - own) - (w - 1.0))),
        ] {
            assert!(
                (closed - sampled).abs() < 4.0 * error,
                "{kind:?} {what}: {closed}, {sampled} +- {error}"
            );
            assert!(error < 0.02 * closed.abs(), "{kind:?} {what}: the comparison is too coarse, {error}");
        }
    }
}
