//! The methods of [`heads`](super::heads) on whole convolutional networks: every parameter adapts, those of the body too.
//!
//! The hypothesis is v = p + w with w on all parameters and the prior N(0, sigma^2) on each. The formulas are those of the
//! table in [`heads`](super::heads), with derivatives in all parameters:
//!
//! | method | derivative in p |
//! |---|---|
//! | multi-task, FOMAML, PACOH | d L^(p + w, S), with w = 0, w after plain steps on S', w ~ Q_beta(S) |
//! | PACMAML | d L^(p + w_a, S) + (alpha/beta) [d L^(p + w_b, S') - d L^(p + w_a, S')] |
//! | Reptile | -w/(beta sigma^2) |
//! | MAML | of L^(q_K(p), S), exact, through all steps |
//!
//! Batch norm takes the statistics of each pass: those of S' alone where a loss is on S', those of S where it is on S. So the
//! three derivatives of PACMAML are three passes. An inner step is a forward and a backward pass of the body, where a head has one such
//! pass for all of its steps.
//!
//! MAML differentiates through the steps on a tape ([`composite`](pacmeta_tensor::conv::composite)): exact, but slow and with the memory
//! of all steps. It is meant for small networks and for checks; FOMAML is its relative of first order, at full speed. BMAML, and
//! PACOH's estimator from draws of the prior, are refused.

mod maml;

use pacmeta_tensor::{Element, Key};
use serde::{Deserialize, Serialize};

use super::SubsetRule;
use super::heads::{GibbsLearner, HeadMethodSettings, HeadTerms, PacohEstimator, largest};
use crate::error::{Error, Result};
use crate::learners::head::steps::{Chain, Gibbs, HeadSteps, Sampler};
use crate::learners::head::{Walk, add_product, all_finite, sum};
use crate::learners::network::{Body, Network, NetworkRoom, Pictures};

/// Why BMAML is refused.
pub(crate) const NO_BMAML: &str = "bmaml differentiates through its particles, which is done for heads only; choose \"head\" or another method";
/// Why PACOH's original estimator is refused.
pub(crate) const NO_PRIOR_DRAWS: &str =
    "\"prior\" draws heads, not whole networks; choose \"posterior\", or let only the head adapt";

/// What adapts to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Adapts {
    /// The head, on features that the body computes once.
    #[default]
    Head,
    /// Every parameter.
    Network,
}

/// The pictures of one task.
#[derive(Debug, Clone, Copy)]
pub struct PictureTask<'a> {
    /// Bytes in the order picture, row, column, channel.
    pub pixels: &'a [u8],
    /// The class of each picture.
    pub labels: &'a [usize],
    /// m': the first pictures are S'.
    pub subset: usize,
}

/// S', S, and how many pictures of S are in S'.
#[derive(Debug, Clone, Copy)]
struct Sets<'a> {
    subset: Pictures<'a>,
    judged: Pictures<'a>,
    shared: usize,
}

impl<'a> PictureTask<'a> {
    fn sets(&self, rule: SubsetRule) -> Result<Sets<'a>> {
        let count = self.labels.len();
        if self.subset == 0 || self.subset > count {
            let message =
                format!("S' has {} of {count} pictures, expected at least one and at most all", self.subset);
            return Err(Error::input("task", message));
        }
        let cut = self.subset * (self.pixels.len() / count);
        let subset = Pictures { pixels: &self.pixels[..cut], labels: &self.labels[..self.subset] };
        let all = Pictures { pixels: self.pixels, labels: self.labels };
        match rule {
            SubsetRule::Nested => Ok(Sets { subset, judged: all, shared: self.subset }),
            SubsetRule::Disjoint if self.subset == count => Err(Error::input(
                "task",
                format!("S' has all {count} pictures, which leaves none to judge on; choose `nested`"),
            )),
            SubsetRule::Disjoint => {
                let judged = Pictures { pixels: &self.pixels[cut..], labels: &self.labels[self.subset..] };
                Ok(Sets { subset, judged, shared: 0 })
            }
        }
    }
}

