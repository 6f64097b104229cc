//! The pieces of the Sinusoid study: a method with its numbers, on one meta-training set, from one seed.

use serde::{Deserialize, Serialize};

use super::gap::{self, GapDraws};
use super::model::{self, Measured};
use crate::config::Config;
use crate::error::Result;
use crate::studies::spec::{Spec, Stop};

/// n, the observed tasks of a meta-training set.
pub const OBSERVED_TASKS: usize = 20;
/// The target tasks.
pub const TARGET_TASKS: usize = 20;
/// m, the examples of a target task that are adapted to; also m', the size of S'.
pub const SUPPORT: usize = 5;
/// The examples of a target task that are scored.
pub const QUERY: usize = 100;

/// A method and the numbers that the study searches for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Setting {
    /// PACOH.
    Pacoh {
        /// beta/m_i.
        beta_per_example: f64,
    },
    /// PACMAML.
    Pacmaml {
        /// beta/m_i.
        beta_per_example: f64,
        /// alpha/beta.
        alpha_over_beta: f64,
    },
    /// Reptile with the paper's ten steps of L-BFGS.
    Reptile {
        /// beta/m_i.
        beta_per_example: f64,
    },
    /// MAML, exact.
    Maml {
        /// The inner rate.
        rate: f64,
        /// Inner steps.
        steps: usize,
    },
    /// First-order MAML.
    Fomaml {
        /// The inner rate.
        rate: f64,
        /// Inner steps.
        steps: usize,
    },
    /// One network for all tasks, fine-tuned at target tasks.
    MultiTask {
        /// The rate at target tasks.
        rate: f64,
        /// The steps at target tasks.
        steps: usize,
    },
    /// A Gaussian process fitted to the support alone.
    PlainGp,
}

/// The methods, by which settings are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StudyMethod {
    /// PACMAML.
    Pacmaml,
    /// PACOH.
    Pacoh,
    /// MAML.
    Maml,
    /// Reptile.
    Reptile,
    /// FOMAML.
    Fomaml,
    /// Multi-task.
    MultiTask,
    /// Plain GP.
    PlainGp,
}

impl StudyMethod {
    /// All, in the order of figures.
    pub const ALL: [Self; 7] =
        [Self::Pacmaml, Self::Pacoh, Self::Maml, Self::Reptile, Self::Fomaml, Self::MultiTask, Self::PlainGp];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pacmaml => "PACMAML",
            Self::Pacoh => "PACOH",
            Self::Maml => "MAML",
            Self::Reptile => "Reptile",
            Self::Fomaml => "FOMAML",
            Self::MultiTask => "multi-task",
            Self::PlainGp => "plain GP",
        }
    }

    /// Whether the base learner is a Gibbs posterior, which has a temperature at target tasks.
    pub fn is_gibbs(self) -> bool {
        matches!(self, Self::Pacmaml | Self::Pacoh)
    }
}

impl Setting {
    /// The method.
    pub fn method(&self) -> StudyMethod {
        match self {
            Self::Pacoh { .. } => StudyMethod::Pacoh,
            Self::Pacmaml { .. } => StudyMethod::Pacmaml,
            Self::Reptile { .. } => StudyMethod::Reptile,
            Self::Maml { .. } => StudyMethod::Maml,
            Self::Fomaml { .. } => StudyMethod::Fomaml,
            Self::MultiTask { .. } => StudyMethod::MultiTask,
            Self::PlainGp => StudyMethod::PlainGp,
        }
    }

    /// beta/m_i, where there is one.
    pub fn beta_per_example(&self) -> Option<f64> {
        match self {
            Self::Pacoh { beta_per_example }
            | Self::Pacmaml { beta_per_example, .. }
            | Self::Reptile { beta_per_example } => Some(*beta_per_example),
            _ => None,
        }
    }

    /// alpha/beta, where there is one.
    pub fn alpha_over_beta(&self) -> Option<f64> {
        match self {
            Self::Pacmaml { alpha_over_beta, .. } => Some(*alpha_over_beta),
            _ => None,
        }
    }

