//! A prior after adaptation: predictions with uncertainty, in original units.

use pacmeta_tensor::Parameters;

use super::gibbs_gp::{Context, Covariance, GpPosterior, Points, check_size, check_together};
use super::squared_loss::SquaredLoss;
use super::{Learner, TargetTemperature};
use crate::environments::table::counted;
use crate::error::{Error, Result};
use crate::priors::{GaussianProcess, PriorSpec};
use crate::standardisation::Standardisation;
use crate::task::Task;

/// Queries that are predicted together, so that memory does not grow with their number; a multiple of the sixty that networks
/// take at a time, which leaves every bit as it is.
const PIECE: usize = 6000;

/// Predictive means and standard deviations of y, in original units.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictive {
    /// The mean of each prediction.
    pub mean: Vec<f64>,
    /// The standard deviation of each, for a new observation y (noise included).
    pub std: Vec<f64>,
}

/// An adapted prior.
#[derive(Debug, Clone)]
pub struct Adapted {
    posterior: Posterior,
    dimension: usize,
    standardisation: Option<Standardisation>,
}

#[derive(Debug, Clone)]
enum Posterior {
    GaussianProcess { prior: Box<GaussianProcess>, posterior: Box<GpPosterior> },
    Network { loss: Box<SquaredLoss>, parameters: Vec<f64>, noise_variance: f64 },
}

impl Adapted {
    pub(crate) fn new(
        spec: &PriorSpec,
        parameters: &Parameters<f64>,
        learner: &Learner,
        support: &Task,
        standardisation: Option<Standardisation>,
    ) -> Result<Self> {
        check_together(support.name(), support.len())?;
        let posterior = match (spec, learner) {
            (PriorSpec::GaussianProcess(spec), Learner::Gibbs { .. } | Learner::LearnedNoise) => {
                check_size(support.name(), support.len())?;
                let mut prior = GaussianProcess::with_parameters(spec, parameters);
                let (noise_variance, temperature) = gp_noise(&prior, learner, support.len())?;
                prior.forward(support.inputs());
                let mut points = Points::default();
                prior.gather(support.targets().iter().copied().enumerate(), &mut points);
                let covariance = Covariance { scale: prior.scale(), noise_variance };
                let context = Context { task: support.name(), temperature };
                let posterior = GpPosterior::new(points, covariance, context)?;
                Posterior::GaussianProcess { prior: Box::new(prior), posterior: Box::new(posterior) }
            }
            (PriorSpec::Network(spec), Learner::Steps { inner, noise_variance }) => {
                let mut loss = SquaredLoss::new(&spec.widths());
                let parameters = loss.descend(parameters.values(), support.examples(), *inner);
                Posterior::Network { loss: Box::new(loss), parameters, noise_variance: *noise_variance }
            }
            (PriorSpec::Network(spec), Learner::Proximal { proximal, noise_variance }) => {
                let mut loss = SquaredLoss::new(&spec.widths());
                let mut optimum = parameters.values().to_vec();
                proximal.minimise(&mut loss, parameters.values(), support.examples(), &mut optimum);
                let noise_variance = *noise_variance;
                Posterior::Network { loss: Box::new(loss), parameters: optimum, noise_variance }
            }
            _ => {
                return Err(Error::input(
                    "the checkpoint",
                    "its base learner does not fit its prior: Gibbs learners need a Gaussian process, gradient steps a \
                     network",
                ));
            }
        };
        Ok(Self { posterior, dimension: spec.dimension(), standardisation })
    }

    /// Predictions at the rows of `inputs` (original units, row-major).
    ///
    /// # Errors
    /// When the number of inputs is not a multiple of the dimension.
    pub fn predict(&self, inputs: &[f64]) -> Result<Predictive> {
        let inputs = self.standardised(inputs)?;
        let mut predictive = Predictive { mean: Vec::new(), std: Vec::new() };
        for piece in inputs.chunks(PIECE * self.dimension) {
            let (mean, variance) = match &self.posterior {
                Posterior::GaussianProcess { prior, posterior } => {
                    let points = self.points(prior, piece, None);
                    let (mean, mut variance) = posterior.marginals(&points);
                    variance.iter_mut().for_each(|value| *value += posterior.noise_variance());
                    (mean, variance)
                }
                Posterior::Network { loss, parameters, noise_variance } => {
                    let mean = loss.clone().predict(parameters, piece);
                    let variance = vec![*noise_variance; mean.len()];
                    (mean, variance)
                }
            };
            predictive.mean.extend(mean.into_iter().map(|value| self.restore_mean(value)));
            predictive.std.extend(variance.into_iter().map(|value| self.restore_std(value.sqrt())));
        }
        Ok(predictive)
    }

