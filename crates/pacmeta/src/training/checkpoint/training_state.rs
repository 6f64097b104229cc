//! The exact state of a run after an iteration: parameters, optimiser moments, counters.
//!
//! Stored like any checkpoint, tensors prefixed `parameters.` and `optimiser.`, with
//! `"training": {"iteration": _, "counters": {...}, "instructions": "...", "crc32c": "..."}` in the metadata. Numbers are
//! stored without loss: in f32 when every value of the file is an f32, in f64 otherwise.
//!
//! The CRC-32C covers the content: the `training` object without the checksum (JSON, keys sorted), then for every tensor
//! its name, its shape (each extent as u64) and its values (as f64), all little endian. A file that was damaged on disk
//! is thus told from a whole one even where it still parses.

use std::collections::BTreeMap;
use std::path::Path;

use pacmeta_tensor::Parameters;
use pacmeta_tensor::simd::instructions;
use serde_json::{Map, Value};

use super::safetensors_file::{self, Encoding, TensorReference};
use super::{Checkpoint, MAX_BYTES, NamedTensor, Precision, canonical, check_format, metadata_text};
use crate::error::{Error, Result};
use crate::training::files::read_bounded;
use crate::training::optimiser::Optimiser;

const PARAMETERS: &str = "parameters.";
const OPTIMISER: &str = "optimiser.";

/// Everything a run needs to continue as if it had never stopped. Randomness is keyed by the iteration and needs no
/// state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainingState {
    /// The number of finished iterations.
    pub iteration: u64,
    /// The parameters of the prior.
    pub parameters: Vec<NamedTensor>,
    /// The optimiser's moments by name, e.g. `first_moment`.
    pub optimiser: Vec<(String, Vec<f64>)>,
    /// Whole numbers the loop keeps, by name.
    pub counters: BTreeMap<String, u64>,
    /// The [instruction set](pacmeta_tensor::simd::instructions) that it was computed with, where that is known.
    pub instructions: Option<String>,
}

impl TrainingState {
    /// The state of a loop: parameters, Adam's moments, and sums that it keeps between two lines of metrics.
    pub(crate) fn of_loop(
        iteration: u64,
        parameters: &Parameters<f64>,
        optimiser: &Optimiser,
        window: &[f64],
    ) -> Self {
        let (steps, first, second) = optimiser.state();
        Self {
            iteration,
            parameters: NamedTensor::of_parameters(parameters),
            optimiser: vec![
                ("first_moment".to_owned(), first.to_vec()),
                ("second_moment".to_owned(), second.to_vec()),
                ("window".to_owned(), window.to_vec()),
            ],
            counters: [("optimiser_steps".to_owned(), steps)].into(),
            instructions: Some(instructions().to_owned()),
        }
    }

    /// The instruction set that it was computed with, if that is known not to be the one at hand.
    pub fn other_instructions(&self) -> Option<&str> {
        self.instructions.as_deref().filter(|made| *made != instructions())
    }

    /// Puts a loop back into this state; what does not fit changes nothing.
    ///
    /// # Errors
    /// When the state belongs to another prior.
    pub(crate) fn restore_loop(
        &self,
        parameters: &mut Parameters<f64>,
        optimiser: &mut Optimiser,
        window: &mut [f64],
    ) -> Result<()> {
        let entries = parameters.layout().entries();
        let same = entries.len() == self.parameters.len()
            && entries
                .iter()
                .zip(&self.parameters)
                .all(|(entry, tensor)| entry.name == tensor.name && entry.shape[..] == tensor.shape[..]);
        let part = |name: &str| self.optimiser.iter().find(|(key, _)| key == name).map(|(_, values)| values);
        let steps = self.counters.get("optimiser_steps").copied().unwrap_or(self.iteration);
        match (part("first_moment"), part("second_moment"), part("window")) {
            (Some(first), Some(second), Some(sums))
                if same && sums.len() == window.len() && optimiser.restore(steps, first, second) =>
            {
                window.copy_from_slice(sums);
                let stored: Vec<f64> =
                    self.parameters.iter().flat_map(|tensor| tensor.values.iter().copied()).collect();
                parameters.values_mut().copy_from_slice(&stored);
                Ok(())
            }
            _ => {
                let message = "the stored state belongs to another prior; choose another --out";
                Err(Error::input("checkpoint", message))
            }
        }
    }

    /// The file as bytes. Equal states give equal bytes.
    ///
    /// # Errors
    /// When names occur twice, a shape does not match its values or a value is not finite.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.encoded(|encoding| Ok(encoding.to_bytes()))
    }

    /// What `use_it` makes of the tensors that can be written.
    fn encoded<T>(&self, use_it: impl FnOnce(Encoding<'_>) -> Result<T>) -> Result<T> {
        let parameters = self.parameters.iter().map(|tensor| TensorReference {
            name: format!("{PARAMETERS}{}", tensor.name).into(),
            ..tensor.into()
        });
        let optimiser = self.optimiser.iter().map(|(name, values)| TensorReference {
            name: format!("{OPTIMISER}{name}").into(),
            shape: vec![values.len()].into(),
            values,
        });
        let tensors: Vec<_> = parameters.chain(optimiser).collect();

        let counters: Map<String, Value> =
            self.counters.iter().map(|(name, &count)| (name.clone(), count.into())).collect();
        let mut training = Map::new();
        training.insert("iteration".into(), self.iteration.into());
        training.insert("counters".into(), Value::Object(counters));
        if let Some(instructions) = &self.instructions {
            training.insert("instructions".into(), instructions.as_str().into());
        }
        training.insert("crc32c".into(), checksum(&training, &tensors).into());

        let is_f32 = |value: &f64| f64::from(*value as f32) == *value;
        let narrow = tensors.iter().all(|tensor| tensor.values.iter().all(is_f32));
        let precision = if narrow { Precision::F32 } else { Precision::F64 };
        let origin = "training state";
        let metadata = metadata_text(origin, serde_json::json!({ "training": training }))?;
        use_it(safetensors_file::encode(origin, &tensors, precision, Some(metadata))?)
    }

    /// Writes the file, as a whole or not at all.
    ///
    /// # Errors
    /// As [`TrainingState::to_bytes`], and when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.encoded(|encoding| encoding.write_to(path.as_ref()))
    }

    /// Reads and verifies a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no training state, or is damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::parse(path.display(), &read_bounded(path, MAX_BYTES)?)
    }

    /// Reads and verifies the bytes of a file; `origin` names them in messages.
    ///
    /// # Errors
    /// As [`TrainingState::read`].
    pub fn parse(origin: impl std::fmt::Display, bytes: &[u8]) -> Result<Self> {
        match judge(&origin.to_string(), bytes)? {
            Verdict::Whole(state) => Ok(state),
            Verdict::Damaged(reason) => Err(reason),
        }
    }
}

