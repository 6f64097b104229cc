//! Cumulant bounds: what a bound has to assume about how much a loss varies.
//!
//! For a hypothesis h and a task D, `psi_h(t) = log E_z exp(t (L(h, D) - l(h, z)))`, t > 0. Only the lower tail of the
//! loss enters. Theorem 1 needs `Psi1(beta/m)`; the meta-learning theorems also `Psi2(lambda/n)`, the same thing with
//! the true risk of the base learner on a random task in place of the loss on a random example.
//!
//! Uniform closed forms, valid for every hypothesis under the assumption named:
//!
//! | assumption | psi(t) |
//! |---|---|
//! | loss in \[a, b\] (Hoeffding) | t^2 (b - a)^2 / 8 |
//! | sub-Gaussian with variance factor s^2 | t^2 s^2 / 2 |
//! | sub-gamma with (s^2, c) | t^2 s^2 / (2 (1 - c t)), for c t < 1 |
//! | loss >= 0 with E_z\[l^2\] <= s^2 | t^2 s^2 / 2 |
//!
//! The last holds for every t > 0, however heavy the upper tail, since e^-u <= 1 - u + u^2/2 for u >= 0: it is the
//! natural assumption for the squared loss.
//!
//! **Averages.** What the proofs use is a moment over m examples that share a hypothesis,
//! `log E_h exp(m psi_h(t))`. The average over h is outside the power, so `m log E_h exp(psi_h(t))` is too small
//! (Jensen) and is not accepted. An average is therefore stored as `(1/k) log E exp(k psi(t))` together with its
//! power k, and each theorem checks the power:
//!
//! * Theorem 1: k >= m, the average being over h ~ P;
//! * Psi1 with n tasks: all tasks share one draw of the prior, so the product over tasks is inside the expectation
//!   over P as well. Per task (over P ~ calP, h ~ P) k >= n m_i is enough, by Hölder's inequality; the sharper way is
//!   [`JointPsi`], the expectation of the whole product;
//! * Psi2: k >= n, the average being over P ~ calP. Theorem 3 cannot use an averaged Psi2 at all.
//!
//! Power means grow with the power, so a larger k than needed is valid and only looser.

use crate::{
    error::{BoundError, finite, non_negative, positive},
    estimate::{Estimate, log_mean_exp, log_mean_exp_estimate, log_weighted_mean_exp},
};

/// Relative room for rounding when two temperatures should be the same number.
const TEMPERATURE_TOLERANCE: f64 = 1e-9;

/// Whether a value of psi holds for each hypothesis (or prior), or only on average over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// For every hypothesis (Psi1) or every prior (Psi2).
    Uniform,
    /// As `(1/power) log E exp(power psi)`.
    Average {
        /// The power inside the expectation.
        power: usize,
    },
}

/// A cumulant bound psi(t).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Psi {
    /// The loss lies in [low, high].
    Bounded {
        /// Smallest possible loss a.
        low: f64,
        /// Largest possible loss b.
        high: f64,
    },
    /// The loss is sub-Gaussian (lower tail) with this variance factor.
    SubGaussian {
        /// s^2.
        variance: f64,
    },
    /// The loss is sub-gamma (lower tail) with this variance factor and scale.
    SubGamma {
        /// s^2.
        variance: f64,
        /// c.
        scale: f64,
    },
    /// The loss is non-negative and its second moment E[l^2] is at most this.
    NonNegative {
        /// s^2.
        second_moment: f64,
    },
    /// A value that the caller knows to hold for every hypothesis (or prior), at one argument.
    Uniform {
        /// The argument t.
        temperature: f64,
        /// psi(t).
        value: f64,
    },
    /// An average over hypotheses (or priors), exact or by Monte Carlo.
    Averaged(AveragedPsi),
}

/// `(1/power) log E exp(power psi(t))` at one t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AveragedPsi {
    temperature: f64,
    power: usize,
    value: Estimate,
    effective_draws: Option<f64>,
}

