//! The Python module `pacmeta._pacmeta`: the library on NumPy arrays. What people see of it is the package `pacmeta` beside
//! this crate, which adds tables, scikit-learn estimators and figures.
//!
//! The interpreter's lock is released while something is computed. Errors of the library become Python exceptions with
//! the library's own message: `ValueError` where the input is at fault, `OSError` for files, else `RuntimeError`.

mod arguments;
mod arrays;
mod bound;
mod errors;
mod head;
mod prior;
mod tasks;
mod training;
mod values;
mod watch;

use pyo3::prelude::*;

#[pymodule]
fn _pacmeta(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<prior::Prior>()?;
    module.add_class::<prior::Posterior>()?;
    module.add_function(wrap_pyfunction!(prior::fit_plain_gp, module)?)?;
    module.add_function(wrap_pyfunction!(prior::rust_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(training::train_tasks, module)?)?;
    module.add_function(wrap_pyfunction!(training::train_config, module)?)?;
    module.add_function(wrap_pyfunction!(training::read_run, module)?)?;
    module.add_function(wrap_pyfunction!(head::adapt_head, module)?)?;
    module.add_function(wrap_pyfunction!(head::head_probabilities, module)?)?;
    module.add_function(wrap_pyfunction!(head::meta_learn_head, module)?)
}
