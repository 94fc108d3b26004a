//! The web as a model may read it: scripted servers on loopback under public names, and hostile documents.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper that fails must fail its test"
)]

mod egress;
mod fetch;
mod names;
#[cfg(target_os = "linux")]
mod proxy;
mod reader;
mod search;
