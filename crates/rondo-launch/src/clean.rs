//! Turns what a terminal receives into text.

use std::collections::VecDeque;
use std::mem;

/// Turns what a terminal receives into the text a reader wants.
///
/// Escape sequences are removed, bytes that are not UTF-8 become U+FFFD, and of a line that was
/// overwritten only its last form is kept, be it by carriage returns, or because the cursor went up and lines were
/// erased or drawn again, as spinners and lists of tasks do. Sequences and characters may be
/// split anywhere. Memory is bounded by [`LINE_BYTES_MAX`] and [`ROWS_MAX`].
#[derive(Default)]
pub(super) struct Cleaner {
    parser: vte::Parser,
    lines: Lines,
}

/// The length after which an unfinished line is handed over as it is, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// How many finished lines are kept, since they may be drawn again; no program draws more than a screen.
const ROWS_MAX: usize = 64;

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
        if !plain.is_empty() {
            self.lines.hand_over();
            take(&mem::take(&mut self.lines.done));
            take(plain);
        }
        self.parse(last, take);
    }

    /// Hands over the lines at the end of the output.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(&[u8])) {
        self.lines.hand_over();
        take(&mem::take(&mut self.lines.done));
    }

    /// Returns the lines at the end of the output that were not handed over yet.
    pub(super) fn unfinished(&self) -> String {
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

    /// Returns how many bytes are whole lines of plain text that nothing in this output draws again; they skip the parser,
    /// which matters for gigabytes of them.
    fn plain_lines(&self, bytes: &[u8]) -> usize {
        let special = [0x1b, b'\r', 8].iter().any(|byte| bytes.contains(byte));
        if special || !self.lines.settled {
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
    rows: VecDeque<String>,
    /// The line that the cursor is in.
    at: usize,
    done: Vec<u8>,
    /// Whether the cursor is at the beginning of its line.
    overwrites: bool,
    /// Whether the parser is between sequences, as after a line feed at the end of a chunk.
    settled: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            rows: VecDeque::from([String::new()]),
            at: 0,
            done: Vec::new(),
            overwrites: false,
            settled: true,
        }
    }
}

impl Lines {
    /// Changes the line that the cursor is in.
    fn change(&mut self, change: impl FnOnce(&mut String)) {
        if let Some(line) = self.rows.get_mut(self.at) {
            change(line);
        }
    }

    fn append(&mut self, c: char) {
        let overwrites = mem::take(&mut self.overwrites);
        let mut length = 0;
        self.change(|line| {
            if overwrites {
                line.clear();
            }
            line.push(c);
            length = line.len();
        });
        if length >= LINE_BYTES_MAX {
            self.hand_over();
        }
    }

    fn end_line(&mut self) {
        self.at += 1;
        if self.at == self.rows.len() {
            self.rows.push_back(String::new());
        }
        if self.rows.len() > ROWS_MAX
            && let Some(first) = self.rows.pop_front()
        {
            self.done.extend_from_slice(first.as_bytes());
            self.done.push(b'\n');
            self.at -= 1;
        }
        // What is there was drawn before.
        self.overwrites = true;
        self.settled = true;
    }

    /// Hands over all lines: nothing draws them again.
    fn hand_over(&mut self) {
        let rest = self.rest();
        self.done.extend_from_slice(rest.as_bytes());
        self.rows = VecDeque::from([String::new()]);
        self.at = 0;
    }

    /// Returns all lines. Of empty ones below the cursor, which were erased, the first one is left.
    fn rest(&self) -> String {
        let below = self.rows.iter().skip(self.at + 1).rev();
        let erased = below.take_while(|it| it.is_empty()).count();
        let left = self.rows.len() - erased.saturating_sub(1);
        let left = self.rows.iter().take(left);
        let left: Vec<&str> = left.map(String::as_str).collect();
        left.join("\n")
    }

    fn go_up(&mut self, lines: usize) {
        self.at = self.at.saturating_sub(lines);
    }

    fn go_down(&mut self, lines: usize) {
        let last = self.rows.len().saturating_sub(1);
        self.at = self.at.saturating_add(lines).min(last);
    }

    /// Erases from the cursor on, to it, or all of its line.
    fn erase_in_line(&mut self, part: usize) {
        if part != 0 || self.overwrites {
            self.change(String::clear);
        }
    }
}

impl vte::Perform for Lines {
    fn print(&mut self, c: char) {
        self.append(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.overwrites = true,
            8 => self.change(|line| {
                line.pop();
            }),
            other => self.append(char::from(other)),
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
            'A' => self.go_up(count),
            'B' => self.go_down(count),
            'E' | 'F' => {
                match action {
                    'E' => self.go_down(count),
                    _ => self.go_up(count),
                }
                self.overwrites = true;
            }
            'G' if count == 1 => self.overwrites = true,
            'D' => {
                let mut length = 0;
                self.change(|line| length = line.chars().count());
                self.overwrites |= count >= length;
            }
            'K' => self.erase_in_line(number),
            'J' if number == 0 => {
                self.erase_in_line(0);
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
        cleaner.feed(b"\x1b]0;", &mut |_| {});
        for _ in 0..100 {
            cleaner.feed(&[b'x'; 16 << 10], &mut |text| bytes += text.len());
            assert!(cleaner.lines.rest().len() <= LINE_BYTES_MAX);
        }
    }
}
