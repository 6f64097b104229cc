//! Decoding on all cores, with memory bounded whatever the number of pictures, and results in order.

use rayon::prelude::*;

use super::Progress;
use super::decode::{Changes, PictureShape, decode_into};
use super::failures::Failures;
use super::source::{Found, Listing, OpenFile};
use crate::error::{Error, Result};

/// Pictures of one batch, at most; progress is told after each.
const BATCH: usize = 512;
/// Bytes of decoded pixels that are held at a time.
const BATCH_BYTES: usize = 64 << 20;

/// Decodes pictures batch by batch and hands the pixels of each batch to `take`. After a picture that cannot be decoded the
/// others are only looked at, so that all such pictures are told at once.
pub(super) fn decode_in_order(
    listing: &Listing,
    pictures: &[&Found],
    shape: PictureShape,
    progress: &mut dyn Progress,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Changes> {
    let size = shape.bytes();
    let batch = (BATCH_BYTES / size).clamp(1, BATCH);
    let mut buffer = vec![0; size * batch.min(pictures.len())];
    let (mut changes, mut failures) = (Changes::default(), Failures::default());
    let (mut done, total) = (0, pictures.len());
    progress.decoded(done, total);
    for part in pictures.chunks(batch) {
        let pixels = &mut buffer[..size * part.len()];
        let outcomes: Vec<Result<Changes>> = pixels
            .par_chunks_exact_mut(size)
            .zip(part)
            .with_min_len(16)
            .map_init(OpenFile::default, |open, (pixels, picture)| {
                let bytes = listing.read(picture, open)?;
                decode_into(&listing.describe(picture), &bytes, shape, pixels)
            })
            .collect();
        for outcome in outcomes {
            match outcome {
                Ok(change) => changes += change,
                Err(error) => failures.add(error)?,
            }
        }
        if failures.is_empty() {
            take(pixels)?;
        }
        done += part.len();
        progress.decoded(done, total);
        if progress.stop() && done < total {
            return Err(Error::DecodingInterrupted { done, total });
        }
    }
    failures.check(&listing.root, total)?;
    Ok(changes)
}
