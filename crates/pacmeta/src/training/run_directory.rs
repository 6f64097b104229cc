//! The folder of a run, and what it takes to continue a run that was interrupted.
//!
//! ```text
//! config.toml          the resolved configuration
//! metrics.jsonl        the numbers, one line a report
//! events.out.tfevents* the same for TensorBoard, with times
//! checkpoints/         iteration-00001000.safetensors, ...: the last few training states; of a finished run, the last one
//! prior.safetensors    the result
//! report.html          the report
//! diverged.json        why the run stopped, if it diverged; until it is beyond that
//! changes.jsonl        the settings that a run that diverged went on with
//! run.lock             held while a process writes to the folder
//! ```
//!
//! A folder belongs to one configuration. The same configuration continues the run from its newest whole checkpoint;
//! only `training.iterations` may be raised, and keys may change of which the result does not depend (how often training writes, how the
//! result is scored). A run that diverged may go on with another `training.rate` or `training.clip`. Anything else in the folder is refused
//! before it is touched.

mod comparison;
mod divergence;
mod lock;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::checkpoint::{self, Checkpoint, TrainingState, Verdict};
use super::files::{is_temporary, read_bounded, remove_stale_temporaries, write_atomically};
use super::metrics::MetricsWriter;
use super::tensorboard::EventWriter;
use crate::error::{Error, Result};
pub(crate) use divergence::CHANGES;
use divergence::DIVERGED;
use lock::Lock;

const CONFIG: &str = "config.toml";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = "run.lock";
const PRIOR: &str = "prior.safetensors";
/// The temperatures of a run.
pub(crate) const TEMPERATURES: &str = "temperatures.json";
/// The finished trials of a search for temperatures that is under way.
pub(crate) const SEARCH: &str = "search.jsonl";
/// The checksum of its data.
pub(crate) const DATA: &str = "data.crc32c";
/// The key in the metadata of the result.
const ITERATION: &str = "iteration";
/// The first line of `config.toml`, by which a folder is known to be ours.
const MARK: &str = "# Resolved by pacmeta. The run in this folder continues with these settings only.\n";
const MAX_CONFIG_BYTES: u64 = 1 << 24;

/// The folder of a run, locked against other writers until dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    kept_checkpoints: NonZeroUsize,
    _lock: Lock,
}

/// Where a run starts.
#[derive(Debug)]
pub struct Resume {
    /// What there is to start from.
    pub start: Start,
    /// What the user should know, e.g. that a damaged checkpoint was passed over.
    pub warnings: Vec<String>,
}

/// What there is to start from.
#[derive(Debug, PartialEq)]
pub enum Start {
    /// Nothing: the first iteration comes next.
    Fresh,
    /// An unfinished run. With as many iterations as wanted only the result is missing.
    Continue(TrainingState),
    /// All iterations are done and the result is written.
    Finished(TrainingState),
}

impl RunDirectory {
    /// Creates the folder for a run with the resolved configuration `config` (TOML), or opens it to continue one.
    ///
    /// # Errors
    /// When the folder holds something else or another run, another process writes to it, the number of iterations is
    /// lower than before, or it cannot be written.
    pub fn create_or_resume(path: impl AsRef<Path>, config: &str) -> Result<(Self, Resume)> {
        Self::create_or_resume_if(path.as_ref(), config, |_| Ok(()))
    }

