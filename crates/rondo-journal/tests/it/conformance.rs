//! What every engine promises its one user, the driver. Each runs the same suite.

use crate::support::{id, said};
use rondo_core::Journal;
use rondo_core::ports::{AppendError, Commit, Fence, MemoryJournal, Record, Seq};
use rondo_journal::{Durability, NewSession, Options, OwnedSession, Store};
use rondo_types::TimeMs;
use std::sync::Arc;
use tempfile::TempDir;

/// A session of an engine.
trait Engine: Sized {
    type Session: Journal + 'static;

    /// Begins a session that has no records.
    fn begin() -> (Self, Self::Session);

    /// Takes the session from its owner, who does not notice.
    fn take_over(&self) -> Self::Session;

    /// Reads what is recorded, as another process would.
    fn recorded(&self) -> Vec<Record>;
}

struct Memory(MemoryJournal);

impl Engine for Memory {
    type Session = MemoryJournal;

    fn begin() -> (Self, MemoryJournal) {
        let first = MemoryJournal::default();
        let owner = first.taken_over();
        (Self(first), owner)
    }

    fn take_over(&self) -> MemoryJournal {
        self.0.taken_over()
    }

    fn recorded(&self) -> Vec<Record> {
        self.0.records()
    }
}

struct Sqlite<const FULL: bool>(TempDir);

impl<const FULL: bool> Sqlite<FULL> {
    fn store(&self) -> Store {
        let durability = if FULL {
            Durability::Full
        } else {
            Durability::Normal
        };
        let options = Options {
            durability,
            ..Options::default()
        };
        Store::open(self.0.path(), options).unwrap()
    }
}

impl<const FULL: bool> Engine for Sqlite<FULL> {
    type Session = OwnedSession;

    fn begin() -> (Self, OwnedSession) {
        let engine = Self(TempDir::new().unwrap());
        let new = NewSession::new(id("a"), TimeMs(1));
        let owned = engine.store().begin(new).unwrap();
        (engine, owned)
    }

    fn take_over(&self) -> OwnedSession {
        // The lock would refuse; the epoch holds where locks do not.
        std::fs::remove_dir_all(self.0.path().join("locks")).unwrap();
        self.store().own(&id("a")).unwrap()
    }

    fn recorded(&self) -> Vec<Record> {
        self.store().load(&id("a")).unwrap_or_default()
    }
}

fn fence(journal: &impl Journal) -> Fence {
    Fence {
        session: id("a"),
        epoch: journal.epoch(),
    }
}

async fn records_are_kept_in_order<E: Engine>() {
    let (engine, journal) = E::begin();
    assert_eq!(journal.at(), Seq(0));
    let fence = fence(&journal);
    let empty = journal
        .append(&fence, Seq(0), Vec::new(), Commit::default())
        .await;
    assert_eq!(empty.unwrap(), Seq(0));
    let batch = vec![said("one"), said("two")];
    assert_eq!(
        journal
            .append(&fence, Seq(0), batch, Commit::default())
            .await
            .unwrap(),
        Seq(2)
    );
    let batch = vec![said("three")];
    assert_eq!(
        journal
            .append(&fence, Seq(2), batch, Commit::default())
            .await
            .unwrap(),
        Seq(3)
    );
    assert_eq!(journal.at(), Seq(3));
    let expected: Vec<_> = ["one", "two", "three"].map(said).into();
    assert_eq!(engine.recorded(), expected);
}

async fn another_place_is_refused_whole<E: Engine>() {
    let (engine, journal) = E::begin();
    let fence = fence(&journal);
    journal
        .append(&fence, Seq(0), vec![said("one")], Commit::default())
        .await
        .unwrap();
    for wrong in [0, 2, 9] {
        let batch = vec![said("x"), said("y")];
        let refused = journal
            .append(&fence, Seq(wrong), batch, Commit::default())
            .await;
        assert!(matches!(
            refused,
            Err(AppendError::Conflict { expected, actual: Seq(1) }) if expected == Seq(wrong)
        ));
    }
    assert_eq!(journal.at(), Seq(1));
    assert_eq!(engine.recorded(), [said("one")]);
}

async fn an_owner_that_was_replaced_is_fenced<E: Engine>() {
    let (engine, first) = E::begin();
    let old = fence(&first);
    first
        .append(&old, Seq(0), vec![said("one")], Commit::default())
        .await
        .unwrap();
    let second = engine.take_over();
    assert!(second.epoch() > first.epoch());
    assert_eq!(second.at(), Seq(1));
    let late = first
        .append(&old, Seq(1), vec![said("late")], Commit::default())
        .await;
    assert!(matches!(late, Err(AppendError::Fenced { .. })));
    let new = fence(&second);
    second
        .append(&new, Seq(1), vec![said("two")], Commit::default())
        .await
        .unwrap();
    assert_eq!(engine.recorded(), [said("one"), said("two")]);
}

async fn of_writers_at_the_same_place_one_wins<E: Engine>() {
    let (engine, journal) = E::begin();
    let journal = Arc::new(journal);
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let journal = Arc::clone(&journal);
            let record = said(&n.to_string());
            tokio::spawn(async move {
                let fence = fence(journal.as_ref());
                journal
                    .append(&fence, Seq(0), vec![record], Commit::default())
                    .await
                    .is_ok()
            })
        })
        .collect();
    let mut won = 0;
    for writer in writers {
        won += usize::from(writer.await.unwrap());
    }
    assert_eq!(won, 1);
    assert_eq!(engine.recorded().len(), 1);
}

async fn all<E: Engine>() {
    records_are_kept_in_order::<E>().await;
    another_place_is_refused_whole::<E>().await;
    an_owner_that_was_replaced_is_fenced::<E>().await;
    of_writers_at_the_same_place_one_wins::<E>().await;
}

#[tokio::test]
async fn memory_is_an_engine() {
    all::<Memory>().await;
}

#[tokio::test]
async fn sqlite_is_an_engine() {
    all::<Sqlite<true>>().await;
}

#[tokio::test]
async fn sqlite_without_a_sync_for_each_commit_is_an_engine() {
    all::<Sqlite<false>>().await;
}
