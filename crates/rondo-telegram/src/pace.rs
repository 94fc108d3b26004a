//! How fast Telegram may be written to.
//!
//! Its real limits are not published; these are what its FAQ names. Beyond them it answers 429 with a time to wait,
//! which holds the chat here as well.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Messages to all chats together in a second.
const ALL_MAX: usize = 30;
/// Of so many of them the time is known, those that are reserved included.
const ALL_KNOWN_MAX: usize = 8 * ALL_MAX;
/// Messages to one chat in a second, and to a group in a minute.
const CHAT_MAX: usize = 1;
const GROUP_MAX: usize = 20;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Shown actions, such as that something is being written, of all chats together in a second.
const ACTIONS_MAX: usize = 10;
/// Chats that are remembered; those to which nothing was written for a minute are forgotten first.
const CHATS_MAX: usize = 10_000;

/// When what may be sent.
#[derive(Debug, Default)]
pub struct Pace {
    all: VecDeque<Instant>,
    actions: VecDeque<Instant>,
    chats: HashMap<i64, Chat>,
}

#[derive(Debug, Default)]
struct Chat {
    /// The latest sends, oldest first, as many as are counted.
    sent: VecDeque<Instant>,
    held_until: Option<Instant>,
}

impl Pace {
    /// Returns how long to wait before a message to a chat, and counts it as sent then.
    pub fn reserve(&mut self, chat_id: i64, now: Instant) -> Duration {
        let at = self.earliest(chat_id, now);
        self.count(chat_id, at, now);
        at.duration_since(now)
    }

    /// Counts a message to a chat as sent now, if that may be and half of what may be sent is left for what must be. For
    /// what can be left out.
    pub fn try_now(&mut self, chat_id: i64, now: Instant) -> bool {
        let may = self.earliest_of(chat_id, now, 2) <= now;
        if may {
            self.count(chat_id, now, now);
        }
        may
    }

    /// Counts an action as shown in a chat now, if that may be. Actions are not messages, but are counted all the same.
    pub fn try_action(&mut self, chat_id: i64, now: Instant) -> bool {
        let may = after(&self.actions, ACTIONS_MAX, SECOND, now) <= now
            && self.earliest(chat_id, now) <= now;
        if may {
            remember(&mut self.actions, ACTIONS_MAX, now);
        }
        may
    }

    /// Returns how long a message to a chat would have to wait.
    #[must_use]
    pub fn wait(&self, chat_id: i64, now: Instant) -> Duration {
        self.earliest(chat_id, now).duration_since(now)
    }

    /// Holds a chat, as the server asked.
    pub fn hold(&mut self, chat_id: i64, until: Instant) {
        let chat = self.chats.entry(chat_id).or_default();
        chat.held_until = chat.held_until.max(Some(until));
    }

    fn earliest(&self, chat_id: i64, now: Instant) -> Instant {
        self.earliest_of(chat_id, now, 1)
    }

    /// Returns when a message may be sent if only that part of the limits may be used up.
    fn earliest_of(&self, chat_id: i64, now: Instant, part: usize) -> Instant {
        let mut at = now;
        if let Some(chat) = self.chats.get(&chat_id) {
            at = at.max(after(&chat.sent, CHAT_MAX, SECOND, now));
            // Groups have negative ids.
            if chat_id < 0 {
                at = at.max(after(&chat.sent, GROUP_MAX / part, MINUTE, now));
            }
            at = at.max(chat.held_until.unwrap_or(now));
        }
        free_from(&self.all, ALL_MAX / part, at)
    }

    fn count(&mut self, chat_id: i64, at: Instant, now: Instant) {
        if self.chats.len() >= CHATS_MAX {
            self.chats.retain(|_, chat| chat.is_busy(now));
        }
        remember(&mut self.all, ALL_KNOWN_MAX, at);
        let chat = self.chats.entry(chat_id).or_default();
        remember(&mut chat.sent, GROUP_MAX, at);
    }
}

impl Chat {
    fn is_busy(&self, now: Instant) -> bool {
        let is_recent = self.sent.back().is_some_and(|it| *it + MINUTE > now);
        is_recent || self.held_until.is_some_and(|until| until > now)
    }
}

/// Returns when one more may be sent where `max` are allowed within `span`.
fn after(sent: &VecDeque<Instant>, max: usize, span: Duration, now: Instant) -> Instant {
    let last = sent.len().checked_sub(max).and_then(|at| sent.get(at));
    last.map_or(now, |it| (*it + span).max(now))
}