    /// The same, with one more reason to refuse, asked after the settings and before anything is changed.
    pub(crate) fn create_or_resume_if(
        path: &Path,
        config: &str,
        accept: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<(Self, Resume)> {
        let wanted = comparison::Settings::parse("the configuration", config)?;
        refuse_foreign(path)?;
        fs::create_dir_all(path).map_err(|source| Error::io("create", path, source))?;
        let (lock, lock_warning) = Lock::take(path, path.join(LOCK))?;
        refuse_foreign(path)?; // what appeared meanwhile

        let run = Self {
            path: path.to_path_buf(),
            kept_checkpoints: NonZeroUsize::MIN.saturating_add(1),
            _lock: lock,
        };
        let config_path = path.join(CONFIG);
        let stored = read_config(&config_path)?;
        let mut changes = Vec::new();
        if let Some(stored) = &stored {
            let mut stored = comparison::Settings::parse(config_path.display(), stored)?;
            if run.diverged() {
                changes = stored.take_step_of(&wanted);
            }
            let other = comparison::refuse_another_run(path, &stored, &wanted);
            if other.is_err() && !Self::began(path) {
                // A start that failed before its first checkpoint leaves nothing worth keeping.
                run.forget_start()?;
            } else {
                other?;
            }
        }
        accept(path)?;

        remove_stale_temporaries(path)?;
        let (state, mut warnings) = run.newest_state()?;
        warnings.extend(lock_warning);
        let start = match state {
            // The training states may be deleted once the result is there.
            None if run.has_prior_of(wanted.iterations) => {
                warnings.clear();
                Start::Finished(TrainingState { iteration: wanted.iterations, ..TrainingState::default() })
            }
            None if run.prior_path().exists() => return Err(run.cannot_be_extended(warnings)),
            None => Start::Fresh,
            Some(state) if state.iteration >= wanted.iterations && run.has_prior_of(state.iteration) => {
                Start::Finished(state)
            }
            Some(state) => Start::Continue(state),
        };
        if let (Start::Continue(state), false) = (&start, changes.is_empty()) {
            warnings.extend(run.note_changes(state.iteration, &changes)?);
        }
        // Not earlier, so that a refused call leaves the run's configuration alone; before all else in a new folder,
        // which is known by it.
        let marked = format!("{MARK}{config}");
        if stored.is_none_or(|stored| stored != marked) {
            write_atomically(&config_path, marked.as_bytes())?;
        }
        let checkpoints = run.checkpoints_path();
        fs::create_dir_all(&checkpoints).map_err(|source| Error::io("create", &checkpoints, source))?;
        remove_stale_temporaries(&checkpoints)?;
        Ok((run, Resume { start, warnings }))
    }

    /// Whether a checkpoint or a result was ever written into this folder.
    pub(crate) fn began(path: &Path) -> bool {
        let states = fs::read_dir(path.join(CHECKPOINTS));
        states.is_ok_and(|mut entries| entries.next().is_some()) || path.join(PRIOR).exists()
    }

    /// Removes what a start leaves before its first checkpoint.
    pub(crate) fn forget_start(&self) -> Result<()> {
        for name in [TEMPERATURES, SEARCH, DATA, DIVERGED, CHANGES, "metrics.jsonl"] {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", path, source));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps that many training states instead of two while the run goes on.
    pub fn with_kept_checkpoints(mut self, count: NonZeroUsize) -> Self {
        self.kept_checkpoints = count;
        self
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resolved configuration.
    pub fn config_path(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// The metrics, one JSON object a line.
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// The folder of the training states.
    pub fn checkpoints_path(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// The result.
    pub fn prior_path(&self) -> PathBuf {
        self.path.join(PRIOR)
    }

    /// The report.
    pub fn report_path(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// The metrics of this run, cut to what belongs before `start`.
    ///
    /// # Errors
    /// When the file cannot be written, or was changed by somebody.
    pub fn metrics(&self, start: &Start) -> Result<MetricsWriter> {
        match start {
            Start::Fresh => MetricsWriter::create(self.metrics_path()),
            Start::Continue(state) | Start::Finished(state) => {
                MetricsWriter::resume(self.metrics_path(), state.iteration)
            }
        }
    }

    /// A new file of TensorBoard events.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn events(&self, start: &Start) -> Result<EventWriter> {
        let first_iteration = match start {
            Start::Fresh => 0,
            Start::Continue(state) | Start::Finished(state) => state.iteration + 1,
        };
        EventWriter::create(&self.path, first_iteration)
    }

    /// Writes the training state, then removes the states that are no longer kept. The metrics are brought to the disk
    /// first, for those up to this iteration are never produced again.
    ///
    /// # Errors
    /// When a file cannot be written or removed, or the state holds a number that is not finite.
    pub fn save_state(&self, state: &TrainingState, metrics: &MetricsWriter) -> Result<()> {
        metrics.sync()?;
        state.write(self.state_path(state.iteration))?;
        self.forget_divergence(state.iteration)?;
        // States beyond this one were damaged or passed over when the run was resumed: the run is writing them anew.
        let (kept, beyond): (Vec<_>, Vec<_>) =
            self.stored_iterations()?.into_iter().partition(|&iteration| iteration <= state.iteration);
        for iteration in beyond.into_iter().chain(kept.into_iter().skip(self.kept_checkpoints.get())) {
            let path = self.state_path(iteration);
            fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
        }
        Ok(())
    }

    /// Writes the result after `iteration`, which is noted in its metadata: a run that was extended is finished once the
    /// result is that of its last iteration. Of the training states only that of this iteration stays, from which the run can be
    /// extended.
    ///
    /// # Errors
    /// As [`Checkpoint::write`]; also when a state cannot be removed.
    pub fn write_prior(&self, prior: &Checkpoint, iteration: u64) -> Result<()> {
        let mut prior = prior.clone();
        let metadata = prior.metadata.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(object) = metadata {
            object.insert(ITERATION.into(), iteration.into());
        }
        prior.write(self.prior_path())?;
        if !self.state_path(iteration).exists() {
            return Ok(());
        }
        for older in self.stored_iterations()?.into_iter().filter(|&stored| stored < iteration) {
            let path = self.state_path(older);
            fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
        }
        Ok(())
    }

    /// A result without a training state: more iterations would have to begin anew and replace it.
    fn cannot_be_extended(&self, warnings: Vec<String>) -> Error {
        let why = match warnings.first() {
            Some(warning) => format!(" ({warning})"),
            None => String::new(),
        };
        Error::input(
            self.path.display(),
            format!(
                "holds a result whose training state is gone{why}, so the run cannot go on; choose another --out"
            ),
        )
    }

    fn has_prior_of(&self, iteration: u64) -> bool {
        // A result that cannot be read is written again.
        let prior = Checkpoint::read(self.prior_path()).ok();
        let metadata = prior.and_then(|prior| prior.metadata);
        metadata.is_some_and(|metadata| metadata.get(ITERATION).and_then(Value::as_u64) == Some(iteration))
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_report(&self, html: &str) -> Result<()> {
        write_atomically(self.report_path(), html.as_bytes())
    }

    fn state_path(&self, iteration: u64) -> PathBuf {
        self.checkpoints_path().join(state_name(iteration))
    }

    /// The newest whole training state, and a warning for every newer file that is damaged.
    fn newest_state(&self) -> Result<(Option<TrainingState>, Vec<String>)> {
        let mut warnings = Vec::new();
        for iteration in self.stored_iterations()? {
            let path = self.state_path(iteration);
            let origin = path.display().to_string();
            let reason = match checkpoint::judge(&origin, &read_bounded(&path, checkpoint::MAX_BYTES)?)? {
                Verdict::Whole(state) if state.iteration == iteration => return Ok((Some(state), warnings)),
                Verdict::Whole(state) => {
                    Error::input(&origin, format!("holds the state of iteration {}", state.iteration))
                }
                Verdict::Damaged(reason) => reason,
            };
            warnings.push(format!("{reason}; the checkpoint before it is used"));
        }
        if let Some(last) = warnings.last_mut() {
            *last = last.replace(
                "the checkpoint before it is used",
                "no whole checkpoint is left, the run starts anew",
            );
        }
        Ok((None, warnings))
    }

    /// The iterations of the stored training states, newest first.
    fn stored_iterations(&self) -> Result<Vec<u64>> {
        stored_iterations(&self.checkpoints_path())
    }
}

/// The iteration of the newest training state in the folder of a run, whole or not; 0 if there is none.
#[cfg(any(feature = "images", feature = "text"))]
pub(crate) fn last_iteration(run: &Path) -> Result<u64> {
    Ok(stored_iterations(&run.join(CHECKPOINTS))?.first().copied().unwrap_or(0))
}

fn stored_iterations(folder: &Path) -> Result<Vec<u64>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut iterations: Vec<u64> = file_names(folder)?.iter().filter_map(|name| iteration_of(name)).collect();
    iterations.sort_unstable_by(|left, right| right.cmp(left));
    Ok(iterations)
}

fn state_name(iteration: u64) -> String {
    format!("iteration-{iteration:08}.safetensors")
}

/// The iteration in the name of a training state, if it is one exactly as we write them.
fn iteration_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("iteration-")?.strip_suffix(".safetensors")?;
    let iteration = digits.parse().ok()?;
    (state_name(iteration) == name).then_some(iteration)
}

/// The names in a folder; names that are not Unicode come with replacement characters.
fn file_names(folder: &Path) -> Result<Vec<String>> {
    let list_error = |source| Error::io("list", folder, source);
    fs::read_dir(folder)
        .map_err(list_error)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).map_err(list_error))
        .collect()
}

/// The text of `config.toml`, if there is one.
fn read_config(path: &Path) -> Result<Option<String>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = String::from_utf8(read_bounded(path, MAX_CONFIG_BYTES)?);
    text.map(Some)
        .map_err(|_| Error::input(path.display(), "is not UTF-8 text; restore it or choose another --out"))
}

/// Refuses a path that exists and is neither an empty folder nor the folder of a run.
fn refuse_foreign(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::io("read", path, source)),
        Ok(existing) if !existing.is_dir() => {
            return Err(Error::input(
                path.display(),
                "is a file; a run needs a folder: choose another --out",
            ));
        }
        Ok(_) => {}
    }
    let mut names = file_names(path)?;
    names.sort();
    let Some(first) = names.iter().find(|name| *name != LOCK && !is_temporary(name)) else {
        return Ok(());
    };
    if names.iter().any(|name| name == CONFIG) {
        let config = read_bounded(path.join(CONFIG), MAX_CONFIG_BYTES)?;
        if config.starts_with(MARK.as_bytes()) {
            return Ok(());
        }
    }
    Err(Error::input(
        path.display(),
        format!(
            "the folder is not empty (`{first}`) and holds no run; choose another --out or an empty folder"
        ),
    ))
}

#[cfg(test)]
mod tests;
