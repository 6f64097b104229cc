//! Errors of the library as Python exceptions.

use pacmeta::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// The exception for an error, with its message.
pub(crate) fn exception(error: Error) -> PyErr {
    let message = for_python(&error.to_string());
    match error {
        Error::Io { source, .. } => match source.raw_os_error() {
            // Python makes FileNotFoundError and its like of these.
            Some(code) => PyOSError::new_err((code, message)),
            None => PyOSError::new_err(message),
        },
        error if error.is_interruption() => PyKeyboardInterrupt::new_err(message),
        error if error.is_input() => PyValueError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// Options of the command line as the arguments that they are here.
fn for_python(message: &str) -> String {
    const OPTION: &str = "option `--";
    let mut words = message.replace("another --out", "another `out`");
    while let Some(start) = words.find(OPTION) {
        let name = start + OPTION.len();
        let Some(length) = words[name..].find('`') else { break };
        let argument = match &words[name..name + length] {
            "lambda" => "lambda_".to_owned(), // a word of Python
            option => option.replace('-', "_"),
        };
        words.replace_range(start..=name + length, &argument);
    }
    words
}

/// A `ValueError`.
pub(crate) fn wrong(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}
