//! The unit of the fast path: the 64 filters at one place, whole vectors on every processor.

use std::ops::Range;

use pulp::Simd;

/// Filters of a block on the fast path.
pub(super) const FILTERS: usize = 64;

/// The numbers of all filters at one place; a whole number of cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Pixel(pub(super) [f32; FILTERS]);

/// The positions in their windows that pools took at one place.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Positions(pub(super) [u32; FILTERS]);

impl Pixel {
    pub(super) const ZERO: Pixel = Pixel([0.0; FILTERS]);

    /// As vectors.
    #[inline(always)]
    pub(super) fn vectors<S: Simd>(&self) -> &[S::f32s] {
        S::as_simd_f32s(&self.0).0
    }

    /// As vectors, to be changed.
    #[inline(always)]
    pub(super) fn vectors_mut<S: Simd>(&mut self) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(&mut self.0).0
    }
}

impl Positions {
    pub(super) const ZERO: Positions = Positions([0; FILTERS]);

    /// As vectors.
    #[inline(always)]
    pub(super) fn vectors<S: Simd>(&self) -> &[S::u32s] {
        S::as_simd_u32s(&self.0).0
    }

    /// As vectors, to be changed.
    #[inline(always)]
    pub(super) fn vectors_mut<S: Simd>(&mut self) -> &mut [S::u32s] {
        S::as_mut_simd_u32s(&mut self.0).0
    }
}

/// Vectors of filters in a pixel.
#[inline(always)]
pub(super) const fn lanes<S: Simd>() -> usize {
    FILTERS / S::F32_LANES
}

/// Sums over places of a filter's numbers, in double precision.
pub(super) type Sums = [f64; FILTERS];

/// The first `len` pixels of room that only ever grows. They hold what an earlier use left: clearing what is overwritten anyway takes time.
pub(super) fn grown(room: &mut Vec<Pixel>, len: usize) -> &mut [Pixel] {
    if room.len() < len {
        room.resize(len, Pixel::ZERO);
    }
    &mut room[..len]
}

/// Cuts a buffer into the parts of groups of images.
pub(super) fn split<'a, T>(
    buffer: &'a mut [T],
    groups: &[Range<usize>],
    per_image: usize,
) -> Vec<&'a mut [T]> {
    let mut rest = buffer;
    let mut parts = Vec::with_capacity(groups.len());
    for group in groups {
        let (part, tail) = rest.split_at_mut(group.len() * per_image);
        parts.push(part);
        rest = tail;
    }
    parts
}