/// What a file in the place of a training state turned out to be.
pub(in crate::training) enum Verdict {
    /// A training state, verified.
    Whole(TrainingState),
    /// Not a whole training state; an older one may serve.
    Damaged(Error),
}

/// Verifies the bytes of a training state. A format of another version is an error rather than damage: falling back to
/// an older file would throw away good work.
pub(in crate::training) fn judge(origin: &str, bytes: &[u8]) -> Result<Verdict> {
    let checkpoint = match safetensors_file::parse(origin, bytes) {
        Ok(checkpoint) => checkpoint,
        Err(reason) => return Ok(Verdict::Damaged(reason)),
    };
    check_format(origin, checkpoint.metadata.as_ref())?;
    Ok(match verify(origin, checkpoint) {
        Ok(state) => Verdict::Whole(state),
        Err(reason) => Verdict::Damaged(reason),
    })
}

fn verify(origin: &str, checkpoint: Checkpoint) -> Result<TrainingState> {
    let refuse = |message: &str| Error::input_at(origin, "metadata `pacmeta`, key `training`", message);
    let mut metadata = checkpoint.metadata.unwrap_or_default();
    let Some(Value::Object(mut training)) = metadata.get_mut("training").map(Value::take) else {
        return Err(refuse("is missing: this is a checkpoint of a prior, not the state of a run"));
    };
    let Some(Value::String(stored)) = training.remove("crc32c") else {
        return Err(refuse("has no checksum `crc32c`"));
    };
    let tensors: Vec<_> = checkpoint.tensors.iter().map(Into::into).collect();
    let computed = checksum(&training, &tensors);
    if stored != computed {
        return Err(refuse(&format!(
            "the checksum is {stored}, the content gives {computed}: the file is damaged"
        )));
    }
    let Some(iteration) = training.get("iteration").and_then(Value::as_u64) else {
        return Err(refuse("expected a whole number under `iteration`"));
    };
    let instructions = training.get("instructions").and_then(Value::as_str).map(str::to_owned);
    let mut state = TrainingState { iteration, instructions, ..TrainingState::default() };
    let counters = training.get("counters").and_then(Value::as_object);
    for (name, count) in counters.ok_or_else(|| refuse("expected an object under `counters`"))? {
        let Some(count) = count.as_u64() else {
            return Err(refuse(&format!("counter `{name}` is not a whole number")));
        };
        state.counters.insert(name.clone(), count);
    }
    for tensor in checkpoint.tensors {
        if let Some(name) = tensor.name.strip_prefix(PARAMETERS) {
            state.parameters.push(NamedTensor { name: name.to_owned(), ..tensor });
        } else if let Some(name) = tensor.name.strip_prefix(OPTIMISER) {
            state.optimiser.push((name.to_owned(), tensor.values));
        } else {
            return Err(Error::input_at(
                origin,
                format!("tensor `{}`", tensor.name),
                format!("expected a name that starts with `{PARAMETERS}` or `{OPTIMISER}`"),
            ));
        }
    }
    Ok(state)
}

/// The checksum of the content, as eight hexadecimal digits.
fn checksum(training: &Map<String, Value>, tensors: &[TensorReference<'_>]) -> String {
    let crc = crc32c::crc32c(canonical(Value::Object(training.clone())).as_bytes());
    format!("{:08x}", append_tensors(crc, tensors, Precision::F64))
}

/// Continues a checksum over names, shapes and values as they are stored in this precision.
pub(super) fn append_tensors(mut crc: u32, tensors: &[TensorReference<'_>], precision: Precision) -> u32 {
    const VALUES_AT_ONCE: usize = 4096; // the checksum is fast on long slices only
    let stored = |value: f64| match precision {
        Precision::F32 => f64::from(value as f32),
        Precision::F64 => value,
    };
    let mut buffer = Vec::with_capacity(8 * VALUES_AT_ONCE);
    for tensor in tensors {
        crc = crc32c::crc32c_append(crc, tensor.name.as_bytes());
        for &extent in tensor.shape.iter() {
            crc = crc32c::crc32c_append(crc, &(extent as u64).to_le_bytes());
        }
        for values in tensor.values.chunks(VALUES_AT_ONCE) {
            buffer.clear();
            values.iter().for_each(|value| buffer.extend(stored(*value).to_le_bytes()));
            crc = crc32c::crc32c_append(crc, &buffer);
        }
    }
    crc
}
