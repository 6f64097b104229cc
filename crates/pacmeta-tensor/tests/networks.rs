//! What the tape is for: networks, softmax heads, marginal likelihoods and exact meta-gradients.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

mod common;

use std::sync::Arc;

use common::{assert_close, check, difference, normal};
use pacmeta_tensor::{
    Array, Element, Key, ParameterLayout, ParameterVariables, Parameters, Result, Tape, TensorError, Variable,
};

/// A network 2-4-3 with tanh between.
fn layout() -> Arc<ParameterLayout> {
    let builder = ParameterLayout::builder()
        .tensor("hidden.weight", &[4, 2])
        .tensor("hidden.bias", &[4])
        .tensor("output.weight", &[3, 4])
        .tensor("output.bias", &[3]);
    Arc::new(builder.build().unwrap())
}

fn logits<'t, E: Element>(
    parameters: &ParameterVariables<'t, E>,
    x: Variable<'t, E>,
) -> Result<Variable<'t, E>> {
    let hidden =
        (x.matmul_transposed(parameters.get("hidden.weight")?)? + parameters.get("hidden.bias")?)?.tanh();
    hidden.matmul_transposed(parameters.get("output.weight")?)? + parameters.get("output.bias")?
}

fn cross_entropy<'t, E: Element>(
    parameters: &ParameterVariables<'t, E>,
    x: Variable<'t, E>,
    labels: &[usize],
) -> Result<Variable<'t, E>> {
    Ok(-logits(parameters, x)?.log_softmax(1)?.pick(labels)?.mean())
}

struct Problem {
    parameters: Parameters<f64>,
    support: (Array<f64>, Vec<usize>),
    query: (Array<f64>, Vec<usize>),
}

fn problem() -> Problem {
    let mut generator = Key::new(3).generator();
    let layout = layout();
    let values = normal(&mut generator, &[layout.len()]).into_values();
    let mut examples = |count| {
        let labels = (0..count).map(|_| generator.below(3)).collect();
        (normal(&mut generator, &[count, 2]), labels)
    };
    let (support, query) = (examples(5), examples(7));
    Problem { parameters: Parameters::from_values(layout, values).unwrap(), support, query }
}

/// A flat vector as the one input of finite differences.
fn flat(parameters: &Parameters<f64>) -> [Array<f64>; 1] {
    [Array::from_slice(&[parameters.values().len()], parameters.values()).unwrap()]
}

fn gradient_by_differences(parameters: &Parameters<f64>, of: impl Fn(&Parameters<f64>) -> f64) -> Vec<f64> {
    let inputs = flat(parameters);
    (0..parameters.values().len())
        .map(|place| {
            let mut unit = [Array::zeros(*inputs[0].shape())];
            unit[0].values_mut()[place] = 1.0;
            let at = |inputs: &[Array<f64>]| {
                vec![of(&Parameters::from_values(
                    Arc::clone(parameters.layout()),
                    inputs[0].values().to_vec(),
                )
                .unwrap())]
            };
            difference(&unit, &inputs, at)[0]
        })
        .collect()
}

#[test]
fn gradient_of_a_network_with_softmax() {
    let Problem { parameters, support: (x, labels), .. } = problem();
    let tape = Tape::new();
    let variables = tape.parameters(&parameters);
    let loss = cross_entropy(&variables, tape.leaf(x.clone()), &labels).unwrap();
    let found = tape.parameter_gradient(loss, &variables).unwrap();
    let expected = gradient_by_differences(&parameters, |parameters| {
        let tape = Tape::new();
        cross_entropy(&tape.parameters(parameters), tape.leaf(x.clone()), &labels).unwrap().item().unwrap()
    });
    assert_close("network", found.values(), &expected, 1e-9);
}

