//! Meta-learning methods on a linear softmax head over features that a body has computed (ANIL): one file a method, one
//! trait for all.
//!
//! A method takes a head p, the features of one task and returns the derivative of its objective in p and in every feature;
//! the body turns the latter into the derivative in its own parameters. The adapted head is v = p + w. A task's first
//! `subset` examples are S'; S is all of them, or with [`SubsetRule::Disjoint`] those outside S' (everywhere that a formula
//! says S).
//!
//! | method | inner result | derivative (w constant unless said) |
//! |---|---|---|
//! | multi-task | none | d L^(p, S) |
//! | FOMAML | q = K plain steps on S' | d L^(q, S), applied to p |
//! | MAML | the same | of L^(q_K(p), S), exact, through all steps |
//! | Reptile | q* ~ argmin L^(q, S) + \|p - q\|^2/(2 beta sigma^2) | (p - q*)/(beta sigma^2); d L^(q*, S) in the features |
//! | BMAML | chaser on S' at alpha, leader goes on from it on S at beta | of sum_m \|chaser_m - leader_m\|^2, exact, leader constant |
//! | PACOH | w_b ~ Q_beta(S) | d L^(p + w_b, S) |
//! | PACMAML | w_a ~ Q_alpha(S'), w_b ~ Q_beta(S) | d L^(p + w_a, S) + (alpha/beta) [d L^(p + w_b, S') - d L^(p + w_a, S')] |
//!
//! Several samples are averaged. Unless given, beta = alpha m/m': the same temperature per example. Both chains of a task
//! use the same random numbers, which makes differences between them less noisy.
//!
//! ```
//! use pacmeta::learners::head::HeadShape;
//! use pacmeta::methods::heads::{FeatureTask, HeadGradient, HeadMethodSettings, HeadRoom};
//! use pacmeta_tensor::Key;
//!
//! let settings: HeadMethodSettings = serde_json::from_str(
//!     r#"{"name": "pacmaml", "alpha": 10.0, "inner": {"steps": 6, "rate": 0.03, "optimiser": "adagrad"}}"#,
//! )?;
//! let method = settings.build::<f32>()?;
//! let shape = HeadShape { features: 2, classes: 2 };
//! let features = [1.0, 0.2, -0.3, 1.0, 0.9, 0.1, 0.0, 0.8];
//! let task = FeatureTask { shape, features: &features, labels: &[0, 1, 0, 1], subset: 2 };
//! let (mut room, mut gradient) = (HeadRoom::default(), HeadGradient::default());
//! let terms = method.task_gradient(&[0.0; 6], &task, Key::new(1), &mut room, &mut gradient)?;
//! assert!(terms.risk < 0.69 && gradient.features.len() == 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bmaml;
mod fomaml;
mod maml;
mod multitask;
mod pacmaml;
mod pacoh;
mod reptile;
mod room;
mod settings;

pub use bmaml::Bmaml;
pub use fomaml::Fomaml;
pub use maml::Maml;
pub use multitask::MultiTask;
pub use pacmaml::Pacmaml;
pub use pacoh::{Pacoh, PacohEstimator};
pub use reptile::Reptile;
pub use room::HeadRoom;
pub(super) use room::largest;
pub use settings::{GibbsLearner, HeadMethodSettings};

use pacmeta_tensor::{Element, Key};

use super::SubsetRule;
use crate::error::{Error, Result};
use crate::learners::head::{Examples, HeadShape};

/// The features of one task.
#[derive(Debug, Clone, Copy)]
pub struct FeatureTask<'a, E> {
    /// The sizes of the head.
    pub shape: HeadShape,
    /// Row-major [m, features].
    pub features: &'a [E],
    /// The class of each example.
    pub labels: &'a [usize],
    /// m': the first examples are S'.
    pub subset: usize,
}

impl<'a, E> FeatureTask<'a, E> {
    /// Some consecutive examples, which must exist.
    fn examples(&self, range: std::ops::Range<usize>) -> Examples<'a, E> {
        let width = self.shape.features;
        Examples {
            features: &self.features[range.start * width..range.end * width],
            labels: &self.labels[range],
        }
    }

    /// S', S and all examples, after checking that everything fits.
    ///
    /// # Errors
    /// An input error about the head, the features, the labels or the subset.
    fn sets(&self, head: &[E], rule: SubsetRule) -> Result<Sets<'a, E>> {
        let count = self.labels.len();
        self.shape.check(head, Examples { features: self.features, labels: self.labels })?;
        if self.subset == 0 || self.subset > count {
            return Err(Error::input(
                "task",
                format!("S' has {} of {count} examples, expected at least one and at most all", self.subset),
            ));
        }
        let first = match rule {
            SubsetRule::Nested => 0,
            SubsetRule::Disjoint => self.subset,
        };
        if first == count {
            return Err(Error::input(
                "task",
                format!(
                    "S' has all {count} examples, which leaves none to judge on; make it smaller or choose `nested`"
                ),
            ));
        }
        Ok(Sets {
            subset: self.examples(0..self.subset),
            judged: self.examples(first..count),
            all: self.examples(0..count),
            first_judged: first,
        })
    }
}

/// The sets of examples of a task.
struct Sets<'a, E> {
    /// S'.
    subset: Examples<'a, E>,
    /// S.
    judged: Examples<'a, E>,
    /// All examples: the rows of the features' gradient.
    all: Examples<'a, E>,
    /// Where S starts among them.
    first_judged: usize,
}

impl<E> Sets<'_, E> {
    /// m of S and m' of S'.
    fn sizes(&self) -> (usize, usize) {
        (self.judged.labels.len(), self.subset.labels.len())
    }
}

/// A derivative; overwritten by each task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeadGradient<E> {
    /// In the initial head.
    pub head: Vec<E>,
    /// In the features, row-major [m, features].
    pub features: Vec<E>,
}

impl<E: Element> HeadGradient<E> {
    fn reset(&mut self, task: &FeatureTask<'_, E>) {
        self.head.clear();
        self.head.resize(task.shape.parameters(), E::ZERO);
        self.features.clear();
        self.features.resize(task.features.len(), E::ZERO);
    }
}

/// What came out for a task, averaged over particles.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HeadTerms {
    /// What the derivative belongs to, with w constant where the method says so.
    pub objective: f64,
    /// L^ of the adapted head on S.
    pub risk: f64,
    /// L^ of the adapted head on S'.
    pub subset_risk: f64,
    /// The fraction of examples outside S' that the adapted head gets right; of all examples if S' is everything or the
    /// method adapts to all of S.
    pub accuracy: f64,
}

/// A meta-learning method on heads.
pub trait HeadMethod<E: Element>: Send + Sync {
    /// The name used in configurations.
    fn name(&self) -> &'static str;

    /// Writes the derivative of one task's objective. Depends on nothing but its arguments: same key, same bits.
    ///
    /// # Errors
    /// When sizes do not fit, or a number is not finite any more.
    fn task_gradient(
        &self,
        head: &[E],
        task: &FeatureTask<'_, E>,
        key: Key,
        room: &mut HeadRoom<E>,
        gradient: &mut HeadGradient<E>,
    ) -> Result<HeadTerms>;

    /// Adapts to the support of a new task: one head a particle. Average their predictions with
    /// [`predict`](crate::learners::head::predict).
    ///
    /// # Errors
    /// When sizes do not fit, or a number is not finite any more.
    fn adapt(
        &self,
        head: &[E],
        shape: HeadShape,
        support: Examples<'_, E>,
        key: Key,
        room: &mut HeadRoom<E>,
    ) -> Result<Vec<Vec<E>>>;
}
