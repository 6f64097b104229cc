//! Passes over vectors as long as a head, vectorised for the processor at hand. Each is elementwise or adds in an order
//! fixed by the length and the processor's vectors.

use pacmeta_tensor::Element;
use pulp::{Arch, Simd, WithSimd};

/// output = a + b.
pub(crate) fn sum<E: Element>(output: &mut [E], a: &[E], b: &[E]) {
    Arch::new().dispatch(Sum { output, a, b });
}

struct Sum<'a, E> {
    output: &'a mut [E],
    a: &'a [E],
    b: &'a [E],
}

impl<E: Element> WithSimd for Sum<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (outputs, output_rest) = E::split_mut::<S>(self.output);
        let ((a, a_rest), (b, b_rest)) = (E::split::<S>(self.a), E::split::<S>(self.b));
        for ((output, a), b) in outputs.iter_mut().zip(a).zip(b) {
            *output = E::plus(simd, *a, *b);
        }
        for ((output, a), b) in output_rest.iter_mut().zip(a_rest).zip(b_rest) {
            *output = *a + *b;
        }
    }
}

/// output += factor * a.
pub(crate) fn add_product<E: Element>(output: &mut [E], factor: E, a: &[E]) {
    Arch::new().dispatch(AddProduct { output, factor, a });
}

struct AddProduct<'a, E> {
    output: &'a mut [E],
    factor: E,
    a: &'a [E],
}

impl<E: Element> WithSimd for AddProduct<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let factor = E::splat(simd, self.factor);
        let (outputs, output_rest) = E::split_mut::<S>(self.output);
        let (a, a_rest) = E::split::<S>(self.a);
        for (output, a) in outputs.iter_mut().zip(a) {
            *output = E::multiply_add(simd, factor, *a, *output);
        }
        for (output, a) in output_rest.iter_mut().zip(a_rest) {
            *output += self.factor * *a;
        }
    }
}

/// output += factor * (a - b).
pub(crate) fn add_difference<E: Element>(output: &mut [E], factor: E, a: &[E], b: &[E]) {
    Arch::new().dispatch(AddDifference { output, factor, a, b });
}

struct AddDifference<'a, E> {
    output: &'a mut [E],
    factor: E,
    a: &'a [E],
    b: &'a [E],
}

impl<E: Element> WithSimd for AddDifference<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let factor = E::splat(simd, self.factor);
        let (outputs, output_rest) = E::split_mut::<S>(self.output);
        let ((a, a_rest), (b, b_rest)) = (E::split::<S>(self.a), E::split::<S>(self.b));
        for ((output, a), b) in outputs.iter_mut().zip(a).zip(b) {
            *output = E::multiply_add(simd, factor, E::subtract(simd, *a, *b), *output);
        }
        for ((output, a), b) in output_rest.iter_mut().zip(a_rest).zip(b_rest) {
            *output += self.factor * (*a - *b);
        }
    }
}

/// |a - b|^2.
pub(crate) fn squared_distance<E: Element>(a: &[E], b: &[E]) -> f64 {
    Arch::new().dispatch(SquaredDistance { a, b })
}

struct SquaredDistance<'a, E> {
    a: &'a [E],
    b: &'a [E],
}

impl<E: Element> WithSimd for SquaredDistance<'_, E> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let ((a, a_rest), (b, b_rest)) = (E::split::<S>(self.a), E::split::<S>(self.b));
        let mut sums = [E::splat(simd, E::ZERO); 4];
        for (a, b) in a.chunks(4).zip(b.chunks(4)) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                let difference = E::subtract(simd, *a, *b);
                *sum = E::multiply_add(simd, difference, difference, *sum);
            }
        }
        let mut total = 0.0;
        for sum in sums {
            total += E::total(simd, sum).to_f64();
        }
        for (a, b) in a_rest.iter().zip(b_rest) {
            let difference = (*a - *b).to_f64();
            total += difference * difference;
        }
        total
    }
}

/// Whether every number is finite: 0 times any other is not a zero.
pub(crate) fn all_finite<E: Element>(values: &[E]) -> bool {
    Arch::new().dispatch(AllFinite(values))
}

struct AllFinite<'a, E>(&'a [E]);

