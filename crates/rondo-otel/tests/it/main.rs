//! Turns over real sockets, and what a collector on loopback reads of them.
#![expect(clippy::unwrap_used, reason = "what fails here must fail its test")]

mod bench;
mod collector;
mod content;
mod delivery;
mod dialects;
mod failures;
mod turns;
