//! A block of 64 filters on 64 channels, by Winograd's convolution, with everything around it fused.
//!
//! Batch norm with a positive scale is increasing, so the pool comes first: what a pool takes of z is what it would take of y. (A
//! filter with a negative scale has its sign turned, and its scale too, before anything starts.) Kept are z, what the
//! pools took of it, and where. The next block applies normalisation and rectifier while it loads.
//!
//! Backward, dz = g dy + a + b z with constants of the filter
//!
//! ```text
//! g = gamma / deviation,   b = -g dgamma / (N deviation),   a = -g dbeta / N - b mean
//! ```
//!
//! is computed where it is needed and never stored. With V = B' d B and Y = A dz A' at each point of the tiles: dU += V' Y,
//! and the gradient at the input is the overlapping sum of B (Y U') B'. Work runs in pieces of a few dozen tiles, so that
//! V and Y stay in the cache.

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::gemm::{accumulate, multiply};
use super::pixel::{FILTERS, Pixel, Positions, Sums, lanes};
use super::winograd::{Transform, two_dimensional};

/// The sizes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Rows and columns of input and convolution.
    pub(super) height: usize,
    pub(super) width: usize,
    /// Rows and columns that the pool makes.
    pub(super) pooled: [usize; 2],
    /// Rows and columns of tiles.
    pub(super) tiles: [usize; 2],
    /// Rows of tiles in a piece, at most all of an image's.
    pub(super) piece_rows: usize,
    /// Images in a piece, more than one only if a piece takes all rows.
    pub(super) piece_images: usize,
}

impl Geometry {
    /// Tiles of `tile` x `tile`, in pieces of about `piece` tiles.
    pub(super) fn new([height, width]: [usize; 2], pooled: [usize; 2], tile: usize, piece: usize) -> Self {
        let tiles = [height.div_ceil(tile), width.div_ceil(tile)];
        // pieces of equal numbers of rows, as far as that goes
        let pieces = (tiles[0] * tiles[1]).div_ceil(piece).min(tiles[0]);
        let piece_rows = tiles[0].div_ceil(pieces);
        let piece_images = if pieces == 1 { (piece / (tiles[0] * tiles[1])).max(1) } else { 1 };
        Geometry { height, width, pooled, tiles, piece_rows, piece_images }
    }

    /// Pixels of an image.
    pub(super) fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Pooled pixels of an image.
    pub(super) fn pooled_pixels(&self) -> usize {
        self.pooled[0] * self.pooled[1]
    }

    /// Room for a piece at one point of the tiles: an odd number of pixels, so that points fall on different cache sets.
    pub(super) fn stride(&self) -> usize {
        (self.piece_images * self.piece_rows * self.tiles[1]) | 1
    }

    /// Rows and columns of the room in which a piece's gradients at one image's input overlap.
    pub(super) fn overlap(&self, tile: usize) -> [usize; 2] {
        [self.piece_rows * tile + 2, self.tiles[1] * tile + 2]
    }

    /// The pieces of a group of `images` images: images and rows of tiles.
    fn pieces(self, images: usize) -> impl Iterator<Item = Piece> {
        let (step_images, step_rows) = (self.piece_images, self.piece_rows);
        (0..images).step_by(step_images).flat_map(move |image| {
            (0..self.tiles[0]).step_by(step_rows).map(move |row| Piece {
                images: [image, (image + step_images).min(images)],
                rows: [row, (row + step_rows).min(self.tiles[0])],
            })
        })
    }
}

/// Images and rows of tiles, from and to.
#[derive(Clone, Copy)]
struct Piece {
    images: [usize; 2],
    rows: [usize; 2],
}

impl Piece {
    /// Calls `visit` with the number, image, row and column of each tile.
    #[inline(always)]
    fn tiles(self, columns: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
        let mut tile = 0;
        for image in self.images[0]..self.images[1] {
            for row in self.rows[0]..self.rows[1] {
                for column in 0..columns {
                    visit(tile, image, row, column);
                    tile += 1;
                }
            }
        }
    }

    fn count(self, columns: usize) -> usize {
        (self.images[1] - self.images[0]) * (self.rows[1] - self.rows[0]) * columns
    }
}

