//! PACMAML: w_a ~ Q_alpha(S'), w_b ~ Q_beta(S), both constant; the approximate gradient of W_2 (equation `grad_w2`)
//!
//! ```text
//! d L^(p + w_a, S) + (alpha/beta) [d L^(p + w_b, S') - d L^(p + w_a, S')]
//! ```
//!
//! An example j of S gets [j in S]/m - [j in S'] (alpha/beta)/m' at w_a and [j in S'] (alpha/beta)/m' at w_b. With nested S' and
//! alpha/beta = m'/m the first vanishes on S': each example is judged by the posterior that did not see it alone.

use pacmeta_tensor::{Element, Key};

use super::room::{HeadRoom, Unseen, adapt, check_finite, judged_weights, mean, start};
use super::{FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadTerms};
use crate::error::Result;
use crate::learners::head::{Examples, HeadShape};
use crate::methods::SubsetRule;

/// PACMAML.
#[derive(Debug, Clone, PartialEq)]
pub struct Pacmaml {
    /// Temperatures, prior, steps and particles.
    pub learner: GibbsLearner,
    /// What is S.
    pub split: SubsetRule,
}

impl<E: Element> HeadMethod<E> for Pacmaml {
    fn name(&self) -> &'static str {
        "pacmaml"
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
        let (alpha, beta) = (self.learner.alpha, self.learner.beta(sets.sizes()));
        let HeadRoom { steps, chaser, leader, weights, judge, .. } = room;
        for (examples, temperature, chain) in
            [(sets.subset, alpha, &mut *chaser), (sets.judged, beta, &mut *leader)]
        {
            let adaptation = self.learner.at(name, (head, task.shape), examples, temperature);
            start(&adaptation, chain, key);
            adaptation.run(chain, key.named("noise"), None, steps)?;
        }
        let share = 1.0 / chaser.iter().len() as f64;
        let ratio = alpha / beta;
        let on_subset = share * ratio / task.subset as f64;
        judged_weights(&sets, share, weights);
        for weight in &mut weights[..task.subset] {
            *weight = E::from_f64(weight_of(&sets, share) - on_subset);
        }
        let derivative = Some((weights.as_slice(), &mut *gradient));
        let mut terms = judge.judge(head, task, &sets, chaser, Unseen::Outside, derivative);
        weights.clear();
        weights.resize(task.subset, E::from_f64(on_subset));
        let mut leader_risk = 0.0;
        for offset in leader.iter() {
            judge.look(task.shape, head, offset, sets.subset);
            leader_risk += share * mean(&judge.outputs.losses);
            judge.add_gradient(task, weights, gradient);
        }
        terms.objective = terms.risk + ratio * (leader_risk - terms.subset_risk);
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

/// The weight of an example of S' in L^(., S), in double precision: the difference to its other weight may be 0.
fn weight_of<E>(sets: &super::Sets<'_, E>, share: f64) -> f64 {
    if sets.first_judged == 0 { share / sets.judged.labels.len() as f64 } else { 0.0 }
}
