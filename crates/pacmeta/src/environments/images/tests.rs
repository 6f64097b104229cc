//! One file a subject: places and bytes of pictures, split files, sets opened as a whole, drawing, the real benchmarks.

mod benchmarks;
mod drawing;
pub(super) mod files;
mod opening;
mod split;

use super::*;
