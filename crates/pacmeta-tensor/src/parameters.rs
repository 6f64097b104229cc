//! Parameters: one flat buffer, and a layout of names and shapes over it.
//!
//! Optimisers, priors, particles and checkpoints work on the flat slice; models ask for tensors by name.
//!
//! ```
//! use std::sync::Arc;
//! use pacmeta_tensor::{ParameterLayout, Parameters};
//!
//! let layout = ParameterLayout::builder()
//!     .tensor("mean.output.weight", &[1, 32])
//!     .tensor("mean.output.bias", &[1])
//!     .build()?;
//! let mut parameters = Parameters::<f64>::zeros(Arc::new(layout));
//! parameters.values_mut()[32] = 0.5;
//! assert_eq!(parameters.tensor("mean.output.bias"), Some(&[0.5][..]));
//! assert_eq!(parameters.squared_norm(), 0.25);
//! # Ok::<(), pacmeta_tensor::TensorError>(())
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::shape::Shape;

/// One tensor of a [`ParameterLayout`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The name, unique in its layout.
    pub name: String,
    /// The shape.
    pub shape: Shape,
    /// Where the tensor starts in the flat buffer.
    pub offset: usize,
    /// Number of elements.
    pub len: usize,
}

impl Entry {
    /// The tensor's place in the flat buffer.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.len
    }
}

/// Names and shapes, in order, over one flat buffer without gaps.
#[derive(Clone, Debug, Default)]
pub struct ParameterLayout {
    entries: Vec<Entry>,
    positions: HashMap<String, usize>,
    len: usize,
}

impl ParameterLayout {
    /// Starts a layout without tensors.
    pub fn builder() -> ParameterLayoutBuilder {
        ParameterLayoutBuilder { outcome: Ok(ParameterLayout::default()) }
    }

    /// Number of elements of the flat buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the flat buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The tensors in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.positions.get(name).map(|&position| &self.entries[position])
    }

    /// The place of this name in [`entries`](Self::entries).
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// The place of this tensor in the flat buffer.
    pub fn range(&self, name: &str) -> Option<Range<usize>> {
        self.get(name).map(Entry::range)
    }

    /// Fails with the first difference unless the other layout has the same names and shapes in the same
    /// order.
    pub fn check_same(&self, other: &ParameterLayout) -> Result<()> {
        let describe = |entry: Option<&Entry>| match entry {
            Some(entry) => format!("`{}` {:?}", entry.name, entry.shape),
            None => "nothing".to_owned(),
        };
        let mut position = 0;
        loop {
            let (expected, found) = (self.entries.get(position), other.entries.get(position));
            if expected != found {
                let difference = format!(
                    "expected {} at position {position}, found {}",
                    describe(expected),
                    describe(found)
                );
                return Err(TensorError::LayoutMismatch { difference });
            }
            if expected.is_none() {
                return Ok(());
            }
            position += 1;
        }
    }

    fn push(&mut self, name: &str, shape: &[usize]) -> Result<()> {
        let shape = Shape::new(shape)?;
        if self.positions.insert(name.to_owned(), self.entries.len()).is_some() {
            return Err(TensorError::DuplicateName { name: name.to_owned() });
        }
        let (offset, len) = (self.len, shape.count());
        // The total is checked by the same rule as a single tensor.
        self.len =
            offset.checked_add(len).ok_or_else(|| TensorError::ShapeTooLarge { shape: vec![offset, len] })?;
        Shape::new(&[self.len])?;
        self.entries.push(Entry { name: name.to_owned(), shape, offset, len });
        Ok(())
    }
}

impl PartialEq for ParameterLayout {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for ParameterLayout {}

/// Collects the tensors of a [`ParameterLayout`]; the first mistake is reported by [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct ParameterLayoutBuilder {
    outcome: Result<ParameterLayout>,
}

impl ParameterLayoutBuilder {
    /// Appends a tensor.
    #[must_use]
    pub fn tensor(mut self, name: &str, shape: &[usize]) -> Self {
        if let Ok(layout) = &mut self.outcome
            && let Err(error) = layout.push(name, shape)
        {
            self.outcome = Err(error);
        }
        self
    }

    /// The layout, unless a name was repeated or a shape is too large.
    pub fn build(self) -> Result<ParameterLayout> {
        self.outcome
    }
}

/// Values in one flat buffer, with the layout that names them.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters<E> {
    layout: Arc<ParameterLayout>,
    values: Vec<E>,
}

