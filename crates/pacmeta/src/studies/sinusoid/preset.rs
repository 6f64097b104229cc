//! How much of the study is run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::spec::{ModelSpec, Setting, SinusoidSpec, StudyMethod, Variant};
use crate::error::{Error, Result};

/// A size of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A small part of it, in a minute.
    #[default]
    Quick,
    /// The paper's grid.
    Paper,
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
        })
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "quick" => Ok(Self::Quick),
            "paper" => Ok(Self::Paper),
            _ => Err(Error::input("--preset", format!("there is no `{name}`; expected quick or paper"))),
        }
    }
}

/// What is run: every number that decides which models there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Where the plan started from.
    pub preset: Preset,
    /// The values of m_i.
    pub examples: Vec<usize>,
    /// The values of beta/m_i, for PACOH, PACMAML and Reptile.
    pub beta_per_example: Vec<f64>,
    /// The values of alpha/beta, for PACMAML.
    pub alpha_over_beta: Vec<f64>,
    /// The inner rates of MAML and FOMAML, and the rates of fine-tuning.
    pub inner_rates: Vec<f64>,
    /// The inner steps of MAML and FOMAML.
    pub inner_steps: Vec<usize>,
    /// Meta-training sets.
    pub data_sets: u64,
    /// Seeds for each.
    pub seeds: u64,
    /// Iterations of a model.
    pub iterations: u64,
    /// Draws of priors from the hyper-prior.
    pub hyper_prior_draws: usize,
    /// Meta-training sets of the ablation, one seed each; 0 leaves it out.
    pub ablation_sets: u64,
}

impl Plan {
    /// The plan of a preset.
    pub fn new(preset: Preset) -> Self {
        match preset {
            Preset::Paper => Self {
                preset,
                examples: vec![5, 10, 30, 50, 100],
                beta_per_example: vec![10.0, 30.0, 100.0],
                alpha_over_beta: vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
                inner_rates: vec![0.03, 0.1],
                inner_steps: vec![1, 5],
                data_sets: 8,
                seeds: 5,
                iterations: 8000,
                hyper_prior_draws: 1000,
                ablation_sets: 8,
            },
            Preset::Quick => Self {
                preset,
                examples: vec![5, 10, 30, 100],
                beta_per_example: vec![30.0, 100.0],
                alpha_over_beta: vec![0.1, 0.2, 0.4],
                inner_rates: vec![0.03, 0.1],
                inner_steps: vec![5],
                data_sets: 3,
                seeds: 1,
                iterations: 2000,
                hyper_prior_draws: 100,
                ablation_sets: 0,
            },
        }
    }

    /// Refuses a plan that nobody could run: it comes from a file.
    ///
    /// # Errors
    /// When a list is empty or the pieces are too many.
    pub fn check(&self) -> Result<()> {
        const MOST_PIECES: u64 = 10_000_000;
        let lists = [
            ("examples", self.examples.len()),
            ("beta_per_example", self.beta_per_example.len()),
            ("alpha_over_beta", self.alpha_over_beta.len()),
            ("inner_rates", self.inner_rates.len()),
            ("inner_steps", self.inner_steps.len()),
        ];
        if let Some((key, _)) = lists.iter().find(|(_, length)| *length == 0) {
            return Err(Error::input("the plan of the study", format!("key `{key}`: the list is empty")));
        }
        let sizes = [self.data_sets.max(self.ablation_sets), self.seeds].into_iter();
        let pieces = sizes.chain(lists.iter().map(|(_, length)| *length as u64)).fold(1, u64::saturating_mul);
        if pieces > MOST_PIECES {
            let message = format!("has {pieces} pieces or so; the most is {MOST_PIECES}");
            return Err(Error::input("the plan of the study", message));
        }
        Ok(())
    }

    /// The settings of a method.
    pub fn settings(&self, method: StudyMethod) -> Vec<Setting> {
        let per_beta =
            |setting: &dyn Fn(f64) -> Setting| self.beta_per_example.iter().map(|b| setting(*b)).collect();
        let inner = |setting: &dyn Fn(f64, usize) -> Setting| -> Vec<Setting> {
            let steps = &self.inner_steps;
            self.inner_rates
                .iter()
                .flat_map(|rate| steps.iter().map(|steps| setting(*rate, *steps)))
                .collect()
        };
        match method {
            StudyMethod::Pacoh => per_beta(&|beta_per_example| Setting::Pacoh { beta_per_example }),
            StudyMethod::Reptile => per_beta(&|beta_per_example| Setting::Reptile { beta_per_example }),
            StudyMethod::Pacmaml => self
                .beta_per_example
                .iter()
                .flat_map(|&beta_per_example| {
                    let setting =
                        move |&alpha_over_beta| Setting::Pacmaml { beta_per_example, alpha_over_beta };
                    self.alpha_over_beta.iter().map(setting)
                })
                .collect(),
            StudyMethod::Maml => inner(&|rate, steps| Setting::Maml { rate, steps }),
            StudyMethod::Fomaml => inner(&|rate, steps| Setting::Fomaml { rate, steps }),
            StudyMethod::MultiTask => {
                let most = self.inner_steps.iter().copied().max().unwrap_or(1);
                let tuned =
                    self.inner_rates.iter().map(|rate| Setting::MultiTask { rate: *rate, steps: most });
                [Setting::MultiTask { rate: 0.01, steps: 0 }].into_iter().chain(tuned).collect()
            }
            StudyMethod::PlainGp => vec![Setting::PlainGp],
        }
    }

