//! How to know miniImageNet.

use super::split::{ClassSplit, Part, Splits};
use super::{ClassId, ImageSet};

/// Classes for training, validation and test in the usual split.
const CLASSES: [usize; 3] = [64, 16, 20];

/// Whether a set with these parts is miniImageNet as it is usually divided: 64, 16 and 20 classes, each called after its
/// entry in WordNet, `n` and eight digits (folders above do not count). Only then can its numbers be held against published
/// ones.
pub fn is_mini_imagenet(set: &ImageSet, splits: &Splits) -> bool {
    let names = |part: Part| {
        let name = |id: &ClassId| {
            let class = &set.classes()[id.class as usize];
            (id.quarter_turns == 0).then_some(class.name.as_str())
        };
        splits.part(part).iter().map(name).collect::<Option<Vec<_>>>()
    };
    Part::ALL.map(names).iter().zip(CLASSES).all(|(names, count)| match names {
        Some(names) => names.len() == count && names.iter().all(|name| is_synset(name)),
        None => false,
    })
}

impl ClassSplit {
    /// The same of a split file, such as the `split.csv` of a run.
    pub fn is_mini_imagenet(&self) -> bool {
        let count = |part: Part| self.rows.iter().filter(|row| row.part == part).count();
        Part::ALL.map(count) == CLASSES && self.rows.iter().all(|row| is_synset(&row.class))
    }
}

/// Whether the last folder of a name is `n` and eight digits.
fn is_synset(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    let digits = last.strip_prefix('n');
    digits.is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::{Channels, ImageClass, PictureShape, parse_split};
    use super::*;

    /// A set with a class of one pixel for each of these names.
    fn set(names: &[String]) -> ImageSet {
        let class = |(index, name): (usize, &String)| ImageClass {
            name: name.clone(),
            display_name: name.clone(),
            pictures: vec![index],
        };
        let classes = names.iter().enumerate().map(class).collect();
        let shape = PictureShape { side: 1, channels: Channels::Grey };
        ImageSet::in_memory("set", shape, classes, names.to_vec(), vec![0; names.len()]).unwrap()
    }

    /// The first so many classes for training, the next for validation, the rest for the test.
    fn divided(set: &ImageSet, train: usize, validation: usize) -> Splits {
        let mut train_ids = set.class_ids();
        let mut validation_ids = train_ids.split_off(train);
        let test = validation_ids.split_off(validation);
        Splits { train: train_ids, validation: validation_ids, test }
    }

    #[test]
    fn sizes_and_names_tell() {
        let names: Vec<String> = (0..100).map(|index| format!("images/n{:08}", 1_532_829 + index)).collect();
        let pictures = set(&names);
        let splits = divided(&pictures, 64, 16);
        assert!(is_mini_imagenet(&pictures, &splits));
        let written = parse_split("split.csv", splits.to_csv(&pictures).as_bytes()).unwrap();
        assert!(written.is_mini_imagenet());

        assert!(!is_mini_imagenet(&pictures, &divided(&pictures, 60, 20)));
        assert!(!is_mini_imagenet(&pictures, &splits.with_rotations()));
        for other in ["cat", "n1234567", "n123456789", "n1234567x", "m12345678", ""] {
            let mut names = names.clone();
            names[70] = other.to_owned();
            let pictures = set(&names);
            assert!(!is_mini_imagenet(&pictures, &divided(&pictures, 64, 16)), "{other}");
        }
    }
}
