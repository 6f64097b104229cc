//! One task: sentences through the shared layers, the method on what adapts, and back through the shared layers.
//!
//! All of it is generic over [`Element`]: f32 for use, f64 for checks of the gradient.

#[cfg(test)]
mod tests;

use pacmeta_tensor::encoder::{
    Dropout, EncoderRoom, Keep, States, Tokens, lower_backward, lower_forward, upper_backward, upper_forward,
};
use pacmeta_tensor::{Element, Key};

use super::generator::GeneratorPass;
use super::prior::TextPrior;
use crate::environments::text::TextEpisode;
use crate::error::Result;
use crate::learners::head::Examples;
use crate::learners::network::{Derivative, Network, NetworkRoom, RoomBytes, UpperLayers};
use crate::methods::heads::{FeatureTask, HeadGradient, HeadMethod, HeadMethodSettings, HeadRoom, HeadTerms};
use crate::methods::networks::{NetworkMethod, NetworkTask, WayBack};

/// A method with what it adapts.
pub(super) enum AdaptingMethod<E: Element> {
    Head(Box<dyn HeadMethod<E>>),
    Layers(Box<NetworkMethod>, UpperLayers<E>),
}

impl<E: Element> AdaptingMethod<E> {
    pub(super) fn build(prior: &TextPrior, settings: &HeadMethodSettings, way_back: WayBack) -> Result<Self> {
        Ok(match prior.only_head_adapts() {
            true => Self::Head(settings.build()?),
            false => Self::Layers(
                Box::new(NetworkMethod::new(settings)?.with_way_back(way_back)),
                UpperLayers::new(prior.encoder, prior.threshold)?,
            ),
        })
    }
}

/// Room for tasks, used again from iteration to iteration.
pub(super) struct TaskRoom<E: Element> {
    lower: EncoderRoom<E>,
    upper: EncoderRoom<E>,
    head: HeadRoom<E>,
    head_gradient: HeadGradient<E>,
    network: Option<NetworkRoom<UpperLayers<E>>>,
    /// What adapts, behind each other.
    adapting: Vec<E>,
    adapting_gradient: Vec<E>,
    states: Vec<E>,
    state_gradient: Vec<E>,
    generated: GeneratorPass<E>,
}

impl<E: Element> TaskRoom<E> {
    pub(super) fn new(method: &AdaptingMethod<E>) -> Self {
        Self {
            lower: EncoderRoom::new(),
            upper: EncoderRoom::new(),
            head: HeadRoom::default(),
            head_gradient: HeadGradient::default(),
            network: match method {
                AdaptingMethod::Head(_) => None,
                AdaptingMethod::Layers(_, body) => Some(NetworkRoom::new(body)),
            },
            adapting: Vec::new(),
            adapting_gradient: Vec::new(),
            states: Vec::new(),
            state_gradient: Vec::new(),
            generated: GeneratorPass::default(),
        }
    }

    /// The most bytes of passes, and those of steps and tapes.
    pub(super) fn bytes(&self) -> (usize, RoomBytes) {
        let own = [&self.adapting, &self.adapting_gradient, &self.states, &self.state_gradient];
        let own: usize = own.iter().map(|buffer| buffer.len() * size_of::<E>()).sum();
        let inner = self.network.as_ref().map_or(0, |room| room.pass().peak_bytes());
        let steps = self.network.as_ref().map_or_else(RoomBytes::default, NetworkRoom::bytes);
        (own + self.lower.peak_bytes() + self.upper.peak_bytes() + inner, steps)
    }
}

/// What the passes of all tasks share.
pub(super) struct TextNetwork<'a, E> {
    pub(super) prior: &'a TextPrior,
    pub(super) parameters: &'a [E],
    pub(super) dropout: f64,
}

