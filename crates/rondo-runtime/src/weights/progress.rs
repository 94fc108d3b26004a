//! Shows the progress of a download: one line on a terminal, two in a log.

use crate::notices::Notices;
use rondo_core::clock::Clock;
use rondo_types::TimeMs;

/// How often the line is drawn anew.
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

    /// Says what comes after the last byte.
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
    let left = left.map_or(String::new(), |seconds| format!("  {} left", span(seconds)));
    format!(
        "{percent:>3} %  {} of {}  {}/s{left}",
        size(done),
        size(total),
        size(speed)
    )
}

/// Returns a number of bytes for people, such as `1.12 GB`; powers of ten, as disks are sold.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            let hundredths = bytes / (unit / 100);
            return match hundredths {
                0..1_000 => format!("{}.{:02} {name}", hundredths / 100, hundredths % 100),
                _ => format!("{} {name}", hundredths / 100),
            };
        }
    }
    format!("{bytes} B")
}

/// Returns a number of seconds for people, such as `1:05`.
fn span(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    if minutes < 60 {
        return format!("{minutes}:{seconds:02}");
    }
    format!("{}:{:02}:{seconds:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_written_for_people() {
        let sizes = [999, 1_000, 98_362_432, 1_117_320_768].map(size);
        assert_eq!(sizes, ["999 B", "1.00 kB", "98 MB", "1.11 GB"]);
        assert_eq!([5, 65, 3_661].map(span), ["0:05", "1:05", "1:01:01"]);
    }

    #[test]
    fn speed_and_time_left_count_only_what_came_now() {
        let shown = line(600_000_000, Some(1_000_000_000), 100_000_000, 10_000);
        assert_eq!(shown, " 60 %  600 MB of 1.00 GB  10 MB/s  0:40 left");
        assert_eq!(line(5_000, None, 0, 0), "5.00 kB  0 B/s");
    }
}
