//! What PACMAML has in place of MAML's second derivatives, on the pictures of a trained run: the gradient at the body's parameters, mean
//! over training tasks.
//!
//! All methods take the same plain steps on S', so that the three gradients are
//!
//! ```text
//! FOMAML  d L(q, S)
//! MAML    d L(q, S) + what comes through the steps
//! PACMAML d L(q, S) + (alpha/beta) [d L(q_b, S') - d L(q, S')],   q_b after steps on S at beta = alpha m/m'
//! ```
//!
//! ```sh
//! cargo run --release -p pacmeta --example image_gradients -- runs/mini-imagenet-paper/fomaml-m10
//! ```

use std::error::Error;
use std::path::Path;

use pacmeta::config::images::{HeadStart, NormScale};
use pacmeta::config::{ImageConfig, TrainingNormalisation};
use pacmeta::images::{ImageExperiment, ImageModel, ImageTrainer};
use pacmeta::learners::head::HeadShape;
use pacmeta::methods::heads::{FeatureTask, HeadGradient, HeadMethodSettings, HeadRoom};
use pacmeta_tensor::Key;
use pacmeta_tensor::conv::{Images, Statistics};

const TASKS: u64 = 200;
const RATES: [f64; 4] = [0.1, 0.03, 0.01, 0.003];

/// Mean gradients of the first-order part, and of what MAML and PACMAML add to it.
#[derive(Clone)]
struct Means([Vec<f64>; 3]);

impl Means {
    fn new(len: usize) -> Self {
        Self([vec![0.0; len], vec![0.0; len], vec![0.0; len]])
    }

    fn with_first(&self, part: usize) -> Vec<f64> {
        self.0[0].iter().zip(&self.0[part]).map(|(first, more)| first + more).collect()
    }
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn cosine(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>() / (norm(left) * norm(right))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "run, head, inner rate, norm of FOMAML's gradient, of MAML's addition, of PACMAML's, cosine of the additions, \
         of MAML and FOMAML, of MAML and PACMAML"
    );
    for run in std::env::args().skip(1) {
        let config = ImageConfig::read(Path::new(&run).join("config.toml"), &[])?;
        let model = ImageModel::read(&run)?;
        let (experiment, _) = ImageExperiment::prepare(config, &mut ())?;
        let heads = match experiment.config().prior.head {
            HeadStart::Learned => &[("learned", 1.0), ("zero", 0.0)][..],
            HeadStart::Zero => &[("zero", 0.0)],
        };
        for &(head, scale) in heads {
            for (rate, means) in RATES.iter().zip(means(&experiment, &model, scale)?) {
                let [first, maml, pacmaml] = &means.0;
                println!(
                    "{run}, {head}, {rate}, {:.4}, {:.4}, {:.4}, {:.2}, {:.2}, {:.2}",
                    norm(first),
                    norm(maml),
                    norm(pacmaml),
                    cosine(maml, pacmaml),
                    cosine(&means.with_first(1), first),
                    cosine(&means.with_first(1), &means.with_first(2)),
                );
            }
        }
    }
    Ok(())
}

/// The means of each rate, with the head times a number.
fn means(experiment: &ImageExperiment, model: &ImageModel, scale: f32) -> Result<Vec<Means>, Box<dyn Error>> {
    let config = experiment.config();
    let trainer = ImageTrainer::new(config, experiment.set(), &experiment.splits().train)?;
    let body = config.spec().body()?;
    let shape = HeadShape { features: body.feature_count(), classes: config.data.way };
    let parameters: Vec<f32> = model.parameters().values().iter().map(|&value| value as f32).collect();
    let (of_body, head) = parameters.split_at(body.layout().len());
    let head: Vec<f32> = head.iter().map(|value| scale * value).collect();
    let (mut workspace, mut pixels) = (body.workspace(), Vec::new());
    let (mut room, mut gradient) = (HeadRoom::default(), vec![0.0; of_body.len()]);
    let mut means = vec![Means::new(of_body.len()); RATES.len()];
    let subset = config.data.way * config.data.support;
    let statistics = match config.training.normalisation {
        TrainingNormalisation::Batch => Statistics::Batch,
        TrainingNormalisation::Support => Statistics::First(subset),
        TrainingNormalisation::Separate => {
            let message = "a task is one pass here, and `training.normalisation` is \"separate\"; give a run with \"batch\" or \"support\"";
            return Err(message.into());
        }
    };
    let fixed = match config.prior.scale {
        NormScale::Learned => Vec::new(),
        NormScale::One => body.shape().scale_places()?,
    };
    for further in 0..TASKS {
        // iterations beyond those of the run
        let episode = trainer.episode(config.training.iterations + further, 0);
        episode.copy_pixels(experiment.set(), 0..episode.len(), &mut pixels);
        let images = Images::Bytes(&pixels);
        let features = body.forward(of_body, images, statistics, &mut workspace)?.to_vec();
        let task = FeatureTask { shape, features: &features, labels: &episode.labels, subset };
        for (rate, means) in RATES.iter().zip(&mut means) {
            let mut of_features = Vec::new();
            for method in [
                format!(r#"{{"name": "fomaml", "inner": {{"steps": 6, "rate": {rate}}}}}"#),
                format!(r#"{{"name": "maml", "inner": {{"steps": 6, "rate": {rate}}}}}"#),
                // so wide a prior that the steps are plain
                format!(
                    r#"{{"name": "pacmaml", "alpha": 1.0, "sigma_squared": 1e12, "inner": {{"steps": 6, "rate": {rate}}}}}"#
                ),
            ] {
                let method = serde_json::from_str::<HeadMethodSettings>(&method)?.build::<f32>()?;
                let mut slopes = HeadGradient::default();
                method.task_gradient(&head, &task, Key::new(0), &mut room, &mut slopes)?;
                of_features.push(slopes.features);
            }
            for (part, mean) in means.0.iter_mut().enumerate() {
                let slopes: Vec<f32> = match part {
                    0 => of_features[0].clone(),
                    _ => of_features[part].iter().zip(&of_features[0]).map(|(a, b)| a - b).collect(),
                };
                body.backward(of_body, &slopes, &mut workspace, &mut gradient)?;
                fixed.iter().for_each(|place| gradient[place.clone()].fill(0.0));
                let share = 1.0 / TASKS as f64;
                mean.iter_mut().zip(&gradient).for_each(|(mean, value)| *mean += share * f64::from(*value));
            }
        }
    }
    Ok(means)
}
