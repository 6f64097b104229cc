//! Functions drawn from a Gaussian process, and the environment made of them.
//!
//! The usual way to draw f ~ GP(0, k) is a Cholesky factor of the covariance at the inputs asked for. That fixes f at
//! those inputs only (more examples of the same f would need the old ones), and the matrices of the squared exponential
//! kernel are numerically singular, so something has to be added to their diagonal. Instead, f is drawn once and for
//! all as a series. With u = (x - centre) / length,
//!
//! k(x, x') = exp(-(u - u')² / 2) = Σ_n φ_n(u) φ_n(u'),   φ_n(u) = exp(-u² / 2) uⁿ / √n!,
//!
//! which is the power series of exp(u u'). So f(x) = Σ_n w_n φ_n(u) with independent standard normal w_n has exactly
//! this covariance; in several dimensions the kernel is a product, and so are the functions. The φ_n(u)² are the
//! probabilities of a Poisson variable of mean u²: cutting the series well above its mean leaves out less than rounding
//! does, and nothing is added to any diagonal.

use pacmeta_tensor::{Generator, Key};

use super::{Environment, Function};

/// The squared exponential kernel exp(-|x - x'|² / (2 length²)) on a cube.
pub(super) struct SquaredExponential {
    /// The middle of the cube in every dimension.
    pub(super) centre: f64,
    /// Half the side of the cube.
    pub(super) reach: f64,
    /// The length scale of the kernel.
    pub(super) length: f64,
    /// The number of features.
    pub(super) dimension: usize,
}

impl SquaredExponential {
    /// Whether an input lies in the cube, where the series is exact up to rounding.
    pub(super) fn covers(&self, input: &[f64]) -> bool {
        input.len() == self.dimension && input.iter().all(|x| (x - self.centre).abs() <= self.reach)
    }

    /// The number of terms for each dimension: a Poisson variable of mean r², r the reach in length scales, exceeds
    /// r² + 9 r + 20 with a probability below 1e-17 (Chernoff's bound).
    fn terms(&self) -> usize {
        let reach = self.reach / self.length;
        (reach * reach + 9.0 * reach + 20.0).ceil() as usize
    }

    /// φ_0(u), ..., φ_{N-1}(u) at one coordinate.
    fn basis(&self, x: f64) -> Vec<f64> {
        let u = (x - self.centre) / self.length;
        let mut value = (-0.5 * u * u).exp();
        (1..=self.terms())
            .map(|next| {
                let current = value;
                value *= u / (next as f64).sqrt();
                current
            })
            .collect()
    }

    /// A function drawn from the process with mean 0.
    pub(super) fn draw(self, generator: &mut Generator) -> impl Fn(&[f64]) -> f64 + Send + Sync + use<> {
        let count = self.terms().pow(self.dimension as u32);
        let weights: Vec<f64> = (0..count).map(|_| generator.normal()).collect();
        move |input| {
            let bases: Vec<Vec<f64>> = input.iter().map(|&x| self.basis(x)).collect();
            contract(&weights, &bases)
        }
    }
}

/// Σ over all indices of weights[i, j, ...] bases[0][i] bases[1][j] ..., the last index running fastest.
fn contract(weights: &[f64], bases: &[Vec<f64>]) -> f64 {
    match bases {
        [] => weights.iter().sum(),
        [basis] => weights.iter().zip(basis).map(|(weight, value)| weight * value).sum(),
        [basis, rest @ ..] => weights
            .chunks_exact(weights.len() / basis.len())
            .zip(basis)
            .map(|(chunk, value)| value * contract(chunk, rest))
            .sum(),
    }
}

/// Draws from a Gaussian process: f ~ GP(0, exp(-(x - x')² / 2)), x ~ U(-5, 5), noise ~ N(0, 0.1²).
///
/// The functions are known (see [`Environment::truth`]) for x between -10 and 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpDraws;

impl GpDraws {
    const PROCESS: SquaredExponential =
        SquaredExponential { centre: 0.0, reach: 10.0, length: 1.0, dimension: 1 };
}

impl Environment for GpDraws {
    fn name(&self) -> &'static str {
        "gp-draws"
    }

    fn dimension(&self) -> usize {
        1
    }

    fn noise_std(&self) -> f64 {
        0.1
    }

    fn function(&self, function_key: Key) -> Function {
        Box::new(Self::PROCESS.draw(&mut function_key.generator()))
    }

    fn draw_input(&self, generator: &mut Generator, input: &mut [f64]) {
        input[0] = generator.uniform_in(-5.0, 5.0);
    }

    fn covers(&self, input: &[f64]) -> bool {
        Self::PROCESS.covers(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_has_the_covariance_of_the_kernel() {
        for process in [
            GpDraws::PROCESS,
            SquaredExponential { centre: -1.25, reach: 6.25, length: 0.5f64.sqrt(), dimension: 1 },
        ] {
            let grid: Vec<f64> =
                (0..=50).map(|i| process.centre + process.reach * (f64::from(i) / 25.0 - 1.0)).collect();
            let bases: Vec<Vec<f64>> = grid.iter().map(|&x| process.basis(x)).collect();
            for (x, first) in grid.iter().zip(&bases) {
                for (y, second) in grid.iter().zip(&bases) {
                    let series: f64 = first.iter().zip(second).map(|(a, b)| a * b).sum();
                    let kernel = (-(x - y).powi(2) / (2.0 * process.length.powi(2))).exp();
                    assert!((series - kernel).abs() < 2e-14, "k({x}, {y}) = {kernel}, series {series}");
                }
            }
        }
    }

    #[test]
    fn contraction_is_a_product_over_dimensions() {
        let weights: Vec<f64> = (1..=6).map(f64::from).collect();
        let bases = [vec![1.0, 10.0], vec![1.0, 2.0, 3.0]];
        // (1·1 + 2·2 + 3·3) + 10 (4·1 + 5·2 + 6·3)
        assert_eq!(contract(&weights, &bases), 14.0 + 320.0);
    }

    #[test]
    fn nothing_is_claimed_outside_the_cube() {
        let key = Key::new(3);
        assert!(GpDraws.truth(key, &[10.0]).is_some());
        assert!(GpDraws.truth(key, &[10.5]).is_none());
        assert!(GpDraws.truth(key, &[f64::NAN]).is_none());
        assert!(GpDraws.truth(key, &[0.0, 0.0]).is_none());
    }
}
