//! The Cauchy environment: two hills in the plane that all tasks share, and a Gaussian process that they do not.
//!
//! f(x) = 6 / (π (1 + |x + 1|²)) + 3 / (π (1 + |x - 2|²)) + 1 + 0.2 g(x) with g ~ GP(0, exp(-|x - x'|² / (2 · 0.5))),
//! both coordinates of x from N(0, 2.5²) cut at -3 and +2 standard deviations, noise ~ N(0, 0.05²).

use std::f64::consts::PI;

use pacmeta_tensor::{Generator, Key};

use super::gp_draws::SquaredExponential;
use super::{Environment, Function};

const INPUT_STD: f64 = 2.5;
const LOWEST: f64 = -3.0 * INPUT_STD;
const HIGHEST: f64 = 2.0 * INPUT_STD;

/// Two hills and a draw from a Gaussian process. See the module documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cauchy;

impl Cauchy {
    fn process() -> SquaredExponential {
        SquaredExponential {
            centre: 0.5 * (LOWEST + HIGHEST),
            reach: 0.5 * (HIGHEST - LOWEST),
            length: 0.5f64.sqrt(),
            dimension: 2,
        }
    }

    /// The part that all tasks share.
    pub(super) fn mean(input: &[f64]) -> f64 {
        let hill = |peak: f64| {
            let squared_distance: f64 = input.iter().map(|x| (x - peak).powi(2)).sum();
            1.0 / (PI * (1.0 + squared_distance))
        };
        6.0 * hill(-1.0) + 3.0 * hill(2.0) + 1.0
    }
}

impl Environment for Cauchy {
    fn name(&self) -> &'static str {
        "cauchy"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn noise_std(&self) -> f64 {
        0.05
    }

    fn function(&self, function_key: Key) -> Function {
        let own = Self::process().draw(&mut function_key.generator());
        Box::new(move |input| Self::mean(input) + 0.2 * own(input))
    }

    fn draw_input(&self, generator: &mut Generator, input: &mut [f64]) {
        for value in input {
            // Rejection: 97.6 % of normal draws lie between the cuts.
            *value = loop {
                let candidate = INPUT_STD * generator.normal();
                if (LOWEST..=HIGHEST).contains(&candidate) {
                    break candidate;
                }
            };
        }
    }

    fn covers(&self, input: &[f64]) -> bool {
        Self::process().covers(input)
    }
}
