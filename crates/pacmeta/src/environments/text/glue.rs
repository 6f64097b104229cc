//! The tasks of GLUE (Wang et al., 2019) and SNLI (Bowman et al., 2015), from which text priors are learnt.
//!
//! **Files**: a folder with `<name>.jsonl.gz` (or `.jsonl`), one line an example with `split` (`train` or `dev`),
//! `sentence1`, `sentence2` where the task has pairs, and `label`.
//!
//! STS-B is a regression from 0 (unrelated) to 5 (equal). It becomes a task of five classes, the scores from i to i + 1
//! for i = 0, ..., 4, each without its upper end but the last. It is known by the name of its file, whatever other tasks lie beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::read::labelled;
use super::{LabelledTexts, TextTask, Tokeniser};
use crate::environments::table::{did_you_mean, quoted};
use crate::error::{Error, Result};

/// A task of the collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlueTask {
    /// The name, also of its file.
    pub name: &'static str,
    /// Whether examples are pairs of sentences.
    pub paired: bool,
    /// The number of classes.
    pub classes: usize,
    /// What is asked.
    pub question: &'static str,
}

const fn task(name: &'static str, paired: bool, classes: usize, question: &'static str) -> GlueTask {
    GlueTask { name, paired, classes, question }
}

/// All tasks.
pub const TASKS: [GlueTask; 10] = [
    task("CoLA", false, 2, "is the sentence good English?"),
    task("SST-2", false, 2, "is the review positive?"),
    task("MRPC", true, 2, "do the sentences say the same?"),
    task("QQP", true, 2, "are the questions the same?"),
    task("STS-B", true, 5, "how alike are the sentences?"),
    task("MNLI", true, 3, "does the second sentence follow?"),
    task("QNLI", true, 2, "does the sentence answer the question?"),
    task("RTE", true, 2, "does the second sentence follow?"),
    task("WNLI", true, 2, "does the second sentence follow (pronouns)?"),
    task("SNLI", true, 3, "does the second sentence follow (captions)?"),
];

/// The task whose scores become classes.
const SCORED: &str = "STS-B";

/// Whether a folder holds the tasks of these names, all of them if `names` is empty.
pub fn is_here(folder: &Path, names: &[String]) -> bool {
    let here = |task: &GlueTask| file_of(folder, task.name).is_some();
    match names {
        [] => TASKS.iter().all(here),
        names => names.iter().all(|name| by_name(name).is_ok_and(here)),
    }
}

/// Refuses a folder that lacks tasks of the collection.
///
/// # Errors
/// When tasks are missing, with all their names.
pub fn check_complete(folder: &Path) -> Result<()> {
    let missing: Vec<&str> =
        TASKS.iter().map(|task| task.name).filter(|name| file_of(folder, name).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let (some, files) = (missing.join(", "), if missing.len() == 1 { "is" } else { "are" });
    let message = format!(
        "of GLUE's tasks {some} {files} missing; expected <task>.jsonl.gz or <task>.jsonl of each, {FIELDS}: {WHERE}"
    );
    Err(Error::input(folder.display(), message))
}

/// What class the label of a task's file is: that of its score in STS-B, the label itself elsewhere.
pub(super) fn class_of(task: &str, label: &str) -> std::result::Result<String, String> {
    if task == SCORED { bin(label) } else { Ok(label.to_owned()) }
}

/// Reads the tasks of these names; all of them if `names` is empty.
///
/// # Errors
/// When the folder or a file is not there, a name is unknown, or a file does not hold what it should.
pub fn read(folder: &Path, names: &[String]) -> Result<Vec<LabelledTexts>> {
    let mut tasks: Vec<&GlueTask> = if names.is_empty() {
        TASKS.iter().collect()
    } else {
        names.iter().map(|name| by_name(name)).collect::<Result<_>>()?
    };
    // A task that is named twice is one task.
    let mut seen = BTreeSet::new();
    tasks.retain(|task| seen.insert(task.name));
    tasks.into_iter().map(|task| read_one(folder, task)).collect()
}

/// Reads tasks as [`read`] does and makes tokens of them.
///
/// # Errors
/// As for [`read`].
pub fn open(folder: &Path, names: &[String], tokeniser: &Tokeniser) -> Result<Vec<TextTask>> {
    read(folder, names)?.iter().map(|texts| texts.tokenise(tokeniser)).collect()
}

/// The task of this name, whatever its capitals.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn by_name(name: &str) -> Result<&'static GlueTask> {
    TASKS.iter().find(|task| task.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names = TASKS.map(|task| task.name);
        let message = format!(
            "there is no task {}{}; expected {}",
            quoted(name),
            did_you_mean(name, names),
            names.join(", ")
        );
        Error::input("GLUE", message)
    })
}

fn read_one(folder: &Path, task: &GlueTask) -> Result<LabelledTexts> {
    let path = find(folder, task.name, "GLUE", WHERE)?;
    let texts = labelled(task.name, Lines::open(&path)?, &mut |label| class_of(task.name, label))?;
    if texts.is_paired() != task.paired || texts.classes.len() != task.classes {
        let message = format!(
            "{} has {} of {} classes, this file {} of {}; is it another task's?",
            task.name,
            if task.paired { "pairs" } else { "single sentences" },
            task.classes,
            if texts.is_paired() { "pairs" } else { "single sentences" },
            texts.classes.len()
        );
        return Err(Error::input(path.display(), message));
    }
    Ok(texts)
}

const WHERE: &str = "the official files are public (gluebenchmark.com, and nlp.stanford.edu for SNLI)";

/// What lines hold, for messages.
const FIELDS: &str =
    "one JSON object a line with `split`, `sentence1`, `sentence2` in tasks of pairs, and `label`";

/// The file of a task, if it is there.
fn file_of(folder: &Path, name: &str) -> Option<PathBuf> {
    let paths = [format!("{name}.jsonl.gz"), format!("{name}.jsonl")].map(|file| folder.join(file));
    paths.into_iter().find(|path| path.is_file())
}

/// The file of a task in a folder of benchmark tasks.
pub(super) fn find(folder: &Path, name: &str, benchmark: &str, whence: &str) -> Result<PathBuf> {
    if !folder.is_dir() {
        let message = format!(
            "there is no such folder; expected {benchmark}'s tasks in it as {name}.jsonl.gz and so on, {FIELDS}: {whence}"
        );
        return Err(Error::input(folder.display(), message));
    }
    file_of(folder, name).ok_or_else(|| {
        let message = format!(
            "{benchmark}'s task {name} is missing; expected {name}.jsonl.gz or {name}.jsonl, {FIELDS}: {whence}"
        );
        Error::input(folder.display(), message)
    })
}

/// The class of a score.
fn bin(label: &str) -> std::result::Result<String, String> {
    match label.parse::<f64>() {
        Ok(score) if (0.0..=5.0).contains(&score) => {
            let low = (score.floor() as u8).min(4);
            Ok(format!("{low}-{}", low + 1))
        }
        _ => Err(format!(
            "`label` is {}; expected a score from 0 to 5, as in GLUE's {SCORED}; call a file of other labels otherwise",
            quoted(label)
        )),
    }
}
