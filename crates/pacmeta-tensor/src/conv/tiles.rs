//! Tiles into and out of the points of Winograd's convolution, with normalisation, rectifier and pool on the way.

use pulp::Simd;

use super::geometry::{Geometry, Piece};
use super::pixel::{Pixel, Positions, lanes};
use super::winograd::{Transform, two_dimensional};

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

/// V = B' d B of a piece's tiles.
#[inline(always)]
pub(super) fn input_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
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
                        (i, row) => for j in 0..T {
                            to[i][j].vectors_mut::<S>()[v] = row[j];
                        }
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
                        (i, row) => for j in 0..T {
                            to[i][j].vectors_mut::<S>()[v] = row[j];
                        }
                    );
                }
            }
        },
    );
}

/// z = A' M A of a piece's tiles.
#[inline(always)]
pub(super) fn output_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
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
                two_dimensional!(
                    simd, F::output, T => M,
                    (i, j) => from[i][j].vectors::<S>()[v],
                    (i, values) => if i < rows {
                        let line = &mut output[i * width..];
                        if let (true, Some(line)) = (columns == M, line.first_chunk_mut::<M>()) {
                            for j in 0..M {
                                line[j].vectors_mut::<S>()[v] = values[j];
                            }
                        } else {
                            for (pixel, value) in line[..columns].iter_mut().zip(values) {
                                pixel.vectors_mut::<S>()[v] = value;
                            }
                        }
                    }
                );
            }
        },
    );
}

/// Y = A dz A' of a piece's tiles.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the terms of dz")]
pub(super) fn slope_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
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
                two_dimensional!(
                    simd, F::output_adjoint, M => T,
                    (i, j) => match places[i][j] {
                        None => zero,
                        Some(z) => {
                            let (slopes, positions, position) = pools[i][j];
                            let here =
                                simd.equal_u32s(positions.vectors::<S>()[v], simd.splat_u32s(position));
                            let slope = simd.select_f32s(here, slopes.vectors::<S>()[v], zero);
                            let rest = simd.mul_add_e_f32s(b, z.vectors::<S>()[v], a);
                            simd.mul_add_e_f32s(g, slope, rest)
                        }
                    },
                    (i, row) => for j in 0..T {
                        to[i][j].vectors_mut::<S>()[v] = row[j];
                    }
                );
            }
        },
    );
}

/// Adds B Y B' of a piece's tiles where they lie.
#[inline(always)]
pub(super) fn overlap_tiles<S: Simd, F: Transform<M, T>, const M: usize, const T: usize>(
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
                        (i, row) => for j in 0..T {
                            let place = &mut to[i][j].vectors_mut::<S>()[v];
                            *place = if i < 2 || j < 2 { simd.add_f32s(*place, row[j]) } else { row[j] };
                        }
                    );
                }
            } else {
                for v in 0..lanes::<S>() {
                    two_dimensional!(
                        simd, F::input_adjoint, T => T,
                        (i, j) => from[i][j].vectors::<S>()[v],
                        (i, values) => for j in 0..T {
                            let place = &mut to[i][j].vectors_mut::<S>()[v];
                            let written = (i < 2 && row > 0) || (j < 2 && column > 0);
                            *place = if written { simd.add_f32s(*place, values[j]) } else { values[j] };
                        }
                    );
                }
            }
        },
    );
}
