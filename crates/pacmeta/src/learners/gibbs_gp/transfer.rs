//! A posterior that has seen S' and is judged on S: W_2 of the paper and its derivatives.
//!
//! With A, r, a for S' (m' examples, temperature alpha, s2 = m'/(2 alpha)), B = A^-1, C = K(S', S), e = y - mu - C' a
//! and G = B C:
//!
//! ```text
//! L^(Q, S)  = (|e|^2 + sum_j (k(x_j, x_j) - C_j . G_j)) / m
//! L^(Q, S') = (s2^2 |a|^2 + s2 tr(B K')) / m' = (s2^2 |a|^2 + m' s2 - s2^2 tr B) / m'
//! W_2 = -log Z_alpha(S')/beta + L^(Q, S) - (alpha/beta) L^(Q, S')
//! ```
//!
//! For weights (z, w, w') on log Z, L^(Q, S) and L^(Q, S') the derivatives are, with u = B C e, b = B a and
//! c = w' s2^2/m',
//!
//! ```text
//! mu(S):  -(2 w/m) e                        C:  -(2 w/m) (a e' + G)
//! mu(S'): z a + (2 w/m) u - 2 c b           K': z (a a' - B)/2 + (w/m)(u a' + a u' + G G') - c (b a' + a b') + c B B
//! ```
//!
//! S and S' may overlap in any way: each is a set of points of its own.

use pacmeta_tensor::simd::product::{Left, Sizes, Start, product};
use pacmeta_tensor::simd::{dot, factor};
use pulp::{Simd, WithSimd};

use super::{Context, Covariance, GibbsGp, Points, PointsGradient, kernel};
use crate::error::Result;

/// The numbers of one task whose posterior saw S' only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// log Z_alpha(S').
    pub log_partition: f64,
    /// L^(Q_alpha, S).
    pub risk: f64,
    /// L^(Q_alpha, S').
    pub risk_adapt: f64,
    /// KL(Q_alpha || P).
    pub kl: f64,
}

/// The weights of a sum of [`Transfer`]'s three numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferWeights {
    /// The weight of log Z_alpha(S').
    pub log_partition: f64,
    /// The weight of L^(Q_alpha, S).
    pub risk: f64,
    /// The weight of L^(Q_alpha, S').
    pub risk_adapt: f64,
}

impl TransferWeights {
    /// The weights of W_2.
    pub fn of_w2(alpha: f64, beta: f64) -> Self {
        Self { log_partition: -1.0 / beta, risk: 1.0, risk_adapt: -alpha / beta }
    }

    /// The weighted sum.
    pub fn sum(&self, terms: &Transfer) -> f64 {
        self.log_partition * terms.log_partition + self.risk * terms.risk + self.risk_adapt * terms.risk_adapt
    }
}

/// What belongs to the pair (S', S).
#[derive(Debug, Clone, Default)]
pub(super) struct Cross {
    /// C, one row an example of S'.
    kernel: Vec<f64>,
    /// G = B C.
    projected: Vec<f64>,
    /// e.
    error: Vec<f64>,
}

impl GibbsGp {
    /// log Z_alpha(S') and the two risks.
    ///
    /// # Errors
    /// When A is not positive definite.
    pub fn transfer(
        &mut self,
        adapt: &Points,
        judged: &Points,
        covariance: Covariance,
        context: Context<'_>,
    ) -> Result<Transfer> {
        let Covariance { scale, noise_variance } = covariance;
        self.system.solve(self.arch, adapt, covariance, context)?;
        let (size, adapt_stride, stride) = (adapt.count(), adapt.stride(), judged.stride());
        factor::mirror(&mut self.system.inverse, size);
        let Cross { kernel: cross, projected, error } = &mut self.cross;
        kernel::cross_kernel(self.arch, adapt, judged, scale, cross);
        projected.resize(size * stride, 0.0);
        product(
            self.arch,
            Sizes { rows: size, columns: stride, depth: size },
            Start::Zero,
            Left::Transposed { values: &self.system.inverse, stride: adapt_stride },
            (cross, stride),
            (projected, stride),
        );
        error.clear();
        error.extend(judged.targets.iter().zip(&judged.mean).map(|(y, mu)| y - mu));
        let (squared, explained) =
            self.arch.dispatch(JudgedErrors { cross, projected, solution: &self.system.solution, error });
        let count = judged.count() as f64;
        let (risk_adapt, kl) = self.system.own_risk_and_kl(self.arch, noise_variance);
        Ok(Transfer {
            log_partition: self.system.log_partition(noise_variance),
            risk: (squared + count * scale - explained) / count,
            risk_adapt,
            kl,
        })
    }

