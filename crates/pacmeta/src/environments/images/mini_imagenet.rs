//! How to know miniImageNet.

use super::split::{Part, Splits};
use super::{ClassId, ImageSet};

/// Classes for training, validation and test in the usual split, that of Ravi and Larochelle (2017).
const CLASSES: [usize; 3] = [64, 16, 20];
/// Those for the test, by their entries in WordNet.
const TEST: [&str; 20] = [
    "n01930112",
    "n01981276",
    "n02099601",
    "n02110063",
    "n02110341",
    "n02116738",
    "n02129165",
    "n02219486",
    "n02443484",
    "n02871525",
    "n03127925",
    "n03146219",
    "n03272010",
    "n03544143",
    "n03775546",
    "n04146614",
    "n04149813",
    "n04418357",
    "n04522168",
    "n07613480",
];

/// Whether a set with these parts is miniImageNet as it is usually divided: 64, 16 and 20 classes, the last ones those that are usual
/// (folders above do not count). Only then can its numbers be held against published ones.
pub fn is_mini_imagenet(set: &ImageSet, splits: &Splits) -> bool {
    let sizes = Part::ALL.map(|part| splits.part(part).len());
    let is_test = |id: &ClassId| {
        let name = &set.classes()[id.class as usize].name;
        let last = name.rsplit('/').next().unwrap_or_default();
        id.quarter_turns == 0 && TEST.contains(&last)
    };
    sizes == CLASSES && splits.test.iter().all(is_test)
}

#[cfg(test)]
mod tests {
    use super::super::{Channels, ImageClass, PictureShape};
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
    fn sizes_and_test_classes_tell() {
        let others = (0..80).map(|index| format!("images/n{:08}", 1_532_829 + index));
        let names: Vec<String> = others.chain(TEST.map(|name| format!("images/{name}"))).collect();
        let pictures = set(&names);
        let splits = divided(&pictures, 64, 16);
        assert!(is_mini_imagenet(&pictures, &splits));
        assert!(!is_mini_imagenet(&pictures, &divided(&pictures, 60, 20)));
        assert!(!is_mini_imagenet(&pictures, &splits.with_rotations()));
        // another division of the same classes, and another hundred classes
        let mut turned = names.clone();
        turned.rotate_left(10);
        let mut other = names;
        other[95] = "images/n01558993".to_owned();
        for names in [turned, other] {
            let pictures = set(&names);
            assert!(!is_mini_imagenet(&pictures, &divided(&pictures, 64, 16)));
        }
    }
}
