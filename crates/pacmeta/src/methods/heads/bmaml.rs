//! BMAML: the chaser is M particles after K steps towards Q_alpha(S'); the leader goes on from there, accumulators
//! included, by K steps towards Q_beta(S). The exact derivative of sum_m |chaser_m - leader_m|^2 through the chaser's steps
//! (and the kernel between its particles), the leader being constant. Only the features of S' are part of it.

use pacmeta_tensor::{Element, Key};

use super::room::{HeadRoom, Unseen, adapt, check_finite, start};
use super::{FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadTerms};
use crate::error::Result;
use crate::learners::head::{Examples, HeadShape, add_difference, squared_distance};
use crate::methods::SubsetRule;

/// Bayesian MAML.
#[derive(Debug, Clone, PartialEq)]
pub struct Bmaml {
    /// Temperatures, prior, steps and particles.
    pub learner: GibbsLearner,
    /// What the leader sees.
    pub split: SubsetRule,
}

impl<E: Element> HeadMethod<E> for Bmaml {
    fn name(&self) -> &'static str {
        "bmaml"
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
        let HeadRoom { steps, chaser, leader, trajectory, adjoints, judge, .. } = room;
        let own = (head, task.shape);
        let chasing = self.learner.at(name, own, sets.subset, self.learner.alpha);
        start(&chasing, chaser, key);
        chasing.run(chaser, key.named("noise"), Some(trajectory), steps)?;
        leader.copy_from(chaser);
        let leading = self.learner.at(name, own, sets.judged, self.learner.beta(sets.sizes()));
        leading.run(leader, key.named("leader"), None, steps)?;
        adjoints.clear();
        adjoints.resize(chaser.iter().len() * head.len(), E::ZERO);
        let mut terms = judge.judge(head, task, &sets, chaser, Unseen::Outside, None);
        for ((chaser, leader), adjoint) in
            chaser.iter().zip(leader.iter()).zip(adjoints.chunks_exact_mut(head.len()))
        {
            terms.objective += squared_distance(chaser, leader);
            add_difference(adjoint, E::from_f64(2.0), chaser, leader);
        }
        let rows = &mut gradient.features[..sets.subset.features.len()];
        chasing.pull_back(trajectory, adjoints, &mut gradient.head, rows, steps);
        check_finite(name, &self.learner.inner, terms, gradient)
    }

    fn adapt(
        &self,
        head: &[E],
        shape: HeadShape,
        support: Examples<'_, E>,
        key: Key,
        room: &mut HeadRoom<E>,
    ) -> Result<Vec<Vec<E>>> {
        let name = HeadMethod::<E>::name(self);
        adapt(&self.learner.at(name, (head, shape), support, self.learner.alpha), key, room)
    }
}