    /// The derivative of the weighted sum of the last [`GibbsGp::transfer`] of the same points; returns that with
    /// respect to the kernel's scale.
    pub fn transfer_gradient(
        &mut self,
        (adapt, adapt_gradient): (&Points, &mut PointsGradient),
        (judged, judged_gradient): (&Points, &mut PointsGradient),
        covariance: Covariance,
        weights: TransferWeights,
    ) -> f64 {
        adapt_gradient.reset(adapt);
        judged_gradient.reset(judged);
        let (size, adapt_stride, stride) = (adapt.count(), adapt.stride(), judged.stride());
        let per_example = weights.risk / judged.count() as f64;
        let squared_noise = covariance.noise_variance * covariance.noise_variance;
        let own = weights.risk_adapt * squared_noise / size as f64;
        let Cross { kernel: cross, projected, error } = &mut self.cross;
        let (inverse, solution) = (&self.system.inverse, &self.system.solution);
        self.adjoint.clear();
        self.adjoint.resize(size * adapt_stride, 0.0);
        self.arch.dispatch(AdaptAdjoint {
            inverse,
            solution,
            projected,
            error,
            log_partition: weights.log_partition,
            per_example,
            own,
            mean: &mut adapt_gradient.mean,
            adjoint: &mut self.adjoint,
        });
        for (derivative, e) in judged_gradient.mean.iter_mut().zip(error.iter()) {
            *derivative = -2.0 * per_example * e;
        }
        let mut weighted_sum =
            kernel::through_own_kernel(self.arch, adapt, &self.system.kernel, &self.adjoint, adapt_gradient);
        // From here on `projected` holds the adjoint of C times C.
        weighted_sum += self.arch.dispatch(CrossAdjoint { cross, projected, solution, error, per_example });
        kernel::through_cross_kernel(
            self.arch,
            (adapt, adapt_gradient),
            (judged, judged_gradient),
            &projected[..size * stride],
        );
        weighted_sum / covariance.scale + weights.risk
    }
}

/// Turns y - mu into e = y - mu - C' a and returns |e|^2 and sum_j C_j . G_j.
struct JudgedErrors<'a> {
    cross: &'a [f64],
    projected: &'a [f64],
    solution: &'a [f64],
    error: &'a mut [f64],
}

impl WithSimd for JudgedErrors<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, f64) {
        let Self { cross, projected, solution, error } = self;
        let stride = error.len();
        let mut explained = 0.0;
        for (row, (cross, projected)) in
            cross.chunks_exact(stride).zip(projected.chunks_exact(stride)).enumerate()
        {
            let a = solution[row];
            for (e, k) in error.iter_mut().zip(cross) {
                *e = (-a).mul_add(*k, *e);
            }
            explained += dot(cross, projected);
        }
        (dot(error, error), explained)
    }
}

/// The adjoints of mu(S') and of the upper triangle of K(S', S').
struct AdaptAdjoint<'a> {
    inverse: &'a [f64],
    solution: &'a [f64],
    projected: &'a [f64],
    error: &'a [f64],
    log_partition: f64,
    per_example: f64,
    own: f64,
    mean: &'a mut [f64],
    adjoint: &'a mut [f64],
}

impl WithSimd for AdaptAdjoint<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (stride, adapt_stride) = (self.error.len(), self.solution.len());
        let size = self.adjoint.len() / adapt_stride;
        let a = self.solution;
        let inverse = |index: usize| &self.inverse[index * adapt_stride..(index + 1) * adapt_stride];
        let projected = |index: usize| &self.projected[index * stride..(index + 1) * stride];
        // G e = B C e = u, so u needs no further product with B.
        for index in 0..size {
            let u = dot(projected(index), self.error);
            let b = dot(inverse(index), a);
            self.mean[index] =
                self.log_partition * a[index] + 2.0 * self.per_example * u - 2.0 * self.own * b;
            // u and b of a row are needed by every other row: the part of the adjoint that they share with a is
            // (per_example u - own b) a' + its transpose.
            let shared = self.per_example * u - self.own * b;
            for column in 0..size {
                let upper = index.min(column) * adapt_stride + index.max(column);
                let twice = if column == index { 2.0 } else { 1.0 };
                self.adjoint[upper] += twice * shared * a[column];
            }
        }
        for index in 0..size {
            for column in index..size {
                let gram = dot(projected(index), projected(column));
                let squared = dot(inverse(index), inverse(column));
                self.adjoint[index * adapt_stride + column] +=
                    0.5 * self.log_partition * (a[index] * a[column] - inverse(index)[column])
                        + self.per_example * gram
                        + self.own * squared;
            }
        }
    }
}

/// Replaces G by the adjoint of C times C, and returns its sum.
struct CrossAdjoint<'a> {
    cross: &'a [f64],
    projected: &'a mut [f64],
    solution: &'a [f64],
    error: &'a [f64],
    per_example: f64,
}

impl WithSimd for CrossAdjoint<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let stride = self.error.len();
        let factor = -2.0 * self.per_example;
        let mut sum = 0.0;
        let rows = self.cross.chunks_exact(stride).zip(self.projected.chunks_exact_mut(stride));
        for (row, (cross, projected)) in rows.enumerate() {
            let a = self.solution[row];
            let mut partial = [0.0; 8];
            let (values, _) = projected.as_chunks_mut::<8>();
            for ((g, k), e) in
                values.iter_mut().zip(cross.as_chunks::<8>().0).zip(self.error.as_chunks::<8>().0)
            {
                for lane in 0..8 {
                    let weighted = factor * a.mul_add(e[lane], g[lane]) * k[lane];
                    g[lane] = weighted;
                    partial[lane] += weighted;
                }
            }
            sum += partial.iter().sum::<f64>();
        }
        sum
    }
}
