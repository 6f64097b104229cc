//! Checkpoints: named tensors and a description of what they are, in one safetensors file.
//!
//! The file holds f32 or f64 tensors and, under the metadata key `pacmeta`, a JSON object
//! `{"format": 1, "prior": {...}, "method"?: {...}, "standardisation"?: {...}, ...}`. A file without that key is fine: it
//! may come from another program. This module knows about tensors and JSON only; what the tensors mean is decided by
//! the priors. [`TrainingState`] uses the same file for the exact state of an unfinished run.
//!
//! The same content always gives the same bytes, and anything that is not exactly such a file is refused with the
//! tensor and the reason. Reading allocates a small multiple of the file's size at most, whatever its header claims.

pub(crate) mod safetensors_file;
mod training_state;

use std::path::Path;

use pacmeta_tensor::{ParameterLayout, Parameters};
use serde_json::Value;

use self::safetensors_file::Encoding;
use crate::error::{Error, Result};
use crate::training::files::read_bounded;

pub use training_state::TrainingState;
pub(super) use training_state::{Verdict, judge};

/// The version of the layout of the metadata.
const FORMAT: u64 = 1;
/// The key of the tensors' checksum.
const CHECKSUM: &str = "crc32c";
/// Larger files are refused before they are read; a model with a billion f64 parameters fits.
pub(super) const MAX_BYTES: u64 = 1 << 33;

/// How numbers are stored in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
}

/// A tensor with its name: row-major values, always widened to f64.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTensor {
    /// The name, e.g. `mean.hidden.0.weight`.
    pub name: String,
    /// The shape; empty for a scalar.
    pub shape: Vec<usize>,
    /// The values, as many as the product of the shape.
    pub values: Vec<f64>,
}

impl NamedTensor {
    /// A tensor from its parts.
    pub fn new(name: impl Into<String>, shape: impl Into<Vec<usize>>, values: impl Into<Vec<f64>>) -> Self {
        Self { name: name.into(), shape: shape.into(), values: values.into() }
    }

    /// The parameters of a prior, one tensor an entry.
    pub fn of_parameters(parameters: &Parameters<f64>) -> Vec<Self> {
        parameters
            .iter()
            .map(|(entry, values)| Self::new(entry.name.clone(), entry.shape.to_vec(), values.to_vec()))
            .collect()
    }
}

/// The content of a checkpoint file.
///
/// ```
/// use pacmeta::training::checkpoint::{Checkpoint, NamedTensor, Precision};
///
/// # fn main() -> pacmeta::Result<()> {
/// let checkpoint = Checkpoint {
///     tensors: vec![NamedTensor::new("mean.output.bias", [2], [0.5, -1.0])],
///     precision: Precision::F64,
///     metadata: Some(serde_json::json!({"prior": {"kind": "gaussian_process"}})),
/// };
/// let bytes = checkpoint.to_bytes()?;
/// let back = Checkpoint::parse("prior.safetensors", &bytes)?;
/// assert_eq!(back.tensors, checkpoint.tensors);
/// assert_eq!(back.metadata.unwrap()["format"], 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The tensors in the order of the file.
    pub tensors: Vec<NamedTensor>,
    /// How the numbers are stored; the wider one when a file mixes both.
    pub precision: Precision,
    /// The JSON object under `pacmeta`. `format`, `written_by` and `crc32c` are set on writing, whatever stands there; the
    /// last is verified where a file has it, and taken out on reading.
    pub metadata: Option<Value>,
}

