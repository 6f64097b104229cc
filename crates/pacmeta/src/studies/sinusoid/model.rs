//! Trains one model of the Sinusoid study and measures it: errors on the target tasks, terms of the bound, pictures.

use pacmeta_tensor::Key;
use serde::{Deserialize, Serialize};

use super::illustration::{Illustration, illustrate};
use super::spec::{ModelSpec, OBSERVED_TASKS, QUERY, SUPPORT, Setting, TARGET_TASKS};
use crate::bounds::gap::{GapSettings, risk_pairs};
use crate::bounds::{ObjectiveKind, ObjectiveRequest, objective};
use crate::environments::{Sinusoid, observed_tasks, target_tasks};
use crate::error::{Error, Result};
use crate::evaluation::{PlainGp, Predictor, Scores, evaluate, mean_and_standard_error};
use crate::experiment::{Experiment, Silent, TemperatureChoice};
use crate::learners::{Learner, TargetTemperature};
use crate::methods::MethodSettings;
use crate::model::{Columns, Model};
use crate::standardisation::Standardisation;
use crate::studies::spec::Stop;
use crate::task::Task;

/// Times during training at which the target tasks are looked at.
pub const EVALUATIONS: u64 = 20;
/// The confidence parameter of the bounds.
pub const DELTA: f64 = 0.05;
/// Draws of S' over which PACMAML's W_2 is averaged.
pub(super) const SUBSET_DRAWS: u64 = 8;
/// Groups of fresh tasks, and tasks in each, for risks by simulation.
const RISK_GROUPS: usize = 10;
const RISK_TASKS: usize = 10;
const FRESH_EXAMPLES: usize = 50;

/// What is known about a model in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// With the temperature per example kept at target tasks (or the only way to adapt).
    pub per_example: TargetErrors,
    /// With the temperature itself kept, where that differs.
    pub fixed: Option<TargetErrors>,
    /// The terms of the bound, for Gibbs posteriors.
    pub bound: Option<BoundTerms>,
    /// Predictions for drawing.
    pub illustrations: Vec<Illustration>,
}

/// Errors on the target tasks, in original units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetErrors {
    /// RMSE of each target task, by the last iterate.
    pub rmse: Vec<f64>,
    /// Mean log-likelihood of a query point.
    pub log_likelihood: f64,
    /// Mean calibration error.
    pub calibration_error: f64,
    /// Mean coverage of the 95% interval.
    pub coverage95: f64,
    /// Mean RMSE over the target tasks at evenly spaced iterations, the last iterate included.
    pub course: Vec<f64>,
}

impl TargetErrors {
    /// Mean RMSE over the target tasks by the last iterate.
    pub fn mean_rmse(&self) -> f64 {
        mean_and_standard_error(&self.rmse).0
    }

    /// The lowest mean RMSE during training: the paper's reading, which stops early on test data.
    pub fn lowest(&self) -> f64 {
        self.course.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The terms of the paper's figures, in squared standardised units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundTerms {
    /// Mean W_1 or W_2 over observed tasks.
    pub w: f64,
    /// The empirical risk in it.
    pub risk: f64,
    /// xi KL(calQ, calP) without its constant.
    pub hyper_prior: f64,
    /// xi log(2/delta).
    pub confidence: f64,
    /// R(calQ, T) - R(calQ, T~) with the same temperature per example at both sizes; none where the base learner sees as
    /// many examples in both environments by construction.
    pub gap: Option<f64>,
    /// The same with the same temperature at both sizes.
    pub gap_fixed: Option<f64>,
    /// R(calQ, T) measured on fresh tasks with m examples, at the temperature per example.
    pub target_risk: f64,
}

impl BoundTerms {
    /// W + xi KL + xi log(2/delta), without the gap.
    pub fn without_gap(&self) -> f64 {
        self.w + self.hyper_prior + self.confidence
    }

    /// The total of the paper's figures: with the gap where there is one.
    pub fn total(&self) -> f64 {
        self.without_gap() + self.gap.unwrap_or(0.0)
    }

