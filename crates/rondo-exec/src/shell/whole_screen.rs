//! Leaves out what full-screen programs draw: they switch to the terminal's other screen, and nothing of it stays on the
//! terminal once they switch back.

/// The modes that switch to the other screen, as xterm has them.
const MODES: [&[u8]; 3] = [b"47", b"1047", b"1049"];
/// The bytes of a sequence that sets or resets modes; a longer one is not such a sequence.
const SEQUENCE_BYTES_MAX: usize = 64;
/// How such a sequence begins.
const INTRODUCER: &[u8] = b"\x1b[?";

/// Passes on output but for what is drawn on the other screen.
#[derive(Debug, Default)]
pub(super) struct WholeScreen {
    /// Set while the other screen is shown.
    is_on: bool,
    was_used: bool,
    /// The beginning of a sequence that may switch.
    sequence: Vec<u8>,
}

impl WholeScreen {
    /// Returns whether the other screen was used.
    pub(super) fn was_used(&self) -> bool {
        self.was_used
    }

    /// Takes output, and returns what of it stays on the terminal.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut kept);
        }
        kept
    }

    /// Returns the bytes that were held back, at the end of the output.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut kept = Vec::new();
        self.let_go(&mut kept);
        kept
    }

    fn take(&mut self, byte: u8, kept: &mut Vec<u8>) {
        let is_parameter = byte.is_ascii_digit() || byte == b';';
        match (INTRODUCER.get(self.sequence.len()), byte) {
            (Some(next), byte) if *next == byte => self.sequence.push(byte),
            (None, byte) if is_parameter && self.sequence.len() < SEQUENCE_BYTES_MAX => {
                self.sequence.push(byte);
            }
            (None, b'h' | b'l') => {
                let was_on = self.is_on;
                let switches = self.switches();
                self.sequence.push(byte);
                if switches {
                    self.is_on = byte == b'h';
                    self.was_used |= self.is_on;
                }
                match was_on || self.is_on {
                    true => self.sequence.clear(),
                    false => self.let_go(kept),
                }
            }
            (_, byte) => {
                self.let_go(kept);
                match byte == b'\x1b' {
                    true => self.sequence.push(byte),
                    false if !self.is_on => kept.push(byte),
                    false => {}
                }
            }
        }
    }

    fn switches(&self) -> bool {
        let parameters = self.sequence.get(INTRODUCER.len()..).unwrap_or_default();
        let mut modes = parameters.split(|byte| *byte == b';');
        modes.any(|mode| MODES.contains(&mode))
    }

    fn let_go(&mut self, kept: &mut Vec<u8>) {
        if !self.is_on {
            kept.extend_from_slice(&self.sequence);
        }
        self.sequence.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pieces: &[&str]) -> (String, bool) {
        let mut screen = WholeScreen::default();
        let mut kept: Vec<u8> = pieces
            .iter()
            .flat_map(|it| screen.push(it.as_bytes()))
            .collect();
        kept.extend(screen.finish());
        (String::from_utf8(kept).unwrap(), screen.was_used())
    }

    #[test]
    fn what_is_drawn_on_the_other_screen_is_left_out() {
        let (text, was_used) = kept(&["before\n\x1b[?1049h\x1b[Hthe file\x1b[?1049lafter"]);
        assert_eq!((text.as_str(), was_used), ("before\nafter", true));
        let (text, _) = kept(&["a\x1b[?25;47hdrawn\x1b[?47l\x1b[?25hb"]);
        assert_eq!(text, "a\x1b[?25hb");
        // A program that is killed does not switch back.
        assert_eq!(kept(&["a\x1b[?1047hdrawn"]).0, "a");
    }

    #[test]
    fn all_other_output_is_kept_however_it_is_cut() {
        let all = "a\x1b[?25lb\x1b[31mred\x1b[0m\x1b\x1b[?1049x\x1b[?1049";
        for at in 0..all.len() {
            let (first, second) = all.split_at(at);
            assert_eq!(kept(&[first, second]), (all.to_owned(), false), "{at}");
        }
        let drawn = "a\x1b[?1049hdrawn\x1b[?1049lb";
        for at in 0..drawn.len() {
            let (first, second) = drawn.split_at(at);
            assert_eq!(kept(&[first, second]), ("ab".to_owned(), true), "{at}");
        }
        let long = format!("\x1b[?{}h", "1049;".repeat(20));
        assert_eq!(kept(&[&long]), (long.clone(), false));
    }
}
