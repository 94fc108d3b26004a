//! A GGUF file: its metadata and its tensors.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

mod header;
#[cfg(test)]
mod tests;

use crate::error::LocalError;
use crate::kernels::Weights;
use crate::mapped::{self, MappedSlice};
use header::{Header, Tensor, Value};
use memmap2::Mmap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// An open GGUF file whose header has been read.
pub struct Gguf {
    path: PathBuf,
    map: Arc<Mmap>,
    written: Option<SystemTime>,
    header: Header,
}

impl Gguf {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// When it cannot be read, is not GGUF, or ends before its tensors do.
    pub fn open(path: &Path) -> Result<Self, LocalError> {
        let unread = |source| LocalError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unread)?;
        let map = mapped::map(&file).map_err(unread)?;
        let header = header::read(&map).map_err(|message| LocalError::Format {
            path: path.to_owned(),
            message,
        })?;
        Ok(Self {
            path: path.to_owned(),
            map,
            written: file.metadata().and_then(|it| it.modified()).ok(),
            header,
        })
    }

    /// Brings the file into memory, without waiting for it.
    pub(crate) fn bring_in(&self) {
        mapped::bring_in(&self.map);
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's length, and when it was written last.
    pub(crate) fn written(&self) -> (usize, Option<SystemTime>) {
        (self.map.len(), self.written)
    }

    /// Returns the names of all tensors, sorted.
    pub(crate) fn tensor_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.header.tensors.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Returns a tensor as it lies in the file; nothing if it cannot be computed with.
    pub(crate) fn tensor_bytes(&self, name: &str) -> &[u8] {
        let tensor = self.header.tensors.get(name);
        tensor
            .and_then(|tensor| self.map.get(tensor.place.clone()))
            .unwrap_or_default()
    }

    /// Returns a text of the metadata, if it is there and a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.header.entries.get(key)? {
            Value::Text(place) => self.text_at(place),
            _ => None,
        }
    }

    /// Returns a whole number of the metadata.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<usize> {
        match self.header.entries.get(key)? {
            Value::Whole(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns a fraction of the metadata.
    #[must_use]
    pub fn fraction(&self, key: &str) -> Option<f32> {
        match self.header.entries.get(key)? {
            Value::Fraction(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a list of texts of the metadata, if it is there and all are texts.
    #[must_use]
    pub fn texts(&self, key: &str) -> Option<Vec<&str>> {
        let Value::Array(array) = self.header.entries.get(key)? else {
            return None;
        };
        let places = array.texts(&self.map)?;
        places.iter().map(|place| self.text_at(place)).collect()
    }

    /// Returns a list of whole numbers of the metadata, of four bytes each.
    #[must_use]
    pub fn numbers(&self, key: &str) -> Option<Vec<i64>> {
        match self.header.entries.get(key)? {
            Value::Array(array) => array.numbers(&self.map),
            _ => None,
        }
    }

    /// Returns whether there is a tensor of that name.
    #[must_use]
    pub fn has_tensor(&self, name: &str) -> bool {
        self.header.tensors.contains_key(name)
    }

    /// Returns a matrix as it lies in the file.
    ///
    /// # Errors
    /// When it is missing, not a matrix, or of a kind that cannot be computed with.
    pub(crate) fn matrix(&self, name: &str) -> Result<Weights, LocalError> {
        let tensor = self.tensor(name)?;
        let [inputs, outputs] = *tensor.dimensions.as_slice() else {
            return Err(self.format_error(format!("tensor `{name}` is not a matrix")));
        };
        self.weights(name, tensor, outputs, inputs)
    }

    /// Returns the numbers of a tensor of one dimension.
    ///
    /// # Errors
    /// When it is missing, has more dimensions, or has an unsupported type.
    pub(crate) fn vector(&self, name: &str) -> Result<Vec<f32>, LocalError> {
        let tensor = self.tensor(name)?;
        let [length] = *tensor.dimensions.as_slice() else {
            return Err(self.format_error(format!("tensor `{name}` is not a vector")));
        };
        let row = self.weights(name, tensor, 1, length)?;
        let mut numbers = vec![0.0; length];
        row.row(0, &mut numbers);
        Ok(numbers)
    }

    fn tensor(&self, name: &str) -> Result<&Tensor, LocalError> {
        let tensor = self.header.tensors.get(name);
        tensor.ok_or_else(|| self.format_error(format!("it has no tensor `{name}`")))
    }

    fn weights(
        &self,
        name: &str,
        tensor: &Tensor,
        outputs: usize,
        inputs: usize,
    ) -> Result<Weights, LocalError> {
        let kind = tensor.kind.map_err(|kind| {
            let message = format!("tensor `{name}` is of kind {kind}, which is not supported");
            self.format_error(message)
        })?;
        let place = &tensor.place;
        MappedSlice::new(&self.map, place.start, place.len())
            .and_then(|held| Weights::new(held, kind, outputs, inputs))
            .ok_or_else(|| {
                self.format_error(format!("rows of tensor `{name}` are not whole blocks"))
            })
    }

    fn text_at(&self, place: &Range<usize>) -> Option<&str> {
        let text = std::str::from_utf8(self.map.get(place.clone())?).ok()?;
        // Some converters write the zero that ends texts in C.
        Some(text.trim_end_matches('\0'))
    }

    /// Builds the error for metadata that is missing or of the wrong kind.
    pub(crate) fn missing(&self, key: &str) -> LocalError {
        self.format_error(format!("its metadata has no usable `{key}`"))
    }

    pub(crate) fn format_error(&self, message: String) -> LocalError {
        LocalError::Format {
            path: self.path.clone(),
            message,
        }
    }
}
