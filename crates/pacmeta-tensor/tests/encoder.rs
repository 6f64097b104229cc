//! The fused encoder: against the one in operations of the tape, against itself cut and packed otherwise, and its limits.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::sync::Arc;

use common::assert_close;
use pacmeta_tensor::encoder::{
    Activation, Dropout, EncoderRoom, EncoderShape, Keep, Pooling, States, Tokens, composite, lower_backward,
    lower_forward, upper_backward, upper_forward,
};
use pacmeta_tensor::{Array, Element, Generator, Key, Parameters, Tape};

const ACTIVATIONS: [Activation; 3] = [Activation::Gelu, Activation::GeluTanh, Activation::Relu];
const POOLINGS: [Pooling; 3] = [Pooling::First, Pooling::Mean, Pooling::Pooler];

fn small(activation: Activation, pooling: Pooling) -> EncoderShape {
    EncoderShape {
        vocabulary: 13,
        positions: 40,
        segments: 2,
        hidden: 12,
        heads: 3,
        intermediate: 20,
        layers: 3,
        epsilon: 1e-6,
        activation,
        pooling,
    }
}

/// Sequences of these lengths.
struct Batch {
    ids: Vec<u32>,
    segments: Vec<u8>,
    starts: Vec<usize>,
}

impl Batch {
    fn new(shape: &EncoderShape, generator: &mut Generator, lengths: &[usize]) -> Batch {
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + length);
        }
        let count = starts[lengths.len()];
        Batch {
            ids: (0..count).map(|_| generator.below(shape.vocabulary) as u32).collect(),
            segments: (0..count).map(|_| generator.below(shape.segments.max(1)) as u8).collect(),
            starts,
        }
    }

    fn tokens(&self) -> Tokens<'_> {
        Tokens { ids: &self.ids, segments: &self.segments, starts: &self.starts }
    }
}

fn draw<E: Element>(shape: &EncoderShape, generator: &mut Generator) -> Vec<E> {
    let len = shape.layout().unwrap().len();
    (0..len).map(|_| E::from_f64(0.5 * generator.normal())).collect()
}

/// Features, the gradient of all parameters and that at the states between the halves.
fn run<E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    parameters: &[E],
    tokens: Tokens<'_>,
    dropout: Option<Dropout>,
    slopes: &[E],
) -> (Vec<E>, Vec<E>) {
    let (mut below, mut above) = (EncoderRoom::new(), EncoderRoom::new());
    let (lower, upper) = parameters.split_at(shape.boundary(threshold));
    let keep = Keep::ForBackward;
    let states = lower_forward(shape, threshold, lower, tokens, keep, dropout, &mut below).unwrap().to_vec();
    let states = States { values: &states, starts: tokens.starts };
    let features =
        upper_forward(shape, threshold, upper, states, keep, dropout, &mut above).unwrap().to_vec();
    let mut gradient = vec![E::from_f64(f64::NAN); parameters.len()];
    let (lower_gradient, upper_gradient) = gradient.split_at_mut(lower.len());
    let mut state_gradient = vec![E::from_f64(f64::NAN); states.values.len()];
    let at_states = Some(&mut state_gradient[..]);
    upper_backward(shape, threshold, upper, states, slopes, &mut above, upper_gradient, at_states).unwrap();
    lower_backward(shape, threshold, lower, tokens, &state_gradient, &mut below, lower_gradient).unwrap();
    (features, gradient)
}

fn normals<E: Element>(generator: &mut Generator, count: usize) -> Vec<E> {
    (0..count).map(|_| E::from_f64(generator.normal())).collect()
}

#[test]
fn features_and_gradients_are_those_of_the_tape() {
    let mut generator = Key::new(3).named("encoder").generator();
    for activation in ACTIVATIONS {
        for pooling in POOLINGS {
            for segments in [0, 2] {
                let shape = EncoderShape { segments, ..small(activation, pooling) };
                let parameters: Vec<f64> = draw(&shape, &mut generator);
                let batch = Batch::new(&shape, &mut generator, &[5, 1, 37, 9]);
                let slopes: Vec<f64> = normals(&mut generator, 4 * shape.hidden);
                let (features, gradient) = run(&shape, 1, &parameters, batch.tokens(), None, &slopes);

                let layout = Arc::new(shape.layout().unwrap());
                let tape = Tape::new();
                let variables = tape.parameters(&Parameters::from_values(layout, parameters).unwrap());
                let states = composite::lower_states(&shape, 1, &variables, batch.tokens()).unwrap();
                let expected =
                    composite::upper_features(&shape, 1, &variables, states, &batch.starts).unwrap();
                let name = format!("{activation:?} {pooling:?} {segments}");
                assert_close(&name, &features, expected.value().values(), 1e-12);
                let seed = tape.leaf(Array::new(&expected.shape(), slopes).unwrap());
                let output = (expected * seed).unwrap().sum();
                let expected = tape.parameter_gradient(output, &variables).unwrap();
                assert_close(&name, &gradient, expected.values(), 1e-10);
            }
        }
    }
}
