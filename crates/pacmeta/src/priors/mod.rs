//! What is meta-learned: priors over hypotheses, as flat parameter vectors with names.

pub mod convolution;
pub mod gaussian_process;
pub mod network;
#[cfg(feature = "text")]
pub mod pretrained;

pub(crate) use convolution::network_layout;
pub use convolution::{ConvolutionSpec, Downsampling};
pub use gaussian_process::{GaussianProcess, GaussianProcessSpec, Kernel};
pub use network::NetworkSpec;

use pacmeta_tensor::mlp::parameter_count;
use pacmeta_tensor::parameters::ParameterLayoutBuilder;
use pacmeta_tensor::{Key, ParameterLayout, Parameters};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The largest width accepted.
pub(crate) const LARGEST_WIDTH: usize = 1 << 16;

/// The shape of a prior: everything about it except its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PriorSpec {
    /// A Gaussian process with a learned mean network and a deep kernel.
    GaussianProcess(GaussianProcessSpec),
    /// A network whose parameters are the centre of N(p, sigma^2 I).
    Network(NetworkSpec),
}

impl PriorSpec {
    /// The names and shapes of the parameters.
    ///
    /// # Errors
    /// When a width is 0.
    pub fn layout(&self) -> Result<ParameterLayout> {
        match self {
            Self::GaussianProcess(spec) => spec.layout(),
            Self::Network(spec) => spec.layout(),
        }
    }

    /// Fresh parameters: weights and biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), raw kernel parameters 0.
    ///
    /// # Errors
    /// When a width is 0.
    pub fn initialise(&self, key: Key) -> Result<Parameters<f64>> {
        let mut parameters = Parameters::zeros(self.layout()?.into());
        let entries: Vec<_> = parameters.layout().entries().to_vec();
        let mut fan_in = 1;
        for entry in entries {
            // A bias follows its weight and shares the weight's fan-in.
            match &entry.shape[..] {
                [_, inputs] => fan_in = *inputs,
                _ if entry.name.ends_with("bias") => {}
                _ => continue,
            }
            let bound = 1.0 / (fan_in as f64).sqrt();
            let mut generator = key.named(&entry.name).generator();
            if let Some(values) = parameters.tensor_mut(&entry.name) {
                values.iter_mut().for_each(|value| *value = generator.uniform_in(-bound, bound));
            }
        }
        Ok(parameters)
    }

    /// The number of features of an input.
    pub fn dimension(&self) -> usize {
        match self {
            Self::GaussianProcess(spec) => spec.dimension,
            Self::Network(spec) => spec.dimension,
        }
    }
}

/// The most parameters of a prior; more is a slip of the keyboard, or a file that lies.
const MOST_PARAMETERS: usize = 20_000_000;

/// Refuses widths that are 0 or absurdly large, one by one and together.
fn check_widths(networks: &[Vec<usize>]) -> Result<()> {
    for width in networks.iter().flatten() {
        if !(1..=LARGEST_WIDTH).contains(width) {
            let message = format!("layer width {width} is outside 1..={LARGEST_WIDTH}");
            return Err(Error::config("prior", message));
        }
    }
    let count: usize = networks.iter().map(|widths| parameter_count(widths)).sum();
    if count > MOST_PARAMETERS {
        let message = format!("{count} parameters are more than {MOST_PARAMETERS}; lower `prior.hidden`");
        return Err(Error::config("prior.hidden", message));
    }
    Ok(())
}

/// Appends the tensors of a perceptron: `{prefix}hidden.0.weight`, ..., `{prefix}output.bias`.
fn perceptron_tensors(
    mut builder: ParameterLayoutBuilder,
    prefix: &str,
    widths: &[usize],
) -> ParameterLayoutBuilder {
    let last = widths.len() - 2;
    for (index, pair) in widths.windows(2).enumerate() {
        let layer = if index == last { "output".to_owned() } else { format!("hidden.{index}") };
        builder = builder
            .tensor(&format!("{prefix}{layer}.weight"), &[pair[1], pair[0]])
            .tensor(&format!("{prefix}{layer}.bias"), &[pair[1]]);
    }
    builder
}