/// What normalisation and rectifier do to a pooled value: max(0, scale * z + shift).
#[derive(Clone, Copy)]
pub(super) struct Affine {
    pub(super) scale: Pixel,
    pub(super) shift: Pixel,
    pub(super) mean: Pixel,
}

/// dz = g dy + a + b z.
#[derive(Clone, Copy)]
pub(super) struct Slope {
    pub(super) g: Pixel,
    pub(super) a: Pixel,
    pub(super) b: Pixel,
}

/// Buffers of a worker.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) input: Vec<Pixel>,
    pub(super) output: Vec<Pixel>,
    pub(super) overlap: Vec<Pixel>,
    pub(super) rows: Vec<Pixel>,
    pub(super) windows: Vec<[super::first_layer::Patch; 4]>,
}

/// V = B' d B of a piece's tiles.
#[inline(always)]
fn input_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
    simd: S,
    geometry: &Geometry,
    piece: Piece,
    taken: &[Pixel],
    affine: &Affine,
    points: &mut [Pixel],
) {
    let (height, width, stride) = (geometry.height, geometry.width, geometry.stride());
    let zero = simd.splat_f32s(0.0);
    piece.tiles(
        geometry.tiles[1],
        #[inline(always)]
        |tile, image, row, column| {
            let mut planes = points.chunks_exact_mut(stride);
            let to: [[&mut Pixel; T]; T] = std::array::from_fn(
                #[inline(always)]
                |_| {
                    std::array::from_fn(
                        #[inline(always)]
                        |_| &mut planes.next().expect("a plane for every point")[tile],
                    )
                },
            );
            let image = &taken[image * height * width..][..height * width];
            let inside = row > 0 && column > 0 && row * M + T - 1 <= height && column * M + T - 1 <= width;
            if inside {
                let mut lines: [&[Pixel; T]; T] = [&[Pixel::ZERO; T]; T];
                for i in 0..T {
                    let line = &image[(row * M + i - 1) * width + column * M - 1..];
                    lines[i] = line.first_chunk().expect("the tile is inside");
                }
                for v in 0..lanes::<S>() {
                    let (scale, shift) = (affine.scale.vectors::<S>()[v], affine.shift.vectors::<S>()[v]);
                    two_dimensional!(
                        simd, F::input, T => T,
                        (i, j) => simd.max_f32s(
                            zero,
                            simd.mul_add_e_f32s(lines[i][j].vectors::<S>()[v], scale, shift)
                        ),
                        value => to[i][j].vectors_mut::<S>()[v] = value
                    );
                }
            } else {
                let mut patch = [[None; T]; T];
                for i in 0..T {
                    for j in 0..T {
                        let (y, x) = (row * M + i, column * M + j);
                        if (1..=height).contains(&y) && (1..=width).contains(&x) {
                            patch[i][j] = Some(&image[(y - 1) * width + x - 1]);
                        }
                    }
                }
                for v in 0..lanes::<S>() {
                    let (scale, shift) = (affine.scale.vectors::<S>()[v], affine.shift.vectors::<S>()[v]);
                    two_dimensional!(
                        simd, F::input, T => T,
                        (i, j) => match patch[i][j] {
                            Some(pixel) => simd.max_f32s(
                                zero,
                                simd.mul_add_e_f32s(pixel.vectors::<S>()[v], scale, shift)
                            ),
                            None => zero,
                        },
                        value => to[i][j].vectors_mut::<S>()[v] = value
                    );
                }
            }
        },
    );
}

/// The forward pass of a group of images.
pub(super) struct Forward<'a, F> {
    pub(super) transform: PhantomData<F>,
    pub(super) geometry: Geometry,
    /// What the pools before took, and what becomes of it.
    pub(super) input: &'a [Pixel],
    pub(super) affine: &'a Affine,
    pub(super) filters: &'a [Pixel],
    /// The convolution's output.
    pub(super) output: &'a mut [Pixel],
    pub(super) taken: &'a mut [Pixel],
    pub(super) positions: &'a mut [Positions],
    /// Sums of z and of z squared.
    pub(super) sums: &'a mut [Sums; 2],
    pub(super) scratch: &'a mut Scratch,
}

