//! From the record of the Sinusoid study to the numbers of its figures and tables.
//!
//! Settings are chosen by cross-validation over the target tasks: those of each fold are scored with the setting that is
//! best on the other folds. A curve's points are means over models (meta-training sets times seeds); a model counts once
//! all settings of its method at its m_i are recorded, so that a study which is still going on can be looked at. Where a
//! model failed, its setting cannot be chosen.

use serde::Serialize;

use super::illustration::Illustration;
use super::model::{BoundTerms, Measured, TargetErrors};
use super::preset::Plan;
use super::spec::{ModelSpec, Setting, SinusoidOutcome, SinusoidSpec, StudyMethod, TARGET_TASKS, Variant};
use crate::error::Result;
use crate::learners::TargetTemperature;
use crate::studies::cross_validation::{Folds, choose_over_models};
use crate::studies::record::{Ending, Records};
use crate::studies::spec::Spec;
use crate::studies::summary::{Summary, mean};

/// The folds of the cross-validation.
pub const FOLDS: usize = 4;

/// A method at one m_i, its numbers chosen by cross-validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodPoint {
    /// The method.
    pub method: StudyMethod,
    /// What is kept of a temperature at target tasks, where it makes a difference.
    pub rule: TargetTemperature,
    /// m_i.
    pub examples: usize,
    /// The setting with the lowest validation error over all folds.
    pub chosen: Setting,
    /// The settings that the folds chose.
    pub per_fold: Vec<Setting>,
    /// RMSE on the tasks that chose; like all that follow, a mean over models with the standard error over meta-training sets.
    pub validation: Summary,
    /// RMSE on the held-out tasks by the last iterate.
    pub test: Summary,
    /// The paper's reading: the lowest RMSE on the test tasks during training, of the chosen setting.
    pub lowest: Summary,
    /// Log-likelihood of a query point, of the chosen setting.
    pub log_likelihood: Summary,
    /// Calibration error, of the chosen setting.
    pub calibration_error: Summary,
    /// Coverage of the 95% interval, of the chosen setting.
    pub coverage95: Summary,
    /// Models that failed, of all settings.
    pub failed: usize,
    /// Held-out RMSE by target task for each meta-training set (averaged over seeds).
    #[serde(skip)]
    pub by_set_and_task: Vec<(u64, Vec<f64>)>,
}

/// Validation error of one setting: the mean over all target tasks and models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingPoint {
    /// The setting.
    pub setting: Setting,
    /// m_i.
    pub examples: usize,
    /// RMSE by the last iterate, over models.
    pub rmse: Summary,
    /// The same with the temperature itself kept at target tasks; the same number for methods other than PACOH.
    pub rmse_fixed: Summary,
    /// The lowest RMSE during training.
    pub lowest: Summary,
}

/// The bound of a method at one m_i and beta.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundPoint {
    /// The setting; of PACMAML's, the one with the best alpha for this m_i and beta.
    pub setting: Setting,
    /// m_i.
    pub examples: usize,
    /// W.
    pub w: Summary,
    /// xi KL.
    pub hyper_prior: Summary,
    /// xi log(2/delta).
    pub confidence: Summary,
    /// The gap by difference of risks; absent for PACMAML.
    pub gap: Option<Summary>,
    /// The same, with the temperature itself kept at target tasks.
    pub gap_fixed: Option<Summary>,
    /// The sum.
    pub total: Summary,
    /// The sum with the gap at the temperature itself.
    pub total_fixed: Summary,
    /// The risk on target tasks that the sum is compared with.
    pub target_risk: Summary,
    /// By meta-training set, averaged over seeds.
    #[serde(skip)]
    pub by_set: Vec<(u64, BoundTerms)>,
}

/// The gap over the hyper-prior at one m_i and beta, at several lambda.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HyperPriorPoint {
    /// m_i.
    pub examples: usize,
    /// beta/m_i.
    pub beta_per_example: f64,
    /// lambda.
    pub lambda: f64,
    /// The gap.
    pub gap: f64,
    /// Its Monte-Carlo standard error.
    pub standard_error: f64,
    /// The number of draws that carry it.
    pub effective_draws: f64,
    /// The number of draws.
    pub draws: usize,
}

