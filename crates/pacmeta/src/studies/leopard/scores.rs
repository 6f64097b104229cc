//! What is stored of a model: its scores on the target tasks, and what was chosen on the validation tasks.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::plan::{LeopardModel, LeopardPlan};
use super::targets::TargetInfo;
use crate::error::{Error, Result};
use crate::text::{ShotScores, TextScores};
use crate::training::files::{read_bounded, write_atomically};

/// The file beside a model.
pub(super) const SCORES: &str = "leopard.json";
const MAX_BYTES: u64 = 1 << 26;

/// The rate of the steps on target tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateChoice {
    /// The rate that was taken.
    pub rate: f64,
    /// Rates that were tried, with the mean accuracy on the validation tasks; none if there was only one to take.
    pub tried: Vec<(f64, f64)>,
}

/// The temperature alpha.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlphaChoice {
    /// The value that was taken.
    pub alpha: f64,
    /// Values that were tried, with the mean accuracy on the validation tasks.
    pub tried: Vec<(f64, f64)>,
    /// Iterations of each of these trials.
    pub iterations: u64,
}

/// The scores of a model on the target tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeopardScores {
    /// Iterations of meta-training; 0 for the pretrained encoder.
    pub iterations: u64,
    /// What the scores are of, as one line: settings of the plan.
    pub settings: String,
    /// A checksum of the target tasks and of the model.
    pub checksum: u32,
    /// The rate on target tasks.
    pub rate: RateChoice,
    /// Alpha, where it was searched for.
    pub alpha: Option<AlphaChoice>,
    /// The target tasks.
    pub targets: Vec<TargetInfo>,
    /// Every draw of every target task.
    pub scores: TextScores,
    /// The same at the plan's other rates, where only the head adapts: models can be compared at one rate.
    pub other_rates: Vec<(f64, TextScores)>,
    /// The rate of `scores`, where models are compared at one that is not this model's own choice. In the file they are at its own.
    #[serde(skip)]
    pub compared_at: Option<f64>,
}

/// The settings of a plan that scores depend on, as one line.
pub(super) fn settings(plan: &LeopardPlan, model: LeopardModel) -> String {
    format!(
        "m' {}; {:?}; k {:?}; {} draws; {:?} test examples of {} tokens; {} steps at {:?}; alpha {:?}; validation on {:?}, {} draws, {} examples",
        plan.support(model),
        plan.adapting,
        plan.shots,
        plan.draws,
        plan.queries,
        plan.length,
        plan.steps,
        plan.rates,
        plan.alphas,
        plan.validation,
        plan.validation_draws,
        plan.validation_queries,
    )
}

impl LeopardScores {
    /// Whether they are of this plan.
    pub fn is_of_plan(&self, plan: &LeopardPlan, model: LeopardModel) -> bool {
        let iterations = if model.is_meta_trained() { plan.iterations } else { 0 };
        self.iterations == iterations && self.settings == settings(plan, model)
    }

    /// Reads those of a model's folder; none if there are none.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(SCORES);
        if !path.exists() {
            return Ok(None);
        }
        serde_json::from_slice(&read_bounded(&path, MAX_BYTES)?).map(Some).map_err(|error| {
            let message = format!("{error}; delete the file, and `pacmeta reproduce leopard` makes it anew");
            Error::input(path.display(), message)
        })
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(SCORES), self)
    }

    /// The rate that `scores` are at.
    pub fn rate_of_scores(&self) -> f64 {
        self.compared_at.unwrap_or(self.rate.rate)
    }

    /// The scores at a rate, if it was tried on the target tasks.
    pub fn at_rate(&self, rate: f64) -> Option<&TextScores> {
        if rate == self.rate_of_scores() {
            return Some(&self.scores);
        }
        self.other_rates.iter().find(|(other, _)| *other == rate).map(|(_, scores)| scores)
    }

    /// Makes `scores` those at another rate, if it was tried on the target tasks.
    pub(super) fn compare_at(&mut self, rate: f64) {
        let before = self.rate_of_scores();
        if let Some((other, scores)) = self.other_rates.iter_mut().find(|(other, _)| *other == rate) {
            std::mem::swap(&mut self.scores, scores);
            *other = before;
            self.compared_at = Some(rate);
        }
    }

    /// The average over all target tasks.
    pub fn average(&self, shots: usize) -> Option<ShotScores> {
        self.scores.average(&self.tasks(Tests::All), shots)
    }

    /// The average over the target tasks that have their original test set.
    pub fn average_of_original(&self, shots: usize) -> Option<ShotScores> {
        self.scores.average(&self.tasks(Tests::Original), shots)
    }

    /// The names of the tasks: all, or those that have their original test set.
    pub(super) fn tasks(&self, tests: Tests) -> Vec<&str> {
        let counted = |target: &&TargetInfo| tests == Tests::All || !target.rebuilt;
        self.targets.iter().filter(counted).map(|target| target.name.as_str()).collect()
    }
}

/// Which target tasks an average is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tests {
    /// All.
    All,
    /// Those with their original test set.
    Original,
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text =
        serde_json::to_string(value).map_err(|error| Error::input(path.display(), error.to_string()))?;
    write_atomically(path, text.as_bytes())
}

/// The best of what was tried; the first of several.
pub(super) fn best(tried: &[(f64, f64)]) -> Option<f64> {
    let first = tried.first()?;
    Some(tried.iter().fold(*first, |best, &next| if next.1 > best.1 { next } else { best }).0)
}