/// The loss on the query after two steps of gradient descent on the support: every step is on the tape.
fn loss_after_steps<'t>(
    problem: &Problem,
    tape: &'t Tape<f64>,
    parameters: &ParameterVariables<'t, f64>,
) -> Result<Variable<'t, f64>> {
    let support = tape.leaf(problem.support.0.clone());
    let mut adapted = parameters.clone();
    for _ in 0..2 {
        let loss = cross_entropy(&adapted, support, &problem.support.1)?;
        let gradients = tape.gradient(loss, adapted.variables())?;
        let steps = adapted.variables().iter().zip(gradients);
        adapted = adapted
            .with_variables(steps.map(|(&p, gradient)| p - gradient.scale(0.7)).collect::<Result<_>>()?)?;
    }
    cross_entropy(&adapted, tape.leaf(problem.query.0.clone()), &problem.query.1)
}

#[test]
fn exact_meta_gradient_through_two_steps() {
    let problem = problem();
    let tape = Tape::new();
    let variables = tape.parameters(&problem.parameters);
    let loss = loss_after_steps(&problem, &tape, &variables).unwrap();
    let exact = tape.parameter_gradient(loss, &variables).unwrap();
    let expected = gradient_by_differences(&problem.parameters, |parameters| {
        let tape = Tape::new();
        loss_after_steps(&problem, &tape, &tape.parameters(parameters)).unwrap().item().unwrap()
    });
    assert_close("meta-gradient", exact.values(), &expected, 1e-8);

    // The steps matter: without them, or without their derivative, the gradient is another one.
    let plain = cross_entropy(&variables, tape.leaf(problem.query.0.clone()), &problem.query.1).unwrap();
    let plain = tape.parameter_gradient(plain, &variables).unwrap();
    let distance: f64 = exact.values().iter().zip(plain.values()).map(|(a, b)| (a - b).powi(2)).sum();
    assert!(distance > 1e-3 * exact.squared_norm());
}

/// (r' A^-1 r + log |A|) / 2 with A = K + noise I and kernel exp(-|x - x'|^2), in single operations.
#[test]
fn marginal_likelihood_of_a_gaussian_process() {
    let mut generator = Key::new(4).generator();
    let inputs =
        [normal(&mut generator, &[5, 2]), normal(&mut generator, &[5, 1]), normal(&mut generator, &[])];
    let identity: Vec<f64> = (0..25).map(|place| f64::from(u8::from(place % 6 == 0))).collect();
    let identity = Array::new(&[5, 5], identity).unwrap();
    check(
        "marginal likelihood",
        &|tape, x| {
            let (features, residuals, noise) = (x[0], x[1], x[2]);
            let norms = features.square().sum_axis(1)?;
            let distances =
                ((norms + norms.transpose()?)? - features.matmul_transposed(features)?.scale(2.0))?;
            let noise = (tape.leaf(identity.clone()) * noise.softplus())?;
            let covariance = ((-distances).exp() + noise)?;
            let fit = residuals.transpose()?.matmul(covariance.inverse()?)?.matmul(residuals)?.sum();
            Ok((fit + covariance.log_det()?)?.scale(0.5))
        },
        &inputs,
        &mut generator,
    );
}

#[test]
fn log_softmax_is_stable() {
    let tape = Tape::new();
    let x = tape.leaf(Array::new(&[2, 3], vec![1e3, -1e3, 0.0, -1e3, -1e3, -1e3]).unwrap());
    let log_probabilities = x.log_softmax(1).unwrap();
    let values = log_probabilities.value();
    assert_eq!(values.values()[..3], [0.0, -2e3, -1e3]);
    assert!(values.values()[3..].iter().all(|value| (value + 3f64.ln()).abs() < 1e-12));
    let gradient = tape.gradient(log_probabilities.pick(&[1, 2]).unwrap().sum(), &[x]).unwrap()[0];
    let third = 1.0 / 3.0;
    let expected = [-1.0, 1.0, 0.0, -third, -third, 1.0 - third];
    assert_close("log_softmax", gradient.value().values(), &expected, 1e-12);
    let second = tape.gradient(gradient.square().sum(), &[x]).unwrap()[0];
    assert!(second.value().values().iter().all(|value| value.is_finite()));
}

