//! Matrix products of the fused passes.
//!
//! Rows of a result are cut into blocks by its size alone, and blocks run on rayon's threads; so the bits of a result do not depend
//! on their number.

use rayon::prelude::*;

use crate::element::Element;

/// What a product is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing: what was there is overwritten.
    Zero,
    /// What is there.
    Sum,
}

/// A matrix in a slice: element (i, j) is at i * row + j * column.
#[derive(Clone, Copy)]
pub(super) struct View<'a, E> {
    pub(super) values: &'a [E],
    pub(super) row: usize,
    pub(super) column: usize,
}

impl<'a, E> View<'a, E> {
    /// Rows behind each other, `stride` numbers from one to the next.
    pub(super) fn rows(values: &'a [E], stride: usize) -> Self {
        View { values, row: stride, column: 1 }
    }

    /// The same matrix with rows as columns.
    pub(super) fn transposed(self) -> Self {
        View { values: self.values, row: self.column, column: self.row }
    }

    /// The matrix from a row on.
    fn after_rows(self, row: usize) -> Self {
        View { values: &self.values[(row * self.row).min(self.values.len())..], ..self }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.row + (columns - 1) * self.column < self.values.len()
    }
}

/// out (+)= factor * left * right on this thread; rows of `out` are `stride` numbers apart.
pub(super) fn multiply<E: Element>(
    [rows, columns, depth]: [usize; 3],
    (out, stride): (&mut [E], usize),
    left: View<'_, E>,
    right: View<'_, E>,
    factor: E,
    start: Start,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(stride >= columns && (rows - 1) * stride + columns <= out.len(), "result of a product");
    assert!(left.holds(rows, depth) && right.holds(depth, columns), "operands of a product");
    // SAFETY: the assertions keep every element that the strides address inside its slice, and rows of `out` do not overlap.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            out.as_mut_ptr(),
            1,
            stride as isize,
            start == Start::Sum,
            left.values.as_ptr(),
            left.column as isize,
            left.row as isize,
            right.values.as_ptr(),
            right.column as isize,
            right.row as isize,
            E::ONE,
            factor,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Rows of a block of states.
const BLOCK: usize = 128;

/// A linear map: weight [out, in] and bias [out].
#[derive(Clone, Copy)]
pub(super) struct Linear<'a, E> {
    pub(super) weight: &'a [E],
    pub(super) bias: &'a [E],
}

/// Rows of `input` [rows, width] through maps of equal size, results beside each other: out [rows, maps * outputs].
pub(super) fn affine<E: Element>(input: &[E], width: usize, maps: &[Linear<'_, E>], out: &mut [E]) {
    let outputs = maps[0].bias.len();
    let stride = maps.len() * outputs;
    out.par_chunks_mut(BLOCK * stride).enumerate().for_each(|(block, out)| {
        let rows = out.len() / stride;
        for row in out.chunks_exact_mut(stride) {
            for (part, map) in row.chunks_exact_mut(outputs).zip(maps) {
                part.copy_from_slice(map.bias);
            }
        }
        for (place, map) in maps.iter().enumerate() {
            multiply(
                [rows, outputs, width],
                (&mut out[place * outputs..], stride),
                View::rows(input, width).after_rows(block * BLOCK),
                View::rows(map.weight, width).transposed(),
                E::ONE,
                Start::Sum,
            );
        }
    });
}

/// The gradient at the input of [`affine`]: out [rows, width] (+)= the sum over maps of their part of `slopes` times their weight.
pub(super) fn pull_back<E: Element>(
    slopes: &[E],
    weights: &[&[E]],
    width: usize,
    out: &mut [E],
    start: Start,
) {
    let outputs = weights[0].len() / width;
    let stride = weights.len() * outputs;
    out.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, out)| {
        for (place, weight) in weights.iter().enumerate() {
            multiply(
                [out.len() / width, width, outputs],
                (&mut *out, width),
                View::rows(&slopes[block * BLOCK * stride + place * outputs..], stride),
                View::rows(weight, width),
                E::ONE,
                if place == 0 { start } else { Start::Sum },
            );
        }
    });
}

/// The gradient of a weight: out [outputs, width] = slopes' input, with `slopes` [rows, stride] from its first column on.
pub(super) fn weight_gradient<E: Element>(
    rows: usize,
    (slopes, stride): (&[E], usize),
    (input, width): (&[E], usize),
    out: &mut [E],
) {
    const OUTPUTS: usize = 192;
    out.par_chunks_mut(OUTPUTS * width).enumerate().for_each(|(block, out)| {
        multiply(
            [out.len() / width, width, rows],
            (&mut *out, width),
            View::rows(&slopes[block * OUTPUTS..], stride).transposed(),
            View::rows(input, width),
            E::ONE,
            Start::Zero,
        );
    });
}