impl<F> Forward<'_, F> {
    #[inline(always)]
    pub(super) fn run<S: Simd, const M: usize, const T: usize>(self, simd: S)
    where
        F: Transform<M, T>,
    {
        let geometry = self.geometry;
        let stride = geometry.stride();
        *self.sums = [[0.0; FILTERS]; 2];
        self.scratch.input.resize(T * T * stride, Pixel::ZERO);
        let images = self.input.len() / geometry.pixels();
        for piece in geometry.pieces(images) {
            let points = &mut self.scratch.input[..T * T * stride];
            input_tiles::<S, F, M, T>(simd, &geometry, piece, self.input, self.affine, points);
            let count = piece.count(geometry.tiles[1]);
            let (matrices, _) = self.filters.as_chunks::<FILTERS>();
            for (plane, matrix) in points.chunks_exact_mut(stride).zip(matrices) {
                multiply(simd, &mut plane[..count], matrix);
            }
            output_tiles::<S, F, M, T>(simd, &geometry, piece, points, self.output);
            if piece.rows[1] == geometry.tiles[0] {
                for image in piece.images[0]..piece.images[1] {
                    let pooled = image * geometry.pooled_pixels()..(image + 1) * geometry.pooled_pixels();
                    let output = &self.output[image * geometry.pixels()..][..geometry.pixels()];
                    let (taken, positions) = (&mut self.taken[pooled.clone()], &mut self.positions[pooled]);
                    pool(simd, &geometry, output, taken, positions, self.sums);
                }
            }
        }
    }
}

/// z = A' M A of a piece's tiles.
#[inline(always)]
fn output_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
    simd: S,
    geometry: &Geometry,
    piece: Piece,
    points: &[Pixel],
    output: &mut [Pixel],
) {
    let (height, width, stride) = (geometry.height, geometry.width, geometry.stride());
    piece.tiles(
        geometry.tiles[1],
        #[inline(always)]
        |tile, image, row, column| {
            let mut from: [[&Pixel; T]; T] = [[&Pixel::ZERO; T]; T];
            for (point, plane) in points.chunks_exact(stride).enumerate() {
                from[point / T][point % T] = &plane[tile];
            }
            let (rows, columns) = ((height - row * M).min(M), (width - column * M).min(M));
            let start = image * height * width + row * M * width + column * M;
            let output = &mut output[start..];
            for v in 0..lanes::<S>() {
                let mut values = [[simd.splat_f32s(0.0); M]; M];
                let mut middle = [[simd.splat_f32s(0.0); T]; M];
                for j in 0..T {
                    let mut line = [simd.splat_f32s(0.0); T];
                    for i in 0..T {
                        line[i] = from[i][j].vectors::<S>()[v];
                    }
                    let line = F::output(simd, line);
                    for i in 0..M {
                        middle[i][j] = line[i];
                    }
                }
                for i in 0..M {
                    values[i] = F::output(simd, middle[i]);
                }
                for i in 0..rows {
                    let line = &mut output[i * width..][..columns];
                    for (pixel, value) in line.iter_mut().zip(values[i]) {
                        pixel.vectors_mut::<S>()[v] = value;
                    }
                }
            }
        },
    );
}

/// Pools an image and adds up z and its square.
#[inline(always)]
fn pool<S: Simd>(
    simd: S,
    geometry: &Geometry,
    output: &[Pixel],
    taken: &mut [Pixel],
    positions: &mut [Positions],
    sums: &mut [Sums; 2],
) {
    let width = geometry.width;
    let [pooled_rows, pooled_columns] = geometry.pooled;
    for (row, lines) in output.chunks(2 * width).enumerate() {
        let mut line_sums = [Pixel::ZERO; 2];
        for v in 0..lanes::<S>() {
            let (mut sum, mut square) = ([simd.splat_f32s(0.0); 2], [simd.splat_f32s(0.0); 2]);
            let (pairs, rest) = if row < pooled_rows { (pooled_columns, 2 * pooled_columns) } else { (0, 0) };
            for column in 0..pairs {
                let at = [2 * column, 2 * column + 1, width + 2 * column, width + 2 * column + 1];
                let mut values = [simd.splat_f32s(0.0); 4];
                for p in 0..4 {
                    values[p] = lines[at[p]].vectors::<S>()[v];
                    sum[p % 2] = simd.add_f32s(sum[p % 2], values[p]);
                    square[p % 2] = simd.mul_add_e_f32s(values[p], values[p], square[p % 2]);
                }
                let (mut best, mut position) = (values[0], simd.splat_u32s(0));
                for p in 1..4 {
                    let better = simd.greater_than_f32s(values[p], best);
                    best = simd.select_f32s(better, values[p], best);
                    position = simd.select_u32s(better, simd.splat_u32s(p as u32), position);
                }
                let place = row * pooled_columns + column;
                taken[place].vectors_mut::<S>()[v] = best;
                positions[place].vectors_mut::<S>()[v] = position;
            }
            // an odd last row or column is not pooled, but counts
            for line in lines.chunks(width) {
                for pixel in &line[rest..] {
                    let value = pixel.vectors::<S>()[v];
                    sum[0] = simd.add_f32s(sum[0], value);
                    square[0] = simd.mul_add_e_f32s(value, value, square[0]);
                }
            }
            line_sums[0].vectors_mut::<S>()[v] = simd.add_f32s(sum[0], sum[1]);
            line_sums[1].vectors_mut::<S>()[v] = simd.add_f32s(square[0], square[1]);
        }
        for (sums, line) in sums.iter_mut().zip(&line_sums) {
            sums.iter_mut().zip(&line.0).for_each(|(sum, value)| *sum += f64::from(*value));
        }
    }
}

