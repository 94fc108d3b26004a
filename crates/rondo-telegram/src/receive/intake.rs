//! Which updates wait, which are being worked on, and which are done.

use super::update::Update;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// How long an album or a long text may continue growing after its latest part, and in all.
const ALBUM_SETTLES: Duration = Duration::from_secs(1);
const ALBUM_MAX: Duration = Duration::from_secs(8);
/// How long a chat rests whose updates could not be taken.
const REST: Duration = Duration::from_secs(2);

/// The updates since the oldest that is not confirmed. Telegram returns at most 100 from there on, which is the bound.
#[derive(Debug, Default)]
pub(super) struct Intake {
    /// Received updates; `true` once one is done.
    known: BTreeMap<i64, bool>,
    chats: HashMap<i64, Chat>,
}

#[derive(Debug, Default)]
struct Chat {
    waiting: VecDeque<(Instant, Update)>,
    is_running: bool,
    rests_until: Option<Instant>,
}

/// State of a chat's updates.
#[derive(Debug)]
pub(super) struct IntakeResult {
    pub(super) chat_id: i64,
    /// The ids of those that are done.
    pub(super) done: Vec<i64>,
    /// Those to try again.
    pub(super) left: Vec<Update>,
}

impl Intake {
    /// Returns the update at which to continue: the oldest that is not done, else the one after all. Without any to
    /// confirm there is
    /// none, since ids may start over at a lower number after a week of silence.
    pub(super) fn offset(&self) -> Option<i64> {
        let pending = self
            .known
            .iter()
            .find(|(_, done)| !**done)
            .map(|(id, _)| *id);
        let after = || {
            self.known
                .last_key_value()
                .map(|(id, _)| id.saturating_add(1))
        };
        pending.or_else(after)
    }

    /// Takes an answer to a request for updates from an offset on, which was [`Intake::offset`] then.
    pub(super) fn polled(&mut self, offset: Option<i64>, updates: Vec<Update>, now: Instant) {
        if let Some(offset) = offset {
            // Lower ids were confirmed by asking.
            self.known = self.known.split_off(&offset);
        }
        for update in updates {
            if self.known.contains_key(&update.id) {
                continue;
            }
            let chat_id = update.chat_id();
            self.known.insert(update.id, chat_id.is_none());
            if let Some(chat_id) = chat_id {
                let chat = self.chats.entry(chat_id).or_default();
                chat.waiting.push_back((now, update));
            }
        }
    }

    /// Takes the updates of a chat that can be worked on.
    pub(super) fn next_ready(&mut self, now: Instant) -> Option<(i64, Vec<Update>)> {
        let (id, chat) = self.chats.iter_mut().find(|(_, chat)| chat.is_ready(now))?;
        chat.is_running = true;
        let items = chat.waiting.drain(..).map(|(_, update)| update).collect();
        Some((*id, items))
    }

    pub(super) fn has_ready(&self, now: Instant) -> bool {
        self.chats.values().any(|chat| chat.is_ready(now))
    }

    /// Returns whether any update is not done.
    pub(super) fn has_work(&self) -> bool {
        !self.chats.is_empty()
    }

    pub(super) fn finish(&mut self, taken: IntakeResult, now: Instant) {
        for id in taken.done {
            self.known.insert(id, true);
        }
        let Some(chat) = self.chats.get_mut(&taken.chat_id) else {
            return;
        };
        chat.is_running = false;
        chat.rests_until = (!taken.left.is_empty()).then(|| now + REST);
        for update in taken.left.into_iter().rev() {
            chat.waiting.push_front((now, update));
        }
        if chat.waiting.is_empty() {
            self.chats.remove(&taken.chat_id);
        }
    }
}

impl Chat {
    fn is_ready(&self, now: Instant) -> bool {
        let rests = self.rests_until.is_some_and(|until| until > now);
        !self.is_running && !rests && !self.waiting.is_empty() && !self.grows(now)
    }

    /// Returns whether something that waits may continue in further updates: an album, or a long text.
    fn grows(&self, now: Instant) -> bool {
        let growing = self.waiting.iter().enumerate().filter(|(place, (_, it))| {
            let mut later = self.waiting.iter().skip(place + 1);
            it.may_go_on() && !later.any(|(_, later)| later.ends(it))
        });
        let mut times = growing.map(|(_, (at, _))| *at);
        let Some(first) = times.next() else {
            return false;
        };
        let latest = times.next_back().unwrap_or(first);
        now < latest + ALBUM_SETTLES && now < first + ALBUM_MAX
    }
}

#[cfg(test)]
mod tests;