impl AveragedPsi {
    /// From Monte-Carlo draws of hypotheses (or priors): the log-moments psi_h(t) at `temperature`, one per draw.
    ///
    /// The draws must be independent. The estimate is biased: a logarithm of a mean over few draws is too small on
    /// average, and so is each psi_h that is itself estimated from few losses (see [`log_moment_from_losses`]), while
    /// noise in psi_h enters an exponential and pulls the other way. Only many draws and many losses make it small.
    ///
    /// # Errors
    /// Fewer than two draws, a value that is not finite, a temperature that is not positive, or a power of zero.
    pub fn from_log_moments(temperature: f64, power: usize, log_moments: &[f64]) -> Result<Self, BoundError> {
        let (temperature, exponents) = Self::exponents(temperature, power, log_moments)?;
        let (log_mean, effective_draws) = log_mean_exp_estimate(&exponents)?;
        Ok(Self {
            temperature,
            power,
            value: log_mean.scaled(1.0 / power as f64),
            effective_draws: Some(effective_draws),
        })
    }

    /// The exact average over a finite distribution with these masses.
    ///
    /// # Errors
    /// As for [`AveragedPsi::from_log_moments`]; masses that are not a distribution.
    pub fn from_masses(
        temperature: f64,
        power: usize,
        masses: &[f64],
        log_moments: &[f64],
    ) -> Result<Self, BoundError> {
        let (temperature, exponents) = Self::exponents(temperature, power, log_moments)?;
        let value = log_weighted_mean_exp(masses, &exponents)? / power as f64;
        Ok(Self { temperature, power, value: value.into(), effective_draws: None })
    }

    fn exponents(temperature: f64, power: usize, log_moments: &[f64]) -> Result<(f64, Vec<f64>), BoundError> {
        positive("the temperature of psi", temperature)?;
        if power == 0 {
            return Err(BoundError::NotPositive { what: "the power inside the average", value: 0.0 });
        }
        let exponents = log_moments.iter().map(|psi| psi * power as f64).collect();
        Ok((temperature, exponents))
    }

    /// The value and its standard error.
    #[must_use]
    pub fn value(&self) -> Estimate {
        self.value
    }

    /// The power inside the expectation.
    #[must_use]
    pub fn power(&self) -> usize {
        self.power
    }

    /// How many of the draws carry the weight; `None` for an exact average. A value near 1 says that the standard
    /// error cannot be trusted.
    #[must_use]
    pub fn effective_draws(&self) -> Option<f64> {
        self.effective_draws
    }
}

impl Psi {
    /// psi at `temperature`.
    ///
    /// # Errors
    /// Parameters out of range; a sub-gamma loss beyond its range; a value that is known at another temperature.
    pub fn at(&self, temperature: f64) -> Result<Estimate, BoundError> {
        let t = positive("the temperature of psi", temperature)?;
        let value = match *self {
            Self::Bounded { low, high } => {
                if !(low <= high && low.is_finite() && high.is_finite()) {
                    return Err(BoundError::Interval { low, high });
                }
                t * t * (high - low).powi(2) / 8.0
            }
            Self::SubGaussian { variance } => t * t * non_negative("the variance factor", variance)? / 2.0,
            Self::SubGamma { variance, scale } => {
                non_negative("the variance factor", variance)?;
                non_negative("the sub-gamma scale", scale)?;
                if scale * t >= 1.0 {
                    return Err(BoundError::SubGammaRange { scale, temperature });
                }
                t * t * variance / (2.0 * (1.0 - scale * t))
            }
            Self::NonNegative { second_moment } => {
                t * t * non_negative("the second moment", second_moment)? / 2.0
            }
            Self::Uniform { temperature: known, value } => {
                same_temperature(known, t)?;
                non_negative("psi", value)?
            }
            Self::Averaged(average) => {
                same_temperature(average.temperature, t)?;
                return average.value.checked("psi");
            }
        };
        Ok(finite("psi", value)?.into())
    }

    /// Whether it holds for each hypothesis (or prior) or on average.
    #[must_use]
    pub fn reach(&self) -> Reach {
        match self {
            Self::Averaged(average) => Reach::Average { power: average.power },
            _ => Reach::Uniform,
        }
    }

    /// psi at `temperature`, provided that it may stand for a moment of this power.
    pub(crate) fn at_power(
        &self,
        what: &'static str,
        temperature: f64,
        needed: Option<usize>,
    ) -> Result<Estimate, BoundError> {
        if let Reach::Average { power } = self.reach() {
            // A product n * m that overflows cannot be reached by any power.
            let needed = needed.unwrap_or(usize::MAX);
            if power < needed {
                return Err(BoundError::PsiPower { what, needed, given: power });
            }
        }
        self.at(temperature)
    }
}

