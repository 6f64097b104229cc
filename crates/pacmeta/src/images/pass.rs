//! One task: pictures through the body, the head's method, and back through the body; or a method on the whole network.

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::{ConvBody, Images, Statistics, Workspace};

use crate::config::TrainingNormalisation;
use crate::environments::images::{Episode, ImageSet};
use crate::error::Result;
use crate::learners::head::HeadShape;
use crate::learners::network::{self, Derivative, NetworkRoom};
use crate::methods::heads::{FeatureTask, HeadGradient, HeadMethod, HeadMethodSettings, HeadRoom, HeadTerms};
use crate::methods::networks::{Adapts, NetworkMethod, NetworkTask};

/// A method with what it adapts.
pub(super) enum AdaptingMethod {
    Head(Box<dyn HeadMethod<f32>>),
    Network(NetworkMethod),
}

impl AdaptingMethod {
    pub(super) fn build(settings: &HeadMethodSettings, adapts: Adapts) -> Result<Self> {
        Ok(match adapts {
            Adapts::Head => Self::Head(settings.build()?),
            Adapts::Network => Self::Network(NetworkMethod::new(settings)?),
        })
    }
}

/// Room for one task, used again from iteration to iteration.
pub(super) struct TaskRoom {
    pub(super) workspace: Workspace,
    /// Of the pass of the pictures outside S', where these have one of their own.
    workspace_of_others: Workspace,
    gradient_of_others: Vec<f32>,
    /// Of all pictures of a task.
    features: Vec<f32>,
    pub(super) pixels: Vec<u8>,
    pub(super) head: HeadRoom<f32>,
    pub(super) head_gradient: HeadGradient<f32>,
    pub(super) body_gradient: Vec<f32>,
    pub(super) network: NetworkRoom<ConvBody>,
    network_gradient: Vec<f32>,
}

impl TaskRoom {
    pub(super) fn new(body: &ConvBody) -> Self {
        Self {
            workspace: body.workspace(),
            workspace_of_others: body.workspace(),
            gradient_of_others: Vec::new(),
            features: Vec::new(),
            pixels: Vec::new(),
            head: HeadRoom::default(),
            head_gradient: HeadGradient::default(),
            body_gradient: vec![0.0; body.layout().len()],
            network: NetworkRoom::new(body),
            network_gradient: Vec::new(),
        }
    }

    /// The gradient of the last task: of the body, then of the head.
    pub(super) fn gradient(&self) -> impl Iterator<Item = &f32> {
        self.body_gradient.iter().chain(&self.head_gradient.head)
    }
}

/// What the base learner sees of a training task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// m': the first pictures are S'.
    pub(super) subset: usize,
    /// Whose statistics batch norm takes.
    pub(super) normalisation: TrainingNormalisation,
}

/// What the passes of all tasks share.
pub(super) struct Network<'a> {
    pub(super) body: &'a ConvBody,
    /// Parameters of the body, then of the head.
    pub(super) parameters: &'a [f32],
    pub(super) classes: usize,
}

