//! The theorems.
//!
//! Each holds with probability at least 1 - delta over the observed tasks and examples, for all posteriors and
//! hyper-posteriors at once. What has to be fixed before the data are seen is in the settings: beta, lambda, delta and
//! the assumptions. What may depend on the data is in the arguments. Risks and divergences of the meta-learning
//! theorems are averages over P ~ calQ, the hyper-posterior.
//!
//! Two events carry Theorems 2 to 4: the empirical risks of the observed tasks are near their true risks (temperature
//! n beta), and the mean true risk of the observed tasks is near that of the environment (temperature lambda). Each may
//! fail with probability delta/2, hence log(2/delta).

use crate::{
    bound::{Bound, Theorem},
    error::{BoundError, non_negative, positive},
    estimate::Estimate,
    gap::{CorollaryGap, HyperPriorGap},
    psi::{ExamplePsi, Psi, Reach},
};

/// What is fixed in advance for Theorem 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SupervisedSettings {
    /// Temperature.
    pub beta: f64,
    /// Probability of failure.
    pub delta: f64,
    /// Assumption about the loss of one example.
    pub psi: Psi,
}

/// What is fixed in advance for the meta-learning theorems.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaSettings {
    /// Temperature of the task level.
    pub beta: f64,
    /// Temperature of the environment level.
    pub lambda: f64,
    /// Probability of failure.
    pub delta: f64,
    /// Psi1: assumption about the loss of one example.
    pub example_psi: ExamplePsi,
    /// Psi2: assumption about the true risk of the base learner on one task.
    pub task_psi: Psi,
}

/// What was measured on one observed task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskTerms {
    /// Empirical Gibbs risk L^(Q_i, S_i) on all examples of the task.
    pub empirical_risk: Estimate,
    /// KL(Q_i || P).
    pub kl: Estimate,
    /// m_i, the number of examples.
    pub size: usize,
}

impl TaskTerms {
    /// Exact numbers can be given as they are, estimates as [`Estimate`].
    #[must_use]
    pub fn new(empirical_risk: impl Into<Estimate>, kl: impl Into<Estimate>, size: usize) -> Self {
        Self { empirical_risk: empirical_risk.into(), kl: kl.into(), size }
    }

    fn check(&self, task: usize) -> Result<(), BoundError> {
        if self.size == 0 {
            return Err(BoundError::EmptyTask { task });
        }
        self.empirical_risk.checked("an empirical risk")?;
        check_kl("a task's KL divergence", self.kl)
    }
}

/// An observed task whose base learner saw a subset S'_i only: Q_i = Q(S'_i, P), and the risk is still on all of S_i.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubsampledTask {
    /// L^(Q(S'_i, P), S_i), KL(Q(S'_i, P) || P) and m_i.
    pub terms: TaskTerms,
    /// m'_i, the number of examples in S'_i.
    pub adapt_size: usize,
}

/// Mean numbers of examples in the two environments of Theorem 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnvironmentSizes {
    /// E\[m\] in the observed environment.
    pub observed: f64,
    /// E\[m\] in the target environment.
    pub target: f64,
}

impl EnvironmentSizes {
    /// Theorem 3 is stated for observed tasks that are at least as large as target tasks.
    fn check(&self) -> Result<(), BoundError> {
        positive("the mean observed size", self.observed)?;
        positive("the mean target size", self.target)?;
        if self.observed < self.target {
            return Err(BoundError::ObservedSmallerThanTarget {
                observed: self.observed,
                target: self.target,
            });
        }
        Ok(())
    }
}

fn check_kl(what: &'static str, kl: Estimate) -> Result<(), BoundError> {
    if kl.value == f64::INFINITY {
        return Err(BoundError::InfiniteKl { what });
    }
    non_negative(what, kl.value)?;
    kl.checked(what).map(|_| ())
}

