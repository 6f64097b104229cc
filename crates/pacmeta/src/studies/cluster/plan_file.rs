//! The plan of a study as a file: a line that says what it belongs to, and one numbered line for each piece.
//!
//! Lines have the shape of those of a record, `{"crc32c":"xxxxxxxx","record":...}`. The first holds the study and its
//! version, the version of the program, the folder and configuration it was made from, the plan of the study, and a
//! digest of all that and of all other lines. These hold index, hash, label and content of a piece. So a line that was
//! changed, taken away or moved is noticed before anything is trained.

use std::path::{Path, PathBuf};

use pacmeta_tensor::Key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::studies::record::{checked_body, line_of};
use crate::studies::spec::Spec;
use crate::training::files::{read_bounded, write_atomically};

const FORMAT: u32 = 2;
const MAX_BYTES: u64 = 1 << 32;
const MAX_CONFIG_BYTES: u64 = 1 << 24;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The configuration that a plan was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigMark {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// A digest of its bytes.
    pub digest: String,
}

impl ConfigMark {
    /// The mark of a file as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|source| Error::io("find", path, source))?;
        let bytes = read_bounded(&path, MAX_CONFIG_BYTES)?;
        let digest =
            Key::new(u64::from(FORMAT)).named("configuration").named(&String::from_utf8_lossy(&bytes));
        Ok(Self { path, digest: digest.to_string() })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    plan_format: u32,
    pacmeta: String,
    study: String,
    version: u32,
    pieces: usize,
    folder: String,
    config: Option<ConfigMark>,
    plan: Value,
    digest: String,
}

impl Header {
    fn digest(&self, lines: &[PlanLine]) -> Result<String> {
        let blank = Self { digest: String::new(), ..self.clone() };
        let text = serde_json::to_string(&blank).map_err(|error| Error::input("plan", error.to_string()))?;
        let start = Key::new(u64::from(FORMAT)).named("plan").named(&text);
        let key = lines.iter().fold(start, |key, line| {
            key.index(line.index as u64).named(&line.hash).named(&line.label).named(&line.spec.to_string())
        });
        Ok(key.to_string())
    }
}

/// The line of a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanLine {
    /// Its index, from 0.
    pub index: usize,
    /// The hash of its content.
    pub hash: String,
    /// A short name for people.
    pub label: String,
    spec: Value,
}

/// The plan of a study with its pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanFile {
    origin: String,
    header: Header,
    lines: Vec<PlanLine>,
}

