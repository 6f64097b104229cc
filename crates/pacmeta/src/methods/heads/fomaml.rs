//! First-order MAML: q = K plain steps on S' from p; the derivative of L^(q, S) at q is applied to p.

use pacmeta_tensor::{Element, Key};

use super::room::{HeadRoom, Unseen, adapt, check_finite, judged_weights, plain, start};
use super::{FeatureTask, HeadGradient, HeadMethod, HeadTerms};
use crate::error::Result;
use crate::learners::head::steps::HeadSteps;
use crate::learners::head::{Examples, HeadShape};
use crate::methods::SubsetRule;

/// First-order MAML.
#[derive(Debug, Clone, PartialEq)]
pub struct Fomaml {
    /// The inner steps.
    pub inner: HeadSteps,
    /// What q is judged on.
    pub split: SubsetRule,
}

impl<E: Element> HeadMethod<E> for Fomaml {
    fn name(&self) -> &'static str {
        "fomaml"
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
        let sets = task.sets(head, self.split)?;
        gradient.reset(task);
        let HeadRoom { steps, chaser, weights, judge, .. } = room;
        let adaptation = plain(name, &self.inner, (head, task.shape), sets.subset);
        start(&adaptation, chaser, key);
        adaptation.run(chaser, key.named("noise"), None, steps)?;
        judged_weights(&sets, 1.0, weights);
        let mut terms =
            judge.judge(head, task, &sets, chaser, Unseen::Outside, Some((weights.as_slice(), gradient)));
        terms.objective = terms.risk;
        check_finite(name, &self.inner, terms, gradient)
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
