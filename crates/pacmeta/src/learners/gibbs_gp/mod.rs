//! The Gaussian-process base learner: Gibbs posteriors of a GP prior under squared loss, in closed form.
//!
//! With temperature tau on m examples the likelihood is Gaussian with noise variance s2 = m/(2 tau). Write
//! A = K + s2 I, r = y - mu(X), a = A^-1 r. Then (paper, appendix "Gaussian Process Model Details")
//!
//! ```text
//! log Z_tau   = -1/2 r.a - 1/2 log|A| + (m/2) log s2
//! L^(Q, S)    = (s2^2 |a|^2 + s2 tr(A^-1 K)) / m                   risk on the examples the posterior has seen
//! L^(Q, S*)   = (|y* - mean*|^2 + trace covariance*) / |S*|        risk on any other examples
//! KL(Q || P)  = 1/2 (a.K a - tr(A^-1 K) + log|A| - m log s2)       = -tau L^(Q, S) - log Z_tau
//! ```
//!
//! The forms on the left are those without cancellation: tr(A^-1 K), not m - s2 tr A^-1. What rounding leaves is at most
//! about eps m (k(x, x) + s2) over the smallest pivot of A, relative to log Z and the risk; a matrix with a pivot so small that
//! this could exceed 1e-4 is refused like one that is not positive definite.
//!
//! The kernel is k(x, x') = scale exp(-|f(x) - f(x')|^2); the caller has put length scales into the features f. Nothing
//! is ever added to the diagonal besides s2.
//!
//! [`GibbsGp`] holds the buffers of one task; `marginal` treats a task whose posterior saw all of S (PACOH's W_1, and
//! the marginal likelihood), `transfer` one whose posterior saw S' and is judged on S (PACMAML's W_2).

mod kernel;
mod marginal;
mod posterior;
mod transfer;

use pacmeta_tensor::simd::{factor, padded};
use pulp::Arch;

use crate::error::{Error, Result};

pub use marginal::{Marginal, MarginalWeights};
pub use posterior::{GpPosterior, JointPrediction, prior_joint};
pub use transfer::{Transfer, TransferWeights};

/// The examples of one task as the GP sees them: the prior mean mu(x_j), the features f(x_j) and the targets y_j.
#[derive(Debug, Clone, Default)]
pub struct Points {
    count: usize,
    feature_dimension: usize,
    mean: Vec<f64>,
    /// Feature-major: row d holds f_d of all points, padded with zeros.
    features: Vec<f64>,
    targets: Vec<f64>,
}

impl Points {
    /// Forgets what it held and makes room for `count` points.
    pub fn reset(&mut self, count: usize, feature_dimension: usize) {
        self.count = count;
        self.feature_dimension = feature_dimension;
        let stride = padded(count);
        for (buffer, size) in [
            (&mut self.mean, stride),
            (&mut self.features, feature_dimension * stride),
            (&mut self.targets, stride),
        ] {
            buffer.clear();
            buffer.resize(size, 0.0);
        }
    }

    /// Sets mu and y of all points.
    pub fn set_means_and_targets(&mut self, values: impl Iterator<Item = (f64, f64)>) {
        let places = self.mean[..self.count].iter_mut().zip(&mut self.targets);
        for ((mean, target), value) in places.zip(values) {
            (*mean, *target) = value;
        }
    }

    /// Sets f_d of all points.
    pub fn set_feature(&mut self, dimension: usize, values: impl Iterator<Item = f64>) {
        let stride = self.stride();
        let row = &mut self.features[dimension * stride..][..self.count];
        row.iter_mut().zip(values).for_each(|(feature, value)| *feature = value);
    }

    /// The number of points.
    pub fn count(&self) -> usize {
        self.count
    }

    fn stride(&self) -> usize {
        padded(self.count)
    }

    /// f_d of every point.
    fn feature(&self, dimension: usize) -> &[f64] {
        &self.features[dimension * self.stride()..(dimension + 1) * self.stride()]
    }
}

/// Derivatives with respect to [`Points`], and to the kernel's scale and the noise variance.
#[derive(Debug, Clone, Default)]
pub struct PointsGradient {
    mean: Vec<f64>,
    features: Vec<f64>,
    stride: usize,
}

impl PointsGradient {
    fn reset(&mut self, points: &Points) {
        self.stride = points.stride();
        self.mean.clear();
        self.mean.resize(self.stride, 0.0);
        self.features.clear();
        self.features.resize(points.feature_dimension * self.stride, 0.0);
    }

