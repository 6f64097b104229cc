//! Bytes of pictures: formats, other shapes, damage, enormous sizes.

use image::{DynamicImage, GrayImage, ImageFormat, Luma, LumaA, Rgb, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::files::{encode, png};
use super::*;

/// A picture with a different colour at every place.
fn gradient(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([(x * 9 % 256) as u8, (y * 7 % 256) as u8, ((x + y) * 3 % 256) as u8])
    })
}

const COLOUR: PictureShape = PictureShape { side: 24, channels: Channels::Colour };
const GREY: PictureShape = PictureShape { side: 24, channels: Channels::Grey };

#[test]
fn the_three_formats_are_read_whatever_the_name() {
    let picture = DynamicImage::ImageRgb8(gradient(24, 24));
    for format in [ImageFormat::Png, ImageFormat::WebP] {
        let (pixels, changes) = decode_picture("a.jpg", &encode(&picture, format), COLOUR).unwrap();
        assert_eq!((pixels.as_slice(), changes), (picture.as_bytes(), Changes::default()));
    }
    let (pixels, _) = decode_picture("a", &encode(&picture, ImageFormat::Jpeg), COLOUR).unwrap();
    let error: f64 = pixels.iter().zip(picture.as_bytes()).map(|(&a, &b)| f64::from(a.abs_diff(b))).sum();
    assert!(error / pixels.len() as f64 <= 24.0, "JPEG is near: mean error {}", error / pixels.len() as f64);
}

#[test]
fn other_sizes_and_channels_are_brought_to_the_shape_and_counted() {
    let flat = DynamicImage::ImageLuma8(GrayImage::from_pixel(50, 10, Luma([77])));
    let bytes = encode(&flat, ImageFormat::Png);
    let (pixels, changes) = decode_picture("a", &bytes, COLOUR).unwrap();
    assert_eq!((pixels, changes), (vec![77; 24 * 24 * 3], Changes { resized: 1, converted: 1 }));
    let (pixels, changes) = decode_picture("a", &bytes, GREY).unwrap();
    assert_eq!((pixels, changes), (vec![77; 24 * 24], Changes { resized: 1, converted: 0 }));

    // Half transparent black on white is grey; wholly transparent is white whatever its colour.
    let glass =
        RgbaImage::from_fn(24, 24, |x, _| if x < 12 { Rgba([0, 0, 0, 128]) } else { Rgba([9, 200, 9, 0]) });
    for shape in [COLOUR, GREY] {
        let bytes = encode(&DynamicImage::ImageRgba8(glass.clone()), ImageFormat::Png);
        let (pixels, changes) = decode_picture("a", &bytes, shape).unwrap();
        assert_eq!((pixels[0], *pixels.last().unwrap(), changes.converted), (127, 255, 1));
    }
    let deep = image::ImageBuffer::from_pixel(24, 24, LumaA([0x8080u16, 0xffff]));
    let bytes = encode(&DynamicImage::ImageLumaA16(deep), ImageFormat::Png);
    assert_eq!(decode_picture("a", &bytes, GREY).unwrap().0, vec![128; 576]);

    // A left half black and a right half white stay so when enlarged or reduced.
    for side in [7, 24, 101] {
        let half = GrayImage::from_fn(side, side, |x, _| Luma([if 2 * x + 1 > side { 255 } else { 0 }]));
        let bytes = encode(&DynamicImage::ImageLuma8(half), ImageFormat::Png);
        let (pixels, _) = decode_picture("a", &bytes, GREY).unwrap();
        assert!(pixels.chunks(24).all(|row| row[2] < 30 && row[21] > 225), "{side}");
    }
}

#[test]
fn every_cut_of_a_picture_is_an_error_that_names_it() {
    let picture = DynamicImage::ImageRgb8(gradient(24, 24));
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
        let bytes = encode(&picture, format);
        let mut accepted = Vec::new();
        for length in 0..bytes.len() {
            match decode_picture("some.zip, entry `a.png`", &bytes[..length], COLOUR) {
                Ok((pixels, _)) => accepted.push((length, pixels)),
                Err(error) => {
                    assert!(error.is_input() && error.to_string().starts_with("some.zip, entry `a.png`: "))
                }
            }
        }
        // The last bytes of a PNG file (the end chunk) and of a JPEG file (the end mark) hold no pixels: nothing is lost with
        // them.
        let whole = decode_picture("whole", &bytes, COLOUR).unwrap().0;
        for (length, pixels) in accepted {
            assert!(
                length + 16 >= bytes.len() && pixels == whole,
                "{format:?}: {length} of {} bytes",
                bytes.len()
            );
        }
    }
}

#[test]
fn an_empty_file_is_called_so() {
    let problem = decode_picture("cat.png", b"", COLOUR).unwrap_err();
    assert_eq!(problem.to_string(), "cat.png: is empty; fetch it again, or remove it");
}

#[test]
fn enormous_pictures_are_refused_before_they_are_decoded() {
    let mut bytes = png(24, 0);
    // Width and height of a PNG file are at 16 and 20, their checksum at 29.
    for (width, height) in [(20_000u32, 24u32), (24, 20_000), (u32::MAX, u32::MAX), (16_000, 16_000)] {
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        bytes[25] = 6; // four channels
        let checksum = crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
        let message = decode_picture("big.png", &bytes, GREY).unwrap_err().to_string();
        assert!(message.starts_with("big.png: the picture is too large"), "{width} x {height}: {message}");
    }
}

/// 15,000 x 15,000 grey pixels are 215 MiB and would be 644 MiB more as colours. The header alone is there, so that one that
/// is allowed fails later.
#[test]
fn copies_with_other_channels_count_as_memory() {
    let mut bytes = png(24, 0);
    bytes[16..20].copy_from_slice(&15_000u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&15_000u32.to_be_bytes());
    let checksum = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    let message = |shape| decode_picture("big.png", &bytes, shape).unwrap_err().to_string();
    assert!(message(COLOUR).starts_with("big.png: the picture is too large"), "{}", message(COLOUR));
    assert!(message(GREY).starts_with("big.png: the picture is damaged or cut short"), "{}", message(GREY));
}

/// The checksum of PNG files, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Damaged pictures are decoded to the asked shape or refused.
    #[test]
    fn damaged_pictures_never_panic(place in 0usize..4000, value: u8) {
        let picture = DynamicImage::ImageRgb8(gradient(24, 24));
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let mut bytes = encode(&picture, format);
            let index = place % bytes.len();
            bytes[index] = value;
            match decode_picture("damaged", &bytes, COLOUR) {
                Ok((pixels, _)) => prop_assert_eq!(pixels.len(), COLOUR.bytes()),
                Err(error) => prop_assert!(error.is_input(), "{error}"),
            }
        }
    }
}
