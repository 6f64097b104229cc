//! The bound that goes with a run: the theorem that fits its method and its sizes, for a Gaussian around the learned prior.
//!
//! | method | sizes | theorem |
//! |---|---|---|
//! | pacmaml | S' as large as target tasks | Theorem 4 |
//! | pacoh | observed tasks as large as target tasks | Theorem 2 |
//! | pacoh | others, tasks are drawn | corollary of Theorem 3; the gap is a difference of simulated risks |
//! | pacoh | others, tasks are read | none: the gap needs fresh tasks |
//!
//! lambda is `method.lambda`, else n, the number of tasks. Temperatures that were searched for among k candidates have
//! delta/k each, a union bound. A bound that cannot be stated is no failure of the run: the reason takes its place.

use pacmeta_bounds::CorollaryGap;
use pacmeta_tensor::Key;
use serde::Serialize;

use super::{Experiment, TemperatureChoice};
use crate::bounds::{
    GapSettings, PsiSettings, SimulatedPsi, Statement, TaskFunctions, TaskPsiSettings, TheoremReport,
    TheoremRequest, bound, bound_with_simulated_psi, gap_by_risk_difference, psi_by_simulation,
    task_psi_by_simulation,
};
use crate::config::{Assumption, DataSource};
use crate::error::Result;
use crate::methods::{MethodSettings, SubsetRule};
use crate::model::Model;
use crate::task::Task;

/// Draws of priors, where there is time for them.
const MOST_DRAWS: usize = 100;
const FEWEST_DRAWS: usize = 8;
/// Multiplications that all draws of one expectation may take together, about a tenth of a second.
const EFFORT: f64 = 1e9;
/// Tasks of each draw, and fresh examples of each task, in simulations.
const SIMULATED_TASKS: usize = 20;
const FRESH_EXAMPLES: usize = 40;

/// The bound of a run, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunBound {
    /// A number.
    Stated(Box<StatedBound>),
    /// None.
    Refused {
        /// Why.
        refused: String,
    },
}

/// A bound and what a reader should know of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatedBound {
    /// The bound, term by term.
    #[serde(flatten)]
    pub report: TheoremReport,
    /// The risk, on the observed tasks, of predicting the mean of all their targets: what costs no learning.
    pub trivial_risk: f64,
    /// Whether the bound says less than that (or than the largest possible loss, where one was assumed).
    pub vacuous: bool,
    /// Sentences for the reader, the verdict first.
    pub remarks: Vec<String>,
}

impl RunBound {
    /// The bound, where there is one.
    pub fn stated(&self) -> Option<&StatedBound> {
        match self {
            Self::Stated(stated) => Some(stated),
            Self::Refused { .. } => None,
        }
    }

    /// Why there is none.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Stated(_) => None,
            Self::Refused { refused } => Some(refused),
        }
    }
}

/// What is needed of a method: its temperatures.
#[derive(Clone, Copy)]
struct Temperatures {
    beta: f64,
    alpha: Option<f64>,
}

impl Experiment {
    /// The bound of a trained model; none for methods that no theorem here is about.
    pub fn bound(&self, model: &Model, choice: &TemperatureChoice) -> Option<RunBound> {
        let settings = self.config.method_settings(choice.beta.unwrap_or(f64::NAN), choice.alpha).ok()?;
        let temperatures = match settings {
            MethodSettings::Pacoh { beta } => Temperatures { beta, alpha: None },
            MethodSettings::Pacmaml { alpha, beta } => Temperatures { beta, alpha: Some(alpha) },
            _ => return None,
        };
        if self.config.bound.assumption == Assumption::None {
            let refused = "nothing is assumed of the loss, and without that no theorem gives a number; set \
                           `bound.assumption`, e.g. to \"non-negative\" with `bound.second_moment`"
                .to_owned();
            return Some(RunBound::Refused { refused });
        }
        Some(match self.stated_bound(model, choice, temperatures) {
            Ok(bound) => bound,
            Err(error) => RunBound::Refused { refused: error.to_string() },
        })
    }

