//! The user's own shell, kept for as long as they work.
//!
//! One bash or zsh with its start files on a terminal of its own. Hooks in it mark where the output
//! of a command begins and ends, and report directory and environment over a private pipe; lines go
//! in over another, so that a program which reads the terminal never reads the next command.

mod client;
mod declarations;
mod error;
mod jobs;
mod marks;
mod program;
mod protocol;
mod report;
mod runtime_dir;
mod serve;
mod session;
mod settings;
mod slot;
mod stream;
mod terminal;
mod unix;
mod whole_screen;

pub use client::Shell;
pub use error::ShellError;
pub use program::{ProgramError, ShellProgram};
pub(crate) use serve::ROLE;
pub use settings::ShellSettings;
pub use stream::{CommandEnd, CommandStream, Keyboard, ShellEnd, ShellEvent};
pub use terminal::{RelayError, Terminal, relay};
