//! The fast path: 64 filters, pools, up to three channels.
//!
//! Images are cut into groups by their number alone (those whose statistics normalise all, and the others apart). Groups run on rayon's threads; what is summed over images is summed
//! inside a group in the order of images, and then over groups in their order. So results do not depend on threads.

mod backward;
mod forward;

use std::ops::Range;
use std::sync::Mutex;

use super::Moments;
use super::block::Scratch;
use super::filters::Filters;
use super::first_layer::{MAX_CHANNELS, Padded, Patch};
use super::geometry::Geometry;
use super::gram::Gram;
use super::pixel::{FILTERS, Pixel, Positions, Sums};
use super::plain::Decisions;
use super::shape::{BlockPlaces, BlockShape, ConvShape, Downsampling};
use super::tiles::Affine;

/// Images in a group, as far as there are enough for two groups.
const GROUP: usize = 5;

/// Points of tiles that go through a block at a time: 28 tiles of six, whose transforms, half a megabyte, leave room for filters in the
/// second-level cache.
const PIECE_POINTS: usize = 28 * 64;

/// The size of a block's tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tile {
    Three,
    Four,
    Six,
}

impl Tile {
    /// Larger tiles multiply less and transform more. Those of six have filters that no longer fit into the second-level cache: they
    /// are taken where those of four fit badly, as for miniImageNet's 42 x 42, where they were measured, and where a group has
    /// enough tiles to be worth reading the filters.
    fn for_outputs(output: [usize; 2]) -> Tile {
        let tiles = |tile: Tile| output.map(|size| size.div_ceil(tile.side())).into_iter().product::<usize>();
        let [three, four, six] = [Tile::Three, Tile::Four, Tile::Six].map(|tile| tiles(tile) * tile.points());
        if 100 * six < 75 * three.min(four) && GROUP * tiles(Tile::Six) >= 40 {
            Tile::Six
        } else if 100 * four < 85 * three {
            Tile::Four
        } else {
            Tile::Three
        }
    }

    /// Rows and columns of outputs.
    fn side(self) -> usize {
        match self {
            Tile::Three => 3,
            Tile::Four => 4,
            Tile::Six => 6,
        }
    }

    /// Points at which channels are multiplied by a matrix.
    fn points(self) -> usize {
        (self.side() + 2).pow(2)
    }
}

/// The plan of a body on the fast path.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    shape: ConvShape,
    shapes: Vec<BlockShape>,
    places: Vec<BlockPlaces>,
    /// Of the blocks behind the first.
    tiles: Vec<(Tile, Geometry)>,
}

/// What a forward pass leaves for the backward pass, and room that is used again.
#[derive(Default)]
pub(super) struct Buffers {
    shape: Option<ConvShape>,
    groups: Vec<Range<usize>>,
    /// The images whose statistics normalise all; 0 for given ones.
    counted: usize,
    padded: Vec<f32>,
    weight: Vec<Pixel>,
    gram: Vec<Gram>,
    positions: Vec<[u8; FILTERS]>,
    blocks: Vec<Block>,
    features: Vec<f32>,
    /// Of each group: sums of V' Y at the points of a block's tiles.
    gradients: Vec<Vec<Pixel>>,
    first_gradients: Vec<[Patch; FILTERS]>,
    scratch: Mutex<Vec<Scratch>>,
}

struct Block {
    /// 1 or -1: the sign of the scale.
    signs: [f32; FILTERS],
    filters: Filters,
    output: Vec<Pixel>,
    taken: Vec<Pixel>,
    positions: Vec<Positions>,
    slopes: Vec<Pixel>,
    affine: Affine,
    moments: Moments,
    /// The mean of the turned filters, without bias.
    mean: Sums,
    inverse_deviation: Sums,
}

impl Default for Block {
    fn default() -> Self {
        Block {
            signs: [1.0; FILTERS],
            filters: Filters::default(),
            output: Vec::new(),
            taken: Vec::new(),
            positions: Vec::new(),
            slopes: Vec::new(),
            affine: Affine { scale: Pixel::ZERO, shift: Pixel::ZERO, mean: Pixel::ZERO },
            moments: Moments { mean: Vec::new(), variance: Vec::new() },
            mean: [0.0; FILTERS],
            inverse_deviation: [0.0; FILTERS],
        }
    }
}

impl Plan {
    /// A plan, if the fast path takes this shape.
    pub(super) fn new(shape: &ConvShape, shapes: &[BlockShape]) -> Option<Plan> {
        let fits = shape.filters == FILTERS
            && shape.channels <= MAX_CHANNELS
            && shape.downsampling == Downsampling::MaxPool;
        fits.then(|| Plan {
            shape: *shape,
            shapes: shapes.to_vec(),
            places: shape.places(shapes),
            tiles: shapes[1..]
                .iter()
                .map(|block| {
                    let tile = Tile::for_outputs(block.output);
                    let piece = PIECE_POINTS / tile.points();
                    (tile, Geometry::new(block.output, block.pooled, tile.side(), piece))
                })
                .collect(),
        })
    }

    /// Padded images, given their numbers.
    fn padded<'a>(&self, values: &'a [f32]) -> Padded<'a> {
        let ConvShape { height, width, channels, .. } = self.shape;
        Padded { values, height, width, channels }
    }
}

