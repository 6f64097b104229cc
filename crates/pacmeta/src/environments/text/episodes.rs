//! Episodes: m examples of one task, the first m' of which are S'.
//!
//! A balanced draw goes round the classes, in random order, and takes one random example of each that is left, until
//! there are m. So S' holds every class of the task if m' allows, and no class has more examples than another that still
//! had some to give. A uniform draw takes m of all examples. Either is without replacement and a function of its key.

use pacmeta_tensor::Key;
use serde::{Deserialize, Serialize};

use super::{TextTask, TokenSet};
use crate::environments::table::{counted, quoted};
use crate::error::{Error, Result};

/// As many tasks that are too small are named.
const TOLD: usize = 10;

/// How classes share an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// As evenly as the task allows.
    #[default]
    Balanced,
    /// As they come.
    Uniform,
}

/// How often each task is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskSampling {
    /// Equally often.
    #[default]
    Uniform,
    /// In proportion to the square root of the number of its examples.
    SquareRoot,
}

impl TaskSampling {
    /// Draws one of the tasks of these sizes; 0 if there is none.
    pub fn draw(self, sizes: &[usize], key: Key) -> usize {
        let mut generator = key.generator();
        match self {
            Self::Uniform => generator.below(sizes.len()),
            Self::SquareRoot => {
                let weights: Vec<f64> = sizes.iter().map(|&size| (size as f64).sqrt()).collect();
                weighted(&weights, generator.uniform())
            }
        }
    }
}

/// The place in which a uniform number falls, places being as wide as their weights.
pub(super) fn weighted(weights: &[f64], uniform: f64) -> usize {
    let total: f64 = weights.iter().sum();
    let mut left = uniform * total;
    for (place, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return place;
        }
    }
    // Rounding may leave a trace of the total.
    weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0)
}

/// Draws episodes of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeSampler {
    /// The number m of examples.
    pub examples: usize,
    /// The number m' of examples in S'.
    pub subset: usize,
    /// The fewest examples outside S': one where these alone judge, else none.
    pub outside: usize,
    /// How classes share them.
    pub balance: Balance,
}

/// Examples of a task, the first `subset` of which are S'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEpisode {
    /// The task's name.
    pub task: String,
    /// The examples.
    pub tokens: TokenSet,
    /// The number of examples in S'.
    pub subset: usize,
    /// The classes, by label.
    pub classes: Vec<String>,
}

impl EpisodeSampler {
    /// Refuses sizes that make no sense.
    ///
    /// # Errors
    /// When S' is empty, larger than S, or leaves none outside where there must be one.
    pub fn check(&self) -> Result<()> {
        if self.subset == 0 || self.least() > self.examples {
            let message = format!(
                "S' has {} of {}; expected at least 1 and at most {}: change `data.support` or `data.examples`",
                self.subset,
                counted(self.examples, "example"),
                if self.outside == 0 { "all" } else { "all but one (`method.split`)" }
            );
            return Err(Error::input("episodes", message));
        }
        Ok(())
    }

    /// Refuses a task from which no episode can be drawn. A task of fewer than m examples will do as long as
    /// there are m'.
    ///
    /// # Errors
    /// When the task has fewer than m' examples to learn from, or none outside S' where there must be one.
    pub fn check_task(&self, task: &TextTask) -> Result<()> {
        self.check_tasks(std::slice::from_ref(task))
    }

    /// The same for several tasks; all that are too small are named.
    ///
    /// # Errors
    /// As for [`check_task`](Self::check_task).
    pub fn check_tasks(&self, tasks: &[TextTask]) -> Result<()> {
        self.check()?;
        let small: Vec<&TextTask> = tasks.iter().filter(|task| task.train.len() < self.least()).collect();
        let Some(first) = small.first() else { return Ok(()) };
        let takes = match self.outside {
            0 => format!("S' alone takes {}", self.subset),
            _ => format!("S' takes {} and leaves one or more outside (`method.split`)", self.subset),
        };
        let told: Vec<String> = small
            .iter()
            .take(TOLD)
            .map(|task| format!("{} ({})", quoted(&task.name), task.train.len()))
            .collect();
        let others = match small.len() {
            1 => String::new(),
            count => format!(
                "; {count} tasks are too small: {}{}",
                told.join(", "),
                if count > TOLD { ", ..." } else { "" }
            ),
        };
        let message = format!(
            "has {} to learn from, and {takes}{others}; lower `data.support` (and `data.examples`), add examples, or choose tasks \
             by `data.tasks`",
            counted(first.train.len(), "example"),
        );
        Err(Error::input(format!("task {}", quoted(&first.name)), message))
    }

    /// The fewest examples of an episode.
    pub(super) fn least(&self) -> usize {
        self.subset + self.outside
    }

    /// Draws an episode: m examples, or all of them if the task has fewer.
    ///
    /// # Errors
    /// As for [`check_task`](Self::check_task).
    pub fn draw(&self, task: &TextTask, key: Key) -> Result<TextEpisode> {
        self.check_task(task)?;
        let chosen = self.choose(&task.train.labels, task.classes.len(), key);
        Ok(TextEpisode {
            task: task.name.clone(),
            tokens: task.train.select(&chosen),
            subset: self.subset,
            classes: task.classes.clone(),
        })
    }

    /// The places of the drawn examples among labelled ones.
    pub(super) fn choose(&self, labels: &[usize], classes: usize, key: Key) -> Vec<usize> {
        let key = key.named("examples");
        let mut generator = key.generator();
        if self.balance == Balance::Uniform {
            return generator.subset(labels.len(), self.examples);
        }
        let mut members = vec![Vec::new(); classes];
        for (place, &label) in labels.iter().enumerate() {
            members[label].push(place);
        }
        let size = self.examples.min(labels.len());
        for class in &mut members {
            // No class can give more than it has, nor more than the whole.
            let order = generator.subset(class.len(), size);
            // From the end, which is cheap to take from.
            *class = order.into_iter().rev().map(|place| class[place]).collect();
        }
        generator.shuffle(&mut members);
        let mut chosen = Vec::with_capacity(size);
        while chosen.len() < size {
            let before = chosen.len();
            for class in &mut members {
                if chosen.len() < size {
                    chosen.extend(class.pop());
                }
            }
            if chosen.len() == before {
                break; // cannot be: all classes together have at least `size`
            }
        }
        chosen
    }
}
