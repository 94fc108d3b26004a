//! Where the body of a reply ends, and which of its bytes are its content (RFC 9112, 6 and 7).

use bytes::{Buf as _, Bytes};

/// The bound on what stands beside the content of a chunk: its extension, and behind the last one the trailers.
const BESIDE_BYTES_MAX: usize = 32 * 1024;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// It has so many bytes.
    Known(u64),
    /// It comes in chunks, each with its length; one of none is the last.
    Chunked,
    /// It ends with its connection.
    UntilClose,
}

/// The chunks of a body are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunks of the body are malformed")]
pub(crate) struct Malformed;

/// Takes the content of a body out of its bytes, wherever these are cut.
#[derive(Debug)]
pub(crate) enum BodyDecoder {
    /// So many bytes are left.
    Known(u64),
    Chunked(Chunks),
    UntilClose,
}

/// Where in its chunks a body stands.
#[derive(Debug)]
pub(crate) struct Chunks {
    at: At,
    /// What is left of the chunk, or its length as far as it was read.
    left: u64,
    beside_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the length of a chunk.
    Start,
    Length,
    LengthSpace,
    Extension,
    LengthLf,
    Content,
    ContentCr,
    ContentLf,
    /// Before a trailer, or the last line.
    Line,
    Trailer,
    TrailerLf,
    EndLf,
    End,
    /// What follows is no chunk.
    Malformed,
}

impl BodyDecoder {
    pub(crate) fn new(length: Length) -> Self {
        match length {
            Length::Known(bytes) => Self::Known(bytes),
            Length::UntilClose => Self::UntilClose,
            Length::Chunked => Self::Chunked(Chunks {
                at: At::Start,
                left: 0,
                beside_bytes: 0,
            }),
        }
    }

    /// Takes what is content from what was received; what lies behind the end is left.
    ///
    /// # Errors
    /// When the chunks are none. What came before is content still: it is returned first.
    pub(crate) fn take(&mut self, received: &mut Bytes) -> Result<Bytes, Malformed> {
        match self {
            Self::Known(left) => {
                let here = at_most(*left, received.len());
                *left -= here as u64;
                Ok(received.split_to(here))
            }
            Self::UntilClose => Ok(std::mem::take(received)),
            Self::Chunked(chunks) => {
                let mut content = Vec::with_capacity(received.len());
                let read = chunks.read(received, &mut content);
                match read {
                    Ok(bytes) => received.advance(bytes),
                    Err(Malformed) if content.is_empty() => return Err(Malformed),
                    Err(Malformed) => chunks.at = At::Malformed,
                }
                // Without room to spare, which would be held as long as the content.
                Ok(content.into_boxed_slice().into())
            }
        }
    }

    /// Returns whether the body was read to its end.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Known(left) => *left == 0,
            Self::Chunked(chunks) => chunks.at == At::End,
            Self::UntilClose => false,
        }
    }

    /// Returns whether the body is whole where its connection ends.
    pub(crate) fn may_close(&self) -> bool {
        matches!(self, Self::UntilClose)
    }
}

