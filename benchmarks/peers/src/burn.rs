//! The same in burn, on any of its backends.

use ::burn::tensor::activation::{gelu, relu, softmax, tanh};
use ::burn::tensor::backend::AutodiffBackend;
use ::burn::tensor::module::{conv2d, max_pool2d};
use ::burn::tensor::ops::ConvOptions;
use ::burn::tensor::{Int, Tensor, TensorData};
use anyhow::Result;

use crate::Engine;
use crate::case::{Conv4, Encoder, Parameter};

fn tensor<B: AutodiffBackend, const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &B::Device::default())
}

fn numbers<B: AutodiffBackend, const D: usize>(
    parameter: &Tensor<B, D>,
    gradients: &B::Gradients,
) -> Result<Vec<f32>> {
    let gradient = parameter.grad(gradients).ok_or_else(|| anyhow::anyhow!("a parameter has no gradient"))?;
    gradient.into_data().to_vec().map_err(|error| anyhow::anyhow!("{error:?}"))
}

struct Block<B: AutodiffBackend> {
    filters: Tensor<B, 4>,
    scale: Tensor<B, 1>,
    shift: Tensor<B, 1>,
}

pub struct Conv4Engine<B: AutodiffBackend> {
    blocks: Vec<Block<B>>,
    images: Tensor<B, 4>,
    slopes: Tensor<B, 4>,
}

impl<B: AutodiffBackend> Conv4Engine<B> {
    pub fn new(case: &Conv4) -> Self {
        let block = |parameters: &[Parameter]| {
            let [filters, _, scale, shift] = parameters else { unreachable!("four tensors a block") };
            let shape = <[usize; 4]>::try_from(filters.shape.as_slice()).expect("filters have four sides");
            Block {
                filters: tensor(&filters.values, shape).require_grad(),
                scale: tensor(&scale.values, [64]).require_grad(),
                shift: tensor(&shift.values, [64]).require_grad(),
            }
        };
        Self {
            blocks: case.parameters.0.chunks(4).map(block).collect(),
            images: tensor(&case.planes(), [case.images, 3, 84, 84]),
            slopes: tensor(&case.slope_planes(), [case.images, 64, 5, 5]),
        }
    }
}

impl<B: AutodiffBackend> Engine for Conv4Engine<B> {
    fn step(&mut self) -> Result<Vec<Vec<f32>>> {
        let mean = |x: Tensor<B, 4>| x.mean_dim(0).mean_dim(2).mean_dim(3);
        let mut x = self.images.clone();
        for block in &self.blocks {
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            let z = conv2d(x, block.filters.clone(), None, options);
            let centred = z.clone() - mean(z);
            let deviation = (mean(centred.clone() * centred.clone()) + 1e-5).sqrt();
            let y = centred / deviation * block.scale.clone().reshape([1, 64, 1, 1])
                + block.shift.clone().reshape([1, 64, 1, 1]);
            x = max_pool2d(relu(y), [2, 2], [2, 2], [0, 0], [1, 1], false);
        }
        let gradients = (x * self.slopes.clone()).sum().backward();
        let mut found = Vec::new();
        for block in &self.blocks {
            found.push(numbers(&block.filters, &gradients)?);
            found.push(numbers(&block.scale, &gradients)?);
            found.push(numbers(&block.shift, &gradients)?);
        }
        Ok(found)
    }
}

/// A parameter of either kind.
enum Place<B: AutodiffBackend> {
    Vector(Tensor<B, 1>),
    Matrix(Tensor<B, 2>),
}

pub struct EncoderEngine<'a, B: AutodiffBackend> {
    case: &'a Encoder,
    places: Vec<Place<B>>,
    ids: Tensor<B, 1, Int>,
    slopes: Tensor<B, 2>,
}

