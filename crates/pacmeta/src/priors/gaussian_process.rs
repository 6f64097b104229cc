//! Gaussian-process priors GP(m_theta, k_theta) with a mean network and a deep kernel.
//!
//! ```text
//! paper:    k(x, x') = 1/2 exp(-|phi(x) - phi(x')|^2),                     s2 = m/(2 temperature)
//! learned:  k(x, x') = scale exp(-1/2 |(phi(x) - phi(x'))/l|^2),           s2 learned
//!           scale = softplus(raw), l_d = softplus(raw_d), s2 = softplus(raw) + 1e-3
//! ```
//!
//! The second is the recipe of the PACOH authors. Both are `scale exp(-|f - f'|^2)` with f = phi or f = phi/(sqrt(2) l),
//! which is what the base learner works on. [`GaussianProcess`] carries derivatives from there to the flat parameters.

use pacmeta_tensor::mlp::{Perceptron, parameter_count};
use pacmeta_tensor::{ParameterLayout, Parameters};
use serde::{Deserialize, Serialize};

use super::{check_widths, perceptron_tensors};
use crate::error::Result;
use crate::learners::gibbs_gp::{Points, PointsGradient};

/// The kernel and where the noise variance comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// 1/2 exp(-|phi - phi'|^2); the noise variance is m/(2 temperature).
    #[default]
    Paper,
    /// scale exp(-1/2 |(phi - phi')/l|^2) with scale, length scales and noise variance learned.
    Learned,
}

/// The shape of a Gaussian-process prior.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GaussianProcessSpec {
    /// Features of an input.
    pub dimension: usize,
    /// Hidden widths of the mean network.
    pub mean_hidden: Vec<usize>,
    /// Hidden widths of the feature network.
    pub feature_hidden: Vec<usize>,
    /// The number of outputs of the feature network phi.
    pub feature_dimension: usize,
    /// The kernel.
    #[serde(default)]
    pub kernel: Kernel,
}

/// The smallest noise variance of [`Kernel::Learned`].
const NOISE_FLOOR: f64 = 1e-3;

impl GaussianProcessSpec {
    /// The paper's prior for inputs of the given dimension: two hidden layers of 32, two features.
    pub fn paper(dimension: usize) -> Self {
        Self {
            dimension,
            mean_hidden: vec![32, 32],
            feature_hidden: vec![32, 32],
            feature_dimension: 2,
            kernel: Kernel::Paper,
        }
    }

    /// The widths of the mean network, input first.
    pub fn mean_widths(&self) -> Vec<usize> {
        [&[self.dimension], &self.mean_hidden[..], &[1]].concat()
    }

    /// The widths of the feature network, input first.
    pub fn feature_widths(&self) -> Vec<usize> {
        [&[self.dimension], &self.feature_hidden[..], &[self.feature_dimension]].concat()
    }

    /// The names and shapes of the parameters.
    ///
    /// # Errors
    /// When a width is 0 or absurdly large.
    pub fn layout(&self) -> Result<ParameterLayout> {
        check_widths(&[self.mean_widths(), self.feature_widths()])?;
        let mut builder = perceptron_tensors(ParameterLayout::builder(), "mean.", &self.mean_widths());
        builder = perceptron_tensors(builder, "features.", &self.feature_widths());
        if self.kernel == Kernel::Learned {
            builder = builder
                .tensor("kernel.raw_output_scale", &[1])
                .tensor("kernel.raw_length_scale", &[self.feature_dimension])
                .tensor("likelihood.raw_noise", &[1]);
        }
        Ok(builder.build()?)
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        let raw = if self.kernel == Kernel::Learned { self.feature_dimension + 2 } else { 0 };
        parameter_count(&self.mean_widths()) + parameter_count(&self.feature_widths()) + raw
    }
}

fn softplus(raw: f64) -> f64 {
    raw.max(0.0) + (-raw.abs()).exp().ln_1p()
}

fn sigmoid(raw: f64) -> f64 {
    1.0 / (1.0 + (-raw).exp())
}

/// A Gaussian-process prior at given parameters, evaluated at many points at once.
#[derive(Debug, Clone)]
pub struct GaussianProcess {
    spec: GaussianProcessSpec,
    mean: Perceptron,
    features: Perceptron,
    mean_parameters: usize,
    feature_parameters: usize,
    scale: f64,
    learned_noise: Option<f64>,
    /// f_d = phi_d * feature_factor_d.
    feature_factor: Vec<f64>,
    /// Raw values of the learned kernel: scale, length scales, noise.
    raw: Vec<f64>,
    mean_gradient: Vec<f64>,
    feature_gradient: Vec<f64>,
    raw_gradient: Vec<f64>,
}

impl GaussianProcess {
    /// A prior of this shape; [`GaussianProcess::load`] gives it numbers.
    pub fn new(spec: &GaussianProcessSpec) -> Self {
        let (mean_widths, feature_widths) = (spec.mean_widths(), spec.feature_widths());
        let raw = if spec.kernel == Kernel::Learned { spec.feature_dimension + 2 } else { 0 };
        Self {
            mean: Perceptron::new(&mean_widths),
            features: Perceptron::new(&feature_widths),
            mean_parameters: parameter_count(&mean_widths),
            feature_parameters: parameter_count(&feature_widths),
            scale: 0.5,
            learned_noise: None,
            feature_factor: vec![1.0; spec.feature_dimension],
            raw: vec![0.0; raw],
            mean_gradient: Vec::new(),
            feature_gradient: Vec::new(),
            raw_gradient: vec![0.0; raw],
            spec: spec.clone(),
        }
    }

