//! Transformer encoders of the BERT family, on packed sequences.
//!
//! Sequences stand behind each other without padding: token i of sequence s is row `starts[s] + i` of a matrix with `hidden`
//! columns. With LN(z) = gamma (z - mean) / sqrt(variance + epsilon) + beta for each row, the embeddings are
//!
//! ```text
//! x = LN(word[id] + position[i] + segment[kind])
//! ```
//!
//! and a layer computes, with softmax and products inside each sequence and head, and d numbers in a head,
//!
//! ```text
//! q, k, v = x Wq' + bq, x Wk' + bk, x Wv' + bv
//! a  = LN(x + softmax(q k' / sqrt(d)) v Wo' + bo)
//! x' = LN(a + f(a Wup' + bup) Wdown' + bdown).
//! ```
//!
//! [`Pooling`] makes the features of a sequence from its states. Where it looks at first states only and there is no dropout, the fused passes
//! compute no others in the last layer ([`composite`] does). Dropout, where it is asked for, falls on embeddings, probabilities of
//! attention and both sums' new parts, as in BERT; every decision is a function of a key, the layer and the place.
//!
//! The threshold v cuts the encoder in two. Embeddings and layers below v ([`lower_forward`], [`lower_backward`]) are shared between tasks; layers
//! from v on and the pooler ([`upper_forward`], [`upper_backward`]) adapt to a task. In the flat buffer [0, boundary(v)) belongs to the first.
//!
//! The backward passes are written by hand and give first derivatives. They need of each layer q, k, v, the scores' log-sum-exp, the mixed values,
//! what both norms normalised and the numbers before f; everything else is computed again. [`composite`] is the same in operations
//! of the tape, exact to any order. Results do not depend on the number of threads.

mod attention;
pub mod composite;
mod dropout;
mod embeddings;
mod firsts;
mod layer;
mod passes;
mod places;
mod pooling;
mod products;
mod room;
mod rows;
mod shape;

use crate::error::{Result, TensorError};
pub use dropout::Dropout;
pub use passes::{lower_backward, lower_forward, upper_backward, upper_forward};
pub use room::EncoderRoom;
pub use shape::{Activation, EncoderShape, Pooling};

/// Tokens of packed sequences.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// The tokens' places in the vocabulary, from `starts[0]` on.
    pub ids: &'a [u32],
    /// The tokens' segments, as many; not looked at if the encoder has none.
    pub segments: &'a [u8],
    /// Where each sequence starts, and where the last one ends. Only differences count.
    pub starts: &'a [usize],
}

/// States of packed sequences.
#[derive(Clone, Copy, Debug)]
pub struct States<'a, E> {
    /// Row-major [tokens, hidden], from `starts[0]` on.
    pub values: &'a [E],
    /// Where each sequence starts, and where the last one ends. Only differences count.
    pub starts: &'a [usize],
}

/// What a forward pass leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The result only: for prediction.
    Nothing,
    /// What the backward pass needs.
    ForBackward,
}

fn mistake<T>(reason: String) -> Result<T> {
    Err(TensorError::Fused { operation: "encoder".to_owned(), reason })
}

/// An error unless a buffer has the length that its use asks for.
fn check_len(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(TensorError::LengthMismatch { what, expected, found }) }
}

/// The number of tokens; an error unless there is a sequence, and every one has a token and at most `positions` of them.
fn check_starts(shape: &EncoderShape, starts: &[usize]) -> Result<usize> {
    let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else {
        return mistake("starts is empty, expected one more entry than sequences".to_owned());
    };
    if starts.len() < 2 {
        return mistake("there is no sequence: starts needs one more entry than sequences".to_owned());
    }
    for (sequence, ends) in starts.windows(2).enumerate() {
        if ends[1] <= ends[0] {
            return mistake(format!("sequence {sequence} has no tokens"));
        }
        if ends[1] - ends[0] > shape.positions {
            return mistake(format!(
                "sequence {sequence} has {} tokens, but the encoder has {} positions: cut it",
                ends[1] - ends[0],
                shape.positions
            ));
        }
    }
    Ok(last - first)
}

/// The number of tokens; an error unless they fit the encoder.
fn check_tokens(shape: &EncoderShape, tokens: Tokens<'_>) -> Result<usize> {
    let count = check_starts(shape, tokens.starts)?;
    check_len("token ids", count, tokens.ids.len())?;
    if let Some(id) = tokens.ids.iter().find(|&&id| id as usize >= shape.vocabulary) {
        return mistake(format!("token {id} is beyond the vocabulary of {}", shape.vocabulary));
    }
    if shape.segments > 0 {
        check_len("token segments", count, tokens.segments.len())?;
        if let Some(segment) = tokens.segments.iter().find(|&&segment| segment as usize >= shape.segments) {
            return mistake(format!("segment {segment} is beyond the {} segments", shape.segments));
        }
    }
    Ok(count)
}
