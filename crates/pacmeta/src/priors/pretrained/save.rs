//! Writes an encoder as a folder that this library and `transformers` open.

use std::collections::HashMap;
use std::path::Path;

use pacmeta_tensor::Parameters;
use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::json;

use super::config::Family;
use super::names;
use crate::error::{Error, Result};
use crate::training::files::write_atomically;

/// Writes `config.json`, `model.safetensors` (F32), `vocab.txt` and `tokenizer_config.json`; with [`Pooling::Mean`] also
/// `1_Pooling/config.json`. The words are those of the tokeniser, in the order of their numbers.
///
/// # Errors
/// When the parameters are not those of the shape, there are more words than embeddings, the shape has no segments, or a
/// file cannot be written.
pub fn save(
    folder: &Path,
    shape: &EncoderShape,
    parameters: &Parameters<f32>,
    words: &[String],
) -> Result<()> {
    shape.layout()?.check_same(parameters.layout())?;
    let refuse = |message: String| Err(Error::input(folder.display(), message));
    if words.len() > shape.vocabulary {
        return refuse(format!("{} words are more than the {} embeddings", words.len(), shape.vocabulary));
    }
    if shape.segments == 0 {
        return refuse("an encoder without segments is not written in BERT's form".into());
    }
    let io_error = |source| Error::io("create the folder", folder, source);
    std::fs::create_dir_all(folder).map_err(io_error)?;
    let activation = match shape.activation {
        Activation::Gelu => "gelu",
        Activation::GeluTanh => "gelu_new",
        Activation::Relu => "relu",
    };
    let config = json!({
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.intermediate,
        "hidden_act": activation,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.segments,
        "layer_norm_eps": shape.epsilon,
        "position_embedding_type": "absolute",
        "pad_token_id": 0,
    });
    write_json(&folder.join("config.json"), &config)?;
    write_json(
        &folder.join("tokenizer_config.json"),
        &json!({"do_lower_case": true, "tokenizer_class": "BertTokenizer"}),
    )?;
    let vocabulary: String = words.iter().map(|word| format!("{word}\n")).collect();
    write_atomically(folder.join("vocab.txt"), vocabulary.as_bytes())?;
    if shape.pooling == Pooling::Mean {
        let pooling = folder.join("1_Pooling");
        std::fs::create_dir_all(&pooling).map_err(io_error)?;
        let config = json!({"word_embedding_dimension": shape.hidden, "pooling_mode_mean_tokens": true});
        write_json(&pooling.join("config.json"), &config)?;
    }
    write_atomically(folder.join("model.safetensors"), &tensors(parameters)?)
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<()> {
    write_atomically(path, format!("{value:#}\n").as_bytes())
}

fn tensors(parameters: &Parameters<f32>) -> Result<Vec<u8>> {
    let unwritable = |error: safetensors::SafeTensorError| {
        Error::input("model.safetensors", format!("cannot be written: {error}"))
    };
    let stored: Vec<(String, Vec<usize>, Vec<u8>)> = parameters
        .iter()
        .map(|(entry, values)| {
            let name = names::candidates(Family::Bert, &entry.name).swap_remove(0);
            let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            (name, entry.shape.to_vec(), bytes)
        })
        .collect();
    let views = stored
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(unwritable)?;
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views, Some(metadata)).map_err(unwritable)
}
