//! Reads the header of a GGUF file, which may hold anything: whatever it counts is bounded, and whatever
//! it names lies within the file.

use crate::blocks::Kind;
use std::collections::HashMap;
use std::ops::Range;

/// The versions that are read: 1 had other lengths, and llama.cpp reads it no more either.
const VERSIONS: [u32; 2] = [2, 3];
/// Entries of the metadata; models have a few dozen.
pub(super) const ENTRIES_MAX: u64 = 4_096;
/// Tensors; the largest models have a few thousand.
pub(super) const TENSORS_MAX: u64 = 65_536;
/// Bytes of a key or of a tensor's name; the format's own bound on keys is 65,535, and ggml's on names
/// is 64.
pub(super) const NAME_BYTES_MAX: usize = 1_024;
/// Dimensions of a tensor (`GGML_MAX_DIMS`).
pub(super) const DIMENSIONS_MAX: u32 = 4;
/// Arrays in arrays; models have none.
const DEPTH_MAX: u32 = 4;
/// Upper bound of the alignment of the tensors' data, and its default (`GGUF_DEFAULT_ALIGNMENT`).
const ALIGNMENT_MAX: u64 = 1 << 20;
const ALIGNMENT: u64 = 32;

/// Parsed header.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) entries: HashMap<String, Value>,
    pub(super) tensors: HashMap<String, Tensor>,
}

/// An entry of the metadata. Texts stay in the file: these are places.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Fraction(f32),
    Text(Range<usize>),
    Array(Array),
    /// Kinds that no entry that is looked for has.
    Other,
}

/// An array of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    kind: u32,
    count: u64,
    /// Range of its elements.
    place: Range<usize>,
}

/// A tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    /// How it is stored, or the number of a kind that cannot be computed with.
    pub(super) kind: Result<Kind, u32>,
    /// Its sizes, the rows' length first, as files have them.
    pub(super) dimensions: Vec<usize>,
    /// Range of its data; empty for other kinds, whose length is not known.
    pub(super) place: Range<usize>,
}

/// The numbers by which a file names the kinds of values (`gguf_metadata_value_type`).
mod kinds {
    pub(super) const U8: u32 = 0;
    pub(super) const I8: u32 = 1;
    pub(super) const U16: u32 = 2;
    pub(super) const I16: u32 = 3;
    pub(super) const U32: u32 = 4;
    pub(super) const I32: u32 = 5;
    pub(super) const F32: u32 = 6;
    pub(super) const BOOL: u32 = 7;
    pub(super) const TEXT: u32 = 8;
    pub(super) const ARRAY: u32 = 9;
    pub(super) const U64: u32 = 10;
    pub(super) const I64: u32 = 11;
    pub(super) const F64: u32 = 12;
}

/// Returns the length of a value, if its kind has one length.
fn length(kind: u32) -> Option<u64> {
    Some(match kind {
        kinds::U8 | kinds::I8 | kinds::BOOL => 1,
        kinds::U16 | kinds::I16 => 2,
        kinds::U32 | kinds::I32 | kinds::F32 => 4,
        kinds::U64 | kinds::I64 | kinds::F64 => 8,
        _ => return None,
    })
}

/// Reads a header.
///
/// # Errors
/// With what is wrong with the file.
pub(super) fn read(file: &[u8]) -> Result<Header, String> {
    let mut reader = Reader { file, at: 0 };
    if reader.bytes(4)? != b"GGUF" {
        return Err("it does not begin with `GGUF`".to_owned());
    }
    let version = reader.four()?;
    if !VERSIONS.contains(&version) {
        return Err(format!(
            "it has version {version}, and 2 and 3 are supported"
        ));
    }
    let tensors = reader.count("tensors", TENSORS_MAX)?;
    let entries = reader.count("entries", ENTRIES_MAX)?;
    let entries = reader.entries(entries)?;
    let tensors = reader.tensors(tensors)?;
    let alignment = match entries.get("general.alignment") {
        None => ALIGNMENT,
        Some(Value::Whole(number)) if (1..=ALIGNMENT_MAX).contains(number) => *number,
        Some(_) => return Err("its `general.alignment` is invalid".to_owned()),
    };
    let data = (reader.at as u64).next_multiple_of(alignment);
    Ok(Header {
        entries,
        tensors: place(tensors, data, file.len() as u64)?,
    })
}

/// A tensor, and how far it lies behind the beginning of all.
type RelativeTensor = (String, Tensor, u64);

fn place(
    tensors: Vec<RelativeTensor>,
    data: u64,
    file: u64,
) -> Result<HashMap<String, Tensor>, String> {
    let mut placed = HashMap::with_capacity(tensors.len());
    for (name, mut tensor, offset) in tensors {
        if let Ok(kind) = tensor.kind {
            let numbers = tensor.dimensions.iter().copied();
            let bytes = numbers
                .reduce(|all, size| all.saturating_mul(size))
                .and_then(|numbers| kind.bytes(numbers))
                .ok_or_else(|| format!("tensor `{name}` is not made of whole blocks"))?;
            let start = data.saturating_add(offset);
            let end = start.saturating_add(bytes as u64);
            tensor.place = usize::try_from(start)
                .ok()
                .zip(usize::try_from(end).ok())
                .filter(|_| end <= file)
                .map(|(start, end)| start..end)
                .ok_or_else(|| {
                    format!("tensor `{name}` ends at byte {end}, and the file at byte {file}")
                })?;
        }
        if placed.contains_key(&name) {
            return Err(format!("it has two tensors `{name}`"));
        }
        placed.insert(name, tensor);
    }
    Ok(placed)
}

struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], String> {
        let place = self.pass(length as u64)?;
        self.file.get(place).ok_or_else(ends)
    }

    /// Skips so many bytes, and returns where they are.
    fn pass(&mut self, length: u64) -> Result<Range<usize>, String> {
        let length = usize::try_from(length).map_err(|_| ends())?;
        let end = self.at.checked_add(length).ok_or_else(ends)?;
        if end > self.file.len() {
            return Err(ends());
        }
        let place = self.at..end;
        self.at = end;
        Ok(place)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.bytes(N)?.try_into().map_err(|_| ends())
    }

    fn four(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn eight(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self, what: &str, most: u64) -> Result<u64, String> {
        let count = self.eight()?;
        if count > most {
            return Err(format!("it counts {count} {what}, and {most} are the most"));
        }
        Ok(count)
    }

    fn text(&mut self) -> Result<Range<usize>, String> {
        let length = self.eight()?;
        self.pass(length)
    }

    fn name(&mut self) -> Result<String, String> {
        let place = self.text()?;
        let name = self.file.get(place).unwrap_or_default();
        if name.len() > NAME_BYTES_MAX {
            return Err(format!("a name in it has {} bytes", name.len()));
        }
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn entries(&mut self, count: u64) -> Result<HashMap<String, Value>, String> {
        let mut entries = HashMap::new();
        for _ in 0..count {
            let key = self.name()?;
            let kind = self.four()?;
            let value = self.value(kind)?;
            if entries.contains_key(&key) {
                return Err(format!("it has two entries `{key}`"));
            }
            entries.insert(key, value);
        }
        Ok(entries)
    }

    fn value(&mut self, kind: u32) -> Result<Value, String> {
        Ok(match kind {
            kinds::U8 => Value::Whole(self.array().map(u8::from_le_bytes)?.into()),
            kinds::U16 => Value::Whole(self.array().map(u16::from_le_bytes)?.into()),
            kinds::U32 => Value::Whole(self.four()?.into()),
            kinds::U64 => Value::Whole(self.eight()?),
            kinds::I8 => positive(self.array().map(i8::from_le_bytes)?.into()),
            kinds::I16 => positive(self.array().map(i16::from_le_bytes)?.into()),
            kinds::I32 => positive(self.array().map(i32::from_le_bytes)?.into()),
            kinds::I64 => positive(self.array().map(i64::from_le_bytes)?),
            kinds::F32 => Value::Fraction(self.array().map(f32::from_le_bytes)?),
            kinds::TEXT => Value::Text(self.text()?),
            kinds::ARRAY => {
                let (kind, count) = (self.four()?, self.eight()?);
                let start = self.at;
                self.pass_elements(kind, count, 0)?;
                Value::Array(Array {
                    kind,
                    count,
                    place: start..self.at,
                })
            }
            other => {
                let length = length(other).ok_or_else(|| unknown(other))?;
                self.pass(length)?;
                Value::Other
            }
        })
    }

    fn pass_elements(&mut self, kind: u32, count: u64, depth: u32) -> Result<(), String> {
        if let Some(length) = length(kind) {
            self.pass(count.saturating_mul(length))?;
            return Ok(());
        }
        // Each element takes bytes, so a count that is too high ends with the file.
        for _ in 0..count {
            match kind {
                kinds::TEXT => {
                    self.text()?;
                }
                kinds::ARRAY if depth < DEPTH_MAX => {
                    let (kind, count) = (self.four()?, self.eight()?);
                    self.pass_elements(kind, count, depth + 1)?;
                }
                kinds::ARRAY => return Err("its arrays are nested too deeply".to_owned()),
                other => return Err(unknown(other)),
            }
        }
        Ok(())
    }

    fn tensors(&mut self, count: u64) -> Result<Vec<RelativeTensor>, String> {
        let mut tensors = Vec::new();
        for _ in 0..count {
            let name = self.name()?;
            let dimensions = self.four()?;
            if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
                return Err(format!("tensor `{name}` has {dimensions} dimensions"));
            }
            let sizes = (0..dimensions).map(|_| {
                let size = self.eight()?;
                usize::try_from(size).map_err(|_| format!("tensor `{name}` is too large"))
            });
            let dimensions = sizes.collect::<Result<_, _>>()?;
            let number = self.four()?;
            let tensor = Tensor {
                kind: Kind::of(number).ok_or(number),
                dimensions,
                place: 0..0,
            };
            tensors.push((name, tensor, self.eight()?));
        }
        Ok(tensors)
    }
}

impl Array {
    /// Returns the places of its elements; `None` if they are not texts.
    pub(super) fn texts(&self, file: &[u8]) -> Option<Vec<Range<usize>>> {
        let file = file.get(..self.place.end)?;
        let at = self.place.start;
        let mut reader = Reader { file, at };
        let texts = (0..self.count).map(|_| reader.text().ok());
        (self.kind == kinds::TEXT).then(|| texts.collect())?
    }

    /// Returns its elements; `None` if they are not whole numbers of four bytes.
    pub(super) fn numbers(&self, file: &[u8]) -> Option<Vec<i64>> {
        let fours = file.get(self.place.clone())?.as_chunks().0.iter();
        match self.kind {
            kinds::I32 => Some(fours.map(|four| i32::from_le_bytes(*four).into()).collect()),
            kinds::U32 => Some(fours.map(|four| u32::from_le_bytes(*four).into()).collect()),
            _ => None,
        }
    }
}

fn positive(number: i64) -> Value {
    u64::try_from(number).map_or(Value::Other, Value::Whole)
}

fn ends() -> String {
    "it ends in the middle of its header".to_owned()
}

fn unknown(kind: u32) -> String {
    format!("a value in it is of the unknown kind {kind}")
}
