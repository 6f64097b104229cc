//! A new task: sentences through the shared layers once, Adam on what adapts from the meta-learned start, predictions.
//!
//! As in the paper's few-shot phase, Adam runs for a number of steps on the plain loss of the support. The head starts at zero, or where
//! the generator puts it.

use pacmeta_tensor::encoder::{EncoderRoom, Keep, States, lower_forward, upper_forward};
use pacmeta_tensor::simd::skinny::Begin;

use super::generator::GeneratorPass;
use super::prior::TextPrior;
use crate::environments::text::TokenSet;
use crate::error::{Error, Result};
use crate::learners::head::{Examples, HeadShape, Outputs, Weights};
use crate::learners::network::{Body, Derivative, Labelled, Network, NetworkRoom, UpperLayers};
use crate::training::optimiser::Optimiser;

/// Sequences that go through the shared layers at a time.
const CHUNK: usize = 64;

/// The steps that adapt to a new task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FineTuning {
    /// Steps of Adam.
    pub steps: usize,
    /// Their learning rate.
    pub rate: f64,
}

/// What the shared layers make of sentences, in rows as wide as the encoder's states: features, one row a sentence, where only the head
/// adapts; states, one row a token, otherwise.
#[derive(Debug, Clone)]
pub struct Encoded {
    pub(super) values: Vec<f32>,
    /// Where the rows of each sentence start, and where the last ones end.
    pub(super) starts: Vec<usize>,
    width: usize,
}

impl Encoded {
    /// The number of sentences.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sentences at these places, in their order; a place may occur twice.
    ///
    /// # Panics
    /// When there is no such sentence.
    #[must_use]
    pub fn select(&self, places: &[usize]) -> Self {
        let rows: usize = places.iter().map(|&place| self.starts[place + 1] - self.starts[place]).sum();
        let mut values = Vec::with_capacity(rows * self.width);
        let mut starts = Vec::with_capacity(places.len() + 1);
        starts.push(0);
        for &place in places {
            let rows = self.starts[place] * self.width..self.starts[place + 1] * self.width;
            values.extend_from_slice(&self.values[rows]);
            starts.push(values.len() / self.width);
        }
        Self { values, starts, width: self.width }
    }
}

/// A text model ready for new tasks.
pub struct FewShot<'a> {
    prior: &'a TextPrior,
    parameters: &'a [f32],
    body: UpperLayers<f32>,
}

/// Parameters that have adapted to a task.
#[derive(Debug, Clone)]
pub struct Adapted {
    parameters: Vec<f32>,
    classes: usize,
    /// The loss on the support at the start and at the end.
    pub losses: [f64; 2],
}

