//! Arrays from Python: borrowed where they are contiguous and of double precision, else converted once.

use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::errors::wrong;

static MASKED_ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Numbers in row-major order.
pub(crate) struct Numbers<'py> {
    array: PyReadonlyArrayDyn<'py, f64>,
}

impl<'py> Numbers<'py> {
    /// The numbers of anything that NumPy makes an array of real numbers of; `name` is for messages.
    pub(crate) fn of(value: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        // An array like any other to a cast, which would count what is masked.
        if value.is_instance(MASKED_ARRAY.import(value.py(), "numpy.ma", "MaskedArray")?)? {
            return Err(wrong(format!("{name}: is a masked array; leave out or fill what is masked")));
        }
        if let Ok(array) = value.cast::<PyArrayDyn<f64>>()
            && array.is_c_contiguous()
        {
            return Self::borrow(array, name);
        }
        let numpy = value.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (value,)).map_err(|error| {
            wrong(format!("{name}: expected an array of numbers: {}", error.value(value.py())))
        })?;
        let dtype = array.getattr("dtype")?;
        let kind: String = dtype.getattr("kind")?.extract()?;
        if !matches!(kind.as_str(), "f" | "i" | "u" | "b") {
            return Err(wrong(format!("{name}: has dtype {dtype}, expected real numbers")));
        }
        let options = PyDict::new(value.py());
        options.set_item("dtype", "float64")?;
        options.set_item("order", "C")?;
        let array = numpy.call_method("asarray", (array,), Some(&options))?;
        Self::borrow(array.cast::<PyArrayDyn<f64>>()?, name)
    }

    fn borrow(array: &Bound<'py, PyArrayDyn<f64>>, name: &str) -> PyResult<Self> {
        let array = array.try_readonly().map_err(|error| wrong(format!("{name}: {error}")))?;
        Ok(Self { array })
    }

    /// All numbers.
    pub(crate) fn slice(&self) -> PyResult<&[f64]> {
        self.array.as_slice().map_err(|error| wrong(error.to_string()))
    }

    /// The shape.
    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }
}

/// Rows of features.
pub(crate) struct Rows<'py> {
    numbers: Numbers<'py>,
    /// Features.
    pub(crate) dimension: usize,
}

impl<'py> Rows<'py> {
    /// An array of shape (n, features), or (n,) for one feature. All numbers must be finite.
    pub(crate) fn of(value: &Bound<'py, PyAny>, name: &str, expected: Option<usize>) -> PyResult<Self> {
        let numbers = Numbers::of(value, name)?;
        let dimension = match (numbers.shape(), expected) {
            ([_], None | Some(1)) => 1,
            (&[_, columns], None) => columns,
            (&[_, columns], Some(expected)) if columns == expected => columns,
            (shape, expected) => {
                let wanted = match expected {
                    None => "(n,) or (n, features)".to_owned(),
                    Some(1) => "(n,) or (n, 1)".to_owned(),
                    Some(expected) => format!("(n, {expected})"),
                };
                return Err(wrong(format!("{name}: has shape {}, expected {wanted}", written(shape))));
            }
        };
        let found = numbers.slice()?.iter().position(|value| !value.is_finite());
        if let Some(position) = found {
            let row = position / dimension.max(1);
            return Err(wrong(format!("{name}: row {row} is not finite (NaN or infinity)")));
        }
        Ok(Self { numbers, dimension })
    }

    /// The same for a prior with these features: the columns of a table are found by their names.
    pub(crate) fn named(value: &Bound<'py, PyAny>, name: &str, features: &[String]) -> PyResult<Self> {
        let expected = Some(features.len());
        if !value.hasattr("columns")? {
            return Self::of(value, name, expected);
        }
        let helper = value.py().import("pacmeta._tasks")?;
        Self::of(&helper.call_method1("frame_rows", (value, features.to_vec()))?, name, expected)
    }

    /// All numbers, row by row.
    pub(crate) fn slice(&self) -> PyResult<&[f64]> {
        self.numbers.slice()
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.numbers.shape().first().copied().unwrap_or_default()
    }
}

/// One number an example: shape (n,), or (n, 1).
pub(crate) fn targets(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<f64>> {
    let numbers = Numbers::of(value, name)?;
    match numbers.shape() {
        [_] | [_, 1] => Ok(numbers.slice()?.to_vec()),
        shape => Err(wrong(format!("{name}: has shape {}, expected (n,)", written(shape)))),
    }
}

/// Classes: whole numbers from 0 on.
pub(crate) fn labels(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<usize>> {
    let label = |value: f64| {
        let whole = value >= 0.0 && value.fract() == 0.0 && value < 1e9;
        if whole {
            Ok(value as usize)
        } else {
            Err(wrong(format!("{name}: {value} is not the number of a class")))
        }
    };
    targets(value, name)?.into_iter().map(label).collect()
}

/// A shape as Python writes it.
fn written(shape: &[usize]) -> String {
    let inside: Vec<String> = shape.iter().map(usize::to_string).collect();
    if inside.len() == 1 { format!("({},)", inside[0]) } else { format!("({})", inside.join(", ")) }
}
