//! PAC-Bayes bounds for supervised learning and for meta-learning, as functions of plain numbers.
//!
//! A caller brings what it measured (per-task empirical Gibbs risks and divergences, example counts, the divergence
//! of the hyper-posterior) and what it assumes about the loss ([`Psi`]); [`theorem_1`], [`theorem_2`],
//! [`theorem_3`], [`corollary`] and [`theorem_4`] return a [`Bound`] whose terms can be read one by one. With
//! probability at least `1 - delta` over the observed tasks and their examples,
//!
//! ```text
//! R(calQ, T) <= mean_i risk_i + 1/(n beta) sum_i KL(Q_i || P) + xi KL(calQ || calP) + xi log(2/delta)
//!               + mean_i (m_i/beta) Psi1(beta/m_i) + (n/lambda) Psi2(lambda/n) [+ gap]
//! xi          = 1/lambda + 1/(n beta)
//! ```
//!
//! Three kinds of number are kept apart by type:
//!
//! * a [`Bound`] whose [`Certainty`] is `Guaranteed`: every term is exact or a closed form;
//! * a [`Bound`] that is `Estimated`: some term came from Monte Carlo, and the standard error says how much;
//! * an [`Objective`]: what a method minimises. It leaves out constants (some of them infinite) and bounds nothing.
//!
//! Anything that would make the number meaningless is refused with a [`BoundError`] that says why and what to do.
//! The mathematics, including the places where the published statements have to be read with care, is in
//! `docs/theory.md`.
//!
//! # Example
//!
//! ```
//! use pacmeta_bounds::{MetaSettings, Psi, TaskTerms, gaussian_hyper_kl, theorem_2};
//!
//! # fn main() -> Result<(), pacmeta_bounds::BoundError> {
//! let settings = MetaSettings {
//!     beta: 20.0,
//!     lambda: 40.0,
//!     delta: 0.05,
//!     example_psi: Psi::Bounded { low: 0.0, high: 1.0 }.into(),
//!     task_psi: Psi::Bounded { low: 0.0, high: 1.0 },
//! };
//! let tasks = vec![TaskTerms::new(0.10, 0.8, 50), TaskTerms::new(0.14, 1.1, 40)];
//! let hyper_kl = gaussian_hyper_kl(&[0.3, -0.1], 0.5, 1.0)?;
//! let bound = theorem_2(&settings, &tasks, hyper_kl)?;
//! for (name, term) in bound.terms() {
//!     println!("{name}: {}", term.value);
//! }
//! assert!(bound.total().value > 0.12);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bound;
mod divergence;
mod error;
mod estimate;
mod gap;
mod objective;
mod psi;
mod theorems;

pub use bound::{Bound, Theorem};
pub use divergence::{
    HyperPosterior, diagonal_gaussian_kl, discrete_dirac_kl, discrete_kl, gaussian_hyper_kl, gibbs_kl,
};
pub use error::BoundError;
pub use estimate::{Certainty, Estimate, log_mean_exp, log_mean_exp_estimate, log_weighted_mean_exp};
pub use gap::{CorollaryGap, HyperPriorGap, RiskDifference, RiskPair};
pub use objective::{MetaMethod, Objective, PacmamlTask, PacohTask, pacmaml_objective, pacoh_objective};
pub use psi::{AveragedPsi, ExamplePsi, JointPsi, Psi, Reach, log_moment_from_losses};
pub use theorems::{
    EnvironmentSizes, MetaSettings, SubsampledTask, SupervisedSettings, TaskTerms, corollary, theorem_1,
    theorem_2, theorem_3, theorem_4, xi,
};
