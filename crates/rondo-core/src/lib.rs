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
//! - [`compaction`]: summarizes, drops and shortens older messages.
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
//!
//! # Limits and the reserved answer
//! Steps, tokens, money and time are checked together before every step, and again before a retry or a fallback if these can
//! change them. Tool calls are checked when a reply asks for them. If the profile reserves a final answer, the machine stops
//! early enough for one more request without tools, in which the model sums up; it counts as a step. If that request cannot
//! be sent or fails, the machine composes the answer from the results so far. So every turn has an answer, a stop reason from
//! a closed set, and a flag that marks a degraded answer.
//!
//! An unusable reply (empty, blocked, malformed) is sent back with a correction, which counts as a step; one small budget
//! covers all kinds of corrections. A failed request is retried if the failure is transient, nothing of the reply was shown,
//! and the deadline allows the wait. A retry is not a step. Then the same request goes to the next model of the turn's list,
//! which is walked once; every limit covers all models together. A shared limit bounds the requests in flight at a provider:
//! the slot belongs to the reply's stream, so no turn holds one while its tools run.
//!
//! A loop is the same call with the same result. First the model is told, then the tool is withheld, then the turn ends with
//! an answer (`[loop_guard]` of the profile has the counts). New arguments always count as progress.
//!
//! # Compaction
//! Before each request the machine compares its estimated size (the last usage, plus the new bytes) with the model's context
//! less its reply. Past the profile's share, one request without tools summarizes the oldest groups, each a user message
//! and everything it led to. If there is no usable summary, the groups are left out with a note. The last user message and
//! what followed it stay; if these alone are too long, their results are shortened and then their oldest steps dropped. If a
//! provider refuses a request for its length, the machine assumes less room and compacts again, a bounded number of times.
//! Each compaction is a record that holds the change itself, so [`history`] rebuilds a transcript and decides nothing.
//!
//! # Approval
//! A request passes three checks before it is sent: tools, interceptors, budgets (`machine/held.rs`). Passing is not
//! recorded: [`redrive`] derives it from the records that follow. Which checks a turn has is not part of its recorded
//! configuration, because then records from elsewhere could switch them off.
//!
//! - Tool sources come first. If their tools changed, the machine takes everything on offer as a recorded input and makes
//!   the request again, so tools never change within a step. The hash of a request covers what a model reads of a tool.
//! - Interceptors amend a request, or the gate's question about a call. A change is a recorded input.
//! - Budgets reserve what a request may cost; the grant is recorded with the request. If too little is left, the approver
//!   is asked. A reservation's id is its number in the turn, so one that a crash left unrecorded is found again.
//!
//! # Parking
//! An approver may answer `Later`. Once nothing else of the turn runs, the driver records the questions (`parked`), sends
//! `parked` as the last event, and returns. Resuming is the same as after a crash: the machine is driven again from its
//! records, the gate judges each call again, and the approver is asked again. So there is one way back into a turn, and the
//! machine itself is never written out: that would repeat the transcript, and a second way back would need its own proof.
//!
//! - Records alone never let a call run. An answer counts for the hash of the call, its arguments and the question, and comes
//!   from the mailbox, which is not part of an exported session. An imported file cannot approve anything.
//! - The hash covers the gate's `Terms`: directory, variables and files of the call. The driver fetches them before the
//!   question and after a yes, and asks again if they differ.
//! - The deadline does not run while a turn is parked.
//! - A call may start a session whose own turn parks. The call then ends as `CallEnd::Waiting`, and its turn parks too. Only
//!   a tool that can report the state of its calls may do this.
//!
//! # Replay
//! Records hold everything a decision was based on. A replay drives the machine through them and makes each decision again;
//! its events equal those of the live run once deltas are joined. Every test of the driver replays its run and compares. A
//! request's record names its parts by digest, each message once, so a difference can be reported as "the system prompt" or
//! "message 4".
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