/// A method on whole networks.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkMethod {
    settings: HeadMethodSettings,
    name: &'static str,
    learner: GibbsLearner,
    split: SubsetRule,
}

impl NetworkMethod {
    /// The method of these settings.
    ///
    /// # Errors
    /// When a number is out of range, or the method cannot adapt a whole network; the error names the key.
    pub fn new(settings: &HeadMethodSettings) -> Result<Self> {
        let name = settings.build::<f32>()?.name();
        let plain = |inner: &HeadSteps| GibbsLearner {
            inner: *inner,
            sigma_squared: Gibbs::PLAIN.sigma_squared,
            alpha: Gibbs::PLAIN.temperature,
            beta: Some(Gibbs::PLAIN.temperature),
            sampler: Sampler::Steps,
        };
        let (learner, split) = match *settings {
            HeadMethodSettings::MultiTask { ref inner } => (plain(inner), SubsetRule::Nested),
            HeadMethodSettings::Fomaml { ref inner, split }
            | HeadMethodSettings::Maml { ref inner, split } => (plain(inner), split),
            HeadMethodSettings::Reptile { inner, alpha, beta, sigma_squared } => {
                let sampler = Sampler::Steps;
                (GibbsLearner { inner, sigma_squared, alpha, beta, sampler }, SubsetRule::Nested)
            }
            HeadMethodSettings::Bmaml { .. } => {
                return Err(Error::config("adapts", NO_BMAML));
            }
            HeadMethodSettings::Pacoh { estimator: PacohEstimator::Prior { .. }, .. } => {
                return Err(Error::config("estimator", NO_PRIOR_DRAWS));
            }
            HeadMethodSettings::Pacoh { inner, alpha, beta, sigma_squared, sampler, .. } => {
                (GibbsLearner { inner, sigma_squared, alpha, beta, sampler }, SubsetRule::Nested)
            }
            HeadMethodSettings::Pacmaml { inner, alpha, beta, sigma_squared, sampler, split } => {
                (GibbsLearner { inner, sigma_squared, alpha, beta, sampler }, split)
            }
        };
        Ok(Self { settings: settings.clone(), name, learner, split })
    }

