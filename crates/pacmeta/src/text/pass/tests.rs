//! The gradient of an episode, from tokens to all parameters, against finite differences in f64.
//!
//! Let theta be all parameters; h(theta) what the shared layers make of the tokens, features where only the head adapts and states below;
//! p(theta) the start of what adapts: the head at zero, at its own parameters or made from the features of S', with the upper layers before
//! it where they adapt; v(theta) the result of the inner steps from p on h. What is differentiated is
//!
//! | method | function of theta | held constant, at the given theta |
//! |---|---|---|
//! | FOMAML | L^(p + w, S) | w = v - p after plain steps on S' |
//! | MAML | L^(v, S), v after plain steps on S' | nothing |
//! | BMAML | \|v_a - c\|^2, v_a after steps on S' at alpha | the leader c |
//! | PACOH | L^(p + w_b, S) | w_b, after steps on S at beta |
//! | PACMAML | L^(p + w_a, S) + (alpha/beta) [L^(p + w_b, S') - L^(p + w_a, S')] | w_a, after steps on S' at alpha, and w_b |
//!
//! with L^ on h(theta) everywhere. Reptile is no derivative of one function, and multi-task learning FOMAML without steps.

use std::ops::Range;

use rayon::prelude::*;

use super::*;
use crate::environments::text::TokenSet;
use crate::learners::network::{Body, Labelled};
use crate::text::TextHeads;
use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling};

const SHAPE: EncoderShape = EncoderShape {
    vocabulary: 6,
    positions: 4,
    segments: 2,
    hidden: 4,
    heads: 2,
    intermediate: 5,
    layers: 2,
    epsilon: 1e-12,
    activation: Activation::Gelu,
    pooling: Pooling::Pooler,
};
const CLASSES: usize = 3;
const EXAMPLES: usize = 5;
const SUBSET: usize = 3;
const STEPS: usize = 3;
const RATE: f64 = 0.05;
const ALPHA: f64 = 3.0;
const BETA: f64 = 4.0;
const SIGMA_SQUARED: f64 = 0.5;
const SEED: u64 = 11;
/// The step of the differences, whose error of fourth order is far below the tolerance.
const STEP: f64 = 1e-4;
/// What found and expected numbers may differ by, as a part of the largest of all.
const TOLERANCE: f64 = 1e-6;
/// The largest number of a tensor is at least this part of that of all, so that the comparison says something about every tensor.
const LEAST: f64 = 1e-5;

fn episode() -> TextEpisode {
    let tokens = TokenSet {
        ids: vec![2, 0, 5, 1, 4, 2, 3, 5, 0, 4, 1, 3, 0, 2],
        segments: vec![0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0],
        starts: vec![0, 3, 5, 9, 12, 14],
        labels: vec![0, 1, 2, 1, 0],
    };
    let classes = ["a", "b", "c"].map(str::to_owned).into();
    TextEpisode { task: "own".to_owned(), tokens, subset: SUBSET, classes }
}

fn learned() -> TextHeads {
    TextHeads::Learned { tasks: vec![("other".to_owned(), 2), ("own".to_owned(), CLASSES)] }
}

/// Random numbers, with scales of norms around one.
fn parameters(prior: &TextPrior) -> Vec<f64> {
    let layout = prior.layout().unwrap();
    let mut numbers = vec![0.0; layout.len()];
    for entry in layout.entries() {
        let mut generator = Key::new(SEED).named(&entry.name).generator();
        let norm = entry.name.ends_with("norm.weight");
        for number in &mut numbers[entry.range()] {
            *number = if norm { 1.0 + 0.2 * generator.normal() } else { 0.5 * generator.normal() };
        }
    }
    numbers
}

/// What methods differentiate, written anew with nothing of theirs: passes forward, the slope of a loss, and Adagrad.
struct Reference<'a> {
    prior: &'a TextPrior,
    episode: &'a TextEpisode,
    dropout: f64,
}

