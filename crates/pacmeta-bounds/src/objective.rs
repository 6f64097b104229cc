//! What PACOH and PACMAML minimise: the part of a bound that depends on the prior's parameters.
//!
//! With Gibbs posteriors as base learners the empirical risk and the divergence of a task combine into
//!
//! ```text
//! W_1 = L^(Q_beta, S)  + KL(Q_beta || P)/beta  = -log Z_beta(S)/beta
//! W_2 = L^(Q_alpha, S) + KL(Q_alpha || P)/beta = -log Z_alpha(S')/beta + L^(Q_alpha, S) - (alpha/beta) L^(Q_alpha, S')
//! ```
//!
//! and the MAP hyper-posterior, a Dirac at theta, leaves `xi |theta|^2/(2 sigma0^2)` of its infinite divergence. The sum
//! has the same gradient as the bound and is **not** a bound: confidence, psi, gap and the Dirac's constant are missing.
//! It is another type, and nothing turns it into a [`crate::Bound`].

use crate::error::{BoundError, finite, non_negative, positive};

/// Whose objective it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetaMethod {
    /// W_1, from Theorem 2: the base learner sees the whole task.
    Pacoh,
    /// W_2, from Theorem 4: the base learner sees a subset.
    Pacmaml,
}

/// One task of PACOH.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacohTask {
    /// log Z_beta(S) = log E_{h ~ P} exp(-beta L^(h, S)).
    pub log_partition: f64,
}

impl PacohTask {
    /// W_1.
    ///
    /// # Errors
    /// beta not positive, or a number that is not finite.
    pub fn w1(&self, beta: f64) -> Result<f64, BoundError> {
        positive("beta", beta)?;
        finite("W_1", -finite("the log partition function", self.log_partition)? / beta)
    }
}

/// One task of PACMAML.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacmamlTask {
    /// log Z_alpha(S') = log E_{h ~ P} exp(-alpha L^(h, S')).
    pub log_partition: f64,
    /// L^(Q_alpha, S), on all examples.
    pub risk: f64,
    /// L^(Q_alpha, S'), on the subset.
    pub adapt_risk: f64,
}

impl PacmamlTask {
    /// W_2.
    ///
    /// # Errors
    /// alpha or beta not positive, or a number that is not finite.
    pub fn w2(&self, alpha: f64, beta: f64) -> Result<f64, BoundError> {
        positive("alpha", alpha)?;
        positive("beta", beta)?;
        finite("the log partition function", self.log_partition)?;
        finite("a risk on the whole task", self.risk)?;
        finite("a risk on the subset", self.adapt_risk)?;
        finite("W_2", -self.log_partition / beta + self.risk - alpha / beta * self.adapt_risk)
    }
}

/// An objective, term by term. Not a bound: constants are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Objective {
    /// Whose it is.
    pub method: MetaMethod,
    /// Mean over tasks of -log Z/beta.
    pub log_partition: f64,
    /// Mean over tasks of L^(Q_alpha, S); zero for PACOH, whose partition function contains it.
    pub risk: f64,
    /// Mean over tasks of -(alpha/beta) L^(Q_alpha, S'); zero for PACOH.
    pub adapt_risk: f64,
    /// xi |theta|^2/(2 sigma0^2).
    pub hyper_prior: f64,
}

impl Objective {
    /// The terms by name. Their sum is [`Objective::total`].
    #[must_use]
    pub fn terms(&self) -> [(&'static str, f64); 4] {
        [
            ("log_partition", self.log_partition),
            ("risk", self.risk),
            ("adapt_risk", self.adapt_risk),
            ("hyper_prior", self.hyper_prior),
        ]
    }

    /// Mean of W_1 or W_2 over tasks.
    #[must_use]
    pub fn mean_task(&self) -> f64 {
        self.log_partition + self.risk + self.adapt_risk
    }

    /// The number that training minimises.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.mean_task() + self.hyper_prior
    }

    fn checked(self) -> Result<Self, BoundError> {
        finite("the objective", self.total())?;
        Ok(self)
    }
}

/// xi |theta|^2/(2 sigma0^2).
fn hyper_prior_term(xi: f64, squared_norm: f64, hyper_prior_variance: f64) -> Result<f64, BoundError> {
    non_negative("xi", xi)?;
    non_negative("the squared norm of the parameters", squared_norm)?;
    positive("the hyper-prior's variance", hyper_prior_variance)?;
    finite("the hyper-prior term", xi * squared_norm / (2.0 * hyper_prior_variance))
}

/// PACOH's objective: mean W_1 + xi |theta|^2/(2 sigma0^2).
///
/// # Errors
/// No tasks, parameters out of range, or a number that is not finite.
pub fn pacoh_objective(
    beta: f64,
    xi: f64,
    tasks: &[PacohTask],
    squared_norm: f64,
    hyper_prior_variance: f64,
) -> Result<Objective, BoundError> {
    if tasks.is_empty() {
        return Err(BoundError::NoTasks);
    }
    let mut log_partition = 0.0;
    for task in tasks {
        log_partition += task.w1(beta)? / tasks.len() as f64;
    }
    let hyper_prior = hyper_prior_term(xi, squared_norm, hyper_prior_variance)?;
    Objective { method: MetaMethod::Pacoh, log_partition, risk: 0.0, adapt_risk: 0.0, hyper_prior }.checked()
}

