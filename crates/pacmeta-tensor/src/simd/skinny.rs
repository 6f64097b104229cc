//! Products with a few rows on one side and long rows on the other: a linear head on many features.
//!
//! ```text
//! inner products   output[i, c] = start[c] + sum_d left[i, d] right[c, d]          logits = F W' + b
//! combinations     output[i, d] (+)= sum_k coefficient(k, i) rows[k, d]            dW = R' F and dF = R W
//! ```
//!
//! Rows are contiguous and need no padding, and nothing is packed or allocated. A tile of the result stays in registers: two
//! rows by up to six for inner products, up to six rows by two vectors for combinations. Sums run in an order fixed by the
//! sizes and the processor's vectors. At 1600 features and five classes a general product takes 1.1 to 2.3 times as long
//! (`cargo run --release -p pacmeta-tensor --example skinny`).

use std::mem::size_of;

use pulp::{Arch, Simd, WithSimd};

use crate::element::Element;

/// The most rows of a tile.
const TILE: usize = 6;

/// What a combination is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Nothing: the output is overwritten.
    Zero,
    /// What the output holds.
    Output,
}

/// The coefficients of combinations: element (k, i) is `values[k * term_stride + i * row_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Coefficients<'a, E> {
    /// The numbers.
    pub values: &'a [E],
    /// The distance between terms of one sum.
    pub term_stride: usize,
    /// The distance between rows of the output.
    pub row_stride: usize,
}

/// `output[i, c] = start[c] + left_i . right_c`; rows of both factors have `depth` numbers, of the output `start.len()`.
///
/// # Panics
/// When the slices do not fit each other: callers own the buffers.
pub fn inner_products<E: Element>(depth: usize, start: &[E], left: &[E], right: &[E], output: &mut [E]) {
    let columns = start.len();
    if columns == 0 {
        return;
    }
    let rows = output.len() / columns;
    assert_eq!(output.len(), rows * columns, "the output has whole rows");
    assert_eq!(Some(left.len()), rows.checked_mul(depth), "the left factor has a row for each of the output");
    assert_eq!(Some(right.len()), columns.checked_mul(depth), "the right factor has a row for each column");
    Arch::new().dispatch(InnerProducts { depth, start, left, right, output });
}

struct InnerProducts<'a, E> {
    depth: usize,
    start: &'a [E],
    left: &'a [E],
    right: &'a [E],
    output: &'a mut [E],
}

impl<E: Element> WithSimd for InnerProducts<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.start.len();
        let rows = self.output.len() / columns;
        let tiles = columns.div_ceil(TILE);
        let mut row = 0;
        while row < rows {
            let pair = rows - row >= 2;
            let mut column = 0;
            for tile in 0..tiles {
                let width = columns / tiles + usize::from(tile < columns % tiles);
                // SAFETY: `inner_products` checked that both factors have a row of `depth` numbers for every row and
                // column of the output, and the tile lies inside the output.
                unsafe {
                    match (pair, width) {
                        (true, 6) => self.tile::<S, 2, 6>(simd, row, column),
                        (true, 5) => self.tile::<S, 2, 5>(simd, row, column),
                        (true, 4) => self.tile::<S, 2, 4>(simd, row, column),
                        (true, 3) => self.tile::<S, 2, 3>(simd, row, column),
                        (true, 2) => self.tile::<S, 2, 2>(simd, row, column),
                        (true, _) => self.tile::<S, 2, 1>(simd, row, column),
                        (false, 6) => self.tile::<S, 1, 6>(simd, row, column),
                        (false, 5) => self.tile::<S, 1, 5>(simd, row, column),
                        (false, 4) => self.tile::<S, 1, 4>(simd, row, column),
                        (false, 3) => self.tile::<S, 1, 3>(simd, row, column),
                        (false, 2) => self.tile::<S, 1, 2>(simd, row, column),
                        (false, _) => self.tile::<S, 1, 1>(simd, row, column),
                    }
                }
                column += width;
            }
            row += if pair { 2 } else { 1 };
        }
    }
}

