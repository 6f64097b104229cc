//! Huffman codes, and the bits of a scan.

use super::Damage;

/// Tables of codes by their numbers.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) dc: [Option<Huffman>; 4],
    pub(super) ac: [Option<Huffman>; 4],
}

impl Tables {
    /// Reads a segment of tables; later ones replace those of the same number.
    pub(super) fn read(&mut self, mut segment: &[u8]) -> Result<(), Damage> {
        while let Some((&[which, ref counts @ ..], rest)) = segment.split_first_chunk::<17>() {
            let values = counts.iter().map(|&count| usize::from(count)).sum();
            let (values, rest) = rest.split_at_checked(values).ok_or(Damage::Header)?;
            let tables = if which >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            let place = tables.get_mut(usize::from(which & 15)).ok_or(Damage::Header)?;
            *place = Some(Huffman::new(counts, values).ok_or(Damage::Header)?);
            segment = rest;
        }
        Ok(())
    }
}

/// A table of codes of 1 to 16 bits: those of a length are consecutive numbers.
#[derive(Debug)]
pub(super) struct Huffman {
    /// Length and value by the first eight bits; length 0 where the code is longer.
    short: [(u8, u8); 256],
    /// The last code of each length; -1 if there is none.
    last: [i32; 17],
    /// What to add to a code of each length for the place of its value.
    offset: [i32; 17],
    values: Vec<u8>,
}

impl Huffman {
    /// None if there are more codes than fit.
    fn new(counts: &[u8], values: &[u8]) -> Option<Self> {
        let mut table =
            Self { short: [(0, 0); 256], last: [-1; 17], offset: [0; 17], values: values.to_vec() };
        let (mut code, mut place) = (0_usize, 0_usize);
        for (index, &count) in counts.iter().enumerate() {
            let (length, count) = (index + 1, usize::from(count));
            table.offset[length] = place as i32 - code as i32;
            if code + count > 1 << length {
                return None;
            }
            if length <= 8 {
                let span = 1 << (8 - length);
                for (number, &value) in values.get(place..place + count)?.iter().enumerate() {
                    let first = (code + number) * span;
                    table.short[first..first + span].fill((length as u8, value));
                }
            }
            if count > 0 {
                (code, place) = (code + count, place + count);
                table.last[length] = code as i32 - 1;
            }
            code *= 2;
        }
        Some(table)
    }
}

/// The most bytes between the last code and a marker.
const MOST_PADDING: u32 = 64;

/// The bits of a scan, up to the next marker.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// The next byte to be taken up.
    place: usize,
    /// Its lowest `count` bits are next.
    buffer: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, place: 0, buffer: 0, count: 0 }
    }

    /// Takes up bytes as long as there is room; 0xff is followed by zero, else it is a marker.
    fn refill(&mut self) {
        while self.count <= 56 {
            let byte = match (self.data.get(self.place), self.data.get(self.place + 1)) {
                (Some(0xff), Some(0)) => {
                    self.place += 2;
                    0xff
                }
                (Some(0xff), _) | (None, _) => return,
                (Some(&byte), _) => {
                    self.place += 1;
                    byte
                }
            };
            self.buffer = (self.buffer << 8) | u64::from(byte);
            self.count += 8;
        }
    }

    /// The next 16 bits, zeros after the last.
    fn ahead(&self) -> u16 {
        match self.count {
            count @ 16.. => (self.buffer >> (count - 16)) as u16,
            count => (self.buffer << (16 - count)) as u16,
        }
    }

    /// Passes over at most 16 bits.
    pub(super) fn skip(&mut self, bits: u8) -> Result<(), Damage> {
        let bits = u32::from(bits);
        if self.count < bits {
            self.refill();
        }
        self.count = self.count.checked_sub(bits).ok_or(Damage::EndsEarly)?;
        Ok(())
    }

    /// A number of 1 to 15 bits.
    pub(super) fn number(&mut self, bits: u8) -> Result<u32, Damage> {
        if self.count < 16 {
            self.refill();
        }
        let number = u32::from(self.ahead()) >> (16 - u32::from(bits));
        self.skip(bits)?;
        Ok(number)
    }

    /// The value of the next code.
    pub(super) fn value(&mut self, table: &Huffman) -> Result<u8, Damage> {
        if self.count < 16 {
            self.refill();
        }
        let ahead = self.ahead();
        let (mut length, mut value) = table.short[usize::from(ahead >> 8)];
        if length == 0 {
            let long = |length: u8| {
                let code = i32::from(ahead >> (16 - length));
                let fits = code <= table.last[usize::from(length)];
                let place = code + table.offset[usize::from(length)];
                let value = usize::try_from(place).ok().and_then(|place| table.values.get(place).copied());
                value.filter(|_| fits).map(|value| (length, value))
            };
            // Zeros stand for what is missing at the end, and they may be no code.
            let missing = if self.count < 16 { Damage::EndsEarly } else { Damage::UnknownCode };
            (length, value) = (9..=16).find_map(long).ok_or(missing)?;
        }
        self.skip(length)?;
        Ok(value)
    }

    /// Goes to the marker. Fewer than eight bits in front of it fill up the last byte; some cameras put a few bytes of zeros or ones
    /// behind that, which are no codes. Without a marker after them they are what a broken transfer leaves.
    fn finish(&mut self) -> Result<(), Damage> {
        let mut padding = 0;
        loop {
            self.refill();
            let whole = self.count / 8;
            if whole == 0 {
                break;
            }
            padding += whole;
            let is_padding = |byte: u32| matches!((self.buffer >> (8 * byte)) as u8, 0x00 | 0xff);
            if padding > MOST_PADDING || !(0..whole).all(is_padding) {
                return Err(Damage::LeftOver);
            }
            self.count = 0;
        }
        if padding > 0 && self.place >= self.data.len() {
            return Err(Damage::LeftOver);
        }
        self.count = 0;
        Ok(())
    }

    /// Passes over the mark of a restart.
    pub(super) fn restart(&mut self) -> Result<(), Damage> {
        self.finish()?;
        while self.data.get(self.place) == Some(&0xff) {
            self.place += 1;
        }
        match self.data.get(self.place) {
            Some(0xd0..=0xd7) => {
                self.place += 1;
                Ok(())
            }
            _ => Err(Damage::EndsEarly),
        }
    }

    /// The number of bytes in front of the marker at the end.
    pub(super) fn end(mut self) -> Result<usize, Damage> {
        self.finish()?;
        Ok(self.place)
    }
}
