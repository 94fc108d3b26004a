//! Finds known values in text, as they are and encoded, whole or piece by piece.

use super::{MARK, Secrets};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use data_encoding::{BASE64_NOPAD, HEXLOWER, HEXUPPER};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The bound on all that is looked for, in bytes. Values as they are come before their encodings.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Longer values are looked for in parts of this length, in bytes: it bounds what is held back.
const PART_BYTES: usize = 1 << 10;
/// What of a value's beginning may be shown before it is known how it goes on, in bytes.
const SHOWN_BYTES_MAX: usize = 3;

/// Looks for all forms of all values at once.
pub(super) struct Matcher {
    automaton: AhoCorasick,
    /// What is looked for, without line ends, in order.
    patterns: Vec<Vec<u8>>,
    longest: usize,
    /// Whether a pattern begins with that byte.
    begins: [bool; 256],
}

impl Matcher {
    /// Returns nothing where there is nothing to look for.
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

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.automaton.is_match(&View::of(text.as_bytes()).bytes)
    }

    /// Returns from where on the bytes may begin a pattern that goes on behind them.
    fn open_from(&self, bytes: &[u8], from: usize) -> usize {
        let earliest = bytes.len().saturating_sub(self.longest - 1).max(from);
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

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        // What is left at the end is never too short to be looked for.
        let length = match rest.len() {
            0 => return None,
            length if length < PART_BYTES + Secrets::BYTES_MIN => length,
            _ => PART_BYTES,
        };
        let (part, behind) = rest.split_at(length);
        rest = behind;
        Some(part)
    })
}

fn plain(part: &[u8]) -> Vec<u8> {
    let is_shown = |byte: &u8| !is_line_end(*byte);
    part.iter().copied().filter(is_shown).collect()
}

fn encoded(part: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let hex = [HEXLOWER.encode(part), HEXUPPER.encode(part)];
    let base64 = (0..3).flat_map(|before| {
        let standard = inner_base64(part, before);
        let url = standard.replace('+', "-").replace('/', "_");
        [standard, url]
    });
    let hex = hex.into_iter().chain(base64.collect::<Vec<_>>());
    hex.map(String::into_bytes)
}

/// Returns those digits of the value, behind so many other bytes, that stand for nothing else.
fn inner_base64(part: &[u8], before: usize) -> String {
    let mut whole = vec![0; before];
    whole.extend_from_slice(part);
    let digits = BASE64_NOPAD.encode(&whole);
    let (first, end) = ((before * 8).div_ceil(6), whole.len() * 8 / 6);
    digits.get(first..end).unwrap_or_default().to_owned()
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Bytes without line ends, which terminals and encoders put between any two.
struct View {
    bytes: Vec<u8>,
    /// Where each of them stands.
    places: Vec<usize>,
    whole: usize,
}

impl View {
    fn of(whole: &[u8]) -> Self {
        let shown = whole
            .iter()
            .enumerate()
            .filter(|(_, it)| !is_line_end(**it));
        let (places, bytes) = shown.map(|(place, byte)| (place, *byte)).unzip();
        Self {
            bytes,
            places,
            whole: whole.len(),
        }
    }

    /// Where the byte stands; the end of all where it is behind them.
    fn start(&self, index: usize) -> usize {
        self.places.get(index).copied().unwrap_or(self.whole)
    }

    /// Where those before `index` end.
    fn end(&self, index: usize) -> usize {
        let last = index.checked_sub(1).and_then(|last| self.places.get(last));
        last.map_or(0, |place| place + 1)
    }
}

/// Keeps secrets out of a stream of bytes, also where they are split between pieces, encoded in base64
/// or hexadecimal digits, or broken into lines.
///
/// What may be the beginning of one is held back until it is known: less than the longest form of one,
/// and the line ends within.
#[derive(Clone)]
pub struct Redactor {
    matcher: Option<Arc<Matcher>>,
    held: Vec<u8>,
    /// How many of these were shown.
    shown: usize,
}

impl Redactor {
    pub(super) fn new(matcher: Option<Arc<Matcher>>) -> Self {
        Self {
            matcher,
            held: Vec::new(),
            shown: 0,
        }
    }

    /// Takes a piece, and returns what is known to hold no secret by now.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.matcher.clone() {
            None => Cow::Borrowed(bytes),
            Some(matcher) => {
                self.held.extend_from_slice(bytes);
                Cow::Owned(self.take(&matcher, false))
            }
        }
    }

    /// Returns what [`Self::push`] would, and what is held back as far as that is known then, without
    /// taking the piece.
    #[must_use]
    pub fn peek(&self, bytes: &[u8]) -> Vec<u8> {
        self.clone().push(bytes).into_owned()
    }

    /// Returns whether [`Self::show`] has something to return.
    #[must_use]
    pub fn can_show(&self) -> bool {
        let bytes = self.held.iter().filter(|it| !is_line_end(**it)).count();
        bytes <= SHOWN_BYTES_MAX && self.shown < self.held.len()
    }

    /// Returns what is held back, for people who wait for it: at most three bytes that may begin a
    /// secret, and line ends. The rest of that one is not returned either way.
    pub fn show(&mut self) -> Vec<u8> {
        if !self.can_show() {
            return Vec::new();
        }
        let shown = std::mem::replace(&mut self.shown, self.held.len());
        self.held.get(shown..).unwrap_or_default().to_vec()
    }

    /// Returns what was held back, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        match self.matcher.clone() {
            None => Vec::new(),
            Some(matcher) => self.take(&matcher, true),
        }
    }

    fn take(&mut self, matcher: &Matcher, is_end: bool) -> Vec<u8> {
        let view = View::of(&self.held);
        let open_from = |from| match is_end {
            true => view.bytes.len(),
            false => matcher.open_from(&view.bytes, from),
        };
        let (mut at, mut open) = (0, open_from(0));
        let (mut from, mut out) = (self.shown, Vec::with_capacity(self.held.len()));
        loop {
            let rest = Input::new(&view.bytes).range(at..);
            let found = matcher.automaton.find(rest);
            let Some(found) = found.filter(|found| found.start() < open) else {
                break;
            };
            let before = self.held.get(from..view.start(found.start()));
            out.extend_from_slice(before.unwrap_or_default());
            out.extend_from_slice(MARK.as_bytes());
            at = found.end();
            from = view.end(at);
            if open < at {
                open = open_from(at);
            }
        }
        let end = view.start(open);
        out.extend_from_slice(self.held.get(from..end).unwrap_or_default());
        self.shown = from.saturating_sub(end);
        self.held.drain(..end);
        out
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::{BASE64, BASE64URL};

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
