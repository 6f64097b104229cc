//! Where pictures lie: in folders, in a zip file, or in zip files in folders.
//!
//! A zip file stands for a folder of its name without the ending, so the three cases are one: every folder that
//! directly holds pictures is a class, named by its path from the place that was asked for. A zip file that is asked
//! for itself is the root, and its own name is not part of its classes' names. Everything is sorted by name, so the
//! order depends neither on the file system nor on how a zip file was packed.
//!
//! Nothing is unpacked to disk. Names that lead out of the folder, links, pictures that occur twice and entries that
//! are larger than they say are refused. Files that are no pictures are passed over, and counted by their endings.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zip::CompressionMethod;
use zip::read::{ZipArchive, ZipArchiveMetadata, ZipReadOptions};

use super::walk;
use crate::environments::table::{counted, quoted};
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

/// A picture file may have this many bytes; a photograph of 100 megapixels has fewer.
pub(super) const MAX_FILE_BYTES: u64 = 128 << 20;

/// The endings of pictures, in lower case.
pub(super) const ENDINGS: [&str; 4] = ["png", "jpg", "jpeg", "webp"];

/// Files beside the pictures that say which classes are for what.
pub(super) const SPLIT_FILES: [&str; 4] = ["split.csv", "train.csv", "val.csv", "test.csv"];

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A folder of pictures for every class.
    Classes,
    /// Pictures, in folders or without; one alone will do.
    Pictures,
}

impl Wanted {
    fn expected(self) -> &'static str {
        match self {
            Self::Classes => {
                "a folder or zip file with a folder of pictures a class; check the path (`data.path`, `--data` or `--support`)"
            }
            Self::Pictures => "a picture, or a folder or zip file of pictures; check the path",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Classes => "give each class a folder (or a zip file) of pictures",
            Self::Pictures => "put the pictures there, or name another place",
        }
    }
}

/// A checksum of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// The one that a zip file keeps.
    Crc32(u32),
    /// That of a loose file.
    Crc32c(u32),
    /// The loose file was not read yet.
    Unread,
}

/// Where the bytes of a picture are.
#[derive(Debug, Clone)]
enum Place {
    Loose(PathBuf),
    Entry { archive: usize, entry: usize },
}

/// A picture that was found, but not read.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The folder, `/` between its parts; empty at the root.
    pub(super) class: String,
    /// The file name.
    pub(super) name: String,
    /// The number of bytes.
    pub(super) length: u64,
    pub(super) stamp: Stamp,
    place: Place,
}

impl Found {
    /// Folder and file name.
    pub(super) fn path(&self) -> String {
        if self.class.is_empty() { self.name.clone() } else { format!("{}/{}", self.class, self.name) }
    }

    /// The file name without its ending.
    pub(super) fn stem(&self) -> &str {
        stem(&self.name)
    }
}

/// A zip file whose directory is known.
#[derive(Debug)]
struct Archive {
    path: PathBuf,
    directory: Arc<ZipArchiveMetadata>,
}

/// All pictures of a folder or zip file, sorted by class and name.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) root: PathBuf,
    pub(super) pictures: Vec<Found>,
    archives: Vec<Archive>,
    /// Other files by their endings.
    others: BTreeMap<String, usize>,
    /// Folders without a picture, in them or below.
    bare: Vec<String>,
    /// Files of the names of split files where none is looked for: inside of zip files, and further inside.
    hidden_splits: Vec<String>,
}

/// Zip files that a thread has open.
#[derive(Debug, Default)]
pub(super) struct OpenFile(Option<(usize, File)>);