    /// The derivatives with respect to the prior mean at each point, padded with zeros.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The derivatives with respect to feature `dimension` of each point, padded with zeros.
    pub fn feature(&self, dimension: usize) -> &[f64] {
        &self.features[dimension * self.stride..(dimension + 1) * self.stride]
    }
}

/// What a failed factorisation is reported with.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The task's name.
    pub task: &'a str,
    /// The temperature, where the noise variance comes from one.
    pub temperature: Option<f64>,
}

/// The kernel's scale and the noise variance.
#[derive(Debug, Clone, Copy)]
pub struct Covariance {
    /// k(x, x).
    pub scale: f64,
    /// s2.
    pub noise_variance: f64,
}

/// The solved system of one set of points: A^-1 in factored form, a = A^-1 r and log|A|.
#[derive(Debug, Clone, Default)]
struct System {
    size: usize,
    /// K, upper triangle.
    kernel: Vec<f64>,
    /// U with A = U' U.
    factor: Vec<f64>,
    /// X with A^-1 = X' X.
    inverse_factor: Vec<f64>,
    residual: Vec<f64>,
    /// a.
    solution: Vec<f64>,
    /// r . a
    quadratic: f64,
    /// A^-1, upper triangle.
    inverse: Vec<f64>,
    log_determinant: f64,
}

impl System {
    fn solve(
        &mut self,
        arch: Arch,
        points: &Points,
        covariance: Covariance,
        context: Context<'_>,
    ) -> Result<()> {
        let (size, stride) = (points.count, points.stride());
        if !(1e-150..=1e150).contains(&covariance.noise_variance) {
            let noise_variance = covariance.noise_variance;
            return Err(Error::ExtremeNoise { task: context.task.to_owned(), noise_variance });
        }
        check_size(context.task, size)?;
        self.size = size;
        kernel::upper_kernel(arch, points, covariance.scale, &mut self.kernel);
        self.factor.clear();
        self.factor.extend_from_slice(&self.kernel);
        for index in 0..size {
            self.factor[index * stride + index] += covariance.noise_variance;
        }
        let refuse = |pivot: usize| Error::Factorisation {
            task: context.task.to_owned(),
            size,
            noise_variance: covariance.noise_variance,
            temperature: context.temperature,
            pivot,
        };
        self.log_determinant =
            factor::cholesky(arch, &mut self.factor, size).map_err(|failure| refuse(failure.pivot))?;
        let rounding = f64::EPSILON * size as f64 * (covariance.scale + covariance.noise_variance);
        if let Some(pivot) = self.pivot_below(PIVOT_OVER_ROUNDING * rounding) {
            return Err(refuse(pivot));
        }
        self.inverse_factor.resize(size * stride, 0.0);
        factor::inverse_factor(arch, &self.factor, &mut self.inverse_factor, size);
        self.residual.clear();
        self.residual.extend(points.targets.iter().zip(&points.mean).map(|(y, mu)| y - mu));
        self.quadratic =
            kernel::apply_inverse(arch, &self.inverse_factor, &self.residual, &mut self.solution, size);
        self.inverse.resize(size * stride, 0.0);
        factor::upper_inverse(arch, &self.inverse_factor, &mut self.inverse, size);
        Ok(())
    }

    /// The smallest pivot of A, the squared diagonal of U, if it is below this.
    fn pivot_below(&self, least: f64) -> Option<usize> {
        let diagonal = self.factor.iter().step_by(padded(self.size) + 1).take(self.size);
        let (pivot, value) = diagonal.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (value * value < least).then_some(pivot)
    }

    /// k(x, x)
    fn scale(&self) -> f64 {
        self.kernel.first().copied().unwrap_or(0.0)
    }

    /// log Z_tau for noise variance s2.
    fn log_partition(&self, noise_variance: f64) -> f64 {
        if noise_variance > MUCH_NOISE * self.scale() {
            return -0.5 * self.quadratic - 0.5 * self.log_ratio(noise_variance);
        }
        -0.5 * self.quadratic - 0.5 * self.log_determinant + 0.5 * self.size as f64 * noise_variance.ln()
    }

    /// log|A| - m log s2 = log|I + K/s2|.
    ///
    /// When the noise outweighs the kernel this is nearly 0, and so is the divergence it is a part of: the two logarithms
    /// would leave nothing but rounding. Then each pivot's excess over s2 is summed instead, which keeps all digits.
    fn log_ratio(&self, noise_variance: f64) -> f64 {
        let (size, stride) = (self.size, padded(self.size));
        let diagonal = |index: usize| self.kernel[index * stride + index];
        if noise_variance <= diagonal(0) {
            return self.log_determinant - size as f64 * noise_variance.ln();
        }
        (0..size)
            .map(|index| {
                let explained: f64 = (0..index).map(|row| self.factor[row * stride + index].powi(2)).sum();
                ((diagonal(index) - explained) / noise_variance).ln_1p()
            })
            .sum()
    }

