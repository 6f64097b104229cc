//! Multi-layer perceptrons with tanh between layers, evaluated and differentiated for many points in one pass.
//!
//! ```text
//! H_0 = X,   Z_l = H_(l-1) W_l' + b_l,   H_l = tanh(Z_l),   output = Z_last
//! dW_l = dZ_l' H_(l-1),   db_l = sum of rows of dZ_l,   dZ_(l-1) = (dZ_l W_l) * (1 - H_(l-1)^2)
//! ```
//!
//! Points go through in chunks of sixty, so that a chunk's activations stay in the first-level cache from layer to
//! layer. Weights are [out, in] and parameters lie in the order weight, bias, weight, bias, ... of one flat buffer.

mod curvature;
mod narrow;

use pulp::{Arch, Simd, WithSimd};

use crate::simd::lines::Lines;
use crate::simd::product::{Left, Sizes, Start, TILE_ROWS, product, tanh_layer};
use crate::simd::{PADDING, padded};

use narrow::{FirstBackward, FirstForward, OutputBackward, OutputForward, take};

pub use curvature::SquaredLossCurvature;

/// Points that go through all layers together: whole tiles, and three layers of 32 wide activations in 48 kB.
const CHUNK: usize = 10 * TILE_ROWS;

/// The number of parameters of a perceptron with these widths (input first, output last).
pub fn parameter_count(widths: &[usize]) -> usize {
    widths.windows(2).map(|pair| pair[0] * pair[1] + pair[1]).sum()
}

/// A perceptron with its parameters and the activations of the last forward pass.
#[derive(Debug, Clone)]
pub struct Perceptron {
    arch: Arch,
    layers: Vec<Layer>,
    points: usize,
    /// H_0, H_1, ..., output: points x padded width each, but see [`Layer::output_stride`].
    activations: Vec<Lines>,
    /// dZ of the current and of the previous layer for one chunk.
    errors: [Lines; 2],
}

#[derive(Debug, Clone)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Numbers in a row of Z and dZ: padded, but for a last of several layers with one or two outputs and no fewer inputs.
    output_stride: usize,
    /// W as [out, padded in].
    weight: Lines,
    /// W' as [in, padded out].
    transposed: Lines,
    /// b, padded.
    bias: Lines,
    /// The gradient of W as [out, padded in], or of W' as [in, padded out] where the layer has fewer inputs than outputs.
    gradient: Lines,
    bias_gradient: Lines,
}

impl Layer {
    fn new(inputs: usize, outputs: usize) -> Self {
        let size = (outputs * padded(inputs)).max(inputs * padded(outputs));
        Self {
            inputs,
            outputs,
            output_stride: padded(outputs),
            weight: Lines::zeros(outputs * padded(inputs)),
            transposed: Lines::zeros(inputs * padded(outputs)),
            bias: Lines::zeros(padded(outputs)),
            gradient: Lines::zeros(size),
            bias_gradient: Lines::zeros(padded(outputs)),
        }
    }

    fn narrows(&self) -> bool {
        self.outputs <= self.inputs
    }

    /// Adds dZ' H to the gradient (or its transpose, see there).
    fn add_weight_gradient(&mut self, arch: Arch, activation: &[f64], errors: &[f64], rows: usize) {
        let (stride, output_stride) = (padded(self.inputs), self.output_stride);
        let (left, left_stride, right, right_stride, height) = if self.narrows() {
            (errors, output_stride, activation, stride, self.outputs)
        } else {
            (activation, stride, errors, output_stride, self.inputs)
        };
        product(
            arch,
            Sizes { rows: height, columns: right_stride, depth: rows },
            Start::Plus,
            Left::Transposed { values: left, stride: left_stride },
            (right, right_stride),
            (&mut self.gradient, right_stride),
        );
    }

    /// Evaluates this last layer of one or two outputs.
    fn narrow_forward(&self, arch: Arch, hidden: &[f64], output: &mut [f64]) {
        let Self { weight, bias, output_stride, .. } = self;
        let output_stride = *output_stride;
        if self.outputs == 1 {
            arch.dispatch(OutputForward::<1> { hidden, weight, bias, output, output_stride });
        } else {
            arch.dispatch(OutputForward::<2> { hidden, weight, bias, output, output_stride });
        }
    }

