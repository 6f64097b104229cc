//! The fast path of convolutional bodies against the plain one in double precision.
//!
//! Decisions (which place a pool takes, whether a rectifier passes) are those of the fast path in both: where rounding decides
//! one, two right answers differ by more than rounding.

#![allow(clippy::unwrap_used, reason = "the helpers are tests too")]

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::plain;
use pacmeta_tensor::conv::{ConvBody, ConvShape, Downsampling, Images, Moments, Statistics};

struct Case {
    body: ConvBody,
    parameters: Vec<f32>,
    images: Vec<f32>,
    slopes: Vec<f32>,
}

/// Smooth images, scales of both signs.
fn case(shape: ConvShape, count: usize, seed: u64) -> Case {
    let mut generator = Key::new(seed).named("conv").generator();
    let body = ConvBody::new(shape).unwrap();
    let mut parameters = Vec::new();
    for entry in body.layout().entries() {
        let deviation = if entry.name.ends_with("weight") { 0.06 } else { 0.5 };
        let centre = if entry.name.ends_with("scale") { 0.6 } else { 0.0 };
        parameters.extend((0..entry.len).map(|_| (centre + deviation * generator.normal()) as f32));
    }
    let mut images = Vec::new();
    for _ in 0..count {
        let waves: Vec<f64> = (0..12).map(|_| generator.uniform_in(-0.2, 0.2)).collect();
        for place in 0..shape.image_len() {
            let (pixel, channel) = (place / shape.channels, place % shape.channels);
            let (y, x) = ((pixel / shape.width) as f64, (pixel % shape.width) as f64);
            let wave =
                (waves[3 * channel] * y + waves[3 * channel + 1] * x + 20.0 * waves[3 * channel + 2]).sin();
            images.push((0.5 + 0.3 * wave + 0.05 * generator.normal()) as f32);
        }
    }
    let slopes = (0..count * body.feature_count()).map(|_| generator.normal() as f32).collect();
    Case { body, parameters, images, slopes }
}

fn relative(ours: &[f32], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let error: f64 = ours.iter().zip(theirs).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    (error / theirs.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

impl Case {
    fn run(&self, statistics: Statistics<'_>) -> (Vec<f32>, Vec<f32>, plain::Decisions, Vec<Moments>) {
        let mut workspace = self.body.workspace();
        let images = Images::Floats(&self.images);
        let features =
            self.body.forward(&self.parameters, images, statistics, &mut workspace).unwrap().to_vec();
        let mut gradient = vec![f32::NAN; self.parameters.len()];
        self.body.backward(&self.parameters, &self.slopes, &mut workspace, &mut gradient).unwrap();
        (features, gradient, workspace.decisions(), workspace.moments())
    }

    /// Features and the gradient of every tensor within `bound` of double precision; returns the largest error.
    fn check(&self, statistics: Statistics<'_>, bound: f64) -> f64 {
        let (features, gradient, decisions, moments) = self.run(statistics);
        let double = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let parameters = double(&self.parameters);
        let images = double(&self.images);
        let pass =
            plain::forward(self.body.shape(), &parameters, &images, statistics, Some(&decisions)).unwrap();
        let mut expected = vec![0.0; parameters.len()];
        pass.backward(&parameters, &double(&self.slopes), &mut expected).unwrap();
        let mut worst = relative(&features, pass.features());
        assert!(worst < bound, "features: {worst:e}");
        for entry in self.body.layout().entries() {
            let (ours, theirs) = (&gradient[entry.range()], &expected[entry.range()]);
            if theirs.iter().all(|&value| value == 0.0) {
                assert!(
                    entry.name.ends_with("bias") && ours.iter().all(|&value| value == 0.0),
                    "{}",
                    entry.name
                );
                continue;
            }
            let error = relative(ours, theirs);
            assert!(error < bound, "{}: {error:e}", entry.name);
            worst = worst.max(error);
        }
        for (ours, theirs) in moments.iter().zip(pass.moments()) {
            for c in 0..ours.mean.len() {
                let deviation = theirs.variance[c].sqrt();
                assert!((ours.mean[c] - theirs.mean[c]).abs() < 1e-5 * deviation, "mean of filter {c}");
                assert!((ours.variance[c] / theirs.variance[c] - 1.0).abs() < 1e-5, "variance of filter {c}");
            }
        }
        worst
    }
}

#[test]
fn the_mini_imagenet_body_is_right_to_rounding() {
    let worst = case(ConvShape::MINI_IMAGENET, 3, 1).check(Statistics::Batch, 1e-5);
    println!("largest relative error {worst:e}");
}

#[test]
#[ignore = "the reference takes a minute"]
fn large_batches_are_right_to_rounding() {
    for count in [10, 80] {
        let worst = case(ConvShape::MINI_IMAGENET, count, 100 + count as u64).check(Statistics::Batch, 1e-5);
        println!("{count} images: largest relative error {worst:e}");
    }
}

#[test]
fn odd_sizes_and_few_blocks_are_right_to_rounding() {
    for (height, width, channels, blocks, count) in [
        (28, 28, 1, 4, 5),
        (25, 31, 2, 3, 1),
        (17, 20, 3, 2, 11),
        (33, 16, 3, 4, 10),
        (9, 8, 3, 1, 6),
        (8, 200, 3, 2, 2),
    ] {
        let downsampling = Downsampling::MaxPool;
        let shape = ConvShape { height, width, channels, filters: 64, blocks, downsampling };
        case(shape, count, 2 + height as u64).check(Statistics::Batch, 1e-5);
    }
}

#[test]
fn given_statistics_are_constants() {
    let shape = ConvShape { height: 21, width: 24, blocks: 3, ..ConvShape::MINI_IMAGENET };
    let case_of_support = case(shape, 4, 31);
    let (_, _, _, moments) = case_of_support.run(Statistics::Batch);
    let worst = case(shape, 6, 31).check(Statistics::Given(&moments), 1e-5);
    println!("largest relative error {worst:e}");
}

#[test]
fn statistics_of_the_first_images_are_right_to_rounding() {
    let shape = ConvShape { height: 21, width: 24, blocks: 3, ..ConvShape::MINI_IMAGENET };
    for (count, first) in [(6, 2), (13, 5), (7, 6)] {
        let case = case(shape, count, 35);
        let worst = case.check(Statistics::First(first), 1e-5);
        println!("{first} of {count} images: largest relative error {worst:e}");
        assert!(case.run(Statistics::First(count)) == case.run(Statistics::Batch), "{count} images");
    }
    // a body of one block has a way back of its own
    let shape = ConvShape { height: 9, width: 8, blocks: 1, ..ConvShape::MINI_IMAGENET };
    case(shape, 6, 36).check(Statistics::First(2), 1e-5);
}

#[test]
fn results_do_not_depend_on_threads_or_on_earlier_use_of_the_workspace() {
    let shape = ConvShape { height: 42, width: 42, ..ConvShape::MINI_IMAGENET };
    for count in [1, 5, 10, 11] {
        let case = case(shape, count, 40 + count as u64);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (case.run(Statistics::Batch), case.run(Statistics::First(count.div_ceil(2)))))
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "{count} images");
        let (one, _) = one;
        // the same room after another batch
        let mut workspace = case.body.workspace();
        let bytes: Vec<u8> = (0..13 * shape.image_len()).map(|place| (place % 241) as u8).collect();
        case.body
            .forward(&case.parameters, Images::Bytes(&bytes), Statistics::Batch, &mut workspace)
            .unwrap();
        let images = Images::Floats(&case.images);
        let features =
            case.body.forward(&case.parameters, images, Statistics::Batch, &mut workspace).unwrap();
        assert!(features == one.0, "{count} images");
        let mut gradient = vec![0.0; case.parameters.len()];
        case.body.backward(&case.parameters, &case.slopes, &mut workspace, &mut gradient).unwrap();
        assert!(gradient == one.1, "{count} images");
    }
}

