//! Hessian-vector products of perceptrons under squared loss, by differentiating the backward pass along a direction
//! (Pearlmutter's R-operator), in closed form and without a tape.
//!
//! For L(q) = mean_j (f(x_j; q) - y_j)^2 and a direction v, with D{.} the derivative along v:
//!
//! ```text
//! D Z_l     = D H_(l-1) W_l' + H_(l-1) V_l' + v_l             D H_l = (1 - H_l^2) D Z_l
//! D dZ_last = 2 D f / m
//! D dW_l    = D dZ_l' H_(l-1) + dZ_l' D H_(l-1)
//! D dH_l    = D dZ_(l+1) W_(l+1) + dZ_(l+1) V_(l+1)           D dZ_l = (1 - H^2) D dH - 2 H (D H) dH
//! ```
//!
//! Plain loops: inner loops see a handful of points, where blocking has nothing to gain.

/// Squared loss of a perceptron on a few points, its gradient and its Hessian times a direction.
#[derive(Debug, Clone)]
pub struct SquaredLossCurvature {
    widths: Vec<usize>,
    /// H_0, H_1, ..., output, one row a point.
    activations: Vec<Vec<f64>>,
    /// D H_0 (zero), D H_1, ..., D output.
    tangents: Vec<Vec<f64>>,
    /// dZ and D dZ of the current and of the previous layer.
    errors: [Vec<f64>; 2],
    error_tangents: [Vec<f64>; 2],
}

impl SquaredLossCurvature {
    /// For a perceptron of these widths with one output.
    pub fn new(widths: &[usize]) -> Self {
        Self {
            widths: widths.to_vec(),
            activations: vec![Vec::new(); widths.len()],
            tangents: vec![Vec::new(); widths.len()],
            errors: Default::default(),
            error_tangents: Default::default(),
        }
    }

    /// Writes H v into `result` for the mean squared error on the points (rows of `inputs`) and `targets`.
    pub fn hessian_times(
        &mut self,
        parameters: &[f64],
        direction: &[f64],
        inputs: &[f64],
        targets: &[f64],
        result: &mut [f64],
    ) {
        self.forward(parameters, direction, inputs, targets.len());
        let points = targets.len();
        let last = self.widths.len() - 1;
        let factor = 2.0 / points as f64;
        let [errors, previous] = &mut self.errors;
        let [tangents, previous_tangents] = &mut self.error_tangents;
        errors.clear();
        errors.extend(self.activations[last].iter().zip(targets).map(|(f, y)| factor * (f - y)));
        tangents.clear();
        tangents.extend(self.tangents[last].iter().map(|tangent| factor * tangent));
        result.fill(0.0);
        let mut end = result.len();
        for layer in (1..self.widths.len()).rev() {
            let (inputs, outputs) = (self.widths[layer - 1], self.widths[layer]);
            let start = end - outputs * (inputs + 1);
            let weight = &parameters[start..start + inputs * outputs];
            let weight_direction = &direction[start..start + inputs * outputs];
            let (weight_result, bias_result) = result[start..end].split_at_mut(inputs * outputs);
            let (h, dh) = (&self.activations[layer - 1], &self.tangents[layer - 1]);
            previous.clear();
            previous.resize(points * inputs, 0.0);
            previous_tangents.clear();
            previous_tangents.resize(points * inputs, 0.0);
            for point in 0..points {
                let h = &h[point * inputs..(point + 1) * inputs];
                let dh = &dh[point * inputs..(point + 1) * inputs];
                let back = &mut previous[point * inputs..(point + 1) * inputs];
                let back_tangent = &mut previous_tangents[point * inputs..(point + 1) * inputs];
                for output in 0..outputs {
                    let error = errors[point * outputs + output];
                    let tangent = tangents[point * outputs + output];
                    bias_result[output] += tangent;
                    let range = output * inputs..(output + 1) * inputs;
                    let sums = &mut weight_result[range.clone()];
                    let (w, v) = (&weight[range.clone()], &weight_direction[range]);
                    for k in 0..inputs {
                        sums[k] += tangent * h[k] + error * dh[k];
                        back[k] += error * w[k];
                        back_tangent[k] += tangent * w[k] + error * v[k];
                    }
                }
                if layer > 1 {
                    for k in 0..inputs {
                        let slope = 1.0 - h[k] * h[k];
                        back_tangent[k] = slope * back_tangent[k] - 2.0 * h[k] * dh[k] * back[k];
                        back[k] *= slope;
                    }
                }
            }
            std::mem::swap(errors, previous);
            std::mem::swap(tangents, previous_tangents);
            end = start;
        }
    }

