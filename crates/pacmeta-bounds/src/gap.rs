//! The price of training on environments whose tasks are larger than the target's: the gap of Theorem 3.
//!
//! ```text
//! over the hyper-prior:  Delta = (1/lambda) log E_{P ~ calP} exp(lambda (R(P, T) - R(P, T~)))
//! difference of risks:   R(calQ, T) - R(calQ, T~)
//! ```
//!
//! T is the target environment, T~ the observed one, R(P, .) the expected true risk of the base learner that starts
//! from P. Neither form can be computed from the observed tasks alone: both need fresh tasks of both sizes, that is, a
//! synthetic environment. The first belongs to Theorem 3. The second follows from Theorem 2 applied to T~, plus a
//! term that is moved across; it must be computed for the hyper-posterior that the bound is about.

use crate::{
    error::{BoundError, finite, positive},
    estimate::{Estimate, log_mean_exp_estimate, log_weighted_mean_exp},
};

/// The risks of one prior drawn from the hyper-prior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskPair {
    /// R(P, T): expected true risk on target tasks.
    pub target: f64,
    /// R(P, T~): expected true risk on tasks of the observed environment.
    pub observed: f64,
}

impl RiskPair {
    fn difference(&self) -> Result<f64, BoundError> {
        finite(
            "a difference of risks",
            finite("a target risk", self.target)? - finite("an observed risk", self.observed)?,
        )
    }
}

/// The gap over the hyper-prior at one lambda.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyperPriorGap {
    lambda: Option<f64>,
    value: Estimate,
    effective_draws: Option<f64>,
}

impl HyperPriorGap {
    /// The two environments are the same: exactly zero, at any lambda.
    #[must_use]
    pub fn identical() -> Self {
        Self { lambda: None, value: 0.0.into(), effective_draws: None }
    }

    /// By Monte Carlo over independent draws of priors from the hyper-prior.
    ///
    /// The estimate is biased: a logarithm of a mean over few draws is too small on average, and when
    /// [`effective_draws`](Self::effective_draws) is near 1 its standard error says nothing. Noise in the pairs themselves
    /// enters an exponential and pulls the other way.
    ///
    /// # Errors
    /// lambda not positive, fewer than two pairs, a risk that is not finite, or overflow.
    pub fn from_draws(lambda: f64, pairs: &[RiskPair]) -> Result<Self, BoundError> {
        let exponents = Self::exponents(lambda, pairs)?;
        let (log_mean, effective) = log_mean_exp_estimate(&exponents)?;
        let value = log_mean.scaled(1.0 / lambda).checked("the gap")?;
        Ok(Self { lambda: Some(lambda), value, effective_draws: Some(effective) })
    }

    /// Exactly, over a hyper-prior with finitely many priors of these masses.
    ///
    /// # Errors
    /// As for [`HyperPriorGap::from_draws`]; masses that are not a distribution or not as many as the pairs.
    pub fn from_masses(lambda: f64, masses: &[f64], pairs: &[RiskPair]) -> Result<Self, BoundError> {
        let exponents = Self::exponents(lambda, pairs)?;
        let value = finite("the gap", log_weighted_mean_exp(masses, &exponents)? / lambda)?;
        Ok(Self { lambda: Some(lambda), value: value.into(), effective_draws: None })
    }

    fn exponents(lambda: f64, pairs: &[RiskPair]) -> Result<Vec<f64>, BoundError> {
        positive("lambda", lambda)?;
        pairs.iter().map(|pair| Ok(lambda * pair.difference()?)).collect()
    }

    /// The value and its standard error.
    #[must_use]
    pub fn value(&self) -> Estimate {
        self.value
    }

    /// How many of the draws carry the weight; `None` for an exact value.
    #[must_use]
    pub fn effective_draws(&self) -> Option<f64> {
        self.effective_draws
    }

    /// The value, provided that it was computed for this lambda.
    pub(crate) fn at(&self, lambda: f64) -> Result<Estimate, BoundError> {
        match self.lambda {
            Some(given) if (given - lambda).abs() > 1e-9 * lambda => {
                Err(BoundError::GapLambda { given, lambda })
            }
            _ => Ok(self.value),
        }
    }
}

/// R(calQ, T) - R(calQ, T~) for the hyper-posterior that the bound is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskDifference {
    value: Estimate,
}

impl RiskDifference {
    /// The two environments are the same: exactly zero.
    #[must_use]
    pub fn identical() -> Self {
        Self { value: 0.0.into() }
    }

