//! Scores on new tasks: for each number of shots k and each draw of k examples a class, adapt and classify the task's other examples.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use pacmeta_tensor::Key;
use pacmeta_tensor::encoder::EncoderRoom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::adaptation::{Encoded, FewShot, FineTuning};
use crate::classification::scores::{LEAST_PROBABILITY, Stop, Watch, mean_and_error, most_probable};
use crate::environments::text::{TextTask, TokenSet};
use crate::error::{Error, Result};

/// A task that was not learned from.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its name.
    pub name: String,
    /// Its classes.
    pub classes: Vec<String>,
    /// Supports by k and draw.
    pub supports: BTreeMap<(usize, usize), TokenSet>,
    /// What is scored.
    pub queries: TokenSet,
}

impl NewTask {
    /// Draws supports from a task's training examples. Queries are its `dev` examples, or those that no support uses.
    ///
    /// # Errors
    /// When a class has too few examples, or none is left to be scored.
    pub fn drawn(
        task: &TextTask,
        shots: &[usize],
        draws: usize,
        most_queries: usize,
        key: Key,
    ) -> Result<Self> {
        let refuse = |message: String| Err(Error::input(format!("task `{}`", task.name), message));
        let most = shots.iter().copied().max().unwrap_or(0);
        let mut members = vec![Vec::new(); task.classes.len()];
        for (place, &label) in task.train.labels.iter().enumerate() {
            members[label].push(place);
        }
        let own_queries = task.dev.is_empty();
        for (class, places) in members.iter().enumerate() {
            let needed = if own_queries { most + 1 } else { most };
            if places.len() < needed {
                return refuse(format!(
                    "class `{}` has {} examples, and {needed} are needed for {most} shots; lower `evaluation.shots`, or add examples",
                    task.classes[class],
                    places.len()
                ));
            }
        }
        let key = key.named(&task.name);
        // Without examples of their own to score, some of each class stay outside all supports: at most half of what the largest support
        // leaves, so that its draws differ.
        let queries = match own_queries {
            false => limited(&task.dev, most_queries, key.named("queries")),
            true => {
                let mut kept = Vec::new();
                for (class, places) in members.iter_mut().enumerate() {
                    key.named("order").index(class as u64).generator().shuffle(places);
                    let left = places.len() - most;
                    let share = (left / 2).max(1).min(most_queries.div_ceil(task.classes.len()));
                    kept.extend(places.split_off(places.len() - share));
                }
                task.train.select(&kept)
            }
        };
        let mut supports = BTreeMap::new();
        for draw in 0..draws {
            let mut orders = members.clone();
            for (class, places) in orders.iter_mut().enumerate() {
                key.named("draw").index(draw as u64).index(class as u64).generator().shuffle(places);
            }
            for &shots in shots {
                let chosen: Vec<usize> =
                    orders.iter().flat_map(|places| places[..shots].iter().copied()).collect();
                supports.insert((shots, draw), task.train.select(&chosen));
            }
        }
        Ok(Self { name: task.name.clone(), classes: task.classes.clone(), supports, queries })
    }
}

/// At most so many sequences of a set, drawn by a key.
fn limited(set: &TokenSet, most: usize, key: Key) -> TokenSet {
    if set.len() <= most {
        return set.clone();
    }
    let mut chosen = key.generator().subset(set.len(), most);
    chosen.sort_unstable();
    set.select(&chosen)
}

/// One adaptation, scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawScore {
    /// The task.
    pub task: String,
    /// k.
    pub shots: usize,
    /// The draw.
    pub draw: usize,
    /// The part of the queries that is classified rightly.
    pub accuracy: f64,
    /// The mean log-probability of the right class.
    pub log_likelihood: f64,
    /// The mean probability of the predicted class: more than the accuracy is overconfident.
    pub confidence: f64,
    /// The number of queries.
    pub queries: usize,
}

/// A mean over draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShotScores {
    /// The mean accuracy.
    pub accuracy: f64,
    /// Its standard error (absent for a single draw).
    pub standard_error: Option<f64>,
    /// The mean log-likelihood.
    pub log_likelihood: f64,
    /// The number of draws.
    pub draws: usize,
}

/// The scores of a model: every draw of every task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct TextScores {
    /// In the order of tasks, shots and draws.
    pub draws: Vec<DrawScore>,
}

impl TextScores {
    /// Adapts to every support of the tasks and scores their queries.
    ///
    /// # Errors
    /// When a number is not finite, or when stopped.
    pub fn of(model: &FewShot<'_>, tasks: &[NewTask], tuning: FineTuning, watch: Watch<'_>) -> Result<Self> {
        Ok(Self::of_each(model, tasks, &[tuning], watch)?.remove(0))
    }

    /// The same for several ways of fine-tuning, in their order; the shared layers run once for all of them.
    ///
    /// # Errors
    /// When a number is not finite, or when stopped.
    pub fn of_each(
        model: &FewShot<'_>,
        tasks: &[NewTask],
        tunings: &[FineTuning],
        watch: Watch<'_>,
    ) -> Result<Vec<Self>> {
        let mut room = EncoderRoom::new();
        let mut scores = vec![Self::default(); tunings.len()];
        for (place, task) in tasks.iter().enumerate() {
            let encoded = EncodedTask::new(model, task, &mut room)?;
            for (scores, &tuning) in scores.iter_mut().zip(tunings) {
                scores.draws.extend(encoded.score(model, tuning, watch.stop)?);
            }
            (watch.finished)(place + 1);
        }
        Ok(scores)
    }

