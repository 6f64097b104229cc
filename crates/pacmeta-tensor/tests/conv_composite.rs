//! The convolutional body in operations of the tape: against the plain one, and both orders against finite differences.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::sync::Arc;

use common::{assert_close, check, normal};
use pacmeta_tensor::conv::plain::forward;
use pacmeta_tensor::conv::{ConvShape, Downsampling, Statistics, composite};
use pacmeta_tensor::{Array, Generator, Key, Parameters, Tape, TensorError};

const DOWNSAMPLINGS: [Downsampling; 2] = [Downsampling::MaxPool, Downsampling::Stride];

fn small(downsampling: Downsampling) -> ConvShape {
    ConvShape { height: 9, width: 6, channels: 2, filters: 3, blocks: 2, downsampling }
}

fn draw(shape: &ConvShape, generator: &mut Generator, images: usize) -> (Parameters<f64>, Vec<f64>) {
    let layout = Arc::new(shape.layout().unwrap());
    let values = (0..layout.len()).map(|_| generator.normal()).collect();
    let parameters = Parameters::from_values(layout, values).unwrap();
    (parameters, (0..images * shape.image_len()).map(|_| generator.uniform()).collect())
}

#[test]
fn features_and_gradients_are_those_of_the_plain_body() {
    let mut generator = Key::new(3).named("composite").generator();
    for downsampling in DOWNSAMPLINGS {
        let shape = small(downsampling);
        let (parameters, images) = draw(&shape, &mut generator, 4);
        let pass = forward(&shape, parameters.values(), &images, Statistics::Batch, None).unwrap();
        let slopes: Vec<f64> = pass.features().iter().map(|_| generator.normal()).collect();
        let mut expected = vec![0.0; parameters.values().len()];
        pass.backward(parameters.values(), &slopes, &mut expected).unwrap();

        let tape = Tape::new();
        let variables = tape.parameters(&parameters);
        let features = composite::features(&shape, &variables, &images).unwrap();
        assert_eq!(features.shape()[..], [4, pass.features().len() / 4]);
        assert_close("features", features.value().values(), pass.features(), 1e-12);
        let seed = tape.leaf(Array::new(&features.shape(), slopes).unwrap());
        let output = (features * seed).unwrap().sum();
        let gradient = tape.parameter_gradient(output, &variables).unwrap();
        assert_close("gradient", gradient.values(), &expected, 1e-11);
    }
}

/// A step of finite differences must not jump over a kink, so these numbers are such that nothing is near one.
#[test]
fn both_orders_are_finite_differences() {
    for downsampling in DOWNSAMPLINGS {
        let shape = ConvShape { height: 4, width: 5, channels: 2, filters: 2, blocks: 1, downsampling };
        let mut generator = Key::new(11).named("differences").generator();
        let (parameters, images) = std::iter::repeat_with(|| draw(&shape, &mut generator, 2))
            .find(|(parameters, images)| is_far_from_kinks(&shape, parameters, images))
            .unwrap();
        let layout = Arc::clone(parameters.layout());
        let inputs: Vec<Array<f64>> = parameters
            .iter()
            .map(|(entry, values)| Array::new(&entry.shape, values.to_vec()).unwrap())
            .collect();
        let mut other = Key::new(12).generator();
        let length = shape.filters * 2 * if downsampling == Downsampling::Stride { 6 } else { 4 };
        let weights = normal(&mut other, &[2, length / 2]);
        check(
            "a convolutional body",
            &|tape, leaves| {
                let names = tape.parameters(&Parameters::zeros(Arc::clone(&layout)));
                let variables = names.with_variables(leaves.to_vec())?;
                let features = composite::features(&shape, &variables, &images)?;
                Ok((features.square() * tape.leaf(weights.clone()))?.sum())
            },
            &inputs,
            &mut other,
        );
    }
}

/// Whether moving any parameter by the reach of the differences leaves all choices of pools and rectifiers as they are.
fn is_far_from_kinks(shape: &ConvShape, parameters: &Parameters<f64>, images: &[f64]) -> bool {
    let decisions =
        |values: &[f64]| forward(shape, values, images, Statistics::Batch, None).unwrap().decisions().clone();
    let here = decisions(parameters.values());
    (0..parameters.values().len()).all(|place| {
        [-0.02, 0.02].iter().all(|step| {
            let mut values = parameters.values().to_vec();
            values[place] += step;
            decisions(&values) == here
        })
    })
}

#[test]
fn wrong_sizes_are_refused() {
    let shape = small(Downsampling::MaxPool);
    let (parameters, images) = draw(&shape, &mut Key::new(1).generator(), 2);
    let tape = Tape::new();
    let variables = tape.parameters(&parameters);
    assert!(matches!(
        composite::features(&shape, &variables, &images[1..]),
        Err(TensorError::LengthMismatch { .. })
    ));
    let wider = ConvShape { filters: 4, ..shape };
    assert!(composite::features(&wider, &variables, &images).is_err());
    let deeper = ConvShape { blocks: 3, ..shape };
    let error = composite::features(&ConvShape { height: 16, width: 16, ..deeper }, &variables, &[0.5; 512]);
    assert!(error.unwrap_err().to_string().contains("body.block.2.conv.weight"));
}
