//! Episodes: few-shot tasks of a few classes and a few pictures of each.
//!
//! Example j of an episode has label j mod way and is shot j div way of its class. So "the first s shots of every class"
//! are the first way * s examples, which is how the subset S' of a training task and the support of a target task are
//! told from the rest. Classes are drawn without replacement and in random order (a label says nothing about its class),
//! pictures without replacement. An episode is a function of its key alone.

use std::collections::BTreeSet;
use std::ops::Range;

use pacmeta_tensor::Key;

use super::{ClassId, ImageClass, ImageSet};
use crate::environments::table::{counted, quoted};
use crate::error::{Error, Result};

/// The part whose tasks have `data.shots` pictures of a class, not those of support and queries.
const TRAINING: &str = "training";
/// The part that a run can do without.
const VALIDATION: &str = "validation";

/// Draws episodes of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeSampler {
    /// The number of classes of an episode.
    pub way: usize,
    /// The number of pictures of each class, queries included.
    pub shots: usize,
}

/// A picture as an episode shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// The picture's number in the set.
    pub index: usize,
    /// Turns by 90 degrees, clockwise.
    pub quarter_turns: u8,
}

/// A few-shot task. See the module documentation for the order of its examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// The examples.
    pub pictures: Vec<Picture>,
    /// The label of each example: its class's place in `classes`.
    pub labels: Vec<usize>,
    /// The classes, by label.
    pub classes: Vec<ClassId>,
}

impl EpisodeSampler {
    /// Refuses classes from which episodes cannot be drawn; `part` says which they are, e.g. `training`.
    ///
    /// # Errors
    /// When there are fewer than `way` classes, or a class has fewer than `shots` pictures.
    pub fn check(&self, set: &ImageSet, classes: &[ClassId], part: &str) -> Result<()> {
        self.check_sizes(set.classes(), classes, part).map_err(|message| Error::input(set.origin(), message))
    }

    /// The same for classes whose pictures need not be decoded.
    pub(super) fn check_sizes(
        &self,
        all: &[ImageClass],
        classes: &[ClassId],
        part: &str,
    ) -> std::result::Result<(), String> {
        if self.way < 2 || self.shots == 0 {
            return Err(format!(
                "episodes: expected at least 2 classes and 1 picture of each, found {} and {}",
                self.way, self.shots
            ));
        }
        if classes.len() < self.way {
            let instead = match part {
                VALIDATION => ", or do without validation (`training.validation_tasks = 0`)",
                _ => "",
            };
            let more = match classes {
                [] => "give it some (`data.split`, `data.parts`)",
                _ => {
                    "lower `data.way` (with `train`; `reproduce` keeps the paper's), give this part more classes (every part needs `data.way`; `data.split` divides them, or `data.parts` \
                     where they are drawn), or set `data.rotations = true`"
                }
            };
            return Err(format!(
                "the {part} part has {}, and a task takes {}; {more}{instead}",
                match classes.len() {
                    1 => "1 class".to_owned(),
                    count => format!("{count} classes"),
                },
                self.way
            ));
        }
        // A class and its rotations are told once.
        let distinct: BTreeSet<u32> = classes.iter().map(|id| id.class).collect();
        let mut small: Vec<(&str, usize)> = distinct
            .into_iter()
            .map(|class| &all[class as usize])
            .filter(|class| class.pictures.len() < self.shots)
            .map(|class| (class.name.as_str(), class.pictures.len()))
            .collect();
        if small.is_empty() {
            return Ok(());
        }
        let count = small.len();
        small.sort_by_key(|&(_, pictures)| pictures);
        let named: Vec<String> =
            small.iter().take(5).map(|(name, pictures)| format!("{} ({pictures})", quoted(name))).collect();
        let more = if count > 5 { format!(" and {} more", count - 5) } else { String::new() };
        Err(format!(
            "{} of the {part} part {} fewer than the {} that a task takes of each class: {}{more}; add pictures, lower {}{}",
            if count == 1 { "1 class".to_owned() } else { format!("{count} classes") },
            if count == 1 { "has" } else { "have" },
            counted(self.shots, "picture"),
            named.join(", "),
            if part == TRAINING { "`data.shots`" } else { "`data.support` or `data.query`" },
            if count < classes.len() {
                format!(", or leave small classes out by `data.min_examples = {}`", self.shots)
            } else {
                String::new()
            }
        ))
    }

    /// Draws an episode from classes that passed [`check`](Self::check); from fewer classes or pictures it is as large as
    /// they allow, every class with the same number of shots.
    pub fn draw(&self, set: &ImageSet, classes: &[ClassId], key: Key) -> Episode {
        let chosen = key.named("classes").generator().subset(classes.len(), self.way);
        let classes: Vec<ClassId> = chosen.into_iter().map(|index| classes[index]).collect();
        let way = classes.len();
        let members = |id: &ClassId| set.classes()[id.class as usize].pictures.as_slice();
        let shots = classes.iter().map(|id| members(id).len()).min().unwrap_or(0).min(self.shots);
        let unset = Picture { index: 0, quarter_turns: 0 };
        let mut pictures = vec![unset; way * shots];
        let mut places = Vec::new();
        for (label, id) in classes.iter().enumerate() {
            let members = members(id);
            let mut generator = key.named("pictures").index(label as u64).generator();
            generator.subset_into(members.len(), shots, &mut places);
            for (shot, &place) in places.iter().enumerate() {
                pictures[shot * way + label] =
                    Picture { index: members[place], quarter_turns: id.quarter_turns };
            }
        }
        let labels = (0..pictures.len()).map(|example| example % way).collect();
        Episode { pictures, labels, classes }
    }
}

impl Episode {
    /// The number of classes.
    pub fn way(&self) -> usize {
        self.classes.len()
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.pictures.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// The examples of the first `shots` shots of every class: a prefix.
    pub fn first_shots(&self, shots: usize) -> Range<usize> {
        0..(shots * self.way()).min(self.len())
    }

    /// Copies the pixels of a range of examples, turned as they should be, over what `pixels` held: example by example,
    /// each in rows, columns, channels.
    pub fn copy_pixels(&self, set: &ImageSet, examples: Range<usize>, pixels: &mut Vec<u8>) {
        pixels.clear();
        pixels.reserve(examples.len() * set.picture_bytes());
        for picture in &self.pictures[examples] {
            set.append_turned(picture.index, picture.quarter_turns, pixels);
        }
    }
}
