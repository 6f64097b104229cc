//! Where episodes come from: a pool of tasks, tasks made of raw sentences, or a mixture of such sources.

use pacmeta_tensor::Key;

use super::episodes::weighted;
use super::{EpisodeSampler, TaskSampling, TextEpisode, TextTask};
use crate::environments::table::quoted;
use crate::error::{Error, Result};

/// A distribution over episodes.
pub trait EpisodeSource: Send + Sync {
    /// The name, for messages.
    fn name(&self) -> &str;

    /// Refuses sizes of episodes that cannot be had everywhere in this source.
    ///
    /// # Errors
    /// When some episode could not be drawn.
    fn check(&self, sampler: &EpisodeSampler) -> Result<()>;

    /// Draws an episode. Same key, same episode.
    ///
    /// # Errors
    /// When it cannot be drawn.
    fn draw(&self, sampler: &EpisodeSampler, key: Key) -> Result<TextEpisode>;
}

/// Tasks, one of which is drawn for each episode.
#[derive(Debug, Clone)]
pub struct TaskPool {
    name: String,
    tasks: Vec<TextTask>,
    sampling: TaskSampling,
}

impl TaskPool {
    /// A pool of tasks.
    ///
    /// # Errors
    /// When there is no task.
    pub fn new(name: impl Into<String>, tasks: Vec<TextTask>, sampling: TaskSampling) -> Result<Self> {
        let name = name.into();
        if tasks.is_empty() {
            return Err(Error::input(name, "there is no task to learn from"));
        }
        Ok(Self { name, tasks, sampling })
    }

    /// The tasks.
    pub fn tasks(&self) -> &[TextTask] {
        &self.tasks
    }

    /// The task that `key` draws.
    pub fn choose(&self, key: Key) -> usize {
        let sizes: Vec<usize> = self.tasks.iter().map(|task| task.train.len()).collect();
        self.sampling.draw(&sizes, key.named("task"))
    }
}

impl EpisodeSource for TaskPool {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, sampler: &EpisodeSampler) -> Result<()> {
        sampler.check_tasks(&self.tasks)
    }

    fn draw(&self, sampler: &EpisodeSampler, key: Key) -> Result<TextEpisode> {
        sampler.draw(&self.tasks[self.choose(key)], key)
    }
}

/// Several sources, each drawn from in proportion to its weight.
pub struct Mixture {
    parts: Vec<Box<dyn EpisodeSource>>,
    weights: Vec<f64>,
}

impl Mixture {
    /// A mixture.
    ///
    /// # Errors
    /// When there is no source, or a weight is not a positive number.
    pub fn new(parts: Vec<(f64, Box<dyn EpisodeSource>)>) -> Result<Self> {
        if parts.is_empty() {
            return Err(Error::input("mixture", "expected at least one source of tasks"));
        }
        if let Some((weight, part)) = parts.iter().find(|(weight, _)| !(weight.is_finite() && *weight > 0.0))
        {
            let message =
                format!("the weight of {} is {weight}; expected a positive number", quoted(part.name()));
            return Err(Error::input("mixture", message));
        }
        let (weights, parts) = parts.into_iter().unzip();
        Ok(Self { parts, weights })
    }
}

impl EpisodeSource for Mixture {
    fn name(&self) -> &str {
        "mixture"
    }

    fn check(&self, sampler: &EpisodeSampler) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.check(sampler))
    }

    fn draw(&self, sampler: &EpisodeSampler, key: Key) -> Result<TextEpisode> {
        let part = weighted(&self.weights, key.named("source").generator().uniform());
        self.parts[part].draw(sampler, key)
    }
}