    /// Backward through this layer of `O` outputs and the tanh before it.
    fn narrow_backward<const O: usize>(
        &mut self,
        arch: Arch,
        output_errors: &[f64],
        activation: &[f64],
        errors: &mut [f64],
        bias_gradient: &mut [f64],
    ) {
        if !self.narrows() {
            // A single input and two outputs: the gradient is stored the other way round.
            let rows = activation.len() / padded(self.inputs);
            self.add_weight_gradient(arch, activation, output_errors, rows);
        }
        let mut unused = [0.0; 2 * PADDING];
        let weight_gradient = if self.narrows() { &mut self.gradient[..] } else { &mut unused[..] };
        arch.dispatch(OutputBackward::<O> {
            output_errors,
            output_stride: self.output_stride,
            weight: &self.weight,
            activation,
            weight_gradient,
            errors,
            bias_gradient,
        });
    }
}

impl Perceptron {
    /// A perceptron with the given widths, input first, output last, and all parameters 0.
    pub fn new(widths: &[usize]) -> Self {
        let mut layers: Vec<Layer> = widths.windows(2).map(|pair| Layer::new(pair[0], pair[1])).collect();
        if let [_, .., last] = layers.as_mut_slice()
            && last.outputs <= 2
            && last.narrows()
        {
            // No matrix product ever sees these rows.
            last.output_stride = last.outputs;
        }
        Self {
            arch: Arch::new(),
            layers,
            points: 0,
            activations: vec![Lines::default(); widths.len()],
            errors: [Lines::default(), Lines::default()],
        }
    }