impl<E: Element> WithSimd for AllFinite<'_, E> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let zero = E::splat(simd, E::ZERO);
        let mut sum = zero;
        let (values, rest) = E::split::<S>(self.0);
        for value in values {
            sum = E::multiply_add(simd, *value, zero, sum);
        }
        E::total(simd, sum) == E::ZERO && rest.iter().all(|value| value.is_finite())
    }
}

/// Adagrad: a += d^2; w -= rate d / sqrt(a).
pub(super) fn adagrad<E: Element>(offset: &mut [E], accumulator: &mut [E], direction: &[E], rate: E) {
    Arch::new().dispatch(Adagrad { offset, accumulator, direction, rate });
}

struct Adagrad<'a, E> {
    offset: &'a mut [E],
    accumulator: &'a mut [E],
    direction: &'a [E],
    rate: E,
}

impl<E: Element> WithSimd for Adagrad<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rate = E::splat(simd, self.rate);
        let (offsets, offset_rest) = E::split_mut::<S>(self.offset);
        let (accumulators, accumulator_rest) = E::split_mut::<S>(self.accumulator);
        let (directions, direction_rest) = E::split::<S>(self.direction);
        for ((w, a), d) in offsets.iter_mut().zip(accumulators).zip(directions) {
            *a = E::multiply_add(simd, *d, *d, *a);
            let step = E::divide(simd, E::multiply(simd, rate, *d), E::root(simd, *a));
            *w = E::subtract(simd, *w, step);
        }
        for ((w, a), d) in offset_rest.iter_mut().zip(accumulator_rest).zip(direction_rest) {
            *a += *d * *d;
            *w -= self.rate * *d / a.sqrt();
        }
    }
}

/// Adagrad's step backwards. In: the adjoints of w and a after the step, d, and a after the step. Out: the adjoint of d in
/// `direction_adjoint`, and that of a before the step in its place (that of w passes through unchanged):
///
/// ```text
/// a' := a' + rate w' d / (2 a^(3/2)),   d' = 2 d a' - rate w' / sqrt(a)
/// ```
pub(super) fn adagrad_back<E: Element>(
    offset_adjoint: &[E],
    accumulator_adjoint: &mut [E],
    direction_adjoint: &mut [E],
    (direction, accumulator): (&[E], &[E]),
    rate: E,
) {
    Arch::new().dispatch(AdagradBack {
        offset_adjoint,
        accumulator_adjoint,
        direction_adjoint,
        direction,
        accumulator,
        rate,
    });
}

struct AdagradBack<'a, E> {
    offset_adjoint: &'a [E],
    accumulator_adjoint: &'a mut [E],
    direction_adjoint: &'a mut [E],
    direction: &'a [E],
    accumulator: &'a [E],
    rate: E,
}

impl<E: Element> WithSimd for AdagradBack<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let half = E::from_f64(0.5);
        let two = E::from_f64(2.0);
        let (wide_rate, wide_half, wide_two) =
            (E::splat(simd, self.rate), E::splat(simd, half), E::splat(simd, two));
        let (w, w_rest) = E::split::<S>(self.offset_adjoint);
        let (a, a_rest) = E::split_mut::<S>(self.accumulator_adjoint);
        let (d, d_rest) = E::split_mut::<S>(self.direction_adjoint);
        let (direction, direction_rest) = E::split::<S>(self.direction);
        let (accumulator, accumulator_rest) = E::split::<S>(self.accumulator);
        for ((((w, a), d), direction), accumulator) in w.iter().zip(a).zip(d).zip(direction).zip(accumulator)
        {
            let slope = E::divide(simd, E::multiply(simd, wide_rate, *w), E::root(simd, *accumulator));
            let bend = E::divide(simd, E::multiply(simd, wide_half, *direction), *accumulator);
            *a = E::multiply_add(simd, slope, bend, *a);
            *d = E::subtract(simd, E::multiply(simd, E::multiply(simd, wide_two, *direction), *a), slope);
        }
        let rest = w_rest.iter().zip(a_rest).zip(d_rest).zip(direction_rest).zip(accumulator_rest);
        for ((((w, a), d), direction), accumulator) in rest {
            let slope = self.rate * *w / accumulator.sqrt();
            *a += slope * (half * *direction / *accumulator);
            *d = two * *direction * *a - slope;
        }
    }
}