impl Chunks {
    fn read(&mut self, bytes: &[u8], content: &mut Vec<u8>) -> Result<usize, Malformed> {
        let mut rest = bytes;
        while self.at != At::End
            && let Some((byte, after)) = rest.split_first()
        {
            if self.at == At::Content {
                let (here, after) = rest.split_at(at_most(self.left, rest.len()));
                content.extend_from_slice(here);
                self.left -= here.len() as u64;
                if self.left == 0 {
                    self.at = At::ContentCr;
                }
                rest = after;
                continue;
            }
            self.at = self.step(*byte)?;
            rest = after;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Takes a byte that is no content.
    fn step(&mut self, byte: u8) -> Result<At, Malformed> {
        Ok(match (self.at, byte) {
            (At::Start | At::Length, _) if byte.is_ascii_hexdigit() => self.digit(byte)?,
            (At::Length | At::LengthSpace, b' ' | b'\t') => self.beside(At::LengthSpace)?,
            (At::Length | At::LengthSpace, b';') => At::Extension,
            (At::Length | At::LengthSpace | At::Extension, b'\r') => At::LengthLf,
            // Others may end the line here, and read what follows otherwise.
            (At::Extension | At::Line | At::Trailer, b'\n') => return Err(Malformed),
            (At::Extension, _) => self.beside(At::Extension)?,
            (At::LengthLf, b'\n') if self.left == 0 => At::Line,
            (At::LengthLf, b'\n') => {
                // Each chunk may have as much beside it.
                self.beside_bytes = 0;
                At::Content
            }
            (At::ContentCr, b'\r') => At::ContentLf,
            (At::ContentLf, b'\n') => At::Start,
            (At::Line, b'\r') => At::EndLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::Line | At::Trailer, _) => self.beside(At::Trailer)?,
            (At::TrailerLf, b'\n') => At::Line,
            (At::EndLf, b'\n') => At::End,
            _ => return Err(Malformed),
        })
    }

    fn digit(&mut self, byte: u8) -> Result<At, Malformed> {
        let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
        let larger = self.left.checked_mul(16).ok_or(Malformed)?;
        self.left = larger + u64::from(digit);
        match self.left {
            // Zeros have no end of their own.
            0 => self.beside(At::Length),
            _ => Ok(At::Length),
        }
    }

    fn beside(&mut self, at: At) -> Result<At, Malformed> {
        self.beside_bytes += 1;
        match self.beside_bytes <= BESIDE_BYTES_MAX {
            true => Ok(at),
            false => Err(Malformed),
        }
    }
}

fn at_most(left: u64, bytes: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that comes in these pieces; returns its content, and how many bytes it took.
    fn read<'a>(
        length: Length,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(String, usize, bool), Malformed> {
        let mut decoder = BodyDecoder::new(length);
        let (mut content, mut taken) = (Vec::new(), 0);
        for piece in pieces {
            let mut received = Bytes::copy_from_slice(piece);
            content.extend_from_slice(&decoder.take(&mut received)?);
            taken += piece.len() - received.len();
        }
        let content = String::from_utf8(content).unwrap();
        Ok((content, taken, decoder.has_ended()))
    }

    const CHUNKED: &str =
        "5\r\nhello\r\n6 ;a=\"b;c\"\r\n, hell\r\n1 \t\r\no\r\n0\r\nx: y\r\nz: \r\n\r\nHTTP/1.1";

    #[test]
    fn chunks_make_the_same_body_wherever_they_are_cut() {
        let body = CHUNKED.strip_suffix("HTTP/1.1").unwrap();
        let expected = Ok(("hello, hello".to_owned(), body.len(), true));
        for cut in 0..=CHUNKED.len() {
            let (first, second) = CHUNKED.as_bytes().split_at(cut);
            assert_eq!(read(Length::Chunked, [first, second]), expected, "{cut}");
        }
        let bytes = CHUNKED.as_bytes().chunks(1);
        assert_eq!(read(Length::Chunked, bytes), expected);
    }

    #[test]
    fn a_body_of_a_known_length_ends_there() {
        let pieces = [&b"hel"[..], b"lo", b"HTTP"];
        let expected = Ok(("hello".to_owned(), 5, true));
        assert_eq!(read(Length::Known(5), pieces), expected);
        assert_eq!(
            read(Length::Known(6), [&b"hello"[..]]),
            Ok(("hello".to_owned(), 5, false))
        );
        assert_eq!(
            read(Length::Known(0), [&b"x"[..]]),
            Ok((String::new(), 0, true))
        );
    }

    #[test]
    fn a_body_until_the_end_of_its_connection_is_all_that_comes() {
        let pieces = [&b"5\r\n"[..], b"x"];
        assert_eq!(
            read(Length::UntilClose, pieces),
            Ok(("5\r\nx".to_owned(), 4, false))
        );
    }

    #[test]
    fn what_are_no_chunks_is_refused() {
        for bytes in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            " 1\r\n",
            "1\n",
            "1\rx",
            "1;a\nb\r\n",
            "1 2\r\n",
            "1\r\nxx",
            "1\r\nx\rx",
            "0\r\n\rx",
            "0\r\nx\rx",
            "10000000000000000\r\n",
        ] {
            // What came before it is content.
            let refused = read(Length::Chunked, [bytes.as_bytes(), b"1"]);
            assert_eq!(refused, Err(Malformed), "{bytes:?}");
        }
        let largest = format!("{:x}\r\n", u64::MAX);
        assert!(read(Length::Chunked, [largest.as_bytes()]).is_ok());
    }

    #[test]
    fn what_stands_beside_a_chunk_is_bounded() {
        let extended = |bytes: usize| format!("1;{}\r\nx\r\n0\r\nt\r\n\r\n", "e".repeat(bytes));
        let most = extended(BESIDE_BYTES_MAX);
        let (content, taken, has_ended) = read(Length::Chunked, [most.as_bytes()]).unwrap();
        assert_eq!(
            (content.as_str(), taken, has_ended),
            ("x", most.len(), true)
        );
        let twice = extended(BESIDE_BYTES_MAX).replace("0\r\nt\r\n\r\n", &most);
        assert!(read(Length::Chunked, [twice.as_bytes()]).is_ok());
        let zeros = "0".repeat(BESIDE_BYTES_MAX + 1);
        assert_eq!(read(Length::Chunked, [zeros.as_bytes()]), Err(Malformed));
        let more = extended(BESIDE_BYTES_MAX + 1);
        assert_eq!(
            read(Length::Chunked, [more.as_bytes(), b"x"]),
            Err(Malformed)
        );
    }

    #[test]
    fn what_came_before_what_is_no_chunk_is_content() {
        for bytes in ["2\r\nokHTTP", "2\r\nok\r\nHTTP", "2\r\nok\r\n0\r\n\rx"] {
            let mut decoder = BodyDecoder::new(Length::Chunked);
            let mut received = Bytes::from_static(bytes.as_bytes());
            assert_eq!(decoder.take(&mut received).unwrap(), "ok", "{bytes}");
            assert_eq!(decoder.take(&mut received), Err(Malformed), "{bytes}");
        }
    }
}
