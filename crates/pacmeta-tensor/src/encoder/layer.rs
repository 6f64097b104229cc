//! One layer, forwards and backwards.

use std::sync::Mutex;

use rayon::prelude::*;

use super::EncoderShape;
use super::attention::{Attention, Queries};
use super::dropout::{Dropout, Site};
use super::places::{Layer, LayerMut};
use super::products::{Linear, Start, affine, pull_back, weight_gradient};
use super::room::Kept;
use super::rows::{
    BLOCK, Norm, activate, activate_backwards, activate_in_place, add_rows, block_sums, residual_norm,
    residual_norm_backwards, total,
};
use crate::element::Element;

/// What a layer's passes need besides numbers.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a, E> {
    pub(super) shape: &'a EncoderShape,
    /// The layer's place in the encoder.
    pub(super) layer: usize,
    pub(super) parameters: Layer<'a, E>,
    /// Where sequences start and the last one ends, from 0.
    pub(super) starts: &'a [usize],
    pub(super) dropout: Option<Dropout>,
    pub(super) scratch: &'a [Mutex<Vec<E>>],
}

/// Room for a layer of which nothing is kept.
pub(super) struct Lean<'a, E> {
    pub(super) wide: &'a mut [E],
    pub(super) norm: &'a mut [E],
    pub(super) inverse: &'a mut [E],
    pub(super) log_sums: &'a mut [E],
}

/// Where the activated numbers go.
pub(super) enum Activated<'a, E> {
    InPlace,
    Into(&'a mut [E]),
}