    /// The same with the temperature itself kept at target tasks.
    pub fn total_fixed(&self) -> f64 {
        self.without_gap() + self.gap_fixed.unwrap_or(0.0)
    }
}

/// The observed tasks of a meta-training set. Those of a smaller m_i are the first examples of those of a larger one.
pub(super) fn meta_training_set(data_set: u64, examples: usize) -> Result<Vec<Task>> {
    let key = Key::new(0).named("sinusoid study").named("meta-training set").index(data_set);
    observed_tasks(&Sinusoid, OBSERVED_TASKS, examples, key)
}

/// The key of the target tasks, which all models share.
pub(super) fn target_key() -> Key {
    Key::new(0).named("sinusoid study").named("target tasks")
}

pub(super) fn standardisation_of(tasks: &[Task]) -> Result<Standardisation> {
    Standardisation::fit(tasks)
}

/// Trains and measures.
pub(super) fn measure(spec: &ModelSpec, stop: Stop<'_>) -> Result<Measured> {
    let targets = target_tasks(&Sinusoid, TARGET_TASKS, SUPPORT, QUERY, target_key())?;
    let Some(config) = spec.config()? else { return plain_gp(&targets) };
    let observed = meta_training_set(spec.data_set, spec.examples)?;
    let columns = Columns { features: vec!["x".to_owned()], target: "y".to_owned() };
    let experiment = Experiment::with_tasks(config, observed, targets, columns)?;
    let choice = experiment.choose_temperatures(&mut Silent)?;
    let mut trainer = experiment.trainer(&choice)?;
    let rules = rules(&experiment.model(trainer.parameters().clone(), &choice)?, &spec.setting);
    let mut courses = vec![Vec::new(); rules.len()];
    for evaluation in 1..=EVALUATIONS {
        while trainer.iteration() < spec.iterations * evaluation / EVALUATIONS {
            if stop() {
                return Err(Error::Interrupted { iteration: trainer.iteration() });
            }
            trainer.step()?;
        }
        for (learner, course) in rules.iter().zip(&mut courses) {
            let mut model =
                Model::new(experiment.spec(), trainer.parameters().clone()).with_learner(learner.clone());
            if let Some(standardisation) = experiment.standardisation() {
                model = model.with_standardisation(standardisation.clone());
            }
            course.push(mean_rmse(&model, experiment.scored())?);
        }
    }
    let model = experiment.model(trainer.parameters().clone(), &choice)?;
    let mut errors = Vec::new();
    for (learner, course) in rules.into_iter().zip(courses) {
        // The noise of a network's predictions is known only now; the temperature rule is that of `learner`.
        let scored = match learner {
            Learner::Gibbs { .. } => model.clone().with_learner(learner),
            _ => model.clone(),
        };
        errors.push(TargetErrors::new(&evaluate(&scored, experiment.scored())?, course));
    }
    let mut errors = errors.into_iter();
    let per_example = errors.next().ok_or_else(|| Error::input("study", "no way to adapt the model"))?;
    Ok(Measured {
        per_example,
        fixed: errors.next(),
        bound: bound_terms(spec, &experiment, &model, &choice)?,
        illustrations: if spec.illustrated { illustrate(&model, experiment.scored())? } else { Vec::new() },
    })
}

impl TargetErrors {
    fn new(scores: &Scores, course: Vec<f64>) -> Self {
        Self {
            rmse: scores.per_task.iter().map(|task| task.rmse).collect(),
            log_likelihood: scores.log_likelihood,
            calibration_error: scores.calibration_error,
            coverage95: scores.coverage95,
            course,
        }
    }
}

/// The learners to compare at target tasks. PACMAML's base learner sees m' = m examples, so that both rules agree.
fn rules(model: &Model, setting: &Setting) -> Vec<Learner> {
    let Some(learner) = model.learner().cloned() else { return Vec::new() };
    match (learner, setting) {
        (Learner::Gibbs { temperature, examples, .. }, Setting::Pacoh { .. }) => {
            [TargetTemperature::PerExample, TargetTemperature::Fixed]
                .map(|rule| Learner::Gibbs { temperature, examples, rule })
                .into()
        }
        (learner, _) => vec![learner],
    }
}

/// RMSE of each task, averaged; cheaper than all scores.
fn mean_rmse(model: &Model, tasks: &[Task]) -> Result<f64> {
    let mut sum = 0.0;
    for task in tasks {
        let (support, query) = task.support_and_query()?;
        let predictive = model.adapt(&support)?.predict(query.inputs())?;
        let squares: f64 =
            predictive.mean.iter().zip(query.targets()).map(|(mean, y)| (mean - y) * (mean - y)).sum();
        sum += (squares / query.len() as f64).sqrt();
    }
    Ok(sum / tasks.len() as f64)
}

fn plain_gp(targets: &[Task]) -> Result<Measured> {
    let predictor: &dyn Predictor = &PlainGp;
    let scores = evaluate(predictor, targets)?;
    let per_example = TargetErrors::new(&scores, vec![scores.rmse]);
    Ok(Measured { per_example, fixed: None, bound: None, illustrations: Vec::new() })
}

fn bound_terms(
    spec: &ModelSpec,
    experiment: &Experiment,
    model: &Model,
    choice: &TemperatureChoice,
) -> Result<Option<BoundTerms>> {
    let settings = experiment.config().method_settings(choice.beta.unwrap_or(f64::NAN), choice.alpha)?;
    let kind = match settings {
        MethodSettings::Pacoh { beta } => ObjectiveKind::Pacoh { beta },
        MethodSettings::Pacmaml { alpha, beta } => ObjectiveKind::Pacmaml { alpha, beta },
        _ => return Ok(None),
    };
    let request = ObjectiveRequest { delta: Some(DELTA), ..ObjectiveRequest::new(kind) };
    let key = Key::new(experiment.config().seed).named("bound");
    let draws = if kind.alpha().is_some() { SUBSET_DRAWS } else { 1 };
    let (mut w, mut risk, mut hyper_prior, mut confidence) = (0.0, 0.0, 0.0, 0.0);
    for draw in 0..draws {
        let tasks: Vec<Task> = experiment
            .observed()
            .iter()
            .enumerate()
            .map(|(index, task)| {
                let chosen = key.index(draw).index(index as u64).generator().subset(task.len(), SUPPORT);
                task.clone().with_adapt(chosen)
            })
            .collect::<Result<_>>()?;
        let report = objective(model, &tasks, &request, None)?;
        w += report.mean_w / draws as f64;
        risk += report.tasks.iter().map(|task| task.risk).sum::<f64>() / (draws as f64 * tasks.len() as f64);
        hyper_prior = report.xi * report.hyper_kl;
        confidence = report.confidence.unwrap_or(f64::NAN);
    }
    let risks = |observed_examples: usize, beta: f64, rule: TargetTemperature| -> Result<(f64, f64)> {
        let settings = GapSettings {
            target_examples: SUPPORT,
            observed_examples,
            beta,
            rule,
            draws: RISK_GROUPS,
            tasks_per_draw: RISK_TASKS,
            fresh_examples: FRESH_EXAMPLES,
            key: Key::new(0).named("sinusoid study"),
        };
        // A point as hyper-posterior: the draws differ by their tasks only, which all models share.
        let centre = model.parameters().values();
        let pairs = risk_pairs(&Sinusoid, model, centre, 0.0, &settings, "hyper-posterior")?;
        let mean = |value: fn(&pacmeta_bounds::RiskPair) -> f64| {
            pairs.iter().map(value).sum::<f64>() / pairs.len() as f64
        };
        Ok((mean(|pair| pair.target), mean(|pair| pair.target - pair.observed)))
    };
    let (target_risk, gap, gap_fixed) = match kind {
        ObjectiveKind::Pacoh { beta } => {
            let (target_risk, gap) = risks(spec.examples, beta, TargetTemperature::PerExample)?;
            let (_, gap_fixed) = risks(spec.examples, beta, TargetTemperature::Fixed)?;
            (target_risk, Some(gap), Some(gap_fixed))
        }
        ObjectiveKind::Pacmaml { alpha, .. } => {
            (risks(SUPPORT, alpha, TargetTemperature::Fixed)?.0, None, None)
        }
    };
    Ok(Some(BoundTerms { w, risk, hyper_prior, confidence, gap, gap_fixed, target_risk }))
}
