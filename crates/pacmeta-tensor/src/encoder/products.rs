//! Matrix products of the fused passes.
//!
//! A product is one call for whole matrices, whatever the number of threads: cut into blocks, each block would rearrange its operands for the
//! kernel anew, which took an eighth of the time of BERT-base.

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

    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.row + (columns - 1) * self.column < self.values.len()
    }
}

/// Who computes a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// This thread, one of several that are busy with other parts.
    One,
    /// All of rayon's, which share the operands that are rearranged for the kernel. Every element is summed up in the same order
    /// by whichever thread, so that its bits do not depend on their number.
    All,
}

impl Threads {
    fn parallelism(self) -> gemm::Parallelism {
        match self {
            Self::One => gemm::Parallelism::None,
            Self::All => gemm::Parallelism::Rayon(rayon::current_num_threads()),
        }
    }
}

/// out (+)= factor * left * right; rows of `out` are `stride` numbers apart.
pub(super) fn multiply<E: Element>(
    threads: Threads,
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
    // SAFETY: the assertions keep every element that the strides address inside its slice, and rows of `out` do not overlap; threads write
    // tiles of `out` that do not overlap either.
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
            threads.parallelism(),
        );
    }
}

/// A linear map: weight [out, in] and bias [out].
#[derive(Clone, Copy)]
pub(super) struct Linear<'a, E> {
    pub(super) weight: &'a [E],
    pub(super) bias: &'a [E],
}

/// Rows of `input` [rows, width] through maps of equal size, results beside each other: out [rows, maps * outputs].
pub(super) fn affine<E: Element>(input: &[E], width: usize, maps: &[Linear<'_, E>], out: &mut [E]) {
    let stride = maps.len() * maps[0].bias.len();
    affine_into((input, width), maps, (out, stride));
}

/// The same with rows of `out` that are `stride` numbers apart.
pub(super) fn affine_into<E: Element>(
    (input, width): (&[E], usize),
    maps: &[Linear<'_, E>],
    (out, stride): (&mut [E], usize),
) {
    let outputs = maps[0].bias.len();
    let rows = input.len() / width;
    out.par_chunks_mut(stride).for_each(|row| {
        for (part, map) in row.chunks_exact_mut(outputs).zip(maps) {
            part.copy_from_slice(map.bias);
        }
    });
    for (place, map) in maps.iter().enumerate() {
        multiply(
            Threads::All,
            [rows, outputs, width],
            (&mut out[place * outputs..], stride),
            View::rows(input, width),
            View::rows(map.weight, width).transposed(),
            E::ONE,
            Start::Sum,
        );
    }
}

/// The gradient at the input of [`affine`]: out [rows, width] (+)= the sum over maps of their part of `slopes` times their weight.
pub(super) fn pull_back<E: Element>(
    slopes: &[E],
    weights: &[&[E]],
    width: usize,
    out: &mut [E],
    start: Start,
) {
    let stride = weights.len() * weights[0].len() / width;
    pull_back_from((slopes, stride), weights, width, out, start);
}

/// The same with rows of `slopes` that are `stride` numbers apart.
pub(super) fn pull_back_from<E: Element>(
    (slopes, stride): (&[E], usize),
    weights: &[&[E]],
    width: usize,
    out: &mut [E],
    start: Start,
) {
    let outputs = weights[0].len() / width;
    for (place, weight) in weights.iter().enumerate() {
        multiply(
            Threads::All,
            [out.len() / width, width, outputs],
            (&mut *out, width),
            View::rows(&slopes[place * outputs..], stride),
            View::rows(weight, width),
            E::ONE,
            if place == 0 { start } else { Start::Sum },
        );
    }
}

/// The gradient of a weight: out [outputs, width] = slopes' input, with `slopes` [rows, stride] from its first column on.
pub(super) fn weight_gradient<E: Element>(
    rows: usize,
    (slopes, stride): (&[E], usize),
    (input, width): (&[E], usize),
    out: &mut [E],
) {
    multiply(
        Threads::All,
        [out.len() / width, width, rows],
        (&mut *out, width),
        View::rows(slopes, stride).transposed(),
        View::rows(input, width),
        E::ONE,
        Start::Zero,
    );
}
