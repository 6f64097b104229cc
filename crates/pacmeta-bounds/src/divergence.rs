//! Kullback-Leibler divergences in closed form.
//!
//! ```text
//! Gaussian:  KL(N(p0, s^2 I) || N(0, sigma0^2 I)) = d/2 (r - 1 - log r) + |p0|^2/(2 sigma0^2),  r = s^2/sigma0^2
//! diagonal:  1/2 sum_k (v_k/w_k - 1 - log(v_k/w_k) + (a_k - b_k)^2/w_k)
//! discrete:  sum_k q_k log(q_k/p_k);  a Dirac at atom k: -log p_k
//! Gibbs:     KL(Q_alpha || P) = -alpha L^(Q_alpha, S') - log Z_alpha(S')
//! ```
//!
//! A Dirac against a continuous distribution is infinitely far from it. The MAP form of the methods drops that
//! constant, which is fine in an objective and not in a bound, so it is an error here.

use crate::error::{BoundError, finite, positive};

/// Room for rounding in masses that should sum to one.
const MASS_TOLERANCE: f64 = 1e-9;
/// Room for rounding in a Gibbs divergence, relative to the numbers it is the difference of.
const GIBBS_TOLERANCE: f64 = 1e-8;

/// A hyper-posterior over the parameters of the prior, to be compared with the hyper-prior N(0, sigma0^2 I).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HyperPosterior<'a> {
    /// All mass at one point, as in MAP training. Good for an objective; no bound holds with it.
    Dirac {
        /// The point p0.
        location: &'a [f64],
    },
    /// N(p0, s^2 I).
    Gaussian {
        /// The mean p0.
        location: &'a [f64],
        /// The variance s^2.
        variance: f64,
    },
}

impl HyperPosterior<'_> {
    /// KL divergence from the hyper-prior N(0, `hyper_prior_variance` I).
    ///
    /// # Errors
    /// [`BoundError::Dirac`] for a Dirac; variances that are not positive; locations that are not finite.
    pub fn kl(&self, hyper_prior_variance: f64) -> Result<f64, BoundError> {
        match *self {
            Self::Dirac { .. } => Err(BoundError::Dirac { what: "hyper-posterior" }),
            Self::Gaussian { location, variance } => {
                gaussian_hyper_kl(location, variance, hyper_prior_variance)
            }
        }
    }
}

/// r - 1 - log r for r = first/second, without cancellation near r = 1.
fn variance_excess(first: f64, second: f64) -> f64 {
    let excess = (first - second) / second;
    // excess rounds to -1 when the ratio is below machine precision; the logarithms apart are then exact enough.
    let value = if excess > -0.5 { excess - excess.ln_1p() } else { excess - (first.ln() - second.ln()) };
    value.max(0.0)
}

/// KL(N(p0, s^2 I) || N(0, sigma0^2 I)) in as many dimensions as `location` has.
///
/// # Errors
/// Variances that are not positive and finite, locations that are not finite, or overflow.
pub fn gaussian_hyper_kl(
    location: &[f64],
    variance: f64,
    hyper_prior_variance: f64,
) -> Result<f64, BoundError> {
    positive("the hyper-posterior's variance", variance)?;
    positive("the hyper-prior's variance", hyper_prior_variance)?;
    let mut quadratic = 0.0;
    for &coordinate in location {
        quadratic += finite("a coordinate of the hyper-posterior", coordinate)?.powi(2);
    }
    let spread = 0.5 * location.len() as f64 * variance_excess(variance, hyper_prior_variance);
    finite("the hyper-posterior's KL divergence", spread + quadratic / (2.0 * hyper_prior_variance))
}

/// KL(N(a, diag v) || N(b, diag w)).
///
/// # Errors
/// Lists of different length, variances that are not positive and finite, means that are not finite, or overflow.
pub fn diagonal_gaussian_kl(
    mean: &[f64],
    variance: &[f64],
    reference_mean: &[f64],
    reference_variance: &[f64],
) -> Result<f64, BoundError> {
    let expected = mean.len();
    for (what, list) in [
        ("variances", variance),
        ("means of the reference", reference_mean),
        ("variances of the reference", reference_variance),
    ] {
        if list.len() != expected {
            return Err(BoundError::LengthMismatch { what, expected, given: list.len() });
        }
    }
    let mut sum = 0.0;
    for k in 0..expected {
        let (first, second) = (
            positive("a variance", variance[k])?,
            positive("a variance of the reference", reference_variance[k])?,
        );
        let shift = finite("a mean", mean[k])? - finite("a mean of the reference", reference_mean[k])?;
        sum += variance_excess(first, second) + shift * shift / second;
    }
    finite("the KL divergence of diagonal Gaussians", 0.5 * sum)
}

