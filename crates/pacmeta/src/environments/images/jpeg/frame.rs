//! The header of a picture: its components and their blocks.

use super::super::MAX_DIMENSION;
use super::Damage;

/// How coefficients are spread over scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// All of a block at once.
    Sequential,
    /// Some of them, or some of their bits, in every scan.
    Progressive,
}

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) coding: Coding,
    pub(super) components: Vec<Component>,
    /// Groups of blocks of all components.
    pub(super) groups: usize,
    /// Whether the codes of all scans were read.
    pub(super) is_read: bool,
}

/// A component, e.g. the luminance.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Its blocks in a group of all components.
    pub(super) blocks_in_group: usize,
    /// Its blocks in a scan of its own.
    pub(super) blocks: usize,
    /// For every block the coefficients that are not zero, as bits; progressive only.
    pub(super) nonzero: Vec<u64>,
    /// For every coefficient the bits that are still to come; none if no scan had it.
    pub(super) missing_bits: [Option<u8>; 64],
}

impl Frame {
    /// Reads the segment of a frame. None if it is larger than any that is decoded: the decoder has the say then.
    pub(super) fn read(marker: u8, segment: &[u8]) -> Result<Option<Self>, Damage> {
        let coding = match marker {
            0xc0 | 0xc1 => Coding::Sequential,
            0xc2 => Coding::Progressive,
            _ => return Err(Damage::Rare),
        };
        let (&[bits, a, b, c, d, count], rest) = segment.split_first_chunk::<6>().ok_or(Damage::Header)?;
        if bits != 8 {
            return Err(Damage::Rare);
        }
        let (height, width) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let largest = MAX_DIMENSION as u16;
        if !(1..=largest).contains(&height) || !(1..=largest).contains(&width) || !(1..=4).contains(&count) {
            return Ok(None);
        }
        let described = rest.get(..3 * usize::from(count)).ok_or(Damage::Header)?;
        let described: Vec<(u8, [usize; 2])> = described
            .chunks_exact(3)
            .map(|part| (part[0], [usize::from(part[1] >> 4), usize::from(part[1] & 15)]))
            .collect();
        if described.iter().any(|(_, factors)| factors.iter().any(|factor| !(1..=4).contains(factor))) {
            return Err(Damage::Header);
        }
        let most = |axis: usize| described.iter().map(|(_, factors)| factors[axis]).max().unwrap_or(1);
        let (most, size) = ([most(0), most(1)], [usize::from(width), usize::from(height)]);
        let components = described.iter().map(|&(id, factors)| {
            let along = |axis: usize| (size[axis] * factors[axis]).div_ceil(most[axis]).div_ceil(8);
            let blocks = along(0) * along(1);
            let nonzero = if coding == Coding::Progressive { vec![0; blocks] } else { Vec::new() };
            let blocks_in_group = factors[0] * factors[1];
            Component { id, blocks_in_group, blocks, nonzero, missing_bits: [None; 64] }
        });
        let groups = size[0].div_ceil(8 * most[0]) * size[1].div_ceil(8 * most[1]);
        Ok(Some(Self { coding, components: components.collect(), groups, is_read: true }))
    }

    /// Whether every bit of every coefficient had a scan.
    pub(super) fn is_complete(&self) -> bool {
        self.components.iter().all(|component| component.missing_bits.iter().all(|bits| *bits == Some(0)))
    }

    /// The coefficients of all blocks, those at the edges included.
    pub(super) fn coefficients(&self) -> u64 {
        let blocks = |component: &Component| self.groups * component.blocks_in_group;
        64 * self.components.iter().map(blocks).sum::<usize>() as u64
    }
}
