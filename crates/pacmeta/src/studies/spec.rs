//! What a study is made of: specifications of models, each with a hash of its content.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pacmeta_tensor::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Whether the user asked to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Takes what people should know of a piece, and what stops nothing.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

/// A piece that takes longer leaves its state this often, for the case that its end comes without a warning.
const KEPT_EVERY: Duration = Duration::from_secs(60);

/// Where a piece that is stopped before its end may leave its state, and find it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    prefix: PathBuf,
    every: Duration,
}

impl Keep {
    /// Files whose names begin like this path.
    pub fn new(prefix: impl Into<PathBuf>) -> Self {
        Self { prefix: prefix.into(), every: KEPT_EVERY }
    }

    /// The same with another time between two states.
    pub fn with_interval(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// The time between two states.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// The state of training.
    pub fn state(&self) -> PathBuf {
        self.with("state.safetensors")
    }

    /// The finished trials of a search for temperatures.
    pub fn trials(&self) -> PathBuf {
        self.with("search.jsonl")
    }

    /// Removes what is of no use any more. What cannot be removed does no harm.
    pub fn clear(&self) {
        for path in [self.state(), self.trials()] {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Whether anything is kept.
    pub fn exists(&self) -> bool {
        self.state().exists() || self.trials().exists()
    }

    fn with(&self, ending: &str) -> PathBuf {
        let name = self.prefix.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        self.prefix.parent().unwrap_or(Path::new("")).join(format!("{name}.{ending}"))
    }
}

/// One piece of a study: everything that its outcome depends on, and how to get it.
///
/// The outcome is a function of the value alone (no clock, no thread count, no other piece), so that equal contents
/// are trained once, wherever and whenever.
pub trait Spec: Serialize + DeserializeOwned + Clone + Send + Sync {
    /// The study it belongs to.
    const STUDY: &'static str;
    /// Raised whenever the same specification would give another outcome than before.
    const VERSION: u32;

    /// What came out.
    type Outcome: Serialize + DeserializeOwned + Clone + Send;

    /// A short name for people.
    fn label(&self) -> String;

    /// The expected effort, in any unit: for the time left.
    fn cost(&self) -> f64;

    /// Computes the outcome; looks at `stop` now and then.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when stopped, else whatever made the piece fail.
    fn run(&self, stop: Stop<'_>) -> Result<Self::Outcome>;

    /// The same, from where an earlier call was stopped, to the same bits. A piece that keeps nothing starts anew.
    ///
    /// # Errors
    /// As [`Spec::run`], and when the state of a piece that is stopped cannot be written.
    fn run_keeping(&self, stop: Stop<'_>, _keep: &Keep, _tell: Tell<'_>) -> Result<Self::Outcome> {
        self.run(stop)
    }

    /// 32 hexadecimal digits that stand for the study, its version and the content.
    ///
    /// # Errors
    /// When the specification cannot be written as JSON.
    fn hash(&self) -> Result<String> {
        let content =
            serde_json::to_string(self).map_err(|error| Error::input("specification", error.to_string()))?;
        let key = Key::new(u64::from(Self::VERSION)).named(Self::STUDY).named(&content);
        Ok(key.to_string())
    }
}
