//! What a run of image classification leaves in its folder beside the prior: scores and example tasks, for reports.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::experiment::ImageExperiment;
use super::gallery::gallery;
use super::model::ImageModel;
use super::scores::ImageScores;
use crate::classification::files::{SCORES, iterations_of, metrics_of, read_json, write_json};
use crate::classification::run;
use crate::classification::{Observer, Outcome};
use crate::config::ImageConfig;
use crate::config::images::Normalisation;
use crate::error::Result;
use crate::report::GalleryTask;
use crate::training::metrics::MetricsLine;

const GALLERY: &str = "gallery.json";
/// Test tasks that a report shows.
const SHOWN_TASKS: usize = 3;

/// Scores with what they belong to.
#[derive(Serialize, Deserialize)]
struct Scored {
    iterations: u64,
    normalisation: Normalisation,
    scores: ImageScores,
}

impl Scored {
    /// Whether these are the scores that a configuration asks for.
    fn fits(&self, config: &ImageConfig) -> bool {
        self.iterations == config.training.iterations
            && self.scores.tasks == config.evaluation.tasks
            && self.normalisation == config.evaluation.normalisation
    }
}

/// A finished and scored run.
#[derive(Debug, Clone)]
pub struct ScoredRun {
    /// What training left.
    pub outcome: Outcome<ImageModel>,
    /// The scores on the test tasks.
    pub scores: ImageScores,
}

impl ImageExperiment {
    /// Trains in a run directory like [`train_in`](Self::train_in), and scores the result there. Scores of a run that was
    /// finished and scored before are read again.
    ///
    /// # Errors
    /// As [`train_in`](Self::train_in), and when a file cannot be written.
    pub fn train_and_score_in(&self, out: &Path, observer: &mut dyn Observer) -> Result<ScoredRun> {
        let (mut outcome, _held) = run::train_in(self, out, observer)?;
        let config = self.config();
        // A finished run may be scored on more tasks or otherwise.
        outcome.model = outcome.model.with_normalisation(config.evaluation.normalisation);
        let path = out.join(SCORES);
        if outcome.iterations == 0
            && let Ok(Some(scored)) = read_json::<Scored>(&path)
            && scored.fits(config)
            && matches!(read_json::<Vec<GalleryTask>>(&out.join(GALLERY)), Ok(Some(_)))
        {
            return Ok(ScoredRun { outcome, scores: scored.scores });
        }
        observer.scoring(config.evaluation.tasks);
        let watching: &dyn Observer = &*observer;
        let stop = || watching.stop();
        let tasks = gallery(self, &outcome.model, SHOWN_TASKS.min(config.evaluation.tasks), &stop)?;
        write_json(&out.join(GALLERY), &tasks)?;
        let scores = self.scores(&outcome.model, &stop)?;
        let (iterations, normalisation) = (config.training.iterations, config.evaluation.normalisation);
        write_json(&path, &Scored { iterations, normalisation, scores: scores.clone() })?;
        Ok(ScoredRun { outcome, scores })
    }
}

/// The files of a run, finished or not.
#[derive(Debug, Clone)]
pub struct ImageRunFiles {
    /// The folder.
    pub folder: PathBuf,
    /// The resolved configuration.
    pub config: ImageConfig,
    /// The metrics so far.
    pub metrics: Vec<MetricsLine>,
    /// The scores, once the run is finished.
    pub scores: Option<ImageScores>,
    /// Example tasks, once the run is finished.
    pub gallery: Vec<GalleryTask>,
}

impl ImageRunFiles {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// When it is no such folder, or a file in it is damaged.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = ImageConfig::read(folder.join("config.toml"), &[])?;
        let scored = read_json::<Scored>(&folder.join(SCORES))?;
        // Scores of a shorter run that is being continued are not those of this one.
        let scored = scored.filter(|scored| scored.fits(&config));
        let gallery = if scored.is_some() { read_json(&folder.join(GALLERY))? } else { None };
        Ok(Self {
            metrics: metrics_of(folder)?,
            scores: scored.map(|scored| scored.scores),
            gallery: gallery.unwrap_or_default(),
            folder: folder.to_path_buf(),
            config,
        })
    }

    /// Iterations that metrics or checkpoints tell of.
    pub fn iterations(&self) -> u64 {
        iterations_of(&self.folder, &self.metrics)
    }
}
