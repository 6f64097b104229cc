//! A configuration of either kind: `data.environment` decides.

use std::path::Path;

use toml::{Table, Value};

#[cfg(feature = "images")]
use super::ImageConfig;
use super::{Config, read_file, source};
use crate::error::Result;

/// What a configuration file asks for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AnyConfig {
    /// Regression: tables and synthetic environments.
    Regression(Box<Config>),
    /// Classification of pictures.
    #[cfg(feature = "images")]
    Images(Box<ImageConfig>),
}

impl AnyConfig {
    /// Reads a configuration from a text; see [`Config::parse`].
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse(origin: &str, text: &str, overrides: &[(String, String)]) -> Result<Self> {
        let mut table = source::parse(origin, text)?;
        source::set(&mut table, overrides)?;
        if is_of_images(&table) {
            #[cfg(feature = "images")]
            return ImageConfig::from_table(&table).map(|config| Self::Images(Box::new(config)));
            #[cfg(not(feature = "images"))]
            return Err(crate::error::Error::config(
                "data.environment",
                "this program was built without the feature `images`; build it with that feature",
            ));
        }
        Config::from_table(&table).map(|config| Self::Regression(Box::new(config)))
    }

    /// Reads a configuration from a file; see [`Config::read`].
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self> {
        read_file(path.as_ref(), overrides, Self::parse)
    }
}

/// Whether a configuration is one of pictures.
pub(super) fn is_of_images(table: &Table) -> bool {
    let environment = table.get("data").and_then(Value::as_table).and_then(|data| data.get("environment"));
    environment.and_then(Value::as_str) == Some("images")
}

#[cfg(feature = "images")]
impl ImageConfig {
    /// Reads a configuration of image classification from a text; see [`Config::parse`].
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse(origin: &str, text: &str, overrides: &[(String, String)]) -> Result<Self> {
        let mut table = source::parse(origin, text)?;
        source::set(&mut table, overrides)?;
        Self::from_table(&table)
    }

    /// Reads a configuration of image classification from a file; see [`Config::read`].
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self> {
        read_file(path.as_ref(), overrides, Self::parse)
    }
}
