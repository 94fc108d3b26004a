//! Subagents: a tool that has a task done in a session of its own.
//!
//! The child is a session like others: journaled, resumed and shown like them. Its id follows from its parent's and
//! the call's ([`SessionId::child`](rondo_types::SessionId::child)), so a call that is repeated after a crash finds the
//! child that it began. It has its parent's gate, sandbox, secrets and budgets, and no tool that its parent lacks.
//!
//! # Layout
//! - `tool`: the tool; `task`: its arguments; `parent`: what a child has of its parent.
//! - `child`: begins, resumes and runs a child; `end`: what its parent reads of it.
//! - `relay`: its events, as its parent's listeners see them; `asking`: its questions; `narrowed`: fewer tools.

mod asking;
mod child;
mod end;
mod narrowed;
mod parent;
mod relay;
mod task;
mod tool;

pub(crate) use parent::{Built, ParentTurn, Places, max_depth};
pub(crate) use tool::{NAME, SubagentTool};

/// How deep subagents may start subagents where no setting says so: not at all.
pub const DEPTH: u32 = 1;
/// Children of one turn that work at once; others wait.
pub const AT_ONCE_MAX: usize = 6;
