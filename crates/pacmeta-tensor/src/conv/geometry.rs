//! How a block's images are cut into tiles, and tiles into pieces that stay in the cache.

use std::ops::Range;

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

    /// Where the pixels of a piece of tiles of `tile` x `tile` lie among those of all images.
    pub(super) fn place(&self, piece: Piece, tile: usize) -> Range<usize> {
        let pixel =
            |image: usize, row: usize| image * self.pixels() + (row * tile).min(self.height) * self.width;
        pixel(piece.images[0], piece.rows[0])..pixel(piece.images[1] - 1, piece.rows[1])
    }

    /// The pieces of a group of `images` images: images and rows of tiles.
    pub(super) fn pieces(self, images: usize) -> impl Iterator<Item = Piece> {
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
pub(super) struct Piece {
    pub(super) images: [usize; 2],
    pub(super) rows: [usize; 2],
}

impl Piece {
    /// Calls `visit` with the number, image, row and column of each tile.
    #[inline(always)]
    pub(super) fn tiles(self, columns: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
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

    pub(super) fn count(self, columns: usize) -> usize {
        (self.images[1] - self.images[0]) * (self.rows[1] - self.rows[0]) * columns
    }
}
