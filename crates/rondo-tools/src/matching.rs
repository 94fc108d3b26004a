//! Finds the text that `edit_file` replaces, in a file that `edit.rs` has read.
//!
//! [`Edit::find`] alone decides what matches: the exact text, after its line ends were fitted to the
//! file's. Everything else (places, count, the edited text) follows from it, except for
//! [`Edit::undone`], which puts `old` back and so relies on every match being equal to it.

use rondo_types::text::{first_chars, with_mark};
use std::iter;
use std::ops::Range;

/// The bound on places named in a message.
const PLACES_MAX: usize = 8;

/// The bound on pairs of lines that are compared for a hint.
const HINT_WORK_MAX: usize = 20_000_000;

/// The bound on text quoted in a hint, in characters.
const HINT_CHARS_MAX: usize = 600;

/// The text to replace and its replacement, with the line ends of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: String,
    pub(crate) new: String,
}

impl Edit {
    /// Fits an edit to a text. In a text whose lines mostly end in CRLF, line feeds of the edit
    /// stand for CRLF.
    pub(crate) fn fitted(text: &str, old: &str, new: &str) -> Self {
        Self::with_line_ends(ends_in_crlf(text), old, new)
    }

    /// Builds an edit of a text with such line ends.
    pub(crate) fn with_line_ends(are_crlf: bool, old: &str, new: &str) -> Self {
        let fit = |text: &str| {
            if are_crlf {
                crlf(text)
            } else {
                text.to_owned()
            }
        };
        Self {
            old: fit(old),
            new: fit(new),
        }
    }

    /// Returns the first match that begins at byte `from` or later.
    fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        if self.old.is_empty() {
            return None;
        }
        let start = from + text.get(from..)?.find(&self.old)?;
        Some(start..start + self.old.len())
    }

    /// Returns the matches that are replaced: from the first on, without overlap.
    fn matches(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let mut from = 0;
        iter::from_fn(move || {
            let found = self.find(text, from)?;
            from = found.end;
            Some(found)
        })
    }

    /// Returns the text with every match replaced.
    pub(crate) fn applied(&self, text: &str) -> String {
        let mut edited = String::with_capacity(text.len());
        let mut end = 0;
        for found in self.matches(text) {
            edited.push_str(text.get(end..found.start).unwrap_or_default());
            edited.push_str(&self.new);
            end = found.end;
        }
        edited.push_str(text.get(end..).unwrap_or_default());
        edited
    }

    /// Returns the lengths, in bytes, of the unchanged texts before each match.
    pub(crate) fn gaps(&self, text: &str) -> Vec<usize> {
        let mut end = 0;
        self.matches(text)
            .map(|found| {
                let gap = found.start - end;
                end = found.end;
                gap
            })
            .collect()
    }

    /// Returns the text as it was before the edit, from the edited text and its gaps; `None` if the
    /// edited text cannot have come from this edit.
    pub(crate) fn undone(&self, text: &str, gaps: &[usize]) -> Option<String> {
        let mut before = String::with_capacity(text.len());
        let mut rest = text;
        for gap in gaps {
            before.push_str(rest.get(..*gap)?);
            before.push_str(&self.old);
            rest = rest.get(*gap..)?.strip_prefix(self.new.as_str())?;
        }
        before.push_str(rest);
        Some(before)
    }

    /// Returns the lines, from 1, on which the text matches, overlapping matches included.
    pub(crate) fn places(&self, text: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut line = 1;
        let mut from = 0;
        while lines.len() <= PLACES_MAX
            && let Some(found) = self.find(text, from)
        {
            line += newlines(text.get(from..found.start));
            lines.push(line);
            let first = text.get(found.start..).and_then(|it| it.chars().next());
            from = found.start + first.map_or(1, char::len_utf8);
            line += newlines(text.get(found.start..from));
        }
        lines
    }

    /// Returns how many matches [`applied`](Self::applied) replaces.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.matches(text).count()
    }

    /// Returns the end of the message for a text without a match: where something similar is, if anywhere.
    pub(crate) fn hint(&self, text: &str) -> String {
        if let Some(window) = same_but_for_blanks(text, &self.old) {
            return format!("; it differs only in white space from\n{window}");
        }
        let first = self
            .old
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty());
        let near = first.and_then(|first| {
            text.lines()
                .enumerate()
                .find(|(_, line)| line.contains(first))
        });
        match near {
            Some((index, line)) => format!(
                "; its first line stands on line {}: `{}`",
                index + 1,
                clip(line)
            ),
            None => String::new(),
        }
    }
}

/// Lists lines for a message, as `3, 7 and more`.
pub(crate) fn list(places: &[usize]) -> String {
    let shown: Vec<String> = places
        .iter()
        .take(PLACES_MAX)
        .map(ToString::to_string)
        .collect();
    let more = if places.len() > PLACES_MAX {
        " and more"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

/// Returns whether the lines of a text mostly end in CRLF.
pub(crate) fn ends_in_crlf(text: &str) -> bool {
    text.matches("\r\n").count() * 2 > text.matches('\n').count()
}

/// Returns a text with CRLF at the end of each line.
pub(crate) fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn newlines(text: Option<&str>) -> usize {
    text.map_or(0, |text| text.matches('\n').count())
}

fn same_but_for_blanks(text: &str, old: &str) -> Option<String> {
    let wanted: Vec<String> = old.trim().lines().map(squeezed).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len().saturating_mul(wanted.len()) > HINT_WORK_MAX {
        return None;
    }
    let squeezed_lines: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
    let at = squeezed_lines
        .windows(wanted.len())
        .position(|window| window == wanted)?;
    let window: Vec<&str> = lines.iter().skip(at).take(wanted.len()).copied().collect();
    Some(format!("line {}:\n{}", at + 1, clip(&window.join("\n"))))
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn clip(text: &str) -> String {
    with_mark(first_chars(text, HINT_CHARS_MAX), text, "...")
}
