//! Takes apart what a terminal sends: keys, pastes, the mouse, the focus, and answers to questions.
//!
//! It is done here and not by crossterm, which takes an escape for a key as soon as nothing is behind it, and answers of the
//! terminal (DCS, OSC, device attributes) for text: a sequence that arrives in two pieces would stop a turn.

use super::csi;
use super::ground;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// Bytes of a sequence or an answer at most.
const SEQUENCE_BYTES_MAX: usize = 4 << 10;
/// Bytes of a paste that are kept.
const PASTE_BYTES_MAX: usize = 8 << 20;

/// Input from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key, a paste, the mouse or the focus.
    Event(Event),
    /// The answer to the question for the ground: whether it is light.
    Ground(bool),
}

/// Reads input out of bytes, wherever those are cut.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    pending: Vec<u8>,
    /// Pasted text so far, until the paste ends.
    paste: Option<Vec<u8>>,
}

/// Beginning of the bytes.
enum DecodedBytes {
    /// A whole input, of so many bytes.
    Whole(Input, usize),
    /// So many bytes that mean nothing here.
    Nothing(usize),
    /// The beginning of a paste, of so many bytes.
    Paste(usize),
    /// The beginning of something that continues.
    Open,
}

impl Parser {
    /// Takes bytes, and adds what is whole by now.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        self.pending.extend_from_slice(bytes);
        loop {
            if self.paste.is_some() && !self.go_on_with_paste(out) {
                return;
            }
            if self.pending.is_empty() {
                return;
            }
            let taken = match next(&self.pending) {
                DecodedBytes::Whole(input, length) => {
                    out.push(input);
                    length
                }
                DecodedBytes::Nothing(length) => length,
                DecodedBytes::Paste(length) => {
                    self.paste = Some(Vec::new());
                    length
                }
                DecodedBytes::Open if self.pending.len() > SEQUENCE_BYTES_MAX => self.pending.len(),
                DecodedBytes::Open => return,
            };
            self.pending.drain(..taken.min(self.pending.len()));
        }
    }

    /// Takes the rest of the paste. Returns whether it is over.
    fn go_on_with_paste(&mut self, out: &mut Vec<Input>) -> bool {
        let end = self
            .pending
            .windows(PASTE_ENDS.len())
            .position(|it| it == PASTE_ENDS);
        // The end may be cut.
        let cut = self.pending.len().saturating_sub(PASTE_ENDS.len() - 1);
        let length = end.unwrap_or(cut);
        let mut paste = self.paste.take().unwrap_or_default();
        let room = PASTE_BYTES_MAX.saturating_sub(paste.len());
        paste.extend(self.pending.drain(..length).take(room));
        if end.is_none() {
            self.paste = Some(paste);
            return false;
        }
        self.pending.drain(..PASTE_ENDS.len());
        out.push(Input::Event(Event::Paste(csi::pasted(&paste))));
        true
    }

    /// Returns whether something is there that may continue.
    pub(crate) fn is_open(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Returns whether an escape is there by itself, which may be a key.
    pub(crate) fn is_at_escape(&self) -> bool {
        self.paste.is_none() && self.pending == [ESCAPE]
    }

    /// Nothing followed: takes what is there for keys, if it can be keys, and drops it otherwise.
    pub(crate) fn settle(&mut self, out: &mut Vec<Input>) {
        if !self.is_open() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        match *pending.as_slice() {
            [ESCAPE] => out.push(key(escape)),
            [ESCAPE, ESCAPE] => out.extend([key(escape), key(escape)]),
            [ESCAPE, byte] if byte.is_ascii_graphic() => {
                out.push(key(with_alt(text_key(char::from(byte)))));
            }
            _ => {}
        }
    }
}

fn key(event: KeyEvent) -> Input {
    Input::Event(Event::Key(event))
}

fn with_alt(mut event: KeyEvent) -> KeyEvent {
    event.modifiers |= KeyModifiers::ALT;
    event
}

/// Returns the key of a character.
pub(super) fn text_key(c: char) -> KeyEvent {
    let modifiers = match c.is_uppercase() {
        true => KeyModifiers::SHIFT,
        false => KeyModifiers::NONE,
    };
    KeyEvent::new(KeyCode::Char(c), modifiers)
}

fn next(bytes: &[u8]) -> DecodedBytes {
    match bytes {
        [ESCAPE, rest @ ..] => escaped(rest),
        _ => plain(bytes).map_or(DecodedBytes::Open, |(event, length)| match event {
            Some(event) => DecodedBytes::Whole(key(event), length),
            None => DecodedBytes::Nothing(length),
        }),
    }
}

