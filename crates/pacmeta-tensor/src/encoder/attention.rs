//! Attention inside each sequence and head.
//!
//! With P = softmax(q k' / sqrt(d)) row by row, the result is P v. Of P only the log-sum-exp of every row is kept; the backward pass
//! computes it again. With slopes g at the result,
//!
//! ```text
//! dv = P' g,   dP = g v',   dS = P (dP - sum(P dP)),   dq = dS k / sqrt(d),   dk = dS' q / sqrt(d).
//! ```
//!
//! Dropout multiplies P by a mask, which enters dv and dP.

use std::sync::Mutex;

use pulp::{Arch, Simd, WithSimd};

use super::dropout::Mask;
use super::products::{Start, Threads, View, multiply};
use super::rows::{sum_of, vectorised};
use super::shape::EncoderShape;
use crate::element::Element;

/// Partial sums of a sum along a row.
const LANES: usize = 16;

/// The tokens that attend; all are attended to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Queries {
    /// All of them.
    All,
    /// The first one of each sequence. Results, slopes at them and log-sums then have one row a sequence.
    First,
}

/// What both directions of a layer's attention need.
#[derive(Clone, Copy)]
pub(super) struct Attention<'a, E> {
    pub(super) shape: &'a EncoderShape,
    /// Where sequences start and the last one ends, from 0.
    pub(super) starts: &'a [usize],
    pub(super) queries: Queries,
    pub(super) mask: Option<Mask>,
    /// Room for each thread, at least [`scratch_len`] numbers.
    pub(super) scratch: &'a [Mutex<Vec<E>>],
}

/// Numbers of room that a thread needs for sequences up to this length.
pub(super) fn scratch_len(longest: usize) -> usize {
    3 * longest * longest
}

