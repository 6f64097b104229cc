//! The sizes of an encoder and the places of its parameters.

use serde::{Deserialize, Serialize};

use super::mistake;
use crate::error::Result;
use crate::parameters::{ParameterLayout, ParameterLayoutBuilder};

/// The function between the two products of a layer's feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// x times the normal distribution function at x, BERT's.
    Gelu,
    /// Its approximation x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
    GeluTanh,
    /// The larger of x and 0.
    Relu,
}

/// How the states of a sequence become its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The state of the first token, `[CLS]`.
    First,
    /// The mean of all states.
    Mean,
    /// tanh(W h + b) of the first state h, with parameters of its own, as in BERT's pre-training.
    Pooler,
}

/// The sizes of a transformer encoder of the BERT family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EncoderShape {
    /// Tokens that have an embedding.
    pub vocabulary: usize,
    /// The longest sequence.
    pub positions: usize,
    /// Kinds of segments that have an embedding; 0 if there are none.
    pub segments: usize,
    /// Numbers in the state of a token.
    pub hidden: usize,
    /// Heads of attention, a divisor of `hidden`.
    pub heads: usize,
    /// Numbers between the two products of the feed-forward part.
    pub intermediate: usize,
    /// The number of layers.
    pub layers: usize,
    /// What layer norm adds to a variance.
    pub epsilon: f64,
    /// The function between the two products of the feed-forward part.
    pub activation: Activation,
    /// How the states of a sequence become its features.
    pub pooling: Pooling,
}

/// The largest size of anything but the vocabulary: far above any encoder, and products of three fit into 64 bits.
const LARGEST: usize = 1 << 16;

impl EncoderShape {
    /// The encoder of BERT-base (110 million parameters).
    pub const BERT_BASE: EncoderShape = EncoderShape {
        vocabulary: 30522,
        positions: 512,
        segments: 2,
        hidden: 768,
        heads: 12,
        intermediate: 3072,
        layers: 12,
        epsilon: 1e-12,
        activation: Activation::Gelu,
        pooling: Pooling::Pooler,
    };

