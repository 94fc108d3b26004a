//! Renders the change that a call makes to a file, in a question and below a call that ran.

use super::question::{Line, Tone, painted};
use crate::changes::ChangePreview;
use rondo_core::shown::{self, BAR, visible};
use rondo_tools::{DiffKind, DiffLine, FileBefore, FileChange};
use rondo_tui::change_lines;
use rondo_types::units::counted;
use serde_json::Value;

/// Arguments that the lines of a change show.
const SHOWN: [&str; 3] = ["content", "old_string", "new_string"];
/// Prefix of each line of a call that ran.
const INDENT: &str = "  ";

/// Returns the lines of a question: its prompt, in which the change stands in place of the arguments that
/// make it.
pub(super) fn asked(prompt: &str, arguments: &Value, look: &ChangePreview) -> Vec<Line> {
    let change = match look {
        None => return plain(prompt),
        Some(Err(why)) => {
            let mut lines = plain(prompt);
            let why = shown::line(why);
            lines.push(Line::plain(format!("As the file is now, it fails: {why}")));
            return lines;
        }
        Some(Ok(change)) => change,
    };
    let Some(diff) = &change.lines else {
        let mut lines = plain(prompt);
        lines.extend(leads_to(change));
        lines.push(Line::plain(format!("{INDENT}{}", summary(change))));
        return lines;
    };
    let mut rest = arguments.clone();
    if let Value::Object(fields) = &mut rest {
        fields.retain(|name, _| !SHOWN.contains(&name.as_str()));
    }
    let mut lines = match prompt.strip_suffix(&shown::call(arguments)) {
        Some(head) => plain(&format!("{head}{}", shown::call(&rest))),
        // The caller shows the arguments otherwise.
        None => plain(prompt),
    };
    lines.extend(leads_to(change));
    lines.push(Line::plain(format!("{INDENT}{}", summary(change))));
    lines.extend(diff.iter().map(|line| match sign(line.kind) {
        Some(sign) => Line::toned(
            tone(line.kind),
            format!("{INDENT}{BAR}{sign}{}", visible(&line.text)),
        ),
        None => beside(line),
    }));
    lines
}

/// Returns the lines below a call that ran: what it changed, as on the screen.
pub(super) fn done(change: &FileChange, columns: usize, has_color: bool) -> String {
    let lines = change.lines.as_deref();
    let shown = lines.and_then(|lines| {
        let (unified, more) = unified(lines);
        change_lines(&unified, more, columns, has_color)
    });
    shown.unwrap_or_else(|| {
        let text = format!("{INDENT}{}", summary(change));
        painted(&[Line::toned(Tone::Beside, text)], has_color)
    })
}

/// Returns a change up to what is left out of it, and how many lines it lacks then.
fn unified(lines: &[DiffLine]) -> (String, usize) {
    let (mut text, mut more) = (String::new(), 0);
    for line in lines {
        match (line.kind, sign(line.kind)) {
            (DiffKind::LeftOut(count), _) => more += count,
            (_, Some(_)) if more > 0 => more += 1,
            (_, None) if more > 0 => {}
            (_, Some(sign)) => text.extend([sign.to_string().as_str(), &line.text, "\n"]),
            (DiffKind::NoLineFeed, None) => {
                text.push_str("[no line feed at the end of the file]\n")
            }
            (_, None) => text.extend([line.text.as_str(), "\n"]),
        }
    }
    (text, more)
}

fn plain(text: &str) -> Vec<Line> {
    text.lines()
        .map(|line| Line::plain(line.to_owned()))
        .collect()
}

fn leads_to(change: &FileChange) -> Option<Line> {
    let path = change.leads_to.as_ref()?;
    Some(Line::plain(format!(
        "{INDENT}leads to: {}",
        shown::line(path)
    )))
}

fn beside(line: &DiffLine) -> Line {
    let text = match line.kind {
        DiffKind::LeftOut(count) => format!("{INDENT}[{count} lines are left out here]"),
        DiffKind::NoLineFeed => format!("{INDENT}[no line feed at the end of the file]"),
        _ => format!("{INDENT}{}", line.text),
    };
    let left_out = match line.kind {
        DiffKind::LeftOut(count) => count,
        _ => 0,
    };
    Line {
        left_out,
        ..Line::toned(Tone::Beside, text)
    }
}

fn sign(kind: DiffKind) -> Option<char> {
    match kind {
        DiffKind::Same => Some(' '),
        DiffKind::Added => Some('+'),
        DiffKind::Removed => Some('-'),
        DiffKind::Place | DiffKind::LeftOut(_) | DiffKind::NoLineFeed => None,
    }
}

fn tone(kind: DiffKind) -> Tone {
    match kind {
        DiffKind::Same => Tone::Same,
        DiffKind::Added => Tone::Added,
        DiffKind::Removed => Tone::Removed,
        DiffKind::Place | DiffKind::LeftOut(_) | DiffKind::NoLineFeed => Tone::Beside,
    }
}

fn summary(change: &FileChange) -> String {
    let (added, removed) = change.counts;
    match (&change.before, &change.lines) {
        (FileBefore::Other { bytes }, _) => {
            format!("replaces {bytes} bytes that are not text, or too many to compare")
        }
        (FileBefore::Unreadable, _) => "replaces a file that cannot be read".to_owned(),
        (FileBefore::Absent, None) => "a new file, with too many lines to show".to_owned(),
        (FileBefore::Text, None) => {
            "replaces a text; there are too many lines to compare".to_owned()
        }
        (FileBefore::Absent, Some(lines)) if lines.is_empty() => "a new, empty file".to_owned(),
        (FileBefore::Absent, Some(_)) => format!("a new file of {}", counted(added, "line")),
        (FileBefore::Text, Some(lines)) if lines.is_empty() => "nothing changes".to_owned(),
        (FileBefore::Text, Some(_)) => {
            format!("{} added, {removed} removed", counted(added, "line"))
        }
    }
}
