//! Lists of pictures: `train.csv`, `val.csv` and `test.csv` with the columns `filename` and `label`, as Ravi and Larochelle
//! published them for miniImageNet. Labels are the classes, wherever the files lie; a file is found by its path or, whatever
//! its ending, by its name, so that a list of JPEG files fits pictures that were converted.

use std::collections::HashMap;
use std::path::Path;

use super::source::{Found, Listing, stem};
use super::split::Part;
use crate::environments::table::csv::reader::Table;
use crate::environments::table::{listed, quoted};
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

/// A split file of more bytes is refused; a million pictures take a tenth of it.
pub(super) const MAX_BYTES: u64 = 1 << 30;

/// A row of a list of pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPicture {
    /// The file, `/` between folders.
    pub file: String,
    /// Its class.
    pub label: String,
    /// The line of the list.
    pub line: usize,
}

/// Reads a list of pictures with the columns `filename` and `label`.
///
/// # Errors
/// When a column or a value is missing; the error names the line.
///
/// ```
/// use pacmeta::environments::images::parse_picture_list;
///
/// let list = parse_picture_list("train.csv", b"filename,label\na.jpg,cat\nb.jpg,dog\n")?;
/// assert_eq!((list[1].file.as_str(), list[1].label.as_str(), list[1].line), ("b.jpg", "dog", 3));
/// # Ok::<(), pacmeta::Error>(())
/// ```
pub fn parse_picture_list(origin: &str, bytes: &[u8]) -> Result<Vec<ListedPicture>> {
    if bytes.trim_ascii().is_empty() {
        let message = "the file is empty; expected a line with the columns `filename` and `label`, then one picture a line";
        return Err(Error::input(origin, message));
    }
    let mut table = Table::open(origin, bytes)?;
    let file_column = table.column("filename", "it names the file of each picture")?;
    let label_column = table.column("label", "it names the class of each picture")?;
    let mut rows = Vec::new();
    while table.next()? {
        let value = |column: usize| match table.fields[column].trim() {
            "" => Err(table.wrong(column, "the value is missing; fill it in or remove the row")),
            value => Ok(value.to_owned()),
        };
        let (file, label) = (value(file_column)?.replace('\\', "/"), value(label_column)?);
        rows.push(ListedPicture { file, label, line: table.line });
    }
    if rows.is_empty() {
        return Err(Error::input(origin, "there is no row after the header; expected one picture a line"));
    }
    Ok(rows)
}

/// A class as the lists describe it.
#[derive(Debug, PartialEq)]
pub(super) struct ListedClass {
    pub(super) label: String,
    pub(super) part: Part,
    /// Places in the listing.
    pub(super) pictures: Vec<usize>,
}

/// The lists of a folder: three, or two without validation.
#[derive(Debug)]
pub(super) struct PictureLists(Vec<(Part, String, Vec<ListedPicture>)>);

