//! Bounds that hold with probability 1 - delta, for the hyper-posterior N(theta0, s^2 I) around a learned prior theta0.
//!
//! ```text
//! R(calQ, T) <= mean_i E L^(Q_i, S_i) + 1/(n beta) sum_i E KL(Q_i || P) + xi KL(calQ || calP) + xi log(2/delta)
//!               + mean_i (m_i/beta) Psi1(beta/m_i) + (n/lambda) Psi2(lambda/n) [+ gap],   xi = 1/lambda + 1/(n beta)
//! ```
//!
//! Expectations over P ~ calQ are Monte-Carlo means over keyed draws of theta, with standard errors, so the result is an
//! estimate of the bound; KL(calQ || calP) against N(0, sigma0^2 I) is a closed form. For each theta the Gibbs
//! posterior's risk and divergence are closed forms too. A Dirac (s^2 = 0) is refused: its divergence is infinite.
//!
//! **What the theorems demand.** The observed tasks are independent draws from one environment, a task's examples
//! independent draws from its distribution. Theorem 2: target tasks come from the same environment, sizes included.
//! Theorem 3 and its corollary: they may be smaller, and a gap pays for it. Theorem 4: S'_i has the size of target tasks
//! (in distribution) and was chosen without looking at the examples' values. beta, lambda, delta, sigma0^2 and the
//! assumptions were fixed before the data were seen; choosing among k values of beta by looking at the result costs
//! delta/k. theta0 and s^2 may depend on the data. The assumptions are about the loss in the units used, for every
//! hypothesis: standardised units where the model has a standardisation. Functions of a Gaussian process are unbounded, so an
//! assumption means targets in an interval and predictions clipped to it, for which the number holds: clipping raises neither
//! risk nor divergence. A standardisation that was computed from the observed tasks
//! is itself a choice made after seeing data, which the theorems do not cover; the list of assumptions says so.

use pacmeta_bounds::{
    AveragedPsi, Bound, Certainty, CorollaryGap, EnvironmentSizes, Estimate, ExamplePsi, HyperPosterior,
    HyperPriorGap, JointPsi, MetaSettings, Psi, SubsampledTask, TaskTerms, corollary, theorem_2, theorem_3,
    theorem_4,
};
use pacmeta_tensor::Key;
use rayon::prelude::*;
use serde::Serialize;

use super::{ObjectiveKind, gaussian_process, option_error, positive_option};
use crate::config::Assumption;
use crate::error::Result;
use crate::methods::{Batch, Member};
use crate::model::Model;
use crate::task::Task;

/// Which theorem, with what it needs of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statement {
    /// Theorem 2: the Gibbs posterior Q_beta of all of S_i; target tasks like the observed ones.
    OneEnvironment,
    /// Theorem 3: the same learner; target tasks are smaller.
    TwoEnvironments {
        /// The mean number of examples of target tasks.
        target_examples: f64,
        /// The gap over the hyper-prior.
        gap: HyperPriorGap,
    },
    /// The corollary of Theorem 3.
    Corollary {
        /// The mean number of examples of target tasks.
        target_examples: f64,
        /// The gap as a difference of risks, or the smaller of both.
        gap: CorollaryGap,
    },
    /// Theorem 4: the Gibbs posterior Q_alpha of S'_i, which is the task's `adapt`.
    Subsampling {
        /// The base learner's temperature.
        alpha: f64,
    },
}

impl Statement {
    /// The draws that carry the weight of the gap over the hyper-prior, where that was simulated.
    pub fn gap_effective_draws(&self) -> Option<f64> {
        match self {
            Self::TwoEnvironments { gap, .. }
            | Self::Corollary { gap: CorollaryGap::Smaller { hyper_prior: gap, .. }, .. } => {
                gap.effective_draws()
            }
            _ => None,
        }
    }
}

