//! The passes that callers use.

use super::layer::{BackwardRoom, Lean, Setting, scaled};
use super::places::{Embeddings, EmbeddingsMut, Layer, LayerMut};
use super::pooling::Pooled;
use super::room::{EncoderRoom, Half, Kept, Pass};
use super::rows::Norm;
use super::{
    Dropout, EncoderShape, Keep, States, Tokens, check_len, check_starts, check_tokens, embeddings, pooling,
};
use crate::element::Element;
use crate::error::Result;

/// States behind layer `threshold` - 1, row-major [tokens, hidden], from the parameters before the boundary. Behind the last layer, where the
/// pooling looks at first states only and there is no dropout, the others are not computed: they are 0, and gradients at them do not count.
///
/// # Errors
/// When sizes, tokens or the rate of dropout do not fit.
pub fn lower_forward<'r, E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    lower: &[E],
    tokens: Tokens<'_>,
    keep: Keep,
    dropout: Option<Dropout>,
    room: &'r mut EncoderRoom<E>,
) -> Result<&'r [E]> {
    shape.check_threshold(threshold)?;
    check_len("parameters below the threshold", shape.boundary(threshold), lower.len())?;
    let count = check_tokens(shape, tokens)?;
    let pass = begin(Half::Lower, shape, threshold, (count, tokens.starts), keep, dropout, room)?;
    let hidden = shape.hidden;
    let (tables, layers) = lower.split_at(shape.embedding_len());
    embeddings::forward(
        shape,
        &Embeddings::new(shape, tables),
        (tokens, &room.starts),
        dropout,
        (&mut room.norm[..count * hidden], &mut room.inverse[..count]),
        &mut room.states[..count * hidden],
    );
    run_layers(shape, 0, layers, &pass, room);
    room.pass = Some(pass);
    Ok(&room.states[..count * hidden])
}

/// The gradient of the parameters before the boundary, from the gradient at the states of the last [`lower_forward`] in this room with
/// the same parameters and tokens; `gradient` is overwritten.
///
/// # Errors
/// When sizes do not fit or the room holds another pass.
pub fn lower_backward<E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    lower: &[E],
    tokens: Tokens<'_>,
    state_gradient: &[E],
    room: &mut EncoderRoom<E>,
    gradient: &mut [E],
) -> Result<()> {
    shape.check_threshold(threshold)?;
    check_len("parameters below the threshold", shape.boundary(threshold), lower.len())?;
    check_len("gradient below the threshold", shape.boundary(threshold), gradient.len())?;
    let count = check_tokens(shape, tokens)?;
    check_len("gradient at the states", count * shape.hidden, state_gradient.len())?;
    let pass = room.prepare_backward(Half::Lower, shape, threshold, tokens.starts)?;
    let hidden = shape.hidden;
    room.slopes[..count * hidden].copy_from_slice(state_gradient);
    let (tables, layers) = lower.split_at(shape.embedding_len());
    let (tables_gradient, layers_gradient) = gradient.split_at_mut(shape.embedding_len());
    let tables = Embeddings::new(shape, tables);
    let bottom = |room: &BottomInput<'_, E>, out: &mut [E]| {
        scaled(&room.norm[..out.len()], out, embeddings::norm(shape, &tables));
        if let Some(mask) = Dropout::at(pass.dropout, super::dropout::Site::Embeddings) {
            super::rows::drop_rows(out, hidden, 0, Some(mask));
        }
    };
    run_layers_backwards(shape, 0, layers, &pass, bottom, room, layers_gradient);
    embeddings::backward(
        shape,
        &tables,
        (tokens, &room.starts),
        pass.dropout,
        (&room.norm[..count * hidden], &room.inverse[..count]),
        (&mut room.slopes[..count * hidden], &mut room.partial),
        EmbeddingsMut::new(shape, tables_gradient),
    );
    Ok(())
}

