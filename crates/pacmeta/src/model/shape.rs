//! The shape of a prior from the names and shapes of its tensors.
//!
//! Each network is looked at by itself first, layer by layer, so that an error names the tensor that is wrong rather than one
//! that does not go with it.

use crate::environments::table::counted;
use crate::error::{Error, Result};
use crate::priors::{GaussianProcessSpec, Kernel, NetworkSpec, PriorSpec};
use crate::training::checkpoint::{Checkpoint, NamedTensor};

/// The prior's shape.
///
/// # Errors
/// When a tensor is missing, or does not go with the others.
pub(super) fn infer(origin: &str, checkpoint: &Checkpoint) -> Result<PriorSpec> {
    let mean = Perceptron::read(origin, checkpoint, "mean.")?;
    if mean.outputs != 1 {
        return Err(wrong(
            origin,
            "mean.output.weight",
            format!("has {}, a mean has 1", counted(mean.outputs, "output")),
        ));
    }
    if !checkpoint.tensors.iter().any(|tensor| tensor.name.starts_with("features.")) {
        return Ok(PriorSpec::Network(NetworkSpec { dimension: mean.inputs, hidden: mean.hidden }));
    }
    let features = Perceptron::read(origin, checkpoint, "features.")?;
    if features.inputs != mean.inputs {
        let message = format!(
            "has shape {:?}, but tensor `{}` has {:?}, and both networks take the same inputs; weights are [out, in]",
            features.first.shape, mean.first.name, mean.first.shape
        );
        return Err(wrong(origin, &features.first.name, message));
    }
    let learned = checkpoint.tensors.iter().any(|tensor| tensor.name.starts_with("kernel."));
    Ok(PriorSpec::GaussianProcess(GaussianProcessSpec {
        dimension: mean.inputs,
        mean_hidden: mean.hidden,
        feature_hidden: features.hidden,
        feature_dimension: features.outputs,
        kernel: if learned { Kernel::Learned } else { Kernel::Paper },
    }))
}

fn wrong(origin: &str, name: &str, message: impl Into<String>) -> Error {
    Error::input_at(origin, format!("tensor `{name}`"), message)
}

/// A network whose layers go with each other.
struct Perceptron<'a> {
    inputs: usize,
    hidden: Vec<usize>,
    outputs: usize,
    /// The weights of the first layer.
    first: &'a NamedTensor,
}

impl<'a> Perceptron<'a> {
    fn read(origin: &str, checkpoint: &'a Checkpoint, prefix: &str) -> Result<Self> {
        // One more than the largest number of a hidden layer: where the numbering has gaps, a layer is missing.
        let number = |tensor: &NamedTensor| -> Option<usize> {
            tensor.name.strip_prefix(prefix)?.strip_prefix("hidden.")?.split('.').next()?.parse().ok()
        };
        let layers =
            checkpoint.tensors.iter().filter_map(number).max().map_or(0, |last| last.saturating_add(1));
        let (mut first, mut before) = (None, None);
        let mut hidden = Vec::new();
        for layer in 0..layers {
            let name = format!("{prefix}hidden.{layer}");
            let (weight, [width, inputs]) = read_layer(origin, checkpoint, &name, before)?;
            first.get_or_insert((weight, inputs));
            before = Some((weight, width));
            hidden.push(width);
        }
        let (weight, [outputs, inputs]) = read_layer(origin, checkpoint, &format!("{prefix}output"), before)?;
        let (first, inputs) = first.unwrap_or((weight, inputs));
        Ok(Self { inputs, hidden, outputs, first })
    }
}

/// The weights of a layer with their shape, which must go with the layer's bias and with the layer before.
fn read_layer<'a>(
    origin: &str,
    checkpoint: &'a Checkpoint,
    layer: &str,
    before: Option<(&NamedTensor, usize)>,
) -> Result<(&'a NamedTensor, [usize; 2])> {
    let tensor = |name: &str| {
        checkpoint
            .tensor(name)
            .ok_or_else(|| wrong(origin, name, "is missing; docs/formats.md lists the tensors of a prior"))
    };
    let weight = tensor(&format!("{layer}.weight"))?;
    let bias = tensor(&format!("{layer}.bias"))?;
    let [outputs, inputs] = match weight.shape[..] {
        [outputs, inputs] if outputs > 0 && inputs > 0 => [outputs, inputs],
        _ => {
            let message = format!("has shape {:?}, expected [out, in]", weight.shape);
            return Err(wrong(origin, &weight.name, message));
        }
    };
    if bias.shape != [outputs] {
        let message = format!(
            "has shape {:?}, but tensor `{}` has {:?}; weights are [out, in], a bias [out]",
            weight.shape, bias.name, bias.shape
        );
        return Err(wrong(origin, &weight.name, message));
    }
    if let Some((last, width)) = before.filter(|(_, width)| *width != inputs) {
        let message = format!(
            "has shape {:?} and takes {}, but tensor `{}` before it has shape {:?} and gives {width}; weights are [out, in]",
            weight.shape,
            counted(inputs, "input"),
            last.name,
            last.shape
        );
        return Err(wrong(origin, &weight.name, message));
    }
    Ok((weight, [outputs, inputs]))
}
