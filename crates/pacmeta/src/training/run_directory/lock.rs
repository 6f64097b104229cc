//! One writer at a time: a file lock of the operating system, which a crash releases, and the holder's process number
//! in the file for the message to others.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A held lock. When it is dropped the file stays, emptied: removing it would let two processes lock two files of one
/// name.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Locks `path` for the run in `folder`; gives a warning where the file system has no locks.
    pub(super) fn take(folder: &Path, path: PathBuf) -> Result<(Self, Option<String>)> {
        let io_error = |source| Error::io("write", &path, source);
        let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(io_error)?;
        let warning = match file.try_lock() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => return Err(taken(folder, &path)),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Some(format!(
                "{}: the file system has no locks; make sure that no other process writes to this run",
                folder.display()
            )),
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path, source)),
        };
        file.set_len(0).map_err(io_error)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(io_error)?;
        Ok((Self { file }, warning))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The number is information only; closing the file is what releases the lock.
        let _ = self.file.set_len(0);
    }
}

fn taken(folder: &Path, path: &Path) -> Error {
    // The number may be missing: written a moment later, or unreadable while locked on some systems.
    let number = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let holder = number.map_or("another process".to_owned(), |number| format!("process {number}"));
    Error::input(
        folder.display(),
        format!("{holder} is writing to this run; wait until it ends or choose another --out"),
    )
}
