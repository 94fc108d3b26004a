//! Decodes the bytes of a terminal into keys.

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// What one key, or one paste, means while a turn runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// Text that was typed or pasted.
    Text(String),
    Enter,
    /// Takes back the last character.
    Erase,
    /// Takes back the last word.
    EraseWord,
    /// Takes back everything.
    EraseLine,
    /// Takes what follows the cursor.
    EraseRest,
    /// Takes the character under the cursor.
    Delete,
    Left,
    Right,
    Home,
    End,
    /// Ctrl-C or Esc.
    Stop,
    /// A paste that was too long to be kept.
    TooLong,
}

impl Key {
    /// Returns what an event means that the line editor has read.
    pub(super) fn of_event(event: Event) -> Option<Self> {
        let key = match event {
            Event::Paste(text) => return Some(Self::Text(text)),
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            _ => return None,
        };
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char(letter) if is_ctrl => {
                let byte = u8::try_from(letter).ok().filter(u8::is_ascii_alphabetic)?;
                next(&[byte.to_ascii_lowercase() - b'a' + 1])?.0
            }
            KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::ALT) => None,
            KeyCode::Char(letter) => Some(Self::Text(letter.to_string())),
            KeyCode::Enter => Some(Self::Enter),
            KeyCode::Tab => Some(Self::Text(" ".to_owned())),
            KeyCode::Backspace => Some(Self::Erase),
            KeyCode::Delete => Some(Self::Delete),
            KeyCode::Left => Some(Self::Left),
            KeyCode::Right => Some(Self::Right),
            KeyCode::Home => Some(Self::Home),
            KeyCode::End => Some(Self::End),
            KeyCode::Esc => Some(Self::Stop),
            _ => None,
        }
    }
}

/// The bound on text that is typed while a turn runs, in bytes.
const TYPED_BYTES_MAX: usize = 64 << 10;
/// The bound on bytes that wait for the end of a sequence or of a paste.
const PENDING_BYTES_MAX: usize = 1 << 20;
const ESCAPE: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Reads keys out of bytes, wherever those are cut.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    pending: Vec<u8>,
    /// Whether a paste that is too long to keep is being read to its end: none of its lines may be taken for
    /// one that was entered.
    is_skipping: bool,
}

impl KeyReader {
    /// Takes bytes and returns the keys that are whole by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        // The end of a paste may be cut; what was searched before is not searched again.
        let mut new = self.pending.len().saturating_sub(PASTE_ENDS.len() - 1);
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        if self.is_skipping && !self.skip() {
            return keys;
        }
        while !self.is_inside_paste(new)
            && let Some((key, length)) = next(&self.pending)
        {
            self.pending.drain(..length);
            keys.extend(key);
            new = 0;
        }
        if self.pending.len() > PENDING_BYTES_MAX {
            keys.push(Key::TooLong);
            self.is_skipping = self.pending.starts_with(PASTE_BEGINS);
            self.skip();
        }
        keys
    }

    /// Returns whether a paste stands there that had no end before `new`, and has none behind it.
    fn is_inside_paste(&self, new: usize) -> bool {
        let added = self.pending.get(new..).unwrap_or_default();
        new >= PASTE_BEGINS.len()
            && self.pending.starts_with(PASTE_BEGINS)
            && position(added, PASTE_ENDS).is_none()
    }

    /// Passes over the rest of a paste; returns whether its end was there.
    fn skip(&mut self) -> bool {
        let end = position(&self.pending, PASTE_ENDS);
        // The end may be cut.
        let tail = self.pending.len().saturating_sub(PASTE_ENDS.len() - 1);
        let length = end.map_or(tail, |at| at + PASTE_ENDS.len());
        self.pending.drain(..length);
        self.is_skipping &= end.is_none();
        end.is_some()
    }

    /// Returns whether an escape stands there that may be a key, or the beginning of another one.
    pub(super) fn is_open(&self) -> bool {
        self.pending == [ESCAPE]
    }

    /// Takes that escape for a key.
    pub(super) fn settle(&mut self) -> Option<Key> {
        let is_open = self.is_open();
        self.pending.clear();
        is_open.then_some(Key::Stop)
    }
}

