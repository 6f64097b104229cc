//! The methods of [`heads`](super::heads) on networks whose body adapts too: a whole convolutional network, or the upper layers of an
//! encoder on states that its shared layers computed once.
//!
//! The hypothesis is v = p + w with w on all parameters that adapt and the prior N(0, sigma^2) on each. The formulas are those of
//! the table in [`heads`](super::heads), with derivatives in these parameters and in the inputs h, behind which there may be shared
//! layers:
//!
//! | method | derivative in p | in h |
//! |---|---|---|
//! | multi-task, FOMAML, PACOH | d L^(p + w, S), with w = 0, w after plain steps on S', w ~ Q_beta(S) | the same |
//! | PACMAML | d L^(p + w_a, S) + (alpha/beta) [d L^(p + w_b, S') - d L^(p + w_a, S')] | the same |
//! | Reptile | -w/(beta sigma^2) | d L^(p + w, S) |
//! | MAML | of L^(q_K(p), S), exact, through all steps | the same |
//! | BMAML | of \|chaser - leader\|^2, exact, through the chaser's steps, the leader being constant | the same |
//!
//! Batch norm takes the statistics of each pass: those of S' alone where a loss is on S', those of S where it is on S. So the
//! three derivatives of PACMAML are three passes. An inner step is a forward and a backward pass of the body, where a head has one such
//! pass for all of its steps; no method but MAML and BMAML keeps anything of a step, so their memory does not depend on K.
//!
//! MAML and BMAML differentiate through the steps ([`WayBack`]): all of them on one tape, or step by step, each computed again on the
//! way back, which needs the memory of one. BMAML has one particle here; several, and PACOH's estimator from draws of the prior, are
//! refused.

mod unrolled;

use pacmeta_tensor::{Element, Key};
use serde::{Deserialize, Serialize};

use super::SubsetRule;
use super::heads::{GibbsLearner, HeadMethodSettings, HeadTerms, PacohEstimator, largest};
use crate::error::{Error, Result};
use crate::learners::head::steps::{Chain, Gibbs, HeadSteps, Sampler};
use crate::learners::head::{Walk, add_difference, add_product, all_finite, squared_distance, sum};
use crate::learners::network::{Body, Derivative, Labelled, Network, NetworkRoom};
use unrolled::Unrolled;
pub use unrolled::WayBack;

/// Why several particles of BMAML are refused.
pub(crate) const ONE_CHASER: &str = "bmaml differentiates through its particles, of which there can be several for heads only; take one here, or let only the head adapt";
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

/// The examples of one task.
#[derive(Debug, Clone, Copy)]
pub struct NetworkTask<'a, I> {
    /// All examples: pictures, or states below the layers that adapt.
    pub inputs: I,
    /// The class of each.
    pub labels: &'a [usize],
    /// m': the first examples are S'.
    pub subset: usize,
}

/// S', S, and how many examples of S are in S'.
struct Sets<'a, B: Body> {
    subset: Labelled<'a, B::Inputs<'a>>,
    judged: Labelled<'a, B::Inputs<'a>>,
    shared: usize,
    /// Where the inputs of S start among those of the task, in numbers.
    judged_start: usize,
}

impl<B: Body> Clone for Sets<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Body> Copy for Sets<'_, B> {}

impl<'a, B: Body> Sets<'a, B> {
    fn of(body: &B, task: &NetworkTask<'a, B::Inputs<'a>>, rule: SubsetRule) -> Result<Self> {
        let count = task.labels.len();
        if task.subset == 0 || task.subset > count {
            let message =
                format!("S' has {} of {count} examples, expected at least one and at most all", task.subset);
            return Err(Error::input("task", message));
        }
        let part = |range: std::ops::Range<usize>| Labelled {
            inputs: body.part(task.inputs, range.clone()),
            labels: &task.labels[range],
        };
        let subset = part(0..task.subset);
        match rule {
            SubsetRule::Nested => {
                Ok(Sets { subset, judged: part(0..count), shared: task.subset, judged_start: 0 })
            }
            SubsetRule::Disjoint if task.subset == count => Err(Error::input(
                "task",
                format!("S' has all {count} examples, which leaves none to judge on; choose `nested`"),
            )),
            SubsetRule::Disjoint => {
                let judged_start = body.input_len(subset.inputs);
                Ok(Sets { subset, judged: part(task.subset..count), shared: 0, judged_start })
            }
        }
    }
}

