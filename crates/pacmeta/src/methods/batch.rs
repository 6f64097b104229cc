//! Batches of tasks, and the subset S' of each that a base learner may see.

use pacmeta_tensor::{Generator, Key};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::task::Task;

/// The size of S': a number of examples, or a fraction of the task's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SubsetSize {
    /// m' examples of every task.
    Count(usize),
    /// This part of each task's examples, rounded, at least one and not all.
    Fraction(f64),
}

impl SubsetSize {
    /// m' for a task of m examples.
    pub fn of(self, examples: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Fraction(fraction) => {
                ((examples as f64 * fraction).round() as usize).clamp(1, examples.max(2) - 1)
            }
        }
    }
}

impl SubsetSize {
    /// m' of a task: the size asked for, or that of the subset which the task states itself, if that one stays.
    pub fn for_task(self, resample: Resample, task: &Task) -> usize {
        match (resample, task.adapt()) {
            (Resample::Fixed, Some(adapt)) => adapt.len(),
            _ => self.of(task.len()),
        }
    }
}

/// Where the posterior of S' is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum SubsetRule {
    /// On all of S, which contains S' (the paper's theorems).
    #[default]
    Nested,
    /// On the examples outside S' (MAML's habit).
    Disjoint,
}

/// When S' is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Resample {
    /// Anew in each iteration.
    #[default]
    EachIteration,
    /// Once for each task, or taken from the task's own `adapt`.
    Fixed,
}

/// One task of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Member {
    /// The index of the task.
    pub task: usize,
    /// S', as indices of examples; empty where the method needs none.
    pub adapt: Vec<usize>,
    /// S, as indices of examples; empty means all.
    pub judged: Vec<usize>,
}

/// Tasks to compute an objective on.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// All observed tasks.
    pub tasks: &'a [Task],
    /// The drawn ones.
    pub members: &'a [Member],
}

impl<'a> Batch<'a> {
    /// The members with their tasks.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Member, &'a Task)> + use<'a> {
        let tasks = self.tasks;
        self.members.iter().map(move |member| (member, &tasks[member.task]))
    }
}

/// Draws batches: tasks with replacement, and S' of each.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchSampler {
    /// Tasks in a batch.
    pub size: usize,
    /// The size of S', where the method needs one.
    pub subset: Option<SubsetSize>,
    /// Nested or disjoint.
    pub rule: SubsetRule,
    /// When S' is drawn.
    pub resample: Resample,
    /// The key of everything that is drawn here.
    pub key: Key,
}

