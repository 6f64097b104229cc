//! The same in candle.

use anyhow::Result;
use candle_core::backprop::GradStore;
use candle_core::{D, Device, Tensor, Var};

use crate::Engine;
use crate::case::{Conv4, Encoder, Parameters};

fn variables(parameters: &Parameters) -> Result<Vec<Var>> {
    let variable = |parameter: &crate::case::Parameter| {
        Ok(Var::from_slice(&parameter.values, parameter.shape.as_slice(), &Device::Cpu)?)
    };
    parameters.0.iter().map(variable).collect()
}

fn gradients<'a>(store: &GradStore, variables: impl Iterator<Item = &'a Var>) -> Result<Vec<Vec<f32>>> {
    let of = |variable: &Var| {
        let gradient = store.get(variable).ok_or_else(|| anyhow::anyhow!("a parameter has no gradient"))?;
        Ok(gradient.flatten_all()?.to_vec1()?)
    };
    variables.map(of).collect()
}

pub struct Conv4Engine {
    variables: Vec<Var>,
    images: Tensor,
    slopes: Tensor,
}

impl Conv4Engine {
    pub fn new(case: &Conv4) -> Result<Self> {
        let images = Tensor::from_vec(case.planes(), (case.images, 3, 84, 84), &Device::Cpu)?;
        let slopes = Tensor::from_vec(case.slope_planes(), (case.images, 64, 5, 5), &Device::Cpu)?;
        Ok(Self { variables: variables(&case.parameters)?, images, slopes })
    }
}

impl Engine for Conv4Engine {
    fn step(&mut self) -> Result<Vec<Vec<f32>>> {
        let mut x = self.images.clone();
        for block in self.variables.chunks(4) {
            let [filters, _, scale, shift] = block else { unreachable!("four tensors a block") };
            let z = x.conv2d(filters, 1, 1, 1, 1)?;
            let centred = z.broadcast_sub(&z.mean_keepdim((0, 2, 3))?)?;
            let deviation = (centred.sqr()?.mean_keepdim((0, 2, 3))? + 1e-5)?.sqrt()?;
            let y = centred
                .broadcast_div(&deviation)?
                .broadcast_mul(&scale.reshape((1, 64, 1, 1))?)?
                .broadcast_add(&shift.reshape((1, 64, 1, 1))?)?
                .relu()?;
            // The gradient of candle's own `max_pool2d` (0.11.1) is too small, so pools are maxima of two
            // sides; the last row and column of odd sides are in no pool.
            let half = y.dim(2)? / 2;
            let even = y.narrow(2, 0, 2 * half)?.narrow(3, 0, 2 * half)?;
            x = even.reshape((y.dim(0)?, 64, half, 2, half, 2))?.max(5)?.max(3)?;
        }
        let store = (x * &self.slopes)?.sum_all()?.backward()?;
        let compared = self.variables.iter().enumerate().filter(|(place, _)| place % 4 != 1);
        gradients(&store, compared.map(|(_, variable)| variable))
    }
}

pub struct EncoderEngine<'a> {
    case: &'a Encoder,
    variables: Vec<Var>,
    ids: Tensor,
    slopes: Tensor,
}

impl<'a> EncoderEngine<'a> {
    pub fn new(case: &'a Encoder) -> Result<Self> {
        let ids = Tensor::from_slice(&case.ids, case.ids.len(), &Device::Cpu)?;
        let slopes = Tensor::from_slice(&case.slopes, (case.sizes.batch, case.sizes.hidden), &Device::Cpu)?;
        Ok(Self { case, variables: variables(&case.parameters)?, ids, slopes })
    }

    fn variable(&self, name: &str) -> &Tensor {
        &self.variables[self.case.parameters.place(name)]
    }

    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let weight = self.variable(&format!("{name}.weight"));
        Ok(x.matmul(&weight.t()?)?.broadcast_add(self.variable(&format!("{name}.bias")))?)
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + self.case.shape.epsilon)?.sqrt()?;
        Ok(centred
            .broadcast_div(&deviation)?
            .broadcast_mul(self.variable(&format!("{name}.weight")))?
            .broadcast_add(self.variable(&format!("{name}.bias")))?)
    }
}

impl Engine for EncoderEngine<'_> {
    fn step(&mut self) -> Result<Vec<Vec<f32>>> {
        let crate::case::Sizes { layers, hidden, batch, length } = self.case.sizes;
        let heads = hidden / 64;
        let words = self.variable("embeddings.word").index_select(&self.ids, 0)?;
        let positions = self.variable("embeddings.position").narrow(0, 0, length)?;
        let segment = self.variable("embeddings.segment").narrow(0, 0, 1)?;
        let sum = words.reshape((batch, length, hidden))?.broadcast_add(&positions)?;
        let sum = sum.reshape((batch * length, hidden))?.broadcast_add(&segment)?;
        let mut x = self.norm(&sum, "embeddings.norm")?;
        for layer in 0..layers {
            let part = |name: &str| -> Result<Tensor> {
                let rows = self.linear(&x, &format!("layer.{layer}.attention.{name}"))?;
                Ok(rows.reshape((batch, length, heads, 64))?.transpose(1, 2)?.contiguous()?)
            };
            let (query, key, value) = (part("query")?, part("key")?, part("value")?);
            let scores = (query.matmul(&key.t()?)? * 0.125)?;
            let mixed = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&value)?;
            let mixed = mixed.transpose(1, 2)?.reshape((batch * length, hidden))?;
            let attended = self.linear(&mixed, &format!("layer.{layer}.attention.output"))?;
            x = self.norm(&(x + attended)?, &format!("layer.{layer}.attention.norm"))?;
            let up = self.linear(&x, &format!("layer.{layer}.up"))?.gelu_erf()?;
            let down = self.linear(&up, &format!("layer.{layer}.down"))?;
            x = self.norm(&(x + down)?, &format!("layer.{layer}.norm"))?;
        }
        let first = x.reshape((batch, length, hidden))?.narrow(1, 0, 1)?.reshape((batch, hidden))?;
        let pooled = self.linear(&first, "pooler")?.tanh()?;
        let store = (pooled * &self.slopes)?.sum_all()?.backward()?;
        gradients(&store, self.variables.iter())
    }
}