    /// The row stride of [`Perceptron::forward`]'s result.
    pub fn output_stride(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.output_stride)
    }

    /// Takes parameters from a flat buffer of [`parameter_count`] numbers.
    pub fn load(&mut self, parameters: &[f64]) {
        let mut rest = parameters;
        for layer in &mut self.layers {
            let (weight, after) = rest.split_at(layer.inputs * layer.outputs);
            let (bias, after) = after.split_at(layer.outputs);
            rest = after;
            let (stride, transposed_stride) = (padded(layer.inputs), padded(layer.outputs));
            if stride == layer.inputs {
                layer.weight.copy_from_slice(weight);
            } else {
                // Rows may be as short as one number: a loop is cheaper than a call that copies.
                for (row, values) in
                    layer.weight.chunks_exact_mut(stride).zip(weight.chunks_exact(layer.inputs))
                {
                    row.iter_mut().zip(values).for_each(|(target, value)| *target = *value);
                }
            }
            transpose(weight, layer.inputs, &mut layer.transposed, transposed_stride);
            layer.bias[..layer.outputs].copy_from_slice(bias);
        }
    }

    /// Evaluates all points (rows of `inputs`); the result has [`Perceptron::output_stride`] numbers a row.
    pub fn forward(&mut self, inputs: &[f64]) -> &[f64] {
        let width = self.layers[0].inputs;
        let points = inputs.len() / width;
        self.points = points;
        let strides =
            std::iter::once(padded(width)).chain(self.layers.iter().map(|layer| layer.output_stride));
        for (activation, stride) in self.activations.iter_mut().zip(strides) {
            activation.resize(points * stride);
        }
        for (row, values) in
            self.activations[0].chunks_exact_mut(padded(width)).zip(inputs.chunks_exact(width))
        {
            row.iter_mut().zip(values).for_each(|(target, value)| *target = *value);
        }
        let last = self.layers.len() - 1;
        for first in (0..points).step_by(CHUNK) {
            let rows = CHUNK.min(points - first);
            for (index, layer) in self.layers.iter().enumerate() {
                let (before, after) = self.activations.split_at_mut(index + 1);
                let (stride, output_stride) = (padded(layer.inputs), layer.output_stride);
                let output = &mut after[0][first * output_stride..(first + rows) * output_stride];
                if layer.inputs == 1 && index < last {
                    let inputs = &before[index][first * stride..(first + rows) * stride];
                    let (weight, bias) = (&layer.transposed, &layer.bias);
                    self.arch.dispatch(FirstForward { inputs, input_stride: stride, weight, bias, output });
                } else if index == last && layer.outputs <= 2 {
                    let hidden = &before[index][first * stride..(first + rows) * stride];
                    layer.narrow_forward(self.arch, hidden, output);
                } else {
                    let sizes = Sizes { rows, columns: layer.outputs, depth: layer.inputs };
                    let values = &before[index][first * stride..];
                    let right = (&layer.transposed[..], output_stride);
                    let output = (output, output_stride);
                    if index < last {
                        tanh_layer(self.arch, sizes, &layer.bias, (values, stride), right, output);
                    } else {
                        let left = Left::Plain { values, stride };
                        product(self.arch, sizes, Start::Row(&layer.bias), left, right, output);
                    }
                }
            }
        }
        self.output()
    }

    /// The outputs of the last forward pass.
    #[inline]
    pub fn output(&self) -> &[f64] {
        self.activations.last().map_or(&[], |output| output)
    }

    /// Adds the derivative of sum(output * output_gradient) for the points of the last forward pass to a gradient inside,
    /// which [`Perceptron::add_gradient`] hands out. `output_gradient` has rows of [`Perceptron::output_stride`] numbers,
    /// zero in the padding.
    pub fn backward(&mut self, output_gradient: &[f64]) {
        for first in (0..self.points).step_by(CHUNK) {
            self.backward_chunk(first, CHUNK.min(self.points - first), output_gradient);
        }
    }

    /// Forgets the gradient inside.
    pub fn clear_gradient(&mut self) {
        for layer in &mut self.layers {
            layer.gradient.fill(0.0);
            layer.bias_gradient.fill(0.0);
        }
    }

    fn backward_chunk(&mut self, first: usize, rows: usize, output_gradient: &[f64]) {
        let arch = self.arch;
        // The largest inner layer decides, so that the buffers keep their sizes from layer to layer.
        let widest = self.layers.iter().map(|layer| padded(layer.inputs)).max().unwrap_or(0);
        for buffer in &mut self.errors {
            buffer.resize(buffer.len().max(rows * widest));
        }
        let last = self.layers.len() - 1;
        let stride = self.output_stride();
        let given = &output_gradient[first * stride..(first + rows) * stride];
        if let Some(layer) = self.layers.last_mut() {
            arch.dispatch(AddRows { rows: given, sum: &mut layer.bias_gradient[..stride] });
        }
        for index in (0..self.layers.len()).rev() {
            let (before, rest) = self.layers.split_at_mut(index);
            let layer = &mut rest[0];
            let (stride, output_stride) = (padded(layer.inputs), layer.output_stride);
            let activation = &self.activations[index][first * stride..(first + rows) * stride];
            // The two buffers take turns.
            let [even, odd] = &mut self.errors;
            let (current, target) = if index % 2 == 0 { (odd, even) } else { (even, odd) };
            let current = if index == last { given } else { &current[..rows * output_stride] };
            let Some(layer_before) = before.last_mut() else {
                layer.add_weight_gradient(arch, activation, current, rows);
                break;
            };
            let target = &mut target[..rows * stride];
            let bias_gradient = &mut layer_before.bias_gradient;
            match layer.outputs {
                1 => layer.narrow_backward::<1>(arch, current, activation, target, bias_gradient),
                2 => layer.narrow_backward::<2>(arch, current, activation, target, bias_gradient),
                _ => {
                    layer.add_weight_gradient(arch, activation, current, rows);
                    product(
                        arch,
                        Sizes { rows, columns: stride, depth: layer.outputs },
                        Start::Zero,
                        Left::Plain { values: current, stride: output_stride },
                        (&layer.weight, stride),
                        (&mut *target, stride),
                    );
                    if index == 1 && layer_before.inputs == 1 {
                        let input_stride = padded(1);
                        let inputs =
                            &self.activations[0][first * input_stride..(first + rows) * input_stride];
                        arch.dispatch(FirstBackward {
                            errors: target,
                            activation,
                            inputs,
                            input_stride,
                            weight_gradient: &mut layer_before.gradient,
                            bias_gradient: &mut layer_before.bias_gradient,
                        });
                        break;
                    }
                    arch.dispatch(ThroughTanh { errors: target, activation, sum: bias_gradient });
                }
            }
        }
    }

    /// Adds the gradient of all backward passes since the last [`Perceptron::clear_gradient`] to `gradient` (flat, like
    /// the parameters).
    pub fn add_gradient(&self, gradient: &mut [f64]) {
        let mut rest = gradient;
        for layer in &self.layers {
            let (weight, after) = rest.split_at_mut(layer.inputs * layer.outputs);
            let (bias, after) = after.split_at_mut(layer.outputs);
            rest = after;
            if layer.narrows() {
                let rows = layer.gradient.chunks_exact(padded(layer.inputs));
                for (values, sums) in weight.chunks_exact_mut(layer.inputs).zip(rows) {
                    values.iter_mut().zip(sums).for_each(|(value, sum)| *value += sum);
                }
            } else {
                let rows = layer.gradient.chunks_exact(padded(layer.outputs)).take(layer.inputs);
                for (column, sums) in rows.enumerate() {
                    let values = weight[column..].iter_mut().step_by(layer.inputs);
                    values.zip(sums).for_each(|(value, sum)| *value += sum);
                }
            }
            bias.iter_mut().zip(layer.bias_gradient.iter()).for_each(|(value, sum)| *value += sum);
        }
    }
}

