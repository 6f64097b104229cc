//! The one matrix product of the f64 kernels:
//!
//! ```text
//! C[r, c] = start[r, c] + sign * sum_k P(k, r) Q[k, c]
//! ```
//!
//! with P stored along k or along r, and Q, C row-major. Layers (P = activations), weight gradients (P = transposed errors),
//! Cholesky updates and inverses are all of this form, so one register-blocked tile serves them. A tile holds up to
//! [`TILE_ROWS`] x 2 vectors of C in registers and runs once through k: with six rows that is twelve accumulators,
//! enough to hide the latency of two fused multiply-adds a cycle within sixteen registers.

use pulp::{Arch, Simd, WithSimd};

use super::PADDING;
use super::elementary::tanh_vectors;

/// The number of rows of C that a tile holds in registers.
pub const TILE_ROWS: usize = 6;

/// What the sum is added to.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Nothing: C is overwritten.
    Zero,
    /// The same row for every row of C (a bias).
    Row(&'a [f64]),
    /// C itself: C += P' Q.
    Plus,
    /// C itself, minus the sum: C -= P' Q.
    Minus,
}

/// The left factor, stored along k or along r.
///
/// Either way neighbours in the other direction are `stride` apart. Knowing which one is contiguous lets the inner loop
/// address all rows of a tile without a chain of additions.
#[derive(Clone, Copy)]
pub enum Left<'a> {
    /// Element (k, r) is `values[r * stride + k]`: C = P Q with P row-major.
    Plain {
        /// The numbers.
        values: &'a [f64],
        /// The distance between rows of P.
        stride: usize,
    },
    /// Element (k, r) is `values[k * stride + r]`: C = P' Q with P row-major.
    Transposed {
        /// The numbers.
        values: &'a [f64],
        /// The distance between rows of P.
        stride: usize,
    },
}

impl Left<'_> {
    /// The index of element (k, r), if it is a number at all.
    fn index(&self, k: usize, r: usize) -> Option<usize> {
        match self {
            Left::Plain { stride, .. } => r.checked_mul(*stride)?.checked_add(k),
            Left::Transposed { stride, .. } => k.checked_mul(*stride)?.checked_add(r),
        }
    }

    fn values(&self) -> &[f64] {
        match self {
            Left::Plain { values, .. } | Left::Transposed { values, .. } => values,
        }
    }
}

/// The sizes of a product.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Rows of C.
    pub rows: usize,
    /// Columns of C that are wanted; whole vectors are computed, up to the padding.
    pub columns: usize,
    /// Terms in each sum.
    pub depth: usize,
}

/// C = start + sign * P' Q; `right` has rows of `right_stride`, `output` of `output_stride` numbers.
///
/// # Panics
/// When a slice is too short for its sizes: callers own the buffers, so that is a mistake in this crate.
pub fn product(
    arch: Arch,
    sizes: Sizes,
    start: Start<'_>,
    left: Left<'_>,
    right: (&[f64], usize),
    output: (&mut [f64], usize),
) {
    check(sizes, start, left, right, (output.0, output.1));
    match left {
        Left::Plain { values, stride } => {
            arch.dispatch(Product::<false, false>::new(sizes, start, (values, stride), right, output));
        }
        Left::Transposed { values, stride } => {
            arch.dispatch(Product::<true, false>::new(sizes, start, (values, stride), right, output));
        }
    }
}

/// C = tanh(bias + P Q) with P row-major, a layer in one pass: the divisions of one tile run beside the next one's products.
///
/// # Panics
/// As [`product`].
pub fn tanh_layer(
    arch: Arch,
    sizes: Sizes,
    bias: &[f64],
    left: (&[f64], usize),
    right: (&[f64], usize),
    output: (&mut [f64], usize),
) {
    let start = Start::Row(bias);
    check(sizes, start, Left::Plain { values: left.0, stride: left.1 }, right, (output.0, output.1));
    arch.dispatch(Product::<false, true>::new(sizes, start, left, right, output));
}

/// Panics when a slice is too short for the sizes.
fn check(
    sizes: Sizes,
    start: Start<'_>,
    left: Left<'_>,
    (right, right_stride): (&[f64], usize),
    (output, output_stride): (&[f64], usize),
) {
    let Sizes { rows, columns, depth } = sizes;
    if rows == 0 || columns == 0 {
        return;
    }
    let columns = columns.next_multiple_of(PADDING);
    let reach = |rows: usize, stride: usize| (rows - 1).checked_mul(stride)?.checked_add(columns);
    let holds = |length: usize, needed: Option<usize>| needed.is_some_and(|needed| needed <= length);
    assert!(holds(output.len(), reach(rows, output_stride)), "output holds every row");
    if depth > 0 {
        assert!(holds(right.len(), reach(depth, right_stride)), "right factor holds every row");
        let last = left.index(depth - 1, rows - 1);
        assert!(last.is_some_and(|last| last < left.values().len()), "left factor holds every element");
    }
    if let Start::Row(row) = start {
        assert!(row.len() >= columns, "the start row is padded");
    }
}

