//! Loops over kernel matrices k = scale exp(-|f - f'|^2), vectorised along rows, and their derivatives.

use pacmeta_tensor::simd::{PADDING, dot, elementary, padded};
use pulp::{Arch, Simd, WithSimd};

use super::{Points, PointsGradient};

/// K of the points with themselves: entries (i, j) for j >= i (whole cache lines), zero in the padding.
pub(super) fn upper_kernel(arch: Arch, points: &Points, scale: f64, kernel: &mut Vec<f64>) {
    let stride = points.stride();
    kernel.resize(points.count * stride, 0.0);
    arch.dispatch(KernelRows { points, others: points, scale, kernel, triangle: Triangle::Upper });
}

/// K(S', S) with one row an example of S' (`rows`) and one column an example of S (`columns`), zero in the padding.
pub(super) fn cross_kernel(arch: Arch, rows: &Points, columns: &Points, scale: f64, kernel: &mut Vec<f64>) {
    kernel.resize(rows.count * columns.stride(), 0.0);
    arch.dispatch(KernelRows { points: rows, others: columns, scale, kernel, triangle: Triangle::All });
}

#[derive(Clone, Copy, PartialEq)]
enum Triangle {
    Upper,
    All,
}

struct KernelRows<'a> {
    points: &'a Points,
    others: &'a Points,
    scale: f64,
    kernel: &'a mut [f64],
    triangle: Triangle,
}

impl WithSimd for KernelRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (stride, count) = (self.others.stride(), self.others.count);
        if count == 0 {
            return;
        }
        let vectors = stride / S::F64_LANES;
        for row in 0..self.kernel.len() / stride {
            let line = if self.triangle == Triangle::Upper { row / PADDING * PADDING } else { 0 };
            let mut vector = line / S::F64_LANES;
            while vectors - vector >= elementary::GROUP {
                self.vectors::<S, { elementary::GROUP }>(simd, row, vector);
                vector += elementary::GROUP;
            }
            while vector < vectors {
                self.vectors::<S, 1>(simd, row, vector);
                vector += 1;
            }
            self.kernel[row * stride + count..(row + 1) * stride].fill(0.0);
        }
    }
}

impl KernelRows<'_> {
    /// `N` vectors of a row, from the given one on.
    #[inline(always)]
    fn vectors<S: Simd, const N: usize>(&mut self, simd: S, row: usize, first: usize) {
        let mut values = [simd.splat_f64s(0.0); N];
        for dimension in 0..self.points.feature_dimension {
            let here = simd.splat_f64s(self.points.feature(dimension)[row]);
            let there = &S::as_simd_f64s(self.others.feature(dimension)).0[first..first + N];
            for i in 0..N {
                let difference = simd.sub_f64s(here, there[i]);
                values[i] = simd.negate_mul_add_e_f64s(difference, difference, values[i]);
            }
        }
        elementary::exp_vectors(simd, &mut values);
        let stride = self.others.stride();
        let places = S::as_mut_simd_f64s(&mut self.kernel[row * stride..(row + 1) * stride]).0;
        for i in 0..N {
            places[first + i] = simd.mul_f64s(simd.splat_f64s(self.scale), values[i]);
        }
    }
}

/// From X with A^-1 = X' X computes `solution` a = A^-1 r = X' (X r), and returns r . a.
pub(super) fn apply_inverse(
    arch: Arch,
    inverse_factor: &[f64],
    residual: &[f64],
    solution: &mut Vec<f64>,
    size: usize,
) -> f64 {
    let stride = padded(size);
    solution.clear();
    solution.resize(stride, 0.0);
    arch.dispatch(ApplyInverse { inverse_factor: &inverse_factor[..size * stride], residual, solution })
}

struct ApplyInverse<'a> {
    inverse_factor: &'a [f64],
    residual: &'a [f64],
    solution: &'a mut [f64],
}

impl WithSimd for ApplyInverse<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let stride = self.solution.len();
        for (row, values) in self.inverse_factor.chunks_exact(stride).enumerate() {
            let end = padded(row + 1);
            let entry = dot(&values[..end], &self.residual[..end]);
            for (sum, value) in self.solution[..end].iter_mut().zip(values) {
                *sum = entry.mul_add(*value, *sum);
            }
        }
        dot(self.residual, self.solution)
    }
}

