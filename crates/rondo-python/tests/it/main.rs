//! Sessions with real interpreters.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed expectation of a test is a panic"
)]

mod capabilities;
mod cells;
mod directory;
mod fixture;
mod hostile;
mod looks;
mod lost;
mod restore;
mod sharing;
#[cfg(target_os = "linux")]
mod supervised;
mod terminal;
mod tools;
