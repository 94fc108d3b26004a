//! The spinner: one line on standard error with the current activity and its duration.

use rondo_core::clock::Clock;
use rondo_types::TimeMs;
use rondo_types::units::elapsed;
use std::time::Duration;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Returns the cursor to the line's beginning and erases the line.
const ERASE: &str = "\r\x1b[K";
/// Columns of the mark before what is being typed, and one that stays free.
const MARK_COLUMNS: usize = 5;

/// The line. It is drawn only where nothing else stands on its line.
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
    /// Starts the clock; the line is dim where there are colours.
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

    /// Says what is going on.
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

    /// Returns what takes the line away.
    pub(super) fn clear(&mut self) -> &'static str {
        if std::mem::take(&mut self.shown) {
            ERASE
        } else {
            ""
        }
    }

    /// Returns what draws the line's next state, with what is being typed behind it, within so many
    /// columns.
    pub(super) fn draw(&mut self, typed: &str, columns: usize) -> String {
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

/// Returns the end of what is being typed, which is where the typing goes on.
fn behind(typed: &str, columns: usize) -> String {
    if typed.is_empty() {
        return String::new();
    }
    let kept = columns.saturating_sub(MARK_COLUMNS);
    let mut end = Vec::new();
    let mut used = 0;
    for c in typed.chars().rev() {
        used += super::columns_max(c);
        if used > kept {
            break;
        }
        end.push(if c.is_control() { ' ' } else { c });
    }
    let end: String = end.iter().rev().collect();
    format!("  › {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_drawn_cleared_once_and_paused() {
        let mut spinner = Spinner::new(true);
        assert_eq!(spinner.clear(), "");
        assert!(spinner.draw("", 80).contains("thinking 0 s"));
        assert_eq!(spinner.clear(), ERASE);
        assert_eq!(spinner.clear(), "");
        spinner.pause(true);
        assert_eq!(spinner.draw("", 80), "");
    }

    #[test]
    fn the_end_of_what_is_typed_is_shown() {
        let mut spinner = Spinner::new(true);
        assert!(spinner.draw("and then?", 80).ends_with("  › and then?"));
        assert!(spinner.draw("abcdefghij", 24).ends_with("  › fghij"));
        assert!(spinner.draw("日本語", 20).ends_with("  › "));
    }
}
