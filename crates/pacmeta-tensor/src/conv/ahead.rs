//! What a later product reads, asked for while an earlier one computes: filters and their gradients are too large for the
//! first-level cache, and those of tiles of six for the second as well.

use super::pixel::Pixel;

/// Numbers in a line of the cache.
const LINE: usize = 16;

/// Pixels to be asked for, a line at a time: many at once would keep what is needed now waiting.
pub(super) struct Ahead<'a> {
    /// Stretches of pixels, in the order in which they are asked for.
    stretches: [&'a [Pixel]; 3],
    stretch: usize,
    line: usize,
}

impl<'a> Ahead<'a> {
    /// The pixels of three stretches, one after the other.
    pub(super) fn new(stretches: [&'a [Pixel]; 3]) -> Self {
        Ahead { stretches, stretch: 0, line: 0 }
    }

    /// Asks for the next line, if there is one.
    #[inline(always)]
    pub(super) fn step(&mut self) {
        let lines = size_of::<Pixel>() / size_of::<[f32; LINE]>();
        let Some(pixels) = self.stretches.get(self.stretch) else { return };
        match pixels.get(self.line / lines) {
            Some(pixel) => {
                ask_for_line(&pixel.0[self.line % lines * LINE]);
                self.line += 1;
            }
            None => (self.stretch, self.line) = (self.stretch + 1, 0),
        }
    }
}

/// Asks for pixels, all at once.
#[inline(always)]
pub(super) fn ask_for(pixels: &[Pixel]) {
    for pixel in pixels {
        for place in (0..pixel.0.len()).step_by(LINE) {
            ask_for_line(&pixel.0[place]);
        }
    }
}

/// Asks for the line that holds a number; nothing on processors without an instruction for it in stable Rust.
#[inline(always)]
fn ask_for_line(number: &f32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which neither reads nor writes
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(number).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
}
