//! L-BFGS for smooth functions of a flat vector, with two ways to choose the step.
//!
//! * [`Step::Fixed`]: no line search; the first step is rate * min(1, 1/|g|_1), every other one the rate. With rate 5e-3,
//!   history 10 and 10 iterations this is the optimiser of the paper's Reptile experiment (about ten tiny steps).
//! * [`Step::Backtracking`]: halve from 1 until the decrease is sufficient (Armijo, 1e-4); runs until the gradient is small.
//!
//! The direction is the two-loop recursion with the initial scaling s.y / y.y; pairs with s.y <= 1e-10 are skipped.
//!
//! Why not a crate: the fixed-step variant is needed as it is, and no kept crate offers it.
//!
//! Reference: J. Nocedal, Updating quasi-Newton matrices with limited storage, Mathematics of Computation 35 (1980).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How far to go along a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Always the same rate (the first step is scaled by the gradient).
    Fixed {
        /// The rate.
        rate: f64,
    },
    /// Backtracking from 1.
    Backtracking,
}

/// When to stop, and how to step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lbfgs {
    /// The step rule.
    pub step: Step,
    /// Pairs (s, y) that are kept.
    pub history: usize,
    /// The largest number of iterations.
    pub iterations: usize,
    /// Stop when no entry of the gradient is larger.
    pub gradient_tolerance: f64,
}

impl Lbfgs {
    /// The optimiser of the paper's Reptile experiment: 10 iterations at rate 5e-3, history 10, no line search.
    pub const PAPER: Self =
        Self { step: Step::Fixed { rate: 5e-3 }, history: 10, iterations: 10, gradient_tolerance: 1e-7 };

    /// Runs until the gradient is small.
    pub const CONVERGED: Self =
        Self { step: Step::Backtracking, history: 20, iterations: 500, gradient_tolerance: 1e-7 };

    /// Checks numbers that come from a file.
    ///
    /// # Errors
    /// A message about the first number out of range.
    pub fn check(&self) -> Result<(), String> {
        let rate = match self.step {
            Step::Fixed { rate } => rate,
            Step::Backtracking => 1.0,
        };
        if !(rate.is_finite() && rate > 0.0 && self.gradient_tolerance >= 0.0) {
            return Err("`optimiser` needs a positive rate and a tolerance from 0".to_owned());
        }
        if !(1..=1000).contains(&self.history) || self.iterations > 100_000 {
            return Err(
                "`optimiser` is out of range: history 1 to 1000, at most 100000 iterations".to_owned()
            );
        }
        Ok(())
    }

    /// Slopes above this count as flat.
    fn smallest_slope(&self) -> f64 {
        match self.step {
            Step::Fixed { .. } => -1e-9,
            Step::Backtracking => 0.0,
        }
    }

