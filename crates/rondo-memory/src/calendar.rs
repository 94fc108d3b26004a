//! Dates and times of day, in UTC and in this machine's time zone.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use rondo_types::TimeMs;

/// The file of this machine's time zone.
const ZONE_FILE: &str = "/etc/localtime";

/// Returns a time in UTC; the last time of the calendar for one after the year 9999.
#[must_use]
pub fn utc(at: TimeMs) -> Timestamp {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

/// Returns a time in UTC for people, such as `2026-11-22 05:11:13 UTC`.
#[must_use]
pub fn utc_text(at: TimeMs) -> String {
    utc(at).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Reads a time of RFC 3339; `None` if it is none, or before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<TimeMs> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(TimeMs)
}

/// Returns a time in this machine's time zone.
#[must_use]
pub fn local(at: TimeMs) -> Zoned {
    utc(at).to_zoned(zone_from_env())
}

/// Returns the time at which the local day of `at` began.
#[must_use]
pub fn midnight(at: TimeMs) -> TimeMs {
    start_of_day(&local(at))
}

/// Returns the local day of `at`, counted since 1970-01-01.
#[must_use]
pub fn day_number(at: TimeMs) -> u32 {
    let days = local(at).date().duration_since(Date::constant(1970, 1, 1));
    u32::try_from(days.as_hours() / 24).unwrap_or_default()
}

/// Returns this machine's time zone: the one that `TZ` names, else the system's, else UTC.
///
/// The system's zone is read from its file. [`TimeZone::system`] looks up its name in the zone database first, and lists
/// that directory for it: half a millisecond, which the start of a command would wait for.
#[must_use]
pub fn zone_from_env() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    let file = std::fs::read(ZONE_FILE).ok();
    let zone = file.and_then(|file| TimeZone::tzif("Local", &file).ok());
    zone.unwrap_or(TimeZone::UTC)
}

fn start_of_day(time: &Zoned) -> TimeMs {
    let start = time
        .start_of_day()
        .map(|it| it.timestamp().as_millisecond());
    TimeMs(start.map_or(0, |it| u64::try_from(it).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        for (seconds, written) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_324_273, "2026-11-22 05:11:13 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc_text(TimeMs(seconds * 1000)), written);
        }
    }

    #[test]
    fn a_time_past_the_calendar_is_its_last() {
        assert_eq!(utc(TimeMs(u64::MAX)), Timestamp::MAX);
        assert!(local(TimeMs(u64::MAX)).year() >= 9999);
    }

    #[test]
    fn a_day_begins_at_its_first_time_also_if_the_clock_leaves_midnight_out() {
        // The clock went from 23:59:59 to 01:00:00 in this zone.
        for (time, start) in [
            (
                "2018-11-04T12:00[America/Sao_Paulo]",
                "2018-11-04T03:00:00Z",
            ),
            ("2026-03-29T12:00[Europe/Berlin]", "2026-03-28T23:00:00Z"),
            ("2026-03-29T12:00[UTC]", "2026-03-29T00:00:00Z"),
        ] {
            let time: Zoned = time.parse().unwrap();
            assert_eq!(utc(start_of_day(&time)).to_string(), start, "{time}");
        }
    }
}
