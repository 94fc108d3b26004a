//! The change that a call makes to its file, as a diff to show before the call runs and after.
//!
//! After a call, the change comes from the call itself, since a file that is read separately may be another
//! one by then. The preview opens files as the call does, beneath the same handles and with the same bounds,
//! so it cannot read what the call could not.

use crate::edit;
use crate::encoding::Encoding;
use crate::recovery::FileState;
use crate::workspace::Workspace;
use crate::write;
use rondo_types::CallId;
use rondo_types::text::in_three;
use serde::Deserialize as _;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The bound on lines of a text that is compared.
const COMPARED_LINES_MAX: usize = 20_000;
/// How long the smallest difference is looked for; then a larger one does.
const COMPARE_TIME_MAX: Duration = Duration::from_millis(200);
/// Lines around each change.
const CONTEXT_LINES: usize = 3;
/// The bound on lines of a difference; of more, half of them from each end.
const LINES_MAX: usize = 400;
/// The bound on characters of one line; of more, half of them from each end.
const LINE_CHARS_MAX: usize = 2_000;
/// The bound on changes that are kept until they are taken.
const KEPT_MAX: usize = 32;

/// The change that a call of `write_file` or `edit_file` makes to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file, as the call names it.
    pub path: String,
    /// The target of the path's links; `None` if it has none.
    pub leads_to: Option<String>,
    /// The file before the call.
    pub before: FileBefore,
    /// The numbers of added and of removed lines.
    pub counts: (usize, usize),
    /// The diff, at most 400 lines and a note between them; empty if nothing changes, `None` if the file is not
    /// text or too long to compare.
    pub lines: Option<Vec<DiffLine>>,
    state: FileState,
}

/// A file before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBefore {
    /// It does not exist.
    Absent,
    /// UTF-8 text.
    Text,
    /// Anything else, or a text beyond the bound of 10 MiB.
    Other {
        /// Size of the content, in bytes.
        bytes: u64,
    },
    /// A file that cannot be read, though it can be replaced.
    Unreadable,
}

/// One line of a diff, without its line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// The kind of line.
    pub kind: DiffKind,
    /// The line of the file, or the hunk header; empty for the other kinds.
    pub text: String,
}

/// The kind of a line of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffKind {
    /// A hunk header: `@@ -1,2 +1,3 @@`.
    Place,
    /// An unchanged line.
    Same,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// The number of lines of the diff that are left out here.
    LeftOut(usize),
    /// The line above has no line feed: it is the last of its file.
    NoLineFeed,
}

impl FileChange {
    /// Returns whether another change starts from the same content of the file.
    #[must_use]
    pub fn begins_as(&self, other: &Self) -> bool {
        self.state == other.state
    }

    pub(crate) fn new(
        path: String,
        leads_to: Option<String>,
        before: FileBeforeChange,
        after: &str,
    ) -> Self {
        let (before, state, old) = match before {
            FileBeforeChange::Absent => {
                (FileBefore::Absent, FileState::Absent, Some(String::new()))
            }
            FileBeforeChange::Text(text) => {
                let state = FileState::with(text.as_bytes());
                (FileBefore::Text, state, Some(text))
            }
            FileBeforeChange::Other { bytes, state, .. } => {
                (FileBefore::Other { bytes }, state, None)
            }
            FileBeforeChange::Unreadable => (FileBefore::Unreadable, FileState::Unusable, None),
        };
        let compared = old.and_then(|old| compare(&old, after));
        let (counts, lines) = match compared {
            Some((counts, lines)) => (counts, Some(lines)),
            None => ((0, 0), None),
        };
        Self {
            path,
            leads_to,
            before,
            counts,
            lines,
            state,
        }
    }
}

/// The file that a call of `write_file` or `edit_file` would replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedFile {
    /// The target of the path's links; `None` if it has none.
    pub leads_to: Option<String>,
    /// The file before the call.
    pub before: FileBefore,
    /// Its text, if it is one; empty if there is no file.
    pub text: Option<String>,
    /// The text after a call of `edit_file`, or of `write_file` if it is not the one in the arguments: line ends are kept.
    pub after: Option<String>,
}

impl ReplacedFile {
    pub(crate) fn new(
        leads_to: Option<String>,
        before: FileBeforeChange,
        after: Option<String>,
    ) -> Self {
        let (before, text) = match before {
            FileBeforeChange::Absent => (FileBefore::Absent, Some(String::new())),
            FileBeforeChange::Text(text) => (FileBefore::Text, Some(text)),
            FileBeforeChange::Other { bytes, .. } => (FileBefore::Other { bytes }, None),
            FileBeforeChange::Unreadable => (FileBefore::Unreadable, None),
        };
        Self {
            leads_to,
            before,
            text,
            after,
        }
    }
}

