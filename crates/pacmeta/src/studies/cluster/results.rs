//! The folder of results: `plan.json`, which says whose they are, and `000012.json` for the piece of index 12.
//!
//! A result is one line of the shape of a record's, written under a temporary name, synced and renamed. One that cannot
//! be read (a file system that lost the end of it) counts as missing: it is mentioned, and trained again.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pacmeta_tensor::simd::instructions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::instructions::InstructionSets;
use super::plan_file::{PlanFile, PlanLine};
use super::script::is_log;
use crate::error::{Error, Result};
use crate::studies::record::{Ending, Record, Records, checked_body, line_of};
use crate::studies::runner::Recorder;
use crate::studies::spec::{Keep, Spec};
use crate::training::files::{read_bounded, write_atomically};

const MARK: &str = "plan.json";
const FORMAT: u64 = 1;
const MAX_BYTES: u64 = 1 << 30;

/// A folder of results of one plan.
#[derive(Debug, Clone)]
pub struct Results {
    folder: PathBuf,
    digest: String,
}

/// What is under the name of a result.
enum Found<T> {
    Absent,
    Damaged,
    Whole { seconds: f64, ending: Ending<T>, instructions: Option<String> },
}

/// A record, and what only the results of jobs say.
#[derive(Serialize)]
struct Written<'a, R> {
    #[serde(flatten)]
    record: &'a R,
    instructions: &'static str,
}

#[derive(Deserialize)]
struct Stored<T> {
    hash: String,
    seconds: f64,
    ending: Ending<T>,
    #[serde(default)]
    instructions: Option<String>,
}

impl Results {
    /// The folder of a plan's results; changes nothing. It need not exist. A mark that was lost is no obstacle where
    /// everything in the folder can be told to be this plan's.
    ///
    /// # Errors
    /// When it holds results of another plan, or something else.
    pub fn of(plan: &PlanFile, folder: &Path) -> Result<Self> {
        let results = Self { folder: folder.to_owned(), digest: plan.digest().to_owned() };
        if !results.is_marked()? && folder.exists() {
            results.refuse_strangers(plan)?;
            // Another job may have marked it in the meantime.
            results.is_marked()?;
        }
        Ok(results)
    }

