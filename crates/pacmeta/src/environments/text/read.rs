//! Tasks and queries in JSON lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::lines::{Lines, wrong};
use super::records::Record;
use super::{LabelledText, LabelledTexts, Part, Sentences, TextTask, Tokeniser, glue};
use crate::environments::table::{listed, quoted};
use crate::error::{Error, Result};

/// Sentences at which somebody wants predictions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextQueries {
    /// The sentences.
    pub sentences: Vec<Sentences>,
    /// The label of each, where the file states one.
    pub labels: Vec<Option<String>>,
    /// The line of each, from 1.
    pub lines: Vec<usize>,
}

/// Reads a task from a file of JSON lines, plain or gzip; `-` is standard input. See the
/// [module documentation](super) for the fields.
///
/// # Errors
/// When the file cannot be read or does not hold what it should; the error names the line.
pub fn read_texts(path: &Path) -> Result<LabelledTexts> {
    labelled(&task_name(path), Lines::open(path)?, &mut |label| Ok(label.to_owned()))
}

/// The same from bytes.
///
/// # Errors
/// As for [`read_texts`].
///
/// ```
/// use pacmeta::environments::text::parse_texts;
///
/// let lines = br#"{"sentence1": "The match was lost in the last minute.", "label": "sport"}
/// {"sentence1": "Parliament votes on Monday.", "label": "politics"}"#;
/// let task = parse_texts("news.jsonl", lines)?;
/// assert_eq!((task.classes, task.train[0].label), (vec!["politics".to_owned(), "sport".to_owned()], 1));
/// # Ok::<(), pacmeta::Error>(())
/// ```
pub fn parse_texts(origin: &str, bytes: &[u8]) -> Result<LabelledTexts> {
    let name = task_name(Path::new(origin));
    labelled(&name, Lines::of_bytes(origin, bytes)?, &mut |label| Ok(label.to_owned()))
}

/// Reads a task and makes tokens of it.
///
/// # Errors
/// As for [`read_texts`].
pub fn read_task(path: &Path, tokeniser: &Tokeniser) -> Result<TextTask> {
    read_texts(path)?.tokenise(tokeniser)
}

/// Reads sentences to predict; labels may be missing. `-` is standard input.
///
/// # Errors
/// As for [`read_texts`], but for labels and classes.
pub fn read_queries(path: &Path) -> Result<TextQueries> {
    queries(Lines::open(path)?)
}

/// The same from bytes.
///
/// # Errors
/// As for [`read_queries`].
pub fn parse_queries(origin: &str, bytes: &[u8]) -> Result<TextQueries> {
    queries(Lines::of_bytes(origin, bytes)?)
}

/// Reads all tasks of a folder, one `.jsonl` or `.jsonl.gz` file each, sorted by name; or the one task of a file. A file called `STS-B`
/// holds scores, which become classes ([`glue`]).
///
/// # Errors
/// When there is no such file, two files are one task's, or a file does not hold what it should.
pub fn read_folder(path: &Path) -> Result<Vec<LabelledTexts>> {
    if path.is_file() {
        return Ok(vec![read_named(path)?]);
    }
    let expected = "a folder with a .jsonl file of labelled sentences a task; check the path (`data.path`)";
    let list_error = |source| Error::reading(path, source, expected);
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(list_error)? {
        let file = entry.map_err(list_error)?.path();
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        if name.starts_with('.') || !(lower.ends_with(".jsonl") || lower.ends_with(".jsonl.gz")) {
            continue;
        }
        if !file.is_file() {
            let message =
                "is no file, or a link to nothing; expected labelled sentences: restore, rename or remove it";
            return Err(Error::input(file.display(), message));
        }
        if let Some(before) = files.insert(task_name(&file), file.clone()) {
            let message = format!("is the same task as {}; remove one of them", before.display());
            return Err(Error::input(file.display(), message));
        }
    }
    if files.is_empty() {
        let others = passed_over(path);
        let others = match &others[..] {
            [] => String::new(),
            [name] => format!(" (there is {}: convert it)", quoted(name)),
            names => format!(" (there are {}: convert them)", listed(names.iter().map(String::as_str))),
        };
        let message = format!(
            "there is no .jsonl or .jsonl.gz file in this folder{others}; expected one file of labelled sentences a task"
        );
        return Err(Error::input(path.display(), message));
    }
    files.values().map(|file| read_named(file)).collect()
}

/// The files of a folder that could have been meant as tasks, and are none by their endings; sorted.
pub fn passed_over(folder: &Path) -> Vec<String> {
    let meant = |name: &String| {
        let lower = name.to_ascii_lowercase();
        let plain = lower.strip_suffix(".gz").unwrap_or(&lower);
        let is_about_the_folder = ["readme", "license", "."].iter().any(|start| lower.starts_with(start));
        !is_about_the_folder && OTHER_ENDINGS.iter().any(|ending| plain.ends_with(ending))
    };
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter(|entry| entry.path().is_file());
    let mut names: Vec<String> =
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(meant).collect();
    names.sort();
    names
}

