//! The encoder in operations of the tape: both orders against finite differences.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::sync::Arc;

use common::{check, normal};
use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling, Tokens, composite};
use pacmeta_tensor::{Array, Blocks, Key, Parameters, Tape, TensorError};

fn tiny(activation: Activation, pooling: Pooling) -> EncoderShape {
    EncoderShape {
        vocabulary: 5,
        positions: 4,
        segments: 2,
        hidden: 4,
        heads: 2,
        intermediate: 3,
        layers: 2,
        // not small, so that rows of four have tame derivatives
        epsilon: 1.0,
        activation,
        pooling,
    }
}

const TOKENS: Tokens<'_> = Tokens { ids: &[0, 3, 1, 4, 2], segments: &[0, 1, 1, 0, 1], starts: &[0, 3, 5] };

#[test]
fn both_orders_are_finite_differences() {
    let mut generator = Key::new(21).named("encoder").generator();
    for (activation, pooling) in [
        (Activation::Gelu, Pooling::Pooler),
        (Activation::Gelu, Pooling::Mean),
        (Activation::GeluTanh, Pooling::First),
    ] {
        let shape = tiny(activation, pooling);
        let layout = Arc::new(shape.layout().unwrap());
        let inputs: Vec<Array<f64>> = layout
            .entries()
            .iter()
            .map(|entry| {
                let mut tensor = normal(&mut generator, &entry.shape);
                tensor.values_mut().iter_mut().for_each(|value| *value *= 0.4);
                tensor
            })
            .collect();
        let weights = normal(&mut generator, &[2, shape.hidden]);
        check(
            "an encoder",
            &|tape, leaves| {
                let names = tape.parameters(&Parameters::zeros(Arc::clone(&layout)));
                let variables = names.with_variables(leaves.to_vec())?;
                let states = composite::lower_states(&shape, 1, &variables, TOKENS)?;
                let features = composite::upper_features(&shape, 1, &variables, states, TOKENS.starts)?;
                Ok((features.square() * tape.leaf(weights.clone()))?.sum())
            },
            &inputs,
            &mut generator,
        );
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let shape = tiny(Activation::Gelu, Pooling::Pooler);
    let tape = Tape::<f64>::new();
    let variables = tape.parameters(&Parameters::zeros(Arc::new(shape.upper_layout(1).unwrap())));
    let states = tape.leaf(Array::new(&[5, 4], vec![0.5; 20]).unwrap());
    assert!(composite::upper_features(&shape, 1, &variables, states, &[0, 3, 5]).is_ok());
    assert!(composite::upper_features(&shape, 1, &variables, states, &[0, 3, 6]).is_err());
    assert!(composite::upper_features(&shape, 1, &variables, states, &[0, 5]).is_err());
    assert!(composite::upper_features(&shape, 3, &variables, states, &[0, 3, 5]).is_err());
    assert!(matches!(
        composite::upper_features(&shape, 0, &variables, states, &[0, 3, 5]),
        Err(TensorError::UnknownName { name }) if name == "layer.0.attention.query.weight"
    ));
    assert!(composite::lower_states(&shape, 1, &variables, TOKENS).is_err());
    let flat = tape.leaf(Array::new(&[20], vec![0.5; 20]).unwrap());
    assert!(composite::upper_features(&shape, 1, &variables, flat, &[0, 3, 5]).is_err());

    assert!(
        Blocks::new(&[0], 1).is_err()
            && Blocks::new(&[0, 2, 2], 1).is_err()
            && Blocks::new(&[0, 2], 0).is_err()
    );
    assert!(Blocks::new(&[0, usize::MAX], 2).is_err());
    let blocks = Arc::new(Blocks::new(&[3, 5, 6], 2).unwrap());
    assert_eq!((blocks.tokens(), blocks.entries(), blocks.rows()), (3, 10, 6));
    let narrow = tape.leaf(Array::new(&[3, 3], vec![0.5; 9]).unwrap());
    assert!(narrow.block_scores(narrow, 1.0, &blocks).is_err());
    assert!(states.block_softmax(&blocks).is_err() && states.block_sum_rows(&blocks).is_err());
    assert!(states.block_spread_rows(&blocks).is_err() && states.affine(narrow, flat).is_err());
}