/// p and h at some parameters.
struct Point {
    start: Vec<f64>,
    inputs: Vec<f64>,
}

/// Where inner steps are.
struct Position {
    values: Vec<f64>,
    accumulators: Vec<f64>,
}

/// What some methods hold constant.
struct Constants {
    plain: Vec<f64>,
    of_alpha: Vec<f64>,
    of_beta: Vec<f64>,
    leader: Vec<f64>,
}

const S: Range<usize> = 0..EXAMPLES;
const S_PRIME: Range<usize> = 0..SUBSET;
/// Temperature and prior variance of plain steps, as MAML has them.
const PLAIN: (f64, f64) = (1.0, f64::INFINITY);
const AT_ALPHA: (f64, f64) = (ALPHA, SIGMA_SQUARED);
const AT_BETA: (f64, f64) = (BETA, SIGMA_SQUARED);

impl Reference<'_> {
    fn at(&self, parameters: &[f64]) -> Point {
        let (prior, tokens) = (self.prior, self.episode.tokens.all_tokens());
        let (encoder, threshold) = (&prior.encoder, prior.threshold);
        let (lower, rest) = parameters.split_at(encoder.boundary(threshold));
        let (upper, heads) = rest.split_at(prior.encoder_len() - lower.len());
        let key = Key::new(SEED).named("dropout");
        let dropout = (self.dropout > 0.0).then_some(Dropout { rate: self.dropout, key });
        let mut room = EncoderRoom::new();
        let states = lower_forward(encoder, threshold, lower, tokens, Keep::Nothing, dropout, &mut room);
        let states = states.unwrap().to_vec();
        let shape = prior.head(CLASSES);
        let head = |support: &[f64]| match &prior.heads {
            TextHeads::Zero => vec![0.0; shape.parameters()],
            // behind the head of the other task
            TextHeads::Learned { .. } => heads[prior.head(2).parameters()..].to_vec(),
            TextHeads::Generated => {
                let support = Examples { features: support, labels: &self.episode.tokens.labels[S_PRIME] };
                let generator = prior.generator().unwrap();
                generator.forward(heads, support, shape, &mut GeneratorPass::default())
            }
        };
        if threshold < SHAPE.layers {
            return Point { start: [upper, &head(&[])].concat(), inputs: states };
        }
        let states = States { values: &states, starts: tokens.starts };
        let features = upper_forward(encoder, threshold, upper, states, Keep::Nothing, None, &mut room);
        let inputs = features.unwrap().to_vec();
        Point { start: head(&inputs[..SUBSET * SHAPE.hidden]), inputs }
    }

    /// L^ on some examples, and its slope in what adapts.
    fn loss_and_slope(&self, inputs: &[f64], position: &[f64], examples: Range<usize>) -> (f64, Vec<f64>) {
        let labels = &self.episode.tokens.labels[examples.clone()];
        let mut slope = vec![0.0; position.len()];
        if self.prior.threshold < SHAPE.layers {
            let body = UpperLayers::<f64>::new(SHAPE, self.prior.threshold).unwrap();
            let states = States { values: inputs, starts: &self.episode.tokens.starts };
            let examples = Labelled { inputs: body.part(states, examples), labels };
            let (network, mut room) = (Network { body: &body, classes: CLASSES }, NetworkRoom::new(&body));
            let derivative = Derivative { parameters: &mut slope, inputs: &mut [] };
            let loss = network.gradient(position, examples, 1.0, &mut room, derivative).unwrap();
            return (loss, slope);
        }
        let width = SHAPE.hidden;
        let (weight, bias) = position.split_at(CLASSES * width);
        let (mut loss, share) = (0.0, 1.0 / labels.len() as f64);
        for (features, &label) in inputs[examples.start * width..].chunks_exact(width).zip(labels) {
            let row = |class: usize| weight[class * width..][..width].iter().zip(features);
            let logit = |class: usize| bias[class] + row(class).map(|(w, f)| w * f).sum::<f64>();
            let total: f64 = (0..CLASSES).map(|class| logit(class).exp()).sum();
            loss += share * (total.ln() - logit(label));
            for class in 0..CLASSES {
                let hit = if class == label { 1.0 } else { 0.0 };
                let residual = share * (logit(class).exp() / total - hit);
                for (slope, feature) in slope[class * width..][..width].iter_mut().zip(features) {
                    *slope += residual * feature;
                }
                slope[CLASSES * width + class] += residual;
            }
        }
        (loss, slope)
    }

    fn loss(&self, inputs: &[f64], position: &[f64], examples: Range<usize>) -> f64 {
        self.loss_and_slope(inputs, position, examples).0
    }

    /// K steps of Adagrad from p.
    fn adapted(&self, point: &Point, examples: Range<usize>, target: (f64, f64)) -> Position {
        let accumulators = vec![0.1; point.start.len()];
        self.advanced(point, Position { values: point.start.clone(), accumulators }, examples, target)
    }

    /// K more steps.
    fn advanced(
        &self,
        point: &Point,
        mut position: Position,
        examples: Range<usize>,
        (temperature, sigma_squared): (f64, f64),
    ) -> Position {
        for _ in 0..STEPS {
            let (_, slope) = self.loss_and_slope(&point.inputs, &position.values, examples.clone());
            for (place, slope) in slope.into_iter().enumerate() {
                let value = &mut position.values[place];
                let slope = temperature * slope + (*value - point.start[place]) / sigma_squared;
                position.accumulators[place] += slope * slope;
                *value -= RATE * slope / position.accumulators[place].sqrt();
            }
        }
        position
    }

    fn constants(&self, point: &Point) -> Constants {
        let offset = |position: &Position| -> Vec<f64> {
            position.values.iter().zip(&point.start).map(|(v, p)| v - p).collect()
        };
        let chaser = self.adapted(point, S_PRIME, AT_ALPHA);
        Constants {
            plain: offset(&self.adapted(point, S_PRIME, PLAIN)),
            of_alpha: offset(&chaser),
            of_beta: offset(&self.adapted(point, S, AT_BETA)),
            // the leader goes on where the chaser is, accumulators included
            leader: self.advanced(point, chaser, S, AT_BETA).values,
        }
    }

    /// The function of the table above.
    fn objective(&self, method: &str, constants: &Constants, parameters: &[f64]) -> f64 {
        let point = self.at(parameters);
        let loss = |offset: &[f64], examples: Range<usize>| {
            let position: Vec<f64> = point.start.iter().zip(offset).map(|(p, w)| p + w).collect();
            self.loss(&point.inputs, &position, examples)
        };
        let Constants { plain, of_alpha, of_beta, leader } = constants;
        match method {
            "fomaml" => loss(plain, S),
            "maml" => {
                let adapted = self.adapted(&point, S_PRIME, PLAIN);
                self.loss(&point.inputs, &adapted.values, S)
            }
            "bmaml" => {
                let chaser = self.adapted(&point, S_PRIME, AT_ALPHA);
                chaser.values.iter().zip(leader).map(|(v, c)| (v - c).powi(2)).sum()
            }
            "pacoh" => loss(of_beta, S),
            "pacmaml" => {
                loss(of_alpha, S) + ALPHA / BETA * (loss(of_beta, S_PRIME) - loss(of_alpha, S_PRIME))
            }
            _ => panic!("no function of {method}"),
        }
    }
}

