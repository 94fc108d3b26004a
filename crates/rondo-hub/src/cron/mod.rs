//! Scheduled jobs, which people set up in their chats, and the heartbeat.
//!
//! A job is a row. When it is due, one transaction submits its prompt to the chat's session, under a key of the job and the
//! instant, and sets the next time; so an instant runs once, whichever processes look at it and wherever they end. The
//! turn runs as the person who made the job, with the role that they have at that time.
//!
//! # Layout
//! - [`schedule`]: when a job runs. [`job`]: what it is, and how its runs went.
//! - `runner`: looks what is due. [`heartbeat`]: the turn that looks after things by itself.

pub mod heartbeat;
pub mod job;
pub(crate) mod runner;
pub mod schedule;

pub use heartbeat::HeartbeatConfig;
