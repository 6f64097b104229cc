//! A Gaussian process without meta-learning: the floor under every comparison.
//!
//! On the support alone, standardised by itself: constant mean (the support's), kernel
//! scale exp(-|x - x'|^2 / (2 l^2)) and noise variance s2, with log scale, log l and log s2 at the maximum of the marginal
//! likelihood times weak log-normal priors (centred at 1, 1 and 0.01; standard deviations 1, 1 and 1.5), without which
//! five points would allow any answer. Found by L-BFGS from three starts.

use super::Predictor;
use crate::error::Result;
use crate::learners::Predictive;
use crate::learners::gibbs_gp::{Context, Covariance, GibbsGp, GpPosterior, Points, PointsGradient};
use crate::learners::lbfgs::Lbfgs;
use crate::standardisation::Standardisation;
use crate::task::Task;

/// The plain Gaussian process.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainGp;

/// log scale, log length, log noise variance: prior mean and standard deviation of each.
const PRIORS: [(f64, f64); 3] = [(0.0, 1.0), (0.0, 1.0), (-4.605_170_185_988_091, 1.5)];

/// A plain Gaussian process that was fitted to a support set.
#[derive(Debug, Clone)]
pub struct FittedGp {
    posterior: GpPosterior,
    standardisation: Standardisation,
    covariance: Covariance,
    length: f64,
}

impl PlainGp {
    /// Fits scale, length and noise to a support set.
    ///
    /// # Errors
    /// When the support cannot be standardised or no covariance is positive definite.
    pub fn fit(&self, support: &Task) -> Result<FittedGp> {
        let standardisation = if support.len() > 1 {
            Standardisation::fit(std::slice::from_ref(support))?
        } else {
            Standardisation::identity(support.dimension())?
        };
        let known = standardisation.apply(support)?;
        let [scale, length, noise] = fit(&known)?;
        let length = length.exp();
        let covariance = Covariance { scale: scale.exp(), noise_variance: noise.exp() };
        let context = Context { task: support.name(), temperature: None };
        let posterior = GpPosterior::new(points(&known, length), covariance, context)?;
        Ok(FittedGp { posterior, standardisation, covariance, length })
    }
}

impl FittedGp {
    /// Predictions of new observations at the inputs of a task, whose targets do not matter.
    ///
    /// # Errors
    /// When the dimension differs.
    pub fn predict(&self, query: &Task) -> Result<Predictive> {
        let asked = self.standardisation.apply(query)?;
        let (mean, variance) = self.posterior.marginals(&points(&asked, self.length));
        let std =
            |value: f64| self.standardisation.restore_std((value + self.covariance.noise_variance).sqrt());
        Ok(Predictive {
            mean: mean.into_iter().map(|value| self.standardisation.restore_mean(value)).collect(),
            std: variance.into_iter().map(std).collect(),
        })
    }
}

impl Predictor for PlainGp {
    fn predict(&self, support: &Task, query: &Task) -> Result<(Predictive, f64)> {
        let fitted = self.fit(support)?;
        let asked = points(&fitted.standardisation.apply(query)?, fitted.length);
        let log_density = fitted.posterior.joint_log_density(&asked, query.name())?
            - query.len() as f64 * fitted.standardisation.y_std().ln();
        Ok((fitted.predict(query)?, log_density))
    }
}

fn points(task: &Task, length: f64) -> Points {
    let mut points = Points::default();
    fill(&mut points, task, length);
    points
}

fn fill(points: &mut Points, task: &Task, length: f64) {
    points.reset(task.len(), task.dimension());
    let factor = std::f64::consts::FRAC_1_SQRT_2 / length;
    points.set_means_and_targets(task.targets().iter().map(|y| (0.0, *y)));
    for dimension in 0..task.dimension() {
        points.set_feature(dimension, (0..task.len()).map(|index| task.input(index)[dimension] * factor));
    }
}

/// Minus the log of likelihood times priors at (log scale, log length, log noise variance), and its derivative.
#[derive(Default)]
struct LogPosterior {
    gp: GibbsGp,
    points: Points,
    gradient: PointsGradient,
}

