//! The real binary, by user story.
#![allow(clippy::unwrap_used)] // a test that cannot go on fails

mod adapting;
mod bad_input;
mod bounds;
mod cluster_mistakes;
mod clusters;
mod helper;
mod images;
mod interruption;
mod misc;
mod own_pictures;
mod studies;
mod sweeping;
mod text_study;
mod texts;
mod training;
