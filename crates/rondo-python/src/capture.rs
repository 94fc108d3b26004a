//! Captures output within a bound: its beginning and its end.

use crate::cell::{LiveOutput, OutputStream};
use rondo_launch::Cleaner;
use std::collections::VecDeque;

/// The output of one call.
pub(crate) struct Capture {
    stdout: BoundedOutput,
    stderr: BoundedOutput,
    live: LiveOutput,
}

impl Capture {
    /// Keeps at most `bytes_max` of each stream.
    pub(crate) fn new(bytes_max: usize, live: LiveOutput) -> Self {
        Self {
            stdout: BoundedOutput::new(bytes_max),
            stderr: BoundedOutput::new(bytes_max),
            live,
        }
    }

    /// Shows the output from here on, and the part that is kept already.
    pub(crate) fn show_to(&mut self, live: LiveOutput) {
        for (stream, kept) in [
            (OutputStream::Stdout, &self.stdout),
            (OutputStream::Stderr, &self.stderr),
        ] {
            let text = kept.so_far();
            if !text.is_empty() {
                live.push(stream, text);
            }
        }
        self.live = live;
    }

    pub(crate) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        let kept = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        kept.push(bytes);
        if let Some(text) = kept.whole_characters(bytes) {
            self.live.push(stream, text);
        }
    }

    pub(crate) fn into_texts(mut self) -> Texts {
        self.stdout.finish();
        self.stderr.finish();
        Texts {
            is_truncated: self.stdout.kept.left_out > 0 || self.stderr.kept.left_out > 0,
            stdout: self.stdout.kept.text(),
            stderr: self.stderr.kept.text(),
        }
    }
}

/// The output of a call that ended.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) is_truncated: bool,
}

/// One stream, as a terminal would show it, bounded.
struct BoundedOutput {
    cleaner: Cleaner,
    kept: HeadAndTail,
    /// A character that is not whole yet.
    partial: Vec<u8>,
}

/// The beginning and the end of a text.
struct HeadAndTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl BoundedOutput {
    fn new(bytes_max: usize) -> Self {
        Self {
            cleaner: Cleaner::default(),
            kept: HeadAndTail {
                half: bytes_max / 2,
                head: Vec::new(),
                tail: VecDeque::new(),
                left_out: 0,
            },
            partial: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let kept = &mut self.kept;
        self.cleaner.feed(bytes, &mut |text| kept.push(text));
    }

    fn finish(&mut self) {
        let kept = &mut self.kept;
        self.cleaner.finish(&mut |text| kept.push(text));
    }

    /// Returns the output kept by now, with the lines that may be drawn again.
    fn so_far(&self) -> String {
        self.kept.text() + &self.cleaner.unfinished()
    }

    /// Returns the part that can be shown now: a character that is split between pieces waits for its rest.
    fn whole_characters(&mut self, bytes: &[u8]) -> Option<String> {
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.len() - incomplete_tail(&self.partial);
        let rest = self.partial.split_off(whole);
        let whole = std::mem::replace(&mut self.partial, rest);
        (!whole.is_empty()).then(|| String::from_utf8_lossy(&whole).into_owned())
    }
}

impl HeadAndTail {
    fn push(&mut self, bytes: &[u8]) {
        let room = self.half.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        // Of a piece that is longer than the tail, only its own tail can stay.
        let passed = rest.len().saturating_sub(self.half);
        self.tail.extend(rest.get(passed..).unwrap_or_default());
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.left_out += u64::try_from(passed + over).unwrap_or(u64::MAX);
    }

    fn text(&self) -> String {
        let (first, second) = self.tail.as_slices();
        let tail = [first, second].concat();
        if self.left_out == 0 {
            let whole = [self.head.as_slice(), &tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        format!(
            "{}\n[... {} bytes left out ...]\n{}",
            String::from_utf8_lossy(&self.head),
            self.left_out,
            String::from_utf8_lossy(&tail)
        )
    }
}

/// Returns how many bytes at the end begin a character without ending it; 0 to 3.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    last.map(|chunk| chunk.invalid())
        .filter(|tail| std::str::from_utf8(tail).is_err_and(|err| err.error_len().is_none()))
        .map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn kept(bytes_max: usize, pieces: &[&str]) -> String {
        let mut kept = BoundedOutput::new(bytes_max);
        pieces.iter().for_each(|it| kept.push(it.as_bytes()));
        kept.finish();
        kept.kept.text()
    }

    #[test]
    fn progress_is_kept_as_a_terminal_would_show_it() {
        let bar = |percent: u32| format!("\r{percent:3}%|###");
        let bars: Vec<String> = (0..=100).map(bar).collect();
        let pieces: Vec<&str> = bars.iter().map(String::as_str).collect();
        assert_eq!(kept(64, &pieces), "100%|###");
        assert_eq!(kept(64, &["\x1b[31mred\x1b[0m a\x08b\r\n"]), "red b\n");
    }

    #[test]
    fn what_fits_is_kept_whole_and_of_more_the_head_and_the_tail() {
        assert_eq!(kept(8, &["abcd", "efg"]), "abcdefg");
        assert_eq!(kept(8, &["abcd", "efgh"]), "abcdefgh");
        let cut = "abcd\n[... 1 bytes left out ...]\nfghi";
        assert_eq!(kept(8, &["abcd", "efgh", "i"]), cut);
        assert_eq!(kept(8, &["abcdefghi"]), cut);
        assert_eq!(kept(8, &["a", "b", "cdefghi"]), cut);
    }

    #[test]
    fn characters_that_are_split_between_pieces_are_shown_whole() {
        let whole = "a\u{e4}\u{20ac}\u{1f600}b";
        for cut in 0..=whole.len() {
            let seen = Arc::new(Mutex::new(String::new()));
            let shown = Arc::clone(&seen);
            let live = LiveOutput::new(move |_, text| shown.lock().unwrap().push_str(&text));
            let mut capture = Capture::new(64, live);
            let (first, second) = whole.as_bytes().split_at(cut);
            capture.push(OutputStream::Stdout, first);
            capture.push(OutputStream::Stdout, second);
            assert_eq!(*seen.lock().unwrap(), whole, "cut at {cut}");
            assert_eq!(capture.into_texts().stdout, whole);
        }
    }
}