/// Previous content of a path, read within the bounds.
pub(crate) enum FileBeforeChange {
    Absent,
    Text(String),
    Other {
        bytes: u64,
        state: FileState,
        /// The encoding of a text that is not UTF-8.
        encoding: Option<Encoding>,
    },
    Unreadable,
}

/// Returns the change that a call would make to its file as it is now; `None` for tools other than `write_file`
/// and `edit_file`. Changes nothing. Reads the file, so it blocks.
///
/// # Errors
/// The error with which the call would fail.
#[must_use]
pub fn preview(
    workspace: &Workspace,
    tool: &str,
    arguments: &Value,
) -> Option<Result<FileChange, String>> {
    let seen = match tool {
        write::WRITE_FILE => {
            write::Args::deserialize(arguments).map(|args| write::preview(&args, workspace))
        }
        edit::EDIT_FILE => {
            edit::Args::deserialize(arguments).map(|args| edit::preview(&args, workspace))
        }
        _ => return None,
    };
    Some(match seen {
        Ok(seen) => seen.map_err(|failure| failure.to_string()),
        Err(err) => Err(err.to_string()),
    })
}

/// Returns the file that a call of `write_file` or `edit_file` would replace as it is now, read as the call does. Changes
/// nothing. It blocks.
///
/// # Errors
/// The error with which the call would fail.
pub fn replaced(
    workspace: &Workspace,
    tool: &str,
    arguments: &Value,
) -> Result<ReplacedFile, String> {
    let found = match tool {
        edit::EDIT_FILE => {
            edit::Args::deserialize(arguments).map(|args| edit::replaced(&args, workspace))
        }
        _ => write::Args::deserialize(arguments).map(|args| write::replaced(&args, workspace)),
    };
    let found = found.map_err(|err| err.to_string())?;
    found.map_err(|failure| failure.to_string())
}

/// A log of the changes that calls made to files. Cheap to clone; clones share the log.
///
/// It is off until [`ChangeLog::enable`] is called, since each call then has to read the file that it
/// replaces. The latest 32 changes are kept until they are taken.
#[derive(Debug, Clone, Default)]
pub struct ChangeLog(Arc<ChangeStore>);

#[derive(Debug, Default)]
struct ChangeStore {
    is_enabled: AtomicBool,
    changes: Mutex<VecDeque<(CallId, FileChange)>>,
}

impl ChangeLog {
    /// Switches the log on.
    pub fn enable(&self) {
        self.0.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Takes the change of a call that succeeded.
    #[must_use]
    pub fn take(&self, call: &CallId) -> Option<FileChange> {
        let mut changes = self.changes();
        let at = changes.iter().position(|(id, _)| id == call)?;
        changes.remove(at).map(|(_, change)| change)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_enabled.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, call: CallId, change: FileChange) {
        let mut changes = self.changes();
        if changes.len() >= KEPT_MAX {
            changes.pop_front();
        }
        changes.push_back((call, change));
    }

    fn changes(&self) -> std::sync::MutexGuard<'_, VecDeque<(CallId, FileChange)>> {
        self.0
            .changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

type LineComparison = ((usize, usize), Vec<DiffLine>);

/// Returns the lines added and removed, and the difference; nothing if it would cost too much.
fn compare(old: &str, new: &str) -> Option<LineComparison> {
    let lines = |text: &str| text.matches('\n').count();
    if lines(old).max(lines(new)) > COMPARED_LINES_MAX {
        return None;
    }
    let diff = TextDiff::configure()
        .timeout(COMPARE_TIME_MAX)
        .diff_lines(old, new);
    // If all lines end so, before and after, it says nothing about any of them.
    let are_crlf = [old, new]
        .iter()
        .all(|text| text.matches('\n').count() == text.matches("\r\n").count());
    let mut counts = (0, 0);
    let mut shown = Vec::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        shown.push(place(&group));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let kind = match change.tag() {
                ChangeTag::Equal => DiffKind::Same,
                ChangeTag::Insert => {
                    counts.0 += 1;
                    DiffKind::Added
                }
                ChangeTag::Delete => {
                    counts.1 += 1;
                    DiffKind::Removed
                }
            };
            let text = change.value();
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').filter(|_| are_crlf).unwrap_or(text);
            let text = without_middle(text);
            shown.push(DiffLine { kind, text });
            if change.missing_newline() {
                shown.push(note(DiffKind::NoLineFeed));
            }
        }
    }
    if shown.len() > LINES_MAX {
        let (first, last) = (LINES_MAX - LINES_MAX / 2, LINES_MAX / 2);
        let left_out = shown.len() - LINES_MAX;
        let said = note(DiffKind::LeftOut(left_out));
        shown.splice(first..shown.len() - last, [said]);
    }
    Some((counts, shown))
}

