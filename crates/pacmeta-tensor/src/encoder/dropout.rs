//! Dropout whose decisions are functions of a key and a place.

use super::mistake;
use crate::element::Element;
use crate::error::Result;
use crate::key::{Generator, Key};

/// Dropout: every number is set to zero with probability `rate` and otherwise divided by 1 - rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The probability of zero, below 1.
    pub rate: f64,
    /// Decides; the same key, the same decisions. Use a new one for every pass.
    pub key: Key,
}

/// Where dropout falls.
#[derive(Clone, Copy)]
pub(super) enum Site {
    Embeddings,
    Probabilities(usize),
    Attention(usize),
    Feed(usize),
}

/// Dropout in one place of the network.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    key: Key,
    rate: f64,
}

impl Dropout {
    pub(super) fn check(&self) -> Result<()> {
        if (0.0..1.0).contains(&self.rate) {
            return Ok(());
        }
        mistake(format!("the rate of dropout is {}, expected at least 0 and below 1", self.rate))
    }

    /// The mask of a place; none if nothing is dropped.
    pub(super) fn at(this: Option<Dropout>, site: Site) -> Option<Mask> {
        let Dropout { rate, key } = this.filter(|dropout| dropout.rate > 0.0)?;
        let key = match site {
            Site::Embeddings => key.named("embeddings"),
            Site::Probabilities(layer) => key.named("probabilities").index(layer as u64),
            Site::Attention(layer) => key.named("attention").index(layer as u64),
            Site::Feed(layer) => key.named("feed").index(layer as u64),
        };
        Some(Mask { key, rate })
    }
}

impl Mask {
    /// The part of the mask that belongs to a row.
    pub(super) fn row(&self, row: usize) -> Mask {
        Mask { key: self.key.index(row as u64), rate: self.rate }
    }

    /// Sets to zero or enlarges.
    pub(super) fn apply<E: Element>(&self, values: &mut [E]) {
        let (factor, mut generator) = (E::from_f64(1.0 / (1.0 - self.rate)), self.key.generator());
        for value in values {
            *value = if self.drops(&mut generator) { E::ZERO } else { *value * factor };
        }
    }

    fn drops(&self, generator: &mut Generator) -> bool {
        generator.uniform() < self.rate
    }
}
