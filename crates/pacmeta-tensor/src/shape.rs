//! Shapes: a few dimensions, kept inline so that recording an operation allocates nothing for them.

use std::fmt;
use std::ops::Deref;

use crate::error::{Result, TensorError};

/// The largest number of dimensions of a [`Shape`]: batches of pictures by channel, and one to spare.
pub const MAX_RANK: usize = 5;

/// The dimensions of an array, slowest first. Dereferences to `[usize]`.
///
/// A `Shape` is known to fit into memory: its number of elements times eight bytes does not overflow.
///
/// ```
/// use pacmeta_tensor::Shape;
/// let shape = Shape::new(&[32, 1])?;
/// assert_eq!(&shape[..], [32, 1]);
/// assert_eq!(shape.count(), 32);
/// # Ok::<(), pacmeta_tensor::TensorError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    // Dimensions beyond the rank are zero, so that the derived equality compares shapes.
    dimensions: [usize; MAX_RANK],
    rank: usize,
}

impl Shape {
    /// The shape of a single number: no dimensions, one element.
    pub const SCALAR: Shape = Shape { dimensions: [0; MAX_RANK], rank: 0 };

    /// The shape of a vector without elements.
    pub(crate) const EMPTY: Shape = Shape { dimensions: [0; MAX_RANK], rank: 1 };

    /// Checks and stores dimensions.
    pub fn new(dimensions: &[usize]) -> Result<Self> {
        let too_large = || TensorError::ShapeTooLarge { shape: dimensions.to_vec() };
        if dimensions.len() > MAX_RANK {
            return Err(too_large());
        }
        // Zeros are left out of the product so that [huge, huge, 0] is refused like its neighbours.
        let bytes = dimensions
            .iter()
            .filter(|&&size| size > 0)
            .try_fold(8usize, |bytes, &size| bytes.checked_mul(size));
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(too_large());
        }
        let mut stored = [0; MAX_RANK];
        stored[..dimensions.len()].copy_from_slice(dimensions);
        Ok(Shape { dimensions: stored, rank: dimensions.len() })
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.iter().product()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The same shape with another size along one axis.
    pub(crate) fn with_axis(&self, axis: usize, size: usize) -> Result<Self> {
        let mut dimensions = *self;
        dimensions.dimensions[axis] = size;
        Shape::new(&dimensions)
    }

    /// Rows, axis and columns: the shape seen as `[before, axis, after]`.
    pub(crate) fn around(&self, axis: usize) -> (usize, usize, usize) {
        (self[..axis].iter().product(), self[axis], self[axis + 1..].iter().product())
    }

    /// Fails unless the axis exists.
    pub(crate) fn check_axis(&self, operation: &'static str, axis: usize) -> Result<()> {
        if axis < self.rank {
            Ok(())
        } else {
            Err(TensorError::AxisOutOfRange { operation, axis, shape: *self })
        }
    }

    /// The common shape of two operands: dimensions are aligned at the end, and a size of one stretches.
    pub(crate) fn broadcast(operation: &'static str, left: &Shape, right: &Shape) -> Result<Shape> {
        if left == right {
            return Ok(*left);
        }
        let rank = left.rank.max(right.rank);
        let mut dimensions = [0; MAX_RANK];
        for position in 1..=rank {
            let size = match (left.size_from_end(position), right.size_from_end(position)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => {
                    return Err(TensorError::ShapeMismatch { operation, left: *left, right: *right });
                }
            };
            dimensions[rank - position] = size;
        }
        Shape::new(&dimensions[..rank])
    }

    /// Whether an array of this shape can be stretched to `target`.
    pub(crate) fn broadcasts_to(&self, target: &Shape) -> bool {
        self.rank <= target.rank
            && (1..=self.rank).all(|position| {
                self.size_from_end(position) == 1
                    || self.size_from_end(position) == target.size_from_end(position)
            })
    }

    /// Element strides of an array of this shape seen as `target`; stretched dimensions have stride zero.
    pub(crate) fn strides_in(&self, target: &Shape) -> [usize; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut stride = 1;
        for position in 1..=self.rank {
            let size = self.size_from_end(position);
            if size != 1 {
                strides[target.rank - position] = stride;
            }
            stride *= size;
        }
        strides
    }

    fn size_from_end(&self, position: usize) -> usize {
        if position <= self.rank { self.dimensions[self.rank - position] } else { 1 }
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.dimensions[..self.rank]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", &self[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dimensions: &[usize]) -> Shape {
        Shape::new(dimensions).unwrap()
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert!(Shape::new(&[usize::MAX, 2]).is_err());
        assert!(Shape::new(&[usize::MAX / 4]).is_err());
        assert!(Shape::new(&[1 << 40, 1 << 40, 0]).is_err());
        assert!(Shape::new(&[1; MAX_RANK + 1]).is_err());
        assert_eq!(shape(&[3, 0]).count(), 0);
        assert_eq!(Shape::SCALAR.count(), 1);
    }

    #[test]
    fn broadcasting_aligns_at_the_end() {
        let common = |left: &[usize], right: &[usize]| Shape::broadcast("add", &shape(left), &shape(right));
        assert_eq!(common(&[4, 1, 3], &[2, 1]).unwrap(), shape(&[4, 2, 3]));
        assert_eq!(common(&[], &[5]).unwrap(), shape(&[5]));
        assert_eq!(common(&[0], &[1]).unwrap(), shape(&[0]));
        assert!(common(&[2], &[3]).is_err());
        assert!(common(&[0], &[2]).is_err());
        assert!(common(&[1 << 40, 1], &[1 << 40]).is_err());
        assert!(shape(&[3, 1]).broadcasts_to(&shape(&[2, 3, 4])));
        assert!(!shape(&[2, 3, 4]).broadcasts_to(&shape(&[3, 1])));
    }

    #[test]
    fn strides_are_zero_where_a_dimension_is_stretched() {
        let strides = shape(&[4, 1, 3]).strides_in(&shape(&[7, 4, 2, 3]));
        assert_eq!(strides[..4], [0, 3, 0, 1]);
    }
}
