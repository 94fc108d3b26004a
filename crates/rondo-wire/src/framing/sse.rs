//! Reads a stream of server-sent events, in pieces of any size.

use crate::Bounds;
use crate::framing::{BodyEnd, Frame, Sink, too_large};
use rondo_types::ModelError;
use serde::de::IgnoredAny;

/// Bytes of the first line that is not an event-stream field, kept for the error message.
const STRAY_BYTES_MAX: usize = 200;

/// How the lines of an event stream begin.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b"error:"];

/// Reads an event stream line by line and hands out whole events.
///
/// Takes `\n`, `\r\n` and `\r` as line ends, comments, unknown fields, and events whose blank line
/// is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SseReader {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    event: String,
    data: Vec<u8>,
    data_lines: u32,
    after_cr: bool,
    stray: Vec<u8>,
    /// Set once anything that belongs to an event stream was read.
    recognised: bool,
}

/// Reason for which [`SseReader::read`] returned.
pub(crate) enum SseStop {
    /// All bytes were read.
    Read,
    /// The protocol's own end was read.
    Done,
    /// A line begins with a bracket: the value from this offset on is not framed.
    Unframed(usize),
}

impl SseReader {
    /// Reads on.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        bounds: &Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<SseStop, ModelError> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
                at += 1;
                continue;
            }
            if self.line.is_empty() && matches!(rest.first(), Some(b'{' | b'[')) {
                self.dispatch(sink)?;
                return Ok(SseStop::Unframed(at));
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                return self.keep(rest, bounds).map(|()| SseStop::Read);
            };
            let (line, tail) = rest.split_at(end);
            self.after_cr = tail.first() == Some(&b'\r');
            at += end + 1;
            let done = if self.is_alone(line, tail, bounds) {
                let (_, value) = split_field(line);
                self.recognised = true;
                let done = hand_out(value, &self.event, sink)?;
                if tail.starts_with(b"\n\n") {
                    self.event.clear();
                    at += 1;
                }
                done
            } else {
                self.line_end(line, bounds, sink)?
            };
            if done {
                return Ok(SseStop::Done);
            }
        }
        Ok(SseStop::Read)
    }

    /// Ends the body.
    pub(crate) fn finish(
        &mut self,
        bounds: &Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<BodyEnd, ModelError> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && !self.last_line(&line, bounds, sink)? {
            return Ok(if self.recognised || is_field_beginning(&line) {
                BodyEnd::Cut
            } else {
                BodyEnd::Foreign(self.stray(&line))
            });
        }
        if !self.recognised {
            return Ok(BodyEnd::Foreign(self.stray(&line)));
        }
        if self.data_lines > 0 && !is_whole(&self.data) {
            return Ok(BodyEnd::Cut);
        }
        Ok(if self.dispatch(sink)? {
            BodyEnd::Done
        } else {
            BodyEnd::Boundary
        })
    }

    /// Reads a line without its end and returns whether it can be whole.
    fn last_line(
        &mut self,
        line: &[u8],
        bounds: &Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<bool, ModelError> {
        let (name, value) = split_field(line);
        match name {
            b"" => self.recognised = true,
            b"data" if !value.trim_ascii().is_empty() => {
                self.recognised = true;
                self.add_data(value, bounds)?;
            }
            b"error" if is_json(value) => sink(Frame::ErrorField(value))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the beginning of the first line that is not a field.
    fn stray(&self, line: &[u8]) -> String {
        let text = if self.stray.is_empty() {
            line
        } else {
            &self.stray
        };
        String::from_utf8_lossy(text.get(..STRAY_BYTES_MAX).unwrap_or(text)).into_owned()
    }

    fn keep(&mut self, piece: &[u8], bounds: &Bounds) -> Result<(), ModelError> {
        if self.line.len().saturating_add(piece.len()) > bounds.line_bytes_max {
            self.line = Vec::new();
            return Err(too_large("line", bounds.line_bytes_max));
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn line_end(
        &mut self,
        piece: &[u8],
        bounds: &Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<bool, ModelError> {
        if self.line.is_empty() && piece.len() <= bounds.line_bytes_max {
            return self.field(piece, bounds, sink);
        }
        self.keep(piece, bounds)?;
        let mut line = std::mem::take(&mut self.line);
        let done = self.field(&line, bounds, sink);
        line.clear();
        self.line = line;
        done
    }

    /// Returns whether a line is the whole data of an event, so that it need not be copied. Nearly
    /// all events are like this.
    fn is_alone(&self, line: &[u8], tail: &[u8], bounds: &Bounds) -> bool {
        self.line.is_empty()
            && self.data_lines == 0
            && line.starts_with(b"data:")
            && line.len() <= bounds.line_bytes_max.min(bounds.event_bytes_max)
            && blank_line_follows(tail)
    }

    /// Reads one whole line and returns whether it was the end of the stream.
    fn field(
        &mut self,
        line: &[u8],
        bounds: &Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<bool, ModelError> {
        if line.is_empty() {
            return self.dispatch(sink);
        }
        let (name, value) = split_field(line);
        match name {
            b"" | b"id" | b"retry" => self.recognised = true,
            b"data" => {
                self.recognised = true;
                self.add_data(value, bounds)?;
            }
            b"event" => {
                self.recognised = true;
                self.event.clear();
                match std::str::from_utf8(value) {
                    Ok(name) => self.event.push_str(name),
                    Err(_) => self.event.push_str(&String::from_utf8_lossy(value)),
                }
            }
            b"error" => {
                self.recognised = true;
                sink(Frame::ErrorField(value))?;
            }
            _ => self.stray_line(line),
        }
        Ok(false)
    }

    fn stray_line(&mut self, line: &[u8]) {
        if self.stray.is_empty() {
            self.stray
                .extend_from_slice(line.get(..STRAY_BYTES_MAX).unwrap_or(line));
        }
    }

    fn add_data(&mut self, value: &[u8], bounds: &Bounds) -> Result<(), ModelError> {
        if self.data.len().saturating_add(value.len()) >= bounds.event_bytes_max {
            self.data = Vec::new();
            return Err(too_large("event", bounds.event_bytes_max));
        }
        if self.data_lines > 0 {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.data_lines = self.data_lines.saturating_add(1);
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut Sink<'_>) -> Result<bool, ModelError> {
        if self.data_lines == 0 {
            self.event.clear();
            return Ok(false);
        }
        let mut data = std::mem::take(&mut self.data);
        // Some servers end events with a single newline, which joins them.
        let joined = std::mem::take(&mut self.data_lines) > 1 && !is_json(&data);
        let done = if joined {
            each_line(&data, &self.event, sink)
        } else {
            hand_out(&data, &self.event, sink)
        };
        data.clear();
        self.data = data;
        self.event.clear();
        done
    }
}

/// Returns whether behind the line end at the beginning of `tail` another one is at hand.
fn blank_line_follows(tail: &[u8]) -> bool {
    let behind = tail.strip_prefix(b"\r\n").or_else(|| tail.get(1..));
    matches!(behind.and_then(<[u8]>::first), Some(b'\n' | b'\r'))
}

fn is_field_beginning(line: &[u8]) -> bool {
    let field = |name: &[u8]| name.starts_with(line) || line.starts_with(name);
    FIELDS.into_iter().any(field)
}

fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr::memchr(b':', line) else {
        return (line, b"");
    };
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default();
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

fn each_line(data: &[u8], event: &str, sink: &mut Sink<'_>) -> Result<bool, ModelError> {
    for line in data.split(|byte| *byte == b'\n') {
        if hand_out(line, event, sink)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn hand_out(data: &[u8], event: &str, sink: &mut Sink<'_>) -> Result<bool, ModelError> {
    let text = data.trim_ascii();
    if text == b"[DONE]" {
        return Ok(true);
    }
    if !text.is_empty() {
        sink(Frame::Json { event, text })?;
    }
    Ok(false)
}

fn is_json(data: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(data).is_ok()
}

fn is_whole(data: &[u8]) -> bool {
    data.split(|byte| *byte == b'\n').all(|line| {
        let line = line.trim_ascii();
        line.is_empty() || line == b"[DONE]" || is_json(line)
    }) || is_json(data)
}