    /// The rate of steps on a task, where there are any.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Maml { rate, .. } | Self::Fomaml { rate, .. } | Self::MultiTask { rate, .. } => Some(*rate),
            _ => None,
        }
    }

    /// The number of steps on a task, where there are any.
    pub fn steps(&self) -> Option<usize> {
        match self {
            Self::Maml { steps, .. } | Self::Fomaml { steps, .. } | Self::MultiTask { steps, .. } => {
                Some(*steps)
            }
            _ => None,
        }
    }

    /// The numbers in words.
    pub fn numbers(&self) -> String {
        match self {
            Self::Pacoh { beta_per_example } | Self::Reptile { beta_per_example } => {
                format!("β/mᵢ = {beta_per_example}")
            }
            Self::Pacmaml { beta_per_example, alpha_over_beta } => {
                format!("β/mᵢ = {beta_per_example}, α/β = {alpha_over_beta}")
            }
            Self::MultiTask { steps: 0, .. } => "no steps".to_owned(),
            Self::Maml { rate, steps } | Self::Fomaml { rate, steps } | Self::MultiTask { rate, steps } => {
                let unit = if *steps == 1 { "step" } else { "steps" };
                format!("{steps} {unit} at rate {rate}")
            }
            Self::PlainGp => String::new(),
        }
    }

    /// The `[method]` section of a configuration.
    fn section(&self) -> Option<String> {
        Some(match self {
            Self::Pacoh { beta_per_example } => {
                format!("name = \"pacoh\"\nbeta_per_example = {beta_per_example:?}")
            }
            Self::Pacmaml { beta_per_example, alpha_over_beta } => format!(
                "name = \"pacmaml\"\nbeta_per_example = {beta_per_example:?}\nalpha_over_beta = {alpha_over_beta:?}"
            ),
            Self::Reptile { beta_per_example } => {
                format!("name = \"reptile\"\nbeta_per_example = {beta_per_example:?}")
            }
            Self::Maml { rate, steps } => format!("name = \"maml\"\nrate = {rate:?}\nsteps = {steps}"),
            Self::Fomaml { rate, steps } => format!("name = \"fomaml\"\nrate = {rate:?}\nsteps = {steps}"),
            Self::MultiTask { rate, steps } => {
                format!("name = \"multi-task\"\nrate = {rate:?}\nsteps = {steps}")
            }
            Self::PlainGp => return None,
        })
    }
}

/// A departure from the paper's protocol, for ablations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Variant {
    /// None.
    #[default]
    Paper,
    /// S' is drawn once for each task instead of at each iteration.
    FixedSubsets,
    /// Data are not standardised.
    Unstandardised,
    /// The hyper-prior is so wide that it does not act.
    NoHyperPrior,
    /// Reptile's inner optimum is searched for until it is found, for fewer iterations.
    Converged,
}

impl Variant {
    /// The part of the iterations that [`Variant::Converged`] makes, as a divisor.
    pub const CONVERGED_PART: u64 = 40;

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "as in the paper",
            Self::FixedSubsets => "S' drawn once",
            Self::Unstandardised => "without standardisation",
            Self::NoHyperPrior => "without hyper-prior",
            Self::Converged => "inner optimum converged, a fortieth of the iterations",
        }
    }
}

/// A model of the study.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The method and its numbers.
    #[serde(flatten)]
    pub setting: Setting,
    /// m_i.
    pub examples: usize,
    /// Which meta-training set.
    pub data_set: u64,
    /// Which initialisation and order of batches.
    pub seed: u64,
    /// Iterations.
    pub iterations: u64,
    /// What is done otherwise than in the paper.
    pub variant: Variant,
    /// Whether predictions on a few target tasks are kept for drawing.
    pub illustrated: bool,
}