impl Checkpoint {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a checkpoint this version understands; the message says where and why.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let kind = std::fs::metadata(path).map_err(|source| Error::io("read", path, source))?;
        if !kind.is_file() {
            return Err(Error::input(
                path.display(),
                "expected a safetensors file, found a folder or a device",
            ));
        }
        Self::parse(path.display(), &read_bounded(path, MAX_BYTES)?)
    }

    /// Reads the bytes of a file; `origin` names them in messages.
    ///
    /// # Errors
    /// As [`Checkpoint::read`].
    pub fn parse(origin: impl std::fmt::Display, bytes: &[u8]) -> Result<Self> {
        let origin = origin.to_string();
        let mut checkpoint = safetensors_file::parse(&origin, bytes)?;
        check_format(&origin, checkpoint.metadata.as_ref())?;
        let stored = checkpoint.metadata.as_mut().and_then(Value::as_object_mut);
        if let Some(stored) = stored.and_then(|metadata| metadata.remove(CHECKSUM)) {
            let computed = checkpoint.checksum();
            if stored.as_str() != Some(&computed) {
                return Err(Error::input_at(
                    &origin,
                    format!("metadata `pacmeta`, key `{CHECKSUM}`"),
                    format!(
                        "the checksum is {stored}, the tensors give \"{computed}\": the file is damaged; copy it again"
                    ),
                ));
            }
        }
        Ok(checkpoint)
    }

    /// The file as bytes. Equal content gives equal bytes.
    ///
    /// # Errors
    /// When two tensors share a name, a shape does not match its values, a value is not finite in the chosen precision,
    /// or the metadata is not a JSON object.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.encoded("checkpoint", |encoding| Ok(encoding.to_bytes()))
    }

    /// Writes the file, as a whole or not at all.
    ///
    /// # Errors
    /// As [`Checkpoint::to_bytes`], and when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.encoded(&path.display().to_string(), |encoding| encoding.write_to(path))
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&NamedTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The parameters of a prior: exactly the tensors of its layout.
    ///
    /// # Errors
    /// When a tensor is missing, has another shape or does not belong to the prior.
    pub(crate) fn parameters(&self, origin: &str, layout: ParameterLayout) -> Result<Parameters<f64>> {
        let wrong =
            |name: &str, message: String| Err(Error::input_at(origin, format!("tensor `{name}`"), message));
        let mut values = Vec::with_capacity(layout.len());
        for entry in layout.entries() {
            let Some(tensor) = self.tensor(&entry.name) else {
                return wrong(
                    &entry.name,
                    "is missing; docs/formats.md lists the tensors of a prior".to_owned(),
                );
            };
            if tensor.shape[..] != entry.shape[..] {
                let message =
                    format!("has shape {:?}, expected {:?} ([out, in])", tensor.shape, &entry.shape[..]);
                return wrong(&entry.name, message);
            }
            values.extend_from_slice(&tensor.values);
        }
        if let Some(extra) = self.tensors.iter().find(|tensor| layout.get(&tensor.name).is_none()) {
            return wrong(
                &extra.name,
                "does not belong to a prior; docs/formats.md lists the names".to_owned(),
            );
        }
        Ok(Parameters::from_values(layout.into(), values)?)
    }

    /// CRC-32C of the tensors as stored, as eight hexadecimal digits: for every tensor its name, its shape (each extent as u64)
    /// and its values (as f64), all little endian.
    fn checksum(&self) -> String {
        let tensors: Vec<_> = self.tensors.iter().map(Into::into).collect();
        format!("{:08x}", training_state::append_tensors(0, &tensors, self.precision))
    }

    /// What `use_it` makes of the tensors that can be written.
    fn encoded<T>(&self, origin: &str, use_it: impl FnOnce(Encoding<'_>) -> Result<T>) -> Result<T> {
        let mut metadata = self.metadata.clone();
        if let Some(Value::Object(object)) = &mut metadata {
            object.insert(CHECKSUM.into(), self.checksum().into());
        }
        let metadata = metadata.map(|metadata| metadata_text(origin, metadata)).transpose()?;
        let tensors: Vec<_> = self.tensors.iter().map(Into::into).collect();
        use_it(safetensors_file::encode(origin, &tensors, self.precision, metadata)?)
    }
}

/// The text of the metadata, signed with the format and the version of the writer.
fn metadata_text(origin: &str, metadata: Value) -> Result<String> {
    let Value::Object(mut object) = metadata else {
        return Err(Error::input_at(origin, "metadata", "expected a JSON object"));
    };
    object.insert("format".into(), FORMAT.into());
    object.insert("written_by".into(), concat!("pacmeta ", env!("CARGO_PKG_VERSION")).into());
    Ok(canonical(Value::Object(object)))
}

/// JSON text with sorted keys, whichever map serde_json was built with.
fn canonical(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// Refuses metadata of another format version.
fn check_format(origin: &str, metadata: Option<&Value>) -> Result<()> {
    const PLACE: &str = "metadata `pacmeta`";
    let Some(metadata) = metadata else { return Ok(()) };
    // Some programs write every number with a decimal point.
    let whole = |found: &Value| found.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    match metadata.get("format") {
        Some(found) if whole(found) == Some(FORMAT as f64) => Ok(()),
        // There never was an earlier one.
        Some(found) if whole(found).is_none_or(|number| number < FORMAT as f64) => Err(Error::input_at(
            origin,
            format!("{PLACE}, key `format`"),
            format!("expected the number {FORMAT}, found {found}"),
        )),
        Some(found) => {
            let writer = match metadata.get("written_by").and_then(Value::as_str) {
                Some(writer) => format!("written by {writer}"),
                None => "written by an unnamed version".into(),
            };
            Err(Error::input_at(
                origin,
                PLACE,
                format!(
                    "the file has format {found}, {writer}; pacmeta {} reads format {FORMAT}: update pacmeta",
                    env!("CARGO_PKG_VERSION")
                ),
            ))
        }
        None => Err(Error::input_at(
            origin,
            PLACE,
            format!("the key `format` is missing; expected an object with \"format\": {FORMAT}"),
        )),
    }
}

#[cfg(test)]
mod tests;
