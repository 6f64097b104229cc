//! The passes over a network's layers: forward, backward, and the tangents of both.

use pulp::Arch;

use super::elementwise::{
    ActivationTangents, AddRows, Outputs, Source, Start as OutputStart, TangentSource, TangentsThroughTanh,
    ThroughTanh,
};
use super::layout::{Layer, Layout, Transpose};
use crate::simd::elementary::tanh_in_place;
use crate::simd::padded;
use crate::simd::product::{Left, Sizes, Start, product};

/// The points and targets of a loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Points<'a> {
    pub(super) inputs: &'a [f64],
    pub(super) targets: &'a [f64],
}

impl<'a> Points<'a> {
    /// Parts of at most `size` points.
    pub(super) fn chunks(self, dimension: usize, size: usize) -> impl Iterator<Item = Self> + use<'a> {
        self.inputs
            .chunks(dimension * size)
            .zip(self.targets.chunks(size))
            .map(|(inputs, targets)| Self { inputs, targets })
    }
}

/// The layers, and the processor they are computed on.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) arch: Arch,
    pub(super) layout: Layout,
}

impl Network {
    /// The input of a layer: the points themselves, or the activations before it, with their stride.
    fn input<'a>(&self, index: usize, inputs: &'a [f64], activations: &'a [Vec<f64>]) -> (&'a [f64], usize) {
        match index.checked_sub(1) {
            None => (inputs, self.layout.dimension()),
            Some(before) => (&activations[before], padded(self.layout.hidden[before].outputs)),
        }
    }

    /// Adds left' right, a sum over rows, to the weights of a hidden layer; `left` are errors or inputs, whichever the
    /// rows of the packed weights belong to.
    fn add_weights(
        &self,
        index: usize,
        (input, input_stride): (&[f64], usize),
        errors: &[f64],
        target: &mut [f64],
    ) {
        let layer = &self.layout.hidden[index];
        let output_stride = padded(layer.outputs);
        let depth = errors.len() / output_stride;
        let target = &mut target[layer.weight..layer.bias];
        let (rows, left, left_stride, right, stride) = if index == 0 {
            (layer.inputs, input, input_stride, errors, output_stride)
        } else {
            (layer.outputs, errors, output_stride, input, input_stride)
        };
        product(
            self.arch,
            Sizes { rows, columns: stride, depth },
            Start::Plus,
            Left::Transposed { values: left, stride: left_stride },
            (right, stride),
            (target, stride),
        );
    }

    /// start + input * matrix for the outputs of a hidden layer; `transposed` is [in, padded out].
    fn outputs(
        &self,
        layer: &Layer,
        start: Start<'_>,
        (input, input_stride): (&[f64], usize),
        transposed: &[f64],
        output: &mut [f64],
    ) {
        let stride = padded(layer.outputs);
        product(
            self.arch,
            Sizes { rows: output.len() / stride, columns: stride, depth: layer.inputs },
            start,
            Left::Plain { values: input, stride: input_stride },
            (transposed, stride),
            (output, stride),
        );
    }

    /// start + errors * W, the errors of a hidden layer's inputs.
    fn back(&self, layer: &Layer, start: Start<'_>, errors: &[f64], weight: &[f64], result: &mut [f64]) {
        let (stride, output_stride) = (padded(layer.inputs), padded(layer.outputs));
        product(
            self.arch,
            Sizes { rows: errors.len() / output_stride, columns: stride, depth: layer.outputs },
            start,
            Left::Plain { values: errors, stride: output_stride },
            (weight, stride),
            (result, stride),
        );
    }

    fn transpose(&self, layer: Layer, parameters: &[f64], transposed: &mut [f64]) {
        self.arch.dispatch(Transpose { layer, weight: &parameters[layer.weight..layer.bias], transposed });
    }
}

/// One buffer for every hidden layer.
fn buffers(layout: &Layout) -> Vec<Vec<f64>> {
    vec![Vec::new(); layout.hidden.len()]
}

/// W' of every hidden layer but the first, whose packed weights are that already.
fn transposes(layout: &Layout) -> Vec<Vec<f64>> {
    let sizes = layout.hidden.iter().enumerate().map(|(index, layer)| match index {
        0 => 0,
        _ => layer.inputs * padded(layer.outputs),
    });
    sizes.map(|size| vec![0.0; size]).collect()
}

/// W' of a hidden layer.
fn transposed<'a>(
    index: usize,
    layer: &Layer,
    parameters: &'a [f64],
    transposes: &'a [Vec<f64>],
) -> &'a [f64] {
    if index == 0 { &parameters[layer.weight..layer.bias] } else { &transposes[index] }
}

