//! Winograd's convolutions of m x m tiles with 3 x 3 filters, in the construction of Toom and Cook.
//!
//! A tile of m x m outputs w * d needs t x t inputs, t = m + 2. With points p_0 .. p_m and infinity, in one dimension
//!
//! ```text
//! w * d = A' [(G w) . (B' d)],    A'[i][j] = p_j^i,    G[j][k] = p_j^k / N_j,    N_j = prod_{l != j} (p_j - p_l),
//! B'[j] = coefficients of prod_{l != j} (x - p_l),     and 0 .. 0 1 for infinity in A' and G, prod_l (x - p_l) in B',
//! ```
//!
//! and in two dimensions the transform of rows follows that of columns. At each of the t x t points of a tile the channels
//! of the transformed input are multiplied by a matrix: that is all the work. The adjoints (A, B, G') give the gradients.
//!
//! The points are 0, 1, -1, 2 for m = 3, 0, 1, -1, 2, -2 for m = 4, and these with 1/2 and -1/2 for m = 6: their powers are
//! small or powers of two, so the error stays at a few units of the last place.

use pulp::Simd;

/// One-dimensional transforms for tiles of M outputs and T = M + 2 inputs.
pub(super) trait Transform<const M: usize, const T: usize>: Send + Sync + Copy {
    /// G.
    const FILTER: [[f32; 3]; T];

    /// B' d.
    fn input<S: Simd>(simd: S, d: [S::f32s; T]) -> [S::f32s; T];
    /// B v, the adjoint of `input`.
    fn input_adjoint<S: Simd>(simd: S, v: [S::f32s; T]) -> [S::f32s; T];
    /// A' v.
    fn output<S: Simd>(simd: S, v: [S::f32s; T]) -> [S::f32s; M];
    /// A d, the adjoint of `output`.
    fn output_adjoint<S: Simd>(simd: S, d: [S::f32s; M]) -> [S::f32s; T];
}

/// factor * a + b.
#[inline(always)]
fn times<S: Simd>(simd: S, factor: f32, a: S::f32s, b: S::f32s) -> S::f32s {
    simd.mul_add_e_f32s(simd.splat_f32s(factor), a, b)
}

/// Tiles of 3 x 3 outputs.
#[derive(Clone, Copy)]
pub(super) struct Three;

/// Tiles of 4 x 4 outputs.
#[derive(Clone, Copy)]
pub(super) struct Four;

/// Tiles of 6 x 6 outputs.
#[derive(Clone, Copy)]
pub(super) struct Six;

