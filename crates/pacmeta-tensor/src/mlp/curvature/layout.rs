//! Parameters as the passes want them: rows padded to whole vectors, everything in one buffer.
//!
//! The first hidden layer is kept as W' [in, padded out], since nothing is propagated back through it; the other hidden
//! layers as W [out, padded in]; the output layer as one padded row and its bias. With a single input and widths that are
//! multiples of [`PADDING`](crate::simd::PADDING) this is the order of the flat parameters themselves.

use pulp::{Simd, WithSimd};

use crate::simd::padded;

/// Where a layer lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layer {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// The place of the weight in packed parameters.
    pub(super) weight: usize,
    /// The place of the bias there, which is the end of the weight.
    pub(super) bias: usize,
}

impl Layer {
    /// The end of the layer.
    pub(super) fn end(&self) -> usize {
        self.bias + padded(self.outputs)
    }
}

/// The layers of a perceptron with one output.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) hidden: Vec<Layer>,
    /// The output layer; its bias is a single number.
    pub(super) head: Layer,
}

impl Layout {
    pub(super) fn new(widths: &[usize]) -> Self {
        let mut place = 0;
        let mut layers: Vec<Layer> = widths
            .windows(2)
            .enumerate()
            .map(|(index, pair)| {
                let (inputs, outputs) = (pair[0], pair[1]);
                let last = index + 2 == widths.len();
                let size =
                    if index == 0 && !last { inputs * padded(outputs) } else { outputs * padded(inputs) };
                let layer = Layer { inputs, outputs, weight: place, bias: place + size };
                place = layer.end();
                layer
            })
            .collect();
        let head = layers.pop().unwrap_or(Layer { inputs: 0, outputs: 1, weight: 0, bias: 0 });
        Self { hidden: layers, head }
    }

    /// Features of an input.
    pub(super) fn dimension(&self) -> usize {
        self.hidden.first().unwrap_or(&self.head).inputs
    }

    /// The length of packed parameters.
    pub(super) fn size(&self) -> usize {
        self.head.bias + 1
    }

    /// Calls `visit(flat range start, packed place, length)` for every run of numbers that are neighbours in both.
    fn runs(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let mut flat = 0;
        for (index, layer) in self.hidden.iter().chain([&self.head]).enumerate() {
            let Layer { inputs, outputs, weight, bias } = *layer;
            if index == 0 && !self.hidden.is_empty() {
                if inputs == 1 {
                    visit(flat, weight, outputs);
                } else {
                    for position in 0..inputs * outputs {
                        let (output, input) = (position / inputs, position % inputs);
                        visit(flat + position, weight + input * padded(outputs) + output, 1);
                    }
                }
            } else if inputs == padded(inputs) {
                visit(flat, weight, inputs * outputs);
            } else {
                for output in 0..outputs {
                    visit(flat + output * inputs, weight + output * padded(inputs), inputs);
                }
            }
            flat += inputs * outputs;
            visit(flat, bias, outputs);
            flat += outputs;
        }
    }

    /// Packs flat parameters; the padding of `packed` must be zero and stays so.
    pub(super) fn pack(&self, flat: &[f64], packed: &mut [f64]) {
        self.runs(|from, to, length| packed[to..to + length].copy_from_slice(&flat[from..from + length]));
    }

    /// The reverse of [`Layout::pack`].
    pub(super) fn unpack(&self, packed: &[f64], flat: &mut [f64]) {
        self.runs(|to, from, length| flat[to..to + length].copy_from_slice(&packed[from..from + length]));
    }

    /// Adds packed numbers to flat ones.
    pub(super) fn add_unpacked(&self, packed: &[f64], flat: &mut [f64]) {
        self.runs(|to, from, length| {
            flat[to..to + length]
                .iter_mut()
                .zip(&packed[from..from + length])
                .for_each(|(sum, value)| *sum += value);
        });
    }
}

/// Writes W' [in, padded out] from W [out, padded in], in blocks of four by four.
pub(super) struct Transpose<'a> {
    pub(super) layer: Layer,
    pub(super) weight: &'a [f64],
    pub(super) transposed: &'a mut [f64],
}

impl WithSimd for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { layer: Layer { inputs, outputs, .. }, weight, transposed } = self;
        let (stride, transposed_stride) = (padded(inputs), padded(outputs));
        let whole = outputs - outputs % 4;
        for row in (0..whole).step_by(4) {
            for column in (0..inputs).step_by(4) {
                let block: [[f64; 4]; 4] = std::array::from_fn(|r| {
                    let place = (row + r) * stride + column;
                    std::array::from_fn(|c| weight[place..place + 4][c])
                });
                for c in 0..4.min(inputs - column) {
                    let place = (column + c) * transposed_stride + row;
                    let values: [f64; 4] = std::array::from_fn(|r| block[r][c]);
                    transposed[place..place + 4].copy_from_slice(&values);
                }
            }
        }
        for row in whole..outputs {
            for column in 0..inputs {
                transposed[column * transposed_stride + row] = weight[row * stride + column];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::Arch;

    use super::*;
    use crate::mlp::parameter_count;

    #[test]
    fn packing_and_unpacking_are_inverse() {
        for widths in [vec![3, 1], vec![1, 32, 32, 1], vec![2, 5, 4, 7, 1], vec![1, 3, 1]] {
            let layout = Layout::new(&widths);
            let flat: Vec<f64> = (0..parameter_count(&widths)).map(|i| i as f64 + 1.0).collect();
            let mut packed = vec![0.0; layout.size()];
            layout.pack(&flat, &mut packed);
            assert_eq!(packed.iter().filter(|value| **value != 0.0).count(), flat.len(), "{widths:?}");
            let mut back = vec![0.0; flat.len()];
            layout.unpack(&packed, &mut back);
            assert_eq!(back, flat);
            layout.add_unpacked(&packed, &mut back);
            assert!(back.iter().zip(&flat).all(|(twice, once)| *twice == 2.0 * once));
        }
    }

    #[test]
    fn transposes_whole_blocks_and_remainders() {
        for (inputs, outputs) in [(32, 32), (5, 7), (4, 3), (1, 9), (10, 4)] {
            let layer = Layer { inputs, outputs, weight: 0, bias: 0 };
            let weight: Vec<f64> = (0..outputs * padded(inputs)).map(|i| i as f64).collect();
            let mut transposed = vec![-1.0; inputs * padded(outputs)];
            Arch::new().dispatch(Transpose { layer, weight: &weight, transposed: &mut transposed });
            for (row, column) in (0..outputs).flat_map(|row| (0..inputs).map(move |column| (row, column))) {
                assert_eq!(transposed[column * padded(outputs) + row], weight[row * padded(inputs) + column]);
            }
        }
    }
}
