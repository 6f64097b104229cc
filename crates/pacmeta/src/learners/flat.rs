//! Passes over flat vectors, vectorised for the processor at hand. Each adds in an order fixed by the length and the
//! processor's vectors.
//!
//! Sums run in [`LANES`] partial sums, enough to hide the latency of a fused multiply-add. Chunks are copied to local arrays
//! first: otherwise the compiler must reckon with overlapping slices and makes no vectors of the lanes.

use pulp::{Arch, Simd, WithSimd};

const LANES: usize = 16;

/// v <- scale (v + coefficient along); returns v . onto.
pub(crate) fn move_and_project(
    vector: &mut [f64],
    coefficient: f64,
    along: &[f64],
    scale: f64,
    onto: &[f64],
) -> f64 {
    Arch::new().dispatch(MoveAndProject { vector, coefficient, along, scale, onto })
}

struct MoveAndProject<'a> {
    vector: &'a mut [f64],
    coefficient: f64,
    along: &'a [f64],
    scale: f64,
    onto: &'a [f64],
}

impl WithSimd for MoveAndProject<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Self { coefficient, scale, .. } = self;
        let (wide_coefficient, wide_scale) = (simd.splat_f64s(coefficient), simd.splat_f64s(scale));
        let mut sums = [simd.splat_f64s(0.0); 4];
        let (vectors, vector_rest) = S::as_mut_simd_f64s(self.vector);
        let (alongs, along_rest) = S::as_simd_f64s(self.along);
        let (ontos, onto_rest) = S::as_simd_f64s(self.onto);
        let (fours, last) = vectors.as_chunks_mut::<4>();
        let (along_fours, along_last) = alongs.as_chunks::<4>();
        let (onto_fours, onto_last) = ontos.as_chunks::<4>();
        for ((vector, along), onto) in fours.iter_mut().zip(along_fours).zip(onto_fours) {
            for k in 0..4 {
                let moved = simd.mul_add_e_f64s(wide_coefficient, along[k], vector[k]);
                vector[k] = simd.mul_f64s(wide_scale, moved);
                sums[k] = simd.mul_add_e_f64s(vector[k], onto[k], sums[k]);
            }
        }
        for ((vector, along), onto) in last.iter_mut().zip(along_last).zip(onto_last) {
            let moved = simd.mul_add_e_f64s(wide_coefficient, *along, *vector);
            *vector = simd.mul_f64s(wide_scale, moved);
            sums[0] = simd.mul_add_e_f64s(*vector, *onto, sums[0]);
        }
        let mut rest = 0.0;
        for ((value, along), onto) in vector_rest.iter_mut().zip(along_rest).zip(onto_rest) {
            *value = scale * coefficient.mul_add(*along, *value);
            rest += *value * onto;
        }
        let pairs = simd.add_f64s(simd.add_f64s(sums[0], sums[2]), simd.add_f64s(sums[1], sums[3]));
        simd.reduce_sum_f64s(pairs) + rest
    }
}

/// result <- a + factor b.
pub(crate) fn combine(result: &mut [f64], a: &[f64], factor: f64, b: &[f64]) {
    Arch::new().dispatch(Combine { result, a, factor, b });
}

struct Combine<'a> {
    result: &'a mut [f64],
    a: &'a [f64],
    factor: f64,
    b: &'a [f64],
}

impl WithSimd for Combine<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((result, a), b) in self.result.iter_mut().zip(self.a).zip(self.b) {
            *result = self.factor.mul_add(*b, *a);
        }
    }
}

/// result <- a - b; returns result . with.
pub(crate) fn difference(result: &mut [f64], a: &[f64], b: &[f64], with: With<'_>) -> f64 {
    match with {
        With::Itself => Arch::new().dispatch(Difference::<true> { result, a, b, with: &[] }),
        With::Vector(with) => Arch::new().dispatch(Difference::<false> { result, a, b, with }),
    }
}

/// What a result is multiplied with.
pub(crate) enum With<'a> {
    /// Itself: the square of its length.
    Itself,
    /// Another vector.
    Vector(&'a [f64]),
}

struct Difference<'a, const SQUARE: bool> {
    result: &'a mut [f64],
    a: &'a [f64],
    b: &'a [f64],
    with: &'a [f64],
}

