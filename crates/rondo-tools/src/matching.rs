//! Finds the text that `edit_file` replaces, in a file that `edit.rs` has read.
//!
//! [`Edit::find`] alone decides what matches: the exact text, after its line ends were fitted to the
//! file's. Everything else (places, count, the edited text) follows from it, except for
//! [`Edit::undone`], which puts `old` back and so relies on every match being equal to it, or on [`Edit::pairs`].

use crate::difference;
use rondo_types::text::{first_chars, with_mark};
use std::borrow::Cow;
use std::iter;
use std::ops::Range;

/// The bound on places named in a message.
const PLACES_MAX: usize = 8;

/// The bound on pairs of lines that are compared for a hint.
const HINT_WORK_MAX: usize = 20_000_000;

/// The bound on text quoted in a hint, in characters.
const HINT_CHARS_MAX: usize = 600;

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnds {
    /// All by a line feed, or there is one line.
    Lf,
    /// All by CRLF.
    Crlf,
    /// Some by a line feed, some by CRLF.
    Mixed,
}

impl LineEnds {
    /// Returns how the lines of a text end.
    pub(crate) fn of(text: &str) -> Self {
        let (crlf, all) = (text.matches("\r\n").count(), text.matches('\n').count());
        match crlf {
            0 => Self::Lf,
            _ if crlf == all => Self::Crlf,
            _ => Self::Mixed,
        }
    }
}

/// The text to replace and its replacement, with the line ends of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: String,
    pub(crate) new: String,
    line_ends: LineEnds,
}

impl Edit {
    /// Fits an edit to a text. In a text whose lines end in CRLF, line feeds of the edit stand for CRLF; in one of mixed
    /// line ends, for either.
    pub(crate) fn fitted(text: &str, old: &str, new: &str) -> Self {
        Self::with_line_ends(LineEnds::of(text), old, new)
    }

    /// Builds an edit of a text with such line ends.
    pub(crate) fn with_line_ends(line_ends: LineEnds, old: &str, new: &str) -> Self {
        let fit = |text: &str| match line_ends {
            LineEnds::Lf => text.to_owned(),
            LineEnds::Crlf => crlf(text),
            LineEnds::Mixed => text.replace("\r\n", "\n"),
        };
        Self {
            old: fit(old),
            new: fit(new),
            line_ends,
        }
    }

    /// Returns the first match that begins at byte `from` or later.
    fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        if self.old.is_empty() {
            return None;
        }
        if self.line_ends == LineEnds::Mixed && self.old.contains('\n') {
            return self.find_mixed(text, from);
        }
        let start = from + text.get(from..)?.find(&self.old)?;
        Some(start..start + self.old.len())
    }

    /// Returns the first match in a text of mixed line ends.
    fn find_mixed(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let (first, _) = self.old.split_once('\n')?;
        let mut at = from;
        loop {
            let start = at
                + text
                    .get(at..)?
                    .find(if first.is_empty() { "\n" } else { first })?;
            // A text that begins with a line end begins with all of it.
            let has_return = first.is_empty() && text.get(..start)?.ends_with('\r');
            let begin = start - usize::from(has_return);
            let end = self.end_of_match(text, begin).filter(|_| begin >= from);
            if let Some(end) = end {
                return Some(begin..end);
            }
            let next = text.get(start..)?.chars().next();
            at = start + next.map_or(1, char::len_utf8);
        }
    }

    /// Returns the end of a match that begins there.
    fn end_of_match(&self, text: &str, start: usize) -> Option<usize> {
        let mut rest = text.get(start..)?;
        for (number, part) in self.old.split('\n').enumerate() {
            if number > 0 {
                rest = rest
                    .strip_prefix("\r\n")
                    .or_else(|| rest.strip_prefix('\n'))?;
            }
            rest = rest.strip_prefix(part)?;
        }
        Some(text.len() - rest.len())
    }

    /// Returns the text that replaces a match. In a text of mixed line ends, each line keeps its end, and lines that
    /// are added get the one of the line before.
    fn replacement(&self, text: &str, found: &Range<usize>) -> Cow<'_, str> {
        if self.line_ends != LineEnds::Mixed || !self.new.contains('\n') {
            return Cow::Borrowed(&self.new);
        }
        let matched = text.get(found.clone()).unwrap_or_default();
        let mut ends = matched.split_inclusive('\n').filter_map(line_end);
        let around = text.get(found.end..).unwrap_or_default();
        let mut end = ends.next().or_else(|| line_end(first_line(around)));
        let mut fitted = String::with_capacity(self.new.len());
        for (number, part) in self.new.split('\n').enumerate() {
            if number > 1 {
                end = ends.next().or(end);
            }
            if number > 0 {
                fitted.push_str(end.unwrap_or("\n"));
            }
            fitted.push_str(part);
        }
        Cow::Owned(fitted)
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
            edited.push_str(&self.replacement(text, &found));
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

    /// Returns each match with what takes its place, in a text of mixed line ends, if they differ.
    pub(crate) fn pairs(&self, text: &str) -> Option<Vec<(String, String)>> {
        let pair = |found: Range<usize>| {
            let new = self.replacement(text, &found).into_owned();
            let old = text.get(found).unwrap_or_default().to_owned();
            (old, new)
        };
        (self.line_ends == LineEnds::Mixed).then(|| self.matches(text).map(pair).collect())
    }

    /// Returns the text as it was before the edit, from the edited text, its gaps and its [`Self::pairs`]; `None` if the
    /// edited text cannot have come from this edit.
    pub(crate) fn undone(
        &self,
        text: &str,
        gaps: &[usize],
        pairs: Option<&[(String, String)]>,
    ) -> Option<String> {
        let mut before = String::with_capacity(text.len());
        let mut rest = text;
        for (number, gap) in gaps.iter().enumerate() {
            let (old, new) = match pairs {
                Some(pairs) => pairs.get(number).map(|(old, new)| (old, new))?,
                None => (&self.old, &self.new),
            };
            before.push_str(rest.get(..*gap)?);
            before.push_str(old);
            rest = rest.get(*gap..)?.strip_prefix(new.as_str())?;
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

    /// Returns the end of the message for a text without a match: where something similar is, if anywhere, and which
    /// character is another one there.
    pub(crate) fn hint(&self, text: &str) -> String {
        let differs = difference::describe(text, &self.old);
        self.near(text) + &differs.map_or_else(String::new, |it| format!("\n{it}"))
    }

    fn near(&self, text: &str) -> String {
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
                "; its first line is on line {}: `{}`",
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

/// Returns how a line ends, if it does.
fn line_end(line: &str) -> Option<&'static str> {
    match line.ends_with("\r\n") {
        true => Some("\r\n"),
        false => line.ends_with('\n').then_some("\n"),
    }
}

fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
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