impl PictureLists {
    /// The names of the lists in a folder.
    pub(super) const NAMES: [(Part, &'static str); 3] =
        [(Part::Train, "train.csv"), (Part::Validation, "val.csv"), (Part::Test, "test.csv")];

    /// Whether a folder has lists: those for training and test, and perhaps one for validation.
    ///
    /// # Errors
    /// When some are there, but not those for training and test: the classes would be divided otherwise than the lists say.
    pub(super) fn are_in(folder: &Path) -> Result<bool> {
        let names = Self::NAMES.iter().map(|(_, name)| *name);
        let (there, missing): (Vec<&str>, Vec<&str>) = names.partition(|name| folder.join(name).is_file());
        if there.is_empty() || missing.is_empty() || missing == ["val.csv"] {
            return Ok(!there.is_empty());
        }
        let message = format!(
            "there is {} but no {}; expected the three lists of pictures, so add what is missing (or rename the file, if it \
             is no list of pictures)",
            listed(there),
            listed(missing)
        );
        Err(Error::input(folder.display(), message))
    }

    /// Reads the lists of a folder, which has those for training and test.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let is_there = |(part, name): &(Part, &str)| *part != Part::Validation || folder.join(name).is_file();
        let read = |(part, name)| {
            let path = folder.join(name);
            let origin = path.display().to_string();
            let rows = parse_picture_list(&origin, &read_bounded(&path, MAX_BYTES)?)?;
            Ok((part, origin, rows))
        };
        Self::NAMES.into_iter().filter(is_there).map(read).collect::<Result<_>>().map(Self)
    }

    /// Whether there is a list for this part.
    pub(super) fn has(&self, part: Part) -> bool {
        self.0.iter().any(|(listed, ..)| *listed == part)
    }

    /// Finds the listed files among the pictures: classes in order of first appearance.
    pub(super) fn find(&self, listing: &Listing) -> Result<Vec<ListedClass>> {
        let names = Names::of(listing);
        let mut classes: Vec<ListedClass> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut taken: HashMap<usize, (&str, usize)> = HashMap::new();
        for (part, origin, rows) in &self.0 {
            let mut missing: Vec<&ListedPicture> = Vec::new();
            for row in rows {
                let wrong = |message| Error::input_at(origin, format!("line {}", row.line), message);
                let Some(picture) = names.find(listing, row).map_err(wrong)? else {
                    missing.push(row);
                    continue;
                };
                if let Some((other, line)) = taken.insert(picture, (origin, row.line)) {
                    let message = format!(
                        "picture {} is also on line {line} of {other}; remove one row, for no picture may be seen twice",
                        quoted(&row.file)
                    );
                    return Err(wrong(message));
                }
                let place = *places.entry(&row.label).or_insert_with(|| {
                    classes.push(ListedClass { label: row.label.clone(), part: *part, pictures: Vec::new() });
                    classes.len() - 1
                });
                if classes[place].part != *part {
                    let message = format!(
                        "class {} is in {} and in {}; a class seen in training is no test, so remove it from one",
                        quoted(&row.label),
                        classes[place].part.word(),
                        part.word()
                    );
                    return Err(wrong(message));
                }
                classes[place].pictures.push(picture);
            }
            if let Some(first) = missing.first() {
                let message = format!(
                    "{} of {} files {} not among the pictures in {}: {}; fetch what is missing, or remove the rows",
                    missing.len(),
                    rows.len(),
                    if missing.len() == 1 { "is" } else { "are" },
                    listing.root.display(),
                    listed(missing.iter().map(|row| row.file.as_str()))
                );
                return Err(Error::input_at(origin, format!("line {}", first.line), message));
            }
        }
        Ok(classes)
    }
}

/// Pictures by what lists may call them.
struct Names<'a> {
    by_path: HashMap<String, usize>,
    by_stem: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Names<'a> {
    fn of(listing: &'a Listing) -> Self {
        let mut names = Self { by_path: HashMap::new(), by_stem: HashMap::new() };
        for (place, picture) in listing.pictures.iter().enumerate() {
            names.by_path.insert(picture.path(), place);
            names.by_stem.entry(picture.stem()).or_default().push(place);
        }
        names
    }

    /// The picture of a row: of this path, else the one of this name without its ending, where several have it the one
    /// in the folder that the row's path or label says.
    fn find(&self, listing: &Listing, row: &ListedPicture) -> std::result::Result<Option<usize>, String> {
        if let Some(&place) = self.by_path.get(&row.file) {
            return Ok(Some(place));
        }
        let (folder, name) = row.file.rsplit_once('/').unwrap_or(("", &row.file));
        let Some(candidates) = self.by_stem.get(stem(name)) else { return Ok(None) };
        if let [only] = candidates.as_slice() {
            return Ok(Some(*only));
        }
        let lies_in = |picture: &Found, folder: &str| {
            let class = &picture.class;
            class == folder || class.strip_suffix(folder).is_some_and(|above| above.ends_with('/'))
        };
        for folder in [folder, &row.label] {
            let found: Vec<usize> = candidates
                .iter()
                .copied()
                .filter(|&place| lies_in(&listing.pictures[place], folder))
                .collect();
            if let [only] = found.as_slice() {
                return Ok(Some(*only));
            }
        }
        Err(format!(
            "{} pictures are called {}: {}; write the folder too",
            candidates.len(),
            quoted(stem(name)),
            listed(
                candidates
                    .iter()
                    .map(|&place| listing.pictures[place].path())
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str)
            )
        ))
    }
}
