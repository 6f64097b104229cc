//! The one error type of the library: what went wrong, where, what was expected and what to do about it.
//!
//! Errors fall into two kinds. Some are *the user's to mend*: an input that is wrong (a file, a key, an argument, a place for
//! decoded pictures without room), or settings that led to numbers which are not finite or to a matrix that is not positive
//! definite. Everything else means that a run failed for another reason: a disk that fills while results are written, models of a
//! sweep whose failures are recorded. The command line turns the first kind into exit code 2 and the second into 1.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a piece of text does not hold what it should.
    #[error("{0}")]
    Input(InputError),
    /// A configuration key has a value that cannot be used.
    #[error("configuration key `{key}`: {message}")]
    Config {
        /// The dotted key, e.g. `method.beta`.
        key: String,
        /// What is wrong with it and what was expected.
        message: String,
    },
    /// The operating system refused to read, write or rename.
    #[error("{}", refused_by_system(action, path, source, *expected))]
    Io {
        /// What was attempted, e.g. `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason given by the system.
        source: std::io::Error,
        /// What should be there and what to do, where that is known.
        expected: Option<&'static str>,
    },
    /// The place for decoded pictures cannot be used: full, read-only, a file.
    #[error("cannot {action} {}: {source}; {}", path.display(), another_cache(source, *needed))]
    Cache {
        /// What was attempted, e.g. `create the cache folder`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason given by the system.
        source: std::io::Error,
        /// The bytes of all decoded pictures, where they can be counted.
        needed: Option<u64>,
    },
    /// A covariance matrix is not positive definite. Nothing is added to its diagonal behind the user's back.
    #[error(
        "task `{task}`: the {size} x {size} matrix K + s2 I with noise variance s2 = {noise_variance:e} is not positive \
         definite (pivot {pivot}){}; lower the temperature or look for examples that occur twice",
        temperature.map(|t| format!(" at temperature {t}")).unwrap_or_default()
    )]
    Factorisation {
        /// The task's name.
        task: String,
        /// The number of examples in the factorised matrix.
        size: usize,
        /// The noise variance s2 on the diagonal.
        noise_variance: f64,
        /// The Gibbs temperature that led to it, where there is one.
        temperature: Option<f64>,
        /// The index of the first pivot that was not positive.
        pivot: usize,
    },
    /// A temperature so extreme that squares of its noise variance would overflow.
    #[error(
        "task `{task}`: the temperature gives noise variance s2 = {noise_variance:e}, outside 1e-150..1e150; choose a \
         temperature nearer to the number of examples"
    )]
    ExtremeNoise {
        /// The task's name.
        task: String,
        /// The noise variance s2.
        noise_variance: f64,
    },
    /// Training produced a number that is not finite.
    #[error("iteration {iteration}: {quantity} is not finite; lower `training.rate` or the temperatures")]
    Diverged {
        /// The iteration that produced it.
        iteration: u64,
        /// What is not finite.
        quantity: String,
    },
    /// A step led to parameters that the passes, which are in single precision, cannot take.
    #[error(
        "iteration {iteration}: its step at rate {rate:e} led to parameters beyond single precision; lower `training.rate`"
    )]
    StepTooLong {
        /// The iteration.
        iteration: u64,
        /// The rate of the optimiser.
        rate: f64,
    },
    /// Validation tasks could not be scored, since a number was not finite.
    #[error("validation after iteration {iteration}: {reason}")]
    ValidationDiverged {
        /// The iteration whose parameters were validated.
        iteration: u64,
        /// Why.
        reason: Box<Error>,
    },
    /// A run stopped at a number that is not finite.
    #[error("{reason}; {advice}")]
    RunDiverged {
        /// Where and why.
        reason: Box<Error>,
        /// What is kept, and how to go on.
        advice: String,
    },
    /// A task of a batch failed.
    #[error("iteration {iteration}, task {task} of its batch: {reason}")]
    TaskFailed {
        /// The iteration.
        iteration: u64,
        /// The task, from 0.
        task: usize,
        /// Why.
        reason: Box<Error>,
    },
    /// The inner steps of a head, or of a whole network, led to a number that is not finite.
    #[error("{method}: {}", diverged_head(*step, *rate))]
    HeadDiverged {
        /// The method.
        method: &'static str,
        /// The inner step that led to it; 0 if it was there before.
        step: usize,
        /// The inner rate.
        rate: f64,
    },
    /// No candidate for the temperatures could be trained and scored.
    #[error(
        "every candidate for the temperatures failed, the first with: {reason}; give other candidates in [search], lower \
         `training.rate`, or set `method.beta` (and `method.alpha`) yourself"
    )]
    SearchFailed {
        /// Why the first one failed.
        reason: String,
    },
    /// The user interrupted the run; its state was written first.
    #[error("interrupted after iteration {iteration}; the same command continues from there")]
    Interrupted {
        /// The last finished iteration.
        iteration: u64,
    },
    /// The user interrupted the scoring of tasks.
    #[error("interrupted while tasks were scored; the same command continues from there")]
    ScoringInterrupted,
    /// The user interrupted a study; every finished model is recorded.
    #[error(
        "interrupted: {done} of {total} {} recorded; the same command continues from there",
        if *total == 1 { "piece is" } else { "pieces are" }
    )]
    StudyInterrupted {
        /// Recorded pieces.
        done: usize,
        /// All pieces.
        total: usize,
    },
    /// The user interrupted the search for temperatures; finished trials were written first.
    #[error(
        "interrupted after {finished} of {trials} trials of temperatures; the same command continues from there"
    )]
    SearchInterrupted {
        /// Finished trials.
        finished: usize,
        /// All trials.
        trials: usize,
    },
    /// The user interrupted the decoding of pictures; nothing of it was kept.
    #[error("interrupted after decoding {done} of {total} pictures; the same command decodes them anew")]
    DecodingInterrupted {
        /// Decoded pictures.
        done: usize,
        /// All pictures.
        total: usize,
    },
    /// A sweep is finished, and every one of its settings has a failed model.
    #[error("no setting can be chosen, since each has a failed model; the first: {reason}")]
    NothingToChoose {
        /// The first failure, in words.
        reason: String,
    },
    /// A model of a plan failed, which is recorded.
    #[error("the model of index {index} ({label}) failed: {reason}")]
    ModelFailed {
        /// Its index.
        index: usize,
        /// The model in words.
        label: String,
        /// Why.
        reason: String,
    },
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] pacmeta_tensor::TensorError),
    /// A bound was refused.
    #[error(transparent)]
    Bound(#[from] pacmeta_bounds::BoundError),
}