#[test]
fn bytes_are_numbers_divided_by_255() {
    let shape = ConvShape { height: 20, width: 20, blocks: 2, ..ConvShape::MINI_IMAGENET };
    let case = case(shape, 2, 50);
    let bytes: Vec<u8> = (0..2 * shape.image_len()).map(|place| (place * 7 % 256) as u8).collect();
    let floats: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect();
    let (mut first, mut second) = (case.body.workspace(), case.body.workspace());
    let run = |images, workspace| {
        case.body.forward(&case.parameters, images, Statistics::Batch, workspace).unwrap().to_vec()
    };
    assert_eq!(run(Images::Bytes(&bytes), &mut first), run(Images::Floats(&floats), &mut second));
}

#[test]
fn other_shapes_are_right_to_rounding_on_any_number_of_threads() {
    for shape in [
        ConvShape { height: 21, width: 24, filters: 32, blocks: 3, ..ConvShape::MINI_IMAGENET },
        ConvShape {
            height: 27,
            width: 22,
            channels: 1,
            filters: 20,
            blocks: 3,
            downsampling: Downsampling::Stride,
        },
        ConvShape { height: 12, width: 12, filters: 8, blocks: 2, ..ConvShape::MINI_IMAGENET },
        ConvShape {
            height: 12,
            width: 12,
            blocks: 2,
            downsampling: Downsampling::Stride,
            ..ConvShape::MINI_IMAGENET
        },
    ] {
        let case = case(shape, 3, 60);
        assert!(!case.body.is_fast());
        case.check(Statistics::Batch, 1e-5);
        case.check(Statistics::First(2), 1e-5);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| case.run(Statistics::Batch))
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "{shape:?}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_not_hidden() {
    let shape = ConvShape { height: 12, width: 12, blocks: 2, ..ConvShape::MINI_IMAGENET };
    let mut case = case(shape, 2, 70);
    case.images[40] = f32::NAN;
    let (features, ..) = case.run(Statistics::Batch);
    assert!(features.iter().any(|feature| feature.is_nan()));
}

#[test]
fn mistakes_are_errors() {
    let shape = ConvShape { height: 12, width: 12, blocks: 2, ..ConvShape::MINI_IMAGENET };
    let case = case(shape, 2, 80);
    let mut workspace = case.body.workspace();
    let mut gradient = vec![0.0; case.parameters.len()];
    let early = case.body.backward(&case.parameters, &case.slopes, &mut workspace, &mut gradient);
    assert!(early.unwrap_err().to_string().contains("call forward first"));
    let images = Images::Floats(&case.images[1..]);
    let short = case.body.forward(&case.parameters, images, Statistics::Batch, &mut workspace);
    assert!(short.unwrap_err().to_string().contains("images: expected"));
    let images = Images::Floats(&case.images);
    case.body.forward(&case.parameters, images, Statistics::Batch, &mut workspace).unwrap();
    let slopes = &case.slopes[1..];
    let error = case.body.backward(&case.parameters, slopes, &mut workspace, &mut gradient).unwrap_err();
    assert!(error.to_string().contains("feature gradient: expected"));
}
