//! A posterior that has seen all of S: log Z, its risk, and the derivatives of
//!
//! ```text
//! c_z log Z + c_l log N(y; mu, A)       (log N = log Z - (m/2) log(2 pi s2))
//! ```
//!
//! W_1 = -log Z_beta / beta has c_z = -1/beta; PACOH's own recipe maximises log N / m.
//!
//! ```text
//! d log Z / d mu = a,   d log Z / d K = (a a' - A^-1) / 2,   d log N / d s2 = (|a|^2 - tr A^-1) / 2
//! ```

use pulp::{Simd, WithSimd};

use super::{Context, Covariance, GibbsGp, Points, PointsGradient, kernel};
use crate::error::Result;

/// The numbers of one task whose posterior saw all its examples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Marginal {
    /// log Z_tau(S).
    pub log_partition: f64,
    /// log N(y; mu, A), the log marginal likelihood.
    pub log_likelihood: f64,
    /// L^(Q_tau, S).
    pub risk: f64,
    /// KL(Q_tau || P).
    pub kl: f64,
}

/// Derivatives of log Z with respect to the kernel's scale, and of log N with respect to the noise variance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MarginalWeights {
    /// d/d scale.
    pub scale: f64,
    /// d/d s2 of the log marginal likelihood.
    pub noise_variance: f64,
}

impl GibbsGp {
    /// log Z, log N and the risk of the Gibbs posterior on all points.
    ///
    /// # Errors
    /// When A is not positive definite.
    pub fn marginal(
        &mut self,
        points: &Points,
        covariance: Covariance,
        context: Context<'_>,
    ) -> Result<Marginal> {
        self.system.solve(self.arch, points, covariance, context)?;
        let log_partition = self.system.log_partition(covariance.noise_variance);
        let count = points.count() as f64;
        let normaliser = 0.5 * count * (std::f64::consts::TAU * covariance.noise_variance).ln();
        let (risk, kl) = self.system.own_risk_and_kl(self.arch, covariance.noise_variance);
        Ok(Marginal { log_partition, log_likelihood: log_partition - normaliser, risk, kl })
    }

    /// The derivative of `weight` * log Z of the last [`GibbsGp::marginal`] of the same points.
    pub fn marginal_gradient(
        &mut self,
        points: &Points,
        covariance: Covariance,
        weight: f64,
        gradient: &mut PointsGradient,
    ) -> MarginalWeights {
        gradient.reset(points);
        self.adjoint.resize(points.count() * points.stride(), 0.0);
        self.arch.dispatch(Adjoint {
            inverse: &self.system.inverse,
            solution: &self.system.solution,
            weight,
            adjoint: &mut self.adjoint,
        });
        for (derivative, a) in gradient.mean.iter_mut().zip(&self.system.solution) {
            *derivative = weight * a;
        }
        let weighted_sum =
            kernel::through_own_kernel(self.arch, points, &self.system.kernel, &self.adjoint, gradient);
        let squared_solution: f64 = self.system.solution.iter().map(|a| a * a).sum();
        let stride = points.stride();
        let trace: f64 = self.system.inverse.iter().step_by(stride + 1).take(points.count()).sum();
        MarginalWeights {
            scale: weighted_sum / covariance.scale,
            noise_variance: 0.5 * weight * (squared_solution - trace),
        }
    }
}

/// The adjoint of K, weight (a a' - A^-1)/2.
struct Adjoint<'a> {
    inverse: &'a [f64],
    solution: &'a [f64],
    weight: f64,
    adjoint: &'a mut [f64],
}

impl WithSimd for Adjoint<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let half = 0.5 * self.weight;
        let stride = self.solution.len();
        let rows = self.adjoint.chunks_exact_mut(stride).zip(self.inverse.chunks_exact(stride));
        for (row, (adjoint, inverse)) in rows.enumerate() {
            let a = self.solution[row];
            for ((value, inverse), other) in adjoint.iter_mut().zip(inverse).zip(self.solution) {
                *value = half * a.mul_add(*other, -*inverse);
            }
        }
    }
}
