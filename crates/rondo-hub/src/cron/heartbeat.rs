//! The heartbeat: from time to time the agent checks by itself the tasks in `HEARTBEAT.md`, in a light session of its
//! own, and tells the owner only what needs attention.

use super::job::RunHistory;
use super::runner::mail;
use super::schedule::{time_zone, zoned};
use crate::channel::ChatKey;
use crate::chats::{self, Chat};
use crate::hub::Core;
use rondo_core::ports::{HostCommit, HostRow, MailboxError};
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::values::TimeSpan;
use rondo_tools::context_files::context_file;
use rondo_types::{SessionId, TimeMs};
use serde::Deserialize;
use std::time::Duration;

/// The file that says what to look after.
pub const HEARTBEAT_FILE: &str = "HEARTBEAT.md";
/// The answer that there is nothing to tell.
pub const NOTHING: &str = "HEARTBEAT_OK";
/// The shortest time between two beats.
pub const EVERY_MIN: Duration = Duration::from_mins(5);
/// Tokens a day, if the configuration does not say.
pub const TOKENS_PER_DAY: u64 = 200_000;
/// The table of how beats went.
pub(crate) const TABLE: &str = "heartbeat";
/// The longest pause after failures.
const BACKOFF_MAX: Duration = Duration::from_hours(24);
/// Prefix of the keys of its mail.
const KEY: &str = "heartbeat:";

/// The table `[hub.heartbeat]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatConfig {
    /// How often: at least [`EVERY_MIN`].
    pub every: TimeSpan,
    /// The private chat of an owner that gets the reports, as `channel:chat`, such as `telegram:4711`.
    pub chat: String,
    /// The hours in which it beats, such as `08:00-22:00`, by the clock of `zone`; always, if they are absent.
    #[serde(default)]
    pub hours: Option<String>,
    /// The IANA name of the time zone that `hours` are meant in.
    #[serde(default)]
    pub zone: Option<String>,
    /// Tokens that it may use on a day in UTC; [`TOKENS_PER_DAY`] if they are absent.
    #[serde(default)]
    pub tokens_per_day: Option<u64>,
}

/// Hours of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hours {
    /// Minutes since midnight.
    from: u16,
    /// Minutes since midnight; before `from` it belongs to the next day.
    to: u16,
}

impl HeartbeatConfig {
    /// Checks it.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub fn check(&self) -> Result<()> {
        let checked = self.checked();
        checked.map_err(|why| {
            let message =
                format!("the table `[hub.heartbeat]` of the configuration is wrong: {why}");
            SetupError::new(SetupErrorKind::Config, message)
        })
    }

    fn checked(&self) -> std::result::Result<(), String> {
        if self.every.0 < EVERY_MIN {
            return Err(format!(
                "`every` must be at least {} minutes",
                EVERY_MIN.as_secs() / 60
            ));
        }
        if self.chat().is_none() {
            return Err(format!(
                "`chat = \"{}\"` is not `channel:chat`, such as `telegram:4711`",
                self.chat
            ));
        }
        match (&self.hours, &self.zone) {
            (None, _) => Ok(()),
            (Some(_), None) => Err("`hours` needs a `zone`, such as `Europe/Berlin`".to_owned()),
            (Some(hours), Some(zone)) => {
                Hours::parse(hours)?;
                time_zone(zone).map(drop)
            }
        }
    }

    /// Returns the chat that gets the reports.
    pub fn chat(&self) -> Option<ChatKey> {
        let (channel, chat_id) = self.chat.split_once(':')?;
        (!channel.is_empty() && !chat_id.is_empty()).then(|| ChatKey {
            channel: channel.to_owned(),
            account: String::new(),
            chat_id: chat_id.to_owned(),
            topic: None,
        })
    }

    fn is_within_hours(&self, now: TimeMs) -> bool {
        let (Some(hours), Some(zone)) = (&self.hours, &self.zone) else {
            return true;
        };
        match (Hours::parse(hours), zoned(now, zone)) {
            (Ok(hours), Ok(time)) => {
                let minute = i32::from(time.hour()) * 60 + i32::from(time.minute());
                hours.contains(u16::try_from(minute).unwrap_or_default())
            }
            _ => false,
        }
    }
}