/// Writes the transpose of a matrix with rows of `columns` numbers, four rows at a time.
fn transpose(matrix: &[f64], columns: usize, transposed: &mut [f64], stride: usize) {
    let mut blocks = matrix.chunks_exact(4 * columns);
    let mut row = 0;
    for block in &mut blocks {
        let (first, second) = block.split_at(2 * columns);
        let ((a, b), (c, d)) = (first.split_at(columns), second.split_at(columns));
        let values = a.iter().zip(b).zip(c.iter().zip(d));
        for (target, ((a, b), (c, d))) in transposed.chunks_exact_mut(stride).zip(values) {
            // An array and not a slice: for four numbers a slice's copy would be a call.
            target.as_chunks_mut::<4>().0[row / 4] = [*a, *b, *c, *d];
        }
        row += 4;
    }
    for values in blocks.remainder().chunks_exact(columns) {
        for (target, value) in transposed.chunks_exact_mut(stride).zip(values) {
            target[row] = *value;
        }
        row += 1;
    }
}

/// Adds rows to one. Each has a divisor or a multiple of eight numbers, so that a vector of them always meets the same columns.
struct AddRows<'a> {
    rows: &'a [f64],
    sum: &'a mut [f64],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.sum.len();
        if stride < PADDING {
            let (vectors, rest) = self.rows.as_chunks::<PADDING>();
            let mut partial = [0.0; PADDING];
            for values in vectors {
                for lane in 0..PADDING {
                    partial[lane] += values[lane];
                }
            }
            for values in partial.chunks_exact(stride).chain(rest.chunks_exact(stride)) {
                self.sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            return;
        }
        for column in (0..stride).step_by(PADDING) {
            let mut sum = take::<PADDING>(self.sum, column);
            for row in self.rows.chunks_exact(stride) {
                let values = take::<PADDING>(row, column);
                for lane in 0..PADDING {
                    sum[lane] += values[lane];
                }
            }
            self.sum[column..column + PADDING].copy_from_slice(&sum);
        }
    }
}

/// Multiplies errors by 1 - h^2, and adds their rows to the gradient of the bias.
struct ThroughTanh<'a> {
    errors: &'a mut [f64],
    activation: &'a [f64],
    sum: &'a mut [f64],
}