fn settings(method: &str) -> HeadMethodSettings {
    let temperatures = match method {
        "maml" | "fomaml" => String::new(),
        _ => format!(r#""alpha": {ALPHA:?}, "beta": {BETA:?}, "sigma_squared": {SIGMA_SQUARED:?}, "#),
    };
    let inner = format!(r#""inner": {{"steps": {STEPS}, "rate": {RATE}, "optimiser": "adagrad"}}"#);
    serde_json::from_str(&format!(r#"{{"name": "{method}", {temperatures}{inner}}}"#)).unwrap()
}

/// Central differences of fourth order in every parameter.
fn differences(parameters: &[f64], value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut moved = parameters.to_vec();
    let mut slopes = Vec::with_capacity(parameters.len());
    for place in 0..parameters.len() {
        let mut at = |step: f64| {
            moved[place] = parameters[place] + step;
            value(&moved)
        };
        let (near, far) = (at(STEP) - at(-STEP), at(2.0 * STEP) - at(-2.0 * STEP));
        slopes.push((8.0 * near - far) / (12.0 * STEP));
        moved[place] = parameters[place];
    }
    slopes
}

fn check(heads: &TextHeads, threshold: usize, method: &str, dropout: f64) {
    let name = format!("{method}, {heads:?}, v = {threshold}, dropout {dropout}");
    let prior = TextPrior::new(SHAPE, threshold, heads.clone()).unwrap();
    let (episode, parameters) = (episode(), parameters(&prior));
    let adapting = AdaptingMethod::build(&prior, &settings(method), WayBack::Tape).unwrap();
    let network = TextNetwork { prior: &prior, parameters: &parameters, dropout };
    let (mut room, mut found) = (TaskRoom::new(&adapting), vec![9.0; parameters.len()]);
    // another episode before it, since rooms are used again
    let before = TextEpisode { tokens: episode.tokens.select(&[4, 1, 2, 3]), subset: 2, ..episode.clone() };
    network.gradient(&adapting, &before, Key::new(1), &mut room, &mut found).unwrap();
    let terms = network.gradient(&adapting, &episode, Key::new(SEED), &mut room, &mut found).unwrap();

    let reference = Reference { prior: &prior, episode: &episode, dropout };
    let constants = reference.constants(&reference.at(&parameters));
    let value = |parameters: &[f64]| reference.objective(method, &constants, parameters);
    let objective = value(&parameters);
    assert!((terms.objective - objective).abs() < 1e-10, "{name}: {} is not {objective}", terms.objective);
    let expected = differences(&parameters, value);
    let largest = |numbers: &[f64]| numbers.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
    let size = largest(&expected);
    assert!(size > 1e-5, "{name}: nothing to compare");
    for entry in prior.layout().unwrap().entries() {
        let (found, expected) = (&found[entry.range()], &expected[entry.range()]);
        for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
            let error = (found - expected).abs();
            assert!(error < TOLERANCE * size, "{name}, {} {place}: {found} is not {expected}", entry.name);
        }
        if entry.name.starts_with("head.other") {
            assert!(found.iter().all(|&slope| slope == 0.0), "{name}: {} has a slope", entry.name);
        } else if !entry.name.ends_with("key.bias") && entry.name != "generator.output.bias" {
            // what is added to all scores of a row, or to the weights of all classes, is lost in the softmax: no slope
            assert!(largest(found) > LEAST * size, "{name}: {} has no slope", entry.name);
        }
    }
}

#[test]
fn gradients_are_derivatives_from_tokens_to_all_parameters() {
    let top = SHAPE.layers;
    let models = [
        (TextHeads::Zero, top),
        (learned(), top),
        (TextHeads::Generated, top),
        (TextHeads::Zero, 1),
        (learned(), 1),
        (learned(), 0),
    ];
    let methods = ["fomaml", "maml", "bmaml", "pacoh", "pacmaml"];
    let mut cases: Vec<(&TextHeads, usize, &str, f64)> = Vec::new();
    for (heads, threshold) in &models {
        cases.extend(methods.map(|method| (heads, *threshold, method, 0.0)));
    }
    // dropout falls on the shared layers, by the key of the task
    cases.push((&models[1].0, top, "pacmaml", 0.2));
    cases.push((&models[1].0, 1, "maml", 0.2));
    cases.into_par_iter().for_each(|(heads, threshold, method, dropout)| {
        check(heads, threshold, method, dropout);
    });
}
