//! Predictions on a few target tasks, for drawing: the prior before, the posterior after the support.

use pacmeta_tensor::Key;
use pacmeta_tensor::simd::{factor, padded};
use serde::{Deserialize, Serialize};

use super::model::target_key;
use crate::environments::{Environment, Sinusoid};
use crate::error::{Error, Result};
use crate::learners::gibbs_gp::{Points, prior_joint};
use crate::model::Model;
use crate::priors::{GaussianProcess, PriorSpec};
use crate::task::Task;

/// Target tasks that are drawn.
const TASKS: usize = 2;
/// Inputs along a picture.
const GRID: usize = 81;
/// Functions drawn from the prior.
const SAMPLES: u64 = 5;

/// One target task seen by one model, in original units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Illustration {
    /// The task's name.
    pub task: String,
    /// The inputs.
    pub x: Vec<f64>,
    /// The function without noise.
    pub truth: Vec<f64>,
    /// The examples adapted to.
    pub support: Vec<(f64, f64)>,
    /// Examples that were scored (not all).
    pub query: Vec<(f64, f64)>,
    /// Functions drawn from the prior.
    pub samples: Vec<Vec<f64>>,
    /// The prior's mean.
    pub prior_mean: Vec<f64>,
    /// Its standard deviation, of the function.
    pub prior_std: Vec<f64>,
    /// The predictive mean after adaptation.
    pub mean: Vec<f64>,
    /// Its standard deviation, of a new observation.
    pub std: Vec<f64>,
}

/// Draws the first target tasks; nothing for priors that are no Gaussian process.
pub(super) fn illustrate(model: &Model, targets: &[Task]) -> Result<Vec<Illustration>> {
    let PriorSpec::GaussianProcess(spec) = model.spec() else { return Ok(Vec::new()) };
    let x: Vec<f64> = (0..GRID).map(|step| -5.0 + 10.0 * step as f64 / (GRID - 1) as f64).collect();
    let restore = model.standardisation();
    let value = |value: f64| rounded(restore.map_or(value, |s| s.restore_mean(value)));
    let deviation = |value: f64| rounded(restore.map_or(value, |s| s.restore_std(value)));
    let inputs = restore.map_or_else(|| Ok(x.clone()), |s| s.apply_input(&x))?;
    let mut prior = GaussianProcess::with_parameters(spec, model.parameters());
    prior.forward(&inputs);
    let mut points = Points::default();
    prior.gather((0..GRID).map(|index| (index, 0.0)), &mut points);
    let joint = prior_joint(&points, prior.scale());
    let samples = samples(&joint.mean, &joint.covariance)?;
    targets
        .iter()
        .take(TASKS)
        .enumerate()
        .map(|(index, task)| {
            let (support, query) = task.support_and_query()?;
            let function = Sinusoid.function(target_key().index(index as u64).named("function"));
            let predictive = model.adapt(&support)?.predict(&x)?;
            let pairs = |task: &Task, most: usize| -> Vec<(f64, f64)> {
                let pairs = task.inputs().iter().zip(task.targets());
                pairs.take(most).map(|(x, y)| (rounded(*x), rounded(*y))).collect()
            };
            Ok(Illustration {
                task: task.name().to_owned(),
                truth: x.iter().map(|x| rounded(function(&[*x]))).collect(),
                support: pairs(&support, usize::MAX),
                query: pairs(&query, 40),
                samples: samples.iter().map(|path| path.iter().map(|y| value(*y)).collect()).collect(),
                prior_mean: joint.mean.iter().map(|mean| value(*mean)).collect(),
                prior_std: (0..GRID).map(|i| deviation(joint.covariance[i * GRID + i].sqrt())).collect(),
                mean: predictive.mean.iter().map(|mean| rounded(*mean)).collect(),
                std: predictive.std.iter().map(|std| rounded(*std)).collect(),
                x: x.clone(),
            })
        })
        .collect()
}

/// Functions with this mean and covariance. Neighbouring inputs are so strongly correlated that the matrix is singular to
/// working precision; a millionth on its diagonal is far below what a picture shows.
fn samples(mean: &[f64], covariance: &[f64]) -> Result<Vec<Vec<f64>>> {
    let (count, stride) = (mean.len(), padded(mean.len()));
    let mut factor = vec![0.0; count * stride];
    for row in 0..count {
        factor[row * stride..row * stride + count]
            .copy_from_slice(&covariance[row * count..(row + 1) * count]);
        factor[row * stride + row] += 1e-6;
    }
    factor::cholesky(pulp::Arch::new(), &mut factor, count).map_err(|failure| Error::Factorisation {
        task: "prior samples".to_owned(),
        size: count,
        noise_variance: 1e-6,
        temperature: None,
        pivot: failure.pivot,
    })?;
    Ok((0..SAMPLES)
        .map(|sample| {
            let mut generator = Key::new(0).named("prior samples").index(sample).generator();
            let normals: Vec<f64> = (0..count).map(|_| generator.normal()).collect();
            // The factor is upper: covariance = U' U, so U' z has it.
            let deviation = |column: usize| -> f64 {
                (0..=column).map(|row| factor[row * stride + column] * normals[row]).sum()
            };
            (0..count).map(|index| mean[index] + deviation(index)).collect()
        })
        .collect())
}

/// Four decimals: enough for a picture.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