/// Reads the bytes after an escape.
fn escaped(rest: &[u8]) -> DecodedBytes {
    match rest {
        [] | [ESCAPE] => DecodedBytes::Open,
        // rxvt puts another escape before a key with Alt.
        [ESCAPE, b'[' | b'O', ..] => match escaped(rest.get(1..).unwrap_or_default()) {
            DecodedBytes::Whole(Input::Event(Event::Key(event)), length) => {
                DecodedBytes::Whole(key(with_alt(event)), length + 1)
            }
            DecodedBytes::Whole(..) | DecodedBytes::Nothing(_) | DecodedBytes::Paste(_) => {
                DecodedBytes::Whole(key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), 1)
            }
            DecodedBytes::Open => DecodedBytes::Open,
        },
        [ESCAPE, ..] => {
            DecodedBytes::Whole(key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), 1)
        }
        [b'[', ..] => sequence(rest),
        [b'O'] => DecodedBytes::Open,
        [b'O', last, ..] => match csi::ss3(*last) {
            Some(event) => DecodedBytes::Whole(key(event), 3),
            None => DecodedBytes::Nothing(3),
        },
        [b']' | b'P' | b'X' | b'^' | b'_', ..] => string(rest),
        _ => match plain(rest) {
            Some((Some(event), length)) => DecodedBytes::Whole(key(with_alt(event)), length + 1),
            Some((None, length)) => DecodedBytes::Nothing(length + 1),
            None => DecodedBytes::Open,
        },
    }
}

/// Reads a control sequence, from its bracket on.
fn sequence(rest: &[u8]) -> DecodedBytes {
    let body = rest.get(1..).unwrap_or_default();
    if let [b'[', ..] = body {
        // The function keys of the Linux console.
        return match body.get(1) {
            None => DecodedBytes::Open,
            Some(letter) => match csi::console_key(*letter) {
                Some(event) => DecodedBytes::Whole(key(event), 4),
                None => DecodedBytes::Nothing(4),
            },
        };
    }
    if let [b'M', ..] = body {
        // The mouse of terminals that know no other report.
        return match body.len() {
            0..4 => DecodedBytes::Open,
            _ => DecodedBytes::Nothing(6),
        };
    }
    let is_within = |byte: &u8| (0x20..0x40).contains(byte);
    let Some(at) = body.iter().position(|it| !is_within(it)) else {
        return DecodedBytes::Open;
    };
    let (parameters, last) = (body.get(..at).unwrap_or_default(), body.get(at).copied());
    let length = at + 3;
    match last {
        Some(last @ 0x40..=0x7e) => match (parameters, last) {
            (b"200", b'~') => DecodedBytes::Paste(length),
            _ => match csi::event(parameters, last) {
                Some(event) => DecodedBytes::Whole(Input::Event(event), length),
                None => DecodedBytes::Nothing(length),
            },
        },
        // It was broken off, and what follows is something else.
        _ => DecodedBytes::Nothing(length - 1),
    }
}

/// Reads a string such as an answer, from behind its escape on.
fn string(rest: &[u8]) -> DecodedBytes {
    let body = rest.get(1..).unwrap_or_default();
    let is_end = |byte: &u8| matches!(*byte, ESCAPE | BELL);
    let Some(at) = body.iter().position(is_end) else {
        return DecodedBytes::Open;
    };
    // The escape, the letter after it, and the text before the end.
    let length = at + 2;
    let length = match (body.get(at), body.get(at + 1)) {
        (Some(&BELL), _) => length + 1,
        (_, Some(b'\\')) => length + 2,
        (_, None) => return DecodedBytes::Open,
        // It was broken off.
        (_, Some(_)) => length,
    };
    let text = body.get(..at).unwrap_or_default();
    let is_light = match rest {
        [b']', ..] => ground::is_light(&String::from_utf8_lossy(text)),
        _ => None,
    };
    match is_light {
        Some(is_light) => DecodedBytes::Whole(Input::Ground(is_light), length),
        None => DecodedBytes::Nothing(length),
    }
}

/// Reads a key without an escape before it. Returns its length, and no key if the bytes are not text; `None` if a
/// character continues.
fn plain(bytes: &[u8]) -> Option<(Option<KeyEvent>, usize)> {
    let control = |c: u8| KeyEvent::new(KeyCode::Char(char::from(c)), KeyModifiers::CONTROL);
    let code = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let event = match *bytes.first()? {
        0 => control(b' '),
        b'\r' => code(KeyCode::Enter),
        b'\t' => code(KeyCode::Tab),
        0x7f => code(KeyCode::Backspace),
        byte @ 0x01..=0x1a => control(byte - 1 + b'a'),
        byte @ 0x1c..=0x1f => control(byte - 0x1c + b'4'),
        _ => return character(bytes),
    };
    Some((Some(event), 1))
}

fn character(bytes: &[u8]) -> Option<(Option<KeyEvent>, usize)> {
    let head = bytes.get(..bytes.len().min(4))?;
    let (good, bad) = match std::str::from_utf8(head) {
        Ok(text) => (text, None),
        Err(err) => {
            let good = head.get(..err.valid_up_to()).unwrap_or_default();
            let good = std::str::from_utf8(good).unwrap_or_default();
            (good, Some(err.error_len()))
        }
    };
    match (good.chars().next(), bad) {
        (Some(c), _) => Some((Some(text_key(c)), c.len_utf8())),
        (None, Some(Some(length))) => Some((None, length)),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests;
