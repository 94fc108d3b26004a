//! Sessions through the store, in real files.

#![expect(clippy::unwrap_used, reason = "shared test code fails by panicking")]

mod append;
mod conformance;
mod damage;
mod export;
mod fork;
mod history;
mod owner;
mod place;
mod sessions;
mod support;
mod versions;
mod wal;
