//! From the bytes of a picture file to pixels of one shape: side x side x channels, rows first, then columns, then
//! channels, one byte each.
//!
//! Pictures of another size are stretched to the square (Lanczos filter of three lobes, wide enough when shrinking),
//! colours become grey by their luminance, grey is repeated in three channels, transparent pixels are laid on white, and
//! the orientation that a camera noted is followed. How many pictures were changed is counted, so that people can be told.

use std::borrow::Cow;
use std::io::Cursor;

use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{
    ColorType, DynamicImage, GrayImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage,
};

use super::jpeg::{self, Damage, Whole};
use crate::error::{Error, Result};

/// Pictures that are wider or higher are refused.
pub const MAX_DIMENSION: u32 = 16_384;

/// A picture may take this much memory, besides its file: what the decoder needs, its output, and copies with other channels.
const MAX_MEMORY: u64 = 512 << 20;

/// The channels of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    /// One channel, black to white.
    Grey,
    /// Three channels: red, green and blue.
    Colour,
}

impl Channels {
    /// The number of channels.
    pub fn count(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Colour => 3,
        }
    }

    /// The channels of this number: 1 or 3.
    pub fn from_count(count: usize) -> Option<Self> {
        match count {
            1 => Some(Self::Grey),
            3 => Some(Self::Colour),
            _ => None,
        }
    }
}

/// The shape that every picture of a set is brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureShape {
    /// The number of rows, and of columns.
    pub side: usize,
    /// The channels of a pixel.
    pub channels: Channels,
}

impl PictureShape {
    /// The largest side; beyond it a set would not fit any memory.
    pub const MAX_SIDE: usize = 2_048;

    /// The number of bytes of a picture.
    pub fn bytes(&self) -> usize {
        self.side * self.side * self.channels.count()
    }

    /// Refuses a side that no picture can have.
    ///
    /// # Errors
    /// When it is 0 or larger than [`MAX_SIDE`](Self::MAX_SIDE).
    pub fn check(&self) -> Result<()> {
        if (1..=Self::MAX_SIDE).contains(&self.side) {
            return Ok(());
        }
        let message = format!("expected 1 to {} pixels, found {}", Self::MAX_SIDE, self.side);
        Err(Error::config("data.side", message))
    }
}

/// How many pictures had another shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Pictures of another size.
    pub resized: u64,
    /// Pictures with other channels (grey for colour, colour for grey, or transparency).
    pub converted: u64,
}

impl std::ops::AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        self.resized += other.resized;
        self.converted += other.converted;
    }
}

/// Decodes a PNG, JPEG or WebP picture; `origin` is its name in messages.
///
/// # Errors
/// When the bytes are of another format, damaged or cut short, or the picture is larger than 16384 x 16384 pixels or
/// half a gigabyte.
///
/// ```
/// use pacmeta::environments::images::{Channels, PictureShape, decode_picture};
///
/// let shape = PictureShape { side: 2, channels: Channels::Grey };
/// let problem = decode_picture("cat.png", b"miaow", shape).unwrap_err().to_string();
/// assert!(problem.starts_with("cat.png: is not a PNG, JPEG or WebP picture"));
/// ```
pub fn decode_picture(origin: &str, bytes: &[u8], shape: PictureShape) -> Result<(Vec<u8>, Changes)> {
    shape.check()?;
    let mut pixels = vec![0; shape.bytes()];
    let changes = decode_into(origin, bytes, shape, &mut pixels)?;
    Ok((pixels, changes))
}

/// Decodes into `pixels`, which has the size of the shape.
pub(super) fn decode_into(
    origin: &str,
    bytes: &[u8],
    shape: PictureShape,
    pixels: &mut [u8],
) -> Result<Changes> {
    let picture = decode_whole(bytes, shape).map_err(|message| Error::input(origin, message))?;
    let resized = (picture.width() as usize, picture.height() as usize) != (shape.side, shape.side);
    let side = shape.side as u32;
    let converted = match shape.channels {
        Channels::Grey => {
            let converted = !matches!(picture.color(), ColorType::L8 | ColorType::L16);
            let grey = grey_on_white(picture);
            let grey = if resized { imageops::resize(&grey, side, side, FilterType::Lanczos3) } else { grey };
            pixels.copy_from_slice(grey.as_raw());
            converted
        }
        Channels::Colour => {
            let converted = !matches!(picture.color(), ColorType::Rgb8 | ColorType::Rgb16);
            let colour = colour_on_white(picture);
            let colour =
                if resized { imageops::resize(&colour, side, side, FilterType::Lanczos3) } else { colour };
            pixels.copy_from_slice(colour.as_raw());
            converted
        }
    };
    Ok(Changes { resized: u64::from(resized), converted: u64::from(converted) })
}

