//! Products and softmax inside the sequences and heads of packed states: what attention needs of the tape.
//!
//! States are row-major [tokens, heads * size]; sequence s has rows starts[s]..starts[s + 1], head h the columns from h * size on. Scores have
//! a square matrix for each sequence and head, behind each other (sequence, head, row, column), and are one vector.

use crate::array::Array;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::matmul::{self, Orientation};
use crate::shape::Shape;

/// Where sequences start, from 0, the end of the last, and the number of heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    starts: Vec<usize>,
    heads: usize,
}

impl Blocks {
    /// Sequences that start at these rows, the last entry being the end of the last one.
    ///
    /// # Errors
    /// When there is no sequence, starts do not grow, there is no head or the scores do not fit into memory.
    pub fn new(starts: &[usize], heads: usize) -> Result<Self> {
        let mistake = |reason: &str| {
            Err(TensorError::Fused { operation: "blocks".to_owned(), reason: reason.to_owned() })
        };
        if starts.len() < 2 || starts.windows(2).any(|ends| ends[0] >= ends[1]) {
            return mistake("expected at least one sequence, and a token in each");
        }
        if heads == 0 {
            return mistake("expected at least one head");
        }
        let starts: Vec<usize> = starts.iter().map(|start| start - starts[0]).collect();
        let mut entries = 0_usize;
        for ends in starts.windows(2) {
            let length = ends[1] - ends[0];
            entries = entries.saturating_add(length.saturating_mul(length).saturating_mul(heads));
        }
        Shape::new(&[entries])?;
        Ok(Blocks { starts, heads })
    }

    /// Rows of the states.
    pub fn tokens(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Numbers of the scores.
    pub fn entries(&self) -> usize {
        self.starts.windows(2).map(|ends| (ends[1] - ends[0]).pow(2) * self.heads).sum()
    }

    /// Rows of the scores of all sequences and heads.
    pub fn rows(&self) -> usize {
        self.tokens() * self.heads
    }

    /// Calls with the first row and the length of each sequence, its head and where the scores of both start.
    fn for_each(&self, mut call: impl FnMut(usize, usize, usize, usize)) {
        let mut place = 0;
        for ends in self.starts.windows(2) {
            let length = ends[1] - ends[0];
            for head in 0..self.heads {
                call(ends[0], length, head, place);
                place += length * length;
            }
        }
    }

    /// The length of every row of the scores.
    fn row_lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.windows(2).flat_map(|ends| {
            let length = ends[1] - ends[0];
            std::iter::repeat_n(length, length * self.heads)
        })
    }

    pub(crate) fn check_states(&self, operation: &'static str, shape: &Shape) -> Result<()> {
        match shape[..] {
            [tokens, width] if tokens == self.tokens() && width > 0 && width.is_multiple_of(self.heads) => {
                Ok(())
            }
            _ => Err(TensorError::UnexpectedShape {
                operation,
                shape: *shape,
                expected: "a row for each token and a multiple of the heads as columns",
            }),
        }
    }

    pub(crate) fn check_scores(&self, operation: &'static str, shape: &Shape) -> Result<()> {
        self.check_vector(
            operation,
            shape,
            self.entries(),
            "a score for each pair of tokens of a sequence and each head",
        )
    }

    pub(crate) fn check_rows(&self, operation: &'static str, shape: &Shape) -> Result<()> {
        self.check_vector(operation, shape, self.rows(), "a number for each token and head")
    }

    fn check_vector(
        &self,
        operation: &'static str,
        shape: &Shape,
        len: usize,
        expected: &'static str,
    ) -> Result<()> {
        if shape[..] == [len] {
            Ok(())
        } else {
            Err(TensorError::UnexpectedShape { operation, shape: *shape, expected })
        }
    }
}

/// factor * left right' in each block: scores.
pub(crate) fn scores<E: Element>(blocks: &Blocks, left: &Array<E>, right: &Array<E>, factor: E) -> Vec<E> {
    let width = left.shape()[1];
    let size = width / blocks.heads;
    let mut out = vec![E::ZERO; blocks.entries()];
    blocks.for_each(|first, length, head, place| {
        let from = first * width + head * size;
        matmul::strided(
            [length, size, length],
            (&left.values()[from..], [width, 1]),
            (&right.values()[from..], [1, width]),
            (&mut out[place..], length),
            factor,
        );
    });
    out
}

/// factor * weights values in each block, with weights as stored or transposed: states.
pub(crate) fn mix<E: Element>(
    blocks: &Blocks,
    (weights, orientation): (&Array<E>, Orientation),
    values: &Array<E>,
    factor: E,
) -> Vec<E> {
    let width = values.shape()[1];
    let size = width / blocks.heads;
    let mut out = vec![E::ZERO; values.values().len()];
    blocks.for_each(|first, length, head, place| {
        let from = first * width + head * size;
        let strides = match orientation {
            Orientation::Plain => [length, 1],
            Orientation::Transposed => [1, length],
        };
        matmul::strided(
            [length, length, size],
            (&weights.values()[place..], strides),
            (&values.values()[from..], [width, 1]),
            (&mut out[from..], width),
            factor,
        );
    });
    out
}

/// The softmax of every row of scores.
pub(crate) fn softmax<E: Element>(blocks: &Blocks, scores: &[E]) -> Vec<E> {
    let mut out = scores.to_vec();
    let mut rest = &mut out[..];
    for length in blocks.row_lengths() {
        let (row, tail) = std::mem::take(&mut rest).split_at_mut(length);
        let largest = row.iter().fold(row[0], |largest, &value| value.larger(largest));
        let mut sum = E::ZERO;
        for value in row.iter_mut() {
            *value = (*value - largest).quick_exp();
            sum += *value;
        }
        let inverse = E::ONE / sum;
        row.iter_mut().for_each(|value| *value *= inverse);
        rest = tail;
    }
    out
}

/// p (g - sum(p g)) along every row of scores.
pub(crate) fn softmax_pull<E: Element>(blocks: &Blocks, probabilities: &[E], slopes: &[E]) -> Vec<E> {
    let mut out = Vec::with_capacity(slopes.len());
    let mut place = 0;
    for length in blocks.row_lengths() {
        let (row, slopes) = (&probabilities[place..place + length], &slopes[place..place + length]);
        let along: E = row.iter().zip(slopes).map(|(&p, &g)| p * g).sum();
        out.extend(row.iter().zip(slopes).map(|(&p, &g)| p * (g - along)));
        place += length;
    }
    out
}

/// The sum of every row of scores.
pub(crate) fn sum_rows<E: Element>(blocks: &Blocks, scores: &[E]) -> Vec<E> {
    let mut place = 0;
    let sum = |length: usize| {
        place += length;
        scores[place - length..place].iter().copied().sum()
    };
    blocks.row_lengths().map(sum).collect()
}

/// A number for every row of scores, repeated along it.
pub(crate) fn spread_rows<E: Element>(blocks: &Blocks, rows: &[E]) -> Vec<E> {
    let mut out = Vec::with_capacity(blocks.entries());
    for (length, &value) in blocks.row_lengths().zip(rows) {
        out.extend(std::iter::repeat_n(value, length));
    }
    out
}
