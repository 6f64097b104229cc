//! Pictures: people's own, or the benchmarks', as few-shot episodes.
//!
//! A set of pictures is a folder (or a zip file) with a folder of pictures for every class. All are brought to one shape
//! ([`PictureShape`]), decoded once into a cache that later starts map into memory, and divided by class into training,
//! validation and test parts ([`Splits`]): by a file that says so, or by a keyed draw that can be written down. An
//! [`EpisodeSampler`] draws few-shot tasks from a part. [`strokes`] makes a set of characters, for trying things out.
//!
//! ```
//! use pacmeta::environments::images::{Channels, EpisodeSampler, PictureShape, SplitRecipe, Splits, StrokeOptions, strokes};
//! use pacmeta_tensor::Key;
//!
//! let shape = PictureShape { side: 28, channels: Channels::Grey };
//! let set = strokes(&StrokeOptions { classes: 30, pictures: 20, shape, seed: 1 })?;
//! let recipe = SplitRecipe { way: 5, ..SplitRecipe::standard(Key::new(1)) };
//! let splits = Splits::made(&set, &recipe)?;
//!
//! let sampler = EpisodeSampler { way: 5, shots: 1 + 15 };
//! sampler.check(&set, &splits.train, "training")?;
//! let episode = sampler.draw(&set, &splits.train, Key::new(2).index(0));
//! let mut support = Vec::new();
//! episode.copy_pixels(&set, episode.first_shots(1), &mut support);
//! assert_eq!((episode.len(), support.len()), (80, 5 * 28 * 28));
//! # Ok::<(), pacmeta::Error>(())
//! ```

mod cache;
mod decode;
mod episodes;
mod failures;
mod jpeg;
mod lists;
mod mapped;
mod mini_imagenet;
mod open;
mod parallel;
mod part_folders;
mod plan;
mod source;
mod split;
mod stamps;
mod strokes;
mod walk;

pub use cache::default_cache_folder;
pub use decode::{Changes, Channels, MAX_DIMENSION, PictureShape, decode_picture};
pub use episodes::{Episode, EpisodeSampler, Picture};
pub use lists::{ListedPicture, parse_picture_list};
pub use mini_imagenet::is_mini_imagenet;
pub use open::{
    FoundImages, ImageOptions, OpenedImages, RootPictures, SplitChoice, Storage, find_images, open_images,
};
pub use split::{ClassSplit, Part, SplitRecipe, SplitRow, Splits, parse_split};
pub use strokes::{StrokeOptions, strokes};

use cache::CachedPixels;

use crate::error::{Error, Result};

/// Watches pictures being decoded, and may stop that.
pub trait Progress {
    /// So many pictures of all are decoded.
    fn decoded(&mut self, done: usize, total: usize);

    /// Whether to stop now.
    fn stop(&self) -> bool {
        false
    }
}

/// Says nothing and never stops.
impl Progress for () {
    fn decoded(&mut self, _: usize, _: usize) {}
}

/// A class, or one turned by some right angles, which counts as a class of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId {
    /// The place in [`ImageSet::classes`].
    pub class: u32,
    /// Turns by 90 degrees, clockwise: 0 to 3.
    pub quarter_turns: u8,
}

impl ClassId {
    /// The class as it is.
    pub fn upright(class: u32) -> Self {
        Self { class, quarter_turns: 0 }
    }
}

/// A class of pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageClass {
    /// The name by which files know it.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    /// Its pictures' numbers in the set.
    pub pictures: Vec<usize>,
}

/// Where the pixels are.
#[derive(Debug)]
enum Pixels {
    Memory(Vec<u8>),
    Cached(CachedPixels),
}

/// Pictures of one shape, by class.
#[derive(Debug)]
pub struct ImageSet {
    origin: String,
    shape: PictureShape,
    classes: Vec<ImageClass>,
    names: Vec<String>,
    pixels: Pixels,
}