/// Row i of M w for one filter.
fn gram_row(gram: &Gram, i: usize, weight: &[Pixel], filter: usize) -> f64 {
    let entry = |j: usize| gram[i.min(j)][i.max(j)];
    weight.iter().enumerate().map(|(j, weight)| entry(j) * f64::from(weight.0[filter])).sum()
}

fn add_in_order(sums: &[[Sums; 2]]) -> [Sums; 2] {
    let mut total = [[0.0; FILTERS]; 2];
    for sums in sums {
        for (total, sums) in total.iter_mut().zip(sums) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
    }
    total
}

/// Room of an earlier worker, or new room. A lock that a panic poisoned holds nothing that could be wrong.
fn take_scratch(pool: &Mutex<Vec<Scratch>>) -> Scratch {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop().unwrap_or_default()
}

fn give_scratch(pool: &Mutex<Vec<Scratch>>, scratch: Scratch) {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(scratch);
}

impl Buffers {
    pub(super) fn new(shape: &ConvShape) -> Self {
        Buffers { shape: Some(*shape), ..Buffers::default() }
    }

    /// The sizes that the room is for.
    pub(super) fn shape(&self) -> Option<&ConvShape> {
        self.shape.as_ref()
    }

    pub(super) fn features_len(&self) -> usize {
        self.features.len()
    }

    pub(super) fn moments(&self) -> Vec<Moments> {
        self.blocks.iter().map(|block| block.moments.clone()).collect()
    }

    pub(super) fn decisions(&self) -> Decisions {
        let mut decisions = Decisions::default();
        for (index, block) in self.blocks.iter().enumerate() {
            decisions.positions.push(match index {
                0 => self.positions.as_flattened().to_vec(),
                _ => {
                    block.positions.iter().flat_map(|pixel| pixel.0.map(|position| position as u8)).collect()
                }
            });
            let active = |pixel: &Pixel| {
                let Affine { scale, shift, .. } = &block.affine;
                std::array::from_fn::<_, FILTERS, _>(|c| pixel.0[c].mul_add(scale.0[c], shift.0[c]) > 0.0)
            };
            decisions.active.push(block.taken.iter().flat_map(active).collect());
        }
        decisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::{Images, Statistics, plain};
    use crate::simd::every_arch;

    #[test]
    fn tiles_fit_the_outputs() {
        let sides = [42, 30, 21, 18, 10, 6, 5, 1];
        let tiles = sides.map(|side| Tile::for_outputs([side, side]));
        use Tile::{Four, Six, Three};
        assert_eq!(tiles, [Six, Six, Three, Six, Four, Three, Three, Three]);
    }

    #[test]
    fn every_instruction_set_is_right() {
        right_on_every_instruction_set([27, 22], &[Tile::Three, Tile::Three]);
        right_on_every_instruction_set([36, 37], &[Tile::Six, Tile::Three, Tile::Four]);
        // several pieces an image
        assert!(right_on_every_instruction_set([64, 64], &[Tile::Four]) > 1);
        assert!(right_on_every_instruction_set([108, 108], &[Tile::Six]) > 1);
    }

    /// Returns the pieces of an image in its second block.
    fn right_on_every_instruction_set([height, width]: [usize; 2], tiles: &[Tile]) -> usize {
        let shape = ConvShape { height, width, blocks: 1 + tiles.len(), ..ConvShape::MINI_IMAGENET };
        let shapes = shape.block_shapes().unwrap();
        let plan = Plan::new(&shape, &shapes).unwrap();
        assert_eq!(plan.tiles.iter().map(|(tile, _)| *tile).collect::<Vec<_>>(), tiles);
        let number = |i: usize| ((i * i % 10_007) as f32 * 0.37).sin();
        let parameters: Vec<f32> = (0..shape.layout().unwrap().len()).map(number).collect();
        let images: Vec<f32> = (0..3 * shape.image_len()).map(|i| 0.5 + 0.5 * number(i + 5)).collect();
        let double = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let statistics = [Statistics::Batch, Statistics::First(2)];
        for (arch, statistics) in every_arch().into_iter().flat_map(|arch| statistics.map(|of| (arch, of))) {
            let mut buffers = Buffers::new(&shape);
            let input = Images::Floats(&images);
            let features = plan.forward(arch, &parameters, input, 3, statistics, &mut buffers).to_vec();
            let slopes: Vec<f32> = (0..features.len()).map(|i| number(i + 9)).collect();
            let mut gradient = vec![0.0; parameters.len()];
            plan.backward(arch, &parameters, &slopes, &mut buffers, &mut gradient);
            let (exact, decisions) = (double(&parameters), buffers.decisions());
            let pass = plain::forward(&shape, &exact, &double(&images), statistics, Some(&decisions));
            let mut expected = vec![0.0; parameters.len()];
            pass.unwrap().backward(&exact, &double(&slopes), &mut expected).unwrap();
            for places in &plan.places {
                for range in [&places.weight, &places.scale, &places.shift] {
                    let error: f64 =
                        range.clone().map(|i| (f64::from(gradient[i]) - expected[i]).powi(2)).sum();
                    let size: f64 = range.clone().map(|i| expected[i].powi(2)).sum();
                    assert!(
                        error < 1e-10 * size,
                        "{arch:?}, {statistics:?}, {range:?}: {error:e} of {size:e}"
                    );
                }
            }
        }
        plan.tiles[0].1.pieces(1).count()
    }
}
