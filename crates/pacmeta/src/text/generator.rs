//! Heads made from a support (LEOPARD's softmax generation): class weights from the mean features of the class by a small network.
//!
//! With m_c the mean of the features of the support's examples of class c,
//!
//! ```text
//! t_c = tanh(A m_c + a),   (w_c, b_c) = B t_c + b
//! ```
//!
//! where w_c is the weight row of the class and b_c its bias. A head p is then a function of the support's features, and its derivative
//! runs on into the network and into these features.

use pacmeta_tensor::{Element, Key};

use crate::learners::head::{Examples, HeadShape};

/// The sizes of the network: its hidden layer is as wide as the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// Features of an example.
    pub features: usize,
}

/// What a forward pass leaves for the way back.
#[derive(Debug, Clone, Default)]
pub struct GeneratorPass<E> {
    means: Vec<E>,
    hidden: Vec<E>,
    counts: Vec<usize>,
}

impl Generator {
    /// Names and shapes.
    pub(super) fn tensors(self) -> [(&'static str, Vec<usize>); 4] {
        let width = self.features;
        [
            ("generator.hidden.weight", vec![width, width]),
            ("generator.hidden.bias", vec![width]),
            ("generator.output.weight", vec![width + 1, width]),
            ("generator.output.bias", vec![width + 1]),
        ]
    }

    /// The number of parameters.
    pub fn parameters(self) -> usize {
        let width = self.features;
        width * width + width + (width + 1) * width + width + 1
    }

    /// Small random weights.
    pub(super) fn initialise(self, parameters: &mut [f64], key: Key) {
        let mut start = 0;
        for (name, shape) in self.tensors() {
            let size: usize = shape.iter().product();
            if let [outputs, inputs] = shape[..] {
                let bound = (6.0 / (inputs + outputs) as f64).sqrt();
                let mut generator = key.named(name).generator();
                for value in &mut parameters[start..start + size] {
                    *value = generator.uniform_in(-bound, bound);
                }
            }
            start += size;
        }
    }

    /// A, a, B, b.
    fn parts<E>(self, parameters: &[E]) -> [&[E]; 4] {
        let width = self.features;
        let (first, rest) = parameters.split_at(width * width);
        let (first_bias, rest) = rest.split_at(width);
        let (second, second_bias) = rest.split_at((width + 1) * width);
        [first, first_bias, second, second_bias]
    }

    /// The head of a support; a class without examples has the mean of nothing, zero.
    pub fn forward<E: Element>(
        self,
        parameters: &[E],
        support: Examples<'_, E>,
        shape: HeadShape,
        pass: &mut GeneratorPass<E>,
    ) -> Vec<E> {
        let (width, classes) = (self.features, shape.classes);
        let [first, first_bias, second, second_bias] = self.parts(parameters);
        pass.counts = vec![0; classes];
        pass.means = vec![E::ZERO; classes * width];
        for (row, &label) in support.features.chunks_exact(width).zip(support.labels) {
            pass.counts[label] += 1;
            for (mean, &value) in pass.means[label * width..(label + 1) * width].iter_mut().zip(row) {
                *mean += value;
            }
        }
        for (row, &count) in pass.means.chunks_exact_mut(width).zip(&pass.counts) {
            let share = E::from_f64(1.0 / count.max(1) as f64);
            row.iter_mut().for_each(|mean| *mean *= share);
        }
        pass.hidden = vec![E::ZERO; classes * width];
        let mut head = vec![E::ZERO; shape.parameters()];
        for class in 0..classes {
            let mean = &pass.means[class * width..(class + 1) * width];
            let hidden = &mut pass.hidden[class * width..(class + 1) * width];
            affine(first, first_bias, mean, hidden);
            hidden.iter_mut().for_each(|value| *value = value.tanh());
            let mut row = vec![E::ZERO; width + 1];
            affine(second, second_bias, hidden, &mut row);
            head[class * width..(class + 1) * width].copy_from_slice(&row[..width]);
            head[classes * width + class] = row[width];
        }
        head
    }

    /// From the derivative in the head: that in the network is written, that in the support's features is added.
    pub fn backward<E: Element>(
        self,
        parameters: &[E],
        support: Examples<'_, E>,
        head_gradient: &[E],
        pass: &GeneratorPass<E>,
        gradient: &mut [E],
        feature_gradient: &mut [E],
    ) {
        let (width, classes) = (self.features, pass.counts.len());
        let [first, _, second, _] = self.parts(parameters);
        gradient.fill(E::ZERO);
        let (of_first, rest) = gradient.split_at_mut(width * width);
        let (of_first_bias, rest) = rest.split_at_mut(width);
        let (of_second, of_second_bias) = rest.split_at_mut((width + 1) * width);
        for class in 0..classes {
            let mean = &pass.means[class * width..(class + 1) * width];
            let hidden = &pass.hidden[class * width..(class + 1) * width];
            let mut slopes = head_gradient[class * width..(class + 1) * width].to_vec();
            slopes.push(head_gradient[classes * width + class]);
            let mut of_hidden = affine_back(second, hidden, &slopes, of_second, of_second_bias);
            for (slope, &value) in of_hidden.iter_mut().zip(hidden) {
                *slope *= E::ONE - value * value;
            }
            let of_mean = affine_back(first, mean, &of_hidden, of_first, of_first_bias);
            let share = E::from_f64(1.0 / pass.counts[class].max(1) as f64);
            for (row, _) in feature_gradient
                .chunks_exact_mut(width)
                .zip(support.labels)
                .filter(|(_, label)| **label == class)
            {
                row.iter_mut().zip(&of_mean).for_each(|(sum, &slope)| *sum += share * slope);
            }
        }
    }
}

/// output = W input + b.
fn affine<E: Element>(weight: &[E], bias: &[E], input: &[E], output: &mut [E]) {
    for ((row, &bias), value) in weight.chunks_exact(input.len()).zip(bias).zip(output) {
        *value = bias + row.iter().zip(input).map(|(&w, &x)| w * x).sum::<E>();
    }
}

/// Adds the derivatives in W and b; returns that in the input.
fn affine_back<E: Element>(
    weight: &[E],
    input: &[E],
    slopes: &[E],
    of_weight: &mut [E],
    of_bias: &mut [E],
) -> Vec<E> {
    let mut of_input = vec![E::ZERO; input.len()];
    let rows = weight.chunks_exact(input.len()).zip(of_weight.chunks_exact_mut(input.len()));
    for (((row, of_row), of_bias), &slope) in rows.zip(of_bias).zip(slopes) {
        *of_bias += slope;
        for (((&w, of_w), &x), of_x) in row.iter().zip(of_row).zip(input).zip(&mut of_input) {
            *of_w += slope * x;
            *of_x += slope * w;
        }
    }
    of_input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_the_derivative() {
        const GENERATOR: Generator = Generator { features: 3 };
        let shape = HeadShape { features: 3, classes: 2 };
        let labels = [0, 1, 1];
        let mut generator = Key::new(4).generator();
        let mut numbers = |count: usize| (0..count).map(|_| generator.normal()).collect::<Vec<f64>>();
        let (parameters, features) = (numbers(GENERATOR.parameters()), numbers(9));
        let weights = numbers(shape.parameters());
        let value = |parameters: &[f64], features: &[f64]| {
            let examples = Examples { features, labels: &labels };
            let head = GENERATOR.forward(parameters, examples, shape, &mut GeneratorPass::default());
            head.iter().zip(&weights).map(|(p, w)| p * w).sum::<f64>()
        };
        let mut pass = GeneratorPass::default();
        let examples = Examples { features: &features, labels: &labels };
        GENERATOR.forward(&parameters, examples, shape, &mut pass);
        let (mut gradient, mut feature_gradient) = (vec![9.0; parameters.len()], vec![0.0; 9]);
        GENERATOR.backward(&parameters, examples, &weights, &pass, &mut gradient, &mut feature_gradient);
        let step = 1e-5;
        let slope = |place: usize, of_parameters: bool| {
            let moved = |step: f64| {
                let (mut parameters, mut features) = (parameters.clone(), features.clone());
                (if of_parameters { &mut parameters } else { &mut features })[place] += step;
                value(&parameters, &features)
            };
            (moved(step) - moved(-step)) / (2.0 * step)
        };
        for (place, found) in gradient.iter().enumerate() {
            assert!((found - slope(place, true)).abs() < 1e-8, "parameter {place}");
        }
        for (place, found) in feature_gradient.iter().enumerate() {
            assert!((found - slope(place, false)).abs() < 1e-8, "feature {place}");
        }
    }
}
