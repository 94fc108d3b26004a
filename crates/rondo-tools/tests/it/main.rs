//! The file tools through the `Tool` trait, on real directories.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod bench;
mod confine;
mod edit;
mod list;
mod parts;
mod race;
mod read;
mod search;
mod specs;
mod write;
