//! The folder of a study: what is to be run, the record of what was, and a lock that keeps a second process out.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::record::RECORDS;
use crate::error::{Error, Result};
use crate::training::files::{is_temporary, read_bounded, write_atomically};

/// What is to be run, with the command that said so.
pub const PLAN: &str = "study.json";
const LOCK: &str = "study.lock";
const FORMAT: u64 = 1;
const MAX_BYTES: u64 = 1 << 24;

/// A study's folder, held by this process.
#[derive(Debug)]
pub struct StudyFolder {
    path: PathBuf,
    /// Released when the process ends, however it ends.
    _lock: File,
    warning: Option<String>,
}

/// What a study's folder says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPlan {
    /// The study.
    pub study: String,
    /// The command that ran it last.
    pub command: String,
    /// The machine and the time taken, as far as they are known.
    pub history: Vec<Session>,
    plan: Value,
}

/// One call that trained models.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Session {
    /// Models trained.
    pub models: usize,
    /// Seconds by the clock.
    pub seconds: f64,
    /// Threads used.
    pub threads: usize,
}

/// Whether a study may go on with another number of iterations a model: with more, and only when all of its models are meant.
///
/// # Errors
/// When it may not.
#[cfg(any(feature = "images", feature = "text"))]
pub(super) fn check_iterations(before: u64, now: u64, all_models: bool) -> Result<()> {
    let advice = match now {
        _ if now < before => {
            "they can be raised, not lowered: give --iterations as before, or choose another --out"
        }
        _ if now > before && !all_models => {
            "they are raised for all of its models at once: leave --methods out (an interrupted call goes on with any of \
             them), or choose another --out"
        }
        _ => return Ok(()),
    };
    let message = format!("the folder holds a study with {before} iterations a model, not {now}; {advice}");
    Err(Error::input("the plan of the study", message))
}

/// A word as a shell takes it: quoted where it would be taken apart.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+%@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// An error of a study's model in its run directory. A single run that diverged goes on with a lower rate; the models of a study have its
/// settings.
#[cfg(any(feature = "images", feature = "text"))]
pub fn of_model(error: Error, run: &Path) -> Error {
    error.advising(format!(
        "all models of a study keep its settings; this one alone is trained anew with a lower rate by `pacmeta train {} --set \
         training.rate=RATE --out FOLDER`",
        shell_word(&run.join("config.toml").display().to_string())
    ))
}

/// The time by the clock of all calls, as a fact of a report; none if no call was remembered. With the number of recorded pieces it
/// says for how many of them the time is known: a call that is killed leaves none.
pub(super) fn time_by_the_clock(history: &[Session], recorded: Option<usize>) -> Option<(String, String)> {
    let seconds: f64 = history.iter().map(|session| session.seconds).sum();
    let threads = history.iter().map(|session| session.threads).max().unwrap_or(0);
    let calls = if history.len() == 1 { "1 call".to_owned() } else { format!("{} calls", history.len()) };
    let timed: usize = history.iter().map(|session| session.models).sum();
    let rest = match recorded.filter(|&recorded| timed < recorded) {
        Some(recorded) => {
            format!(", for {timed} of {recorded} pieces (a call that is killed leaves no time)")
        }
        None => String::new(),
    };
    let value = format!("{} in {calls}, up to {threads} threads{rest}", duration(seconds));
    (seconds > 0.0).then(|| ("Time by the clock".to_owned(), value))
}

/// Seconds in a unit that suits them.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl StoredPlan {
    /// Reads what a folder says; none if it is no study's folder.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(PLAN);
        if !path.exists() {
            return Ok(None);
        }
        let error = |message: String| Error::input(path.display(), message);
        let value: Value = serde_json::from_slice(&read_bounded(&path, MAX_BYTES)?)
            .map_err(|source| error(format!("expected the plan of a study: {source}")))?;
        if value["format"].as_u64() != Some(FORMAT) {
            return Err(error(format!("expected the plan of a study in format {FORMAT}")));
        }
        let text = |key: &str| {
            let text = value[key].as_str().map(str::to_owned);
            text.ok_or_else(|| error(format!("expected a text under the key `{key}`")))
        };
        let history = serde_json::from_value(value["history"].clone())
            .map_err(|source| error(format!("key `history`: {source}")))?;
        Ok(Some(Self {
            study: text("study")?,
            command: text("command")?,
            history,
            plan: value["plan"].clone(),
        }))
    }

    /// Whether it says that this is to be run.
    pub fn is_of(&self, plan: &Value) -> bool {
        self.plan == *plan
    }

    /// The plan as the study understands it.
    ///
    /// # Errors
    /// When it is another study's.
    pub fn plan<P: DeserializeOwned>(&self, folder: &Path) -> Result<P> {
        serde_json::from_value(self.plan.clone())
            .map_err(|source| Error::input_at(folder.join(PLAN).display(), "key `plan`", source.to_string()))
    }
}