fn place(group: &[similar::DiffOp]) -> DiffLine {
    let range = |of: fn(&similar::DiffOp) -> std::ops::Range<usize>| {
        let first = group.first().map_or(0, |op| of(op).start);
        let count = group.last().map_or(0, |op| of(op).end) - first;
        // As in unified diffs: no lines follow a line, others begin with theirs.
        format!("{},{count}", first + usize::from(count > 0))
    };
    let (old, new) = (range(|op| op.old_range()), range(|op| op.new_range()));
    DiffLine {
        kind: DiffKind::Place,
        text: format!("@@ -{old} +{new} @@"),
    }
}

fn note(kind: DiffKind) -> DiffLine {
    let text = String::new();
    DiffLine { kind, text }
}

fn without_middle(line: &str) -> String {
    match in_three(line, LINE_CHARS_MAX) {
        None => line.to_owned(),
        Some([first, middle, last]) => {
            let left_out = middle.chars().count();
            format!("{first} [{left_out} characters are left out here] {last}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> Vec<String> {
        let (_, lines) = compare(old, new).unwrap();
        let show = |line: DiffLine| match line.kind {
            DiffKind::Place => line.text,
            DiffKind::Same => format!(" {}", line.text),
            DiffKind::Added => format!("+{}", line.text),
            DiffKind::Removed => format!("-{}", line.text),
            kind @ (DiffKind::LeftOut(_) | DiffKind::NoLineFeed) => format!("# {kind:?}"),
        };
        lines.into_iter().map(show).collect()
    }

    #[test]
    fn lines_around_a_change_and_where_they_stand_are_told() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_eq!(
            shown(old, &old.replace("5\n", "five\n")),
            [
                "@@ -2,7 +2,7 @@",
                " 2",
                " 3",
                " 4",
                "-5",
                "+five",
                " 6",
                " 7",
                " 8"
            ]
        );
        assert_eq!(shown("", "a\nb\n"), ["@@ -0,0 +1,2 @@", "+a", "+b"]);
        assert_eq!(shown("a\n", ""), ["@@ -1,1 +0,0 @@", "-a"]);
        assert_eq!(shown(old, old), [""; 0]);
    }

    #[test]
    fn a_missing_line_feed_and_line_ends_that_change_are_told() {
        assert_eq!(
            shown("a", "a\n"),
            ["@@ -1,1 +1,1 @@", "-a", "# NoLineFeed", "+a"]
        );
        assert_eq!(shown("a\r\nb\r\n", "a\r\nc\r\n").last().unwrap(), "+c");
        assert_eq!(shown("a\r\n", "a\n"), ["@@ -1,1 +1,1 @@", "-a\r", "+a"]);
    }

    #[test]
    fn what_is_too_long_loses_its_middle_and_says_how_much() {
        for (count, is_whole) in [
            (LINES_MAX - 2, true),
            (LINES_MAX - 1, true),
            (LINES_MAX, false),
        ] {
            let lines = shown("", &"x\n".repeat(count));
            assert_eq!(lines.len(), count + 1);
            let said = lines.contains(&"# LeftOut(1)".to_owned());
            assert_eq!(said, !is_whole, "{count}");
        }
        let line = shown("", &format!("{}end", "x".repeat(LINE_CHARS_MAX))).remove(1);
        assert!(
            line.contains("x [3 characters are left out here] x"),
            "{line}"
        );
        assert!(line.ends_with("xend"), "{line}");
        assert_eq!(compare("", &"x\n".repeat(COMPARED_LINES_MAX + 1)), None);
        assert!(compare("", &"x\n".repeat(COMPARED_LINES_MAX)).is_some());
    }

    #[test]
    fn the_latest_changes_are_kept_until_they_are_taken() {
        let log = ChangeLog::default();
        let change =
            |at: usize| FileChange::new(format!("{at}"), None, FileBeforeChange::Absent, "");
        for at in 0..=KEPT_MAX {
            log.note(CallId::new(format!("{at}")), change(at));
        }
        assert_eq!(log.take(&CallId::new("0")), None);
        assert_eq!(log.take(&CallId::new("1")), Some(change(1)));
        assert_eq!(log.take(&CallId::new("1")), None);
    }
}