    /// The model of a setting on one meta-training set from one seed.
    pub fn model(&self, setting: Setting, examples: usize, data_set: u64, seed: u64) -> ModelSpec {
        let ends = [self.examples.first(), self.examples.last()];
        ModelSpec {
            setting,
            examples,
            data_set,
            seed,
            iterations: self.iterations,
            variant: Variant::Paper,
            illustrated: setting.method().is_gibbs()
                && (data_set, seed) == (0, 0)
                && ends.contains(&Some(&examples)),
        }
    }

    /// The plain GP, which learns from no observed task: one for the whole study.
    pub fn plain_gp(&self) -> ModelSpec {
        ModelSpec { iterations: 0, ..self.model(Setting::PlainGp, 0, 0, 0) }
    }

    /// The ablations: which variants of which settings, at the ends and the middle of m_i.
    pub fn ablations(&self) -> Vec<(Variant, Setting)> {
        if self.ablation_sets == 0 {
            return Vec::new();
        }
        let beta_per_example = self.beta_per_example.last().copied().unwrap_or(100.0);
        let alpha_over_beta = 0.2;
        let pacmaml = Setting::Pacmaml { beta_per_example, alpha_over_beta };
        let pacoh = Setting::Pacoh { beta_per_example };
        let reptile = Setting::Reptile { beta_per_example };
        vec![
            (Variant::FixedSubsets, pacmaml),
            (Variant::Unstandardised, pacmaml),
            (Variant::Unstandardised, pacoh),
            (Variant::NoHyperPrior, pacmaml),
            (Variant::NoHyperPrior, pacoh),
            (Variant::NoHyperPrior, reptile),
            (Variant::Converged, reptile),
        ]
    }

    /// A model of an ablation, from the first seed.
    pub fn ablation(&self, variant: Variant, setting: Setting, examples: usize, data_set: u64) -> ModelSpec {
        let iterations = match variant {
            // Each of them takes as long as a hundred others.
            Variant::Converged => (self.iterations / Variant::CONVERGED_PART).max(1),
            _ => self.iterations,
        };
        ModelSpec { variant, iterations, illustrated: false, ..self.model(setting, examples, data_set, 0) }
    }

    /// m_i of the ablations: the smallest, the middle and the largest.
    pub fn ablation_examples(&self) -> Vec<usize> {
        let mut list = [0, self.examples.len() / 2, self.examples.len().saturating_sub(1)]
            .iter()
            .filter_map(|index| self.examples.get(*index).copied())
            .collect::<Vec<_>>();
        list.dedup();
        list
    }

    /// Every piece, so ordered that an interrupted study has whole seeds first, and the ablations after the first of them.
    pub fn specs(&self) -> Vec<SinusoidSpec> {
        let mut specs = vec![SinusoidSpec::Model(self.plain_gp())];
        for &examples in &self.examples {
            for &beta_per_example in &self.beta_per_example {
                let draws = self.hyper_prior_draws;
                specs.push(SinusoidSpec::HyperPrior { examples, beta_per_example, draws });
            }
        }
        for seed in 0..self.seeds {
            if seed == 1 {
                specs.extend(self.ablation_specs());
            }
            for data_set in 0..self.data_sets {
                for method in StudyMethod::ALL.into_iter().filter(|method| *method != StudyMethod::PlainGp) {
                    for setting in self.settings(method) {
                        let model = |examples: &usize| self.model(setting, *examples, data_set, seed);
                        specs.extend(self.examples.iter().map(model).map(SinusoidSpec::Model));
                    }
                }
            }
        }
        if self.seeds == 1 {
            specs.extend(self.ablation_specs());
        }
        specs
    }

    /// The models of the ablations, which differ from those of the first seed in one respect each.
    fn ablation_specs(&self) -> Vec<SinusoidSpec> {
        let mut specs = Vec::new();
        for (variant, setting) in self.ablations() {
            for examples in self.ablation_examples() {
                for data_set in 0..self.ablation_sets {
                    specs.push(SinusoidSpec::Model(self.ablation(variant, setting, examples, data_set)));
                }
            }
        }
        specs
    }
}
