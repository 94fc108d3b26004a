//! Reads a body, decompressed, up to a bound on what comes out.

use bytes::Bytes;
use flate2::write::{GzDecoder, ZlibDecoder};
use hyper::body::{Body as _, Incoming};
use std::error::Error;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;

/// Bytes that may be received beyond the bound on the output: empty blocks make a compressed body longer.
const OVERHEAD_MAX: usize = 1 << 20;

/// The start of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) bytes: Vec<u8>,
    /// Set if there is more.
    pub(crate) is_cut: bool,
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The connection broke.
    Connection(Box<dyn Error + Send + Sync>),
    /// It is compressed in another way, or damaged.
    Encoding,
}

/// Reads a body until its end, or until more than `max` bytes come out.
///
/// # Cancel safety
/// Dropping it loses what was read.
pub(crate) async fn read(
    mut body: Incoming,
    encoding: Option<&str>,
    max: usize,
) -> Result<Start, BodyError> {
    let mut decoder = Decoder::new(encoding, max).ok_or(BodyError::Encoding)?;
    let mut received = 0_usize;
    loop {
        let Some(piece) = chunk(&mut body).await.map_err(BodyError::Connection)? else {
            return decoder.finish();
        };
        received += piece.len();
        decoder.push(&piece)?;
        if decoder.is_full() || received > max + OVERHEAD_MAX {
            return Ok(Start {
                bytes: decoder.into_bytes(),
                is_cut: true,
            });
        }
    }
}

async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, Box<dyn Error + Send + Sync>> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose()? else {
            return Ok(None);
        };
        if let Ok(bytes) = frame.into_data() {
            return Ok(Some(bytes));
        }
    }
}

/// Takes no more than it was made for.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.bytes.extend_from_slice(kept);
        if kept.len() < bytes.len() {
            self.is_full = true;
            return Err(io::Error::from(io::ErrorKind::WriteZero));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Decoder {
    Plain(Bounded),
    Gzip(GzDecoder<Bounded>),
    /// `deflate` is the format of zlib, RFC 9110, 8.4.1.2.
    Deflate(ZlibDecoder<Bounded>),
}

impl Decoder {
    fn new(encoding: Option<&str>, max: usize) -> Option<Self> {
        let out = Bounded {
            bytes: Vec::new(),
            max,
            is_full: false,
        };
        match encoding.map(|it| it.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Some(Self::Plain(out)),
            Some("gzip" | "x-gzip") => Some(Self::Gzip(GzDecoder::new(out))),
            Some("deflate") => Some(Self::Deflate(ZlibDecoder::new(out))),
            Some(_) => None,
        }
    }

    fn push(&mut self, piece: &[u8]) -> Result<(), BodyError> {
        let written = match self {
            Self::Plain(out) => out.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
            Self::Deflate(decoder) => decoder.write_all(piece),
        };
        match written {
            Err(_) if !self.is_full() => Err(BodyError::Encoding),
            _ => Ok(()),
        }
    }

    fn out(&self) -> &Bounded {
        match self {
            Self::Plain(out) => out,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Deflate(decoder) => decoder.get_ref(),
        }
    }

    fn is_full(&self) -> bool {
        self.out().is_full
    }

    /// Returns the decoded bytes, without those that the decoder still holds.
    fn into_bytes(mut self) -> Vec<u8> {
        let out = match &mut self {
            Self::Plain(out) => out,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
        };
        std::mem::take(&mut out.bytes)
    }

    fn finish(mut self) -> Result<Start, BodyError> {
        let ended = match &mut self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
        };
        let is_cut = self.is_full();
        if ended.is_err() && !is_cut {
            return Err(BodyError::Encoding);
        }
        Ok(Start {
            bytes: self.into_bytes(),
            is_cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn decoded(encoding: &str, bytes: &[u8], max: usize) -> Option<Start> {
        let mut decoder = Decoder::new(Some(encoding), max)?;
        for piece in bytes.chunks(7) {
            decoder.push(piece).ok()?;
            if decoder.is_full() {
                break;
            }
        }
        decoder.finish().ok()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn each_encoding_is_read_and_its_bound_holds_to_the_byte() {
        let text = b"some text ".repeat(10);
        let encodings: [(&str, Vec<u8>); 3] = [
            ("identity", text.clone()),
            ("gzip", gzip(&text)),
            ("deflate", deflate(&text)),
        ];
        for (encoding, body) in &encodings {
            for (max, is_cut) in [(99, true), (100, false), (101, false)] {
                let start = decoded(encoding, body, max).unwrap();
                assert_eq!(start.is_cut, is_cut, "{encoding} {max}");
                assert_eq!(start.bytes, &text[..max.min(100)], "{encoding} {max}");
            }
        }
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        let start = decoded("gzip", &bomb, 1_000).unwrap();
        assert_eq!((start.bytes.len(), start.is_cut), (1_000, true));
    }

    #[test]
    fn what_is_damaged_or_not_known_is_refused() {
        let mut body = gzip(b"some text");
        body.truncate(body.len() - 6);
        assert_eq!(decoded("gzip", &body, 100), None);
        assert_eq!(decoded("gzip", b"plain text that is long", 100), None);
        assert_eq!(decoded("zstd", b"x", 100), None);
        assert_eq!(decoded("gzip, gzip", b"x", 100), None);
    }
}
