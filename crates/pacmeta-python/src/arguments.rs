//! Whole numbers among the arguments: those that do not fit are refused by name.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::wrong;

macro_rules! whole_numbers {
    ($($name:ident: $kind:ty),* $(,)?) => {
        $(
            pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$kind> {
                value.extract::<$kind>().map_err(|error| named(value, stringify!($name), error))
            }
        )*
    };
}

// Each has the name of its argument, which Python's OverflowError does not tell.
whole_numbers! {
    draws: usize,
    seed: u64,
    support: usize,
    observed_tasks: Option<usize>,
    target_examples: Option<usize>,
}

fn named(value: &Bound<'_, PyAny>, name: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(value.py()) {
        wrong(format!("{name}: is {value}, expected a whole number from 0 to {}", u64::MAX))
    } else {
        error
    }
}
