//! Inner steps: from a prior N(p, sigma^2) over heads and examples D to samples of the Gibbs posterior
//! Q(w) prop. to N(w | 0, sigma^2) exp(-tau L^(p + w, D)), the hypothesis being v = p + w (equations `grad_w1` and
//! `grad_w2` of the paper; with one particle, its Algorithm 1).
//!
//! ```text
//! g = w/sigma^2 + tau grad L^(p + w, D)
//! gradient descent   w <- w - rate g
//! Adagrad            a <- a + g^2,  w <- w - rate g / sqrt(a)
//! ```
//!
//! K times from w = 0. Plain steps, as in MAML, have tau = 1 and sigma^2 infinite. With several particles the direction
//! g is replaced by Stein's ([`svgd`](super::svgd)); Langevin steps add noise ([`sgld`](super::sgld)). Both start at draws
//! from the prior when there is more than one particle.

use pacmeta_tensor::simd::skinny::Begin;
use pacmeta_tensor::{Element, Key};
use serde::{Deserialize, Serialize};

use super::walk::{Walk, WalkRoom};
use super::{Examples, HeadShape, Outputs, Weights, vector};
use crate::error::{Error, Result};

/// How a direction becomes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum InnerOptimiser {
    /// Gradient descent: as it is.
    #[default]
    Gd,
    /// Adagrad: each entry divided by the root of its accumulated squares.
    Adagrad,
}

/// The inner steps of a head.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadSteps {
    /// K.
    pub steps: usize,
    /// The rate of each step.
    pub rate: f64,
    /// Gradient descent or Adagrad.
    #[serde(default)]
    pub optimiser: InnerOptimiser,
    /// Where Adagrad's accumulators start.
    #[serde(default = "accumulator_start")]
    pub accumulator_start: f64,
}

fn accumulator_start() -> f64 {
    HeadSteps::ACCUMULATOR_START
}

impl HeadSteps {
    /// Adagrad's usual start.
    pub const ACCUMULATOR_START: f64 = 0.1;
    /// The most steps: exact methods keep the head after each.
    pub const MOST: usize = 10_000;
    /// Stands in for a start of zero, so that an entry without any slope stays where it is.
    const LEAST_START: f64 = 1e-30;

    /// Gradient descent.
    pub fn gradient_descent(steps: usize, rate: f64) -> Self {
        Self { steps, rate, optimiser: InnerOptimiser::Gd, accumulator_start: Self::ACCUMULATOR_START }
    }

    /// Adagrad from its usual start.
    pub fn adagrad(steps: usize, rate: f64) -> Self {
        Self { optimiser: InnerOptimiser::Adagrad, ..Self::gradient_descent(steps, rate) }
    }

    /// Checks numbers that come from a file.
    ///
    /// # Errors
    /// An error that names the key.
    pub fn check(&self) -> Result<()> {
        if self.steps > Self::MOST {
            return Err(Error::config(
                "inner.steps",
                format!("it is {}, expected at most {}", self.steps, Self::MOST),
            ));
        }
        if !(self.rate.is_finite() && self.rate >= 0.0) {
            return Err(Error::config(
                "inner.rate",
                format!("it is {}, expected a number from 0", self.rate),
            ));
        }
        if !(self.accumulator_start.is_finite() && self.accumulator_start >= 0.0) {
            return Err(Error::config(
                "inner.accumulator_start",
                format!("it is {}, expected a number from 0", self.accumulator_start),
            ));
        }
        Ok(())
    }

    /// Checks that a derivative through the steps exists: Adagrad from 0 is singular where a slope is 0.
    ///
    /// # Errors
    /// An error that names the key.
    pub fn check_differentiable(&self) -> Result<()> {
        if self.optimiser == InnerOptimiser::Adagrad && self.accumulator_start == 0.0 {
            return Err(Error::config(
                "inner.accumulator_start",
                "it is 0, where Adagrad has no derivative; this method differentiates through the steps: take 0.1",
            ));
        }
        Ok(())
    }
}

/// What is sampled, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sampler {
    /// One particle from w = 0.
    #[default]
    Steps,
    /// Stein variational gradient descent. One particle is the same as `steps`.
    Svgd {
        /// M.
        particles: usize,
    },
    /// Independent Langevin chains.
    Sgld {
        /// M.
        particles: usize,
    },
}

impl Sampler {
    /// The most particles.
    pub const MOST: usize = 1000;

    /// M.
    pub fn particles(self) -> usize {
        match self {
            Self::Steps => 1,
            Self::Svgd { particles } | Self::Sgld { particles } => particles,
        }
    }
}

/// The target of the steps: temperature tau and prior variance sigma^2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gibbs {
    /// tau.
    pub temperature: f64,
    /// sigma^2; infinite for no prior.
    pub sigma_squared: f64,
}

impl Gibbs {
    /// Plain steps on the loss.
    pub const PLAIN: Self = Self { temperature: 1.0, sigma_squared: f64::INFINITY };
}

/// Particles on their way: w of each, with Adagrad's accumulators.
#[derive(Debug, Clone, Default)]
pub struct Chain<E> {
    pub(super) size: usize,
    pub(super) offsets: Vec<E>,
    pub(super) accumulators: Vec<E>,
}

impl<E: Element> Chain<E> {
    /// Particles of `size` numbers at given places, one after the other.
    pub fn at(size: usize, offsets: Vec<E>, inner: &HeadSteps) -> Self {
        let mut chain = Self { size, offsets, accumulators: Vec::new() };
        chain.reset_accumulators(inner);
        chain
    }

