//! A linear softmax head on fixed features (ANIL): its loss, its derivatives and the base learners that adapt it.
//!
//! A head of `classes` outputs on `features` inputs is one flat vector: the weight W, row-major [classes, features], then
//! the bias b. For an example with features f and label y,
//!
//! ```text
//! P = softmax(W f + b),  l = -log P_y,  r = P - e_y
//! dl/dW = r f',  dl/db = r,  dl/df = W' r,  L^ = mean of l over examples (or a weighted sum)
//! ```
//!
//! - [`derivatives`]: Hessian products and mixed derivatives, in closed form;
//! - [`steps`]: K gradient or Adagrad steps towards a Gibbs posterior, or plain ones (particles, preconditions and noise are those of
//!   whole networks too);
//! - [`svgd`], [`sgld`]: several particles, or noise in the steps;
//! - [`adjoint`]: the exact reverse pass through the steps.
//!
//! All of it is generic over [`Element`]: f32 for use, f64 for checks. Buffers are the caller's, so nothing is
//! allocated once they have grown.

pub mod adjoint;
pub mod derivatives;
pub mod sgld;
pub mod steps;
pub mod svgd;
mod vector;
mod walk;

pub(crate) use vector::{add_difference, add_product, all_finite, squared_distance, sum};
pub(crate) use walk::{Walk, WalkRoom};

use pacmeta_tensor::Element;
use pacmeta_tensor::simd::skinny::{Begin, Coefficients, combinations, inner_products};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The sizes of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadShape {
    /// Inputs.
    pub features: usize,
    /// Outputs.
    pub classes: usize,
}

/// Features, row-major [examples, features], and labels.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a, E> {
    /// One row of features an example.
    pub features: &'a [E],
    /// One class an example.
    pub labels: &'a [usize],
}

/// What each example counts in a loss.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a, E> {
    /// The same: the mean times this factor.
    Mean(E),
    /// Its own.
    Each(&'a [E]),
}

impl<E: Element> Weights<'_, E> {
    fn of(&self, example: usize, examples: usize) -> E {
        match self {
            Self::Mean(factor) => *factor / E::from_f64(examples as f64),
            Self::Each(weights) => weights[example],
        }
    }
}

/// What a head says about examples.
#[derive(Debug, Clone, Default)]
pub struct Outputs<E> {
    /// P, row-major [examples, classes].
    pub probabilities: Vec<E>,
    /// l of each example.
    pub losses: Vec<E>,
}

impl HeadShape {
    /// The number of parameters.
    pub const fn parameters(self) -> usize {
        self.classes * self.features + self.classes
    }

    /// Weight and bias of a head.
    pub fn parts<E>(self, head: &[E]) -> (&[E], &[E]) {
        head.split_at(self.classes * self.features)
    }

    /// Checks a head and examples against these sizes.
    ///
    /// # Errors
    /// An input error that says which of them does not fit.
    pub fn check<E>(self, head: &[E], examples: Examples<'_, E>) -> Result<()> {
        let fail = |message: String| Err(Error::input("head", message));
        let count = examples.labels.len();
        if self.features == 0 || self.classes == 0 {
            return fail(format!(
                "it has {} features and {} classes, expected at least one of each",
                self.features, self.classes
            ));
        }
        if head.len() != self.parameters() {
            return fail(format!("it has {} parameters, expected {}", head.len(), self.parameters()));
        }
        if Some(examples.features.len()) != count.checked_mul(self.features) {
            return fail(format!(
                "there are {} numbers for {count} examples of {} features",
                examples.features.len(),
                self.features
            ));
        }
        match examples.labels.iter().position(|&label| label >= self.classes) {
            Some(place) => fail(format!(
                "example {place} has label {}, expected one below {}",
                examples.labels[place], self.classes
            )),
            None => Ok(()),
        }
    }

    /// Probabilities and losses.
    pub fn outputs<E: Element>(self, head: &[E], examples: Examples<'_, E>, outputs: &mut Outputs<E>) {
        let (weight, bias) = self.parts(head);
        let count = examples.labels.len();
        outputs.probabilities.resize(count * self.classes, E::ZERO);
        outputs.losses.resize(count, E::ZERO);
        inner_products(self.features, bias, examples.features, weight, &mut outputs.probabilities);
        let rows = outputs.probabilities.chunks_exact_mut(self.classes);
        for ((row, loss), &label) in rows.zip(&mut outputs.losses).zip(examples.labels) {
            *loss = softmax(row, label);
        }
    }

