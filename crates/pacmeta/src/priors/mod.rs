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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_weights_are_uniform_up_to_one_over_the_root_of_their_inputs() {
        let spec = GaussianProcessSpec {
            dimension: 25,
            mean_hidden: vec![200],
            feature_hidden: vec![100, 60],
            feature_dimension: 40,
            kernel: Kernel::Learned,
        };
        let parameters = PriorSpec::GaussianProcess(spec).initialise(Key::new(3)).unwrap();
        for (name, inputs) in [
            ("mean.hidden.0.weight", 25.0_f64),
            ("mean.hidden.0.bias", 25.0),
            ("mean.output.weight", 200.0),
            ("features.hidden.1.weight", 100.0),
            ("features.output.weight", 60.0),
        ] {
            let values = parameters.tensor(name).unwrap();
            let (limit, count) = (1.0 / inputs.sqrt(), values.len() as f64);
            let largest = values.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
            assert!(largest <= limit && largest > 0.95 * limit, "{name}: {largest} of {limit}");
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|value| value * value).sum::<f64>() / count;
            // Four standard errors: the variance of U(-1, 1) is 1/3, that of its square 4/45.
            assert!(mean.abs() < 4.0 * limit / (3.0 * count).sqrt(), "{name}: mean {mean}");
            let error = 4.0 * limit * limit * (4.0 / 45.0 / count).sqrt();
            assert!((variance - limit * limit / 3.0).abs() < error, "{name}: variance {variance}");
        }
        for name in ["kernel.raw_output_scale", "kernel.raw_length_scale", "likelihood.raw_noise"] {
            assert!(parameters.tensor(name).unwrap().iter().all(|value| *value == 0.0), "{name}");
        }
    }

    #[test]
    fn too_many_parameters_are_refused_before_they_are_allocated() {
        let wide = PriorSpec::Network(NetworkSpec { dimension: 1, hidden: vec![LARGEST_WIDTH; 64] });
        let message = wide.initialise(Key::new(0)).unwrap_err().to_string();
        assert!(
            message.contains("prior.hidden") && message.contains("parameters are more than"),
            "{message}"
        );
    }
}
