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

#[test]
fn gradients_are_finite_differences() {
    let mut generator = Key::new(4).named("differences").generator();
    for activation in [Activation::Gelu, Activation::GeluTanh] {
        let shape = EncoderShape { layers: 2, ..small(activation, Pooling::Pooler) };
        let parameters: Vec<f64> = draw(&shape, &mut generator);
        let batch = Batch::new(&shape, &mut generator, &[4, 2]);
        let slopes: Vec<f64> = normals(&mut generator, 2 * shape.hidden);
        for dropout in [None, Some(Dropout { rate: 0.2, key: Key::new(8) })] {
            let (_, gradient) = run(&shape, 1, &parameters, batch.tokens(), dropout, &slopes);
            let value = |parameters: &[f64]| -> f64 {
                let (features, _) = run(&shape, 1, parameters, batch.tokens(), dropout, &slopes);
                features.iter().zip(&slopes).map(|(feature, slope)| feature * slope).sum()
            };
            for place in (0..parameters.len()).step_by(3) {
                let moved = |step: f64| {
                    let mut parameters = parameters.clone();
                    parameters[place] += step;
                    value(&parameters)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let error = (difference - gradient[place]).abs();
                assert!(error < 1e-6 * (1.0 + difference.abs()), "{place}: {} {difference}", gradient[place]);
            }
        }
    }
}

#[test]
fn packed_sequences_are_as_if_alone() {
    let mut generator = Key::new(5).generator();
    for pooling in POOLINGS {
        let shape = small(Activation::Gelu, pooling);
        let parameters: Vec<f64> = draw(&shape, &mut generator);
        let batch = Batch::new(&shape, &mut generator, &[3, 40, 1, 17]);
        let slopes: Vec<f64> = normals(&mut generator, 4 * shape.hidden);
        let (features, gradient) = run(&shape, 2, &parameters, batch.tokens(), None, &slopes);
        let mut sum = vec![0.0; gradient.len()];
        for (sequence, ends) in batch.starts.windows(2).enumerate() {
            // offsets do not begin with zero here
            let alone = Tokens {
                ids: &batch.ids[ends[0]..ends[1]],
                segments: &batch.segments[ends[0]..ends[1]],
                starts: ends,
            };
            let range = sequence * shape.hidden..(sequence + 1) * shape.hidden;
            let (own, part) = run(&shape, 2, &parameters, alone, None, &slopes[range.clone()]);
            assert_close("features", &own, &features[range], 1e-12);
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        assert_close("gradient", &gradient, &sum, 1e-12);
    }
}

#[test]
fn a_cut_changes_no_bit() {
    let mut generator = Key::new(6).generator();
    let shape = small(Activation::Gelu, Pooling::Pooler);
    let parameters: Vec<f32> = draw(&shape, &mut generator);
    let batch = Batch::new(&shape, &mut generator, &[11, 30]);
    let slopes: Vec<f32> = normals(&mut generator, 2 * shape.hidden);
    for dropout in [None, Some(Dropout { rate: 0.1, key: Key::new(1) })] {
        let uncut = run(&shape, 0, &parameters, batch.tokens(), dropout, &slopes);
        for threshold in 1..=shape.layers {
            assert!(
                run(&shape, threshold, &parameters, batch.tokens(), dropout, &slopes) == uncut,
                "{threshold}"
            );
        }
    }
}

#[test]
fn dropout_is_a_function_of_its_key() {
    let mut generator = Key::new(7).generator();
    for pooling in POOLINGS {
        let shape = small(Activation::Gelu, pooling);
        let parameters: Vec<f64> = draw(&shape, &mut generator);
        let batch = Batch::new(&shape, &mut generator, &[12, 5]);
        let slopes: Vec<f64> = normals(&mut generator, 2 * shape.hidden);
        let at = |rate: f64, seed: u64| {
            let dropout = Some(Dropout { rate, key: Key::new(seed) });
            run(&shape, 1, &parameters, batch.tokens(), dropout, &slopes)
        };
        assert!(at(0.0, 1) == run(&shape, 1, &parameters, batch.tokens(), None, &slopes));
        assert!(at(0.3, 1) == at(0.3, 1));
        assert!(at(0.3, 1) != at(0.3, 2));
    }
    let shape = small(Activation::Gelu, Pooling::Mean);
    let parameters: Vec<f64> = draw(&shape, &mut generator);
    let batch = Batch::new(&shape, &mut generator, &[12, 5]);
    for rate in [-0.1, 1.0, f64::NAN] {
        let dropout = Some(Dropout { rate, key: Key::new(1) });
        let (lower, _) = parameters.split_at(shape.boundary(1));
        let room = &mut EncoderRoom::new();
        let error =
            lower_forward(&shape, 1, lower, batch.tokens(), Keep::Nothing, dropout, room).unwrap_err();
        assert!(error.to_string().contains("rate of dropout"), "{error}");
    }
}

/// Sizes whose products are shared between threads, the second one with sums long enough to be cut.
#[test]
fn one_and_two_threads_give_the_same_bits() {
    let mut generator = Key::new(8).generator();
    for (hidden, intermediate, pooling) in [(64, 160, Pooling::Pooler), (96, 1100, Pooling::Mean)] {
        let shape = EncoderShape {
            vocabulary: 50,
            hidden,
            heads: 4,
            intermediate,
            ..small(Activation::Gelu, pooling)
        };
        let parameters: Vec<f32> = draw(&shape, &mut generator);
        let batch = Batch::new(&shape, &mut generator, &[40, 7, 33, 40, 21, 40, 40, 19, 40, 1, 40]);
        let slopes: Vec<f32> = normals(&mut generator, 11 * shape.hidden);
        for dropout in [None, Some(Dropout { rate: 0.1, key: Key::new(1) })] {
            let with = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| run(&shape, 1, &parameters, batch.tokens(), dropout, &slopes))
            };
            let one = with(1);
            assert!(one.1.iter().all(|value| value.is_finite()));
            for threads in [2, 3] {
                assert!(with(threads) == one, "{threads} threads, hidden {hidden}");
            }
        }
    }
}