impl LogPosterior {
    fn negative(&mut self, task: &Task, x: &[f64], derivative: &mut [f64]) -> f64 {
        let Self { gp, points, gradient } = self;
        fill(points, task, x[1].exp());
        let covariance = Covariance { scale: x[0].exp(), noise_variance: x[2].exp() };
        let context = Context { task: task.name(), temperature: None };
        let Ok(values) = gp.marginal(points, covariance, context) else { return f64::INFINITY };
        let weights = gp.marginal_gradient(points, covariance, 1.0, gradient);
        // f = x / (sqrt(2) l): d f / d log l = -f.
        let factor = std::f64::consts::FRAC_1_SQRT_2 / x[1].exp();
        let length: f64 = (0..task.len())
            .flat_map(|index| task.input(index).iter().enumerate().map(move |(d, x)| (index, d, x)))
            .map(|(index, dimension, x)| -gradient.feature(dimension)[index] * x * factor)
            .sum();
        derivative[0] = -weights.scale * covariance.scale;
        derivative[1] = -length;
        derivative[2] = -weights.noise_variance * covariance.noise_variance;
        let mut value = -values.log_likelihood;
        for (index, (centre, width)) in PRIORS.iter().enumerate() {
            let z = (x[index] - centre) / width;
            value += 0.5 * z * z;
            derivative[index] += z / width;
        }
        value
    }
}

/// The most plausible log scale, log length and log noise variance.
fn fit(task: &Task) -> Result<[f64; 3]> {
    let mut posterior = LogPosterior::default();
    let mut objective = |x: &[f64], derivative: &mut [f64]| posterior.negative(task, x, derivative);
    let mut best = ([0.0; 3], f64::INFINITY);
    for length in [-1.0, 0.0, 1.0] {
        let mut x = [0.0, length, -4.6];
        let minimum = Lbfgs::CONVERGED.minimise(&mut x, &mut objective);
        if minimum.value < best.1 {
            best = (x, minimum.value);
        }
    }
    Ok(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::{Environment, Sinusoid};
    use pacmeta_tensor::Key;

    #[test]
    fn the_fit_is_a_stationary_point_and_many_points_are_learned() {
        let task = Sinusoid.task("t", 140, Key::new(4)).unwrap();
        let all: Vec<usize> = (0..140).collect();
        let (predictive, log_density) =
            PlainGp.predict(&task.select(&all[..40]), &task.select(&all[40..])).unwrap();
        let rmse = (predictive
            .mean
            .iter()
            .zip(&task.targets()[40..])
            .map(|(mean, y)| (mean - y) * (mean - y))
            .sum::<f64>()
            / 100.0)
            .sqrt();
        // Noise has standard deviation 0.1; 40 points on [-5, 5] leave little else.
        assert!(rmse < 0.25, "{rmse}");
        assert!(log_density / 100.0 > 0.0, "{log_density}");
    }

    #[test]
    fn the_derivative_equals_differences() {
        let inputs = vec![0.1, -0.4, 0.9, 1.3, -1.2, 0.3, 0.7, -0.8, 0.2, 0.5];
        let task = Task::new("t", 2, inputs, vec![0.3, -0.5, 1.1, 0.2, -0.9]).unwrap();
        let mut posterior = LogPosterior::default();
        for at in [[0.2, -0.3, -1.5], [-0.7, 0.6, -4.0], [0.9, 0.1, 0.4]] {
            let mut derivative = [0.0; 3];
            posterior.negative(&task, &at, &mut derivative);
            for index in 0..3 {
                let mut value = |step: f64| {
                    let mut moved = at;
                    moved[index] += step;
                    posterior.negative(&task, &moved, &mut [0.0; 3])
                };
                let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
                let error = (derivative[index] - difference).abs();
                assert!(
                    error < 1e-7 * difference.abs().max(1.0),
                    "{at:?} {index}: {derivative:?} {difference}"
                );
            }
        }
    }

    #[test]
    fn one_example_is_enough_to_predict_something() {
        let task = Task::new("t", 1, vec![0.0, 1.0, 2.0], vec![3.0, 3.5, 4.0]).unwrap();
        let (predictive, _) = PlainGp.predict(&task.select(&[0]), &task.select(&[1, 2])).unwrap();
        assert!(predictive.std.iter().all(|std| std.is_finite() && *std > 0.0));
    }
}