impl Transform<3, 5> for Three {
    const FILTER: [[f32; 3]; 5] = [
        [0.5, 0.0, 0.0],
        [-0.5, -0.5, -0.5],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 6.0, 1.0 / 3.0, 2.0 / 3.0],
        [0.0, 0.0, 1.0],
    ];

    #[inline(always)]
    fn input<S: Simd>(simd: S, [d0, d1, d2, d3, d4]: [S::f32s; 5]) -> [S::f32s; 5] {
        let two = simd.splat_f32s(2.0);
        let difference = simd.sub_f32s(d3, d1); // d3 - d1
        let part = simd.sub_f32s(d3, d2); // d3 - d2
        [
            simd.mul_add_e_f32s(two, simd.sub_f32s(d0, d2), difference),
            simd.mul_add_e_f32s(simd.splat_f32s(-2.0), d1, part),
            simd.mul_add_e_f32s(two, simd.sub_f32s(d1, d2), part),
            difference,
            simd.mul_add_e_f32s(simd.splat_f32s(-2.0), difference, simd.sub_f32s(d4, d2)),
        ]
    }

    #[inline(always)]
    fn input_adjoint<S: Simd>(simd: S, [v0, v1, v2, v3, v4]: [S::f32s; 5]) -> [S::f32s; 5] {
        let two = simd.splat_f32s(2.0);
        let minus_two = simd.splat_f32s(-2.0);
        // the terms of d3 - d1, of d3 - d2 and of the rest
        let difference = simd.mul_add_e_f32s(minus_two, v4, simd.add_f32s(v0, v3));
        let part = simd.add_f32s(v1, v2);
        let d2 =
            simd.mul_add_e_f32s(minus_two, simd.add_f32s(v0, v2), simd.neg_f32s(simd.add_f32s(part, v4)));
        [
            simd.mul_f32s(two, v0),
            simd.mul_add_e_f32s(two, simd.sub_f32s(v2, v1), simd.neg_f32s(difference)),
            d2,
            simd.add_f32s(difference, part),
            v4,
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(simd: S, [v0, v1, v2, v3, v4]: [S::f32s; 5]) -> [S::f32s; 3] {
        let even = simd.add_f32s(v1, v2);
        [
            simd.add_f32s(simd.add_f32s(v0, even), v3),
            simd.mul_add_e_f32s(simd.splat_f32s(2.0), v3, simd.sub_f32s(v1, v2)),
            simd.mul_add_e_f32s(simd.splat_f32s(4.0), v3, simd.add_f32s(even, v4)),
        ]
    }

    #[inline(always)]
    fn output_adjoint<S: Simd>(simd: S, [d0, d1, d2]: [S::f32s; 3]) -> [S::f32s; 5] {
        let even = simd.add_f32s(d0, d2);
        let two = simd.splat_f32s(2.0);
        [
            d0,
            simd.add_f32s(even, d1),
            simd.sub_f32s(even, d1),
            simd.mul_add_e_f32s(two, simd.mul_add_e_f32s(two, d2, d1), d0),
            d2,
        ]
    }
}

impl Transform<4, 6> for Four {
    const FILTER: [[f32; 3]; 6] = [
        [0.25, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ];

    #[inline(always)]
    fn input<S: Simd>(simd: S, [d0, d1, d2, d3, d4, d5]: [S::f32s; 6]) -> [S::f32s; 6] {
        let (even1, odd1) = (times(simd, -4.0, d2, d4), times(simd, -4.0, d1, d3));
        let (even2, odd2) = (simd.sub_f32s(d4, d2), simd.sub_f32s(d3, d1));
        [
            times(simd, 4.0, d0, times(simd, -5.0, d2, d4)),
            simd.add_f32s(even1, odd1),
            simd.sub_f32s(even1, odd1),
            times(simd, 2.0, odd2, even2),
            times(simd, -2.0, odd2, even2),
            times(simd, 4.0, d1, times(simd, -5.0, d3, d5)),
        ]
    }

    #[inline(always)]
    fn input_adjoint<S: Simd>(simd: S, [v0, v1, v2, v3, v4, v5]: [S::f32s; 6]) -> [S::f32s; 6] {
        let (even1, odd1) = (simd.add_f32s(v1, v2), simd.sub_f32s(v1, v2));
        let even2 = simd.add_f32s(v3, v4);
        let half = simd.sub_f32s(v3, v4);
        let odd2 = simd.add_f32s(half, half);
        [
            simd.mul_f32s(simd.splat_f32s(4.0), v0),
            times(simd, 4.0, simd.sub_f32s(v5, odd1), simd.neg_f32s(odd2)),
            times(simd, -5.0, v0, times(simd, -4.0, even1, simd.neg_f32s(even2))),
            times(simd, -5.0, v5, simd.add_f32s(odd1, odd2)),
            simd.add_f32s(v0, simd.add_f32s(even1, even2)),
            v5,
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(simd: S, [v0, v1, v2, v3, v4, v5]: [S::f32s; 6]) -> [S::f32s; 4] {
        let (even1, odd1) = (simd.add_f32s(v1, v2), simd.sub_f32s(v1, v2));
        let (even2, odd2) = (simd.add_f32s(v3, v4), simd.sub_f32s(v3, v4));
        [
            simd.add_f32s(v0, simd.add_f32s(even1, even2)),
            times(simd, 2.0, odd2, odd1),
            times(simd, 4.0, even2, even1),
            times(simd, 8.0, odd2, simd.add_f32s(odd1, v5)),
        ]
    }

    #[inline(always)]
    fn output_adjoint<S: Simd>(simd: S, [d0, d1, d2, d3]: [S::f32s; 4]) -> [S::f32s; 6] {
        let (even1, odd1) = (simd.add_f32s(d0, d2), simd.add_f32s(d1, d3));
        let even2 = times(simd, 4.0, d2, d0);
        let half = times(simd, 4.0, d3, d1);
        [
            d0,
            simd.add_f32s(even1, odd1),
            simd.sub_f32s(even1, odd1),
            times(simd, 2.0, half, even2),
            times(simd, -2.0, half, even2),
            d3,
        ]
    }
}

impl Transform<6, 8> for Six {
    const FILTER: [[f32; 3]; 8] = [
        [-1.0, 0.0, 0.0],
        [-2.0 / 9.0, -2.0 / 9.0, -2.0 / 9.0],
        [-2.0 / 9.0, 2.0 / 9.0, -2.0 / 9.0],
        [1.0 / 90.0, 1.0 / 45.0, 2.0 / 45.0],
        [1.0 / 90.0, -1.0 / 45.0, 2.0 / 45.0],
        [32.0 / 45.0, 16.0 / 45.0, 8.0 / 45.0],
        [32.0 / 45.0, -16.0 / 45.0, 8.0 / 45.0],
        [0.0, 0.0, 1.0],
    ];

    #[inline(always)]
    fn input<S: Simd>(simd: S, [d0, d1, d2, d3, d4, d5, d6, d7]: [S::f32s; 8]) -> [S::f32s; 8] {
        let (even1, odd1) =
            (times(simd, -4.25, d4, simd.add_f32s(d6, d2)), times(simd, -4.25, d3, simd.add_f32s(d5, d1)));
        let (even2, odd2) = (
            times(simd, 0.25, d2, times(simd, -1.25, d4, d6)),
            times(simd, 0.25, d1, times(simd, -1.25, d3, d5)),
        );
        let (even3, odd3) = (
            times(simd, 4.0, d2, times(simd, -5.0, d4, d6)),
            times(simd, 4.0, d1, times(simd, -5.0, d3, d5)),
        );
        [
            times(simd, 5.25, simd.sub_f32s(d2, d4), simd.sub_f32s(d6, d0)),
            simd.add_f32s(even1, odd1),
            simd.sub_f32s(even1, odd1),
            times(simd, 2.0, odd2, even2),
            times(simd, -2.0, odd2, even2),
            times(simd, 0.5, odd3, even3),
            times(simd, -0.5, odd3, even3),
            times(simd, 5.25, simd.sub_f32s(d3, d5), simd.sub_f32s(d7, d1)),
        ]
    }

    #[inline(always)]
    fn input_adjoint<S: Simd>(simd: S, [v0, v1, v2, v3, v4, v5, v6, v7]: [S::f32s; 8]) -> [S::f32s; 8] {
        let (even1, odd1) = (simd.add_f32s(v1, v2), simd.sub_f32s(v1, v2));
        let even2 = simd.add_f32s(v3, v4);
        let half = simd.sub_f32s(v3, v4);
        let odd2 = simd.add_f32s(half, half);
        let even3 = simd.add_f32s(v5, v6);
        let odd3 = simd.mul_f32s(simd.splat_f32s(0.5), simd.sub_f32s(v5, v6));
        // the terms of d2 and d1, of d4 and d3, of d6 and d5
        let first = |simd, one, two, three| times(simd, 4.0, three, times(simd, 0.25, two, one));
        let second = |simd: S, one, two, three| {
            let sum = times(simd, -1.25, two, simd.mul_f32s(simd.splat_f32s(-4.25), one));
            times(simd, -5.0, three, sum)
        };
        let third = |simd: S, one, two, three| simd.add_f32s(simd.add_f32s(one, two), three);
        [
            simd.neg_f32s(v0),
            simd.sub_f32s(first(simd, odd1, odd2, odd3), v7),
            times(simd, 5.25, v0, first(simd, even1, even2, even3)),
            times(simd, 5.25, v7, second(simd, odd1, odd2, odd3)),
            times(simd, -5.25, v0, second(simd, even1, even2, even3)),
            times(simd, -5.25, v7, third(simd, odd1, odd2, odd3)),
            simd.add_f32s(v0, third(simd, even1, even2, even3)),
            v7,
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(simd: S, [v0, v1, v2, v3, v4, v5, v6, v7]: [S::f32s; 8]) -> [S::f32s; 6] {
        let (even1, odd1) = (simd.add_f32s(v1, v2), simd.sub_f32s(v1, v2));
        let (even2, odd2) = (simd.add_f32s(v3, v4), simd.sub_f32s(v3, v4));
        let (even3, odd3) = (simd.add_f32s(v5, v6), simd.sub_f32s(v5, v6));
        [
            simd.add_f32s(simd.add_f32s(v0, even1), simd.add_f32s(even2, even3)),
            times(simd, 2.0, odd2, times(simd, 0.5, odd3, odd1)),
            times(simd, 4.0, even2, times(simd, 0.25, even3, even1)),
            times(simd, 8.0, odd2, times(simd, 0.125, odd3, odd1)),
            times(simd, 16.0, even2, times(simd, 0.0625, even3, even1)),
            times(simd, 32.0, odd2, times(simd, 0.03125, odd3, simd.add_f32s(odd1, v7))),
        ]
    }

    #[inline(always)]
    fn output_adjoint<S: Simd>(simd: S, [d0, d1, d2, d3, d4, d5]: [S::f32s; 6]) -> [S::f32s; 8] {
        let (even1, odd1) =
            (simd.add_f32s(d0, simd.add_f32s(d2, d4)), simd.add_f32s(d1, simd.add_f32s(d3, d5)));
        let even2 = times(simd, 16.0, d4, times(simd, 4.0, d2, d0));
        let odd2 = times(simd, 16.0, d5, times(simd, 4.0, d3, d1));
        let even3 = times(simd, 0.0625, d4, times(simd, 0.25, d2, d0));
        let odd3 = times(simd, 0.0625, d5, times(simd, 0.25, d3, d1));
        [
            d0,
            simd.add_f32s(even1, odd1),
            simd.sub_f32s(even1, odd1),
            times(simd, 2.0, odd2, even2),
            times(simd, -2.0, odd2, even2),
            times(simd, 0.5, odd3, even3),
            times(simd, -0.5, odd3, even3),
            d5,
        ]
    }
}

/// A two-dimensional transform of vectors of the caller's `S`: `line` on columns, then on rows, of which `store` gets one after the other.
///
/// What lies between is not filled with zeros first, which took up to a tenth of the time.
macro_rules! two_dimensional {
    ($simd:expr, $line:path, $from:expr => $to:expr, ($i:ident, $j:ident) => $load:expr, ($k:ident, $row:ident) => $store:expr) => {{
        let zero = $simd.splat_f32s(0.0);
        let mut middle = [[const { std::mem::MaybeUninit::<S::f32s>::uninit() }; $from]; $to];
        for $j in 0..$from {
            let mut column = [zero; $from];
            for $i in 0..$from {
                column[$i] = $load;
            }
            let column = $line($simd, column);
            for i in 0..$to {
                middle[i][$j].write(column[i]);
            }
        }
        for $k in 0..$to {
            let mut row = [zero; $from];
            for j in 0..$from {
                // SAFETY: the loop above has written all columns of all rows
                row[j] = unsafe { middle[$k][j].assume_init() };
            }
            let $row = $line($simd, row);
            $store;
        }
    }};
}
pub(super) use two_dimensional;
