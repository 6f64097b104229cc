//! The two matrix products of the fast path, on matrices of 64 columns.
//!
//! A tile of the result stays in registers during one run through the inner dimension: six rows by two vectors with sixteen
//! registers (AVX2), by four with thirty-two (AVX-512, NEON). That is twelve or twenty-four accumulators, enough to hide the
//! latency of two fused multiply-adds a cycle.

use pulp::Simd;

use super::ahead::{Ahead, ask_for};
use super::pixel::{FILTERS, Pixel, lanes};
use crate::simd::skinny::Begin;

const ROWS: usize = 6;

/// rows = rows * matrix, in place; `matrix` is 64 x 64. Meanwhile `ahead` asks for what comes next.
#[inline(always)]
pub(super) fn multiply<S: Simd>(
    simd: S,
    rows: &mut [Pixel],
    matrix: &[Pixel; FILTERS],
    ahead: &mut Ahead<'_>,
) {
    if S::REGISTER_COUNT >= 32 && lanes::<S>() >= 4 {
        multiply_with::<S, 4>(simd, rows, matrix, ahead);
    } else {
        multiply_with::<S, 2>(simd, rows, matrix, ahead);
    }
}

#[inline(always)]
fn multiply_with<S: Simd, const V: usize>(
    simd: S,
    rows: &mut [Pixel],
    matrix: &[Pixel; FILTERS],
    ahead: &mut Ahead<'_>,
) {
    // blocks of nearly equal height: 49 rows as four sixes and five fives, not as eight sixes and a lonely one
    let blocks = rows.len().div_ceil(ROWS);
    let mut rest = rows;
    for block in (1..=blocks).rev() {
        let (part, tail) = rest.split_at_mut(rest.len().div_ceil(block));
        match part.len() {
            6 => block_of::<S, 6, V>(simd, part, matrix, ahead),
            5 => block_of::<S, 5, V>(simd, part, matrix, ahead),
            4 => block_of::<S, 4, V>(simd, part, matrix, ahead),
            3 => block_of::<S, 3, V>(simd, part, matrix, ahead),
            2 => block_of::<S, 2, V>(simd, part, matrix, ahead),
            _ => block_of::<S, 1, V>(simd, part, matrix, ahead),
        }
        rest = tail;
    }
}

/// R rows times the matrix; through a copy of the rows where a panel is written while others still need them.
#[inline(always)]
fn block_of<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: &mut [Pixel],
    matrix: &[Pixel; FILTERS],
    ahead: &mut Ahead<'_>,
) {
    let Some(rows) = rows.first_chunk_mut::<R>() else { return };
    if lanes::<S>() == V {
        let sums = panel_of::<S, R, V>(simd, rows, matrix, 0, ahead);
        store_panel::<S, R, V>(rows, &sums, 0);
    } else {
        let left = *rows;
        for panel in 0..lanes::<S>() / V {
            let sums = panel_of::<S, R, V>(simd, &left, matrix, panel, ahead);
            store_panel::<S, R, V>(rows, &sums, panel);
        }
    }
}

/// R rows times V vectors of the matrix's columns.
#[inline(always)]
fn panel_of<S: Simd, const R: usize, const V: usize>(
    simd: S,
    left: &[Pixel; R],
    matrix: &[Pixel; FILTERS],
    panel: usize,
    ahead: &mut Ahead<'_>,
) -> [[S::f32s; V]; R] {
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for k in 0..FILTERS {
        ahead.step();
        let right = matrix[k].vectors::<S>();
        let mut values = [simd.splat_f32s(0.0); V];
        for v in 0..V {
            values[v] = right[panel * V + v];
        }
        for r in 0..R {
            let factor = simd.splat_f32s(left[r].0[k]);
            for v in 0..V {
                sums[r][v] = simd.mul_add_e_f32s(factor, values[v], sums[r][v]);
            }
        }
    }
    sums
}

#[inline(always)]
fn store_panel<S: Simd, const R: usize, const V: usize>(
    rows: &mut [Pixel; R],
    sums: &[[S::f32s; V]; R],
    panel: usize,
) {
    for r in 0..R {
        let row = rows[r].vectors_mut::<S>();
        for v in 0..V {
            row[panel * V + v] = sums[r][v];
        }
    }
}

/// sum += left' * right, or sum = left' * right; `left` and `right` have the same number of rows. Meanwhile `ahead` asks for
/// what comes next.
#[inline(always)]
pub(super) fn accumulate<S: Simd>(
    simd: S,
    begin: Begin,
    sum: &mut [Pixel; FILTERS],
    left: &[Pixel],
    right: &[Pixel],
    ahead: &mut Ahead<'_>,
) {
    if S::REGISTER_COUNT >= 32 && lanes::<S>() >= 4 {
        accumulate_with::<S, 4>(simd, begin, sum, left, right, ahead);
    } else {
        accumulate_with::<S, 2>(simd, begin, sum, left, right, ahead);
    }
}

