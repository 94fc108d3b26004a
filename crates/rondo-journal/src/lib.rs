//! The durable journal of sessions.
//!
//! One SQLite file holds the records of any number of sessions. A session has one owner process at
//! a time; any number of processes work side by side on different sessions, and read all of them.
//!
//! # Layout
//! - [`Store`]: the file; lists, forks, exports, imports, checks and removes sessions. It implements
//!   [`Storage`](rondo_core::storage::Storage), the port that hosts use, with their mailbox, outbox, notes and budgets.
//! - [`OwnedSession`]: one session that this process may append to.
//! - [`ExportedSession`](rondo_core::storage::ExportedSession): an exported session, read without a store.
//! - [`Entry`]: one record as it is kept, with its place in the hash chain.
//!
//! # What is promised
//! - `append` returns after the commit, and with [`Durability::Full`] after `fdatasync`: what it
//!   returned for survives `kill -9` and loss of power.
//! - A batch is there whole or not at all, and at the place its writer expected or not at all.
//! - A record is never changed. Each carries the hash of all before it, so a change, a gap or a
//!   lost end shows.
//! - One bad session does not keep another from being read or written.
//!
//! # How it is stored
//! A record is a fact in JSON (`RecordBody`) with its turn, step, time and version. Everything derived from records (the head,
//! the number of turns, a snapshot of the transcript) can be computed again and may be dropped.
//!
//! - **Fence.** A writer holds a kernel lock on the session's own lock file, which no crash leaves behind, and an epoch that
//!   each new owner raises. An append names its epoch and the position it expects, and is refused as a whole if either
//!   differs. Raising the epoch does not wait for the disk: only a loss of power could undo it, and that leaves no owner.
//! - **Forks** hold their parent, a position, and their own records from there. The chain continues; nothing is copied.
//! - **Group commit.** One thread writes: it takes all waiting appends, of any session, into one transaction. A thousand
//!   sessions share one `fdatasync`. After a failed sync nothing more is accepted, because the kernel does not report again
//!   what it dropped.
//! - **Mailbox.** A submission is a row of the table `mail`, durable before it returns, from any process, and even before the
//!   session exists. An append names the rows it used (`Commit::ack`), which are removed in the same transaction. A key counts
//!   once: the newest 512 keys of a session are kept. At most 256 messages and 64 answers and cancellations wait, 64 MiB together.
//! - **Bodies** over 16 KiB are stored under their hash, once.
//! - **Budgets** are reserved in the transaction that checks them, so two processes cannot both take the last of one. Sessions
//!   that calls started count as their root session, which their ids name.
//! - **Bounds.** Reading takes about a megabyte at a time and holds only the conversation, or the current turn. An import uses
//!   bounded commits, and its session stays empty until the last one.
//! - **Versions.** A program reads records of its own version and all older ones. Kinds that only a later version knows are
//!   kept, exported, counted by `fsck` and skipped; unknown fields are kept. Tables and exports of a later *major* version are
//!   refused. `fixtures/journal` holds what each version wrote, and `tests/it/versions.rs` reads, imports, appends to and
//!   forks it.
//!
//! The full output of a command is not in the journal: its supervisor keeps it in the call's own files.
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
pub use rondo_core::storage::{CutRecords, Defect, Imported, Report, Retention, SalvagedStore};
pub use store::{Durability, Options, Store};