impl Network<'_> {
    /// Parameters of the body and of the head.
    pub(super) fn parts(&self) -> (&[f32], &[f32]) {
        self.parameters.split_at(self.body.layout().len())
    }

    pub(super) fn head_shape(&self) -> HeadShape {
        HeadShape { features: self.body.feature_count(), classes: self.classes }
    }

    /// The same, all of whose parameters adapt.
    pub(super) fn whole(&self) -> network::Network<'_, ConvBody> {
        network::Network { body: self.body, classes: self.classes }
    }

    /// The gradient of a method's objective on an episode whose first examples are S'; left in the room.
    pub(super) fn gradient(
        &self,
        method: &AdaptingMethod,
        set: &ImageSet,
        episode: &Episode,
        Seen { subset, normalisation }: Seen,
        key: Key,
        room: &mut TaskRoom,
    ) -> Result<HeadTerms> {
        let (body, head) = self.parts();
        episode.copy_pixels(set, 0..episode.len(), &mut room.pixels);
        let method = match method {
            AdaptingMethod::Head(method) => method,
            AdaptingMethod::Network(method) => {
                return self.network_gradient(method, &episode.labels, subset, key, room);
            }
        };
        let (in_first_pass, statistics) = match normalisation {
            TrainingNormalisation::Batch => (episode.len(), Statistics::Batch),
            TrainingNormalisation::Support => (episode.len(), Statistics::First(subset)),
            TrainingNormalisation::Separate => (subset, Statistics::Batch),
        };
        let TaskRoom { workspace, workspace_of_others, features, .. } = room;
        let (pictures, others) = room.pixels.split_at(in_first_pass * self.body.shape().image_len());
        features.clear();
        for (pictures, workspace) in [(pictures, &mut *workspace), (others, &mut *workspace_of_others)] {
            if !pictures.is_empty() {
                let images = Images::Bytes(pictures);
                features.extend_from_slice(self.body.forward(body, images, statistics, workspace)?);
            }
        }
        let task = FeatureTask { shape: self.head_shape(), features, labels: &episode.labels, subset };
        let terms = method.task_gradient(head, &task, key, &mut room.head, &mut room.head_gradient)?;
        let TaskRoom { body_gradient, gradient_of_others, .. } = room;
        let slopes = &room.head_gradient.features;
        let (slopes, of_others) = slopes.split_at(in_first_pass * self.body.feature_count());
        self.body.backward(body, slopes, workspace, body_gradient)?;
        if !of_others.is_empty() {
            gradient_of_others.resize(body_gradient.len(), 0.0);
            self.body.backward(body, of_others, workspace_of_others, gradient_of_others)?;
            body_gradient.iter_mut().zip(gradient_of_others).for_each(|(sum, value)| *sum += *value);
        }
        Ok(terms)
    }

    /// The same where every parameter adapts to the pictures in the room.
    fn network_gradient(
        &self,
        method: &NetworkMethod,
        labels: &[usize],
        subset: usize,
        key: Key,
        room: &mut TaskRoom,
    ) -> Result<HeadTerms> {
        let TaskRoom { pixels, network, network_gradient, body_gradient, head_gradient, .. } = room;
        network_gradient.resize(self.parameters.len(), 0.0);
        let task = NetworkTask { inputs: &pixels[..], labels, subset };
        let gradient = Derivative { parameters: network_gradient, inputs: &mut [] };
        let terms = method.task_gradient(self.whole(), self.parameters, &task, key, network, gradient)?;
        let (of_body, of_head) = network_gradient.split_at(body_gradient.len());
        body_gradient.copy_from_slice(of_body);
        head_gradient.head.clear();
        head_gradient.head.extend_from_slice(of_head);
        Ok(terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::images::{Channels, EpisodeSampler, PictureShape, StrokeOptions, strokes};
    use crate::learners::head::steps::HeadSteps;
    use crate::priors::ConvolutionSpec;

    #[test]
    fn two_passes_add_up_to_the_gradient_of_both() {
        let shape = PictureShape { side: 12, channels: Channels::Grey };
        let set = strokes(&StrokeOptions { classes: 5, pictures: 6, shape, seed: 3 }).unwrap();
        let classes = set.class_ids();
        let episode = EpisodeSampler { way: 3, shots: 5 }.draw(&set, &classes, Key::new(1));
        let part = |range: std::ops::Range<usize>| Episode {
            pictures: episode.pictures[range.clone()].to_vec(),
            labels: episode.labels[range].to_vec(),
            classes: episode.classes.clone(),
        };
        // without inner steps the objective is the mean loss, and parts of a task add up
        let settings = HeadMethodSettings::MultiTask { inner: HeadSteps::gradient_descent(0, 0.1) };
        let method = AdaptingMethod::build(&settings, Adapts::Head).unwrap();
        for filters in [4, 64] {
            let spec = ConvolutionSpec {
                side: 12,
                channels: 1,
                filters,
                blocks: 2,
                ..ConvolutionSpec::mini_imagenet(3)
            };
            let body = spec.body().unwrap();
            let parameters = crate::classification::descent::rounded(&spec.initialise(Key::new(2)).unwrap());
            let network = Network { body: &body, parameters: &parameters, classes: 3 };
            let gradient = |episode: &Episode, normalisation| {
                let mut room = TaskRoom::new(&body);
                let seen = Seen { subset: 6.min(episode.len()), normalisation };
                // twice, so that what a pass leaves in the room is seen
                for _ in 0..2 {
                    network.gradient(&method, &set, episode, seen, Key::new(3), &mut room).unwrap();
                }
                room.gradient().copied().collect::<Vec<f32>>()
            };
            let both = gradient(&episode, TrainingNormalisation::Separate);
            let subset = gradient(&part(0..6), TrainingNormalisation::Batch);
            let others = gradient(&part(6..15), TrainingNormalisation::Batch);
            let size = both.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            for ((both, subset), others) in both.iter().zip(&subset).zip(&others) {
                let expected = (6.0 * subset + 9.0 * others) / 15.0;
                assert!((both - expected).abs() <= 1e-5 * size, "{filters}: {both} against {expected}");
            }
        }
    }
}
