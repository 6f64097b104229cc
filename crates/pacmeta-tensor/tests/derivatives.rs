//! Every operation of the tape against finite differences, first and second order, in double precision.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

mod common;

use std::collections::HashSet;
use std::sync::Arc;

use common::{Function, check, normal};
use pacmeta_tensor::OperationKind as Kind;
use pacmeta_tensor::{Array, Blocks, Key, Orientation, Result, Tape, Variable};

/// Where the inputs of a case lie.
#[derive(Clone, Copy)]
enum Domain {
    /// Standard normal numbers.
    Real,
    /// Between a half and three.
    Positive,
    /// At least a tenth away from the kinks at -1/2, 0 and 1/2.
    AwayFromKinks,
    /// Square matrices: positive definite plus a part that is not symmetric.
    PositiveDefinite,
}

struct Case {
    kind: Kind,
    domain: Domain,
    shapes: &'static [&'static [usize]],
    function: Box<Function<'static>>,
}

fn case(
    kind: Kind,
    domain: Domain,
    shapes: &'static [&'static [usize]],
    function: impl for<'t> Fn(&'t Tape<f64>, &[Variable<'t, f64>]) -> Result<Variable<'t, f64>> + 'static,
) -> Case {
    Case { kind, domain, shapes, function: Box::new(function) }
}

/// Sequences of three tokens and of one, two heads.
fn blocks() -> Arc<Blocks> {
    Arc::new(Blocks::new(&[0, 3, 4], 2).unwrap())
}

