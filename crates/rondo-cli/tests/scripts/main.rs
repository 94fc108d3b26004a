//! Scripts as their users run them: `rondo run`, against a scripted model server.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper that fails must fail its test"
)]

mod attacks;
mod durable;
mod endings;
mod examples;
mod extending;
mod failures;
#[path = "../it/harness.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod harness;
mod kills;
mod language;
mod loops;
mod own_acts;
mod recorded;
mod sessions;
mod world;
