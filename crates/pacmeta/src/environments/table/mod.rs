//! Tasks from tables: people's own data in CSV or JSON.
//!
//! **CSV**: a header line, then one example a row: a column that names the task, the features, the target and
//! optionally `adapt` (1 for the examples of S', 0 for the others). Rows of a task need not be neighbours; tasks keep
//! the order in which they first appear.
//!
//! **JSON**: `{"tasks": [{"name": "a", "x": [[1, 2], [3, 4]], "y": [5, 6], "adapt": [0]}]}` with an optional name and
//! `adapt` (indices counted from 0), an optional `"features": ["width", "height"]` beside `"tasks"`, and `x` as a plain
//! list of numbers where there is one feature.
//!
//! Nothing is guessed and nothing is repaired: a missing value, a text among numbers or a misspelt column is an error
//! that says where it is and what to do. Spaces around names and numbers do not count. Memory stays proportional to
//! the size of the input.
//!
//! ```
//! use pacmeta::environments::table::{TableOptions, parse_csv};
//!
//! let text = "shop,price,sold\nnorth,1.0,12\nsouth,1.5,3\nnorth,2.0,9\nsouth,1.0,4\n";
//! let options = TableOptions { task: "shop".into(), target: "sold".into(), ..TableOptions::default() };
//! let table = parse_csv("shops.csv", text.as_bytes(), &options)?;
//! assert_eq!(table.feature_names, ["price"]);
//! assert_eq!(table.tasks[0].targets(), [12.0, 9.0]);
//! # Ok::<(), pacmeta::Error>(())
//! ```

pub(crate) mod csv;
mod export;
mod json;
mod names;
mod predictions;
mod queries;
mod strict;
mod words;

pub use csv::{parse_csv, parse_csv_for};
pub use export::{tasks_to_csv, tasks_to_json};
pub use json::{parse_json, parse_json_for};
pub use names::{FeatureNames, are_default_names};
pub use predictions::{Prediction, write_predictions};
pub use queries::{Queries, parse_queries, parse_queries_for, read_queries};
pub(crate) use words::{counted, did_you_mean, listed, quoted};

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::task::Task;

/// Which columns of a table mean what, and which tasks are large enough.
///
/// | field | configuration | default | meaning |
/// |---|---|---|---|
/// | `task` | `data.task` | `task` | the CSV column that names the task |
/// | `target` | `data.target` | `y` | the CSV column of the target (in JSON always the key `y`; this is its name) |
/// | `features` | `data.features` | all others | the features, in this order |
/// | `min_examples` | `data.min_examples` | none | smaller tasks are left out; without it a task of one example is an error |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// The column that names the task.
    pub task: String,
    /// The column of the target.
    pub target: String,
    /// The features in the order wanted; all other columns if none.
    pub features: Option<Vec<String>>,
    /// Tasks with fewer examples are left out.
    pub min_examples: Option<usize>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { task: "task".into(), target: "y".into(), features: None, min_examples: None }
    }
}

impl TableOptions {
    /// Refuses choices that contradict each other, whatever the file says.
    fn check(&self) -> Result<()> {
        let Some(features) = &self.features else {
            return Ok(());
        };
        if features.is_empty() {
            return Err(Error::config(
                "data.features",
                "expected at least one feature; leave it out for all columns",
            ));
        }
        if let Some(name) = repeated(features.iter().map(String::as_str)) {
            return Err(Error::config("data.features", format!("{} is listed twice", quoted(name))));
        }
        Ok(())
    }
}

/// Who chose the columns of a table, and so what to change when one of them is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnsOf {
    /// A configuration, by its section `[data]`.
    Configuration,
    /// A prior, by what it was trained on, and the command line's `--task-column`.
    Prior,
}

/// Tasks read from a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskTable {
    /// The tasks, in order of first appearance.
    pub tasks: Vec<Task>,
    /// The name of every feature.
    pub feature_names: Vec<String>,
    /// The name of the target.
    pub target_name: String,
    /// The names of the tasks that have fewer than `min_examples` examples.
    pub left_out: Vec<String>,
}

/// The two ways to write a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// JSON.
    Json,
}

