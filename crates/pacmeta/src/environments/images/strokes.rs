//! A generated set of pictures: characters of a few strokes, so that every command can be tried without data.
//!
//! A class is a character of two to four strokes. A stroke is a line, an arc, a hook or a wave, which often starts on an
//! earlier stroke; it is kept as a few knots with a Catmull-Rom curve through them. A picture is the character as a hand
//! would write it: knots tremble, the whole is turned, slanted, stretched and shifted a little, the pen is thinner or
//! thicker. In colour, ink and paper differ from picture to picture and say nothing about the class. So one example tells
//! the class to somebody who knows how characters vary, which is what can be learnt from other characters.
//!
//! Everything is a function of the seed: class c is drawn from its own key and picture p of it from another, so a larger
//! set contains the smaller.

use std::f64::consts::{FRAC_PI_4, PI, TAU};

use pacmeta_tensor::{Generator, Key};
use rayon::prelude::*;

use super::{Channels, ImageClass, ImageSet, PictureShape};
use crate::error::{Error, Result};

/// What set to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrokeOptions {
    /// The number of characters.
    pub classes: usize,
    /// The number of pictures of each.
    pub pictures: usize,
    /// The shape of the pictures.
    pub shape: PictureShape,
    /// The seed.
    pub seed: u64,
}

type Point = [f64; 2];

/// Generates a set of characters.
///
/// # Errors
/// When a number is 0 or the set does not fit into memory.
///
/// ```
/// use pacmeta::environments::images::{Channels, PictureShape, StrokeOptions, strokes};
///
/// let shape = PictureShape { side: 28, channels: Channels::Grey };
/// let set = strokes(&StrokeOptions { classes: 3, pictures: 4, shape, seed: 7 })?;
/// assert_eq!((set.classes().len(), set.len(), set.picture_name(5)), (3, 12, "character-0001/01"));
/// # Ok::<(), pacmeta::Error>(())
/// ```
pub fn strokes(options: &StrokeOptions) -> Result<ImageSet> {
    let StrokeOptions { classes, pictures, shape, seed } = *options;
    shape.check()?;
    let wrong = |message: &str| Error::input("generated characters", message);
    if classes == 0 || pictures == 0 {
        return Err(wrong("expected at least one class and one picture of each"));
    }
    let class_bytes = pictures.checked_mul(shape.bytes());
    let total =
        class_bytes.and_then(|bytes| bytes.checked_mul(classes)).filter(|&total| total < isize::MAX as usize);
    let too_many = || wrong("the pictures do not fit into memory; ask for fewer or smaller ones");
    let total = total.ok_or_else(too_many)?;
    let mut pixels = Vec::new();
    pixels.try_reserve_exact(total).map_err(|_| too_many())?;
    pixels.resize(total, 0);
    let key = Key::new(seed).named("strokes");
    pixels.par_chunks_exact_mut(pictures * shape.bytes()).enumerate().for_each(|(class, pixels)| {
        let key = key.index(class as u64);
        let character = draw_character(&mut key.named("character").generator());
        for (picture, pixels) in pixels.chunks_exact_mut(shape.bytes()).enumerate() {
            let mut generator = key.named("picture").index(picture as u64).generator();
            write_character(&character, shape, &mut generator, pixels);
        }
    });
    let class_name = |class: usize| format!("character-{class:04}");
    let image_classes = (0..classes).map(|class| ImageClass {
        name: class_name(class),
        display_name: class_name(class),
        pictures: (class * pictures..(class + 1) * pictures).collect(),
    });
    let names = (0..classes * pictures)
        .map(|index| format!("{}/{:02}", class_name(index / pictures), index % pictures))
        .collect();
    ImageSet::in_memory("generated characters", shape, image_classes.collect(), names, pixels)
}

/// The strokes of a new character, as knots, filling the square from -0.7 to 0.7 in its longer direction.
fn draw_character(generator: &mut Generator) -> Vec<Vec<Point>> {
    let count = 2 + generator.below(3);
    let mut strokes: Vec<Vec<Point>> = Vec::with_capacity(count);
    for index in 0..count {
        let start = if index > 0 && generator.uniform() < 0.6 {
            // On an earlier stroke, as most letters have it.
            let stroke = &strokes[generator.below(index)];
            stroke[generator.below(stroke.len())]
        } else {
            [generator.uniform_in(-0.8, 0.8), generator.uniform_in(-0.8, 0.8)]
        };
        strokes.push(draw_stroke(generator, start));
    }
    let points = || strokes.iter().flatten();
    let extent = |axis: usize| {
        let low = points().map(|point| point[axis]).fold(f64::INFINITY, f64::min);
        let high = points().map(|point| point[axis]).fold(f64::NEG_INFINITY, f64::max);
        (0.5 * (low + high), high - low)
    };
    let [(x, width), (y, height)] = [extent(0), extent(1)];
    let scale = 1.4 / width.max(height).max(0.1);
    for point in strokes.iter_mut().flatten() {
        *point = [(point[0] - x) * scale, (point[1] - y) * scale];
    }
    strokes
}

