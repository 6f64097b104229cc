//! What the methods share: buffers, adaptation, and judging adapted heads.

use pacmeta_tensor::simd::skinny::Begin;
use pacmeta_tensor::{Element, Key};

use super::{FeatureTask, HeadGradient, HeadTerms, Sets};
use crate::error::{Error, Result};
use crate::learners::head::steps::{Adaptation, Chain, Gibbs, HeadSteps, Sampler, StepsRoom, Trajectory};
use crate::learners::head::{Examples, HeadShape, Outputs, Weights, all_finite, sum};

/// Buffers that serve many tasks, one room a thread. Nothing is allocated once they have grown to the largest task.
#[derive(Debug, Clone, Default)]
pub struct HeadRoom<E> {
    pub(super) steps: StepsRoom<E>,
    pub(super) chaser: Chain<E>,
    pub(super) leader: Chain<E>,
    pub(super) trajectory: Trajectory<E>,
    pub(super) adjoints: Vec<E>,
    pub(super) weights: Vec<E>,
    pub(super) exponents: Vec<f64>,
    pub(super) judge: Judge<E>,
}

/// Outputs of adapted heads.
#[derive(Debug, Clone, Default)]
pub(super) struct Judge<E> {
    pub(super) position: Vec<E>,
    pub(super) outputs: Outputs<E>,
    pub(super) residuals: Vec<E>,
    /// The mean over particles.
    probabilities: Vec<E>,
}

/// Which examples the accuracy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unseen {
    /// Those outside S'.
    Outside,
    /// All: the base learner saw S, or nothing.
    All,
}

impl<E: Element> Judge<E> {
    /// The outputs of p + w.
    pub(super) fn look(&mut self, shape: HeadShape, head: &[E], offset: &[E], examples: Examples<'_, E>) {
        self.position.resize(head.len(), E::ZERO);
        sum(&mut self.position, head, offset);
        shape.outputs(&self.position, examples, &mut self.outputs);
    }

    /// Adds the derivative of the weighted losses of the first examples (as many as there are weights), whose outputs were
    /// looked at last.
    pub(super) fn add_gradient(
        &mut self,
        task: &FeatureTask<'_, E>,
        weights: &[E],
        gradient: &mut HeadGradient<E>,
    ) {
        let shape = task.shape;
        let examples = task.examples(0..weights.len());
        let probabilities = &self.outputs.probabilities[..weights.len() * shape.classes];
        shape.residuals(probabilities, examples.labels, Weights::Each(weights), &mut self.residuals);
        shape.head_gradient(Begin::Output, &self.residuals, examples.features, &mut gradient.head);
        let rows = &mut gradient.features[..examples.features.len()];
        shape.feature_gradient(Begin::Output, &self.residuals, &self.position, rows);
    }

    /// Risks and accuracy of particles on a task, averaged over them; with weights also the sum of the derivatives of their
    /// weighted losses.
    pub(super) fn judge(
        &mut self,
        head: &[E],
        task: &FeatureTask<'_, E>,
        sets: &Sets<'_, E>,
        chain: &Chain<E>,
        unseen: Unseen,
        mut derivative: Option<(&[E], &mut HeadGradient<E>)>,
    ) -> HeadTerms {
        let classes = task.shape.classes;
        let count = task.labels.len();
        let share = 1.0 / chain.iter().len() as f64;
        self.probabilities.clear();
        self.probabilities.resize(count * classes, E::ZERO);
        let mut terms = HeadTerms::default();
        for offset in chain.iter() {
            self.look(task.shape, head, offset, sets.all);
            terms.risk += share * mean(&self.outputs.losses[sets.first_judged..]);
            terms.subset_risk += share * mean(&self.outputs.losses[..task.subset]);
            for (sum, &value) in self.probabilities.iter_mut().zip(&self.outputs.probabilities) {
                *sum += value;
            }
            if let Some((weights, gradient)) = derivative.as_mut() {
                self.add_gradient(task, weights, gradient);
            }
        }
        let first = if unseen == Unseen::Outside && task.subset < count { task.subset } else { 0 };
        let rows = self.probabilities.chunks_exact(classes).zip(task.labels).skip(first);
        let right = rows.filter(|(row, label)| largest(row) == **label).count();
        terms.accuracy = right as f64 / (count - first) as f64;
        terms
    }
}