/// Endings of files that people keep labelled sentences in, and that are not read.
const OTHER_ENDINGS: [&str; 5] = [".json", ".ndjson", ".csv", ".tsv", ".txt"];

/// A task known by the name of its file: scores of GLUE's STS-B become classes.
fn read_named(path: &Path) -> Result<LabelledTexts> {
    let name = task_name(path);
    labelled(&name, Lines::open(path)?, &mut |label| glue::class_of(&name, label))
}

/// Reads all tasks of a folder and makes tokens of them.
///
/// # Errors
/// As for [`read_folder`].
pub fn open_folder(path: &Path, tokeniser: &Tokeniser) -> Result<Vec<TextTask>> {
    read_folder(path)?.iter().map(|texts| texts.tokenise(tokeniser)).collect()
}

/// The file name without its ending.
fn task_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".GZ")).unwrap_or(&name);
    match stem.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => stem.to_owned(),
    }
}

/// All records of a file: either all have a second sentence or none has.
pub(super) fn records(
    lines: &mut Lines<'_>,
    mut each: impl FnMut(Record, &str) -> Result<()>,
) -> Result<usize> {
    let origin = lines.origin().to_owned();
    let mut first: Option<(usize, bool)> = None;
    let mut count = 0;
    while let Some((line, text)) = lines.next()? {
        let record = Record::parse(&origin, line, text)?;
        let pair = record.sentences.second.is_some();
        match first {
            Some((before, expected)) if expected != pair => {
                let (this, that) = if pair { ("has a", "none") } else { ("has no", "one") };
                let message = format!(
                    "this line {this} `sentence2`, and line {before} has {that}; a task is made of single sentences or of pairs \
                     throughout"
                );
                return Err(wrong(&origin, line, &message));
            }
            Some(_) => {}
            None => first = Some((line, pair)),
        }
        each(record, text)?;
        count += 1;
    }
    if count == 0 {
        return Err(Error::input(&origin, "there is no line; expected one JSON object a line"));
    }
    Ok(count)
}

/// A labelled set; `class` says what class a label is.
pub(super) fn labelled(
    name: &str,
    mut lines: Lines<'_>,
    class: &mut dyn FnMut(&str) -> std::result::Result<String, String>,
) -> Result<LabelledTexts> {
    let origin = lines.origin().to_owned();
    let mut examples: Vec<(Record, String)> = Vec::new();
    let mut stated: Option<(usize, bool)> = None;
    records(&mut lines, |record, text| {
        let label =
            class(record.label(&origin, text)?).map_err(|reason| wrong(&origin, record.line, &reason))?;
        match stated {
            Some((before, expected)) if expected != record.part.is_some() => {
                let (this, that) = if expected { ("has no", "one") } else { ("has a", "none") };
                let message = format!(
                    "this line {this} `split`, and line {before} has {that}; write it in every line or in none"
                );
                return Err(wrong(&origin, record.line, &message));
            }
            Some(_) => {}
            None => stated = Some((record.line, record.part.is_some())),
        }
        examples.push((record, label));
        Ok(())
    })?;
    let part_of = |record: &Record| record.part.unwrap_or(Part::Train);
    let in_train = |(record, _): &&(Record, String)| part_of(record) == Part::Train;
    let classes: Vec<String> = {
        let distinct: BTreeSet<&str> =
            examples.iter().filter(in_train).map(|(_, label)| label.as_str()).collect();
        distinct.into_iter().map(str::to_owned).collect()
    };
    if classes.is_empty() {
        return Err(Error::input(&origin, "no line has the split `train`; nothing could be learnt from it"));
    }
    if classes.len() == 1 {
        let lines = match examples.iter().filter(in_train).count() {
            1 => "the only training line has".to_owned(),
            count => format!("all {count} training lines have"),
        };
        let message = format!("{lines} the label {}; a task needs two classes or more", quoted(&classes[0]));
        return Err(Error::input(&origin, message));
    }
    let mut texts = LabelledTexts { name: name.to_owned(), classes, train: Vec::new(), dev: Vec::new() };
    for (record, label) in examples {
        let part = part_of(&record);
        let Ok(label) = texts.classes.binary_search(&label) else {
            let message = format!(
                "the label {} occurs in no training line (those have {}); correct it, or mark some of its lines `train`",
                quoted(&label),
                listed(texts.classes.iter().map(String::as_str))
            );
            return Err(wrong(&origin, record.line, &message));
        };
        let example = LabelledText { sentences: record.sentences, label };
        match part {
            Part::Train => texts.train.push(example),
            Part::Dev => texts.dev.push(example),
        }
    }
    Ok(texts)
}

fn queries(mut lines: Lines<'_>) -> Result<TextQueries> {
    let mut queries = TextQueries { sentences: Vec::new(), labels: Vec::new(), lines: Vec::new() };
    records(&mut lines, |record, _| {
        queries.sentences.push(record.sentences);
        queries.labels.push(record.label);
        queries.lines.push(record.line);
        Ok(())
    })?;
    Ok(queries)
}
