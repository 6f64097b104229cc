//! Finite differences, shared by the tests of derivatives.

#![allow(dead_code, reason = "no test file uses all of it")]

use pacmeta_tensor::{Array, Generator, Result, Shape, Tape, Variable};

/// A function of variables, on whatever tape they are.
pub(crate) type Function<'f> =
    dyn for<'t> Fn(&'t Tape<f64>, &[Variable<'t, f64>]) -> Result<Variable<'t, f64>> + 'f;

/// Random numbers in a shape.
pub(crate) fn normal(generator: &mut Generator, shape: &[usize]) -> Array<f64> {
    let count = Shape::new(shape).unwrap().count();
    Array::new(shape, (0..count).map(|_| generator.normal()).collect()).unwrap()
}

/// Runs a function on leaves.
pub(crate) fn evaluate(function: &Function<'_>, inputs: &[Array<f64>]) -> f64 {
    let tape = Tape::new();
    let leaves: Vec<_> = inputs.iter().map(|input| tape.leaf(input.clone())).collect();
    function(&tape, &leaves).unwrap().item().unwrap()
}

/// The gradient of a function as one list of numbers.
pub(crate) fn gradient(function: &Function<'_>, inputs: &[Array<f64>]) -> Vec<f64> {
    let tape = Tape::new();
    let leaves: Vec<_> = inputs.iter().map(|input| tape.leaf(input.clone())).collect();
    let output = function(&tape, &leaves).unwrap();
    let kept = flatten(tape.gradient(output, &leaves).unwrap().iter().map(|gradient| gradient.value()));
    let length = tape.len();
    let dropped = flatten(tape.gradient_values(output, &leaves).unwrap());
    assert_eq!(tape.len(), length);
    assert_eq!(kept, dropped, "dropping intermediates changes the gradient");
    kept
}

/// The Hessian of a function times a vector as one list of numbers.
pub(crate) fn hessian_vector_product(
    function: &Function<'_>,
    inputs: &[Array<f64>],
    vector: &[Array<f64>],
) -> Vec<f64> {
    let tape = Tape::new();
    let leaves: Vec<_> = inputs.iter().map(|input| tape.leaf(input.clone())).collect();
    let parts: Vec<_> = vector.iter().map(|part| tape.leaf(part.clone())).collect();
    let output = function(&tape, &leaves).unwrap();
    let products = tape.hessian_vector_product(output, &leaves, &parts).unwrap();
    flatten(products.iter().map(|product| product.value()))
}

/// Inputs moved along a direction.
pub(crate) fn moved(inputs: &[Array<f64>], direction: &[Array<f64>], step: f64) -> Vec<Array<f64>> {
    let mut inputs = inputs.to_vec();
    for (input, direction) in inputs.iter_mut().zip(direction) {
        for (value, slope) in input.values_mut().iter_mut().zip(direction.values()) {
            *value += step * slope;
        }
    }
    inputs
}

/// Central differences of fourth order of a list of numbers along a direction.
pub(crate) fn difference(
    direction: &[Array<f64>],
    inputs: &[Array<f64>],
    of: impl Fn(&[Array<f64>]) -> Vec<f64>,
) -> Vec<f64> {
    let step = 2e-3;
    let at = |multiple: f64| of(&moved(inputs, direction, multiple * step));
    let (far_left, left, right, far_right) = (at(-2.0), at(-1.0), at(1.0), at(2.0));
    (0..left.len())
        .map(|place| {
            (far_left[place] - 8.0 * left[place] + 8.0 * right[place] - far_right[place]) / (12.0 * step)
        })
        .collect()
}

/// Fails unless two lists agree relative to the size of the expected one.
pub(crate) fn assert_close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let size = expected.iter().fold(1.0_f64, |size, value| size.max(value.abs()));
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() < tolerance * size,
            "{name}, element {place}: {found} is not {expected}"
        );
    }
}

/// Checks gradient and Hessian-vector product of a function against finite differences.
pub(crate) fn check(name: &str, function: &Function<'_>, inputs: &[Array<f64>], generator: &mut Generator) {
    let found = gradient(function, inputs);
    let mut expected = Vec::new();
    for position in 0..inputs.len() {
        for element in 0..inputs[position].values().len() {
            let mut unit: Vec<Array<f64>> = inputs.iter().map(|input| Array::zeros(*input.shape())).collect();
            unit[position].values_mut()[element] = 1.0;
            expected.extend(difference(&unit, inputs, |inputs| vec![evaluate(function, inputs)]));
        }
    }
    assert_close(&format!("gradient of {name}"), &found, &expected, 1e-8);

    let vector: Vec<Array<f64>> = inputs.iter().map(|input| normal(generator, input.shape())).collect();
    let found = hessian_vector_product(function, inputs, &vector);
    let expected = difference(&vector, inputs, |inputs| gradient(function, inputs));
    assert_close(&format!("Hessian of {name}"), &found, &expected, 1e-7);
}

fn flatten(arrays: impl IntoIterator<Item = Array<f64>>) -> Vec<f64> {
    arrays.into_iter().flat_map(Array::into_values).collect()
}