/// A bound to be computed.
#[derive(Debug, Clone, PartialEq)]
pub struct TheoremRequest {
    /// The theorem.
    pub statement: Statement,
    /// The task level's temperature.
    pub beta: f64,
    /// The environment level's temperature.
    pub lambda: f64,
    /// The probability of failure.
    pub delta: f64,
    /// The variance of the hyper-prior N(0, sigma0^2 I).
    pub sigma0_squared: f64,
    /// s^2, the variance of the hyper-posterior N(theta0, s^2 I).
    pub hyper_posterior_variance: f64,
    /// What is known of the loss of one example (Psi1).
    pub example_assumption: Assumption,
    /// What is known of the true risk of the base learner on one task (Psi2); the same as of examples if not given.
    pub task_assumption: Option<Assumption>,
    /// Draws of theta, at least 2.
    pub draws: usize,
    /// The key of the draws.
    pub key: Key,
}

impl TheoremRequest {
    fn check(&self) -> Result<()> {
        positive_option("--beta", self.beta)?;
        positive_option("--lambda", self.lambda)?;
        positive_option("--sigma0-squared", self.sigma0_squared)?;
        super::check_delta(self.delta)?;
        if !(self.hyper_posterior_variance.is_finite() && self.hyper_posterior_variance >= 0.0) {
            let message = format!("is {}, expected a number above 0", self.hyper_posterior_variance);
            return Err(option_error("--hyper-posterior-std", message));
        }
        if self.draws < 2 {
            let message = format!("is {}, expected at least 2: one draw has no standard error", self.draws);
            return Err(option_error("--draws", message));
        }
        match self.statement {
            Statement::OneEnvironment => Ok(()),
            Statement::TwoEnvironments { target_examples, .. }
            | Statement::Corollary { target_examples, .. } => {
                positive_option("--target-examples", target_examples)
            }
            Statement::Subsampling { alpha } => positive_option("--alpha", alpha),
        }
    }

    fn kind(&self) -> ObjectiveKind {
        match self.statement {
            Statement::Subsampling { alpha } => ObjectiveKind::Pacmaml { alpha, beta: self.beta },
            _ => ObjectiveKind::Pacoh { beta: self.beta },
        }
    }

    fn settings(&self, simulated: Option<&SimulatedPsi>) -> Result<MetaSettings> {
        if let Some(SimulatedPsi { examples, tasks }) = simulated {
            return Ok(MetaSettings {
                beta: self.beta,
                lambda: self.lambda,
                delta: self.delta,
                example_psi: ExamplePsi::Joint(*examples),
                task_psi: Psi::Averaged(*tasks),
            });
        }
        let psi = |assumption: Assumption, option| {
            let is_possible = assumption != Assumption::NonNegative { second_moment: 0.0 };
            assumption.psi().filter(|_| is_possible).ok_or_else(|| {
                if assumption == Assumption::Simulated {
                    return option_error(option, "the cumulant terms were not simulated; they need an environment");
                }
                if let Assumption::NonNegative { .. } = assumption {
                    let message = "says that the second moment of the loss is 0, and with it every loss; give a number above 0";
                    return option_error(option, message);
                }
                let message = "is \"none\": a bound needs an assumption about the loss (bounded, sub-gaussian, \
                               sub-gamma or non-negative); without one, ask for the objective";
                option_error(option, message)
            })
        };
        let task = self.task_assumption.unwrap_or(self.example_assumption);
        Ok(MetaSettings {
            beta: self.beta,
            lambda: self.lambda,
            delta: self.delta,
            example_psi: psi(self.example_assumption, "--assume")?.into(),
            task_psi: psi(task, "--assume-tasks")?,
        })
    }
}

/// The cumulant terms of a bound by simulation, in place of assumptions: see [`psi`](super::psi).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedPsi {
    /// Psi1, of all examples of all tasks together.
    pub examples: JointPsi,
    /// Psi2, averaged over the hyper-prior.
    pub tasks: AveragedPsi,
}

impl SimulatedPsi {
    /// The draws that carry the weight, the fewer of both.
    pub fn effective_draws(&self) -> Option<f64> {
        match (self.examples.effective_draws(), self.tasks.effective_draws()) {
            (Some(examples), Some(tasks)) => Some(examples.min(tasks)),
            (draws, None) | (None, draws) => draws,
        }
    }
}

