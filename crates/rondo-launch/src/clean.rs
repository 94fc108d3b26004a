//! Turns what a terminal receives into text.

use super::line::Line;
use std::collections::VecDeque;
use std::mem;

/// Turns what a terminal receives into the text a reader wants.
///
/// Escape sequences are removed, bytes that are not UTF-8 become U+FFFD, and a line that was written over is what a
/// terminal shows in the end, whether the cursor went back in it (carriage return, backspace, `CSI G`) or went up and
/// lines were drawn again, as spinners and lists of tasks do. Sequences and characters may be split anywhere. The memory
/// that this takes is bounded.
#[derive(Default)]
pub struct Cleaner {
    parser: vte::Parser,
    lines: Lines,
}

/// The length after which an unfinished line is handed over as it is, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How many finished lines are kept, since they may be drawn again; no program draws more than a screen.
const ROWS_MAX: usize = 64;

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleaner").finish_non_exhaustive()
    }
}

impl Cleaner {
    /// Takes raw output and hands over what is finished: always whole characters.
    pub fn feed(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
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
        if !plain.is_empty() {
            self.lines.hand_over();
            take(&mem::take(&mut self.lines.done));
            take(plain);
        }
        match self.plain_text(last) {
            Some(text) => {
                self.lines.write_text(text);
                take(&mem::take(&mut self.lines.done));
            }
            None => self.parse(last, take),
        }
    }

    /// Hands over the lines at the end of the output.
    pub fn finish(&mut self, take: &mut dyn FnMut(&[u8])) {
        self.lines.hand_over();
        take(&mem::take(&mut self.lines.done));
    }

    /// Returns the lines at the end of the output that were not handed over yet.
    #[must_use]
    pub fn unfinished(&self) -> String {
        self.lines.rest()
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

    /// Returns bytes as text that a terminal only appends, without the parser, which takes each character by itself.
    fn plain_text<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        let is_plain = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\n' | b'\t');
        match self.lines.settled && bytes.iter().all(is_plain) {
            true => std::str::from_utf8(bytes).ok(),
            false => None,
        }
    }

    /// Returns how many bytes are whole lines of plain text that nothing in this output draws again; they skip the parser,
    /// which matters for gigabytes of them.
    fn plain_lines(&self, bytes: &[u8]) -> usize {
        let special = [0x1b, b'\r', 8].iter().any(|byte| bytes.contains(byte));
        let is_at_end = self.lines.at + 1 == self.lines.rows.len();
        if special || !self.lines.settled || !is_at_end {
            return 0;
        }
        // The last ones are kept.
        let ends = bytes.iter().enumerate().rev().filter(|it| *it.1 == b'\n');
        let end = ends.map(|it| it.0 + 1).nth(ROWS_MAX).unwrap_or_default();
        let text = bytes.get(..end).unwrap_or_default();
        std::str::from_utf8(text).map_or(0, str::len)
    }
}

struct Lines {
    /// The last lines; there is always one, and the last one is not finished.
    rows: VecDeque<Line>,
    /// The line that the cursor is in.
    at: usize,
    done: Vec<u8>,
    /// Set if the parser is between sequences, as after a line feed at the end of a chunk.
    settled: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            rows: VecDeque::from([Line::default()]),
            at: 0,
            done: Vec::new(),
            settled: true,
        }
    }
}

impl Lines {
    /// Changes the line that the cursor is in.
    fn change(&mut self, change: impl FnOnce(&mut Line)) {
        if let Some(line) = self.rows.get_mut(self.at) {
            change(line);
        }
    }

    fn write(&mut self, c: char) {
        let mut length = 0;
        self.change(|line| {
            line.write(c);
            length = line.text().len();
        });
        if length >= LINE_BYTES_MAX {
            self.hand_over();
        }
    }

    /// Writes text that holds no control characters but line feeds and tabs.
    fn write_text(&mut self, text: &str) {
        for (number, part) in text.split('\n').enumerate() {
            if number > 0 {
                self.end_line();
            }
            let mut left = part;
            while !left.is_empty() {
                let (now, rest) = left.split_at(left.floor_char_boundary(LINE_BYTES_MAX));
                let mut length = 0;
                self.change(|line| {
                    line.write_text(now);
                    length = line.text().len();
                });
                if length >= LINE_BYTES_MAX {
                    self.hand_over();
                }
                left = rest;
            }
        }
    }

