//! When a job runs: once, every few minutes, or by a cron expression in a stated time zone.

use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};
use rondo_types::TimeMs;
use serde::{Deserialize, Serialize};

/// The shortest time between two runs, in minutes.
pub const EVERY_MINUTES_MIN: u32 = 2;
/// The longest time between two runs, in minutes: a year.
pub const EVERY_MINUTES_MAX: u32 = 366 * 24 * 60;
/// Runs of an expression that are looked at for whether they are too close together.
const LOOKED_AT: usize = 50;
const MINUTE_MS: u64 = 60_000;

/// When a job runs. The next time is computed from the schedule alone, not from the last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Schedule {
    /// Once.
    Once {
        /// Time of the run.
        at: TimeMs,
    },
    /// Again and again, counted from the job's creation.
    Every {
        /// The minutes in between: [`EVERY_MINUTES_MIN`] to [`EVERY_MINUTES_MAX`].
        minutes: u32,
    },
    /// By a cron expression of five fields, or a name such as `@daily`, in the wall time of a zone. A time that a change of
    /// the clock leaves out counts as the first one after it, and one that comes twice counts once.
    Cron {
        /// The expression: minute, hour, day of the month, month, day of the week; or `@hourly`, `@daily`, `@weekly`, `@monthly`,
        /// `@yearly`.
        expression: String,
        /// The zone's name in the IANA database, such as `Europe/Berlin`.
        zone: String,
    },
}

impl Schedule {
    /// Builds a schedule of a single time: RFC 3339 with an offset, or the wall time of a zone.
    ///
    /// # Errors
    /// When the time or zone is invalid, or the time is past.
    pub fn once(at: &str, zone: Option<&str>, now: TimeMs) -> Result<Self, String> {
        let time = match at.parse::<Timestamp>() {
            Ok(time) => time,
            Err(_) => {
                let malformed = |_| {
                    format!(
                        "`{at}` is not a time such as `2026-03-01T09:00:00+01:00`, or `2026-03-01T09:00` with a `zone`"
                    )
                };
                let wall: jiff::civil::DateTime = at.parse().map_err(malformed)?;
                let zone = time_zone(zone.ok_or_else(|| no_zone(at))?)?;
                match first_after_gap(wall, &zone) {
                    Some(time) => time,
                    None => {
                        let zoned = wall.to_zoned(zone).map_err(|error| error.to_string())?;
                        zoned.timestamp()
                    }
                }
            }
        };
        let at_ms = u64::try_from(time.as_millisecond()).unwrap_or_default();
        match at_ms > now.0 {
            true => Ok(Self::Once { at: TimeMs(at_ms) }),
            false => Err(format!("`{at}` is past")),
        }
    }

    /// Builds a schedule of every so many minutes.
    ///
    /// # Errors
    /// When that is too often or too seldom.
    pub fn every(minutes: u32) -> Result<Self, String> {
        match (EVERY_MINUTES_MIN..=EVERY_MINUTES_MAX).contains(&minutes) {
            true => Ok(Self::Every { minutes }),
            false => Err(format!(
                "`every_minutes` must be from {EVERY_MINUTES_MIN} to {EVERY_MINUTES_MAX}"
            )),
        }
    }

    /// Builds a schedule from a cron expression in a zone.
    ///
    /// # Errors
    /// When the expression or zone is invalid, the expression never matches after `now`, or it would run more often
    /// than every [`EVERY_MINUTES_MIN`] minutes.
    pub fn cron(expression: &str, zone: Option<&str>, now: TimeMs) -> Result<Self, String> {
        let schedule = Self::Cron {
            expression: expression.to_owned(),
            zone: zone.ok_or_else(|| no_zone(expression))?.to_owned(),
        };
        let mut last = None;
        let mut after = now;
        for _ in 0..LOOKED_AT {
            let Some(next) = schedule.next_after(now, after)? else {
                break;
            };
            let too_close = u64::from(EVERY_MINUTES_MIN) * MINUTE_MS;
            if last.is_some_and(|last: TimeMs| next.0.saturating_sub(last.0) < too_close) {
                return Err(format!(
                    "`{expression}` runs more often than every {EVERY_MINUTES_MIN} minutes"
                ));
            }
            (last, after) = (Some(next), next);
        }
        match last {
            Some(_) => Ok(schedule),
            None => Err(format!("`{expression}` never occurs")),
        }
    }

