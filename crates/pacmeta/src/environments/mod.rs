//! Where tasks come from.
//!
//! An [`Environment`] is a distribution over tasks: first a function is drawn (the paper's data distribution D), then
//! examples of it (the paper's S). The two draws have keys of their own, so further examples of the *same* function can
//! be had at any time. [`table`] reads tasks that somebody measured instead; `images` and `text`
//! (cargo features) make few-shot tasks of pictures and of sentences.
//!
//! ```
//! use pacmeta::environments::{Environment, Sinusoid, observed_tasks};
//! use pacmeta_tensor::Key;
//!
//! let tasks = observed_tasks(&Sinusoid, 20, 5, Key::new(1).named("observed"))?;
//! assert_eq!((tasks.len(), tasks[0].len(), tasks[0].name()), (20, 5, "task-000"));
//!
//! // A hundred more examples of the first task's function.
//! let function = Key::new(1).named("observed").index(0).named("function");
//! let more = Sinusoid.examples("more", 100, function, Key::new(2))?;
//! let truth = Sinusoid.truth(function, more.input(0)).unwrap();
//! assert!((truth - more.targets()[0]).abs() < 0.6); // noise of standard deviation 0.1
//! # Ok::<(), pacmeta::Error>(())
//! ```

mod cauchy;
mod gp_draws;
#[cfg(feature = "images")]
pub mod images;
mod sinusoid;
pub mod table;
#[cfg(feature = "text")]
pub mod text;

pub use cauchy::Cauchy;
pub use gp_draws::GpDraws;
pub use sinusoid::Sinusoid;

use pacmeta_tensor::{Generator, Key};

use crate::error::{Error, Result};
use crate::task::Task;

/// A function without its noise, from inputs of the environment's dimension to targets.
pub type Function = Box<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// A distribution over tasks: y = f(x) + noise, with f, x and the noise random.
pub trait Environment: Send + Sync {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// The number of features of an input.
    fn dimension(&self) -> usize;

    /// The standard deviation of the normal noise on targets.
    fn noise_std(&self) -> f64;

    /// Draws the function f. Same key, same function.
    fn function(&self, function_key: Key) -> Function;

    /// Draws one input into `input`, which has room for [`dimension`](Self::dimension) numbers.
    fn draw_input(&self, generator: &mut Generator, input: &mut [f64]);

    /// Whether [`function`](Self::function) is what it claims to be at this input; true wherever
    /// [`draw_input`](Self::draw_input) can lead.
    fn covers(&self, input: &[f64]) -> bool {
        input.len() == self.dimension() && input.iter().all(|value| value.is_finite())
    }

    /// Draws examples of the function of `function_key`. A larger number begins with the examples of a smaller one.
    ///
    /// # Errors
    /// When no example is asked for.
    fn examples(&self, name: &str, examples: usize, function_key: Key, example_key: Key) -> Result<Task> {
        let dimension = self.dimension();
        let function = self.function(function_key);
        let mut generator = example_key.generator();
        let mut inputs = vec![0.0; examples * dimension];
        let mut targets = Vec::with_capacity(examples);
        for input in inputs.chunks_exact_mut(dimension) {
            self.draw_input(&mut generator, input);
            targets.push(function(input) + self.noise_std() * generator.normal());
        }
        Task::new(name, dimension, inputs, targets)
    }

    /// Draws a task: its function from `key.named("function")`, its examples from `key.named("examples")`.
    ///
    /// # Errors
    /// When no example is asked for.
    fn task(&self, name: &str, examples: usize, key: Key) -> Result<Task> {
        self.examples(name, examples, key.named("function"), key.named("examples"))
    }

    /// The function of `function_key` at an input, without noise; none where it is not known.
    /// For many inputs, draw the [`function`](Self::function) once instead.
    fn truth(&self, function_key: Key, input: &[f64]) -> Option<f64> {
        self.covers(input).then(|| self.function(function_key)(input))
    }
}

/// The environment of this name: `sinusoid`, `cauchy` or `gp-draws`.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn by_name(name: &str) -> Result<Box<dyn Environment>> {
    let known: [Box<dyn Environment>; 3] = [Box::new(Sinusoid), Box::new(Cauchy), Box::new(GpDraws)];
    let names = known.each_ref().map(|environment| environment.name());
    known.into_iter().find(|environment| environment.name() == name).ok_or_else(|| {
        Error::input(
            "environment",
            format!(
                "there is none called {}{}; expected one of {}",
                table::quoted(name),
                table::did_you_mean(name, names),
                names.join(", ")
            ),
        )
    })
}

/// `tasks` observed tasks of `examples` examples each, named `task-000`, `task-001`, ...; task i is drawn from
/// `key.index(i)`.
///
/// # Errors
/// When no example is asked for.
pub fn observed_tasks(
    environment: &dyn Environment,
    tasks: usize,
    examples: usize,
    key: Key,
) -> Result<Vec<Task>> {
    (0..tasks)
        .map(|index| environment.task(&format!("task-{index:03}"), examples, key.index(index as u64)))
        .collect()
}

/// `tasks` target tasks, named `target-000`, `target-001`, ...: the first `support` examples of each are in
/// [`Task::adapt`], the other `query` ones are there to be scored.
///
/// # Errors
/// When `support` or `query` is 0.
pub fn target_tasks(
    environment: &dyn Environment,
    tasks: usize,
    support: usize,
    query: usize,
    key: Key,
) -> Result<Vec<Task>> {
    if support == 0 || query == 0 {
        return Err(Error::input(
            "target tasks",
            format!("expected at least one support and one query example, found {support} and {query}"),
        ));
    }
    (0..tasks)
        .map(|index| {
            environment
                .task(&format!("target-{index:03}"), support + query, key.index(index as u64))?
                .with_adapt((0..support).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests;
