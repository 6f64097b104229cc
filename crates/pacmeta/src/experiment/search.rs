//! Temperatures for people who have none: every candidate is trained without some tasks and scored on those.
//!
//! The score is the few-shot log-likelihood on the left-out tasks: adapt to `data.support` examples, predict the rest.

use std::sync::{Mutex, PoisonError};

use pacmeta_tensor::Key;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::trial_log::{TrialLog, TrialOutcome};
use super::{Experiment, Observer};
use crate::config::{SearchConfig, harmonic_mean};
use crate::error::{Error, Result};
use crate::evaluation::{evaluate, mean_and_standard_error};
use crate::report::brief;
use crate::standardisation::Standardisation;
use crate::task::Task;

/// The temperatures of a run, and how they were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct TemperatureChoice {
    /// beta, where the method has one.
    pub beta: Option<f64>,
    /// alpha, where it was searched for (otherwise it follows from the configuration).
    pub alpha: Option<f64>,
    /// The candidates that were tried; empty when nothing was to be chosen.
    pub trials: Vec<Trial>,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// beta.
    pub beta: f64,
    /// alpha, for methods that have one.
    pub alpha: Option<f64>,
    /// Mean log-likelihood on left-out tasks; none if training or scoring failed.
    pub log_likelihood: Option<f64>,
    /// Its standard error over tasks.
    pub standard_error: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl TemperatureChoice {
    /// One line on what was chosen and why; none when nothing was to be chosen.
    pub fn explanation(&self) -> Option<String> {
        let best =
            self.trials.iter().find(|trial| Some(trial.beta) == self.beta && trial.alpha == self.alpha)?;
        let alpha = best.alpha.map(|alpha| format!(", alpha = {alpha:.6}")).unwrap_or_default();
        Some(format!(
            "chose beta = {:.6}{alpha}: the best few-shot log-likelihood on left-out tasks ({}{}) of {} candidates{}",
            best.beta,
            brief(best.log_likelihood?),
            best.standard_error.map(|error| format!(" ± {}", brief(error))).unwrap_or_default(),
            self.trials.len(),
            self.edges(best)
        ))
    }

    /// A chosen temperature at the end of its candidates, where a better one may lie beyond.
    fn edges(&self, best: &Trial) -> String {
        let end = |key: &str, chosen: f64, candidates: &mut dyn Iterator<Item = f64>| {
            let (low, high) = candidates.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            let word = match chosen {
                _ if low >= high => return None,
                chosen if chosen == low => "smallest",
                chosen if chosen == high => "largest",
                _ => return None,
            };
            Some(format!("; it is the {word} {key}, so others in `search.{key}_per_example` may do better"))
        };
        let beta = end("beta", best.beta, &mut self.trials.iter().map(|trial| trial.beta));
        let same_beta = self.trials.iter().filter(|trial| trial.beta == best.beta);
        let alpha =
            best.alpha.and_then(|alpha| end("alpha", alpha, &mut same_beta.filter_map(|trial| trial.alpha)));
        beta.into_iter().chain(alpha).collect()
    }
}

impl Experiment {
    /// Resolves the temperatures, by search where the configuration says `"auto"`.
    ///
    /// # Errors
    /// When there are too few tasks to leave some out, or every candidate fails.
    pub fn choose_temperatures(&self, observer: &mut dyn Observer) -> Result<TemperatureChoice> {
        self.choose_temperatures_from(TrialLog::in_memory(), observer)
    }

    /// The same, with finished trials kept in a file that several processes may share.
    pub(crate) fn choose_temperatures_keeping(
        &self,
        trials: &std::path::Path,
        observer: &mut dyn Observer,
    ) -> Result<TemperatureChoice> {
        let log =
            if self.config.search.is_some() { TrialLog::shared(trials)? } else { TrialLog::in_memory() };
        self.choose_temperatures_from(log, observer)
    }

