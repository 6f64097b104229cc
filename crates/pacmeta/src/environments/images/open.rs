//! Opening a set: find the pictures, see which classes are wanted, decode them or find them decoded.

use std::path::PathBuf;

use super::cache::{self, default_cache_folder};
use super::decode::{Changes, PictureShape};
use super::episodes::EpisodeSampler;
use super::plan::Plan;
use super::source::{Found, Listing, Wanted, endings};
use super::split::{Part, SplitRecipe, Splits};
use super::{ClassId, ImageClass, ImageSet, Pixels, Progress, parallel};
use crate::error::{Error, Result};

/// Where decoded pixels are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Storage {
    /// In the cache folder of the user: see [`default_cache_folder`].
    #[default]
    Cache,
    /// In this cache folder.
    CacheIn(PathBuf),
    /// In memory, decoded at every start: for a handful of pictures.
    Memory,
}

/// What pictures outside of any class's folder are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RootPictures {
    /// An error, for their class is not known.
    #[default]
    Refused,
    /// A class with an empty name: pictures to be classified.
    OneClass,
}

/// Where the division of the classes comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum SplitChoice {
    /// No division: the classes are one small set.
    Whole,
    /// `split.csv`, or `train.csv`, `val.csv` and `test.csv`, in the folder of the pictures; else folders `train`, `val` and
    /// `test` with folders of classes; else drawn.
    Automatic(SplitRecipe),
    /// This CSV file, or this folder with one or three.
    Path(PathBuf),
    /// Drawn.
    Made(SplitRecipe),
}

/// What to open, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageOptions {
    /// A folder or a zip file.
    pub path: PathBuf,
    /// The shape to bring the pictures to.
    pub shape: PictureShape,
    /// Where decoded pixels are kept.
    pub storage: Storage,
    /// Which classes are for what.
    pub split: SplitChoice,
    /// Classes with fewer pictures are left out.
    pub min_pictures: Option<usize>,
    /// What pictures outside of any class's folder are.
    pub root_pictures: RootPictures,
}

impl ImageOptions {
    /// A set in one piece, decoded in memory: all classes, no division.
    pub fn small(path: impl Into<PathBuf>, shape: PictureShape) -> Self {
        Self {
            path: path.into(),
            shape,
            storage: Storage::Memory,
            split: SplitChoice::Whole,
            min_pictures: None,
            root_pictures: RootPictures::Refused,
        }
    }
}

/// A set that was opened.
#[derive(Debug)]
pub struct OpenedImages {
    /// The pictures.
    pub set: ImageSet,
    /// The parts; all empty for [`SplitChoice::Whole`].
    pub splits: Splits,
    /// How many pictures had another shape.
    pub changes: Changes,
    /// What people should know: pictures resized, classes left out, files and folders passed over, where the split is from.
    pub notes: Vec<String>,
}

/// Pictures that were found, with their classes, but not decoded.
#[derive(Debug)]
pub struct FoundImages {
    options: ImageOptions,
    listing: Listing,
    /// Places in the listing, in the order of the classes.
    places: Vec<usize>,
    classes: Vec<ImageClass>,
    splits: Splits,
    is_drawn: bool,
    notes: Vec<String>,
}

/// Looks for pictures and divides their classes, which takes no time worth mentioning.
///
/// # Errors
/// When there are no pictures, or the split does not fit them.
pub fn find_images(options: &ImageOptions) -> Result<FoundImages> {
    options.shape.check()?;
    let wanted = match options.root_pictures {
        RootPictures::Refused => Wanted::Classes,
        RootPictures::OneClass => Wanted::Pictures,
    };
    let listing = Listing::find(&options.path, wanted)?;
    let mut notes = Vec::new();
    let plan = Plan::new(options, &listing, &mut notes)?;
    let (classes, places, mut splits) = plan.number();
    let mut is_drawn = false;
    if let SplitChoice::Made(recipe) | SplitChoice::Automatic(recipe) = &options.split
        && splits == Splits::default()
    {
        is_drawn = true;
        let count = u32::try_from(classes.len()).map_err(|_| {
            Error::input(options.path.display(), "there are more classes than 32 bits can number")
        })?;
        splits = Splits::drawn(count, recipe)?;
        let [train, validation, test] = Part::ALL.map(|part| splits.part(part).len());
        notes.push(format!(
            "the split was drawn: {train} classes for training, {validation} for validation, {test} for the test"
        ));
    }
    if wanted == Wanted::Classes {
        notes.extend(listing.without_pictures());
    }
    notes.extend(listing.passed_over());
    Ok(FoundImages { options: options.clone(), listing, places, classes, splits, is_drawn, notes })
}