impl Format {
    /// The format that the ending `.csv` or `.json` of `origin` says, else JSON if the text begins with a brace or a
    /// bracket, else CSV.
    pub fn of(origin: &str, bytes: &[u8]) -> Self {
        let extension = Path::new(origin).extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Self::Csv,
            Some("json") => Self::Json,
            _ => match without_mark(bytes).iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{' | b'[') => Self::Json,
                _ => Self::Csv,
            },
        }
    }
}

/// Reads tasks from a CSV or JSON file; `-` is standard input. See [`Format::of`] for how the format is told.
///
/// # Errors
/// When the file cannot be read or does not hold what the [module documentation](self) describes, or when tasks are too
/// small and [`TableOptions::min_examples`] does not say what to do.
pub fn read_tasks(path: impl AsRef<Path>, options: &TableOptions) -> Result<TaskTable> {
    let (origin, bytes) = read_bytes(path.as_ref())?;
    match Format::of(&origin, &bytes) {
        Format::Csv => parse_csv(&origin, &bytes, options),
        Format::Json => parse_json(&origin, &bytes, options),
    }
}

/// Reads one small data set to adapt to; `-` is standard input. See [`parse_support`].
///
/// # Errors
/// When the file cannot be read, or as for [`parse_support`].
pub fn read_support(path: impl AsRef<Path>, feature_names: &[String], target: &str) -> Result<Task> {
    let (origin, bytes) = read_bytes(path.as_ref())?;
    parse_support(&origin, &bytes, feature_names, target)
}

/// One small data set: a CSV with the features and the target among its columns, or JSON `{"x": ..., "y": ...}` or
/// `{"tasks": [...]}` with one task. Every example is used: other columns (a task, an `adapt`) are ignored. See
/// [`parse_support_of`] for files of several tasks.
///
/// # Errors
/// When a column is missing or a value is not a finite number.
pub fn parse_support(origin: &str, bytes: &[u8], feature_names: &[String], target: &str) -> Result<Task> {
    let names = FeatureNames::Prior(feature_names.to_vec());
    parse_support_of(origin, bytes, &names, target, &SupportTask::All).map(|(task, _)| task)
}

/// Which examples of a file are the data set to adapt to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupportTask<'a> {
    /// All of them, whatever their tasks.
    All,
    /// All of them, which must belong to one task where there is a column of task names.
    Only {
        /// The column that names tasks.
        column: &'a str,
    },
    /// Those of one task.
    Named {
        /// The column that names tasks.
        column: &'a str,
        /// The task.
        name: &'a str,
    },
}

impl SupportTask<'_> {
    /// Refuses several names where one is expected, and a name that is not there.
    fn check<'n>(&self, origin: &str, names: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
        match self {
            Self::All => Ok(()),
            Self::Only { .. } if names.clone().count() < 2 => Ok(()),
            Self::Only { .. } => Err(Error::input(
                origin,
                format!(
                    "has the examples of {} tasks, and a prior adapts to one: {}; choose it with --task NAME",
                    names.clone().count(),
                    listed(names)
                ),
            )),
            Self::Named { name, .. } if names.clone().any(|found| found == *name) => Ok(()),
            Self::Named { name, .. } => Err(Error::input(
                origin,
                format!(
                    "there is no task {}{}; the tasks are {}",
                    quoted(name),
                    did_you_mean(name, names.clone()),
                    listed(names)
                ),
            )),
        }
    }
}

/// The same for one task of a file that may hold several, with the names that its queries are to have.
///
/// # Errors
/// As for [`parse_support`]; also when there are several tasks and none was chosen, or the chosen one is not there.
pub fn parse_support_of(
    origin: &str,
    bytes: &[u8],
    wanted: &FeatureNames,
    target: &str,
    choice: &SupportTask<'_>,
) -> Result<(Task, FeatureNames)> {
    let stem = Path::new(origin).file_stem().and_then(|stem| stem.to_str()).unwrap_or("support");
    match Format::of(origin, bytes) {
        Format::Csv => csv::support(origin, bytes, stem, wanted, target, choice),
        Format::Json => json::support(origin, bytes, stem, wanted, choice),
    }
}

const EXPECTED: &str = "a table in CSV or JSON, or `-` for standard input; check the path";

/// Longer files are no tables of small tasks.
const MAX_BYTES: u64 = 1 << 30;

