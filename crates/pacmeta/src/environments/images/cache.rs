//! Decoded pixels in one file, mapped into memory: the second start takes milliseconds, and sets larger than the memory
//! can be used.
//!
//! **File**: a header of 4096 bytes, then the pixels of all pictures in order. Header, numbers little-endian: magic
//! (8 bytes), version, side, channels (4 bytes each), CRC-32C of the pixels (4), pictures, resized, converted (8 each), the key of the
//! content (32), CRC-32C of all that (4), zeros.
//!
//! **Name**: the key of the content, a 128-bit hash of the version, the shape and every picture's class, file name, length
//! and checksum (the one in the zip file, or that of a loose file, which is read for it at every start). Other pictures,
//! another name; so nothing is ever out of date. Files that no longer have a use are left alone, since other splits of the
//! same pictures, and other processes, may want them: `docs/formats.md` says how to clear them away. The time of a file's
//! last change is that of its last use.
//!
//! **Writing**: by one process at a time (a lock of the operating system), to a temporary file that is synced and renamed
//! when whole. What a crash leaves is removed by the next process that makes the same file. A file of another version, of
//! another length or damaged anywhere is made anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pacmeta_tensor::Key;

use super::decode::{Changes, PictureShape};
use super::mapped::MappedFile;
use super::source::{Found, Listing, Stamp};
use super::stamps::with_stamps;
use super::{Progress, parallel};
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"PACMPIXL";
/// Raised whenever the same picture files may give other pixels, or none.
const VERSION: u32 = 3;
/// A page of memory on most machines, so that pixels start on one.
const HEADER_BYTES: usize = 4096;
const CHECKED_BYTES: usize = 80;

/// The folder for decoded pictures: `$XDG_CACHE_HOME/pacmeta`, else `~/.cache/pacmeta`.
///
/// # Errors
/// When neither variable is set.
pub fn default_cache_folder() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|folder| folder.join("pacmeta"))
        .ok_or_else(|| {
            let message = "neither XDG_CACHE_HOME nor HOME is set; name a folder for decoded pictures";
            Error::config("data.cache", message)
        })
}

/// Pixels in a mapped file.
#[derive(Debug)]
pub(super) struct CachedPixels {
    file: MappedFile,
    pub(super) changes: Changes,
    /// CRC-32C of the pixels.
    pub(super) checksum: u32,
}

impl CachedPixels {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.file.bytes()[HEADER_BYTES..]
    }
}

/// The pixels of these pictures, from the cache or decoded into it.
pub(super) fn open_or_make(
    folder: &Path,
    listing: &Listing,
    pictures: &[&Found],
    shape: PictureShape,
    progress: &mut dyn Progress,
) -> Result<CachedPixels> {
    let stamped = with_stamps(listing, pictures, &*progress)?;
    let pictures = &stamped.iter().collect::<Vec<_>>();
    let header = Header::new(pictures, shape);
    let path = folder.join(format!("{}.pixels", header.key));
    if let Some(cached) = header.open(&path)? {
        mark_as_used(&path);
        return Ok(cached);
    }
    fs::create_dir_all(folder)
        .map_err(|source| refused("create the cache folder", folder, source, header.file_bytes()))?;
    let lock_path = folder.join(format!("{}.lock", header.key));
    let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
    let lock = options
        .open(&lock_path)
        .map_err(|source| refused("write", &lock_path, source, header.file_bytes()))?;
    match lock.lock() {
        // Another process may have made the file while this one waited. Nobody else makes it now.
        Ok(()) => {
            if let Some(cached) = header.open(&path)? {
                return Ok(cached);
            }
            remove_stale(folder, &header.temporary_prefix());
        }
        // Two writers have two temporary files, so without locks the only loss is work done twice.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(source) => return Err(Error::io("lock", &lock_path, source)),
    }
    let needed = header.file_bytes();
    let write_error = |source| refused("write decoded pictures to", &path, source, needed);
    let mut temporary = tempfile::Builder::new()
        .prefix(&header.temporary_prefix())
        .suffix(".tmp")
        .tempfile_in(folder)
        .map_err(write_error)?;
    write_pixels(temporary.as_file_mut(), &path, header.clone(), listing, pictures, shape, progress)?;
    temporary.as_file().sync_all().map_err(write_error)?;
    temporary.persist(&path).map_err(|failure| write_error(failure.error))?;
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(write_error)?;
    }
    header.open(&path)?.ok_or_else(|| {
        Error::input(path.display(), "the file just written cannot be read back; is the disk sound?")
    })
}

