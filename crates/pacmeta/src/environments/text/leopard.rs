//! The target tasks of LEOPARD (Bansal, Jha and McCallum, 2020): few-shot draws of k examples a class, and a test set.
//!
//! **Files**: a folder with `<task>.jsonl.gz` (or `.jsonl`). Lines with `"split": "train"` have `k` and `draw` besides
//! `sentence1`, `sentence2` (conll, restaurant and scitail) and `label`: they are draw number `draw` of k examples a class.
//! Lines with `"split": "eval"` are the test set; their `eval_source` says where it is from: `json` and `tf_record` are the
//! official set, `rebuilt` is another sample of the same source, which results must say.
//!
//! There are ten draws for each of k = 4, 8, 16, but for `disaster`: draw 0 of k = 16 is empty in the published data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pacmeta_tensor::Key;

use super::glue::find;
use super::lines::{Lines, wrong};
use super::read::records;
use super::records::Record;
use super::task::tokenise;
use super::{LabelledText, Part, TokenSet, Tokeniser};
use crate::environments::table::{counted, did_you_mean, listed, quoted};
use crate::error::{Error, Result};

/// A task of the collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeopardInfo {
    /// The name of its file.
    pub name: &'static str,
    /// The name in the paper's table.
    pub display_name: &'static str,
    /// The number of classes.
    pub classes: usize,
}

const fn info(name: &'static str, display_name: &'static str, classes: usize) -> LeopardInfo {
    LeopardInfo { name, display_name, classes }
}

/// The paper's target tasks, in the order of its table.
pub const TARGETS: [LeopardInfo; 12] = [
    info("conll", "CoNLL", 4),
    info("restaurant", "MITR", 8),
    info("airline", "Airline", 3),
    info("disaster", "Disaster", 2),
    info("emotion", "Emotion", 13),
    info("political_bias", "Political Bias", 2),
    info("political_audience", "Political Audience", 2),
    info("political_message", "Political Message", 9),
    info("rating_books", "Rating Books", 3),
    info("rating_dvd", "Rating DVD", 3),
    info("rating_electronics", "Rating Electronics", 3),
    info("rating_kitchen", "Rating Kitchen", 3),
];

/// Further tasks of the collection, which the paper's table leaves out: good for choosing settings.
pub const EXTRA: [LeopardInfo; 5] = [
    info("scitail", "SciTail", 2),
    info("sentiment_books", "Sentiment Books", 2),
    info("sentiment_dvd", "Sentiment DVD", 2),
    info("sentiment_electronics", "Sentiment Electronics", 2),
    info("sentiment_kitchen", "Sentiment Kitchen", 2),
];

/// The numbers of shots.
pub const SHOTS: [usize; 3] = [4, 8, 16];

/// The number of draws of each number of shots.
pub const DRAWS: usize = 10;

/// The task of this name, or of this name in the paper, whatever its capitals.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn by_name(name: &str) -> Result<&'static LeopardInfo> {
    let all = || TARGETS.iter().chain(&EXTRA);
    let found = all()
        .find(|task| task.name.eq_ignore_ascii_case(name) || task.display_name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let hint = did_you_mean(name, all().map(|task| task.name));
        let names = listed(TARGETS.iter().map(|task| task.name));
        let extra = listed(EXTRA.iter().map(|task| task.name));
        Error::input("LEOPARD", format!("there is no task {}{hint}; expected {names}, {extra}", quoted(name)))
    })
}

/// Where a test set is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalSource {
    /// The official file in JSON.
    Json,
    /// The official set, decoded from word pieces: spaces around punctuation, cut at 128 pieces.
    TfRecord,
    /// Not the official set, but another sample of the same source.
    Rebuilt,
}

impl EvalSource {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::TfRecord => "tf_record",
            Self::Rebuilt => "rebuilt",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Json, Self::TfRecord, Self::Rebuilt].into_iter().find(|source| source.word() == word)
    }
}