    /// Particles after some steps.
    pub(crate) fn on_its_way(size: usize, offsets: Vec<E>, accumulators: Vec<E>) -> Self {
        Self { size, offsets, accumulators }
    }

    /// One particle at 0, or several at draws from the prior.
    pub fn start(&mut self, size: usize, sampler: Sampler, inner: &HeadSteps, sigma_squared: f64, key: Key) {
        match sampler.particles() {
            1 => {
                self.size = size;
                self.offsets.clear();
                self.offsets.resize(size, E::ZERO);
            }
            particles => self.draw(size, particles, sigma_squared, key),
        }
        self.reset_accumulators(inner);
    }

    fn reset_accumulators(&mut self, inner: &HeadSteps) {
        self.accumulators.clear();
        if inner.optimiser == InnerOptimiser::Adagrad {
            let start = inner.accumulator_start.max(HeadSteps::LEAST_START);
            self.accumulators.resize(self.offsets.len(), E::from_f64(start));
        }
    }

    /// Draws from N(0, sigma^2).
    pub fn draw(&mut self, size: usize, particles: usize, sigma_squared: f64, key: Key) {
        self.size = size;
        self.offsets.clear();
        self.accumulators.clear();
        let deviation = sigma_squared.sqrt();
        for particle in 0..particles {
            let mut generator = key.named("particle").index(particle as u64).generator();
            self.offsets.extend((0..size).map(|_| E::from_f64(deviation * generator.normal())));
        }
    }

    /// Becomes a copy of another, whose accumulators it continues.
    pub fn copy_from(&mut self, other: &Self) {
        self.size = other.size;
        self.offsets.clone_from(&other.offsets);
        self.accumulators.clone_from(&other.accumulators);
    }

    /// Adagrad's accumulators, if there are any.
    pub(crate) fn accumulators(&self) -> &[E] {
        &self.accumulators
    }

    /// How many numbers it holds.
    pub(crate) fn numbers(&self) -> usize {
        self.offsets.len() + self.accumulators.len()
    }

    /// w of each particle.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[E]> {
        self.offsets.chunks_exact(self.size.max(1))
    }
}

/// What the reverse pass needs of each step, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Trajectory<E> {
    /// Recorded steps.
    pub(super) steps: usize,
    /// w of all particles before the step.
    pub(super) offsets: Vec<E>,
    /// P of all particles before the step.
    pub(super) probabilities: Vec<E>,
    /// g of all particles, if there are several.
    pub(super) slopes: Vec<E>,
    /// The direction that Adagrad took, if it did.
    pub(super) directions: Vec<E>,
    /// Adagrad's accumulators after the step.
    pub(super) accumulators: Vec<E>,
}

impl<E> Trajectory<E> {
    pub(super) fn clear(&mut self) {
        self.steps = 0;
        self.offsets.clear();
        self.probabilities.clear();
        self.slopes.clear();
        self.directions.clear();
        self.accumulators.clear();
    }
}

/// Buffers of the steps.
#[derive(Debug, Clone, Default)]
pub struct StepsRoom<E> {
    pub(super) position: Vec<E>,
    outputs: Outputs<E>,
    pub(super) residuals: Vec<E>,
    pub(super) walk: WalkRoom<E>,
    pub(super) changes: Vec<E>,
    pub(super) product: Vec<E>,
    pub(super) direction_adjoint: Vec<E>,
    pub(super) slope_adjoint: Vec<E>,
    pub(super) accumulator_adjoint: Vec<E>,
}

/// One adaptation: everything that stays the same from step to step.
#[derive(Debug, Clone, Copy)]
pub struct Adaptation<'a, E> {
    /// Who asks, for error messages.
    pub method: &'static str,
    /// The sizes of the head.
    pub shape: HeadShape,
    /// p.
    pub head: &'a [E],
    /// D.
    pub examples: Examples<'a, E>,
    /// tau and sigma^2.
    pub gibbs: Gibbs,
    /// K, rate and preconditioning.
    pub inner: &'a HeadSteps,
    /// How particles interact.
    pub sampler: Sampler,
}

impl<E: Element> Adaptation<'_, E> {
    /// 1/sigma^2.
    pub(super) fn pull(&self) -> E {
        E::from_f64(1.0 / self.gibbs.sigma_squared)
    }

    /// Moves the particles by K steps. `noise` is the key of Langevin noise.
    ///
    /// # Errors
    /// When a head is not finite any more.
    pub fn run(
        &self,
        chain: &mut Chain<E>,
        noise: Key,
        keep: Option<&mut Trajectory<E>>,
        room: &mut StepsRoom<E>,
    ) -> Result<()> {
        let StepsRoom { position, outputs, residuals, walk, .. } = room;
        position.resize(self.shape.parameters(), E::ZERO);
        self.walk().run(chain, noise, keep, walk, |step, offset, slope, keep| {
            vector::sum(position, self.head, offset);
            self.shape.outputs(position, self.examples, outputs);
            if !outputs.losses.iter().copied().sum::<E>().is_finite() {
                return Err(self.walk().diverged(step));
            }
            let weights = Weights::Mean(E::from_f64(self.gibbs.temperature));
            self.shape.residuals(&outputs.probabilities, self.examples.labels, weights, residuals);
            self.shape.head_gradient(Begin::Zero, residuals, self.examples.features, slope);
            if self.gibbs.sigma_squared.is_finite() {
                vector::add_product(slope, self.pull(), offset);
            }
            if let Some(trajectory) = keep {
                trajectory.probabilities.extend_from_slice(&outputs.probabilities);
            }
            Ok(())
        })
    }

    fn walk(&self) -> Walk<'_> {
        Walk { method: self.method, inner: self.inner, sampler: self.sampler }
    }
}
