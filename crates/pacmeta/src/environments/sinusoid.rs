//! The Sinusoid environment, on which the paper compares its bounds and its regression methods.
//!
//! y = slope x + A sin(1.5 (x - c)) + b + noise with
//! A ~ U(0.7, 1.3), c ~ N(0, 0.1²), b ~ N(5, 0.1²), slope ~ N(0.5, 0.2²), x ~ U(-5, 5), noise ~ N(0, 0.1²).

use pacmeta_tensor::{Generator, Key};

use super::{Environment, Function};

/// Sinusoids on a slope. See the module documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sinusoid;

impl Environment for Sinusoid {
    fn name(&self) -> &'static str {
        "sinusoid"
    }

    fn dimension(&self) -> usize {
        1
    }

    fn noise_std(&self) -> f64 {
        0.1
    }

    fn function(&self, function_key: Key) -> Function {
        let mut generator = function_key.generator();
        let amplitude = generator.uniform_in(0.7, 1.3);
        let shift = 0.1 * generator.normal();
        let intercept = 5.0 + 0.1 * generator.normal();
        let slope = 0.5 + 0.2 * generator.normal();
        Box::new(move |input| {
            let x = input[0];
            slope * x + amplitude * (1.5 * (x - shift)).sin() + intercept
        })
    }

    fn draw_input(&self, generator: &mut Generator, input: &mut [f64]) {
        input[0] = generator.uniform_in(-5.0, 5.0);
    }
}
