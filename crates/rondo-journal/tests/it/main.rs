#![expect(clippy::indexing_slicing, reason = "tests")]

mod append;
mod damage;
mod export;
mod fork;
mod owner;
mod sessions;
mod support;
mod wal;
