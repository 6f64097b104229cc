//! Which pictures are of which class, and which classes are for what, before anything is decoded.

use std::path::{Path, PathBuf};

use super::lists::{MAX_BYTES, PictureLists};
use super::open::{ImageOptions, RootPictures, SplitChoice};
use super::source::Listing;
use super::split::{ClassSplit, Part, Splits, parse_split};
use super::{ClassId, ImageClass, part_folders};
use crate::environments::table::{counted, listed};
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

/// A class before its pictures are decoded.
pub(super) struct PlannedClass {
    pub(super) name: String,
    pub(super) display_name: String,
    pub(super) part: Option<Part>,
    /// Places in the listing.
    pub(super) pictures: Vec<usize>,
}

/// The classes that are wanted.
pub(super) struct Plan {
    classes: Vec<PlannedClass>,
}

impl Plan {
    pub(super) fn new(options: &ImageOptions, listing: &Listing, notes: &mut Vec<String>) -> Result<Self> {
        let mut classes = match SplitFile::choose(options)? {
            SplitFile::Lists(folder) => {
                let lists = PictureLists::read(&folder)?;
                let without =
                    if lists.has(Part::Validation) { "" } else { ", which has none for validation" };
                notes.push(format!("the split is that of the lists in {}{without}", folder.display()));
                let planned = lists.find(listing)?.into_iter().map(|class| PlannedClass {
                    display_name: class.label.clone(),
                    name: class.label,
                    part: Some(class.part),
                    pictures: class.pictures,
                });
                planned.collect()
            }
            SplitFile::Classes(path) => {
                notes.push(format!("the split is that of {}", path.display()));
                let split = parse_split(&path.display().to_string(), &read_split(&path)?)?;
                by_split(&split, by_folder(options, listing)?, notes)?
            }
            SplitFile::None => {
                let mut classes = by_folder(options, listing)?;
                if matches!(options.split, SplitChoice::Automatic(_)) {
                    match part_folders::divide(&options.path, &mut classes)? {
                        Some(note) => notes.push(note),
                        None => listing.refuse_hidden_splits()?,
                    }
                }
                classes
            }
        };
        if let Some(least) = options.min_pictures {
            let (kept, small): (Vec<_>, Vec<_>) =
                classes.into_iter().partition(|class| class.pictures.len() >= least);
            if kept.is_empty() {
                let message = format!(
                    "none of {} has `data.min_examples = {least}` pictures, the largest has {}; lower it{}",
                    if small.len() == 1 { "1 class".into() } else { format!("{} classes", small.len()) },
                    small.iter().map(|class| class.pictures.len()).max().unwrap_or(0),
                    listing.passed_over().map_or(String::new(), |others| format!("; {others}"))
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

    /// Classes and parts with the numbers that pictures have once they are decoded, and the places of the pictures in this
    /// order.
    pub(super) fn number(self) -> (Vec<ImageClass>, Vec<usize>, Splits) {
        let (mut splits, mut places) = (Splits::default(), Vec::new());
        let numbered = |(index, class): (usize, PlannedClass)| {
            if let Some(part) = class.part {
                splits.part_mut(part).push(ClassId::upright(index as u32));
            }
            let first = places.len();
            places.extend(class.pictures);
            let pictures = (first..places.len()).collect();
            ImageClass { name: class.name, display_name: class.display_name, pictures }
        };
        let classes = self.classes.into_iter().enumerate().map(numbered).collect();
        (classes, places, splits)
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
            SplitChoice::Automatic(_) if options.path.is_dir() => Self::within(&options.path),
            // beside a zip file
            SplitChoice::Automatic(_) => Self::within(options.path.parent().unwrap_or(Path::new(""))),
            SplitChoice::Path(path) if path.is_dir() => match Self::within(path)? {
                Self::None => Err(Error::input(
                    path.display(),
                    "expected `split.csv`, or `train.csv`, `val.csv` and `test.csv`, in this folder",
                )),
                found => Ok(found),
            },
            SplitChoice::Path(path) => Ok(Self::Classes(path.clone())),
        }
    }

    fn within(folder: &Path) -> Result<Self> {
        let one = folder.join("split.csv");
        Ok(if one.is_file() {
            Self::Classes(one)
        } else if PictureLists::are_in(folder)? {
            Self::Lists(folder.to_path_buf())
        } else {
            Self::None
        })
    }
}

fn read_split(path: &Path) -> Result<Vec<u8>> {
    read_bounded(path, MAX_BYTES).map_err(|error| match error {
        Error::Io { action, path, source, .. } => {
            let expected = Some(
                "a CSV file with the columns `class` and `split`, or a folder with one; check `data.split`",
            );
            Error::Io { action, path, source, expected }
        }
        other => other,
    })
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
        let (classes, are) = match others.len() {
            1 => ("1 class".to_owned(), "is"),
            count => (format!("{count} classes"), "are"),
        };
        notes.push(format!("{classes} of the data {are} not in the split and left out: {names}"));
    }
    Ok(named)
}
