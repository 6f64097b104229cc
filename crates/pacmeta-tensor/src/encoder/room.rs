//! Room for passes: buffers that are used again from call to call.

use std::sync::Mutex;

use super::attention::scratch_len;
use super::firsts::ends_in_firsts;
use super::rows::BLOCK;
use super::{Dropout, EncoderShape, Keep, mistake};
use crate::element::Element;
use crate::error::Result;

/// The two halves of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Lower,
    Upper,
}

/// What a forward pass was made of, for its backward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pass {
    pub(super) half: Half,
    pub(super) shape: EncoderShape,
    pub(super) threshold: usize,
    pub(super) tokens: usize,
    pub(super) keep: Keep,
    pub(super) dropout: Option<Dropout>,
}

/// What the backward pass of a layer needs, [tokens, ...] each; of a last layer that computes first states only, [sequences, ...] but for q, k and v.
#[derive(Debug, Default)]
pub(super) struct Kept<E> {
    /// q, k and v side by side.
    pub(super) joint: Vec<E>,
    pub(super) log_sums: Vec<E>,
    pub(super) context: Vec<E>,
    /// What the attention's norm normalised, and 1 / deviation.
    pub(super) attention_norm: Vec<E>,
    pub(super) attention_inverse: Vec<E>,
    /// The numbers before the activation.
    pub(super) up: Vec<E>,
    pub(super) norm: Vec<E>,
    pub(super) inverse: Vec<E>,
}

/// Room for passes of encoders. It grows to the largest pass and allocates nothing from then on.
///
/// One room holds one pass: the backward pass that follows a forward pass must use its room. The halves of an encoder want
/// a room each.
#[derive(Debug, Default)]
pub struct EncoderRoom<E> {
    pub(super) pass: Option<Pass>,
    /// Where sequences start and the last one ends, from 0.
    pub(super) starts: Vec<usize>,
    /// The states between layers; in the backward pass, a layer's input.
    pub(super) states: Vec<E>,
    /// As wide as four times the states or the feed-forward part.
    pub(super) wide: Vec<E>,
    /// What norms normalise when nothing is kept, the embeddings otherwise.
    pub(super) norm: Vec<E>,
    pub(super) inverse: Vec<E>,
    pub(super) log_sums: Vec<E>,
    pub(super) layers: Vec<Kept<E>>,
    /// The first state of each sequence, for the last layer and the pooler.
    pub(super) firsts: Vec<E>,
    pub(super) features: Vec<E>,
    /// Slopes at the features, before the pooler's tanh.
    pub(super) feature_slopes: Vec<E>,
    /// Slopes at first states behind the last layer.
    pub(super) first_slopes: Vec<E>,
    pub(super) slopes: Vec<E>,
    /// Slopes behind dropout.
    pub(super) branch: Vec<E>,
    /// Sums over the rows of each block.
    pub(super) partial: Vec<E>,
    pub(super) scratch: Vec<Mutex<Vec<E>>>,
    peak: usize,
}

impl<E: Element> EncoderRoom<E> {
    /// Empty room.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of the buffers held now.
    pub fn bytes(&self) -> usize {
        let own = [
            &self.states,
            &self.wide,
            &self.norm,
            &self.inverse,
            &self.log_sums,
            &self.firsts,
            &self.features,
            &self.feature_slopes,
            &self.first_slopes,
            &self.slopes,
            &self.branch,
            &self.partial,
        ];
        let mut numbers: usize = own.iter().map(|buffer| buffer.capacity()).sum();
        for kept in &self.layers {
            numbers += kept.buffers().iter().map(|buffer| buffer.capacity()).sum::<usize>();
        }
        for scratch in &self.scratch {
            numbers += scratch.lock().map_or(0, |buffer| buffer.capacity());
        }
        numbers * size_of::<E>() + self.starts.capacity() * size_of::<usize>()
    }

    /// The most bytes held since the room was made or [`reset_peak`](Self::reset_peak) was called.
    pub fn peak_bytes(&self) -> usize {
        self.peak
    }

    /// Starts a new phase of memory accounting.
    pub fn reset_peak(&mut self) {
        self.peak = self.bytes();
    }

    /// Gives the buffers back.
    pub fn release(&mut self) {
        *self = EncoderRoom { peak: self.peak, ..Self::default() };
    }