/// What is wrong with a JSON value, without the names that types have in this program.
pub(crate) fn json_in_words(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    for name in ["usize", "u64", "u32", "u16", "u8"] {
        text = text.replace(&format!("expected {name}"), "expected a whole number from 0 on");
    }
    for name in ["f64", "f32"] {
        text = text.replace(&format!("expected {name}"), "expected a number");
    }
    for (name, words) in [
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
        ("invalid type: ", "found "),
        ("invalid value: ", "found "),
    ] {
        text = text.replace(name, words);
    }
    text
}

fn refused_by_system(action: &str, path: &Path, source: &std::io::Error, expected: Option<&str>) -> String {
    let path = path.display();
    match (expected, source.kind()) {
        (None, _) => format!("cannot {action} {path}: {source}{}", way_out(action, source)),
        (Some(expected), std::io::ErrorKind::NotFound) => {
            format!("{path}: there is no such file; expected {expected}")
        }
        (Some(expected), std::io::ErrorKind::IsADirectory) => {
            format!("{path}: is a folder; expected {expected}")
        }
        (Some(expected), _) => format!("cannot {action} {path}: {source}; expected {expected}"),
    }
}

/// What to do about a refusal of the system; nothing where the error has a text of its own, which says so.
fn way_out(action: &str, source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind as Kind;
    let reads = ["read", "list", "find"].contains(&action);
    match source.kind() {
        _ if source.get_ref().is_some() => "",
        Kind::NotFound | Kind::NotADirectory if reads => "; check the path",
        Kind::NotFound => "; make its folder first, or choose another place",
        Kind::NotADirectory | Kind::AlreadyExists => "; a file is in the way: choose another place",
        Kind::IsADirectory => "; it is a folder: name a file",
        Kind::PermissionDenied => "; change the permissions, or choose another place",
        Kind::ReadOnlyFilesystem => "; choose a place that can be written to",
        Kind::StorageFull | Kind::QuotaExceeded => "; free some space and try again",
        Kind::FileTooLarge => {
            "; files may not grow so large here: raise the limit (`ulimit -f`) and try again"
        }
        _ => "",
    }
}

