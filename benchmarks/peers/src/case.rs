//! The numbers that all frameworks work on.

use anyhow::{Result, ensure};
use clap::Args;
use pacmeta_tensor::conv::{ConvBody, ConvShape};
use pacmeta_tensor::encoder::EncoderShape;
use pacmeta_tensor::{Entry, Generator, Key, ParameterLayout};

/// A parameter.
pub struct Parameter {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// Parameters that are looked up by name.
pub struct Parameters(pub Vec<Parameter>);

impl Parameters {
    fn draw(layout: &ParameterLayout, generator: &mut Generator, half_width: f64) -> Self {
        let draw = |entry: &Entry| {
            let is_scale = entry.name.ends_with("norm.weight") || entry.name.ends_with("scale");
            let one = |generator: &mut Generator| match is_scale {
                true => 1.0,
                false => generator.uniform_in(-half_width, half_width) as f32,
            };
            let values = entry.range().map(|_| one(generator)).collect();
            Parameter { name: entry.name.to_string(), shape: entry.shape.to_vec(), values }
        };
        Self(layout.entries().iter().map(draw).collect())
    }

    /// All of them in one buffer, as pacmeta has them.
    pub fn flat(&self) -> Vec<f32> {
        self.0.iter().flat_map(|parameter| parameter.values.iter().copied()).collect()
    }

    /// Where a parameter is.
    pub fn place(&self, name: &str) -> usize {
        self.0.iter().position(|parameter| parameter.name == name).expect("a parameter of the layout")
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|parameter| parameter.name.clone()).collect()
    }
}

/// MAML's body on images of noise. Biases before batch norm have no effect and are left out by the other frameworks.
pub struct Conv4 {
    pub body: ConvBody,
    pub images: usize,
    pub parameters: Parameters,
    /// Image, row, column, channel.
    pub pixels: Vec<u8>,
    /// Gradients at the features, in the same order.
    pub slopes: Vec<f32>,
}

impl Conv4 {
    pub fn new(images: usize) -> Result<Self> {
        ensure!(images > 0, "expected one image or more");
        let body = ConvBody::new(ConvShape::MINI_IMAGENET)?;
        let mut generator = Key::new(0).named("conv4").generator();
        let parameters = Parameters::draw(body.layout(), &mut generator, 0.07);
        let pixels = (0..images * body.shape().image_len()).map(|_| generator.below(256) as u8).collect();
        let slopes = (0..images * body.feature_count()).map(|_| generator.normal() as f32).collect();
        Ok(Self { body, images, parameters, pixels, slopes })
    }

    /// The names of parameters that are compared.
    pub fn names(&self) -> Vec<String> {
        self.parameters.names().into_iter().filter(|name| !name.ends_with("conv.bias")).collect()
    }

    /// Pixels as numbers in the order image, channel, row, column.
    pub fn planes(&self) -> Vec<f32> {
        let numbers: Vec<f32> = self.pixels.iter().map(|&byte| f32::from(byte) / 255.0).collect();
        channels_first(&numbers, self.images, 3)
    }

    /// Gradients at the features in the order image, channel, row, column.
    pub fn slope_planes(&self) -> Vec<f32> {
        channels_first(&self.slopes, self.images, 64)
    }
}

fn channels_first(values: &[f32], images: usize, channels: usize) -> Vec<f32> {
    let places = values.len() / images / channels;
    let of_image = |image: &[f32]| -> Vec<f32> {
        (0..channels * places).map(|at| image[at % places * channels + at / places]).collect()
    };
    values.chunks(channels * places).flat_map(of_image).collect()
}

/// Sizes of the encoder and of its batch.
#[derive(Clone, Copy, Debug, Args)]
pub struct Sizes {
    #[arg(long, default_value_t = 12)]
    pub layers: usize,
    #[arg(long, default_value_t = 768)]
    pub hidden: usize,
    #[arg(long, default_value_t = 8)]
    pub batch: usize,
    #[arg(long, default_value_t = 64)]
    pub length: usize,
}

/// BERT's architecture on random tokens, all of the same length and segment.
pub struct Encoder {
    pub shape: EncoderShape,
    pub sizes: Sizes,
    pub parameters: Parameters,
    pub ids: Vec<u32>,
    /// Gradients at the pooler's output.
    pub slopes: Vec<f32>,
}

impl Encoder {
    pub fn new(sizes: Sizes) -> Result<Self> {
        let Sizes { layers, hidden, batch, length } = sizes;
        ensure!(hidden > 0 && hidden % 64 == 0, "the hidden size is {hidden}, expected a multiple of 64");
        let heads = hidden / 64;
        let shape =
            EncoderShape { layers, hidden, heads, intermediate: 4 * hidden, ..EncoderShape::BERT_BASE };
        let mut generator = Key::new(0).named("encoder").generator();
        let parameters = Parameters::draw(&shape.layout()?, &mut generator, 0.035);
        let ids = (0..batch * length).map(|_| generator.below(shape.vocabulary) as u32).collect();
        let slopes = (0..batch * hidden).map(|_| generator.normal() as f32).collect();
        Ok(Self { shape, sizes, parameters, ids, slopes })
    }

    pub fn names(&self) -> Vec<String> {
        self.parameters.names()
    }
}