#[derive(Clone, Copy)]
struct Product<'a, const TRANSPOSED: bool, const TANH: bool> {
    sizes: Sizes,
    start: Start<'a>,
    left: *const f64,
    left_stride: usize,
    right: *const f64,
    right_stride: usize,
    output: *mut f64,
    output_stride: usize,
}

impl<'a, const TRANSPOSED: bool, const TANH: bool> Product<'a, TRANSPOSED, TANH> {
    /// Of slices that [`check`] has seen.
    fn new(
        sizes: Sizes,
        start: Start<'a>,
        (left, left_stride): (&'a [f64], usize),
        (right, right_stride): (&'a [f64], usize),
        (output, output_stride): (&'a mut [f64], usize),
    ) -> Self {
        let (left, right, output) = (left.as_ptr(), right.as_ptr(), output.as_mut_ptr());
        Self { sizes, start, left, left_stride, right, right_stride, output, output_stride }
    }
}

impl<const TRANSPOSED: bool, const TANH: bool> WithSimd for Product<'_, TRANSPOSED, TANH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        const { assert!(PADDING.is_multiple_of(S::F64_LANES), "vectors fill the padding") };
        let Sizes { rows, columns, .. } = self.sizes;
        if rows == 0 {
            return;
        }
        let vectors = columns.div_ceil(S::F64_LANES);
        // Tiles of nearly equal height: 32 rows as two sixes and four fives, not as five sixes and two lonely ones.
        let tiles = rows.div_ceil(TILE_ROWS);
        let (even, taller) = (rows / tiles, rows % tiles);
        // Columns outside, rows inside: a panel of Q stays in the first-level cache for all rows.
        let mut vector = 0;
        while vector < vectors {
            let column = vector * S::F64_LANES;
            let pair = vectors - vector >= 2;
            let mut row = 0;
            for tile in 0..tiles {
                let height = even + usize::from(tile < taller);
                // SAFETY: `check` saw that rows x columns of the output and every row of both factors are inside
                // their slices, columns counted up to the padding, of which every vector length is a divisor.
                unsafe {
                    if pair {
                        match height {
                            6 => self.tile::<S, 6, 2>(simd, row, column),
                            5 => self.tile::<S, 5, 2>(simd, row, column),
                            4 => self.tile::<S, 4, 2>(simd, row, column),
                            3 => self.tile::<S, 3, 2>(simd, row, column),
                            2 => self.tile::<S, 2, 2>(simd, row, column),
                            _ => self.tile::<S, 1, 2>(simd, row, column),
                        }
                    } else {
                        match height {
                            6 => self.tile::<S, 6, 1>(simd, row, column),
                            5 => self.tile::<S, 5, 1>(simd, row, column),
                            4 => self.tile::<S, 4, 1>(simd, row, column),
                            3 => self.tile::<S, 3, 1>(simd, row, column),
                            2 => self.tile::<S, 2, 1>(simd, row, column),
                            _ => self.tile::<S, 1, 1>(simd, row, column),
                        }
                    }
                }
                row += height;
            }
            vector += if pair { 2 } else { 1 };
        }
    }
}

impl<const TRANSPOSED: bool, const TANH: bool> Product<'_, TRANSPOSED, TANH> {
    /// Rows `row..row + R` and V vectors of columns from `column`.
    ///
    /// # Safety
    /// That block must lie inside C, and its rows and columns inside the factors.
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize, const V: usize>(self, simd: S, row: usize, column: usize) {
        // SAFETY: all offsets stay inside the block that the caller vouches for; vectors are read and written unaligned.
        unsafe {
            let load = |pointer: *const f64| pointer.cast::<S::f64s>().read_unaligned();
            let mut sums = [[simd.splat_f64s(0.0); V]; R];
            if let Start::Row(start) = self.start {
                for v in 0..V {
                    let value = load(start.as_ptr().add(column + v * S::F64_LANES));
                    for r in 0..R {
                        sums[r][v] = value;
                    }
                }
            }
            // wrapping: without depth the factors may be empty, and nothing is read
            let right = self.right.wrapping_add(column);
            let rows: [*const f64; R] = std::array::from_fn(|r| {
                let offset = if TRANSPOSED { row + r } else { (row + r) * self.left_stride };
                self.left.wrapping_add(offset)
            });
            for k in 0..self.sizes.depth {
                let mut q = [simd.splat_f64s(0.0); V];
                for v in 0..V {
                    q[v] = load(right.add(k * self.right_stride + v * S::F64_LANES));
                }
                for r in 0..R {
                    let p = if TRANSPOSED { rows[0].add(k * self.left_stride + r) } else { rows[r].add(k) };
                    let p = simd.splat_f64s(*p);
                    for v in 0..V {
                        sums[r][v] = simd.mul_add_e_f64s(p, q[v], sums[r][v]);
                    }
                }
            }
            if TANH {
                for r in 0..R {
                    tanh_vectors(simd, &mut sums[r]);
                }
            }
            for r in 0..R {
                for v in 0..V {
                    let place = self
                        .output
                        .add((row + r) * self.output_stride + column + v * S::F64_LANES)
                        .cast::<S::f64s>();
                    let value = match self.start {
                        Start::Plus => simd.add_f64s(place.read_unaligned(), sums[r][v]),
                        Start::Minus => simd.sub_f64s(place.read_unaligned(), sums[r][v]),
                        _ => sums[r][v],
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
    use crate::simd::{every_arch, padded};

    #[test]
    fn a_layer_is_the_tanh_of_its_product() {
        let (rows, columns, depth) = (13, 20, 7);
        let stride = padded(columns);
        let number = |i: usize| ((i * 7919 % 1000) as f64) / 500.0 - 1.0;
        let [left, right, bias] =
            [rows * depth, depth * stride, stride].map(|count| (0..count).map(number).collect::<Vec<f64>>());
        for arch in every_arch() {
            let mut expected = vec![0.0; rows * stride];
            let mut layer = expected.clone();
            let sizes = Sizes { rows, columns, depth };
            let plain = Left::Plain { values: &left, stride: depth };
            product(arch, sizes, Start::Row(&bias), plain, (&right, stride), (&mut expected, stride));
            crate::simd::elementary::tanh_in_place(arch, &mut expected);
            tanh_layer(arch, sizes, &bias, (&left, depth), (&right, stride), (&mut layer, stride));
            assert_eq!(layer, expected);
        }
    }

    #[test]
    fn agrees_with_three_loops_for_every_start_and_stride() {
        for (rows, columns, depth) in
            [(0, 3, 2), (2, 0, 2), (1, 1, 1), (5, 8, 3), (6, 9, 7), (13, 32, 32), (25, 2, 11), (4, 16, 0)]
        {
            let stride = padded(columns);
            let number = |seed: usize, i: usize| (((i * 7919 + seed * 104_729) % 1000) as f64) / 500.0 - 1.0;
            let bias: Vec<f64> = (0..stride).map(|i| number(4, i)).collect();
            let right: Vec<f64> = (0..(depth + 1) * stride).map(|i| number(1, i)).collect();
            let left: Vec<f64> = (0..(depth + 1) * (rows + 1)).map(|i| number(2, i)).collect();
            let first: Vec<f64> = (0..rows * stride).map(|i| number(3, i)).collect();
            let factors = [
                Left::Transposed { values: &left, stride: rows },
                Left::Plain { values: &left, stride: depth.max(1) },
            ];
            for factor in factors {
                let starts =
                    [(Start::Zero, 1.0), (Start::Row(&bias), 1.0), (Start::Plus, 1.0), (Start::Minus, -1.0)];
                for ((start, sign), arch) in starts
                    .into_iter()
                    .flat_map(|start| every_arch().into_iter().map(move |arch| (start, arch)))
                {
                    let mut output = first.clone();
                    product(
                        arch,
                        Sizes { rows, columns, depth },
                        start,
                        factor,
                        (&right, stride),
                        (&mut output, stride),
                    );
                    for r in 0..rows {
                        for c in 0..columns {
                            let begin = match start {
                                Start::Zero => 0.0,
                                Start::Row(bias) => bias[c],
                                Start::Plus | Start::Minus => first[r * stride + c],
                            };
                            let sum: f64 = (0..depth)
                                .map(|k| left[factor.index(k, r).unwrap()] * right[k * stride + c])
                                .sum();
                            let expected = begin + sign * sum;
                            assert!((output[r * stride + c] - expected).abs() < 1e-12);
                        }
                    }
                }
            }
        }
    }
}