    /// Makes the folder and marks it. Whoever does it at the same time writes the same.
    ///
    /// # Errors
    /// When it cannot be written, or is another plan's by now.
    pub fn claim(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|source| Error::io("create", &self.folder, source))?;
        if self.is_marked()? {
            return Ok(());
        }
        let mark = json!({ "format": FORMAT, "plan": self.digest });
        write_atomically(self.folder.join(MARK), format!("{mark}\n").as_bytes())
    }

    /// Whether the folder says that it is this plan's. A mark without content (a file system that lost it) says nothing.
    fn is_marked(&self) -> Result<bool> {
        let mark = self.folder.join(MARK);
        let bytes = match read_bounded(&mark, 1 << 16) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(false),
            other => other?,
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        let value: Value = serde_json::from_slice(&bytes).map_err(|source| {
            let message = format!(
                "expected the mark of a plan: {source}; if the folder is this plan's, move this file away: results are \
                 then checked one by one, and none is lost"
            );
            Error::input(mark.display(), message)
        })?;
        if value["format"].as_u64() != Some(FORMAT) || value["plan"].as_str() != Some(&self.digest) {
            let message = "holds the results of another plan; give the folder of this one with --results, or make the \
                           plan again under another name";
            return Err(Error::input(self.folder.display(), message));
        }
        Ok(true)
    }

    /// For a folder without a mark: everything in it must be this plan's by its name and content.
    fn refuse_strangers(&self, plan: &PlanFile) -> Result<()> {
        let list = |source| Error::io("list", &self.folder, source);
        for entry in fs::read_dir(&self.folder).map_err(list)? {
            let name = entry.map_err(list)?.file_name();
            let ours = match name.to_str() {
                Some(name) => self.belongs(plan, name)?,
                None => false,
            };
            if !ours {
                let message = format!(
                    "holds something else than results of this plan (`{}`), and no {MARK} that says whose it is; choose \
                     another --results, or move that file away",
                    name.display()
                );
                return Err(Error::input(self.folder.display(), message));
            }
        }
        Ok(())
    }

    /// Whether a file of the folder is one that jobs of this plan leave: a mark, a log, a result or a state. Hidden ones are
    /// temporaries, or belong to the file system, as `.nfs0001` of a file that was removed while it was open.
    fn belongs(&self, plan: &PlanFile, name: &str) -> Result<bool> {
        if name == MARK || is_log(name) || name.starts_with('.') {
            return Ok(true);
        }
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let index = name[..digits].parse::<usize>().ok();
        let Some(line) = index.and_then(|index| plan.lines().get(index)) else { return Ok(false) };
        let path = self.folder.join(name);
        if path == self.path(line.index) {
            return match self.look::<Value>(line) {
                Ok(_) => Ok(true),
                Err(Error::Input(_)) => Ok(false),
                Err(error) => Err(error),
            };
        }
        let keep = self.keep(line);
        Ok(path == keep.state() || path == keep.trials())
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, index: usize) -> PathBuf {
        self.folder.join(format!("{index:06}.json"))
    }

    /// Where a piece leaves its state: the name holds a part of the hash, so that it is never another piece's.
    fn keep(&self, line: &PlanLine) -> Keep {
        let hash = line.hash.get(..12).unwrap_or(&line.hash);
        Keep::new(self.folder.join(format!("{:06}-{hash}", line.index)))
    }

    fn look<T: DeserializeOwned>(&self, line: &PlanLine) -> Result<Found<T>> {
        let path = self.path(line.index);
        let bytes = match read_bounded(&path, MAX_BYTES) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Found::Absent);
            }
            other => other?,
        };
        let body = bytes.strip_suffix(b"\n").and_then(checked_body);
        let Some(stored) = body.and_then(|body| serde_json::from_slice::<Stored<T>>(body).ok()) else {
            return Ok(Found::Damaged);
        };
        if stored.hash != line.hash {
            let message = "is the result of another model; it does not belong into this folder, move it away";
            return Err(Error::input(path.display(), message));
        }
        let Stored { seconds, ending, instructions, .. } = stored;
        Ok(Found::Whole { seconds, ending, instructions })
    }
}

/// The pieces of one job, as the [runner](crate::studies::runner) records them.
#[derive(Debug)]
pub struct Job<'a, S: Spec> {
    results: &'a Results,
    lines: HashMap<String, &'a PlanLine>,
    endings: HashMap<String, Ending<S::Outcome>>,
    damaged: Vec<usize>,
}

impl<'a, S: Spec> Job<'a, S> {
    /// The pieces of these lines, with the results that are there already. A state beside an outcome is of no use to anybody,
    /// and is removed.
    ///
    /// # Errors
    /// When a result cannot be read, or is another model's.
    pub fn new(results: &'a Results, lines: &'a [PlanLine]) -> Result<Self> {
        let mut job = Self {
            results,
            lines: lines.iter().map(|line| (line.hash.clone(), line)).collect(),
            endings: HashMap::new(),
            damaged: Vec::new(),
        };
        for line in lines {
            match results.look(line)? {
                Found::Whole { ending, .. } => {
                    if matches!(ending, Ending::Done(_)) {
                        results.keep(line).clear();
                    }
                    job.endings.insert(line.hash.clone(), ending);
                }
                Found::Damaged => job.damaged.push(line.index),
                Found::Absent => {}
            }
        }
        Ok(job)
    }

    /// Indices whose results cannot be read.
    pub fn damaged(&self) -> &[usize] {
        &self.damaged
    }

    /// The pieces that failed: index, label and reason, in the order of the plan.
    pub fn failures(&self) -> Vec<(usize, &str, &str)> {
        let mut failures: Vec<_> = self
            .endings
            .iter()
            .filter_map(|(hash, ending)| match (self.lines.get(hash), ending) {
                (Some(line), Ending::Failed(reason)) => {
                    Some((line.index, line.label.as_str(), reason.as_str()))
                }
                _ => None,
            })
            .collect();
        failures.sort_unstable();
        failures
    }
}