/// Refuse lists that are not probability distributions.
pub(crate) fn check_distribution(what: &'static str, masses: &[f64]) -> Result<(), BoundError> {
    let sum: f64 = masses.iter().sum();
    // `all` is false for NaN too.
    if masses.iter().all(|mass| *mass >= 0.0) && (sum - 1.0).abs() <= MASS_TOLERANCE {
        Ok(())
    } else {
        Err(BoundError::NotADistribution { what, sum })
    }
}

/// KL(q || p) between two distributions on the same finite set.
///
/// # Errors
/// Lists of different length or that are not distributions; mass in `q` where `p` has none.
pub fn discrete_kl(masses: &[f64], reference: &[f64]) -> Result<f64, BoundError> {
    if masses.len() != reference.len() {
        return Err(BoundError::LengthMismatch {
            what: "masses of the reference",
            expected: masses.len(),
            given: reference.len(),
        });
    }
    check_distribution("the first distribution", masses)?;
    check_distribution("the reference distribution", reference)?;
    let mut sum = 0.0;
    for (atom, (&q, &p)) in masses.iter().zip(reference).enumerate() {
        if q > 0.0 {
            if p == 0.0 {
                return Err(BoundError::NotAbsolutelyContinuous { atom });
            }
            sum += q * (q.ln() - p.ln());
        }
    }
    Ok(sum.max(0.0))
}

/// KL of a Dirac at one atom of a discrete distribution: -log of the atom's mass.
///
/// # Errors
/// Not a distribution, no such atom, or an atom without mass.
pub fn discrete_dirac_kl(atom: usize, reference: &[f64]) -> Result<f64, BoundError> {
    check_distribution("the reference distribution", reference)?;
    match reference.get(atom) {
        None => Err(BoundError::NoSuchAtom { atom, count: reference.len() }),
        Some(0.0) => Err(BoundError::NotAbsolutelyContinuous { atom }),
        Some(mass) => Ok((-mass.ln()).max(0.0)),
    }
}