impl ImageSet {
    /// A set in memory: the pictures of all classes one after the other, each in rows, columns, channels.
    ///
    /// # Errors
    /// When the number of bytes is not that of the pictures that the classes and names speak of.
    pub fn in_memory(
        origin: impl Into<String>,
        shape: PictureShape,
        classes: Vec<ImageClass>,
        names: Vec<String>,
        pixels: Vec<u8>,
    ) -> Result<Self> {
        Self::new(origin.into(), shape, classes, names, Pixels::Memory(pixels))
    }

    fn new(
        origin: String,
        shape: PictureShape,
        classes: Vec<ImageClass>,
        names: Vec<String>,
        pixels: Pixels,
    ) -> Result<Self> {
        shape.check()?;
        let set = Self { origin, shape, classes, names, pixels };
        let expected = set.names.len().checked_mul(set.picture_bytes());
        if expected != Some(set.all_pixels().len()) {
            let message = format!(
                "{} bytes are not those of {} pictures of {} bytes",
                set.all_pixels().len(),
                set.names.len(),
                set.picture_bytes()
            );
            return Err(Error::input(set.origin, message));
        }
        let beyond = |class: &&ImageClass| class.pictures.iter().any(|&picture| picture >= set.names.len());
        if let Some(class) = set.classes.iter().find(beyond) {
            let message = format!("class `{}` has a picture that is not there", class.name);
            return Err(Error::input(set.origin, message));
        }
        if u32::try_from(set.classes.len()).is_err() {
            return Err(Error::input(set.origin, "there are more classes than 32 bits can number"));
        }
        Ok(set)
    }

    /// Where the pictures are from, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The number of rows, and of columns, of a picture.
    pub fn side(&self) -> usize {
        self.shape.side
    }

    /// The number of channels of a pixel: 1 or 3.
    pub fn channels(&self) -> usize {
        self.shape.channels.count()
    }

    /// The shape of every picture.
    pub fn shape(&self) -> PictureShape {
        self.shape
    }

    /// The number of bytes of a picture.
    pub fn picture_bytes(&self) -> usize {
        self.shape.bytes()
    }

    /// The number of pictures.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no picture.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The classes.
    pub fn classes(&self) -> &[ImageClass] {
        &self.classes
    }

    /// All classes as they are, in order.
    pub fn class_ids(&self) -> Vec<ClassId> {
        (0..self.classes.len() as u32).map(ClassId::upright).collect()
    }

    /// A picture's folder and file name.
    ///
    /// # Panics
    /// When there is no such picture.
    pub fn picture_name(&self, picture: usize) -> &str {
        &self.names[picture]
    }

    /// The pixels of a picture: rows, columns, channels.
    ///
    /// # Panics
    /// When there is no such picture.
    pub fn pixels(&self, picture: usize) -> &[u8] {
        let size = self.picture_bytes();
        &self.all_pixels()[picture * size..][..size]
    }

    /// CRC-32C of all pixels.
    pub fn checksum(&self) -> u32 {
        match &self.pixels {
            Pixels::Memory(pixels) => crc32c::crc32c(pixels),
            Pixels::Cached(pixels) => pixels.checksum,
        }
    }

    fn all_pixels(&self) -> &[u8] {
        match &self.pixels {
            Pixels::Memory(pixels) => pixels,
            Pixels::Cached(pixels) => pixels.bytes(),
        }
    }

    /// Appends a picture turned clockwise by right angles.
    pub(crate) fn append_turned(&self, picture: usize, quarter_turns: u8, out: &mut Vec<u8>) {
        let (side, channels) = (self.side(), self.channels());
        let pixels = self.pixels(picture);
        let last = side - 1;
        let turns = quarter_turns % 4;
        if turns == 0 {
            out.extend_from_slice(pixels);
            return;
        }
        for row in 0..side {
            for column in 0..side {
                let (from_row, from_column) = match turns {
                    1 => (last - column, row),
                    2 => (last - row, last - column),
                    _ => (column, last - row),
                };
                let start = (from_row * side + from_column) * channels;
                out.extend_from_slice(&pixels[start..start + channels]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
