//! The full-screen interface: a conversation with its calls and questions above an input.
//!
//! It is a host like others: it works on a session through the runtime's handle, and follows it by the session's
//! updates. Keys and events go into `App`, a plain value; frames and effects come out. So all of it but the terminal
//! can be tried without one.
//!
//! # Layout
//! - `run`: the loop between terminal, session and `App`.
//! - `app`: the state, keys, and frames; `transcript`: the conversation; `markdown`: its texts; `text`: rows.
//! - `call_line`: a call on one line, shared with the line prompt and `rondo ask`.
//! - [`prompt`]: what is typed, shared with the line prompt.
//! - [`question`]: a question while it is answered, shared with the line prompt and `rondo ask`.
//! - `pane`: a terminal within the screen, for the shell.
//! - [`terminal`]: modes of the terminal, and frames as bytes; `theme`: styles; [`options`]: how it is to be.

mod app;
mod call_line;
mod markdown;
pub mod options;
mod pane;
pub mod prompt;
pub mod question;
mod run;
pub mod terminal;
mod text;
mod theme;
mod transcript;

pub use call_line::call_line;
pub use futures_util::future::BoxFuture;
pub use markdown::{MarkdownWriter, code_blocks};
pub use options::{Colours, ExitOutput, Mouse, Notify, Options};
pub use rondo_runtime::terminal::TerminalContext;
pub use run::{
    AddedReply, KeptSessions, Notes, Opening, Program, ScreenEnd, ScreenResult, UserAdditions, open,
};
pub use transcript::change_lines;
