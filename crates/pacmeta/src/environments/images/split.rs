//! Which classes are for training, which for validation, which for the final test.
//!
//! Meta-learning is tested on classes never seen before, so the parts share no class. The parts come from a CSV file with
//! the columns `class` (or `wnid`, or `label`) and `split` (`train`, `val` or `validation`, `test`) and perhaps `name`, the
//! name for people; from lists of pictures (see `lists`); from folders called after the parts; or from a keyed draw, which
//! [`Splits::to_csv`] writes down.

use std::collections::HashMap;

use pacmeta_tensor::Key;

use super::{ClassId, ImageSet};
use crate::environments::table::csv::reader::Table;
use crate::environments::table::{did_you_mean, listed, quoted};
use crate::error::{Error, Result};

/// The use of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Meta-training.
    Train,
    /// Choosing settings.
    Validation,
    /// The final test.
    Test,
}

impl Part {
    /// All parts, in order.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "val",
            Self::Test => "test",
        }
    }

    /// The part that a folder of this name is for.
    pub(super) fn of_folder(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("valid") { Some(Self::Validation) } else { Self::from_word(name) }
    }

    fn from_word(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "train" => Some(Self::Train),
            "val" | "validation" => Some(Self::Validation),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}

/// A row of a split file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitRow {
    /// The class.
    pub class: String,
    /// Its use.
    pub part: Part,
    /// Its name for people, where the file has one.
    pub display_name: Option<String>,
    /// The line of the file.
    pub line: usize,
}

/// A file that says the use of every class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSplit {
    /// The file, for messages.
    pub origin: String,
    /// Its rows; no class occurs twice.
    pub rows: Vec<SplitRow>,
}

/// Reads a split file. See the module documentation for its columns.
///
/// # Errors
/// When a column is missing, a word is none of the known, or a class occurs twice; the error names the line.
///
/// ```
/// use pacmeta::environments::images::{Part, parse_split};
///
/// let split = parse_split("split.csv", b"class,split,name\nn1,train,house finch\nn2,test,\n")?;
/// assert_eq!(split.rows[0].display_name.as_deref(), Some("house finch"));
/// assert_eq!((split.rows[1].part, split.rows[1].display_name.as_deref()), (Part::Test, None));
/// # Ok::<(), pacmeta::Error>(())
/// ```
pub fn parse_split(origin: &str, bytes: &[u8]) -> Result<ClassSplit> {
    if bytes.trim_ascii().is_empty() {
        let message =
            "the file is empty; expected a line with the columns `class` and `split`, then one class a line";
        return Err(Error::input(origin, message));
    }
    let mut table = Table::open(origin, bytes)?;
    let known =
        ["class", "wnid", "label"].into_iter().find(|name| table.header.iter().any(|found| found == name));
    let class_column = table.column(
        known.unwrap_or("class"),
        "it names the class of each row (`wnid` and `label` serve as well)",
    )?;
    let part_column = table.column("split", "it says train, val or test for each class")?;
    let name_column = table.header.iter().position(|name| name == "name");
    let mut rows: Vec<SplitRow> = Vec::new();
    let mut lines: HashMap<String, (usize, Part)> = HashMap::new();
    while table.next()? {
        let class = table.fields[class_column].trim().to_owned();
        let word = table.fields[part_column].trim();
        if class.is_empty() {
            return Err(table.wrong(class_column, "the class is missing; fill it in or remove the row"));
        }
        let Some(part) = Part::from_word(word) else {
            let hint = did_you_mean(word, ["train", "val", "validation", "test"]);
            let message =
                format!("expected train, val (or validation) or test, found {}{hint}", quoted(word));
            return Err(table.wrong(part_column, &message));
        };
        if let Some((line, before)) = lines.insert(class.clone(), (table.line, part)) {
            let message = if before == part {
                format!("class {} is already on line {line}; remove one row", quoted(&class))
            } else {
                format!(
                    "class {} is in {} on line {line} and in {} here; a class seen in training is no test, so remove one \
                     row",
                    quoted(&class),
                    before.word(),
                    part.word()
                )
            };
            return Err(table.wrong(class_column, &message));
        }
        let display_name = name_column.map(|column| table.fields[column].trim().to_owned());
        let display_name = display_name.filter(|name| !name.is_empty());
        rows.push(SplitRow { class, part, display_name, line: table.line });
    }
    if rows.is_empty() {
        return Err(Error::input(origin, "there is no row after the header; expected one class a line"));
    }
    Ok(ClassSplit { origin: origin.to_owned(), rows })
}

impl ClassSplit {
    /// Refuses classes of the file that are not among `classes`.
    pub(super) fn check_classes(&self, classes: &[&str]) -> Result<()> {
        let missing: Vec<&SplitRow> =
            self.rows.iter().filter(|row| classes.binary_search(&row.class.as_str()).is_err()).collect();
        let Some(first) = missing.first() else { return Ok(()) };
        let message = format!(
            "{} of {} classes {} no pictures: {}{}; the data have {}",
            missing.len(),
            self.rows.len(),
            if missing.len() == 1 { "has" } else { "have" },
            listed(missing.iter().map(|row| row.class.as_str())),
            did_you_mean(&first.class, classes.iter().copied()),
            listed(classes.iter().copied())
        );
        Err(Error::input_at(&self.origin, format!("line {}", first.line), message))
    }
}

