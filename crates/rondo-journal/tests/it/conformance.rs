//! What every engine promises, of the engines that are here.

use async_trait::async_trait;
use rondo_conformance::Engine;
use rondo_core::Journal;
use rondo_core::ports::{Commit, Fence, HostStore, Mailbox, MemoryJournal, Outbox, Seq};
use rondo_core::session_store::{MemoryStore, SessionStore};
use rondo_journal::{Durability, Options, Store};
use rondo_types::SessionId;
use std::sync::Arc;
use tempfile::TempDir;

#[derive(Default)]
struct Memory(MemoryStore);

#[async_trait]
impl Engine for Memory {
    fn sessions(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.clone())
    }

    async fn take_over(&self, session: &SessionId) -> Arc<dyn Journal> {
        self.0.take_over(session).unwrap()
    }

    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.0.mailbox())
    }

    fn outbox(&self) -> Arc<dyn Outbox> {
        Arc::new(self.0.mailbox())
    }

    fn host_store(&self) -> Arc<dyn HostStore> {
        Arc::new(self.0.mailbox())
    }

    async fn full(&self, session: &SessionId) -> Option<Arc<dyn Journal>> {
        let journal = self.begin(session).await;
        let fence = Fence {
            session: session.clone(),
            epoch: journal.epoch(),
        };
        let batch = vec![crate::support::said("x"); MemoryJournal::RECORDS_MAX];
        let appended = journal.append(&fence, Seq(0), batch, Commit::default());
        appended.await.unwrap();
        Some(journal)
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
    fn sessions(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.store.clone())
    }

    async fn take_over(&self, session: &SessionId) -> Arc<dyn Journal> {
        // The lock would refuse; the epoch holds where locks do not.
        let locks = self.dir.path().join("locks");
        std::fs::remove_dir_all(&locks).unwrap();
        Arc::new(self.other().own(session).unwrap())
    }

    fn mailbox(&self) -> Arc<dyn Mailbox> {
        Arc::new(self.other())
    }

    fn outbox(&self) -> Arc<dyn Outbox> {
        Arc::new(self.other())
    }

    fn host_store(&self) -> Arc<dyn HostStore> {
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
