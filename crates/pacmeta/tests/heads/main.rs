//! Methods on a linear softmax head: derivatives against finite differences, special cases, values from PyTorch, and
//! posteriors that are known exactly.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

mod conformance;
mod derivatives;
mod golden;
mod gradients;
mod linear_gaussian;
mod quadrature;

use pacmeta::learners::head::steps::{HeadSteps, Sampler};
use pacmeta::learners::head::{Examples, HeadShape};
use pacmeta::methods::heads::{
    FeatureTask, GibbsLearner, HeadGradient, HeadMethod, HeadMethodSettings, HeadRoom, HeadTerms,
};
use pacmeta_tensor::{Element, Key};

const SHAPE: HeadShape = HeadShape { features: 7, classes: 3 };
const LABELS: [usize; 6] = [0, 1, 2, 2, 0, 1];
const SUBSET: usize = 3;

/// A head and the features of six examples.
#[derive(Clone)]
struct Case<E> {
    head: Vec<E>,
    features: Vec<E>,
    labels: Vec<usize>,
    subset: usize,
}

impl<E: Element> Case<E> {
    fn new(seed: u64) -> Self {
        let mut generator = Key::new(seed).generator();
        let mut draw = |count: usize, scale: f64| {
            (0..count).map(|_| E::from_f64(scale * generator.normal())).collect::<Vec<E>>()
        };
        Self {
            head: draw(SHAPE.parameters(), 0.4),
            features: draw(LABELS.len() * SHAPE.features, 1.0),
            labels: LABELS.to_vec(),
            subset: SUBSET,
        }
    }

    fn task(&self) -> FeatureTask<'_, E> {
        FeatureTask { shape: SHAPE, features: &self.features, labels: &self.labels, subset: self.subset }
    }

    fn gradient(&self, method: &dyn HeadMethod<E>) -> (HeadTerms, HeadGradient<E>) {
        self.try_gradient(method).unwrap()
    }

    fn try_gradient(&self, method: &dyn HeadMethod<E>) -> pacmeta::Result<(HeadTerms, HeadGradient<E>)> {
        let mut gradient = HeadGradient::default();
        let terms = method.task_gradient(
            &self.head,
            &self.task(),
            Key::new(9),
            &mut HeadRoom::default(),
            &mut gradient,
        )?;
        Ok((terms, gradient))
    }
}

/// Settings in the words of a configuration.
fn settings(json: &str) -> HeadMethodSettings {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn method<E: Element>(json: &str) -> Box<dyn HeadMethod<E>> {
    settings(json).build().unwrap()
}

fn learner(inner: HeadSteps, sampler: Sampler) -> GibbsLearner {
    GibbsLearner { inner, sigma_squared: 0.8, alpha: 3.0, beta: Some(7.0), sampler }
}

/// L^ of a head, by three loops.
fn loss(head: &[f64], examples: Examples<'_, f64>, weights: Option<&[f64]>) -> f64 {
    let (weight, bias) = SHAPE.parts(head);
    let mut total = 0.0;
    for (example, &label) in examples.labels.iter().enumerate() {
        let features = &examples.features[example * SHAPE.features..][..SHAPE.features];
        let logits: Vec<f64> = (0..SHAPE.classes)
            .map(|class| {
                let row = &weight[class * SHAPE.features..][..SHAPE.features];
                bias[class] + row.iter().zip(features).map(|(w, f)| w * f).sum::<f64>()
            })
            .collect();
        let partition: f64 = logits.iter().map(|logit| logit.exp()).sum();
        let each = partition.ln() - logits[label];
        total += each * weights.map_or(1.0 / examples.labels.len() as f64, |weights| weights[example]);
    }
    total
}

/// Central differences.
fn differences(point: &[f64], mut function: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let step = 1e-5;
    let mut moved = point.to_vec();
    (0..point.len())
        .map(|place| {
            moved[place] = point[place] + step;
            let up = function(&moved);
            moved[place] = point[place] - step;
            let down = function(&moved);
            moved[place] = point[place];
            (up - down) / (2.0 * step)
        })
        .collect()
}

/// |found - expected| / |expected|.
fn error<E: Element>(found: &[E], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let distance: f64 = found.iter().zip(expected).map(|(a, b)| (a.to_f64() - b).powi(2)).sum();
    let norm: f64 = expected.iter().map(|b| b * b).sum();
    assert!(norm > 1e-10, "nothing to compare with");
    (distance / norm).sqrt()
}

#[track_caller]
fn assert_near<E: Element>(what: &str, found: &[E], expected: &[f64], tolerance: f64) {
    let error = error(found, expected);
    assert!(error < tolerance, "{what}: relative error {error:.1e}");
}