    fn stated_bound(
        &self,
        model: &Model,
        choice: &TemperatureChoice,
        temperatures: Temperatures,
    ) -> Result<RunBound> {
        let config = &self.config;
        let hyper_prior = config.method.hyper_prior.as_ref();
        let lambda = hyper_prior.and_then(|prior| prior.lambda).unwrap_or(self.observed.len() as f64);
        let sigma0_squared = hyper_prior.map_or(3.0, |prior| prior.sigma0_squared);
        let key = Key::new(config.seed).named("bound");
        let variance = config.bound.hyper_posterior_std.powi(2);
        let statement = match self.statement(model, temperatures, variance, key)? {
            Ok(statement) => statement,
            Err(refused) => return Ok(RunBound::Refused { refused }),
        };
        let candidates = choice.trials.len().max(1);
        let request = TheoremRequest {
            statement,
            beta: temperatures.beta,
            lambda,
            delta: config.bound.delta / candidates as f64,
            sigma0_squared,
            hyper_posterior_variance: variance,
            example_assumption: config.bound.assumption,
            task_assumption: None,
            draws: self.draws(model, self.observed.iter().map(Task::len)),
            key,
        };
        let tasks = self.with_training_subsets()?;
        let report = match config.bound.assumption {
            Assumption::Simulated => {
                let simulated = self.simulated_psi(model, temperatures, &request)?;
                bound_with_simulated_psi(model, &tasks, &request, &simulated)?
            }
            _ => bound(model, &tasks, &request)?,
        };
        let trivial_risk = self.trivial_risk();
        let mut remarks = vec![verdict(&report, config.bound.assumption, trivial_risk)];
        if candidates > 1 {
            remarks.push(format!(
                "The temperatures were chosen among {candidates} candidates by looking at the data, so delta = {} is shared \
                 out among them.",
                config.bound.delta
            ));
        }
        remarks.extend(report.warnings.iter().map(|warning| format!("Warning: {warning}.")));
        remarks.extend(self.size_remark(&tasks, temperatures));
        if config.method.subset.as_ref().is_some_and(|subset| subset.split == SubsetRule::Disjoint) {
            let remark = "Training judged posteriors outside S'; the bound has the risk on all of S, as Theorem 4 has it.";
            remarks.push(remark.to_owned());
        }
        let limit = match config.bound.assumption {
            Assumption::Bounded { b, .. } => b.min(trivial_risk),
            _ => trivial_risk,
        };
        let vacuous = report.total.value >= limit;
        Ok(RunBound::Stated(Box::new(StatedBound { report, trivial_risk, vacuous, remarks })))
    }

    /// The theorem, or in words why none applies.
    fn statement(
        &self,
        model: &Model,
        temperatures: Temperatures,
        variance: f64,
        key: Key,
    ) -> Result<std::result::Result<Statement, String>> {
        if let Some(alpha) = temperatures.alpha {
            return Ok(Ok(Statement::Subsampling { alpha }));
        }
        let support = self.config.data.support;
        if self.observed.iter().all(|task| task.len() == support) {
            return Ok(Ok(Statement::OneEnvironment));
        }
        let DataSource::Synthetic(data) = &self.config.data.source else {
            return Ok(Err(format!(
                "target tasks have {support} examples (`data.support`) and the observed ones others. Theorem 2 demands equal \
                 sizes, and the gap of Theorem 3 can be computed only where fresh tasks can be drawn; \
                 `pacmeta bound --theorem 3 --gap VALUE` takes a gap that you know"
            )));
        };
        if data.examples < support {
            return Ok(Err(format!(
                "target tasks have {support} examples (`data.support`), the observed ones only {} (`data.examples`); Theorem 3 is \
                 about target tasks that are smaller",
                data.examples
            )));
        }
        let settings = GapSettings {
            target_examples: support,
            observed_examples: data.examples,
            beta: temperatures.beta,
            rule: self.config.method.target_temperature.unwrap_or_default(),
            draws: self.draws(model, simulated_sizes(data.examples)),
            tasks_per_draw: SIMULATED_TASKS,
            fresh_examples: FRESH_EXAMPLES,
            key,
        };
        let difference =
            gap_by_risk_difference(&*data.environment.environment(), model, variance, &settings)?;
        Ok(Ok(Statement::Corollary {
            target_examples: support as f64,
            gap: CorollaryGap::Difference(difference),
        }))
    }

