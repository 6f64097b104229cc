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

use super::flat::{With, combine, difference, largest, move_and_project};

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

    /// Minimises from `x` in place; `function` returns the value at a point and adds the gradient there to zeros.
    pub fn minimise(&self, x: &mut [f64], mut function: impl FnMut(&[f64], &mut [f64]) -> f64) -> Minimum {
        let iterations = self.search(&mut Buffers::default(), x, &mut function);
        let mut gradient = vec![0.0; x.len()];
        let value = function(x, &mut gradient);
        Minimum { value, iterations, largest_gradient: largest(&gradient) }
    }

    /// The same with buffers that serve many searches; returns the number of iterations. The function is evaluated only
    /// where a step depends on it, so not at the end of the last of a given number of fixed steps.
    pub(crate) fn search(
        &self,
        buffers: &mut Buffers,
        x: &mut [f64],
        mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
    ) -> usize {
        let Buffers { gradient, direction, next, next_gradient, history, weights } = buffers;
        for buffer in [&mut *gradient, direction, next, next_gradient] {
            buffer.clear();
            buffer.resize(x.len(), 0.0);
        }
        history.clear();
        if self.iterations == 0 {
            return 0;
        }
        let mut value = function(x, gradient);
        let mut iterations = 0;
        while iterations < self.iterations && largest(gradient) > self.gradient_tolerance {
            let mut slope = history.descent_direction(gradient, direction, weights);
            if slope > self.smallest_slope() {
                if history.is_empty() || matches!(self.step, Step::Fixed { .. }) {
                    break;
                }
                // A direction that does not descend means a useless history.
                history.clear();
                slope = history.descent_direction(gradient, direction, weights);
            }
            let first_scale = || (1.0 / gradient.iter().map(|g| g.abs()).sum::<f64>()).min(1.0);
            let mut step = match self.step {
                Step::Fixed { rate } if iterations == 0 => rate * first_scale(),
                Step::Fixed { rate } => rate,
                Step::Backtracking if history.is_empty() => first_scale(),
                Step::Backtracking => 1.0,
            };
            let next_value = loop {
                combine(next, x, step, direction);
                if matches!(self.step, Step::Fixed { .. }) && iterations + 1 == self.iterations {
                    x.copy_from_slice(next);
                    return self.iterations;
                }
                next_gradient.fill(0.0);
                let candidate = function(next, next_gradient);
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
            history.push(self.history, (x, gradient), (next, next_gradient));
            x.copy_from_slice(next);
            std::mem::swap(gradient, next_gradient);
            value = next_value;
        }
        iterations
    }
}

/// Vectors that a search works on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    gradient: Vec<f64>,
    direction: Vec<f64>,
    next: Vec<f64>,
    next_gradient: Vec<f64>,
    history: History,
    weights: Vec<f64>,
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

/// The last pairs (s, y), newest last.
#[derive(Debug, Clone, Default)]
struct History {
    pairs: VecDeque<Pair>,
    /// Pairs whose memory is free.
    spare: Vec<Pair>,
}

#[derive(Debug, Clone, Default)]
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    /// s . y
    curvature: f64,
    /// y . y
    square: f64,
}

impl History {
    fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn clear(&mut self) {
        self.spare.extend(self.pairs.drain(..));
    }

    /// Takes the pair of the step between two points with their gradients, if its curvature is positive.
    fn push(
        &mut self,
        most: usize,
        (x, gradient): (&[f64], &[f64]),
        (next, next_gradient): (&[f64], &[f64]),
    ) {
        let mut pair = self.spare.pop().unwrap_or_default();
        pair.s.resize(x.len(), 0.0);
        pair.y.resize(x.len(), 0.0);
        pair.square = difference(&mut pair.y, next_gradient, gradient, With::Itself);
        pair.curvature = difference(&mut pair.s, next, x, With::Vector(&pair.y));
        if pair.curvature > 1e-10 {
            if self.pairs.len() == most {
                self.spare.extend(self.pairs.pop_front());
            }
            self.pairs.push_back(pair);
        } else {
            self.spare.push(pair);
        }
    }

    /// The two-loop recursion: writes minus the approximate inverse Hessian times the gradient, and returns its product
    /// with the gradient. Each pass makes one update and the product that the next update needs.
    fn descent_direction(&self, gradient: &[f64], direction: &mut [f64], weights: &mut Vec<f64>) -> f64 {
        let pairs = &self.pairs;
        direction.copy_from_slice(gradient);
        weights.clear();
        weights.resize(pairs.len(), 0.0);
        let (Some(oldest), Some(newest)) = (pairs.front(), pairs.back()) else {
            return move_and_project(direction, 0.0, gradient, -1.0, gradient);
        };
        let mut product = move_and_project(direction, 0.0, gradient, -1.0, &newest.s);
        for index in (1..pairs.len()).rev() {
            let pair = &pairs[index];
            weights[index] = product / pair.curvature;
            product = move_and_project(direction, -weights[index], &pair.y, 1.0, &pairs[index - 1].s);
        }
        weights[0] = product / oldest.curvature;
        let scale = newest.curvature / newest.square;
        product = move_and_project(direction, -weights[0], &oldest.y, scale, &oldest.y);
        for (index, pair) in pairs.iter().enumerate() {
            let correction = product / pair.curvature;
            let onto = pairs.get(index + 1).map_or(gradient, |newer| &newer.y);
            product = move_and_project(direction, weights[index] - correction, &pair.s, 1.0, onto);
        }
        product
    }
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
