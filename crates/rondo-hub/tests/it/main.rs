//! The hub end to end: people at a messenger on a socket, a scripted model server, and the journal on the disk.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what fails here must fail its test"
)]

mod answering;
mod approvals;
mod attacks;
mod choosing;
mod defects;
mod delivering;
mod edits;
mod elsewhere;
mod expiring;
mod extending;
mod folders;
#[expect(dead_code, reason = "the trial with kills uses more of it")]
mod messenger;
mod outgoing;
mod people;
mod restarting;
mod shortage;
mod suspects;
mod time;
mod timed;
mod workspace;
mod world;
