//! The paper's study on texts (its Tables 2 and 7): an encoder meta-trained on GLUE's tasks by MAML, BMAML, PACOH and PACMAML, and the
//! accuracy of what it becomes on LEOPARD's twelve target tasks with k = 4, 8, 16 examples a class.
//!
//! | file | subject |
//! |---|---|
//! | `plan` | which models, with which hyper-parameters |
//! | `paper` | the paper's numbers |
//! | `targets` | the tasks that models are scored on |
//! | `runner` | one model: search, training, scores |
//! | `scores` | what is stored of a model |
//! | `claims` | the paper's claims, tested |
//! | `rates` | the rate of the fine-tuning, the same for all models |
//! | `tables`, `page` | the report |
//!
//! A model takes minutes to hours, so each lives in a run directory of its own inside the study's folder, and is continued from its
//! last checkpoint. Its scores lie beside it. The report shows what is there, finished or not.

mod claims;
mod page;
mod paper;
mod plan;
mod rates;
mod runner;
mod scores;
mod tables;
mod targets;

pub use claims::{Difference, claims};
pub use page::{notes, paper_average, plan_claims, report, what_was_run};
pub use plan::{Adapting, LeopardModel, LeopardPlan, LeopardPreset};
pub use rates::how_compared;
pub use runner::LeopardStudy;
pub use scores::{AlphaChoice, LeopardScores, RateChoice};
pub use tables::numbers;
pub use targets::{Target, TargetInfo};

use std::path::Path;

use crate::error::Result;
use crate::text::TextRunFiles;

/// The name of the study in its folder.
pub const STUDY: &str = "leopard";

/// A model of the study and what is known of it.
#[derive(Debug, Clone)]
pub struct ModelRun {
    /// Which model.
    pub model: LeopardModel,
    /// Its run, once it began; plain fine-tuning has none.
    pub run: Option<TextRunFiles>,
    /// Its scores on the target tasks, once there are any.
    pub scores: Option<LeopardScores>,
}

/// The models of a plan with their runs in a folder, compared at one rate where that is possible.
///
/// # Errors
/// When a file of a run is damaged.
pub fn runs(plan: &LeopardPlan, folder: &Path) -> Result<Vec<ModelRun>> {
    let runs: Result<Vec<ModelRun>> = plan
        .models
        .iter()
        .map(|&model| {
            let path = folder.join(model.folder());
            let run = if path.join("config.toml").exists() { Some(TextRunFiles::read(&path)?) } else { None };
            let scores = LeopardScores::read(&path)?.filter(|scores| scores.is_of_plan(plan, model));
            Ok(ModelRun { model, run, scores })
        })
        .collect();
    Ok(rates::at_one_rate(plan, runs?))
}

#[cfg(test)]
mod tests;