fn another_cache(source: &std::io::Error, needed: Option<u64>) -> String {
    use std::io::ErrorKind as Kind;
    let needed = needed.map_or(String::new(), |bytes| format!("{bytes} bytes are needed; "));
    let advice = match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => "free some space, or name",
        Kind::FileTooLarge => "raise the limit of files (`ulimit -f`), or name",
        _ => "name",
    };
    format!("{needed}{advice} another folder for decoded pictures by `data.cache` (`reproduce`: `--cache`)")
}

fn diverged_head(step: usize, rate: f64) -> String {
    match step {
        0 => "the parameters or features are not finite before the first inner step; lower `training.rate`"
            .to_owned(),
        step => format!(
            "what adapts is not finite after inner step {step} at rate {rate}; lower `method.rate` or the temperatures, raise \
             `method.sigma_squared` if it is far below 1, or lower `training.rate` if the loss grew before"
        ),
    }
}

/// Where an input is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file, or a phrase such as `standard input`.
    pub origin: String,
    /// The place inside it: a line, a column, a key, a tensor.
    pub place: Option<String>,
    /// What was found, what was expected and what to do.
    pub message: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{}, {place}: {}", self.origin, self.message),
            None => write!(f, "{}: {}", self.origin, self.message),
        }
    }
}

impl Error {
    /// An input error about a whole file or text.
    pub fn input(origin: impl fmt::Display, message: impl Into<String>) -> Self {
        Self::Input(InputError { origin: origin.to_string(), place: None, message: message.into() })
    }

    /// An input error about a place (a line, a key, a tensor) in a file or text.
    pub fn input_at(origin: impl fmt::Display, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Input(InputError {
            origin: origin.to_string(),
            place: Some(place.into()),
            message: message.into(),
        })
    }

    /// An error about a configuration key.
    pub fn config(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Config { key: key.into(), message: message.into() }
    }