/// One or more cases for each kind of node whose second derivative exists.
fn cases() -> Vec<Case> {
    use Domain::{AwayFromKinks, Positive, PositiveDefinite, Real};
    use Orientation::{Plain, Transposed};
    const MATRIX: &[&[usize]] = &[&[2, 3]];
    const PAIR: &[&[usize]] = &[&[2, 3], &[2, 3]];
    const ROW: &[&[usize]] = &[&[2, 3], &[3]];
    const COLUMN: &[&[usize]] = &[&[2, 1], &[4, 1, 3]];
    const SCALAR: &[&[usize]] = &[&[], &[2, 3]];
    let mut cases = vec![
        case(Kind::Leaf, Real, MATRIX, |_, x| Ok(x[0])),
        case(Kind::Negate, Real, MATRIX, |_, x| Ok(-x[0])),
        case(Kind::Scale, Real, MATRIX, |_, x| Ok(x[0].scale(-1.7))),
        case(Kind::Shift, Real, MATRIX, |_, x| Ok(x[0].shift(0.3))),
        case(Kind::Exp, Real, MATRIX, |_, x| Ok(x[0].exp())),
        case(Kind::Log, Positive, MATRIX, |_, x| Ok(x[0].log())),
        case(Kind::Tanh, Real, MATRIX, |_, x| Ok(x[0].tanh())),
        case(Kind::Sigmoid, Real, MATRIX, |_, x| Ok(x[0].sigmoid())),
        case(Kind::Softplus, Real, MATRIX, |_, x| Ok(x[0].softplus())),
        case(Kind::Sqrt, Positive, MATRIX, |_, x| Ok(x[0].sqrt())),
        case(Kind::Square, Real, MATRIX, |_, x| Ok(x[0].square())),
        case(Kind::PowI, Real, MATRIX, |_, x| Ok(x[0].powi(3))),
        case(Kind::PowI, Positive, MATRIX, |_, x| Ok(x[0].powi(-2))),
        case(Kind::PowI, Real, MATRIX, |_, x| x[0].powi(0) + x[0].powi(1)),
        case(Kind::Maximum, AwayFromKinks, MATRIX, |_, x| Ok(x[0].maximum(0.5))),
        case(Kind::Maximum, AwayFromKinks, MATRIX, |_, x| Ok(x[0].relu())),
        case(Kind::Above, AwayFromKinks, MATRIX, |_, x| x[0].above(-0.5) * x[0].square()),
        case(Kind::SumTo, Real, MATRIX, |_, x| Ok(x[0].sum())),
        case(Kind::SumTo, Real, MATRIX, |_, x| Ok(x[0].mean())),
        case(Kind::SumTo, Real, MATRIX, |_, x| x[0].sum_axis(0)),
        case(Kind::SumTo, Real, MATRIX, |_, x| x[0].mean_axis(1)),
        case(Kind::SumTo, Real, &[&[2, 3, 4]], |_, x| x[0].sum_to(&[3, 1])),
        case(Kind::BroadcastTo, Real, &[&[3, 1]], |_, x| x[0].broadcast_to(&[2, 3, 4])),
        case(Kind::Reshape, Real, MATRIX, |_, x| x[0].reshape(&[3, 2])),
        case(Kind::Transpose, Real, MATRIX, |_, x| x[0].transpose()),
        case(Kind::MatMul, Real, &[&[2, 3], &[3, 4]], |_, x| x[0].matmul(x[1])),
        case(Kind::MatMul, Real, &[&[2, 3], &[4, 3]], |_, x| x[0].matmul_transposed(x[1])),
        case(Kind::MatMul, Real, &[&[3, 2], &[3, 4]], |_, x| x[0].matmul_oriented(Transposed, x[1], Plain)),
        case(Kind::MatMul, Real, &[&[3, 2], &[4, 3]], |_, x| {
            x[0].matmul_oriented(Transposed, x[1], Transposed)
        }),
        case(Kind::MatMul, Real, &[&[3, 3]], |_, x| x[0].matmul(x[0])),
        case(Kind::Concatenate, Real, &[&[2, 3], &[2, 1]], |_, x| {
            Variable::concatenate(&[x[0], x[1], x[0]], 1)
        }),
        case(Kind::Concatenate, Real, &[&[2, 3], &[1, 3]], |_, x| Variable::concatenate(x, 0)),
        case(Kind::Slice, Real, &[&[2, 5, 2]], |_, x| x[0].slice(1, 1..4)),
        case(Kind::Pad, Real, &[&[2, 2, 2]], |_, x| x[0].pad(1, 1, 4)),
        case(Kind::Gather, Real, &[&[4, 2]], |_, x| x[0].gather_rows(&[3, 0, 3])),
        case(Kind::Gather, Real, MATRIX, |_, x| x[0].pick(&[2, 0])),
        case(Kind::Scatter, Real, &[&[3, 2]], |_, x| x[0].scatter_rows(&[1, 3, 1], 4)),
        case(Kind::LogSumExp, Real, &[&[2, 3, 2]], |_, x| x[0].log_sum_exp(1)),
        case(Kind::LogSumExp, Real, MATRIX, |_, x| x[0].log_softmax(1)),
        case(Kind::Affine, Real, &[&[2, 3], &[4, 3], &[4]], |_, x| x[0].affine(x[1], x[2])),
        case(Kind::Gelu, Real, MATRIX, |_, x| Ok(x[0].gelu())),
        case(Kind::Gelu, Real, MATRIX, |tape, x| {
            let slope = tape.gradient(x[0].gelu().sum(), &[x[0]])?[0];
            Ok(tape.gradient(slope.sum(), &[x[0]])?[0])
        }),
        case(Kind::Normalise, Real, &[&[3, 4]], |_, x| x[0].normalise_rows(0.1)),
        case(Kind::InverseDeviation, Real, &[&[3, 4], &[3, 4]], |_, x| {
            x[0].normalise_rows(0.1)? * x[1].normalise_rows(0.2)?
        }),
        case(Kind::NormalisePull, Real, &[&[3, 4], &[3, 4]], |tape, x| {
            Ok(tape.pullback(x[0].normalise_rows(0.3)?, x[1], &[x[0]])?[0])
        }),
        case(Kind::BlockScores, Real, &[&[4, 4], &[4, 4]], |_, x| x[0].block_scores(x[1], 0.7, &blocks())),
        case(Kind::BlockMix, Real, &[&[20], &[4, 4]], |_, x| x[0].block_mix(Plain, x[1], 0.7, &blocks())),
        case(Kind::BlockMix, Real, &[&[20], &[4, 4]], |_, x| {
            x[0].block_mix(Transposed, x[1], 1.3, &blocks())
        }),
        case(Kind::BlockSoftmax, Real, &[&[20]], |_, x| x[0].block_softmax(&blocks())),
        case(Kind::BlockSoftmaxPull, Real, &[&[20], &[20]], |tape, x| {
            Ok(tape.pullback(x[0].block_softmax(&blocks())?, x[1], &[x[0]])?[0])
        }),
        case(Kind::BlockSumRows, Real, &[&[20]], |_, x| x[0].block_sum_rows(&blocks())),
        case(Kind::BlockSpreadRows, Real, &[&[8]], |_, x| x[0].block_spread_rows(&blocks())),
        case(Kind::Inverse, PositiveDefinite, &[&[3, 3]], |_, x| x[0].inverse()),
        case(Kind::LogDet, PositiveDefinite, &[&[3, 3]], |_, x| x[0].log_det()),
    ];
    for shapes in [PAIR, ROW, COLUMN, SCALAR] {
        cases.push(case(Kind::Add, Real, shapes, |_, x| x[0] + x[1]));
        cases.push(case(Kind::Subtract, Real, shapes, |_, x| x[0] - x[1]));
        cases.push(case(Kind::Multiply, Real, shapes, |_, x| x[0] * x[1]));
        cases.push(case(Kind::Divide, Positive, shapes, |_, x| x[0] / x[1]));
    }
    cases
}

