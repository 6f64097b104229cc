//! PACOH: w_b ~ Q_beta(S), derivative d L^(p + w_b, S) with w_b constant, an estimate of the gradient of
//! W_1 = -(1/beta) log Z_beta(S) (equation `grad_w1`).
//!
//! PACOH's original estimator is an option: -(1/beta) log mean_l exp(-beta L^(p + w_l, S)) with w_l from the prior. It is
//! biased (the logarithm of a mean of few draws is too small on average), but its derivative is exact.

use pacmeta_tensor::{Element, Key};
use serde::{Deserialize, Serialize};

use super::room::{HeadRoom, Judge, Unseen, adapt, check_finite, check_samples, judged_weights, mean, start};
use super::{FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadTerms, Sets};
use crate::error::{Error, Result};
use crate::learners::head::steps::{Chain, HeadSteps};
use crate::learners::head::{Examples, HeadShape};
use crate::methods::SubsetRule;

/// How W_1 is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PacohEstimator {
    /// The loss at samples of the posterior.
    #[default]
    Posterior,
    /// A mean over draws from the prior inside the logarithm.
    Prior {
        /// The number of draws.
        samples: usize,
    },
}

impl PacohEstimator {
    /// The most draws.
    pub const MOST: usize = 10_000;

    /// Checks a number that comes from a file.
    ///
    /// # Errors
    /// An error that names the key.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Prior { samples } if samples == 0 || samples > Self::MOST => Err(Error::config(
                "estimator.samples",
                format!("it is {samples}, expected 1 to {}", Self::MOST),
            )),
            _ => Ok(()),
        }
    }
}

/// PACOH.
#[derive(Debug, Clone, PartialEq)]
pub struct Pacoh {
    /// Temperatures, prior, steps and particles.
    pub learner: GibbsLearner,
    /// How W_1 is estimated.
    pub estimator: PacohEstimator,
}

impl Pacoh {
    /// The estimate from given samples w_b of Q_beta(S), whoever drew them.
    ///
    /// # Errors
    /// When sizes do not fit, there are no samples, or a number is not finite.
    pub fn estimate<E: Element>(
        &self,
        head: &[E],
        task: &FeatureTask<'_, E>,
        w_b: &Chain<E>,
        room: &mut HeadRoom<E>,
        gradient: &mut HeadGradient<E>,
    ) -> Result<HeadTerms> {
        let sets = task.sets(head, SubsetRule::Nested)?;
        check_samples(task.shape, w_b)?;
        gradient.reset(task);
        let terms = mean_at(head, task, &sets, w_b, (&mut room.weights, &mut room.judge), gradient);
        check_finite(HeadMethod::<E>::name(self), &self.learner.inner, terms, gradient)
    }
}

/// The mean of L^(p + w, S) over samples, its derivative added to a gradient of zeros.
fn mean_at<E: Element>(
    head: &[E],
    task: &FeatureTask<'_, E>,
    sets: &Sets<'_, E>,
    samples: &Chain<E>,
    (weights, judge): (&mut Vec<E>, &mut Judge<E>),
    gradient: &mut HeadGradient<E>,
) -> HeadTerms {
    judged_weights(sets, 1.0 / samples.iter().len() as f64, weights);
    let derivative = Some((weights.as_slice(), gradient));
    let terms = judge.judge(head, task, sets, samples, Unseen::All, derivative);
    HeadTerms { objective: terms.risk, ..terms }
}

impl<E: Element> HeadMethod<E> for Pacoh {
    fn name(&self) -> &'static str {
        "pacoh"
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
        let beta = self.learner.beta(sets.sizes());
        let HeadRoom { steps, chaser, weights, exponents, judge, .. } = room;
        let terms = match self.estimator {
            PacohEstimator::Posterior => {
                let adaptation = self.learner.at(name, (head, task.shape), sets.judged, beta);
                start(&adaptation, chaser, key);
                adaptation.run(chaser, key.named("noise"), None, steps)?;
                mean_at(head, task, &sets, chaser, (weights, judge), gradient)
            }
            PacohEstimator::Prior { samples } => {
                let size = task.shape.parameters();
                chaser.draw(size, samples, self.learner.sigma_squared, key.named("start"));
                let terms = judge.judge(head, task, &sets, chaser, Unseen::All, None);
                exponents.clear();
                for offset in chaser.iter() {
                    judge.look(task.shape, head, offset, sets.all);
                    exponents.push(-beta * mean(&judge.outputs.losses));
                }
                let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = exponents.iter().map(|exponent| (exponent - largest).exp()).sum();
                for (offset, exponent) in chaser.iter().zip(&*exponents) {
                    let share = (exponent - largest).exp() / total;
                    // most draws of a cold posterior have no share at all
                    if share > 0.0 {
                        judge.look(task.shape, head, offset, sets.all);
                        judged_weights(&sets, share, weights);
                        judge.add_gradient(task, weights, gradient);
                    }
                }
                HeadTerms { objective: -(largest + (total / samples as f64).ln()) / beta, ..terms }
            }
        };
        let steps = match self.estimator {
            PacohEstimator::Posterior => self.learner.inner.steps,
            PacohEstimator::Prior { .. } => 0,
        };
        check_finite(name, &HeadSteps { steps, ..self.learner.inner }, terms, gradient)
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
