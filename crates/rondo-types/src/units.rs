//! Durations, sizes, counts and money as people read them.

use crate::Usage;
use std::fmt::Display;
use std::time::Duration;

/// Returns a count with its noun, such as `1 step` or `2 steps`.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns how long something took: tenths of a second below a minute, such as `1.4 s`, and then as [`elapsed`].
#[must_use]
pub fn took(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => elapsed(ms / 1000),
    }
}

/// Returns whole seconds with the units above them, such as `5 s`, `1 min 5 s`, `30 min` or `2 h 5 min 5 s`.
#[must_use]
pub fn elapsed(seconds: u64) -> String {
    let parts = [
        (seconds / 3_600, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let shown = parts.into_iter().filter(|(count, _)| *count > 0);
    let shown: Vec<_> = shown
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    match shown.is_empty() {
        true => "0 s".to_owned(),
        false => shown.join(" "),
    }
}

/// Returns seconds to the nearest whole number of their largest unit, such as `5 s`, `3 min`, `4 h` or `2 d`.
#[must_use]
pub fn rough(seconds: u64) -> String {
    // A unit begins where the one below it would round up to a whole one of it.
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_570 => format!("{} min", (seconds + 30) / 60),
        3_570..84_600 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} d", seconds.saturating_add(43_200) / 86_400),
    }
}

/// Returns a duration in seconds with all its decimals, such as `0.25 s` or `20 s`. Models read this in recorded texts,
/// so it never changes.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Returns a number of bytes, such as `1.12 GB`; powers of ten, as disks are sold.
#[must_use]
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

/// Returns an amount of money, such as `0.0004 USD`.
#[must_use]
pub fn dollars(usd: f64) -> String {
    format!("{usd:.4} USD")
}

/// Returns the tokens of requests, such as `1200 tokens in (1100 cached), 30 out`.
#[must_use]
pub fn tokens(usage: Usage) -> String {
    let cached = match usage.cache_read {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    format!("{} tokens in{cached}, {} out", usage.input, usage.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_singular_and_all_other_counts_the_plural() {
        let shown = [0_u32, 1, 2].map(|count| counted(count, "step"));
        assert_eq!(shown, ["0 steps", "1 step", "2 steps"]);
        assert_eq!(counted(1_usize, "byte"), "1 byte");
    }

    #[test]
    fn durations_have_the_precision_that_fits_their_length() {
        let shown = [0, 99, 1_450, 59_999, 60_000, 75_900].map(took);
        assert_eq!(
            shown,
            ["0.0 s", "0.0 s", "1.4 s", "59.9 s", "1 min", "1 min 15 s"]
        );
        let shown = [0, 59, 60, 65, 3_600, 7_505].map(elapsed);
        assert_eq!(
            shown,
            ["0 s", "59 s", "1 min", "1 min 5 s", "1 h", "2 h 5 min 5 s"]
        );
        let shown = [250, 20_000].map(|ms| seconds(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.25 s", "20 s"]);
    }

    #[test]
    fn rough_durations_are_rounded_to_their_largest_unit() {
        for (seconds, shown) in [
            (59, "59 s"),
            (60, "1 min"),
            (89, "1 min"),
            (90, "2 min"),
            (3_569, "59 min"),
            (3_570, "1 h"),
            (84_599, "23 h"),
            (84_600, "1 d"),
            (3 * 86_400 - 1, "3 d"),
            (u64::MAX, "213503982334601 d"),
        ] {
            assert_eq!(rough(seconds), shown, "{seconds}");
        }
    }

    #[test]
    fn sizes_have_three_digits_below_ten_of_a_unit() {
        let sizes = [999, 1_000, 98_362_432, 1_117_320_768].map(size);
        assert_eq!(sizes, ["999 B", "1.00 kB", "98 MB", "1.11 GB"]);
    }

    #[test]
    fn money_has_four_decimals_and_tokens_name_those_from_the_cache() {
        assert_eq!(dollars(0.000_44), "0.0004 USD");
        let usage = Usage {
            input: 1200,
            output: 30,
            ..Usage::default()
        };
        assert_eq!(tokens(usage), "1200 tokens in, 30 out");
        let usage = Usage {
            cache_read: 1100,
            ..usage
        };
        assert_eq!(tokens(usage), "1200 tokens in (1100 cached), 30 out");
    }
}