    /// P of each example, without labels.
    pub fn probabilities<E: Element>(self, head: &[E], features: &[E], probabilities: &mut Vec<E>) {
        let (weight, bias) = self.parts(head);
        probabilities.resize(features.len() / self.features * self.classes, E::ZERO);
        inner_products(self.features, bias, features, weight, probabilities);
        for row in probabilities.chunks_exact_mut(self.classes) {
            softmax(row, 0);
        }
    }

    /// weight * (P - e_y) of each example: the derivative of the weighted loss in the logits.
    pub fn residuals<E: Element>(
        self,
        probabilities: &[E],
        labels: &[usize],
        weights: Weights<'_, E>,
        residuals: &mut Vec<E>,
    ) {
        residuals.clear();
        residuals.extend_from_slice(probabilities);
        for (example, row) in residuals.chunks_exact_mut(self.classes).enumerate() {
            let label = labels[example];
            let weight = weights.of(example, labels.len());
            // P_y - 1 as minus the others' sum: no digits are lost where P_y is nearly one.
            row[label] = E::ZERO;
            let others: E = row.iter().copied().sum();
            row[label] = -others;
            for value in row {
                *value *= weight;
            }
        }
    }

    /// gradient (+)= R' [F, 1], with R from [`residuals`](Self::residuals).
    pub fn head_gradient<E: Element>(
        self,
        begin: Begin,
        residuals: &[E],
        features: &[E],
        gradient: &mut [E],
    ) {
        let count = residuals.len() / self.classes;
        let (weight, bias) = gradient.split_at_mut(self.classes * self.features);
        let coefficients = Coefficients { values: residuals, term_stride: self.classes, row_stride: 1 };
        combinations([count, self.features], begin, coefficients, features, weight);
        if begin == Begin::Zero {
            bias.fill(E::ZERO);
        }
        for row in residuals.chunks_exact(self.classes) {
            for (sum, &value) in bias.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }

    /// gradient (+)= R W, row-major [examples, features].
    pub fn feature_gradient<E: Element>(self, begin: Begin, residuals: &[E], head: &[E], gradient: &mut [E]) {
        let coefficients = Coefficients { values: residuals, term_stride: 1, row_stride: self.classes };
        combinations([self.classes, self.features], begin, coefficients, self.parts(head).0, gradient);
    }
}

/// Turns logits into probabilities in place; returns the loss of the label.
fn softmax<E: Element>(row: &mut [E], label: usize) -> E {
    let largest = row.iter().copied().fold(E::NEG_INFINITY, |a, b| if b > a { b } else { a });
    let margin = row[label] - largest;
    let mut total = E::ZERO;
    let mut others = E::ZERO;
    for (class, value) in row.iter_mut().enumerate() {
        *value = (*value - largest).exp();
        total += *value;
        if class != label {
            others += *value;
        }
    }
    for value in row.iter_mut() {
        *value = *value / total;
    }
    // Where the label has the largest logit, log(1 + others) keeps the digits of a small loss.
    if margin == E::ZERO { others.ln_1p() } else { total.ln() - margin }
}

/// Class probabilities of examples, averaged over heads: row-major [examples, classes].
///
/// # Errors
/// When a head or the features do not have the sizes of the shape, or there is no head.
pub fn predict<E: Element>(shape: HeadShape, heads: &[Vec<E>], features: &[E]) -> Result<Vec<E>> {
    if heads.is_empty() {
        return Err(Error::input("head", "there is none to predict with, expected at least one"));
    }
    if shape.features == 0 || !features.len().is_multiple_of(shape.features) {
        return Err(Error::input(
            "features",
            format!("there are {} numbers, expected a multiple of {}", features.len(), shape.features),
        ));
    }
    let mut sum = vec![E::ZERO; features.len() / shape.features * shape.classes];
    let mut single = Vec::new();
    let share = E::ONE / E::from_f64(heads.len() as f64);
    for head in heads {
        shape.check(head, Examples { features: &[], labels: &[] })?;
        shape.probabilities(head, features, &mut single);
        for (sum, &value) in sum.iter_mut().zip(&single) {
            *sum += share * value;
        }
    }
    Ok(sum)
}
