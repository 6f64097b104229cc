//! The safetensors layout: 8 bytes with the header's length (little endian), a JSON header with the type, shape and
//! byte range of every tensor, then the bytes of the tensors without gaps.
//!
//! The types and the writer's final check come from the `safetensors` crate. The header is read here because the
//! crate lets the last of two equal names win, forgets the order and does not say which tensor is wrong.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use super::{Checkpoint, NamedTensor, Precision};
use crate::error::{Error, Result, json_in_words};
use crate::training::files::write_in_parts;

pub(crate) const PREFIX: usize = 8;
/// The limit of the reference implementation.
pub(crate) const MAX_HEADER: usize = 100_000_000;
const METADATA: &str = "__metadata__";
const OURS: &str = "pacmeta";

/// The header in its own order, names unique.
pub(crate) struct Header {
    metadata: Option<HashMap<String, String>>,
    pub(crate) tensors: Vec<(String, TensorInfo)>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct HeaderVisitor;

        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Header, A::Error> {
                let mut header = Header { metadata: None, tensors: Vec::new() };
                let mut names = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!("tensor `{name}` occurs twice")));
                    }
                    if name == METADATA {
                        header.metadata = Some(map.next_value().map_err(|error| {
                            A::Error::custom(format!("`{METADATA}` is not an object of strings: {error}"))
                        })?);
                        continue;
                    }
                    let info = map.next_value().map_err(|error| {
                        A::Error::custom(format!("the entry of tensor `{name}` cannot be used: {error}"))
                    })?;
                    header.tensors.push((name, info));
                }
                Ok(header)
            }
        }

        deserializer.deserialize_map(HeaderVisitor)
    }
}

/// Reads a whole file; the format version of the metadata is left to the caller.
pub(super) fn parse(origin: &str, bytes: &[u8]) -> Result<Checkpoint> {
    let (header, data) = split(origin, bytes)?;
    let mut header: Header = serde_json::from_slice(header).map_err(|error| {
        let problem = json_in_words(&error);
        Error::input(origin, format!("the safetensors header is not usable: {problem}; copy the file again"))
    })?;
    header.tensors.sort_by_key(|(_, info)| info.data_offsets); // stable: empty tensors keep the header's order
    check_ranges(origin, &header.tensors, data.len())?;

    let mut tensors = Vec::with_capacity(header.tensors.len());
    let mut precision = None;
    for (name, info) in header.tensors {
        let stored = precision_of(origin, &name, info.dtype)?;
        precision = precision.max(Some(stored));
        let values = decode(&data[info.data_offsets.0..info.data_offsets.1], stored);
        check_finite(origin, &name, &values)?;
        tensors.push(NamedTensor { name, shape: info.shape, values });
    }
    let metadata = header.metadata.and_then(|mut all| all.remove(OURS));
    let metadata = metadata.map(|text| parse_metadata(origin, &text)).transpose()?;
    Ok(Checkpoint { tensors, precision: precision.unwrap_or(Precision::F64), metadata })
}

/// The header and the data of a file.
fn split<'a>(origin: &str, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(Error::input(
            origin,
            format!(
                "{} bytes are too few for a safetensors file: it is cut off, or something else",
                bytes.len()
            ),
        ));
    };
    let length = u64::from_le_bytes(*prefix);
    match usize::try_from(length) {
        Ok(length) if length <= MAX_HEADER && length <= rest.len() => Ok(rest.split_at(length)),
        Ok(length) if length <= MAX_HEADER => Err(Error::input(
            origin,
            format!(
                "the header should have {length} bytes, the file ends after {}: it is cut off; copy it again",
                rest.len()
            ),
        )),
        _ => Err(Error::input(
            origin,
            format!(
                "a header of {length} bytes is claimed, at most {MAX_HEADER} are allowed: not a safetensors file"
            ),
        )),
    }
}

/// Checks that the tensors, sorted by their place, fill the data exactly.
fn check_ranges(origin: &str, tensors: &[(String, TensorInfo)], data_length: usize) -> Result<()> {
    let mut expected_start = 0;
    for (name, info) in tensors {
        let refuse = |message: String| Err(refuse_tensor(origin, name, message));
        let (start, end) = info.data_offsets;
        if end < start {
            return refuse(format!("its bytes {start}..{end} end before they start"));
        }
        if start != expected_start {
            let fault = if start < expected_start { "overlap with the tensor before" } else { "leave a gap" };
            return refuse(format!("its bytes {start}..{end} {fault}; expected a start at {expected_start}"));
        }
        if end > data_length {
            return refuse(format!(
                "its bytes {start}..{end} lie outside the {data_length} bytes of data: the file is cut off; copy it again"
            ));
        }
        precision_of(origin, name, info.dtype)?; // before the size, for the type is the better explanation
        let bits = element_count(&info.shape).and_then(|count| count.checked_mul(info.dtype.bitsize()));
        match bits {
            None => {
                return refuse(format!("the size of shape {:?} is beyond this machine", info.shape));
            }
            Some(bits) if bits / 8 != end - start => {
                return refuse(format!(
                    "shape {:?} of {} needs {} bytes, the file gives {}",
                    info.shape,
                    info.dtype,
                    bits / 8,
                    end - start
                ));
            }
            Some(_) => expected_start = end,
        }
    }
    if expected_start != data_length {
        return Err(Error::input(
            origin,
            format!(
                "the tensors cover {expected_start} bytes of data, the file has {data_length}; copy it again"
            ),
        ));
    }
    Ok(())
}

pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |count, &extent| count.checked_mul(extent))
}