/// With features that are first states, the last layer is computed for these alone; with others, for all.
#[test]
fn first_states_are_those_among_all() {
    let mut generator = Key::new(10).named("firsts").generator();
    let all = small(Activation::Gelu, Pooling::Mean);
    let firsts = EncoderShape { pooling: Pooling::First, ..all };
    let parameters: Vec<f64> = draw(&all, &mut generator);
    let batch = Batch::new(&all, &mut generator, &[5, 1, 37, 9]);
    let (hidden, top) = (all.hidden, all.layers);
    let mut at_states = vec![0.0; batch.ids.len() * hidden];
    for &start in &batch.starts[..4] {
        at_states[start * hidden..][..hidden].copy_from_slice(&normals::<f64>(&mut generator, hidden));
    }
    let pass = |shape: &EncoderShape| {
        let lower = &parameters[..shape.boundary(top)];
        let (mut room, mut lean) = (EncoderRoom::new(), EncoderRoom::new());
        let tokens = batch.tokens();
        let states =
            lower_forward(shape, top, lower, tokens, Keep::ForBackward, None, &mut room).unwrap().to_vec();
        let predicted = lower_forward(shape, top, lower, tokens, Keep::Nothing, None, &mut lean).unwrap();
        assert!(states == predicted, "{:?}", shape.pooling);
        let mut gradient = vec![f64::NAN; lower.len()];
        lower_backward(shape, top, lower, tokens, &at_states, &mut room, &mut gradient).unwrap();
        (states, gradient)
    };
    let ((states, gradient), (expected, expected_gradient)) = (pass(&firsts), pass(&all));
    for (row, (state, expected)) in states.chunks(hidden).zip(expected.chunks(hidden)).enumerate() {
        match batch.starts.contains(&row) {
            true => assert_close("first state", state, expected, 1e-13),
            false => assert!(state.iter().all(|&value| value == 0.0), "row {row}"),
        }
    }
    assert_close("gradient", &gradient, &expected_gradient, 1e-11);
}

#[test]
fn prediction_has_the_same_bits_and_little_room() {
    let mut generator = Key::new(9).generator();
    let shape = small(Activation::GeluTanh, Pooling::Mean);
    let parameters: Vec<f32> = draw(&shape, &mut generator);
    let batch = Batch::new(&shape, &mut generator, &[20, 8, 40]);
    let (lower, upper) = parameters.split_at(shape.boundary(1));
    let (mut lean, mut full) = (EncoderRoom::new(), EncoderRoom::new());
    let states =
        lower_forward(&shape, 1, lower, batch.tokens(), Keep::Nothing, None, &mut lean).unwrap().to_vec();
    let kept = lower_forward(&shape, 1, lower, batch.tokens(), Keep::ForBackward, None, &mut full).unwrap();
    assert!(states == kept);
    let states = States { values: &states, starts: &batch.starts };
    let (mut lean, mut full) = (EncoderRoom::new(), EncoderRoom::new());
    let features = upper_forward(&shape, 1, upper, states, Keep::Nothing, None, &mut lean).unwrap().to_vec();
    let kept = upper_forward(&shape, 1, upper, states, Keep::ForBackward, None, &mut full).unwrap();
    assert!(features == kept);
    // six times the states with nothing kept: states, a norm and four beside each other; kept are ten a layer
    let scratch = rayon::current_num_threads() * 3 * 40 * 40;
    let of_states =
        |room: &EncoderRoom<f32>| (room.bytes() / 4).saturating_sub(scratch) / states.values.len();
    assert_eq!((of_states(&lean), lean.bytes()), (6, lean.peak_bytes()));
    assert!((20..27).contains(&of_states(&full)), "{}", of_states(&full));

    // shorter passes in the same room, and a backward pass that asks for more
    let before = full.bytes();
    let short = States { values: &states.values[..28 * shape.hidden], starts: &batch.starts[..3] };
    upper_forward(&shape, 1, upper, short, Keep::ForBackward, None, &mut full).unwrap();
    assert_eq!(full.bytes(), before);
    let mut gradient = vec![0.0; upper.len()];
    let slopes = vec![1.0; 2 * shape.hidden];
    let mut back = |full: &mut EncoderRoom<f32>| {
        upper_backward(&shape, 1, upper, short, &slopes, full, &mut gradient, None).unwrap();
        gradient.clone()
    };
    let first = back(&mut full);
    let grown = full.bytes();
    assert!(grown > before && full.peak_bytes() == grown);
    // going back does not use up what was kept
    assert!(back(&mut full) == first && full.bytes() == grown);
    full.release();
    assert_eq!((full.bytes(), full.peak_bytes()), (0, grown));
    full.reset_peak();
    assert_eq!(full.peak_bytes(), 0);
}