    /// Returns the first time after `after`; `None` if there is none any more. `created` is when the job was made.
    ///
    /// # Errors
    /// When the expression or the zone is not known to this version.
    pub fn next_after(&self, created: TimeMs, after: TimeMs) -> Result<Option<TimeMs>, String> {
        match self {
            Self::Once { at } => Ok((*at > after).then_some(*at)),
            Self::Every { minutes } => {
                let every = u64::from(*minutes).max(1) * MINUTE_MS;
                let passed = after.0.saturating_sub(created.0) / every;
                Ok(Some(TimeMs(created.0 + (passed + 1) * every)))
            }
            Self::Cron { expression, zone } => next_of(&parsed(expression)?, zone, after),
        }
    }

    /// Returns whether it comes once alone.
    #[must_use]
    pub fn is_once(&self) -> bool {
        matches!(self, Self::Once { .. })
    }

    /// Returns it in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Once { at } => format!("once at {}", shown(*at)),
            Self::Every { minutes } => format!("every {minutes} minutes"),
            Self::Cron { expression, zone } => format!("`{expression}` in {zone}"),
        }
    }
}

/// Returns the first time after a gap of the clock in which a time of the wall would be, as in spring.
fn first_after_gap(wall: jiff::civil::DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let AmbiguousOffset::Gap { before, .. } = zone.to_ambiguous_zoned(wall).offset() else {
        return None;
    };
    let after = before.to_timestamp(wall).ok()?;
    zone.preceding(after).next().map(|it| it.timestamp())
}

/// Returns a time as people and models read it, in UTC.
#[must_use]
pub fn shown(time: TimeMs) -> String {
    let millis = i64::try_from(time.0).unwrap_or(i64::MAX);
    match Timestamp::from_millisecond(millis) {
        Ok(time) => format!("{}", time.round(jiff::Unit::Second).unwrap_or(time)),
        Err(_) => "a time far from now".to_owned(),
    }
}

/// Returns the zone of that name.
///
/// # Errors
/// When there is none.
pub(crate) fn time_zone(name: &str) -> Result<TimeZone, String> {
    let unknown = |_| {
        format!(
            "`{name}` is not a time zone: give its name in the IANA database, such as `Europe/Berlin` or `UTC`"
        )
    };
    TimeZone::get(name).map_err(unknown)
}

/// Returns a time on the clock of a zone.
///
/// # Errors
/// When there is no such zone, or the time is out of range.
pub(crate) fn zoned(time: TimeMs, zone: &str) -> Result<Zoned, String> {
    let millis = i64::try_from(time.0).map_err(|error| error.to_string())?;
    let time = Timestamp::from_millisecond(millis).map_err(|error| error.to_string())?;
    Ok(time.to_zoned(time_zone(zone)?))
}

fn no_zone(of: &str) -> String {
    let here = TimeZone::try_system().ok();
    let here = here.and_then(|it| {
        it.iana_name()
            .map(|name| format!(" (this machine is in `{name}`)"))
    });
    format!(
        "`{of}` needs a `zone`: the IANA name of the time zone that it is meant in, such as `Europe/Berlin`{}",
        here.unwrap_or_default()
    )
}

fn parsed(expression: &str) -> Result<Cron, String> {
    let parser = CronParser::builder();
    let parser = parser.seconds(Seconds::Disallowed).year(Year::Disallowed);
    let parsed = parser.build().parse(expression);
    parsed
        .map_err(|error| format!("`{expression}` is not a cron expression of five fields (or `@hourly`, `@daily`, ...): {error}"))
}