    /// The names of the tasks, in their order.
    pub fn tasks(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for draw in &self.draws {
            if !names.contains(&draw.task.as_str()) {
                names.push(&draw.task);
            }
        }
        names
    }

    /// All k, from few to many.
    pub fn shots(&self) -> Vec<usize> {
        let mut shots: Vec<usize> = self.draws.iter().map(|draw| draw.shots).collect();
        shots.sort_unstable();
        shots.dedup();
        shots
    }

    /// The mean over the draws of a task, if there are any.
    pub fn of_task(&self, task: &str, shots: usize) -> Option<ShotScores> {
        let of = |score: fn(&DrawScore) -> f64| -> Vec<f64> {
            self.draws.iter().filter(|draw| draw.task == task && draw.shots == shots).map(score).collect()
        };
        let accuracies = of(|draw| draw.accuracy);
        if accuracies.is_empty() {
            return None;
        }
        let (accuracy, standard_error) = mean_and_error(&accuracies);
        let (log_likelihood, _) = mean_and_error(&of(|draw| draw.log_likelihood));
        Some(ShotScores { accuracy, standard_error, log_likelihood, draws: accuracies.len() })
    }

    /// The mean over tasks of their means over draws. The standard error is that over draws, the tasks being given: the root of the
    /// summed squares of the tasks' standard errors, divided by their number.
    pub fn average(&self, tasks: &[&str], shots: usize) -> Option<ShotScores> {
        let of_tasks: Vec<ShotScores> = tasks.iter().filter_map(|task| self.of_task(task, shots)).collect();
        if of_tasks.is_empty() {
            return None;
        }
        let count = of_tasks.len() as f64;
        let mean = |score: fn(&ShotScores) -> f64| of_tasks.iter().map(score).sum::<f64>() / count;
        let squares: Option<f64> = of_tasks.iter().map(|scores| scores.standard_error.map(|e| e * e)).sum();
        Some(ShotScores {
            accuracy: mean(|scores| scores.accuracy),
            standard_error: squares.map(|squares| squares.sqrt() / count),
            log_likelihood: mean(|scores| scores.log_likelihood),
            draws: of_tasks.iter().map(|scores| scores.draws).min().unwrap_or(0),
        })
    }
}

/// A task after the shared layers.
///
/// Supports share sentences, since one with few shots is part of one with more and draws overlap: every sequence is encoded once. That changes last
/// bits only. A sequence is attended to alone, but products are those of all rows at once, and one with another number of rows may take another
/// path through its kernel.
struct EncodedTask<'a> {
    task: &'a NewTask,
    queries: Encoded,
    /// The different sentences of all supports.
    sentences: Encoded,
    supports: Vec<Support<'a>>,
}

struct Support<'a> {
    shots: usize,
    draw: usize,
    /// Where its sentences are among the different ones.
    places: Vec<usize>,
    labels: &'a [usize],
}

/// The different sequences of a task's supports, in the order of their first use, and the supports as places among them.
fn different_sequences(task: &NewTask) -> (TokenSet, Vec<Support<'_>>) {
    let mut sequences = TokenSet::new();
    let mut known: HashMap<(&[u32], &[u8]), usize> = HashMap::new();
    let mut supports = Vec::with_capacity(task.supports.len());
    for (&(shots, draw), tokens) in &task.supports {
        let mut places = Vec::with_capacity(tokens.len());
        for (index, &label) in tokens.labels.iter().enumerate() {
            let (ids, segments) = tokens.sequence(index);
            places.push(*known.entry((ids, segments)).or_insert_with(|| {
                sequences.append(ids, segments, label);
                sequences.len() - 1
            }));
        }
        supports.push(Support { shots, draw, places, labels: &tokens.labels });
    }
    (sequences, supports)
}

impl<'a> EncodedTask<'a> {
    fn new(model: &FewShot<'_>, task: &'a NewTask, room: &mut EncoderRoom<f32>) -> Result<Self> {
        let queries = model.encode(&task.queries, room)?;
        let (sequences, supports) = different_sequences(task);
        let sentences = model.encode(&sequences, room)?;
        Ok(Self { task, queries, sentences, supports })
    }

    /// Every draw, in parallel.
    fn score(&self, model: &FewShot<'_>, tuning: FineTuning, stop: &Stop<'_>) -> Result<Vec<DrawScore>> {
        let one = |support: &Support<'_>| match stop() {
            true => Err(Error::ScoringInterrupted),
            false => self.score_draw(model, support, tuning),
        };
        self.supports.par_iter().map(one).collect()
    }

    fn score_draw(
        &self,
        model: &FewShot<'_>,
        support: &Support<'_>,
        tuning: FineTuning,
    ) -> Result<DrawScore> {
        let (task, classes) = (self.task, self.task.classes.len());
        let examples = self.sentences.select(&support.places);
        let adapted = model.adapt(&examples, support.labels, classes, tuning)?;
        let probabilities = model.predict(&adapted, &self.queries)?;
        let (mut right, mut likelihood, mut confidence) = (0, 0.0, 0.0);
        for (row, &label) in probabilities.chunks_exact(classes).zip(&task.queries.labels) {
            let predicted = most_probable(row);
            right += usize::from(predicted == label);
            confidence += f64::from(row[predicted]);
            likelihood += f64::from(row[label]).max(LEAST_PROBABILITY).ln();
        }
        let count = task.queries.len().max(1) as f64;
        Ok(DrawScore {
            task: task.name.clone(),
            shots: support.shots,
            draw: support.draw,
            accuracy: right as f64 / count,
            log_likelihood: likelihood / count,
            confidence: confidence / count,
            queries: task.queries.len(),
        })
    }
}