impl ModelSpec {
    /// The configuration that trains it; none where nothing is trained.
    pub(super) fn config(&self) -> Result<Option<Config>> {
        let Some(mut section) = self.setting.section() else { return Ok(None) };
        match self.variant {
            Variant::FixedSubsets => section.push_str("\nresample = \"fixed\""),
            Variant::NoHyperPrior => section.push_str("\nsigma0_squared = 1e12"),
            Variant::Converged => section.push_str("\ninner_optimiser = \"converged\""),
            Variant::Paper | Variant::Unstandardised => {}
        }
        let text = format!(
            "seed = {}\n[data]\nenvironment = \"sinusoid\"\ntasks = {OBSERVED_TASKS}\nexamples = {}\n\
             target_tasks = {TARGET_TASKS}\nsupport = {SUPPORT}\nquery = {QUERY}\nstandardise = {}\n\
             [method]\n{section}\n[training]\niterations = {}\n",
            // Every meta-training set has initialisations of its own; methods and sizes share them.
            1000 * self.data_set + self.seed,
            self.examples,
            self.variant != Variant::Unstandardised,
            self.iterations,
        );
        Config::parse("the study's specification", &text, &[]).map(Some)
    }

    /// Microseconds of an iteration, roughly, on the machine of `docs/results.md`.
    fn iteration_cost(&self) -> f64 {
        let examples = self.examples as f64;
        match self.setting {
            Setting::Pacoh { .. } => 12.0 + 2.8 * examples + 0.035 * examples * examples,
            Setting::Pacmaml { .. } => 20.0 + 2.5 * examples,
            Setting::Reptile { .. } if self.variant == Variant::Converged => 3e4 + 1500.0 * examples,
            Setting::Reptile { .. } => 390.0 + 13.0 * examples,
            Setting::Maml { steps, .. } => 20.0 + 28.0 * steps as f64 + 1.8 * examples,
            Setting::Fomaml { steps, .. } => 20.0 + 12.0 * steps as f64 + 1.8 * examples,
            Setting::MultiTask { .. } => 10.0 + 1.5 * examples,
            Setting::PlainGp => 0.0,
        }
    }
}

/// A piece of the study.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SinusoidSpec {
    /// A model, trained and measured.
    Model(ModelSpec),
    /// Risks of priors drawn from the hyper-prior, for the gap of Theorem 3.
    HyperPrior {
        /// m_i.
        examples: usize,
        /// beta/m_i.
        beta_per_example: f64,
        /// Draws of priors.
        draws: usize,
    },
}

/// What came out of a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SinusoidOutcome {
    /// Of a model.
    Model(Box<Measured>),
    /// Of draws of priors.
    HyperPrior(GapDraws),
}

impl Spec for SinusoidSpec {
    const STUDY: &'static str = "sinusoid";
    const VERSION: u32 = 1;
    type Outcome = SinusoidOutcome;

    fn label(&self) -> String {
        match self {
            Self::Model(model) => {
                let method = model.setting.method().name();
                format!("{method}, mᵢ = {}, {}", model.examples, model.setting.numbers())
            }
            Self::HyperPrior { examples, beta_per_example, .. } => {
                format!("hyper-prior draws, mᵢ = {examples}, β/mᵢ = {beta_per_example}")
            }
        }
    }

    fn cost(&self) -> f64 {
        match self {
            // Measuring a model takes about 50 milliseconds, fitting plain GPs rather more.
            Self::Model(model) if model.setting == Setting::PlainGp => 2e5,
            Self::Model(model) => 5e4 + model.iterations as f64 * model.iteration_cost(),
            Self::HyperPrior { examples, draws, .. } => {
                let examples = *examples as f64;
                *draws as f64 * (300.0 + 8.0 * examples + 0.15 * examples * examples)
            }
        }
    }

    fn run(&self, stop: Stop<'_>) -> Result<SinusoidOutcome> {
        Ok(match self {
            Self::Model(model) => SinusoidOutcome::Model(Box::new(model::measure(model, stop)?)),
            Self::HyperPrior { examples, beta_per_example, draws } => {
                SinusoidOutcome::HyperPrior(gap::draw(*examples, *beta_per_example, *draws)?)
            }
        })
    }
}