/// Kinds for which a second derivative is not the point, and what covers each.
const ELSEWHERE: &[(Kind, &str)] = &[
    (Kind::Detach, "detached_values_are_constants below"),
    (Kind::Fused, "fused.rs"),
    (Kind::FusedGradient, "fused_operations_have_first_derivatives_only"),
];

#[test]
fn every_operation_agrees_with_finite_differences_twice() {
    let mut generator = Key::new(1).generator();
    let mut covered: HashSet<Kind> = ELSEWHERE.iter().map(|(kind, _)| *kind).collect();
    for (number, case) in cases().into_iter().enumerate() {
        let inputs: Vec<Array<f64>> = case
            .shapes
            .iter()
            .map(|shape| {
                let mut input = normal(&mut generator, shape);
                match case.domain {
                    Domain::Real => {}
                    Domain::Positive => {
                        input
                            .values_mut()
                            .iter_mut()
                            .for_each(|value| *value = generator.uniform_in(0.5, 3.0));
                    }
                    Domain::AwayFromKinks => input.values_mut().iter_mut().for_each(|value| {
                        // One draw from each side of each kink, over the elements of an array.
                        *value =
                            [-0.9, -0.25, 0.25, 0.9][generator.below(4)] + generator.uniform_in(-0.1, 0.1);
                    }),
                    Domain::PositiveDefinite => {
                        let size = shape[0];
                        input.values_mut().iter_mut().for_each(|value| *value *= 0.5);
                        for row in 0..size {
                            input.values_mut()[row * (size + 1)] += 3.0;
                        }
                    }
                }
                input
            })
            .collect();

        let name = format!("case {number}, {:?} of {:?}", case.kind, case.shapes);
        let tape = Tape::new();
        let leaves: Vec<_> = inputs.iter().map(|input| tape.leaf(input.clone())).collect();
        let output = (case.function)(&tape, &leaves).unwrap();
        assert!(tape.operations().contains(&case.kind), "{name} does not record its kind");
        covered.insert(case.kind);

        // A random linear and a quadratic part make adjoints that differ between elements and have
        // derivatives.
        let weights = normal(&mut generator, &output.shape());
        let function = &case.function;
        check(&name, &|tape, x| weighted(function, &weights, tape, x), &inputs, &mut generator);
    }
    for kind in Kind::ALL {
        assert!(covered.contains(kind), "{kind:?} has no case: add one to the table");
    }
}