#[test]
fn shapes_that_make_no_sense_are_refused() {
    let good = small(Activation::Gelu, Pooling::First);
    assert!(good.check().is_ok());
    let bad = [
        (EncoderShape { hidden: 0, ..good }, "hidden is 0"),
        (EncoderShape { heads: 5, ..good }, "cannot be divided"),
        (EncoderShape { heads: 0, ..good }, "heads is 0"),
        (EncoderShape { vocabulary: 0, ..good }, "vocabulary is 0"),
        (EncoderShape { intermediate: 1 << 40, ..good }, "intermediate is"),
        (EncoderShape { epsilon: 0.0, ..good }, "epsilon"),
        (EncoderShape { epsilon: f64::NAN, ..good }, "epsilon"),
    ];
    for (shape, reason) in bad {
        for error in [shape.check().unwrap_err(), shape.layout().unwrap_err()] {
            assert!(error.to_string().contains(reason), "{error}");
        }
        let tokens = Tokens { ids: &[1], segments: &[0], starts: &[0, 1] };
        assert!(
            lower_forward::<f32>(&shape, 0, &[], tokens, Keep::Nothing, None, &mut EncoderRoom::new())
                .is_err()
        );
    }
    // within the limits of each size, but too much together
    let huge = EncoderShape { vocabulary: 1 << 32, hidden: 1 << 16, heads: 1, layers: 1 << 16, ..good };
    assert!(huge.boundary(huge.layers) > 1 << 48);
    assert!(good.upper_layout(4).is_err());
    // the halves make the whole
    for pooling in POOLINGS {
        let shape = EncoderShape { pooling, ..good };
        let whole = shape.layout().unwrap();
        for threshold in 0..=3 {
            let (lower, upper) =
                (shape.lower_layout(threshold).unwrap(), shape.upper_layout(threshold).unwrap());
            assert_eq!((lower.len(), upper.len()), (shape.boundary(threshold), whole.len() - lower.len()));
            let names = |layout: &pacmeta_tensor::ParameterLayout| -> Vec<String> {
                layout.entries().iter().map(|entry| entry.name.clone()).collect()
            };
            assert_eq!([names(&lower), names(&upper)].concat(), names(&whole));
        }
    }
}

