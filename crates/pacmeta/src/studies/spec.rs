//! What a study is made of: specifications of models, each with a hash of its content.

use pacmeta_tensor::Key;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Whether the user asked to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

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
