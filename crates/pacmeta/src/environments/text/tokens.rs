//! Sequences of token numbers, packed behind each other: no padding is stored or computed.

use std::ops::Range;

use super::Tokens;
use super::tokeniser::Encoded;

/// Labelled sequences of tokens. Sequence i is `ids[starts[i]..starts[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSet {
    /// The token numbers of all sequences.
    pub ids: Vec<u32>,
    /// The segment of every token: 0 for the first sentence, 1 for the second.
    pub segments: Vec<u8>,
    /// Where every sequence starts, and the end of the last: one more number than there are sequences.
    pub starts: Vec<usize>,
    /// The label of every sequence.
    pub labels: Vec<usize>,
}

impl Default for TokenSet {
    fn default() -> Self {
        Self { ids: Vec::new(), segments: Vec::new(), starts: vec![0], labels: Vec::new() }
    }
}

impl TokenSet {
    /// A set without sequences.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The number of tokens of all sequences.
    pub fn token_count(&self) -> usize {
        self.ids.len()
    }

    /// Appends a sequence.
    pub fn push(&mut self, encoded: &Encoded, label: usize) {
        self.append(&encoded.ids, &encoded.segments, label);
    }

    /// The sequences of these indices, in their order; an index may occur twice.
    ///
    /// # Panics
    /// When there is no such sequence.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let tokens = indices.iter().map(|&index| self.starts[index + 1] - self.starts[index]).sum();
        let mut selected = Self {
            ids: Vec::with_capacity(tokens),
            segments: Vec::with_capacity(tokens),
            starts: Vec::with_capacity(indices.len() + 1),
            labels: Vec::with_capacity(indices.len()),
        };
        selected.starts.push(0);
        for &index in indices {
            let (ids, segments) = self.sequence(index);
            selected.append(ids, segments, self.labels[index]);
        }
        selected
    }

    /// The token numbers and segments of a sequence.
    ///
    /// # Panics
    /// When there is no such sequence.
    pub fn sequence(&self, index: usize) -> (&[u32], &[u8]) {
        let range = self.starts[index]..self.starts[index + 1];
        (&self.ids[range.clone()], &self.segments[range])
    }

    /// The tokens of a range of sequences, as an encoder takes them.
    ///
    /// # Panics
    /// When the range is outside the set.
    pub fn tokens(&self, sequences: Range<usize>) -> Tokens<'_> {
        let starts = &self.starts[sequences.start..=sequences.end];
        let range = starts[0]..starts[starts.len() - 1];
        Tokens { ids: &self.ids[range.clone()], segments: &self.segments[range], starts }
    }

    /// The tokens of all sequences.
    pub fn all_tokens(&self) -> Tokens<'_> {
        self.tokens(0..self.len())
    }

    /// The number of tokens of the longest sequence.
    pub fn longest(&self) -> usize {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Appends the tokens of a sequence.
    pub(crate) fn append(&mut self, ids: &[u32], segments: &[u8], label: usize) {
        self.ids.extend_from_slice(ids);
        self.segments.extend_from_slice(segments);
        self.starts.push(self.ids.len());
        self.labels.push(label);
    }
}
