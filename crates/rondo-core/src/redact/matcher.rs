//! Finds secrets in text, verbatim and encoded, in one piece or in a stream.

use super::forms::{encoded, parts, plain};
use super::view::{Screen, View, has_controls, is_line_end};
use super::{MARK, Secrets};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The bound on all that is looked for, in bytes. Values as they are come before their encodings.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// How far the first and the last character of one may be apart, in bytes, with all that is between
/// them and not looked at: it bounds what is held back.
const SPAN_BYTES_MAX: usize = 16 << 10;
/// How much is looked at at once, in bytes.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of a value's beginning that may be shown before it is known how it continues.
const SHOWN_BYTES_MAX: usize = 3;

/// Looks for all forms of all values at once.
pub(super) struct Matcher {
    automaton: AhoCorasick,
    /// Search patterns without line ends, in order.
    patterns: Vec<Vec<u8>>,
    longest: usize,
    /// Set for bytes with which a pattern begins.
    begins: [bool; 256],
}

impl Matcher {
    /// Returns nothing if there is nothing to look for.
    pub(super) fn new(values: &[String]) -> Option<Self> {
        let parts = || values.iter().flat_map(|value| parts(value.as_bytes()));
        let mut room = PATTERN_BYTES_MAX;
        let mut patterns = BTreeSet::new();
        for pattern in parts().map(plain).chain(parts().flat_map(encoded)) {
            if pattern.len() >= Secrets::BYTES_MIN && pattern.len() <= room {
                let length = pattern.len();
                room -= if patterns.insert(pattern) { length } else { 0 };
            }
        }
        let patterns: Vec<_> = patterns.into_iter().collect();
        let longest = patterns.iter().map(Vec::len).max()?;
        let mut begins = [false; 256];
        for first in patterns.iter().filter_map(|pattern| pattern.first()) {
            if let Some(begins) = begins.get_mut(usize::from(*first)) {
                *begins = true;
            }
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&patterns)
            .ok()?;
        Some(Self {
            automaton,
            patterns,
            longest,
            begins,
        })
    }

    /// Searches a text that may continue, or not.
    fn look(&self, view: &View, is_end: bool) -> Matches {
        let mut seen = Matches::default();
        let open_from = |from| match is_end {
            true => view.bytes.len(),
            false => self.open_from(view, from),
        };
        let (mut at, mut open) = (0, open_from(0));
        loop {
            let rest = Input::new(&view.bytes).range(at..);
            let found = self.automaton.find(rest);
            let Some(found) = found.filter(|found| found.start() < open) else {
                break;
            };
            at = found.end();
            seen.found.push(view.start(found.start())..view.end(at));
            if open < at {
                open = open_from(at);
            }
        }
        seen.open = view.start(open);
        seen.open_bytes = view.bytes.len() - open;
        seen
    }

    /// Returns from where on the bytes may begin a pattern that continues behind them.
    fn open_from(&self, view: &View, from: usize) -> usize {
        let bytes = &view.bytes;
        let earliest = bytes.len().saturating_sub(self.longest - 1);
        let earliest = earliest.max(view.first_within(SPAN_BYTES_MAX)).max(from);
        let may_go_on = |at: &usize| {
            let rest = bytes.get(*at..).unwrap_or_default();
            let begins = rest
                .first()
                .and_then(|it| self.begins.get(usize::from(*it)));
            begins == Some(&true) && self.goes_on(rest)
        };
        let found = (earliest..bytes.len()).find(may_go_on);
        found.unwrap_or(bytes.len())
    }

    fn goes_on(&self, beginning: &[u8]) -> bool {
        let next = self
            .patterns
            .partition_point(|pattern| pattern.as_slice() <= beginning);
        let next = self.patterns.get(next);
        next.is_some_and(|pattern| pattern.starts_with(beginning))
    }
}