/// Decodes all pictures into `file`, header included. `path` is the final name, for messages.
fn write_pixels(
    file: &mut File,
    path: &Path,
    mut header: Header,
    listing: &Listing,
    pictures: &[&Found],
    shape: PictureShape,
    progress: &mut dyn Progress,
) -> Result<()> {
    let needed = header.file_bytes();
    let write_error = |source| refused("write decoded pictures to", path, source, needed);
    file.write_all(&[0; HEADER_BYTES]).map_err(write_error)?;
    let mut checksum = 0;
    header.changes = parallel::decode_in_order(listing, pictures, shape, progress, |pixels| {
        checksum = crc32c::crc32c_append(checksum, pixels);
        file.write_all(pixels).map_err(write_error)
    })?;
    header.checksum = checksum;
    file.seek(SeekFrom::Start(0)).map_err(write_error)?;
    file.write_all(&header.to_bytes()).map_err(write_error)
}

fn refused(action: &'static str, path: &Path, source: io::Error, needed: Option<u64>) -> Error {
    Error::Cache { action, path: path.to_path_buf(), source, needed }
}

/// Lets the time of the last change tell the last use; where that may not be written it does no harm.
fn mark_as_used(path: &Path) {
    let _ = OpenOptions::new().write(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes what crashed writers of the same file left; what cannot be removed does no harm.
fn remove_stale(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What a file must say to be the right one, and how many of its pictures were changed.
#[derive(Debug, Clone, PartialEq)]
struct Header {
    shape: PictureShape,
    pictures: u64,
    changes: Changes,
    /// CRC-32C of the pixels.
    checksum: u32,
    key: Key,
}

impl Header {
    fn new(pictures: &[&Found], shape: PictureShape) -> Self {
        let mut key = Key::new(u64::from(VERSION)).named("decoded pictures");
        key = key.index(shape.side as u64).index(shape.channels.count() as u64);
        for picture in pictures {
            let stamp = match picture.stamp {
                Stamp::Crc32(crc) => format!("c{crc}"),
                Stamp::Crc32c(crc) => format!("l{crc}"),
                Stamp::Unread => "unread".to_owned(),
            };
            // Lengths in front keep apart what only concatenates to the same text.
            let (class, name) = (&picture.class, &picture.name);
            key =
                key.named(&format!("{},{},{class}{name}{},{stamp}", class.len(), name.len(), picture.length));
        }
        Self { shape, pictures: pictures.len() as u64, changes: Changes::default(), checksum: 0, key }
    }

    /// The length of the file; none beyond what can be counted.
    fn file_bytes(&self) -> Option<u64> {
        let pixels = self.pictures.checked_mul(self.shape.bytes() as u64)?;
        pixels.checked_add(HEADER_BYTES as u64)
    }

    fn temporary_prefix(&self) -> String {
        format!(".pacmeta-{}-", self.key)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        for number in [VERSION, self.shape.side as u32, self.shape.channels.count() as u32, self.checksum] {
            bytes.extend(number.to_le_bytes());
        }
        for number in [self.pictures, self.changes.resized, self.changes.converted] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.key.to_string().as_bytes());
        debug_assert_eq!(bytes.len(), CHECKED_BYTES);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes
    }

    /// Maps the file if it is there and is the right one.
    fn open(&self, path: &Path) -> Result<Option<CachedPixels>> {
        let read_error = |source| refused("read decoded pictures from", path, source, None);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(source) => return Err(read_error(source)),
        };
        let metadata = file.metadata().map_err(read_error)?;
        if !metadata.is_file() || Some(metadata.len()) != self.file_bytes() {
            return Ok(None);
        }
        let file = MappedFile::open(&file).map_err(read_error)?;
        let Some(found) = file.bytes().get(..HEADER_BYTES) else { return Ok(None) };
        let count = |start: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&found[start..start + 8]);
            u64::from_le_bytes(number)
        };
        let changes = Changes { resized: count(32), converted: count(40) };
        let checksum = crc32c::crc32c(&file.bytes()[HEADER_BYTES..]);
        // The whole header is a function of what is expected, of the pixels and of the two counts, which its own checksum protects.
        let right = found == Self { changes, checksum, ..self.clone() }.to_bytes();
        Ok(right.then_some(CachedPixels { file, changes, checksum }))
    }
}

#[cfg(test)]
mod tests;
