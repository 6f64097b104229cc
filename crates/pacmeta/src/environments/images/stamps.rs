//! Checksums of loose files. Zip files keep those of their entries; of loose files nothing but the bytes tells whether they
//! are still the same: times and lengths survive many a way of replacing a file.

use rayon::prelude::*;

use super::Progress;
use super::failures::Failures;
use super::source::{Found, Listing, OpenFile, Stamp};
use crate::error::{Error, Result};

/// Files that are read before anybody is asked whether to stop.
const BATCH: usize = 4096;

/// The same pictures, every one with a checksum of its content.
pub(super) fn with_stamps(
    listing: &Listing,
    pictures: &[&Found],
    progress: &dyn Progress,
) -> Result<Vec<Found>> {
    let mut stamped = Vec::with_capacity(pictures.len());
    let mut failures = Failures::default();
    for part in pictures.chunks(BATCH) {
        let outcomes: Vec<Result<Found>> = part
            .par_iter()
            .map(|&picture| {
                let mut picture = picture.clone();
                if picture.stamp == Stamp::Unread {
                    let bytes = listing.read(&picture, &mut OpenFile::default())?;
                    picture.length = bytes.len() as u64;
                    picture.stamp = Stamp::Crc32c(crc32c::crc32c(&bytes));
                }
                Ok(picture)
            })
            .collect();
        for outcome in outcomes {
            match outcome {
                Ok(picture) => stamped.push(picture),
                Err(error) => failures.add(error)?,
            }
        }
        if progress.stop() {
            return Err(Error::DecodingInterrupted { done: 0, total: pictures.len() });
        }
    }
    failures.check(&listing.root, pictures.len())?;
    Ok(stamped)
}