impl<E: Element> TextNetwork<'_, E> {
    /// Writes the gradient of a method's objective on an episode, in all parameters.
    pub(super) fn gradient(
        &self,
        method: &AdaptingMethod<E>,
        episode: &TextEpisode,
        key: Key,
        room: &mut TaskRoom<E>,
        gradient: &mut [E],
    ) -> Result<HeadTerms> {
        let (prior, threshold) = (self.prior, self.prior.threshold);
        let tokens = episode.tokens.all_tokens();
        let dropout = (self.dropout > 0.0).then(|| Dropout { rate: self.dropout, key: key.named("dropout") });
        let lower = &self.parameters[..prior.encoder.boundary(threshold)];
        room.states.clear();
        let states = lower_forward(
            &prior.encoder,
            threshold,
            lower,
            tokens,
            Keep::ForBackward,
            dropout,
            &mut room.lower,
        )?;
        room.states.extend_from_slice(states);
        room.state_gradient.resize(room.states.len(), E::ZERO);
        gradient.fill(E::ZERO);
        let terms = match method {
            AdaptingMethod::Head(method) => self.head_gradient(&**method, episode, key, room, gradient)?,
            AdaptingMethod::Layers(method, body) => {
                self.layer_gradient((method, body), episode, key, room, gradient)?
            }
        };
        let TaskRoom { lower: pass, state_gradient, .. } = room;
        let own = &mut gradient[..lower.len()];
        lower_backward(&prior.encoder, threshold, lower, tokens, state_gradient, pass, own)?;
        Ok(terms)
    }

    /// Where only the head adapts: features of the states, the method, and back to the states.
    fn head_gradient(
        &self,
        method: &dyn HeadMethod<E>,
        episode: &TextEpisode,
        key: Key,
        room: &mut TaskRoom<E>,
        gradient: &mut [E],
    ) -> Result<HeadTerms> {
        let (prior, shape) = (self.prior, self.prior.head(episode.classes.len()));
        let encoder = &prior.encoder;
        let boundary = encoder.boundary(encoder.layers);
        let pooler = boundary..prior.encoder_len();
        let tokens = episode.tokens.all_tokens();
        let states = States { values: &room.states, starts: tokens.starts };
        let upper = &self.parameters[pooler.clone()];
        let features =
            upper_forward(encoder, encoder.layers, upper, states, Keep::ForBackward, None, &mut room.upper)?
                .to_vec();
        let labels = &episode.tokens.labels;
        let support = Examples {
            features: &features[..episode.subset * shape.features],
            labels: &labels[..episode.subset],
        };
        let range = prior.head_range(&episode.task);
        let head = match (prior.generator(), &range) {
            (Some(generator), _) => {
                let own = &self.parameters[prior.encoder_len()..];
                generator.forward(own, support, shape, &mut room.generated)
            }
            (None, Some(range)) => self.parameters[range.clone()].to_vec(),
            (None, None) => vec![E::ZERO; shape.parameters()],
        };
        let task = FeatureTask { shape, features: &features, labels, subset: episode.subset };
        let terms = method.task_gradient(
            &head,
            &task,
            key.named("method"),
            &mut room.head,
            &mut room.head_gradient,
        )?;
        let HeadGradient { head: of_head, features: of_features } = &mut room.head_gradient;
        if let Some(generator) = prior.generator() {
            let own = &self.parameters[prior.encoder_len()..];
            let to = &mut gradient[prior.encoder_len()..];
            generator.backward(own, support, of_head, &room.generated, to, of_features);
        } else if let Some(range) = range {
            gradient[range].copy_from_slice(of_head);
        }
        let TaskRoom { upper: pass, state_gradient, .. } = room;
        let to = &mut gradient[pooler];
        upper_backward(
            encoder,
            encoder.layers,
            upper,
            states_of(&room.states, tokens),
            of_features,
            pass,
            to,
            Some(state_gradient),
        )?;
        Ok(terms)
    }

    /// Where layers adapt too.
    fn layer_gradient(
        &self,
        (method, body): (&NetworkMethod, &UpperLayers<E>),
        episode: &TextEpisode,
        key: Key,
        room: &mut TaskRoom<E>,
        gradient: &mut [E],
    ) -> Result<HeadTerms> {
        let prior = self.prior;
        let network = Network { body, classes: episode.classes.len() };
        let upper = prior.encoder.boundary(prior.threshold)..prior.encoder_len();
        let range = prior.head_range(&episode.task);
        let TaskRoom { network: inner, adapting, adapting_gradient, states, state_gradient, .. } = room;
        adapting.clear();
        adapting.extend_from_slice(&self.parameters[upper.clone()]);
        match &range {
            Some(range) => adapting.extend_from_slice(&self.parameters[range.clone()]),
            None => adapting.resize(network.parameters(), E::ZERO),
        }
        adapting_gradient.resize(adapting.len(), E::ZERO);
        let tokens = episode.tokens.all_tokens();
        let task = NetworkTask {
            inputs: states_of(states, tokens),
            labels: &episode.tokens.labels,
            subset: episode.subset,
        };
        let inner = inner.get_or_insert_with(|| NetworkRoom::new(body));
        let derivative = Derivative { parameters: adapting_gradient, inputs: state_gradient };
        let terms = method.task_gradient(network, adapting, &task, key.named("method"), inner, derivative)?;
        let (of_upper, of_head) = adapting_gradient.split_at(upper.len());
        gradient[upper].copy_from_slice(of_upper);
        if let Some(range) = range {
            gradient[range].copy_from_slice(of_head);
        }
        Ok(terms)
    }
}

fn states_of<'a, E>(values: &'a [E], tokens: Tokens<'a>) -> States<'a, E> {
    States { values, starts: tokens.starts }
}
