//! Variables: handles of values on a tape, and the operations on them.
//!
//! Operations that can fail on shapes return a `Result`; the arithmetic operators do too:
//!
//! ```
//! use pacmeta_tensor::{Array, Tape};
//!
//! let tape = Tape::new();
//! let x = tape.leaf(Array::new(&[2, 1], vec![0.5, -0.5])?);
//! let weight = tape.leaf(Array::new(&[1, 3], vec![1.0, 2.0, 3.0])?);
//! let bias = tape.leaf(Array::new(&[3], vec![0.1, 0.2, 0.3])?);
//! let hidden = (x.matmul(weight)? + bias)?.tanh();
//! assert_eq!(hidden.shape()[..], [2, 3]);
//! assert!((x + hidden.matmul(weight.transpose()?)?).is_ok());
//! assert!(x.matmul(x).is_err());
//! # Ok::<(), pacmeta_tensor::TensorError>(())
//! ```
//!
//! Elementwise operators stretch their operands: dimensions are aligned at the end, missing ones and those of
//! size one repeat.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::kernels;
use crate::shape::Shape;
use crate::tape::Tape;
use crate::tape::operation::Operation;

/// A value on a [`Tape`]. See the [module documentation](self).
pub struct Variable<'t, E> {
    pub(super) tape: &'t Tape<E>,
    pub(super) id: usize,
}

impl<E> Clone for Variable<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Variable<'_, E> {}

impl<E: Element> fmt::Debug for Variable<'_, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Variable({}, {:?})", self.id, self.value())
    }
}

/// Reading, and functions of single elements.
impl<'t, E: Element> Variable<'t, E> {
    /// The tape that holds the value.
    pub fn tape(self) -> &'t Tape<E> {
        self.tape
    }

    /// The value; it shares the tape's storage.
    pub fn value(self) -> Array<E> {
        self.tape.record.borrow().nodes[self.id].value.clone()
    }

    /// The dimensions of the value.
    pub fn shape(self) -> Shape {
        *self.tape.record.borrow().nodes[self.id].value.shape()
    }

    /// The value of a variable with exactly one element.
    pub fn item(self) -> Result<E> {
        self.value().item()
    }

    /// A constant times this.
    pub fn scale(self, factor: E) -> Self {
        self.map(Operation::Scale(self.id, factor), |value| factor * value)
    }

    /// A constant plus this.
    pub fn shift(self, constant: E) -> Self {
        self.map(Operation::Shift(self.id), |value| constant + value)
    }

    /// The exponential function.
    pub fn exp(self) -> Self {
        self.map(Operation::Exp(self.id), E::exp)
    }

    /// The natural logarithm.
    pub fn log(self) -> Self {
        self.map(Operation::Log(self.id), E::ln)
    }

    /// The hyperbolic tangent.
    pub fn tanh(self) -> Self {
        self.map(Operation::Tanh(self.id), E::tanh)
    }

    /// 1 / (1 + exp(-x)).
    pub fn sigmoid(self) -> Self {
        // The exponential of a negative number does not overflow.
        self.map(Operation::Sigmoid(self.id), |value| {
            let small = (-value.abs()).exp();
            (if value < E::ZERO { small } else { E::ONE }) / (E::ONE + small)
        })
    }

    /// log(1 + exp(x)).
    pub fn softplus(self) -> Self {
        self.map(Operation::Softplus(self.id), |value| larger(value, E::ZERO) + (-value.abs()).exp().ln_1p())
    }

    /// The square root.
    pub fn sqrt(self) -> Self {
        self.map(Operation::Sqrt(self.id), E::sqrt)
    }

    /// x^2.
    pub fn square(self) -> Self {
        self.map(Operation::Square(self.id), |value| value * value)
    }

    /// x to an integer power.
    pub fn powi(self, exponent: i32) -> Self {
        self.map(Operation::PowI(self.id, exponent), |value| value.powi(exponent))
    }

    /// The larger of x and a constant; the derivative where they are equal is zero. Not-a-number stays.
    pub fn maximum(self, constant: E) -> Self {
        self.map(Operation::Maximum(self.id, constant), |value| larger(value, constant))
    }

    /// The larger of x and zero; the derivative at zero is zero, as are all second derivatives.
    pub fn relu(self) -> Self {
        self.maximum(E::ZERO)
    }

    /// One where x is above a constant, zero elsewhere; has no derivative.
    pub fn above(self, constant: E) -> Self {
        self.map(Operation::Above, |value| if value > constant { E::ONE } else { E::ZERO })
    }

    /// The same value as a constant: derivatives stop here.
    pub fn detach(self) -> Self {
        self.tape.push_counted(self.value(), Operation::Detach, 0)
    }

    fn map(self, operation: Operation<E>, function: impl Fn(E) -> E) -> Self {
        self.tape.push(self.value().map(function), operation)
    }

    fn zip(
        self,
        other: Self,
        name: &'static str,
        operation: Operation<E>,
        function: impl Fn(E, E) -> E,
    ) -> Result<Self> {
        self.check_tape(other, name)?;
        Ok(self.tape.push(kernels::zip(name, &self.value(), &other.value(), function)?, operation))
    }

    pub(super) fn check_tape(self, other: Self, operation: &'static str) -> Result<()> {
        if std::ptr::eq(self.tape, other.tape) {
            Ok(())
        } else {
            Err(TensorError::DifferentTapes { operation })
        }
    }
}

fn larger<E: Element>(value: E, constant: E) -> E {
    if value > constant || value.is_nan() { value } else { constant }
}

macro_rules! implement_operator {
    ($trait:ident, $method:ident, $operation:ident, $name:literal) => {
        impl<'t, E: Element> $trait for Variable<'t, E> {
            type Output = Result<Variable<'t, E>>;

            fn $method(self, other: Self) -> Self::Output {
                self.zip(other, $name, Operation::$operation(self.id, other.id), |a, b| $trait::$method(a, b))
            }
        }
    };
}

implement_operator!(Add, add, Add, "add");
implement_operator!(Sub, sub, Subtract, "subtract");
implement_operator!(Mul, mul, Multiply, "multiply");
implement_operator!(Div, div, Divide, "divide");

impl<'t, E: Element> Neg for Variable<'t, E> {
    type Output = Variable<'t, E>;

    fn neg(self) -> Self::Output {
        self.map(Operation::Negate(self.id), |value| -value)
    }
}
