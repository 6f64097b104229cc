//! Adam and AdamW on flat parameters, with explicit state.
//!
//! ```text
//! m <- 0.9 m + 0.1 g,   v <- 0.999 v + 0.001 g^2
//! p <- p - rate * decay * p - rate * (m / (1 - 0.9^t)) / (sqrt(v / (1 - 0.999^t)) + 1e-8)
//! ```
//!
//! Adam is AdamW with decay 0.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::pieces::PIECE;

const FIRST_DECAY: f64 = 0.9;
const SECOND_DECAY: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Which optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum OptimiserKind {
    /// Adam.
    #[default]
    Adam,
    /// Adam with decoupled weight decay on all parameters.
    Adamw,
}

/// Adam(W) with its moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimiser {
    /// The learning rate.
    pub rate: f64,
    /// Decoupled weight decay; 0 is Adam.
    pub weight_decay: f64,
    steps: u64,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Optimiser {
    /// A fresh optimiser for `size` parameters.
    pub fn new(size: usize, rate: f64, weight_decay: f64) -> Self {
        Self { rate, weight_decay, steps: 0, first: vec![0.0; size], second: vec![0.0; size] }
    }

    /// The state to be stored: steps made, first and second moments.
    pub fn state(&self) -> (u64, &[f64], &[f64]) {
        (self.steps, &self.first, &self.second)
    }

    /// Takes a stored state; false if its sizes do not fit.
    #[must_use]
    pub fn restore(&mut self, steps: u64, first: &[f64], second: &[f64]) -> bool {
        if first.len() != self.first.len() || second.len() != self.second.len() {
            return false;
        }
        self.steps = steps;
        self.first.copy_from_slice(first);
        self.second.copy_from_slice(second);
        true
    }

    /// One step along the gradient.
    pub fn step(&mut self, parameters: &mut [f64], gradient: &[f64]) {
        self.steps += 1;
        let exponent = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let keep = 1.0 - self.rate * self.weight_decay;
        let rate = self.rate / (1.0 - FIRST_DECAY.powi(exponent));
        let second_correction = 1.0 / (1.0 - SECOND_DECAY.powi(exponent));
        let update = |parameters: &mut [f64], gradient: &[f64], first: &mut [f64], second: &mut [f64]| {
            Arch::new().dispatch(Update {
                parameters,
                gradient,
                first,
                second,
                keep,
                rate,
                second_correction,
            });
        };
        let (first, second) = (&mut self.first[..], &mut self.second[..]);
        // Small networks are stepped within microseconds.
        if parameters.len() <= PIECE {
            return update(parameters, gradient, first, second);
        }
        let moments = first.par_chunks_mut(PIECE).zip(second.par_chunks_mut(PIECE));
        let values = parameters.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE));
        values.zip(moments).for_each(|((p, g), (m, v))| update(p, g, m, v));
    }
}

struct Update<'a> {
    parameters: &'a mut [f64],
    gradient: &'a [f64],
    first: &'a mut [f64],
    second: &'a mut [f64],
    keep: f64,
    rate: f64,
    second_correction: f64,
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { parameters, gradient, first, second, keep, rate, second_correction } = self;
        let moments = first.iter_mut().zip(second);
        for ((p, g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
            // Names for what is stored: reading it back would wait for the store.
            let mean = FIRST_DECAY * *m + (1.0 - FIRST_DECAY) * g;
            let square = SECOND_DECAY * *v + (1.0 - SECOND_DECAY) * g * g;
            *p = keep * *p - rate * mean / ((square * second_correction).sqrt() + EPSILON);
            (*m, *v) = (mean, square);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_steps_by_hand() {
        // Step 1: m/(1 - 0.9) = g and v/(1 - 0.999) = g^2, so p moves by rate * g/|g|, after the decay.
        let mut optimiser = Optimiser::new(2, 0.1, 0.5);
        let mut p = [1.0, -2.0];
        optimiser.step(&mut p, &[4.0, -0.25]);
        assert!((p[0] - (0.95 - 0.1)).abs() < 1e-7 && (p[1] - (-1.9 + 0.1)).abs() < 1e-6, "{p:?}");
        // Step 2 with the opposite gradient: m = 0.9*0.1*4 - 0.1*4 = -0.04, v = (0.999 + 1)*0.001*16.
        optimiser.step(&mut p, &[-4.0, 0.25]);
        let expected = 0.95 * 0.85
            - 0.1 * (-0.04 / (1.0 - 0.81)) / ((1.999 * 0.016 / (1.0_f64 - 0.998_001)).sqrt() + 1e-8);
        assert!((p[0] - expected).abs() < 1e-7, "{} against {expected}", p[0]);
    }

    #[test]
    fn a_long_vector_is_stepped_like_a_short_one() {
        let length = 2 * PIECE + 5;
        let gradient: Vec<f64> = (0..length).map(|place| (place as f64 * 0.7).sin()).collect();
        let (mut whole, mut p) = (Optimiser::new(length, 0.1, 0.5), vec![1.0; length]);
        let (mut single, mut q) = (Optimiser::new(1, 0.1, 0.5), [1.0]);
        for _ in 0..2 {
            whole.step(&mut p, &gradient);
            single.step(&mut q, &gradient[length - 1..]);
        }
        assert_eq!(p[length - 1], q[0]);
        for place in [PIECE - 1, PIECE, 2 * PIECE] {
            let (mut single, mut q) = (Optimiser::new(1, 0.1, 0.5), [1.0]);
            (0..2).for_each(|_| single.step(&mut q, &gradient[place..=place]));
            assert_eq!(p[place], q[0], "{place}");
        }
    }

    #[test]
    fn state_round_trips() {
        let mut one = Optimiser::new(3, 0.01, 0.0);
        let mut p = [1.0, 2.0, 3.0];
        one.step(&mut p, &[0.1, -0.2, 0.3]);
        let mut two = Optimiser::new(3, 0.01, 0.0);
        let (steps, first, second) = one.state();
        assert!(two.restore(steps, first, second));
        assert_eq!(one, two);
        assert!(!two.restore(1, &[0.0], &[0.0]));
    }
}
