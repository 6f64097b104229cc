//! Squared loss of a perceptron with one output, L(q) = mean_j (f(x_j; q) - y_j)^2: gradients, plain gradient steps, and the
//! derivative through those steps, in closed form and without a tape.
//!
//! Steps q_(k+1) = q_k - rate grad L(q_k) keep what their passes computed, so that pulling dL/dq_K back to dL/dq_0,
//!
//! ```text
//! lambda_k = lambda_(k+1) - rate H(q_k) lambda_(k+1),
//! ```
//!
//! needs the tangent passes only. The Hessian times a direction v is the derivative of the backward pass along v
//! (Pearlmutter's R-operator); with D{.} that derivative:
//!
//! ```text
//! D Z_l     = D H_(l-1) W_l' + H_(l-1) V_l' + v_l             D H_l = (1 - H_l^2) D Z_l
//! D dZ_last = 2 D f / m
//! D dW_l    = D dZ_l' H_(l-1) + dZ_l' D H_(l-1)
//! D dH_l    = D dZ_(l+1) W_(l+1) + dZ_(l+1) V_(l+1)           D dZ_l = (1 - H^2) D dH - 2 H (D Z) dZ
//! ```
//!
//! All errors carry the factor that a result is wanted with, -rate for steps: then the products that make a gradient add
//! the step to the parameters at once, those that make a Hessian product add it to lambda, and neither is stored.

mod elementwise;
mod layout;
mod passes;

use pulp::Arch;

use crate::simd::product::TILE_ROWS;

use layout::Layout;
use passes::{Network, Pass, Points, TangentPass};

/// Points that go through all layers together in a gradient, so that their activations stay in the first-level cache.
const CHUNK: usize = 10 * TILE_ROWS;

/// The most numbers that the passes of a path may keep, 64 MB; those of longer paths are computed again.
const MOST_KEPT: usize = 8 << 20;

/// Squared loss of a perceptron: its gradient, gradient steps, and the derivative through them.
#[derive(Debug, Clone)]
pub struct SquaredLossCurvature {
    network: Network,
    /// Parameters, or the gradient at them, or lambda: all packed.
    loaded: Vec<f64>,
    gradient: Vec<f64>,
    pass: Pass,
    path: Path,
    tangents: TangentPass,
}

/// Packed q_0, ..., q_K, and the passes at all but the last as far as they are kept.
#[derive(Debug, Clone)]
struct Path {
    parameters: Vec<Vec<f64>>,
    end: usize,
    rate: f64,
    passes: Vec<Pass>,
    kept: Kept,
}

/// What is kept of a path of gradient steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    End,
    Parameters,
    ParametersAndPasses,
}

impl SquaredLossCurvature {
    /// For a perceptron of these widths with one output.
    pub fn new(widths: &[usize]) -> Self {
        let network = Network { arch: Arch::new(), layout: Layout::new(widths) };
        let size = network.layout.size();
        let path = Path {
            parameters: vec![vec![0.0; size]],
            end: 0,
            rate: 0.0,
            passes: Vec::new(),
            kept: Kept::End,
        };
        Self {
            loaded: vec![0.0; size],
            gradient: vec![0.0; size],
            pass: Pass::new(&network.layout),
            path,
            tangents: TangentPass::new(&network.layout),
            network,
        }
    }

    /// L(q).
    pub fn loss(&mut self, parameters: &[f64], inputs: &[f64], targets: &[f64]) -> f64 {
        self.network.layout.pack(parameters, &mut self.loaded);
        self.pass.load(&self.network, &self.loaded);
        let chunks = Points { inputs, targets }.chunks(self.network.layout.dimension(), CHUNK);
        let squares: f64 =
            chunks.map(|chunk| self.pass.forward(&self.network, &self.loaded, chunk, 0.0)).sum();
        squares / targets.len() as f64
    }