/// A target task as one model sees it.
#[derive(Debug, Clone, Copy)]
pub struct Drawn<'a> {
    /// The method.
    pub method: StudyMethod,
    /// m_i.
    pub examples: usize,
    /// The task.
    pub illustration: &'a Illustration,
}

/// A variant beside the paper's protocol.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AblationPoint {
    /// The setting.
    pub setting: Setting,
    /// What is done otherwise.
    pub variant: Variant,
    /// m_i.
    pub examples: usize,
    /// RMSE of the variant, over meta-training sets.
    pub rmse: Summary,
    /// RMSE as in the paper, on the same meta-training sets and seeds.
    pub paper: Summary,
    /// The difference, paired.
    pub difference: Summary,
}

/// The study's record, ready to be asked.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// What was to be run.
    pub plan: &'a Plan,
    records: &'a Records<SinusoidSpec>,
    folds: Folds,
}

/// Whether a model is recorded, and how it ended.
enum Known<'a> {
    Done(&'a Measured),
    Failed,
    Missing,
}

impl<'a> Analysis<'a> {
    /// Looks at a record through a plan.
    ///
    /// # Errors
    /// Never in practice: the folds fit the target tasks.
    pub fn new(plan: &'a Plan, records: &'a Records<SinusoidSpec>) -> Result<Self> {
        Ok(Self { plan, records, folds: Folds::in_order(TARGET_TASKS, FOLDS)? })
    }