impl Listing {
    /// Looks for pictures in a folder or a zip file.
    pub(super) fn find(root: &Path, wanted: Wanted) -> Result<Self> {
        let mut listing = Self {
            root: root.to_path_buf(),
            pictures: Vec::new(),
            archives: Vec::new(),
            others: BTreeMap::new(),
            bare: Vec::new(),
            hidden_splits: Vec::new(),
        };
        let kind = fs::metadata(root).map_err(|source| Error::reading(root, source, wanted.expected()))?;
        let name = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if kind.is_dir() {
            walk::folder(root, &mut listing)?;
        } else if ending(&name) == "zip" {
            listing.add_archive(root, "")?;
        } else if wanted == Wanted::Pictures && is_picture(&name) {
            listing.add_file(root, "", &name)?;
        } else {
            let one = if wanted == Wanted::Pictures { "a picture, " } else { "" };
            let message = format!(
                "expected {one}a folder of pictures, a folder of zip files, or a zip file (ending `.zip`)"
            );
            return Err(Error::input(root.display(), message));
        }
        listing.pictures.sort_by(|a, b| (&a.class, &a.name).cmp(&(&b.class, &b.name)));
        let twice = listing
            .pictures
            .windows(2)
            .find(|two| two[0].class == two[1].class && two[0].name == two[1].name);
        if let Some([first, second]) = twice {
            let (first, second) = (listing.describe(first), listing.describe(second));
            let message = format!(
                "one picture of one class is there twice, as {first} and as {second}; remove or rename one (a zip file \
                 counts as a folder of its name)"
            );
            return Err(Error::input(root.display(), message));
        }
        if listing.pictures.is_empty() {
            let archives = match listing.archives.len() {
                0 => String::new(),
                count => format!(" and {}", counted(count, "zip file")),
            };
            let message = format!(
                "there is no picture; looked for files that end in {} in all folders{archives}{}; {}",
                endings(),
                listing.passed_over().map_or(String::new(), |others| format!("; {others}")),
                wanted.advice()
            );
            return Err(Error::input(root.display(), message));
        }
        Ok(listing)
    }

    /// Adds a loose file, if it is a picture.
    pub(super) fn add_file(&mut self, path: &Path, class: &str, name: &str) -> Result<()> {
        if !is_picture(name) {
            return Ok(());
        }
        let metadata = fs::metadata(path).map_err(|source| Error::io("read", path, source))?;
        self.pictures.push(Found {
            class: class.to_owned(),
            name: name.to_owned(),
            length: metadata.len(),
            stamp: Stamp::Unread,
            place: Place::Loose(path.to_path_buf()),
        });
        Ok(())
    }

    /// Counts a file that is no picture; `place` says where it lies.
    pub(super) fn pass_over(&mut self, name: &str, place: impl FnOnce() -> String) {
        if !is_hidden(name) {
            *self.others.entry(ending(name)).or_default() += 1;
        }
        if SPLIT_FILES.contains(&name) {
            self.hidden_splits.push(place());
        }
    }