/// KL(Q || P) of a Gibbs posterior Q proportional to P exp(-temperature L^(., S')), from its own risk on S' and
/// the logarithm of its normaliser: `-temperature * adapt_risk - log_partition`.
///
/// The divergence is a difference of numbers that may be much larger than itself; a result below zero by no more
/// than rounding is returned as zero, anything more negative is refused.
///
/// # Errors
/// Numbers that are not finite, a temperature that is not positive, or a clearly negative result.
pub fn gibbs_kl(temperature: f64, adapt_risk: f64, log_partition: f64) -> Result<f64, BoundError> {
    positive("the temperature", temperature)?;
    let energy = finite("the temperature times the risk", temperature * adapt_risk)?;
    finite("the log partition function", log_partition)?;
    let value = finite("the Gibbs posterior's KL divergence", -energy - log_partition)?;
    if value >= 0.0 {
        Ok(value)
    } else if value >= -GIBBS_TOLERANCE * (1.0 + energy.abs() + log_partition.abs()) {
        Ok(0.0)
    } else {
        Err(BoundError::InconsistentGibbs { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// log density of a one-dimensional Gaussian.
    fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
        -0.5 * ((x - mean).powi(2) / variance + (2.0 * std::f64::consts::PI * variance).ln())
    }

    /// KL of one-dimensional Gaussians by the trapezoid rule over 20 standard deviations.
    fn quadrature_kl(mean: f64, variance: f64, reference_mean: f64, reference_variance: f64) -> f64 {
        let (steps, deviation) = (200_000, variance.sqrt());
        let width = 40.0 * deviation / f64::from(steps);
        (0..=steps)
            .map(|k| {
                let x = mean - 20.0 * deviation + width * f64::from(k);
                let log_q = log_normal(x, mean, variance);
                width * log_q.exp() * (log_q - log_normal(x, reference_mean, reference_variance))
            })
            .sum()
    }

    #[test]
    fn gaussian_closed_forms_equal_quadrature() {
        let (location, s2, sigma02) = ([0.7, -1.3], 0.4, 3.0);
        let expected: f64 = location.iter().map(|p| quadrature_kl(*p, s2, 0.0, sigma02)).sum();
        assert!((gaussian_hyper_kl(&location, s2, sigma02).unwrap() - expected).abs() < 1e-9);
        let posterior = HyperPosterior::Gaussian { location: &location, variance: s2 };
        assert!((posterior.kl(sigma02).unwrap() - expected).abs() < 1e-9);

        let (mean, variance, other, wide) = ([0.2, 1.0], [0.5, 2.0], [-0.4, 0.9], [1.5, 0.3]);
        let expected: f64 = (0..2).map(|k| quadrature_kl(mean[k], variance[k], other[k], wide[k])).sum();
        assert!((diagonal_gaussian_kl(&mean, &variance, &other, &wide).unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn equal_gaussians_are_at_distance_zero() {
        assert_eq!(gaussian_hyper_kl(&[0.0; 5], 3.0, 3.0).unwrap(), 0.0);
        assert_eq!(diagonal_gaussian_kl(&[1.0], &[2.0], &[1.0], &[2.0]).unwrap(), 0.0);
        // r = 1 + u: r - 1 - log r = u^2/2 - u^3/3 + ...
        let near = gaussian_hyper_kl(&[0.0, 0.0], 1.0 + 1e-6, 1.0).unwrap();
        assert!((near - 0.5e-12).abs() < 1e-15);
        // a ratio below machine precision
        let tiny = gaussian_hyper_kl(&[0.0, 0.0], 1e-40, 1.0).unwrap();
        assert!((tiny - (-1.0 + 40.0 * 10.0_f64.ln())).abs() < 1e-10);
    }

    #[test]
    fn a_narrowing_gaussian_approaches_the_infinite_dirac() {
        let wide = gaussian_hyper_kl(&[1.0], 1e-3, 1.0).unwrap();
        let narrow = gaussian_hyper_kl(&[1.0], 1e-12, 1.0).unwrap();
        // half a unit of KL for each factor e in the variance
        assert!((narrow - wide - 0.5 * 9.0 * 10.0_f64.ln()).abs() < 1e-3);
        let dirac = HyperPosterior::Dirac { location: &[1.0] }.kl(1.0).unwrap_err();
        assert!(dirac.to_string().contains("objective"));
        assert!(gaussian_hyper_kl(&[1.0], 0.0, 1.0).is_err());
    }

    #[test]
    fn discrete_divergence_is_the_sum() {
        let (q, p) = ([0.2, 0.8, 0.0], [0.5, 0.25, 0.25]);
        let expected = 0.2 * (0.2_f64 / 0.5).ln() + 0.8 * (0.8_f64 / 0.25).ln();
        assert!((discrete_kl(&q, &p).unwrap() - expected).abs() < 1e-15);
        assert!((discrete_dirac_kl(1, &p).unwrap() - 4.0_f64.ln()).abs() < 1e-15);
        assert_eq!(discrete_kl(&[0.0, 1.0, 0.0], &p).unwrap(), discrete_dirac_kl(1, &p).unwrap());
        assert_eq!(discrete_dirac_kl(0, &[1.0]).unwrap(), 0.0);
    }

    #[test]
    fn impossible_distributions_are_refused() {
        assert_eq!(
            discrete_kl(&[0.5, 0.5], &[1.0, 0.0]),
            Err(BoundError::NotAbsolutelyContinuous { atom: 1 })
        );
        assert!(matches!(discrete_kl(&[1.0], &[0.5, 0.5]), Err(BoundError::LengthMismatch { .. })));
        assert!(matches!(discrete_kl(&[1.5, -0.5], &[0.5, 0.5]), Err(BoundError::NotADistribution { .. })));
        assert!(matches!(discrete_kl(&[f64::NAN], &[1.0]), Err(BoundError::NotADistribution { .. })));
        assert!(matches!(
            discrete_dirac_kl(2, &[0.5, 0.5]),
            Err(BoundError::NoSuchAtom { atom: 2, count: 2 })
        ));
        assert!(matches!(
            discrete_dirac_kl(0, &[0.0, 1.0]),
            Err(BoundError::NotAbsolutelyContinuous { atom: 0 })
        ));
        assert!(matches!(
            diagonal_gaussian_kl(&[0.0], &[1.0, 1.0], &[0.0], &[1.0]),
            Err(BoundError::LengthMismatch { .. })
        ));
    }

    #[test]
    fn the_gibbs_identity_equals_the_definition() {
        // Three hypotheses with losses l, prior p: Q = p exp(-alpha l)/Z.
        let (prior, losses, alpha) = ([0.2, 0.5, 0.3], [0.9, 0.1, 0.4], 3.0_f64);
        let weights: Vec<f64> = prior.iter().zip(losses).map(|(p, l)| p * (-alpha * l).exp()).collect();
        let z: f64 = weights.iter().sum();
        let q: Vec<f64> = weights.iter().map(|w| w / z).collect();
        let risk: f64 = q.iter().zip(losses).map(|(q, l)| q * l).sum();
        let expected = discrete_kl(&q, &prior).unwrap();
        assert!((gibbs_kl(alpha, risk, z.ln()).unwrap() - expected).abs() < 1e-14);
        // Constant losses leave the prior: KL 0 up to rounding, never negative.
        assert_eq!(gibbs_kl(1e6, 0.3, -0.3e6 * (1.0 - 1e-15)).unwrap(), 0.0);
        assert!(matches!(gibbs_kl(1.0, 0.5, 0.0), Err(BoundError::InconsistentGibbs { .. })));
    }
}
