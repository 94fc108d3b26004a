//! Changes that a sandboxed command left in protected files, as text for a person.

use super::{Difference, DifferenceKind};
use rondo_core::shown::visible;
use similar::TextDiff;
use std::fmt::Write as _;

/// The question whether the differences are accepted.
pub const QUESTION: &str = "Accept these differences, so that Rondo works here as before?";
/// The bound on lines that are shown of one file.
const LINES_MAX: usize = 400;
/// The lines around a change.
const CONTEXT_LINES: usize = 3;

/// Describes all differences, with the lines that differ.
#[must_use]
pub fn described(differences: &[Difference]) -> String {
    let mut text = String::new();
    for difference in differences {
        let path = visible(&difference.path.display().to_string());
        let _ = writeln!(text, "{path}: {}", what(difference));
        text.push_str(&lines(difference));
    }
    text
}

fn what(difference: &Difference) -> &'static str {
    match difference.kind {
        DifferenceKind::Added => "added",
        DifferenceKind::Changed => "changed",
        DifferenceKind::Removed => "removed",
        DifferenceKind::Unchecked if difference.path == difference.root => {
            "the processes that watch a command were killed, so this folder was not checked"
        }
        DifferenceKind::Unchecked => "not checked, so look at it yourself",
    }
}

/// Returns how the content of a file differs: line by line if it is text, otherwise by its size.
fn lines(difference: &Difference) -> String {
    let is_text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref().unwrap_or_default();
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    };
    let sizes = || {
        let size = |bytes: &Option<Vec<u8>>| match bytes {
            Some(bytes) => format!("{} bytes", bytes.len()),
            None => "not kept".to_owned(),
        };
        let (before, now) = (size(&difference.before), size(&difference.now));
        format!("  before: {before}; now: {now}\n")
    };
    let has_both = difference.before.is_some() && difference.now.is_some();
    let is_comparable = match difference.kind {
        DifferenceKind::Changed => has_both,
        DifferenceKind::Added | DifferenceKind::Unchecked => difference.now.is_some(),
        DifferenceKind::Removed => difference.before.is_some(),
    };
    if difference.path == difference.root {
        return String::new();
    }
    let (Some(before), Some(now)) = (is_text(&difference.before), is_text(&difference.now)) else {
        return sizes();
    };
    if !is_comparable {
        return sizes();
    }
    if before == now {
        return "  the content is the same; its mode or its place is another one\n".to_owned();
    }
    let diff = TextDiff::from_lines(&before, &now);
    let diff = diff
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .to_string();
    let mut shown = String::new();
    for line in diff.lines().take(LINES_MAX) {
        let _ = writeln!(shown, "  {}", visible(line));
    }
    let more = diff.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        let _ = writeln!(shown, "  [{more} more lines]");
    }
    shown
}