    /// Refuses files that may say which classes are for what, and lie where they are not looked for.
    pub(super) fn refuse_hidden_splits(&self) -> Result<()> {
        let [first, others @ ..] = &*self.hidden_splits else { return Ok(()) };
        let more = match others.len() {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let message = format!(
            "{first}{more} may say which classes are for what, and would not be read: split files are looked for beside the classes or \
             the zip file only. Choose the folder with it (`data.path` or `--data`), put it beside the zip file, or name it as \
             `data.split`; if it is no such file, rename it"
        );
        Err(Error::input(self.root.display(), message))
    }

    /// How many pictures, and folders without one, there are so far.
    pub(super) fn found(&self) -> (usize, usize) {
        (self.pictures.len(), self.bare.len())
    }

    /// Remembers a folder in which nothing was found since; those around it are not told again.
    pub(super) fn remember_if_bare(&mut self, class: &str, before: (usize, usize)) {
        if self.found() == before {
            self.bare.push(class.to_owned());
        }
    }

    /// The folders that are no classes, for want of a picture.
    pub(super) fn without_pictures(&self) -> Option<String> {
        let named: Vec<String> = self.bare.iter().take(5).map(|folder| quoted(folder)).collect();
        let more = if self.bare.len() > 5 { ", ..." } else { "" };
        let (folders, are) = match self.bare.len() {
            0 => return None,
            1 => ("1 folder has".to_owned(), "is no class"),
            count => (format!("{count} folders have"), "are no classes"),
        };
        Some(format!("{folders} no picture, and {are}: {}{more}", named.join(", ")))
    }

    /// How many files are no pictures, if there are any.
    pub(super) fn passed_over(&self) -> Option<String> {
        let count: usize = self.others.values().sum();
        let mut endings: Vec<(&String, &usize)> = self.others.iter().collect();
        endings.sort_by_key(|&(_, count)| std::cmp::Reverse(*count));
        let more = if endings.len() > 5 { ", ..." } else { "" };
        let told = endings.into_iter().take(5).map(|(ending, count)| match ending.as_str() {
            "" => format!("no ending {count}"),
            ending => format!(".{} {count}", ending.escape_debug()),
        });
        let told = told.collect::<Vec<_>>().join(", ");
        let files = counted(count, "file");
        (count > 0).then(|| {
            format!("{files} {} passed over ({told}{more})", if count == 1 { "was" } else { "were" })
        })
    }

    /// Adds the pictures of a zip file, whose root is the folder `class`.
    pub(super) fn add_archive(&mut self, path: &Path, class: &str) -> Result<()> {
        let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
        let unreadable = |problem: zip::result::ZipError| {
            Error::input(
                path.display(),
                format!("the zip file cannot be read ({problem}); is it whole? Fetch it again"),
            )
        };
        let directory = ZipArchive::new(file).map_err(unreadable)?.metadata();
        if directory.has_duplicate_names() {
            return Err(Error::input(
                path.display(),
                "two entries have the same name; pack the zip file again",
            ));
        }
        let archive = self.archives.len();
        for index in 0..directory.len() {
            let entry = directory.entry(index).map_err(unreadable)?;
            let full = entry.name().map_err(unreadable)?;
            let wrong =
                |message: &str| Error::input_at(path.display(), format!("entry {}", quoted(&full)), message);
            let parts = parts_inside(&full).map_err(wrong)?;
            let Some((&name, folders)) = parts.split_last() else { continue };
            let hidden = folders.iter().any(|part| is_hidden(part));
            if entry.is_dir() || hidden {
                continue;
            }
            if !is_picture(name) {
                self.pass_over(name, || format!("{}, entry {}", path.display(), quoted(&full)));
                continue;
            }
            if entry.is_symlink() {
                return Err(wrong("is a link; pack the zip file again with the pictures themselves"));
            }
            if entry.encrypted() {
                return Err(wrong("is encrypted; pack the zip file again without a password"));
            }
            if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
                let method = entry.compression();
                return Err(wrong(&format!(
                    "is compressed by a method that is not read ({method}); pack the zip file again with deflate, the usual one"
                )));
            }
            if entry.size() > MAX_FILE_BYTES {
                return Err(wrong(&too_long(entry.size())));
            }
            let mut class = class.to_owned();
            for folder in folders {
                class = join(&class, folder);
            }
            self.pictures.push(Found {
                class,
                name: name.to_owned(),
                length: entry.size(),
                stamp: Stamp::Crc32(entry.crc32()),
                place: Place::Entry { archive, entry: index },
            });
        }
        self.archives.push(Archive { path: path.to_path_buf(), directory });
        Ok(())
    }