/// The mean of losses.
pub(super) fn mean<E: Element>(losses: &[E]) -> f64 {
    losses.iter().map(|loss| loss.to_f64()).sum::<f64>() / losses.len() as f64
}

/// The first of the largest.
pub(in crate::methods) fn largest<E: Element>(row: &[E]) -> usize {
    let mut best = 0;
    for (class, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = class;
        }
    }
    best
}

/// The weights of L^(., S) among all examples, times a factor.
pub(super) fn judged_weights<E: Element>(sets: &Sets<'_, E>, factor: f64, weights: &mut Vec<E>) {
    weights.clear();
    weights.resize(sets.first_judged, E::ZERO);
    let weight = E::from_f64(factor / sets.judged.labels.len() as f64);
    weights.resize(sets.all.labels.len(), weight);
}

/// Fails if a derivative is not finite.
pub(super) fn check_finite<E: Element>(
    method: &'static str,
    inner: &HeadSteps,
    terms: HeadTerms,
    gradient: &HeadGradient<E>,
) -> Result<HeadTerms> {
    let finite = all_finite(&gradient.head)
        && all_finite(&gradient.features)
        && terms.objective.is_finite()
        && terms.risk.is_finite();
    finite.then_some(terms).ok_or(Error::HeadDiverged { method, step: inner.steps, rate: inner.rate })
}

/// Refuses samples of heads of other sizes, and none.
pub(super) fn check_samples<E: Element>(shape: HeadShape, samples: &Chain<E>) -> Result<()> {
    let sizes = samples.iter().next().map(<[E]>::len);
    match sizes == Some(shape.parameters()) {
        true => Ok(()),
        false => Err(Error::input(
            "samples",
            format!(
                "expected at least one, of {} numbers; the first has {}",
                shape.parameters(),
                sizes.unwrap_or(0)
            ),
        )),
    }
}

/// The heads after adapting to a support.
pub(super) fn adapt<E: Element>(
    adaptation: &Adaptation<'_, E>,
    key: Key,
    room: &mut HeadRoom<E>,
) -> Result<Vec<Vec<E>>> {
    adaptation.shape.check(adaptation.head, adaptation.examples)?;
    if adaptation.examples.labels.is_empty() {
        return Err(Error::input("support", "it has no examples, expected at least one"));
    }
    let chain = &mut room.chaser;
    start(adaptation, chain, key);
    adaptation.run(chain, key.named("noise"), None, &mut room.steps)?;
    let move_head = |offset: &[E]| {
        let mut adapted = vec![E::ZERO; offset.len()];
        sum(&mut adapted, adaptation.head, offset);
        adapted
    };
    Ok(chain.iter().map(move_head).collect())
}

/// Puts the particles of an adaptation at their start.
pub(super) fn start<E: Element>(adaptation: &Adaptation<'_, E>, chain: &mut Chain<E>, key: Key) {
    let size = adaptation.shape.parameters();
    let variance = adaptation.gibbs.sigma_squared;
    chain.start(size, adaptation.sampler, adaptation.inner, variance, key.named("start"));
}

/// Plain steps.
pub(super) fn plain<'a, E>(
    method: &'static str,
    inner: &'a HeadSteps,
    (head, shape): (&'a [E], HeadShape),
    examples: Examples<'a, E>,
) -> Adaptation<'a, E> {
    Adaptation { method, shape, head, examples, gibbs: Gibbs::PLAIN, inner, sampler: Sampler::Steps }
}
