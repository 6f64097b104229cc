//! Stein variational gradient descent (Liu and Wang, 2016): M particles that follow the posterior and repel each other.
//!
//! With k_ij = exp(-|w_i - w_j|^2/h), h = median^2/log M over the distances of pairs, and slopes g_j = -grad log Q(w_j),
//! particle i moves against
//!
//! ```text
//! d_i = (1/M) sum_j k_ij [g_j + (2/h)(w_j - w_i)]
//! ```
//!
//! For M = 1 that is g. As matrices over particles, d = A g + B w with A = k/M and B = (2/(h M)) (k - diag(k 1)), so both
//! directions are combinations of rows. The reverse pass is exact: the bandwidth depends on the particles too, through the
//! one or two pairs in the middle. (Where two pairs exchange places there, it has no derivative.)

use pacmeta_tensor::Element;
use pacmeta_tensor::simd::skinny::{Begin, Coefficients, combinations, inner_products};

use super::vector::squared_distance;

/// The kernel of a set of particles, with buffers.
#[derive(Debug, Clone, Default)]
pub struct Stein<E> {
    count: usize,
    bandwidth: f64,
    /// k, row-major.
    kernel: Vec<f64>,
    /// |w_i - w_j|^2, row-major.
    distances: Vec<f64>,
    /// Pairs i < j in the order of their distances.
    pairs: Vec<(usize, usize)>,
    slope_factors: Vec<E>,
    offset_factors: Vec<E>,
    products: Vec<E>,
    zeros: Vec<E>,
    adjoints: Vec<f64>,
}

impl<E: Element> Stein<E> {
    /// Computes the kernel of particles of this size.
    pub fn kernel(&mut self, size: usize, offsets: &[E]) {
        let count = offsets.len() / size;
        let row = |i: usize| &offsets[i * size..(i + 1) * size];
        self.count = count;
        self.distances.clear();
        self.distances.resize(count * count, 0.0);
        self.pairs.clear();
        for i in 0..count {
            for j in i + 1..count {
                let distance = squared_distance(row(i), row(j));
                self.distances[i * count + j] = distance;
                self.distances[j * count + i] = distance;
                self.pairs.push((i, j));
            }
        }
        let distances = &self.distances;
        self.pairs
            .sort_unstable_by(|a, b| distances[a.0 * count + a.1].total_cmp(&distances[b.0 * count + b.1]));
        let (low, high) = self.middle();
        let median = 0.5 * (self.distance(low).sqrt() + self.distance(high).sqrt());
        let bandwidth = median * median / (count as f64).ln();
        // Particles in one place neither attract nor repel: any bandwidth says so.
        self.bandwidth = if bandwidth > 0.0 { bandwidth } else { 1.0 };
        self.kernel.clear();
        self.kernel.extend(self.distances.iter().map(|distance| (-distance / self.bandwidth).exp()));
        self.factors();
    }

    /// The pair or pairs in the middle.
    fn middle(&self) -> (usize, usize) {
        ((self.pairs.len() - 1) / 2, self.pairs.len() / 2)
    }

    fn distance(&self, pair: usize) -> f64 {
        let (i, j) = self.pairs[pair];
        self.distances[i * self.count + j]
    }

    /// A and B.
    fn factors(&mut self) {
        let count = self.count;
        let share = 1.0 / count as f64;
        self.slope_factors.clear();
        self.slope_factors.extend(self.kernel.iter().map(|k| E::from_f64(share * k)));
        self.offset_factors.clear();
        for i in 0..count {
            let row = &self.kernel[i * count..(i + 1) * count];
            let total: f64 = row.iter().sum();
            for (j, k) in row.iter().enumerate() {
                let difference = if i == j { k - total } else { *k };
                self.offset_factors.push(E::from_f64(2.0 * share / self.bandwidth * difference));
            }
        }
    }

    /// d = A g + B w.
    pub fn directions(&self, size: usize, offsets: &[E], slopes: &[E], directions: &mut [E]) {
        let count = self.count;
        let rows = |values| Coefficients { values, term_stride: 1, row_stride: count };
        combinations([count, size], Begin::Zero, rows(&self.slope_factors), slopes, directions);
        combinations([count, size], Begin::Output, rows(&self.offset_factors), offsets, directions);
    }

    /// From the adjoints of d: those of g are written, those of w are added to.
    pub fn pull_back(
        &mut self,
        size: usize,
        (offsets, slopes): (&[E], &[E]),
        direction_adjoints: &[E],
        slope_adjoints: &mut [E],
        offset_adjoints: &mut [E],
    ) {
        let count = self.count;
        let columns = |values| Coefficients { values, term_stride: count, row_stride: 1 };
        combinations(
            [count, size],
            Begin::Zero,
            columns(&self.slope_factors),
            direction_adjoints,
            slope_adjoints,
        );
        combinations(
            [count, size],
            Begin::Output,
            columns(&self.offset_factors),
            direction_adjoints,
            offset_adjoints,
        );
        // d'_i . g_j, then d'_i . w_j
        self.zeros.resize(count, E::ZERO);
        self.products.resize(count * count, E::ZERO);
        inner_products(size, &self.zeros, direction_adjoints, slopes, &mut self.products);
        self.adjoints.clear();
        self.adjoints.extend(self.products.iter().map(|product| product.to_f64()));
        inner_products(size, &self.zeros, direction_adjoints, offsets, &mut self.products);
        let share = 1.0 / count as f64;
        let two = 2.0 / self.bandwidth;
        let mut bandwidth_adjoint = 0.0;
        for i in 0..count {
            let own = self.products[i * count + i].to_f64();
            for j in 0..count {
                let place = i * count + j;
                let k = self.kernel[place];
                let repelled = self.products[place].to_f64() - own;
                let kernel_adjoint = share * (self.adjoints[place] + two * repelled);
                bandwidth_adjoint += k / self.bandwidth
                    * (kernel_adjoint * self.distances[place] / self.bandwidth - share * two * repelled);
                // from here on: the adjoint of |w_i - w_j|^2
                self.adjoints[place] = -kernel_adjoint * k / self.bandwidth;
            }
        }
        let (low, high) = self.middle();
        let (near, far) = (self.distance(low).sqrt(), self.distance(high).sqrt());
        for (pair, root) in [(low, near), (high, far)] {
            if root > 0.0 {
                let (i, j) = self.pairs[pair];
                let slope = (near + far) / (4.0 * root * (count as f64).ln());
                self.adjoints[i * count + j] += bandwidth_adjoint * slope;
            }
        }
        // w'_i += sum_j 2 (D'_ij + D'_ji) (w_i - w_j)
        self.products.fill(E::ZERO);
        for i in 0..count {
            let mut total = 0.0;
            for j in (0..count).filter(|&j| j != i) {
                let pull = 2.0 * (self.adjoints[i * count + j] + self.adjoints[j * count + i]);
                total += pull;
                self.products[i * count + j] = E::from_f64(-pull);
            }
            self.products[i * count + i] = E::from_f64(total);
        }
        combinations([count, size], Begin::Output, columns(&self.products), offsets, offset_adjoints);
    }
}
