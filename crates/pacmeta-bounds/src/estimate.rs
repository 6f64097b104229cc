//! Numbers that may carry a standard error, and averages of exponentials that do not overflow.
//!
//! Everything Monte Carlo in this crate is a log-mean-exp, `log (1/K) sum_k exp(v_k)`. Its standard error comes from
//! the delta method: with `w_k = exp(v_k - max v)`, the error of the mean of the `w_k`, relative to that mean, is the
//! error of its logarithm. When a few draws carry all the weight that error is itself unreliable, so the effective
//! number of draws `(sum w)^2 / sum w^2` is reported beside it.

use crate::error::{BoundError, finite, non_negative};

/// A number, exact or with a standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its Monte-Carlo standard error; `None` if the number is exact or a closed form.
    pub standard_error: Option<f64>,
}

/// Whether a number is what it says, or an estimate of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    /// No Monte Carlo anywhere in it.
    Guaranteed,
    /// At least one part was estimated.
    Estimated {
        /// Standard error of the whole.
        standard_error: f64,
    },
}

impl Estimate {
    /// A number without error.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, standard_error: None }
    }

    /// A Monte-Carlo value with its standard error.
    #[must_use]
    pub fn monte_carlo(value: f64, standard_error: f64) -> Self {
        Self { value, standard_error: Some(standard_error) }
    }

    /// The mean of draws and its standard error, `sqrt(sum (x - mean)^2 / (K (K - 1)))`.
    ///
    /// # Errors
    /// Fewer than two draws, or a draw that is not finite.
    pub fn mean_of(draws: &[f64]) -> Result<Self, BoundError> {
        if draws.len() < 2 {
            return Err(BoundError::TooFewDraws { what: "a mean", draws: draws.len() });
        }
        for &draw in draws {
            finite("a draw", draw)?;
        }
        let (mean, error) = mean_and_error(draws.iter().copied(), draws.len());
        Ok(Self::monte_carlo(
            finite("the mean of the draws", mean)?,
            finite("the spread of the draws", error)?,
        ))
    }

    /// Whether the number is guaranteed or estimated.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        match self.standard_error {
            None => Certainty::Guaranteed,
            Some(standard_error) => Certainty::Estimated { standard_error },
        }
    }

    /// `factor` times the number.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            standard_error: self.standard_error.map(|error| error * factor.abs()),
        }
    }

    /// The sum of two numbers.
    ///
    /// Standard errors are added, not their squares: draws are often shared between terms, and the standard
    /// deviation of a sum is at most the sum of the standard deviations whatever the correlation.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let standard_error = match (self.standard_error, other.standard_error) {
            (None, None) => None,
            (first, second) => Some(first.unwrap_or(0.0) + second.unwrap_or(0.0)),
        };
        Self { value: self.value + other.value, standard_error }
    }

    /// The same number, if it and its error are finite.
    pub(crate) fn checked(self, what: &'static str) -> Result<Self, BoundError> {
        finite(what, self.value)?;
        if let Some(error) = self.standard_error {
            non_negative(what, error)?;
        }
        Ok(self)
    }
}

impl From<f64> for Estimate {
    fn from(value: f64) -> Self {
        Self::exact(value)
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.value, formatter)?;
        if let Some(error) = self.standard_error {
            formatter.write_str(" ± ")?;
            std::fmt::Display::fmt(&error, formatter)?;
        }
        Ok(())
    }
}

fn mean_and_error(mut values: impl Iterator<Item = f64> + Clone, count: usize) -> (f64, f64) {
    let all = values.clone();
    let origin = values.next().unwrap_or(0.0);
    let count = count as f64;
    // Relative to the first value, so that equal values have exactly their mean and no error.
    let mean = origin + all.clone().map(|value| (value - origin) / count).sum::<f64>();
    let squares: f64 = all.map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (count * (count - 1.0))).sqrt())
}

fn largest(values: &[f64]) -> Result<f64, BoundError> {
    let mut largest = f64::NEG_INFINITY;
    for &value in values {
        largest = largest.max(finite("an exponent", value)?);
    }
    if values.is_empty() {
        return Err(BoundError::TooFewDraws { what: "a log-mean-exp", draws: 0 });
    }
    Ok(largest)
}

/// `log (1/K) sum_k exp(v_k)`, without overflow for exponents of any finite size.
///
/// # Errors
/// No values, or a value that is not finite.
pub fn log_mean_exp(values: &[f64]) -> Result<f64, BoundError> {
    let top = largest(values)?;
    let mean = values.iter().map(|value| (value - top).exp()).sum::<f64>() / values.len() as f64;
    Ok(top + mean.ln())
}

/// `log sum_k w_k exp(v_k)` for masses `w` that sum to one: the exact form over a finite distribution.
///
/// # Errors
/// Lists of different length, masses that are not a distribution, or a value that is not finite.
pub fn log_weighted_mean_exp(masses: &[f64], values: &[f64]) -> Result<f64, BoundError> {
    if masses.len() != values.len() {
        return Err(BoundError::LengthMismatch {
            what: "exponents for the masses",
            expected: masses.len(),
            given: values.len(),
        });
    }
    crate::divergence::check_distribution("the list of masses", masses)?;
    for &value in values {
        finite("an exponent", value)?;
    }
    let top = masses
        .iter()
        .zip(values)
        .filter(|(mass, _)| **mass > 0.0)
        .fold(f64::NEG_INFINITY, |top, (_, value)| top.max(*value));
    // Atoms without mass are skipped: their exponent may exceed the maximum taken over the others.
    let (mut mean, mut total) = (0.0, 0.0);
    for (mass, value) in masses.iter().zip(values).filter(|(mass, _)| **mass > 0.0) {
        mean += mass * (value - top).exp();
        total += mass;
    }
    // Masses sum to one up to rounding; dividing makes equal exponents come out unchanged.
    Ok(top + (mean / total).ln())
}

