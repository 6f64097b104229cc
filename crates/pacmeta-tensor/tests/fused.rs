//! Fused operations as nodes of the tape, and the count of bytes.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

mod common;

use std::sync::Arc;

use common::{assert_close, normal};
use pacmeta_tensor::tape::fused::{Backward, Forward};
use pacmeta_tensor::{Array, FusedOperation, Key, Result, Tape, TensorError};

/// x' A x for a vector and a matrix; keeps A x.
struct Quadratic;

impl FusedOperation<f64> for Quadratic {
    fn name(&self) -> &str {
        "quadratic"
    }

    fn forward(&self, inputs: &[Array<f64>]) -> Result<Forward<f64>> {
        let [x, matrix] = inputs else {
            return Err(TensorError::Fused {
                operation: self.name().to_owned(),
                reason: "takes two inputs".to_owned(),
            });
        };
        let (x, size) = (x.values(), x.values().len());
        let product: Vec<f64> =
            matrix.values().chunks(size).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect();
        let output = product.iter().zip(x).map(|(product, x)| product * x).sum();
        Ok(Forward { output: Array::scalar(output), saved: vec![Array::new(&[size], product)?] })
    }

    fn backward(&self, call: Backward<'_, f64>) -> Result<Vec<Option<Array<f64>>>> {
        let (x, matrix, factor) = (call.inputs[0].values(), call.inputs[1].values(), call.gradient.item()?);
        let size = x.len();
        let along_x = |column: usize| -> f64 {
            let transposed: f64 = (0..size).map(|row| matrix[row * size + column] * x[row]).sum();
            factor * (call.saved[0].values()[column] + transposed)
        };
        let to_x = Array::new(&[size], (0..size).map(along_x).collect())?;
        let to_matrix = call.needed[1].then(|| {
            let outer = (0..size * size).map(|place| factor * x[place / size] * x[place % size]).collect();
            Array::new(&[size, size], outer)
        });
        Ok(vec![Some(to_x), to_matrix.transpose()?])
    }

    fn workspace_bytes(&self) -> usize {
        1000
    }
}

#[test]
fn fused_operations_have_first_derivatives_only() {
    let mut generator = Key::new(2).generator();
    let (x, matrix) = (normal(&mut generator, &[3]), normal(&mut generator, &[3, 3]));
    let tape = Tape::new();
    let (x, matrix) = (tape.leaf(x), tape.leaf(matrix));
    let fused = tape.fused(Arc::new(Quadratic), &[x.tanh(), matrix]).unwrap().exp();
    let column = x.tanh().reshape(&[3, 1]).unwrap();
    let composite = column.transpose().unwrap().matmul(matrix).unwrap().matmul(column).unwrap().exp().sum();
    assert!((fused.item().unwrap() - composite.item().unwrap()).abs() < 1e-13);

    let by_kernel = tape.gradient(fused, &[x, matrix]).unwrap();
    let by_tape = tape.gradient(composite, &[x, matrix]).unwrap();
    for (by_kernel, by_tape) in by_kernel.iter().zip(&by_tape) {
        assert_close("fused", by_kernel.value().values(), by_tape.value().values(), 1e-13);
    }
    assert_eq!(tape.gradient_values(fused, &[x]).unwrap()[0], by_kernel[0].value());

    let again = tape.gradient(by_kernel[0].sum(), &[x]).unwrap_err();
    assert_eq!(again, TensorError::NotDifferentiableTwice { operation: "quadratic".to_owned() });
    assert!(again.to_string().contains("`quadratic`") && again.to_string().contains("tape's own operations"));
    assert!(tape.gradient(by_tape[0].sum(), &[x]).is_ok());
    assert!(tape.fused(Arc::new(Quadratic), &[x]).is_err());
}

/// Returns gradients that do not fit its inputs.
struct Careless(Vec<Option<Array<f64>>>);

impl FusedOperation<f64> for Careless {
    fn name(&self) -> &str {
        "careless"
    }
    fn forward(&self, _: &[Array<f64>]) -> Result<Forward<f64>> {
        Ok(Forward { output: Array::scalar(1.0), saved: vec![] })
    }
    fn backward(&self, _: Backward<'_, f64>) -> Result<Vec<Option<Array<f64>>>> {
        Ok(self.0.clone())
    }
}

#[test]
fn what_a_fused_operation_returns_is_checked() {
    let tape = Tape::new();
    let x = tape.leaf(Array::new(&[2], vec![1.0, 2.0]).unwrap());
    for returned in [vec![], vec![Some(Array::scalar(1.0))]] {
        let output = tape.fused(Arc::new(Careless(returned)), &[x]).unwrap();
        assert!(matches!(tape.gradient(output, &[x]), Err(TensorError::Fused { .. })));
    }
    let output = tape.fused(Arc::new(Careless(vec![None])), &[x]).unwrap();
    assert_eq!(tape.gradient_values(output, &[x]).unwrap()[0].values(), [0.0, 0.0]);
}

#[test]
fn bytes_are_counted() {
    let mut tape = Tape::<f64>::new();
    {
        let x = tape.leaf(Array::new(&[100], vec![0.5; 100]).unwrap());
        assert_eq!(tape.bytes(), 800);
        // Shared storage counts once.
        let output = x.reshape(&[10, 10]).unwrap().detach().tanh().sum();
        assert_eq!(tape.bytes(), 1608);
        let mut deep = x;
        for _ in 0..50 {
            deep = deep.tanh();
        }
        let forward = tape.bytes();
        assert_eq!(forward, 1608 + 50 * 800);
        tape.gradient_values(deep.sum(), &[x]).unwrap();
        // Each step back holds a few arrays at a time, whatever the depth.
        assert_eq!(tape.bytes(), forward + 8);
        let extra = tape.peak_bytes() - forward;
        assert!((800..10 * 800).contains(&extra), "{extra}");
        assert!((output.item().unwrap() - 100.0 * 0.5_f64.tanh()).abs() < 1e-12);
        tape.reset_peak();
        assert_eq!(tape.peak_bytes(), tape.bytes());
        let matrix = tape.leaf(Array::new(&[2, 2], vec![1.0, 0.0, 0.0, 1.0]).unwrap());
        let before = tape.bytes();
        let pair = x.slice(0, 0..2).unwrap();
        tape.fused(Arc::new(Quadratic), &[pair, matrix]).unwrap();
        assert_eq!(tape.bytes(), before + 16 + 8 + 16 + 1000);
    }
    let peak = tape.peak_bytes();
    tape.clear();
    assert_eq!((tape.len(), tape.bytes(), tape.peak_bytes()), (0, 0, peak));
    assert!(tape.is_empty());
}
