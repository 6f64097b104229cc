//! The last layer where the pooling looks at the first state of each sequence only: keys and values of all tokens, and everything else, five
//! sixths of the arithmetic, for first tokens alone. States of the others behind it are 0.

use super::attention::Queries;
use super::layer::{Activated, BackwardRoom, Lean, Setting};
use super::places::{Layer, LayerMut};
use super::products::{Linear, Start, affine, affine_into, pull_back, pull_back_from, weight_gradient};
use super::room::Kept;
use super::rows::{BLOCK, add, block_sums, total};
use super::{Dropout, EncoderShape, Pooling};
use crate::element::Element;

/// Whether a layer is the last one and first states are all that counts behind it. With dropout, whose decisions belong to rows, all states
/// are computed.
pub(super) fn ends_in_firsts(shape: &EncoderShape, layer: usize, dropout: Option<Dropout>) -> bool {
    layer + 1 == shape.layers
        && shape.pooling != Pooling::Mean
        && dropout.is_none_or(|dropout| dropout.rate == 0.0)
}

/// What is written by the way forward.
struct Written<'a, E> {
    joint: &'a mut [E],
    context: &'a mut [E],
    log_sums: &'a mut [E],
    attention_norm: (&'a mut [E], &'a mut [E]),
}

impl<E: Element> Setting<'_, E> {
    pub(super) fn ends_in_firsts(&self) -> bool {
        ends_in_firsts(self.shape, self.layer, self.dropout)
    }

    fn sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// [`Setting::forward`] for such a layer; `firsts` is room for a state of each sequence.
    pub(super) fn forward_firsts(
        &self,
        states: &mut [E],
        firsts: &mut [E],
        kept: &mut Kept<E>,
        wide: &mut [E],
    ) {
        let (tokens, rows, hidden) = (self.tokens(), self.sequences(), self.shape.hidden);
        let written = Written {
            joint: &mut kept.joint[..tokens * 3 * hidden],
            context: &mut kept.context[..rows * hidden],
            log_sums: &mut kept.log_sums[..rows * self.shape.heads],
            attention_norm: (&mut kept.attention_norm[..rows * hidden], &mut kept.attention_inverse[..rows]),
        };
        self.attend_firsts(states, firsts, written);
        let intermediate = self.shape.intermediate;
        self.feed_half(
            firsts,
            &mut kept.up[..rows * intermediate],
            Activated::Into(&mut wide[..rows * intermediate]),
            (&mut kept.norm[..rows * hidden], &mut kept.inverse[..rows]),
        );
        self.spread(firsts, states);
    }

    /// The same, with nothing kept.
    pub(super) fn forward_lean_firsts(&self, states: &mut [E], firsts: &mut [E], room: Lean<'_, E>) {
        let (tokens, rows, hidden) = (self.tokens(), self.sequences(), self.shape.hidden);
        let (joint, rest) = room.wide.split_at_mut(tokens * 3 * hidden);
        let written = Written {
            joint,
            context: &mut rest[..rows * hidden],
            log_sums: &mut room.log_sums[..rows * self.shape.heads],
            attention_norm: (&mut room.norm[..rows * hidden], &mut room.inverse[..rows]),
        };
        self.attend_firsts(states, firsts, written);
        let up = &mut room.wide[..rows * self.shape.intermediate];
        let norm = (&mut room.norm[..rows * hidden], &mut room.inverse[..rows]);
        self.feed_half(firsts, up, Activated::InPlace, norm);
        self.spread(firsts, states);
    }

    fn attend_firsts(&self, states: &[E], firsts: &mut [E], written: Written<'_, E>) {
        let Layer { query_weight, query_bias, key_weight, key_bias, value_weight, value_bias, .. } =
            self.parameters;
        let hidden = self.shape.hidden;
        let Written { joint, context, log_sums, attention_norm } = written;
        let maps = [
            Linear { weight: key_weight, bias: key_bias },
            Linear { weight: value_weight, bias: value_bias },
        ];
        affine_into((states, hidden), &maps, (&mut joint[hidden..], 3 * hidden));
        self.gather((states, hidden), firsts);
        // queries of first tokens, by way of the room that will hold what they gather
        affine(firsts, hidden, &[Linear { weight: query_weight, bias: query_bias }], context);
        for (&start, query) in self.starts.iter().zip(context.chunks_exact(hidden)) {
            joint[start * 3 * hidden..][..hidden].copy_from_slice(query);
        }
        self.attention(Queries::First).forward(joint, context, log_sums);
        self.attended(firsts, context, attention_norm);
    }

    /// The first rows of sequences: the first `hidden` numbers of rows that are `stride` apart.
    fn gather(&self, (rows, stride): (&[E], usize), out: &mut [E]) {
        let hidden = self.shape.hidden;
        for (&start, out) in self.starts.iter().zip(out.chunks_exact_mut(hidden)) {
            out.copy_from_slice(&rows[start * stride..][..hidden]);
        }
    }

    /// The reverse, with 0 in all other rows.
    fn spread(&self, firsts: &[E], out: &mut [E]) {
        let hidden = self.shape.hidden;
        out.fill(E::ZERO);
        for (&start, first) in self.starts.iter().zip(firsts.chunks_exact(hidden)) {
            out[start * hidden..][..hidden].copy_from_slice(first);
        }
    }

    /// [`Setting::backward`] for such a layer; slopes of other rows than first ones do not count.
    pub(super) fn backward_firsts(
        &self,
        slopes: &mut [E],
        firsts: &mut [E],
        kept: &Kept<E>,
        input: impl FnOnce(&mut [E]),
        room: &mut BackwardRoom<'_, E>,
        gradient: &mut LayerMut<'_, E>,
    ) {
        let (tokens, rows, hidden) = (self.tokens(), self.sequences(), self.shape.hidden);
        self.gather((slopes, hidden), firsts);
        self.feed_backward(firsts, kept, room, gradient);

        let (first_rows, rest) = room.wide.split_at_mut(rows * hidden);
        let joint_slopes = &mut rest[..tokens * 3 * hidden];
        self.attended_backward(firsts, kept, (room.branch, room.partial), first_rows, gradient);
        let log_sums = &kept.log_sums[..rows * self.shape.heads];
        let joint = &kept.joint[..tokens * 3 * hidden];
        self.attention(Queries::First).backward(joint, log_sums, first_rows, joint_slopes);
        let partial = &mut room.partial[..tokens.div_ceil(BLOCK) * 3 * hidden];
        block_sums(joint_slopes, 3 * hidden, partial);
        total(partial, &mut [&mut *gradient.query_bias, &mut *gradient.key_bias, &mut *gradient.value_bias]);

        input(room.input);
        let weights = [&mut *gradient.key_weight, &mut *gradient.value_weight];
        for (place, weight) in weights.into_iter().enumerate() {
            let own = (&joint_slopes[(place + 1) * hidden..], 3 * hidden);
            weight_gradient(tokens, own, (room.input, hidden), weight);
        }
        let Layer { query_weight, key_weight, value_weight, .. } = self.parameters;
        let own = (&joint_slopes[hidden..], 3 * hidden);
        pull_back_from(own, &[key_weight, value_weight], hidden, slopes, Start::Zero);
        // the queries' part, for first tokens; their slopes go where those of the attention were
        self.gather((joint_slopes, 3 * hidden), first_rows);
        pull_back(first_rows, &[query_weight], hidden, firsts, Start::Sum);
        for (&start, first) in self.starts.iter().zip(firsts.chunks_exact(hidden)) {
            add(&mut slopes[start * hidden..][..hidden], first);
        }
        self.gather((room.input, hidden), firsts);
        weight_gradient(rows, (first_rows, hidden), (firsts, hidden), gradient.query_weight);
    }
}