#[inline(always)]
fn accumulate_with<S: Simd, const V: usize>(
    simd: S,
    begin: Begin,
    sum: &mut [Pixel; FILTERS],
    left: &[Pixel],
    right: &[Pixel],
    ahead: &mut Ahead<'_>,
) {
    for panel in 0..lanes::<S>() / V {
        let (sixes, four) = sum.as_chunks_mut::<ROWS>();
        for (block, sum) in sixes.iter_mut().enumerate() {
            accumulate_block::<S, ROWS, V>(simd, begin, sum, [left, right], block * ROWS, panel, ahead);
        }
        if let Some(sum) = four.first_chunk_mut::<4>() {
            accumulate_block::<S, 4, V>(simd, begin, sum, [left, right], FILTERS - 4, panel, ahead);
        }
    }
}

/// The R rows of the sum from `first`, one panel of columns.
#[inline(always)]
fn accumulate_block<S: Simd, const R: usize, const V: usize>(
    simd: S,
    begin: Begin,
    rows: &mut [Pixel; R],
    [left, right]: [&[Pixel]; 2],
    first: usize,
    panel: usize,
    ahead: &mut Ahead<'_>,
) {
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    ask_for(rows);
    for (left, right) in left.iter().zip(right) {
        ahead.step();
        let Some(factors) = left.0[first..].first_chunk::<R>() else { return };
        let right = right.vectors::<S>();
        let mut values = [simd.splat_f32s(0.0); V];
        for v in 0..V {
            values[v] = right[panel * V + v];
        }
        for r in 0..R {
            let factor = simd.splat_f32s(factors[r]);
            for v in 0..V {
                sums[r][v] = simd.mul_add_e_f32s(factor, values[v], sums[r][v]);
            }
        }
    }
    for r in 0..R {
        let row = rows[r].vectors_mut::<S>();
        for v in 0..V {
            let place = &mut row[panel * V + v];
            *place = match begin {
                Begin::Zero => sums[r][v],
                Begin::Output => simd.add_f32s(*place, sums[r][v]),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::WithSimd;

    use super::*;
    use crate::simd::every_arch;

    /// Both products with tiles of V vectors.
    struct Both<'a, const V: usize> {
        begin: Begin,
        rows: &'a mut [Pixel],
        right: &'a [Pixel],
        matrix: &'a [Pixel; FILTERS],
        sum: &'a mut [Pixel; FILTERS],
    }

    impl<const V: usize> WithSimd for Both<'_, V> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let ahead = &mut Ahead::new([self.rows, self.right, &[]]);
            accumulate_with::<S, V>(simd, self.begin, self.sum, self.rows, self.right, ahead);
            multiply_with::<S, V>(simd, self.rows, self.matrix, &mut Ahead::new([self.right, &[], &[]]));
        }
    }

    fn pixels(count: usize, seed: usize) -> Vec<Pixel> {
        let number = |i: usize| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0;
        (0..count).map(|row| Pixel(std::array::from_fn(|c| number(row * FILTERS + c)))).collect()
    }

    #[test]
    fn agree_with_three_loops_for_every_number_of_rows_and_both_tiles() {
        let begins = [Begin::Zero, Begin::Output];
        for (count, begin) in (0..14).chain([49]).flat_map(|count| begins.map(|begin| (count, begin))) {
            for (arch, wide) in every_arch().into_iter().flat_map(|arch| [(arch, false), (arch, true)]) {
                let (left, right, matrix) = (pixels(count, 1), pixels(count, 2), pixels(FILTERS, 3));
                let matrix = matrix.first_chunk().unwrap();
                let start = pixels(FILTERS, 4);
                let mut sum = *start.first_chunk().unwrap();
                let mut rows = left.clone();
                if wide {
                    arch.dispatch(Both::<4> { begin, rows: &mut rows, right: &right, matrix, sum: &mut sum });
                } else {
                    arch.dispatch(Both::<2> { begin, rows: &mut rows, right: &right, matrix, sum: &mut sum });
                }
                for c in 0..FILTERS {
                    for row in 0..count {
                        let expected: f32 = (0..FILTERS).map(|k| left[row].0[k] * matrix[k].0[c]).sum();
                        assert!((rows[row].0[c] - expected).abs() < 1e-4, "{count} rows: {row} {c}");
                    }
                    for r in 0..FILTERS {
                        let added: f32 = (0..count).map(|k| left[k].0[r] * right[k].0[c]).sum();
                        let expected = match begin {
                            Begin::Zero => added,
                            Begin::Output => start[r].0[c] + added,
                        };
                        assert!((sum[r].0[c] - expected).abs() < 1e-4, "{count} rows, {begin:?}: {r} {c}");
                    }
                }
            }
        }
    }
}
