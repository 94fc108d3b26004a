//! A session as a state machine: which message begins a turn, which one joins the turn that runs, and what a
//! parked turn waits for. It decides and never waits; the session's owner does what its actions say.
//!
//! # Layout
//! - [`io`]: inputs and actions.
//! - [`machine`]: the machine.
//!
//! # What is durable
//! Nothing here is. Messages that wait are rows of a mailbox, a turn and its questions are records; both are told
//! to a new machine after a crash, and it continues as the old one would have.

pub mod io;
pub mod machine;
#[cfg(test)]
mod tests;

pub use io::{Action, Delivery, Input, QueuedMessage, Refusal, Run, SessionEvent, TicketId};
pub use machine::{QUEUED_MAX, SessionMachine};
pub use rondo_types::{Answer, AnswerValue, Question, QuestionId, QuestionKind};
