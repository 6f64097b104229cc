//! From the record of a sweep to its conclusions.
//!
//! The value of a setting on a task is the mean over seeds; all standard errors are over tasks, which is how sure one can be
//! for the next task. A setting is chosen on the seeds for which every setting is recorded, so that a sweep which is still
//! going on can be looked at; where a model failed, its setting cannot be chosen. Held-out numbers score each task with the
//! setting that the other folds chose.

use serde::Serialize;
use serde_json::Value;

use super::model::{SweepOutcome, SweepSpec, TaskErrors};
use super::plan::{Plan, Setting};
use crate::config::SweepMetric;
use crate::error::Result;
use crate::studies::cross_validation::choose_over_models;
use crate::studies::grid::Axis;
use crate::studies::record::{Ending, Records};
use crate::studies::spec::Spec;
use crate::studies::summary::{Summary, mean, student_quantile};

/// One setting over all scored tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingResult {
    /// The setting in words.
    pub label: String,
    /// The value on each axis; none where it has no effect.
    pub values: Vec<Option<Value>>,
    /// Points of the grid that stand for it.
    pub points: usize,
    /// RMSE over tasks.
    pub rmse: Summary,
    /// Log-likelihood of a query point over tasks.
    pub log_likelihood: Summary,
    /// Calibration error over tasks.
    pub calibration_error: Summary,
    /// Coverage of the 95% interval over tasks.
    pub coverage95: Summary,
    /// The metric minus that of the chosen setting, paired over tasks; none for a setting that cannot be chosen.
    pub difference: Option<Summary>,
    /// Models behind it.
    pub models: usize,
    /// Models that failed.
    pub failed: usize,
}

/// What was chosen, and how good the choice is on tasks that had no say in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// The setting, counted from 0.
    pub setting: usize,
    /// In words.
    pub label: String,
    /// What each fold chose.
    pub per_fold: Vec<usize>,
    /// The metric on the tasks that chose; descriptive, since it was made as good as possible.
    pub validation: Summary,
    /// Seeds for which every setting is recorded.
    pub seeds: usize,
    /// RMSE on held-out tasks.
    pub rmse: Summary,
    /// Log-likelihood on held-out tasks.
    pub log_likelihood: Summary,
    /// Coverage of the 95% interval on held-out tasks.
    pub coverage95: Summary,
    /// Calibration error on held-out tasks.
    pub calibration_error: Summary,
    /// RMSE and log-likelihood of the same models' prior means, without adaptation.
    pub prior_mean: Option<(Summary, Summary)>,
    /// The metric minus that of the plain Gaussian process, paired over tasks.
    pub over_plain_gp: Option<Summary>,
    /// The metric minus that of the prior means.
    pub over_prior_mean: Option<Summary>,
    /// By task.
    pub tasks: Vec<TaskResult>,
}

/// A scored task with what the other folds chose for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskResult {
    /// Its name.
    pub name: String,
    /// Its fold.
    pub fold: usize,
    /// The setting, counted from 0.
    pub setting: usize,
    /// RMSE.
    pub rmse: f64,
    /// Log-likelihood of a query point.
    pub log_likelihood: f64,
    /// RMSE of the plain Gaussian process.
    pub plain_gp_rmse: Option<f64>,
    /// Log-likelihood of the plain Gaussian process.
    pub plain_gp_log_likelihood: Option<f64>,
}

/// The conclusions of a sweep, as far as it is recorded.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// What was to be run.
    pub plan: &'a Plan,
    /// The settings, in the order of the plan.
    pub settings: Vec<SettingResult>,
    /// What was chosen; none as long as no seed is complete, or if every setting failed somewhere.
    pub chosen: Option<Chosen>,
    /// RMSE and log-likelihood of the plain Gaussian process on the scored tasks.
    pub plain_gp: Option<(Summary, Summary)>,
    /// Failed models in words, each with its reason.
    pub failures: Vec<(String, String)>,
    /// Pieces that are recorded with an outcome.
    pub done: usize,
    /// All pieces: the models, and the plain Gaussian process.
    pub total: usize,
    /// Seconds of all recorded pieces, one after the other.
    pub seconds: f64,
}