impl<E: Element> Parameters<E> {
    /// All zeros.
    pub fn zeros(layout: Arc<ParameterLayout>) -> Self {
        let values = vec![E::ZERO; layout.len()];
        Parameters { layout, values }
    }

    /// Takes values in layout order; their number must be that of the layout.
    pub fn from_values(layout: Arc<ParameterLayout>, values: Vec<E>) -> Result<Self> {
        if values.len() != layout.len() {
            let (expected, found) = (layout.len(), values.len());
            return Err(TensorError::LengthMismatch { what: "parameters", expected, found });
        }
        Ok(Parameters { layout, values })
    }

    /// The names and shapes.
    pub fn layout(&self) -> &Arc<ParameterLayout> {
        &self.layout
    }

    /// All values in layout order.
    pub fn values(&self) -> &[E] {
        &self.values
    }

    /// All values in layout order, to be changed.
    pub fn values_mut(&mut self) -> &mut [E] {
        &mut self.values
    }

    /// Gives up the layout.
    pub fn into_values(self) -> Vec<E> {
        self.values
    }

    /// The values of one tensor, row-major.
    pub fn tensor(&self, name: &str) -> Option<&[E]> {
        self.layout.range(name).map(|range| &self.values[range])
    }

    /// The values of one tensor, row-major, to be changed.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut [E]> {
        self.layout.range(name).map(|range| &mut self.values[range])
    }

    /// The tensors in layout order, each with its values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Entry, &[E])> {
        self.layout.entries().iter().map(|entry| (entry, &self.values[entry.range()]))
    }

    /// The sum of squares, added up in double precision and in layout order.
    pub fn squared_norm(&self) -> f64 {
        self.values.iter().map(|value| value.to_f64() * value.to_f64()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Arc<ParameterLayout> {
        let builder =
            ParameterLayout::builder().tensor("weight", &[2, 3]).tensor("scale", &[]).tensor("bias", &[3]);
        Arc::new(builder.build().unwrap())
    }

    #[test]
    fn tensors_lie_behind_each_other() {
        let layout = layout();
        assert_eq!(layout.len(), 10);
        assert_eq!(layout.range("scale"), Some(6..7));
        assert_eq!(layout.range("bias"), Some(7..10));
        assert_eq!(layout.position("bias"), Some(2));
        assert_eq!(layout.get("other"), None);
        let names: Vec<_> = layout.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["weight", "scale", "bias"]);
    }

    #[test]
    fn mistakes_are_refused() {
        let repeated =
            ParameterLayout::builder().tensor("a", &[1]).tensor("a", &[2]).tensor("b", &[1]).build();
        assert_eq!(repeated, Err(TensorError::DuplicateName { name: "a".to_owned() }));
        assert!(ParameterLayout::builder().tensor("a", &[1 << 58]).tensor("b", &[1 << 58]).build().is_ok());
        let halves =
            ParameterLayout::builder().tensor("a", &[(1 << 60) - 1]).tensor("b", &[(1 << 60) - 1]).build();
        assert!(matches!(halves, Err(TensorError::ShapeTooLarge { .. })));
        let short = Parameters::from_values(layout(), vec![0.0; 9]);
        assert_eq!(short, Err(TensorError::LengthMismatch { what: "parameters", expected: 10, found: 9 }));
    }

    #[test]
    fn names_and_flat_values_are_the_same_memory() {
        let mut parameters =
            Parameters::from_values(layout(), (0..10).map(|value| value as f32).collect()).unwrap();
        assert_eq!(parameters.tensor("bias"), Some(&[7.0, 8.0, 9.0][..]));
        parameters.tensor_mut("scale").unwrap()[0] = 0.0;
        assert_eq!(parameters.values()[6], 0.0);
        assert_eq!(parameters.squared_norm(), 285.0 - 36.0);
        let lengths: Vec<_> = parameters.iter().map(|(entry, values)| (entry.len, values.len())).collect();
        assert_eq!(lengths, [(6, 6), (1, 1), (3, 3)]);
        assert_eq!(parameters.tensor("other"), None);
    }

    #[test]
    fn layouts_compare_by_names_and_shapes() {
        let other = ParameterLayout::builder().tensor("weight", &[3, 2]).build().unwrap();
        assert_eq!(layout().check_same(&layout()), Ok(()));
        let error = layout().check_same(&other).unwrap_err().to_string();
        assert!(error.contains("`weight` [2, 3] at position 0, found `weight` [3, 2]"), "{error}");
        assert!(
            layout()
                .check_same(&ParameterLayout::default())
                .unwrap_err()
                .to_string()
                .contains("found nothing")
        );
    }
}
