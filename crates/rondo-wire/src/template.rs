//! The fast path for deltas.
//!
//! A stream is hundreds of deltas in a row, whose bytes differ in the text and in a few values that
//! its dialect does not look at. An event that is byte for byte one that was parsed, but for these,
//! says what that one said, with another text; so it need not be parsed. Anything else is: the
//! fast path is never taken on a guess.

use serde_json::value::RawValue;
use std::borrow::Cow;

/// The bound on an event that is kept to compare others with, in bytes.
const SAMPLE_BYTES_MAX: usize = 8192;

/// Counts beside a text, at most.
const COUNTS_MAX: usize = 5;

/// An event that was parsed, with the places where the next one may differ.
///
/// `D` is the event without its text: enough to emit it again with another one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template<D> {
    sample: String,
    /// In the order of their places.
    holes: Vec<Hole>,
    delta: Option<D>,
}

/// A value that may differ, by its place in the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hole {
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// The text, in its quotes.
    Text,
    /// A whole number, or a string without escapes, whose value is not looked at.
    Unread,
    /// A count, by its number.
    Count(usize),
}

/// A delta that repeats the sample's, with another text; read without the parser.
#[derive(Debug, PartialEq)]
pub(crate) struct RepeatedDelta<'j, D> {
    pub(crate) delta: D,
    /// Never empty.
    pub(crate) text: Cow<'j, str>,
    /// The counts beside it, those that the template has.
    pub(crate) counts: [Option<u64>; COUNTS_MAX],
}

impl<D> Default for Template<D> {
    fn default() -> Self {
        Self {
            sample: String::new(),
            holes: Vec::new(),
            delta: None,
        }
    }
}

impl<D: Copy> Template<D> {
    /// Reads an event that differs from the learnt one only where it may.
    pub(crate) fn read<'j>(&self, json: &'j str) -> Option<RepeatedDelta<'j, D>> {
        let delta = self.delta?;
        let (mut text, mut counts) = (None, [None; COUNTS_MAX]);
        let (mut from, mut rest) = (0, json);
        for hole in &self.holes {
            rest = rest.strip_prefix(self.sample.get(from..hole.start)?)?;
            let (value, behind) = rest.split_at_checked(hole.kind.len_of(rest)?)?;
            match hole.kind {
                Kind::Text => text = Some(unquoted(value)?),
                Kind::Count(number) => *counts.get_mut(number)? = Some(value.parse().ok()?),
                Kind::Unread => {}
            }
            (from, rest) = (hole.end, behind);
        }
        if rest != self.sample.get(from..)? {
            return None;
        }
        Some(RepeatedDelta {
            delta,
            text: text.filter(|text| !text.is_empty())?,
            counts,
        })
    }

    /// Learns an event that was parsed and says nothing but `delta` with `text`.
    ///
    /// All values are slices of `json`: `text` is what stands between the quotes, `unread` and
    /// `counts` are raw. Without a text that is one, nothing is learnt; another value that is not of
    /// its kind stays part of the sample.
    pub(crate) fn learn(
        &mut self,
        json: &str,
        delta: D,
        text: &str,
        unread: &[Option<&str>],
        counts: &[Option<&str>],
    ) {
        self.delta = None;
        self.holes.clear();
        let quoted = place_of(text, json).and_then(|(start, end)| {
            let hole = Hole {
                start: start.checked_sub(1)?,
                end: end.checked_add(1)?,
                kind: Kind::Text,
            };
            (json.get(hole.start..=hole.start)? == "\"").then_some(hole)
        });
        let Some(quoted) = quoted.filter(|_| json.len() <= SAMPLE_BYTES_MAX) else {
            return;
        };
        self.holes.push(quoted);
        let unread = unread.iter().map(|raw| (*raw, Kind::Unread));
        let counts = counts.iter().enumerate().take(COUNTS_MAX);
        let counts = counts.map(|(number, raw)| (*raw, Kind::Count(number)));
        for (raw, kind) in unread.chain(counts) {
            if let Some(raw) = raw
                && kind.len_of(raw) == Some(raw.len())
                && let Some((start, end)) = place_of(raw, json)
            {
                self.holes.push(Hole { start, end, kind });
            }
        }
        self.holes.sort_unstable_by_key(|hole| hole.start);
        self.sample.clear();
        self.sample.push_str(json);
        self.delta = Some(delta);
    }

    /// Forgets what was learnt, so that the next event is parsed.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Kind {
    /// Returns how long a value of this kind is that `text` begins with.
    fn len_of(self, text: &str) -> Option<usize> {
        match self {
            Self::Text => string_len(text, true),
            Self::Unread if text.starts_with('"') => string_len(text, false),
            Self::Unread | Self::Count(_) => number_len(text),
        }
    }
}

/// Returns the length of the string that `text` begins with, quotes included.
fn string_len(text: &str, may_escape: bool) -> Option<usize> {
    let mut rest = text.strip_prefix('"')?.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => return Some(at + 2),
            b'\\' if may_escape => drop(rest.next()?),
            // A control character must be escaped.
            b'\\' | ..=0x1F => return None,
            _ => {}
        }
    }
    None
}

/// Returns the length of the whole number that `text` begins with; JSON has no leading zeros.
fn number_len(text: &str) -> Option<usize> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_one = len == 1 || (len > 1 && !text.starts_with('0'));
    is_one.then_some(len)
}

/// Returns what stands between the quotes of a raw string, as it was written.
pub(crate) fn between_quotes(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// Reads a string in its quotes.
fn unquoted(raw: &str) -> Option<Cow<'_, str>> {
    let text = raw.get(1..raw.len().checked_sub(1)?)?;
    if memchr::memchr(b'\\', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// Returns where `part` lies in `whole`, if it is a slice of it.
fn place_of(part: &str, whole: &str) -> Option<(usize, usize)> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (whole.get(start..end)? == part).then_some((start, end))
}

#[cfg(test)]
mod tests;