#[test]
fn functions_of_extreme_numbers_are_finite() {
    let tape = Tape::new();
    let x = tape.leaf(Array::new(&[4], vec![-1e3, 1e3, -1e300, 1e300]).unwrap());
    assert_eq!(x.softplus().value().values(), [0.0, 1e3, 0.0, 1e300]);
    assert_eq!(x.sigmoid().value().values(), [0.0, 1.0, 0.0, 1.0]);
    let gradient = tape.gradient(x.softplus().sum(), &[x]).unwrap()[0];
    assert_eq!(gradient.value().values(), [0.0, 1.0, 0.0, 1.0]);
    assert!(tape.scalar(f64::NAN).relu().item().unwrap().is_nan());
}

#[test]
fn single_precision_follows_double() {
    let Problem { parameters, support: (x, labels), .. } = problem();
    let tape = Tape::new();
    let variables = tape.parameters(&parameters);
    let loss = cross_entropy(&variables, tape.leaf(x.clone()), &labels).unwrap();
    let double = tape.parameter_gradient(loss, &variables).unwrap();

    let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
    let parameters = Parameters::from_values(layout(), narrow(parameters.values())).unwrap();
    let tape = Tape::<f32>::new();
    let variables = tape.parameters(&parameters);
    let x = tape.leaf(Array::new(x.shape(), narrow(x.values())).unwrap());
    let loss = cross_entropy(&variables, x, &labels).unwrap();
    let single = tape.parameter_gradient(loss, &variables).unwrap();
    let widened: Vec<f64> = single.values().iter().map(|&value| f64::from(value)).collect();
    assert_close("single precision", &widened, double.values(), 1e-6);
    assert_ne!(widened, double.values());
}

#[test]
fn parameters_go_to_the_tape_and_back() {
    let Problem { parameters, .. } = problem();
    let tape = Tape::new();
    let variables = tape.parameters(&parameters);
    assert_eq!(variables.to_parameters(), parameters);
    assert_eq!(variables.get("output.weight").unwrap().shape()[..], [3, 4]);
    assert_eq!(variables.get("other").unwrap_err(), TensorError::UnknownName { name: "other".to_owned() });
    assert!(variables.with_variables(variables.variables()[1..].to_vec()).is_err());
    let mut reversed = variables.variables().to_vec();
    reversed.reverse();
    assert!(variables.with_variables(reversed).is_err());
    // Half the squared norm has the parameters as its gradient: each element returns to its own place.
    let mut loss = tape.scalar(0.0);
    for variable in variables.variables() {
        loss = (loss + variable.square().sum().scale(0.5)).unwrap();
    }
    let mut buffer = vec![f64::NAN; parameters.layout().len()];
    tape.parameter_gradient_into(loss, &variables, &mut buffer).unwrap();
    assert_eq!(buffer, parameters.values());
    assert!(tape.parameter_gradient_into(loss, &variables, &mut buffer[1..]).is_err());
}

#[test]
fn tapes_do_not_mix() {
    let (tape, other) = (Tape::new(), Tape::new());
    let (x, y) = (tape.scalar(1.0), other.scalar(1.0));
    assert_eq!((x + y).unwrap_err(), TensorError::DifferentTapes { operation: "add" });
    assert_eq!(tape.gradient(x, &[y]).unwrap_err(), TensorError::DifferentTapes { operation: "gradient" });
    assert!(other.gradient(x, &[x]).is_err());
    assert!(Variable::concatenate(&[x.reshape(&[1]).unwrap(), y.reshape(&[1]).unwrap()], 0).is_err());
}

#[test]
fn a_tape_moves_between_threads() {
    let tape = Tape::new();
    tape.scalar(1.0);
    let length = std::thread::spawn(move || tape.scalar(2.0).tape().len()).join().unwrap();
    assert_eq!(length, 2);
}