/// log(events/delta), for delta in (0, 1].
fn log_events(events: f64, delta: f64) -> Result<f64, BoundError> {
    if delta > 0.0 && delta <= 1.0 {
        // Two logarithms, since events/delta may overflow.
        Ok(events.ln() - delta.ln())
    } else {
        Err(BoundError::Confidence { delta })
    }
}

/// xi = 1/lambda + 1/(n beta).
///
/// # Errors
/// beta or lambda not positive and finite, or no tasks.
pub fn xi(lambda: f64, beta: f64, tasks: usize) -> Result<f64, BoundError> {
    positive("lambda", lambda)?;
    positive("beta", beta)?;
    if tasks == 0 {
        return Err(BoundError::NoTasks);
    }
    positive("xi", 1.0 / lambda + 1.0 / (tasks as f64 * beta))
}

/// Theorem 1, supervised learning: with probability at least 1 - delta, for all Q,
///
/// ```text
/// L(Q, D) <= L^(Q, S) + (KL(Q || P) + log(1/delta))/beta + (m/beta) Psi(beta/m)
/// ```
///
/// # Errors
/// See [`BoundError`].
pub fn theorem_1(settings: &SupervisedSettings, task: &TaskTerms) -> Result<Bound, BoundError> {
    let beta = positive("beta", settings.beta)?;
    task.check(0)?;
    let size = task.size as f64;
    let psi = settings.psi.at_power("psi", beta / size, Some(task.size))?;
    let zero = Estimate::exact(0.0);
    Bound {
        theorem: Theorem::Supervised,
        xi: 1.0 / beta,
        empirical_risk: task.empirical_risk,
        task_kl: task.kl.scaled(1.0 / beta),
        hyper_kl: zero,
        confidence: (log_events(1.0, settings.delta)? / beta).into(),
        psi1: psi.scaled(size / beta),
        psi2: zero,
        gap: zero,
    }
    .checked()
}

/// Theorem 2, meta-learning with one environment: target tasks come from where the observed ones came from,
/// with examples as many (in distribution).
///
/// # Errors
/// See [`BoundError`].
pub fn theorem_2(
    settings: &MetaSettings,
    tasks: &[TaskTerms],
    hyper_kl: impl Into<Estimate>,
) -> Result<Bound, BoundError> {
    meta_bound(Theorem::OneEnvironment, settings, tasks, hyper_kl.into(), 2.0, 0.0.into())
}

/// Theorem 3, meta-learning with two environments: Theorem 2 plus the gap over the hyper-prior. Psi2 is about the
/// observed environment and must hold for every prior.
///
/// # Errors
/// See [`BoundError`]; in particular [`BoundError::AveragedTaskPsi`].
pub fn theorem_3(
    settings: &MetaSettings,
    tasks: &[TaskTerms],
    hyper_kl: impl Into<Estimate>,
    sizes: EnvironmentSizes,
    gap: &HyperPriorGap,
) -> Result<Bound, BoundError> {
    sizes.check()?;
    require_uniform(&settings.task_psi)?;
    let gap = gap.at(settings.lambda)?;
    meta_bound(Theorem::TwoEnvironments, settings, tasks, hyper_kl.into(), 2.0, gap)
}

/// The corollary of Theorem 3: the gap as a difference of risks, or the smaller of both forms.
///
/// The difference alone is Theorem 2 on the observed environment with R(calQ, T) - R(calQ, T~) added to both sides: no
/// expectation is split, so a Psi2 averaged over the hyper-prior is fine. The smaller of both needs the event of
/// Theorem 3 too: a uniform Psi2, and log(3/delta).
///
/// # Errors
/// See [`BoundError`].
pub fn corollary(
    settings: &MetaSettings,
    tasks: &[TaskTerms],
    hyper_kl: impl Into<Estimate>,
    sizes: EnvironmentSizes,
    gap: &CorollaryGap,
) -> Result<Bound, BoundError> {
    sizes.check()?;
    let (gap, events) = match gap {
        CorollaryGap::Difference(difference) => (difference.value(), 2.0),
        CorollaryGap::Smaller { hyper_prior, difference } => {
            require_uniform(&settings.task_psi)?;
            let (first, second) = (hyper_prior.at(settings.lambda)?, difference.value());
            (if first.value <= second.value { first } else { second }, 3.0)
        }
    };
    meta_bound(Theorem::Corollary, settings, tasks, hyper_kl.into(), events, gap)
}

