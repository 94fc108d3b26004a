//! Reads a step while it is being generated, so that the answer can be shown as it grows.

use serde_json::Value;

/// Newly readable part of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepEvent {
    /// More text of the answer.
    Text(String),
    /// A call begins.
    Call {
        /// The tool's name.
        name: String,
    },
    /// The call's arguments, whole.
    Arguments(String),
}

/// Reads one step, byte by byte, in the shape of [`crate::grammar::StepShape`].
#[derive(Debug)]
pub(crate) struct StepReader {
    answer: &'static str,
    bytes: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The action is not whole yet.
    Action,
    /// Text of the answer; what lies before this place has been shown.
    Answer(usize),
    /// A value of the answer, which begins at this place.
    Json(usize),
    /// Arguments of a call, which begin at this place.
    Arguments(usize),
    Done,
}

const ACTION: &[u8] = br#"{"action":""#;
const ARGUMENTS: &[u8] = br#"","args":"#;
const TEXT: &[u8] = br#"{"text":""#;
const JSON: &[u8] = br#"{"json":"#;

impl StepReader {
    /// Starts reading; `answer` is the action that answers.
    pub(crate) fn new(answer: &'static str) -> Self {
        Self {
            answer,
            bytes: Vec::new(),
            state: State::Action,
        }
    }

    /// Returns whether the reply called a tool.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.state, State::Arguments(_))
    }

    /// Takes more of the step and returns what that makes readable.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<StepEvent> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        if self.state == State::Action {
            events.extend(self.read_action());
        }
        if let State::Answer(start) = self.state {
            events.extend(self.read_text(start));
        }
        events
    }

    /// Ends a step that was generated whole.
    pub(crate) fn finish(&mut self) -> Option<StepEvent> {
        let state = std::mem::replace(&mut self.state, State::Done);
        match state {
            State::Arguments(start) => {
                let arguments = self.text_until_last(start, 1)?;
                Some(StepEvent::Arguments(arguments))
            }
            State::Json(start) => Some(StepEvent::Text(self.text_until_last(start, 2)?)),
            State::Action | State::Answer(_) | State::Done => None,
        }
    }

    /// Returns the text from `start` on, without the brackets that close what is around it.
    fn text_until_last(&self, start: usize, brackets: usize) -> Option<String> {
        let end = self.bytes.len().checked_sub(brackets)?;
        let bytes = self.bytes.get(start..end)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    fn read_action(&mut self) -> Option<StepEvent> {
        let name_and_rest = self.bytes.get(ACTION.len()..)?;
        let name_len = find(name_and_rest, ARGUMENTS)?;
        let raw = name_and_rest.get(..name_len)?;
        let name = unescape(raw)?;
        let start = ACTION.len() + name_len + ARGUMENTS.len();
        if name != self.answer {
            self.state = State::Arguments(start);
            return Some(StepEvent::Call { name });
        }
        let arguments = self.bytes.get(start..)?;
        if arguments.starts_with(TEXT) {
            self.state = State::Answer(start + TEXT.len());
        } else if arguments.starts_with(JSON) {
            self.state = State::Json(start + JSON.len());
        }
        None
    }

    /// Shows the text up to the last whole character and the last whole escape.
    fn read_text(&mut self, start: usize) -> Option<StepEvent> {
        let raw = self.bytes.get(start..)?;
        let (length, closed) = readable(raw);
        let text = unescape(raw.get(..length)?)?;
        self.state = if closed {
            State::Done
        } else {
            State::Answer(start + length)
        };
        (!text.is_empty()).then_some(StepEvent::Text(text))
    }
}

/// Returns how many bytes of a JSON string's inside can be read by themselves, and whether its end
/// was found.
fn readable(raw: &[u8]) -> (usize, bool) {
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        let width = match byte {
            b'"' => return (at, true),
            b'\\' => match escape_width(raw.get(at..).unwrap_or_default()) {
                Some(width) => width,
                None => return (at, false),
            },
            0x00..=0x7f => 1,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        if at + width > raw.len() {
            return (at, false);
        }
        at += width;
    }
    (at, false)
}

/// Returns the length of an escape, both halves of a surrogate pair together; `None` while more is
/// needed to say so.
fn escape_width(raw: &[u8]) -> Option<usize> {
    if *raw.get(1)? != b'u' {
        return Some(2);
    }
    let digits = std::str::from_utf8(raw.get(2..6)?).ok()?;
    match u16::from_str_radix(digits, 16) {
        Ok(0xd800..=0xdbff) => {
            // Its other half follows, if it is well formed.
            raw.get(..12).map(|_| 12)
        }
        _ => Some(6),
    }
}

fn unescape(raw: &[u8]) -> Option<String> {
    let quoted = [b"\"", raw, b"\""].concat();
    match serde_json::from_slice::<Value>(&quoted) {
        Ok(Value::String(text)) => Some(text),
        _ => Some(String::from_utf8_lossy(raw).into_owned()),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests;