impl StudyFolder {
    /// Makes or takes the folder of a study. Nothing is changed in a folder that holds something else, or that another
    /// process works in.
    ///
    /// # Errors
    /// In these two cases, and when the folder cannot be written to.
    pub fn open(path: &Path, study: &str, plan: &impl Serialize, command: &str) -> Result<Self> {
        let stored = if path.exists() { StoredPlan::read(path)? } else { None };
        match &stored {
            Some(stored) if stored.study != study => {
                let message =
                    format!("holds the study `{}`, not `{study}`; choose another --out", stored.study);
                return Err(Error::input(path.display(), message));
            }
            None if path.exists() && !is_ours(path)? => {
                return Err(Error::input(
                    path.display(),
                    "holds something else than a study; choose another --out",
                ));
            }
            _ => fs::create_dir_all(path).map_err(|source| Error::io("create", path, source))?,
        }
        let lock_path = path.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|source| Error::io("write", &lock_path, source))?;
        let warning = locked(path, &lock_path, lock.try_lock())?;
        let folder = Self { path: path.to_owned(), _lock: lock, warning };
        let history = stored.map(|stored| stored.history).unwrap_or_default();
        folder.write_plan(study, plan, command, &history)?;
        Ok(folder)
    }

    fn write_plan(
        &self,
        study: &str,
        plan: &impl Serialize,
        command: &str,
        history: &[Session],
    ) -> Result<()> {
        let value =
            json!({ "format": FORMAT, "study": study, "command": command, "plan": plan, "history": history });
        write_atomically(self.path.join(PLAN), format!("{value:#}\n").as_bytes())
    }

    /// Adds what this call did.
    ///
    /// # Errors
    /// When the plan cannot be written.
    pub fn remember(&self, session: Session) -> Result<()> {
        let Some(mut stored) = StoredPlan::read(&self.path)? else { return Ok(()) };
        if session.models > 0 {
            stored.history.push(session);
        }
        self.write_plan(&stored.study, &stored.plan, &stored.command, &stored.history)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the user should know: that nothing keeps a second process out, where the file system has no locks.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

/// What an attempt to lock means: taken, or not to be had on this file system (a warning), or a reason not to go on.
fn locked(
    folder: &Path,
    path: &Path,
    attempt: std::result::Result<(), TryLockError>,
) -> Result<Option<String>> {
    match attempt {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let message = "another process works on this study; wait for it, or choose another --out";
            Err(Error::input(folder.display(), message))
        }
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(Some(format!(
            "{}: the file system has no locks; make sure that no other process works on this study",
            folder.display()
        ))),
        Err(TryLockError::Error(source)) => Err(Error::io("lock", path, source)),
    }
}

/// Whether a folder without a plan may become a study's: it is empty, or holds only what a study leaves when it dies
/// before its plan is written, or a record, whose own first line says what it belongs to.
fn is_ours(path: &Path) -> Result<bool> {
    let list_error = |source| Error::io("list", path, source);
    for entry in fs::read_dir(path).map_err(list_error)? {
        let name = entry.map_err(list_error)?.file_name();
        let known = name.to_str().is_some_and(|name| [LOCK, RECORDS].contains(&name) || is_temporary(name));
        if !known {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_found_again_and_kept_from_others() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("study");
        let first = StudyFolder::open(&path, "a", &json!({ "n": 1 }), "pacmeta a").unwrap();
        let second = StudyFolder::open(&path, "a", &json!({ "n": 1 }), "pacmeta a").unwrap_err();
        assert!(second.is_input() && second.to_string().contains("another process"), "{second}");
        first.remember(Session { models: 3, seconds: 2.0, threads: 1 }).unwrap();
        first.remember(Session { models: 0, seconds: 2.0, threads: 1 }).unwrap();
        drop(first);
        let again = StudyFolder::open(&path, "a", &json!({ "n": 2 }), "pacmeta a --more").unwrap();
        let stored = StoredPlan::read(again.path()).unwrap().unwrap();
        assert_eq!((stored.command.as_str(), stored.history.len()), ("pacmeta a --more", 1));
        assert_eq!(stored.plan::<Value>(&path).unwrap(), json!({ "n": 2 }));
        drop(again);
        let other = StudyFolder::open(&path, "b", &json!({}), "pacmeta b").unwrap_err();
        assert!(other.to_string().contains("holds the study `a`"), "{other}");
    }

    #[test]
    fn a_file_system_without_locks_is_a_warning_and_no_obstacle() {
        let attempt = |kind: ErrorKind| {
            locked(Path::new("study"), Path::new("study/study.lock"), Err(TryLockError::Error(kind.into())))
        };
        let warning = attempt(ErrorKind::Unsupported).unwrap().unwrap();
        assert!(warning.starts_with("study: the file system has no locks"), "{warning}");
        let failed = attempt(ErrorKind::StorageFull).unwrap_err();
        assert!(failed.to_string().contains("cannot lock study/study.lock"), "{failed}");
        let place = tempfile::tempdir().unwrap();
        let folder = StudyFolder::open(place.path(), "a", &json!({}), "pacmeta a").unwrap();
        assert_eq!(folder.warning(), None);
    }

    #[test]
    fn foreign_folders_and_damaged_plans_are_left_alone() {
        let place = tempfile::tempdir().unwrap();
        // What a study leaves that died before its plan was written is no obstacle.
        fs::write(place.path().join(LOCK), b"").unwrap();
        fs::write(place.path().join(".pacmeta-Ab3.tmp"), b"x").unwrap();
        fs::write(place.path().join(RECORDS), b"").unwrap();
        drop(StudyFolder::open(place.path(), "a", &json!({}), "pacmeta a").unwrap());
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("thesis.tex"), b"x").unwrap();
        let refused = StudyFolder::open(place.path(), "a", &json!({}), "pacmeta a").unwrap_err();
        assert!(refused.to_string().contains("something else than a study"), "{refused}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        for damaged in
            ["", "[]", "{\"format\":2}", "{\"format\":1,\"study\":3}", "{\"format\":1,\"study\":\"a\"}"]
        {
            fs::write(place.path().join(PLAN), damaged).unwrap();
            assert!(StoredPlan::read(place.path()).unwrap_err().is_input(), "{damaged}");
        }
    }
}