/// Returns the first key and its length; a sequence that means nothing here is no key.
fn next(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = match *bytes.first()? {
        ESCAPE => return sequence(bytes),
        0x03 => Some(Key::Stop),
        b'\r' | b'\n' => Some(Key::Enter),
        0x08 | 0x7f => Some(Key::Erase),
        0x17 => Some(Key::EraseWord),
        0x15 => Some(Key::EraseLine),
        0x0b => Some(Key::EraseRest),
        0x01 => Some(Key::Home),
        0x02 => Some(Key::Left),
        0x04 => Some(Key::Delete),
        0x05 => Some(Key::End),
        0x06 => Some(Key::Right),
        b'\t' => Some(Key::Text(" ".to_owned())),
        0x00..=0x1f => None,
        _ => return text(bytes),
    };
    Some((key, 1))
}

fn text(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let end = bytes.iter().position(|byte| *byte < 0x20 || *byte == 0x7f);
    let bytes = bytes.get(..end.unwrap_or(bytes.len()))?;
    let (good, bad) = match std::str::from_utf8(bytes) {
        Ok(text) => (text.len(), None),
        Err(err) => (err.valid_up_to(), Some(err.error_len())),
    };
    match (good, bad) {
        // The rest of a character is on its way.
        (0, Some(None)) if end.is_none() => None,
        (0, Some(length)) => Some((None, length.unwrap_or(bytes.len()))),
        _ => {
            let text = String::from_utf8_lossy(bytes.get(..good)?).into_owned();
            Some((Some(Key::Text(text)), good))
        }
    }
}

fn sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    if bytes.starts_with(PASTE_BEGINS) {
        return paste(bytes);
    }
    match bytes.get(1)? {
        b'[' => {
            let end = bytes
                .iter()
                .skip(2)
                .position(|byte| (0x40..=0x7e).contains(byte))?;
            Some((motion(bytes.get(2..end + 3)?), end + 3))
        }
        b'O' => bytes.get(2).map(|last| (motion(&[*last]), 3)),
        // Twice is once, in a hurry.
        &ESCAPE => Some((Some(Key::Stop), 2)),
        // A key together with Alt.
        _ => Some((None, 2)),
    }
}

