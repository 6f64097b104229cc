//! Golden bytes, and an independent decoder of the records.

use super::*;

/// Splits records and checks their checksums.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let crc_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let data = &bytes[12..12 + length];
        assert_eq!(crc_at(8), slow_masked_crc(&bytes[..8]));
        assert_eq!(crc_at(12 + length), slow_masked_crc(data));
        records.push(data.to_vec());
        bytes = &bytes[16 + length..];
    }
    records
}

/// CRC-32C bit by bit from its polynomial, masked as the format says.
fn slow_masked_crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (if crc & 1 == 1 { 0x82f6_3b78 } else { 0 });
        }
    }
    let crc = !crc;
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[derive(Debug, PartialEq)]
enum Field {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(Vec<u8>),
    Fixed32([u8; 4]),
}

/// The fields of a protocol buffer.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut bytes)),
            1 => Field::Fixed64(take(&mut bytes, 8).try_into().unwrap()),
            2 => {
                let length = varint(&mut bytes) as usize;
                Field::Bytes(take(&mut bytes, length).to_vec())
            }
            5 => Field::Fixed32(take(&mut bytes, 4).try_into().unwrap()),
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

#[test]
fn the_version_record_has_its_golden_bytes() {
    let record = framed(&event(1.0, 0, &Payload::FileVersion(FILE_VERSION)));
    let mut expected = vec![26, 0, 0, 0, 0, 0, 0, 0];
    expected.extend([0x12, 0x9b, 0xd8, 0x2d]); // both checksums as TensorBoard's own reader computes them
    expected.extend([0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 0, 0x1a, 13]);
    expected.extend(b"brain.Event:2");
    expected.extend([0xcc, 0x31, 0x4e, 0x92]);
    assert_eq!(record, expected);
}

#[test]
fn a_scalar_has_its_golden_bytes() {
    let data = event(1.5, 300, &Payload::Scalars(&[("loss", 0.5)]));
    let expected = [
        &[0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f][..], // wall_time = 1.5
        &[0x10, 0xac, 0x02],                       // step = 300
        &[0x2a, 13, 0x0a, 11],                     // summary, its only value
        &[0x0a, 4, b'l', b'o', b's', b's'],        // tag
        &[0x15, 0, 0, 0, 0x3f],                    // simple_value = 0.5
    ]
    .concat();
    assert_eq!(data, expected);
}

#[test]
fn a_file_decodes_to_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path(), 0).unwrap();
    writer.scalars(100, &[("objective", 0.25), ("gap", f64::NAN)]).unwrap();
    writer.scalars(u64::from(u32::MAX), &[]).unwrap();
    let records = records(&std::fs::read(writer.path()).unwrap());
    assert_eq!(records.len(), 4);
    let version = fields(&records[0]);
    assert_eq!(version[2], (3, Field::Bytes(b"brain.Event:2".to_vec())));

    let scalars = fields(&records[2]);
    assert_eq!(scalars[1], (2, Field::Varint(100)));
    let (5, Field::Bytes(summary)) = &scalars[2] else { panic!("{scalars:?}") };
    let values: Vec<_> = fields(summary)
        .into_iter()
        .map(|(number, value)| {
            let (1, Field::Bytes(value)) = (number, value) else { panic!("not a value") };
            match &fields(&value)[..] {
                [(1, Field::Bytes(tag)), (2, Field::Fixed32(number))] => {
                    (String::from_utf8(tag.clone()).unwrap(), f32::from_le_bytes(*number))
                }
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(values[0], ("objective".to_owned(), 0.25));
    assert_eq!((values[1].0.as_str(), values[1].1.is_nan()), ("gap", true));
    assert_eq!(fields(&records[3])[1], (2, Field::Varint(u64::from(u32::MAX))));
}

#[test]
fn a_resumed_run_starts_a_session_in_a_later_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = EventWriter::create(folder.path(), 0).unwrap();
    let second = EventWriter::create(folder.path(), 1001).unwrap();
    assert!(first.path() < second.path());
    let records = records(&std::fs::read(second.path()).unwrap());
    let session = fields(&records[1]);
    assert_eq!(session[1..], [(2, Field::Varint(1001)), (7, Field::Bytes(vec![0x08, 1]))]);
}

#[test]
fn a_missing_folder_is_an_error_that_names_it() {
    let message = EventWriter::create("no/such/folder", 0).unwrap_err().to_string();
    assert!(message.contains("no/such/folder"), "{message}");
}
