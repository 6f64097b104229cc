//! Multi-task learning: no inner steps, d L^(p, S). A new task is adapted to by plain steps.

use pacmeta_tensor::{Element, Key};

use super::room::{HeadRoom, Unseen, adapt, check_finite, judged_weights, plain, start};
use super::{FeatureTask, HeadGradient, HeadMethod, HeadTerms};
use crate::error::Result;
use crate::learners::head::steps::HeadSteps;
use crate::learners::head::{Examples, HeadShape};
use crate::methods::SubsetRule;

/// Multi-task learning.
#[derive(Debug, Clone, PartialEq)]
pub struct MultiTask {
    /// The steps on a new task.
    pub inner: HeadSteps,
}

impl<E: Element> HeadMethod<E> for MultiTask {
    fn name(&self) -> &'static str {
        "multi-task"
    }

    fn task_gradient(
        &self,
        head: &[E],
        task: &FeatureTask<'_, E>,
        key: Key,
        room: &mut HeadRoom<E>,
        gradient: &mut HeadGradient<E>,
    ) -> Result<HeadTerms> {
        let name = HeadMethod::<E>::name(self);
        let sets = task.sets(head, SubsetRule::Nested)?;
        gradient.reset(task);
        let HeadRoom { chaser, weights, judge, .. } = room;
        start(&plain(name, &self.inner, (head, task.shape), sets.all), chaser, key);
        judged_weights(&sets, 1.0, weights);
        let mut terms =
            judge.judge(head, task, &sets, chaser, Unseen::All, Some((weights.as_slice(), gradient)));
        terms.objective = terms.risk;
        // no inner step was made that could be the cause
        check_finite(name, &HeadSteps { steps: 0, ..self.inner }, terms, gradient)
    }

    fn adapt(
        &self,
        head: &[E],
        shape: HeadShape,
        support: Examples<'_, E>,
        key: Key,
        room: &mut HeadRoom<E>,
    ) -> Result<Vec<Vec<E>>> {
        adapt(&plain(HeadMethod::<E>::name(self), &self.inner, (head, shape), support), key, room)
    }
}