fn same_temperature(known: f64, needed: f64) -> Result<(), BoundError> {
    if (known - needed).abs() <= TEMPERATURE_TOLERANCE * needed {
        Ok(())
    } else {
        Err(BoundError::PsiTemperature { known, needed })
    }
}

/// Psi1 for a set of tasks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExamplePsi {
    /// One assumption for all tasks.
    Shared(Psi),
    /// One for each task, in the order of the tasks.
    PerTask(Vec<Psi>),
    /// The moment of all tasks together.
    Joint(JointPsi),
}

impl From<Psi> for ExamplePsi {
    fn from(psi: Psi) -> Self {
        Self::Shared(psi)
    }
}

/// The moment of all observed tasks together, with the products over tasks and examples inside the expectation over
/// the hyper-prior: `log E_{P ~ calP} prod_i E_{h ~ P} exp(m_i psi_{i,h}(beta/m_i))`. The part of the bound is that
/// divided by `n beta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointPsi {
    beta: f64,
    tasks: usize,
    log_moment: Estimate,
    effective_draws: Option<f64>,
}

impl JointPsi {
    /// From Monte-Carlo draws: for each, a prior P ~ calP, one independent hypothesis h_i ~ P for each of the `tasks`
    /// tasks, and the sum `sum_i m_i psi_{i,h_i}(beta/m_i)`.
    ///
    /// # Errors
    /// Fewer than two draws, a sum that is not finite, beta not positive, no tasks.
    pub fn from_draws(beta: f64, tasks: usize, sums: &[f64]) -> Result<Self, BoundError> {
        let (log_moment, effective) = log_mean_exp_estimate(sums)?;
        Self::exact(beta, tasks, 0.0).map(|joint| Self {
            log_moment,
            effective_draws: Some(effective),
            ..joint
        })
    }

    /// From the exact value of the log-moment.
    ///
    /// # Errors
    /// A value that is not finite or is negative (a log-moment never is), beta not positive, no tasks.
    pub fn exact(beta: f64, tasks: usize, log_moment: f64) -> Result<Self, BoundError> {
        positive("beta", beta)?;
        if tasks == 0 {
            return Err(BoundError::NoTasks);
        }
        let log_moment = non_negative("the joint log-moment", log_moment)?.into();
        Ok(Self { beta, tasks, log_moment, effective_draws: None })
    }

    /// The log-moment and its standard error.
    #[must_use]
    pub fn log_moment(&self) -> Estimate {
        self.log_moment
    }

    /// How many of the draws carry the weight; `None` for an exact value.
    #[must_use]
    pub fn effective_draws(&self) -> Option<f64> {
        self.effective_draws
    }

    /// The part of the bound.
    pub(crate) fn part(&self, beta: f64, tasks: usize) -> Result<Estimate, BoundError> {
        if tasks != self.tasks || same_temperature(self.beta, beta).is_err() {
            let (given_beta, given_tasks) = (self.beta, self.tasks);
            return Err(BoundError::JointPsiMismatch { given_beta, given_tasks, beta, tasks });
        }
        Ok(self.log_moment.scaled(1.0 / (tasks as f64 * beta)))
    }
}

/// psi_h(t) of one hypothesis from losses on fresh examples, `log mean exp(t (mean l - l_j))`, with a standard error
/// that counts the noise of the mean as well as that of the exponentials.
///
/// # Errors
/// Fewer than two losses, a loss that is not finite, or a temperature that is not positive.
pub fn log_moment_from_losses(temperature: f64, losses: &[f64]) -> Result<Estimate, BoundError> {
    positive("the temperature of psi", temperature)?;
    let mean = Estimate::mean_of(losses)?.value;
    let exponents: Vec<f64> = losses.iter().map(|loss| temperature * (mean - loss)).collect();
    let value = log_mean_exp(&exponents)?;
    // Influence of one example on t mean(l) + log mean exp(-t l).
    let influence: Vec<f64> =
        exponents.iter().map(|exponent| -exponent + (exponent - value).exp() - 1.0).collect();
    let error = Estimate::mean_of(&influence)?.standard_error.unwrap_or(0.0);
    Estimate::monte_carlo(value, error).checked("psi")
}

#[cfg(test)]
mod tests;