/// Theorem 4, subsampling: the base learner of observed task i sees a subset S'_i of the size of target tasks (in
/// distribution), chosen without looking at the values, while the empirical risk uses all of S_i. No gap. Psi2 is about
/// base learners that see m' examples.
///
/// # Errors
/// See [`BoundError`].
pub fn theorem_4(
    settings: &MetaSettings,
    tasks: &[SubsampledTask],
    hyper_kl: impl Into<Estimate>,
) -> Result<Bound, BoundError> {
    for (index, task) in tasks.iter().enumerate() {
        if task.adapt_size > task.terms.size {
            let (adapt_size, size) = (task.adapt_size, task.terms.size);
            return Err(BoundError::SubsetTooLarge { task: index, adapt_size, size });
        }
    }
    let terms: Vec<TaskTerms> = tasks.iter().map(|task| task.terms).collect();
    meta_bound(Theorem::Subsampling, settings, &terms, hyper_kl.into(), 2.0, 0.0.into())
}

fn require_uniform(psi: &Psi) -> Result<(), BoundError> {
    match psi.reach() {
        Reach::Uniform => Ok(()),
        Reach::Average { .. } => Err(BoundError::AveragedTaskPsi),
    }
}

/// The sum that Theorems 2 to 4 share.
fn meta_bound(
    theorem: Theorem,
    settings: &MetaSettings,
    tasks: &[TaskTerms],
    hyper_kl: Estimate,
    events: f64,
    gap: Estimate,
) -> Result<Bound, BoundError> {
    let MetaSettings { beta, lambda, delta, .. } = *settings;
    let count = tasks.len();
    let n = count as f64;
    let xi = xi(lambda, beta, count)?;
    check_kl("the hyper-posterior's KL divergence", hyper_kl)?;
    for (index, task) in tasks.iter().enumerate() {
        task.check(index)?;
    }
    let mean = |term: fn(&TaskTerms) -> Estimate| {
        tasks.iter().fold(Estimate::exact(0.0), |sum, task| sum.plus(term(task).scaled(1.0 / n)))
    };
    Bound {
        theorem,
        xi,
        empirical_risk: mean(|task| task.empirical_risk),
        task_kl: mean(|task| task.kl).scaled(1.0 / beta),
        hyper_kl: hyper_kl.scaled(xi),
        confidence: (xi * log_events(events, delta)?).into(),
        psi1: psi1_part(&settings.example_psi, beta, tasks)?,
        psi2: settings.task_psi.at_power("psi2", lambda / n, Some(count))?.scaled(n / lambda),
        gap,
    }
    .checked()
}

/// mean_i (m_i/beta) Psi1(beta/m_i).
fn psi1_part(example_psi: &ExamplePsi, beta: f64, tasks: &[TaskTerms]) -> Result<Estimate, BoundError> {
    let count = tasks.len();
    if let ExamplePsi::PerTask(list) = example_psi
        && list.len() != count
    {
        return Err(BoundError::LengthMismatch { what: "psi1 per task", expected: count, given: list.len() });
    }
    let mut sum = Estimate::exact(0.0);
    for (index, task) in tasks.iter().enumerate() {
        let psi = match example_psi {
            ExamplePsi::Shared(psi) => psi,
            ExamplePsi::PerTask(list) => &list[index],
            ExamplePsi::Joint(joint) => return joint.part(beta, count),
        };
        let size = task.size as f64;
        let value = psi.at_power("psi1", beta / size, task.size.checked_mul(count))?;
        sum = sum.plus(value.scaled(size / beta / count as f64));
    }
    Ok(sum)
}
