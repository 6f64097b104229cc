//! A bound, term by term.

use std::fmt;

use crate::{
    error::{BoundError, finite},
    estimate::{Certainty, Estimate},
};

/// Which statement a bound comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Theorem {
    /// Theorem 1: supervised learning, one task.
    Supervised,
    /// Theorem 2: meta-learning, observed and target tasks from one environment.
    OneEnvironment,
    /// Theorem 3: larger observed tasks, with the gap over the hyper-prior.
    TwoEnvironments,
    /// Corollary of Theorem 3: another form of the gap, or the smaller of both.
    Corollary,
    /// Theorem 4: the base learner sees a subset of each observed task.
    Subsampling,
}

impl fmt::Display for Theorem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Supervised => "Theorem 1 (supervised)",
            Self::OneEnvironment => "Theorem 2 (one environment)",
            Self::TwoEnvironments => "Theorem 3 (two environments)",
            Self::Corollary => "Corollary of Theorem 3",
            Self::Subsampling => "Theorem 4 (subsampling)",
        })
    }
}

/// The right-hand side of a theorem. Terms that a theorem does not have are exactly zero.
///
/// A value of this type can only come from one of the theorems. [`Bound::certainty`] says whether it is the bound
/// itself or a Monte-Carlo estimate of it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// The statement.
    pub theorem: Theorem,
    /// 1/lambda + 1/(n beta); 1/beta for Theorem 1.
    pub xi: f64,
    /// Mean over tasks of the empirical Gibbs risk.
    pub empirical_risk: Estimate,
    /// 1/(n beta) sum_i KL(Q_i || P).
    pub task_kl: Estimate,
    /// xi KL(calQ || calP).
    pub hyper_kl: Estimate,
    /// xi log(events/delta): one event in Theorem 1, two in the others, three if the corollary takes a minimum.
    pub confidence: Estimate,
    /// mean_i (m_i/beta) Psi1(beta/m_i).
    pub psi1: Estimate,
    /// (n/lambda) Psi2(lambda/n).
    pub psi2: Estimate,
    /// The penalty for environments that differ.
    pub gap: Estimate,
}

impl Bound {
    /// The terms by name, in the order of the formula. Their sum is [`Bound::total`].
    #[must_use]
    pub fn terms(&self) -> [(&'static str, Estimate); 7] {
        [
            ("empirical_risk", self.empirical_risk),
            ("task_kl", self.task_kl),
            ("hyper_kl", self.hyper_kl),
            ("confidence", self.confidence),
            ("psi1", self.psi1),
            ("psi2", self.psi2),
            ("gap", self.gap),
        ]
    }

    /// The bound: the sum of all terms, with the standard error of the estimated ones.
    #[must_use]
    pub fn total(&self) -> Estimate {
        self.terms().into_iter().fold(0.0.into(), |sum: Estimate, (_, term)| sum.plus(term))
    }

    /// Standard error of the total; `None` if nothing in it was estimated.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        self.total().standard_error
    }

    /// Whether the total is guaranteed or estimated.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.total().certainty()
    }

    /// The same bound, if no term overflowed.
    pub(crate) fn checked(self) -> Result<Self, BoundError> {
        for (name, term) in self.terms() {
            term.checked(name)?;
        }
        finite("xi", self.xi)?;
        self.total().checked("the bound")?;
        Ok(self)
    }
}

impl fmt::Display for Bound {
    /// One line a term, then the total; standard errors behind a `±`. The precision applies to every number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = formatter.precision().unwrap_or(6);
        writeln!(formatter, "{}, xi = {:.precision$}", self.theorem, self.xi)?;
        for (name, term) in self.terms() {
            writeln!(formatter, "  {name:<15} {term:.precision$}")?;
        }
        let label = match self.certainty() {
            Certainty::Guaranteed => "bound",
            Certainty::Estimated { .. } => "bound, estimate",
        };
        write!(formatter, "  {label:<15} {:.precision$}", self.total())
    }
}