/// The knots of one stroke.
fn draw_stroke(generator: &mut Generator, start: Point) -> Vec<Point> {
    // Upright, level and diagonal strokes, towards the middle rather than away from it, not quite straight.
    let mut angle = FRAC_PI_4 * generator.below(8) as f64;
    if start[0] * angle.cos() + start[1] * angle.sin() > 0.3 {
        angle += PI;
    }
    angle += 0.12 * generator.normal();
    let length = generator.uniform_in(0.8, 1.6);
    let along = |distance: f64, aside: f64| {
        let (sine, cosine) = angle.sin_cos();
        [start[0] + distance * cosine - aside * sine, start[1] + distance * sine + aside * cosine]
    };
    let side = if generator.uniform() < 0.5 { 1.0 } else { -1.0 };
    match generator.below(4) {
        0 => (0..3).map(|knot| along(0.5 * length * knot as f64, 0.0)).collect(),
        1 => {
            let radius = generator.uniform_in(0.3, 0.6);
            let sweep = generator.uniform_in(0.6 * PI, 0.95 * TAU);
            let arc = |knot: usize| {
                let turned = sweep * knot as f64 / 7.0;
                along(radius * turned.sin(), side * radius * (1.0 - turned.cos()))
            };
            (0..8).map(arc).collect()
        }
        2 => {
            let (bend, reach) = (generator.uniform_in(0.2, 0.45), generator.uniform_in(-0.3, 0.3));
            let corner = length - 0.5 * bend;
            vec![
                start,
                along(0.5 * length, 0.0),
                along(corner, 0.05 * side),
                along(length, 0.6 * side * bend),
                along(length + 0.3 * reach, side * (bend + 0.2)),
            ]
        }
        _ => {
            let height = side * generator.uniform_in(0.15, 0.35);
            let wave = |knot: usize| {
                let part = knot as f64 / 6.0;
                along(part * length, height * (part * TAU).sin())
            };
            (0..7).map(wave).collect()
        }
    }
}

/// Writes a character with an unsteady hand into `pixels`.
fn write_character(
    strokes: &[Vec<Point>],
    shape: PictureShape,
    generator: &mut Generator,
    pixels: &mut [u8],
) {
    let side = shape.side as f64;
    let (turn, slant) = (0.18 * generator.normal(), 0.18 * generator.normal());
    let stretch = [(); 2].map(|()| 0.5 * side * (1.0 + 0.12 * generator.normal()).clamp(0.65, 1.25));
    let shift = [(); 2].map(|()| 0.5 * side * (1.0 + (0.11 * generator.normal()).clamp(-0.25, 0.25)));
    let (sine, cosine) = turn.sin_cos();
    let radius = 0.5 * (side * generator.uniform_in(0.045, 0.085)).max(1.0);
    let mut ink = vec![0f32; shape.side * shape.side];
    let mut curve = Vec::new();
    for stroke in strokes {
        let knots: Vec<Point> = stroke
            .iter()
            .map(|&[x, y]| {
                let [x, y] = [x + 0.035 * generator.normal(), y + 0.035 * generator.normal()];
                let x = x + slant * y;
                let [x, y] = [cosine * x - sine * y, sine * x + cosine * y];
                [shift[0] + stretch[0] * x, shift[1] + stretch[1] * y]
            })
            .collect();
        smooth_curve(&knots, &mut curve);
        for ends in curve.windows(2) {
            draw_segment(ends[0], ends[1], radius, shape.side, &mut ink);
        }
    }
    match shape.channels {
        Channels::Grey => {
            for (pixel, ink) in pixels.iter_mut().zip(&ink) {
                *pixel = (255.0 * (1.0 - ink)).round() as u8;
            }
        }
        Channels::Colour => {
            let mut colour = |low, high| [(); 3].map(|()| generator.uniform_in(low, high) as f32);
            let (paper, pen) = (colour(150.0, 255.0), colour(0.0, 110.0));
            for (pixel, &ink) in pixels.chunks_exact_mut(3).zip(&ink) {
                for channel in 0..3 {
                    pixel[channel] = (paper[channel] + ink * (pen[channel] - paper[channel])).round() as u8;
                }
            }
        }
    }
}

/// Points on the Catmull-Rom curve through the knots.
fn smooth_curve(knots: &[Point], curve: &mut Vec<Point>) {
    const STEPS: usize = 4;
    curve.clear();
    let knot = |index: usize| knots[index.clamp(1, knots.len()) - 1]; // counted from 1, the ends twice
    for index in 1..knots.len() {
        let around = [knot(index - 1), knot(index), knot(index + 1), knot(index + 2)];
        for step in 0..STEPS {
            let t = step as f64 / STEPS as f64;
            curve.push([0, 1].map(|axis| {
                let [a, b, c, d] = around.map(|point| point[axis]);
                let (linear, square, cube) = (c - a, 2.0 * a - 5.0 * b + 4.0 * c - d, 3.0 * (b - c) + d - a);
                b + 0.5 * t * (linear + t * (square + t * cube))
            }));
        }
    }
    curve.extend(knots.last());
}

/// Lays a round pen along a segment. A pixel takes the most ink that any segment gives it; at the rim of the pen it takes a
/// part, by its distance.
fn draw_segment(from: Point, to: Point, radius: f64, side: usize, ink: &mut [f32]) {
    let reach = radius + 1.0;
    let bounds = |axis: usize| {
        let low = (from[axis].min(to[axis]) - reach).floor().clamp(0.0, side as f64);
        let high = (from[axis].max(to[axis]) + reach).ceil().clamp(0.0, side as f64);
        low as usize..high as usize
    };
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    let inverse = 1.0 / (dx * dx + dy * dy).max(1e-12);
    for row in bounds(1) {
        let y = row as f64 + 0.5 - from[1];
        for column in bounds(0) {
            let x = column as f64 + 0.5 - from[0];
            let t = ((x * dx + y * dy) * inverse).clamp(0.0, 1.0);
            let distance = ((x - t * dx).powi(2) + (y - t * dy).powi(2)).sqrt();
            let covered = (radius - distance + 0.5).clamp(0.0, 1.0) as f32;
            let pixel = &mut ink[row * side + column];
            *pixel = pixel.max(covered);
        }
    }
}
