//! JSON values of the library as Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

use crate::errors::wrong;

/// The object that a value stands for: dict, list, str, int, float, bool or None.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_bound_py_any(py),
            (None, Some(whole)) => whole.into_bound_py_any(py),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(object(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(entries) => {
            let dictionary = PyDict::new(py);
            for (key, item) in entries {
                dictionary.set_item(key, object(py, item)?)?;
            }
            Ok(dictionary.into_any())
        }
    }
}

/// The same for anything that can be written as JSON.
pub(crate) fn object_of<'py>(
    py: Python<'py>,
    value: serde_json::Result<Value>,
) -> PyResult<Bound<'py, PyAny>> {
    object(py, &value.map_err(|error| wrong(error.to_string()))?)
}
