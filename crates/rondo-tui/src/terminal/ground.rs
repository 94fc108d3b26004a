//! Asks the terminal which colour its ground has: before anything else reads what it sends, and once it is looked at
//! again.
//!
//! Terminals can report each change by themselves (mode 2031), but the library that reads keys takes the report,
//! `CSI ? 997 ; 1 n`, for the beginning of another sequence, and would hold what is typed behind it. An answer to a question
//! it takes for keys, out of which it is read.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use rondo_core::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write as _};
use std::time::Duration;

/// The question.
const GROUND: &[u8] = b"\x1b]11;?\x1b\\";
/// One that every terminal answers: after its answer there is none to the other.
const FENCE: &[u8] = b"\x1b[c";
/// How long the answers may take.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Bytes that are read at most: more is no answer.
const BYTES_MAX: usize = 4 << 10;
/// Keys that an answer which comes too late may seem to be.
const LATE_KEYS_MAX: usize = 64;

/// What the terminal sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Whether its ground is light, where it says so.
    pub(crate) is_light: Option<bool>,
    /// What a person typed meanwhile.
    pub(crate) typed: String,
    /// Whether an answer is still due.
    is_due: bool,
}

/// Asks. The terminal has to be in raw mode.
///
/// # Errors
/// When it cannot be written to or read from.
pub(crate) fn ask() -> io::Result<Heard> {
    let mut out = io::stdout().lock();
    out.write_all(GROUND)?;
    out.write_all(FENCE)?;
    out.flush()?;
    let clock = Clock::system();
    let until = clock.now().after(WAIT_MAX);
    let input = rustix::stdio::stdin();
    let (mut bytes, mut heard) = (Vec::new(), read(&[]));
    while heard.is_due && bytes.len() < BYTES_MAX {
        let left = until.since(clock.now());
        let wait = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&wait)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(err) => return Err(err.into()),
        }
        let mut piece = [0; 512];
        match rustix::io::read(input, &mut piece)? {
            0 => break,
            count => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
        heard = read(&bytes);
    }
    Ok(heard)
}

/// Tells the answers from what was typed.
fn read(bytes: &[u8]) -> Heard {
    let text = String::from_utf8_lossy(bytes);
    let mut heard = Heard {
        is_due: true,
        ..Heard::default()
    };
    let mut rest = text.as_ref();
    while let Some((before, sequence)) = rest.split_once('\x1b') {
        heard.typed.push_str(before);
        rest = match sequence.chars().next() {
            Some(']') => {
                let ends = ["\x1b\\", "\x07"];
                let end = ends
                    .iter()
                    .filter_map(|it| Some((sequence.find(it)?, it.len())));
                let Some((at, length)) = end.min() else {
                    break;
                };
                heard.is_light = sequence.get(1..at).and_then(is_light).or(heard.is_light);
                sequence.get(at + length..).unwrap_or_default()
            }
            Some('[') => {
                let is_final = |c: char| ('\x40'..='\x7e').contains(&c);
                let parameters = sequence.get(1..).unwrap_or_default();
                let Some(at) = parameters.find(is_final) else {
                    break;
                };
                let (answer, behind) = parameters.split_at(at);
                heard.is_due &= !(answer.starts_with('?') && behind.starts_with('c'));
                behind.get(1..).unwrap_or_default()
            }
            _ => sequence,
        };
    }
    if !rest.contains('\x1b') {
        heard.typed.push_str(rest);
    }
    heard
}

/// Reads `11;rgb:RRRR/GGGG/BBBB`, of one to four hexadecimal digits each.
fn is_light(answer: &str) -> Option<bool> {
    let colour = answer.strip_prefix("11;")?;
    let colour = colour
        .strip_prefix("rgb:")
        .or_else(|| colour.strip_prefix("rgba:"))?;
    let mut parts = colour.split('/').map(|digits| {
        let max = 16_u32
            .checked_pow(u32::try_from(digits.len()).ok()?)?
            .checked_sub(1)?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        (digits.len() <= 4 && max > 0).then(|| f64::from(value) / f64::from(max))
    });
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)
}

/// Takes answers that come while something else reads what the terminal sends, and would take them for keys.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// Keys that may still be part of one.
    left: usize,
    is_within: bool,
    answer: String,
    /// Whether the terminal answers.
    is_known: bool,
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// No part of an answer.
    No,
    /// A part of one.
    Part,
    /// The end of one: whether the ground is light.
    Ground(bool),
}

impl Late {
    pub(crate) fn after(heard: &Heard) -> Self {
        Self {
            left: if heard.is_due { LATE_KEYS_MAX } else { 0 },
            is_known: heard.is_light.is_some(),
            ..Self::default()
        }
    }