    fn look(&self, spec: ModelSpec) -> Known<'a> {
        let Ok(hash) = SinusoidSpec::Model(spec).hash() else { return Known::Missing };
        match self.records.ending(&hash) {
            Some(Ending::Done(SinusoidOutcome::Model(measured))) => Known::Done(measured),
            Some(Ending::Failed(_)) => Known::Failed,
            _ => Known::Missing,
        }
    }

    /// What is known about a model, if it was trained.
    pub fn measured(&self, spec: ModelSpec) -> Option<&'a Measured> {
        match self.look(spec) {
            Known::Done(measured) => Some(measured),
            _ => None,
        }
    }

    /// Recorded pieces of the plan, those that failed, all.
    pub fn counts(&self) -> (usize, usize, usize) {
        let (mut done, mut failed, mut total) = (0, 0, 0);
        for spec in self.plan.specs() {
            total += 1;
            match spec.hash().ok().and_then(|hash| self.records.ending(&hash)) {
                Some(Ending::Done(_)) => done += 1,
                Some(Ending::Failed(_)) => failed += 1,
                None => {}
            }
        }
        (done, failed, total)
    }

    /// The failures, in words, each with the piece it belongs to.
    pub fn failures(&self) -> Vec<(String, String)> {
        let specs = self.plan.specs().into_iter();
        specs
            .filter_map(|spec| match self.records.ending(&spec.hash().ok()?) {
                Some(Ending::Failed(message)) => Some((spec.label(), message.clone())),
                _ => None,
            })
            .collect()
    }

    /// Seconds by the clock of the recorded pieces of the plan, added up.
    pub fn seconds(&self) -> f64 {
        let hashes = self.plan.specs().into_iter().filter_map(|spec| spec.hash().ok());
        hashes.filter_map(|hash| self.records.seconds(&hash)).sum()
    }

    /// The (meta-training set, seed) pairs for which every one of these settings is recorded at m_i.
    fn complete(&self, settings: &[Setting], examples: usize) -> Vec<(u64, u64)> {
        let pairs =
            (0..self.plan.data_sets).flat_map(|set| (0..self.plan.seeds).map(move |seed| (set, seed)));
        pairs
            .filter(|&(set, seed)| {
                settings.iter().all(|setting| {
                    !matches!(self.look(self.plan.model(*setting, examples, set, seed)), Known::Missing)
                })
            })
            .collect()
    }

    fn errors(&self, spec: ModelSpec, rule: TargetTemperature) -> Option<&'a TargetErrors> {
        let measured = self.measured(spec)?;
        Some(match (rule, &measured.fixed) {
            (TargetTemperature::Fixed, Some(fixed)) => fixed,
            _ => &measured.per_example,
        })
    }

    /// A method at m_i; none as long as no model of it is complete, or if every setting failed somewhere.
    pub fn method(
        &self,
        method: StudyMethod,
        examples: usize,
        rule: TargetTemperature,
    ) -> Option<MethodPoint> {
        let settings = self.plan.settings(method);
        if method == StudyMethod::PlainGp {
            return self.plain_gp(examples);
        }
        let models = self.complete(&settings, examples);
        let spec =
            |setting: Setting, &(set, seed): &(u64, u64)| self.plan.model(setting, examples, set, seed);
        let errors: Vec<Vec<Vec<f64>>> = settings
            .iter()
            .map(|setting| {
                let of_model = |model| {
                    let errors = self.errors(spec(*setting, model), rule);
                    errors.map_or_else(|| vec![f64::NAN; TARGET_TASKS], |errors| errors.rmse.clone())
                };
                models.iter().map(of_model).collect()
            })
            .collect();
        let failed = errors.iter().flatten().filter(|errors| errors[0].is_nan()).count();
        let validated = choose_over_models(&errors, &self.folds).ok()?;
        let chosen = settings[validated.choices.chosen];
        let over_models = |value: fn(&TargetErrors) -> f64| {
            let of_model = |model| self.errors(spec(chosen, model), rule).map_or(f64::NAN, value);
            over_sets(&models, &models.iter().map(of_model).collect::<Vec<_>>())
        };
        let row_means = |rows: &[Vec<f64>]| -> Vec<f64> { rows.iter().map(|row| mean(row)).collect() };
        let test = over_sets(&models, &row_means(&validated.held_out));
        Some(MethodPoint {
            method,
            rule,
            examples,
            chosen,
            per_fold: validated.choices.per_fold.iter().map(|fold| settings[fold.chosen]).collect(),
            validation: over_sets(&models, &validated.validation),
            test,
            lowest: over_models(TargetErrors::lowest),
            log_likelihood: over_models(|errors| errors.log_likelihood),
            calibration_error: over_models(|errors| errors.calibration_error),
            coverage95: over_models(|errors| errors.coverage95),
            failed,
            by_set_and_task: average_over_seeds(&models, &validated.held_out),
        })
    }

    /// The plain GP learns nothing from observed tasks: the same point at every m_i, its error bar over target tasks.
    fn plain_gp(&self, examples: usize) -> Option<MethodPoint> {
        let errors = &self.measured(self.plan.plain_gp())?.per_example;
        let test = Summary::of(&errors.rmse);
        let single = |value: f64| Summary::of(&[value]);
        Some(MethodPoint {
            method: StudyMethod::PlainGp,
            rule: TargetTemperature::PerExample,
            examples,
            chosen: Setting::PlainGp,
            per_fold: vec![Setting::PlainGp; FOLDS],
            validation: test,
            test,
            lowest: test,
            log_likelihood: single(errors.log_likelihood),
            calibration_error: single(errors.calibration_error),
            coverage95: single(errors.coverage95),
            failed: 0,
            by_set_and_task: (0..self.plan.data_sets).map(|set| (set, errors.rmse.clone())).collect(),
        })
    }

    /// A method at every m_i where it is known.
    pub fn curve(&self, method: StudyMethod, rule: TargetTemperature) -> Vec<MethodPoint> {
        self.plan.examples.iter().filter_map(|examples| self.method(method, *examples, rule)).collect()
    }

    /// A setting at m_i, over the models that are known.
    pub fn setting(&self, setting: Setting, examples: usize) -> SettingPoint {
        let models = self.complete(&[setting], examples);
        let over = |rule: TargetTemperature, value: fn(&TargetErrors) -> f64| {
            let of_model = |&(set, seed): &(u64, u64)| {
                self.errors(self.plan.model(setting, examples, set, seed), rule).map_or(f64::NAN, value)
            };
            over_sets(&models, &models.iter().map(of_model).collect::<Vec<_>>())
        };
        SettingPoint {
            setting,
            examples,
            rmse: over(TargetTemperature::PerExample, TargetErrors::mean_rmse),
            rmse_fixed: over(TargetTemperature::Fixed, TargetErrors::mean_rmse),
            lowest: over(TargetTemperature::PerExample, TargetErrors::lowest),
        }
    }

    /// RMSE of a setting by target task for each meta-training set (averaged over seeds), over the models that are known.
    pub fn setting_by_set_and_task(&self, setting: Setting, examples: usize) -> Vec<(u64, Vec<f64>)> {
        let models = self.complete(&[setting], examples);
        let rmse = |&(set, seed): &(u64, u64)| {
            let errors =
                self.errors(self.plan.model(setting, examples, set, seed), TargetTemperature::PerExample);
            errors.map_or_else(|| vec![f64::NAN; TARGET_TASKS], |errors| errors.rmse.clone())
        };
        average_over_seeds(&models, &models.iter().map(rmse).collect::<Vec<_>>())
    }

    /// The setting of a method with the lowest mean error at m_i, among those that `allow` lets through.
    pub fn best(
        &self,
        method: StudyMethod,
        examples: usize,
        allow: impl Fn(&Setting) -> bool,
    ) -> Option<Setting> {
        let points = self.plan.settings(method).into_iter().filter(allow).map(|setting| {
            let point = self.setting(setting, examples);
            (setting, point.rmse.mean.filter(|_| point.rmse.failed == 0))
        });
        let known = points.filter_map(|(setting, mean)| Some((setting, mean?)));
        known.min_by(|left, right| left.1.total_cmp(&right.1)).map(|(setting, _)| setting)
    }

    /// The bound of PACOH or PACMAML at m_i and beta; PACMAML's alpha is the best for them, as in the paper.
    pub fn bound(&self, method: StudyMethod, examples: usize, beta_per_example: f64) -> Option<BoundPoint> {
        let of_beta = |setting: &Setting| setting.beta_per_example() == Some(beta_per_example);
        let setting = self.best(method, examples, of_beta)?;
        let models = self.complete(&[setting], examples);
        let known: Vec<((u64, u64), BoundTerms)> = models
            .iter()
            .filter_map(|&(set, seed)| {
                let measured = self.measured(self.plan.model(setting, examples, set, seed))?;
                Some(((set, seed), measured.bound?))
            })
            .collect();
        let trained: Vec<(u64, u64)> = known.iter().map(|(model, _)| *model).collect();
        let over = |value: fn(&BoundTerms) -> f64| {
            over_sets(&trained, &known.iter().map(|(_, terms)| value(terms)).collect::<Vec<_>>())
        };
        let has_gap = known.iter().all(|(_, terms)| terms.gap.is_some());
        let gap = |value: fn(&BoundTerms) -> Option<f64>| {
            let values: Vec<f64> = known.iter().filter_map(|(_, terms)| value(terms)).collect();
            has_gap.then(|| over_sets(&trained, &values))
        };
        (!known.is_empty()).then(|| BoundPoint {
            setting,
            examples,
            w: over(|terms| terms.w),
            hyper_prior: over(|terms| terms.hyper_prior),
            confidence: over(|terms| terms.confidence),
            gap: gap(|terms| terms.gap),
            gap_fixed: gap(|terms| terms.gap_fixed),
            total: over(BoundTerms::total),
            total_fixed: over(BoundTerms::total_fixed),
            target_risk: over(|terms| terms.target_risk),
            by_set: terms_by_set(&known),
        })
    }

    /// The gap over the hyper-prior, for m_i other than m.
    ///
    /// # Errors
    /// When lambda is not positive.
    pub fn hyper_prior(
        &self,
        examples: usize,
        beta_per_example: f64,
        lambda: f64,
    ) -> Result<Option<HyperPriorPoint>> {
        let draws = self.plan.hyper_prior_draws;
        let hash = SinusoidSpec::HyperPrior { examples, beta_per_example, draws }.hash()?;
        let Some(Ending::Done(SinusoidOutcome::HyperPrior(risks))) = self.records.ending(&hash) else {
            return Ok(None);
        };
        let gap = risks.at(lambda)?;
        Ok(Some(HyperPriorPoint {
            examples,
            beta_per_example,
            lambda,
            gap: gap.value().value,
            standard_error: gap.value().standard_error.unwrap_or(f64::NAN),
            effective_draws: gap.effective_draws().unwrap_or(f64::NAN),
            draws,
        }))
    }

    /// The drawn target tasks of PACMAML and PACOH, of the chosen settings at the smallest and the largest m_i.
    pub fn illustrations(&self) -> Vec<Drawn<'a>> {
        let ends = [self.plan.examples.first(), self.plan.examples.last()];
        let mut drawn = Vec::new();
        for method in [StudyMethod::Pacmaml, StudyMethod::Pacoh] {
            for &examples in ends.into_iter().flatten() {
                let point = self.method(method, examples, TargetTemperature::PerExample);
                let spec = point.map(|point| self.plan.model(point.chosen, examples, 0, 0));
                let Some(measured) = spec.and_then(|spec| self.measured(spec)) else { continue };
                let tasks = measured.illustrations.iter();
                drawn.extend(tasks.map(|illustration| Drawn { method, examples, illustration }));
            }
        }
        drawn
    }

    /// The ablations that are known.
    pub fn ablations(&self) -> Vec<AblationPoint> {
        let mut points = Vec::new();
        for (variant, setting) in self.plan.ablations() {
            for examples in self.plan.ablation_examples() {
                let pairs: Vec<(f64, f64)> = (0..self.plan.ablation_sets)
                    .filter_map(|set| {
                        let paper = self.plan.model(setting, examples, set, 0);
                        let other = self.plan.ablation(variant, setting, examples, set);
                        let rmse = |spec| Some(self.measured(spec)?.per_example.mean_rmse());
                        Some((rmse(other)?, rmse(paper)?))
                    })
                    .collect();
                let over =
                    |value: fn(&(f64, f64)) -> f64| Summary::of(&pairs.iter().map(value).collect::<Vec<_>>());
                if !pairs.is_empty() {
                    points.push(AblationPoint {
                        setting,
                        variant,
                        examples,
                        rmse: over(|pair| pair.0),
                        paper: over(|pair| pair.1),
                        difference: over(|pair| pair.0 - pair.1),
                    });
                }
            }
        }
        points
    }
}