impl<E: Element> InnerProducts<'_, E> {
    /// Rows `row..row + R`, columns `column..column + C`.
    ///
    /// # Safety
    /// That block must lie inside the output, and its rows inside the factors.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const C: usize>(&mut self, simd: S, row: usize, column: usize) {
        let depth = self.depth;
        let lanes = size_of::<E::Of<S>>() / size_of::<E>();
        let whole = depth / lanes * lanes;
        let mut sums = [[E::splat(simd, E::ZERO); C]; R];
        // SAFETY: rows row..row + R of the left factor and column..column + C of the right one exist, each of `depth`
        // numbers, and `whole + lanes` is only read up to `depth`; vectors are read unaligned.
        unsafe {
            let lefts: [*const E; R] = std::array::from_fn(|r| self.left.as_ptr().add((row + r) * depth));
            let rights: [*const E; C] =
                std::array::from_fn(|c| self.right.as_ptr().add((column + c) * depth));
            let mut at = 0;
            while at < whole {
                let mut a = [E::splat(simd, E::ZERO); R];
                for r in 0..R {
                    a[r] = lefts[r].add(at).cast::<E::Of<S>>().read_unaligned();
                }
                for c in 0..C {
                    let b = rights[c].add(at).cast::<E::Of<S>>().read_unaligned();
                    for r in 0..R {
                        sums[r][c] = E::multiply_add(simd, a[r], b, sums[r][c]);
                    }
                }
                at += lanes;
            }
        }
        for r in 0..R {
            for c in 0..C {
                let mut rest = E::ZERO;
                for d in whole..depth {
                    rest += self.left[(row + r) * depth + d] * self.right[(column + c) * depth + d];
                }
                self.output[(row + r) * self.start.len() + column + c] =
                    self.start[column + c] + (E::total(simd, sums[r][c]) + rest);
            }
        }
    }
}

/// output_i (+)= sum over `terms` of coefficient(k, i) rows_k, all rows of `width` numbers.
///
/// # Panics
/// When the slices do not fit each other: callers own the buffers.
pub fn combinations<E: Element>(
    [terms, width]: [usize; 2],
    begin: Begin,
    coefficients: Coefficients<'_, E>,
    rows: &[E],
    output: &mut [E],
) {
    if width == 0 || output.is_empty() {
        return;
    }
    let height = output.len() / width;
    assert_eq!(output.len(), height * width, "the output has whole rows");
    assert_eq!(Some(rows.len()), terms.checked_mul(width), "there is a row for each term");
    if terms > 0 {
        let last = (terms - 1)
            .checked_mul(coefficients.term_stride)
            .zip((height - 1).checked_mul(coefficients.row_stride))
            .and_then(|(term, row)| term.checked_add(row));
        assert!(last.is_some_and(|last| last < coefficients.values.len()), "there is every coefficient");
    }
    Arch::new().dispatch(Combinations { terms, width, begin, coefficients, rows, output });
}

struct Combinations<'a, E> {
    terms: usize,
    width: usize,
    begin: Begin,
    coefficients: Coefficients<'a, E>,
    rows: &'a [E],
    output: &'a mut [E],
}

impl<E: Element> WithSimd for Combinations<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let lanes = size_of::<E::Of<S>>() / size_of::<E>();
        let height = self.output.len() / self.width;
        let tiles = height.div_ceil(TILE);
        let vectors = self.width / lanes;
        // Columns outside, rows inside: a panel of the terms' rows stays in the first-level cache for all of the output.
        let mut vector = 0;
        while vector < vectors {
            let pair = vectors - vector >= 2;
            let column = vector * lanes;
            let mut row = 0;
            for tile in 0..tiles {
                let part = height / tiles + usize::from(tile < height % tiles);
                // SAFETY: `combinations` checked rows, coefficients and output; the tile's columns end at
                // `vectors * lanes`, which is at most the width.
                unsafe {
                    match (pair, part) {
                        (true, 6) => self.tile::<S, 6, 2>(simd, row, column),
                        (true, 5) => self.tile::<S, 5, 2>(simd, row, column),
                        (true, 4) => self.tile::<S, 4, 2>(simd, row, column),
                        (true, 3) => self.tile::<S, 3, 2>(simd, row, column),
                        (true, 2) => self.tile::<S, 2, 2>(simd, row, column),
                        (true, _) => self.tile::<S, 1, 2>(simd, row, column),
                        (false, 6) => self.tile::<S, 6, 1>(simd, row, column),
                        (false, 5) => self.tile::<S, 5, 1>(simd, row, column),
                        (false, 4) => self.tile::<S, 4, 1>(simd, row, column),
                        (false, 3) => self.tile::<S, 3, 1>(simd, row, column),
                        (false, 2) => self.tile::<S, 2, 1>(simd, row, column),
                        (false, _) => self.tile::<S, 1, 1>(simd, row, column),
                    }
                }
                row += part;
            }
            vector += if pair { 2 } else { 1 };
        }
        for row in 0..height {
            for column in vectors * lanes..self.width {
                let mut sum = E::ZERO;
                for k in 0..self.terms {
                    sum += self.coefficient(k, row) * self.rows[k * self.width + column];
                }
                let place = &mut self.output[row * self.width + column];
                *place = if self.begin == Begin::Output { *place + sum } else { sum };
            }
        }
    }
}

