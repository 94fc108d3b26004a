//! The line that is typed in the pane, and those before it.

use crate::prompt::Editor;

/// Lines that are recalled.
const LINES_MAX: usize = 500;

/// A prompt with a history of its own.
#[derive(Debug, Default)]
pub(super) struct PanePrompt {
    pub(super) editor: Editor,
    lines: Vec<String>,
    recalled: Option<usize>,
}

impl PanePrompt {
    /// Takes what was typed, to be run; none where that is nothing.
    pub(super) fn take(&mut self) -> Option<String> {
        let line = self.editor.take();
        self.recalled = None;
        if line.trim().is_empty() {
            return None;
        }
        if self.lines.len() == LINES_MAX {
            self.lines.remove(0);
        }
        self.lines.push(line.clone());
        Some(line)
    }

    /// Returns the latest lines, the last one at the end.
    pub(super) fn latest(&self, count: usize) -> impl Iterator<Item = &String> {
        self.lines
            .iter()
            .skip(self.lines.len().saturating_sub(count))
    }

    /// Something else is typed than what was recalled.
    pub(super) fn is_edited(&mut self) {
        self.recalled = None;
    }

    /// Puts the line before, or after, into the input.
    pub(super) fn recall(&mut self, goes_back: bool) {
        let all = self.lines.len();
        let at = self.recalled.unwrap_or(all);
        let to = match goes_back {
            true => at.checked_sub(1),
            false => Some(at + 1).filter(|it| *it <= all),
        };
        if let Some(to) = to {
            self.editor
                .set(self.lines.get(to).map_or("", String::as_str));
            self.recalled = Some(to);
        }
    }
}