    /// The name used in configurations.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn walk(&self) -> Walk<'_> {
        Walk { method: self.name, inner: &self.learner.inner, sampler: self.learner.sampler }
    }

    /// What the steps aim at. Reptile's proximal objective is that of a temperature 1 and a prior variance of t sigma^2.
    fn target(&self, temperature: f64) -> Gibbs {
        let sigma_squared = self.learner.sigma_squared;
        match self.settings {
            HeadMethodSettings::Reptile { .. } => {
                Gibbs { temperature: 1.0, sigma_squared: temperature * sigma_squared }
            }
            _ => Gibbs { temperature, sigma_squared },
        }
    }

    /// Writes the derivative of one task's objective in all parameters. Depends on nothing but its arguments: same key, same
    /// bits.
    ///
    /// # Errors
    /// When sizes do not fit, or a number is not finite any more.
    pub fn task_gradient<B: Body>(
        &self,
        network: Network<'_, B>,
        parameters: &[B::Number],
        task: &PictureTask<'_>,
        key: Key,
        room: &mut NetworkRoom<B>,
        gradient: &mut [B::Number],
    ) -> Result<HeadTerms> {
        network.check(parameters, Pictures { pixels: task.pixels, labels: task.labels })?;
        let sets = task.sets(self.split)?;
        let mut chain = std::mem::take(&mut room.chain);
        let mut second = std::mem::take(&mut room.second);
        let at = Place { network, parameters };
        let terms = self.gradient_from(at, sets, key, [&mut chain, &mut second], room, gradient);
        (room.chain, room.second) = (chain, second);
        let terms = terms?;
        if all_finite(gradient) && terms.objective.is_finite() && terms.risk.is_finite() {
            Ok(terms)
        } else {
            Err(self.walk().diverged(self.learner.inner.steps))
        }
    }

    fn gradient_from<B: Body>(
        &self,
        at: Place<'_, B>,
        sets: Sets<'_>,
        key: Key,
        [chain, second]: [&mut Chain<B::Number>; 2],
        room: &mut NetworkRoom<B>,
        gradient: &mut [B::Number],
    ) -> Result<HeadTerms> {
        let Sets { subset, judged, shared } = sets;
        let alpha = self.learner.alpha;
        let beta = self.learner.beta((judged.labels.len(), subset.labels.len()));
        gradient.fill(B::Number::ZERO);
        let adapt = |pictures, temperature, chain: &mut _, room: &mut _| {
            at.network.adapt(
                (self.walk(), self.target(temperature)),
                at.parameters,
                pictures,
                key,
                chain,
                room,
            )
        };
        match self.settings {
            HeadMethodSettings::MultiTask { ref inner } => {
                let size = at.parameters.len();
                chain.start(size, Sampler::Steps, inner, f64::INFINITY, key);
                let terms = at.judge(chain, sets, 0, room, Some(&mut *gradient))?;
                Ok(HeadTerms { objective: terms.risk, ..terms })
            }
            HeadMethodSettings::Fomaml { .. } => {
                adapt(subset, alpha, chain, room)?;
                let terms = at.judge(chain, sets, shared, room, Some(&mut *gradient))?;
                Ok(HeadTerms { objective: terms.risk, ..terms })
            }
            HeadMethodSettings::Maml { .. } => {
                let objective = maml::differentiate(at, sets, &self.learner.inner, chain, gradient)?;
                Ok(HeadTerms { objective, ..at.judge(chain, sets, shared, room, None)? })
            }
            HeadMethodSettings::Reptile { .. } => {
                adapt(judged, beta, chain, room)?;
                let terms = at.judge(chain, sets, 0, room, None)?;
                let pull = 1.0 / self.target(beta).sigma_squared;
                let mut distance = 0.0;
                for offset in chain.iter() {
                    add_product(gradient, B::Number::from_f64(-pull), offset);
                    distance += offset.iter().map(|w| w.to_f64() * w.to_f64()).sum::<f64>();
                }
                Ok(HeadTerms { objective: terms.risk + 0.5 * pull * distance, ..terms })
            }
            HeadMethodSettings::Pacmaml { .. } => {
                let ratio = alpha / beta;
                adapt(subset, alpha, chain, room)?;
                let terms = at.judge(chain, sets, shared, room, Some(&mut *gradient))?;
                at.add(chain, subset, -ratio, room, gradient)?;
                adapt(judged, beta, second, room)?;
                let leader_risk = at.add(second, subset, ratio, room, gradient)?;
                Ok(HeadTerms { objective: terms.risk + ratio * (leader_risk - terms.subset_risk), ..terms })
            }
            HeadMethodSettings::Bmaml { .. } => Err(Error::config("adapts", NO_BMAML)),
            HeadMethodSettings::Pacoh { .. } => {
                adapt(judged, beta, chain, room)?;
                let terms = at.judge(chain, sets, 0, room, Some(&mut *gradient))?;
                Ok(HeadTerms { objective: terms.risk, ..terms })
            }
        }
    }

    /// Adapts to the support of a new task: all parameters of one network a particle. Average their predictions.
    ///
    /// # Errors
    /// When sizes do not fit, or a number is not finite any more.
    pub fn adapt<B: Body>(
        &self,
        network: Network<'_, B>,
        parameters: &[B::Number],
        support: Pictures<'_>,
        key: Key,
        room: &mut NetworkRoom<B>,
    ) -> Result<Vec<Vec<B::Number>>> {
        network.check(parameters, support)?;
        if support.labels.is_empty() {
            return Err(Error::input("support", "it has no examples, expected at least one"));
        }
        let mut chain = std::mem::take(&mut room.chain);
        let target = self.target(self.learner.alpha);
        let result = network.adapt((self.walk(), target), parameters, support, key, &mut chain, room);
        let adapted = chain.iter().map(|offset| {
            let mut adapted = vec![B::Number::ZERO; offset.len()];
            sum(&mut adapted, parameters, offset);
            adapted
        });
        let adapted = result.map(|()| adapted.collect());
        room.chain = chain;
        adapted
    }
}

