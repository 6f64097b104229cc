//! SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).

/// The four words of state while a message is absorbed.
pub(super) struct SipHash {
    v: [u64; 4],
}

impl SipHash {
    pub(super) fn keyed(key: [u64; 2]) -> SipHash {
        SipHash {
            v: [
                key[0] ^ 0x736f_6d65_7073_6575,
                // The last bits distinguish the 128-bit variant.
                key[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
                key[0] ^ 0x6c79_6765_6e65_7261,
                key[1] ^ 0x7465_6462_7974_6573,
            ],
        }
    }

    /// Absorbs one word of the message.
    pub(super) fn word(&mut self, word: u64) {
        self.v[3] ^= word;
        self.rounds(2);
        self.v[0] ^= word;
    }

    /// Absorbs the rest of a message of which `before` bytes have been absorbed, and gives the hash.
    pub(super) fn finish(mut self, rest: &[u8], before: usize) -> [u64; 2] {
        let mut chunks = rest.chunks_exact(8);
        for chunk in &mut chunks {
            self.word(little_endian(chunk));
        }
        let length = (before + rest.len()) as u64;
        self.word(little_endian(chunks.remainder()) | length << 56);
        self.v[2] ^= 0xee;
        self.rounds(4);
        let low = self.folded();
        self.v[1] ^= 0xdd;
        self.rounds(4);
        [low, self.folded()]
    }

    fn folded(&self) -> u64 {
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    fn rounds(&mut self, count: usize) {
        let [mut a, mut b, mut c, mut d] = self.v;
        for _ in 0..count {
            a = a.wrapping_add(b);
            c = c.wrapping_add(d);
            b = b.rotate_left(13) ^ a;
            d = d.rotate_left(16) ^ c;
            a = a.rotate_left(32);
            c = c.wrapping_add(b);
            a = a.wrapping_add(d);
            b = b.rotate_left(17) ^ c;
            d = d.rotate_left(21) ^ a;
            c = c.rotate_left(32);
        }
        self.v = [a, b, c, d];
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The designers' test: key 00 01 .. 0f, message 00 01 .. of growing length.
    #[test]
    fn published_vectors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let message: Vec<u8> = (0..15).collect();
        let hash = |length: usize| {
            let [low, high] = SipHash::keyed(key).finish(&message[..length], 0);
            low.to_le_bytes()
                .iter()
                .chain(&high.to_le_bytes())
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(hash(0), "a3817f04ba25a8e66df67214c7550293");
        assert_eq!(hash(1), "da87c1d86b99af44347659119b22fc45");
        assert_eq!(hash(15), "5493e99933b0a8117e08ec0f97cfc3d9");
    }
}