    fn end_line(&mut self) {
        self.at += 1;
        if self.at == self.rows.len() {
            self.rows.push_back(Line::default());
        }
        if self.rows.len() > ROWS_MAX
            && let Some(first) = self.rows.pop_front()
        {
            self.done.extend_from_slice(first.text().as_bytes());
            self.done.push(b'\n');
            self.at -= 1;
        }
        self.change(Line::begin);
        self.settled = true;
    }

    /// Hands over all lines: nothing draws them again.
    fn hand_over(&mut self) {
        let rest = self.rest();
        self.done.extend_from_slice(rest.as_bytes());
        self.rows = VecDeque::from([Line::default()]);
        self.at = 0;
    }

    /// Returns all lines. Of empty ones below the cursor, which were erased, the first one is left.
    fn rest(&self) -> String {
        let below = self.rows.iter().skip(self.at + 1).rev();
        let erased = below.take_while(|it| it.text().is_empty()).count();
        let left = self.rows.len() - erased.saturating_sub(1);
        let left = self.rows.iter().take(left);
        let left: Vec<&str> = left.map(Line::text).collect();
        left.join("\n")
    }

    /// Moves the cursor to another line, into the same column.
    fn go_to(&mut self, row: usize) {
        let column = self.rows.get(self.at).map_or(0, Line::column);
        self.at = row.min(self.rows.len().saturating_sub(1));
        self.change(|line| line.go_to(column));
    }
}

impl vte::Perform for Lines {
    fn print(&mut self, c: char) {
        self.write(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.change(Line::begin),
            8 => self.change(|line| line.go_left(1)),
            b'\t' => self.change(Line::tab),
            other => self.write(char::from(other)),
        }
    }

