//! Sessions in memory, for tests and for programs that keep nothing.

use super::{
    NewSession, SessionInfo, SessionState, SessionStore, SessionStoreError, check_id, title,
};
use crate::history::History;
use crate::ports::{Journal, Mailbox as _, MemoryJournal, MemoryMailbox, Record, RecordBody, Seq};
use async_trait::async_trait;
use rondo_types::{SessionId, TimeMs};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Forks that an error names.
const CHILDREN_MAX: usize = 5;
/// Characters of an id that an error repeats.
const SHOWN_ID_CHARS: usize = 128;

/// Holds sessions and their mail in memory; clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    sessions: Arc<Mutex<Sessions>>,
    mailbox: MemoryMailbox,
}

#[derive(Debug, Default)]
struct Sessions {
    /// Counts those that began.
    begun: u64,
    by_id: HashMap<SessionId, Session>,
}

#[derive(Debug)]
struct Session {
    /// Its place among those that began.
    number: u64,
    new: NewSession,
    /// What it was renamed to.
    title: Option<String>,
    parent: Option<(SessionId, Seq)>,
    /// An owner from before, of the same records.
    journal: MemoryJournal,
    owner: Weak<MemoryJournal>,
}

impl Session {
    fn is_owned(&self) -> bool {
        self.owner.strong_count() > 0
    }

    fn take(&mut self) -> Arc<dyn Journal> {
        let owner = Arc::new(self.journal.taken_over());
        self.owner = Arc::downgrade(&owner);
        owner
    }

    /// One without records is not there for others.
    fn is_there(&self) -> bool {
        self.journal.at() > Seq(0)
    }

    fn updated(&self) -> TimeMs {
        let last = |records: &[Record]| records.last().map_or(TimeMs(0), |last| last.at_ms);
        self.journal.read(last).max(self.new.at)
    }

    fn title(&self) -> String {
        let begun = || self.journal.read(|records| self.new.shown_title(records));
        self.title.clone().unwrap_or_else(begun)
    }

    fn info(&self) -> SessionInfo {
        let (mut turns, mut is_open, mut is_parked) = (0, false, false);
        self.journal.read(|records| {
            for record in records {
                match record.body {
                    RecordBody::TurnStarted { .. } => (turns, is_open) = (turns + 1, true),
                    RecordBody::Final { .. } => is_open = false,
                    _ => {}
                }
                if record.body.is_of_turn() {
                    is_parked = matches!(record.body, RecordBody::Parked { .. });
                }
            }
        });
        SessionInfo {
            id: self.new.id.clone(),
            created: self.new.at,
            updated: self.updated(),
            head: self.journal.at(),
            parent: self.parent.clone(),
            title: self.title(),
            directory: self.new.directory.clone(),
            turns,
            state: match (is_open, self.is_owned()) {
                (false, _) => SessionState::Done,
                (true, true) => SessionState::Running,
                (true, false) if is_parked => SessionState::Parked,
                (true, false) => SessionState::CutOff,
            },
            imported: false,
            lost_end: false,
        }
    }
}

impl Sessions {
    fn find(&mut self, session: &SessionId) -> Result<&mut Session, SessionStoreError> {
        let found = self.by_id.get_mut(session).filter(|it| it.is_there());
        found.ok_or_else(|| SessionStoreError::Unknown {
            session: session.to_string(),
        })
    }

    fn add(
        &mut self,
        new: NewSession,
        parent: Option<(SessionId, Seq)>,
        journal: MemoryJournal,
    ) -> &mut Session {
        self.begun += 1;
        // Those that were begun and left nothing behind go before there is no more room.
        if self.by_id.len() == self.by_id.capacity() {
            self.by_id.retain(|_, it| it.is_there() || it.is_owned());
        }
        let session = Session {
            number: self.begun,
            new,
            title: None,
            parent,
            journal,
            owner: Weak::new(),
        };
        self.by_id
            .entry(session.new.id.clone())
            .insert_entry(session)
            .into_mut()
    }

    fn remove(&mut self, session: &SessionId) -> Result<(), SessionStoreError> {
        if self.find(session)?.is_owned() {
            return Err(in_use(session));
        }
        let is_child = |it: &&Session| it.parent.as_ref().is_some_and(|(it, _)| it == session);
        let mut children: Vec<_> = self.by_id.values().filter(is_child).collect();
        children.sort_unstable_by_key(|it| it.number);
        let children = children.iter().take(CHILDREN_MAX);
        let children: Vec<_> = children.map(|it| it.new.id.to_string()).collect();
        if !children.is_empty() {
            let session = session.clone();
            return Err(SessionStoreError::HasForks { session, children });
        }
        self.by_id.remove(session);
        Ok(())
    }
}

impl MemoryStore {
    /// Returns the mailbox of these sessions.
    #[must_use]
    pub fn mailbox(&self) -> MemoryMailbox {
        self.mailbox.clone()
    }

