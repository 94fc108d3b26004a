//! Takes out the strings that a program addresses to what is around a terminal: titles, the clipboard, notifications,
//! colors, links, pictures (OSC, DCS, APC, PM and SOS). Without an end they would also be kept without a bound.

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// Both end a string, and the sequence in which they come.
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    /// An escape character came, and is held back.
    Escape,
    /// Within a string; `true` if a bell ends it.
    String(bool),
    /// An escape character came within a string.
    StringEscape,
}

/// The filter, which continues where the last piece ended.
#[derive(Debug, Default)]
pub(super) struct WithoutStrings(State);

impl WithoutStrings {
    /// Returns a piece without strings.
    pub(super) fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut passed = Vec::with_capacity(piece.len() + 1);
        for byte in piece {
            self.byte(*byte, &mut passed);
        }
        passed
    }

    fn byte(&mut self, byte: u8, passed: &mut Vec<u8>) {
        self.0 = match (self.0, byte) {
            (State::Text, ESC) => State::Escape,
            (State::Text, byte) => {
                passed.push(byte);
                State::Text
            }
            (State::Escape, byte) => Self::after_escape(byte, passed),
            (State::String(true), BEL) | (State::String(_), CAN | SUB) => State::Text,
            (State::String(_), ESC) => State::StringEscape,
            (State::String(ends), _) => State::String(ends),
            (State::StringEscape, b'\\') => State::Text,
            // It was no end: the string is broken off, and another sequence begins.
            (State::StringEscape, byte) => Self::after_escape(byte, passed),
        }
    }

    fn after_escape(byte: u8, passed: &mut Vec<u8>) -> State {
        match byte {
            b']' => State::String(true),
            b'P' | b'X' | b'^' | b'_' => State::String(false),
            ESC => State::Escape,
            byte => {
                passed.extend_from_slice(&[ESC, byte]);
                State::Text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_taken_out_however_they_are_cut_and_end() {
        let whole = b"a\x1b]52;c;eA==\x07b\x1b]0;t\x1b\\c\x1bPq#\x07x\x1b\\d\x1b]9;n\x1b[1me\x1b_G\x18f\x1b\x1b[0mg\x1b]8;;u";
        for cut in 1..whole.len() {
            let mut filter = WithoutStrings::default();
            let passed: Vec<u8> = whole.chunks(cut).flat_map(|it| filter.pass(it)).collect();
            let text = String::from_utf8(passed).unwrap();
            assert_eq!(text, "abcd\u{1b}[1mef\u{1b}[0mg", "{cut}");
        }
    }
}
