//! pacmeta's passes.

use anyhow::Result;
use pacmeta_tensor::conv::{Images, Statistics, Workspace};
use pacmeta_tensor::encoder::{
    EncoderRoom, Keep, States, Tokens, lower_backward, lower_forward, upper_backward, upper_forward,
};

use crate::Engine;
use crate::case::{Conv4, Encoder, Parameters};

fn divided(parameters: &Parameters, gradient: &[f32], is_compared: impl Fn(&str) -> bool) -> Vec<Vec<f32>> {
    let mut rest = gradient;
    let mut parts = Vec::new();
    for parameter in &parameters.0 {
        let (part, after) = rest.split_at(parameter.values.len());
        if is_compared(&parameter.name) {
            parts.push(part.to_vec());
        }
        rest = after;
    }
    parts
}

pub struct Conv4Engine<'a> {
    case: &'a Conv4,
    parameters: Vec<f32>,
    gradient: Vec<f32>,
    workspace: Workspace,
}

impl<'a> Conv4Engine<'a> {
    pub fn new(case: &'a Conv4) -> Self {
        let parameters = case.parameters.flat();
        let gradient = vec![0.0; parameters.len()];
        Self { case, parameters, gradient, workspace: case.body.workspace() }
    }
}

impl Engine for Conv4Engine<'_> {
    fn step(&mut self) -> Result<Vec<Vec<f32>>> {
        let Self { case, parameters, gradient, workspace } = self;
        case.body.forward(parameters, Images::Bytes(&case.pixels), Statistics::Batch, workspace)?;
        case.body.backward(parameters, &case.slopes, workspace, gradient)?;
        Ok(divided(&case.parameters, gradient, |name| !name.ends_with("conv.bias")))
    }
}

pub struct EncoderEngine<'a> {
    case: &'a Encoder,
    parameters: Vec<f32>,
    gradient: Vec<f32>,
    at_states: Vec<f32>,
    below: EncoderRoom<f32>,
    above: EncoderRoom<f32>,
}

impl<'a> EncoderEngine<'a> {
    pub fn new(case: &'a Encoder) -> Self {
        let parameters = case.parameters.flat();
        let gradient = vec![0.0; parameters.len()];
        let at_states = vec![0.0; case.ids.len() * case.sizes.hidden];
        Self { case, parameters, gradient, at_states, below: EncoderRoom::new(), above: EncoderRoom::new() }
    }
}

impl Engine for EncoderEngine<'_> {
    fn step(&mut self) -> Result<Vec<Vec<f32>>> {
        let Self { case, parameters, gradient, at_states, below, above } = self;
        let (shape, layers, keep) = (&case.shape, case.sizes.layers, Keep::ForBackward);
        let starts: Vec<usize> =
            (0..=case.sizes.batch).map(|sequence| sequence * case.sizes.length).collect();
        let segments = vec![0; case.ids.len()];
        let tokens = Tokens { ids: &case.ids, segments: &segments, starts: &starts };
        let (lower, upper) = parameters.split_at(shape.boundary(layers));
        let (lower_gradient, upper_gradient) = gradient.split_at_mut(lower.len());
        let values = lower_forward(shape, layers, lower, tokens, keep, None, below)?;
        let states = States { values, starts: &starts };
        upper_forward(shape, layers, upper, states, keep, None, above)?;
        let slopes = &case.slopes;
        upper_backward(
            shape,
            layers,
            upper,
            states,
            slopes,
            above,
            upper_gradient,
            Some(&mut at_states[..]),
        )?;
        lower_backward(shape, layers, lower, tokens, at_states, below, lower_gradient)?;
        Ok(divided(&case.parameters, gradient, |_| true))
    }
}