/// The backward pass of a group of images.
pub(super) struct Backward<'a, F, D> {
    pub(super) transform: PhantomData<F>,
    pub(super) geometry: Geometry,
    pub(super) input: &'a [Pixel],
    pub(super) affine: &'a Affine,
    pub(super) filters: &'a [Pixel],
    pub(super) output: &'a [Pixel],
    pub(super) positions: &'a [Positions],
    pub(super) slope: &'a Slope,
    /// dy at what this block's pools took.
    pub(super) slopes: &'a [Pixel],
    /// The sum of V' Y at each point.
    pub(super) gradient: &'a mut [Pixel],
    /// Sums of dy and of dy (z - mean) of the block before.
    pub(super) sums: &'a mut [Sums; 2],
    /// Takes the image, the first row, and rows of dy at what the pools of the block before took.
    pub(super) deliver: D,
    pub(super) scratch: &'a mut Scratch,
}

/// Takes finished rows of the gradient at a block's input.
pub(super) trait Deliver {
    fn rows<S: Simd>(
        &mut self,
        simd: S,
        image: usize,
        first_row: usize,
        rows: &[Pixel],
        scratch: &mut Vec<[super::first_layer::Patch; 4]>,
    );
}

impl<F, D: Deliver> Backward<'_, F, D> {
    #[inline(always)]
    pub(super) fn run<S: Simd, const M: usize, const T: usize>(mut self, simd: S)
    where
        F: Transform<M, T>,
    {
        let geometry = self.geometry;
        let (stride, [room_rows, room_columns]) = (geometry.stride(), geometry.overlap(M));
        *self.sums = [[0.0; FILTERS]; 2];
        self.gradient.fill(Pixel::ZERO);
        let scratch = self.scratch;
        scratch.input.resize(T * T * stride, Pixel::ZERO);
        scratch.output.resize(T * T * stride, Pixel::ZERO);
        let room = room_rows * room_columns;
        scratch.overlap.resize(geometry.piece_images * room, Pixel::ZERO);
        let images = self.input.len() / geometry.pixels();
        for piece in geometry.pieces(images) {
            let count = piece.count(geometry.tiles[1]);
            let input = &mut scratch.input[..T * T * stride];
            let output = &mut scratch.output[..T * T * stride];
            slope_tiles::<S, F, M, T>(
                simd,
                &geometry,
                piece,
                self.output,
                self.positions,
                self.slopes,
                self.slope,
                output,
            );
            input_tiles::<S, F, M, T>(simd, &geometry, piece, self.input, self.affine, input);
            let (matrices, _) = self.filters.as_chunks::<FILTERS>();
            let (gradients, _) = self.gradient.as_chunks_mut::<FILTERS>();
            let planes = input.chunks_exact(stride).zip(output.chunks_exact_mut(stride));
            for ((left, right), (matrix, gradient)) in planes.zip(matrices.iter().zip(gradients)) {
                accumulate(simd, gradient, &left[..count], &right[..count]);
                multiply(simd, &mut right[..count], matrix);
            }
            if piece.rows[0] > 0 {
                // the last two rows of the piece before are the first two of this one; everything else is written anew
                let from = geometry.piece_rows * M * room_columns;
                scratch.overlap.copy_within(from..from + 2 * room_columns, 0);
            }
            let overlap = &mut scratch.overlap[..geometry.piece_images * room];
            overlap_tiles::<S, F, M, T>(simd, &geometry, piece, output, overlap, [room, room_columns]);
            let last = piece.rows[1] == geometry.tiles[0];
            // row r of the room is row first + r - 1 of the image
            let first = piece.rows[0] * M;
            let end = if last { geometry.height + 1 } else { piece.rows[1] * M };
            for image in piece.images[0]..piece.images[1] {
                let overlap = &overlap[(image - piece.images[0]) * room..][..room];
                let begin = first.max(1);
                scratch.rows.resize((end - begin) * geometry.width, Pixel::ZERO);
                for row in begin..end {
                    let place = image * geometry.pixels() + (row - 1) * geometry.width;
                    rectify(
                        simd,
                        &overlap[(row - first) * room_columns + 1..][..geometry.width],
                        &self.input[place..][..geometry.width],
                        self.affine,
                        &mut scratch.rows[(row - begin) * geometry.width..][..geometry.width],
                        self.sums,
                    );
                }
                self.deliver.rows(simd, image, begin - 1, &scratch.rows, &mut scratch.windows);
            }
        }
    }
}

