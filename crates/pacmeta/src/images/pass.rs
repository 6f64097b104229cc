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
        let images = Images::Bytes(&room.pixels);
        let statistics = match normalisation {
            TrainingNormalisation::Batch => Statistics::Batch,
            TrainingNormalisation::Support => Statistics::First(subset),
        };
        let features = self.body.forward(body, images, statistics, &mut room.workspace)?;
        let task = FeatureTask { shape: self.head_shape(), features, labels: &episode.labels, subset };
        let terms = method.task_gradient(head, &task, key, &mut room.head, &mut room.head_gradient)?;
        let TaskRoom { workspace, head_gradient, body_gradient, .. } = room;
        self.body.backward(body, &head_gradient.features, workspace, body_gradient)?;
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