fn next_of(cron: &Cron, zone: &str, after: TimeMs) -> Result<Option<TimeMs>, String> {
    match cron.find_next_occurrence(&zoned(after, zone)?, false) {
        Ok(next) => {
            let millis = u64::try_from(next.timestamp().as_millisecond());
            Ok(Some(TimeMs(millis.map_err(|error| error.to_string())?)))
        }
        Err(CronError::TimeSearchLimitExceeded) => Ok(None),
        Err(error) => Err(format!("`{}`: {error}", cron.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> TimeMs {
        let time: Timestamp = text.parse().unwrap();
        TimeMs(u64::try_from(time.as_millisecond()).unwrap())
    }

    fn runs(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
        let mut time = at(after);
        let mut runs = Vec::new();
        for _ in 0..count {
            let Some(next) = schedule
                .next_after(at("2026-01-01T00:00:00Z"), time)
                .unwrap()
            else {
                break;
            };
            runs.push(shown(next));
            time = next;
        }
        runs
    }

    fn cron(expression: &str) -> Schedule {
        let zone = Some("Europe/Berlin");
        Schedule::cron(expression, zone, at("2026-01-01T00:00:00Z")).unwrap()
    }

    #[test]
    fn a_name_stands_for_its_expression() {
        let after = "2026-03-27T12:00:00Z";
        assert_eq!(
            runs(&cron("@daily"), after, 2),
            runs(&cron("0 0 * * *"), after, 2)
        );
        let unknown = Schedule::cron("@minutely", Some("Europe/Berlin"), at(after)).unwrap_err();
        assert!(unknown.contains("`@hourly`, `@daily`"), "{unknown}");
    }

    #[test]
    fn a_time_in_the_gap_of_spring_comes_after_it_and_one_in_the_overlap_of_autumn_comes_once() {
        let daily = cron("30 2 * * *");
        assert_eq!(
            runs(&daily, "2026-03-28T00:00:00Z", 3),
            [
                "2026-03-28T01:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-30T00:30:00Z"
            ]
        );
        assert_eq!(
            runs(&daily, "2026-10-24T00:00:00Z", 3),
            [
                "2026-10-24T00:30:00Z",
                "2026-10-25T00:30:00Z",
                "2026-10-26T01:30:00Z"
            ]
        );
        // The hour before the gap runs once, too.
        assert_eq!(
            runs(&cron("0 1 * * *"), "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"]
        );
    }

    #[test]
    fn the_next_time_follows_from_the_schedule() {
        let weekly = cron("0 9 * * MON");
        assert_eq!(
            runs(&weekly, "2026-11-25T00:00:00Z", 2),
            ["2026-11-30T08:00:00Z", "2026-12-07T08:00:00Z"]
        );
        let every = Schedule::every(90).unwrap();
        assert_eq!(
            runs(&every, "2026-01-01T03:00:00.001Z", 2),
            ["2026-01-01T04:30:00Z", "2026-01-01T06:00:00Z"]
        );
        let once = Schedule::once(
            "2026-02-01T10:00",
            Some("America/New_York"),
            at("2026-01-01T00:00:00Z"),
        );
        assert_eq!(
            runs(&once.unwrap(), "2026-01-01T00:00:00Z", 9),
            ["2026-02-01T15:00:00Z"]
        );
        let in_gap = Schedule::once(
            "2026-03-29T02:30",
            Some("Europe/Berlin"),
            at("2026-01-01T00:00:00Z"),
        );
        assert_eq!(
            runs(&in_gap.unwrap(), "2026-01-01T00:00:00Z", 9),
            ["2026-03-29T01:00:00Z"]
        );
    }

    #[test]
    fn what_makes_no_sense_says_why() {
        let now = at("2026-01-01T00:00:00Z");
        let berlin = Some("Europe/Berlin");
        let why = |result: Result<Schedule, String>| result.unwrap_err();
        assert!(why(Schedule::cron("0 9 * * *", None, now)).contains("needs a `zone`"));
        assert!(why(Schedule::cron("0 9 * * *", Some("CEST+1"), now)).contains("not a time zone"));
        assert!(why(Schedule::cron("* * * * *", berlin, now)).contains("more often than every 2"));
        assert!(why(Schedule::cron("0,1 9 * * *", berlin, now)).contains("more often"));
        assert!(why(Schedule::cron("0 0 30 2 *", berlin, now)).contains("never occurs"));
        assert!(why(Schedule::cron("0 0 9 * * *", berlin, now)).contains("five fields"));
        assert!(why(Schedule::cron("hourly", berlin, now)).contains("five fields"));
        assert!(why(Schedule::once("2025-12-31T00:00:00Z", None, now)).contains("is past"));
        assert!(why(Schedule::once("2026-02-01T10:00", None, now)).contains("needs a `zone`"));
        assert!(why(Schedule::once("tomorrow", berlin, now)).contains("is not a time"));
        assert_eq!(
            [1, 2, EVERY_MINUTES_MAX, EVERY_MINUTES_MAX + 1].map(|it| Schedule::every(it).is_ok()),
            [false, true, true, false]
        );
        assert!(Schedule::cron("*/2 * * * *", berlin, now).is_ok());
    }
}
