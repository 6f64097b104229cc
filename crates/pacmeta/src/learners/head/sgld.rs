//! Stochastic gradient Langevin dynamics: w <- w + rate grad log Q(w) + sqrt(2 rate) noise, independent chains.
//!
//! The drift is the plain step of [`steps`](super::steps); this adds the noise. Its stationary distribution is Q up to
//! an error of the order of the rate. Adagrad would need a correction for its varying step sizes and is refused.

use pacmeta_tensor::{Element, Key};

/// Adds sqrt(2 rate) times standard normal noise to every particle.
pub fn add_noise<E: Element>(offsets: &mut [E], size: usize, rate: f64, key: Key) {
    let deviation = (2.0 * rate).sqrt();
    for (particle, offset) in offsets.chunks_exact_mut(size).enumerate() {
        let mut generator = key.index(particle as u64).generator();
        for value in offset {
            *value += E::from_f64(deviation * generator.normal());
        }
    }
}