    fn simulated_psi(
        &self,
        model: &Model,
        temperatures: Temperatures,
        request: &TheoremRequest,
    ) -> Result<SimulatedPsi> {
        let data =
            self.config.data.synthetic().ok_or_else(|| {
                crate::error::Error::config("bound.assumption", "a table cannot be simulated")
            })?;
        let environment = data.environment.environment();
        let observed = Key::new(self.config.seed).named("data").named("observed");
        let functions = (0..data.tasks as u64).map(|index| observed.index(index).named("function"));
        let examples = PsiSettings {
            functions: TaskFunctions::Known(functions.collect()),
            examples: data.examples,
            beta: temperatures.beta,
            sigma0_squared: request.sigma0_squared,
            draws: self.draws(model, std::iter::repeat_n(FRESH_EXAMPLES, data.tasks)),
            fresh_examples: FRESH_EXAMPLES,
            key: request.key,
        };
        // Psi2 is about the base learner as it is on observed tasks: Q_alpha of S', or Q_beta of S.
        let (temperature, size) = match temperatures.alpha {
            Some(alpha) => {
                (alpha, self.subset_sizes(&self.observed).next().unwrap_or(self.config.data.support))
            }
            None => (temperatures.beta, data.examples),
        };
        let tasks = TaskPsiSettings {
            tasks: data.tasks,
            examples: size,
            temperature,
            lambda: request.lambda,
            sigma0_squared: request.sigma0_squared,
            draws: self.draws(model, simulated_sizes(size)),
            tasks_per_draw: SIMULATED_TASKS,
            fresh_examples: FRESH_EXAMPLES,
            key: request.key,
        };
        Ok(SimulatedPsi {
            examples: psi_by_simulation(&*environment, model, &examples)?,
            tasks: task_psi_by_simulation(&*environment, model, &tasks)?,
        })
    }

    /// Observed tasks with the S' of the training in `adapt`.
    fn with_training_subsets(&self) -> Result<Vec<Task>> {
        let members = self.members();
        let tasks = self.observed.iter().zip(members);
        tasks
            .map(|(task, member)| match member.adapt.is_empty() {
                true => Ok(task.clone()),
                false => task.clone().with_adapt(member.adapt),
            })
            .collect()
    }

    /// Draws for which tasks of these sizes leave time: networks at every example, and a factorisation a task. It depends
    /// on sizes only, so that a bound is the same on every machine.
    fn draws(&self, model: &Model, sizes: impl Iterator<Item = usize>) -> usize {
        let parameters = model.parameters().values().len() as f64;
        let cost: f64 = sizes
            .map(|size| {
                let size = size as f64;
                size * parameters + size.powi(3) / 3.0
            })
            .sum();
        ((EFFORT / cost.max(1.0)) as usize).clamp(FEWEST_DRAWS, MOST_DRAWS)
    }

    /// Mean squared distance of the observed targets from their common mean, task by task, in the units of the prior.
    fn trivial_risk(&self) -> f64 {
        let targets = || self.standardised.iter().flat_map(|task| task.targets().iter().copied());
        let mean = targets().sum::<f64>() / targets().count() as f64;
        let risk =
            |task: &Task| task.targets().iter().map(|y| (y - mean).powi(2)).sum::<f64>() / task.len() as f64;
        self.standardised.iter().map(risk).sum::<f64>() / self.standardised.len() as f64
    }

    /// Theorem 4 is about target tasks of the size of S'.
    fn size_remark(&self, tasks: &[Task], temperatures: Temperatures) -> Option<String> {
        temperatures.alpha?;
        let support = self.config.data.support;
        let sizes = || tasks.iter().filter_map(|task| task.adapt().map(<[usize]>::len));
        let (low, high) = (sizes().min()?, sizes().max()?);
        if (low, high) == (support, support) {
            return None;
        }
        let shown = if low == high { low.to_string() } else { format!("{low} to {high}") };
        Some(format!(
            "S' has {shown} examples, `data.support` is {support}: the bound is about target tasks as large as S'."
        ))
    }
}

/// The support of simulated tasks with the fresh examples.
fn simulated_sizes(support: usize) -> impl Iterator<Item = usize> {
    std::iter::repeat_n(support + FRESH_EXAMPLES, SIMULATED_TASKS)
}

/// What the number is worth, and which term is to blame.
fn verdict(report: &TheoremReport, assumption: Assumption, trivial_risk: f64) -> String {
    let total = report.total.value;
    let terms = [
        ("the empirical risk", report.terms.empirical_risk),
        ("the divergence of the posteriors", report.terms.task_kl),
        ("the divergence of the hyper-posterior", report.terms.hyper_kl),
        ("the confidence term", report.terms.confidence),
        ("Psi1", report.terms.psi1),
        ("Psi2", report.terms.psi2),
        ("the gap", report.terms.gap),
    ];
    let largest = terms.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value)).map_or("", |term| term.0);
    let brief = crate::report::brief;
    if let Assumption::Bounded { b, .. } = assumption
        && total >= b
    {
        return format!(
            "Vacuous: the largest possible loss is {}, and the bound is {}; its largest term is {largest}.",
            brief(b),
            brief(total)
        );
    }
    let trivial = format!("predicting the mean of all observed targets has risk {}", brief(trivial_risk));
    if total >= trivial_risk {
        format!("Vacuous: {trivial}, and the bound is {}; its largest term is {largest}.", brief(total))
    } else {
        format!("Not vacuous: {trivial}, and the bound is {}; its largest term is {largest}.", brief(total))
    }
}
