//! A live Python session: a child interpreter that keeps its variables between calls, and the tools
//! that look into it.
//!
//! The interpreter is the user's own `python3`, in a process of its own: only so can `while True:
//! pass` be ended, a crash be survived, and any version and any virtual environment be used. An
//! interpreter within our process could do none of this.
//!
//! # Layout
//! - [`Session`]: one interpreter, started when it is first needed; callers take turns.
//! - [`Settings`]: the interpreter, its directory, and its bounds.
//! - [`Capability`] and [`tools`]: the functions that a model may call.
//! - [`CellEnd`], [`Completeness`]: for a prompt: the end of a cell, and whether a line is complete.
//! - [`Session::restore`]: restores variables by running the cells of an earlier interpreter again.
//! - `owner`: the task that owns the interpreter and runs one job after the other; `interpreter`: the
//!   conversation; `process`: its process; `channel`, `frames`: framed messages; `capture`: bounded output; `unix`:
//!   system calls.
//! - `startup`: the files that the interpreter's start skips.
//! - `path`: the paths to values that can be inspected without running code.
//! - `python/`: the helper inside the interpreter.
//!
//! # How they talk
//! The child's standard input is one end of a socket pair, which the helper moves to a descriptor
//! of its own before any user's code runs. So nothing needs to be inherited beyond the three
//! standard descriptors: no fork of a large process (which `pre_exec` would mean), no descriptor
//! that another child could inherit in the meantime, and no path that another process could connect
//! to. Standard output and error are pipes that hold the user's output and nothing else.
//!
//! If there is a supervisor, the interpreter runs under it: it ends what the interpreter started with it, and puts
//! it into a sandbox.
//!
//! A pipe whose other end only we have is sent over that socket, and the kernel is told to kill the
//! interpreter's process group when it closes (`F_SETSIG`, Linux): so nothing is left behind even
//! if we are killed while the interpreter is busy. Elsewhere (written, not tried) an interpreter
//! that is busy then ends when its code does.
//!
//! # Decisions
//! - The user's cells are records that belong to no turn, written before and after their effect. A namespace is never saved;
//!   it is rebuilt, on request, by running the cells again.
//! - Inspecting values counts as reading. Outside the `python` profile an expression that calls something is refused there
//!   and needs `eval_expr`, which the gate asks about.
//! - A process that a person starts in a process group of its own (a browser) survives the interpreter, as it would survive their
//!   shell. A session that no person shares ends with everything in it.
//! - A sandboxed interpreter has the sandbox of commands. Its code is still asked about unless the user allows it: it can create
//!   protected files that did not exist, and no end of a call shows which.
#![warn(missing_docs)]

mod capability;
mod capture;
mod cell;
mod channel;
mod error;
mod frames;
mod interpreter;
mod job;
mod lent;
mod outcome;
mod owner;
mod path;
mod process;
mod restore;
mod session;
mod settings;
mod startup;
mod terminal;
mod tools;
mod unix;

pub use capability::{Capability, ReadOnlyNames};
pub use cell::{CellEnd, CellLimits, Completeness, Exception, LiveOutput, OutputStream};
pub use error::{Loss, SessionError, Stop};
pub use outcome::{ending_of, is_after_loss};
pub use restore::{NotRestored, RecordedCell, Restoration, RestoreFailure, RestoreOptions};
pub use rondo_core::ports::{CellEnding, CodeChange};
pub use session::Session;
pub use settings::Settings;
pub use terminal::{CellTerminal, TerminalSize};
pub use tools::tools;
