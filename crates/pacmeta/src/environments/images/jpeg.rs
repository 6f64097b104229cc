//! Whether a JPEG file has its end. Decoders fill what is missing with grey, which would teach a model nonsense.

const START_OF_IMAGE: u8 = 0xd8;
const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;

/// Walks over the segments to the mark of the end. Data after that mark do not matter.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        let Some(marker) = next_marker(&mut rest) else { return false };
        match marker {
            END_OF_IMAGE => return true,
            // Marks without content: the start, restarts, and one for arithmetic coding.
            START_OF_IMAGE | 0xd0..=0xd7 | 0x01 => {}
            _ => {
                let Some(&[high, low]) = rest.first_chunk::<2>() else { return false };
                let length = usize::from(u16::from_be_bytes([high, low]));
                let Some(after) = rest.get(length.max(2)..) else { return false };
                rest = after;
                if marker == START_OF_SCAN {
                    rest = after_scan(rest);
                }
            }
        }
    }
}

/// The code of the marker at the start of `rest`, which moves behind it.
fn next_marker(rest: &mut &[u8]) -> Option<u8> {
    let start = rest.iter().position(|&byte| byte == 0xff)?;
    let code = rest[start..].iter().position(|&byte| byte != 0xff)? + start;
    let marker = rest[code];
    *rest = &rest[code + 1..];
    Some(marker)
}

/// Skips coded pixels, in which 0xff is followed by zero or is a restart.
fn after_scan(bytes: &[u8]) -> &[u8] {
    let ends =
        bytes.windows(2).position(|two| two[0] == 0xff && !matches!(two[1], 0x00 | 0xd0..=0xd7 | 0xff));
    ends.map_or(&[], |position| &bytes[position..])
}
