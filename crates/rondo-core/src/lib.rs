//! The bounded turn: the sans-IO machine, the ports through which it acts, and the driver that runs it.
//!
//! # Layout
//! - [`ports`]: the traits that a turn acts through: [`Model`], [`Tool`], [`Gate`], [`Approver`], [`Journal`].
//! - [`events`]: the ordered event stream of a turn, which never blocks it.
//! - [`accumulator`]: assembles the events of a reply.
//! - [`joined`]: joins the deltas of an event stream, so that a run and its replay can be compared.
//! - [`machine`]: the turn as a state machine.
//! - [`profile`]: named sets of limits, as TOML data in layers; the built-in ones are in `profiles/`.
//! - [`catalog`]: checks arguments and answers against their JSON Schemas.
//! - [`clock`]: the only place that reads a clock.
//! - [`driver`]: the only loop that awaits.
//! - [`notices`]: notes for the user, apart from the answer.
//! - [`observe`]: hooks for telemetry.
//! - [`compaction`]: summarises, drops and shortens older messages.
//! - [`history`]: a session's transcript, from its records.
//! - [`OutsideText`]: whether a conversation holds text from outside.
//! - [`redact`]: removes known secrets from what is sent, shown and recorded.
//! - [`redrive`]: rebuilds a machine's state from the records of its turn, to resume it.
//! - [`replay`]: runs a session again from its records alone, and reports differences.
//! - [`pairing`]: makes every call of a transcript have exactly one result.
//! - [`session`]: a session as a state machine: what begins a turn, joins it, or waits.
//! - [`session_store`]: the port to sessions, taken by one owner at a time.
//! - [`shown`]: renders a call for the user who decides about it.
//! - [`storage`]: the complete port to an engine that stores sessions, mail, budgets and notes of hosts.
//! - [`toolbox`]: the tools on offer.
#![warn(missing_docs)]

pub mod accumulator;
pub mod catalog;
pub mod clock;
pub mod compaction;
pub mod driver;
pub mod events;
pub mod history;
pub mod joined;
pub mod machine;
pub mod notices;
pub mod observe;
mod outside_text;
pub mod pairing;
pub mod ports;
pub mod profile;
pub mod redact;
pub mod redrive;
pub mod replay;
mod request_hash;
pub mod session;
pub mod session_store;
pub mod shown;
pub mod storage;
pub mod toolbox;

pub use driver::{
    ParkedTurn, ResumeError, TurnControl, TurnEnd, TurnHandle, TurnSetup, control, resume_turn,
    run_turn,
};
pub use events::{EventReceiver, EventSender};
pub use observe::{Moment, Observer};
pub use outside_text::{FROM_OUTSIDE, OutsideText};
pub use ports::{
    Approval, Approver, Budgets, Gate, GateRequest, Interceptor, Journal, Model, ModelStream,
    QuestionReply, Tool, ToolInvocation, Verdict,
};
pub use toolbox::{SharedSpecs, Toolbox, ToolboxError};
