//! Bytes of a terminal as keys and pastes, with the time between them: an escape is a key once nothing follows it, and lines
//! that come at once are a paste.

use super::burst::{Bursts, LINE_END_WAIT_MS};
use super::input::{Input, Parser};
use crossterm::event::{Event, KeyCode, KeyEvent};
use rondo_types::TimeMs;
use std::time::Duration;

/// How long an escape waits for what makes it a sequence before it is a key, in milliseconds.
const ESCAPE_WAIT_MS: u64 = 50;
/// The same where the key would stop what runs: a slow connection must not do that.
const STOP_WAIT_MS: u64 = 350;
/// How long the rest of a sequence or an answer is waited for, in milliseconds.
const REST_WAIT_MS: u64 = 1_000;

/// Reads keys, pastes and answers of the terminal, wherever their bytes are cut.
#[derive(Debug, Default)]
pub struct Decoder {
    parser: Parser,
    bursts: Bursts,
    /// When an escape was taken for a key, until something else came.
    escaped_at: Option<TimeMs>,
    esc_stops: bool,
}

impl Decoder {
    /// Says whether the key Esc would stop what runs.
    pub fn set_esc_stops(&mut self, stops: bool) {
        self.esc_stops = stops;
    }

    /// Takes bytes, and returns what is whole by now.
    pub fn take(&mut self, bytes: &[u8], now: TimeMs) -> Vec<Input> {
        let mut came = Vec::new();
        if bytes.is_empty() {
            return came;
        }
        let escaped = self.escaped_at.take();
        let is_recent = escaped.is_some_and(|it| now.0.saturating_sub(it.0) < STOP_WAIT_MS);
        // The escape was the beginning of a sequence after all: what follows is no text.
        if is_recent && is_rest(bytes) {
            self.parser.push(b"\x1b", &mut came);
        }
        self.parser.push(bytes, &mut came);
        self.bursts.take(came, now)
    }

    /// Returns how long more bytes are waited for at most; for ever where nothing is held.
    pub fn patience(&self) -> Option<Duration> {
        let wait_ms = match self.parser.is_open() {
            _ if self.bursts.waits() => LINE_END_WAIT_MS,
            false => return None,
            true if !self.parser.is_at_escape() => REST_WAIT_MS,
            true if self.esc_stops => STOP_WAIT_MS,
            true => ESCAPE_WAIT_MS,
        };
        Some(Duration::from_millis(wait_ms))
    }

    /// Nothing came for as long as [`Self::patience`] says: takes what waited as it is.
    pub fn settle(&mut self, now: TimeMs) -> Vec<Input> {
        if self.bursts.waits() {
            return self.bursts.release(now);
        }
        let mut came = Vec::new();
        self.parser.settle(&mut came);
        let is_escape = |it: &Input| {
            let Input::Event(Event::Key(KeyEvent { code, .. })) = it else {
                return false;
            };
            *code == KeyCode::Esc
        };
        if came.last().is_some_and(is_escape) {
            self.escaped_at = Some(now);
        }
        self.bursts.take(came, now)
    }

    /// Drops keys that are held. The beginning of a paste or of a sequence stays: the rest of it is no text.
    pub fn forget(&mut self) {
        self.bursts.forget();
    }
}

/// Returns whether bytes that come together are the rest of a sequence whose escape came before.
fn is_rest(bytes: &[u8]) -> bool {
    let mut read = Vec::new();
    let mut parser = Parser::default();
    parser.push(&[b"\x1b", bytes].concat(), &mut read);
    let is_sequence = matches!(bytes, [b'[' | b'O', _, ..]);
    is_sequence && !parser.is_open() && !read.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_sequence_is_told_from_text() {
        for (bytes, is) in [
            (&b"[A"[..], true),
            (b"OB", true),
            (b"[1;5C", true),
            (b"[", false),
            (b"x", false),
            (b"[1;", false),
        ] {
            assert_eq!(is_rest(bytes), is, "{bytes:?}");
        }
    }

    #[test]
    fn what_was_typed_before_it_is_forgotten_comes_no_more() {
        let now = TimeMs(1_000);
        let mut decoder = Decoder::default();
        assert_eq!(decoder.take(b"y\r", now), []);
        decoder.forget();
        assert_eq!((decoder.patience(), decoder.settle(now)), (None, vec![]));
        assert_eq!(decoder.take(b"\x1b[200~y\r", now), []);
        decoder.forget();
        let paste = Input::Event(Event::Paste("y\rn".to_owned()));
        assert_eq!(decoder.take(b"n\x1b[201~", now), [paste]);
    }
}
