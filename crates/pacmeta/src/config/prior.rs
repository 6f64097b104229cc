//! `[prior]`: the shape of what is meta-learned.

use toml::Value;

use super::method::MethodKind;
use super::section::{Entry, Section, integer, name_of};
use crate::error::Result;
use crate::priors::LARGEST_WIDTH;
use crate::priors::{GaussianProcessSpec, Kernel, NetworkSpec, PriorSpec};

/// The most hidden layers.
const DEEPEST: usize = 64;

pub(super) const KEYS: &[&str] = &["hidden", "features", "kernel"];

/// The shape of the prior: a Gaussian process for pacmaml, pacoh and pacoh-map, a network for the other methods.
///
/// | key of `[prior]` | methods | default | purpose | range |
/// |---|---|---|---|---|
/// | `hidden` | all | `[32, 32]` | widths of the hidden layers, of the mean and of the feature network | 1 to 64 widths from 1 to 65536, at most 20 million parameters in all |
/// | `features` | Gaussian process | 2 | outputs of the feature network | 1 to 65536 |
/// | `kernel` | Gaussian process | pacoh-map: `"learned"`, else `"paper"` | the kernel and its noise, see [`Kernel`] | `"paper"` (not pacoh-map), `"learned"` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorConfig {
    /// Hidden widths.
    pub hidden: Vec<usize>,
    /// What a Gaussian process has besides; none for networks.
    pub gaussian_process: Option<KernelConfig>,
}

/// The kernel of a Gaussian process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelConfig {
    /// The outputs of the feature network.
    pub features: usize,
    /// The kernel.
    pub kernel: Kernel,
}

impl PriorConfig {
    pub(super) fn read(section: Section<'_>, method: MethodKind) -> Result<Self> {
        let widths = 1..=LARGEST_WIDTH;
        let hidden = section.counts("hidden", 1..=LARGEST_WIDTH as u64)?.unwrap_or_else(|| vec![32, 32]);
        if hidden.len() > DEEPEST {
            let message = format!("expected at most {DEEPEST} hidden layers, found {}", hidden.len());
            return Err(section.error("hidden", message));
        }
        if !method.learns_gaussian_process() {
            let why = format!(
                "the method {method} learns a network, which has none; it belongs to pacmaml, pacoh, pacoh-map"
            );
            section.refuse(&["features", "kernel"], &why)?;
            return Self { hidden, gaussian_process: None }.checked();
        }
        let kernel = section.choice("kernel", &["paper", "learned"])?;
        let kernel = match (kernel, method) {
            (Some(Kernel::Paper), MethodKind::PacohMap) => {
                let message =
                    "the method pacoh-map learns the noise variance; it needs the kernel \"learned\"";
                return Err(section.error("kernel", message));
            }
            (Some(kernel), _) => kernel,
            (None, MethodKind::PacohMap) => Kernel::Learned,
            (None, _) => Kernel::Paper,
        };
        let features = section.count("features", widths)?.unwrap_or(2);
        Self { hidden, gaussian_process: Some(KernelConfig { features, kernel }) }.checked()
    }

    /// Refuses widths that together make too many parameters, before anything is allocated for them. More features of the data
    /// can still make more, which is refused by the prior itself.
    fn checked(self) -> Result<Self> {
        self.spec(1).layout()?;
        Ok(self)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![("hidden", Value::Array(self.hidden.iter().copied().map(integer).collect()))];
        if let Some(gaussian_process) = &self.gaussian_process {
            entries.push(("features", integer(gaussian_process.features)));
            entries.push(("kernel", name_of(&gaussian_process.kernel)));
        }
        entries
    }

    /// The prior for inputs of this dimension.
    pub fn spec(&self, dimension: usize) -> PriorSpec {
        match self.gaussian_process {
            Some(KernelConfig { features, kernel }) => PriorSpec::GaussianProcess(GaussianProcessSpec {
                dimension,
                mean_hidden: self.hidden.clone(),
                feature_hidden: self.hidden.clone(),
                feature_dimension: features,
                kernel,
            }),
            None => PriorSpec::Network(NetworkSpec { dimension, hidden: self.hidden.clone() }),
        }
    }
}