    /// L(q); its gradient times `weight` is added to `gradient`.
    pub fn add_gradient(
        &mut self,
        parameters: &[f64],
        inputs: &[f64],
        targets: &[f64],
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        self.network.layout.pack(parameters, &mut self.loaded);
        let loss = gradient_at(
            (&self.network, &mut self.pass),
            &self.loaded,
            Points { inputs, targets },
            weight,
            &mut self.gradient,
        );
        self.network.layout.add_unpacked(&self.gradient, gradient);
        loss
    }

    /// Makes K plain steps q_(k+1) = q_k - rate grad L(q_k) from q_0 = `start`.
    pub fn descend(&mut self, start: &[f64], inputs: &[f64], targets: &[f64], steps: usize, rate: f64) {
        self.walk(start, Points { inputs, targets }, steps, rate, Kept::End);
    }

    /// The same, and keeps what [`SquaredLossCurvature::add_gradient_at_start`] needs.
    pub fn descend_and_keep(
        &mut self,
        start: &[f64],
        inputs: &[f64],
        targets: &[f64],
        steps: usize,
        rate: f64,
    ) {
        let large = steps.saturating_mul(self.pass.size_for(&self.network.layout, targets.len())) > MOST_KEPT;
        let kept = if large { Kept::Parameters } else { Kept::ParametersAndPasses };
        self.walk(start, Points { inputs, targets }, steps, rate, kept);
    }

    fn walk(&mut self, start: &[f64], points: Points<'_>, steps: usize, rate: f64, kept: Kept) {
        let Self { network, path, pass, .. } = self;
        let slots = if kept == Kept::End { 2 } else { steps + 1 };
        path.parameters.resize_with(slots, || vec![0.0; network.layout.size()]);
        if kept == Kept::ParametersAndPasses && path.passes.len() < steps {
            path.passes.resize_with(steps, || Pass::new(&network.layout));
        }
        network.layout.pack(start, &mut path.parameters[0]);
        (path.end, path.rate, path.kept) = (0, rate, kept);
        let factor = -2.0 * rate / points.targets.len() as f64;
        for step in 0..steps {
            let next = if kept == Kept::End { 1 - path.end } else { path.end + 1 };
            let [from, to] =
                path.parameters.get_disjoint_mut([path.end, next]).expect("two slots of the path");
            let pass = if kept == Kept::ParametersAndPasses { &mut path.passes[step] } else { &mut *pass };
            to.copy_from_slice(from);
            pass.load(network, from);
            pass.forward(network, from, points, factor);
            pass.backward(network, from, points.inputs, to);
            path.end = next;
        }
    }

    /// Writes q_K of the last steps.
    pub fn end(&self, parameters: &mut [f64]) {
        self.network.layout.unpack(&self.path.parameters[self.path.end], parameters);
    }

    /// L(q_K) for the end of the last steps; its gradient with respect to q_K times `weight` is added to `gradient`.
    pub fn add_gradient_at_end(
        &mut self,
        inputs: &[f64],
        targets: &[f64],
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        let loss = self.judge(Points { inputs, targets }, weight);
        self.network.layout.add_unpacked(&self.gradient, gradient);
        loss
    }

    /// L(q_K) on `judged` (inputs and targets) after [`SquaredLossCurvature::descend_and_keep`] on `adapt`; its gradient
    /// with respect to q_0, through all steps, times `weight` is added to `gradient`.
    ///
    /// # Panics
    /// When the last steps did not keep their path.
    pub fn add_gradient_at_start(
        &mut self,
        adapt: (&[f64], &[f64]),
        judged: (&[f64], &[f64]),
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        let loss = self.judge(Points { inputs: judged.0, targets: judged.1 }, weight);
        let Self { network, path, pass, tangents, gradient: lambda, loaded, .. } = self;
        assert!(path.kept != Kept::End, "descend_and_keep comes first");
        let points = Points { inputs: adapt.0, targets: adapt.1 };
        let factor = -2.0 * path.rate / points.targets.len() as f64;
        for (step, parameters) in path.parameters[..path.end].iter().enumerate().rev() {
            let pass = if path.kept == Kept::ParametersAndPasses {
                &path.passes[step]
            } else {
                pass.load(network, parameters);
                pass.forward(network, parameters, points, factor);
                pass.backward(network, parameters, points.inputs, loaded);
                &*pass
            };
            tangents.add_hessian_product(network, parameters, pass, points.inputs, factor, lambda);
        }
        network.layout.add_unpacked(lambda, gradient);
        loss
    }

