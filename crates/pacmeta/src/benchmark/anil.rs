//! One meta-iteration on pictures in the paper's setting: 4 tasks of m pictures, Conv4, 6 inner steps of the head, Adam.

use std::path::Path;
use std::time::{Duration, Instant};

use pacmeta_tensor::{Key, Parameters};
use serde::Serialize;
use serde_json::json;

use super::{instructions, peak_bytes};
use crate::classification::MetaLearner;
use crate::config::ClassificationMethodKind;
use crate::config::ImageConfig;
use crate::environments::images::{Channels, ImageClass, ImageSet, PictureShape};
use crate::error::Result;
use crate::images::ImageTrainer;
use crate::studies::mini_imagenet::{ImagePlan, ImagePreset, Model};
use crate::training::checkpoint::{Checkpoint, NamedTensor, Precision};

/// The time of one meta-iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnilTiming {
    /// The method.
    pub method: ClassificationMethodKind,
    /// Pictures of each task.
    pub examples: usize,
    /// Tasks in a batch.
    pub batch: usize,
    /// Threads.
    pub threads: usize,
    /// Median over repeats.
    pub milliseconds: f64,
    /// The fastest repeat.
    pub fastest_milliseconds: f64,
    /// The most memory that the process ever held, where the system tells.
    pub peak_megabytes: Option<f64>,
    /// Repeats.
    pub repeats: usize,
    /// The instruction set in use.
    pub instructions: &'static str,
}

/// Classes of noise.
const CLASSES: usize = 10;

/// Times meta-iterations on pictures of noise, with the paper's hyper-parameters for tasks of this size. With a path, writes what
/// another program needs to compute the first iteration's gradient, and that gradient: parameters, tasks (`task.0.pixels`,
/// `task.0.labels`, ...) and `gradient.*` in a safetensors file.
///
/// # Errors
/// When an iteration fails or the file cannot be written.
pub fn time_anil(
    method: ClassificationMethodKind,
    examples: usize,
    budget: Duration,
    gradient: Option<&Path>,
) -> Result<AnilTiming> {
    let plan = ImagePlan::new(ImagePreset::Paper, "noise".into());
    let mut config = plan.config(Model { method, examples })?;
    config.training.clip = 0.0;
    let set = noise(&config)?;
    let classes = set.class_ids();
    let mut trainer = ImageTrainer::new(&config, &set, &classes)?;
    let before = trainer.descent().parameters().clone();
    trainer.step()?;
    if let Some(path) = gradient {
        export(path, &config, &set, &trainer, &before)?;
    }
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || (begin.elapsed() < budget && times.len() < 1000) {
        let start = Instant::now();
        trainer.step()?;
        times.push(1e3 * start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(AnilTiming {
        method,
        examples,
        batch: config.training.batch,
        threads: rayon::current_num_threads(),
        milliseconds: times[times.len() / 2],
        fastest_milliseconds: times[0],
        peak_megabytes: peak_bytes().map(|bytes| bytes as f64 / 1024.0 / 1024.0),
        repeats: times.len(),
        instructions: instructions(),
    })
}

fn noise(config: &ImageConfig) -> Result<ImageSet> {
    let shape = PictureShape { side: config.data.side, channels: Channels::Colour };
    let count = config.data.shots + 4;
    let mut generator = Key::new(0).named("noise").generator();
    let classes = (0..CLASSES).map(|class| ImageClass {
        name: format!("class{class}"),
        display_name: format!("class {class}"),
        pictures: (class * count..(class + 1) * count).collect(),
    });
    let pixels = (0..CLASSES * count * shape.bytes()).map(|_| generator.below(256) as u8).collect();
    let names = (0..CLASSES * count).map(|picture| picture.to_string()).collect();
    ImageSet::in_memory("noise", shape, classes.collect(), names, pixels)
}

/// Writes a safetensors file with the parameters before the first iteration, its tasks (`task.0.pixels`, bytes, in
/// the order picture, row, column, channel; `task.0.labels`), the gradient of each parameter (`gradient.*`), and the configuration.
fn export(
    path: &Path,
    config: &ImageConfig,
    set: &ImageSet,
    trainer: &ImageTrainer<'_>,
    before: &Parameters<f64>,
) -> Result<()> {
    let gradient = Parameters::from_values(before.layout().clone(), trainer.descent().gradient().to_vec())?;
    let mut tensors = NamedTensor::of_parameters(before);
    tensors.extend(NamedTensor::of_parameters(&gradient).into_iter().map(|mut tensor| {
        tensor.name = format!("gradient.{}", tensor.name);
        tensor
    }));
    let mut pixels = Vec::new();
    for task in 0..config.training.batch {
        let episode = trainer.episode(0, task);
        episode.copy_pixels(set, 0..episode.len(), &mut pixels);
        let values: Vec<f64> = pixels.iter().map(|&byte| f64::from(byte)).collect();
        let shape = [episode.len(), set.side(), set.side(), set.channels()];
        tensors.push(NamedTensor::new(format!("task.{task}.pixels"), shape, values));
        let labels: Vec<f64> = episode.labels.iter().map(|&label| label as f64).collect();
        tensors.push(NamedTensor::new(format!("task.{task}.labels"), [labels.len()], labels));
    }
    let metadata =
        json!({ "method": config.method.settings(), "subset": config.data.way * config.data.support });
    Checkpoint { tensors, precision: Precision::F64, metadata: Some(metadata) }.write(path)
}
