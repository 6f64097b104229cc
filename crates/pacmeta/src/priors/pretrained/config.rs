//! `config.json`: the sizes of a model, in the words of BERT or of DistilBERT.

use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling};
use serde_json::{Map, Value};

use crate::environments::table::{did_you_mean, listed, quoted};
use crate::error::{Error, Result};

/// How tensors and settings are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Bert,
    DistilBert,
}

/// What a `config.json` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ModelConfig {
    pub(super) family: Family,
    /// The pooling is the caller's to set.
    pub(super) shape: EncoderShape,
}

/// BERT's constant, where a file does not say.
const EPSILON: f64 = 1e-12;

impl ModelConfig {
    pub(super) fn parse(origin: &str, bytes: &[u8]) -> Result<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let fields = match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(Error::input(origin, "expected a JSON object with the sizes of a model")),
            Err(error) => return Err(Error::input(origin, format!("is not JSON: {error}; copy it again"))),
        };
        let reader = Reader { origin, fields };
        let family = reader.family()?;
        let shape = match family {
            Family::Bert => reader.bert()?,
            Family::DistilBert => reader.distil_bert()?,
        };
        shape.check().map_err(|error| Error::input(origin, error.to_string()))?;
        Ok(Self { family, shape })
    }
}

struct Reader<'a> {
    origin: &'a str,
    fields: Map<String, Value>,
}

impl Reader<'_> {
    fn wrong(&self, key: &str, message: impl Into<String>) -> Error {
        Error::input_at(self.origin, format!("key `{key}`"), message)
    }

    /// Told by `model_type`, which old files lack, or else by the words that are used.
    fn family(&self) -> Result<Family> {
        match self.fields.get("model_type").map(|value| value.as_str()) {
            Some(Some("bert")) => Ok(Family::Bert),
            Some(Some("distilbert")) => Ok(Family::DistilBert),
            None if self.fields.contains_key("n_layers") && self.fields.contains_key("dim") => {
                Ok(Family::DistilBert)
            }
            None if self.fields.contains_key("hidden_size") => Ok(Family::Bert),
            None => Err(Error::input(
                self.origin,
                format!(
                    "`model_type` is missing, and {} are no sizes of a BERT; expected the config.json of a BERT or DistilBERT",
                    listed(self.fields.keys().map(String::as_str))
                ),
            )),
            Some(other) => {
                let word = other.unwrap_or("no text");
                let message = format!(
                    "found {}; models of the types bert and distilbert are understood (also MiniLM and sentence encoders \
                     that are built so)",
                    quoted(word)
                );
                Err(self.wrong("model_type", message))
            }
        }
    }

    fn size(&self, key: &str) -> Result<usize> {
        let Some(value) = self.fields.get(key) else {
            let hint = did_you_mean(key, self.fields.keys().map(String::as_str));
            return Err(self.wrong(key, format!("is missing{hint}; expected a whole number above 0")));
        };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.filter(|&number| number > 0).ok_or_else(|| {
            self.wrong(key, format!("is {}; expected a whole number above 0", quoted(&value.to_string())))
        })
    }

    /// The number of heads, among which the hidden size is divided.
    fn heads(&self, key: &str, hidden: usize, hidden_key: &str) -> Result<usize> {
        let heads = self.size(key)?;
        if hidden.is_multiple_of(heads) {
            return Ok(heads);
        }
        let message = format!(
            "is {heads}, by which the {hidden} of `{hidden_key}` cannot be divided; copy the file again"
        );
        Err(self.wrong(key, message))
    }

    fn epsilon(&self, key: &str) -> Result<f64> {
        let Some(value) = self.fields.get(key) else { return Ok(EPSILON) };
        // It is there to keep a variance off zero; states vary by about 1.
        value.as_f64().filter(|&epsilon| epsilon > 0.0 && epsilon < 1.0).ok_or_else(|| {
            self.wrong(key, format!("is {}; expected a number between 0 and 1", quoted(&value.to_string())))
        })
    }

    fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        if self.fields.contains_key(key) { self.size(key) } else { Ok(default) }
    }

    fn activation(&self, key: &str) -> Result<Activation> {
        match self.fields.get(key).map(|value| value.as_str()) {
            None | Some(Some("gelu" | "gelu_python")) => Ok(Activation::Gelu),
            Some(Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh")) => Ok(Activation::GeluTanh),
            Some(Some("relu")) => Ok(Activation::Relu),
            Some(other) => {
                let word = other.unwrap_or("no text");
                Err(self
                    .wrong(key, format!("found {}; gelu, gelu_new and relu are understood", quoted(word))))
            }
        }
    }

    fn bert(&self) -> Result<EncoderShape> {
        if let Some(kind) = self.fields.get("position_embedding_type").and_then(Value::as_str)
            && kind != "absolute"
        {
            let message = format!("found {}; absolute positions are understood", quoted(kind));
            return Err(self.wrong("position_embedding_type", message));
        }
        if self.fields.get("is_decoder").and_then(Value::as_bool) == Some(true) {
            return Err(self.wrong("is_decoder", "found true; encoders are understood"));
        }
        let hidden = self.size("hidden_size")?;
        Ok(EncoderShape {
            vocabulary: self.size("vocab_size")?,
            positions: self.size("max_position_embeddings")?,
            segments: self.size_or("type_vocab_size", 2)?,
            hidden,
            heads: self.heads("num_attention_heads", hidden, "hidden_size")?,
            intermediate: self.size("intermediate_size")?,
            layers: self.size("num_hidden_layers")?,
            epsilon: self.epsilon("layer_norm_eps")?,
            activation: self.activation("hidden_act")?,
            pooling: Pooling::First,
        })
    }

    fn distil_bert(&self) -> Result<EncoderShape> {
        let hidden = self.size("dim")?;
        Ok(EncoderShape {
            vocabulary: self.size("vocab_size")?,
            positions: self.size("max_position_embeddings")?,
            segments: 0,
            hidden,
            heads: self.heads("n_heads", hidden, "dim")?,
            intermediate: self.size("hidden_dim")?,
            layers: self.size("n_layers")?,
            epsilon: EPSILON,
            activation: self.activation("activation")?,
            pooling: Pooling::First,
        })
    }
}
