//! Arrays: contiguous, row-major, with storage that is shared until somebody writes.

use std::sync::Arc;

use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::shape::Shape;

/// A contiguous row-major array. Cloning and reshaping share the storage; writing copies it first if it is
/// shared.
///
/// ```
/// use pacmeta_tensor::Array;
///
/// let array = Array::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(array.reshape(&[6])?.values()[4], 5.0);
/// assert!(Array::new(&[2, 2], vec![1.0_f32; 3]).is_err());
/// # Ok::<(), pacmeta_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Array<E> {
    shape: Shape,
    values: Arc<Vec<E>>,
}

impl<E: Element> Array<E> {
    /// Takes values in row-major order; their number must be that of the shape.
    pub fn new(shape: &[usize], values: Vec<E>) -> Result<Self> {
        let shape = Shape::new(shape)?;
        if values.len() != shape.count() {
            let (expected, found) = (shape.count(), values.len());
            return Err(TensorError::LengthMismatch { what: "array", expected, found });
        }
        Ok(Array { shape, values: Arc::new(values) })
    }

    /// Copies values in row-major order; their number must be that of the shape.
    pub fn from_slice(shape: &[usize], values: &[E]) -> Result<Self> {
        Array::new(shape, values.to_vec())
    }

    /// A single number, without dimensions.
    pub fn scalar(value: E) -> Self {
        Array::of(Shape::SCALAR, vec![value])
    }

    /// One number everywhere.
    pub fn full(shape: Shape, value: E) -> Self {
        Array::of(shape, vec![value; shape.count()])
    }

    /// Zero everywhere.
    pub fn zeros(shape: Shape) -> Self {
        Array::full(shape, E::ZERO)
    }

    /// Values that a kernel made for this shape.
    pub(crate) fn of(shape: Shape, values: Vec<E>) -> Self {
        debug_assert_eq!(values.len(), shape.count());
        Array { shape, values: Arc::new(values) }
    }

    /// The dimensions.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The values in row-major order.
    pub fn values(&self) -> &[E] {
        &self.values
    }

    /// The values in row-major order, to be changed; copies them first if they are shared.
    pub fn values_mut(&mut self) -> &mut [E] {
        Arc::<Vec<E>>::make_mut(&mut self.values)
    }

    /// Gives up the shape; copies the values only if they are shared.
    pub fn into_values(self) -> Vec<E> {
        Arc::unwrap_or_clone(self.values)
    }

    /// The value of an array with exactly one element.
    pub fn item(&self) -> Result<E> {
        match self.values() {
            [value] => Ok(*value),
            _ => Err(TensorError::UnexpectedShape {
                operation: "item",
                shape: self.shape,
                expected: "a single element",
            }),
        }
    }

    /// The same values under another shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        let shape = Shape::new(shape)?;
        if shape.count() != self.shape.count() {
            return Err(TensorError::ShapeMismatch { operation: "reshape", left: self.shape, right: shape });
        }
        Ok(Array { shape, values: Arc::clone(&self.values) })
    }

    /// Bytes of the values.
    pub fn bytes(&self) -> usize {
        self.values.len() * size_of::<E>()
    }

    /// Applies a function to each value.
    pub(crate) fn map(&self, function: impl Fn(E) -> E) -> Self {
        Array::of(self.shape, self.values.iter().map(|&value| function(value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_does_not_reach_clones() {
        let first = Array::new(&[2], vec![1.0, 2.0]).unwrap();
        let mut second = first.clone();
        assert_eq!(first.values().as_ptr(), second.values().as_ptr());
        second.values_mut()[0] = 5.0;
        assert_eq!((first.values()[0], second.values()[0]), (1.0, 5.0));
        let place = second.values().as_ptr();
        let values = second.into_values();
        assert_eq!(values.as_ptr(), place);
    }

    #[test]
    fn shapes_are_checked() {
        let array = Array::new(&[2, 2], vec![0.0_f32; 4]).unwrap();
        assert!(array.reshape(&[3]).is_err());
        assert!(array.item().is_err());
        assert_eq!(array.reshape(&[4, 1]).unwrap().shape()[..], [4, 1]);
        assert_eq!(Array::scalar(3.0).item(), Ok(3.0));
        assert_eq!(array.bytes(), 16);
        assert!(Array::<f64>::new(&[0, 3], vec![]).is_ok());
    }
}