/// What moves the cursor, or erases at it, as terminals send it after `ESC [` or `ESC O`.
fn motion(sequence: &[u8]) -> Option<Key> {
    match sequence {
        b"C" => Some(Key::Right),
        b"D" => Some(Key::Left),
        b"H" | b"1~" | b"7~" => Some(Key::Home),
        b"F" | b"4~" | b"8~" => Some(Key::End),
        b"3~" => Some(Key::Delete),
        _ => None,
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn paste(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let inner = bytes.get(PASTE_BEGINS.len()..)?;
    let end = position(inner, PASTE_ENDS)?;
    let text = String::from_utf8_lossy(inner.get(..end)?).replace('\r', "\n");
    let length = PASTE_BEGINS.len() + end + PASTE_ENDS.len();
    let key = match text.len() <= TYPED_BYTES_MAX {
        true => Key::Text(text),
        false => Key::TooLong,
    };
    Some((Some(key), length))
}

/// Changes a line that is edited at its end.
pub(super) fn edit(line: &mut String, key: &Key) {
    match key {
        Key::Text(text) if line.len() + text.len() <= TYPED_BYTES_MAX => line.push_str(text),
        Key::Erase => drop(line.pop()),
        Key::EraseWord => line.truncate(word_begins(line)),
        Key::EraseLine => line.clear(),
        Key::Text(_)
        | Key::Enter
        | Key::Stop
        | Key::TooLong
        | Key::EraseRest
        | Key::Delete
        | Key::Left
        | Key::Right
        | Key::Home
        | Key::End => {}
    }
}

/// Returns where the last word begins.
pub(super) fn word_begins(text: &str) -> usize {
    let kept = text.trim_end();
    kept.char_indices()
        .rev()
        .find(|(_, it)| it.is_whitespace())
        .map_or(0, |(at, it)| at + it.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn keys_are_the_same_wherever_their_bytes_are_cut() {
        let bytes =
            "né\u{65e5}\x1b[A\x7f\x17\x15\r\x1bOP\x1b[200~a\rb\x1b[201~\x03\x01x\x1b[D\x1b[3~\x1bOF".as_bytes();
        let joined = |keys: Vec<Key>| {
            let mut all: Vec<Key> = Vec::new();
            for key in keys {
                match (all.last_mut(), key) {
                    (Some(Key::Text(before)), Key::Text(more)) => before.push_str(&more),
                    (_, key) => all.push(key),
                }
            }
            all
        };
        let expected = [
            text("né日"),
            Key::Erase,
            Key::EraseWord,
            Key::EraseLine,
            Key::Enter,
            text("a\nb"),
            Key::Stop,
            Key::Home,
            text("x"),
            Key::Left,
            Key::Delete,
            Key::End,
        ];
        for cut in 0..bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            let mut reader = KeyReader::default();
            let mut keys = reader.push(head);
            keys.extend(reader.push(tail));
            assert_eq!(joined(keys), expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_escape_is_a_key_once_nothing_follows_it() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.push(b"\x1b"), []);
        assert!(reader.is_open());
        assert_eq!(reader.push(b"[A"), []);
        assert!(!reader.is_open());
        assert_eq!(reader.settle(), None);
        assert_eq!(reader.push(b"\x1b"), []);
        assert_eq!(reader.settle(), Some(Key::Stop));
        assert_eq!(reader.push(b"\x1b\x1b"), [Key::Stop]);
    }

    #[test]
    fn no_line_of_a_paste_that_is_too_long_is_entered() {
        let mut reader = KeyReader::default();
        let line = b"do not run this\r".repeat(256);
        let mut keys = reader.push(PASTE_BEGINS);
        for _ in 0..=2 * PENDING_BYTES_MAX / line.len() {
            keys.extend(reader.push(&line));
        }
        let (head, tail) = PASTE_ENDS.split_at(3);
        keys.extend(reader.push(head));
        keys.extend(reader.push(tail));
        assert_eq!(keys, [Key::TooLong]);
        assert_eq!(reader.push(b"a\r"), [text("a"), Key::Enter]);
    }

    #[test]
    fn what_the_line_editor_has_read_means_what_its_bytes_mean() {
        let key = |code, modifiers| {
            let event = crossterm::event::KeyEvent::new(code, modifiers);
            Key::of_event(Event::Key(event))
        };
        let (none, ctrl) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        assert_eq!(key(KeyCode::Char('é'), none), Some(text("é")));
        assert_eq!(key(KeyCode::Enter, none), Some(Key::Enter));
        assert_eq!(key(KeyCode::Char('w'), ctrl), Some(Key::EraseWord));
        assert_eq!(key(KeyCode::Char('c'), ctrl), Some(Key::Stop));
        assert_eq!(key(KeyCode::Char('x'), KeyModifiers::ALT), None);
        assert_eq!(Key::of_event(Event::FocusGained), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_passed_over() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.push(b"\xffa\xc3\r"), [text("a"), Key::Enter]);
    }

    #[test]
    fn a_line_is_edited_by_its_end() {
        let mut line = String::new();
        for (key, expected) in [
            (Key::Text("one two é".into()), "one two é"),
            (Key::Erase, "one two "),
            (Key::EraseWord, "one "),
            (Key::Text("x".repeat(TYPED_BYTES_MAX)), "one "),
            (Key::EraseLine, ""),
            (Key::EraseWord, ""),
        ] {
            edit(&mut line, &key);
            assert_eq!(line, expected);
        }
    }
}