impl WithSimd for ThroughTanh<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let stride = self.sum.len();
        let rows = self.errors.chunks_exact_mut(stride).zip(self.activation.chunks_exact(stride));
        for (errors, activation) in rows {
            for ((error, h), sum) in errors.iter_mut().zip(activation).zip(self.sum.iter_mut()) {
                *error *= h.mul_add(-h, 1.0);
                *sum += *error;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::simd::every_arch;

    /// The perceptron by the book, one point at a time.
    fn by_the_book(widths: &[usize], parameters: &[f64], input: &[f64]) -> Vec<f64> {
        let mut values = input.to_vec();
        let mut rest = parameters;
        for (index, pair) in widths.windows(2).enumerate() {
            let (weight, after) = rest.split_at(pair[0] * pair[1]);
            let (bias, after) = after.split_at(pair[1]);
            rest = after;
            values = (0..pair[1])
                .map(|j| bias[j] + (0..pair[0]).map(|k| weight[j * pair[0] + k] * values[k]).sum::<f64>())
                .map(|z: f64| if index + 2 < widths.len() { z.tanh() } else { z })
                .collect();
        }
        values
    }

    fn normals(name: &str, count: usize) -> Vec<f64> {
        let mut generator = Key::new(1).named(name).generator();
        (0..count).map(|_| generator.normal() * 0.6).collect()
    }

    #[test]
    fn forward_and_backward_agree_with_the_book_and_with_finite_differences() {
        for widths in [
            vec![1, 32, 32, 1],
            vec![1, 32, 32, 2],
            vec![3, 10, 7, 5],
            vec![2, 4],
            vec![1, 3, 1],
            vec![3, 1, 2, 1],
            vec![1, 1, 2],
            vec![1, 2],
            vec![1, 20, 20, 2], // a row of 24: more than two lines, not four
            vec![2, 5, 2],
            vec![3, 2, 2],
            vec![3, 2],
        ] {
            let count = parameter_count(&widths);
            let parameters = normals("parameters", count);
            let (input_width, output_width) = (widths[0], *widths.last().unwrap());
            let mut perceptron = Perceptron::new(&widths);
            perceptron.load(&parameters);
            let stride = perceptron.output_stride();
            let sizes = [7, 1, 133, 60].map(|points| (points, Arch::new()));
            for (points, arch) in sizes.into_iter().chain(every_arch().into_iter().map(|arch| (61, arch))) {
                perceptron.arch = arch;
                perceptron.clear_gradient();
                let inputs = normals("inputs", points * input_width);
                let weights = normals("weights", points * output_width);
                let value = |parameters: &[f64]| -> f64 {
                    inputs
                        .chunks(input_width)
                        .zip(weights.chunks(output_width))
                        .map(|(x, w)| {
                            by_the_book(&widths, parameters, x).iter().zip(w).map(|(a, b)| a * b).sum::<f64>()
                        })
                        .sum()
                };
                let outputs = perceptron.forward(&inputs).to_vec();
                let mut padded_weights = vec![0.0; points * stride];
                for point in 0..points {
                    let expected = by_the_book(
                        &widths,
                        &parameters,
                        &inputs[point * input_width..(point + 1) * input_width],
                    );
                    for k in 0..output_width {
                        assert!((outputs[point * stride + k] - expected[k]).abs() < 1e-13);
                        padded_weights[point * stride + k] = weights[point * output_width + k];
                    }
                }
                let mut gradient = vec![1.0; count]; // add_gradient adds
                perceptron.backward(&padded_weights);
                perceptron.add_gradient(&mut gradient);
                for index in (0..count).step_by(1 + count / 60) {
                    let step = 1e-5;
                    let mut moved = parameters.clone();
                    moved[index] += step;
                    let up = value(&moved);
                    moved[index] -= 2.0 * step;
                    let numeric = (up - value(&moved)) / (2.0 * step);
                    let analytic = gradient[index] - 1.0;
                    assert!(
                        (analytic - numeric).abs() < 1e-6 * (1.0 + numeric.abs()),
                        "{widths:?}, {points} points, parameter {index}: {analytic} against {numeric}"
                    );
                }
            }
        }
    }
}