    /// From the two risks, exact or estimated on separate draws (independent errors).
    ///
    /// # Errors
    /// A risk that is not finite.
    pub fn from_risks(
        target: impl Into<Estimate>,
        observed: impl Into<Estimate>,
    ) -> Result<Self, BoundError> {
        let target = target.into().checked("the target risk")?;
        let observed = observed.into().checked("the observed risk")?;
        let standard_error = match (target.standard_error, observed.standard_error) {
            (None, None) => None,
            (first, second) => Some(first.unwrap_or(0.0).hypot(second.unwrap_or(0.0))),
        };
        let value = Estimate { value: target.value - observed.value, standard_error };
        Ok(Self { value: value.checked("the difference of risks")? })
    }

    /// From paired draws (the same prior and the same task distribution in both environments), whose differences
    /// vary less than the risks.
    ///
    /// # Errors
    /// Fewer than two pairs, or a risk that is not finite.
    pub fn from_pairs(pairs: &[RiskPair]) -> Result<Self, BoundError> {
        let differences: Vec<f64> = pairs.iter().map(RiskPair::difference).collect::<Result<_, _>>()?;
        Ok(Self { value: Estimate::mean_of(&differences)? })
    }

    /// The value and its standard error.
    #[must_use]
    pub fn value(&self) -> Estimate {
        self.value
    }
}

/// What the corollary may use.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CorollaryGap {
    /// The difference of risks alone: two events, log(2/delta), and any kind of Psi2.
    Difference(RiskDifference),
    /// The smaller of both forms. Each form is proved on its own event, and which one is smaller depends on the
    /// hyper-posterior, so three events must hold together: log(3/delta), and a uniform Psi2.
    Smaller {
        /// The form of Theorem 3.
        hyper_prior: HyperPriorGap,
        /// The difference of risks.
        difference: RiskDifference,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(target: f64, observed: f64) -> RiskPair {
        RiskPair { target, observed }
    }

    #[test]
    fn identical_environments_have_no_gap() {
        let pairs = [pair(0.3, 0.3), pair(0.7, 0.7), pair(1e9, 1e9)];
        assert_eq!(HyperPriorGap::from_draws(50.0, &pairs).unwrap().value(), Estimate::monte_carlo(0.0, 0.0));
        assert_eq!(RiskDifference::from_pairs(&pairs).unwrap().value(), Estimate::monte_carlo(0.0, 0.0));
        assert_eq!(HyperPriorGap::identical().value(), Estimate::exact(0.0));
        assert_eq!(RiskDifference::identical().value(), Estimate::exact(0.0));
        assert_eq!(
            RiskDifference::from_risks(0.4, 0.4).unwrap().value(),
            RiskDifference::identical().value()
        );
    }

    #[test]
    fn the_gap_is_the_log_mean_exp_of_differences() {
        let pairs = [pair(0.5, 0.2), pair(0.4, 0.3), pair(0.9, 1.0)];
        let lambda: f64 = 4.0;
        let direct =
            (((0.3 * lambda).exp() + (0.1 * lambda).exp() + (-0.1 * lambda).exp()) / 3.0).ln() / lambda;
        let gap = HyperPriorGap::from_draws(lambda, &pairs).unwrap();
        assert!((gap.value().value - direct).abs() < 1e-14);
        let exact = HyperPriorGap::from_masses(lambda, &[1.0 / 3.0; 3], &pairs).unwrap();
        assert!((exact.value().value - direct).abs() < 1e-14);
        // It lies between the mean (lambda -> 0) and the maximum (lambda -> infinity) of the differences.
        assert!((HyperPriorGap::from_draws(1e-6, &pairs).unwrap().value().value - 0.1).abs() < 1e-6);
        assert!((HyperPriorGap::from_draws(1e9, &pairs).unwrap().value().value - 0.3).abs() < 1e-8);
    }

    #[test]
    fn a_gap_belongs_to_its_lambda() {
        let gap = HyperPriorGap::from_draws(2.0, &[pair(0.5, 0.2), pair(0.4, 0.3)]).unwrap();
        assert!(gap.at(2.0).is_ok());
        assert_eq!(gap.at(3.0), Err(BoundError::GapLambda { given: 2.0, lambda: 3.0 }));
        assert!(HyperPriorGap::identical().at(3.0).is_ok());
        assert!(HyperPriorGap::from_draws(0.0, &[pair(0.5, 0.2), pair(0.4, 0.3)]).is_err());
        assert!(HyperPriorGap::from_draws(1.0, &[pair(f64::NAN, 0.2), pair(0.4, 0.3)]).is_err());
    }

    #[test]
    fn differences_carry_their_errors() {
        let difference =
            RiskDifference::from_risks(Estimate::monte_carlo(0.5, 0.03), Estimate::monte_carlo(0.2, 0.04))
                .unwrap();
        assert!((difference.value().value - 0.3).abs() < 1e-15);
        assert!((difference.value().standard_error.unwrap() - 0.05).abs() < 1e-15);
    }
}
