//! `model.safetensors`, read tensor by tensor: never more than a few megabytes beside the parameters.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom};

use half::{bf16, f16};
use pacmeta_tensor::encoder::Pooling;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;

use crate::environments::table::quoted;
use crate::error::{Error, Result};
use crate::training::checkpoint::safetensors_file::{Header, MAX_HEADER, PREFIX, element_count};

/// How the pointers begin that Git LFS leaves in place of files.
const GIT_LFS: [u8; PREFIX] = *b"version ";

/// Bytes read at once, a multiple of every type's size.
const PIECE: usize = 1 << 20;

/// Names this alike are suggested.
const ALIKE: f64 = 0.6;

/// Tensors that are named, of each kind of fault.
const NAMED: usize = 10;

/// The types that are read, in words.
const TYPES: &str = "F32, F16, BF16 and F64";

/// Longer names are not compared: comparing takes time in the product of the lengths.
const LONGEST_NAME: usize = 120;

/// What can be wrong with a tensor that is needed.
enum Fault<'a> {
    Missing { name: &'a String, shape: &'a [usize] },
    Shape { name: &'a String, found: Vec<usize>, shape: &'a [usize] },
    Type { name: &'a String, found: Dtype },
    Bytes { name: &'a String, start: usize, end: usize },
}

impl Fault<'_> {
    fn name(&self) -> &str {
        match self {
            Fault::Missing { name, .. }
            | Fault::Shape { name, .. }
            | Fault::Type { name, .. }
            | Fault::Bytes { name, .. } => name,
        }
    }
}

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
        if prefix == GIT_LFS {
            let message = "is the pointer that Git LFS leaves in place of a large file; fetch the file itself (`git lfs pull`)";
            return Err(Error::input(origin, message));
        }
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
        let data_length = length - data_start;
        let last = header.tensors.iter().map(|(_, info)| info.data_offsets.1 as u64).max().unwrap_or(0);
        if data_length > last {
            let message = format!(
                "bytes follow the last tensor ({}): this is more than one file, or another one; copy it again",
                data_length - last
            );
            return Err(Error::input(origin, message));
        }
        Ok(Self {
            origin: origin.to_owned(),
            reader,
            data_start,
            data_length,
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

    /// The names under which the file has these tensors, by their possible names and shapes.
    ///
    /// # Errors
    /// When one is missing, has another shape or a type that is not read, or lacks bytes. All such tensors are named at once.
    pub(super) fn find_all(
        &self,
        expected: &[(Vec<String>, &[usize])],
        pooling: Pooling,
    ) -> Result<Vec<String>> {
        let mut found = Vec::with_capacity(expected.len());
        let mut faults = Vec::new();
        for (candidates, shape) in expected {
            match self.find(candidates, shape) {
                Ok(name) => found.push(name.clone()),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            return Ok(found);
        }
        let asked_for: HashSet<&str> =
            expected.iter().flat_map(|(candidates, _)| candidates.iter().map(String::as_str)).collect();
        let spare: Vec<&str> = self.names().filter(|name| !asked_for.contains(name)).collect();
        Err(match &faults[..] {
            [only] => Error::input_at(
                &self.origin,
                format!("tensor `{}`", only.name()),
                self.explain(only, &spare, pooling),
            ),
            several => Error::input(&self.origin, self.explain_together(several, &spare, pooling)),
        })
    }

    /// The one of these names that is there, with this shape, a known type and all its bytes.
    fn find<'a>(
        &self,
        candidates: &'a [String],
        shape: &'a [usize],
    ) -> std::result::Result<&'a String, Fault<'a>> {
        let Some((name, info)) = self.first_of(candidates) else {
            return Err(Fault::Missing { name: &candidates[0], shape });
        };
        if info.shape != shape {
            return Err(Fault::Shape { name, found: info.shape.clone(), shape });
        }
        let Some(width) = width(info.dtype) else {
            return Err(Fault::Type { name, found: info.dtype });
        };
        let (start, end) = info.data_offsets;
        let expected = element_count(shape).and_then(|count| count.checked_mul(width));
        let length = end.checked_sub(start);
        if length.is_none() || length != expected || end as u64 > self.data_length {
            return Err(Fault::Bytes { name, start, end });
        }
        Ok(name)
    }

    /// What is wrong with the only tensor that is.
    fn explain(&self, fault: &Fault<'_>, spare: &[&str], pooling: Pooling) -> String {
        match fault {
            Fault::Missing { name, shape } => {
                let nearest =
                    nearest(name, spare).map(|nearest| format!("; the nearest name is `{nearest}`"));
                let instead = self.instead(name, pooling);
                format!("is missing; expected shape {shape:?}{}{instead}", nearest.unwrap_or_default())
            }
            Fault::Shape { found, shape, .. } => format!(
                "has shape {found:?}; config.json asks for {shape:?}: the two belong to different models"
            ),
            Fault::Type { found, .. } => format!("has type {found}; {TYPES} are read: convert it"),
            Fault::Bytes { start, end, .. } if *end as u64 > self.data_length => format!(
                "its bytes {start}..{end} lie outside the {} bytes of data: the file is cut off; copy it again",
                self.data_length
            ),
            Fault::Bytes { start, end, .. } => {
                format!("its bytes {start}..{end} are not those of its shape; copy the file again")
            }
        }
    }

    /// What is wrong with several tensors, by kinds.
    fn explain_together(&self, faults: &[Fault<'_>], spare: &[&str], pooling: Pooling) -> String {
        let (mut missing, mut misshapen, mut untyped, mut cut) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for fault in faults {
            match fault {
                Fault::Missing { name, .. } => missing.push(name.as_str()),
                Fault::Shape { name, found, shape } => {
                    misshapen.push(format!("`{name}` is {found:?} in place of {shape:?}"));
                }
                Fault::Type { name, found } => untyped.push(format!("`{name}` is {found}")),
                Fault::Bytes { name, .. } => cut.push(format!("`{name}`")),
            }
        }
        let mut parts = Vec::new();
        if let Some(first) = missing.first() {
            let with_nearest = |name: &&str| match nearest(name, spare) {
                Some(nearest) => format!("`{name}` (the nearest name is `{nearest}`)"),
                None => format!("`{name}`"),
            };
            // No more are compared than are named.
            let names = missing.iter().take(NAMED).map(with_nearest).collect();
            let instead = self.instead(first, pooling);
            parts.push(format!(
                "{} missing: {}{instead}",
                tensors_are(missing.len()),
                listed(names, missing.len())
            ));
        }
        let of_kind = |described: Vec<String>, kind: &str| {
            let count = described.len();
            (count > 0).then(|| format!("{} {kind}: {}", tensors_are(count), listed(described, count)))
        };
        parts.extend(of_kind(misshapen, "not of the shape that config.json asks for"));
        parts
            .extend(of_kind(untyped, &format!("of a type that is not read ({TYPES} are; convert the file)")));
        parts.extend(of_kind(
            cut,
            "without the bytes that the shape asks for (the file is cut off or damaged; copy it again)",
        ));
        let only_the_pooler =
            || pooling == Pooling::Pooler && missing.iter().all(|name| name.contains("pooler"));
        if parts.len() == 1 && !missing.is_empty() && !only_the_pooler() {
            parts.push("does config.json belong to this file?".to_owned());
        }
        parts.join("; ")
    }

    fn wrong(&self, name: &str, message: String) -> Error {
        Error::input_at(&self.origin, format!("tensor `{name}`"), message)
    }

    /// What there is in place of a missing tensor.
    fn instead(&self, name: &str, pooling: Pooling) -> String {
        if pooling == Pooling::Pooler && name.contains("pooler") {
            return "; choose another pooling (`prior.pooling`, mean or first): this model has no pooler"
                .to_owned();
        }
        let any = self.names().min();
        any.map_or(String::new(), |any| {
            format!("; the file has {} tensors, such as {}", self.len(), quoted(any))
        })
    }

    /// Reads a tensor that [`find_all`](Self::find_all) accepted.
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

/// The first [`NAMED`] of these, and how many more of the `count` there are.
fn listed(mut described: Vec<String>, count: usize) -> String {
    described.truncate(NAMED);
    let more = match count - described.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    described.join(", ") + &more
}

/// The one of these names that is most like this one.
fn nearest<'a>(name: &str, others: &[&'a str]) -> Option<&'a str> {
    let alike = others.iter().filter(|other| other.len() <= LONGEST_NAME).map(|other| {
        let similarity = strsim::normalized_damerau_levenshtein(name, other);
        (similarity, *other)
    });
    alike
        .filter(|&(similarity, _)| similarity >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, nearest)| nearest)
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
