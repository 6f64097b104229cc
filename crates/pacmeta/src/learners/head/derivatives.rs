//! Second derivatives of the head's loss, in closed form.
//!
//! For a direction D = (D_W, D_b) in the space of heads, an example's logits change by s = D_W f + D_b, its
//! probabilities by J s with J = diag(P) - P P', and with a weight c in the loss
//!
//! ```text
//! t = c J s                               the residual's change
//! H D         = sum_j t_j [f_j, 1]'       Hessian product
//! d/df (D.g)  = D_W' r + W' t             mixed derivative, r = c (P - e_y)
//! ```

use pacmeta_tensor::Element;
use pacmeta_tensor::simd::skinny::{Begin, inner_products};

use super::HeadShape;

/// t of every example, row-major [examples, classes]; `factor` is the weight c of each.
pub fn residual_changes<E: Element>(
    shape: HeadShape,
    probabilities: &[E],
    features: &[E],
    direction: &[E],
    factor: E,
    changes: &mut Vec<E>,
) {
    let (weight, bias) = shape.parts(direction);
    changes.resize(probabilities.len(), E::ZERO);
    inner_products(shape.features, bias, features, weight, changes);
    let rows = changes.chunks_exact_mut(shape.classes).zip(probabilities.chunks_exact(shape.classes));
    for (row, probabilities) in rows {
        let mean: E = row.iter().zip(probabilities).map(|(&s, &p)| s * p).sum();
        for (change, &probability) in row.iter_mut().zip(probabilities) {
            *change = factor * probability * (*change - mean);
        }
    }
}

/// product = H D, from [`residual_changes`].
pub fn hessian_product<E: Element>(shape: HeadShape, changes: &[E], features: &[E], product: &mut [E]) {
    shape.head_gradient(Begin::Zero, changes, features, product);
}

/// gradient += d/dF [D . grad L^(q, F)], from residuals and [`residual_changes`].
pub fn add_mixed_derivative<E: Element>(
    shape: HeadShape,
    (residuals, changes): (&[E], &[E]),
    (head, direction): (&[E], &[E]),
    gradient: &mut [E],
) {
    shape.feature_gradient(Begin::Output, residuals, direction, gradient);
    shape.feature_gradient(Begin::Output, changes, head, gradient);
}
