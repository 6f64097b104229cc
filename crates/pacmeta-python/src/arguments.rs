//! Plain numbers and texts among the arguments: what does not fit is refused by name.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::wrong;

macro_rules! arguments {
    ($expected:literal: $($name:ident: $kind:ty),* $(,)?) => {
        $(
            pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$kind> {
                value.extract::<$kind>().map_err(|error| named(value, stringify!($name), $expected, error))
            }
        )*
    };
}

// Each has the name of its argument, which Python's own errors do not tell.
arguments! {
    "a whole number from 0 to 2^64 - 1":
    draws: usize,
    seed: u64,
    support: usize,
    observed_tasks: Option<usize>,
    target_examples: Option<usize>,
}

arguments! {
    "a number":
    temperature: Option<f64>,
    level: f64,
    beta: Option<f64>,
    alpha: Option<f64>,
    hyper_posterior_std: Option<f64>,
    lambda_: Option<f64>,
    delta: f64,
    sigma0_squared: f64,
    gap: Option<f64>,
}

arguments! {
    "a text":
    objective: Option<String>,
    assume: Option<String>,
    assume_tasks: Option<String>,
}

/// Borrowed, so that its default is one that Python shows.
pub(crate) fn task<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    value.extract::<&'a str>().map_err(|error| named(value, "task", "a text", error))
}

/// A value of another type, or out of range, is bad input like any other; what else happened is left as it is.
fn named(value: &Bound<'_, PyAny>, name: &str, expected: &str, error: PyErr) -> PyErr {
    let py = value.py();
    let refused = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyValueError>(py);
    if !refused {
        return error;
    }
    let shown = value.repr().or_else(|_| value.get_type().name()).map(|text| text.to_string());
    wrong(format!("{name}: is {}, expected {expected}", shown.unwrap_or_default()))
}
