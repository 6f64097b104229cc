//! Stands for `pacmeta_tensor::encoder` until that is there.

/// Packed sequences of tokens.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    /// Token numbers of the sequences.
    pub ids: &'a [u32],
    /// Segment of every token.
    pub segments: &'a [u8],
    /// Offsets of sequences, one more than there are; the first may be above 0.
    pub starts: &'a [usize],
}
