//! Networks as priors: N(p, sigma^2 I) over the parameters of a perceptron x -> y, tanh between layers.

use pacmeta_tensor::ParameterLayout;
use serde::{Deserialize, Serialize};

use super::{check_widths, perceptron_tensors};
use crate::error::Result;

/// The shape of a network prior for regression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSpec {
    /// Features of an input.
    pub dimension: usize,
    /// Hidden widths.
    pub hidden: Vec<usize>,
}

impl NetworkSpec {
    /// The widths, input first, one output last.
    pub fn widths(&self) -> Vec<usize> {
        [&[self.dimension], &self.hidden[..], &[1]].concat()
    }

    /// The names and shapes of the parameters: those of a Gaussian process's mean network.
    ///
    /// # Errors
    /// When a width is 0 or absurdly large.
    pub fn layout(&self) -> Result<ParameterLayout> {
        check_widths(&[self.widths()])?;
        Ok(perceptron_tensors(ParameterLayout::builder(), "mean.", &self.widths()).build()?)
    }
}
