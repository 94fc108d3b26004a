//! The bounded turn: the sans-IO machine, the ports it needs, and the driver that awaits for it.
//!
//! # Layout
//! - [`ports`]: what a turn needs from outside: [`Model`], [`Tool`], [`Gate`], [`Approver`],
//!   [`Journal`].
//! - [`events`]: the ordered event stream of a turn, which never blocks it.
//! - [`accumulator`]: the events of a reply, assembled.
//! - [`joined`]: an event stream as a replay tells it.
//! - [`machine`]: the turn as a state machine.
//! - [`profile`]: named sets of limits, as TOML data in layers.
//! - [`driver`]: the only loop that awaits.
//! - [`observe`]: the moments of a turn, for those who measure it.
//! - [`compaction`]: what makes a transcript shorter.
//! - [`history`]: a session's transcript, from its records.
//! - [`redact`]: known secrets, kept out of transcripts.
//! - [`redrive`]: a machine driven again from its records.
//! - [`replay`]: a session driven again from its records alone, and where it differs.
//! - [`pairing`]: every call has its one result.
//! - [`session`]: a session as a state machine: what begins a turn, joins it, or waits.
//! - [`shown`]: what a person is shown of a call.
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
pub mod observe;
pub mod pairing;
pub mod ports;
pub mod profile;
pub mod redact;
pub mod redrive;
pub mod replay;
mod request_hash;
pub mod session;
pub mod shown;
pub mod toolbox;

pub use driver::{
    ParkedTurn, ResumeError, TurnControl, TurnEnd, TurnHandle, TurnSetup, control, resume_turn,
    run_turn,
};
pub use events::{EventReceiver, EventSender};
pub use observe::{Moment, Observer};
pub use ports::{
    Approval, ApprovalReply, ApprovalRequest, Approver, Gate, GateRequest, Journal, Model,
    ModelStream, Tool, ToolInvocation, Verdict,
};
pub use toolbox::{Toolbox, ToolboxError};
