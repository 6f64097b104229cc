//! Reptile with (nearly) optimal q: q* ~ argmin_q L^(q, S) + |p - q|^2/(2 beta sigma^2) by K steps from p; derivative
//! (p - q*)/(beta sigma^2) in the head, which is grad L^(q*, S) when q* is optimal, and d L^(q*, S) in the features.
//!
//! On a new task of m' examples the objective has alpha in place of beta.

use pacmeta_tensor::{Element, Key};

use super::room::{HeadRoom, Unseen, adapt, check_finite, judged_weights, start};
use super::{FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadTerms};
use crate::error::Result;
use crate::learners::head::steps::{Adaptation, Gibbs};
use crate::learners::head::{Examples, HeadShape, add_product};
use crate::methods::SubsetRule;

/// Reptile.
#[derive(Debug, Clone, PartialEq)]
pub struct Reptile {
    /// Temperatures, prior and steps; its sampler is not used.
    pub learner: GibbsLearner,
}

impl Reptile {
    /// Steps on L^ + |p - q|^2/(2 t sigma^2): those of a Gibbs posterior at temperature 1 and prior variance t sigma^2.
    fn proximal<'a, E: Element>(
        &'a self,
        (head, shape): (&'a [E], HeadShape),
        examples: Examples<'a, E>,
        temperature: f64,
    ) -> Adaptation<'a, E> {
        let variance = temperature * self.learner.sigma_squared;
        let adaptation = self.learner.at(HeadMethod::<E>::name(self), (head, shape), examples, 1.0);
        Adaptation { gibbs: Gibbs { temperature: 1.0, sigma_squared: variance }, ..adaptation }
    }
}

impl<E: Element> HeadMethod<E> for Reptile {
    fn name(&self) -> &'static str {
        "reptile"
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
        let HeadRoom { steps, chaser, weights, judge, .. } = room;
        let adaptation = self.proximal((head, task.shape), sets.judged, self.learner.beta(sets.sizes()));
        start(&adaptation, chaser, key);
        adaptation.run(chaser, key.named("noise"), None, steps)?;
        judged_weights(&sets, 1.0, weights);
        let derivative = Some((weights.as_slice(), &mut *gradient));
        let mut terms = judge.judge(head, task, &sets, chaser, Unseen::All, derivative);
        // w = q* - p
        let pull = 1.0 / adaptation.gibbs.sigma_squared;
        let mut distance = 0.0;
        gradient.head.fill(E::ZERO);
        for offset in chaser.iter() {
            add_product(&mut gradient.head, E::from_f64(-pull), offset);
            distance += offset.iter().map(|w| w.to_f64() * w.to_f64()).sum::<f64>();
        }
        terms.objective = terms.risk + 0.5 * pull * distance;
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
        adapt(&self.proximal((head, shape), support, self.learner.alpha), key, room)
    }
}