    /// Minimises from `x` in place; `function` returns the value at a point and writes the gradient there.
    pub fn minimise(&self, x: &mut [f64], mut function: impl FnMut(&[f64], &mut [f64]) -> f64) -> Minimum {
        let size = x.len();
        let mut gradient = vec![0.0; size];
        let mut value = function(x, &mut gradient);
        let mut pairs: VecDeque<Pair> = VecDeque::new();
        let mut iterations = 0;
        while iterations < self.iterations && largest(&gradient) > self.gradient_tolerance {
            let mut direction = descent_direction(&gradient, &pairs);
            let mut slope = dot(&gradient, &direction);
            if slope > self.smallest_slope() {
                if pairs.is_empty() || matches!(self.step, Step::Fixed { .. }) {
                    break;
                }
                // A direction that does not descend means a useless history.
                pairs.clear();
                direction = gradient.iter().map(|g| -g).collect();
                slope = dot(&gradient, &direction);
            }
            let mut next = x.to_vec();
            let mut next_gradient = vec![0.0; size];
            let first_scale = (1.0 / gradient.iter().map(|g| g.abs()).sum::<f64>()).min(1.0);
            let mut step = match self.step {
                Step::Fixed { rate } if iterations == 0 => rate * first_scale,
                Step::Fixed { rate } => rate,
                Step::Backtracking if pairs.is_empty() => first_scale,
                Step::Backtracking => 1.0,
            };
            let next_value = loop {
                next.iter_mut().zip(x.iter()).zip(&direction).for_each(|((n, x), d)| *n = x + step * d);
                next_gradient.fill(0.0);
                let candidate = function(&next, &mut next_gradient);
                if matches!(self.step, Step::Fixed { .. }) || candidate <= value + 1e-4 * step * slope {
                    break Some(candidate);
                }
                step *= 0.5;
                if step < 1e-16 {
                    break None;
                }
            };
            let Some(next_value) = next_value else { break };
            iterations += 1;
            let pair = Pair::new(
                next.iter().zip(x.iter()).map(|(n, x)| n - x).collect(),
                next_gradient.iter().zip(&gradient).map(|(n, g)| n - g).collect(),
            );
            if pair.curvature > 1e-10 {
                if pairs.len() == self.history {
                    pairs.pop_front();
                }
                pairs.push_back(pair);
            }
            x.copy_from_slice(&next);
            gradient = next_gradient;
            value = next_value;
        }
        Minimum { value, iterations, largest_gradient: largest(&gradient) }
    }
}

/// Where a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minimum {
    /// The value of the function.
    pub value: f64,
    /// Iterations made.
    pub iterations: usize,
    /// The largest entry of the gradient.
    pub largest_gradient: f64,
}

struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    /// s . y
    curvature: f64,
}

impl Pair {
    fn new(s: Vec<f64>, y: Vec<f64>) -> Self {
        let curvature = dot(&s, &y);
        Self { s, y, curvature }
    }
}

/// The two-loop recursion: minus the approximate inverse Hessian times the gradient.
fn descent_direction(gradient: &[f64], pairs: &VecDeque<Pair>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut weights = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let weight = dot(&pair.s, &direction) / pair.curvature;
        direction.iter_mut().zip(&pair.y).for_each(|(d, y)| *d -= weight * y);
        weights.push(weight);
    }
    if let Some(pair) = pairs.back() {
        let scale = pair.curvature / dot(&pair.y, &pair.y);
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for (pair, weight) in pairs.iter().zip(weights.iter().rev()) {
        let correction = dot(&pair.y, &direction) / pair.curvature;
        direction.iter_mut().zip(&pair.s).for_each(|(d, s)| *d += (weight - correction) * s);
    }
    direction
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's function; minimum 0 at (1, 1).
    fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        gradient[0] = -2.0 * a - 400.0 * x[0] * b;
        gradient[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    #[test]
    fn converges_on_a_curved_valley() {
        let mut x = [-1.2, 1.0];
        let minimum = Lbfgs::CONVERGED.minimise(&mut x, rosenbrock);
        assert!((x[0] - 1.0).abs() < 1e-6 && (x[1] - 1.0).abs() < 1e-6, "{x:?} {minimum:?}");
        assert!(minimum.largest_gradient <= 1e-7 && minimum.iterations < 100);
    }

    #[test]
    fn fixed_steps_on_a_quadratic_follow_the_recursion() {
        // f = 2 x^2: the first step is rate * min(1, 1/|g|) * (-g) = -rate; then the secant is exact, so that the
        // direction is the Newton step -x and x shrinks by the factor (1 - rate).
        let mut x = [3.0];
        let settings = Lbfgs { iterations: 3, ..Lbfgs::PAPER };
        settings.minimise(&mut x, |x, gradient| {
            gradient[0] = 4.0 * x[0];
            2.0 * x[0] * x[0]
        });
        let expected = (3.0 - 5e-3) * (1.0 - 5e-3) * (1.0 - 5e-3);
        assert!((x[0] - expected).abs() < 1e-12, "{x:?} against {expected}");
    }
}
