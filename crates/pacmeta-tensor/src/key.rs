//! Keyed randomness: every random draw is a function of a seed, names and indices.
//!
//! A [`Key`] is 128 bits. A child is derived from its parent by a pseudo-random function: SipHash-2-4 with
//! 128 bits of output (Aumasson and Bernstein, 2012), keyed by the parent, of a message that starts with the
//! kind of derivation
//!
//! - `Key::new(seed)`: 0, then the seed, under a fixed root key;
//! - `key.named(name)`: 1, then the bytes of the name;
//! - `key.index(i)`: 2, then the index,
//!
//! numbers being 64-bit little-endian. So children differ from each other and from their parent, and
//! `key.named("a").index(1)` is not `key.index(1).named("a")`. A [`Generator`] is ChaCha8 seeded by the key,
//! hence no shared state exists: results depend neither on threads, nor on order, nor on what was drawn
//! elsewhere. The golden values in the tests keep all of this fixed between versions.
//!
//! ```
//! use pacmeta_tensor::Key;
//!
//! let tasks = Key::new(42).named("tasks");
//! let mut generator = tasks.index(7).generator();
//! let amplitude = generator.uniform_in(0.7, 1.3);
//! assert!((0.7..1.3).contains(&amplitude));
//! assert_eq!(amplitude, tasks.index(7).generator().uniform_in(0.7, 1.3));
//! ```

mod siphash;

use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use siphash::SipHash;

/// The key under which seeds are hashed: the bytes of "pacmeta keyed randomness", cut to 16.
const ROOT: [u64; 2] = [u64::from_le_bytes(*b"pacmeta "), u64::from_le_bytes(*b"keyed ra")];

/// A point in the tree of random streams. See the [module documentation](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    state: [u64; 2],
}

impl Key {
    /// The root of a tree of streams.
    pub fn new(seed: u64) -> Key {
        Key { state: ROOT }.derive(0, &seed.to_le_bytes())
    }

    /// The child of this name: one purpose, one name.
    #[must_use]
    pub fn named(&self, name: &str) -> Key {
        self.derive(1, name.as_bytes())
    }

    /// The child of this index: one iteration, task or particle, one index.
    #[must_use]
    pub fn index(&self, index: u64) -> Key {
        self.derive(2, &index.to_le_bytes())
    }

    /// A generator at the start of this key's stream. Two generators of one key draw the same numbers.
    pub fn generator(&self) -> Generator {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.state[0].to_le_bytes());
        seed[8..16].copy_from_slice(&self.state[1].to_le_bytes());
        Generator { stream: ChaCha8Rng::from_seed(seed) }
    }

    fn derive(&self, kind: u64, message: &[u8]) -> Key {
        let mut hash = SipHash::keyed(self.state);
        hash.word(kind);
        Key { state: hash.finish(message, 8) }
    }
}

/// 32 hexadecimal digits: a name for whatever the key was derived from.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.state[0], self.state[1])
    }
}

/// A stream of random numbers, from [`Key::generator`].
#[derive(Clone, Debug)]
pub struct Generator {
    stream: ChaCha8Rng,
}

impl Generator {
    /// A uniform number in [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform number between `low` (included) and `high` (excluded, up to rounding).
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.stream)
    }

    /// A uniform index below `count`, without bias (Lemire's method); zero if `count` is zero.
    pub fn below(&mut self, count: usize) -> usize {
        let count = count as u64;
        // The high word of bits * count is uniform once the low words that would be over-represented are
        // redrawn.
        let mut product = u128::from(self.bits()) * u128::from(count);
        if (product as u64) < count {
            let threshold = count.wrapping_neg() % count;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(count);
            }
        }
        (product >> 64) as usize
    }

    /// `size` distinct indices below `count` in random order; all of them if there are fewer.
    pub fn subset(&mut self, count: usize, size: usize) -> Vec<usize> {
        let mut chosen = Vec::new();
        self.subset_into(count, size, &mut chosen);
        chosen
    }

    /// Like [`subset`](Self::subset), into a buffer that is cleared first. Nothing is allocated once the
    /// buffer has room for `count` indices.
    pub fn subset_into(&mut self, count: usize, size: usize, chosen: &mut Vec<usize>) {
        let size = size.min(count);
        chosen.clear();
        if size.saturating_mul(size) < count {
            // Floyd's algorithm: linear scans of the few indices chosen are cheaper than writing all of them
            // down. Inserting a replacement after the index it collided with makes the order random too.
            for last in count - size..count {
                let candidate = self.below(last + 1);
                match chosen.iter().position(|&index| index == candidate) {
                    None => chosen.insert(0, candidate),
                    Some(position) => chosen.insert(position + 1, last),
                }
            }
        } else {
            chosen.extend(0..count);
            for position in 0..size {
                let other = position + self.below(count - position);
                chosen.swap(position, other);
            }
            chosen.truncate(size);
        }
    }

    /// Puts a slice into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for position in 0..items.len() {
            let other = position + self.below(items.len() - position);
            items.swap(position, other);
        }
    }

    fn bits(&mut self) -> u64 {
        self.stream.next_u64()
    }
}

#[cfg(test)]
mod tests;
