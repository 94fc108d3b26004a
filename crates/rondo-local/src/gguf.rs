//! A GGUF file: its metadata and its tensors.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use crate::error::{LocalError, first_line};
use crate::kernels::Weights;
use crate::mapped::{self, Held};
use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use candle_core::quantized::{QStorage, QTensor, QuantizedType};
use memmap2::Mmap;
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open GGUF file whose header has been read.
pub struct Gguf {
    path: PathBuf,
    map: Arc<Mmap>,
    content: Content,
}

impl Gguf {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// When it cannot be read, or is not GGUF.
    pub fn open(path: &Path) -> Result<Self, LocalError> {
        let unread = |source| LocalError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(unread)?;
        let map = mapped::map(&file).map_err(unread)?;
        let mut header = Cursor::new(&**map);
        let content = Content::read(&mut header).map_err(|err| LocalError::Format {
            path: path.to_owned(),
            message: first_line(&err.to_string()),
        })?;
        Ok(Self {
            path: path.to_owned(),
            map,
            content,
        })
    }

    /// Has the file brought into memory, without waiting for it.
    pub(crate) fn bring_in(&self) {
        mapped::bring_in(&self.map);
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a text of the metadata, if it is there and a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.content.metadata.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a whole number of the metadata.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<usize> {
        let number = match self.content.metadata.get(key)? {
            Value::U8(n) => u64::from(*n),
            Value::U16(n) => u64::from(*n),
            Value::U32(n) => u64::from(*n),
            Value::U64(n) => *n,
            Value::I32(n) => u64::try_from(*n).ok()?,
            _ => return None,
        };
        usize::try_from(number).ok()
    }

    /// Returns a fraction of the metadata.
    #[must_use]
    pub fn fraction(&self, key: &str) -> Option<f32> {
        match self.content.metadata.get(key)? {
            Value::F32(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a list of texts of the metadata; other elements are left out.
    #[must_use]
    pub fn texts(&self, key: &str) -> Option<Vec<&str>> {
        let Value::Array(values) = self.content.metadata.get(key)? else {
            return None;
        };
        let texts = values.iter().filter_map(|value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        });
        Some(texts.collect())
    }

    /// Returns a list of small whole numbers of the metadata; other elements are left out.
    #[must_use]
    pub fn numbers(&self, key: &str) -> Option<Vec<i64>> {
        let Value::Array(values) = self.content.metadata.get(key)? else {
            return None;
        };
        let numbers = values.iter().filter_map(|value| match value {
            Value::I32(number) => Some(i64::from(*number)),
            Value::U32(number) => Some(i64::from(*number)),
            _ => None,
        });
        Some(numbers.collect())
    }

    /// Returns whether there is a tensor of that name.
    #[must_use]
    pub fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Returns one tensor. Quantised ones stay in the file's mapping, others are read.
    ///
    /// # Errors
    /// When it is missing, or the file is shorter than it says.
    pub fn tensor(&self, name: &str) -> Result<QTensor, LocalError> {
        self.mapped_or_read(name)
            .map_err(|err| self.format_error(first_line(&err.to_string())))
    }

    fn mapped_or_read(&self, name: &str) -> candle_core::Result<QTensor> {
        if let Some(blocks) = self.blocks(name)?
            && let Some(info) = self.content.tensor_infos.get(name)
        {
            return QTensor::new(QStorage::Cpu(blocks), info.shape.dims());
        }
        let mut bytes = Cursor::new(&**self.map);
        self.content.tensor(&mut bytes, name, &Device::Cpu)
    }

    /// Returns a matrix as it lies in the file, if its kind and this processor are of those that
    /// have kernels here.
    pub(crate) fn weights(&self, name: &str) -> Option<Weights> {
        let info = self.content.tensor_infos.get(name)?;
        let (outputs, inputs) = info.shape.dims2().ok()?;
        let kind = info.ggml_dtype;
        let bytes = (info.shape.elem_count() / kind.block_size()).checked_mul(kind.type_size())?;
        let held = Held::new(&self.map, self.start(info), bytes)?;
        Weights::new(held, kind, outputs, inputs)
    }

    fn start(&self, info: &TensorInfo) -> usize {
        let start = self.content.tensor_data_offset.saturating_add(info.offset);
        usize::try_from(start).unwrap_or(usize::MAX)
    }

    /// Returns a tensor's blocks where they lie in the file, if it has such.
    fn blocks(&self, name: &str) -> candle_core::Result<Option<Box<dyn QuantizedType>>> {
        let Some(info) = self.content.tensor_infos.get(name) else {
            return Ok(None);
        };
        mapped::blocks(
            &self.map,
            self.start(info),
            info.shape.elem_count(),
            info.ggml_dtype,
        )
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