/// A number with its Monte-Carlo standard error, where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Term {
    /// The number.
    pub value: f64,
    /// Its standard error; absent if the number is exact or a closed form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
}

impl From<Estimate> for Term {
    fn from(Estimate { value, standard_error }: Estimate) -> Self {
        Self { value, standard_error }
    }
}

/// The terms of a bound by name; their sum is the total.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)] // the names are those of `pacmeta_bounds::Bound`
pub struct Terms {
    pub empirical_risk: Term,
    pub task_kl: Term,
    pub hyper_kl: Term,
    pub confidence: Term,
    pub psi1: Term,
    pub psi2: Term,
    pub gap: Term,
}

impl Terms {
    /// The terms with names for a reader, in the order of the formula.
    pub fn named(&self) -> [(&'static str, Term); 7] {
        [
            ("empirical risk, mean over tasks", self.empirical_risk),
            ("KL(posterior, prior)/beta, mean over tasks", self.task_kl),
            ("xi KL(hyper-posterior, hyper-prior)", self.hyper_kl),
            ("xi log(events/delta)", self.confidence),
            ("cumulants of examples, Psi1", self.psi1),
            ("cumulants of tasks, Psi2", self.psi2),
            ("gap between the environments", self.gap),
        ]
    }
}

/// What was measured on one observed task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TheoremTask {
    /// The task's name.
    pub name: String,
    /// m_i.
    pub examples: usize,
    /// m'_i (Theorem 4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapt_examples: Option<usize>,
    /// E L^(Q_i, S_i).
    pub risk: Term,
    /// E KL(Q_i || P).
    pub kl: Term,
}

/// A bound with everything needed to read it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TheoremReport {
    /// Which statement.
    pub theorem: String,
    /// The bound on the risk of a new task, averaged over priors from the hyper-posterior.
    pub total: Term,
    /// `guaranteed`, or `estimated` if a term came from Monte Carlo.
    pub certainty: &'static str,
    /// The terms.
    pub terms: Terms,
    /// 1/lambda + 1/(n beta).
    pub xi: f64,
    /// KL(calQ || calP), before its factor xi.
    pub hyper_divergence: f64,
    /// The tasks, in the order given.
    pub tasks: Vec<TheoremTask>,
    /// The settings that must not depend on the data.
    pub settings: TheoremSettings,
    /// The draws that carry the weight of a simulated gap over the hyper-prior; a handful makes it worthless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_effective_draws: Option<f64>,
    /// The draws that carry the weight of simulated cumulant terms, the fewer of Psi1's and Psi2's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi_effective_draws: Option<f64>,
    /// What the number rests on, in words.
    pub assumed: Vec<String>,
    /// Where what was measured speaks against an assumption, in words. Not a proof, so the number is given all the same.
    pub warnings: Vec<String>,
    /// The bound itself.
    #[serde(skip)]
    pub bound: Bound,
}

/// The numbers of a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)] // the names are those of `TheoremRequest`
pub struct TheoremSettings {
    pub beta: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    pub lambda: f64,
    pub delta: f64,
    pub sigma0_squared: f64,
    pub hyper_posterior_variance: f64,
    pub draws: usize,
}

/// Computes a bound on tasks (in original units).
///
/// # Errors
/// When the prior is not a Gaussian process, an option is out of range, the hyper-posterior is a Dirac, there is no
/// task, a task lacks the S' that Theorem 4 needs, a covariance matrix is not positive definite, the assumption contradicts what
/// was measured, or the theorem refuses.
pub fn bound(model: &Model, tasks: &[Task], request: &TheoremRequest) -> Result<TheoremReport> {
    bound_with(model, tasks, request, None)
}

/// The same with simulated cumulant terms, for an `example_assumption` of [`Assumption::Simulated`]. An estimate: no
/// guarantee.
///
/// # Errors
/// As for [`bound`]; Theorem 3 refuses a Psi2 that is an average over priors.
pub fn bound_with_simulated_psi(
    model: &Model,
    tasks: &[Task],
    request: &TheoremRequest,
    simulated: &SimulatedPsi,
) -> Result<TheoremReport> {
    bound_with(model, tasks, request, Some(simulated))
}