/// A method on networks whose body adapts too.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkMethod {
    settings: HeadMethodSettings,
    name: &'static str,
    learner: GibbsLearner,
    split: SubsetRule,
    way_back: WayBack,
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
            HeadMethodSettings::Bmaml { sampler, .. } if sampler.particles() > 1 => {
                return Err(Error::config("sampler", ONE_CHASER));
            }
            HeadMethodSettings::Bmaml { inner, alpha, beta, sigma_squared, sampler, split } => {
                (GibbsLearner { inner, sigma_squared, alpha, beta, sampler }, split)
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
        Ok(Self { settings: settings.clone(), name, learner, split, way_back: WayBack::default() })
    }

    /// The same with another way back through the steps, which matters to MAML and BMAML only.
    pub fn with_way_back(self, way_back: WayBack) -> Self {
        Self { way_back, ..self }
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

    /// Writes the derivative of one task's objective in all parameters and in the inputs. Depends on nothing but its arguments: same
    /// key, same bits.
    ///
    /// # Errors
    /// When sizes do not fit, or a number is not finite any more.
    pub fn task_gradient<'a, B: Body>(
        &self,
        network: Network<'_, B>,
        parameters: &[B::Number],
        task: &NetworkTask<'a, B::Inputs<'a>>,
        key: Key,
        room: &mut NetworkRoom<B>,
        mut gradient: Derivative<'_, B::Number>,
    ) -> Result<HeadTerms> {
        network.check(parameters, Labelled { inputs: task.inputs, labels: task.labels })?;
        if !gradient.inputs.is_empty() && gradient.inputs.len() != network.body.input_len(task.inputs) {
            return Err(Error::input("network", "the derivative in the inputs has another size than they"));
        }
        let sets = Sets::of(network.body, task, self.split)?;
        let mut chain = std::mem::take(&mut room.chain);
        let mut second = std::mem::take(&mut room.second);
        let at = Place { network, parameters };
        let terms = self.gradient_from(at, sets, key, [&mut chain, &mut second], room, gradient.reborrow());
        (room.chain, room.second) = (chain, second);
        let terms = terms?;
        let finite = terms.objective.is_finite() && terms.risk.is_finite();
        if finite && all_finite(gradient.parameters) && all_finite(gradient.inputs) {
            Ok(terms)
        } else {
            let steps = match self.settings {
                HeadMethodSettings::MultiTask { .. } => 0,
                _ => self.learner.inner.steps,
            };
            Err(self.walk().diverged(steps))
        }
    }

    fn gradient_from<B: Body>(
        &self,
        at: Place<'_, B>,
        sets: Sets<'_, B>,
        key: Key,
        [chain, second]: [&mut Chain<B::Number>; 2],
        room: &mut NetworkRoom<B>,
        mut gradient: Derivative<'_, B::Number>,
    ) -> Result<HeadTerms> {
        let Sets { subset, judged, shared, .. } = sets;
        let alpha = self.learner.alpha;
        let beta = self.learner.beta((judged.labels.len(), subset.labels.len()));
        gradient.parameters.fill(B::Number::ZERO);
        gradient.inputs.fill(B::Number::ZERO);
        let adapt = |examples, temperature, chain: &mut _, room: &mut _| {
            let target = (self.walk(), self.target(temperature));
            at.network.adapt(target, at.parameters, examples, key, chain, room)
        };
        let through_steps = Unrolled {
            place: at,
            examples: subset,
            inner: &self.learner.inner,
            gibbs: self.target(alpha),
            way_back: self.way_back,
            walk: self.walk(),
        };
        let risk = |terms: HeadTerms| HeadTerms { objective: terms.risk, ..terms };
        match self.settings {
            HeadMethodSettings::MultiTask { ref inner } => {
                let size = at.parameters.len();
                chain.start(size, Sampler::Steps, inner, f64::INFINITY, key);
                Ok(risk(at.judge(chain, sets, 0, room, Some(gradient))?))
            }
            HeadMethodSettings::Fomaml { .. } => {
                adapt(subset, alpha, chain, room)?;
                Ok(risk(at.judge(chain, sets, shared, room, Some(gradient))?))
            }
            HeadMethodSettings::Maml { .. } => {
                through_steps.differentiate(chain, room, gradient, |chain, room, adjoint| {
                    Ok(risk(at.judge(chain, sets, shared, room, Some(adjoint))?))
                })
            }
            HeadMethodSettings::Bmaml { .. } => {
                through_steps.differentiate(chain, room, gradient, |chain, room, adjoint| {
                    let terms = at.judge(chain, sets, shared, room, None)?;
                    second.copy_from(chain);
                    let target = (self.walk(), self.target(beta));
                    let leader_key = key.named("leader");
                    at.network.advance(target, at.parameters, judged, leader_key, second, room)?;
                    let mut objective = 0.0;
                    for (chaser, leader) in chain.iter().zip(second.iter()) {
                        objective += squared_distance(chaser, leader);
                        add_difference(adjoint.parameters, B::Number::from_f64(2.0), chaser, leader);
                    }
                    Ok(HeadTerms { objective, ..terms })
                })
            }
            HeadMethodSettings::Reptile { .. } => {
                adapt(judged, beta, chain, room)?;
                let terms = at.judge(chain, sets, 0, room, Some(gradient.reborrow()))?;
                gradient.parameters.fill(B::Number::ZERO);
                let pull = 1.0 / self.target(beta).sigma_squared;
                let mut distance = 0.0;
                for offset in chain.iter() {
                    add_product(gradient.parameters, B::Number::from_f64(-pull), offset);
                    distance += offset.iter().map(|w| w.to_f64() * w.to_f64()).sum::<f64>();
                }
                Ok(HeadTerms { objective: terms.risk + 0.5 * pull * distance, ..terms })
            }
            HeadMethodSettings::Pacmaml { .. } => {
                let ratio = alpha / beta;
                adapt(subset, alpha, chain, room)?;
                let terms = at.judge(chain, sets, shared, room, Some(gradient.reborrow()))?;
                at.add(chain, (subset, 0), -ratio, room, &mut gradient)?;
                adapt(judged, beta, second, room)?;
                let leader_risk = at.add(second, (subset, 0), ratio, room, &mut gradient)?;
                Ok(HeadTerms { objective: terms.risk + ratio * (leader_risk - terms.subset_risk), ..terms })
            }
            HeadMethodSettings::Pacoh { .. } => {
                adapt(judged, beta, chain, room)?;
                Ok(risk(at.judge(chain, sets, 0, room, Some(gradient))?))
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
        support: Labelled<'_, B::Inputs<'_>>,
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
    /// Adds `weight` times the derivative of the particles' mean L^ on examples, whose inputs start at the given number of the task's;
    /// returns that mean.
    fn add(
        &self,
        chain: &Chain<B::Number>,
        (examples, start): (Labelled<'_, B::Inputs<'_>>, usize),
        weight: f64,
        room: &mut NetworkRoom<B>,
        gradient: &mut Derivative<'_, B::Number>,
    ) -> Result<f64> {
        let share = 1.0 / chain.iter().len() as f64;
        let mut risk = 0.0;
        let mut position = std::mem::take(&mut room.position);
        position.resize(self.parameters.len(), B::Number::ZERO);
        for offset in chain.iter() {
            sum(&mut position, self.parameters, offset);
            risk += share * self.add_at(&position, (examples, start), share * weight, room, gradient)?;
        }
        room.position = position;
        Ok(risk)
    }

    /// Adds `weight` times the derivative of L^ at a position; returns L^.
    fn add_at(
        &self,
        position: &[B::Number],
        (examples, start): (Labelled<'_, B::Inputs<'_>>, usize),
        weight: f64,
        room: &mut NetworkRoom<B>,
        gradient: &mut Derivative<'_, B::Number>,
    ) -> Result<f64> {
        let (mut part, mut input_part) =
            (std::mem::take(&mut room.part), std::mem::take(&mut room.input_part));
        part.resize(position.len(), B::Number::ZERO);
        let inputs =
            if gradient.inputs.is_empty() { 0 } else { self.network.body.input_len(examples.inputs) };
        input_part.resize(inputs, B::Number::ZERO);
        let derivative = Derivative { parameters: &mut part, inputs: &mut input_part };
        let risk = self.network.gradient(position, examples, weight, room, derivative)?;
        add_product(gradient.parameters, B::Number::ONE, &part);
        if inputs > 0 {
            add_product(&mut gradient.inputs[start..start + inputs], B::Number::ONE, &input_part);
        }
        (room.part, room.input_part) = (part, input_part);
        Ok(risk)
    }

    /// Risks of the particles on S and S', and the accuracy of their mean prediction on the examples of S from the `seen`-th on (on
    /// all if none is left); adds the derivative of the risk on S.
    fn judge(
        &self,
        chain: &Chain<B::Number>,
        sets: Sets<'_, B>,
        seen: usize,
        room: &mut NetworkRoom<B>,
        mut gradient: Option<Derivative<'_, B::Number>>,
    ) -> Result<HeadTerms> {
        let share = 1.0 / chain.iter().len() as f64;
        let (classes, count) = (self.network.classes, sets.judged.labels.len());
        let mut position = std::mem::take(&mut room.position);
        let mut probabilities = std::mem::take(&mut room.probabilities);
        position.resize(self.parameters.len(), B::Number::ZERO);
        probabilities.clear();
        probabilities.resize(count * classes, B::Number::ZERO);
        let mut terms = HeadTerms::default();
        for offset in chain.iter() {
            sum(&mut position, self.parameters, offset);
            terms.subset_risk += share * self.network.loss(&position, sets.subset, room)?;
            terms.risk += share
                * match &mut gradient {
                    None => self.network.loss(&position, sets.judged, room)?,
                    Some(gradient) => {
                        let judged = (sets.judged, sets.judged_start);
                        self.add_at(&position, judged, share, room, gradient)?
                    }
                };
            add_product(&mut probabilities, B::Number::ONE, &room.outputs.probabilities);
        }
        let seen = if seen < count { seen } else { 0 };
        let rows = probabilities.chunks_exact(classes).zip(sets.judged.labels).skip(seen);
        let right = rows.filter(|(row, label)| largest(row) == **label).count();
        terms.accuracy = right as f64 / (count - seen) as f64;
        (room.position, room.probabilities) = (position, probabilities);
        Ok(terms)
    }
}
