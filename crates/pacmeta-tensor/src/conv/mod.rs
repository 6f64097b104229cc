//! Convolutional bodies for few-shot image classification, with batch norm on the batch at hand.
//!
//! A body is a chain of equal blocks. With input a, filters w and b, scale gamma and shift beta, a block computes
//!
//! ```text
//! z = w * a + b                            3 x 3 convolution, zero padding 1
//! y = gamma (z - mean) / sqrt(variance + 1e-5) + beta
//! a' = max-pool(max(y, 0))                 2 x 2, or no pool after a convolution of stride 2
//! ```
//!
//! for each filter, with mean and variance over all images and places of the batch, of its first images, or given ones. [`ConvShape::MINI_IMAGENET`] is
//! MAML's network for miniImageNet: 84 -> 42 -> 21 -> 10 -> 5, 64 filters, 1600 features.
//!
//! The backward pass gives the gradient of all parameters from the gradient at the features; there is none at the
//! images, and no second order. With dy the gradient at y (not zero only where a pool looked and the rectifier was
//! active), N places and xhat = (z - mean) / deviation,
//!
//! ```text
//! dbeta = sum dy,   dgamma = sum dy xhat,
//! dz = gamma / deviation * (dy - dbeta / N - xhat dgamma / N).
//! ```
//!
//! Batch statistics take the bias away again, so that its gradient is exactly zero; with given statistics the last two
//! terms of dz fall away. Where statistics are those of the first n images, N counts the places of these alone, sums run over all
//! images (every one is normalised by them), and the last two terms of dz are there at places of the first n images only.
//!
//! [`ConvBody`] is what callers use. It works in f32 with rows of pixels (image, row, column, channel), and takes a fast
//! path for what few-shot papers use: 64 filters, pools, up to three channels. Everything else runs on [`plain`] with its convolutions as
//! matrix products; in simple loops it is the reference of both. [`composite`] is the same in operations of the tape, for second order.

mod ahead;
mod block;
mod body;
pub mod composite;
mod fast;
mod filters;
mod first_layer;
mod gemm;
mod geometry;
mod gram;
mod pixel;
pub mod plain;
mod shape;
mod tiles;
mod windows;
mod winograd;

use crate::error::{Result, TensorError};
pub use body::{ConvBody, Images, Workspace};
pub use shape::{ConvShape, Downsampling};

/// What is added to a variance before its root is taken.
pub const EPSILON: f64 = 1e-5;

/// Means and variances of the filters of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// The mean of each filter's output, bias included.
    pub mean: Vec<f64>,
    /// The variance of each filter's output: squared deviations divided by their number.
    pub variance: Vec<f64>,
}

/// What batch norm normalises with.
#[derive(Clone, Copy, Debug)]
pub enum Statistics<'a> {
    /// Means and variances of the images at hand, as in MAML; gradients run through them.
    Batch,
    /// Means and variances of the first images at hand, so many, for all of them (those of a support set that comes first, say);
    /// gradients run through them. Features of the first images are those of a batch of them alone.
    First(usize),
    /// Means and variances from elsewhere, one entry a block (those of a support set, say); constants for the gradient.
    Given(&'a [Moments]),
}

impl Statistics<'_> {
    /// How many images of a batch make the statistics: all, the first, or none.
    fn counted(&self, images: usize) -> usize {
        match self {
            Statistics::Batch => images,
            Statistics::First(first) => *first,
            Statistics::Given(_) => 0,
        }
    }

    /// Given statistics must fit the shape, and there must be images to make others of.
    fn check(&self, shape: &ConvShape, images: usize) -> Result<()> {
        if let Statistics::First(first) = self
            && !(1..=images).contains(first)
        {
            let reason =
                format!("statistics of the first {first} of {images} images; expected 1 to {images}");
            return Err(TensorError::Fused { operation: "conv body".to_owned(), reason });
        }
        if let Statistics::Given(moments) = self {
            check_len("blocks of given statistics", shape.blocks, moments.len())?;
            for moments in *moments {
                check_len("given means", shape.filters, moments.mean.len())?;
                check_len("given variances", shape.filters, moments.variance.len())?;
                if moments.variance.iter().any(|&variance| variance < 0.0) {
                    let reason = "a given variance is negative".to_owned();
                    return Err(TensorError::Fused { operation: "conv body".to_owned(), reason });
                }
            }
        }
        Ok(())
    }
}

/// An error unless a buffer has the length that its use asks for.
fn check_len(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(TensorError::LengthMismatch { what, expected, found }) }
}

/// The number of images in a buffer, at least one.
fn image_count(shape: &ConvShape, len: usize) -> Result<usize> {
    let count = len / shape.image_len().max(1);
    check_len("images", count.max(1) * shape.image_len(), len)?;
    Ok(count)
}