    /// L(q_K) at the end of the path; its gradient there times `weight` is left inside.
    fn judge(&mut self, points: Points<'_>, weight: f64) -> f64 {
        let end = &self.path.parameters[self.path.end];
        gradient_at((&self.network, &mut self.pass), end, points, weight, &mut self.gradient)
    }
}

/// The loss at packed parameters; writes its packed gradient times `weight`.
fn gradient_at(
    (network, pass): (&Network, &mut Pass),
    parameters: &[f64],
    points: Points<'_>,
    weight: f64,
    gradient: &mut [f64],
) -> f64 {
    let count = points.targets.len() as f64;
    pass.load(network, parameters);
    gradient.fill(0.0);
    let mut squares = 0.0;
    for chunk in points.chunks(network.layout.dimension(), CHUNK) {
        squares += pass.forward(network, parameters, chunk, 2.0 * weight / count);
        pass.backward(network, parameters, chunk.inputs, gradient);
    }
    squares / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::mlp::{Perceptron, parameter_count};

    const WIDTHS: [&[usize]; 6] =
        [&[2, 1], &[1, 5, 1], &[2, 5, 4, 3, 1], &[1, 32, 32, 1], &[3, 8, 9, 1], &[1, 1, 1]];

    /// The mean squared error and its gradient, by the perceptron's own backward pass.
    fn gradient(widths: &[usize], parameters: &[f64], inputs: &[f64], targets: &[f64]) -> (f64, Vec<f64>) {
        let mut perceptron = Perceptron::new(widths);
        perceptron.load(parameters);
        let stride = perceptron.output_stride();
        let outputs = perceptron.forward(inputs).to_vec();
        let mut errors = vec![0.0; outputs.len()];
        let mut loss = 0.0;
        for (index, target) in targets.iter().enumerate() {
            let error = outputs[index * stride] - target;
            loss += error * error / targets.len() as f64;
            errors[index * stride] = 2.0 * error / targets.len() as f64;
        }
        perceptron.backward(&errors);
        let mut gradient = vec![0.0; parameters.len()];
        perceptron.add_gradient(&mut gradient);
        (loss, gradient)
    }

    fn normals(name: &str, count: usize) -> Vec<f64> {
        let mut generator = Key::new(7).named(name).generator();
        (0..count).map(|_| 0.7 * generator.normal()).collect()
    }

    fn assert_close(values: &[f64], expected: &[f64], tolerance: f64, what: &str) {
        for (value, expected) in values.iter().zip(expected) {
            assert!(
                (value - expected).abs() < tolerance * (1.0 + expected.abs()),
                "{what}: {value} {expected}"
            );
        }
    }

    #[test]
    fn losses_and_gradients_agree_with_the_perceptron() {
        for widths in WIDTHS {
            let mut curvature = SquaredLossCurvature::new(widths);
            let parameters = normals("parameters", parameter_count(widths));
            for count in [131, 1, 6, 60] {
                let (inputs, targets) = (normals("inputs", count * widths[0]), normals("targets", count));
                let (loss, expected) = gradient(widths, &parameters, &inputs, &targets);
                let mut sum = vec![1.0; expected.len()]; // add_gradient adds
                let value = curvature.add_gradient(&parameters, &inputs, &targets, -0.5, &mut sum);
                let expected: Vec<f64> = expected.iter().map(|value| 1.0 - 0.5 * value).collect();
                assert_close(&sum, &expected, 1e-13, &format!("{widths:?}, {count} points"));
                assert_close(
                    &[value, curvature.loss(&parameters, &inputs, &targets)],
                    &[loss; 2],
                    1e-13,
                    "loss",
                );
            }
        }
    }

    #[test]
    fn steps_follow_the_gradient() {
        for widths in WIDTHS {
            let mut curvature = SquaredLossCurvature::new(widths);
            let (inputs, targets) = (normals("inputs", 5 * widths[0]), normals("targets", 5));
            let start = normals("parameters", parameter_count(widths));
            for steps in [4, 0, 3] {
                let mut expected = start.clone();
                for _ in 0..steps {
                    let (_, slope) = gradient(widths, &expected, &inputs, &targets);
                    expected.iter_mut().zip(&slope).for_each(|(value, slope)| *value -= 0.1 * slope);
                }
                let mut end = vec![0.0; start.len()];
                curvature.descend(&start, &inputs, &targets, steps, 0.1);
                curvature.end(&mut end);
                assert_close(&end, &expected, 1e-13, &format!("{widths:?}"));
                curvature.descend_and_keep(&start, &inputs, &targets, steps, 0.1);
                curvature.end(&mut end);
                assert_close(&end, &expected, 1e-13, &format!("{widths:?}, kept"));
            }
        }
    }

    #[test]
    fn hessian_products_agree_with_differences_of_gradients() {
        for widths in WIDTHS {
            let size = parameter_count(widths);
            let (parameters, direction) = (normals("parameters", size), normals("direction", size));
            let (inputs, targets) = (normals("inputs", 6 * widths[0]), normals("targets", 6));
            let step = 1e-5;
            let at = |sign: f64| {
                let moved: Vec<f64> =
                    parameters.iter().zip(&direction).map(|(p, v)| p + sign * step * v).collect();
                gradient(widths, &moved, &inputs, &targets).1
            };
            let numeric: Vec<f64> =
                at(1.0).iter().zip(at(-1.0)).map(|(up, down)| (up - down) / (2.0 * step)).collect();
            // One step of rate -1 from q: lambda_0 - lambda_1 = H(q) lambda_1.
            let mut curvature = SquaredLossCurvature::new(widths);
            curvature.descend_and_keep(&parameters, &inputs, &targets, 1, -1.0);
            let SquaredLossCurvature { network, path, tangents, .. } = &mut curvature;
            let mut lambda = vec![0.0; network.layout.size()];
            network.layout.pack(&direction, &mut lambda);
            let (start, pass) = (&path.parameters[0], &path.passes[0]);
            tangents.add_hessian_product(network, start, pass, &inputs, 2.0 / 6.0, &mut lambda);
            let mut product = vec![0.0; size];
            network.layout.unpack(&lambda, &mut product);
            product.iter_mut().zip(&direction).for_each(|(value, v)| *value -= v);
            assert_close(&product, &numeric, 1e-7, &format!("{widths:?}"));
        }
    }

    #[test]
    fn passes_that_are_computed_again_give_the_same_gradient() {
        let widths = [1, 8, 8, 1];
        let parameters = normals("parameters", parameter_count(&widths));
        let (inputs, targets) = (normals("inputs", 5), normals("targets", 5));
        let points = Points { inputs: &inputs, targets: &targets };
        let gradients = [Kept::ParametersAndPasses, Kept::Parameters].map(|kept| {
            let mut curvature = SquaredLossCurvature::new(&widths);
            curvature.walk(&parameters, points, 4, 0.1, kept);
            let mut gradient = vec![0.0; parameters.len()];
            let (adapt, judged) = ((&inputs[..], &targets[..]), (&inputs[1..], &targets[1..]));
            curvature.add_gradient_at_start(adapt, judged, 1.0, &mut gradient);
            gradient
        });
        assert!(gradients[0].iter().any(|value| value.abs() > 1e-3));
        assert_eq!(gradients[0], gradients[1]);
    }
}
