//! What a trained run on pictures owes to the learned start of its head and to the statistics of batch norm: its test tasks once more,
//! with the head at zero, and with other statistics.
//!
//! ```sh
//! cargo run --release -p pacmeta --example image_starts -- runs/mini-imagenet-paper/maml-m10 ...
//! ```

use std::error::Error;
use std::path::Path;

use pacmeta::config::ImageConfig;
use pacmeta::config::images::Normalisation;
use pacmeta::images::{ImageExperiment, ImageModel};
use pacmeta_tensor::Parameters;

fn main() -> Result<(), Box<dyn Error>> {
    println!("run, head, statistics, accuracy in percent, half of its 95% interval, log-likelihood");
    let mut pictures: Option<ImageExperiment> = None;
    for run in std::env::args().skip(1) {
        let config = ImageConfig::read(Path::new(&run).join("config.toml"), &[])?;
        // Runs of one study share their pictures.
        let experiment = match &pictures {
            Some(first) => first.with_config(config)?,
            None => ImageExperiment::prepare(config, &mut ())?.0,
        };
        let learned = ImageModel::read(&run)?;
        let zero = ImageModel::new(
            *learned.spec(),
            with_head_at_zero(learned.parameters()),
            learned.settings().clone(),
            learned.normalisation(),
        )
        .adapting(learned.adapts());
        for (head, model) in [("learned", &learned), ("zero", &zero)] {
            for normalisation in [Normalisation::Batch, Normalisation::Together, Normalisation::Support] {
                let scores =
                    experiment.scores(&model.clone().with_normalisation(normalisation), &|| false)?;
                println!(
                    "{run}, {head}, {normalisation:?}, {:.2}, {:.2}, {:.3}",
                    100.0 * scores.accuracy,
                    100.0 * scores.accuracy_interval95.unwrap_or(f64::NAN),
                    scores.log_likelihood
                );
            }
        }
        pictures.get_or_insert(experiment);
    }
    Ok(())
}

fn with_head_at_zero(parameters: &Parameters<f64>) -> Parameters<f64> {
    let mut changed = parameters.clone();
    for name in ["head.weight", "head.bias"] {
        if let Some(values) = changed.tensor_mut(name) {
            values.fill(0.0);
        }
    }
    changed
}