/// The whole of a file, or of standard input for `-`, and the name that messages give it.
///
/// # Errors
/// When it cannot be read, is a device, has more than 1 GiB or is no text.
pub fn read_bytes(path: &Path) -> Result<(String, Vec<u8>)> {
    if path == Path::new("-") {
        let origin = "standard input".to_owned();
        let bytes = read_text(&origin, std::io::stdin().lock(), MAX_BYTES)?;
        return Ok((origin, bytes));
    }
    let origin = path.display().to_string();
    let io_error = |source| Error::reading(path, source, EXPECTED);
    let file = File::open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    if is_device(&metadata) {
        return Err(Error::input(origin, "is a device; expected a file or a pipe with a table"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(too_long(&origin, MAX_BYTES));
    }
    let bytes = read_text(&origin, file, MAX_BYTES)?;
    Ok((origin, bytes))
}

/// Devices may have no end; pipes do.
fn is_device(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

fn too_long(origin: &str, max_bytes: u64) -> Error {
    let message =
        format!("has more than {max_bytes} bytes, the most that is read; split it into several files");
    Error::input(origin, message)
}

/// All bytes, unless the first ones show that this is no text, or there are too many.
fn read_text(origin: &str, mut reader: impl Read, max_bytes: u64) -> Result<Vec<u8>> {
    const FIRST: u64 = 1 << 13;
    let io_error = |source| Error::reading(origin, source, EXPECTED);
    let mut bytes = Vec::new();
    reader.by_ref().take(FIRST).read_to_end(&mut bytes).map_err(io_error)?;
    // UTF-16 has NUL bytes too; where it says what it is, there is a better message later.
    if bytes.contains(&0) && !is_utf16(&bytes) {
        return Err(Error::input(origin, "is no text: there are NUL bytes in it; expected CSV or JSON"));
    }
    let rest = (max_bytes + 1).saturating_sub(bytes.len() as u64);
    reader.take(rest).read_to_end(&mut bytes).map_err(io_error)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_long(origin, max_bytes));
    }
    Ok(bytes)
}

fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")
}

/// The bytes without a UTF-8 byte order mark, which spreadsheets like to put in front.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The text of a file.
pub(crate) fn text<'a>(origin: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let bytes = without_mark(bytes);
    if is_utf16(bytes) {
        return Err(Error::input(origin, "the text is in UTF-16; save the file as UTF-8"));
    }
    std::str::from_utf8(bytes).map_err(|problem| {
        let before = &bytes[..problem.valid_up_to()];
        let line = 1 + line_ends(before, bytes.get(problem.valid_up_to()).copied());
        Error::input_at(origin, format!("line {line}"), "the text is not UTF-8; save the file as UTF-8")
    })
}

/// The number of line ends in `bytes`: `\n`, `\r\n` or `\r`, where `next` is the byte that follows.
fn line_ends(bytes: &[u8], next: Option<u8>) -> usize {
    let following = bytes.iter().skip(1).copied().map(Some).chain([next]);
    bytes
        .iter()
        .zip(following)
        .filter(|&(&byte, next)| byte == b'\n' || (byte == b'\r' && next != Some(b'\n')))
        .count()
}

/// The first name that occurred before.
fn repeated<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// Leaves out the tasks that are too small, or refuses them where nobody said so.
fn finish(
    origin: &str,
    tasks: Vec<Task>,
    feature_names: Vec<String>,
    options: &TableOptions,
) -> Result<TaskTable> {
    let smallest = options.min_examples.unwrap_or(2);
    let total = tasks.len();
    let largest = tasks.iter().map(Task::len).max().unwrap_or(0);
    let (tasks, small): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(|task| task.len() >= smallest);
    let left_out: Vec<String> = small.iter().map(|task| task.name().to_string()).collect();
    if options.min_examples.is_none() && !left_out.is_empty() {
        return Err(Error::input(
            origin,
            format!(
                "{} of {total} tasks {} one example only, and learning from a task takes two: {}; add examples, or \
                 set `data.min_examples = 2` to leave such tasks out",
                left_out.len(),
                if left_out.len() == 1 { "has" } else { "have" },
                listed(left_out.iter().map(String::as_str))
            ),
        ));
    }
    if tasks.is_empty() {
        return Err(Error::input(
            origin,
            format!(
                "none of the {total} tasks has `data.min_examples = {smallest}` examples, the largest has {largest}; \
                 lower `data.min_examples`"
            ),
        ));
    }
    Ok(TaskTable { tasks, feature_names, target_name: options.target.clone(), left_out })
}

#[cfg(test)]
mod tests;
