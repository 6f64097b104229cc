#![doc = include_str!("../README.md")]
#![deny(unsafe_code)] // but for one memory map, in `environments/images/mapped.rs`

pub mod benchmark;
pub mod bounds;
#[cfg(any(feature = "images", feature = "text"))]
pub mod classification;
pub mod config;
pub mod environments;
pub mod error;
pub mod evaluation;
pub mod experiment;
#[cfg(feature = "images")]
pub mod images;
pub mod learners;
pub mod methods;
pub mod model;
pub mod priors;
pub mod report;
pub mod standardisation;
pub mod studies;
pub mod task;
#[cfg(feature = "text")]
pub mod text;
pub mod training;

pub use error::{Error, Result};
pub use model::Model;
pub use task::Task;