impl<'a> FewShot<'a> {
    /// A prior with its parameters.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn new(prior: &'a TextPrior, parameters: &'a [f32]) -> Result<Self> {
        let expected = prior.layout()?.len();
        if parameters.len() != expected {
            let message = format!("there are {} parameters, expected {expected}", parameters.len());
            return Err(Error::input("the model", message));
        }
        Ok(Self { prior, parameters, body: UpperLayers::new(prior.encoder, prior.threshold)? })
    }

    /// Runs the shared layers.
    ///
    /// # Errors
    /// When tokens do not fit the encoder.
    pub fn encode(&self, tokens: &TokenSet, room: &mut EncoderRoom<f32>) -> Result<Encoded> {
        let (encoder, threshold) = (&self.prior.encoder, self.prior.threshold);
        let (lower, upper) = self.parameters.split_at(encoder.boundary(threshold));
        let upper = &upper[..self.prior.encoder_len() - lower.len()];
        let mut pool = EncoderRoom::new();
        let mut values = Vec::new();
        for first in (0..tokens.len()).step_by(CHUNK) {
            let part = tokens.tokens(first..(first + CHUNK).min(tokens.len()));
            let states = lower_forward(encoder, threshold, lower, part, Keep::Nothing, None, room)?;
            if self.prior.only_head_adapts() {
                let states = States { values: states, starts: part.starts };
                let features =
                    upper_forward(encoder, threshold, upper, states, Keep::Nothing, None, &mut pool)?;
                values.extend_from_slice(features);
            } else {
                values.extend_from_slice(states);
            }
        }
        let starts = match self.prior.only_head_adapts() {
            true => (0..=tokens.len()).collect(),
            false => tokens.starts.clone(),
        };
        Ok(Encoded { values, starts, width: encoder.hidden })
    }

    /// Adapts to labelled sentences.
    ///
    /// # Errors
    /// When a label is not below the number of classes, or a number is not finite.
    pub fn adapt(
        &self,
        support: &Encoded,
        labels: &[usize],
        classes: usize,
        tuning: FineTuning,
    ) -> Result<Adapted> {
        if labels.len() != support.len() || labels.is_empty() || labels.iter().any(|&label| label >= classes)
        {
            return Err(Error::input(
                "the support",
                "expected a label below the number of classes for every example",
            ));
        }
        let shape = self.prior.head(classes);
        if self.prior.only_head_adapts() {
            let examples = Examples { features: &support.values, labels };
            let start = match self.prior.generator() {
                Some(generator) => {
                    let own = &self.parameters[self.prior.encoder_len()..];
                    generator.forward(own, examples, shape, &mut GeneratorPass::default())
                }
                None => vec![0.0; shape.parameters()],
            };
            let (mut outputs, mut residuals) = (Outputs::default(), Vec::new());
            descend(start, classes, tuning, |head, slope| {
                shape.outputs(head, examples, &mut outputs);
                shape.residuals(&outputs.probabilities, labels, Weights::Mean(1.0), &mut residuals);
                shape.head_gradient(Begin::Zero, &residuals, examples.features, slope);
                Ok(outputs.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / labels.len() as f64)
            })
        } else {
            let network = Network { body: &self.body, classes };
            let mut start = self.upper().to_vec();
            start.resize(network.parameters(), 0.0);
            let inputs = States { values: &support.values, starts: &support.starts };
            let mut room = NetworkRoom::new(&self.body);
            descend(start, classes, tuning, |position, slope| {
                let gradient = Derivative { parameters: slope, inputs: &mut [] };
                network.gradient(position, Labelled { inputs, labels }, 1.0, &mut room, gradient)
            })
        }
    }

    /// Class probabilities of sentences, row-major [sentences, classes].
    ///
    /// # Errors
    /// When sizes do not fit.
    pub fn predict(&self, adapted: &Adapted, queries: &Encoded) -> Result<Vec<f32>> {
        let mut probabilities = Vec::new();
        if self.prior.only_head_adapts() {
            let shape = HeadShape { features: self.prior.encoder.hidden, classes: adapted.classes };
            shape.probabilities(&adapted.parameters, &queries.values, &mut probabilities);
            return Ok(probabilities);
        }
        let network = Network { body: &self.body, classes: adapted.classes };
        let mut room = NetworkRoom::new(&self.body);
        let all = States { values: &queries.values, starts: &queries.starts };
        for first in (0..queries.len()).step_by(CHUNK) {
            let part = self.body.part(all, first..(first + CHUNK).min(queries.len()));
            probabilities.extend(network.probabilities(&adapted.parameters, part, &mut room)?);
        }
        Ok(probabilities)
    }

    fn upper(&self) -> &[f32] {
        &self.parameters[self.prior.encoder.boundary(self.prior.threshold)..self.prior.encoder_len()]
    }
}

/// Steps of Adam down a slope.
fn descend(
    start: Vec<f32>,
    classes: usize,
    tuning: FineTuning,
    mut slope_at: impl FnMut(&[f32], &mut [f32]) -> Result<f64>,
) -> Result<Adapted> {
    let mut position: Vec<f64> = start.iter().map(|&value| f64::from(value)).collect();
    let mut single = start;
    let mut slope = vec![0.0_f32; single.len()];
    let mut wide = vec![0.0; single.len()];
    let mut optimiser = Optimiser::new(single.len(), tuning.rate, 0.0);
    let first = slope_at(&single, &mut slope)?;
    if !first.is_finite() {
        let message = "the loss is not finite before the first step: the encoder's features are no finite numbers; is it whole?";
        return Err(Error::input("adapting to the support", message));
    }
    let mut last = first;
    for step in 0..tuning.steps {
        wide.iter_mut().zip(&slope).for_each(|(wide, &value)| *wide = f64::from(value));
        optimiser.step(&mut position, &wide);
        crate::training::pieces::round_into(&position, &mut single);
        last = slope_at(&single, &mut slope)?;
        if !last.is_finite() {
            let message = format!(
                "the loss is not finite after step {} at rate {}; choose a smaller `evaluation.rate` (`adapt`: --rate)",
                step + 1,
                tuning.rate
            );
            return Err(Error::input("adapting to the support", message));
        }
    }
    Ok(Adapted { parameters: single, classes, losses: [first, last] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_are_not_finite_have_a_cause() {
        let refusal = |losses: [f64; 2]| {
            let mut losses = losses.into_iter();
            let tuning = FineTuning { steps: 1, rate: 1e9 };
            descend(vec![0.0], 2, tuning, |_, _| Ok(losses.next().unwrap())).unwrap_err().to_string()
        };
        assert!(refusal([f64::NAN, 1.0]).contains("before the first step: the encoder's features"));
        let after = refusal([1.0, f64::INFINITY]);
        assert!(
            after.contains("after step 1 at rate 1000000000; choose a smaller `evaluation.rate`"),
            "{after}"
        );
    }
}