/// Features, row-major [sequences, hidden], from states behind layer `threshold` - 1 and the parameters from the boundary on.
///
/// # Errors
/// When sizes or the rate of dropout do not fit.
pub fn upper_forward<'r, E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    upper: &[E],
    states: States<'_, E>,
    keep: Keep,
    dropout: Option<Dropout>,
    room: &'r mut EncoderRoom<E>,
) -> Result<&'r [E]> {
    shape.check_threshold(threshold)?;
    check_len("parameters from the threshold on", shape.upper_len(threshold), upper.len())?;
    let count = check_starts(shape, states.starts)?;
    let hidden = shape.hidden;
    check_len("states", count * hidden, states.values.len())?;
    let pass = begin(Half::Upper, shape, threshold, (count, states.starts), keep, dropout, room)?;
    room.states[..count * hidden].copy_from_slice(states.values);
    let (layers, pooler) = upper.split_at(upper.len() - shape.pooler_len());
    run_layers(shape, threshold, layers, &pass, room);
    let sequences = states.starts.len() - 1;
    let features = &mut room.features[..sequences * hidden];
    let firsts = &mut room.firsts[..sequences * hidden];
    pooling::forward(shape, pooler, &room.states[..count * hidden], &room.starts, firsts, features);
    room.pass = Some(pass);
    Ok(&room.features[..sequences * hidden])
}

/// The gradient of the parameters from the boundary on and, where asked for, of the states, from the gradient at the features of the
/// last [`upper_forward`] in this room with the same parameters and states; both are overwritten.
///
/// # Errors
/// When sizes do not fit or the room holds another pass.
#[allow(clippy::too_many_arguments, reason = "the mirror of the forward pass")]
pub fn upper_backward<E: Element>(
    shape: &EncoderShape,
    threshold: usize,
    upper: &[E],
    states: States<'_, E>,
    feature_gradient: &[E],
    room: &mut EncoderRoom<E>,
    gradient: &mut [E],
    state_gradient: Option<&mut [E]>,
) -> Result<()> {
    shape.check_threshold(threshold)?;
    check_len("parameters from the threshold on", shape.upper_len(threshold), upper.len())?;
    check_len("gradient from the threshold on", shape.upper_len(threshold), gradient.len())?;
    let count = check_starts(shape, states.starts)?;
    let hidden = shape.hidden;
    check_len("states", count * hidden, states.values.len())?;
    let sequences = states.starts.len() - 1;
    check_len("gradient at the features", sequences * hidden, feature_gradient.len())?;
    if let Some(state_gradient) = &state_gradient {
        check_len("gradient at the states", count * hidden, state_gradient.len())?;
    }
    let pass = room.prepare_backward(Half::Upper, shape, threshold, states.starts)?;
    let (layers, pooler) = upper.split_at(upper.len() - shape.pooler_len());
    let (layers_gradient, pooler_gradient) = gradient.split_at_mut(layers.len());
    let pooled = Pooled {
        starts: &room.starts,
        firsts: &room.firsts[..sequences * hidden],
        features: &room.features[..sequences * hidden],
        room: &mut room.feature_slopes[..sequences * hidden],
    };
    let slopes = &mut room.slopes[..count * hidden];
    pooling::backward(shape, pooler, pooled, feature_gradient, slopes, pooler_gradient);
    let bottom = |_: &BottomInput<'_, E>, out: &mut [E]| out.copy_from_slice(states.values);
    run_layers_backwards(shape, threshold, layers, &pass, bottom, room, layers_gradient);
    if let Some(state_gradient) = state_gradient {
        state_gradient.copy_from_slice(&room.slopes[..count * hidden]);
    }
    Ok(())
}

/// Checks what is left to check and makes room.
fn begin<E: Element>(
    half: Half,
    shape: &EncoderShape,
    threshold: usize,
    (tokens, starts): (usize, &[usize]),
    keep: Keep,
    dropout: Option<Dropout>,
    room: &mut EncoderRoom<E>,
) -> Result<Pass> {
    if let Some(dropout) = dropout {
        dropout.check()?;
    }
    let pass = Pass { half, shape: *shape, threshold, tokens, keep, dropout };
    room.prepare(pass, starts);
    Ok(pass)
}