/// Y = A dz A' of a piece's tiles.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the terms of dz")]
fn slope_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
    simd: S,
    geometry: &Geometry,
    piece: Piece,
    output: &[Pixel],
    positions: &[Positions],
    slopes: &[Pixel],
    slope: &Slope,
    points: &mut [Pixel],
) {
    let (height, width, stride) = (geometry.height, geometry.width, geometry.stride());
    let [pooled_rows, pooled_columns] = geometry.pooled;
    let zero = simd.splat_f32s(0.0);
    piece.tiles(
        geometry.tiles[1],
        #[inline(always)]
        |tile, image, row, column| {
            let mut planes = points.chunks_exact_mut(stride);
            let to: [[&mut Pixel; T]; T] = std::array::from_fn(
                #[inline(always)]
                |_| {
                    std::array::from_fn(
                        #[inline(always)]
                        |_| &mut planes.next().expect("a plane for every point")[tile],
                    )
                },
            );
            let mut places = [[None; M]; M];
            let mut pools = [[(&Pixel::ZERO, &Positions::ZERO, u32::MAX); M]; M];
            for i in 0..M {
                for j in 0..M {
                    let (y, x) = (row * M + i, column * M + j);
                    if y < height && x < width {
                        places[i][j] = Some(&output[(image * height + y) * width + x]);
                        if y / 2 < pooled_rows && x / 2 < pooled_columns {
                            let place = (image * pooled_rows + y / 2) * pooled_columns + x / 2;
                            pools[i][j] = (&slopes[place], &positions[place], (y % 2 * 2 + x % 2) as u32);
                        }
                    }
                }
            }
            for v in 0..lanes::<S>() {
                let g = slope.g.vectors::<S>()[v];
                let (a, b) = (slope.a.vectors::<S>()[v], slope.b.vectors::<S>()[v]);
                let mut middle = [[zero; M]; T];
                for j in 0..M {
                    let mut line = [zero; M];
                    for i in 0..M {
                        if let Some(z) = places[i][j] {
                            let (slopes, positions, position) = pools[i][j];
                            let here =
                                simd.equal_u32s(positions.vectors::<S>()[v], simd.splat_u32s(position));
                            let slope = simd.select_f32s(here, slopes.vectors::<S>()[v], zero);
                            let rest = simd.mul_add_e_f32s(b, z.vectors::<S>()[v], a);
                            line[i] = simd.mul_add_e_f32s(g, slope, rest);
                        }
                    }
                    let line = F::output_adjoint(simd, line);
                    for i in 0..T {
                        middle[i][j] = line[i];
                    }
                }
                for i in 0..T {
                    let line = F::output_adjoint(simd, middle[i]);
                    for j in 0..T {
                        to[i][j].vectors_mut::<S>()[v] = line[j];
                    }
                }
            }
        },
    );
}

