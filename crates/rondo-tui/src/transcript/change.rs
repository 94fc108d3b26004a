//! A change of a text that is only proposed: its hunks can be left out one by one.

use super::diff::{Diff, Kind, Line};
use rondo_core::redact::Secrets;
use similar::{DiffOp, TextDiff};
use std::ops::Range;
use std::time::Duration;

/// Bytes of a text that is compared.
const COMPARED_BYTES_MAX: usize = 512 << 10;
/// How long the smallest difference is looked for.
const COMPARE_TIME_MAX: Duration = Duration::from_millis(50);
/// Lines that are shown of a change; one of more is not shown as a change, since none of it may be hidden.
const SHOWN_LINES_MAX: usize = 2_000;
/// Lines around each hunk, if not all of the text is shown.
const CONTEXT_LINES: usize = 3;
/// Said below the last line of a file, if that is one of those that change.
const NO_LINE_FEED: &str = "(no line feed at the end of the file)";

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    before: String,
    after: String,
    hunks: Vec<Hunk>,
}

/// Lines before, and those in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

/// How much is shown around the hunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownContext {
    /// All of the text.
    All,
    /// A few lines, each with its number.
    Context,
}

impl Change {
    /// Compares two texts; `None` if they are too long for that.
    pub(crate) fn between(before: &str, after: &str) -> Option<Self> {
        if before.len().max(after.len()) > COMPARED_BYTES_MAX {
            return None;
        }
        let (old, new) = (lines(before), lines(after));
        let diff = TextDiff::configure()
            .timeout(COMPARE_TIME_MAX)
            .diff_slices(&old, &new);
        let mut hunks: Vec<Hunk> = Vec::new();
        for op in diff.ops() {
            if matches!(op, DiffOp::Equal { .. }) {
                continue;
            }
            let (old, new) = (op.old_range(), op.new_range());
            match hunks.last_mut() {
                Some(last) if last.old.end == old.start && last.new.end == new.start => {
                    (last.old.end, last.new.end) = (old.end, new.end);
                }
                _ => hunks.push(Hunk { old, new }),
            }
        }
        Some(Self {
            before: before.to_owned(),
            after: after.to_owned(),
            hunks,
        })
    }

    /// Returns how many hunks it has.
    pub(crate) fn count(&self) -> usize {
        self.hunks.len()
    }

    /// Returns the text with these hunks of it.
    pub(crate) fn with(&self, is_kept: &[bool]) -> String {
        let (old, new) = (lines(&self.before), lines(&self.after));
        let mut text = String::new();
        let mut from = 0;
        for (hunk, is_kept) in self.hunks.iter().zip(is_kept) {
            text.extend(
                old.get(from..hunk.old.start)
                    .unwrap_or_default()
                    .iter()
                    .copied(),
            );
            let side = match is_kept {
                true => new.get(hunk.new.clone()),
                false => old.get(hunk.old.clone()),
            };
            text.extend(side.unwrap_or_default().iter().copied());
            from = hunk.old.end;
        }
        text.extend(old.get(from..).unwrap_or_default().iter().copied());
        text
    }

    /// Returns the hunks that are not kept, as a unified difference.
    pub(crate) fn left_out(&self, is_kept: &[bool]) -> String {
        let (old, new) = (lines(&self.before), lines(&self.after));
        let mut text = String::new();
        let hunks = self.hunks.iter().zip(is_kept).filter(|it| !it.1);
        for (Hunk { old: was, new: is }, _) in hunks {
            text.push_str(&format!("@@ -{} +{} @@\n", place(was), place(is)));
            let removed = old.get(was.clone()).unwrap_or_default().iter();
            let added = new.get(is.clone()).unwrap_or_default().iter();
            let signed = removed.map(|it| ('-', it)).chain(added.map(|it| ('+', it)));
            for (sign, line) in signed {
                text.push(sign);
                text.push_str(line);
                if !line.ends_with('\n') {
                    text.push('\n');
                }
            }
        }
        text
    }

    /// Returns it without secrets, for the eye alone.
    pub(crate) fn without(&self, secrets: &Secrets) -> Option<Self> {
        let before = secrets.text(self.before.clone());
        let after = secrets.text(self.after.clone());
        if before == self.before && after == self.after {
            return None;
        }
        Self::between(&before, &after)
    }

