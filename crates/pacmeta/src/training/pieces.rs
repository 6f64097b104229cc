//! Passes over vectors as long as an encoder has parameters, in pieces of a fixed size on all threads.
//!
//! Such a pass waits for memory, and one core does not use all of its width. What comes out does not depend on the number of threads: sums
//! run inside a piece and then over pieces in order. A vector of one piece stays on the calling thread.

use rayon::prelude::*;

/// Numbers in a piece: large enough that handing it to a thread costs nothing, small enough for every thread to get many.
pub(crate) const PIECE: usize = 1 << 15;

/// sum += factor * values.
pub(crate) fn add_scaled(sum: &mut [f64], factor: f64, values: &[f32]) {
    sum.par_chunks_mut(PIECE).zip(values.par_chunks(PIECE)).for_each(|(sum, values)| {
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum += factor * f64::from(*value);
        }
    });
}

/// Values in single precision.
pub(crate) fn round_into(values: &[f64], single: &mut [f32]) {
    single.par_chunks_mut(PIECE).zip(values.par_chunks(PIECE)).for_each(|(single, values)| {
        for (single, value) in single.iter_mut().zip(values) {
            *single = *value as f32;
        }
    });
}

/// Whether all values are finite in single precision.
pub(crate) fn fit_single(values: &[f64]) -> bool {
    // without an early end inside a piece, which would keep it from being vectors
    values
        .par_chunks(PIECE)
        .all(|piece| piece.iter().fold(true, |fit, value| fit & (*value as f32).is_finite()))
}

/// values <- factor * values.
pub(crate) fn scale(values: &mut [f64], factor: f64) {
    values.par_chunks_mut(PIECE).for_each(|piece| piece.iter_mut().for_each(|value| *value *= factor));
}

/// values <- 0.
pub(crate) fn clear(values: &mut [f64]) {
    values.par_chunks_mut(PIECE).for_each(|piece| piece.fill(0.0));
}

/// The sum of the squares.
pub(crate) fn sum_of_squares(values: &[f64]) -> f64 {
    let sums: Vec<f64> = values.par_chunks(PIECE).map(squares_of_piece).collect();
    sums.iter().sum()
}

/// Eight sums side by side, which is what makes it vectors.
fn squares_of_piece(piece: &[f64]) -> f64 {
    let (eights, rest) = piece.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += value * value;
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|value| value * value).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths around the ends of pieces and of vectors.
    const LENGTHS: [usize; 6] = [0, 1, 13, PIECE, PIECE + 1, 3 * PIECE + 11];

    fn numbers(length: usize) -> Vec<f64> {
        (0..length).map(|place| (place as f64 * 0.37).sin()).collect()
    }

    #[test]
    fn pieces_are_joined_without_a_gap() {
        for length in LENGTHS {
            let values = numbers(length);
            let mut single = vec![0.0; length];
            round_into(&values, &mut single);
            assert!(single.iter().zip(&values).all(|(single, value)| *single == *value as f32), "{length}");
            let mut sum = values.clone();
            add_scaled(&mut sum, 0.5, &single);
            let expected = |place: usize| values[place] + 0.5 * f64::from(single[place]);
            assert!(sum.iter().enumerate().all(|(place, sum)| *sum == expected(place)), "{length}");
            assert!(fit_single(&sum), "{length}");
            if let Some(last) = sum.last().copied() {
                sum[length - 1] = 1e39;
                assert!(!fit_single(&sum), "{length}");
                sum[length - 1] = last;
            }
            scale(&mut sum, 3.0);
            assert!(sum.iter().enumerate().all(|(place, sum)| *sum == 3.0 * expected(place)), "{length}");
            clear(&mut sum);
            assert!(sum.iter().all(|sum| *sum == 0.0), "{length}");
        }
    }

    #[test]
    fn the_sum_of_squares_is_right_and_the_same_on_any_number_of_threads() {
        for length in LENGTHS {
            let values = numbers(length);
            let plain: f64 = values.iter().map(|value| value * value).sum();
            let of_threads = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| sum_of_squares(&values))
            };
            let one = of_threads(1);
            assert!((one - plain).abs() <= 1e-12 * plain, "{length}: {one} against {plain}");
            assert!([2, 3].iter().all(|&threads| of_threads(threads) == one), "{length}");
        }
        assert!(sum_of_squares(&[1.0, f64::INFINITY]).is_infinite());
        assert!(sum_of_squares(&[1.0, f64::NAN]).is_nan());
    }
}