    /// Takes a session from its owner, if it has one, which can append no more.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn take_over(&self, session: &SessionId) -> Result<Arc<dyn Journal>, SessionStoreError> {
        Ok(self.sessions().find(session)?.take())
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_use(session: &SessionId) -> SessionStoreError {
    SessionStoreError::InUse {
        session: session.clone(),
        pid: Some(std::process::id()),
    }
}

fn checked(session: &SessionId) -> Result<(), SessionStoreError> {
    check_id(session).map_err(|reason| SessionStoreError::BadId {
        id: session.as_str().chars().take(SHOWN_ID_CHARS).collect(),
        reason: reason.to_owned(),
    })
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn begin(&self, new: NewSession) -> Result<Arc<dyn Journal>, SessionStoreError> {
        checked(&new.id)?;
        let mut sessions = self.sessions();
        if let Some(found) = sessions.by_id.get(&new.id) {
            match (found.is_there(), found.is_owned()) {
                (_, true) => return Err(in_use(&new.id)),
                (true, false) => return Err(SessionStoreError::Exists { session: new.id }),
                (false, false) => {}
            }
        }
        let journal = MemoryJournal::default().with_mailbox(self.mailbox());
        Ok(sessions.add(new, None, journal).take())
    }

    async fn take(&self, session: &SessionId) -> Result<Arc<dyn Journal>, SessionStoreError> {
        checked(session)?;
        let mut sessions = self.sessions();
        let found = sessions.by_id.get(session);
        if found.is_some_and(Session::is_owned) {
            return Err(in_use(session));
        }
        Ok(sessions.find(session)?.take())
    }

    async fn history(&self, session: &SessionId) -> Result<History, SessionStoreError> {
        let mut sessions = self.sessions();
        Ok(sessions
            .find(session)?
            .journal
            .read(|records| History::of(records)))
    }

    async fn read(
        &self,
        session: &SessionId,
        from: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, Record)>, SessionStoreError> {
        let mut sessions = self.sessions();
        Ok(sessions.find(session)?.journal.read(|records| {
            let all = (1..).map(Seq).zip(records);
            let asked = all.skip_while(|(at, _)| *at < from).take(limit);
            asked.map(|(at, record)| (at, record.clone())).collect()
        }))
    }

    async fn list(&self, limit: usize) -> Result<Vec<SessionInfo>, SessionStoreError> {
        let sessions = self.sessions();
        let mut there: Vec<_> = sessions.by_id.values().filter(|it| it.is_there()).collect();
        there.sort_by_cached_key(|it| Reverse((it.updated(), it.number)));
        Ok(there.into_iter().take(limit).map(Session::info).collect())
    }

    async fn info(&self, session: &SessionId) -> Result<SessionInfo, SessionStoreError> {
        Ok(self.sessions().find(session)?.info())
    }

    async fn rename(&self, session: &SessionId, to: &str) -> Result<(), SessionStoreError> {
        self.sessions().find(session)?.title = Some(title(to));
        Ok(())
    }

    async fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        new: &SessionId,
        now: TimeMs,
    ) -> Result<(), SessionStoreError> {
        checked(new)?;
        let mut sessions = self.sessions();
        let found = sessions.find(parent)?;
        let last = found.journal.at();
        if at == Seq(0) || at > last {
            return Err(SessionStoreError::NoSuchRecord {
                session: parent.clone(),
                seq: at.0,
                last: last.0,
            });
        }
        let shared = usize::try_from(at.0).unwrap_or(usize::MAX);
        let of = |records: &[Record]| records.iter().take(shared).cloned().collect();
        let (records, title) = (found.journal.read(of), found.title());
        let directory = found.new.directory.clone();
        if sessions.by_id.contains_key(new) {
            let session = new.clone();
            return Err(SessionStoreError::Exists { session });
        }
        let new = NewSession {
            id: new.clone(),
            at: now,
            title,
            directory,
        };
        let journal = MemoryJournal::with_records(records).with_mailbox(self.mailbox());
        sessions.add(new, Some((parent.clone(), at)), journal);
        Ok(())
    }

    async fn remove(&self, session: &SessionId) -> Result<(), SessionStoreError> {
        self.sessions().remove(session)?;
        // In memory nothing fails.
        let _ = self.mailbox.discard(session).await;
        Ok(())
    }

    async fn retain(&self, since: TimeMs) -> Result<Vec<SessionId>, SessionStoreError> {
        let mut removed = Vec::new();
        loop {
            let count = removed.len();
            {
                let mut sessions = self.sessions();
                let old = sessions.by_id.values();
                let old = old.filter(|it| it.is_there() && it.updated() < since);
                let mut old: Vec<_> = old.map(|it| (it.number, it.new.id.clone())).collect();
                old.sort_unstable_by_key(|(number, _)| Reverse(*number));
                let ids = old.into_iter().map(|(_, id)| id);
                removed.extend(ids.filter(|id| sessions.remove(id).is_ok()));
            }
            if removed.len() == count {
                break;
            }
        }
        for session in &removed {
            let _ = self.mailbox.discard(session).await;
        }
        Ok(removed)
    }
}
