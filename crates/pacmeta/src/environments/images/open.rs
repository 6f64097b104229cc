//! Opening a set: find the pictures, see which classes are wanted, decode them or find them decoded.

use std::path::{Path, PathBuf};

use super::cache::{self, default_cache_folder};
use super::decode::{Changes, PictureShape};
use super::lists::{MAX_BYTES, PictureLists};
use super::source::{Found, Listing};
use super::split::{ClassSplit, Part, SplitRecipe, Splits, parse_split};
use super::{ClassId, ImageClass, ImageSet, Pixels, Progress, parallel};
use crate::environments::table::{counted, listed};
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

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
    /// `split.csv`, or `train.csv`, `val.csv` and `test.csv`, in the folder of the pictures; else drawn.
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
    /// What people should know: pictures resized, classes left out, where the split is from.
    pub notes: Vec<String>,
}

/// Opens a set of pictures; decodes them if that was not done before.
///
/// # Errors
/// When there are no pictures, one is damaged, the split file does not fit them, or the cache cannot be written.
pub fn open_images(options: &ImageOptions, progress: &mut dyn Progress) -> Result<OpenedImages> {
    options.shape.check()?;
    let listing = Listing::find(&options.path)?;
    let mut notes = Vec::new();
    let plan = Plan::new(options, &listing, &mut notes)?;
    let pictures: Vec<&Found> = plan
        .classes
        .iter()
        .flat_map(|class| &class.pictures)
        .map(|&place| &listing.pictures[place])
        .collect();
    let (pixels, changes) = match &options.storage {
        Storage::Memory => {
            let mut pixels = Vec::new();
            let changes = parallel::decode_in_order(&listing, &pictures, options.shape, progress, |part| {
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
            let pixels = cache::open_or_make(&folder, &listing, &pictures, options.shape, progress)?;
            let changes = pixels.changes;
            (Pixels::Cached(pixels), changes)
        }
    };
    let shape = options.shape;
    if changes.resized > 0 {
        let (resized, side) = (changes.resized, shape.side);
        notes
            .push(format!("{resized} of {} pictures were resized to {side} x {side} pixels", pictures.len()));
    }
    if changes.converted > 0 {
        let what = if shape.channels.count() == 1 { "grey" } else { "colour" };
        notes.push(format!("{} of {} pictures were converted to {what}", changes.converted, pictures.len()));
    }
    let names = pictures.iter().map(|picture| picture.path()).collect();
    let (classes, mut splits) = plan.number();
    let set = ImageSet::new(options.path.display().to_string(), shape, classes, names, pixels)?;
    if let SplitChoice::Made(recipe) | SplitChoice::Automatic(recipe) = &options.split
        && splits == Splits::default()
    {
        splits = Splits::made(&set, recipe)?;
        let [train, validation, test] = Part::ALL.map(|part| splits.part(part).len());
        notes.push(format!(
            "the split was drawn: {train} classes for training, {validation} for validation, {test} for the test"
        ));
    }
    Ok(OpenedImages { set, splits, changes, notes })
}

/// A class before its pictures are decoded.
struct PlannedClass {
    name: String,
    display_name: String,
    part: Option<Part>,
    /// Places in the listing.
    pictures: Vec<usize>,
}

/// The classes that are wanted.
struct Plan {
    classes: Vec<PlannedClass>,
}

impl Plan {
    fn new(options: &ImageOptions, listing: &Listing, notes: &mut Vec<String>) -> Result<Self> {
        let mut classes = match SplitFile::choose(options)? {
            SplitFile::Lists(folder) => {
                notes.push(format!("the split is that of the lists in {}", folder.display()));
                let found = PictureLists::read(&folder)?.find(listing)?;
                let planned = found.into_iter().map(|class| PlannedClass {
                    display_name: class.label.clone(),
                    name: class.label,
                    part: Some(class.part),
                    pictures: class.pictures,
                });
                planned.collect()
            }
            SplitFile::Classes(path) => {
                notes.push(format!("the split is that of {}", path.display()));
                let split = parse_split(&path.display().to_string(), &read_bounded(&path, MAX_BYTES)?)?;
                by_split(&split, by_folder(options, listing)?, notes)?
            }
            SplitFile::None => by_folder(options, listing)?,
        };
        if let Some(least) = options.min_pictures {
            let (kept, small): (Vec<_>, Vec<_>) =
                classes.into_iter().partition(|class| class.pictures.len() >= least);
            if kept.is_empty() {
                let message = format!(
                    "none of {} has `data.min_examples = {least}` pictures, the largest has {}; lower it",
                    if small.len() == 1 { "1 class".into() } else { format!("{} classes", small.len()) },
                    small.iter().map(|class| class.pictures.len()).max().unwrap_or(0)
                );
                return Err(Error::input(options.path.display(), message));
            }
            if !small.is_empty() {
                let names = listed(small.iter().map(|class| class.name.as_str()));
                notes.push(format!("left out for fewer than {}: {names}", counted(least, "picture")));
            }
            classes = kept;
        }
        Ok(Self { classes })
    }

    /// Classes and parts with the numbers that pictures have once they are decoded in this order.
    fn number(self) -> (Vec<ImageClass>, Splits) {
        let mut splits = Splits::default();
        let mut first = 0;
        let numbered = |(index, class): (usize, PlannedClass)| {
            if let Some(part) = class.part {
                splits.part_mut(part).push(ClassId::upright(index as u32));
            }
            let pictures: Vec<usize> = (first..first + class.pictures.len()).collect();
            first += pictures.len();
            ImageClass { name: class.name, display_name: class.display_name, pictures }
        };
        let classes = self.classes.into_iter().enumerate().map(numbered).collect();
        (classes, splits)
    }
}

/// The file that divides the classes.
enum SplitFile {
    Classes(PathBuf),
    Lists(PathBuf),
    None,
}

impl SplitFile {
    fn choose(options: &ImageOptions) -> Result<Self> {
        match &options.split {
            SplitChoice::Whole | SplitChoice::Made(_) => Ok(Self::None),
            SplitChoice::Automatic(_) => Ok(Self::within(&options.path)),
            SplitChoice::Path(path) if path.is_dir() => match Self::within(path) {
                Self::None => Err(Error::input(
                    path.display(),
                    "expected `split.csv`, or `train.csv`, `val.csv` and `test.csv`, in this folder",
                )),
                found => Ok(found),
            },
            SplitChoice::Path(path) => Ok(Self::Classes(path.clone())),
        }
    }

    fn within(folder: &Path) -> Self {
        let one = folder.join("split.csv");
        if one.is_file() {
            Self::Classes(one)
        } else if PictureLists::are_in(folder) {
            Self::Lists(folder.to_path_buf())
        } else {
            Self::None
        }
    }
}

/// Every folder a class; the listing is sorted by folder.
fn by_folder(options: &ImageOptions, listing: &Listing) -> Result<Vec<PlannedClass>> {
    let mut classes: Vec<PlannedClass> = Vec::new();
    for (place, picture) in listing.pictures.iter().enumerate() {
        match classes.last_mut() {
            Some(class) if class.name == picture.class => class.pictures.push(place),
            _ => classes.push(PlannedClass {
                name: picture.class.clone(),
                display_name: picture.class.clone(),
                part: None,
                pictures: vec![place],
            }),
        }
    }
    if let Some(root) = classes.first().filter(|class| class.name.is_empty())
        && options.root_pictures == RootPictures::Refused
    {
        let message = format!(
            "{} ({}) {} in no folder of a class; give each class a folder of its own",
            counted(root.pictures.len(), "picture"),
            listed(root.pictures.iter().map(|&place| listing.pictures[place].name.as_str())),
            if root.pictures.len() == 1 { "lies" } else { "lie" }
        );
        return Err(Error::input(options.path.display(), message));
    }
    Ok(classes)
}

/// The classes that a split file names, with their parts and names for people, in the order of their names.
fn by_split(
    split: &ClassSplit,
    classes: Vec<PlannedClass>,
    notes: &mut Vec<String>,
) -> Result<Vec<PlannedClass>> {
    split.check_classes(&classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>())?;
    let rows: std::collections::HashMap<&str, _> =
        split.rows.iter().map(|row| (row.class.as_str(), row)).collect();
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for mut class in classes {
        match rows.get(class.name.as_str()) {
            Some(row) => {
                class.part = Some(row.part);
                class.display_name = row.display_name.clone().unwrap_or(class.display_name);
                named.push(class);
            }
            None => others.push(class.name),
        }
    }
    if !others.is_empty() {
        let names = listed(others.iter().map(String::as_str));
        let count = others.len();
        notes.push(format!("{count} classes of the data are not in the split and left out: {names}"));
    }
    Ok(named)
}
