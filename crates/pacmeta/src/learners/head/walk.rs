//! K steps of particles along slopes that the caller computes: of a head on features, or of a whole network.

use pacmeta_tensor::{Element, Key};

use super::steps::{Chain, HeadSteps, InnerOptimiser, Sampler, Trajectory};
use super::svgd::Stein;
use super::{sgld, vector};
use crate::error::{Error, Result};

/// Buffers of a walk.
#[derive(Debug, Clone, Default)]
pub(crate) struct WalkRoom<E> {
    slopes: Vec<E>,
    directions: Vec<E>,
    pub(super) stein: Stein<E>,
}

impl<E> WalkRoom<E> {
    /// How many numbers it holds, without the kernel between particles.
    pub(crate) fn numbers(&self) -> usize {
        self.slopes.len() + self.directions.len()
    }
}

/// What stays the same from step to step, whatever the slopes are of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    /// Who asks, for error messages.
    pub(crate) method: &'static str,
    /// K, rate and preconditioning.
    pub(crate) inner: &'a HeadSteps,
    /// How particles interact.
    pub(crate) sampler: Sampler,
}

impl Walk<'_> {
    /// Moves the particles by K steps. `slope` gets the step and w of a particle, and writes its g; what it needs for a reverse
    /// pass, it adds to the trajectory.
    pub(crate) fn run<E: Element>(
        &self,
        chain: &mut Chain<E>,
        noise: Key,
        mut keep: Option<&mut Trajectory<E>>,
        room: &mut WalkRoom<E>,
        mut slope: impl FnMut(usize, &[E], &mut [E], Option<&mut Trajectory<E>>) -> Result<()>,
    ) -> Result<()> {
        let size = chain.size;
        let particles = chain.iter().len();
        let rate = E::from_f64(self.inner.rate);
        room.slopes.resize(particles * size, E::ZERO);
        if let Some(trajectory) = keep.as_deref_mut() {
            trajectory.clear();
            trajectory.steps = self.inner.steps;
        }
        for step in 0..self.inner.steps {
            if let Some(trajectory) = keep.as_deref_mut() {
                trajectory.offsets.extend_from_slice(&chain.offsets);
            }
            for (offset, to) in chain.offsets.chunks_exact(size).zip(room.slopes.chunks_exact_mut(size)) {
                slope(step, offset, to, keep.as_deref_mut())?;
            }
            let interacting = particles > 1 && matches!(self.sampler, Sampler::Svgd { .. });
            if interacting {
                room.directions.resize(particles * size, E::ZERO);
                room.stein.kernel(size, &chain.offsets);
                room.stein.directions(size, &chain.offsets, &room.slopes, &mut room.directions);
            }
            let directions = if interacting { &room.directions } else { &room.slopes };
            match self.inner.optimiser {
                InnerOptimiser::Gd => vector::add_product(&mut chain.offsets, -rate, directions),
                InnerOptimiser::Adagrad => {
                    vector::adagrad(&mut chain.offsets, &mut chain.accumulators, directions, rate);
                }
            }
            if let Some(trajectory) = keep.as_deref_mut() {
                if interacting {
                    trajectory.slopes.extend_from_slice(&room.slopes);
                }
                if self.inner.optimiser == InnerOptimiser::Adagrad {
                    trajectory.directions.extend_from_slice(directions);
                    trajectory.accumulators.extend_from_slice(&chain.accumulators);
                }
            }
            if let Sampler::Sgld { .. } = self.sampler {
                sgld::add_noise(&mut chain.offsets, size, self.inner.rate, noise.index(step as u64));
            }
        }
        if vector::all_finite(&chain.offsets) && vector::all_finite(&chain.accumulators) {
            Ok(())
        } else {
            Err(self.diverged(self.inner.steps))
        }
    }

    /// A number is not finite at a step.
    pub(crate) fn diverged(&self, step: usize) -> Error {
        Error::HeadDiverged { method: self.method, step, rate: self.inner.rate }
    }
}