impl<'a, B: AutodiffBackend> EncoderEngine<'a, B> {
    pub fn new(case: &'a Encoder) -> Self {
        let place = |parameter: &Parameter| match parameter.shape[..] {
            [length] => Place::Vector(tensor(&parameter.values, [length]).require_grad()),
            [rows, columns] => Place::Matrix(tensor(&parameter.values, [rows, columns]).require_grad()),
            _ => unreachable!("an encoder has vectors and matrices"),
        };
        let ids: Vec<i64> = case.ids.iter().map(|&id| i64::from(id)).collect();
        let count = ids.len();
        Self {
            case,
            places: case.parameters.0.iter().map(place).collect(),
            ids: Tensor::from_data(TensorData::new(ids, [count]), &B::Device::default()),
            slopes: tensor(&case.slopes, [case.sizes.batch, case.sizes.hidden]),
        }
    }

    fn vector(&self, name: &str) -> Tensor<B, 2> {
        match &self.places[self.case.parameters.place(name)] {
            Place::Vector(vector) => vector.clone().unsqueeze(),
            Place::Matrix(_) => unreachable!("{name} is a matrix"),
        }
    }

    fn matrix(&self, name: &str) -> Tensor<B, 2> {
        match &self.places[self.case.parameters.place(name)] {
            Place::Matrix(matrix) => matrix.clone(),
            Place::Vector(_) => unreachable!("{name} is a vector"),
        }
    }

    fn linear(&self, x: Tensor<B, 2>, name: &str) -> Tensor<B, 2> {
        x.matmul(self.matrix(&format!("{name}.weight")).transpose()) + self.vector(&format!("{name}.bias"))
    }

    fn norm(&self, x: Tensor<B, 2>, name: &str) -> Tensor<B, 2> {
        let centred = x.clone() - x.mean_dim(1);
        let deviation = ((centred.clone() * centred.clone()).mean_dim(1) + self.case.shape.epsilon).sqrt();
        centred / deviation * self.vector(&format!("{name}.weight")) + self.vector(&format!("{name}.bias"))
    }
}

impl<B: AutodiffBackend> Engine for EncoderEngine<'_, B> {
    fn step(&mut self) -> Result<Vec<Vec<f32>>> {
        let crate::case::Sizes { layers, hidden, batch, length } = self.case.sizes;
        let heads = hidden / 64;
        let words = self.matrix("embeddings.word").select(0, self.ids.clone());
        let positions = self.matrix("embeddings.position").slice([0..length]);
        let segment = self.matrix("embeddings.segment").slice([0..1]);
        let sum: Tensor<B, 3> = words.reshape([batch, length, hidden]) + positions.unsqueeze();
        let sum = sum.reshape([batch * length, hidden]) + segment;
        let mut x = self.norm(sum, "embeddings.norm");
        for layer in 0..layers {
            let part = |name: &str| -> Tensor<B, 4> {
                let rows = self.linear(x.clone(), &format!("layer.{layer}.attention.{name}"));
                rows.reshape([batch, length, heads, 64]).swap_dims(1, 2)
            };
            let scores = part("query").matmul(part("key").transpose()) * 0.125;
            let mixed = softmax(scores, 3).matmul(part("value"));
            let mixed = mixed.swap_dims(1, 2).reshape([batch * length, hidden]);
            let attended = self.linear(mixed, &format!("layer.{layer}.attention.output"));
            x = self.norm(x + attended, &format!("layer.{layer}.attention.norm"));
            let up = gelu(self.linear(x.clone(), &format!("layer.{layer}.up")));
            let down = self.linear(up, &format!("layer.{layer}.down"));
            x = self.norm(x + down, &format!("layer.{layer}.norm"));
        }
        let first = x.reshape([batch, length, hidden]).slice([0..batch, 0..1]).reshape([batch, hidden]);
        let pooled = tanh(self.linear(first, "pooler"));
        let gradients = (pooled * self.slopes.clone()).sum().backward();
        let found = |place: &Place<B>| match place {
            Place::Vector(vector) => numbers(vector, &gradients),
            Place::Matrix(matrix) => numbers(matrix, &gradients),
        };
        self.places.iter().map(found).collect()
    }
}
