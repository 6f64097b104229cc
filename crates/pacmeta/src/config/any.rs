//! A configuration of any kind: `data.environment` decides.

use std::path::Path;

use toml::Table;

#[cfg(feature = "images")]
use super::ImageConfig;
#[cfg(feature = "text")]
use super::TextConfig;
use super::data::ENVIRONMENTS;
use super::section::{none_called, table_of};
use super::{Config, read_file, source};
use crate::error::{Error, Result};

/// What a configuration file asks for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AnyConfig {
    /// Regression: tables and synthetic environments.
    Regression(Box<Config>),
    /// Classification of pictures.
    #[cfg(feature = "images")]
    Images(Box<ImageConfig>),
    /// Classification of texts.
    #[cfg(feature = "text")]
    Text(Box<TextConfig>),
}

impl AnyConfig {
    /// Reads a configuration from a text; see [`Config::parse`].
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse(origin: &str, text: &str, overrides: &[(String, String)]) -> Result<Self> {
        let mut table = source::parse(origin, text)?;
        source::set(&mut table, overrides)?;
        match environment(&table) {
            #[cfg(feature = "images")]
            Some(IMAGES) => ImageConfig::from_table(&table).map(|config| Self::Images(Box::new(config))),
            #[cfg(feature = "text")]
            Some(TEXT) => TextConfig::from_table(&table).map(|config| Self::Text(Box::new(config))),
            #[cfg(not(all(feature = "images", feature = "text")))]
            Some(feature @ (IMAGES | TEXT)) => Err(Error::config(
                "data.environment",
                format!("this program was built without the feature `{feature}`; build it with that feature"),
            )),
            _ => Config::from_table(&table).map(|config| Self::Regression(Box::new(config))),
        }
    }

    /// Reads a configuration from a file; see [`Config::read`].
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self> {
        read_file(path.as_ref(), overrides, Self::parse)
    }
}

/// The environments of pictures and of texts.
const IMAGES: &str = "images";
const TEXT: &str = "text";

/// Refuses a name that no environment has, and data that are no section. It comes first: all other keys depend on the environment.
pub(super) fn refuse_unknown_environment(table: &Table) -> Result<()> {
    table_of(table, "data", Some("environment"))?;
    match environment(table) {
        Some(name) if !is_of_classification(table) && !ENVIRONMENTS.contains(&name) => {
            let names: Vec<&str> = ENVIRONMENTS.iter().copied().chain([IMAGES, TEXT]).collect();
            Err(Error::config("data.environment", none_called(name, &names)))
        }
        _ => Ok(()),
    }
}

/// What a configuration calls its environment.
fn environment(table: &Table) -> Option<&str> {
    table.get("data")?.as_table()?.get("environment")?.as_str()
}

/// Whether a configuration is one of pictures or texts.
pub(super) fn is_of_classification(table: &Table) -> bool {
    matches!(environment(table), Some(IMAGES | TEXT))
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

    /// A configuration from a table with some keys set anew.
    pub(crate) fn with_settings(mut table: Table, settings: &[(String, String)]) -> Result<Self> {
        source::set(&mut table, settings)?;
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

#[cfg(feature = "text")]
impl TextConfig {
    /// Reads a configuration of text classification from a text; see [`Config::parse`].
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse(origin: &str, text: &str, overrides: &[(String, String)]) -> Result<Self> {
        let mut table = source::parse(origin, text)?;
        source::set(&mut table, overrides)?;
        Self::from_table(&table)
    }

    /// Reads a configuration of text classification from a file; see [`Config::read`].
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self> {
        read_file(path.as_ref(), overrides, Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_environment_is_named_before_all_else() {
        let text = "[data]\nenvironment = \"image\"\npath = \"p\"\n[evaluation]\ntasks = 3\n";
        let error = AnyConfig::parse("a.toml", text, &[]).unwrap_err().to_string();
        for part in ["data.environment", "did you mean `images`", "\"table\", \"images\", \"text\""] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn data_that_are_no_section_are_named_before_all_else() {
        let error =
            AnyConfig::parse("a.toml", "data = 3\n[evaluation]\ntasks = 3\n", &[]).unwrap_err().to_string();
        assert!(error.contains("expected a section [data], found the whole number 3"), "{error}");
    }
}