impl FoundImages {
    /// The classes.
    pub fn classes(&self) -> &[ImageClass] {
        &self.classes
    }

    /// The parts; all empty for [`SplitChoice::Whole`].
    pub fn splits(&self) -> &Splits {
        &self.splits
    }

    /// Whether the parts were drawn, and are not those of a file or of folders.
    pub fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    /// As [`EpisodeSampler::check`], before anything is decoded.
    ///
    /// # Errors
    /// When there are too few classes or pictures; files that were passed over, and folders without a picture, are mentioned.
    pub fn check(&self, sampler: &EpisodeSampler, classes: &[ClassId], part: &str) -> Result<()> {
        sampler.check_sizes(&self.classes, classes, part).map_err(|mut message| {
            if let Some(others) = self.listing.passed_over() {
                message.push_str(&format!("; {others}, for pictures end in {}", endings()));
            }
            if let Some(folders) = self.listing.without_pictures() {
                message.push_str(&format!("; {folders}"));
            }
            Error::input(self.options.path.display(), message)
        })
    }

    /// Decodes the pictures if that was not done before.
    ///
    /// # Errors
    /// When pictures are damaged, or the cache cannot be written.
    pub fn open(self, progress: &mut dyn Progress) -> Result<OpenedImages> {
        let Self { options, listing, places, classes, splits, mut notes, .. } = self;
        let shape = options.shape;
        let pictures: Vec<&Found> = places.iter().map(|&place| &listing.pictures[place]).collect();
        let (pixels, changes) = match &options.storage {
            Storage::Memory => {
                let mut pixels = Vec::new();
                let changes = parallel::decode_in_order(&listing, &pictures, shape, progress, |part| {
                    pixels.try_reserve(part.len()).map_err(|_| {
                        let message = "the decoded pictures do not fit into memory; use a cache folder";
                        Error::input(options.path.display(), message)
                    })?;
                    pixels.extend_from_slice(part);
                    Ok(())
                })?;
                (Pixels::Memory(pixels), changes)
            }
            storage => {
                let folder = match storage {
                    Storage::CacheIn(folder) => folder.clone(),
                    _ => default_cache_folder()?,
                };
                let pixels = cache::open_or_make(&folder, &listing, &pictures, shape, progress)?;
                let changes = pixels.changes;
                (Pixels::Cached(pixels), changes)
            }
        };
        let total = pictures.len();
        if changes.resized > 0 {
            let (resized, side) = (changes.resized, shape.side);
            notes.push(format!("{resized} of {total} pictures were resized to {side} x {side} pixels"));
        }
        if changes.converted > 0 {
            let what = if shape.channels.count() == 1 { "grey" } else { "colour" };
            notes.push(format!("{} of {total} pictures were converted to {what}", changes.converted));
        }
        let names = pictures.iter().map(|picture| picture.path()).collect();
        let set = ImageSet::new(options.path.display().to_string(), shape, classes, names, pixels)?;
        Ok(OpenedImages { set, splits, changes, notes })
    }
}

/// Opens a set of pictures; decodes them if that was not done before.
///
/// # Errors
/// As [`find_images`] and [`FoundImages::open`].
pub fn open_images(options: &ImageOptions, progress: &mut dyn Progress) -> Result<OpenedImages> {
    find_images(options)?.open(progress)
}