type Field = fn(&TaskErrors) -> &Vec<f64>;

impl SweepMetric {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rmse => "RMSE",
            Self::LogLikelihood => "log-likelihood",
        }
    }

    /// The metric itself.
    fn field(self) -> Field {
        match self {
            Self::Rmse => |errors| &errors.rmse,
            Self::LogLikelihood => |errors| &errors.log_likelihood,
        }
    }

    /// 1 if low is good, else -1.
    pub fn sign(self) -> f64 {
        match self {
            Self::Rmse => 1.0,
            Self::LogLikelihood => -1.0,
        }
    }

    /// The metric of a setting.
    pub fn of(self, result: &SettingResult) -> &Summary {
        match self {
            Self::Rmse => &result.rmse,
            Self::LogLikelihood => &result.log_likelihood,
        }
    }
}

/// How the models of a setting ended, by seed.
struct Models<'a> {
    endings: Vec<Option<&'a Ending<SweepOutcome>>>,
}

impl<'a> Models<'a> {
    fn outcome(&self, seed: usize) -> Option<&'a SweepOutcome> {
        match self.endings[seed] {
            Some(Ending::Done(outcome)) => Some(outcome),
            _ => None,
        }
    }

    fn done(&self) -> Vec<&'a SweepOutcome> {
        (0..self.endings.len()).filter_map(|seed| self.outcome(seed)).collect()
    }

    /// The values of each task, averaged over seeds; none unless all of them are there.
    fn by_task(&self, seeds: &[usize], field: Field) -> Option<Vec<f64>> {
        let outcomes: Option<Vec<_>> = seeds.iter().map(|seed| self.outcome(*seed)).collect();
        average(outcomes?.into_iter().map(|outcome| field(&outcome.scores)))
    }

    fn prior_mean_by_task(&self, seeds: &[usize], field: Field) -> Option<Vec<f64>> {
        let floors: Option<Vec<_>> =
            seeds.iter().map(|seed| self.outcome(*seed)?.prior_mean.as_ref()).collect();
        average(floors?.into_iter().map(field))
    }
}

/// The mean of lists of the same length, element by element; none without lists.
fn average<'a>(lists: impl Iterator<Item = &'a Vec<f64>>) -> Option<Vec<f64>> {
    let lists: Vec<&Vec<f64>> = lists.collect();
    let tasks = lists.first()?.len();
    let at = |task: usize| mean(&lists.iter().filter_map(|list| list.get(task).copied()).collect::<Vec<_>>());
    Some((0..tasks).map(at).collect())
}

fn difference(values: &[f64], others: &[f64]) -> Summary {
    Summary::of(&values.iter().zip(others).map(|(value, other)| value - other).collect::<Vec<_>>())
}

impl<'a> Analysis<'a> {
    /// Looks at a record through a plan.
    ///
    /// # Errors
    /// When plan or record were changed so that they do not fit together.
    pub fn new(plan: &'a Plan, records: &Records<SweepSpec>) -> Result<Self> {
        let (mut failures, mut done, mut seconds) = (Vec::new(), 0, 0.0);
        for spec in plan.specs() {
            let hash = spec.hash()?;
            seconds += records.seconds(&hash).unwrap_or(0.0);
            match records.ending(&hash) {
                Some(Ending::Done(_)) => done += 1,
                Some(Ending::Failed(reason)) => failures.push((spec.label(), reason.clone())),
                None => {}
            }
        }
        let look = |spec: SweepSpec| Ok(records.ending(&spec.hash()?));
        let models: Vec<Models<'_>> = plan
            .settings
            .iter()
            .map(|setting| {
                let endings = (0..plan.seeds).map(|seed| look(plan.model(setting, seed)));
                Ok(Models { endings: endings.collect::<Result<_>>()? })
            })
            .collect::<Result<_>>()?;
        let plain_gp = match look(plan.plain_gp())? {
            Some(Ending::Done(outcome)) => Some(&outcome.scores),
            _ => None,
        };
        let complete: Vec<usize> = (0..plan.seeds as usize)
            .filter(|seed| models.iter().all(|models| models.endings[*seed].is_some()))
            .collect();
        let chosen = choose(plan, &models, &complete, plain_gp)?;
        let field = plan.metric.field();
        let of_chosen = chosen.as_ref().and_then(|chosen| models[chosen.setting].by_task(&complete, field));
        let settings = plan
            .settings
            .iter()
            .zip(&models)
            .map(|(setting, models)| {
                let own = models.by_task(&complete, field);
                let difference = of_chosen.as_ref().zip(own).map(|(chosen, own)| difference(&own, chosen));
                SettingResult { difference, ..result(plan, setting, models) }
            })
            .collect();
        Ok(Self {
            plan,
            settings,
            chosen,
            plain_gp: plain_gp.map(|scores| (Summary::of(&scores.rmse), Summary::of(&scores.log_likelihood))),
            failures,
            done,
            total: 1 + plan.settings.len() * plan.seeds as usize,
            seconds,
        })
    }

