//! What every engine promises, of the engines that are here.

use async_trait::async_trait;
use rondo_conformance::Engine;
use rondo_core::Journal;
use rondo_core::ports::{Mailbox, MemoryJournal, MemoryMailbox, Record};
use rondo_journal::{Durability, NewSession, Options, Store};
use rondo_types::{SessionId, TimeMs};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

#[derive(Default)]
struct Memory {
    mailbox: MemoryMailbox,
    sessions: Mutex<HashMap<SessionId, Arc<MemoryJournal>>>,
}

impl Memory {
    fn keep(&self, session: &SessionId, journal: MemoryJournal) -> Arc<dyn Journal> {
        let journal = Arc::new(journal.with_mailbox(self.mailbox.clone()));
        let mut sessions = self.sessions.lock().unwrap();
        sessions.insert(session.clone(), Arc::clone(&journal));
        journal
    }
}

#[async_trait]
impl Engine for Memory {
    async fn begin(&self, session: &SessionId) -> Arc<dyn Journal> {
        self.keep(session, MemoryJournal::default())
    }

    async fn take_over(&self, session: &SessionId) -> Arc<dyn Journal> {
        let taken = self.sessions.lock().unwrap()[session].taken_over();
        self.keep(session, taken)
    }

    async fn recorded(&self, session: &SessionId) -> Vec<Record> {
        self.sessions.lock().unwrap()[session].records()
    }

    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.mailbox.clone())
    }

    async fn full(&self, session: &SessionId) -> Option<Arc<dyn Journal>> {
        let records = vec![crate::support::said("x"); MemoryJournal::RECORDS_MAX];
        Some(self.keep(session, MemoryJournal::with_records(records)))
    }

    async fn opened_again(self: Box<Self>) -> Option<Box<dyn Engine>> {
        None
    }
}

struct Sqlite {
    dir: TempDir,
    options: Options,
    store: Store,
}

impl Sqlite {
    fn new(durability: Durability) -> Self {
        let options = Options {
            durability,
            ..Options::default()
        };
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), options).unwrap();
        Self {
            dir,
            options,
            store,
        }
    }

    fn other(&self) -> Store {
        Store::open(self.dir.path(), self.options).unwrap()
    }
}

#[async_trait]
impl Engine for Sqlite {
    async fn begin(&self, session: &SessionId) -> Arc<dyn Journal> {
        let new = NewSession::new(session.clone(), TimeMs(1));
        Arc::new(self.store.begin(new).unwrap())
    }

    async fn take_over(&self, session: &SessionId) -> Arc<dyn Journal> {
        // The lock would refuse; the epoch holds where locks do not.
        let locks = self.dir.path().join("locks");
        std::fs::remove_dir_all(&locks).unwrap();
        Arc::new(self.other().own(session).unwrap())
    }

    async fn recorded(&self, session: &SessionId) -> Vec<Record> {
        // A session that has no records yet is not there for others.
        self.store.load(session).unwrap_or_default()
    }

    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.other())
    }

    async fn opened_again(self: Box<Self>) -> Option<Box<dyn Engine>> {
        let Self {
            dir,
            options,
            store,
        } = *self;
        drop(store);
        let store = Store::open(dir.path(), options).unwrap();
        Some(Box::new(Self {
            dir,
            options,
            store,
        }))
    }
}

mod memory {
    rondo_conformance::engine_tests!(super::Memory::default());
}

mod sqlite {
    rondo_conformance::engine_tests!(super::Sqlite::new(super::Durability::Full));
}

mod sqlite_without_a_sync_for_each_commit {
    rondo_conformance::engine_tests!(super::Sqlite::new(super::Durability::Normal));
}
