//! The sizes of a body and the places of its parameters.

use std::ops::Range;

use crate::error::{Result, TensorError};
use crate::parameters::ParameterLayout;

/// How a block halves its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downsampling {
    /// A convolution of stride 1, and a 2 x 2 max-pool after the rectifier; an odd last row or column is not pooled.
    MaxPool,
    /// A convolution of stride 2, and no pool.
    Stride,
}

/// The sizes of a convolutional body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// Numbers a pixel of an image has.
    pub channels: usize,
    /// Filters of every block.
    pub filters: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// How a block halves its image.
    pub downsampling: Downsampling,
}

/// The sizes of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockShape {
    /// Rows and columns of the block's input.
    pub(super) input: [usize; 2],
    /// Numbers a pixel of the input has.
    pub(super) channels: usize,
    /// Rows and columns of the convolution's output.
    pub(super) output: [usize; 2],
    /// Rows and columns of the block's output.
    pub(super) pooled: [usize; 2],
}

/// The places of one block's parameters in the flat buffer.
#[derive(Clone, Debug)]
pub(super) struct BlockPlaces {
    pub(super) weight: Range<usize>,
    pub(super) bias: Range<usize>,
    pub(super) scale: Range<usize>,
    pub(super) shift: Range<usize>,
}

impl ConvShape {
    /// MAML's network for miniImageNet: 84 x 84 x 3 images, four pooled blocks of 64 filters, 5 x 5 x 64 features.
    pub const MINI_IMAGENET: ConvShape = ConvShape {
        height: 84,
        width: 84,
        channels: 3,
        filters: 64,
        blocks: 4,
        downsampling: Downsampling::MaxPool,
    };

    /// Numbers in an image.
    pub fn image_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// The sizes of every block, or an error if an image is too small to be halved so often or sizes overflow.
    pub(super) fn block_shapes(&self) -> Result<Vec<BlockShape>> {
        let mistake = |reason: String| Err(TensorError::Fused { operation: "conv body".to_owned(), reason });
        if self.channels == 0 || self.filters == 0 || self.blocks == 0 {
            return mistake("channels, filters and blocks must be at least 1".to_owned());
        }
        if [self.height, self.width, self.channels, self.filters].iter().any(|&size| size > 1 << 14) {
            return mistake("height, width, channels and filters must be at most 16384".to_owned());
        }
        let mut shapes = Vec::new();
        let (mut input, mut channels) = ([self.height, self.width], self.channels);
        for block in 0..self.blocks {
            let (output, pooled) = match self.downsampling {
                Downsampling::MaxPool => (input, input.map(|size| size / 2)),
                Downsampling::Stride => {
                    (input.map(|size| size.div_ceil(2)), input.map(|size| size.div_ceil(2)))
                }
            };
            if pooled.contains(&0) {
                return mistake(format!(
                    "block {block} gets an image of {} x {}, which cannot be halved: use larger images or fewer blocks",
                    input[0], input[1]
                ));
            }
            shapes.push(BlockShape { input, channels, output, pooled });
            (input, channels) = (pooled, self.filters);
        }
        Ok(shapes)
    }

    /// Names, shapes and places of the parameters.
    ///
    /// Block i has `body.block.i.conv.weight` of shape `[out, in, 3, 3]`, and of shape `[out]` `body.block.i.conv.bias`,
    /// `body.block.i.norm.scale` and `body.block.i.norm.shift`.
    pub fn layout(&self) -> Result<ParameterLayout> {
        let mut builder = ParameterLayout::builder();
        for (block, shape) in self.block_shapes()?.iter().enumerate() {
            let filters = self.filters;
            builder = builder
                .tensor(&format!("body.block.{block}.conv.weight"), &[filters, shape.channels, 3, 3])
                .tensor(&format!("body.block.{block}.conv.bias"), &[filters])
                .tensor(&format!("body.block.{block}.norm.scale"), &[filters])
                .tensor(&format!("body.block.{block}.norm.shift"), &[filters]);
        }
        builder.build()
    }

    /// The places of the scales of every block among all parameters.
    pub fn scale_places(&self) -> Result<Vec<Range<usize>>> {
        Ok(self.places(&self.block_shapes()?).into_iter().map(|places| places.scale).collect())
    }

    /// The places of the parameters of every block.
    pub(super) fn places(&self, shapes: &[BlockShape]) -> Vec<BlockPlaces> {
        let mut end = 0;
        let mut take = |len: usize| {
            end += len;
            end - len..end
        };
        let filters = self.filters;
        shapes
            .iter()
            .map(|shape| BlockPlaces {
                weight: take(filters * shape.channels * 9),
                bias: take(filters),
                scale: take(filters),
                shift: take(filters),
            })
            .collect()
    }
}