/// sum_ij A_ij B_ij of two symmetric matrices, from their upper triangles.
pub(super) fn symmetric_product(arch: Arch, left: &[f64], right: &[f64], size: usize) -> f64 {
    arch.dispatch(SymmetricProduct { left, right, size })
}

struct SymmetricProduct<'a> {
    left: &'a [f64],
    right: &'a [f64],
    size: usize,
}

impl WithSimd for SymmetricProduct<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let stride = padded(self.size);
        let (mut diagonal, mut above) = (0.0, 0.0);
        for row in 0..self.size {
            let range = row * stride + row..(row + 1) * stride;
            let (left, right) = (&self.left[range.clone()], &self.right[range]);
            diagonal += left[0] * right[0];
            above += dot(&left[1..], &right[1..]);
        }
        diagonal + 2.0 * above
    }
}

/// v . A v of a symmetric matrix, from its upper triangle.
pub(super) fn quadratic_form(arch: Arch, matrix: &[f64], vector: &[f64], size: usize) -> f64 {
    arch.dispatch(QuadraticForm { matrix, vector, size })
}

struct QuadraticForm<'a> {
    matrix: &'a [f64],
    vector: &'a [f64],
    size: usize,
}

impl WithSimd for QuadraticForm<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let stride = padded(self.size);
        let mut sum = 0.0;
        for row in 0..self.size {
            let values = &self.matrix[row * stride + row..(row + 1) * stride];
            let here = self.vector[row];
            let others = dot(&values[1..], &self.vector[row + 1..]);
            sum += here * (values[0] * here + 2.0 * others);
        }
        sum
    }
}

/// Adds to the gradient what the symmetric adjoint of K (upper triangle) means for the features, and returns
/// sum_ij adjoint_ij K_ij (which divided by the scale is the derivative with respect to it).
pub(super) fn through_own_kernel(
    arch: Arch,
    points: &Points,
    kernel: &[f64],
    adjoint: &[f64],
    gradient: &mut PointsGradient,
) -> f64 {
    arch.dispatch(ThroughOwnKernel { points, kernel, adjoint, gradient })
}

struct ThroughOwnKernel<'a> {
    points: &'a Points,
    kernel: &'a [f64],
    adjoint: &'a [f64],
    gradient: &'a mut PointsGradient,
}

impl WithSimd for ThroughOwnKernel<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { points, kernel, adjoint, gradient } = self;
        let stride = points.stride();
        let mut diagonal = 0.0;
        let mut above = 0.0;
        for row in 0..points.count {
            // The pair (i, j), i < j, stands for both (i, j) and (j, i):
            // d/df_i = -4 adjoint_ij K_ij (f_i - f_j) = -d/df_j.
            let first = row / PADDING * PADDING;
            let kernel = &kernel[row * stride..(row + 1) * stride];
            let adjoint = &adjoint[row * stride..(row + 1) * stride];
            diagonal += adjoint[row] * kernel[row];
            // columns first..row are below the diagonal
            let mut head = [0.0; PADDING];
            for lane in 0..PADDING {
                head[lane] =
                    if first + lane > row { adjoint[first + lane] * kernel[first + lane] } else { 0.0 };
            }
            above += head.iter().sum::<f64>();
            let second = first + PADDING;
            above += dot(&adjoint[second..], &kernel[second..]);
            for dimension in 0..points.feature_dimension {
                let features = points.feature(dimension);
                let here = features[row];
                let derivative = &mut gradient.features[dimension * stride..(dimension + 1) * stride];
                let mut own = [0.0; PADDING];
                for lane in 0..PADDING {
                    let pull = 4.0 * head[lane] * (here - features[first + lane]);
                    derivative[first + lane] += pull;
                    own[lane] = pull;
                }
                let (weights, _) = kernel[second..].as_chunks::<PADDING>();
                let (adjoints, _) = adjoint[second..].as_chunks::<PADDING>();
                let (there, _) = features[second..].as_chunks::<PADDING>();
                let (targets, _) = derivative[second..].as_chunks_mut::<PADDING>();
                for (((weight, adjoint), there), target) in
                    weights.iter().zip(adjoints).zip(there).zip(targets.iter_mut())
                {
                    for lane in 0..PADDING {
                        let pull = 4.0 * weight[lane] * adjoint[lane] * (here - there[lane]);
                        target[lane] += pull;
                        own[lane] += pull;
                    }
                }
                derivative[row] -= own.iter().sum::<f64>();
            }
        }
        diagonal + 2.0 * above
    }
}