/// A forward and a backward pass and all that they leave behind.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    transposes: Vec<Vec<f64>>,
    /// H of each hidden layer.
    activations: Vec<Vec<f64>>,
    /// dZ of each hidden layer, and of the output.
    errors: Vec<Vec<f64>>,
    output_errors: Vec<f64>,
}

impl Pass {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            transposes: transposes(layout),
            activations: buffers(layout),
            errors: buffers(layout),
            output_errors: Vec::new(),
        }
    }

    /// How many numbers a pass over this many points leaves behind.
    pub(super) fn size_for(&self, layout: &Layout, points: usize) -> usize {
        let width: usize = layout.hidden.iter().map(|layer| 2 * padded(layer.outputs)).sum();
        points.saturating_mul(width + 1) + self.transposes.iter().map(Vec::len).sum::<usize>()
    }

    /// Prepares for packed parameters.
    pub(super) fn load(&mut self, network: &Network, parameters: &[f64]) {
        for (layer, transposed) in network.layout.hidden.iter().zip(&mut self.transposes).skip(1) {
            network.transpose(*layer, parameters, transposed);
        }
    }

    /// Evaluates the points at the loaded parameters; keeps factor (f - y) as errors of the output and returns the sum of
    /// (f - y)^2.
    pub(super) fn forward(
        &mut self,
        network: &Network,
        parameters: &[f64],
        points: Points<'_>,
        factor: f64,
    ) -> f64 {
        let count = points.targets.len();
        for (index, layer) in network.layout.hidden.iter().enumerate() {
            let (before, after) = self.activations.split_at_mut(index);
            let output = &mut after[0];
            output.resize(count * padded(layer.outputs), 0.0);
            network.outputs(
                layer,
                Start::Row(&parameters[layer.bias..layer.end()]),
                network.input(index, points.inputs, before),
                transposed(index, layer, parameters, &self.transposes),
                output,
            );
            tanh_in_place(network.arch, output);
        }
        let head = &network.layout.head;
        let (rows, stride) = network.input(network.layout.hidden.len(), points.inputs, &self.activations);
        self.output_errors.resize(count, 0.0);
        network.arch.dispatch(Outputs {
            rows,
            stride,
            weight: &parameters[head.weight..head.weight + head.inputs],
            start: OutputStart::Bias(parameters[head.bias]),
            outputs: &mut self.output_errors,
        });
        let mut squares = 0.0;
        for (output, target) in self.output_errors.iter_mut().zip(points.targets) {
            let error = *output - target;
            squares += error * error;
            *output = factor * error;
        }
        squares
    }

    /// Adds the derivative of sum(f * errors of the output) to `target`, which is packed.
    pub(super) fn backward(
        &mut self,
        network: &Network,
        parameters: &[f64],
        inputs: &[f64],
        target: &mut [f64],
    ) {
        let Layout { hidden, head } = &network.layout;
        let (rows, stride) = network.input(hidden.len(), inputs, &self.activations);
        let sum = &mut target[head.weight..head.weight + head.inputs];
        network.arch.dispatch(AddRows { errors: &self.output_errors, rows, stride, sum });
        target[head.bias] += self.output_errors.iter().sum::<f64>();
        for (index, layer) in hidden.iter().enumerate().rev() {
            let (errors, later) = self.errors.split_at_mut(index + 1);
            let errors = &mut errors[index];
            let activation = &self.activations[index];
            errors.resize(activation.len(), 0.0);
            let source = match hidden.get(index + 1) {
                None => Source::Outputs(&self.output_errors, &parameters[head.weight..head.bias]),
                Some(next) => {
                    let weight = &parameters[next.weight..next.bias];
                    network.back(next, Start::Zero, &later[0], weight, errors);
                    Source::InPlace
                }
            };
            let bias = &mut target[layer.bias..layer.end()];
            network.arch.dispatch(ThroughTanh { errors, source, activation, bias });
            network.add_weights(index, network.input(index, inputs, &self.activations), errors, target);
        }
    }
}

/// The derivative of a pass along a direction.
#[derive(Debug, Clone)]
pub(super) struct TangentPass {
    /// V' of each hidden layer but the first.
    transposes: Vec<Vec<f64>>,
    /// D Z and D H of each hidden layer.
    before: Vec<Vec<f64>>,
    activations: Vec<Vec<f64>>,
    /// D dZ of each hidden layer, and of the output.
    errors: Vec<Vec<f64>>,
    output_errors: Vec<f64>,
}