    /// tr(A^-1 K)
    fn trace_of_gain(&self, arch: Arch) -> f64 {
        kernel::symmetric_product(arch, &self.inverse, &self.kernel, self.size)
    }

    /// a . K a
    fn solution_energy(&self, arch: Arch) -> f64 {
        kernel::quadratic_form(arch, &self.kernel, &self.solution, self.size)
    }

    /// The same where a holds huge numbers of opposite sign at equal inputs, so that K a is small against them: each row is
    /// summed by itself, in one order for all. Equal rows then leave the same rounding, which a cancels.
    fn solution_energy_by_rows(&self) -> f64 {
        let (size, stride) = (self.size, padded(self.size));
        let entry = |row: usize, column: usize| self.kernel[row.min(column) * stride + row.max(column)];
        let row_sum = |row| (0..size).map(|column| entry(row, column) * self.solution[column]).sum::<f64>();
        (0..size).map(|row| self.solution[row] * row_sum(row)).sum()
    }

    /// L^(Q, S) on the points themselves, and KL(Q || P).
    fn own_risk_and_kl(&self, arch: Arch, noise_variance: f64) -> (f64, f64) {
        let trace = self.trace_of_gain(arch);
        let squared: f64 = self.solution.iter().map(|a| (noise_variance * a) * (noise_variance * a)).sum();
        let count = self.size as f64;
        let log_ratio = self.log_ratio(noise_variance);
        let mut energy = self.solution_energy(arch);
        // The sum over a triangle leaves roundings of scale |a|^2, which at ordinary temperatures do not matter.
        let rounding = f64::EPSILON * self.scale() * squared / (noise_variance * noise_variance);
        if rounding > KL_PRECISION * (energy.abs() + log_ratio) {
            energy = self.solution_energy_by_rows();
        }
        let kl = 0.5 * (energy - trace + log_ratio);
        ((squared + noise_variance * trace) / count, kl)
    }
}

/// How often the rounding of a pivot, eps m (k(x, x) + s2), must fit into the smallest one. Cholesky's relative error in log Z
/// is the inverse: one in ten thousand at worst. Since no pivot is below s2, 10000 examples at temperature 10000 an example
/// still have forty million roundings in each pivot.
const PIVOT_OVER_ROUNDING: f64 = 1e4;

/// The relative rounding of a divergence above which it is summed with more care, which takes longer.
const KL_PRECISION: f64 = 1e-9;

/// The noise over the scale above which log Z, too, is nearly 0 and summed without the two logarithms: temperatures below 0.001
/// an example for the paper's kernel.
const MUCH_NOISE: f64 = 1e3;

/// The most examples of one exact Gaussian process: its matrices take a few gigabytes there.
const MOST_EXAMPLES: usize = 10_000;

/// The most examples of a task that networks are run on together: their activations take a kilobyte an example or so.
const MOST_TOGETHER: usize = 250_000;

/// Refuses a task that is judged on so many examples that the networks' activations alone would fill the memory. To be asked,
/// like [`check_size`], before the networks see them.
pub(crate) fn check_together(task: &str, size: usize) -> Result<()> {
    if size <= MOST_TOGETHER {
        return Ok(());
    }
    Err(Error::input(
        format!("task `{task}`"),
        format!(
            "{size} examples are too many for one task; split it, or use at most {MOST_TOGETHER} of them"
        ),
    ))
}

/// Refuses a matrix that no memory holds.
pub(crate) fn check_size(task: &str, size: usize) -> Result<()> {
    if size <= MOST_EXAMPLES {
        return Ok(());
    }
    Err(Error::input(
        format!("task `{task}`"),
        format!(
            "{size} examples are too many for one exact Gaussian process, whose cost grows with their cube; split the \
             task, or use at most {MOST_EXAMPLES} of them"
        ),
    ))
}

/// The buffers of one task's computation, reused from task to task.
#[derive(Debug, Clone)]
pub struct GibbsGp {
    arch: Arch,
    system: System,
    /// The derivative with respect to K, upper triangle.
    adjoint: Vec<f64>,
    cross: transfer::Cross,
}

impl Default for GibbsGp {
    fn default() -> Self {
        Self {
            arch: Arch::new(),
            system: System::default(),
            adjoint: Vec::new(),
            cross: transfer::Cross::default(),
        }
    }
}