fn bound_with(
    model: &Model,
    tasks: &[Task],
    request: &TheoremRequest,
    simulated: Option<&SimulatedPsi>,
) -> Result<TheoremReport> {
    request.check()?;
    let settings = request.settings(simulated)?;
    gaussian_process(model.spec())?;
    super::check_norm(model)?;
    let centre = model.parameters().values();
    let hyper_posterior = match request.hyper_posterior_variance {
        0.0 => HyperPosterior::Dirac { location: centre },
        variance => HyperPosterior::Gaussian { location: centre, variance },
    };
    let hyper_kl = hyper_posterior.kl(request.sigma0_squared)?;
    let tasks = super::standardised(model, tasks)?;
    let members = request.kind().members(&tasks)?;
    let terms = measured(model, &tasks, &members, request)?;
    refuse_contradiction(request.example_assumption, &tasks, &terms)?;
    let sizes = |target| EnvironmentSizes {
        observed: tasks.iter().map(|task| task.len() as f64).sum::<f64>() / tasks.len() as f64,
        target,
    };
    let bound = match &request.statement {
        Statement::OneEnvironment => theorem_2(&settings, &terms, hyper_kl)?,
        Statement::TwoEnvironments { target_examples, gap } => {
            theorem_3(&settings, &terms, hyper_kl, sizes(*target_examples), gap)?
        }
        Statement::Corollary { target_examples, gap } => {
            corollary(&settings, &terms, hyper_kl, sizes(*target_examples), gap)?
        }
        Statement::Subsampling { .. } => {
            let subsampled: Vec<_> = terms
                .iter()
                .zip(&members)
                .map(|(terms, member)| SubsampledTask { terms: *terms, adapt_size: member.adapt.len() })
                .collect();
            theorem_4(&settings, &subsampled, hyper_kl)?
        }
    };
    let warnings = doubts(request, &tasks, &terms);
    let per_task = tasks
        .iter()
        .zip(&terms)
        .zip(&members)
        .map(|((task, terms), member)| TheoremTask {
            name: task.name().to_owned(),
            examples: task.len(),
            adapt_examples: (!member.adapt.is_empty()).then_some(member.adapt.len()),
            risk: terms.empirical_risk.into(),
            kl: terms.kl.into(),
        })
        .collect();
    Ok(TheoremReport { warnings, ..report(model, request, simulated, bound, hyper_kl, per_task) })
}

/// Risk and divergence of every task, averaged over draws of theta.
fn measured(
    model: &Model,
    tasks: &[Task],
    members: &[Member],
    request: &TheoremRequest,
) -> Result<Vec<TaskTerms>> {
    let spec = gaussian_process(model.spec())?;
    let key = request.key.named("hyper-posterior");
    let batch = Batch { tasks, members };
    let draws: Vec<Vec<(f64, f64)>> = (0..request.draws as u64)
        .into_par_iter()
        .map_init(
            || request.kind().method(spec),
            |method, draw| {
                let centre = model.parameters().values();
                let theta = super::gaussian_draw(centre, request.hyper_posterior_variance, key.index(draw));
                let values = method.tasks(&theta, &batch)?;
                // A divergence is never negative; its closed form can be, by rounding.
                Ok(values.iter().map(|task| (task.risk, task.kl.max(0.0))).collect())
            },
        )
        .collect::<Result<_>>()?;
    tasks
        .iter()
        .enumerate()
        .map(|(index, task)| {
            for draw in &draws {
                let (risk, kl) = draw[index];
                super::check_finite(task, &[risk, kl])?;
            }
            let column = |of: fn(&(f64, f64)) -> f64| -> Result<Estimate> {
                Ok(Estimate::mean_of(&draws.iter().map(|draw| of(&draw[index])).collect::<Vec<_>>())?)
            };
            Ok(TaskTerms { empirical_risk: column(|d| d.0)?, kl: column(|d| d.1)?, size: task.len() })
        })
        .collect()
}