    /// A prior with parameters.
    pub fn with_parameters(spec: &GaussianProcessSpec, parameters: &Parameters<f64>) -> Self {
        let mut prior = Self::new(spec);
        prior.load(parameters.values());
        prior
    }

    /// Takes flat parameters in the order of the layout.
    pub fn load(&mut self, parameters: &[f64]) {
        let (mean, rest) = parameters.split_at(self.mean_parameters);
        let (features, raw) = rest.split_at(self.feature_parameters);
        self.mean.load(mean);
        self.features.load(features);
        if let (Kernel::Learned, [scale, lengths @ .., noise]) = (self.spec.kernel, raw) {
            self.raw.copy_from_slice(raw);
            self.scale = softplus(*scale);
            for (factor, length) in self.feature_factor.iter_mut().zip(lengths) {
                *factor = std::f64::consts::FRAC_1_SQRT_2 / softplus(*length);
            }
            self.learned_noise = Some(softplus(*noise) + NOISE_FLOOR);
        }
    }

    /// k(x, x).
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The learned noise variance, for [`Kernel::Learned`].
    pub fn learned_noise(&self) -> Option<f64> {
        self.learned_noise
    }

    /// Evaluates both networks at all points (rows of `inputs`).
    pub fn forward(&mut self, inputs: &[f64]) {
        self.mean.forward(inputs);
        self.features.forward(inputs);
    }

    /// Sets the gradients of the points of the last forward pass to zero.
    pub fn clear_point_gradients(&mut self) {
        for (buffer, size) in [
            (&mut self.mean_gradient, self.mean.output().len()),
            (&mut self.feature_gradient, self.features.output().len()),
        ] {
            buffer.clear();
            buffer.resize(size, 0.0);
        }
    }

    /// Collects evaluated points by index, with their targets.
    pub fn gather(&self, indices: impl ExactSizeIterator<Item = (usize, f64)> + Clone, points: &mut Points) {
        let (means, mean_stride) = (self.mean.output(), self.mean.output_stride());
        let (outputs, stride) = (self.features.output(), self.features.output_stride());
        points.reset(indices.len(), self.spec.feature_dimension);
        points.set_means_and_targets(indices.clone().map(|(index, y)| (means[index * mean_stride], y)));
        for (dimension, factor) in self.feature_factor.iter().enumerate() {
            let feature = indices.clone().map(|(index, _)| outputs[index * stride + dimension] * factor);
            points.set_feature(dimension, feature);
        }
    }

    /// Adds derivatives with respect to gathered points.
    pub fn scatter(&mut self, indices: impl Iterator<Item = usize> + Clone, gradient: &PointsGradient) {
        let stride = self.mean.output_stride();
        for (index, derivative) in indices.clone().zip(gradient.mean()) {
            self.mean_gradient[index * stride] += derivative;
        }
        let stride = self.features.output_stride();
        for (dimension, factor) in self.feature_factor.iter().enumerate() {
            let derivatives = gradient.feature(dimension);
            for (index, derivative) in indices.clone().zip(derivatives) {
                self.feature_gradient[index * stride + dimension] += factor * derivative;
            }
            if let Some(raw) = self.raw_gradient.get_mut(1 + dimension) {
                // f = phi / (sqrt(2) l): d/d raw_l = derivative * phi * factor * (-1/l) * sigmoid(raw)
                let slope = factor / softplus(self.raw[1 + dimension]) * sigmoid(self.raw[1 + dimension]);
                let outputs = self.features.output();
                for (index, derivative) in indices.clone().zip(derivatives) {
                    *raw -= derivative * outputs[index * stride + dimension] * slope;
                }
            }
        }
    }

    /// Adds derivatives with respect to the kernel's scale and the noise variance (learned kernels only).
    pub fn add_covariance_gradient(&mut self, scale: f64, noise_variance: f64) {
        if let [raw_scale, .., raw_noise] = self.raw_gradient.as_mut_slice() {
            *raw_scale += scale * sigmoid(self.raw[0]);
            *raw_noise += noise_variance * self.raw.last().map_or(0.0, |raw| sigmoid(*raw));
        }
    }

    /// Carries the scattered gradients of the points of the last forward pass back through both networks.
    pub fn backward(&mut self) {
        self.mean.backward(&self.mean_gradient);
        self.features.backward(&self.feature_gradient);
    }

    /// Forgets the gradient of earlier backward passes.
    pub fn clear_gradient(&mut self) {
        self.mean.clear_gradient();
        self.features.clear_gradient();
        self.raw_gradient.fill(0.0);
    }

    /// Adds the derivative with respect to all parameters, of all backward passes since
    /// [`GaussianProcess::clear_gradient`], to `gradient`.
    pub fn add_gradient(&self, gradient: &mut [f64]) {
        let (mean, rest) = gradient.split_at_mut(self.mean_parameters);
        let (features, raw) = rest.split_at_mut(self.feature_parameters);
        self.mean.add_gradient(mean);
        self.features.add_gradient(features);
        raw.iter_mut().zip(&self.raw_gradient).for_each(|(sum, value)| *sum += value);
    }
}