    fn csi_dispatch(
        &mut self,
        parameters: &vte::Params,
        intermediates: &[u8],
        _is_ignored: bool,
        action: char,
    ) {
        if !intermediates.is_empty() {
            return;
        }
        let first = parameters.iter().next().and_then(|it| it.first());
        let number = first.map_or(0, |it| usize::from(*it));
        // No number is one, for a cursor that moves.
        let count = number.max(1);
        match action {
            'A' => self.go_to(self.at.saturating_sub(count)),
            'B' => self.go_to(self.at.saturating_add(count)),
            'E' | 'F' => {
                let row = match action {
                    'E' => self.at.saturating_add(count),
                    _ => self.at.saturating_sub(count),
                };
                self.go_to(row);
                self.change(Line::begin);
            }
            'G' | '`' => self.change(|line| line.go_to(count - 1)),
            'C' | 'a' => self.change(|line| line.go_to(line.column().saturating_add(count))),
            'D' => self.change(|line| line.go_left(count)),
            'K' => self.change(|line| line.erase(number)),
            'P' => self.change(|line| line.delete(count)),
            'X' => self.change(|line| line.blank(count)),
            '@' => self.change(|line| line.insert_blanks(count)),
            'J' if number == 0 => {
                self.change(|line| line.erase(0));
                self.rows.truncate(self.at + 1);
            }
            _ => {}
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
    fn a_line_that_was_written_over_is_what_a_terminal_shows() {
        for (raw, shown) in [
            // A shorter text leaves the rest of the longer one.
            ("100%\rx", "x00%"),
            ("loading...\r          \rdone", "done"),
            ("abc\x08\x08x", "axc"),
            ("a\x08b\x08 \x08c\n", "c\n"),
            ("-\x08\\\x08|\x08/\x08ok\n", "ok\n"),
            ("| working\x1b[G/\x1b[1G-\x1b[2Kdone\n", " done\n"),
            ("12345\x1b[3Gx\x1b[1Gy", "y2x45"),
            ("12345\x1b[3G\x1b[K", "12"),
            ("12345\x1b[3G\x1b[1Kx", "  x45"),
            ("ab\x1b[3Cc", "ab   c"),
            ("abcdef\x1b[4D\x1b[2P", "abef"),
            ("abcdef\x1b[4D\x1b[2X!", "ab! ef"),
            ("abc\r\x1b[2@x", "x abc"),
            ("\u{4f60}\u{597d}\x08\x08ab", "\u{4f60}ab"),
            ("\u{4f60}\u{597d}\rx", "x \u{597d}"),
            ("e\u{301}x\x08\x08ab", "ab"),
            ("one\ntwo\x1b[A!\n", "one!\ntwo"),
            ("a\tb\rxy\t!", "xy      !"),
            ("a\tb\r\n", "a\tb\n"),
            ("a\t\x1b[mb\x1b[K \n", "a\tb \n"),
            ("a\tb\r123", "123     b"),
            // The second half of a wide character.
            ("wide\u{1f600}\r\x1b[5C#", "wide #"),
            ("a\r", "a"),
            ("trail  \nx", "trail  \nx"),
        ] {
            assert_eq!(cleaned(&[raw.as_bytes()]), shown, "{raw:?}");
            for cut in 0..raw.len() {
                let (first, rest) = raw.as_bytes().split_at(cut);
                assert_eq!(cleaned(&[first, rest]), shown, "{raw:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn of_a_spinner_and_of_a_list_that_is_drawn_again_the_last_form_is_kept() {
        // `npm`, `listr2` and `docker build`, and a list that becomes shorter.
        assert_eq!(
            cleaned(&["⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 2\r\n".as_bytes()]),
            "added 2\n"
        );
        let list = "start\r\n[ ] a\r\n[ ] b\r\n\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[G[x] a\r\n[x] b\r\nend";
        assert_eq!(cleaned(&[list.as_bytes()]), "start\n[x] a\n[x] b\nend");
        let build = "#1 a\r\n#2 b\r\n\x1b[2A\r\x1b[K#1 done\r\n\x1b[1B#3 c\r\n";
        assert_eq!(cleaned(&[build.as_bytes()]), "#1 done\n#2 b\n#3 c\n");
        let shorter = "a\r\nb\r\nc\r\n\x1b[3F\x1b[Jdone";
        assert_eq!(cleaned(&[shorter.as_bytes()]), "done");
        let all = [list, build, shorter].concat();
        let whole = cleaned(&[all.as_bytes()]);
        for cut in 0..=all.len() {
            let (first, rest) = all.as_bytes().split_at(cut);
            assert_eq!(cleaned(&[first, rest]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn no_more_lines_than_the_bound_are_drawn_again_and_none_is_lost() {
        let lines = |count: usize| (0..count).map(|it| format!("{it}\n")).collect::<String>();
        for count in [1, 63, 64, 65, 200] {
            let text = lines(count);
            assert_eq!(cleaned(&[text.as_bytes()]), text);
            assert_eq!(
                cleaned(&[text.as_bytes(), text.as_bytes()]),
                format!("{text}{text}")
            );
            let redrawn = format!("{text}\x1b[{}A\x1b[2Kx\n", count.min(63));
            let mut expected: Vec<&str> = text.lines().collect();
            let at = count - count.min(63);
            expected[at] = "x";
            assert_eq!(cleaned(&[redrawn.as_bytes()]), expected.join("\n") + "\n");
        }
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
            assert!(cleaner.lines.rest().len() <= LINE_BYTES_MAX);
        }
        assert!(bytes > 1_000_000);
        // Nor does a cursor that goes back and forth in it.
        let edits = b"x\t\x1b[1@\x1b[9C\x1b[2D\x08\x1b[P\x1b[X\x1b[1K\x1b[A\x1b[1024@".repeat(250);
        for _ in 0..4 {
            cleaner.feed(&edits, &mut |text| bytes += text.len());
            assert!(cleaner.lines.rest().len() <= LINE_BYTES_MAX);
        }
        cleaner.feed(b"\x1b]0;", &mut |_| {});
        for _ in 0..100 {
            cleaner.feed(&[b'x'; 16 << 10], &mut |text| bytes += text.len());
            assert!(cleaner.lines.rest().len() <= LINE_BYTES_MAX);
        }
    }
}
