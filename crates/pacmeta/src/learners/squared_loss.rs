//! Squared loss of a network on a task, L^(q, S) = mean_j (f(x_j; q) - y_j)^2, its gradient, plain gradient steps and the
//! derivative through them.

use pacmeta_tensor::mlp::{Perceptron, SquaredLossCurvature};

use super::InnerSteps;
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
}

impl SquaredLoss {
    /// For a perceptron of these widths with one output.
    pub fn new(widths: &[usize]) -> Self {
        Self { perceptron: Perceptron::new(widths), curvature: SquaredLossCurvature::new(widths) }
    }

    /// f(x_j; q) for each row of `inputs`.
    pub fn predict(&mut self, parameters: &[f64], inputs: &[f64]) -> Vec<f64> {
        self.perceptron.load(parameters);
        let stride = self.perceptron.output_stride();
        self.perceptron.forward(inputs).iter().step_by(stride).copied().collect()
    }

    /// The loss at q.
    pub fn loss(&mut self, parameters: &[f64], examples: Examples<'_>) -> f64 {
        self.curvature.loss(parameters, examples.inputs, examples.targets)
    }

    /// The loss at q; its gradient times `weight` is added to `gradient`.
    pub fn add_gradient(
        &mut self,
        parameters: &[f64],
        examples: Examples<'_>,
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        self.curvature.add_gradient(parameters, examples.inputs, examples.targets, weight, gradient)
    }

    /// Where plain steps q <- q - rate * grad L^(q, S') lead from `start`.
    pub fn descend(&mut self, start: &[f64], adapt: Examples<'_>, inner: InnerSteps) -> Vec<f64> {
        self.curvature.descend(start, adapt.inputs, adapt.targets, inner.steps, inner.rate);
        let mut end = vec![0.0; start.len()];
        self.curvature.end(&mut end);
        end
    }

    /// The loss on S (`judged`) of q, to which plain steps on S' (`adapt`) lead from `start`. Its gradient, taken as
    /// `order` says, times `weight` is added to `gradient`.
    pub fn add_gradient_after_steps(
        &mut self,
        start: &[f64],
        (adapt, judged): (Examples<'_>, Examples<'_>),
        inner: InnerSteps,
        order: Order,
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        let InnerSteps { steps, rate } = inner;
        let curvature = &mut self.curvature;
        match order {
            Order::First => {
                curvature.descend(start, adapt.inputs, adapt.targets, steps, rate);
                curvature.add_gradient_at_end(judged.inputs, judged.targets, weight, gradient)
            }
            Order::Exact => {
                curvature.descend_and_keep(start, adapt.inputs, adapt.targets, steps, rate);
                let (adapt, judged) = ((adapt.inputs, adapt.targets), (judged.inputs, judged.targets));
                curvature.add_gradient_at_start(adapt, judged, weight, gradient)
            }
        }
    }
}

/// What the gradient of a loss after gradient steps is taken with respect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The end of the steps, as if the start moved it one to one.
    First,
    /// The start of the steps: second order through each of them.
    Exact,
}
