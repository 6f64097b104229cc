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

use crate::config::ImageConfig;
use crate::error::{Error, Result};
use crate::images::{ImageRunFiles, ImageScores};

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

impl ModelRun {
    /// Its scores, once it is finished.
    pub fn scores(&self) -> Option<&ImageScores> {
        self.run.as_ref()?.scores.as_ref()
    }

    /// How far an unfinished model is, in words.
    pub fn progress(&self, plan: &ImagePlan) -> Option<String> {
        let made = self.run.as_ref()?.iterations();
        self.scores().is_none().then(|| format!("{made} of {}", plan.iterations))
    }
}

/// The models of a plan with their runs in a folder.
///
/// # Errors
/// When a file of a run is damaged, or a run was trained with other settings than the plan's.
pub fn runs(plan: &ImagePlan, folder: &Path) -> Result<Vec<ModelRun>> {
    plan.models()
        .into_iter()
        .map(|model| {
            let path = folder.join(model.folder());
            if !path.join("config.toml").exists() {
                return Ok(ModelRun { model, run: None });
            }
            let mut run = ImageRunFiles::read(&path)?;
            if !trained_alike(&run.config, &plan.config(model)?) {
                let message = "was trained with other settings than this study; put it into a folder of its own, or give the study's \
                               settings with --set";
                return Err(Error::input(path.display(), message));
            }
            // Scored in an earlier, shorter study in this folder: what is shown together was trained alike.
            if run.config.training.iterations != plan.iterations || run.config.evaluation.tasks != plan.tasks
            {
                run.scores = None;
                run.gallery.clear();
            }
            Ok(ModelRun { model, run: Some(run) })
        })
        .collect()
}

/// Whether two runs differ at most in how long they train, what they write and how many tasks they are scored on.
fn trained_alike(one: &ImageConfig, other: &ImageConfig) -> bool {
    let of_training = |config: &ImageConfig| {
        let training = &config.training;
        (training.batch, training.rate, training.clip, training.normalisation, training.hyper_prior)
    };
    (&one.prior, &one.method, one.evaluation.normalisation)
        == (&other.prior, &other.method, other.evaluation.normalisation)
        && of_training(one) == of_training(other)
}

#[cfg(test)]
mod tests;