/// Secrets in a text.
#[derive(Default)]
struct Matches {
    /// Ranges, in order.
    found: Vec<Range<usize>>,
    /// From where on it may hold one that continues behind it.
    open: usize,
    /// How many bytes of that one are there.
    open_bytes: usize,
}

/// Redacts secrets in a stream of bytes, also if they are split between pieces, in all
/// [forms that are found](Secrets).
///
/// Bytes that may be the beginning of a secret are held back until it is decided: at most 32 KiB.
#[derive(Clone)]
pub struct Redactor {
    matcher: Option<Arc<Matcher>>,
    held: Vec<u8>,
    /// How many of these were shown.
    shown: usize,
    /// How many bytes of a possible beginning are there.
    open_bytes: usize,
    /// Screen that a terminal makes of the held bytes.
    screen: Screen,
    has_found: bool,
}

impl Redactor {
    pub(super) fn new(matcher: Option<Arc<Matcher>>) -> Self {
        Self {
            matcher,
            held: Vec::new(),
            shown: 0,
            open_bytes: 0,
            screen: Screen::default(),
            has_found: false,
        }
    }

    /// Takes a piece, and returns the bytes that are now known to be free of secrets.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.matcher.clone() {
            None => Cow::Borrowed(bytes),
            Some(matcher) => {
                let mut told = Vec::new();
                for piece in bytes.chunks(PIECE_BYTES) {
                    self.held.extend_from_slice(piece);
                    self.take(&matcher, false, &mut told);
                }
                Cow::Owned(told)
            }
        }
    }

    /// Returns the result that [`Self::push`] would return, and the redacted rest as far as it is decided, without
    /// taking the piece.
    #[must_use]
    pub fn peek(&self, bytes: &[u8]) -> Vec<u8> {
        self.clone().push(bytes).into_owned()
    }

    /// Returns whether [`Self::show`] has something to return.
    #[must_use]
    pub fn can_show(&self) -> bool {
        self.open_bytes <= SHOWN_BYTES_MAX && self.shown < self.held.len()
    }

    /// Returns the bytes that are held back, so that a user who waits for output (such as a prompt) sees it:
    /// at most three bytes that may begin a secret, line ends and terminal sequences. If it is a secret, its
    /// rest is redacted all the same.
    pub fn show(&mut self) -> Vec<u8> {
        if !self.can_show() {
            return Vec::new();
        }
        let shown = std::mem::replace(&mut self.shown, self.held.len());
        self.held.get(shown..).unwrap_or_default().to_vec()
    }

    /// Ends the stream, and returns the bytes that were held back, redacted.
    pub fn finish(&mut self) -> Vec<u8> {
        match self.matcher.clone() {
            None => Vec::new(),
            Some(matcher) => {
                let mut told = Vec::new();
                self.take(&matcher, true, &mut told);
                told
            }
        }
    }

    /// Returns whether that text, which is whole, holds a secret.
    pub(super) fn finds(mut self, text: &str) -> bool {
        let Some(matcher) = self.matcher.clone() else {
            return false;
        };
        let mut told = Vec::new();
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            self.held.extend_from_slice(piece);
            self.take(&matcher, false, &mut told);
            told.clear();
            if self.has_found {
                return true;
            }
        }
        self.take(&matcher, true, &mut told);
        self.has_found
    }

    /// Returns the held text as it is, and as a terminal shows it if that is another text. Either
    /// may hold a secret: the content of a sequence is not shown, but is in the bytes.
    fn views(&self) -> impl Iterator<Item = View> {
        let lines = View::of(&self.held, |byte| !is_line_end(byte));
        let mut screen = self.screen;
        let is_other = screen != Screen::Text || has_controls(&self.held);
        let shown = is_other.then(|| View::of(&self.held, |byte| screen.shows(byte)));
        std::iter::once(lines).chain(shown)
    }

    fn take(&mut self, matcher: &Matcher, is_end: bool, out: &mut Vec<u8>) {
        let mut all = Vec::new();
        let (mut end, mut open_bytes) = (self.held.len(), 0);
        for seen in self.views().map(|view| matcher.look(&view, is_end)) {
            all.extend(seen.found);
            end = end.min(seen.open);
            open_bytes = seen.open_bytes.max(open_bytes);
        }
        self.open_bytes = open_bytes;
        all.sort_by_key(|found| found.start);
        let (mut from, mut marked) = (self.shown, 0);
        for found in all {
            // What is open behind one of the other kind is found again.
            if found.start >= end {
                break;
            }
            if found.start >= marked {
                let before = self.held.get(from..found.start);
                out.extend_from_slice(before.unwrap_or_default());
                out.extend_from_slice(MARK.as_bytes());
            }
            self.has_found = true;
            marked = marked.max(found.end);
            from = from.max(found.end);
            end = end.max(found.end);
        }
        out.extend_from_slice(self.held.get(from..end).unwrap_or_default());
        self.shown = from.saturating_sub(end);
        for byte in self.held.drain(..end) {
            self.screen.shows(byte);
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::forms::PART_BYTES;
    use super::*;
    use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};

    const KEY: &str =
        "sk-0123?>ab~cd\u{20ac}-long-enough-to-be-broken-into-lines-by-base64-0123456789";

    fn secrets() -> Secrets {
        Secrets::new([KEY.to_owned(), "sk-0123?>".to_owned()])
    }

    fn streamed(text: &str, piece: usize) -> String {
        let mut redactor = secrets().redactor();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            out.extend_from_slice(&redactor.push(piece));
        }
        out.extend_from_slice(&redactor.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_is_found_however_it_is_cut_into_pieces_and_the_longest_first() {
        let text = format!("s sk-{KEY}! sk-0123?>ab sk-0123? {KEY}");
        let expected = "s sk-[redacted]! [redacted]ab sk-0123? [redacted]";
        for piece in 1..=text.len() {
            assert_eq!(streamed(&text, piece), expected, "{piece}");
        }
        assert_eq!(secrets().text(text), expected);
    }

    #[test]
    fn a_value_is_found_although_terminal_sequences_are_in_it_and_in_them() {
        let (head, tail) = KEY.split_at(9);
        let inside = [
            "\u{1b}[0m",
            "\u{1b}[38;5;196m\u{1b}[1m",
            "\u{1b}(B",
            "\u{1b}7",
            "\u{1b}]0;a title\u{7}",
            "\u{1b}]8;;http://address\u{1b}\\",
            "\u{1b}P1$r\u{1b}\\",
            "\0",
            "\u{7f}\u{7}",
            "\r\n\u{1b}[K",
        ];
        for inside in inside {
            let text = format!("a{inside} {head}{inside}{tail}{inside} z");
            let expected = format!("a{inside} [redacted]{inside} z");
            for piece in 1..=text.len() {
                assert_eq!(streamed(&text, piece), expected, "{inside:?} {piece}");
            }
            assert_eq!(secrets().text(text), expected);
        }
        for around in [
            ("\u{1b}]0;", "\u{7}"),
            ("\u{1b}]8;;http://", "\u{1b}\\x\u{1b}]8;;\u{1b}\\"),
            ("\u{1b}", ""),
            ("\u{1b}]never ends ", " "),
        ] {
            let text = format!("a {}{KEY}{} z", around.0, around.1);
            let expected = format!("a {}[redacted]{} z", around.0, around.1);
            for piece in 1..=text.len() {
                assert_eq!(streamed(&text, piece), expected, "{around:?} {piece}");
            }
        }
    }

    #[test]
    fn a_value_in_an_address_or_in_json_is_found() {
        let value = "pass/word+with \"all\" <that>";
        let secrets = Secrets::new([value.to_owned()]);
        let forms = [
            "pass%2Fword%2Bwith%20%22all%22%20%3Cthat%3E",
            "pass%2fword%2bwith+%22all%22+%3cthat%3e",
            "pass/word%2Bwith%20%22all%22%20%3Cthat%3E",
            r#"pass/word+with \"all\" <that>"#,
            r#"pass\/word+with \"all\" <that>"#,
            r#"pass/word+with \"all\" \u003cthat\u003e"#,
            r"pass/word\u002Bwith \u0022all\u0022 \u003Cthat\u003E",
        ];
        for form in forms {
            let told = secrets.text(format!("a={form}&b"));
            assert_eq!(told, "a=[redacted]&b", "{form}");
        }
    }

    #[test]
    fn what_goes_on_for_ever_within_a_value_is_not_held_back_for_ever() {
        for endless in ["\n", "\u{1b}[0m", "\u{1b}]0;title", "\0"] {
            let mut redactor = secrets().redactor();
            let mut told = redactor.push(b"sk-").len();
            let endless = endless.repeat(1_000);
            for _ in 0..40 {
                told += redactor.push(endless.as_bytes()).len();
                assert!(redactor.held.len() <= SPAN_BYTES_MAX + PIECE_BYTES);
            }
            told += redactor.finish().len();
            assert_eq!(told, 3 + 40 * endless.len());
        }
    }

    #[test]
    fn the_end_of_a_coloured_question_is_shown_to_who_waits() {
        let mut redactor = secrets().redactor();
        let mut told = redactor.push(b"which keys\x1b[0m").into_owned();
        assert!(redactor.can_show());
        told.append(&mut redactor.show());
        assert_eq!(told, b"which keys\x1b[0m");
        assert_eq!(*redactor.push(b"k-0123?>!"), *b"[redacted]!");
    }

    #[test]
    fn base64_and_hex_of_a_value_are_found_at_every_place_and_across_lines() {
        for before in ["", "a", "ab", "abc"] {
            let whole = format!("{before}{KEY}\n");
            let forms = [
                BASE64.encode(whole.as_bytes()),
                BASE64URL.encode(whole.as_bytes()),
                HEXLOWER.encode(whole.as_bytes()),
                HEXUPPER.encode(whole.as_bytes()),
            ];
            for form in forms {
                let lines: Vec<_> = form.as_bytes().chunks(29).collect();
                let broken = String::from_utf8(lines.join(&b"\r\n"[..])).unwrap();
                for text in [form, broken] {
                    for piece in [1, 7, text.len()] {
                        let told = streamed(&text, piece);
                        // What is around it, and digits that are shared with that.
                        let rest = told.replacen(MARK, "", 1);
                        assert!(told.contains(MARK) && rest.len() <= 14, "{told}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_begins_no_value_is_returned_at_once_and_little_is_shown_to_who_waits() {
        let mut redactor = secrets().redactor();
        assert_eq!(*redactor.push(b"password: "), *b"password: ");
        assert_eq!(*redactor.push(b"yes\n"), *b"ye");
        assert!(redactor.can_show());
        assert_eq!(redactor.show(), b"s\n");
        assert_eq!(redactor.show(), b"");
        assert_eq!(*redactor.push(b"x sk-0"), *b"x ");
        assert!(!redactor.can_show());
        assert_eq!(redactor.show(), b"");
        assert_eq!(*redactor.push(b"123?>! s"), *b"[redacted]! ");
        assert_eq!(redactor.show(), b"s");
        assert_eq!(*redactor.push(b"k-0123?>!"), *b"[redacted]!");
        assert_eq!(redactor.finish(), b"");
    }

    #[test]
    fn long_values_are_found_in_parts_and_hold_back_a_bounded_length() {
        let value: String = (0..3000).map(|n| format!("{n:x}.")).collect();
        let secrets = Secrets::new([value.clone()]);
        let mut redactor = secrets.redactor();
        let mut out = Vec::new();
        for piece in value.as_bytes().chunks(10) {
            out.extend_from_slice(&redactor.push(piece));
            assert!(redactor.held.len() < 2 * PART_BYTES + 16);
        }
        out.extend_from_slice(&redactor.finish());
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, MARK.repeat(parts(value.as_bytes()).count()));
    }
}
