//! From the states of a sequence to its features, and back.

use super::places::{Pooler, PoolerMut};
use super::products::{Linear, Start, affine, pull_back, weight_gradient};
use super::rows::add_rows;
use super::{EncoderShape, Pooling};
use crate::element::Element;

/// Features [sequences, hidden]; `firsts` gets the first states for the pooler. `starts` begin with 0.
pub(super) fn forward<E: Element>(
    shape: &EncoderShape,
    parameters: &[E],
    states: &[E],
    starts: &[usize],
    firsts: &mut [E],
    features: &mut [E],
) {
    let hidden = shape.hidden;
    match shape.pooling {
        Pooling::First => first_rows(hidden, states, starts, features),
        Pooling::Mean => {
            for (ends, feature) in starts.windows(2).zip(features.chunks_exact_mut(hidden)) {
                feature.fill(E::ZERO);
                add_rows(&states[ends[0] * hidden..ends[1] * hidden], feature);
                let part = E::ONE / E::from_f64((ends[1] - ends[0]) as f64);
                feature.iter_mut().for_each(|value| *value *= part);
            }
        }
        Pooling::Pooler => {
            let Pooler { weight, bias } = Pooler::new(shape, parameters);
            first_rows(hidden, states, starts, firsts);
            affine(firsts, hidden, &[Linear { weight, bias }], features);
            features.iter_mut().for_each(|value| *value = value.tanh());
        }
    }
}

fn first_rows<E: Element>(hidden: usize, states: &[E], starts: &[usize], out: &mut [E]) {
    for (&start, out) in starts.iter().zip(out.chunks_exact_mut(hidden)) {
        out.copy_from_slice(&states[start * hidden..][..hidden]);
    }
}

/// What the way back through the pooling needs besides slopes.
pub(super) struct Pooled<'a, E> {
    pub(super) starts: &'a [usize],
    pub(super) firsts: &'a [E],
    pub(super) features: &'a [E],
    /// Room for slopes at the features.
    pub(super) room: &'a mut [E],
}

/// Slopes at the states from those at the features, and the gradient of the pooler.
pub(super) fn backward<E: Element>(
    shape: &EncoderShape,
    parameters: &[E],
    pooled: Pooled<'_, E>,
    feature_slopes: &[E],
    slopes: &mut [E],
    gradient: &mut [E],
) {
    let hidden = shape.hidden;
    let Pooled { starts, firsts, features, room } = pooled;
    slopes.fill(E::ZERO);
    match shape.pooling {
        Pooling::First => {
            for (&start, feature) in starts.iter().zip(feature_slopes.chunks_exact(hidden)) {
                slopes[start * hidden..][..hidden].copy_from_slice(feature);
            }
        }
        Pooling::Mean => {
            for (ends, feature) in starts.windows(2).zip(feature_slopes.chunks_exact(hidden)) {
                let part = E::ONE / E::from_f64((ends[1] - ends[0]) as f64);
                for row in slopes[ends[0] * hidden..ends[1] * hidden].chunks_exact_mut(hidden) {
                    for (slope, &feature) in row.iter_mut().zip(feature) {
                        *slope = feature * part;
                    }
                }
            }
        }
        Pooling::Pooler => {
            let sequences = starts.len() - 1;
            for ((room, &slope), &feature) in room.iter_mut().zip(feature_slopes).zip(features) {
                *room = slope * (E::ONE - feature * feature);
            }
            let PoolerMut { weight, bias } = PoolerMut::new(shape, gradient);
            weight_gradient(sequences, (room, hidden), (firsts, hidden), weight);
            bias.fill(E::ZERO);
            add_rows(room, bias);
            let Pooler { weight, .. } = Pooler::new(shape, parameters);
            // through the first rows of the slopes' own buffer there would be no room for all of them
            for (sequence, slope) in room.chunks_exact(hidden).enumerate() {
                let out = &mut slopes[starts[sequence] * hidden..][..hidden];
                pull_back(slope, &[weight], hidden, out, Start::Zero);
            }
        }
    }
}
