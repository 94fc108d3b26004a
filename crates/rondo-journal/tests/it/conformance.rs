//! Promises of every engine, for the journal in a directory and in memory.

use async_trait::async_trait;
use rondo_conformance::Engine;
use rondo_core::Journal;
use rondo_journal::{Durability, Options, Store};
use rondo_types::SessionId;
use std::sync::Arc;
use tempfile::TempDir;

struct Memory(Store);

impl Memory {
    fn new() -> Self {
        Self(Store::in_memory().unwrap())
    }
}

#[async_trait]
impl Engine for Memory {
    fn store(&self) -> rondo_core::storage::Store {
        Arc::new(self.0.clone())
    }

    async fn take_over(&self, _: &SessionId) -> Option<Arc<dyn Journal>> {
        // Its locks are in the memory of the one process that has it.
        None
    }

    async fn opened_again(self: Box<Self>) -> Option<Box<dyn Engine>> {
        None
    }
}

struct Sqlite {
    dir: TempDir,
    options: Options,
}

impl Sqlite {
    fn new(durability: Durability) -> Self {
        let options = Options {
            durability,
            ..Options::default()
        };
        let dir = TempDir::new().unwrap();
        Self { dir, options }
    }

    fn opened(&self) -> Store {
        Store::open(self.dir.path(), self.options).unwrap()
    }
}

#[async_trait]
impl Engine for Sqlite {
    fn store(&self) -> rondo_core::storage::Store {
        Arc::new(self.opened())
    }

    async fn take_over(&self, session: &SessionId) -> Option<Arc<dyn Journal>> {
        // The lock would refuse; the epoch holds where locks do not.
        let locks = self.dir.path().join("locks");
        std::fs::remove_dir_all(&locks).unwrap();
        Some(Arc::new(self.opened().own(session).unwrap()))
    }

    async fn opened_again(self: Box<Self>) -> Option<Box<dyn Engine>> {
        Some(self)
    }
}

mod memory {
    rondo_conformance::engine_tests!(super::Memory::new());
}

mod sqlite {
    rondo_conformance::engine_tests!(super::Sqlite::new(super::Durability::Full));
}

mod sqlite_without_a_sync_for_each_commit {
    rondo_conformance::engine_tests!(super::Sqlite::new(super::Durability::Normal));
}
