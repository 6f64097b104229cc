//! Files of this and of another program (libjpeg: progressive, and with restarts), whole, cut and damaged.

use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage};

use super::*;
use crate::environments::images::tests::files::encode;
use crate::environments::images::{Channels, PictureShape, decode_picture};

const PROGRESSIVE: &[u8] = include_bytes!("tests/progressive.jpg");
const RESTARTS: &[u8] = include_bytes!("tests/restarts.jpg");
const SHAPE: PictureShape = PictureShape { side: 24, channels: Channels::Colour };

/// The same for every call, and nothing that a code could shorten.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1u32;
    DynamicImage::ImageLuma8(GrayImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Luma([(state >> 24) as u8])
    }))
}

fn colours(width: u32, height: u32) -> DynamicImage {
    let colour = |x: u32, y: u32| Rgb([(x * 9 % 256) as u8, (y * 7 % 256) as u8, ((x * y) % 256) as u8]);
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, colour))
}

#[test]
fn whole_files_are_whole() {
    for (width, height) in [(1, 1), (8, 8), (24, 24), (37, 21), (130, 60)] {
        for picture in [noise(width, height), colours(width, height)] {
            let found = check(&encode(&picture, ImageFormat::Jpeg));
            assert_eq!(found, Ok(Whole { has_end: true, kept_coefficients: 0 }), "{width} x {height}");
        }
    }
    assert_eq!(check(RESTARTS), Ok(Whole { has_end: true, kept_coefficients: 0 }));
    // 29 x 21 pixels are 2 x 2 groups of four blocks of luminance and two of colour.
    assert_eq!(check(PROGRESSIVE), Ok(Whole { has_end: true, kept_coefficients: 4 * 6 * 64 }));
    // What follows the end does not matter.
    assert_eq!(check(&[RESTARTS, b"more"].concat()), check(RESTARTS));
}

#[test]
fn what_lacks_its_end_is_whole_only_if_nothing_else_can_be_missing() {
    let bytes = encode(&noise(24, 24), ImageFormat::Jpeg);
    for bytes in [&bytes, RESTARTS] {
        let cut = &bytes[..bytes.len() - 2];
        assert_eq!(check(cut), Ok(Whole { has_end: false, kept_coefficients: 0 }));
        let (whole, cut) = (decode_picture("whole", bytes, SHAPE), decode_picture("cut", cut, SHAPE));
        assert_eq!(cut.unwrap(), whole.unwrap());
    }
    // of a progressive file all bits are known to be there after its last scan only
    let cut = &PROGRESSIVE[..PROGRESSIVE.len() - 2];
    assert_eq!(check(cut), Ok(Whole { has_end: false, kept_coefficients: 4 * 6 * 64 }));
    assert_eq!(
        decode_picture("cut", cut, SHAPE).unwrap(),
        decode_picture("whole", PROGRESSIVE, SHAPE).unwrap()
    );
    assert!(check(&PROGRESSIVE[..PROGRESSIVE.len() - 12]).is_err());
}

/// Cameras pad; a transfer that broke leaves zeros to the end of the file.
#[test]
fn a_little_padding_in_front_of_a_marker_is_no_damage() {
    let bytes = encode(&noise(24, 24), ImageFormat::Jpeg);
    let (body, end) = bytes.split_at(bytes.len() - 2);
    let expected = decode_picture("whole", &bytes, SHAPE).unwrap();
    let eight: &[u8] = &[0; 8];
    for padding in [&[0][..], eight, &[0xff, 0x00], &[0xff, 0x00, 0xff, 0x00]] {
        let padded = [body, padding, end].concat();
        assert_eq!(check(&padded), Ok(Whole { has_end: true, kept_coefficients: 0 }), "{padding:?}");
        assert_eq!(decode_picture("padded", &padded, SHAPE).unwrap(), expected, "{padding:?}");
        assert_eq!(check(&[body, padding].concat()), Err(Damage::LeftOver), "{padding:?}");
    }
    assert_eq!(check(&[body, &[0; 200], end].concat()), Err(Damage::LeftOver));
    assert_eq!(check(&[body, &[0x5a], end].concat()), Err(Damage::LeftOver));
}

#[test]
fn rare_kinds_are_named_as_such() {
    let bytes = encode(&noise(24, 24), ImageFormat::Jpeg);
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    let changed = |place: usize, byte: u8| {
        let mut changed = bytes.clone();
        changed[place] = byte;
        decode_picture("rare.jpg", &changed, SHAPE).unwrap_err().to_string()
    };
    // arithmetic codes, lossless, twelve bits
    for (place, byte) in [(frame + 1, 0xc9), (frame + 1, 0xc3), (frame + 4, 12)] {
        let error = changed(place, byte);
        assert!(error.contains("a rare kind") && error.contains("convert it"), "{error}");
    }
}

/// The end mark alone proves nothing: every file that is cut anywhere and closed by it is refused.
#[test]
fn every_cut_is_noticed_behind_an_end_mark() {
    let written = encode(&colours(24, 24), ImageFormat::Jpeg);
    for bytes in [&written, PROGRESSIVE, RESTARTS] {
        decode_picture("whole", bytes, SHAPE).unwrap();
        for length in 0..bytes.len() - 2 {
            let cut = [&bytes[..length], &[0xff, 0xd9]].concat();
            let error = decode_picture("cut.jpg", &cut, SHAPE).unwrap_err();
            assert!(error.is_input() && error.to_string().starts_with("cut.jpg: "), "{length}: {error}");
        }
    }
}

#[test]
fn zeros_in_the_middle_are_noticed_where_codes_can_tell() {
    let bytes = encode(&noise(96, 96), ImageFormat::Jpeg);
    assert!(bytes.len() > 3_000, "{} bytes", bytes.len());
    let places: Vec<usize> = (0..10).map(|part| 800 + part * (bytes.len() - 1_400) / 10).collect();
    let refused = places.iter().filter(|&&place| {
        let mut damaged = bytes.clone();
        damaged[place..place + 400].fill(0);
        decode_picture("damaged.jpg", &damaged, SHAPE).is_err()
    });
    let refused = refused.count();
    assert!(refused >= 7, "{refused} of {} are refused", places.len());
}
