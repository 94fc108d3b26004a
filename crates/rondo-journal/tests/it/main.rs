//! Sessions through the store, in real files.

#![expect(clippy::unwrap_used, reason = "shared test code fails by panicking")]

mod any_record;
mod append;
mod conformance;
mod damage;
mod export;
mod fork;
mod history;
mod mailbox;
mod owner;
mod place;
mod recorded_kinds;
mod recorded_turns;
mod salvage;
mod sessions;
/// Player of the fixtures' turns.
#[expect(dead_code, reason = "only what carries a turn on is needed here")]
#[path = "../../examples/journal/stage.rs"]
mod stage;
mod support;
mod versions;
mod wal;