    /// Returns the question again, where the terminal answered it before: its ground may be another one by now. The answer
    /// comes at once, so a person hardly types the two keys that begin it meanwhile.
    pub(crate) fn ask_again(&mut self) -> Option<&'static [u8]> {
        if !self.is_known || self.left > 0 {
            return None;
        }
        self.left = LATE_KEYS_MAX;
        Some(GROUND)
    }

    /// Returns whether an event is part of an answer.
    pub(crate) fn takes(&mut self, event: &Event) -> Taken {
        let Event::Key(KeyEvent {
            code, modifiers, ..
        }) = event
        else {
            return Taken::No;
        };
        let (is_alt, is_ctrl) = (
            modifiers.contains(KeyModifiers::ALT),
            modifiers.contains(KeyModifiers::CONTROL),
        );
        match code {
            _ if self.left == 0 => return Taken::No,
            KeyCode::Char(']') if is_alt => {
                self.is_within = true;
                self.answer.clear();
            }
            _ if !self.is_within => return Taken::No,
            KeyCode::Char('\\') if is_alt => return self.end(),
            KeyCode::Char('g') if is_ctrl => return self.end(),
            KeyCode::Char(c) => self.answer.push(*c),
            _ => {}
        }
        self.left = self.left.saturating_sub(1);
        self.is_within &= self.left > 0;
        Taken::Part
    }

    fn end(&mut self) -> Taken {
        (self.left, self.is_within) = (0, false);
        is_light(&self.answer).map_or(Taken::Part, Taken::Ground)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ground_is_told_by_its_luminance() {
        for (answer, expected) in [
            ("11;rgb:ffff/ffff/ffff", Some(true)),
            ("11;rgb:1e1e/1e1e/2e2e", Some(false)),
            ("11;rgb:f/f/e", Some(true)),
            ("11;rgba:00/00/00/ff", Some(false)),
            ("11;rgb:fffff/0/0", None),
            ("11;rgb:/0/0", None),
            ("11;?", None),
            ("10;rgb:ff/ff/ff", None),
        ] {
            assert_eq!(is_light(answer), expected, "{answer}");
        }
    }

    #[test]
    fn what_was_typed_meanwhile_is_kept_and_answers_are_taken_out_wherever_they_are_cut() {
        let bytes = b"ab\x1b]11;rgb:ff/ff/ff\x1b\\c\x1b[?62;22cd\x1b[Ae";
        let heard = read(bytes);
        assert_eq!((heard.is_light, heard.is_due), (Some(true), false));
        assert_eq!(heard.typed, "abcde");
        for cut in 0..bytes.len() {
            let typed = read(&bytes[..cut]).typed;
            assert!("abcde".starts_with(&typed), "{typed}");
        }
        assert_eq!(read(b"\x1b]11;rgb:0/0/0\x07").is_light, Some(false));
        assert_eq!(read(b"typed").typed, "typed");
    }

    fn key(c: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers))
    }

    fn plain(c: char) -> Event {
        key(c, KeyModifiers::NONE)
    }

    /// Sends an answer as it is read, and returns what came of its end.
    fn answered(late: &mut Late, answer: &str) -> Taken {
        assert_eq!(late.takes(&key(']', KeyModifiers::ALT)), Taken::Part);
        for c in answer.chars() {
            assert_eq!(late.takes(&plain(c)), Taken::Part, "{c}");
        }
        late.takes(&key('\\', KeyModifiers::ALT))
    }

    #[test]
    fn an_answer_that_comes_too_late_is_no_keys() {
        let mut late = Late::after(&read(b""));
        assert_eq!(late.takes(&plain('a')), Taken::No);
        assert_eq!(answered(&mut late, "11;rgb:ff/ff/ff"), Taken::Ground(true));
        assert_eq!(late.takes(&plain('a')), Taken::No);
        assert_eq!(late.takes(&key(']', KeyModifiers::ALT)), Taken::No);
        let mut never = Late::after(&read(b"\x1b[?1c"));
        assert_eq!(never.takes(&key(']', KeyModifiers::ALT)), Taken::No);
    }

    #[test]
    fn a_terminal_that_answered_is_asked_again_and_one_that_did_not_is_not() {
        let mut late = Late::after(&read(b"\x1b]11;rgb:ff/ff/ff\x1b\\\x1b[?1c"));
        assert_eq!(late.ask_again(), Some(GROUND));
        // One answer at a time is awaited.
        assert_eq!(late.ask_again(), None);
        assert_eq!(late.takes(&plain('a')), Taken::No);
        assert_eq!(answered(&mut late, "11;rgb:0/0/0"), Taken::Ground(false));
        assert_eq!(late.ask_again(), Some(GROUND));
        assert_eq!(Late::after(&read(b"\x1b[?1c")).ask_again(), None);
    }

    #[test]
    fn what_never_ends_holds_no_more_keys_than_an_answer_has() {
        let mut late = Late::after(&read(b""));
        late.takes(&key(']', KeyModifiers::ALT));
        let held = (0..1_000).filter(|_| late.takes(&plain('x')) == Taken::Part);
        assert_eq!(held.count(), LATE_KEYS_MAX - 1);
    }
}
