//! Splits a body into payloads: the events of a stream, a JSON value, or a list of values.

mod sse;

use crate::Bounds;
use crate::scan::JsonScan;
use rondo_types::{ErrorClass, ModelError};
use sse::{SseReader, SseStop};

/// One thing that a body says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A payload that should be JSON, with the name of its event or an empty one.
    Json { event: &'a str, text: &'a [u8] },
    /// The value of an `error:` field, which some builds of llama.cpp send in place of `data:`.
    ErrorField(&'a [u8]),
}

/// Takes the frames of a body.
pub(crate) type Sink<'a> = dyn FnMut(Frame<'_>) -> Result<(), ModelError> + 'a;

/// How a body ended, as far as framing knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// By the protocol's own end, `[DONE]`.
    Done,
    /// After a whole JSON document or a closed array.
    Document,
    /// Between two events.
    Boundary,
    /// Inside something.
    Cut,
    /// It was neither JSON nor an event stream; this is how it begins.
    Foreign(String),
}

/// Cuts a body into frames: an event stream, a JSON value, an array of JSON values, or JSON values
/// between the events of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Framer {
    bounds: Bounds,
    mode: Mode,
    sse: SseReader,
    scan: JsonScan,
    value: Vec<u8>,
    in_array: bool,
    /// Set if the body is an event stream, which does not end by closing a bracket.
    streamed: bool,
    any: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// At the beginning, or behind a JSON value.
    Between,
    Lines,
    Value,
    Array,
    Done,
}

impl Framer {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            mode: Mode::Between,
            sse: SseReader::default(),
            scan: JsonScan::default(),
            value: Vec::new(),
            in_array: false,
            streamed: false,
            any: false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.mode == Mode::Done
    }

    /// Reads on and hands out the frames that are whole.
    pub(crate) fn read(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let read = match self.mode {
                Mode::Between => self.between(rest),
                Mode::Lines => self.lines(rest, sink)?,
                Mode::Value => self.value(rest, sink)?,
                Mode::Array => self.array(rest)?,
                Mode::Done => rest.len(),
            };
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(())
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self, sink: &mut Sink<'_>) -> Result<BodyEnd, ModelError> {
        match self.mode {
            Mode::Done => Ok(BodyEnd::Done),
            Mode::Value | Mode::Array => Ok(BodyEnd::Cut),
            Mode::Between if !self.any => Ok(BodyEnd::Cut),
            Mode::Between if self.streamed => Ok(BodyEnd::Boundary),
            Mode::Between => Ok(BodyEnd::Document),
            Mode::Lines => self.finish_lines(sink),
        }
    }

    fn finish_lines(&mut self, sink: &mut Sink<'_>) -> Result<BodyEnd, ModelError> {
        let end = self.sse.finish(&self.bounds, sink)?;
        Ok(match end {
            // Text behind a JSON value is noise of a gateway and not another protocol.
            BodyEnd::Foreign(_) if self.any => BodyEnd::Document,
            end => end,
        })
    }

    fn between(&mut self, rest: &[u8]) -> usize {
        // A byte-order mark may be at the beginning.
        let skipped = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF))
            .count();
        match rest.get(skipped) {
            None => skipped,
            Some(b'{') => {
                self.mode = Mode::Value;
                skipped
            }
            Some(b'[') => {
                self.mode = Mode::Array;
                self.in_array = true;
                self.any = true;
                skipped + 1
            }
            Some(_) => {
                self.streamed |= !self.any;
                self.mode = Mode::Lines;
                skipped
            }
        }
    }

    fn lines(&mut self, rest: &[u8], sink: &mut Sink<'_>) -> Result<usize, ModelError> {
        match self.sse.read(rest, &self.bounds, sink)? {
            SseStop::Read => Ok(rest.len()),
            SseStop::Done => {
                self.mode = Mode::Done;
                Ok(rest.len())
            }
            SseStop::Unframed(at) => {
                self.mode = Mode::Between;
                Ok(at)
            }
        }
    }

    fn value(&mut self, rest: &[u8], sink: &mut Sink<'_>) -> Result<usize, ModelError> {
        let end = self.scan.feed(rest);
        let piece = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
        if self.value.len().saturating_add(piece.len()) > self.bounds.event_bytes_max {
            self.value = Vec::new();
            return Err(too_large("json value", self.bounds.event_bytes_max));
        }
        if end.is_none() {
            self.value.extend_from_slice(piece);
            return Ok(rest.len());
        }
        self.scan = JsonScan::default();
        self.any = true;
        self.mode = if self.in_array {
            Mode::Array
        } else {
            Mode::Between
        };
        self.hand_out(piece, sink)?;
        Ok(piece.len())
    }

    fn hand_out(&mut self, piece: &[u8], sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let event = "";
        if self.value.is_empty() {
            return sink(Frame::Json { event, text: piece });
        }
        let mut value = std::mem::take(&mut self.value);
        value.extend_from_slice(piece);
        sink(Frame::Json {
            event,
            text: &value,
        })
    }

    fn array(&mut self, rest: &[u8]) -> Result<usize, ModelError> {
        let skipped = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b','))
            .count();
        match rest.get(skipped) {
            None => Ok(skipped),
            Some(b'{') => {
                self.mode = Mode::Value;
                Ok(skipped)
            }
            Some(b']') => {
                self.in_array = false;
                self.mode = Mode::Between;
                Ok(skipped + 1)
            }
            Some(_) => Err(ModelError::new(
                ErrorClass::Protocol,
                "failed to read the body: an element of its json array is not an object",
            )),
        }
    }
}

/// Builds the error of a passed bound.
pub(crate) fn too_large(what: &str, bytes_max: usize) -> ModelError {
    ModelError::new(
        ErrorClass::TooLarge,
        format!("the response has a {what} of more than {bytes_max} bytes"),
    )
}

#[cfg(test)]
mod any_body;
#[cfg(test)]
mod tests;
