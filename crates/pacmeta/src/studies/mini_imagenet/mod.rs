//! The paper's study on pictures (its Table 1): FOMAML, MAML, BMAML, PACOH and PACMAML with a Conv4 network whose head
//! adapts, for m_i = 10, 20, 40, 80 pictures in a training task.
//!
//! A model takes minutes to hours, so each lives in a run directory of its own inside the study's folder, and is continued
//! from its last checkpoint. The report shows what is there, finished or not.

mod claims;
mod page;
mod plan;

pub use claims::{ImageClaim, claims};
pub use page::{numbers, plan_claims, report, what_was_run};
pub use plan::{ImagePlan, ImagePreset, Model};

use std::path::Path;

use crate::error::Result;
use crate::images::ImageRunFiles;

/// The name of the study in its folder.
pub const STUDY: &str = "mini-imagenet";

/// A model of the study and what is known of it.
#[derive(Debug, Clone)]
pub struct ModelRun {
    /// Which model.
    pub model: Model,
    /// Its run, once it began.
    pub run: Option<ImageRunFiles>,
}

/// The models of a plan with their runs in a folder.
///
/// # Errors
/// When a file of a run is damaged.
pub fn runs(plan: &ImagePlan, folder: &Path) -> Result<Vec<ModelRun>> {
    plan.models()
        .into_iter()
        .map(|model| {
            let path = folder.join(model.folder());
            let run = if path.join("config.toml").exists() { Some(ImageRunFiles::read(path)?) } else { None };
            Ok(ModelRun { model, run })
        })
        .collect()
}

#[cfg(test)]
mod tests;
