//! Whether a JPEG file is whole. Decoders fill what is missing with grey and read on after damage, which would teach a
//! model nonsense, and JPEG has no checksum. So the codes of every scan are read here once more, without making pixels of
//! them: each block must be there, no code may be unknown, and nothing but a little padding may be left over in front of the
//! next marker. Damage after which all of this still holds cannot be told.
//!
//! A file that lacks only the mark of its end is whole if all bits of all blocks are there.

mod codes;
mod frame;
mod scan;

use codes::Tables;
use frame::{Coding, Frame};

const START_OF_IMAGE: u8 = 0xd8;
const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;
const TABLES: u8 = 0xc4;
const RESTART_INTERVAL: u8 = 0xdd;

/// More scans than this have no use; a file can be made to take very long by them.
const MAX_SCANS: usize = 128;

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// There is no mark of the end.
    NoEnd,
    /// A scan has fewer blocks than the picture.
    EndsEarly,
    /// A scan has more bytes than its blocks take.
    LeftOver,
    /// A code is not in its table, or leads out of its block.
    UnknownCode,
    /// A header or table contradicts itself.
    Header,
    /// A component, or the last bits of one, has no scan.
    NoScan,
    /// No damage: a kind of JPEG that is not decoded.
    Rare,
}

impl Damage {
    /// For people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::NoEnd => "the end is missing",
            Self::EndsEarly => "blocks of the picture are missing",
            Self::LeftOver => "there are more codes than blocks of the picture",
            Self::UnknownCode => "a code is unknown",
            Self::Header => "a header contradicts itself",
            Self::NoScan => "a scan is missing",
            Self::Rare => "it is lossless, has arithmetic codes or more than 8 bits",
        }
    }
}

/// A file that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// Whether the mark of the end is there.
    pub(super) has_end: bool,
    /// Coefficients that a decoder has to keep until the last scan.
    pub(super) kept_coefficients: u64,
}

/// Reads all segments up to the mark of the end. Data after that mark do not matter.
pub(super) fn check(bytes: &[u8]) -> Result<Whole, Damage> {
    let (mut rest, mut tables, mut frame) = (bytes, Tables::default(), None::<Frame>);
    let (mut restart_interval, mut scans) = (0, 0);
    let has_end = loop {
        let Some(marker) = next_marker(&mut rest) else { break false };
        match marker {
            END_OF_IMAGE => break true,
            // Marks without content: the start, restarts, one for arithmetic coding, and no mark at all.
            START_OF_IMAGE | 0xd0..=0xd7 | 0x01 | 0x00 => continue,
            _ => {}
        }
        let Some(&[high, low]) = rest.first_chunk::<2>() else { break false };
        let length = usize::from(u16::from_be_bytes([high, low])).max(2);
        let Some((segment, after)) = rest.split_at_checked(length) else { break false };
        let segment = &segment[2..];
        rest = after;
        match marker {
            TABLES => tables.read(segment)?,
            RESTART_INTERVAL => {
                let &[high, low] = segment.first_chunk::<2>().ok_or(Damage::Header)?;
                restart_interval = usize::from(u16::from_be_bytes([high, low]));
            }
            START_OF_SCAN => {
                scans += 1;
                if scans > MAX_SCANS {
                    return Err(Damage::Header);
                }
                let read = match &mut frame {
                    Some(frame) => scan::read(frame, &tables, restart_interval, segment, rest)?,
                    None => scan::length(rest),
                };
                rest = &rest[read..];
            }
            // The kinds of frames: 0xc4, 0xc8 and 0xcc among them are none.
            0xc0..=0xcf if !matches!(marker, 0xc8 | 0xcc) => frame = Frame::read(marker, segment)?,
            _ => {}
        }
    };
    let can_tell =
        |frame: &Frame| frame.is_read && (frame.coding == Coding::Sequential || frame.is_complete());
    if !has_end && !frame.as_ref().is_some_and(can_tell) {
        return Err(Damage::NoEnd);
    }
    let kept_coefficients = match &frame {
        _ if scans == 0 => return Err(Damage::NoScan),
        Some(frame) if !frame.is_complete() => return Err(Damage::NoScan),
        Some(frame) if frame.coding == Coding::Progressive || scans > 1 => frame.coefficients(),
        _ => 0,
    };
    Ok(Whole { has_end, kept_coefficients })
}

/// The code of the marker at the start of `rest`, which moves behind it.
fn next_marker(rest: &mut &[u8]) -> Option<u8> {
    let start = rest.iter().position(|&byte| byte == 0xff)?;
    let code = rest[start..].iter().position(|&byte| byte != 0xff)? + start;
    let marker = rest[code];
    *rest = &rest[code + 1..];
    Some(marker)
}

#[cfg(test)]
mod tests;
