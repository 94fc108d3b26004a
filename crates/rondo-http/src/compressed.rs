//! Bodies that a server compresses although no request asks for it.

use flate2::write::{GzDecoder, ZlibDecoder};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use rondo_types::{ErrorClass, ModelError};
use std::io::Write as _;

/// Bytes that are decompressed at once; they become at most a thousand times as many.
pub(crate) const INPUT_BYTES_MAX: usize = 1024;
/// Bytes of an encoding's name that an error shows.
const NAME_BYTES_MAX: usize = 32;

/// Decompresses a body, piece by piece.
pub(crate) enum Inflater {
    Gzip(GzDecoder<Vec<u8>>),
    /// `deflate` is the format of zlib, RFC 9110, 8.4.1.2.
    Deflate(ZlibDecoder<Vec<u8>>),
}

impl Inflater {
    /// Returns the decoder for a body with these headers; `None` if it is not compressed.
    ///
    /// # Errors
    /// When it is compressed in a way that is not known here.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, ModelError> {
        let Some(name) = headers.get(CONTENT_ENCODING) else {
            return Ok(None);
        };
        let name = String::from_utf8_lossy(name.as_bytes())
            .trim()
            .to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip(GzDecoder::new(Vec::new())))),
            "deflate" => Ok(Some(Self::Deflate(ZlibDecoder::new(Vec::new())))),
            other => Err(ModelError::new(
                ErrorClass::Protocol,
                format!(
                    "the server compressed its reply as `{}`, which was not asked for; turn compression off at the server or the proxy before it",
                    rondo_types::text::first_bytes(other, NAME_BYTES_MAX)
                ),
            )),
        }
    }

    /// Takes at most [`INPUT_BYTES_MAX`] bytes and returns what they become.
    ///
    /// # Errors
    /// When they are damaged.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, ModelError> {
        let written = match self {
            Self::Gzip(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Self::Deflate(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
        };
        written.map_err(|_| {
            ModelError::new(
                ErrorClass::Network,
                "the compressed reply of the server is damaged",
            )
        })?;
        let out = match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
        };
        Ok(std::mem::take(out))
    }
}

/// Returns a body as it is, or decompressed up to so many bytes; what cannot be read is left out.
pub(crate) fn inflated(headers: &HeaderMap, body: Vec<u8>, max: usize) -> Vec<u8> {
    let Ok(Some(mut inflater)) = Inflater::of(headers) else {
        return body;
    };
    let mut whole = Vec::new();
    for piece in body.chunks(INPUT_BYTES_MAX) {
        let Ok(more) = inflater.push(piece) else {
            break;
        };
        whole.extend_from_slice(&more);
        if whole.len() >= max {
            break;
        }
    }
    whole.truncate(max);
    whole
}
