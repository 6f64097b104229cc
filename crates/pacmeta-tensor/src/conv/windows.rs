//! A convolution of any width and stride as matrix products: the neighbourhoods of all places of an image, written out, times the
//! filters. Images run on rayon's threads; what is summed over images is summed in their order, so that bits do not depend on threads.

use rayon::prelude::*;

use super::plain::taps;
use super::shape::{BlockShape, ConvShape};
use crate::element::Element;
use crate::matmul::{Orientation, product};

/// The sizes of one image's products.
#[derive(Clone, Copy)]
struct Sizes {
    /// Places of the convolution's output.
    places: usize,
    /// Numbers of a neighbourhood: nine times the channels.
    window: usize,
    filters: usize,
    /// Numbers of the input.
    input: usize,
}

impl Sizes {
    fn of(shape: &ConvShape, block: &BlockShape) -> Self {
        Sizes {
            places: block.output[0] * block.output[1],
            window: 9 * block.channels,
            filters: shape.filters,
            input: block.input[0] * block.input[1] * block.channels,
        }
    }
}

/// The neighbourhoods of an image, row-major [places, (tap, channel)]; zeros stand for the frame.
fn windows<E: Element>(shape: &ConvShape, block: &BlockShape, image: &[E]) -> Vec<E> {
    let (sizes, channels) = (Sizes::of(shape, block), block.channels);
    let mut windows = vec![E::ZERO; sizes.places * sizes.window];
    taps(shape, block, 1, |to, from, tap| {
        let place = to * sizes.window + tap * channels;
        windows[place..place + channels].copy_from_slice(&image[from * channels..][..channels]);
    });
    windows
}

/// z of all images, with filters [(tap, channel), filter].
pub(super) fn convolution<E: Element>(
    shape: &ConvShape,
    block: &BlockShape,
    (filters, bias): (&[E], &[E]),
    input: &[E],
) -> Vec<E> {
    let sizes = Sizes::of(shape, block);
    let of_image = |image: &[E]| {
        let windows = windows(shape, block, image);
        let mut output = product(
            [sizes.places, sizes.window, sizes.filters],
            (&windows, Orientation::Plain),
            (filters, Orientation::Plain),
        );
        for pixel in output.chunks_exact_mut(sizes.filters) {
            pixel.iter_mut().zip(bias).for_each(|(value, bias)| *value += *bias);
        }
        output
    };
    let images: Vec<Vec<E>> = input.par_chunks(sizes.input).with_max_len(1).map(of_image).collect();
    images.concat()
}

/// From the slopes of z: the gradient of the filters, [(tap, channel), filter], and that at the input if it is wanted.
pub(super) fn backward<E: Element>(
    shape: &ConvShape,
    block: &BlockShape,
    filters: &[E],
    (input, slopes): (&[E], &[E]),
    wants_input: bool,
) -> (Vec<E>, Vec<E>) {
    let (sizes, channels) = (Sizes::of(shape, block), block.channels);
    let of_image = |(image, slopes): (&[E], &[E])| {
        let windows = windows(shape, block, image);
        let gradient = product(
            [sizes.window, sizes.places, sizes.filters],
            (&windows, Orientation::Transposed),
            (slopes, Orientation::Plain),
        );
        if !wants_input {
            return (gradient, Vec::new());
        }
        let of_windows = product(
            [sizes.places, sizes.filters, sizes.window],
            (slopes, Orientation::Plain),
            (filters, Orientation::Transposed),
        );
        let mut outer = vec![E::ZERO; sizes.input];
        taps(shape, block, 1, |to, from, tap| {
            let window = &of_windows[to * sizes.window + tap * channels..][..channels];
            let pixel = &mut outer[from * channels..][..channels];
            pixel.iter_mut().zip(window).for_each(|(sum, value)| *sum += *value);
        });
        (gradient, outer)
    };
    let images = input.par_chunks(sizes.input).with_max_len(1);
    let slopes = slopes.par_chunks(sizes.places * sizes.filters).with_max_len(1);
    let parts: Vec<(Vec<E>, Vec<E>)> = images.zip(slopes).map(of_image).collect();
    let mut gradient = vec![E::ZERO; sizes.window * sizes.filters];
    let mut outer = Vec::new();
    for (of_image, at_image) in &parts {
        gradient.iter_mut().zip(of_image).for_each(|(sum, value)| *sum += *value);
        outer.extend_from_slice(at_image);
    }
    (gradient, outer)
}