/// A task as sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeopardTexts {
    /// Which it is.
    pub info: LeopardInfo,
    /// The classes, sorted.
    pub classes: Vec<String>,
    /// The examples of each draw, by the number of shots and the number of the draw.
    pub draws: BTreeMap<(usize, usize), Vec<LabelledText>>,
    /// The test set.
    pub eval: Vec<LabelledText>,
    /// Where the test set is from.
    pub eval_source: EvalSource,
}

/// A task as tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeopardTask {
    /// Which it is.
    pub info: LeopardInfo,
    /// The classes, sorted.
    pub classes: Vec<String>,
    /// The examples of each draw, by the number of shots and the number of the draw.
    pub draws: BTreeMap<(usize, usize), TokenSet>,
    /// The test set, or a part of it.
    pub eval: TokenSet,
    /// The number of examples of the whole test set.
    pub eval_total: usize,
    /// Where the test set is from.
    pub eval_source: EvalSource,
    /// How many examples, of draws and test set, were longer than the tokeniser's limit and lost their end.
    pub truncated: usize,
}

/// A limit on the test set, for quick looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalCap {
    /// The most examples.
    pub rows: usize,
    /// Draws which.
    pub key: Key,
}

/// Reads a task.
///
/// # Errors
/// When the folder or the file is not there, a line does not hold what it should, or a draw does not have k examples of
/// every class.
pub fn read(folder: &Path, name: &str) -> Result<LeopardTexts> {
    let info = by_name(name)?;
    let whence = "the draws are public (the repository iesl/leopard on GitHub)";
    let path = find(folder, info.name, "LEOPARD", whence)?;
    parse_lines(info, Lines::open(&path)?)
}

/// Reads a task and makes tokens of it, with the whole test set or a part.
///
/// # Errors
/// As for [`read`].
pub fn open(folder: &Path, name: &str, tokeniser: &Tokeniser, cap: Option<EvalCap>) -> Result<LeopardTask> {
    read(folder, name)?.tokenise(tokeniser, cap)
}

fn parse_lines(info: &LeopardInfo, mut lines: Lines<'_>) -> Result<LeopardTexts> {
    let origin = lines.origin().to_owned();
    let mut all: Vec<(Record, String)> = Vec::new();
    let mut source: Option<EvalSource> = None;
    records(&mut lines, |record, text| {
        let refuse = |message: String| Err(wrong(&origin, record.line, &message));
        let label = record.label(&origin, text)?.to_owned();
        match (record.part, record.draw) {
            (Some(Part::Train), Some(_)) => {}
            (Some(Part::Train), None) => return refuse("a training line needs `k` and `draw`".into()),
            (Some(Part::Dev), _) => {
                let word = record.eval_source.as_deref().unwrap_or_default();
                let Some(found) = EvalSource::from_word(word) else {
                    return refuse(format!(
                        "`eval_source` is {}; expected json, tf_record or rebuilt",
                        quoted(word)
                    ));
                };
                if source.replace(found).is_some_and(|before| before != found) {
                    return refuse(format!("`eval_source` is {}, and another one before", quoted(word)));
                }
            }
            (None, _) => return refuse("`split` is missing; expected \"train\" or \"eval\"".into()),
        }
        all.push((record, label));
        Ok(())
    })?;
    let Some(eval_source) = source else {
        return Err(Error::input(&origin, "no line has the split `eval`; nothing could be scored"));
    };
    let distinct: BTreeSet<&str> = all.iter().map(|(_, label)| label.as_str()).collect();
    let classes: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
    if classes.len() != info.classes {
        let message = format!(
            "{} has {} classes, this file {}: {}; is it another task's?",
            info.name,
            info.classes,
            classes.len(),
            listed(classes.iter().map(String::as_str))
        );
        return Err(Error::input(&origin, message));
    }
    let mut texts =
        LeopardTexts { info: *info, classes, draws: BTreeMap::new(), eval: Vec::new(), eval_source };
    for (record, label) in all {
        // The classes are those of all lines.
        let label = texts.classes.binary_search(&label).unwrap_or_default();
        let example = LabelledText { sentences: record.sentences, label };
        match (record.part, record.draw) {
            (Some(Part::Train), Some(draw)) => texts.draws.entry(draw).or_default().push(example),
            _ => texts.eval.push(example),
        }
    }
    texts.check_draws(&origin)?;
    Ok(texts)
}