impl Hours {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let minutes = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
            let is_time = (hour < 24 && minute < 60) || (hour, minute) == (24, 0);
            is_time.then_some(hour * 60 + minute)
        };
        let parsed = text.split_once('-').and_then(|(from, to)| {
            Some(Self {
                from: minutes(from)?,
                to: minutes(to)?,
            })
        });
        parsed.ok_or_else(|| format!("`hours = \"{text}\"` is not like `08:00-22:00`"))
    }

    fn contains(self, minute: u16) -> bool {
        match self.from <= self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

/// Returns whether a `HEARTBEAT.md` asks for something: a line that is neither blank, nor a heading, nor a comment, nor an
/// empty item of a list.
#[must_use]
pub fn asks_for_something(text: &str) -> bool {
    let mut is_comment = false;
    text.lines().any(|line| {
        let mut line = line.trim();
        if is_comment {
            let Some((_, rest)) = line.split_once("-->") else {
                return false;
            };
            (is_comment, line) = (false, rest.trim());
        }
        while let Some((before, rest)) = line.split_once("<!--") {
            if !says_something(before) {
                match rest.split_once("-->") {
                    Some((_, after)) => line = after.trim(),
                    None => {
                        is_comment = true;
                        return false;
                    }
                }
            } else {
                return true;
            }
        }
        says_something(line)
    })
}

fn says_something(line: &str) -> bool {
    let line = line.trim();
    let item = line.trim_start_matches(['-', '*', '+']).trim();
    let item = item.strip_prefix("[ ]").unwrap_or(item).trim();
    !item.is_empty() && !line.starts_with('#')
}

/// Returns whether the turn of that mail is a heartbeat's.
pub(crate) fn is_heartbeat(key: &str) -> bool {
    key.starts_with(KEY)
}

/// Returns whether an answer says that there is nothing to tell.
#[must_use]
pub fn is_nothing(answer: &str) -> bool {
    answer.trim().trim_matches(['`', '*', '.', '"']) == NOTHING
}

/// Returns the heartbeat's own session for a day: it holds the beats of that day and nothing of the chat.
fn session(chat: &Chat, now: TimeMs) -> SessionId {
    let day = now.0 / (24 * 60 * 60 * 1000);
    SessionId::new(format!("{}+heartbeat{day}", chat.key.session(0)))
}

/// Begins a beat if one is due and there is something to look after.
pub(super) async fn beat(core: &Core, now: TimeMs) -> std::result::Result<(), MailboxError> {
    let Some(config) = &core.heartbeat else {
        return Ok(());
    };
    let Some(key) = config.chat() else {
        return Ok(());
    };
    let id = key.text();
    let runs: Option<RunHistory> = chats::read(&*core.store, TABLE, &id).await?;
    let is_first = runs.is_none();
    let runs = runs.unwrap_or_default();
    if !is_due(config, &runs, is_first, now) {
        return Ok(());
    }
    let Some(chat) = core.chats.find_open(&key).await? else {
        return Ok(());
    };
    let directory = core.workspace();
    let read = tokio::task::spawn_blocking(move || context_file(&directory, HEARTBEAT_FILE)).await;
    let Some(text) = read.ok().flatten().filter(|it| asks_for_something(it)) else {
        return Ok(());
    };
    let Some(actor) = core.owner_of(&key).await? else {
        return Ok(());
    };
    let session = session(&chat, now);
    let mail_key = format!("{KEY}{}", now.0 / 60_000);
    let mut rows = vec![runs.begun(now).row(TABLE, &id)];
    rows.push(chats::session_row(&session, &key));
    let commit = HostCommit {
        event: Some(format!("{mail_key}:{id}")),
        mail: vec![mail(
            &session,
            mail_key,
            &actor,
            (prompt(&text, now), false),
            now,
        )],
        rows,
        ..HostCommit::default()
    };
    core.store.commit(commit).await?;
    core.wake(&session);
    Ok(())
}

fn is_due(config: &HeartbeatConfig, runs: &RunHistory, is_first: bool, now: TimeMs) -> bool {
    let factor = 1_u32 << runs.failures.min(10);
    let pause = config.every.0.saturating_mul(factor);
    let pause = pause.min(BACKOFF_MAX.max(config.every.0));
    let since = Duration::from_millis(now.0.saturating_sub(runs.latest.0));
    let most = config.tokens_per_day.unwrap_or(TOKENS_PER_DAY);
    let is_free = is_first || (runs.is_over && since >= pause);
    is_free && config.is_within_hours(now) && runs.tokens_on(now) < most
}

fn prompt(text: &str, now: TimeMs) -> String {
    let at = rondo_runtime::service::local_time(now);
    format!(
        "[{at}, heartbeat]\nNo user wrote this: it is your periodic check of what needs attention. {HEARTBEAT_FILE} \
         says:\n\n{text}\n\nDo what is due by it. If there is nothing that the owner has to know now, answer {NOTHING} and \
         nothing else. Otherwise your answer goes to them: keep it short."
    )
}

/// Returns the row that says how a beat ended.
pub(crate) fn ended(chat: &ChatKey, runs: &RunHistory) -> HostRow {
    runs.row(TABLE, &chat.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::StopReason;

    fn config() -> HeartbeatConfig {
        HeartbeatConfig {
            every: TimeSpan(Duration::from_mins(30)),
            chat: "telegram:7".to_owned(),
            hours: Some("22:00-06:30".to_owned()),
            zone: Some("Europe/Berlin".to_owned()),
            tokens_per_day: Some(1_000),
        }
    }

    fn at(text: &str) -> TimeMs {
        let time: jiff::Timestamp = text.parse().unwrap();
        TimeMs(u64::try_from(time.as_millisecond()).unwrap())
    }

    #[test]
    fn an_empty_file_or_a_template_asks_for_nothing() {
        for text in [
            "",
            "# Heartbeat\n\n<!-- Add what to look after. -->\n",
            "<!--\n- Look at the mail.\n-->\n# Title\n- \n* [ ]\n",
            "<!-- a --> <!-- b\nc -->",
        ] {
            assert!(!asks_for_something(text), "{text:?}");
        }
        for text in [
            "Look at the mail.",
            "# Heartbeat\n- [ ] Water the plants\n",
            "<!-- a --> text",
            "text <!-- a",
            "<!-- a\n--> text",
        ] {
            assert!(asks_for_something(text), "{text:?}");
        }
    }

    #[test]
    fn it_beats_in_its_hours_and_within_its_budget_and_backs_off() {
        let night = at("2026-11-25T22:00:00Z");
        let ended = |stop, tokens| {
            RunHistory::default()
                .begun(at("2026-11-25T21:00:00Z"))
                .ended(stop, tokens, night)
        };
        let is_due = |runs: &RunHistory, now| is_due(&config(), runs, false, now);
        let fine = ended(StopReason::Complete, 999);
        assert!(is_due(&fine, night));
        assert!(!is_due(&fine, at("2026-11-25T21:29:59Z")));
        assert!(is_due(&fine, at("2026-11-25T21:30:00Z")));
        assert!(
            !is_due(&fine, at("2026-11-25T12:00:00Z")),
            "outside of its hours"
        );
        assert!(
            !is_due(&ended(StopReason::Complete, 1_000), night),
            "over its budget"
        );
        assert!(is_due(
            &ended(StopReason::Complete, 1_000),
            at("2026-11-26T00:00:00Z")
        ));
        assert!(
            !is_due(&fine.begun(at("2026-11-25T21:00:00Z")), night),
            "the previous one has not ended"
        );
        let failed = ended(StopReason::Error, 0);
        assert!(!is_due(&failed, at("2026-11-25T21:59:59Z")) && is_due(&failed, night));
        let often = RunHistory {
            failures: 60,
            ..failed
        };
        assert!(
            !is_due(&often, at("2026-11-26T20:59:59Z"))
                && is_due(&often, at("2026-11-26T21:00:00Z"))
        );
    }

    #[test]
    fn a_configuration_that_makes_no_sense_says_why() {
        config().check().unwrap();
        let why = |change: fn(&mut HeartbeatConfig)| {
            let mut config = config();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(
            why(|it| it.every = TimeSpan(Duration::from_secs(299))).contains("at least 5 minutes")
        );
        assert!(why(|it| it.chat = "telegram".to_owned()).contains("channel:chat"));
        assert!(why(|it| it.zone = None).contains("needs a `zone`"));
        assert!(why(|it| it.zone = Some("Berlin".to_owned())).contains("not a time zone"));
        assert!(why(|it| it.hours = Some("8-22".to_owned())).contains("08:00-22:00"));
        assert!(why(|it| it.hours = Some("08:00-25:00".to_owned())).contains("08:00-22:00"));
    }

    #[test]
    fn nothing_is_told_where_there_is_nothing() {
        assert!(
            ["HEARTBEAT_OK", " `HEARTBEAT_OK`.\n"]
                .iter()
                .all(|it| is_nothing(it))
        );
        assert!(!is_nothing("HEARTBEAT_OK, but the mail waits") && !is_nothing(""));
    }
}