impl<E: Element> Attention<'_, E> {
    /// context [queries, hidden] and the log-sum-exp of every row [queries, heads] from q, k, v side by side in `joint` [tokens, 3 hidden].
    pub(super) fn forward(&self, joint: &[E], context: &mut [E], log_sums: &mut [E]) {
        self.forward_range(0, self.starts.len() - 1, joint, context, log_sums);
    }

    /// Halves the sequences until one is left.
    fn forward_range(&self, first: usize, last: usize, joint: &[E], context: &mut [E], log_sums: &mut [E]) {
        if last - first == 1 {
            return self.with_scratch(|scratch| self.forward_one(first, joint, context, log_sums, scratch));
        }
        let middle = first.midpoint(last);
        let tokens = self.starts[middle] - self.starts[first];
        let queries = self.query_rows(first, middle);
        let (left, right) = joint.split_at(tokens * 3 * self.shape.hidden);
        let (left_context, right_context) = context.split_at_mut(queries * self.shape.hidden);
        let (left_sums, right_sums) = log_sums.split_at_mut(queries * self.shape.heads);
        rayon::join(
            || self.forward_range(first, middle, left, left_context, left_sums),
            || self.forward_range(middle, last, right, right_context, right_sums),
        );
    }

    /// Tokens that attend in some of the sequences.
    fn query_rows(&self, first: usize, last: usize) -> usize {
        match self.queries {
            Queries::All => self.starts[last] - self.starts[first],
            Queries::First => last - first,
        }
    }

    /// Tokens of a sequence, and how many of them attend.
    fn sizes(&self, sequence: usize) -> (usize, usize) {
        (self.starts[sequence + 1] - self.starts[sequence], self.query_rows(sequence, sequence + 1))
    }

    /// Runs on the room of this thread; nobody else waits for it, since nothing below asks for another thread.
    fn with_scratch(&self, run: impl FnOnce(&mut [E])) {
        let place = rayon::current_thread_index().unwrap_or(0) % self.scratch.len();
        // a thread that panicked leaves room that is overwritten anyway
        let mut scratch = self.scratch[place].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        run(&mut scratch);
    }

    fn forward_one(
        &self,
        sequence: usize,
        joint: &[E],
        context: &mut [E],
        log_sums: &mut [E],
        scratch: &mut [E],
    ) {
        let (hidden, heads, size) = (self.shape.hidden, self.shape.heads, self.shape.head_size());
        let (length, queries) = self.sizes(sequence);
        let scores = &mut scratch[..queries * length];
        for head in 0..heads {
            self.scores(joint, head, (queries, length), scores);
            softmax(scores, length, &mut log_sums[head..], heads);
            if let Some(mask) = self.mask {
                mask.row(sequence).row(head).apply(scores);
            }
            multiply(
                Threads::One,
                [queries, size, length],
                (&mut context[head * size..], hidden),
                View::rows(scores, length),
                View::rows(&joint[2 * hidden + head * size..], 3 * hidden),
                E::ONE,
                Start::Zero,
            );
        }
    }

    fn factor(&self) -> E {
        E::ONE / E::from_f64(self.shape.head_size() as f64).sqrt()
    }

    fn scores(&self, joint: &[E], head: usize, (queries, length): (usize, usize), scores: &mut [E]) {
        let (hidden, size) = (self.shape.hidden, self.shape.head_size());
        multiply(
            Threads::One,
            [queries, length, size],
            (scores, length),
            View::rows(&joint[head * size..], 3 * hidden),
            View::rows(&joint[hidden + head * size..], 3 * hidden).transposed(),
            self.factor(),
            Start::Zero,
        );
    }

    /// Slopes at q, k, v side by side from those at the context; those at q are 0 for tokens that do not attend.
    pub(super) fn backward(&self, joint: &[E], log_sums: &[E], slopes: &[E], joint_slopes: &mut [E]) {
        self.backward_range(0, self.starts.len() - 1, joint, log_sums, slopes, joint_slopes);
    }

    fn backward_range(
        &self,
        first: usize,
        last: usize,
        joint: &[E],
        log_sums: &[E],
        slopes: &[E],
        joint_slopes: &mut [E],
    ) {
        if last - first == 1 {
            return self.with_scratch(|scratch| {
                self.backward_one(first, joint, log_sums, slopes, joint_slopes, scratch);
            });
        }
        let middle = first.midpoint(last);
        let tokens = self.starts[middle] - self.starts[first];
        let hidden = self.shape.hidden;
        let (left, right) = joint.split_at(tokens * 3 * hidden);
        let queries = self.query_rows(first, middle);
        let (left_sums, right_sums) = log_sums.split_at(queries * self.shape.heads);
        let (left_slopes, right_slopes) = slopes.split_at(queries * hidden);
        let (left_out, right_out) = joint_slopes.split_at_mut(tokens * 3 * hidden);
        rayon::join(
            || self.backward_range(first, middle, left, left_sums, left_slopes, left_out),
            || self.backward_range(middle, last, right, right_sums, right_slopes, right_out),
        );
    }

    fn backward_one(
        &self,
        sequence: usize,
        joint: &[E],
        log_sums: &[E],
        slopes: &[E],
        joint_slopes: &mut [E],
        scratch: &mut [E],
    ) {
        let (hidden, heads, size) = (self.shape.hidden, self.shape.heads, self.shape.head_size());
        let (length, queries) = self.sizes(sequence);
        for row in joint_slopes.chunks_exact_mut(3 * hidden).skip(queries) {
            row[..hidden].fill(E::ZERO);
        }
        let square = queries * length;
        let (probabilities, rest) = scratch.split_at_mut(square);
        let (score_slopes, rest) = rest.split_at_mut(square);
        let factors = &mut rest[..square];
        let part = |values, kind: usize, head: usize| {
            let values: &[E] = values;
            View::rows(&values[kind * hidden + head * size..], 3 * hidden)
        };
        for head in 0..heads {
            self.scores(joint, head, (queries, length), probabilities);
            softmax_again(probabilities, length, &log_sums[head..], heads);
            let slopes = View::rows(&slopes[head * size..], hidden);
            multiply(
                Threads::One,
                [queries, length, size],
                (score_slopes, length),
                slopes,
                part(joint, 2, head).transposed(),
                E::ONE,
                Start::Zero,
            );
            let mixed: &[E] = match self.mask {
                None => probabilities,
                Some(mask) => {
                    factors.fill(E::ONE);
                    mask.row(sequence).row(head).apply(factors);
                    for ((factor, slope), &probability) in
                        factors.iter_mut().zip(score_slopes.iter_mut()).zip(probabilities.iter())
                    {
                        *slope *= *factor;
                        *factor *= probability;
                    }
                    factors
                }
            };
            multiply(
                Threads::One,
                [length, size, queries],
                (&mut joint_slopes[2 * hidden + head * size..], 3 * hidden),
                View::rows(mixed, length).transposed(),
                slopes,
                E::ONE,
                Start::Zero,
            );
            softmax_backwards(score_slopes, probabilities, length);
            multiply(
                Threads::One,
                [queries, size, length],
                (&mut joint_slopes[head * size..], 3 * hidden),
                View::rows(score_slopes, length),
                part(joint, 1, head),
                self.factor(),
                Start::Zero,
            );
            multiply(
                Threads::One,
                [length, size, queries],
                (&mut joint_slopes[hidden + head * size..], 3 * hidden),
                View::rows(score_slopes, length).transposed(),
                part(joint, 0, head),
                self.factor(),
                Start::Zero,
            );
        }
    }
}

vectorised! {
    /// The softmax of every row in place; its log-sum-exp goes to every `step`th place of `log_sums`.
    fn softmax(rows: &'a mut [E], length: usize, log_sums: &'a mut [E], step: usize) {
        for (row, log_sum) in rows.chunks_exact_mut(length).zip(log_sums.iter_mut().step_by(step)) {
            let mut largest = row[0];
            for &value in row.iter() {
                largest = value.larger(largest);
            }
            for value in row.iter_mut() {
                *value = (*value - largest).quick_exp();
            }
            let sum = sum_of!(row, row, |a, _b, sum| sum + a);
            let inverse = E::ONE / sum;
            for value in row.iter_mut() {
                *value *= inverse;
            }
            *log_sum = largest + sum.ln();
        }
    }
}

vectorised! {
    /// The softmax of every row in place, from its log-sum-exp.
    fn softmax_again(rows: &'a mut [E], length: usize, log_sums: &'a [E], step: usize) {
        for (row, &log_sum) in rows.chunks_exact_mut(length).zip(log_sums.iter().step_by(step)) {
            for value in row.iter_mut() {
                *value = (*value - log_sum).quick_exp();
            }
        }
    }
}

vectorised! {
    /// From slopes at the probabilities to those at the scores, in place.
    fn softmax_backwards(slopes: &'a mut [E], probabilities: &'a [E], length: usize) {
        for (slopes, row) in slopes.chunks_exact_mut(length).zip(probabilities.chunks_exact(length)) {
            let along = sum_of!(slopes, row, |a, b, sum| a.fused(b, sum));
            for (slope, &probability) in slopes.iter_mut().zip(row) {
                *slope = (*slope - along) * probability;
            }
        }
    }
}