/// Adds B Y B' of a piece's tiles where they lie.
#[inline(always)]
fn overlap_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
    simd: S,
    geometry: &Geometry,
    piece: Piece,
    points: &[Pixel],
    overlap: &mut [Pixel],
    [room, room_columns]: [usize; 2],
) {
    let stride = geometry.stride();
    piece.tiles(
        geometry.tiles[1],
        #[inline(always)]
        |tile, image, row, column| {
            let mut from: [[&Pixel; T]; T] = [[&Pixel::ZERO; T]; T];
            for (point, plane) in points.chunks_exact(stride).enumerate() {
                from[point / T][point % T] = &plane[tile];
            }
            let room = &mut overlap[(image - piece.images[0]) * room..][..room];
            let mut lines = room[(row - piece.rows[0]) * M * room_columns..].chunks_exact_mut(room_columns);
            let to: [&mut [Pixel; T]; T] = std::array::from_fn(
                #[inline(always)]
                |_| {
                    let line = lines.next().expect("the room has all rows of a tile");
                    line[column * M..].first_chunk_mut().expect("the room has all columns of a tile")
                },
            );
            // what a tile above or to the left has written is added to, everything else is new
            if row > 0 && column > 0 {
                for v in 0..lanes::<S>() {
                    two_dimensional!(
                        simd, F::input_adjoint, T => T,
                        (i, j) => from[i][j].vectors::<S>()[v],
                        value => {
                            let place = &mut to[i][j].vectors_mut::<S>()[v];
                            *place = if i < 2 || j < 2 { simd.add_f32s(*place, value) } else { value };
                        }
                    );
                }
            } else {
                for v in 0..lanes::<S>() {
                    two_dimensional!(
                        simd, F::input_adjoint, T => T,
                        (i, j) => from[i][j].vectors::<S>()[v],
                        value => {
                            let place = &mut to[i][j].vectors_mut::<S>()[v];
                            let written = (i < 2 && row > 0) || (j < 2 && column > 0);
                            *place = if written { simd.add_f32s(*place, value) } else { value };
                        }
                    );
                }
            }
        },
    );
}

/// Backward through a rectifier, a row of pixels: dy where scale * z + shift > 0, and the sums of dy and dy (z - mean).
#[inline(always)]
pub(super) fn rectify<S: Simd>(
    simd: S,
    slopes: &[Pixel],
    taken: &[Pixel],
    affine: &Affine,
    to: &mut [Pixel],
    sums: &mut [Sums; 2],
) {
    let zero = simd.splat_f32s(0.0);
    let mut totals = [Pixel::ZERO; 2];
    for pair in 0..lanes::<S>() / 2 {
        let mut shift_sums = [zero; 2];
        let mut scale_sums = [zero; 2];
        for ((slope, taken), to) in slopes.iter().zip(taken).zip(to.iter_mut()) {
            for w in 0..2 {
                let v = 2 * pair + w;
                let z = taken.vectors::<S>()[v];
                let y =
                    simd.mul_add_e_f32s(z, affine.scale.vectors::<S>()[v], affine.shift.vectors::<S>()[v]);
                let active = simd.greater_than_f32s(y, zero);
                let slope = simd.select_f32s(active, slope.vectors::<S>()[v], zero);
                to.vectors_mut::<S>()[v] = slope;
                shift_sums[w] = simd.add_f32s(shift_sums[w], slope);
                let centred = simd.sub_f32s(z, affine.mean.vectors::<S>()[v]);
                scale_sums[w] = simd.mul_add_e_f32s(slope, centred, scale_sums[w]);
            }
        }
        for w in 0..2 {
            totals[0].vectors_mut::<S>()[2 * pair + w] = shift_sums[w];
            totals[1].vectors_mut::<S>()[2 * pair + w] = scale_sums[w];
        }
    }
    for (sums, total) in sums.iter_mut().zip(&totals) {
        sums.iter_mut().zip(&total.0).for_each(|(sum, value)| *sum += f64::from(*value));
    }
}

/// A pass that can be given vectors of the processor at hand.
pub(super) struct WithTiles<P, const M: usize, const T: usize>(pub(super) P);

impl<F: Transform<M, T>, const M: usize, const T: usize> WithSimd for WithTiles<Forward<'_, F>, M, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run::<S, M, T>(simd);
    }
}

impl<F: Transform<M, T>, D: Deliver, const M: usize, const T: usize> WithSimd
    for WithTiles<Backward<'_, F, D>, M, T>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run::<S, M, T>(simd);
    }
}
