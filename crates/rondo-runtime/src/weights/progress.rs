//! Shows the progress of a download: one line on a terminal, two in a log.

use crate::notices::Notices;
use rondo_core::clock::Clock;
use rondo_types::TimeMs;
use rondo_types::units::{elapsed, size};

/// How often the line is drawn again.
const REDRAW_MS: u64 = 100;

/// The line.
pub(super) struct Progress<'a> {
    notices: &'a dyn Notices,
    clock: Clock,
    label: String,
    total: Option<u64>,
    began: TimeMs,
    began_at: u64,
    drawn: Option<TimeMs>,
}

impl<'a> Progress<'a> {
    /// Starts counting at `done` bytes, those of an earlier attempt.
    pub(super) fn start(
        notices: &'a dyn Notices,
        label: &str,
        done: u64,
        total: Option<u64>,
    ) -> Self {
        let clock = Clock::system();
        let all = total.map_or(String::new(), |total| format!(" ({})", size(total)));
        notices.note(&format!("fetching {label}{all}"));
        Self {
            notices,
            label: label.to_owned(),
            total,
            began: clock.now(),
            began_at: done,
            drawn: None,
            clock,
        }
    }

    /// Shows how far it is, not more often than people can read.
    pub(super) fn show(&mut self, done: u64) {
        let now = self.clock.now();
        if self
            .drawn
            .is_some_and(|at| now.0.saturating_sub(at.0) < REDRAW_MS)
        {
            return;
        }
        self.drawn = Some(now);
        let elapsed_ms = now.0.saturating_sub(self.began.0);
        let line = line(
            done,
            self.total,
            done.saturating_sub(self.began_at),
            elapsed_ms,
        );
        self.notices
            .progress(Some(&format!("{}  {line}", self.label)));
    }

    /// Shows the step after the last byte.
    pub(super) fn say(&self, what: &str) {
        if self.drawn.is_some() {
            self.notices
                .progress(Some(&format!("{}  {what}", self.label)));
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            self.notices.progress(None);
        }
    }
}

fn line(done: u64, total: Option<u64>, came: u64, elapsed_ms: u64) -> String {
    let speed = came.saturating_mul(1_000) / elapsed_ms.max(1);
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{}  {}/s", size(done), size(speed));
    };
    let percent = done.saturating_mul(100) / total;
    let left = total.saturating_sub(done).checked_div(speed);
    let left = left.map_or(String::new(), |seconds| {
        format!("  {} left", elapsed(seconds))
    });
    format!(
        "{percent:>3} %  {} of {}  {}/s{left}",
        size(done),
        size(total),
        size(speed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_and_time_left_count_only_what_came_now() {
        let shown = line(600_000_000, Some(1_000_000_000), 100_000_000, 10_000);
        assert_eq!(shown, " 60 %  600 MB of 1.00 GB  10 MB/s  40 s left");
        assert_eq!(line(5_000, None, 0, 0), "5.00 kB  0 B/s");
    }
}
