//! Files that are either whole or absent, whatever interrupts the writing.
//!
//! A file is written under a temporary name in its own folder, synced, renamed over the final name, and the folder is
//! synced. A crash at any point leaves the old file or the new one under the final name, never a part of one; at worst a
//! temporary stays behind, which [`remove_stale_temporaries`] clears away.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

const TEMPORARY_PREFIX: &str = ".pacmeta-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Writes `bytes` to `path` as a whole or not at all.
///
/// An existing file is replaced; a symbolic link keeps pointing to its target, which is replaced. A path that is a device
/// or a pipe (`/dev/stdout`) is written to directly, for a rename would put a file in its place.
///
/// # Errors
/// When the folder does not exist or cannot be written, or the disk is full. The previous content is then untouched.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    write_in_parts(path, |file| file.write_all(bytes)).map_err(|source| Error::io("write", path, source))
}

/// Like [`write_atomically`], for what is made while it is written: large files never lie in memory as a whole.
///
/// # Errors
/// As [`write_atomically`], and those of `write`.
pub(crate) fn write_in_parts(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(existing) if existing.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(existing) if !existing.is_file() => {
            return write(&mut fs::OpenOptions::new().write(true).open(path)?);
        }
        _ => {}
    }
    let target = if path.is_symlink() {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
    } else {
        path.to_path_buf()
    };
    let folder = folder_of(&target);
    let mut temporary = new_temporary(&folder)?;
    // To the file itself: errors of the temporary end with its path, which means nothing to anybody.
    write(temporary.as_file_mut())?;
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|failure| failure.error)?;
    sync_folder(&folder)
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A temporary that removes itself when dropped before it is renamed, with the permissions of an ordinary new file.
fn new_temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX);
    // Opened here for the sake of the error: that of `tempfile_in` ends with the path, and hides the system's number.
    builder.make_in(folder, |path| File::options().write(true).create_new(true).open(path))
}

/// Makes a rename durable. Only Unix can open a folder for that; elsewhere the file system decides.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Reads a file of at most `max_bytes` bytes; memory stays within that limit whatever the path is.
///
/// # Errors
/// When the file cannot be read, or is longer.
pub fn read_bounded(path: impl AsRef<Path>, max_bytes: u64) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let io_error = |source| Error::io("read", path, source);
    let too_long = |size: String| {
        Error::input(
            path.display(),
            format!("the file has {size} bytes; at most {max_bytes} are expected here"),
        )
    };
    let file = File::open(path).map_err(io_error)?;
    let length = file.metadata().map_err(io_error)?.len();
    if length > max_bytes {
        return Err(too_long(length.to_string()));
    }
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))
        .map_err(|_| io_error(io::ErrorKind::OutOfMemory.into()))?;
    // A pipe has no length, and a file can grow while it is read.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(io_error)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_long(format!("more than {max_bytes}")));
    }
    Ok(bytes)
}

/// Whether a file name is that of a temporary of [`write_atomically`].
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX)
}

/// Removes the temporaries that crashed writers left in `folder`, and returns how many there were. Only for folders that
/// nobody else writes to at the moment.
///
/// # Errors
/// When the folder cannot be listed or a temporary cannot be removed.
pub fn remove_stale_temporaries(folder: impl AsRef<Path>) -> Result<usize> {
    let folder = folder.as_ref();
    let list_error = |source| Error::io("list", folder, source);
    let mut removed = 0;
    for entry in fs::read_dir(folder).map_err(list_error)? {
        let entry = entry.map_err(list_error)?;
        let is_file = entry.file_type().map_err(list_error)?.is_file();
        if is_file && entry.file_name().to_str().is_some_and(is_temporary) {
            fs::remove_file(entry.path()).map_err(|source| Error::io("remove", entry.path(), source))?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn writing_replaces_the_whole_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_atomically(&path, b"a long first version").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn a_failed_rename_removes_the_temporary_and_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let occupied = folder.path().join("occupied");
        fs::create_dir(&occupied).unwrap();
        let message = write_atomically(&occupied, b"x").unwrap_err().to_string();
        assert!(message.contains("cannot write") && message.contains("occupied"), "{message}");
        assert_eq!(names(folder.path()), ["occupied"]);
        let missing = write_atomically(folder.path().join("no/such/folder"), b"x").unwrap_err();
        assert!(missing.is_input() && !missing.to_string().contains(TEMPORARY_PREFIX), "{missing}");
        assert!(
            matches!(&missing, Error::Io { source, .. } if source.raw_os_error().is_some()),
            "{missing:?}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn new_files_are_readable_like_any_other_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        write_atomically(folder.path().join("ours"), b"x").unwrap();
        fs::write(folder.path().join("plain"), b"x").unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("ours"), mode("plain"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_its_target_and_a_device_stays_a_device() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, b"old").unwrap();
        std::os::unix::fs::symlink("target", &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");

        write_atomically("/dev/null", b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let failure = write_atomically("/dev/full", b"x").unwrap_err();
        assert!(matches!(&failure, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull));
        assert!(!failure.is_input());
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"12345").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        let message = read_bounded(&path, 4).unwrap_err().to_string();
        assert!(message.contains("5 bytes; at most 4"), "{message}");
        assert!(read_bounded(folder.path().join("absent"), 4).unwrap_err().is_input());
        #[cfg(unix)]
        assert!(read_bounded("/dev/zero", 1000).unwrap_err().to_string().contains("more than 1000"));
    }

    #[test]
    fn only_temporaries_are_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".pacmeta-Ab3.tmp", "prior.safetensors", ".hidden.tmp", ".pacmeta-notes"] {
            fs::write(folder.path().join(name), b"x").unwrap();
        }
        assert_eq!(remove_stale_temporaries(folder.path()).unwrap(), 1);
        assert_eq!(names(folder.path()), [".hidden.tmp", ".pacmeta-notes", "prior.safetensors"]);
    }
}