impl LeopardTexts {
    fn check_draws(&self, origin: &str) -> Result<()> {
        for (&(k, draw), examples) in &self.draws {
            for (label, class) in self.classes.iter().enumerate() {
                let count = examples.iter().filter(|example| example.label == label).count();
                if count != k {
                    let message = format!(
                        "draw {draw} of k = {k} has {} of class {}; expected {k}: copy the file again",
                        counted(count, "example"),
                        quoted(class)
                    );
                    return Err(Error::input(origin, message));
                }
            }
        }
        Ok(())
    }

    /// The same as tokens, with the whole test set or a part of it in the order of the whole.
    ///
    /// # Errors
    /// When the tokeniser cannot make tokens of a text.
    pub fn tokenise(&self, tokeniser: &Tokeniser, cap: Option<EvalCap>) -> Result<LeopardTask> {
        let mut truncated = 0;
        let mut tokens = |examples: &[LabelledText]| -> Result<TokenSet> {
            let (tokens, cut) = tokenise(examples, tokeniser)?;
            truncated += cut;
            Ok(tokens)
        };
        let draws = self
            .draws
            .iter()
            .map(|(&place, examples)| Ok((place, tokens(examples)?)))
            .collect::<Result<BTreeMap<_, _>>>()?;
        let eval = match cap {
            Some(EvalCap { rows, key }) if rows < self.eval.len() => {
                let key = key.named("eval").named(self.info.name);
                let mut chosen = key.generator().subset(self.eval.len(), rows);
                chosen.sort_unstable();
                tokens(&chosen.iter().map(|&row| self.eval[row].clone()).collect::<Vec<_>>())?
            }
            _ => tokens(&self.eval)?,
        };
        Ok(LeopardTask {
            info: self.info,
            classes: self.classes.clone(),
            draws,
            eval,
            eval_total: self.eval.len(),
            eval_source: self.eval_source,
            truncated,
        })
    }
}

impl LeopardTask {
    /// The numbers of the draws of k examples a class that there are.
    pub fn draws_of(&self, k: usize) -> Vec<usize> {
        self.draws.keys().filter(|(shots, _)| *shots == k).map(|&(_, draw)| draw).collect()
    }

    /// The examples of a draw.
    ///
    /// # Errors
    /// When there is no such draw; the error says which there are.
    pub fn draw(&self, k: usize, draw: usize) -> Result<&TokenSet> {
        self.draws.get(&(k, draw)).ok_or_else(|| {
            let numbers = self.draws_of(k);
            let message = if numbers.is_empty() {
                let shots: BTreeSet<usize> = self.draws.keys().map(|&(shots, _)| shots).collect();
                format!("there is no draw of k = {k}; there are k = {shots:?}")
            } else {
                format!("there is no draw {draw} of k = {k}; there are {numbers:?}")
            };
            Error::input(format!("LEOPARD's task {}", self.info.name), message)
        })
    }

    /// What a table of results must say about this task: draws that are missing, a test set that is not the official one
    /// or not whole, examples that were cut.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for k in SHOTS {
            let numbers = self.draws_of(k);
            let missing: Vec<String> =
                (0..DRAWS).filter(|draw| !numbers.contains(draw)).map(|draw| draw.to_string()).collect();
            if !missing.is_empty() {
                remarks.push(format!(
                    "{} of {DRAWS} draws of k = {k}: draw {} is missing in the data",
                    numbers.len(),
                    missing.join(", ")
                ));
            }
        }
        match self.eval_source {
            EvalSource::Json => {}
            EvalSource::TfRecord => {
                remarks.push("test sentences decoded from word pieces, cut at 128 of them".into());
            }
            EvalSource::Rebuilt => remarks.push("rebuilt test set, not the official one".into()),
        }
        if self.eval.len() < self.eval_total {
            remarks.push(format!(
                "{} of {} test examples, drawn at random",
                self.eval.len(),
                self.eval_total
            ));
        }
        if self.truncated > 0 {
            remarks.push(format!("{} cut to the limit of tokens", counted(self.truncated, "example")));
        }
        remarks
    }
}
