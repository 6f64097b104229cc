//! The exact reverse pass through K inner steps: from the derivative of a result in the adapted heads v_K = p + w_K to
//! its derivative in the initial head p and in the features F' that the steps saw.
//!
//! With adjoints written as x', each step backwards is
//!
//! ```text
//! gradient descent   d' = -rate w'
//! Adagrad            a' += rate w' d / (2 a^(3/2)),  d' = 2 d a' - rate w' / sqrt(a)
//! Stein              (g', w') += derivative of d = A(w) g + B(w) w         (g' = d' for one particle)
//! g = w/sigma^2 + tau grad L^(p + w, F'):
//!                    w' += g'/sigma^2 + tau H g',  p' += tau H g',  F'' += tau d/dF' [g' . grad L^]
//! ```
//!
//! Langevin noise is a constant. Memory: w and P of each step, with Adagrad its directions and accumulators too.

use pacmeta_tensor::Element;

use super::derivatives::{add_mixed_derivative, hessian_product, residual_changes};
use super::steps::{Adaptation, InnerOptimiser, Sampler, StepsRoom, Trajectory};
use super::{Weights, vector};

impl<E: Element> Adaptation<'_, E> {
    /// Adds the derivatives in p and F'. `adjoints` holds those in each v_K at first; afterwards those in the start w_0.
    pub fn pull_back(
        &self,
        trajectory: &Trajectory<E>,
        adjoints: &mut [E],
        head_gradient: &mut [E],
        feature_gradient: &mut [E],
        room: &mut StepsRoom<E>,
    ) {
        let size = self.shape.parameters();
        let all = adjoints.len();
        let particles = all / size;
        let rate = E::from_f64(self.inner.rate);
        for adjoint in adjoints.chunks_exact(size) {
            vector::add_product(head_gradient, E::ONE, adjoint);
        }
        room.position.resize(size, E::ZERO);
        room.product.resize(size, E::ZERO);
        room.direction_adjoint.resize(all, E::ZERO);
        room.slope_adjoint.resize(all, E::ZERO);
        room.accumulator_adjoint.clear();
        room.accumulator_adjoint.resize(all, E::ZERO);
        for step in (0..trajectory.steps).rev() {
            let range = step * all..(step + 1) * all;
            match self.inner.optimiser {
                InnerOptimiser::Gd => {
                    room.direction_adjoint.fill(E::ZERO);
                    vector::add_product(&mut room.direction_adjoint, -rate, adjoints);
                }
                InnerOptimiser::Adagrad => vector::adagrad_back(
                    adjoints,
                    &mut room.accumulator_adjoint,
                    &mut room.direction_adjoint,
                    (&trajectory.directions[range.clone()], &trajectory.accumulators[range.clone()]),
                    rate,
                ),
            }
            let offsets = &trajectory.offsets[range.clone()];
            if particles > 1 && matches!(self.sampler, Sampler::Svgd { .. }) {
                room.walk.stein.kernel(size, offsets);
                room.walk.stein.pull_back(
                    size,
                    (offsets, &trajectory.slopes[range]),
                    &room.direction_adjoint,
                    &mut room.slope_adjoint,
                    adjoints,
                );
            } else {
                std::mem::swap(&mut room.direction_adjoint, &mut room.slope_adjoint);
            }
            for particle in 0..particles {
                let part = particle * size..(particle + 1) * size;
                self.slope_back(
                    &offsets[part.clone()],
                    self.probabilities(trajectory, step * particles + particle),
                    part.clone(),
                    &mut adjoints[part],
                    (&mut *head_gradient, &mut *feature_gradient),
                    room,
                );
            }
        }
    }

    fn probabilities<'t>(&self, trajectory: &'t Trajectory<E>, place: usize) -> &'t [E] {
        let length = self.examples.labels.len() * self.shape.classes;
        &trajectory.probabilities[place * length..(place + 1) * length]
    }

    /// One particle's g backwards.
    fn slope_back(
        &self,
        offset: &[E],
        probabilities: &[E],
        part: std::ops::Range<usize>,
        adjoint: &mut [E],
        (head_gradient, feature_gradient): (&mut [E], &mut [E]),
        room: &mut StepsRoom<E>,
    ) {
        let (shape, features, labels) = (self.shape, self.examples.features, self.examples.labels);
        let slope_adjoint = &room.slope_adjoint[part];
        let temperature = E::from_f64(self.gibbs.temperature);
        let factor = temperature / E::from_f64(labels.len() as f64);
        vector::sum(&mut room.position, self.head, offset);
        shape.residuals(probabilities, labels, Weights::Mean(temperature), &mut room.residuals);
        residual_changes(shape, probabilities, features, slope_adjoint, factor, &mut room.changes);
        hessian_product(shape, &room.changes, features, &mut room.product);
        add_mixed_derivative(
            shape,
            (&room.residuals, &room.changes),
            (&room.position, slope_adjoint),
            feature_gradient,
        );
        vector::add_product(adjoint, E::ONE, &room.product);
        vector::add_product(head_gradient, E::ONE, &room.product);
        if self.gibbs.sigma_squared.is_finite() {
            vector::add_product(adjoint, self.pull(), slope_adjoint);
        }
    }
}
