//! Titles, times and ends of a recorded session in words.

use super::{Step, Story, Turn};
use rondo_runtime::sanitize::cell;
use rondo_types::{Question, TimeMs, Usage};

/// What is said in place of a cell's result where its end is not recorded.
pub(super) const NO_END: &str = "[its end is not recorded]";

/// Returns a session's name for people. Its title may be from a file of anyone.
pub(super) fn title(story: &Story) -> String {
    match story.title.is_empty() {
        true => story.session.clone(),
        false => cell(&story.title),
    }
}

/// Says in a line what a turn took.
pub(super) fn of_turn(turn: &Turn) -> String {
    let mut words = vec![
        utc(turn.began_ms),
        format!("profile {}", turn.profile),
        seconds(turn.took_ms),
    ];
    let is_told = turn.usage != Usage::default();
    words.extend(is_told.then(|| tokens(turn.usage)));
    words.extend(turn.cost_usd.map(dollars));
    words.join(", ")
}

/// Says in a line what a step took.
pub(super) fn of_step(step: &Step) -> String {
    let mut words = vec![step.model.clone()];
    words.extend(step.replied_after_ms.map(seconds));
    words.extend(step.usage.map(tokens));
    words.extend(step.cost_usd.map(dollars));
    if step.requests > 1 {
        words.push(format!("{} requests", step.requests));
    }
    words.join(", ")
}

/// Says how a turn ended, where the answer does not.
pub(super) fn ending(turn: &Turn) -> Option<String> {
    let Some(ending) = &turn.ending else {
        return Some(match turn.waits_for.as_slice() {
            [] => "The turn was cut off.".to_owned(),
            questions => waiting(questions),
        });
    };
    let is_plain = ending.stop_reason == rondo_types::StopReason::Complete && !ending.degraded;
    let less = match ending.degraded {
        true => "; the answer is less than it could be",
        false => "",
    };
    (!is_plain).then(|| format!("The turn ended with `{}`{less}.", ending.stop_reason))
}

/// Says what a turn waits for: each question by its name, which `rondo answer` takes.
fn waiting(questions: &[Question]) -> String {
    let names: Vec<String> = questions.iter().map(|it| format!("`{}`", it.id)).collect();
    format!("The turn waits for an answer to {}.", names.join(", "))
}

/// Returns the answer where no step says it: one that the runtime built.
pub(super) fn built_answer(turn: &Turn) -> Option<&str> {
    let ending = turn.ending.as_ref()?;
    let items = turn.steps.iter().flat_map(|step| &step.items);
    let mut said = items.filter_map(|item| match item {
        super::Item::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let is_said = said
        .next_back()
        .is_some_and(|said| said.contains(&ending.text));
    (!is_said && !ending.text.is_empty()).then_some(&ending.text)
}

pub(super) fn seconds(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => format!("{}.{:02} s", ms / 1000, ms % 1000 / 10),
    }
}

fn tokens(usage: Usage) -> String {
    format!("{} + {} tokens", usage.input, usage.output)
}

fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

/// Writes a time as date and time of day in UTC.
fn utc(at: TimeMs) -> String {
    let seconds = at.0 / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Converts days since 1970-01-01 to a date of the Gregorian calendar, by eras of 400 years that
/// begin in March, so that the day that some years add is their last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
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
            assert_eq!(utc(TimeMs(seconds * 1000)), written);
        }
    }
}
