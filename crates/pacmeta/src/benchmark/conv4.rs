//! Forward and backward of MAML's miniImageNet body, beside the machine's limit for fused multiply-adds in f32.

use std::time::{Duration, Instant};

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::{ConvShape, Images, Statistics};
use serde::Serialize;

use super::passes::{PassTiming, time_passes};
use crate::error::Result;
use crate::priors::ConvolutionSpec;

/// The time of one forward and one backward pass. Operations are counted as a direct convolution (two a multiply-add, no gradient at
/// the pictures), whatever the algorithm saves; so they may exceed the limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conv4Timing {
    /// Pictures in the batch.
    pub images: usize,
    /// The passes.
    #[serde(flatten)]
    pub passes: PassTiming,
}

/// Times the body on `images` pictures of noise with the threads of the current pool.
///
/// # Errors
/// When the body refuses the pictures.
pub fn time_conv4(images: usize, budget: Duration) -> Result<Conv4Timing> {
    // on a thread of the pool, whose processor time is then that of the work
    rayon::scope(|_| measure(images, budget))
}

fn measure(images: usize, budget: Duration) -> Result<Conv4Timing> {
    let spec = ConvolutionSpec::mini_imagenet(5);
    let body = spec.body()?;
    let key = Key::new(0);
    let parameters: Vec<f32> =
        spec.initialise(key)?.values()[..body.layout().len()].iter().map(|value| *value as f32).collect();
    let mut generator = key.named("pictures").generator();
    let pixels: Vec<u8> =
        (0..images * body.shape().image_len()).map(|_| generator.below(256) as u8).collect();
    let slopes: Vec<f32> = (0..images * body.feature_count()).map(|_| generator.normal() as f32).collect();
    let (mut workspace, mut gradient) = (body.workspace(), vec![0.0; parameters.len()]);
    let operations = images as f64 * direct_operations(body.shape());
    let passes = time_passes(budget, 2, operations, || {
        body.forward(&parameters, Images::Bytes(&pixels), Statistics::Batch, &mut workspace)?;
        let forward_end = Instant::now();
        body.backward(&parameters, &slopes, &mut workspace, &mut gradient)?;
        Ok(forward_end)
    })?;
    Ok(Conv4Timing { images, passes })
}

/// Operations of a direct convolution, forward and backward, for one picture.
fn direct_operations(shape: &ConvShape) -> f64 {
    let (mut height, mut width, mut channels) = (shape.height, shape.width, shape.channels);
    let mut total = 0;
    for block in 0..shape.blocks {
        let passes = if block == 0 { 2 } else { 3 };
        total += passes * 2 * 9 * height * width * channels * shape.filters;
        (height, width, channels) = (height / 2, width / 2, shape.filters);
    }
    total as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_table() {
        // 2 x 24.4 + 3 x (130.1 + 32.5 + 7.4) million a picture
        assert!((direct_operations(&ConvShape::MINI_IMAGENET) / 1e6 - 558.6).abs() < 0.5);
    }

    #[test]
    fn a_short_measurement_makes_sense() {
        let timing = time_conv4(2, Duration::from_millis(1)).unwrap().passes;
        assert!(timing.repeats >= 3 && timing.fastest_milliseconds <= timing.milliseconds, "{timing:?}");
        assert!(timing.fastest_forward_milliseconds < timing.fastest_milliseconds, "{timing:?}");
        assert!(timing.gflops > 0.0 && timing.peak_gflops > 0.0, "{timing:?}");
    }
}