/// Returns the first time from `from` on at which one more may be sent, so that no second has more than `max`, also with what
/// is reserved for later.
fn free_from(sent: &VecDeque<Instant>, max: usize, from: Instant) -> Instant {
    let later = sent.iter().map(|it| *it + SECOND).filter(|it| *it > from);
    let mut times = std::iter::once(from).chain(later);
    let free = times.find(|at| is_free(sent, max, *at));
    // After all of them there is room.
    free.unwrap_or_else(|| sent.back().map_or(from, |it| *it + SECOND))
}

fn is_free(sent: &VecDeque<Instant>, max: usize, at: Instant) -> bool {
    let near = sent.iter().copied();
    let mut near: Vec<_> = near
        .filter(|it| *it + SECOND > at && *it < at + SECOND)
        .collect();
    let place = near.partition_point(|it| *it <= at);
    near.insert(place, at);
    let mut seconds = near.iter().zip(near.iter().skip(max));
    seconds.all(|(first, last)| *last >= *first + SECOND)
}

fn remember(sent: &mut VecDeque<Instant>, max: usize, at: Instant) {
    if sent.len() >= max {
        sent.pop_front();
    }
    // A slot reserved for one chat may come after one that is reserved for another.
    let place = sent.partition_point(|it| *it <= at);
    sent.insert(place, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(pace: &mut Pace, chat: i64, now: Instant, count: usize) -> Vec<u64> {
        let waits = (0..count).map(|_| pace.reserve(chat, now));
        waits.map(|it| it.as_secs()).collect()
    }

    #[tokio::test]
    async fn no_second_has_more_than_thirty_messages_whatever_is_reserved_for_later() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let mut times = Vec::new();
        for _ in 0..3 {
            for chat in 0..40 {
                times.push(now + pace.reserve(chat, now));
            }
        }
        times.extend((100..200).map(|chat| now + pace.reserve(chat, now)));
        times.sort_unstable();
        for (first, last) in times.iter().zip(times.iter().skip(ALL_MAX)) {
            assert!(*last >= *first + SECOND);
        }
        // Nothing is held up longer than that takes.
        assert!(times.last() <= Some(&(now + SECOND * 8)));
    }

    #[tokio::test]
    async fn a_chat_takes_one_a_second_and_a_group_twenty_a_minute() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!(seconds(&mut pace, 7, now, 4), [0, 1, 2, 3]);
        let group = seconds(&mut pace, -7, now, 41);
        assert_eq!(group[..3], [0, 1, 2]);
        assert_eq!(group[19..22], [19, 60, 61]);
        assert_eq!(group[40], 120);
    }

    #[tokio::test]
    async fn all_chats_together_take_thirty_a_second() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let waits: Vec<u64> = (1..=61).map(|it| pace.reserve(it, now).as_secs()).collect();
        assert_eq!(waits[29..31], [0, 1]);
        assert_eq!(waits[59..61], [1, 2]);
    }

    #[tokio::test]
    async fn what_can_be_left_out_takes_no_place() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert!(pace.try_now(7, now));
        assert!(!pace.try_now(7, now));
        assert_eq!(pace.wait(7, now), SECOND);
        assert!(pace.try_now(7, now + SECOND));
    }

    #[tokio::test]
    async fn what_can_be_left_out_leaves_room_for_what_must_be_said() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let at = |second: u64| now + Duration::from_secs(second);
        let drafts = (0..50).filter(|it| pace.try_now(-7, at(*it)));
        assert_eq!(drafts.count(), 10);
        assert_eq!(pace.reserve(-7, at(50)), Duration::ZERO);
        let actions = (1..=40).filter(|it| pace.try_action(*it, at(50)));
        assert_eq!(actions.count(), 10);
    }

    #[tokio::test]
    async fn a_chat_that_was_told_to_wait_holds_no_other() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.hold(7, now + Duration::from_secs(90));
        assert_eq!(pace.reserve(7, now), Duration::from_secs(90));
        assert_eq!(pace.reserve(8, now), Duration::ZERO);
    }

    #[tokio::test]
    async fn quiet_chats_are_forgotten() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for chat in 0..10_500 {
            let later = now + Duration::from_secs(u64::try_from(chat).unwrap());
            pace.reserve(chat, later);
        }
        assert!(pace.chats.len() < CHATS_MAX);
    }
}