fn precision_of(origin: &str, name: &str, dtype: Dtype) -> Result<Precision> {
    match dtype {
        Dtype::F32 => Ok(Precision::F32),
        Dtype::F64 => Ok(Precision::F64),
        other => Err(refuse_tensor(
            origin,
            name,
            format!("has type {other}; F32 and F64 are read: convert it, or leave it out"),
        )),
    }
}

fn decode(bytes: &[u8], precision: Precision) -> Vec<f64> {
    match precision {
        Precision::F32 => bytes.as_chunks().0.iter().map(|&chunk| f32::from_le_bytes(chunk).into()).collect(),
        Precision::F64 => bytes.as_chunks().0.iter().map(|&chunk| f64::from_le_bytes(chunk)).collect(),
    }
}

fn check_finite(origin: &str, name: &str, values: &[f64]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(refuse_tensor(
            origin,
            name,
            format!("value {index} is {}; finite numbers are expected", values[index]),
        )),
    }
}

fn parse_metadata(origin: &str, text: &str) -> Result<Value> {
    let refuse = |message| Err(Error::input_at(origin, format!("metadata `{OURS}`"), message));
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => refuse("expected a JSON object".to_owned()),
        Err(error) => refuse(format!("is not JSON: {error}")),
    }
}

/// A tensor to be written.
pub(super) struct TensorReference<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) shape: Cow<'a, [usize]>,
    pub(super) values: &'a [f64],
}

impl<'a> From<&'a NamedTensor> for TensorReference<'a> {
    fn from(tensor: &'a NamedTensor) -> Self {
        Self {
            name: tensor.name.as_str().into(),
            shape: tensor.shape.as_slice().into(),
            values: &tensor.values,
        }
    }
}

/// Tensors that can be written.
pub(super) struct Encoding<'a> {
    tensors: &'a [TensorReference<'a>],
    precision: Precision,
    /// The length of the header, and the header.
    head: Vec<u8>,
    data_length: usize,
}

impl Encoding<'_> {
    /// The bytes of the file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.head.len() + self.data_length);
        // Only files fail.
        let _ = self.write(&mut bytes);
        bytes
    }

    /// Writes the file, some numbers at a time.
    pub(super) fn write(&self, file: &mut impl Write) -> io::Result<()> {
        file.write_all(&self.head)?;
        self.tensors.iter().try_for_each(|tensor| match self.precision {
            Precision::F32 => write_values(file, tensor.values, |value| (value as f32).to_le_bytes()),
            Precision::F64 => write_values(file, tensor.values, f64::to_le_bytes),
        })
    }

    /// Writes the file, as a whole or not at all.
    pub(super) fn write_to(&self, path: &Path) -> Result<()> {
        write_in_parts(path, |file| self.write(file)).map_err(|source| Error::io("write", path, source))
    }
}

/// Tensors to be written in the given order.
pub(super) fn encode<'a>(
    origin: &str,
    tensors: &'a [TensorReference<'a>],
    precision: Precision,
    metadata: Option<String>,
) -> Result<Encoding<'a>> {
    let (dtype, width) = match precision {
        Precision::F32 => (Dtype::F32, 4),
        Precision::F64 => (Dtype::F64, 8),
    };
    let mut names = HashSet::new();
    let mut infos = Vec::with_capacity(tensors.len());
    let mut offset = 0;
    for tensor in tensors {
        let refuse = |message: String| Err(refuse_tensor(origin, &tensor.name, message));
        if tensor.name == METADATA || !names.insert(&tensor.name) {
            return refuse("the name is taken".into());
        }
        if element_count(&tensor.shape) != Some(tensor.values.len()) {
            return refuse(format!("shape {:?} does not match {} values", tensor.shape, tensor.values.len()));
        }
        check_finite(origin, &tensor.name, tensor.values)?;
        let too_large = |value: &f64| precision == Precision::F32 && !(*value as f32).is_finite();
        if let Some(index) = tensor.values.iter().position(too_large) {
            let value = tensor.values[index];
            return refuse(format!("value {index} is {value:e}, beyond the range of f32; store f64"));
        }
        let end = offset + width * tensor.values.len();
        let info = TensorInfo { dtype, shape: tensor.shape.to_vec(), data_offsets: (offset, end) };
        infos.push((tensor.name.to_string(), info));
        offset = end;
    }
    let metadata = metadata.map(|text| HashMap::from([(OURS.to_owned(), text)]));
    let unwritable = |error: &dyn fmt::Display| Error::input(origin, format!("cannot be written: {error}"));
    let header = Metadata::new(metadata, infos).map_err(|error| unwritable(&error))?;
    let mut header = serde_json::to_vec(&header).map_err(|error| unwritable(&error))?;
    header.resize(header.len().next_multiple_of(PREFIX), b' ');
    if header.len() > MAX_HEADER {
        return Err(unwritable(&format!("its header exceeds {MAX_HEADER} bytes")));
    }

    let head = [&(header.len() as u64).to_le_bytes()[..], &header].concat();
    Ok(Encoding { tensors, precision, head, data_length: offset })
}

/// Numbers that are encoded before they are written.
const AT_ONCE: usize = 1 << 14;

/// Writes every value as `WIDTH` bytes.
fn write_values<const WIDTH: usize>(
    file: &mut impl Write,
    values: &[f64],
    encode: impl Fn(f64) -> [u8; WIDTH],
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(WIDTH * values.len().min(AT_ONCE));
    for values in values.chunks(AT_ONCE) {
        bytes.clear();
        values.iter().for_each(|&value| bytes.extend(encode(value)));
        file.write_all(&bytes)?;
    }
    Ok(())
}

fn refuse_tensor(origin: &str, name: &str, message: String) -> Error {
    Error::input_at(origin, format!("tensor `{name}`"), message)
}
