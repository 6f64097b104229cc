//! The encoder in operations of the tape, whose derivatives can be differentiated again.
//!
//! | part | operations |
//! |---|---|
//! | embeddings | rows gathered by index, sums |
//! | linear maps | one product with its bias |
//! | attention | scores, softmax and mixing inside sequences and heads, on the packed rows |
//! | layer norm | rows normalised, scale, shift |
//! | GELU | x Phi(x) and its derivatives, one node each |
//!
//! For exact second order: every step of an inner loop stays on the tape. There is no dropout here.

use std::sync::Arc;

use super::shape::{Activation, EncoderShape, Pooling};
use super::{Tokens, check_len, check_starts, check_tokens};
use crate::array::Array;
use crate::blocks::Blocks;
use crate::element::Element;
use crate::error::Result;
use crate::matmul::Orientation;
use crate::tape::bridge::ParameterVariables;
use crate::tape::variable::Variable;

/// States behind layer `threshold` - 1 [tokens, hidden]. The variables have the names of [`EncoderShape::layout`]; others among them are
/// left alone.
///
/// # Errors
/// When tokens do not fit, or a variable is missing or has another shape.
pub fn lower_states<'t, E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    variables: &ParameterVariables<'t, E>,
    tokens: Tokens<'_>,
) -> Result<Variable<'t, E>> {
    shape.check_threshold(threshold)?;
    check_tokens(shape, tokens)?;
    let ids: Vec<usize> = tokens.ids.iter().map(|&id| id as usize).collect();
    let places: Vec<usize> = tokens.starts.windows(2).flat_map(|ends| 0..ends[1] - ends[0]).collect();
    let words = variables.get("embeddings.word")?.gather_rows(&ids)?;
    let mut sum = (words + variables.get("embeddings.position")?.gather_rows(&places)?)?;
    if shape.segments > 0 {
        let kinds: Vec<usize> = tokens.segments.iter().map(|&segment| usize::from(segment)).collect();
        sum = (sum + variables.get("embeddings.segment")?.gather_rows(&kinds)?)?;
    }
    let states = norm(shape, variables, "embeddings.norm", sum)?;
    let blocks = Arc::new(Blocks::new(tokens.starts, shape.heads)?);
    (0..threshold).try_fold(states, |states, index| layer(shape, index, variables, states, &blocks))
}