impl BatchSampler {
    /// Checks that S' fits into every task.
    ///
    /// # Errors
    /// When a task is too small for S'.
    pub fn check(&self, tasks: &[Task]) -> Result<()> {
        let Some(subset) = self.subset else { return Ok(()) };
        for task in tasks {
            let size = subset.for_task(self.resample, task);
            let room = match self.rule {
                SubsetRule::Nested => task.len(),
                SubsetRule::Disjoint => task.len() - 1,
            };
            if size == 0 || size > room {
                return Err(Error::config(
                    "method.subset",
                    format!(
                        "S' of {size} examples does not fit into task `{}` with {} examples{}; lower it, give a \
                         fraction such as 0.5, or leave small tasks out with `data.min_examples`",
                        task.name(),
                        task.len(),
                        if self.rule == SubsetRule::Disjoint { " (one must remain outside S')" } else { "" }
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Draws the batch of an iteration. The same iteration always gives the same batch.
    pub fn draw(&self, tasks: &[Task], iteration: u64, members: &mut Vec<Member>) {
        members.resize_with(self.size, Member::default);
        let mut generator = self.key.named("batch").index(iteration).generator();
        for member in members.iter_mut() {
            member.task = generator.below(tasks.len());
            self.split(tasks, member, &mut generator);
        }
    }

    /// Every task once, with the S' and S that training uses: the same subsets where they are fixed, else subsets of the
    /// same size that `key` draws.
    pub fn each_once(&self, tasks: &[Task], key: Key) -> Vec<Member> {
        (0..tasks.len())
            .map(|task| {
                let mut member = Member { task, ..Member::default() };
                self.split(tasks, &mut member, &mut key.index(task as u64).generator());
                member
            })
            .collect()
    }

    /// Sets S' and S of a member whose task is set. The generator is asked only where S' is drawn anew.
    fn split(&self, tasks: &[Task], member: &mut Member, generator: &mut Generator) {
        let task = &tasks[member.task];
        member.judged.clear();
        let Some(subset) = self.subset else {
            member.adapt.clear();
            return;
        };
        let size = subset.of(task.len());
        match (self.resample, task.adapt()) {
            (Resample::EachIteration, _) => generator.subset_into(task.len(), size, &mut member.adapt),
            (Resample::Fixed, Some(adapt)) => {
                member.adapt.clear();
                member.adapt.extend_from_slice(adapt);
            }
            (Resample::Fixed, None) => self
                .key
                .named("fixed subset")
                .index(member.task as u64)
                .generator()
                .subset_into(task.len(), size, &mut member.adapt),
        }
        if self.rule == SubsetRule::Disjoint {
            member.judged = task.complement(&member.adapt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Vec<Task> {
        (0..4).map(|i| Task::new(format!("t{i}"), 1, vec![0.5; 6 + i], vec![1.0; 6 + i]).unwrap()).collect()
    }

    fn sampler(rule: SubsetRule, resample: Resample) -> BatchSampler {
        BatchSampler { size: 5, subset: Some(SubsetSize::Count(3)), rule, resample, key: Key::new(3) }
    }

    fn draw(sampler: &BatchSampler, iteration: u64) -> Vec<Member> {
        let mut members = Vec::new();
        sampler.draw(&tasks(), iteration, &mut members);
        members
    }

    #[test]
    fn batches_depend_on_seed_and_iteration_only() {
        let sampler = sampler(SubsetRule::Nested, Resample::EachIteration);
        assert_eq!(draw(&sampler, 7), draw(&sampler, 7));
        assert_ne!(draw(&sampler, 7), draw(&sampler, 8));
        assert_ne!(draw(&sampler, 7), draw(&BatchSampler { key: Key::new(4), ..sampler }, 7));
    }

    #[test]
    fn disjoint_sets_partition_the_task() {
        for iteration in 0..20 {
            for member in draw(&sampler(SubsetRule::Disjoint, Resample::EachIteration), iteration) {
                let mut all = [member.adapt.clone(), member.judged.clone()].concat();
                all.sort_unstable();
                assert_eq!(all, (0..tasks()[member.task].len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_fixed_subset_stays_with_its_task() {
        let sampler = sampler(SubsetRule::Nested, Resample::Fixed);
        let mut seen = vec![None; 4];
        for member in (0..30).flat_map(|iteration| draw(&sampler, iteration)) {
            let known = seen[member.task].get_or_insert_with(|| member.adapt.clone());
            assert_eq!(*known, member.adapt);
        }
    }

    #[test]
    fn each_task_once_keeps_the_rule_and_the_fixed_subsets_of_training() {
        for rule in [SubsetRule::Nested, SubsetRule::Disjoint] {
            let fixed = sampler(rule, Resample::Fixed);
            let all = fixed.each_once(&tasks(), Key::new(8));
            assert_eq!(all.iter().map(|member| member.task).collect::<Vec<_>>(), [0, 1, 2, 3]);
            for member in (0..30).flat_map(|iteration| draw(&fixed, iteration)) {
                assert_eq!(all[member.task], member);
            }
            let anew = sampler(rule, Resample::EachIteration).each_once(&tasks(), Key::new(8));
            assert_ne!(anew, all);
            assert!(anew.iter().all(|member| member.adapt.len() == 3));
            assert!(anew.iter().all(|member| member.judged.is_empty() == (rule == SubsetRule::Nested)));
        }
    }

    #[test]
    fn subsets_that_do_not_fit_are_refused() {
        let sampler = BatchSampler {
            subset: Some(SubsetSize::Count(7)),
            ..sampler(SubsetRule::Nested, Resample::Fixed)
        };
        let message = sampler.check(&tasks()).unwrap_err().to_string();
        assert!(message.contains("t0") && message.contains("method.subset"), "{message}");
        let exact = BatchSampler { subset: Some(SubsetSize::Count(6)), ..sampler };
        assert!(exact.check(&tasks()).is_ok());
        assert!(BatchSampler { rule: SubsetRule::Disjoint, ..exact }.check(&tasks()).is_err());
        assert_eq!(SubsetSize::Fraction(0.5).of(9), 5);
        assert_eq!(SubsetSize::Fraction(0.999).of(3), 2);
    }
}
