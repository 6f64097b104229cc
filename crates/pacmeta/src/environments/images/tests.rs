//! One file a subject: places of pictures, their bytes, split files, sets opened as a whole, drawing, the real benchmarks.

mod benchmarks;
mod decoding;
mod drawing;
pub(super) mod files;
mod opening;
mod split;

use super::*;
