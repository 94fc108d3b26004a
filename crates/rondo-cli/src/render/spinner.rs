//! The spinner: one line on standard error with the current activity and its duration.

use super::around_caret;
use crate::screen::Typed;
use rondo_core::clock::Clock;
use rondo_types::TimeMs;
use rondo_types::units::elapsed;
use std::time::Duration;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Returns the cursor to the line's beginning and erases the line.
const ERASE: &str = "\r\x1b[K";
/// Columns of the mark before what is being typed, and one that stays free.
const MARK_COLUMNS: usize = 5;

/// The line. It is drawn only if nothing else is on its line.
pub(super) struct Spinner {
    label: String,
    clock: Clock,
    started: TimeMs,
    timeout: Option<Duration>,
    frame: usize,
    shown: bool,
    paused: bool,
    color: bool,
}

impl Spinner {
    /// Starts the clock; the line is dim if there are colors.
    pub(super) fn new(color: bool) -> Self {
        let clock = Clock::system();
        Self {
            label: "thinking".to_owned(),
            started: clock.now(),
            clock,
            timeout: None,
            frame: 0,
            shown: false,
            paused: false,
            color,
        }
    }

    /// Sets the text beside the spinner.
    pub(super) fn label(&mut self, label: &str) {
        label.clone_into(&mut self.label);
    }

    /// Says how long the turn may take.
    pub(super) fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Keeps the line away, or lets it come back.
    pub(super) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Returns the sequence that erases the line.
    pub(super) fn clear(&mut self) -> &'static str {
        if std::mem::take(&mut self.shown) {
            ERASE
        } else {
            ""
        }
    }

    /// Returns what draws the line's next state, with what is being typed around its caret behind it,
    /// within so many columns.
    pub(super) fn draw(&mut self, typed: &Typed, columns: usize) -> String {
        if self.paused {
            return self.clear().to_owned();
        }
        let frame = FRAMES.iter().cycle().nth(self.frame).copied().unwrap_or("");
        self.frame = (self.frame + 1) % FRAMES.len();
        self.shown = true;
        let took = elapsed(self.clock.now().since(self.started).as_secs());
        let of = self.timeout.map_or(String::new(), |timeout| {
            format!(" of {}", elapsed(timeout.as_secs()))
        });
        let line = format!("{frame} {} {took}{of}", self.label);
        let typed = behind(typed, columns.saturating_sub(line.chars().count()));
        match self.color {
            true => format!("{ERASE}\x1b[2m{line}\x1b[0m{typed}"),
            false => format!("{ERASE}{line}{typed}"),
        }
    }
}

/// Returns what is being typed around its caret.
fn behind((before, after): &Typed, columns: usize) -> String {
    if before.is_empty() && after.is_empty() {
        return String::new();
    }
    let one_line = |text: &str| text.replace(char::is_control, " ");
    let room = columns.saturating_sub(MARK_COLUMNS);
    format!(
        "  › {}",
        around_caret(&one_line(before), &one_line(after), room)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_drawn_cleared_once_and_paused() {
        let mut spinner = Spinner::new(true);
        assert_eq!(spinner.clear(), "");
        assert!(spinner.draw(&Typed::default(), 80).contains("thinking 0 s"));
        assert_eq!(spinner.clear(), ERASE);
        assert_eq!(spinner.clear(), "");
        spinner.pause(true);
        assert_eq!(spinner.draw(&Typed::default(), 80), "");
    }

    #[test]
    fn the_end_of_what_is_typed_is_shown() {
        let mut spinner = Spinner::new(true);
        for (before, after, columns, shown) in [
            ("and then?", "", 80, "  › and then?"),
            ("abcdefghij", "", 24, "  › fghij"),
            ("日本語", "", 20, "  › "),
            ("ab", "cd\n", 80, "  › ab\x1b7cd \x1b8"),
        ] {
            let typed = (before.to_owned(), after.to_owned());
            let line = spinner.draw(&typed, columns);
            assert!(line.ends_with(shown), "{line:?}");
        }
    }
}
