//! What goes on at the moment, in one line.

use crate::call_line::shortened;
use crate::text::{clean, columns};
use crate::transcript::Card;
use rondo_types::TimeMs;
use rondo_types::units::elapsed;

/// The signs of the spinner.
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];

/// Columns of what goes on at least.
const WHAT_COLUMNS_MIN: usize = 8;

/// What goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Activity {
    /// Nothing.
    #[default]
    Idle,
    /// A person is waited for.
    Waiting,
    /// Work, in words, and since when.
    Working {
        /// What is done.
        what: String,
        /// Since when.
        since: TimeMs,
    },
}

impl Activity {
    fn working(what: impl Into<String>, since: TimeMs) -> Self {
        Self::Working {
            what: what.into(),
            since,
        }
    }

    /// The model was asked and has not begun.
    pub(crate) fn thinking(is_react: bool, since: TimeMs) -> Self {
        let what = match is_react {
            true => "MyLM is thinking...",
            false => "Thinking",
        };
        Self::working(what, since)
    }

    pub(crate) fn writing(since: TimeMs) -> Self {
        Self::working("Writing", since)
    }

    pub(crate) fn queued(since: TimeMs) -> Self {
        Self::working("Waiting for the provider to take another request", since)
    }

    pub(crate) fn summarising(since: TimeMs) -> Self {
        Self::working("Summing up", since)
    }

    /// A call runs.
    pub(crate) fn of_call(card: &Card, is_react: bool, since: TimeMs) -> Self {
        let what = card.command().map_or_else(|| card.line(), clean::line);
        match is_react {
            true => Self::working(format!("Executing: `{what}`..."), since),
            false => Self::working(format!("Running {}", card.line()), since),
        }
    }

    /// Returns the line with what follows it, at most so wide, after so many turns of the spinner; none if nothing goes on.
    pub(crate) fn line(
        &self,
        turn: usize,
        is_still: bool,
        now: TimeMs,
        (behind, width): (&str, usize),
    ) -> Option<String> {
        let Self::Working { what, since } = self else {
            return None;
        };
        let mark = match is_still {
            true => "·",
            false => SPINNER.get(turn % SPINNER.len()).copied().unwrap_or("·"),
        };
        let seconds = now.0.saturating_sub(since.0) / 1000;
        let since = match seconds {
            0 => String::new(),
            seconds => format!("  {}", elapsed(seconds)),
        };
        let taken = columns(mark) + 1 + columns(&since) + columns(behind);
        let what = shortened(what, width.saturating_sub(taken).max(WHAT_COLUMNS_MIN));
        Some(format!("{mark} {what}{since}{behind}"))
    }
}