/// Runs the layers whose parameters are given, the first of which is layer `first` of the encoder, on the room's states.
fn run_layers<E: Element>(
    shape: &EncoderShape,
    first: usize,
    parameters: &[E],
    pass: &Pass,
    room: &mut EncoderRoom<E>,
) {
    let (tokens, hidden) = (pass.tokens, shape.hidden);
    let EncoderRoom { states, wide, norm, inverse, log_sums, layers, firsts, starts, scratch, .. } = room;
    let firsts = &mut firsts[..(starts.len() - 1) * hidden];
    let states = &mut states[..tokens * hidden];
    for (place, parameters) in parameters.chunks_exact(shape.layer_len()).enumerate() {
        let setting = Setting {
            shape,
            layer: first + place,
            parameters: Layer::new(shape, parameters),
            starts,
            dropout: pass.dropout,
            scratch,
        };
        let ends_in_firsts = setting.ends_in_firsts();
        match pass.keep {
            Keep::ForBackward if ends_in_firsts => {
                setting.forward_firsts(states, firsts, &mut layers[place], wide);
            }
            Keep::ForBackward => setting.forward(states, &mut layers[place], wide),
            Keep::Nothing => {
                let lean = Lean {
                    wide,
                    norm: &mut norm[..tokens * hidden],
                    inverse: &mut inverse[..tokens],
                    log_sums: &mut log_sums[..tokens * shape.heads],
                };
                match ends_in_firsts {
                    true => setting.forward_lean_firsts(states, firsts, lean),
                    false => setting.forward_lean(states, lean),
                }
            }
        }
    }
}

/// What the input of the lowest layer can be computed from.
struct BottomInput<'a, E> {
    norm: &'a [E],
}

/// From the room's slopes behind the layers to those before them; `bottom` writes the input of the lowest layer.
fn run_layers_backwards<E: Element>(
    shape: &EncoderShape,
    first: usize,
    parameters: &[E],
    pass: &Pass,
    bottom: impl Fn(&BottomInput<'_, E>, &mut [E]),
    room: &mut EncoderRoom<E>,
    gradient: &mut [E],
) {
    let (tokens, hidden) = (pass.tokens, shape.hidden);
    let EncoderRoom {
        states,
        wide,
        norm,
        layers,
        starts,
        scratch,
        slopes,
        branch,
        partial,
        first_slopes,
        ..
    } = room;
    let first_slopes = &mut first_slopes[..(starts.len() - 1) * hidden];
    let slopes = &mut slopes[..tokens * hidden];
    let branch = if pass.dropout.is_some() { &mut branch[..tokens * hidden] } else { &mut branch[..0] };
    let mut room = BackwardRoom { wide, branch, partial, input: &mut states[..tokens * hidden] };
    let len = shape.layer_len();
    for (place, gradient) in gradient.chunks_exact_mut(len).enumerate().rev() {
        let setting = Setting {
            shape,
            layer: first + place,
            parameters: Layer::new(shape, &parameters[place * len..][..len]),
            starts,
            dropout: pass.dropout,
            scratch,
        };
        let input = |out: &mut [E]| match place.checked_sub(1) {
            None => bottom(&BottomInput { norm }, out),
            Some(below) => {
                let Kept { norm, .. } = &layers[below];
                let own = Layer::new(shape, &parameters[below * len..][..len]);
                scaled(&norm[..out.len()], out, Norm::new(own.norm_weight, own.norm_bias, shape.epsilon));
            }
        };
        let (kept, gradient) = (&layers[place], &mut LayerMut::new(shape, gradient));
        match setting.ends_in_firsts() {
            true => setting.backward_firsts(slopes, first_slopes, kept, input, &mut room, gradient),
            false => setting.backward(slopes, kept, input, &mut room, gradient),
        }
    }
}
