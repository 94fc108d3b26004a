//! Agents as programs: scripts in Lua whose calls are recorded, so that one that was cut off continues where it was.
//!
//! A script runs again from its beginning when it is resumed. Everything that it does outside of itself goes through
//! functions that are recorded (`ledger`): those whose results are in the records return these, and nothing happens.
//! With the same results, the same script does the same: time, random numbers and the order of tables are the same,
//! too.
//!
//! # Layout
//! - `run`: a script from its beginning to its end; `replay`: once more over its records alone; `vm`: its Lua and the
//!   bounds; `prelude.lua`: the functions it sees.
//! - `api`: the functions beneath; `shared`: their shared parts; `answer`: their result for a turn.
//! - `ledger`: calls and their records; `branch`: functions that run at once, each with its own calls.
//! - `check`: mistakes that are found without running a script.
//! - `init`: `init.lua`, which extends hosts.
//! - `host`: the port to who runs the script; `error`: why it ended; `names`: the names that scripts may use; `start`: a first script, and
//!   what editors read.
//!
//! # How a script resumes
//! A script is a session of records that belong to no turn: `script_started` with its text, then two records for each call to
//! the outside, before and after it. Resuming runs the script again from its beginning, and recorded calls return what they
//! returned. Saving the interpreter's state instead would tie records to one build of Lua.
//!
//! - A call is identified by its branch and its place in the branch. The branch is a task-local of the future that polls the
//!   script. Functions of tools are branches named by the key of their call. A call with another function or other arguments
//!   than its record ends the script and names the line.
//! - A hook checks every 10,000 instructions whether the script must end; from then on every instruction raises the error, so
//!   no `pcall` can catch it. Finalizers cannot be set, because no hook runs in them. Code that blocks in C, such as a pattern
//!   that backtracks, is ended by a second signal or by a watchdog after 15 seconds.
//! - `init.lua` runs in another Lua, one function at a time, on a thread that may block. Its handlers are interceptors. If one
//!   hangs, it and all that follow are abandoned, and calls are denied.

mod answer;
mod api;
mod branch;
mod check;
mod error;
mod host;
mod init;
mod ledger;
mod names;
mod replay;
mod run;
mod shared;
mod start;
mod vm;

pub use check::{ScriptMistake, check};
pub use error::ScriptError;
pub use host::{ScriptHost, StdinRead, UserQuestion};
pub use init::{Init, InitAction, InitCommand, InitKey, OwnInit};
pub use replay::{ReplayedScript, replay_records};
pub use run::{Script, ScriptEnd, run};
pub use start::{ANNOTATIONS, START};