impl PlanFile {
    /// The plan of these pieces. Relative paths in them are seen from `folder`.
    ///
    /// # Errors
    /// When something cannot be written as JSON.
    pub fn new<S: Spec>(
        plan: &impl Serialize,
        specs: &[S],
        folder: &Path,
        config: Option<ConfigMark>,
    ) -> Result<Self> {
        let origin = "the plan".to_owned();
        let json = |error: serde_json::Error| Error::input("the plan", error.to_string());
        let lines: Vec<PlanLine> = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| {
                let value = serde_json::to_value(spec).map_err(json)?;
                Ok(PlanLine { index, hash: spec.hash()?, label: spec.label(), spec: value })
            })
            .collect::<Result<_>>()?;
        let mut header = Header {
            plan_format: FORMAT,
            pacmeta: VERSION.to_owned(),
            study: S::STUDY.to_owned(),
            version: S::VERSION,
            pieces: lines.len(),
            folder: folder.display().to_string(),
            config,
            plan: serde_json::to_value(plan).map_err(json)?,
            digest: String::new(),
        };
        header.digest = header.digest(&lines)?;
        Ok(Self { origin, header, lines })
    }

    /// Writes the file, as a whole or not at all. Whatever else is there already is left alone.
    ///
    /// # Errors
    /// In that case, and when the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        if path.exists() {
            let message = match Self::parse(&path.display().to_string(), &read_bounded(path, MAX_BYTES)?)? {
                Some(other) if other.digest() == self.digest() => return Ok(()),
                Some(_) => {
                    "exists and is not this plan; choose another name, or remove it if its results are no longer needed"
                }
                None => "exists and is no plan of a sweep; choose another name",
            };
            return Err(Error::input(path.display(), message));
        }
        let mut text = line_of(&self.header)?;
        for line in &self.lines {
            text.push_str(&line_of(line)?);
        }
        write_atomically(path, text.as_bytes())
    }

    /// Reads and verifies a file.
    ///
    /// # Errors
    /// When it cannot be read, is no plan, was changed, or was made by another version of this program.
    pub fn read(path: &Path) -> Result<Self> {
        let origin = path.display().to_string();
        let no_plan = "is no plan of a sweep; make one with `pacmeta sweep plan CONFIG.toml -o plan.jsonl`";
        Self::parse(&origin, &read_bounded(path, MAX_BYTES)?)?.ok_or_else(|| Error::input(origin, no_plan))
    }

    /// The plan in these bytes; none if they were never one.
    fn parse(origin: &str, bytes: &[u8]) -> Result<Option<Self>> {
        let mut numbered = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        // Asked of the bytes, so that a damaged plan is told from a file of somebody else's.
        let Some((_, first)) = numbered.next().filter(|(_, line)| begins_a_plan(line)) else {
            return Ok(None);
        };
        let header: Value = body(origin, 1, first)?;
        refuse_other_version(origin, &header)?;
        let header: Header = serde_json::from_value(header)
            .map_err(|source| Error::input_at(origin, "line 1", format!("{source}; {DAMAGED}")))?;
        let lines: Vec<PlanLine> =
            numbered.map(|(index, line)| body(origin, index + 1, line)).collect::<Result<_>>()?;
        if let Some((place, line)) = lines.iter().enumerate().find(|(place, line)| *place != line.index) {
            let message =
                format!("has index {}, expected {place}: lines were moved or removed; {DAMAGED}", line.index);
            return Err(Error::input_at(origin, format!("line {}", place + 2), message));
        }
        if lines.len() != header.pieces {
            let message =
                format!("has {} models, its first line says {}; {DAMAGED}", lines.len(), header.pieces);
            return Err(Error::input(origin, message));
        }
        if header.digest(&lines)? != header.digest {
            return Err(Error::input(
                origin,
                format!("its digest does not fit: lines were changed; {DAMAGED}"),
            ));
        }
        Ok(Some(Self { origin: origin.to_owned(), header, lines }))
    }

    /// Refuses a study of another version of its pieces.
    ///
    /// # Errors
    /// In that case.
    pub fn check_study<S: Spec>(&self) -> Result<()> {
        if (self.header.study.as_str(), self.header.version) == (S::STUDY, S::VERSION) {
            return Ok(());
        }
        let message = format!(
            "is a plan of `{}`, version {}; this program runs `{}`, version {}: {ANOTHER}",
            self.header.study,
            self.header.version,
            S::STUDY,
            S::VERSION
        );
        Err(Error::input(&self.origin, message))
    }

    /// Refuses to go on when the configuration is there and has changed.
    ///
    /// # Errors
    /// In that case, and when the file cannot be read.
    pub fn check_config(&self) -> Result<()> {
        let Some(mark) = self.header.config.as_ref().filter(|mark| mark.path.exists()) else { return Ok(()) };
        if ConfigMark::of(&mark.path)? == *mark {
            return Ok(());
        }
        let message = format!(
            "has changed since {} was made from it; restore it, or make a plan with another name",
            self.origin
        );
        Err(Error::input(mark.path.display(), message))
    }

    /// The study.
    pub fn study(&self) -> &str {
        &self.header.study
    }

    /// 32 hexadecimal digits that stand for all of it.
    pub fn digest(&self) -> &str {
        &self.header.digest
    }

    /// The folder that relative paths are seen from.
    pub fn folder(&self) -> &str {
        &self.header.folder
    }

    /// The folder that the file is in.
    pub fn beside(&self) -> &Path {
        Path::new(&self.origin).parent().unwrap_or(Path::new(""))
    }

    /// The configuration, where there was one.
    pub fn config(&self) -> Option<&ConfigMark> {
        self.header.config.as_ref()
    }

    /// The lines of the pieces.
    pub fn lines(&self) -> &[PlanLine] {
        &self.lines
    }

    /// The plan as JSON, as a study's folder stores it.
    pub fn study_value(&self) -> &Value {
        &self.header.plan
    }

    /// The plan as the study understands it.
    ///
    /// # Errors
    /// When it is another study's.
    pub fn study_plan<P: DeserializeOwned>(&self) -> Result<P> {
        serde_json::from_value(self.header.plan.clone())
            .map_err(|source| Error::input_at(&self.origin, "line 1", source.to_string()))
    }

    /// The pieces of some lines.
    ///
    /// # Errors
    /// When a content does not have the hash of its line.
    pub fn specs<S: Spec>(&self, lines: &[PlanLine]) -> Result<Vec<S>> {
        lines
            .iter()
            .map(|line| {
                let place = || format!("line {}", line.index + 2);
                let spec: S = serde_json::from_value(line.spec.clone()).map_err(|source| {
                    Error::input_at(&self.origin, place(), format!("{source}; {DAMAGED}"))
                })?;
                if spec.hash()? == line.hash {
                    return Ok(spec);
                }
                let message = format!("the model is not the one that was planned; {DAMAGED}");
                Err(Error::input_at(&self.origin, place(), message))
            })
            .collect()
    }
}

/// What to do about a plan that is not as it was written. Made in the same way it is the same plan.
const DAMAGED: &str = "the plan is damaged: remove it and make it again with the same `pacmeta sweep plan`; its results stay valid";
/// What to do about a plan that is as it was written, but not for this program.
const ANOTHER: &str = "make a plan under another name with `pacmeta sweep plan`";

fn begins_a_plan(line: &[u8]) -> bool {
    let key = b"\"plan_format\"";
    line.starts_with(b"{\"crc32c\"") && line.windows(key.len()).any(|window| window == key)
}

fn body<T: DeserializeOwned>(origin: &str, number: usize, line: &[u8]) -> Result<T> {
    let place = || format!("line {number}");
    let whole = line.strip_suffix(b"\n").and_then(checked_body).ok_or_else(|| {
        Error::input_at(
            origin,
            place(),
            format!("was changed or cut off (its checksum does not fit); {DAMAGED}"),
        )
    })?;
    serde_json::from_slice(whole)
        .map_err(|source| Error::input_at(origin, place(), format!("{source}; {DAMAGED}")))
}

/// Asked before the rest, which another version may have written in another way.
fn refuse_other_version(origin: &str, header: &Value) -> Result<()> {
    let writer = header["pacmeta"].as_str().unwrap_or("unknown");
    if writer != VERSION {
        let message = format!(
            "was made by pacmeta {writer}, this is {VERSION}; numbers may differ between versions: run it with that one, or {ANOTHER}"
        );
        return Err(Error::input(origin, message));
    }
    let format = &header["plan_format"];
    if format.as_u64() != Some(u64::from(FORMAT)) {
        let message = format!("is a plan in format {format}, this program reads format {FORMAT}; {ANOTHER}");
        return Err(Error::input(origin, message));
    }
    Ok(())
}
