//! A session seen from another process: the events of its turns, by its records.

use crate::error::Result;
use crate::sessions;
use crate::settings::Settings;
use rondo_core::ports::{Entry, Record, RecordBody, Seq};
use rondo_core::replay::{Changes, Replayer};
use rondo_core::session_store::SessionState;
use rondo_core::storage::Store;
use rondo_types::{EventBody, Outcome, SessionId, TurnEvent};

/// Records that are read at once.
const PAGE: usize = 512;

/// Follows a session that another process works on, from the beginning of its latest turn.
///
/// The events are those that a replay of the records tells: text comes in whole replies, and the live output of
/// commands is in no record. They lag behind the turn by what it has not recorded yet.
pub struct SessionWatch {
    /// The session.
    pub session: SessionId,
    store: Store,
    /// Stands before the turn that is followed.
    before: Replayer,
    /// The records of that turn so far.
    turn: Vec<Record>,
    /// The next record to read.
    next: Seq,
    /// Events of the turn that were handed over.
    told: usize,
}

/// What is new in a watched session.
#[derive(Debug, Default)]
pub struct Seen {
    /// The question of a turn that began, and of each that joined it.
    pub said: Vec<String>,
    /// The events, in order.
    pub events: Vec<TurnEvent>,
    /// The exit code of the process that worked on the turn, once the turn is over and where it is recorded.
    pub exit_code: Option<i32>,
    /// The turn's outcome, once it is over.
    pub outcome: Option<Outcome>,
}

impl SessionWatch {
    /// Finds a session by its id, a prefix of it, or `latest`, and reads up to its latest turn.
    ///
    /// # Errors
    /// When there is no such session, or its records cannot be read.
    pub fn open(settings: &Settings, name: &str) -> Result<Self> {
        let store = sessions::open_to_read(settings)?;
        let session = sessions::find(&store, name)?.id;
        let mut watch = Self {
            before: Replayer::new(session.clone(), Changes::default()),
            session,
            store,
            turn: Vec::new(),
            next: Seq(1),
            told: 0,
        };
        watch.read()?;
        Ok(watch)
    }

    /// Returns where the session stands now.
    ///
    /// # Errors
    /// When it is gone, or the disk fails.
    pub fn state(&self) -> Result<SessionState> {
        let info = self.store.session(&self.session);
        Ok(info.map_err(sessions::failed)?.state)
    }

    /// Returns what is new since the last call; the first one returns the latest turn from its beginning.
    ///
    /// # Errors
    /// When the records cannot be read, or are not those of a session.
    pub fn look(&mut self) -> Result<Seen> {
        let seen = self.turn.len();
        let is_first = self.told == 0;
        self.read()?;
        let new = if is_first {
            0
        } else {
            seen.min(self.turn.len())
        };
        let said = self.turn.get(new..).unwrap_or_default().iter();
        let said = said.filter_map(|record| match &record.body {
            RecordBody::UserMessage { message } => Some(message.text()),
            _ => None,
        });
        let said = said.collect();
        if self.turn.is_empty() {
            return Ok(Seen::default());
        }
        let played = self
            .before
            .clone()
            .turn(&self.turn)
            .map_err(sessions::unreadable)?;
        let all: Vec<TurnEvent> = played.streams.into_iter().flatten().collect();
        let events = all.get(self.told..).unwrap_or_default().to_vec();
        self.told = all.len();
        Ok(Seen {
            said,
            events,
            outcome: played.outcome,
            exit_code: played.process.map(|it| it.exit_code),
        })
    }

    /// Reads what was recorded since; a turn that follows takes the place of the one before.
    fn read(&mut self) -> Result<()> {
        loop {
            let entries = self.store.read(&self.session, self.next, PAGE);
            let entries = entries.map_err(sessions::failed)?;
            let count = entries.len();
            for entry in entries {
                self.next = Seq(entry.seq.0 + 1);
                if let Some(record) = Entry::into_record(entry) {
                    self.take(record)?;
                }
            }
            if count < PAGE {
                return Ok(());
            }
        }
    }

    fn take(&mut self, record: Record) -> Result<()> {
        if !record.body.is_of_turn() {
            return Ok(());
        }
        let is_other = self.turn.last().is_some_and(|it| it.turn != record.turn);
        if is_other {
            self.before.turn(&self.turn).map_err(sessions::unreadable)?;
            self.turn.clear();
            self.told = 0;
        }
        self.turn.push(record);
        Ok(())
    }
}

/// Returns whether nothing more comes of a turn until someone does something about it.
#[must_use]
pub fn is_last(event: &EventBody) -> bool {
    matches!(event, EventBody::Result(_) | EventBody::Parked { .. })
}