    /// Room for a forward pass over sequences that have been checked. What was kept is forgotten.
    pub(super) fn prepare(&mut self, pass: Pass, starts: &[usize]) {
        let Pass { shape, threshold, tokens, .. } = pass;
        // until the pass is complete there is nothing to go back through
        self.pass = None;
        self.starts.clear();
        self.starts.extend(starts.iter().map(|start| start - starts[0]));
        let sequences = starts.len() - 1;
        let longest = self.starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let (first, layers) = match pass.half {
            Half::Lower => (0, threshold),
            Half::Upper => (threshold, shape.layers - threshold),
        };
        let hidden = shape.hidden;
        grow(&mut self.states, tokens * hidden);
        match pass.keep {
            Keep::Nothing => {
                grow(&mut self.norm, tokens * hidden);
                grow(&mut self.inverse, tokens);
                grow(&mut self.log_sums, tokens * shape.heads);
            }
            Keep::ForBackward => {
                if pass.half == Half::Lower {
                    grow(&mut self.norm, tokens * hidden);
                    grow(&mut self.inverse, tokens);
                }
                if self.layers.len() < layers {
                    self.layers.resize_with(layers, Kept::default);
                }
                for (place, kept) in self.layers[..layers].iter_mut().enumerate() {
                    let firsts = ends_in_firsts(&shape, first + place, pass.dropout);
                    let rows = if firsts { sequences } else { tokens };
                    grow(&mut kept.joint, tokens * 3 * hidden);
                    grow(&mut kept.log_sums, rows * shape.heads);
                    grow(&mut kept.context, rows * hidden);
                    grow(&mut kept.attention_norm, rows * hidden);
                    grow(&mut kept.attention_inverse, rows);
                    grow(&mut kept.up, rows * shape.intermediate);
                    grow(&mut kept.norm, rows * hidden);
                    grow(&mut kept.inverse, rows);
                }
            }
        }
        if layers > 0 {
            grow(&mut self.wide, tokens * shape.intermediate.max(4 * hidden));
            let threads = rayon::current_num_threads();
            if self.scratch.len() < threads {
                self.scratch.resize_with(threads, Mutex::default);
            }
            for scratch in &mut self.scratch[..threads] {
                grow(
                    scratch.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()),
                    scratch_len(longest),
                );
            }
        }
        if pass.half == Half::Upper {
            grow(&mut self.features, sequences * hidden);
        }
        grow(&mut self.firsts, sequences * hidden);
        self.peak = self.peak.max(self.bytes());
    }

    /// Room for the backward pass of the last forward pass, or an error unless that is the one described.
    pub(super) fn prepare_backward(
        &mut self,
        half: Half,
        shape: &EncoderShape,
        threshold: usize,
        starts: &[usize],
    ) -> Result<Pass> {
        let same_starts = starts.len() == self.starts.len()
            && starts.iter().zip(&self.starts).all(|(start, own)| start.checked_sub(starts[0]) == Some(*own));
        let pass = match self.pass {
            Some(pass)
                if pass.half == half
                    && pass.shape == *shape
                    && pass.threshold == threshold
                    && same_starts =>
            {
                pass
            }
            _ => {
                return mistake(
                    "the room holds no forward pass of this half on these sequences: call forward first"
                        .to_owned(),
                );
            }
        };
        if pass.keep == Keep::Nothing {
            return mistake("the forward pass kept nothing: call it with Keep::ForBackward".to_owned());
        }
        let (tokens, hidden) = (pass.tokens, shape.hidden);
        let blocks = tokens.div_ceil(BLOCK);
        grow(&mut self.slopes, tokens * hidden);
        grow(&mut self.first_slopes, (starts.len() - 1) * hidden);
        grow(&mut self.partial, blocks * shape.intermediate.max(3 * hidden));
        if pass.dropout.is_some() {
            grow(&mut self.branch, tokens * hidden);
        }
        if half == Half::Upper {
            grow(&mut self.feature_slopes, (starts.len() - 1) * hidden);
        }
        self.peak = self.peak.max(self.bytes());
        Ok(pass)
    }
}

impl<E> Kept<E> {
    fn buffers(&self) -> [&Vec<E>; 8] {
        [
            &self.joint,
            &self.log_sums,
            &self.context,
            &self.attention_norm,
            &self.attention_inverse,
            &self.up,
            &self.norm,
            &self.inverse,
        ]
    }
}

/// At least so many numbers, none of which means anything. The old ones are given back first.
fn grow<E: Element>(buffer: &mut Vec<E>, len: usize) {
    if buffer.len() < len {
        *buffer = Vec::new();
        *buffer = vec![E::ZERO; len];
    }
}