impl<E: Element> Combinations<'_, E> {
    #[inline(always)]
    fn coefficient(&self, term: usize, row: usize) -> E {
        self.coefficients.values[term * self.coefficients.term_stride + row * self.coefficients.row_stride]
    }

    /// Rows `row..row + R` of the output, V vectors of columns from `column`.
    ///
    /// # Safety
    /// That block must lie inside the output, its columns inside `rows`, and its coefficients must exist.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(&mut self, simd: S, row: usize, column: usize) {
        let lanes = size_of::<E::Of<S>>() / size_of::<E>();
        let Coefficients { values, term_stride, row_stride } = self.coefficients;
        let mut sums = [[E::splat(simd, E::ZERO); V]; R];
        // SAFETY: all offsets stay inside the block that the caller vouches for; vectors are read and written unaligned.
        unsafe {
            let rows = self.rows.as_ptr().wrapping_add(column);
            let factors: [*const E; R] =
                std::array::from_fn(|r| values.as_ptr().wrapping_add((row + r) * row_stride));
            for k in 0..self.terms {
                let mut line = [E::splat(simd, E::ZERO); V];
                for v in 0..V {
                    line[v] = rows.add(k * self.width + v * lanes).cast::<E::Of<S>>().read_unaligned();
                }
                for r in 0..R {
                    let factor = E::splat(simd, *factors[r].add(k * term_stride));
                    for v in 0..V {
                        sums[r][v] = E::multiply_add(simd, factor, line[v], sums[r][v]);
                    }
                }
            }
            for r in 0..R {
                let start = self.output.as_mut_ptr().add((row + r) * self.width + column);
                for v in 0..V {
                    let place = start.add(v * lanes).cast::<E::Of<S>>();
                    let value = match self.begin {
                        Begin::Zero => sums[r][v],
                        Begin::Output => E::plus(simd, place.read_unaligned(), sums[r][v]),
                    };
                    place.write_unaligned(value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    fn check<E: Element>(tolerance: f64) {
        let mut generator = Key::new(5).generator();
        for [rows, columns, depth] in
            [[1, 1, 1], [2, 5, 40], [3, 7, 19], [10, 5, 33], [5, 13, 64], [4, 2, 0], [0, 3, 8]]
        {
            let mut draw = |count| (0..count).map(|_| E::from_f64(generator.normal())).collect::<Vec<E>>();
            let (left, right, start) = (draw(rows * depth), draw(columns * depth), draw(columns));
            let mut output = draw(rows * columns);
            inner_products(depth, &start, &left, &right, &mut output);
            for i in 0..rows {
                for c in 0..columns {
                    let sum: f64 = (0..depth)
                        .map(|d| left[i * depth + d].to_f64() * right[c * depth + d].to_f64())
                        .sum();
                    let expected = start[c].to_f64() + sum;
                    assert!((output[i * columns + c].to_f64() - expected).abs() < tolerance);
                }
            }
            // coefficients as [terms, rows] and as [rows, terms]
            for (term_stride, row_stride) in [(rows, 1), (1, columns)] {
                for begin in [Begin::Zero, Begin::Output] {
                    let values = draw(rows * columns);
                    let before = draw(rows * depth);
                    let mut combined = before.clone();
                    let coefficients = Coefficients { values: &values, term_stride, row_stride };
                    combinations([columns, depth], begin, coefficients, &right, &mut combined);
                    for place in 0..rows * depth {
                        let (i, d) = (place / depth, place % depth);
                        let sum: f64 = (0..columns)
                            .map(|k| {
                                values[k * term_stride + i * row_stride].to_f64()
                                    * right[k * depth + d].to_f64()
                            })
                            .sum();
                        let first = if begin == Begin::Zero { 0.0 } else { before[place].to_f64() };
                        assert!((combined[place].to_f64() - first - sum).abs() < tolerance);
                    }
                }
            }
        }
    }

    #[test]
    fn both_products_agree_with_their_definitions() {
        check::<f64>(1e-12);
        check::<f32>(1e-4);
    }
}
