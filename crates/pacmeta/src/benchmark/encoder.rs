//! Forward and backward of a transformer encoder, beside the machine's limit for fused multiply-adds in f32.

use std::time::{Duration, Instant};

use pacmeta_tensor::Key;
use pacmeta_tensor::encoder::{
    EncoderRoom, EncoderShape, Keep, States, Tokens, lower_backward, lower_forward, upper_backward,
    upper_forward,
};
use serde::Serialize;

use super::passes::{PassTiming, time_passes};
use super::peak_bytes;
use crate::error::{Error, Result};

/// Numbers in a head of attention.
const HEAD: usize = 64;

/// Sizes of the encoder and of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EncoderSizes {
    /// The number of layers.
    pub layers: usize,
    /// Numbers in the state of a token: a multiple of 64, each 64 of them a head; the feed-forward part has four times as many.
    pub hidden: usize,
    /// Sequences.
    pub batch: usize,
    /// Tokens of each.
    pub length: usize,
}

/// The time of one forward and one backward pass through embeddings, all layers and the pooler. Operations are those of the products with
/// weights alone (two a multiply-add).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncoderTiming {
    /// Sizes of the encoder and of its batch.
    #[serde(flatten)]
    pub sizes: EncoderSizes,
    /// The passes.
    #[serde(flatten)]
    pub passes: PassTiming,
    /// What the passes hold besides parameters and gradient.
    pub room_megabytes: f64,
    /// The most memory that the process ever held, where the system tells.
    pub peak_megabytes: Option<f64>,
}

/// Times BERT's architecture with its vocabulary on random tokens with the threads of the current pool.
///
/// # Errors
/// When the hidden size cannot be divided into heads or sequences are longer than 512 tokens.
pub fn time_encoder(sizes: EncoderSizes, budget: Duration) -> Result<EncoderTiming> {
    // on a thread of the pool, whose processor time is then that of the work
    rayon::scope(|_| measure(sizes, budget))
}

fn measure(sizes: EncoderSizes, budget: Duration) -> Result<EncoderTiming> {
    let EncoderSizes { layers, hidden, batch, length } = sizes;
    if hidden == 0 || hidden % HEAD != 0 {
        let message = format!("it is {hidden}, expected a multiple of {HEAD}");
        return Err(Error::input("option `--hidden`", message));
    }
    let heads = hidden / HEAD;
    let shape = EncoderShape { layers, hidden, heads, intermediate: 4 * hidden, ..EncoderShape::BERT_BASE };
    let mut generator = Key::new(0).named("encoder").generator();
    let mut parameters: Vec<f32> = vec![0.0; shape.layout()?.len()];
    for entry in shape.layout()?.entries() {
        let is_scale = entry.name.ends_with("norm.weight");
        for value in &mut parameters[entry.range()] {
            *value = if is_scale { 1.0 } else { generator.uniform_in(-0.035, 0.035) as f32 };
        }
    }
    let ids: Vec<u32> = (0..batch * length).map(|_| generator.below(shape.vocabulary) as u32).collect();
    let segments = vec![0; ids.len()];
    let starts: Vec<usize> = (0..=batch).map(|sequence| sequence * length).collect();
    let tokens = Tokens { ids: &ids, segments: &segments, starts: &starts };
    let slopes: Vec<f32> = (0..batch * hidden).map(|_| generator.normal() as f32).collect();
    let (lower, upper) = parameters.split_at(shape.boundary(layers));
    let mut gradient = vec![0.0; parameters.len()];
    let (lower_gradient, upper_gradient) = gradient.split_at_mut(lower.len());
    let (mut below, mut above) = (EncoderRoom::new(), EncoderRoom::new());
    let mut state_gradient = vec![0.0; ids.len() * hidden];
    // four maps of the attention and two of four times the size, once forwards and twice backwards; of the last layer, keys and values
    // only for other tokens than first ones
    let products = 12 * layers * ids.len() - 10 * (ids.len() - batch);
    let operations = 3.0 * 2.0 * (products * hidden * hidden) as f64;
    let passes = time_passes(budget, 1, operations, || {
        let keep = Keep::ForBackward;
        let values = lower_forward(&shape, layers, lower, tokens, keep, None, &mut below)?;
        let states = States { values, starts: &starts };
        upper_forward(&shape, layers, upper, states, keep, None, &mut above)?;
        let forward_end = Instant::now();
        let at_states = Some(&mut state_gradient[..]);
        upper_backward(&shape, layers, upper, states, &slopes, &mut above, upper_gradient, at_states)?;
        lower_backward(&shape, layers, lower, tokens, &state_gradient, &mut below, lower_gradient)?;
        Ok(forward_end)
    })?;
    Ok(EncoderTiming {
        sizes,
        passes,
        room_megabytes: (below.peak_bytes() + above.peak_bytes()) as f64 / 1024.0 / 1024.0,
        peak_megabytes: peak_bytes().map(|bytes| bytes as f64 / 1024.0 / 1024.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_measurement_makes_sense() {
        let sizes = EncoderSizes { layers: 1, hidden: 64, batch: 2, length: 5 };
        let timing = time_encoder(sizes, Duration::from_millis(1)).unwrap();
        let passes = &timing.passes;
        assert!(passes.repeats >= 3 && passes.fastest_milliseconds <= passes.milliseconds, "{timing:?}");
        assert!(passes.fastest_forward_milliseconds < passes.fastest_milliseconds, "{timing:?}");
        assert!(passes.gflops > 0.0 && timing.room_megabytes > 0.0, "{timing:?}");
        assert!(time_encoder(EncoderSizes { hidden: 96, ..sizes }, Duration::ZERO).is_err());
        assert!(time_encoder(EncoderSizes { length: 513, ..sizes }, Duration::ZERO).is_err());
    }
}
