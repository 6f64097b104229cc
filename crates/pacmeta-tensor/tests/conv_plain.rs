//! The plain convolutional body against PyTorch and against finite differences.

use pacmeta_tensor::Key;
use pacmeta_tensor::conv::plain::forward;
use pacmeta_tensor::conv::{ConvShape, Downsampling, Moments, Statistics};

/// The formula of `benchmarks/golden/conv_reference.py`.
fn numbers(seed: u64, count: u64) -> Vec<f64> {
    let number = |i: u64| ((i * 2_654_435_761 + seed * 40_503 * i * i) % (1 << 32)) as f64;
    (1..=count).map(|i| number(i) / f64::from(1_u32 << 31) - 1.0).collect()
}

fn small(downsampling: Downsampling) -> ConvShape {
    ConvShape { height: 9, width: 7, channels: 2, filters: 3, blocks: 2, downsampling }
}

#[test]
fn agrees_with_pytorch_in_double_precision() {
    let golden = include_str!("golden/conv.txt");
    let list = |name: &str| -> Vec<f64> {
        let line = golden.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(|value| value.parse().unwrap()).collect()
    };
    for (name, downsampling) in [("max-pool", Downsampling::MaxPool), ("stride", Downsampling::Stride)] {
        let shape = small(downsampling);
        let mut parameters = Vec::new();
        for entry in shape.layout().unwrap().entries() {
            // the seeds of the script: ten a block, one a tensor
            let seed = 10 * (parameters.len() as u64 / 63).min(1) + 1;
            let place = ["conv.weight", "conv.bias", "norm.scale", "norm.shift"]
                .iter()
                .position(|end| entry.name.ends_with(end))
                .unwrap();
            parameters.extend(numbers(seed + place as u64, entry.len as u64));
        }
        let images = numbers(99, 3 * 9 * 7 * 2);
        let pass = forward(&shape, &parameters, &images, Statistics::Batch, None).unwrap();
        let expected = list(&format!("{name}.features"));
        assert_eq!(pass.features().len(), expected.len());
        for (ours, theirs) in pass.features().iter().zip(&expected) {
            assert!((ours - theirs).abs() < 1e-12, "{name}: feature {ours} against {theirs}");
        }
        let mut gradient = vec![0.0; parameters.len()];
        pass.backward(&parameters, &numbers(77, expected.len() as u64), &mut gradient).unwrap();
        let expected = list(&format!("{name}.gradient"));
        assert_eq!(gradient.len(), expected.len());
        for (ours, theirs) in gradient.iter().zip(&expected) {
            assert!((ours - theirs).abs() < 1e-11, "{name}: gradient {ours} against {theirs}");
        }
    }
}

#[test]
fn gradients_are_finite_differences_for_all_statistics() {
    let mut generator = Key::new(5).named("conv").generator();
    for downsampling in [Downsampling::MaxPool, Downsampling::Stride] {
        let shape = small(downsampling);
        let count = shape.layout().unwrap().len();
        let parameters: Vec<f64> = (0..count).map(|_| generator.normal()).collect();
        let images: Vec<f64> = (0..4 * shape.image_len()).map(|_| generator.uniform()).collect();
        let first = forward(&shape, &parameters, &images, Statistics::Batch, None).unwrap();
        let moments: Vec<Moments> = first.moments();
        let slopes: Vec<f64> = first.features().iter().map(|_| generator.normal()).collect();
        let all =
            [Statistics::Batch, Statistics::First(2), Statistics::First(3), Statistics::Given(&moments)];
        for statistics in all {
            let pass = forward(&shape, &parameters, &images, statistics, None).unwrap();
            let mut gradient = vec![0.0; count];
            pass.backward(&parameters, &slopes, &mut gradient).unwrap();
            // decisions are frozen, so that a step cannot jump over a kink
            let value = |parameters: &[f64]| -> f64 {
                let moved = forward(&shape, parameters, &images, statistics, Some(pass.decisions())).unwrap();
                moved.features().iter().zip(&slopes).map(|(feature, slope)| feature * slope).sum()
            };
            for place in 0..count {
                let moved = |step: f64| {
                    let mut parameters = parameters.clone();
                    parameters[place] += step;
                    value(&parameters)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let error = (difference - gradient[place]).abs();
                assert!(error < 1e-6 * (1.0 + difference.abs()), "{place}: {} {difference}", gradient[place]);
            }
        }
    }
}

#[test]
fn statistics_of_the_first_images_are_their_own_and_given_to_the_others() {
    let mut generator = Key::new(6).named("conv").generator();
    for downsampling in [Downsampling::MaxPool, Downsampling::Stride] {
        let shape = small(downsampling);
        let parameters: Vec<f64> = (0..shape.layout().unwrap().len()).map(|_| generator.normal()).collect();
        let images: Vec<f64> = (0..5 * shape.image_len()).map(|_| generator.uniform()).collect();
        let (first, rest) = images.split_at(2 * shape.image_len());
        let run =
            |images: &[f64], statistics| forward(&shape, &parameters, images, statistics, None).unwrap();
        let all = run(&images, Statistics::First(2));
        let alone = run(first, Statistics::Batch);
        let moments = alone.moments();
        assert_eq!(all.moments(), moments);
        let others = run(rest, Statistics::Given(&moments));
        assert_eq!(all.features(), [alone.features(), others.features()].concat());
        // of all images they are those of the batch
        let (five, batch) = (run(&images, Statistics::First(5)), run(&images, Statistics::Batch));
        assert_eq!(five.features(), batch.features());
        assert_ne!(all.features(), batch.features());
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let shape = ConvShape { blocks: 4, ..small(Downsampling::MaxPool) };
    assert!(shape.layout().unwrap_err().to_string().contains("block 2 gets an image of 2 x 1"));
    let shape = small(Downsampling::MaxPool);
    let parameters = vec![0.5; shape.layout().unwrap().len()];
    let run = |parameters: &[f64], images: usize, statistics| {
        forward(&shape, parameters, &vec![0.0; images], statistics, None).err().map(|error| error.to_string())
    };
    assert!(run(&parameters, 126, Statistics::Batch).is_none());
    assert!(run(&parameters, 125, Statistics::Batch).unwrap().contains("images: expected 126"));
    assert!(run(&parameters, 0, Statistics::Batch).unwrap().contains("images"));
    assert!(run(&parameters[1..], 126, Statistics::Batch).unwrap().contains("parameters"));
    assert!(run(&parameters, 126, Statistics::First(1)).is_none());
    for first in [0, 2] {
        let error = run(&parameters, 126, Statistics::First(first)).unwrap();
        assert!(error.contains(&format!("the first {first} of 1 images")), "{error}");
    }
    assert!(run(&parameters, 126, Statistics::Given(&[])).unwrap().contains("given statistics"));
    let moments = vec![Moments { mean: vec![0.0; 3], variance: vec![-1.0; 3] }; 2];
    assert!(run(&parameters, 126, Statistics::Given(&moments)).unwrap().contains("negative"));
}
