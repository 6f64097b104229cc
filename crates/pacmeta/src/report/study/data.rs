//! What the page of a study is made of: plain data, no drawing.
//!
//! A study compares many models: its numbers are means over models or tasks, with a standard error and a count. Like
//! the report of a run, everything here can be written to JSON and read back; `null` is read as NaN.

use serde::{Deserialize, Serialize};

use super::super::chart::Chart;
use super::super::data::{FileLink, number};

/// Everything that the page of a study shows. Empty lists and `None` leave their part out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StudyReport {
    /// Heading of the page.
    pub title: String,
    /// One paragraph that says what was run.
    pub subtitle: String,
    /// The command line that reproduces the study.
    pub command: Option<String>,
    /// Name and value pairs: models, tasks, seeds, time, version.
    pub facts: Vec<(String, String)>,
    /// The body, in reading order.
    pub sections: Vec<StudySection>,
    /// Remarks a reader should know, one paragraph each.
    pub notes: Vec<String>,
    /// Files that belong to the study.
    pub files: Vec<FileLink>,
}

/// One section of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StudySection {
    /// Identifier for links; characters other than letters, digits, `-` and `_` are replaced, repetitions numbered.
    pub id: String,
    /// Heading, also in the table of contents.
    pub heading: String,
    /// Paragraphs under the heading.
    pub text: Vec<String>,
    /// Figures, tables and claims, in order.
    pub blocks: Vec<Block>,
}

impl StudySection {
    /// A section without text.
    pub fn new(id: impl Into<String>, heading: impl Into<String>) -> Self {
        Self { id: id.into(), heading: heading.into(), ..Self::default() }
    }

    /// The same section with one more paragraph.
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.text.push(text.into());
        self
    }

    /// The same section with one more block.
    pub fn with(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }
}

/// One part of a section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a page has tens of blocks, and unboxed ones are easier to write"
)]
pub enum Block {
    /// A figure across the page.
    Figure(StudyFigure),
    /// Small figures side by side; where their series agree, one legend stands above all of them. Panels of priors and
    /// predictions with the same quantity share their vertical range.
    Panels(Vec<StudyFigure>),
    /// A table.
    Table(StudyTable),
    /// Claims and what the numbers say about them.
    Claims(Vec<ClaimRow>),
    /// Few-shot tasks with their pictures.
    Gallery(Vec<GalleryTask>),
    /// One paragraph.
    Text(String),
}

impl From<StudyFigure> for Block {
    fn from(figure: StudyFigure) -> Self {
        Self::Figure(figure)
    }
}

impl From<Vec<StudyFigure>> for Block {
    fn from(figures: Vec<StudyFigure>) -> Self {
        Self::Panels(figures)
    }
}

impl From<StudyTable> for Block {
    fn from(table: StudyTable) -> Self {
        Self::Table(table)
    }
}

impl From<Vec<ClaimRow>> for Block {
    fn from(claims: Vec<ClaimRow>) -> Self {
        Self::Claims(claims)
    }
}

/// A few-shot task that is shown: labelled pictures, and pictures that were classified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GalleryTask {
    /// Heading.
    pub heading: String,
    /// The labelled pictures.
    pub support: Vec<GalleryPicture>,
    /// The classified ones.
    pub queries: Vec<GalleryPicture>,
    /// What to look for.
    pub caption: String,
}

/// A picture with its class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GalleryPicture {
    /// Address of the picture, usually a `data:` one.
    pub source: String,
    /// Its class.
    pub class: String,
    /// What was predicted, for a query.
    pub prediction: Option<GalleryPrediction>,
}

/// What was predicted for a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GalleryPrediction {
    /// The predicted class.
    pub class: String,
    /// Its probability.
    pub probability: f64,
}

/// A chart with its heading and a caption that says what to look for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyFigure {
    /// Identifier for links, treated like that of a section.
    pub id: String,
    /// Heading; may be empty.
    pub heading: String,
    /// The chart.
    pub chart: Chart,
    /// What to look for.
    pub caption: String,
}

impl StudyFigure {
    /// A figure of any chart.
    pub fn new(
        id: impl Into<String>,
        heading: impl Into<String>,
        chart: impl Into<Chart>,
        caption: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), heading: heading.into(), chart: chart.into(), caption: caption.into() }
    }
}

/// A table of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StudyTable {
    /// Identifier for links, treated like that of a section.
    pub id: String,
    /// Heading; may be empty.
    pub heading: String,
    /// Columns; the first one names the rows.
    pub columns: Vec<Column>,
    /// Rows, one cell a column; cells that are absent count as missing.
    pub rows: Vec<Vec<Cell>>,
    /// What to look for.
    pub caption: String,
    /// Address of the same numbers as a CSV file.
    pub csv: Option<String>,
}

/// One column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// What it holds; chooses the alignment.
    #[serde(default)]
    pub kind: ColumnKind,
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ColumnKind::Text }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ColumnKind::Number }
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnKind {
    /// Words, aligned left.
    Text,
    /// Numbers, aligned right.
    #[default]
    Number,
}

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What it shows.
    pub value: CellValue,
    /// Whether it is the best of its comparison; shown in bold with a star.
    #[serde(default)]
    pub best: bool,
}

/// What a cell shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellValue {
    /// Words.
    Text(String),
    /// A number; one that is not finite is shown as missing.
    Number(#[serde(deserialize_with = "number")] f64),
    /// A mean with its standard error.
    Estimate {
        /// The mean.
        #[serde(deserialize_with = "number")]
        value: f64,
        /// Its standard error.
        #[serde(deserialize_with = "number")]
        standard_error: f64,
        /// How many observations are behind it.
        observations: usize,
    },
    /// Nothing is known.
    Missing,
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        CellValue::Text(text.into()).into()
    }

    /// A cell with a number.
    pub fn number(value: f64) -> Self {
        CellValue::Number(value).into()
    }

    /// A cell with a mean, its standard error, and how many observations are behind it.
    pub fn estimate(value: f64, standard_error: f64, observations: usize) -> Self {
        CellValue::Estimate { value, standard_error, observations }.into()
    }

    /// A cell without a value.
    pub fn missing() -> Self {
        CellValue::Missing.into()
    }

    /// The same cell, marked as the best.
    pub fn best(mut self) -> Self {
        self.best = true;
        self
    }
}

impl From<CellValue> for Cell {
    fn from(value: CellValue) -> Self {
        Self { value, best: false }
    }
}

/// A claim of the paper beside what was computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimRow {
    /// The claim.
    pub statement: String,
    /// What was computed to test it.
    pub test: String,
    /// The effect, in the unit that `test` names; its sign convention belongs there too.
    #[serde(deserialize_with = "number")]
    pub effect: f64,
    /// Its standard error, where there is one.
    #[serde(default)]
    pub standard_error: Option<f64>,
    /// How many observations are behind it.
    pub observations: usize,
    /// What follows.
    pub verdict: ClaimVerdict,
    /// Anything else that a reader should know.
    #[serde(default)]
    pub detail: String,
}

/// What the numbers say about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// They agree with it.
    Supported,
    /// They contradict it.
    NotSupported,
    /// They are too few or too noisy to tell.
    Undecided,
}

impl ClaimVerdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::NotSupported => "not supported",
            Self::Undecided => "undecided",
        }
    }
}