/// How to draw a split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitRecipe {
    /// The fraction of classes for training; the three add up to 1.
    pub train: f64,
    /// The fraction for validation.
    pub validation: f64,
    /// The fraction for the test.
    pub test: f64,
    /// Every part with a positive fraction gets at least so many classes, if there are enough.
    pub way: usize,
    /// The key of the draw.
    pub key: Key,
}

impl SplitRecipe {
    /// The fractions 0.64, 0.16 and 0.20 of miniImageNet's usual split, at least 5 classes each.
    pub fn standard(key: Key) -> Self {
        Self { train: 0.64, validation: 0.16, test: 0.20, way: 5, key }
    }

    /// The numbers of classes of the three parts.
    fn counts(&self, classes: usize) -> Result<[usize; 3]> {
        let fractions = [self.train, self.validation, self.test];
        let valid = fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction));
        if !valid || (fractions.iter().sum::<f64>() - 1.0).abs() > 1e-6 || self.train == 0.0 {
            let message = format!(
                "expected three fractions of classes for training (positive), validation and test that add up to 1, \
                 found {}, {} and {}",
                self.train, self.validation, self.test
            );
            return Err(Error::config("data.split", message));
        }
        let used = fractions.iter().filter(|&&fraction| fraction > 0.0).count();
        let least = if classes >= used * self.way { self.way } else { usize::from(classes >= used) };
        let share = |fraction: f64| {
            let share = (fraction * classes as f64).round() as usize;
            if fraction > 0.0 { share.max(least) } else { 0 }
        };
        let (mut validation, mut test) = (share(self.validation), share(self.test));
        // Training gets the rest; if the minimum of the others left it too little, the larger of them gives.
        while classes.saturating_sub(validation + test) < least || validation + test > classes {
            *(if test >= validation { &mut test } else { &mut validation }) -= 1;
        }
        Ok([classes - validation - test, validation, test])
    }
}

/// The classes of the three parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Splits {
    /// For meta-training.
    pub train: Vec<ClassId>,
    /// For choosing settings.
    pub validation: Vec<ClassId>,
    /// For the final test.
    pub test: Vec<ClassId>,
}

impl Splits {
    /// Draws a split of a set's classes.
    ///
    /// # Errors
    /// When the fractions are not fractions.
    pub fn made(set: &ImageSet, recipe: &SplitRecipe) -> Result<Self> {
        Self::drawn(set.classes().len() as u32, recipe)
    }

    /// The same for so many classes.
    pub(super) fn drawn(classes: u32, recipe: &SplitRecipe) -> Result<Self> {
        let mut classes: Vec<ClassId> = (0..classes).map(ClassId::upright).collect();
        let [train, validation, _] = recipe.counts(classes.len())?;
        recipe.key.named("split").generator().shuffle(&mut classes);
        let mut test = classes.split_off(train + validation);
        let mut validation = classes.split_off(train);
        let mut train = classes;
        for part in [&mut train, &mut validation, &mut test] {
            part.sort();
        }
        Ok(Self { train, validation, test })
    }

    /// The classes of a part.
    pub fn part(&self, part: Part) -> &[ClassId] {
        match part {
            Part::Train => &self.train,
            Part::Validation => &self.validation,
            Part::Test => &self.test,
        }
    }

    pub(super) fn part_mut(&mut self, part: Part) -> &mut Vec<ClassId> {
        match part {
            Part::Train => &mut self.train,
            Part::Validation => &mut self.validation,
            Part::Test => &mut self.test,
        }
    }

    /// Every class four times: as it is, and turned by one, two and three right angles, as is usual for Omniglot. The
    /// turned ones stay in the part of their class.
    #[must_use]
    pub fn with_rotations(&self) -> Self {
        let turned = |classes: &[ClassId]| -> Vec<ClassId> {
            let upright = classes.iter().filter(|id| id.quarter_turns == 0);
            upright.flat_map(|id| (0..4).map(|quarter_turns| ClassId { quarter_turns, ..*id })).collect()
        };
        Self { train: turned(&self.train), validation: turned(&self.validation), test: turned(&self.test) }
    }

    /// The split as a file that [`parse_split`] reads: `class,split,name`.
    pub fn to_csv(&self, set: &ImageSet) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut rows = vec![["class", "split", "name"]];
        for part in Part::ALL {
            for id in self.part(part).iter().filter(|id| id.quarter_turns == 0) {
                let class = &set.classes()[id.class as usize];
                rows.push([&class.name, part.word(), &class.display_name]);
            }
        }
        for row in rows {
            writer.write_record(row).expect("memory is writable and rows have equal lengths");
        }
        let bytes = writer.into_inner().expect("memory is writable");
        String::from_utf8(bytes).expect("CSV of strings is UTF-8")
    }
}
