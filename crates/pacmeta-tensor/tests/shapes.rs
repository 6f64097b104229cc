//! No shape makes the tape panic; what it accepts has the shape that the rules of stretching say.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use pacmeta_tensor::{Array, Orientation, Shape, Tape, Variable};
use proptest::prelude::*;

fn dimensions() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..4usize, 0..5)
}

fn leaf<'t>(tape: &'t Tape<f64>, shape: &[usize]) -> Variable<'t, f64> {
    let shape = Shape::new(shape).unwrap();
    let values = (0..shape.count()).map(|place| 0.5 + place as f64 * 0.25).collect();
    tape.leaf(Array::new(&shape, values).unwrap())
}

/// Written apart from the library: both shapes padded to equal rank, each pair equal or one of them one.
fn stretched(left: &[usize], right: &[usize]) -> Option<Vec<usize>> {
    let rank = left.len().max(right.len());
    let padded = |shape: &[usize]| [vec![1; rank - shape.len()], shape.to_vec()].concat();
    let pairs = padded(left).into_iter().zip(padded(right));
    pairs
        .map(|(a, b)| {
            if a == b || b == 1 {
                Some(a)
            } else if a == 1 {
                Some(b)
            } else {
                None
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operators_stretch_or_refuse(left in dimensions(), right in dimensions()) {
        let tape = Tape::new();
        let (a, b) = (leaf(&tape, &left), leaf(&tape, &right));
        let expected = stretched(&left, &right);
        for result in [a + b, a - b, a * b, a / b] {
            prop_assert_eq!(result.as_ref().ok().map(|output| output.shape().to_vec()), expected.clone());
            let Ok(output) = result else { continue };
            let gradients = tape.gradient(output.sum(), &[a, b]).unwrap();
            prop_assert_eq!(gradients[0].shape(), a.shape());
            prop_assert_eq!(gradients[1].shape(), b.shape());
            prop_assert!(tape.hessian_vector_product(output.square().sum(), &[a, b], &[a, b]).is_ok());
        }
    }

    #[test]
    fn shape_operations_never_panic(
        shape in dimensions(),
        target in prop::collection::vec(prop_oneof![0..5usize, Just(usize::MAX), Just(1 << 40)], 0..8),
        axis in 0..6usize,
        start in prop_oneof![0..5usize, Just(usize::MAX)],
        end in prop_oneof![0..5usize, Just(usize::MAX)],
        indices in prop::collection::vec(0..5usize, 0..4),
    ) {
        let tape = Tape::new();
        let x = leaf(&tape, &shape);
        let huge = target.iter().any(|&size| size > 100);
        let mut results = vec![
            x.reshape(&target), x.sum_to(&target), x.sum_axis(axis), x.mean_axis(axis), x.log_sum_exp(axis),
            x.log_softmax(axis), x.transpose(), x.slice(axis, start..end), x.gather_rows(&indices), x.pick(&indices),
            x.scatter_rows(&indices, 4), x.inverse(), x.log_det(), Variable::concatenate(&[x, x], axis),
            Variable::concatenate(&[x, x.sum()], axis), Variable::concatenate(&[], axis),
        ];
        // A repetition to terabytes is a legal request that no test should make.
        if !huge {
            results.push(x.broadcast_to(&target));
        }
        if end < 100 {
            results.push(x.pad(axis, start, end));
        }
        for output in results.into_iter().flatten() {
            let gradient = tape.gradient(output.square().sum(), &[x]).unwrap()[0];
            prop_assert_eq!(gradient.shape(), x.shape());
        }
    }

    #[test]
    fn products_follow_their_orientations(
        left in prop::collection::vec(0..20usize, 1..4),
        right in prop::collection::vec(0..20usize, 1..4),
        flip_left: bool,
        flip_right: bool,
    ) {
        let orientation = |flip| if flip { Orientation::Transposed } else { Orientation::Plain };
        let tape = Tape::new();
        let (a, b) = (leaf(&tape, &left), leaf(&tape, &right));
        let result = a.matmul_oriented(orientation(flip_left), b, orientation(flip_right));
        let fits = left.len() == 2
            && right.len() == 2
            && left[usize::from(!flip_left)] == right[usize::from(flip_right)];
        prop_assert_eq!(result.is_ok(), fits);
        if let Ok(output) = result {
            let a = if flip_left { a.transpose().unwrap() } else { a };
            let b = if flip_right { b.transpose().unwrap() } else { b };
            let plain = a.matmul(b).unwrap();
            prop_assert_eq!(output.shape(), plain.shape());
            for (x, y) in output.value().values().iter().zip(plain.value().values()) {
                prop_assert!((x - y).abs() <= 1e-12 * y.abs());
            }
        }
    }
}