/// The picture as it is in the file, turned upright; `shape` is what it will be brought to.
fn decode_whole(bytes: &[u8], shape: PictureShape) -> std::result::Result<DynamicImage, String> {
    if bytes.is_empty() {
        return Err("is empty; fetch it again, or remove it".into());
    }
    let format = image::guess_format(bytes).map_err(explain)?;
    let (mut bytes, mut kept_coefficients) = (Cow::Borrowed(bytes), 0);
    if format == ImageFormat::Jpeg {
        // The decoder fills what is missing with grey and says nothing.
        let whole = jpeg::check(&bytes).map_err(not_whole)?;
        let Whole { has_end, kept_coefficients: kept } = whole;
        kept_coefficients = kept;
        if !has_end {
            bytes.to_mut().extend([0xff, 0xd9]);
        }
    }
    let mut reader = ImageReader::with_format(Cursor::new(&*bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DIMENSION);
    limits.max_image_height = Some(MAX_DIMENSION);
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(explain)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    let decoding = match format {
        ImageFormat::Jpeg => 2 * kept_coefficients,
        // Colours and opacity of all pixels, before they become the output.
        ImageFormat::WebP => 4 * pixels,
        _ => 0,
    };
    let copies = copied_bytes(decoder.color_type(), orientation, shape.channels) * pixels;
    // Columns are resized first, as four numbers of four bytes a pixel, whichever of the sides are the columns.
    let resizing =
        pixels * shape.channels.count() as u64 + 16 * u64::from(width.max(height)) * shape.side as u64;
    if decoder.total_bytes().saturating_add(decoding.max(copies)).max(resizing) > MAX_MEMORY {
        return Err(too_large());
    }
    let mut picture = DynamicImage::from_decoder(decoder).map_err(explain)?;
    picture.apply_orientation(orientation);
    if picture.width() == 0 || picture.height() == 0 {
        return Err("the picture has no pixels".into());
    }
    Ok(picture)
}

/// The bytes a pixel that copies take while the decoder's output, or what takes its place, is there too.
fn copied_bytes(colour: ColorType, orientation: Orientation, channels: Channels) -> u64 {
    use ColorType::{L8, Rgb8, Rgba8};
    let turned = match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => u64::from(colour.bytes_per_pixel()),
        _ => 0,
    };
    let converted = match (colour, channels) {
        (L8, Channels::Grey) | (Rgb8, Channels::Colour) => 0,
        // Laid on white: from four channels of a byte, which have to be made first, to three.
        (Rgba8, _) => 3,
        (colour, _) if colour.has_alpha() => 5,
        (_, Channels::Grey) => 1,
        (_, Channels::Colour) => 3,
    };
    turned.max(converted)
}

fn explain(problem: ImageError) -> String {
    match problem {
        ImageError::Limits(_) => too_large(),
        ImageError::Unsupported(_) => {
            "is not a PNG, JPEG or WebP picture, whatever its name; convert or remove it".into()
        }
        other => damaged(&other.to_string()),
    }
}

fn not_whole(damage: Damage) -> String {
    match damage {
        Damage::Rare => format!("is a JPEG of a rare kind ({}); convert it", damage.words()),
        damage => damaged(damage.words()),
    }
}

fn damaged(how: &str) -> String {
    format!("the picture is damaged or cut short ({how}); fetch it again or remove it")
}

fn too_large() -> String {
    format!(
        "the picture is too large; at most {MAX_DIMENSION} x {MAX_DIMENSION} pixels and {} MiB, working memory included, \
         are decoded; shrink it",
        MAX_MEMORY >> 20
    )
}

/// `value` laid on white with this opacity, rounded.
fn on_white(value: u8, opacity: u8) -> u8 {
    let (value, opacity) = (u32::from(value), u32::from(opacity));
    ((value * opacity + 255 * (255 - opacity) + 127) / 255) as u8
}

fn colour_on_white(picture: DynamicImage) -> RgbImage {
    if !picture.has_alpha() {
        return picture.into_rgb8();
    }
    let (width, height) = (picture.width(), picture.height());
    let transparent = picture.into_rgba8();
    RgbImage::from_fn(width, height, |column, row| {
        let [red, green, blue, opacity] = transparent.get_pixel(column, row).0;
        image::Rgb([red, green, blue].map(|value| on_white(value, opacity)))
    })
}

fn grey_on_white(picture: DynamicImage) -> GrayImage {
    if !picture.has_alpha() {
        return picture.into_luma8();
    }
    DynamicImage::ImageRgb8(colour_on_white(picture)).into_luma8()
}