fn weighted<'t>(
    function: &Function<'_>,
    weights: &Array<f64>,
    tape: &'t Tape<f64>,
    x: &[Variable<'t, f64>],
) -> Result<Variable<'t, f64>> {
    let output = function(tape, x)?;
    ((output * tape.leaf(weights.clone()))? + output.square().scale(0.5))?.sum() + tape.scalar(0.0)
}

#[test]
fn third_derivatives() {
    let tape = Tape::new();
    let x = tape.leaf(Array::new(&[2], vec![0.3, -0.8]).unwrap());
    let mut derivative = x.tanh();
    for _ in 0..3 {
        derivative = tape.gradient(derivative.sum(), &[x]).unwrap()[0];
    }
    for (found, x) in derivative.value().values().iter().zip([0.3_f64, -0.8]) {
        let square = x.tanh().powi(2);
        assert!((found - (1.0 - square) * (6.0 * square - 2.0)).abs() < 1e-14);
    }
}

#[test]
fn gradients_at_inner_nodes_and_of_unrelated_inputs() {
    let tape = Tape::new();
    let unrelated = tape.leaf(Array::new(&[2], vec![1.0, 1.0]).unwrap());
    let x = tape.scalar(2.0);
    let inner = x.square();
    let output = inner.powi(3);
    let later = tape.scalar(1.0);
    let gradients = tape.gradient(output, &[inner, x, unrelated, later, output]).unwrap();
    let values: Vec<f64> = gradients.iter().flat_map(|gradient| gradient.value().into_values()).collect();
    assert_eq!(values, [48.0, 192.0, 0.0, 0.0, 0.0, 1.0]);
    // An inner node alone: its own sources come before it and are not visited.
    assert_eq!(tape.gradient_values(output, &[inner]).unwrap()[0].values(), [48.0]);
    let dropped = tape.gradient_values(output, &[inner, x]).unwrap();
    assert_eq!((dropped[0].values(), dropped[1].values()), (&[48.0][..], &[192.0][..]));
    assert_eq!(tape.gradient_values(x, &[output]).unwrap()[0].values(), [0.0]);
    assert!(tape.gradient(output, &[]).unwrap().is_empty());
    assert!(tape.gradient(unrelated, &[x]).is_err());
}

#[test]
fn the_zeroth_power_is_constant_at_zero() {
    let tape = Tape::new();
    let x = tape.scalar(0.0);
    assert_eq!(tape.gradient(x.powi(0), &[x]).unwrap()[0].item(), Ok(0.0));
}

#[test]
fn only_what_the_inputs_need_is_computed() {
    let tape = Tape::new();
    let frozen = tape.leaf(Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap());
    let weight = tape.leaf(Array::new(&[2, 2], vec![0.1, 0.2, 0.3, 0.4]).unwrap());
    let features = frozen.tanh().exp().matmul(frozen).unwrap();
    let output = features.matmul(weight).unwrap().sum();
    let before = tape.len();
    tape.gradient(output, &[weight]).unwrap();
    let recorded = tape.operations()[before..].to_vec();
    assert_eq!(recorded, [Kind::Leaf, Kind::BroadcastTo, Kind::MatMul]);
}

#[test]
fn pullbacks_are_seeded() {
    let tape = Tape::new();
    let x = tape.leaf(Array::new(&[2], vec![1.0, 2.0]).unwrap());
    let seed = tape.leaf(Array::new(&[2], vec![10.0, 100.0]).unwrap());
    assert_eq!(tape.pullback(x.square(), seed, &[x]).unwrap()[0].value().values(), [20.0, 400.0]);
    assert_eq!(tape.pullback_values(x.square(), seed, &[x]).unwrap()[0].values(), [20.0, 400.0]);
    assert!(tape.pullback(x.sum(), seed, &[x]).is_err());
}

#[test]
fn detached_values_are_constants() {
    let tape = Tape::new();
    let x = tape.scalar(3.0);
    let output = (x * x.square().detach()).unwrap();
    let first = tape.gradient(output, &[x]).unwrap()[0];
    assert_eq!(first.item(), Ok(9.0));
    assert_eq!(tape.gradient(first, &[x]).unwrap()[0].item(), Ok(0.0));
}