impl<E: Element> Setting<'_, E> {
    pub(super) fn tokens(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    pub(super) fn attention(&self, queries: Queries) -> Attention<'_, E> {
        let mask = Dropout::at(self.dropout, Site::Probabilities(self.layer));
        Attention { shape: self.shape, starts: self.starts, queries, mask, scratch: self.scratch }
    }

    fn attention_norm(&self) -> Norm<'_, E> {
        let Layer { attention_norm_weight, attention_norm_bias, .. } = self.parameters;
        Norm::new(attention_norm_weight, attention_norm_bias, self.shape.epsilon)
    }

    fn norm(&self) -> Norm<'_, E> {
        Norm::new(self.parameters.norm_weight, self.parameters.norm_bias, self.shape.epsilon)
    }

    /// The states behind the layer, in place; `kept` gets what the way back needs.
    pub(super) fn forward(&self, states: &mut [E], kept: &mut Kept<E>, wide: &mut [E]) {
        let (tokens, hidden, intermediate) = (self.tokens(), self.shape.hidden, self.shape.intermediate);
        self.attention_half(
            states,
            &mut kept.joint[..tokens * 3 * hidden],
            &mut kept.context[..tokens * hidden],
            &mut kept.log_sums[..tokens * self.shape.heads],
            (&mut kept.attention_norm[..tokens * hidden], &mut kept.attention_inverse[..tokens]),
        );
        self.feed_half(
            states,
            &mut kept.up[..tokens * intermediate],
            Activated::Into(&mut wide[..tokens * intermediate]),
            (&mut kept.norm[..tokens * hidden], &mut kept.inverse[..tokens]),
        );
    }

    /// The same, with nothing kept.
    pub(super) fn forward_lean(&self, states: &mut [E], room: Lean<'_, E>) {
        let (tokens, hidden) = (self.tokens(), self.shape.hidden);
        let (joint, rest) = room.wide.split_at_mut(tokens * 3 * hidden);
        self.attention_half(
            states,
            joint,
            &mut rest[..tokens * hidden],
            room.log_sums,
            (&mut *room.norm, &mut *room.inverse),
        );
        let up = &mut room.wide[..tokens * self.shape.intermediate];
        self.feed_half(states, up, Activated::InPlace, (room.norm, room.inverse));
    }

    fn attention_half(
        &self,
        states: &mut [E],
        joint: &mut [E],
        context: &mut [E],
        log_sums: &mut [E],
        (norm, inverse): (&mut [E], &mut [E]),
    ) {
        let Layer { query_weight, query_bias, key_weight, key_bias, value_weight, value_bias, .. } =
            self.parameters;
        let maps = [
            Linear { weight: query_weight, bias: query_bias },
            Linear { weight: key_weight, bias: key_bias },
            Linear { weight: value_weight, bias: value_bias },
        ];
        let hidden = self.shape.hidden;
        affine(states, hidden, &maps, joint);
        self.attention(Queries::All).forward(joint, context, log_sums);
        self.attended(states, context, (norm, inverse));
    }

    /// The states between the halves, in place, from what attention mixed.
    pub(super) fn attended(&self, states: &mut [E], context: &[E], (norm, inverse): (&mut [E], &mut [E])) {
        let output = Linear { weight: self.parameters.output_weight, bias: self.parameters.output_bias };
        affine(context, self.shape.hidden, &[output], norm);
        let mask = Dropout::at(self.dropout, Site::Attention(self.layer));
        residual_norm(norm, states, inverse, self.attention_norm(), mask);
    }

    pub(super) fn feed_half(
        &self,
        states: &mut [E],
        up: &mut [E],
        activated: Activated<'_, E>,
        (norm, inverse): (&mut [E], &mut [E]),
    ) {
        let Layer { up_weight, up_bias, down_weight, down_bias, .. } = self.parameters;
        let activation = self.shape.activation;
        let block = BLOCK * self.shape.intermediate;
        affine(states, self.shape.hidden, &[Linear { weight: up_weight, bias: up_bias }], up);
        let activated: &[E] = match activated {
            Activated::InPlace => {
                up.par_chunks_mut(block).for_each(|up| activate_in_place(up, activation));
                up
            }
            Activated::Into(out) => {
                let blocks = up.par_chunks(block).zip(out.par_chunks_mut(block));
                blocks.for_each(|(up, out)| activate(up, out, activation));
                out
            }
        };
        affine(activated, self.shape.intermediate, &[Linear { weight: down_weight, bias: down_bias }], norm);
        let mask = Dropout::at(self.dropout, Site::Feed(self.layer));
        residual_norm(norm, states, inverse, self.norm(), mask);
    }

    /// Slopes at the layer's output become those at its input, in place; `input` writes the layer's input.
    pub(super) fn backward(
        &self,
        slopes: &mut [E],
        kept: &Kept<E>,
        input: impl FnOnce(&mut [E]),
        room: &mut BackwardRoom<'_, E>,
        gradient: &mut LayerMut<'_, E>,
    ) {
        self.feed_backward(slopes, kept, room, gradient);
        self.attention_backward(slopes, kept, input, room, gradient);
    }

    /// Slopes at the states behind the feed-forward part become those before it, in place.
    pub(super) fn feed_backward(
        &self,
        slopes: &mut [E],
        kept: &Kept<E>,
        room: &mut BackwardRoom<'_, E>,
        gradient: &mut LayerMut<'_, E>,
    ) {
        let (hidden, intermediate) = (self.shape.hidden, self.shape.intermediate);
        let tokens = slopes.len() / hidden;
        let blocks = tokens.div_ceil(BLOCK);
        let activation = self.shape.activation;
        let mask = Dropout::at(self.dropout, Site::Feed(self.layer));
        let normalised = (&kept.norm[..tokens * hidden], &kept.inverse[..tokens]);
        let partial = &mut room.partial[..blocks * 3 * hidden];
        residual_norm_backwards(slopes, normalised, self.parameters.norm_weight, mask, room.branch, partial);
        total(partial, &mut [&mut *gradient.norm_weight, &mut *gradient.norm_bias, &mut *gradient.down_bias]);
        let branch: &[E] = if mask.is_some() { room.branch } else { slopes };

        let wide = &mut room.wide[..tokens * intermediate];
        let up = &kept.up[..tokens * intermediate];
        let block = BLOCK * intermediate;
        wide.par_chunks_mut(block)
            .zip(up.par_chunks(block))
            .for_each(|(out, up)| activate(up, out, activation));
        weight_gradient(tokens, (branch, hidden), (wide, intermediate), gradient.down_weight);
        pull_back(branch, &[self.parameters.down_weight], intermediate, wide, Start::Zero);
        let partial = &mut room.partial[..blocks * intermediate];
        let parts =
            wide.par_chunks_mut(block).zip(up.par_chunks(block)).zip(partial.par_chunks_mut(intermediate));
        parts.for_each(|((slopes, up), partial)| {
            activate_backwards(slopes, up, activation);
            partial.fill(E::ZERO);
            add_rows(slopes, partial);
        });
        total(partial, &mut [&mut *gradient.up_bias]);
        // the states between the halves
        let between = &mut room.input[..tokens * hidden];
        scaled(&kept.attention_norm[..tokens * hidden], between, self.attention_norm());
        weight_gradient(tokens, (wide, intermediate), (between, hidden), gradient.up_weight);
        pull_back(wide, &[self.parameters.up_weight], hidden, slopes, Start::Sum);
    }

    fn attention_backward(
        &self,
        slopes: &mut [E],
        kept: &Kept<E>,
        input: impl FnOnce(&mut [E]),
        room: &mut BackwardRoom<'_, E>,
        gradient: &mut LayerMut<'_, E>,
    ) {
        let (tokens, hidden) = (self.tokens(), self.shape.hidden);
        let (context_slopes, rest) = room.wide.split_at_mut(tokens * hidden);
        let joint_slopes = &mut rest[..tokens * 3 * hidden];
        self.attended_backward(slopes, kept, (room.branch, room.partial), context_slopes, gradient);
        let log_sums = &kept.log_sums[..tokens * self.shape.heads];
        let joint = &kept.joint[..tokens * 3 * hidden];
        self.attention(Queries::All).backward(joint, log_sums, context_slopes, joint_slopes);
        let partial = &mut room.partial[..tokens.div_ceil(BLOCK) * 3 * hidden];
        block_sums(joint_slopes, 3 * hidden, partial);
        total(partial, &mut [&mut *gradient.query_bias, &mut *gradient.key_bias, &mut *gradient.value_bias]);
        input(room.input);
        let weights = [&mut *gradient.query_weight, &mut *gradient.key_weight, &mut *gradient.value_weight];
        for (place, weight) in weights.into_iter().enumerate() {
            weight_gradient(
                tokens,
                (&joint_slopes[place * hidden..], 3 * hidden),
                (room.input, hidden),
                weight,
            );
        }
        let Layer { query_weight, key_weight, value_weight, .. } = self.parameters;
        pull_back(joint_slopes, &[query_weight, key_weight, value_weight], hidden, slopes, Start::Sum);
    }

    /// Back through [`Setting::attended`]: slopes at its result become those at the states, in place, and those at what attention mixed.
    pub(super) fn attended_backward(
        &self,
        slopes: &mut [E],
        kept: &Kept<E>,
        (branch, partial): (&mut [E], &mut [E]),
        context_slopes: &mut [E],
        gradient: &mut LayerMut<'_, E>,
    ) {
        let hidden = self.shape.hidden;
        let rows = slopes.len() / hidden;
        let mask = Dropout::at(self.dropout, Site::Attention(self.layer));
        let normalised = (&kept.attention_norm[..rows * hidden], &kept.attention_inverse[..rows]);
        let partial = &mut partial[..rows.div_ceil(BLOCK) * 3 * hidden];
        let weight = self.parameters.attention_norm_weight;
        residual_norm_backwards(slopes, normalised, weight, mask, branch, partial);
        total(
            partial,
            &mut [
                &mut *gradient.attention_norm_weight,
                &mut *gradient.attention_norm_bias,
                &mut *gradient.output_bias,
            ],
        );
        let branch: &[E] = if mask.is_some() { branch } else { slopes };
        let context = &kept.context[..rows * hidden];
        weight_gradient(rows, (branch, hidden), (context, hidden), gradient.output_weight);
        pull_back(branch, &[self.parameters.output_weight], hidden, context_slopes, Start::Zero);
    }
}

/// Room for the way back through a layer.
pub(super) struct BackwardRoom<'a, E> {
    pub(super) wide: &'a mut [E],
    pub(super) branch: &'a mut [E],
    pub(super) partial: &'a mut [E],
    /// For the states that a product had as its input.
    pub(super) input: &'a mut [E],
}

/// A norm's output from what it normalised.
pub(super) fn scaled<E: Element>(normalised: &[E], out: &mut [E], norm: Norm<'_, E>) {
    let block = BLOCK * norm.weight.len();
    let blocks = normalised.par_chunks(block).zip(out.par_chunks_mut(block));
    blocks.for_each(|(normalised, out)| super::rows::scale_and_shift(normalised, out, norm));
}