impl<const SQUARE: bool> WithSimd for Difference<'_, SQUARE> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { result, a, b, with } = self;
        let with = if SQUARE { a } else { with };
        let mut sums = [0.0; LANES];
        let (results, result_rest) = result.as_chunks_mut::<LANES>();
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let (with, with_rest) = with.as_chunks::<LANES>();
        for (((result, a), b), with) in results.iter_mut().zip(a).zip(b).zip(with) {
            let (mut difference, b, with) = (*a, *b, *with);
            for lane in 0..LANES {
                difference[lane] -= b[lane];
            }
            *result = difference;
            let other = if SQUARE { difference } else { with };
            for lane in 0..LANES {
                sums[lane] = difference[lane].mul_add(other[lane], sums[lane]);
            }
        }
        let mut rest = 0.0;
        for (((result, a), b), with) in result_rest.iter_mut().zip(a_rest).zip(b_rest).zip(with_rest) {
            *result = a - b;
            rest += *result * if SQUARE { *result } else { *with };
        }
        total(sums) + rest
    }
}

/// gradient <- gradient + factor (q - p); returns |q - p|^2.
pub(crate) fn add_pull(gradient: &mut [f64], factor: f64, q: &[f64], p: &[f64]) -> f64 {
    Arch::new().dispatch(AddPull { gradient, factor, q, p })
}

struct AddPull<'a> {
    gradient: &'a mut [f64],
    factor: f64,
    q: &'a [f64],
    p: &'a [f64],
}

impl WithSimd for AddPull<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { gradient, factor, q, p } = self;
        let mut sums = [0.0; LANES];
        let (gradients, gradient_rest) = gradient.as_chunks_mut::<LANES>();
        let ((q, q_rest), (p, p_rest)) = (q.as_chunks::<LANES>(), p.as_chunks::<LANES>());
        for ((gradient, q), p) in gradients.iter_mut().zip(q).zip(p) {
            let (mut difference, p, mut sum) = (*q, *p, *gradient);
            for lane in 0..LANES {
                difference[lane] -= p[lane];
                sum[lane] = factor.mul_add(difference[lane], sum[lane]);
            }
            *gradient = sum;
            for lane in 0..LANES {
                sums[lane] = difference[lane].mul_add(difference[lane], sums[lane]);
            }
        }
        let mut rest = 0.0;
        for ((gradient, q), p) in gradient_rest.iter_mut().zip(q_rest).zip(p_rest) {
            let difference = q - p;
            *gradient = factor.mul_add(difference, *gradient);
            rest += difference * difference;
        }
        total(sums) + rest
    }
}

/// The largest absolute value; NaN counts as nothing.
pub(crate) fn largest(values: &[f64]) -> f64 {
    Arch::new().dispatch(Largest(values))
}

struct Largest<'a>(&'a [f64]);

impl WithSimd for Largest<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let larger = |largest: f64, value: f64| if value.abs() > largest { value.abs() } else { largest };
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for chunk in chunks {
            for lane in 0..LANES {
                lanes[lane] = larger(lanes[lane], chunk[lane]);
            }
        }
        rest.iter().chain(&lanes).fold(0.0, |largest, value| larger(largest, *value))
    }
}

#[inline(always)]
fn total(sums: [f64; LANES]) -> f64 {
    let four: [f64; 4] =
        std::array::from_fn(|lane| (sums[lane] + sums[lane + 8]) + (sums[lane + 4] + sums[lane + 12]));
    (four[0] + four[2]) + (four[1] + four[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: usize, length: usize) -> Vec<f64> {
        (0..length).map(|i| (((i + 1) * 7919 * (seed + 3)) % 1009) as f64 / 500.0 - 1.0).collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12 * (1.0 + b.abs())
    }

    #[test]
    fn passes_agree_with_their_formulas_for_every_remainder() {
        for length in (0..40).chain([1153]) {
            let [a, b, c] = [1, 2, 3].map(|seed| vector(seed, length));
            let mut moved = a.clone();
            let projection = move_and_project(&mut moved, 0.7, &b, -1.5, &c);
            let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| -1.5 * (a + 0.7 * b)).collect();
            assert!(moved.iter().zip(&expected).all(|(x, y)| close(*x, *y)));
            assert!(close(projection, dot(&expected, &c)), "{length}");

            let mut result = vec![9.0; length];
            combine(&mut result, &a, -0.3, &b);
            assert!((0..length).all(|i| close(result[i], a[i] - 0.3 * b[i])));

            let minus: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
            assert!(close(difference(&mut result, &a, &b, With::Itself), dot(&minus, &minus)));
            assert_eq!(result, minus);
            assert!(close(difference(&mut result, &a, &b, With::Vector(&c)), dot(&minus, &c)));

            let mut gradient = c.clone();
            assert!(close(add_pull(&mut gradient, 4.0, &a, &b), dot(&minus, &minus)));
            assert!((0..length).all(|i| close(gradient[i], c[i] + 4.0 * minus[i])));
            assert_eq!(largest(&a), a.iter().fold(0.0, |largest: f64, value| largest.max(value.abs())));
        }
        assert_eq!(largest(&[1.0, f64::NAN, -3.0]), 3.0);
    }
}