/// A network and p.
struct Place<'a, B: Body> {
    network: Network<'a, B>,
    parameters: &'a [B::Number],
}

impl<B: Body> Clone for Place<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Body> Copy for Place<'_, B> {}

impl<B: Body> Place<'_, B> {
    /// Adds `weight` times the derivative of the particles' mean L^; returns that mean.
    fn add(
        &self,
        chain: &Chain<B::Number>,
        pictures: Pictures<'_>,
        weight: f64,
        room: &mut NetworkRoom<B>,
        gradient: &mut [B::Number],
    ) -> Result<f64> {
        let share = 1.0 / chain.iter().len() as f64;
        let mut risk = 0.0;
        let (mut position, mut part) = (std::mem::take(&mut room.position), std::mem::take(&mut room.part));
        position.resize(self.parameters.len(), B::Number::ZERO);
        part.resize(self.parameters.len(), B::Number::ZERO);
        for offset in chain.iter() {
            sum(&mut position, self.parameters, offset);
            risk += share * self.network.gradient(&position, pictures, share * weight, room, &mut part)?;
            add_product(gradient, B::Number::ONE, &part);
        }
        (room.position, room.part) = (position, part);
        Ok(risk)
    }

    /// Risks of the particles on S and S', and the accuracy of their mean prediction on the pictures of S from the `seen`-th on (on
    /// all if none is left); adds the derivative of the risk on S.
    fn judge(
        &self,
        chain: &Chain<B::Number>,
        sets: Sets<'_>,
        seen: usize,
        room: &mut NetworkRoom<B>,
        mut gradient: Option<&mut [B::Number]>,
    ) -> Result<HeadTerms> {
        let share = 1.0 / chain.iter().len() as f64;
        let (classes, count) = (self.network.classes, sets.judged.labels.len());
        let (mut position, mut part) = (std::mem::take(&mut room.position), std::mem::take(&mut room.part));
        let mut probabilities = std::mem::take(&mut room.probabilities);
        position.resize(self.parameters.len(), B::Number::ZERO);
        part.resize(self.parameters.len(), B::Number::ZERO);
        probabilities.clear();
        probabilities.resize(count * classes, B::Number::ZERO);
        let mut terms = HeadTerms::default();
        for offset in chain.iter() {
            sum(&mut position, self.parameters, offset);
            terms.subset_risk += share * self.network.loss(&position, sets.subset, room)?;
            terms.risk += share
                * match gradient.as_deref_mut() {
                    None => self.network.loss(&position, sets.judged, room)?,
                    Some(gradient) => {
                        let risk = self.network.gradient(&position, sets.judged, share, room, &mut part)?;
                        add_product(gradient, B::Number::ONE, &part);
                        risk
                    }
                };
            add_product(&mut probabilities, B::Number::ONE, &room.outputs.probabilities);
        }
        let seen = if seen < count { seen } else { 0 };
        let rows = probabilities.chunks_exact(classes).zip(sets.judged.labels).skip(seen);
        let right = rows.filter(|(row, label)| largest(row) == **label).count();
        terms.accuracy = right as f64 / (count - seen) as f64;
        (room.position, room.part, room.probabilities) = (position, part, probabilities);
        Ok(terms)
    }
}