    fn forward(&mut self, parameters: &[f64], direction: &[f64], inputs: &[f64], points: usize) {
        self.activations[0].clear();
        self.activations[0].extend_from_slice(inputs);
        self.tangents[0].clear();
        self.tangents[0].resize(inputs.len(), 0.0);
        let mut start = 0;
        for layer in 1..self.widths.len() {
            let (inputs, outputs) = (self.widths[layer - 1], self.widths[layer]);
            let split = start + inputs * outputs;
            let end = split + outputs;
            let (w, v) = (&parameters[start..split], &direction[start..split]);
            let (bias, bias_direction) = (&parameters[split..end], &direction[split..end]);
            let (before, after) = self.activations.split_at_mut(layer);
            let (tangents_before, tangents_after) = self.tangents.split_at_mut(layer);
            let (h, dh) = (&before[layer - 1], &tangents_before[layer - 1]);
            let (next, next_tangent) = (&mut after[0], &mut tangents_after[0]);
            next.resize(points * outputs, 0.0);
            next_tangent.resize(points * outputs, 0.0);
            let hidden = layer + 1 < self.widths.len();
            for point in 0..points {
                let h = &h[point * inputs..(point + 1) * inputs];
                let dh = &dh[point * inputs..(point + 1) * inputs];
                for output in 0..outputs {
                    let row = output * inputs..(output + 1) * inputs;
                    let z = bias[output] + dot(&w[row.clone()], h);
                    let dz = bias_direction[output] + dot(&w[row.clone()], dh) + dot(&v[row], h);
                    let place = point * outputs + output;
                    if hidden {
                        next[place] = z.tanh();
                        next_tangent[place] = (1.0 - next[place] * next[place]) * dz;
                    } else {
                        (next[place], next_tangent[place]) = (z, dz);
                    }
                }
            }
            start = end;
        }
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::mlp::{Perceptron, parameter_count};

    /// The gradient of the mean squared error, by the perceptron's own backward pass.
    fn gradient(widths: &[usize], parameters: &[f64], inputs: &[f64], targets: &[f64]) -> Vec<f64> {
        let mut perceptron = Perceptron::new(widths);
        perceptron.load(parameters);
        let stride = perceptron.output_stride();
        let outputs = perceptron.forward(inputs).to_vec();
        let mut errors = vec![0.0; outputs.len()];
        for (index, target) in targets.iter().enumerate() {
            errors[index * stride] = 2.0 * (outputs[index * stride] - target) / targets.len() as f64;
        }
        perceptron.backward(&errors);
        let mut gradient = vec![0.0; parameters.len()];
        perceptron.add_gradient(&mut gradient);
        gradient
    }

    #[test]
    fn agrees_with_differences_of_gradients() {
        for widths in [vec![2, 1], vec![1, 5, 1], vec![2, 5, 4, 3, 1]] {
            let mut generator = Key::new(7).generator();
            let mut normals =
                |count: usize| (0..count).map(|_| 0.7 * generator.normal()).collect::<Vec<f64>>();
            let size = parameter_count(&widths);
            let (parameters, direction) = (normals(size), normals(size));
            let (inputs, targets) = (normals(6 * widths[0]), normals(6));
            let step = 1e-5;
            let at = |sign: f64| {
                let moved: Vec<f64> =
                    parameters.iter().zip(&direction).map(|(p, v)| p + sign * step * v).collect();
                gradient(&widths, &moved, &inputs, &targets)
            };
            let mut product = vec![0.0; size];
            SquaredLossCurvature::new(&widths).hessian_times(
                &parameters,
                &direction,
                &inputs,
                &targets,
                &mut product,
            );
            for ((value, up), down) in product.iter().zip(at(1.0)).zip(at(-1.0)) {
                let numeric = (up - down) / (2.0 * step);
                assert!(
                    (value - numeric).abs() < 1e-7 * (1.0 + numeric.abs()),
                    "{widths:?}: {value} {numeric}"
                );
            }
        }
    }
}