/// PACMAML's objective: mean W_2 + xi |theta|^2/(2 sigma0^2).
///
/// # Errors
/// No tasks, parameters out of range, or a number that is not finite.
pub fn pacmaml_objective(
    alpha: f64,
    beta: f64,
    xi: f64,
    tasks: &[PacmamlTask],
    squared_norm: f64,
    hyper_prior_variance: f64,
) -> Result<Objective, BoundError> {
    if tasks.is_empty() {
        return Err(BoundError::NoTasks);
    }
    let n = tasks.len() as f64;
    let (mut log_partition, mut risk, mut adapt_risk) = (0.0, 0.0, 0.0);
    for task in tasks {
        task.w2(alpha, beta)?;
        log_partition -= task.log_partition / (n * beta);
        risk += task.risk / n;
        adapt_risk -= alpha / beta * task.adapt_risk / n;
    }
    let hyper_prior = hyper_prior_term(xi, squared_norm, hyper_prior_variance)?;
    Objective { method: MetaMethod::Pacmaml, log_partition, risk, adapt_risk, hyper_prior }.checked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::{discrete_kl, gibbs_kl};

    const PRIOR: [f64; 3] = [0.3, 0.3, 0.4];
    /// Empirical losses of three hypotheses on S and on S'.
    const WHOLE: [f64; 3] = [0.2, 0.6, 0.5];
    const SUBSET: [f64; 3] = [0.0, 0.7, 0.3];

    /// Posterior and log Z of a Gibbs posterior on three hypotheses.
    fn gibbs(temperature: f64, losses: [f64; 3]) -> (Vec<f64>, f64) {
        let weights: Vec<f64> = PRIOR.iter().zip(losses).map(|(p, l)| p * (-temperature * l).exp()).collect();
        let z: f64 = weights.iter().sum();
        (weights.iter().map(|weight| weight / z).collect(), z.ln())
    }

    fn risk(q: &[f64], losses: [f64; 3]) -> f64 {
        q.iter().zip(losses).map(|(q, l)| q * l).sum()
    }

    #[test]
    fn w1_and_w2_are_risk_plus_divergence() {
        let (alpha, beta) = (1.7, 5.0);
        let (q, log_partition) = gibbs(beta, WHOLE);
        let expected = risk(&q, WHOLE) + discrete_kl(&q, &PRIOR).unwrap() / beta;
        assert!((PacohTask { log_partition }.w1(beta).unwrap() - expected).abs() < 1e-14);

        let (q, log_partition) = gibbs(alpha, SUBSET);
        let expected = risk(&q, WHOLE) + discrete_kl(&q, &PRIOR).unwrap() / beta;
        let task = PacmamlTask { log_partition, risk: risk(&q, WHOLE), adapt_risk: risk(&q, SUBSET) };
        assert!((task.w2(alpha, beta).unwrap() - expected).abs() < 1e-14);
        let through_identity = task.risk + gibbs_kl(alpha, task.adapt_risk, log_partition).unwrap() / beta;
        assert!((task.w2(alpha, beta).unwrap() - through_identity).abs() < 1e-14);
    }

    #[test]
    fn pacmaml_on_the_whole_task_is_pacoh() {
        let beta = 5.0;
        let (q, log_partition) = gibbs(beta, WHOLE);
        let whole = risk(&q, WHOLE);
        let pacmaml = PacmamlTask { log_partition, risk: whole, adapt_risk: whole };
        let first = pacoh_objective(beta, 0.1, &[PacohTask { log_partition }], 4.0, 3.0).unwrap();
        let second = pacmaml_objective(beta, beta, 0.1, &[pacmaml], 4.0, 3.0).unwrap();
        assert!((first.total() - second.total()).abs() < 1e-14);
    }

    #[test]
    fn terms_add_up_and_carry_their_names() {
        let tasks = [
            PacmamlTask { log_partition: -1.0, risk: 0.4, adapt_risk: 0.2 },
            PacmamlTask { log_partition: -2.0, risk: 0.6, adapt_risk: 0.1 },
        ];
        let objective = pacmaml_objective(2.0, 10.0, 0.05, &tasks, 8.0, 2.0).unwrap();
        assert!((objective.log_partition - 0.15).abs() < 1e-15);
        assert!((objective.risk - 0.5).abs() < 1e-15);
        assert!((objective.adapt_risk + 0.03).abs() < 1e-15);
        assert!((objective.hyper_prior - 0.1).abs() < 1e-15);
        let sum: f64 = objective.terms().iter().map(|(_, value)| value).sum();
        assert!((objective.total() - sum).abs() < 1e-15);
        let mean_w = (tasks[0].w2(2.0, 10.0).unwrap() + tasks[1].w2(2.0, 10.0).unwrap()) / 2.0;
        assert!((objective.mean_task() - mean_w).abs() < 1e-15);
    }

    #[test]
    fn bad_numbers_are_refused() {
        let task = PacohTask { log_partition: -1.0 };
        assert_eq!(pacoh_objective(1.0, 0.1, &[], 1.0, 1.0), Err(BoundError::NoTasks));
        assert!(pacoh_objective(0.0, 0.1, &[task], 1.0, 1.0).is_err());
        assert!(pacoh_objective(1.0, -0.1, &[task], 1.0, 1.0).is_err());
        assert!(pacoh_objective(1.0, 0.1, &[task], -1.0, 1.0).is_err());
        assert!(pacoh_objective(1.0, 0.1, &[task], 1.0, 0.0).is_err());
        assert!(pacoh_objective(1.0, 0.1, &[PacohTask { log_partition: f64::NAN }], 1.0, 1.0).is_err());
        let broken = PacmamlTask { log_partition: -1.0, risk: f64::INFINITY, adapt_risk: 0.0 };
        assert!(pacmaml_objective(1.0, 1.0, 0.1, &[broken], 1.0, 1.0).is_err());
    }
}