    /// The bytes of a picture. `open` keeps a zip file open from one call to the next.
    pub(super) fn read(&self, picture: &Found, open: &mut OpenFile) -> Result<Vec<u8>> {
        let (archive, index) = match &picture.place {
            Place::Loose(path) => return read_loose(path, picture.stamp),
            Place::Entry { archive, entry } => (*archive, *entry),
        };
        let Archive { path, directory } = &self.archives[archive];
        let file = match &mut open.0 {
            Some((number, file)) if *number == archive => file,
            other => {
                let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
                &mut other.insert((archive, file)).1
            }
        };
        let wrong = |message: String| Error::input(self.describe(picture), message);
        let damaged = |problem: &dyn std::fmt::Display| {
            let advice = "is the zip file whole? Fetch it again, or pack it again";
            wrong(format!("cannot be unpacked ({problem}); {advice}"))
        };
        let entry = directory.entry(index).map_err(|problem| damaged(&problem))?;
        let reader = entry.with_reader(file, ZipReadOptions::new()).map_err(|problem| damaged(&problem))?;
        let mut bytes = Vec::new();
        // One byte more than stated tells an entry that unpacks to more than it says.
        reader.take(picture.length + 1).read_to_end(&mut bytes).map_err(|problem| damaged(&problem))?;
        if bytes.len() as u64 != picture.length {
            let message = "does not have the number of bytes that the zip file states for it; fetch it again, or pack it again";
            return Err(wrong(message.to_owned()));
        }
        Ok(bytes)
    }

    /// The file, and the entry inside it, for messages.
    pub(super) fn describe(&self, picture: &Found) -> String {
        match &picture.place {
            Place::Loose(path) => path.display().to_string(),
            Place::Entry { archive, entry } => {
                let Archive { path, directory } = &self.archives[*archive];
                let entry = directory.entry(*entry).ok();
                let name = entry.as_ref().and_then(|entry| entry.name().ok());
                format!("{}, entry {}", path.display(), quoted_whole(name.as_deref().unwrap_or("?")))
            }
        }
    }
}

/// The bytes of a loose file; if its checksum is known, it must still be the same.
fn read_loose(path: &Path, stamp: Stamp) -> Result<Vec<u8>> {
    let bytes = read_bounded(path, MAX_FILE_BYTES).map_err(|error| match error {
        Error::Io { action, path, source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            let expected = Some("a file that you may read; change its permissions or remove it");
            Error::Io { action, path, source, expected }
        }
        other => other,
    })?;
    match stamp {
        Stamp::Crc32c(stamp) if stamp != crc32c::crc32c(&bytes) => {
            Err(Error::input(path.display(), "was changed while the pictures were read; start again"))
        }
        _ => Ok(bytes),
    }
}

/// The endings of pictures, for people.
pub(super) fn endings() -> String {
    ENDINGS.map(|ending| format!(".{ending}")).join(", ")
}

pub(super) fn too_long(length: u64) -> String {
    format!("has {length} bytes; a picture may have at most {MAX_FILE_BYTES}")
}

/// Names of files are told in full, for they are looked for; only control characters are made visible.
pub(super) fn quoted_whole(name: &str) -> String {
    format!("`{}`", name.escape_debug())
}

/// A folder inside a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The parts of an entry's name, which must stay inside the zip file.
fn parts_inside(name: &str) -> std::result::Result<Vec<&str>, &'static str> {
    let drive = name.as_bytes().get(1) == Some(&b':');
    if name.starts_with(['/', '\\']) || drive {
        return Err("has an absolute path; pack the zip file again with names relative to one folder");
    }
    if name.contains('\0') {
        return Err("has a NUL character in its name; pack the zip file again");
    }
    // Some packers write Windows' separators against the standard.
    let parts: Vec<&str> = name.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(
            "leads out of the zip file by `..`; pack the zip file again with names relative to one folder",
        );
    }
    Ok(parts)
}

/// The ending of a file name in lower case, without the point; empty if there is none.
pub(super) fn ending(name: &str) -> String {
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}

/// A file name without its ending.
pub(super) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Files and folders that people do not see and did not make.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "__MACOSX" | "Thumbs.db" | "desktop.ini")
}

pub(super) fn is_picture(name: &str) -> bool {
    !is_hidden(name) && ENDINGS.contains(&ending(name).as_str())
}
