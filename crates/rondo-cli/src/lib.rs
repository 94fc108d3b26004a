//! The command line of Rondo: arguments, the terminal, the prompt and exit codes. Everything that other hosts
//! need too, from settings to sessions, is in `rondo-runtime`.
//!
//! # Layout
//! - `cli`: the arguments.
//! - `commands`: one file for each command; `user_input`: the user's message from words, standard input and files.
//! - `repl`: one prompt for the agent, a shell and Python.
//! - `slash`: slash commands that the line prompt and the full screen have.
//! - `full_screen`: opens the full-screen interface, which is `rondo-tui`.
//! - `story`: renders a recorded session.
//! - `render`: renders a turn; `show_turn`: shows a running turn and handles signals; `screen`: shares the
//!   terminal between a turn and questions; `approver`: asks the questions; `remember`: answers that let more than one
//!   call run; `changes`: the changes to files that
//!   both show.
//! - `output`: standard output and standard error; `log`: the output of `-v`.
//! - `exit`, `error`: exit codes and messages; `signals`: the signals that stop a run; `process_end`: the deadline of
//!   the process.
//!
//! Everything except [`run`] is private: the binary is the interface.
//!
//! # Ctrl-C
//! | where | handled by | effect |
//! |---|---|---|
//! | `rondo ask`, `rondo resume` | `signals`, as `SIGINT` | `show_turn` cancels the turn: the request ends, each call gets a result, the outcome is recorded, exit code 130. A second Ctrl-C ends the process at once, like a kill |
//! | the full screen | `interrupt` in `rondo-tui/src/app/act.rs`, as a key | copies a selection; else clears the input; else stops the turn; else, twice within 1.5 s, quits |
//! | a turn in `rondo repl` | `keyboard`, as a byte, since the terminal is raw | the same cancel; the prompt comes back |
//! | a question | the code that runs the turn | the turn stops without an answer; if the call's arguments are being edited, only the edit is dropped |
//! | the line editor | reedline | the line is dropped |
//! | a command in shell mode | the command, on its own PTY | up to the command |
//! | a cell in Python mode | `rondo-python`, which interrupts the interpreter | `KeyboardInterrupt`; again after two seconds or more ends the interpreter |
//! | a running call (`exec`) | not delivered: the command has its own process session | the driver's cancel reaches its supervisor: `SIGTERM`, then `SIGKILL` |
//! | before a turn (settings, standard input, a download) | `signals` | the process ends with 130 and a result |
//!
//! `SIGTERM` and `SIGHUP` act as in the first row and end with 143. A program that embeds Rondo handles signals itself and
//! calls `TurnHandle::cancel`.
//!
//! # The prompt's shell and interpreter
//! `rondo repl` owns the session, the user's shell and the Python interpreter, and starts each when it is first needed. The user
//! and the agent use them one at a time. The shell is the user's own program on a PTY that a supervisor keeps: a shell inside
//! our process would take the prompt down with `exec`, `ulimit` or a loop that ignores Ctrl-C. Hooks in its start files mark
//! where a command's output begins and ends, with a random number in each mark. Command line, exit code, directory and environment
//! travel over separate pipes, since a terminal can neither carry long lines nor tell the user's bytes from ours.

mod approver;
mod asking;
mod changes;
mod cli;
mod commands;
mod error;
mod executor;
mod exit;
mod full_screen;
mod hosted;
mod interactive;
mod log;
mod output;
mod process_end;
mod render;
mod repl;
mod screen;
mod show_turn;
mod signals;
mod slash;
mod story;
mod terminal_context;
mod user_input;

pub use commands::run;
