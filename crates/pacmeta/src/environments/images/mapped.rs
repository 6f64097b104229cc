//! A file as memory. The only place in this crate with `unsafe` code.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The bytes of a file, read by the operating system when they are touched and shared between processes.
#[derive(Debug)]
pub(super) struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a whole file.
    pub(super) fn open(file: &File) -> io::Result<Self> {
        // SAFETY: bytes of a map must not change under a reader. Files of the cache are never written in place: they
        // are made under a temporary name, renamed when whole, and replaced by another rename, which leaves a file that
        // is still mapped as it is. Somebody who edits the cache by hand gets what any program that maps files gives;
        // the bytes are plain numbers of type u8, of which every value is valid.
        unsafe { Mmap::map(file) }.map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
