//! PACMAML: w_a ~ Q_alpha(S'), w_b ~ Q_beta(S), both constant; the approximate gradient of W_2 (equation `grad_w2`)
//!
//! ```text
//! d L^(p + w_a, S) + (alpha/beta) [d L^(p + w_b, S') - d L^(p + w_a, S')]
//! ```
//!
//! An example j of S gets [j in S]/m - [j in S'] (alpha/beta)/m' at w_a and [j in S'] (alpha/beta)/m' at w_b. With nested S' and
//! alpha/beta = m'/m the first vanishes on S': each example is judged by the posterior that did not see it alone.

use pacmeta_tensor::{Element, Key};

use super::room::{HeadRoom, Judge, Unseen, adapt, check_finite, check_samples, judged_weights, mean, start};
use super::{FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadTerms, Sets};
use crate::error::Result;
use crate::learners::head::steps::Chain;
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

impl Pacmaml {
    /// The estimate from given samples: w_a of Q_alpha(S'), and w_b of Q_beta(S), whoever drew them.
    ///
    /// # Errors
    /// When sizes do not fit, there are no samples, or a number is not finite.
    pub fn estimate<E: Element>(
        &self,
        head: &[E],
        task: &FeatureTask<'_, E>,
        [w_a, w_b]: [&Chain<E>; 2],
        room: &mut HeadRoom<E>,
        gradient: &mut HeadGradient<E>,
    ) -> Result<HeadTerms> {
        let sets = task.sets(head, self.split)?;
        check_samples(task.shape, w_a)?;
        check_samples(task.shape, w_b)?;
        gradient.reset(task);
        let HeadRoom { weights, judge, .. } = room;
        self.combine(head, task, &sets, [w_a, w_b], (weights, judge), gradient)
    }

    /// The equation, added to a gradient of zeros.
    fn combine<E: Element>(
        &self,
        head: &[E],
        task: &FeatureTask<'_, E>,
        sets: &Sets<'_, E>,
        [w_a, w_b]: [&Chain<E>; 2],
        (weights, judge): (&mut Vec<E>, &mut Judge<E>),
        gradient: &mut HeadGradient<E>,
    ) -> Result<HeadTerms> {
        let ratio = self.learner.alpha / self.learner.beta(sets.sizes());
        let on_subset = |chain: &Chain<E>| (1.0 / chain.iter().len() as f64) * ratio / task.subset as f64;
        let share = 1.0 / w_a.iter().len() as f64;
        judged_weights(sets, share, weights);
        for weight in &mut weights[..task.subset] {
            *weight = E::from_f64(weight_of(sets, share) - on_subset(w_a));
        }
        let derivative = Some((weights.as_slice(), &mut *gradient));
        let mut terms = judge.judge(head, task, sets, w_a, Unseen::Outside, derivative);
        weights.clear();
        weights.resize(task.subset, E::from_f64(on_subset(w_b)));
        let share = 1.0 / w_b.iter().len() as f64;
        let mut leader_risk = 0.0;
        for offset in w_b.iter() {
            judge.look(task.shape, head, offset, sets.subset);
            leader_risk += share * mean(&judge.outputs.losses);
            judge.add_gradient(task, weights, gradient);
        }
        terms.objective = terms.risk + ratio * (leader_risk - terms.subset_risk);
        check_finite(HeadMethod::<E>::name(self), &self.learner.inner, terms, gradient)
    }
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
        self.combine(head, task, &sets, [chaser, leader], (weights, judge), gradient)
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
