//! What a run of text classification leaves in its folder beside the model: scores, for reports.

use std::path::{Path, PathBuf};

use pacmeta_tensor::Parameters;
use serde::{Deserialize, Serialize};

use super::evaluation::TextScores;
use super::experiment::TextExperiment;
use super::model::TextModel;
use crate::classification::files::{SCORES, iterations_of, metrics_of, read_json, write_json};
use crate::classification::run;
use crate::classification::{Observer, Outcome, Watch};
use crate::config::TextConfig;
use crate::error::Result;
use crate::training::metrics::MetricsLine;

/// The scores of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextRunScores {
    /// Iterations of training.
    pub iterations: u64,
    /// The evaluation that they are of.
    pub evaluation: String,
    /// The meta-learned model.
    pub model: TextScores,
    /// The same encoder before meta-learning, adapted in the same way: what there was to beat.
    pub pretrained: TextScores,
}

impl TextRunScores {
    fn fits(&self, config: &TextConfig) -> bool {
        self.iterations == config.training.iterations && self.evaluation == evaluation_of(config)
    }
}

/// The evaluation of a configuration as one line.
fn evaluation_of(config: &TextConfig) -> String {
    format!("{:?}", config.evaluation)
}

impl TextExperiment {
    /// Trains in a run directory like [`train_in`](Self::train_in), and scores the result there. Scores of a run that was finished and
    /// scored before are read again.
    ///
    /// # Errors
    /// As [`train_in`](Self::train_in), and when a file cannot be written.
    pub fn train_and_score_in(
        &self,
        out: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Outcome<TextModel>, TextRunScores)> {
        let (outcome, _held) = run::train_in(self, out, observer)?;
        let path = out.join(SCORES);
        if outcome.iterations == 0
            && let Ok(Some(scores)) = read_json::<TextRunScores>(&path)
            && scores.fits(self.config())
        {
            return Ok((outcome, scores));
        }
        let tasks = self.held_out().len();
        observer.scoring(2 * tasks);
        let watching: &dyn Observer = &*observer;
        let stop = || watching.stop();
        let score = |parameters: &Parameters<f64>, before: usize| {
            let finished = |done: usize| watching.scored(before + done, 2 * tasks);
            self.scores(parameters, Watch { stop: &stop, finished: &finished })
        };
        let scores = TextRunScores {
            iterations: self.config().training.iterations,
            evaluation: evaluation_of(self.config()),
            model: score(outcome.model.parameters(), 0)?,
            pretrained: score(&self.start()?, tasks)?,
        };
        write_json(&path, &scores)?;
        Ok((outcome, scores))
    }
}

/// The files of a run, finished or not.
#[derive(Debug, Clone)]
pub struct TextRunFiles {
    /// The folder.
    pub folder: PathBuf,
    /// The resolved configuration.
    pub config: TextConfig,
    /// The metrics so far.
    pub metrics: Vec<MetricsLine>,
    /// The scores, once the run is finished.
    pub scores: Option<TextRunScores>,
}

impl TextRunFiles {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// When it is no such folder, or a file in it is damaged.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let config = TextConfig::read(folder.join("config.toml"), &[])?;
        let scores = read_json::<TextRunScores>(&folder.join(SCORES))?.filter(|scores| scores.fits(&config));
        Ok(Self { metrics: metrics_of(folder)?, scores, folder: folder.to_path_buf(), config })
    }

    /// Iterations that metrics or checkpoints tell of.
    pub fn iterations(&self) -> u64 {
        iterations_of(&self.folder, &self.metrics)
    }
}