    /// The same, with trials that an earlier call finished, and a place for those of this one.
    pub(super) fn choose_temperatures_from(
        &self,
        mut log: TrialLog,
        observer: &mut dyn Observer,
    ) -> Result<TemperatureChoice> {
        let sizes = || self.observed.iter().map(Task::len);
        let beta = self.config.method.beta.and_then(|beta| beta.resolve(sizes()));
        let Some(search) = &self.config.search else {
            return Ok(TemperatureChoice { beta, alpha: None, trials: Vec::new() });
        };
        if self.observed.len() < 2 {
            return Err(Error::config(
                "method.beta",
                "\"auto\" chooses by leaving tasks out, which needs at least 2 observed tasks; give a number instead",
            ));
        }
        let candidates = self.candidates(search, beta);
        let folds = search.folds.min(self.observed.len());
        let mut order: Vec<usize> = (0..self.observed.len()).collect();
        Key::new(self.config.seed).named("folds").generator().shuffle(&mut order);
        observer.searching(candidates.len(), folds, search.iterations);
        let jobs: Vec<(usize, usize)> =
            (0..candidates.len()).flat_map(|index| (0..folds).map(move |fold| (index, fold))).collect();
        let known = log.take_known();
        let log = Mutex::new(log);
        let watched: &dyn Observer = observer;
        let results: Vec<Option<TrialOutcome>> = jobs
            .par_iter()
            .map(|job| {
                if let Some(outcome) = known.get(job) {
                    return Ok(Some(outcome.clone()));
                }
                let stop = || watched.stop();
                let outcome =
                    match self.trial(&candidates[job.0], &order, job.1, folds, search.iterations, &stop) {
                        Err(error) if error.is_interruption() => return Ok(None),
                        Ok(values) => Ok(values),
                        Err(error) => Err(error.to_string()),
                    };
                log.lock().unwrap_or_else(PoisonError::into_inner).append(*job, &outcome)?;
                Ok(Some(outcome))
            })
            .collect::<Result<_>>()?;
        let results: Vec<TrialOutcome> = {
            let finished = results.iter().flatten().count();
            if finished < jobs.len() {
                return Err(Error::SearchInterrupted { finished, trials: jobs.len() });
            }
            results.into_iter().flatten().collect()
        };
        let mut trials = Vec::with_capacity(candidates.len());
        for (index, candidate) in candidates.iter().enumerate() {
            let outcome: std::result::Result<Vec<Vec<f64>>, String> = results
                .iter()
                .zip(&jobs)
                .filter(|(_, job)| job.0 == index)
                .map(|(result, _)| result.clone())
                .collect();
            let (log_likelihood, standard_error, failure) = match outcome {
                Ok(values) => {
                    let (mean, error) = mean_and_standard_error(&values.concat());
                    (Some(mean).filter(|mean| mean.is_finite()), error, None)
                }
                Err(failure) => (None, None, Some(failure)),
            };
            let TemperatureChoice { beta, alpha, .. } = candidate;
            trials.push(Trial {
                beta: beta.unwrap_or(f64::NAN),
                alpha: *alpha,
                log_likelihood,
                standard_error,
                failure,
            });
        }
        let best = trials.iter().filter(|trial| trial.log_likelihood.is_some()).max_by(|a, b| {
            a.log_likelihood.partial_cmp(&b.log_likelihood).unwrap_or(std::cmp::Ordering::Equal)
        });
        let Some(best) = best else {
            let reason = trials.first().and_then(|trial| trial.failure.clone()).unwrap_or_default();
            return Err(Error::SearchFailed { reason });
        };
        Ok(TemperatureChoice { beta: Some(best.beta), alpha: best.alpha, trials })
    }

    fn candidates(&self, search: &SearchConfig, beta: Option<f64>) -> Vec<TemperatureChoice> {
        let size = harmonic_mean(self.observed.iter().map(Task::len));
        let subset = harmonic_mean(self.subset_sizes(&self.observed));
        let betas: Vec<f64> = match beta {
            Some(beta) => vec![beta],
            None => search.beta_per_example.iter().map(|value| value * size).collect(),
        };
        betas
            .into_iter()
            .flat_map(|beta| {
                let alphas: Vec<Option<f64>> = match self.config.method.alpha {
                    None => vec![None],
                    Some(alpha) => match alpha.resolve(beta) {
                        Some(alpha) => vec![Some(alpha)],
                        None => search.alpha_per_example.iter().map(|value| Some(value * subset)).collect(),
                    },
                };
                alphas.into_iter().map(move |alpha| TemperatureChoice {
                    beta: Some(beta),
                    alpha,
                    trials: Vec::new(),
                })
            })
            .collect()
    }

    /// Trains without one fold and returns the log-likelihood of each of its tasks.
    fn trial(
        &self,
        candidate: &TemperatureChoice,
        order: &[usize],
        fold: usize,
        folds: usize,
        iterations: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<f64>> {
        let pick = |inside: bool| -> Vec<Task> {
            order
                .iter()
                .enumerate()
                .filter(|(position, _)| (position % folds == fold) == inside)
                .map(|(_, &index)| self.observed[index].clone())
                .collect()
        };
        let key = Key::new(self.config.seed).named("search").index(fold as u64);
        let observed = pick(false);
        let standardisation = match &self.standardisation {
            Some(_) => Some(Standardisation::fit(&observed)?),
            None => None,
        };
        let standardised: Vec<Task> = match &standardisation {
            Some(standardisation) => {
                observed.iter().map(|task| standardisation.apply(task)).collect::<Result<_>>()?
            }
            None => observed.clone(),
        };
        let mut trainer = self.trainer_on(&standardised, candidate, key)?;
        for iteration in 0..iterations {
            if stop() {
                return Err(Error::Interrupted { iteration });
            }
            trainer.step()?;
        }
        let fold_experiment =
            Self { observed, standardised: Vec::new(), scored: Vec::new(), standardisation, ..self.clone() };
        let model = fold_experiment.model(trainer.parameters().clone(), candidate)?;
        let scored = self.with_support(&pick(true), key.named("support"))?;
        Ok(evaluate(&model, &scored)?.per_task.iter().map(|task| task.log_likelihood).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_at_the_end_of_its_candidates_is_mentioned() {
        let explain = |beta: f64, alpha: f64| {
            let trials = [1.0, 2.0, 3.0].iter().flat_map(|&beta| {
                [10.0, 20.0, 30.0].map(|alpha| Trial {
                    beta,
                    alpha: Some(alpha),
                    log_likelihood: Some(0.5),
                    standard_error: None,
                    failure: None,
                })
            });
            let choice = TemperatureChoice { beta: Some(beta), alpha: Some(alpha), trials: trials.collect() };
            choice.explanation().unwrap()
        };
        assert!(explain(3.0, 20.0).contains("the largest beta"), "{}", explain(3.0, 20.0));
        assert!(!explain(3.0, 20.0).contains("alpha,"));
        assert!(explain(2.0, 10.0).contains("the smallest alpha"));
        assert!(!explain(2.0, 20.0).contains("may do better"), "{}", explain(2.0, 20.0));
    }
}