    /// Lays out what is shown; `None` if that is too much to be read.
    pub(crate) fn diff(
        &self,
        around: ShownContext,
        spell: impl Fn(&str) -> String,
    ) -> Option<Diff> {
        let (old, new) = (lines(&self.before), lines(&self.after));
        let has_numbers = around == ShownContext::Context;
        // If all lines end so, before and after, it says nothing about any of them.
        let are_crlf = old.iter().chain(&new).all(|it| it.ends_with("\r\n"));
        let mut shown = Vec::new();
        let mut push = |kind, at: (usize, usize), text: &str, hunk: Option<usize>| {
            let is_whole = text.ends_with('\n');
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').filter(|_| are_crlf).unwrap_or(text);
            let number = |at: usize, is_there| (has_numbers && is_there).then_some(at + 1);
            let numbers = (
                number(at.0, kind != Kind::Added),
                number(at.1, kind != Kind::Removed),
            );
            shown.push(Line::numbered(kind, numbers, &spell(text), hunk));
            if has_numbers && hunk.is_some() && !is_whole {
                shown.push(Line::numbered(Kind::Note, (None, None), NO_LINE_FEED, None));
            }
        };
        let mut from = (0, 0);
        for (number, hunk) in self.hunks.iter().enumerate() {
            let until = hunk.old.start;
            let same = until - from.0;
            let behind = if number == 0 { 0 } else { CONTEXT_LINES };
            for at in 0..same {
                let is_near = at < behind || at + CONTEXT_LINES >= same;
                let is_edge = at == behind;
                let place = (from.0 + at, from.1 + at);
                match around {
                    ShownContext::Context if !is_near && is_edge => {
                        push(Kind::Gap, place, "", None)
                    }
                    ShownContext::Context if !is_near => {}
                    _ => push(Kind::Same, place, old.get(place.0).unwrap_or(&""), None),
                }
            }
            for at in hunk.old.clone() {
                push(
                    Kind::Removed,
                    (at, 0),
                    old.get(at).unwrap_or(&""),
                    Some(number),
                );
            }
            for at in hunk.new.clone() {
                push(
                    Kind::Added,
                    (0, at),
                    new.get(at).unwrap_or(&""),
                    Some(number),
                );
            }
            from = (hunk.old.end, hunk.new.end);
        }
        for at in 0..old.len() - from.0 {
            let place = (from.0 + at, from.1 + at);
            if around == ShownContext::All || at < CONTEXT_LINES {
                push(Kind::Same, place, old.get(place.0).unwrap_or(&""), None);
            }
        }
        (shown.len() <= SHOWN_LINES_MAX).then(|| Diff::of(shown))
    }
}

/// Splits a text into its lines, line feeds included.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the place of lines, in the form of unified differences.
fn place(lines: &Range<usize>) -> String {
    let count = lines.len();
    format!("{},{count}", lines.start + usize::from(count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "one\ntwo\nthree\nfour\nfive";
    const NEW: &str = "ONE\ntwo\nthree\nand a half\nfour\n";

    #[test]
    fn a_text_is_made_of_the_hunks_that_are_kept() {
        let change = Change::between(OLD, NEW).unwrap();
        assert_eq!(change.count(), 3);
        assert_eq!(change.with(&[true, true, true]), NEW);
        assert_eq!(change.with(&[false, false, false]), OLD);
        assert_eq!(
            change.with(&[false, true, false]),
            "one\ntwo\nthree\nand a half\nfour\nfive"
        );
    }

    #[test]
    fn any_choice_of_hunks_gives_lines_of_either_text_in_their_order() {
        for (old, new) in [
            ("", "a\n"),
            ("a\n", ""),
            ("a", "a\n"),
            ("a\r\nb\r\n", "a\nb\r\n"),
            ("x\nx\n", "x\nx\nx\ny\nx\n"),
            ("a\rb\nc", "a\rB\nc"),
        ] {
            let change = Change::between(old, new).unwrap();
            let all = vec![true; change.count()];
            assert_eq!(change.with(&all), new);
            assert_eq!(change.with(&vec![false; change.count()]), old);
        }
    }

    #[test]
    fn what_is_left_out_is_told_as_a_difference() {
        let change = Change::between(OLD, NEW).unwrap();
        assert_eq!(
            change.left_out(&[false, true, false]),
            "@@ -1,1 +1,1 @@\n-one\n+ONE\n@@ -5,1 +5,0 @@\n-five\n"
        );
    }

    #[test]
    fn a_change_of_too_much_is_not_shown_as_one() {
        let long = "x".repeat(COMPARED_BYTES_MAX + 1);
        assert_eq!(Change::between("", &long), None);
        let shown = |lines: usize| {
            let change = Change::between("", &"x\n".repeat(lines)).unwrap();
            change.diff(ShownContext::Context, str::to_owned).is_some()
        };
        assert!(shown(SHOWN_LINES_MAX));
        assert!(!shown(SHOWN_LINES_MAX + 1));
    }

    #[test]
    fn secrets_are_not_shown() {
        let secrets = Secrets::new(["sk-12345678".to_owned()]);
        let change = Change::between("key=sk-12345678\na\n", "key=sk-12345678\nb\n").unwrap();
        let shown = change.without(&secrets).unwrap();
        assert_eq!(shown.before, "key=[redacted]\na\n");
        let change = Change::between("a\n", "b\n").unwrap();
        assert_eq!(change.without(&secrets), None);
    }
}