/// Features [sequences, hidden] of states behind layer `threshold` - 1. The variables have the names of
/// [`EncoderShape::upper_layout`]; others among them are left alone.
///
/// ```
/// use std::sync::Arc;
/// use pacmeta_tensor::encoder::{Activation, EncoderShape, Pooling, composite};
/// use pacmeta_tensor::{Array, Parameters, Tape};
///
/// let shape = EncoderShape {
///     vocabulary: 10, positions: 8, segments: 0, hidden: 4, heads: 2, intermediate: 6, layers: 2,
///     epsilon: 1e-6, activation: Activation::Gelu, pooling: Pooling::Mean,
/// };
/// let mut upper = Parameters::zeros(Arc::new(shape.upper_layout(1)?));
/// upper.values_mut().iter_mut().enumerate().for_each(|(i, value)| *value = (i as f64).sin());
/// let tape = Tape::new();
/// let variables = tape.parameters(&upper);
/// // two sequences, of three tokens and of two
/// let states = tape.leaf(Array::new(&[5, 4], (0..20).map(|i| (i as f64).cos()).collect())?);
/// let features = composite::upper_features(&shape, 1, &variables, states, &[0, 3, 5])?;
/// assert_eq!(features.shape()[..], [2, 4]);
/// let slope = tape.gradient(features.square().sum(), variables.variables())?[0];
/// assert!(tape.parameter_gradient(slope.square().sum(), &variables)?.squared_norm() > 0.0);
/// # Ok::<(), pacmeta_tensor::TensorError>(())
/// ```
///
/// # Errors
/// When states do not fit, or a variable is missing or has another shape.
pub fn upper_features<'t, E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    variables: &ParameterVariables<'t, E>,
    states: Variable<'t, E>,
    starts: &[usize],
) -> Result<Variable<'t, E>> {
    shape.check_threshold(threshold)?;
    let tokens = check_starts(shape, starts)?;
    check_len("states", tokens * shape.hidden, states.shape().count())?;
    let blocks = Arc::new(Blocks::new(starts, shape.heads)?);
    let states = (threshold..shape.layers)
        .try_fold(states, |states, index| layer(shape, index, variables, states, &blocks))?;
    let firsts: Vec<usize> = starts[..starts.len() - 1].iter().map(|start| start - starts[0]).collect();
    match shape.pooling {
        Pooling::First => states.gather_rows(&firsts),
        Pooling::Mean => {
            let lengths = || starts.windows(2).map(|ends| ends[1] - ends[0]);
            let owners: Vec<usize> = lengths()
                .enumerate()
                .flat_map(|(sequence, length)| std::iter::repeat_n(sequence, length))
                .collect();
            let parts = lengths().map(|length| E::ONE / E::from_f64(length as f64)).collect();
            let parts = states.tape().leaf(Array::new(&[firsts.len(), 1], parts)?);
            states.scatter_rows(&owners, firsts.len())? * parts
        }
        Pooling::Pooler => {
            let (weight, bias) = (variables.get("pooler.weight")?, variables.get("pooler.bias")?);
            Ok(states.gather_rows(&firsts)?.affine(weight, bias)?.tanh())
        }
    }
}

fn layer<'t, E: Element>(
    shape: &EncoderShape,
    index: usize,
    variables: &ParameterVariables<'t, E>,
    states: Variable<'t, E>,
    blocks: &Arc<Blocks>,
) -> Result<Variable<'t, E>> {
    let map = |input: Variable<'t, E>, name: &str| {
        let tensor = |kind: &str| variables.get(&format!("layer.{index}.{name}.{kind}"));
        input.affine(tensor("weight")?, tensor("bias")?)
    };
    let factor = E::ONE / E::from_f64(shape.head_size() as f64).sqrt();
    let (query, key) = (map(states, "attention.query")?, map(states, "attention.key")?);
    let probabilities = query.block_scores(key, factor, blocks)?.block_softmax(blocks)?;
    let value = map(states, "attention.value")?;
    let context = probabilities.block_mix(Orientation::Plain, value, E::ONE, blocks)?;
    let sum = (map(context, "attention.output")? + states)?;
    let attended = norm(shape, variables, &format!("layer.{index}.attention.norm"), sum)?;
    let activated = activation(shape.activation, map(attended, "up")?)?;
    let sum = (map(activated, "down")? + attended)?;
    norm(shape, variables, &format!("layer.{index}.norm"), sum)
}

fn norm<'t, E: Element>(
    shape: &EncoderShape,
    variables: &ParameterVariables<'t, E>,
    name: &str,
    sum: Variable<'t, E>,
) -> Result<Variable<'t, E>> {
    let tensor = |kind: &str| variables.get(&format!("{name}.{kind}"));
    let scaled = (sum.normalise_rows(E::from_f64(shape.epsilon))? * tensor("weight")?)?;
    scaled + tensor("bias")?
}

fn activation<E: Element>(activation: Activation, x: Variable<'_, E>) -> Result<Variable<'_, E>> {
    match activation {
        Activation::Gelu => Ok(x.gelu()),
        Activation::Relu => Ok(x.relu()),
        Activation::GeluTanh => {
            // (1 + tanh(z / 2)) / 2 is the sigmoid of z
            let inner = (x + x.powi(3).scale(E::from_f64(0.044_715)))?;
            x * inner.scale(E::from_f64((8.0 / std::f64::consts::PI).sqrt())).sigmoid()
        }
    }
}
