//! The time between a question and its turn: its model is connected, which may take a download or a command that prints the key.

use super::App;
use super::activity::Activity;
use crate::text::{Piece, Row, Wrap, clean};
use rondo_types::TimeMs;

/// Rows of the question that are shown meanwhile.
const QUESTION_ROWS_MAX: usize = 3;

/// How far the preparation of a turn is.
#[derive(Debug, Default)]
pub(super) struct Preparing {
    /// Since when it is prepared.
    since: Option<TimeMs>,
    /// The progress of a download, in words.
    progress: Option<String>,
}

impl Preparing {
    /// Another turn is prepared from now on.
    pub(super) fn restart(&mut self) {
        self.since = None;
    }
}

impl App {
    /// Returns whether a message was sent whose turn has not begun.
    pub(crate) fn is_preparing(&self) -> bool {
        !self.story.is_in_turn && !self.runs_own() && self.queue.opens_turn()
    }

    /// Returns whether a turn runs or is prepared.
    pub(super) fn is_busy(&self) -> bool {
        self.story.is_in_turn || self.is_preparing()
    }

    /// Notes since when the turn is prepared.
    pub(super) fn time_preparation(&mut self) {
        self.preparing.since = match self.is_preparing() {
            true => self.preparing.since.or(Some(self.now)),
            false => None,
        };
    }

    /// Takes the progress of a download; none once it is over.
    pub(crate) fn set_progress(&mut self, progress: Option<String>) {
        self.preparing.progress = progress;
    }

    /// Returns what is done for the turn, while a person need not answer anything for it.
    pub(super) fn preparation(&self) -> Option<Activity> {
        if !self.is_preparing() || !self.story.questions().is_empty() {
            return None;
        }
        let progress = self.preparing.progress.as_deref();
        let what = progress.map_or_else(
            || "Preparing".to_owned(),
            |it| format!("Preparing · {}", clean::line(it)),
        );
        let since = self.preparing.since.unwrap_or(self.now);
        Some(Activity::Working { what, since })
    }

    /// Returns the rows of the question whose turn is prepared.
    pub(super) fn opener_rows(&self, width: usize) -> Vec<Row> {
        let question = self.queue.opener().filter(|_| self.is_preparing());
        let Some(question) = question else {
            return Vec::new();
        };
        let theme = self.theme;
        let mut wrap = Wrap::at(width).behind(Piece::new("  ", theme.accent));
        wrap.first = vec![Piece::new("› ", theme.accent)];
        let mut rows = wrap.lines(&clean::text(question), theme.text);
        if rows.len() > QUESTION_ROWS_MAX {
            rows.truncate(QUESTION_ROWS_MAX);
            rows.push(Row::of("  …", theme.dim));
        }
        rows
    }
}