    /// The joint predictive log-density of the query's targets, in original units.
    ///
    /// # Errors
    /// When the dimension differs or the predictive covariance is not positive definite.
    pub fn joint_log_density(&self, query: &Task) -> Result<f64> {
        let inputs = self.standardised(query.inputs())?;
        let targets: Vec<f64> = query.targets().iter().map(|y| self.standardise_target(*y)).collect();
        let log_density = match &self.posterior {
            Posterior::GaussianProcess { prior, posterior } => {
                check_size(query.name(), query.len())?;
                let points = self.points(prior, &inputs, Some(&targets));
                posterior.joint_log_density(&points, query.name())?
            }
            Posterior::Network { loss, parameters, noise_variance } => {
                let pieces = inputs.chunks(PIECE * self.dimension);
                let mean: Vec<f64> =
                    pieces.flat_map(|piece| loss.clone().predict(parameters, piece)).collect();
                let normaliser = 0.5 * (std::f64::consts::TAU * noise_variance).ln();
                let squares: f64 = mean.iter().zip(&targets).map(|(f, y)| (f - y) * (f - y)).sum();
                -0.5 * squares / noise_variance - mean.len() as f64 * normaliser
            }
        };
        Ok(log_density - query.len() as f64 * self.restore_std(1.0).ln())
    }

    fn points(&self, prior: &GaussianProcess, inputs: &[f64], targets: Option<&[f64]>) -> Points {
        let mut prior = prior.clone();
        prior.forward(inputs);
        let mut points = Points::default();
        let target = |index: usize| targets.map_or(0.0, |targets| targets[index]);
        let count = inputs.len() / self.dimension;
        prior.gather((0..count).map(|index| (index, target(index))), &mut points);
        points
    }

    fn standardised(&self, inputs: &[f64]) -> Result<Vec<f64>> {
        if !inputs.len().is_multiple_of(self.dimension) {
            return Err(Error::input(
                "query points",
                format!("{} numbers are not rows of {}", inputs.len(), counted(self.dimension, "feature")),
            ));
        }
        match &self.standardisation {
            Some(standardisation) => standardisation.apply_input(inputs),
            None => Ok(inputs.to_vec()),
        }
    }

    fn standardise_target(&self, target: f64) -> f64 {
        self.standardisation.as_ref().map_or(target, |s| (target - s.y_mean()) / s.y_std())
    }

    fn restore_mean(&self, mean: f64) -> f64 {
        self.standardisation.as_ref().map_or(mean, |s| s.restore_mean(mean))
    }

    fn restore_std(&self, std: f64) -> f64 {
        self.standardisation.as_ref().map_or(std, |s| s.restore_std(std))
    }
}

/// The noise variance for a support of this size, and the temperature it comes from.
fn gp_noise(prior: &GaussianProcess, learner: &Learner, support: usize) -> Result<(f64, Option<f64>)> {
    match (learner, prior.learned_noise()) {
        (Learner::Gibbs { temperature, examples, rule }, _) => {
            let noise = Learner::gibbs_noise(*temperature, *examples, *rule, support);
            let effective = match rule {
                TargetTemperature::Fixed => *temperature,
                TargetTemperature::PerExample => support as f64 / (2.0 * noise),
            };
            Ok((noise, Some(effective)))
        }
        (_, Some(noise)) => Ok((noise, None)),
        _ => Err(Error::input("the checkpoint", "its learner needs a learned noise, its kernel has none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priors::{GaussianProcessSpec, NetworkSpec};
    use pacmeta_tensor::Key;

    #[test]
    fn no_queries_have_no_predictions() {
        let gibbs = Learner::Gibbs { temperature: 5.0, examples: 1.0, rule: TargetTemperature::Fixed };
        let steps =
            Learner::Steps { inner: super::super::InnerSteps { steps: 1, rate: 0.1 }, noise_variance: 1.0 };
        let network = PriorSpec::Network(NetworkSpec { dimension: 1, hidden: vec![4] });
        let cases = [(PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1)), gibbs), (network, steps)];
        let support = Task::new("support", 1, vec![0.0, 1.0], vec![0.5, 0.7]).unwrap();
        for (spec, learner) in cases {
            let parameters = spec.initialise(Key::new(0)).unwrap();
            let adapted = Adapted::new(&spec, &parameters, &learner, &support, None).unwrap();
            assert_eq!(adapted.predict(&[]).unwrap().mean, Vec::<f64>::new());
            assert_eq!(adapted.predict(&[0.5]).unwrap().mean.len(), 1);
            // More than one piece, in the order asked for.
            let many: Vec<f64> = (0..PIECE + 77).map(|index| index as f64 / 1e3).collect();
            let all = adapted.predict(&many).unwrap();
            let last = adapted.predict(&many[PIECE..]).unwrap();
            assert_eq!((all.mean.len(), &all.mean[PIECE..]), (many.len(), &last.mean[..]));
            assert_eq!(all.std[PIECE..], last.std);
        }
    }

    #[test]
    fn sizes_that_no_memory_holds_are_refused_before_anything_runs() {
        let spec = PriorSpec::GaussianProcess(GaussianProcessSpec::paper(1));
        let parameters = spec.initialise(Key::new(0)).unwrap();
        let gibbs = Learner::Gibbs { temperature: 5.0, examples: 1.0, rule: TargetTemperature::Fixed };
        let task = |size: usize| Task::new("huge", 1, vec![0.5; size], vec![0.5; size]).unwrap();
        let adapt = |size| Adapted::new(&spec, &parameters, &gibbs, &task(size), None);
        for message in [
            adapt(10_001).unwrap_err().to_string(),
            adapt(2).unwrap().joint_log_density(&task(10_001)).unwrap_err().to_string(),
        ] {
            assert!(message.contains("task `huge`") && message.contains("10001 examples"), "{message}");
        }
    }
}
