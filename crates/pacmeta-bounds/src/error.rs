//! Why a bound was refused.

use thiserror::Error;

/// A reason for which no number is returned.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BoundError {
    /// The confidence level is not a probability of failure.
    #[error("delta must lie in (0, 1], got {delta}")]
    Confidence {
        /// The value given.
        delta: f64,
    },
    /// A quantity that must be positive and finite is not.
    #[error("{what} must be positive and finite, got {value}")]
    NotPositive {
        /// Which quantity.
        what: &'static str,
        /// The value given.
        value: f64,
    },
    /// A quantity that must not be negative is negative or NaN.
    #[error("{what} must not be negative or NaN, got {value}")]
    Negative {
        /// Which quantity.
        what: &'static str,
        /// The value given.
        value: f64,
    },
    /// A quantity is NaN or infinite, or a sum of finite numbers overflowed.
    #[error("{what} is not finite: {value}")]
    NotFinite {
        /// Which quantity.
        what: &'static str,
        /// The value given or obtained.
        value: f64,
    },
    /// There is nothing to average over.
    #[error("a meta-learning bound needs at least one observed task")]
    NoTasks,
    /// A task without examples has no empirical risk.
    #[error("task {task} has no examples (m = 0), so its empirical risk is undefined")]
    EmptyTask {
        /// Index of the task.
        task: usize,
    },
    /// The subset of Theorem 4 cannot be larger than the set it is taken from.
    #[error("task {task}: the learner's subset has {adapt_size} examples but the task has only {size}")]
    SubsetTooLarge {
        /// Index of the task.
        task: usize,
        /// m'_i.
        adapt_size: usize,
        /// m_i.
        size: usize,
    },
    /// The two-environment bounds assume at least as many examples in observed tasks as in target tasks.
    #[error(
        "Theorem 3 assumes observed tasks at least as large as target tasks on average, got {observed} < {target}; \
         reduce the target size or collect more examples per observed task"
    )]
    ObservedSmallerThanTarget {
        /// Mean size in the observed environment.
        observed: f64,
        /// Mean size in the target environment.
        target: f64,
    },
    /// The divergence between the two distributions is infinite because one is a point.
    #[error(
        "a Dirac {what} has infinite KL divergence from a continuous distribution, so no bound holds with it: use a \
         Gaussian of positive variance for the bound, or ask for the objective, which leaves the constant out"
    )]
    Dirac {
        /// What is a point.
        what: &'static str,
    },
    /// A KL divergence is infinite.
    #[error(
        "{what} is infinite, so the bound is void: a Dirac against a continuous distribution, or mass where the \
         reference has none; use a Gaussian of positive variance, or ask for the objective"
    )]
    InfiniteKl {
        /// Which divergence.
        what: &'static str,
    },
    /// The posterior puts mass where the prior has none.
    #[error(
        "atom {atom} has mass in the first distribution and none in the second: the KL divergence is infinite"
    )]
    NotAbsolutelyContinuous {
        /// Index of the atom.
        atom: usize,
    },
    /// A list of masses is not a probability distribution.
    #[error("{what} is not a probability distribution: masses must be non-negative and sum to 1 (sum {sum})")]
    NotADistribution {
        /// Which list.
        what: &'static str,
        /// Sum of the masses.
        sum: f64,
    },
    /// Two lists that belong together differ in length.
    #[error("{what}: expected {expected} values, got {given}")]
    LengthMismatch {
        /// Which list.
        what: &'static str,
        /// Length needed.
        expected: usize,
        /// Length given.
        given: usize,
    },
    /// An index points past the end.
    #[error("atom {atom} does not exist: the distribution has {count} atoms")]
    NoSuchAtom {
        /// Index asked for.
        atom: usize,
        /// Number of atoms.
        count: usize,
    },
    /// The interval of a bounded loss is empty.
    #[error("a bounded loss needs low <= high, both finite, got [{low}, {high}]")]
    Interval {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The sub-gamma bound does not exist at this temperature.
    #[error(
        "a sub-gamma loss with scale {scale} has no cumulant bound at {temperature}: scale * temperature must be \
         below 1; lower beta (or lambda) or use more examples (or tasks)"
    )]
    SubGammaRange {
        /// The parameter c.
        scale: f64,
        /// The argument of psi.
        temperature: f64,
    },
    /// A value of psi that is known at one argument was asked for at another.
    #[error("psi was computed at {known}, but the bound needs it at {needed}")]
    PsiTemperature {
        /// Argument at which it is known.
        known: f64,
        /// Argument at which it is needed.
        needed: f64,
    },
    /// An averaged psi has too low a power inside its expectation.
    #[error(
        "{what} is an average with power {given} inside the expectation, and the bound needs at least {needed}: \
         with a smaller power Jensen's inequality points the wrong way"
    )]
    PsiPower {
        /// Which psi.
        what: &'static str,
        /// Power needed.
        needed: usize,
        /// Power given.
        given: usize,
    },
    /// Theorem 3 was asked for with a psi2 that only holds on average over priors.
    #[error(
        "this gap enters as an expectation of a product over the hyper-prior, which splits into gap and psi2 only if \
         psi2 holds for every prior; the psi2 given is an average over the hyper-prior. Use a closed form, or the \
         corollary with the difference of risks alone"
    )]
    AveragedTaskPsi,
    /// A joint estimate of psi1 belongs to other settings.
    #[error(
        "the joint psi1 was made for beta = {given_beta} and {given_tasks} tasks, the bound has beta = {beta} and \
         {tasks} tasks"
    )]
    JointPsiMismatch {
        /// beta of the estimate.
        given_beta: f64,
        /// Number of tasks of the estimate.
        given_tasks: usize,
        /// beta of the bound.
        beta: f64,
        /// Number of tasks of the bound.
        tasks: usize,
    },
    /// The gap was computed for another lambda.
    #[error("the gap was computed at lambda = {given}, the bound has lambda = {lambda}")]
    GapLambda {
        /// lambda of the gap.
        given: f64,
        /// lambda of the bound.
        lambda: f64,
    },
    /// A Monte-Carlo estimate without any idea of its error.
    #[error("{what} needs at least two draws for a standard error, got {draws}")]
    TooFewDraws {
        /// Which estimate.
        what: &'static str,
        /// Number of draws given.
        draws: usize,
    },
    /// The numbers cannot belong to one Gibbs posterior.
    #[error(
        "KL = -temperature * risk - log Z came out as {value}: risk and log Z do not belong to the same Gibbs \
         posterior"
    )]
    InconsistentGibbs {
        /// The negative value.
        value: f64,
    },
}

/// `value` if it is positive and finite.
pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, BoundError> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(BoundError::NotPositive { what, value }) }
}

/// `value` if it is finite.
pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64, BoundError> {
    if value.is_finite() { Ok(value) } else { Err(BoundError::NotFinite { what, value }) }
}

/// `value` if it is finite and not negative.
pub(crate) fn non_negative(what: &'static str, value: f64) -> Result<f64, BoundError> {
    if value.is_nan() || value < 0.0 {
        return Err(BoundError::Negative { what, value });
    }
    finite(what, value)
}
