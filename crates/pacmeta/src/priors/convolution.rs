//! Convolutional networks as priors for image classification: a body of equal blocks, and a linear softmax head on its
//! features (Conv4 of MAML and of the paper's image experiments).

use pacmeta_tensor::conv::{ConvBody, ConvShape, Downsampling as Halving};
use pacmeta_tensor::{Key, ParameterLayout, Parameters};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::learners::head::HeadShape;

/// How a block halves its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Downsampling {
    /// By a 2 x 2 max-pool (miniImageNet).
    #[default]
    MaxPool,
    /// By a convolution of stride 2 (Omniglot).
    Stride,
}

/// The shape of a convolutional prior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvolutionSpec {
    /// Rows and columns of a picture.
    pub side: usize,
    /// 1 for grey, 3 for colour.
    pub channels: usize,
    /// Filters of each block.
    pub filters: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// How a block halves its image.
    pub downsampling: Downsampling,
    /// Classes of a task: rows of the head.
    pub classes: usize,
}

impl ConvolutionSpec {
    /// The paper's network for miniImageNet and tasks of `classes` classes.
    pub fn mini_imagenet(classes: usize) -> Self {
        let ConvShape { height, channels, filters, blocks, .. } = ConvShape::MINI_IMAGENET;
        Self { side: height, channels, filters, blocks, downsampling: Downsampling::MaxPool, classes }
    }

    /// The body.
    ///
    /// # Errors
    /// When pictures are too small for so many blocks, or a size is 0.
    pub fn body(&self) -> Result<ConvBody> {
        let downsampling = match self.downsampling {
            Downsampling::MaxPool => Halving::MaxPool,
            Downsampling::Stride => Halving::Stride,
        };
        Ok(ConvBody::new(ConvShape {
            height: self.side,
            width: self.side,
            channels: self.channels,
            filters: self.filters,
            blocks: self.blocks,
            downsampling,
        })?)
    }

    /// The names and shapes of the parameters: those of the body (see [`ConvShape::layout`]), then `head.weight` and
    /// `head.bias`.
    ///
    /// # Errors
    /// As [`Self::body`].
    pub fn layout(&self) -> Result<ParameterLayout> {
        let body = self.body()?;
        let head = HeadShape { features: body.feature_count(), classes: self.classes };
        network_layout(body.layout(), head)
    }

    /// Fresh parameters: weights from Glorot's uniform distribution U(-b, b), b^2 = 6 / (fan_in + fan_out), scales 1, biases
    /// and shifts 0.
    ///
    /// # Errors
    /// As [`Self::body`].
    pub fn initialise(&self, key: Key) -> Result<Parameters<f64>> {
        let mut parameters = Parameters::zeros(self.layout()?.into());
        let entries = parameters.layout().entries().to_vec();
        for entry in entries {
            let values = &mut parameters.values_mut()[entry.range()];
            match &entry.shape[..] {
                [outputs, inputs, window @ ..] => {
                    let window: usize = window.iter().product();
                    let bound = (6.0 / ((inputs + outputs) * window) as f64).sqrt();
                    let mut generator = key.named(&entry.name).generator();
                    values.iter_mut().for_each(|value| *value = generator.uniform_in(-bound, bound));
                }
                _ if entry.name.ends_with("scale") => values.fill(1.0),
                _ => {}
            }
        }
        Ok(parameters)
    }
}

/// The layout of a body with a head: `head.weight` and `head.bias` at its end.
pub(crate) fn network_layout(body: &ParameterLayout, head: HeadShape) -> Result<ParameterLayout> {
    let mut builder = ParameterLayout::builder();
    for entry in body.entries() {
        builder = builder.tensor(&entry.name, &entry.shape);
    }
    let HeadShape { features, classes } = head;
    Ok(builder.tensor("head.weight", &[classes, features]).tensor("head.bias", &[classes]).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_network_has_its_size() {
        let spec = ConvolutionSpec::mini_imagenet(5);
        let layout = spec.layout().unwrap();
        // 3 x 64 x 9 and three times 64 x 64 x 9 weights, four times 3 x 64 others, 5 x 1601 in the head
        assert_eq!(layout.len(), 1728 + 3 * 36_864 + 4 * 192 + 8005);
        assert_eq!(&layout.get("head.weight").unwrap().shape[..], &[5, 1600]);
    }

    #[test]
    fn fresh_weights_lie_in_glorots_interval() {
        let parameters = ConvolutionSpec::mini_imagenet(5).initialise(Key::new(1)).unwrap();
        for (name, bound) in [
            ("body.block.1.conv.weight", (6.0_f64 / 1152.0).sqrt()),
            ("head.weight", (6.0_f64 / 1605.0).sqrt()),
        ] {
            let largest = parameters.tensor(name).unwrap().iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            assert!(largest <= bound && largest > 0.99 * bound, "{name}: {largest} against {bound}");
        }
        assert!(parameters.tensor("body.block.2.norm.scale").unwrap().iter().all(|&value| value == 1.0));
        assert!(parameters.tensor("head.bias").unwrap().iter().all(|&value| value == 0.0));
    }

    #[test]
    fn pictures_that_are_too_small_are_refused() {
        let spec = ConvolutionSpec { side: 8, ..ConvolutionSpec::mini_imagenet(5) };
        assert!(spec.layout().unwrap_err().to_string().contains("cannot be halved"));
    }
}
