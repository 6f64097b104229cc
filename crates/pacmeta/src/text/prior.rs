//! The parameters of a text model: an encoder, and what the heads of tasks start from.

use pacmeta_tensor::encoder::EncoderShape;
use pacmeta_tensor::{Key, ParameterLayout, Parameters};
use serde::{Deserialize, Serialize};

use super::generator::Generator;
use crate::error::{Error, Result};
use crate::learners::head::HeadShape;

/// Where the head of a task starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TextHeads {
    /// At zero, for every task.
    Zero,
    /// At weights of its own for each of these training tasks (name and classes), and at zero for others.
    Learned {
        /// Names and numbers of classes.
        tasks: Vec<(String, usize)>,
    },
    /// At weights that a small network makes from the support.
    Generated,
}

/// The shape of a text model: everything about it except its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextPrior {
    /// The encoder.
    pub encoder: EncoderShape,
    /// v: layers below are shared, those from it on adapt.
    pub threshold: usize,
    /// Where heads start.
    pub heads: TextHeads,
}

impl TextPrior {
    /// A checked prior.
    ///
    /// # Errors
    /// When the threshold is beyond the layers, or heads are generated from layers that adapt.
    pub fn new(encoder: EncoderShape, threshold: usize, heads: TextHeads) -> Result<Self> {
        let prior = Self { encoder, threshold, heads };
        prior.check()?;
        Ok(prior)
    }

    /// Checks what comes from a file.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(&self) -> Result<()> {
        self.encoder.check()?;
        let layers = self.encoder.layers;
        if self.threshold > layers {
            let message = format!("it is {}, and the encoder has {layers} layers", self.threshold);
            return Err(Error::config("prior.threshold", message));
        }
        if self.heads == TextHeads::Generated && self.threshold < layers {
            let message = format!(
                "\"generated\" heads are made from features that do not adapt; leave out `prior.threshold`, or make it {layers}"
            );
            return Err(Error::config("prior.head", message));
        }
        Ok(())
    }

    /// Whether only the head adapts.
    pub fn only_head_adapts(&self) -> bool {
        self.threshold == self.encoder.layers
    }

    /// The number of shared parameters of the encoder; with v at the top, all of it.
    pub fn shared(&self) -> usize {
        match self.only_head_adapts() {
            true => self.encoder.boundary(self.encoder.layers) + self.pooler(),
            false => self.encoder.boundary(self.threshold),
        }
    }

    /// Parameters of the pooler.
    fn pooler(&self) -> usize {
        self.encoder.upper_layout(self.encoder.layers).map_or(0, |layout| layout.len())
    }

    /// The number of parameters of the whole encoder.
    pub fn encoder_len(&self) -> usize {
        self.encoder.boundary(self.encoder.layers) + self.pooler()
    }

    /// The head of a task with so many classes.
    pub fn head(&self, classes: usize) -> HeadShape {
        HeadShape { features: self.encoder.hidden, classes }
    }

    /// The network that makes heads, if there is one.
    pub fn generator(&self) -> Option<Generator> {
        (self.heads == TextHeads::Generated).then_some(Generator { features: self.encoder.hidden })
    }

    /// Names and shapes: those of the encoder, then `head.<task>.weight` and `head.<task>.bias` of each task, or the tensors
    /// `generator.*`.
    ///
    /// # Errors
    /// When the shape is impossible or two tasks have the same name.
    pub fn layout(&self) -> Result<ParameterLayout> {
        let mut builder = ParameterLayout::builder();
        for entry in self.encoder.layout()?.entries() {
            builder = builder.tensor(&entry.name, &entry.shape);
        }
        match &self.heads {
            TextHeads::Zero => {}
            TextHeads::Learned { tasks } => {
                for (name, classes) in tasks {
                    builder = builder
                        .tensor(&format!("head.{name}.weight"), &[*classes, self.encoder.hidden])
                        .tensor(&format!("head.{name}.bias"), &[*classes]);
                }
            }
            TextHeads::Generated => {
                for (name, shape) in (Generator { features: self.encoder.hidden }).tensors() {
                    builder = builder.tensor(name, &shape);
                }
            }
        }
        Ok(builder.build()?)
    }

    /// The parameters at the start: the encoder's, heads at zero, a generator that makes small heads.
    ///
    /// # Errors
    /// When the encoder's parameters are not those of the shape.
    pub fn start(&self, encoder: &Parameters<f32>, key: Key) -> Result<Parameters<f64>> {
        self.encoder.layout()?.check_same(encoder.layout())?;
        let mut parameters = Parameters::zeros(self.layout()?.into());
        for (value, &start) in parameters.values_mut().iter_mut().zip(encoder.values()) {
            *value = f64::from(start);
        }
        if let Some(generator) = self.generator() {
            generator.initialise(&mut parameters.values_mut()[encoder.values().len()..], key);
        }
        Ok(parameters)
    }

    /// Where the head of a training task lies in the flat buffer, if it has one of its own.
    pub fn head_range(&self, task: &str) -> Option<std::ops::Range<usize>> {
        let TextHeads::Learned { tasks } = &self.heads else { return None };
        let mut start = self.encoder_len();
        for (name, classes) in tasks {
            let end = start + self.head(*classes).parameters();
            if name == task {
                return Some(start..end);
            }
            start = end;
        }
        None
    }
}