    /// Settings from the best to the worst mean of the metric; those without a number last.
    pub fn ranking(&self) -> Vec<usize> {
        let sign = self.plan.metric.sign();
        let loss = |index: &usize| {
            let mean = self.plan.metric.of(&self.settings[*index]).mean;
            mean.map_or(f64::INFINITY, |mean| sign * mean)
        };
        let mut order: Vec<usize> = (0..self.settings.len()).collect();
        order.sort_by(|left, right| loss(left).total_cmp(&loss(right)));
        order
    }

    /// A sentence for each numeric axis whose end was chosen: beyond it may lie something better.
    pub fn ends(&self) -> Vec<String> {
        let Some(chosen) = &self.chosen else { return Vec::new() };
        let axes = self.plan.axes.iter().zip(&self.settings[chosen.setting].values);
        let sentence = |(axis, value): (&Axis, &Option<Value>)| {
            let values: Option<Vec<f64>> = axis.values.iter().map(Value::as_f64).collect();
            let (values, value) = (values?, value.as_ref()?.as_f64()?);
            let (larger, smaller) =
                (values.iter().any(|other| *other > value), values.iter().any(|other| *other < value));
            let end = match (smaller, larger) {
                (true, false) => "largest",
                (false, true) => "smallest",
                _ => return None,
            };
            Some(format!("{} = {value} is the {end} value of its axis; look beyond it.", axis.name))
        };
        axes.filter_map(sentence).collect()
    }

    /// Whether the choice beats the plain Gaussian process on held-out tasks, in a sentence.
    pub fn verdict(&self) -> Option<String> {
        let over = self.chosen.as_ref()?.over_plain_gp?;
        let (mean, error) = (over.mean?, over.standard_error?);
        let (metric, gain) = (self.plan.metric.name(), -self.plan.metric.sign() * mean);
        let half = student_quantile(0.975, over.observations.max(2) as f64 - 1.0) * error;
        let size =
            format!("{:.4} ± {half:.4} over {} tasks (95%, Student's t)", mean.abs(), over.observations);
        Some(if gain.abs() <= half {
            format!(
                "Whether meta-learning helps is unclear: the difference in {metric} to a Gaussian process on the support alone, \
                 {size}, may be 0."
            )
        } else if gain > 0.0 {
            format!(
                "Meta-learning helps: its {metric} is better than that of a Gaussian process on the support alone by {size}."
            )
        } else {
            format!(
                "Meta-learning does not help here: its {metric} is worse than that of a Gaussian process on the support alone by \
                 {size}."
            )
        })
    }
}

