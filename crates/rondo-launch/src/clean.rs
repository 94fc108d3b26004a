//! Turns what a terminal receives into text.

use std::mem;

/// Turns what a terminal receives into the text a reader wants.
///
/// Escape sequences are removed, bytes that are not UTF-8 become U+FFFD, and of a line that was
/// overwritten by carriage returns only its last form is kept. Sequences and characters may be
/// split anywhere. Memory is bounded by [`LINE_BYTES_MAX`].
#[derive(Default)]
pub(super) struct Cleaner {
    parser: vte::Parser,
    lines: Lines,
}

/// The length after which an unfinished line is handed over as it is, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

impl Cleaner {
    /// Takes raw output and hands over what is finished: always whole characters.
    pub(super) fn feed(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
        let unsettled = if self.lines.settled {
            0
        } else {
            bytes
                .iter()
                .position(|b| *b == b'\n')
                .map_or(bytes.len(), |at| at + 1)
        };
        let (first, rest) = bytes.split_at(unsettled);
        self.parse(first, take);
        let (plain, last) = rest.split_at(self.plain_lines(rest));
        take(plain);
        self.parse(last, take);
    }

    /// Hands over the unfinished line at the end of the output.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(&[u8])) {
        take(mem::take(&mut self.lines.line).as_bytes());
    }

    /// Returns the unfinished line at the end of the output.
    pub(super) fn unfinished(&self) -> &str {
        &self.lines.line
    }

    fn parse(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
        if bytes.is_empty() {
            return;
        }
        self.lines.settled = false;
        self.parser.advance(&mut self.lines, bytes);
        self.lines.settled &= bytes.last() == Some(&b'\n');
        take(&mem::take(&mut self.lines.done));
    }

    /// Returns how many bytes are whole lines of plain text; they skip the parser, which matters
    /// for gigabytes of them.
    fn plain_lines(&self, bytes: &[u8]) -> usize {
        let special = [0x1b, b'\r', 8].iter().any(|byte| bytes.contains(byte));
        if special || !self.lines.settled {
            return 0;
        }
        let end = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let text = bytes.get(..end).unwrap_or_default();
        std::str::from_utf8(text).map_or(0, str::len)
    }
}

struct Lines {
    line: String,
    done: Vec<u8>,
    overwrites: bool,
    /// Whether the parser is between sequences, as after a line feed at the end of a chunk.
    settled: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            line: String::new(),
            done: Vec::new(),
            overwrites: false,
            settled: true,
        }
    }
}

impl Lines {
    fn append(&mut self, c: char) {
        if mem::take(&mut self.overwrites) {
            self.line.clear();
        }
        self.line.push(c);
        if self.line.len() >= LINE_BYTES_MAX {
            self.done.extend_from_slice(self.line.as_bytes());
            self.line.clear();
        }
    }
}

impl vte::Perform for Lines {
    fn print(&mut self, c: char) {
        self.append(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.overwrites = false;
                self.line.push('\n');
                self.done.extend_from_slice(self.line.as_bytes());
                self.line.clear();
                self.settled = true;
            }
            b'\r' => self.overwrites = true,
            8 => {
                self.line.pop();
            }
            other => self.append(char::from(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(chunks: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut cleaner = Cleaner::default();
        for chunk in chunks {
            cleaner.feed(chunk, &mut |text| out.extend_from_slice(text));
        }
        cleaner.finish(&mut |text| out.extend_from_slice(text));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        assert_eq!(
            cleaned(&[b"\x1b[31mred\x1b[0m\tx\n\x1b]0;title\x07done"]),
            "red\tx\ndone"
        );
    }

    #[test]
    fn only_the_last_form_of_an_overwritten_line_is_kept() {
        assert_eq!(cleaned(&[b"10%\r50%\r100%\nend\r\nx"]), "100%\nend\nx");
    }

    #[test]
    fn every_split_gives_the_same_text() {
        let raw = "a\u{e4}\u{20ac}\u{1f600}\n\x1b[1mb\x1b[0m\u{e4}\nplain \u{20ac} text".as_bytes();
        let whole = cleaned(&[raw]);
        assert_eq!(
            whole,
            "a\u{e4}\u{20ac}\u{1f600}\nb\u{e4}\nplain \u{20ac} text"
        );
        for cut in 0..=raw.len() {
            assert_eq!(cleaned(&[&raw[..cut], &raw[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(cleaned(&[b"a\xff\xfeb\n"]), "a\u{fffd}\u{fffd}b\n");
    }

    #[test]
    fn an_endless_line_and_an_endless_sequence_cost_bounded_memory() {
        let mut cleaner = Cleaner::default();
        let mut bytes = 0;
        cleaner.feed(b"\r", &mut |_| {});
        for _ in 0..100 {
            cleaner.feed(&[b'x'; 16 << 10], &mut |text| bytes += text.len());
            assert!(cleaner.lines.line.len() <= LINE_BYTES_MAX);
        }
        assert!(bytes > 1_000_000);
        cleaner.feed(b"\x1b]0;", &mut |_| {});
        for _ in 0..100 {
            cleaner.feed(&[b'x'; 16 << 10], &mut |text| bytes += text.len());
            assert!(cleaner.lines.line.len() <= LINE_BYTES_MAX);
        }
    }
}
