//! The file tools through the `Tool` trait, on real directories.

#![expect(clippy::unwrap_used, reason = "shared test code fails by panicking")]

mod bench;
mod change;
mod confine;
mod edit;
mod hidden;
mod instructions;
mod kept;
mod list;
mod parts;
mod race;
mod read;
mod recovery;
mod search;
mod specs;
mod write;