fn result(plan: &Plan, setting: &Setting, models: &Models<'_>) -> SettingResult {
    let done = models.done();
    let over_tasks = |field: Field| {
        let values = average(done.iter().map(|outcome| field(&outcome.scores)));
        Summary::of(&values.unwrap_or_default())
    };
    SettingResult {
        label: plan.label(setting),
        values: setting.values.clone(),
        points: setting.points,
        rmse: over_tasks(|errors| &errors.rmse),
        log_likelihood: over_tasks(|errors| &errors.log_likelihood),
        calibration_error: over_tasks(|errors| &errors.calibration_error),
        coverage95: over_tasks(|errors| &errors.coverage95),
        difference: None,
        models: done.len(),
        failed: models.endings.iter().filter(|ending| matches!(ending, Some(Ending::Failed(_)))).count(),
    }
}

fn choose(
    plan: &Plan,
    models: &[Models<'_>],
    seeds: &[usize],
    plain_gp: Option<&TaskErrors>,
) -> Result<Option<Chosen>> {
    let (field, sign, tasks) = (plan.metric.field(), plan.metric.sign(), plan.data.scored.len());
    let failed = |models: &Models<'_>| seeds.iter().any(|seed| models.outcome(*seed).is_none());
    if seeds.is_empty() || models.iter().all(failed) {
        return Ok(None);
    }
    let losses: Vec<Vec<Vec<f64>>> = models
        .iter()
        .map(|models| {
            let of_seed = |seed: &usize| match models.outcome(*seed) {
                Some(outcome) => field(&outcome.scores).iter().map(|value| sign * value).collect(),
                None => vec![f64::NAN; tasks],
            };
            seeds.iter().map(of_seed).collect()
        })
        .collect();
    let folds = plan.split()?;
    let choices = choose_over_models(&losses, &folds)?.choices;
    // Every task under the choice of its fold.
    let held_out = |of: &dyn Fn(&Models<'_>) -> Option<Vec<f64>>| -> Option<Vec<f64>> {
        let by_fold: Option<Vec<Vec<f64>>> =
            choices.per_fold.iter().map(|choice| of(&models[choice.chosen])).collect();
        let by_fold = by_fold?;
        folds.of_tasks().iter().enumerate().map(|(task, fold)| by_fold[*fold].get(task).copied()).collect()
    };
    let scores = |field: Field| held_out(&|models| models.by_task(seeds, field)).unwrap_or_default();
    let prior_mean = |field: Field| held_out(&|models| models.prior_mean_by_task(seeds, field));
    let (rmse, log_likelihood) = (scores(|errors| &errors.rmse), scores(|errors| &errors.log_likelihood));
    let metric = scores(field);
    let results = (0..tasks).map(|task| {
        let fold = folds.of_tasks()[task];
        let at = |values: &[f64]| values.get(task).copied();
        TaskResult {
            name: plan.data.scored[task].clone(),
            fold,
            setting: choices.per_fold[fold].chosen,
            rmse: at(&rmse).unwrap_or(f64::NAN),
            log_likelihood: at(&log_likelihood).unwrap_or(f64::NAN),
            plain_gp_rmse: plain_gp.and_then(|scores| at(&scores.rmse)),
            plain_gp_log_likelihood: plain_gp.and_then(|scores| at(&scores.log_likelihood)),
        }
    });
    Ok(Some(Chosen {
        setting: choices.chosen,
        label: plan.label(&plan.settings[choices.chosen]),
        per_fold: choices.per_fold.iter().map(|choice| choice.chosen).collect(),
        validation: Summary { mean: choices.validation.mean.map(|mean| sign * mean), ..choices.validation },
        seeds: seeds.len(),
        coverage95: Summary::of(&scores(|errors| &errors.coverage95)),
        calibration_error: Summary::of(&scores(|errors| &errors.calibration_error)),
        prior_mean: prior_mean(|errors| &errors.rmse)
            .zip(prior_mean(|errors| &errors.log_likelihood))
            .map(|(rmse, log_likelihood)| (Summary::of(&rmse), Summary::of(&log_likelihood))),
        over_plain_gp: plain_gp.map(|scores| difference(&metric, field(scores))),
        over_prior_mean: prior_mean(field).map(|floor| difference(&metric, &floor)),
        tasks: results.collect(),
        rmse: Summary::of(&rmse),
        log_likelihood: Summary::of(&log_likelihood),
    }))
}
