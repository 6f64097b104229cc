//! The tasks that models are scored on: LEOPARD's, or generated ones.

use pacmeta_tensor::Key;
use serde::{Deserialize, Serialize};

use super::plan::LeopardPlan;
use crate::environments::text::leopard::{self, EvalCap, EvalSource, TARGETS};
use crate::environments::text::synthetic::{self, SyntheticOptions};
use crate::environments::text::{TokenSet, Tokeniser};
use crate::error::Result;
use crate::text::evaluation::NewTask;

/// Generated target tasks, and their examples to draw from and to score.
const GENERATED: [usize; 3] = [4, 160, 100];

/// What a table of results says about a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// The name in scores.
    pub name: String,
    /// The name in tables.
    pub title: String,
    /// The number of classes.
    pub classes: usize,
    /// Whether the test set is another sample of the same source than the official one.
    pub rebuilt: bool,
    /// Test examples that are scored.
    pub rows: usize,
    /// Test examples that there are.
    pub total: usize,
    /// Draws that are missing, examples that were cut, and so on.
    pub remarks: Vec<String>,
}

/// A target task.
#[derive(Debug, Clone)]
pub struct Target {
    /// What is said about it.
    pub info: TargetInfo,
    /// Its draws and test examples.
    pub task: NewTask,
}

/// Opens the target tasks of a plan.
///
/// # Errors
/// When a file is missing or does not hold what it should.
pub(super) fn open(plan: &LeopardPlan, tokeniser: &Tokeniser) -> Result<Vec<Target>> {
    if !plan.is_comparable() {
        return generated(plan, tokeniser);
    }
    let folder = plan.data.join("leopard");
    let cap = plan.queries.map(|rows| EvalCap { rows, key: Key::new(0) });
    TARGETS
        .iter()
        .map(|target| {
            let opened = leopard::open(&folder, target.name, tokeniser, cap)?;
            let info = TargetInfo {
                name: target.name.to_owned(),
                title: target.display_name.to_owned(),
                classes: target.classes,
                rebuilt: opened.eval_source == EvalSource::Rebuilt,
                rows: opened.eval.len(),
                total: opened.eval_total,
                remarks: opened.remarks(),
            };
            let mut supports = opened.draws;
            supports.retain(|(shots, draw), _| plan.shots.contains(shots) && *draw < plan.draws);
            let task =
                NewTask { name: info.name.clone(), classes: opened.classes, supports, queries: opened.eval };
            Ok(Target { info, task })
        })
        .collect()
}

fn generated(plan: &LeopardPlan, tokeniser: &Tokeniser) -> Result<Vec<Target>> {
    let [tasks, train, dev] = GENERATED;
    // Other tasks than those of training, which are drawn from the key of 0.
    let key = Key::new(1).named("target tasks");
    let texts = synthetic::tasks(&SyntheticOptions { tasks, train, dev, key })?;
    texts
        .into_iter()
        .enumerate()
        .map(|(number, mut texts)| {
            texts.name = format!("target-{}", number + 1);
            let task = texts.tokenise(tokeniser)?;
            let most = plan.queries.unwrap_or(usize::MAX);
            let drawn = NewTask::drawn(&task, &plan.shots, plan.draws, most, key)?;
            let info = TargetInfo {
                name: texts.name.clone(),
                title: format!("generated task {}", number + 1),
                classes: drawn.classes.len(),
                rebuilt: false,
                rows: drawn.queries.len(),
                total: task.dev.len(),
                remarks: Vec::new(),
            };
            Ok(Target { info, task: drawn })
        })
        .collect()
}

/// A checksum of all that is adapted to and scored.
pub(super) fn checksum(targets: &[Target]) -> u32 {
    let of_set = |checksum: u32, set: &TokenSet| {
        let numbers =
            set.ids.iter().map(|&id| u64::from(id)).chain(set.labels.iter().map(|&label| label as u64));
        numbers
            .chain(set.starts.iter().map(|&start| start as u64))
            .fold(checksum, |checksum, number| crc32c::crc32c_append(checksum, &number.to_le_bytes()))
    };
    targets.iter().fold(0, |checksum, target| {
        let named = crc32c::crc32c_append(checksum, target.task.name.as_bytes());
        target.task.supports.values().chain([&target.task.queries]).fold(named, of_set)
    })
}
