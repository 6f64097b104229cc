//! Embeddings of tokens, forwards and backwards.

use rayon::prelude::*;

use super::dropout::{Dropout, Site};
use super::places::{Embeddings, EmbeddingsMut};
use super::rows::{BLOCK, Norm, add, drop_rows, normalise, normalise_backwards, total};
use super::{EncoderShape, Tokens};
use crate::element::Element;

/// The norm behind the embeddings.
pub(super) fn norm<'a, E: Element>(shape: &EncoderShape, parameters: &Embeddings<'a, E>) -> Norm<'a, E> {
    Norm::new(parameters.norm_weight, parameters.norm_bias, shape.epsilon)
}

/// The place of a token in its sequence.
fn position(starts: &[usize], token: usize) -> usize {
    // starts grow and the first is 0, so that at least one is not above the token
    token - starts[starts.partition_point(|&start| start <= token) - 1]
}

/// States of the tokens, what their norm normalised and 1 / deviation; `starts` begin with 0.
pub(super) fn forward<E: Element>(
    shape: &EncoderShape,
    parameters: &Embeddings<'_, E>,
    (tokens, starts): (Tokens<'_>, &[usize]),
    dropout: Option<Dropout>,
    (normalised, inverse): (&mut [E], &mut [E]),
    states: &mut [E],
) {
    let hidden = shape.hidden;
    let mask = Dropout::at(dropout, Site::Embeddings);
    let row = |table, index: usize| {
        let table: &[E] = table;
        &table[index * hidden..][..hidden]
    };
    let blocks = normalised.par_chunks_mut(BLOCK * hidden).zip(states.par_chunks_mut(BLOCK * hidden));
    blocks.zip(inverse.par_chunks_mut(BLOCK)).enumerate().for_each(|(block, ((sums, states), inverse))| {
        for (place, sum) in sums.chunks_exact_mut(hidden).enumerate() {
            let token = block * BLOCK + place;
            sum.copy_from_slice(row(parameters.word, tokens.ids[token] as usize));
            add(sum, row(parameters.position, position(starts, token)));
            if shape.segments > 0 {
                add(sum, row(parameters.segment, tokens.segments[token] as usize));
            }
        }
        normalise(sums, states, inverse, norm(shape, parameters));
        drop_rows(states, hidden, block * BLOCK, mask);
    });
}

/// The gradient of the embeddings from slopes at the states, which are overwritten.
pub(super) fn backward<E: Element>(
    shape: &EncoderShape,
    parameters: &Embeddings<'_, E>,
    (tokens, starts): (Tokens<'_>, &[usize]),
    dropout: Option<Dropout>,
    (normalised, inverse): (&[E], &[E]),
    (slopes, partial): (&mut [E], &mut [E]),
    gradient: EmbeddingsMut<'_, E>,
) {
    let hidden = shape.hidden;
    let mask = Dropout::at(dropout, Site::Embeddings);
    let partial = &mut partial[..inverse.len().div_ceil(BLOCK) * 2 * hidden];
    slopes
        .par_chunks_mut(BLOCK * hidden)
        .zip(normalised.par_chunks(BLOCK * hidden))
        .zip(inverse.par_chunks(BLOCK))
        .zip(partial.par_chunks_mut(2 * hidden))
        .enumerate()
        .for_each(|(block, (((slopes, normalised), inverse), partial))| {
            partial.fill(E::ZERO);
            drop_rows(slopes, hidden, block * BLOCK, mask);
            normalise_backwards(slopes, normalised, inverse, parameters.norm_weight, partial);
        });
    total(partial, &mut [gradient.norm_weight, gradient.norm_bias]);
    let slopes = &*slopes;
    let EmbeddingsMut { word, position: positions, segment, .. } = gradient;
    rayon::join(
        || {
            // tables of vocabularies are large and mostly zero
            word.par_chunks_mut(1 << 16).for_each(|part| part.fill(E::ZERO));
            scatter(hidden, slopes, word, |token| tokens.ids[token] as usize);
        },
        || {
            positions.fill(E::ZERO);
            scatter(hidden, slopes, positions, |token| position(starts, token));
            segment.fill(E::ZERO);
            if shape.segments > 0 {
                scatter(hidden, slopes, segment, |token| tokens.segments[token] as usize);
            }
        },
    );
}

/// Adds every row of slopes to a row of the table, in order.
fn scatter<E: Element>(hidden: usize, slopes: &[E], table: &mut [E], index: impl Fn(usize) -> usize) {
    for (token, slopes) in slopes.chunks_exact(hidden).enumerate() {
        add(&mut table[index(token) * hidden..][..hidden], slopes);
    }
}