/// The mean over models with the standard error over meta-training sets.
fn over_sets(models: &[(u64, u64)], values: &[f64]) -> Summary {
    let sets: Vec<u64> = models.iter().map(|(set, _)| *set).collect();
    Summary::of_groups(&sets, values)
}

/// Rows of the same meta-training set, averaged.
fn average_over_seeds(models: &[(u64, u64)], errors: &[Vec<f64>]) -> Vec<(u64, Vec<f64>)> {
    let mut sets: Vec<u64> = models.iter().map(|(set, _)| *set).collect();
    sets.dedup();
    let rows =
        |set: u64| models.iter().zip(errors).filter(move |((own, _), _)| *own == set).map(|(_, row)| row);
    sets.into_iter()
        .map(|set| {
            let count = rows(set).count() as f64;
            let mean = |task: usize| rows(set).map(|row| row[task]).sum::<f64>() / count;
            (set, (0..TARGET_TASKS).map(mean).collect())
        })
        .collect()
}

fn terms_by_set(known: &[((u64, u64), BoundTerms)]) -> Vec<(u64, BoundTerms)> {
    let mut sets: Vec<u64> = known.iter().map(|((set, _), _)| *set).collect();
    sets.dedup();
    sets.into_iter()
        .map(|set| {
            let own: Vec<&BoundTerms> =
                known.iter().filter(|((other, _), _)| *other == set).map(|(_, terms)| terms).collect();
            let mean = |value: fn(&BoundTerms) -> f64| {
                own.iter().map(|terms| value(terms)).sum::<f64>() / own.len() as f64
            };
            let optional = |value: fn(&BoundTerms) -> Option<f64>| {
                let sum: Option<f64> = own.iter().map(|terms| value(terms)).sum();
                sum.map(|sum| sum / own.len() as f64)
            };
            let terms = BoundTerms {
                w: mean(|terms| terms.w),
                risk: mean(|terms| terms.risk),
                hyper_prior: mean(|terms| terms.hyper_prior),
                confidence: mean(|terms| terms.confidence),
                gap: optional(|terms| terms.gap),
                gap_fixed: optional(|terms| terms.gap_fixed),
                target_risk: mean(|terms| terms.target_risk),
            };
            (set, terms)
        })
        .collect()
}