/// The same for a cross kernel K(S', S): adds to both gradients.
pub(super) fn through_cross_kernel(
    arch: Arch,
    (rows, row_gradient): (&Points, &mut PointsGradient),
    (columns, column_gradient): (&Points, &mut PointsGradient),
    weighted: &[f64],
) {
    arch.dispatch(ThroughCrossKernel { rows, row_gradient, columns, column_gradient, weighted });
}

struct ThroughCrossKernel<'a> {
    rows: &'a Points,
    row_gradient: &'a mut PointsGradient,
    columns: &'a Points,
    column_gradient: &'a mut PointsGradient,
    /// adjoint_kj K_kj
    weighted: &'a [f64],
}

impl WithSimd for ThroughCrossKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { rows, row_gradient, columns, column_gradient, weighted } = self;
        let (row_stride, stride) = (rows.stride(), columns.stride());
        for dimension in 0..rows.feature_dimension {
            let there = columns.feature(dimension).as_chunks::<PADDING>().0;
            let derivative = column_gradient.features[dimension * stride..(dimension + 1) * stride]
                .as_chunks_mut::<PADDING>()
                .0;
            for (row, weighted) in weighted.chunks_exact(stride).enumerate() {
                let here = 2.0 * rows.feature(dimension)[row];
                let mut own = [0.0; PADDING];
                let weighted = weighted.as_chunks::<PADDING>().0;
                for ((weight, there), target) in weighted.iter().zip(there).zip(derivative.iter_mut()) {
                    for lane in 0..PADDING {
                        let pull = weight[lane] * there[lane].mul_add(-2.0, here);
                        target[lane] += pull;
                        own[lane] += pull;
                    }
                }
                let [a, b, c, d, e, f, g, h] = own;
                row_gradient.features[dimension * row_stride + row] -=
                    ((a + e) + (c + g)) + ((b + f) + (d + h));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pacmeta_tensor::simd::every_arch;

    use super::*;

    fn points(count: usize, dimensions: usize, seed: f64) -> Points {
        let mut points = Points::default();
        points.reset(count, dimensions);
        for dimension in 0..dimensions {
            let feature = |i: usize| (1.3 * i as f64 + seed + 2.1 * dimension as f64).sin();
            points.set_feature(dimension, (0..count).map(feature));
        }
        points
    }

    fn by_the_book(points: &Points, i: usize, others: &Points, j: usize, scale: f64) -> f64 {
        let dimensions = 0..points.feature_dimension;
        let squares: f64 = dimensions.map(|d| (points.feature(d)[i] - others.feature(d)[j]).powi(2)).sum();
        scale * (-squares).exp()
    }

    /// Counts below, at and above whole vectors and whole groups of them.
    #[test]
    fn kernels_are_right_on_every_instruction_set() {
        let scale = 0.5;
        for arch in every_arch() {
            for (rows, columns, dimensions) in
                [(1, 1, 1), (3, 7, 2), (8, 8, 2), (5, 13, 3), (21, 33, 2), (9, 70, 1)]
            {
                let (left, right) = (points(rows, dimensions, 0.2), points(columns, dimensions, 0.9));
                let (mut cross, mut upper) = (Vec::new(), Vec::new());
                cross_kernel(arch, &left, &right, scale, &mut cross);
                upper_kernel(arch, &right, scale, &mut upper);
                let stride = padded(columns);
                assert_eq!((cross.len(), upper.len()), (rows * stride, columns * stride));
                for (i, row) in cross.chunks_exact(stride).enumerate() {
                    for (j, value) in row.iter().enumerate() {
                        let expected =
                            if j < columns { by_the_book(&left, i, &right, j, scale) } else { 0.0 };
                        assert!(
                            (value - expected).abs() < 2e-15,
                            "{arch:?}: cross ({i}, {j}) of {rows} x {columns}"
                        );
                    }
                }
                for (i, row) in upper.chunks_exact(stride).enumerate() {
                    for (j, value) in row.iter().enumerate().skip(i) {
                        let expected =
                            if j < columns { by_the_book(&right, i, &right, j, scale) } else { 0.0 };
                        assert!((value - expected).abs() < 2e-15, "{arch:?}: own ({i}, {j}) of {columns}");
                    }
                }
            }
        }
    }
}