/// A log-mean-exp over Monte-Carlo draws with its delta-method standard error, and the effective number of draws.
///
/// # Errors
/// Fewer than two draws, or a draw that is not finite.
pub fn log_mean_exp_estimate(draws: &[f64]) -> Result<(Estimate, f64), BoundError> {
    if draws.len() < 2 {
        return Err(BoundError::TooFewDraws { what: "a log-mean-exp", draws: draws.len() });
    }
    let top = largest(draws)?;
    let weights = draws.iter().map(|draw| (draw - top).exp());
    let (mean, error) = mean_and_error(weights.clone(), draws.len());
    let total: f64 = weights.clone().sum();
    let squares: f64 = weights.map(|weight| weight * weight).sum();
    // The largest weight is 1, so mean >= 1/K and the divisions are safe.
    let estimate = Estimate::monte_carlo(top + mean.ln(), error / mean);
    Ok((estimate, total * total / squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_mean_exp_of_small_numbers_is_the_naive_formula() {
        let values = [0.1, -2.0, 1.5, 0.7];
        let naive = (values.iter().map(|v: &f64| v.exp()).sum::<f64>() / 4.0).ln();
        assert!((log_mean_exp(&values).unwrap() - naive).abs() < 1e-14);
        let weighted = log_weighted_mean_exp(&[0.25; 4], &values).unwrap();
        assert!((weighted - naive).abs() < 1e-14);
    }

    #[test]
    fn log_mean_exp_survives_huge_exponents() {
        // log((e^a + e^b)/2) with a = 1e6, b = a - 1: a + log((1 + e^-1)/2)
        let expected = 1e6 + ((1.0 + (-1.0_f64).exp()) / 2.0).ln();
        assert!((log_mean_exp(&[1e6, 1e6 - 1.0]).unwrap() - expected).abs() < 1e-9);
        assert!((log_mean_exp(&[-1e6, -1e6 - 1.0]).unwrap() - (expected - 2e6)).abs() < 1e-9);
        assert_eq!(log_mean_exp(&[1e300, -1e300]).unwrap(), 1e300);
        let (estimate, effective) = log_mean_exp_estimate(&[1e300, -1e300]).unwrap();
        assert_eq!(estimate.value, 1e300);
        assert_eq!(effective, 1.0);
    }

    #[test]
    fn equal_exponents_are_returned_unchanged_and_without_error() {
        let (estimate, effective) = log_mean_exp_estimate(&[0.0; 7]).unwrap();
        assert_eq!(estimate, Estimate::monte_carlo(0.0, 0.0));
        assert_eq!(effective, 7.0);
    }

    #[test]
    fn the_delta_method_matches_a_hand_calculation() {
        // w = (1, 3): mean 2, variance of the mean = 2/2 = 1, relative error 1/2
        let (estimate, effective) = log_mean_exp_estimate(&[0.0, 3.0_f64.ln()]).unwrap();
        assert!((estimate.value - 2.0_f64.ln()).abs() < 1e-15);
        assert!((estimate.standard_error.unwrap() - 0.5).abs() < 1e-14);
        assert!((effective - 16.0 / 10.0).abs() < 1e-14);
    }

    #[test]
    fn massless_atoms_do_not_matter() {
        let value = log_weighted_mean_exp(&[0.0, 1.0], &[1e308, 2.0]).unwrap();
        assert_eq!(value, 2.0);
    }

    #[test]
    fn the_mean_has_the_textbook_error() {
        let estimate = Estimate::mean_of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(estimate.value, 2.5);
        // sample variance 5/3, divided by 4 draws
        assert!((estimate.standard_error.unwrap() - (5.0_f64 / 12.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn errors_add_and_exact_numbers_stay_exact() {
        let sum = Estimate::monte_carlo(1.0, 0.2).plus(Estimate::monte_carlo(2.0, 0.3)).plus(4.0.into());
        assert_eq!(sum.value, 7.0);
        assert!((sum.standard_error.unwrap() - 0.5).abs() < 1e-15);
        let exact = Estimate::exact(1.0).plus(2.0.into()).scaled(-3.0);
        assert_eq!(exact.certainty(), Certainty::Guaranteed);
        assert_eq!(Estimate::monte_carlo(1.0, 0.2).scaled(-2.0).standard_error, Some(0.4));
    }

    #[test]
    fn useless_draws_are_refused() {
        assert!(matches!(log_mean_exp(&[]), Err(BoundError::TooFewDraws { .. })));
        assert!(matches!(log_mean_exp(&[f64::NAN]), Err(BoundError::NotFinite { .. })));
        assert!(matches!(log_mean_exp_estimate(&[1.0]), Err(BoundError::TooFewDraws { .. })));
        assert!(matches!(Estimate::mean_of(&[1.0]), Err(BoundError::TooFewDraws { .. })));
        assert!(matches!(
            log_weighted_mean_exp(&[0.5, 0.6], &[0.0, 0.0]),
            Err(BoundError::NotADistribution { .. })
        ));
    }
}