    /// An error unless all sizes make sense.
    pub fn check(&self) -> Result<()> {
        let sizes = [
            ("vocabulary", self.vocabulary, 1, LARGEST * LARGEST),
            ("positions", self.positions, 1, LARGEST),
            ("segments", self.segments, 0, 256),
            ("hidden", self.hidden, 1, LARGEST),
            ("heads", self.heads, 1, LARGEST),
            ("intermediate", self.intermediate, 1, LARGEST),
            ("layers", self.layers, 0, LARGEST),
        ];
        for (name, size, least, most) in sizes {
            if size < least || size > most {
                return mistake(format!("{name} is {size}, expected {least} to {most}"));
            }
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return mistake(format!(
                "hidden size {} cannot be divided among {} heads of equal size",
                self.hidden, self.heads
            ));
        }
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            return mistake(format!("epsilon is {}, expected a positive number", self.epsilon));
        }
        Ok(())
    }

    /// Numbers in a head.
    pub(super) fn head_size(&self) -> usize {
        self.hidden / self.heads
    }

    /// Names, shapes and places of all parameters: embeddings, layers in order, pooler.
    ///
    /// | names | shape |
    /// |---|---|
    /// | `embeddings.word`, `embeddings.position`, `embeddings.segment` | [vocabulary, hidden] and so on; no segments, no entry |
    /// | `embeddings.norm.{weight,bias}` | `[hidden]` |
    /// | `layer.i.attention.{query,key,value,output}.{weight,bias}` | `[out, in]` and `[out]` |
    /// | `layer.i.attention.norm.{weight,bias}` | `[hidden]` |
    /// | `layer.i.up.{weight,bias}`, `layer.i.down.{weight,bias}` | `[out, in]` and `[out]` |
    /// | `layer.i.norm.{weight,bias}` | `[hidden]` |
    /// | `pooler.{weight,bias}` | `[out, in]` and `[out]`; with [`Pooling::Pooler`] only |
    pub fn layout(&self) -> Result<ParameterLayout> {
        self.check()?;
        self.upper(self.lower(ParameterLayout::builder(), 0), 0).build()
    }

    /// Where the parameters of layer `threshold` start in the flat buffer: before it is what embeddings and earlier layers
    /// have, from it on what is left. From the last layer on, where the pooler starts.
    pub fn boundary(&self, threshold: usize) -> usize {
        self.embedding_len().saturating_add(threshold.min(self.layers).saturating_mul(self.layer_len()))
    }

    /// The part of [`layout`](Self::layout) before the boundary, with the same names.
    pub fn lower_layout(&self, threshold: usize) -> Result<ParameterLayout> {
        self.check_threshold(threshold)?;
        self.lower(ParameterLayout::builder(), threshold).build()
    }

    /// The part of [`layout`](Self::layout) from the boundary on, with the same names.
    pub fn upper_layout(&self, threshold: usize) -> Result<ParameterLayout> {
        self.check_threshold(threshold)?;
        self.upper(ParameterLayout::builder(), threshold).build()
    }

    /// An error unless the sizes make sense and there are so many layers.
    pub(super) fn check_threshold(&self, threshold: usize) -> Result<()> {
        self.check()?;
        if threshold > self.layers {
            return mistake(format!("threshold {threshold} is beyond the {} layers", self.layers));
        }
        Ok(())
    }

    fn lower(&self, builder: ParameterLayoutBuilder, threshold: usize) -> ParameterLayoutBuilder {
        let hidden = self.hidden;
        let mut builder = builder
            .tensor("embeddings.word", &[self.vocabulary, hidden])
            .tensor("embeddings.position", &[self.positions, hidden]);
        if self.segments > 0 {
            builder = builder.tensor("embeddings.segment", &[self.segments, hidden]);
        }
        builder =
            builder.tensor("embeddings.norm.weight", &[hidden]).tensor("embeddings.norm.bias", &[hidden]);
        (0..threshold).fold(builder, |builder, layer| self.layer(builder, layer))
    }

    fn upper(&self, builder: ParameterLayoutBuilder, threshold: usize) -> ParameterLayoutBuilder {
        let builder = (threshold..self.layers).fold(builder, |builder, layer| self.layer(builder, layer));
        match self.pooling {
            Pooling::First | Pooling::Mean => builder,
            Pooling::Pooler => builder
                .tensor("pooler.weight", &[self.hidden, self.hidden])
                .tensor("pooler.bias", &[self.hidden]),
        }
    }

    fn layer(&self, mut builder: ParameterLayoutBuilder, layer: usize) -> ParameterLayoutBuilder {
        let (hidden, intermediate) = (self.hidden, self.intermediate);
        for name in ["query", "key", "value", "output"] {
            builder = builder
                .tensor(&format!("layer.{layer}.attention.{name}.weight"), &[hidden, hidden])
                .tensor(&format!("layer.{layer}.attention.{name}.bias"), &[hidden]);
        }
        builder
            .tensor(&format!("layer.{layer}.attention.norm.weight"), &[hidden])
            .tensor(&format!("layer.{layer}.attention.norm.bias"), &[hidden])
            .tensor(&format!("layer.{layer}.up.weight"), &[intermediate, hidden])
            .tensor(&format!("layer.{layer}.up.bias"), &[intermediate])
            .tensor(&format!("layer.{layer}.down.weight"), &[hidden, intermediate])
            .tensor(&format!("layer.{layer}.down.bias"), &[hidden])
            .tensor(&format!("layer.{layer}.norm.weight"), &[hidden])
            .tensor(&format!("layer.{layer}.norm.bias"), &[hidden])
    }

    /// Numbers of the embeddings and their norm.
    pub(super) fn embedding_len(&self) -> usize {
        let rows = self.vocabulary.saturating_add(self.positions).saturating_add(self.segments + 2);
        rows.saturating_mul(self.hidden)
    }

    /// Numbers of one layer.
    pub(super) fn layer_len(&self) -> usize {
        let (hidden, intermediate) = (self.hidden, self.intermediate);
        4 * (hidden * hidden + hidden) + 2 * hidden * intermediate + intermediate + hidden + 4 * hidden
    }

    /// Numbers of the pooler.
    pub(super) fn pooler_len(&self) -> usize {
        match self.pooling {
            Pooling::First | Pooling::Mean => 0,
            Pooling::Pooler => self.hidden * self.hidden + self.hidden,
        }
    }

    /// Numbers from the boundary on.
    pub(super) fn upper_len(&self, threshold: usize) -> usize {
        (self.layers - threshold) * self.layer_len() + self.pooler_len()
    }
}
