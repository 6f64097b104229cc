//! One file a subject: places of pictures, their bytes, split files, layouts of folders, sets opened as a whole, drawing, the
//! real benchmarks.

mod benchmarks;
mod decoding;
mod drawing;
pub(super) mod files;
mod layouts;
mod opening;
mod split;

use super::*;