    /// An error of the operating system about a path.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_path_buf(), source, expected: None }
    }

    /// The same about a file that was to be read, with what should be there and what to do.
    pub(crate) fn reading(path: impl AsRef<Path>, source: std::io::Error, expected: &'static str) -> Self {
        let path = path.as_ref().to_path_buf();
        Self::Io { action: "read", path, source, expected: Some(expected) }
    }

    /// A run that diverged, with other advice on how to go on; every other error as it is.
    #[must_use]
    pub fn advising(self, advice: impl Into<String>) -> Self {
        match self {
            Self::RunDiverged { reason, .. } => Self::RunDiverged { reason, advice: advice.into() },
            other => other,
        }
    }

    /// Whether the user interrupted the run.
    pub fn is_interruption(&self) -> bool {
        matches!(
            self,
            Self::Interrupted { .. }
                | Self::ScoringInterrupted
                | Self::SearchInterrupted { .. }
                | Self::StudyInterrupted { .. }
                | Self::DecodingInterrupted { .. }
        )
    }

    /// Whether numbers that are not finite are what stopped the training.
    pub(crate) fn is_divergence(&self) -> bool {
        match self {
            Self::Diverged { .. }
            | Self::StepTooLong { .. }
            | Self::ValidationDiverged { .. }
            | Self::HeadDiverged { .. } => true,
            Self::TaskFailed { reason, .. } => reason.is_divergence(),
            _ => false,
        }
    }

    /// The iteration after which the parameters were such that they fail again, whatever the rate.
    pub(crate) fn failing_state(&self) -> Option<u64> {
        match self {
            Self::Diverged { iteration, .. } | Self::TaskFailed { iteration, .. } => iteration.checked_sub(1),
            _ => None,
        }
    }

    /// Whether the same command would fail again until the user changes what it is given: an input that is wrong, or settings
    /// that led to numbers which are not finite or to a matrix that is not positive definite.
    pub fn is_to_be_mended(&self) -> bool {
        let by_settings =
            matches!(self, Self::RunDiverged { .. } | Self::SearchFailed { .. } | Self::Factorisation { .. });
        match self {
            Self::TaskFailed { reason, .. } => reason.is_to_be_mended(),
            _ => by_settings || self.is_divergence() || self.is_input(),
        }
    }

    /// Whether the user's input is at fault, rather than the run itself.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Input(_)
            | Self::Config { .. }
            | Self::Bound(_)
            | Self::ExtremeNoise { .. }
            | Self::Cache { .. } => true,
            Self::Io { source, .. } => matches!(
                source.kind(),
                std::io::ErrorKind::NotFound
                    | std::io::ErrorKind::IsADirectory
                    | std::io::ErrorKind::NotADirectory
                    | std::io::ErrorKind::AlreadyExists
                    | std::io::ErrorKind::ReadOnlyFilesystem
                    | std::io::ErrorKind::PermissionDenied
                    | std::io::ErrorKind::InvalidData
            ),
            _ => false,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_the_user_has_to_mend_is_told_from_what_may_not_happen_again() {
        let diverged = || Error::Diverged { iteration: 3, quantity: "the loss".to_owned() };
        let io = |number| Error::io("write", "a/b", io::Error::from_raw_os_error(number));
        let boxed = |error| Error::TaskFailed { iteration: 3, task: 0, reason: Box::new(error) };
        let run = Error::RunDiverged { reason: Box::new(boxed(diverged())), advice: String::new() };
        let full = io::Error::from_raw_os_error(28);
        let cache = Error::Cache { action: "write", path: "c".into(), source: full, needed: Some(9) };
        for error in [diverged(), boxed(diverged()), boxed(Error::input("x", "y")), run, cache, io(30)] {
            assert!(error.is_to_be_mended(), "{error}");
        }
        let failed = Error::NothingToChoose { reason: "x".to_owned() };
        for error in [io(28), boxed(io(28)), failed, Error::ScoringInterrupted] {
            assert!(!error.is_to_be_mended(), "{error}");
        }
    }

    #[test]
    fn refusals_of_the_system_come_with_a_way_out() {
        // numbers of Linux: no such file, exists, is a folder, too large, no space, read-only
        for (action, number, words, is_input) in [
            ("read", 2, "check the path", true),
            ("write", 2, "make its folder first", true),
            ("create", 17, "a file is in the way", true),
            ("write", 21, "name a file", true),
            ("write", 27, "`ulimit -f`", false),
            ("write", 28, "free some space and try again", false),
            ("create", 30, "a place that can be written to", true),
        ] {
            let error = Error::io(action, "a/b", io::Error::from_raw_os_error(number));
            let text = error.to_string();
            assert!(text.starts_with(&format!("cannot {action} a/b: ")) && text.contains(words), "{text}");
            assert_eq!(error.is_input(), is_input, "{text}");
        }
        let told =
            Error::io("write", "a", io::Error::new(io::ErrorKind::StorageFull, "the disk is full; tidy up"));
        assert_eq!(told.to_string(), "cannot write a: the disk is full; tidy up");
    }
}
