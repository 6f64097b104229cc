//! The codes of a scan, read block by block as a decoder does.

use super::Damage;
use super::codes::{Bits, Huffman, Tables};
use super::frame::{Coding, Frame};

/// What a scan brings.
#[derive(Clone, Copy)]
enum Kind {
    /// All coefficients of a block.
    Sequential,
    /// The first bits of the mean of a block.
    MeanFirst,
    /// One more bit of it.
    MeanMore,
    /// The first bits of some other coefficients.
    OthersFirst,
    /// One more bit of them.
    OthersMore,
}

/// Reads the scan that begins at `data`, and returns its number of bytes. `header` is the segment in front of it.
pub(super) fn read(
    frame: &mut Frame,
    tables: &Tables,
    restart_interval: usize,
    header: &[u8],
    data: &[u8],
) -> Result<usize, Damage> {
    let (&count, rest) = header.split_first().ok_or(Damage::Header)?;
    let (described, rest) = rest.split_at_checked(2 * usize::from(count)).ok_or(Damage::Header)?;
    let &[first, last, bits] = rest.first_chunk::<3>().ok_or(Damage::Header)?;
    let (before, after) = (bits >> 4, bits & 15);
    let (kind, range) = match (frame.coding, first, before) {
        (Coding::Sequential, ..) => (Kind::Sequential, 0..=63),
        (Coding::Progressive, 0, 0) => (Kind::MeanFirst, 0..=0),
        (Coding::Progressive, 0, _) => (Kind::MeanMore, 0..=0),
        (Coding::Progressive, _, 0) => (Kind::OthersFirst, first..=last),
        (Coding::Progressive, _, _) => (Kind::OthersMore, first..=last),
    };
    let alone = count == 1;
    let others = matches!(kind, Kind::OthersFirst | Kind::OthersMore);
    if count == 0 || *range.end() > 63 || range.is_empty() || (others && !alone) {
        return Err(Damage::Header);
    }

    let mut parts = Vec::new();
    for part in described.chunks_exact(2) {
        let place = frame.components.iter().position(|component| component.id == part[0]);
        let place = place.ok_or(Damage::Header)?;
        let component = &mut frame.components[place];
        let missing = if frame.coding == Coding::Sequential { 0 } else { after };
        for coefficient in range.clone() {
            component.missing_bits[usize::from(coefficient)] = Some(missing);
        }
        let (dc, ac) = (numbered(&tables.dc, part[1] >> 4), numbered(&tables.ac, part[1] & 15));
        parts.push((place, dc, ac));
    }

    let lacks_table = |&(_, dc, ac): &(usize, Option<&Huffman>, Option<&Huffman>)| match kind {
        Kind::Sequential => dc.is_none() || ac.is_none(),
        Kind::MeanFirst => dc.is_none(),
        Kind::MeanMore => false,
        Kind::OthersFirst | Kind::OthersMore => ac.is_none(),
    };
    if parts.iter().any(lacks_table) {
        // Pictures of films leave them out; the decoder knows which are meant.
        frame.is_read = false;
        return Ok(length(data));
    }
    let units = if alone { frame.components[parts[0].0].blocks } else { frame.groups };
    let mut reader =
        Reader { bits: Bits::new(data), first: *range.start(), last: *range.end(), empty_blocks: 0 };
    for unit in 0..units {
        if restart_interval > 0 && unit > 0 && unit.is_multiple_of(restart_interval) {
            reader.bits.restart()?;
            reader.empty_blocks = 0;
        }
        for &(place, dc, ac) in &parts {
            let component = &mut frame.components[place];
            let blocks = if alone { 1 } else { component.blocks_in_group };
            for _ in 0..blocks {
                match (kind, dc, ac) {
                    (Kind::Sequential, Some(dc), Some(ac)) => reader.sequential(dc, ac)?,
                    (Kind::MeanFirst, Some(dc), _) => reader.mean(dc)?,
                    (Kind::MeanMore, ..) => reader.bits.skip(1)?,
                    (Kind::OthersFirst, _, Some(ac)) => {
                        reader.others_first(ac, &mut component.nonzero[unit])?;
                    }
                    (Kind::OthersMore, _, Some(ac)) => {
                        reader.others_more(ac, &mut component.nonzero[unit])?;
                    }
                    _ => return Err(Damage::Header),
                }
            }
        }
    }
    reader.bits.end()
}

