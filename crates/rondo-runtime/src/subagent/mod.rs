//! Subagents: a tool that has a task done in a session of its own.
//!
//! The child is a session like others: journaled, resumed and shown like them. Its id follows from its parent's and
//! the call's ([`SessionId::child`](rondo_types::SessionId::child)), so a call that is repeated after a crash finds the
//! child that it began. It has its parent's gate, sandbox, secrets and budgets, and no tool that its parent lacks.
//!
//! # Layout
//! - `tool`: the tool; `task`: its arguments; `parent`: the parts of its parent that a child uses.
//! - `child`: begins, resumes and runs a child; `end`: the result for its parent.
//! - `relay`: its events, as its parent's listeners see them; `asking`: its questions; `narrowed`: fewer tools.
//!
//! # Invariants
//! - A child has its parent's *gate*, not the settings to build another, so it can never be allowed more.
//! - A call is recovered as `Checkable`: the child's records say whether it ended, is still running, or never began.
//! - A child's usage is part of the call's outcome and counts against every limit of its parent. The next child's allowance is
//!   taken from what is left. Such calls are bounded by the turn's time, not by the profile's limit for calls.
//! - Answers to a child's questions arrive in its parent's mailbox and are moved to the child's before it continues, under a
//!   key that makes moving twice the same as moving once.
//! - A child's events reach the parent's listeners inside `child_event`. They are not recorded there, and dropped for slow
//!   listeners.

mod asking;
mod child;
mod end;
mod narrowed;
mod parent;
mod relay;
mod task;
mod tool;

pub(crate) use parent::{BuiltParts, ParentTurn, Places, max_depth};
pub(crate) use tool::{NAME, SubagentTool};

/// How deep subagents may start subagents if no setting says so: not at all.
pub const DEPTH: u32 = 1;
/// Children of one turn that work at once; others wait.
pub const AT_ONCE_MAX: usize = 6;
