//! `model.safetensors`, read tensor by tensor: never more than a few megabytes beside the parameters.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use half::{bf16, f16};
use pacmeta_tensor::encoder::Pooling;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;

use crate::environments::table::quoted;
use crate::error::{Error, Result};
use crate::training::checkpoint::safetensors_file::{Header, MAX_HEADER, PREFIX, element_count};

/// Bytes read at once, a multiple of every type's size.
const PIECE: usize = 1 << 20;

/// Names this alike are suggested.
const ALIKE: f64 = 0.6;

/// Missing, and misshapen, tensors that are named.
const NAMED: usize = 10;

/// Longer names are not compared: comparing takes time in the product of the lengths.
const LONGEST_NAME: usize = 120;

/// A file of tensors.
pub(super) struct TensorFile<R> {
    origin: String,
    reader: R,
    data_start: u64,
    data_length: u64,
    tensors: HashMap<String, TensorInfo>,
}

impl<R: Read + Seek> TensorFile<R> {
    /// Reads the header of a file of this length.
    pub(super) fn open(origin: &str, mut reader: R, length: u64) -> Result<Self> {
        let io_error = |source| Error::io("read", origin, source);
        let cut_off = || Error::input(origin, "the file is cut off, or no safetensors file; copy it again");
        let mut prefix = [0; PREFIX];
        if length < PREFIX as u64 {
            return Err(cut_off());
        }
        reader.read_exact(&mut prefix).map_err(io_error)?;
        let header_length = u64::from_le_bytes(prefix);
        if header_length > MAX_HEADER as u64 || header_length > length - PREFIX as u64 {
            return Err(cut_off());
        }
        let mut header = vec![0; header_length as usize];
        reader.read_exact(&mut header).map_err(io_error)?;
        let header: Header = serde_json::from_slice(&header).map_err(|error| {
            Error::input(
                origin,
                format!("the safetensors header is not usable: {error}; copy the file again"),
            )
        })?;
        let data_start = PREFIX as u64 + header_length;
        Ok(Self {
            origin: origin.to_owned(),
            reader,
            data_start,
            data_length: length - data_start,
            tensors: header.tensors.into_iter().collect(),
        })
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// The number of tensors.
    pub(super) fn len(&self) -> usize {
        self.tensors.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn first_of<'a>(&self, candidates: &'a [String]) -> Option<(&'a String, &TensorInfo)> {
        candidates.iter().find_map(|name| Some((name, self.tensors.get(name)?)))
    }

    /// Refuses a file in which more than one of these tensors, by their possible names and shapes, is missing or has
    /// another shape: all of them are named at once.
    pub(super) fn check_names_and_shapes(
        &self,
        expected: &[(Vec<String>, &[usize])],
        pooling: Pooling,
    ) -> Result<()> {
        let mut missing = Vec::new();
        let mut misshapen = Vec::new();
        for (candidates, shape) in expected {
            match self.first_of(candidates) {
                None => missing.push(candidates[0].as_str()),
                Some((name, info)) if info.shape != *shape => {
                    misshapen.push(format!("`{name}` is {:?} in place of {shape:?}", info.shape));
                }
                Some(_) => {}
            }
        }
        if missing.len() + misshapen.len() <= 1 {
            return Ok(());
        }
        let mut parts = Vec::new();
        if let Some(first) = missing.first() {
            let names = missing.iter().map(|name| format!("`{name}`")).collect();
            let instead = self.instead(first, pooling);
            parts.push(format!("{} missing: {}{instead}", tensors_are(missing.len()), first_few(names)));
        }
        if !misshapen.is_empty() {
            let count = tensors_are(misshapen.len());
            parts.push(format!(
                "{count} not of the shape that config.json asks for: {}",
                first_few(misshapen)
            ));
        } else if pooling != Pooling::Pooler || !missing.iter().all(|name| name.contains("pooler")) {
            parts.push("does config.json belong to this file?".to_owned());
        }
        Err(Error::input(&self.origin, parts.join("; ")))
    }

    fn wrong(&self, name: &str, message: String) -> Error {
        Error::input_at(&self.origin, format!("tensor `{name}`"), message)
    }

    /// The one of these names that is there, with this shape, a known type and all its bytes.
    pub(super) fn find(&self, candidates: &[String], shape: &[usize], pooling: Pooling) -> Result<String> {
        let Some((name, info)) = self.first_of(candidates) else {
            return Err(self.missing(&candidates[0], shape, pooling));
        };
        if info.shape != shape {
            let message = format!(
                "has shape {:?}; config.json asks for {shape:?}: the two belong to different models",
                info.shape
            );
            return Err(self.wrong(name, message));
        }
        let Some(width) = width(info.dtype) else {
            let message = format!("has type {}; F32, F16, BF16 and F64 are read: convert it", info.dtype);
            return Err(self.wrong(name, message));
        };
        let (start, end) = info.data_offsets;
        let expected = element_count(shape).and_then(|count| count.checked_mul(width));
        if end.checked_sub(start).is_none() || expected != Some(end - start) {
            let message =
                format!("its bytes {start}..{end} are not those of shape {shape:?}; copy the file again");
            return Err(self.wrong(name, message));
        }
        if end as u64 > self.data_length {
            let message = format!(
                "its bytes {start}..{end} lie outside the {} bytes of data: the file is cut off; copy it again",
                self.data_length
            );
            return Err(self.wrong(name, message));
        }
        Ok(name.clone())
    }

    fn missing(&self, name: &str, shape: &[usize], pooling: Pooling) -> Error {
        let similarity = |other: &str| strsim::normalized_damerau_levenshtein(name, other);
        let nearest = self
            .names()
            .filter(|other| other.len() <= LONGEST_NAME)
            .map(|other| (similarity(other), other))
            .filter(|&(similarity, _)| similarity >= ALIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
        let mut message = format!("is missing; expected shape {shape:?}");
        if let Some((_, nearest)) = nearest {
            message.push_str(&format!("; the nearest name is `{nearest}`"));
        }
        message.push_str(&self.instead(name, pooling));
        self.wrong(name, message)
    }

    /// What there is in place of a missing tensor.
    fn instead(&self, name: &str, pooling: Pooling) -> String {
        if pooling == Pooling::Pooler && name.contains("pooler") {
            return "; choose another pooling (mean or first): this model has no pooler".to_owned();
        }
        let any = self.names().min();
        any.map_or(String::new(), |any| {
            format!("; the file has {} tensors, such as {}", self.len(), quoted(any))
        })
    }

    /// Reads a tensor that [`find`](Self::find) accepted.
    pub(super) fn read(&mut self, name: &str, values: &mut [f32]) -> Result<()> {
        let Some(info) = self.tensors.get(name) else {
            return Err(self.wrong(name, "is missing".into()));
        };
        let (dtype, (start, _)) = (info.dtype, info.data_offsets);
        let Some(width) = width(dtype) else {
            return Err(self.wrong(name, format!("has type {dtype}")));
        };
        let io_error = |source| Error::io("read", &self.origin, source);
        self.reader.seek(SeekFrom::Start(self.data_start + start as u64)).map_err(io_error)?;
        let mut bytes = vec![0; PIECE.min(values.len() * width)];
        let mut done = 0;
        for piece in values.chunks_mut(PIECE / width) {
            let bytes = &mut bytes[..piece.len() * width];
            self.reader.read_exact(bytes).map_err(io_error)?;
            convert(dtype, bytes, piece);
            if let Some(place) = piece.iter().position(|value| !value.is_finite()) {
                let message = format!(
                    "value {} is {} in single precision; finite numbers are expected: copy the file again",
                    done + place,
                    piece[place]
                );
                return Err(self.wrong(name, message));
            }
            done += piece.len();
        }
        Ok(())
    }
}

fn tensors_are(count: usize) -> String {
    if count == 1 { "1 tensor is".to_owned() } else { format!("{count} tensors are") }
}

/// The first [`NAMED`] of these, and how many more there are.
fn first_few(mut all: Vec<String>) -> String {
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    all.truncate(NAMED);
    all.join(", ") + &more
}

/// The bytes of a number; none for types that are not read.
fn width(dtype: Dtype) -> Option<usize> {
    match dtype {
        Dtype::F16 | Dtype::BF16 => Some(2),
        Dtype::F32 => Some(4),
        Dtype::F64 => Some(8),
        _ => None,
    }
}

fn convert(dtype: Dtype, bytes: &[u8], values: &mut [f32]) {
    fn each<const WIDTH: usize>(bytes: &[u8], values: &mut [f32], decode: impl Fn([u8; WIDTH]) -> f32) {
        for (value, &chunk) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = decode(chunk);
        }
    }
    match dtype {
        Dtype::F16 => each(bytes, values, |chunk| f16::from_le_bytes(chunk).to_f32()),
        Dtype::BF16 => each(bytes, values, |chunk| bf16::from_le_bytes(chunk).to_f32()),
        Dtype::F64 => each(bytes, values, |chunk| f64::from_le_bytes(chunk) as f32),
        _ => each(bytes, values, f32::from_le_bytes),
    }
}