/// The table of this number, if there is one.
fn numbered(tables: &[Option<Huffman>; 4], number: u8) -> Option<&Huffman> {
    tables.get(usize::from(number)).and_then(Option::as_ref)
}

/// The number of bytes of a scan whose codes are not known: 0xff is followed by zero or is a restart.
pub(super) fn length(data: &[u8]) -> usize {
    let ends = data.windows(2).position(|two| two[0] == 0xff && !matches!(two[1], 0x00 | 0xd0..=0xd7 | 0xff));
    ends.unwrap_or(data.len())
}

struct Reader<'a> {
    bits: Bits<'a>,
    first: u8,
    last: u8,
    /// Blocks to come of which one code said that they bring nothing new.
    empty_blocks: u32,
}

impl Reader<'_> {
    /// The difference of a block's mean from the one before.
    fn mean(&mut self, dc: &Huffman) -> Result<(), Damage> {
        match self.bits.value(dc)? {
            bits @ 0..=16 => self.bits.skip(bits),
            _ => Err(Damage::UnknownCode),
        }
    }

    fn sequential(&mut self, dc: &Huffman, ac: &Huffman) -> Result<(), Damage> {
        self.mean(dc)?;
        let mut place = 1;
        while place < 64 {
            let (run, bits) = halves(self.bits.value(ac)?);
            match (run, bits) {
                (15, 0) => place += 16,
                (_, 0) => break,
                _ => {
                    place += run;
                    if place > 63 {
                        return Err(Damage::UnknownCode);
                    }
                    self.bits.skip(bits)?;
                    place += 1;
                }
            }
        }
        Ok(())
    }

    fn others_first(&mut self, ac: &Huffman, nonzero: &mut u64) -> Result<(), Damage> {
        if self.empty_blocks > 0 {
            self.empty_blocks -= 1;
            return Ok(());
        }
        let mut place = self.first;
        while place <= self.last {
            let (run, bits) = halves(self.bits.value(ac)?);
            match (run, bits) {
                (15, 0) => place += 16,
                (_, 0) => {
                    self.empty_blocks = self.empty_run(run)? - 1;
                    break;
                }
                _ => {
                    place += run;
                    if place > 63 {
                        return Err(Damage::UnknownCode);
                    }
                    self.bits.skip(bits)?;
                    *nonzero |= 1 << place;
                    place += 1;
                }
            }
        }
        Ok(())
    }

    /// Coefficients that are not zero yet have a bit more each, wherever they are passed over.
    fn others_more(&mut self, ac: &Huffman, nonzero: &mut u64) -> Result<(), Damage> {
        let mut place = self.first;
        if self.empty_blocks == 0 {
            while place <= self.last {
                let (mut run, bits) = halves(self.bits.value(ac)?);
                if bits > 0 {
                    self.bits.skip(1)?;
                } else if run < 15 {
                    self.empty_blocks = self.empty_run(run)?;
                    break;
                }
                while place <= self.last {
                    if (*nonzero >> place) & 1 == 1 {
                        self.bits.skip(1)?;
                    } else if run == 0 {
                        break;
                    } else {
                        run -= 1;
                    }
                    place += 1;
                }
                if bits > 0 {
                    if place > 63 {
                        return Err(Damage::UnknownCode);
                    }
                    *nonzero |= 1 << place;
                }
                place += 1;
            }
        }
        if self.empty_blocks > 0 {
            while place <= self.last {
                if (*nonzero >> place) & 1 == 1 {
                    self.bits.skip(1)?;
                }
                place += 1;
            }
            self.empty_blocks -= 1;
        }
        Ok(())
    }

    /// How many blocks, this one included, bring nothing new.
    fn empty_run(&mut self, bits: u8) -> Result<u32, Damage> {
        let more = if bits > 0 { self.bits.number(bits)? } else { 0 };
        Ok((1 << bits) + more)
    }
}

/// The zeros in front of a coefficient, and the bits of its value.
fn halves(value: u8) -> (u8, u8) {
    (value >> 4, value & 15)
}
