//! Squared loss of a network on a task, L^(q, S) = mean_j (f(x_j; q) - y_j)^2, its gradient and plain gradient steps.

use pacmeta_tensor::mlp::{Perceptron, SquaredLossCurvature};

use crate::task::Task;

/// The examples a loss is taken on: inputs row-major, and targets.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// One row an example.
    pub inputs: &'a [f64],
    /// One target an example.
    pub targets: &'a [f64],
}

impl Task {
    /// The examples as a loss sees them.
    pub(crate) fn examples(&self) -> Examples<'_> {
        Examples { inputs: self.inputs(), targets: self.targets() }
    }
}

/// A network with buffers for losses and gradients.
#[derive(Debug, Clone)]
pub struct SquaredLoss {
    perceptron: Perceptron,
    curvature: SquaredLossCurvature,
    output_gradient: Vec<f64>,
}

impl SquaredLoss {
    /// For a perceptron of these widths with one output.
    pub fn new(widths: &[usize]) -> Self {
        Self {
            perceptron: Perceptron::new(widths),
            curvature: SquaredLossCurvature::new(widths),
            output_gradient: Vec::new(),
        }
    }

    /// f(x_j; q) for each row of `inputs`.
    pub fn predict(&mut self, parameters: &[f64], inputs: &[f64]) -> Vec<f64> {
        self.perceptron.load(parameters);
        let stride = self.perceptron.output_stride();
        self.perceptron.forward(inputs).iter().step_by(stride).copied().collect()
    }

    /// The loss at q; its gradient times `weight` is added to `gradient`.
    pub fn add_gradient(
        &mut self,
        parameters: &[f64],
        examples: Examples<'_>,
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        let stride = self.perceptron.output_stride();
        self.perceptron.load(parameters);
        self.perceptron.forward(examples.inputs);
        let count = examples.targets.len() as f64;
        self.output_gradient.clear();
        self.output_gradient.resize(examples.targets.len() * stride, 0.0);
        let mut loss = 0.0;
        for (index, target) in examples.targets.iter().enumerate() {
            let error = self.perceptron.output()[index * stride] - target;
            loss += error * error;
            self.output_gradient[index * stride] = 2.0 * weight * error / count;
        }
        self.perceptron.clear_gradient();
        self.perceptron.backward(&self.output_gradient);
        self.perceptron.add_gradient(gradient);
        loss / count
    }

    /// K plain steps q <- q - rate * grad L^(q, S') from `start`; `path` receives q_0, ..., q_K one after another.
    pub fn descend(
        &mut self,
        start: &[f64],
        examples: Examples<'_>,
        steps: usize,
        rate: f64,
        path: &mut Vec<f64>,
    ) {
        let size = start.len();
        path.clear();
        path.extend_from_slice(start);
        for step in 0..steps {
            path.extend_from_within(step * size..);
            let (before, after) = path.split_at_mut((step + 1) * size);
            // weight -rate: adding the weighted gradient is the step
            self.add_gradient(&before[step * size..], examples, -rate, after);
        }
    }

    /// Turns `adjoint` = dL/dq_K into dL/dq_0 along a path of [`SquaredLoss::descend`]:
    /// lambda_k = lambda_(k+1) - rate H(q_k) lambda_(k+1).
    pub fn pull_back(
        &mut self,
        path: &[f64],
        examples: Examples<'_>,
        rate: f64,
        adjoint: &mut [f64],
        scratch: &mut Vec<f64>,
    ) {
        let size = adjoint.len();
        scratch.resize(size, 0.0);
        let steps = path.len() / size - 1;
        for parameters in path.chunks_exact(size).take(steps).rev() {
            self.curvature.hessian_times(parameters, adjoint, examples.inputs, examples.targets, scratch);
            adjoint.iter_mut().zip(scratch.iter()).for_each(|(value, product)| *value -= rate * product);
        }
    }
}