#[test]
fn tokens_and_buffers_that_do_not_fit_are_refused() {
    let shape = small(Activation::Gelu, Pooling::First);
    let parameters = vec![0.1; shape.layout().unwrap().len()];
    let (lower, upper) = parameters.split_at(shape.boundary(1));
    let forward = |ids: &[u32], segments: &[u8], starts: &[usize]| {
        let tokens = Tokens { ids, segments, starts };
        let room = &mut EncoderRoom::new();
        lower_forward(&shape, 1, lower, tokens, Keep::Nothing, None, room)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(forward(&[1, 2], &[0, 0], &[0, 2]), None);
    let long = (vec![1; 41], vec![0; 41]);
    for (error, reason) in [
        (forward(&[1, 2], &[0, 0], &[]), "starts is empty"),
        (forward(&[], &[], &[0]), "no sequence"),
        (forward(&[1, 2], &[0, 0], &[0, 2, 2]), "sequence 1 has no tokens"),
        (forward(&[1, 2], &[0, 0], &[2, 0]), "sequence 0 has no tokens"),
        (forward(&long.0, &long.1, &[0, 41]), "41 tokens, but the encoder has 40 positions"),
        (forward(&[1], &[0, 0], &[0, 2]), "token ids: expected 2"),
        (forward(&[1, 2], &[0], &[0, 2]), "token segments: expected 2"),
        (forward(&[1, 13], &[0, 0], &[0, 2]), "token 13 is beyond the vocabulary of 13"),
        (forward(&[1, 2], &[0, 2], &[0, 2]), "segment 2 is beyond the 2 segments"),
    ] {
        assert!(error.as_ref().is_some_and(|error| error.contains(reason)), "{error:?} for {reason}");
    }
    let tokens = Tokens { ids: &[1, 2], segments: &[0, 0], starts: &[0, 2] };
    let mut room = EncoderRoom::new();
    let too_few = lower_forward(&shape, 1, &lower[1..], tokens, Keep::Nothing, None, &mut room);
    assert!(too_few.unwrap_err().to_string().contains("parameters below the threshold"));
    assert!(lower_forward(&shape, 4, lower, tokens, Keep::Nothing, None, &mut room).is_err());

    let values = vec![0.5; 2 * shape.hidden];
    let states = States { values: &values, starts: tokens.starts };
    let mut gradient = vec![0.0; upper.len()];
    let mut back = |room: &mut EncoderRoom<f64>, states: States<'_, f64>, slopes: usize| {
        let slopes = vec![1.0; slopes];
        upper_backward(&shape, 1, upper, states, &slopes, room, &mut gradient, None)
            .err()
            .map(|error| error.to_string())
    };
    // nothing there, another half, nothing kept, other sequences, too few slopes
    assert!(back(&mut EncoderRoom::new(), states, 12).unwrap().contains("call forward first"));
    lower_forward(&shape, 1, lower, tokens, Keep::ForBackward, None, &mut room).unwrap();
    assert!(back(&mut room, states, 12).unwrap().contains("call forward first"));
    upper_forward(&shape, 1, upper, states, Keep::Nothing, None, &mut room).unwrap();
    assert!(back(&mut room, states, 12).unwrap().contains("kept nothing"));
    upper_forward(&shape, 1, upper, states, Keep::ForBackward, None, &mut room).unwrap();
    let other = States { starts: &[0, 1, 2], ..states };
    assert!(back(&mut room, other, 24).unwrap().contains("call forward first"));
    assert!(back(&mut room, states, 11).unwrap().contains("gradient at the features: expected 12"));
    assert!(back(&mut room, states, 12).is_none());
    assert!(upper_forward(&shape, 1, &upper[1..], states, Keep::Nothing, None, &mut room).is_err());
}

/// The formula of `benchmarks/golden/encoder_reference.py`.
fn numbers(seed: u64, count: u64) -> Vec<f64> {
    let number = |i: u64| ((i * 2_654_435_761 + seed * 40_503 * i * i) % (1 << 32)) as f64;
    (1..=count).map(|i| number(i) / f64::from(1_u32 << 31) - 1.0).collect()
}

#[test]
fn agrees_with_bert_of_pytorch_in_double_precision() {
    let golden = include_str!("golden/encoder.txt");
    let list = |name: &str| -> Vec<f64> {
        let line = golden.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
        line.split_whitespace().map(|value| value.parse().unwrap()).collect()
    };
    for (name, activation) in
        [("gelu", Activation::Gelu), ("gelu-tanh", Activation::GeluTanh), ("relu", Activation::Relu)]
    {
        for (pool, pooling) in
            [("first", Pooling::First), ("mean", Pooling::Mean), ("pooler", Pooling::Pooler)]
        {
            let shape = EncoderShape {
                vocabulary: 11,
                positions: 9,
                segments: 2,
                hidden: 8,
                heads: 2,
                intermediate: 12,
                layers: 2,
                epsilon: 1e-12,
                activation,
                pooling,
            };
            let mut parameters = Vec::new();
            for (place, entry) in shape.layout().unwrap().entries().iter().enumerate() {
                parameters.extend(numbers(place as u64 + 1, entry.len as u64));
            }
            let ids: Vec<u32> = (0..14).map(|token| (token * token * 3 + 1) % 11).collect();
            let segments: Vec<u8> = (0..14).map(|token| (token / 3 % 2) as u8).collect();
            let tokens = Tokens { ids: &ids, segments: &segments, starts: &[0, 4, 5, 14] };
            let slopes = numbers(77, 24);
            let (features, gradient) = run(&shape, 1, &parameters, tokens, None, &slopes);
            let title = format!("{name}.{pool}");
            assert_close(&title, &features, &list(&format!("{title}.features")), 1e-13);
            if activation == Activation::Gelu {
                assert_close(&title, &gradient, &list(&format!("{title}.gradient")), 1e-12);
            }
        }
    }
}
