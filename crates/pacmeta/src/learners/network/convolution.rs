//! Bodies on pictures: a whole convolutional network. Batch norm takes the statistics of the pictures of each pass, and derivatives
//! run through them.

use std::ops::Range;

use pacmeta_tensor::conv::plain::{self, Pass};
use pacmeta_tensor::conv::{ConvBody, Images, Statistics, Workspace, composite};
use pacmeta_tensor::tape::bridge::ParameterVariables;
use pacmeta_tensor::{Array, Element, ParameterLayout, Result as TensorResult, Tape, Variable};

use super::{Body, Derivative, Labelled};
use crate::error::{Error, Result};

/// Pictures of one batch: bytes in the order picture, row, column, channel.
pub type Pictures<'a> = Labelled<'a, &'a [u8]>;

impl Body for ConvBody {
    type Number = f32;
    type Room = Workspace;
    type Inputs<'a> = &'a [u8];

    fn layout(&self) -> &ParameterLayout {
        ConvBody::layout(self)
    }

    fn feature_count(&self) -> usize {
        ConvBody::feature_count(self)
    }

    fn room(&self) -> Workspace {
        self.workspace()
    }

    fn examples(&self, pixels: &[u8]) -> Result<usize> {
        count(self, pixels)
    }

    fn part<'a>(&self, pixels: Self::Inputs<'a>, range: Range<usize>) -> Self::Inputs<'a> {
        part(self, pixels, range)
    }

    fn input_len(&self, _: &[u8]) -> usize {
        0
    }

    fn forward<'r>(&self, parameters: &[f32], pixels: &[u8], room: &'r mut Workspace) -> Result<&'r [f32]> {
        Ok(ConvBody::forward(self, parameters, Images::Bytes(pixels), Statistics::Batch, room)?)
    }

    fn backward(
        &self,
        parameters: &[f32],
        _: &[u8],
        feature_gradient: &[f32],
        room: &mut Workspace,
        gradient: Derivative<'_, f32>,
    ) -> Result<()> {
        Ok(ConvBody::backward(self, parameters, feature_gradient, room, gradient.parameters)?)
    }

    fn leaf<'t>(&self, tape: &'t Tape<f32>, pixels: &[u8]) -> TensorResult<Variable<'t, f32>> {
        leaf(self, tape, pixels)
    }

    fn features<'t>(
        &self,
        variables: &ParameterVariables<'t, f32>,
        _: &[u8],
        leaf: Variable<'t, f32>,
    ) -> TensorResult<Variable<'t, f32>> {
        composite::features_of(self.shape(), variables, leaf)
    }
}

/// The body without tricks, in f64: for checks.
#[derive(Debug, Clone)]
pub struct PlainBody(pub ConvBody);

impl Body for PlainBody {
    type Number = f64;
    type Room = Option<Pass<f64>>;
    type Inputs<'a> = &'a [u8];

    fn layout(&self) -> &ParameterLayout {
        self.0.layout()
    }

    fn feature_count(&self) -> usize {
        self.0.feature_count()
    }

    fn room(&self) -> Self::Room {
        None
    }

    fn examples(&self, pixels: &[u8]) -> Result<usize> {
        count(&self.0, pixels)
    }

    fn part<'a>(&self, pixels: Self::Inputs<'a>, range: Range<usize>) -> Self::Inputs<'a> {
        part(&self.0, pixels, range)
    }

    fn input_len(&self, _: &[u8]) -> usize {
        0
    }

    fn forward<'r>(&self, parameters: &[f64], pixels: &[u8], room: &'r mut Self::Room) -> Result<&'r [f64]> {
        let pass = plain::forward(self.0.shape(), parameters, &numbers(pixels), Statistics::Batch, None)?;
        Ok(room.insert(pass).features())
    }

    fn backward(
        &self,
        parameters: &[f64],
        _: &[u8],
        feature_gradient: &[f64],
        room: &mut Self::Room,
        gradient: Derivative<'_, f64>,
    ) -> Result<()> {
        match room {
            Some(pass) => Ok(pass.backward(parameters, feature_gradient, gradient.parameters)?),
            None => Err(Error::input("network", "there was no forward pass")),
        }
    }

    fn leaf<'t>(&self, tape: &'t Tape<f64>, pixels: &[u8]) -> TensorResult<Variable<'t, f64>> {
        leaf(&self.0, tape, pixels)
    }

    fn features<'t>(
        &self,
        variables: &ParameterVariables<'t, f64>,
        _: &[u8],
        leaf: Variable<'t, f64>,
    ) -> TensorResult<Variable<'t, f64>> {
        composite::features_of(self.0.shape(), variables, leaf)
    }
}

fn count(body: &ConvBody, pixels: &[u8]) -> Result<usize> {
    let picture = body.shape().image_len();
    match pixels.len().is_multiple_of(picture) {
        true => Ok(pixels.len() / picture),
        false => Err(Error::input(
            "network",
            format!("there are {} pixels, expected {picture} for each picture", pixels.len()),
        )),
    }
}

fn part<'a>(body: &ConvBody, pixels: &'a [u8], range: Range<usize>) -> &'a [u8] {
    let picture = body.shape().image_len();
    &pixels[range.start * picture..range.end * picture]
}

fn leaf<'t, E: Element>(body: &ConvBody, tape: &'t Tape<E>, pixels: &[u8]) -> TensorResult<Variable<'t, E>> {
    let channels = body.shape().channels;
    Ok(tape.leaf(Array::new(&[pixels.len() / channels, channels], numbers(pixels))?))
}

/// Pixels as numbers from 0 to 1.
fn numbers<E: Element>(pixels: &[u8]) -> Vec<E> {
    pixels.iter().map(|&byte| E::from_f64(f64::from(byte) / 255.0)).collect()
}