/// What was measured cannot confirm an assumption, but it can contradict one: a mean of losses lies between their bounds.
fn refuse_contradiction(assumption: Assumption, tasks: &[Task], terms: &[TaskTerms]) -> Result<()> {
    let Assumption::Bounded { a, b } = assumption else { return Ok(()) };
    let risks = terms.iter().map(|terms| terms.empirical_risk.value);
    match tasks.iter().zip(risks).find(|(_, risk)| !(a..=b).contains(risk)) {
        None => Ok(()),
        Some((task, risk)) => Err(option_error(
            "--assume",
            format!(
                "says that every loss lies between {a} and {b}, but the mean loss on task `{}` is {risk}; give bounds that hold \
                 for every example and hypothesis, in the units of the prior",
                task.name()
            ),
        )),
    }
}

/// Second moments that the data speak against: E[l^2] >= (E l)^2, so a mean loss beyond the root of the stated moment is hard to
/// reconcile with it. A mean of a few losses may lie there by chance, so that this refutes nothing. Variance factors have no
/// such check: they say nothing of a mean.
fn doubts(request: &TheoremRequest, tasks: &[Task], terms: &[TaskTerms]) -> Vec<String> {
    let mut warnings = Vec::new();
    let risks = || terms.iter().map(|terms| terms.empirical_risk.value);
    let worst = tasks.iter().zip(risks()).max_by(|a, b| a.1.total_cmp(&b.1));
    if let (Assumption::NonNegative { second_moment }, Some((task, risk))) =
        (request.example_assumption, worst)
        && risk * risk > second_moment
    {
        let above = risks().filter(|risk| risk * risk > second_moment).count();
        warnings.push(format!(
            "the assumption says that the second moment of the loss is at most {second_moment}, but the mean loss on task `{}` is \
             {risk:.3e}, whose square is {:.3e}, and a second moment is never below the square of the mean; so it is for {above} of \
             {} tasks. Unless that is chance, the assumption is wrong and the number bounds nothing; assume more",
            task.name(),
            risk * risk,
            tasks.len()
        ));
    }
    let mean_square = risks().map(|risk| risk * risk).sum::<f64>() / tasks.len() as f64;
    if let Some(Assumption::NonNegative { second_moment }) = request.task_assumption
        && mean_square > second_moment
    {
        warnings.push(format!(
            "the assumption about tasks says that the second moment of their risks is at most {second_moment}, but the mean square \
             of the measured risks is {mean_square:.3e}. Unless that is chance, the assumption is wrong and the number bounds \
             nothing; assume more"
        ));
    }
    warnings
}

fn report(
    model: &Model,
    request: &TheoremRequest,
    simulated: Option<&SimulatedPsi>,
    bound: Bound,
    hyper_divergence: f64,
    tasks: Vec<TheoremTask>,
) -> TheoremReport {
    TheoremReport {
        theorem: bound.theorem.to_string(),
        total: bound.total().into(),
        certainty: match bound.certainty() {
            Certainty::Guaranteed => "guaranteed",
            Certainty::Estimated { .. } => "estimated",
        },
        terms: Terms {
            empirical_risk: bound.empirical_risk.into(),
            task_kl: bound.task_kl.into(),
            hyper_kl: bound.hyper_kl.into(),
            confidence: bound.confidence.into(),
            psi1: bound.psi1.into(),
            psi2: bound.psi2.into(),
            gap: bound.gap.into(),
        },
        xi: bound.xi,
        hyper_divergence,
        tasks,
        settings: TheoremSettings {
            beta: request.beta,
            alpha: request.kind().alpha(),
            lambda: request.lambda,
            delta: request.delta,
            sigma0_squared: request.sigma0_squared,
            hyper_posterior_variance: request.hyper_posterior_variance,
            draws: request.draws,
        },
        gap_effective_draws: request.statement.gap_effective_draws(),
        psi_effective_draws: simulated.and_then(SimulatedPsi::effective_draws),
        assumed: super::assumed::in_words(model, request, simulated),
        warnings: Vec::new(),
        bound,
    }
}
