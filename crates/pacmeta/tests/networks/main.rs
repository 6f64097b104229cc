//! Methods on networks whose body adapts: derivatives against finite differences and the tape, special cases, refusals; and image
//! models whose every parameter adapts.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

mod conformance;
mod encoders;
mod gradients;
#[cfg(feature = "images")]
mod models;

use pacmeta::learners::network::{Derivative, Network, NetworkRoom, Pictures, PlainBody};
use pacmeta::methods::heads::{HeadMethodSettings, HeadTerms};
use pacmeta::methods::networks::{NetworkMethod, NetworkTask};
use pacmeta::priors::{ConvolutionSpec, Downsampling};
use pacmeta_tensor::Key;
use pacmeta_tensor::conv::plain::{self, Decisions};
use pacmeta_tensor::conv::{ConvShape, Statistics};

const SPEC: ConvolutionSpec = ConvolutionSpec {
    side: 8,
    channels: 1,
    filters: 2,
    blocks: 2,
    downsampling: Downsampling::MaxPool,
    classes: 3,
};
const PICTURE: usize = 64;
const LABELS: [usize; 6] = [0, 1, 2, 2, 0, 1];
const SUBSET: usize = 3;
const KEY: u64 = 9;

/// A network in f64 and six pictures.
struct Case {
    body: PlainBody,
    parameters: Vec<f64>,
    pixels: Vec<u8>,
    subset: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let key = Key::new(seed);
        let mut generator = key.named("pixels").generator();
        let pixels = (0..LABELS.len() * PICTURE).map(|_| (256.0 * generator.uniform()) as u8).collect();
        let mut parameters = SPEC.initialise(key).unwrap().values().to_vec();
        parameters.iter_mut().for_each(|value| *value += 0.3 * generator.normal());
        Self { body: PlainBody(SPEC.body().unwrap()), parameters, pixels, subset: SUBSET }
    }

    /// The same pictures and other parameters.
    fn at(&self, parameters: &[f64]) -> Self {
        let (body, pixels) = (self.body.clone(), self.pixels.clone());
        Self { body, parameters: parameters.to_vec(), pixels, subset: self.subset }
    }

    fn network(&self) -> Network<'_, PlainBody> {
        Network { body: &self.body, classes: SPEC.classes }
    }

    fn shape(&self) -> &ConvShape {
        self.body.0.shape()
    }

    /// The pictures from `first` to `end`.
    fn pictures(&self, first: usize, end: usize) -> Pictures<'_> {
        Pictures { inputs: &self.pixels[first * PICTURE..end * PICTURE], labels: &LABELS[first..end] }
    }

    fn gradient(&self, method: &NetworkMethod) -> (HeadTerms, Vec<f64>) {
        self.try_gradient(method, Key::new(KEY)).unwrap()
    }

    fn try_gradient(&self, method: &NetworkMethod, key: Key) -> pacmeta::Result<(HeadTerms, Vec<f64>)> {
        let task = NetworkTask { inputs: &self.pixels[..], labels: &LABELS, subset: self.subset };
        let mut gradient = vec![f64::NAN; self.parameters.len()];
        let mut room = NetworkRoom::new(&self.body);
        let terms = method.task_gradient(
            self.network(),
            &self.parameters,
            &task,
            key,
            &mut room,
            Derivative { parameters: &mut gradient, inputs: &mut [] },
        )?;
        Ok((terms, gradient))
    }

    /// w of each particle after adapting to pictures.
    fn offsets(&self, method: &NetworkMethod, pictures: Pictures<'_>) -> Vec<Vec<f64>> {
        let mut room = NetworkRoom::new(&self.body);
        let adapted =
            method.adapt(self.network(), &self.parameters, pictures, Key::new(KEY), &mut room).unwrap();
        adapted.iter().map(|adapted| minus(adapted, &self.parameters)).collect()
    }

    /// L^ of parameters on the labelled ones of some pictures, by its definition; and what pools and rectifiers chose.
    fn loss(
        &self,
        parameters: &[f64],
        pictures: Pictures<'_>,
        frozen: Option<&Decisions>,
    ) -> (f64, Decisions) {
        let (body, head) = parameters.split_at(self.body.0.layout().len());
        let images: Vec<f64> = pictures.inputs.iter().map(|&byte| f64::from(byte) / 255.0).collect();
        let pass = plain::forward(self.shape(), body, &images, Statistics::Batch, frozen).unwrap();
        let (weight, bias) = head.split_at(SPEC.classes * self.body.0.feature_count());
        let mut total = 0.0;
        for (features, &label) in
            pass.features().chunks_exact(self.body.0.feature_count()).zip(pictures.labels)
        {
            let logits: Vec<f64> = weight
                .chunks_exact(features.len())
                .zip(bias)
                .map(|(row, bias)| bias + row.iter().zip(features).map(|(w, f)| w * f).sum::<f64>())
                .collect();
            total += logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[label];
        }
        (total / pictures.labels.len() as f64, pass.decisions().clone())
    }
}

fn method(json: &str) -> NetworkMethod {
    let settings: HeadMethodSettings =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    NetworkMethod::new(&settings).unwrap()
}

fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Central differences of fourth order of a function in every parameter.
fn differences(parameters: &[f64], step: f64, value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    (0..parameters.len())
        .map(|place| {
            let moved = |step: f64| {
                let mut parameters = parameters.to_vec();
                parameters[place] += step;
                value(&parameters)
            };
            (8.0 * (moved(step) - moved(-step)) - moved(2.0 * step) + moved(-2.0 * step)) / (12.0 * step)
        })
        .collect()
}

fn assert_close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let size = expected.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    assert!(size > 1e-4, "{name}: nothing to compare");
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < tolerance * size, "{name}, {place}: {found} is not {expected}");
    }
}
