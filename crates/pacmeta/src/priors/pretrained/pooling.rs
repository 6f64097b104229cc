//! How a sentence encoder says that states become features.

use std::path::{Path, PathBuf};

use pacmeta_tensor::encoder::Pooling;
use serde_json::Value;

use super::LARGEST_CONFIG;
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

/// The pooling that `modules.json` or `1_Pooling/config.json` states; none in folders without them.
pub(super) fn stated(folder: &Path) -> Result<Option<Pooling>> {
    let Some(path) = config_path(folder)? else { return Ok(None) };
    let config = read_json(&path)?;
    // Newer files name the mode, older ones have a flag for each.
    let named = config.get("pooling_mode").and_then(Value::as_str);
    let flags: Vec<&str> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| key.starts_with("pooling_mode_") && value.as_bool() == Some(true))
        .map(|(key, _)| key.as_str())
        .collect();
    match (named, flags.as_slice()) {
        (Some("mean"), _) | (None, ["pooling_mode_mean_tokens"]) => Ok(Some(Pooling::Mean)),
        (Some("cls"), _) | (None, ["pooling_mode_cls_token"]) => Ok(Some(Pooling::First)),
        _ => Err(Error::input(
            path.display(),
            "states a pooling that is not offered (mean or first token are, each alone); set `prior.pooling` to mean, first or pooler",
        )),
    }
}

fn config_path(folder: &Path) -> Result<Option<PathBuf>> {
    let modules = folder.join("modules.json");
    if modules.is_file() {
        let modules = read_json(&modules)?;
        let is_pooling = |module: &&Value| {
            module.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("Pooling"))
        };
        let path = modules.as_array().and_then(|list| list.iter().find(is_pooling)?.get("path")?.as_str());
        // Only a plain folder inside, whatever the file says.
        if let Some(path) = path
            && Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
        {
            let config = folder.join(path).join("config.json");
            return Ok(config.is_file().then_some(config));
        }
    }
    let config = folder.join("1_Pooling").join("config.json");
    Ok(config.is_file().then_some(config))
}

fn read_json(path: &Path) -> Result<Value> {
    serde_json::from_slice(&read_bounded(path, LARGEST_CONFIG)?)
        .map_err(|error| Error::input(path.display(), format!("is not JSON: {error}; copy it again")))
}