impl TangentPass {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            transposes: transposes(layout),
            before: buffers(layout),
            activations: buffers(layout),
            errors: buffers(layout),
            output_errors: Vec::new(),
        }
    }

    /// lambda <- lambda + D dq along lambda, for the gradient dq of a pass whose errors have this factor. A layer's part of
    /// lambda changes only when nothing needs it any more.
    pub(super) fn add_hessian_product(
        &mut self,
        network: &Network,
        parameters: &[f64],
        pass: &Pass,
        inputs: &[f64],
        factor: f64,
        lambda: &mut [f64],
    ) {
        self.forward(network, parameters, pass, inputs, factor, lambda);
        let Layout { hidden, head } = &network.layout;
        for (index, layer) in hidden.iter().enumerate().rev() {
            let (tangents, later) = self.errors.split_at_mut(index + 1);
            let tangents = &mut tangents[index];
            tangents.resize(pass.errors[index].len(), 0.0);
            let (bias, rest) = lambda[layer.bias..].split_at_mut(layer.end() - layer.bias);
            let source = match hidden.get(index + 1) {
                None => TangentSource::Outputs {
                    errors: &pass.output_errors,
                    tangents: &self.output_errors,
                    weight: &parameters[head.weight..head.bias],
                    direction: &rest[head.weight - layer.end()..head.bias - layer.end()],
                },
                Some(_) => TangentSource::InPlace,
            };
            if let Some(next) = hidden.get(index + 1) {
                let weight = &parameters[next.weight..next.bias];
                network.back(next, Start::Zero, &later[0], weight, tangents);
                let direction = &rest[next.weight - layer.end()..next.bias - layer.end()];
                network.back(next, Start::Plus, &pass.errors[index + 1], direction, tangents);
            }
            network.arch.dispatch(TangentsThroughTanh {
                tangents,
                source,
                activation: &pass.activations[index],
                before: &self.before[index],
                errors: &pass.errors[index],
                bias,
            });
        }
        for index in 0..hidden.len() {
            let input = network.input(index, inputs, &pass.activations);
            network.add_weights(index, input, &self.errors[index], lambda);
            if index > 0 {
                let tangent = network.input(index, inputs, &self.activations);
                network.add_weights(index, tangent, &pass.errors[index], lambda);
            }
        }
        let sum = &mut lambda[head.weight..head.weight + head.inputs];
        let (rows, stride) = network.input(hidden.len(), inputs, &pass.activations);
        network.arch.dispatch(AddRows { errors: &self.output_errors, rows, stride, sum });
        if !hidden.is_empty() {
            let (rows, stride) = network.input(hidden.len(), inputs, &self.activations);
            let sum = &mut lambda[head.weight..head.weight + head.inputs];
            network.arch.dispatch(AddRows { errors: &pass.output_errors, rows, stride, sum });
        }
        lambda[head.bias] += self.output_errors.iter().sum::<f64>();
    }

    fn forward(
        &mut self,
        network: &Network,
        parameters: &[f64],
        pass: &Pass,
        inputs: &[f64],
        factor: f64,
        direction: &[f64],
    ) {
        let Layout { hidden, head } = &network.layout;
        for (index, layer) in hidden.iter().enumerate() {
            if index > 0 {
                network.transpose(*layer, direction, &mut self.transposes[index]);
            }
            let bias = Start::Row(&direction[layer.bias..layer.end()]);
            let activation = &pass.activations[index];
            let (earlier, later) = self.activations.split_at_mut(index);
            let before = &mut self.before[index];
            before.resize(activation.len(), 0.0);
            let input = network.input(index, inputs, &pass.activations);
            let weights = transposed(index, layer, direction, &self.transposes);
            network.outputs(layer, bias, input, weights, before);
            if index > 0 {
                let weights = &pass.transposes[index];
                network.outputs(layer, Start::Plus, network.input(index, inputs, earlier), weights, before);
            }
            let tangents = &mut later[0];
            tangents.resize(activation.len(), 0.0);
            network.arch.dispatch(ActivationTangents { activation, before, tangents });
        }
        let (rows, stride) = network.input(hidden.len(), inputs, &pass.activations);
        let weight = head.weight..head.weight + head.inputs;
        let start = match self.activations.last() {
            None => OutputStart::Bias(direction[head.bias]),
            Some(tangents) => {
                OutputStart::BiasAndProduct(direction[head.bias], tangents, &parameters[weight.clone()])
            }
        };
        self.output_errors.resize(pass.output_errors.len(), 0.0);
        let outputs = &mut self.output_errors;
        network.arch.dispatch(Outputs { rows, stride, weight: &direction[weight], start, outputs });
        outputs.iter_mut().for_each(|value| *value *= factor);
    }
}
