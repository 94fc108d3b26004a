//! The durable journal of sessions.
//!
//! One SQLite file holds the records of any number of sessions. A session has one owner process at
//! a time; any number of processes work side by side on different sessions, and read all of them.
//!
//! # Layout
//! - [`Store`]: the file; lists, forks, exports, imports, checks and removes sessions. It implements
//!   [`Storage`](rondo_core::storage::Storage), the port that hosts use, with their mailbox, outbox, notes and budgets.
//! - [`OwnedSession`]: one session that this process may append to.
//! - [`Exported`](rondo_core::storage::Exported): an exported session, read without a store.
//! - [`Entry`]: one record as it is kept, with its place in the hash chain.
//!
//! # What is promised
//! - `append` returns after the commit, and with [`Durability::Full`] after `fdatasync`: what it
//!   returned for survives `kill -9` and loss of power.
//! - A batch is there whole or not at all, and at the place its writer expected or not at all.
//! - A record is never changed. Each carries the hash of all before it, so a change, a gap or a
//!   lost end shows.
//! - One bad session does not keep another from being read or written.
#![warn(missing_docs)]

mod blob;
mod budget;
mod check;
mod commit_thread;
mod directory;
mod error;
mod export;
mod file_system;
mod fork;
mod history;
mod import;
mod journal_file;
mod lock;
mod mailbox;
mod mend;
mod outbox;
mod owned;
mod read;
mod repair;
mod reserve;
mod retention;
mod salvage;
mod schema;
mod sessions;
mod storage;
mod store;
mod turn_count;

pub use directory::sync_above;
pub use error::JournalError;
pub use owned::OwnedSession;
pub use rondo_core::ports::{
    Body, BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope, ChainHash, Entry, RECORD_VERSION,
};
pub use rondo_core::session_store::{LateTurn, NewSession, SessionInfo, SessionState};
pub use rondo_core::storage::{Cut, Defect, Imported, Report, Retention, Salvaged};
pub use store::{Durability, Options, Store};