impl<S: Spec> Recorder<S> for Job<'_, S> {
    fn ending(&self, hash: &str) -> Option<&Ending<S::Outcome>> {
        self.endings.get(hash)
    }

    fn append(&mut self, spec: &S, ending: Ending<S::Outcome>, seconds: f64) -> Result<()> {
        let hash = spec.hash()?;
        let Some(line) = self.lines.get(&hash) else {
            return Err(Error::input("job", "a model was trained that is not in its part of the plan"));
        };
        let record = Record { hash: hash.clone(), seconds, spec: spec.clone(), ending };
        let written = Written { record: &record, instructions: instructions() };
        write_atomically(self.results.path(line.index), line_of(&written)?.as_bytes())?;
        self.endings.insert(hash, record.ending);
        Ok(())
    }

    fn keep(&self, hash: &str) -> Option<Keep> {
        self.lines.get(hash).map(|line| self.results.keep(line))
    }
}

/// What is done of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Survey {
    /// All pieces.
    pub pieces: usize,
    /// Indices with an outcome.
    pub done: Vec<usize>,
    /// Indices that ended with an error, and the error.
    pub failed: Vec<(usize, String)>,
    /// Indices without a result, damaged ones included.
    pub missing: Vec<usize>,
    /// Indices whose result cannot be read.
    pub damaged: Vec<usize>,
    /// Missing indices with a state to continue from.
    pub begun: Vec<usize>,
    /// What results were computed with.
    pub instructions: InstructionSets,
}

impl Survey {
    /// Looks at every result.
    ///
    /// # Errors
    /// When one cannot be read for another reason than damage, or is another model's.
    pub fn of(plan: &PlanFile, results: &Results) -> Result<Self> {
        let mut survey = Self { pieces: plan.lines().len(), ..Self::default() };
        for line in plan.lines() {
            match results.look::<Value>(line)? {
                Found::Whole { ending, instructions, .. } => {
                    survey.instructions.count(instructions);
                    match ending {
                        Ending::Done(_) => survey.done.push(line.index),
                        Ending::Failed(reason) => survey.failed.push((line.index, reason)),
                    }
                }
                found => {
                    survey.missing.push(line.index);
                    if matches!(found, Found::Damaged) {
                        survey.damaged.push(line.index);
                    }
                    if results.keep(line).exists() {
                        survey.begun.push(line.index);
                    }
                }
            }
        }
        Ok(survey)
    }
}

/// The results of a plan, read and checked, to be appended to the record of a study.
#[derive(Debug)]
pub struct Gathered<S: Spec> {
    pieces: Vec<(String, S, Ending<S::Outcome>, f64)>,
    /// Indices without a result.
    pub missing: Vec<usize>,
    /// Indices whose result cannot be read, also in `missing`.
    pub damaged: Vec<usize>,
    /// What results were computed with.
    pub instructions: InstructionSets,
}

impl<S: Spec> Gathered<S> {
    /// Reads every result; changes nothing.
    ///
    /// # Errors
    /// When the plan is another study's or its pieces are not those that were planned, or a result is another model's.
    pub fn of(plan: &PlanFile, results: &Results) -> Result<Self> {
        plan.check_study::<S>()?;
        let mut gathered = Self {
            pieces: Vec::new(),
            missing: Vec::new(),
            damaged: Vec::new(),
            instructions: InstructionSets::default(),
        };
        for (line, spec) in plan.lines().iter().zip(plan.specs::<S>(plan.lines())?) {
            match results.look(line)? {
                Found::Whole { seconds, ending, instructions } => {
                    gathered.instructions.count(instructions);
                    gathered.pieces.push((line.hash.clone(), spec, ending, seconds));
                }
                found => {
                    gathered.missing.push(line.index);
                    if matches!(found, Found::Damaged) {
                        gathered.damaged.push(line.index);
                    }
                }
            }
        }
        Ok(gathered)
    }

    /// Whether there is no result at all.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends them in the order of the plan; what is recorded already is left alone. Says how many were new.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn append_to(&self, records: &mut Records<S>) -> Result<usize> {
        let mut new = 0;
        for (hash, spec, ending, seconds) in &self.pieces {
            let known = match (records.ending(hash), ending) {
                (None, _) | (Some(Ending::Failed(_)), Ending::Done(_)) => false,
                (Some(_), _) => true,
            };
            if !known {
                records.append(spec, ending.clone(), *seconds)?;
                new += 1;
            }
        }
        Ok(new)
    }
}
