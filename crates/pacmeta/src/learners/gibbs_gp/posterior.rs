//! The posterior process itself, for predictions: mean mu(X*) + K*' a and covariance K** - K*' A^-1 K*.

use pacmeta_tensor::simd::{factor, padded};

use super::{Context, Covariance, GibbsGp, Points, System, check_size, kernel};
use crate::error::{Error, Result};

/// A Gaussian process conditioned on a support set.
#[derive(Debug, Clone)]
pub struct GpPosterior {
    arch: pulp::Arch,
    support: Points,
    covariance: Covariance,
    system: System,
}

/// Mean and covariance of h at some points, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct JointPrediction {
    /// The posterior mean.
    pub mean: Vec<f64>,
    /// The posterior covariance, count x count.
    pub covariance: Vec<f64>,
}

/// The prior process at some points: its mean, and its covariance without noise.
pub fn prior_joint(points: &Points, scale: f64) -> JointPrediction {
    let (count, stride) = (points.count, points.stride());
    let mut matrix = Vec::new();
    kernel::cross_kernel(GibbsGp::default().arch, points, points, scale, &mut matrix);
    let rows = matrix.chunks_exact(stride.max(1)).flat_map(|row| row[..count].iter().copied());
    JointPrediction { mean: points.mean[..count].to_vec(), covariance: rows.collect() }
}

impl GpPosterior {
    /// Conditions on `support`.
    ///
    /// # Errors
    /// When the covariance matrix of the support is not positive definite.
    pub fn new(support: Points, covariance: Covariance, context: Context<'_>) -> Result<Self> {
        let arch = GibbsGp::default().arch;
        let mut system = System::default();
        system.solve(arch, &support, covariance, context)?;
        Ok(Self { arch, support, covariance, system })
    }

    /// The noise variance s2.
    pub fn noise_variance(&self) -> f64 {
        self.covariance.noise_variance
    }

    /// Mean and variance of h at each point.
    pub fn marginals(&self, query: &Points) -> (Vec<f64>, Vec<f64>) {
        let (cross, whitened) = self.whitened(query);
        let stride = query.stride();
        let mut mean = query.mean[..query.count].to_vec();
        let mut variance = vec![self.covariance.scale; query.count];
        for row in 0..self.support.count {
            for column in 0..query.count {
                mean[column] += self.system.solution[row] * cross[row * stride + column];
                let entry = whitened[row * stride + column];
                variance[column] -= entry * entry;
            }
        }
        // Rounding can leave a variance that should be 0 a hair below it.
        variance.iter_mut().filter(|value| **value < 0.0).for_each(|value| *value = 0.0);
        (mean, variance)
    }

    /// Mean and covariance of h at all points together.
    pub fn joint(&self, query: &Points) -> JointPrediction {
        let (mean, _) = self.marginals(query);
        let (_, whitened) = self.whitened(query);
        let (count, stride) = (query.count, query.stride());
        let mut prior = Vec::new();
        kernel::cross_kernel(self.arch, query, query, self.covariance.scale, &mut prior);
        let mut covariance = vec![0.0; count * count];
        for i in 0..count {
            for j in 0..count {
                let explained: f64 = (0..self.support.count)
                    .map(|k| whitened[k * stride + i] * whitened[k * stride + j])
                    .sum();
                covariance[i * count + j] = prior[i * stride + j] - explained;
            }
        }
        JointPrediction { mean, covariance }
    }

    /// log N(y*; mean*, covariance* + s2 I) of the query's targets.
    ///
    /// # Errors
    /// When the predictive covariance is not positive definite.
    pub fn joint_log_density(&self, query: &Points, task: &str) -> Result<f64> {
        check_size(task, query.count)?;
        let JointPrediction { mean, covariance } = self.joint(query);
        let (count, stride) = (query.count, query.stride());
        let mut matrix = vec![0.0; count * stride];
        for row in 0..count {
            matrix[row * stride..row * stride + count]
                .copy_from_slice(&covariance[row * count..(row + 1) * count]);
            matrix[row * stride + row] += self.covariance.noise_variance;
        }
        let log_determinant =
            factor::cholesky(self.arch, &mut matrix, count).map_err(|failure| Error::Factorisation {
                task: task.to_owned(),
                size: count,
                noise_variance: self.covariance.noise_variance,
                temperature: None,
                pivot: failure.pivot,
            })?;
        // Solve U' z = y - mean by forward substitution, row by row of U.
        let mut z: Vec<f64> = query.targets.iter().zip(&mean).map(|(y, mean)| y - mean).collect();
        for row in 0..count {
            z[row] /= matrix[row * stride + row];
            for column in row + 1..count {
                z[column] -= matrix[row * stride + column] * z[row];
            }
        }
        let squares: f64 = z.iter().map(|value| value * value).sum();
        Ok(-0.5 * (squares + log_determinant + count as f64 * std::f64::consts::TAU.ln()))
    }

    /// C = K(support, query) and X C, whose columns' squared norms are what the support explains.
    fn whitened(&self, query: &Points) -> (Vec<f64>, Vec<f64>) {
        let mut cross = Vec::new();
        kernel::cross_kernel(self.arch, &self.support, query, self.covariance.scale, &mut cross);
        let (size, stride) = (self.support.count, query.stride());
        let own_stride = padded(size);
        let mut whitened = vec![0.0; size * stride];
        for row in 0..size {
            let target = &mut whitened[row * stride..(row + 1) * stride];
            for k in 0..=row {
                let weight = self.system.inverse_factor[row * own_stride + k];
                for (value, other) in target.iter_mut().zip(&cross[k * stride..(k + 1) * stride]) {
                    *value += weight * other;
                }
            }
        }
        (cross, whitened)
    }
}
