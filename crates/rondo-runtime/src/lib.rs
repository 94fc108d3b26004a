//! Common parts of all hosts of Rondo: settings, providers and models, sessions, and the parts of a turn.
//!
//! A host (the command line, a gateway, a full-screen interface, an editor) brings arguments, a way to ask
//! the user, and a place to show things. This crate knows no terminal and no exit codes: failures are a
//! [`SetupError`] whose kind a host maps to its own codes, and notes for the user go to [`Notices`].
//!
//! # Layout
//! - [`settings`]: the effective settings; [`table`]: the definition of every setting; [`config`]: reading
//!   configuration files; [`values`]: types of values; [`mod@env`], [`paths`]: the environment and Rondo's
//!   directories; [`profiles`]: settings applied to a profile.
//! - [`project`]: a project's configuration, and whether it is trusted; [`user_file`]: editing the user's
//!   configuration.
//! - [`policy`]: the rules of calls that the user and the project write; [`granting`]: what the user allows forever;
//!   [`sandboxed`]: folders in which commands run in the sandbox without a question;
//!   [`unchecked`]: folders of which not everything can be looked at.
//! - [`providers`], [`models`]: tables of providers and of models, with context and price; [`target`]: chooses
//!   the provider, model, address and key of a turn; [`transport`], [`embedded`], [`fallbacks`]: build the
//!   model port for it; [`weights`]: finds and downloads the weights of models that run in this process.
//! - [`session`]: a session in use, and the only way to start a turn; [`sessions`]: opening and finding
//!   sessions; [`calls`]: the files of their commands; [`secrets`]: values that are redacted.
//! - [`spec`]: the models, profile and tools of a turn; [`tools`], [`python`]: its tools and gate;
//!   [`system_prompt`]: its system prompt; [`turn`]: puts these together and runs the turn.
//! - [`skills`]: instructions for particular tasks, which the model reads when it needs them.
//! - [`agents`]: prompts and choices of tools under a name, in files; [`subagent`]: tasks that are done in a session of their own; [`mod@todo`]: the session's to-do list.
//! - [`web`]: the tools that read the web, and the reader of PDFs.
//! - [`cells`]: a person's own Python cells and shell commands; [`assignments`]: the keys in these; [`sanitize`]: text that cannot control a terminal.
//! - `budgets`: limits of sessions, days and projects; [`usage`]: their usage.
//! - [`commits`]: a host's changes that become durable together with a turn's records.
//! - [`extensions`]: hosts' additions to turns: sources of tools, interceptors and budgets.
//! - `look_first`: what a small model is shown of the directory before a question; [`terminal`]: the context of the
//!   user's terminal, which each question under some profiles carries.
//! - [`memory`]: the stores of memories, and the memories that a session is shown when it begins.
//! - [`compaction`]: turns that only sum up. [`context_sizes`]: what models read, and how much that is.
//! - [`parking`]: questions that wait for an answer; [`form`]: questions for a value, field by field.
//! - [`service`]: sessions that any number of listeners share, each worked on only while there is something to do.
//! - [`script`]: the session of a script, its conversations, and what it does outside of them.
//! - [`view`]: a turn, folded from its records or its events for every front end.
//! - [`replay`]: the profile and tools that a replay takes from the current settings.
//! - [`mcp`]: servers of the Model Context Protocol.
//! - [`telemetry`]: export of traces and metrics; [`files`]: opening files that the user or a project names.
//!
//! # Hosts
//! A host brings its arguments and a place to show output. `examples/host.rs` is one in a hundred lines: it has two listeners,
//! a question that another process answers, and a listener that continues from a cursor. There is no global state, so two
//! runtimes can live in one process. One table defines the settings; variables, files and help follow from it, and tests hold
//! flags and documentation against it.

pub mod agents;
pub mod assignments;
mod budgets;
pub mod calls;
pub mod cells;
pub mod commits;
pub mod compaction;
pub mod config;
pub mod confined;
pub mod context_sizes;

pub mod embedded;
pub mod env;
pub mod error;
pub mod extensions;
pub mod fallbacks;
pub mod files;
pub mod form;
pub mod granting;
mod hidden;
mod ids;
mod known_files;
mod look_first;
pub mod mcp;
pub mod memory;
pub mod models;
pub mod parking;
pub mod paths;
pub mod policy;
pub mod profiles;
pub mod project;
pub mod providers;
pub mod python;
pub mod replay;
mod request_limits;
pub mod review;
pub mod runtime;
pub mod sandboxed;
pub mod sanitize;
mod scratch;
pub mod script;
pub mod secrets;
pub mod service;
pub mod session;
pub mod sessions;
pub mod settings;
mod shared_values;
pub mod skills;
pub mod spec;
pub mod subagent;
pub mod system_prompt;
pub mod table;
pub mod target;
pub mod telemetry;
pub mod terminal;
pub mod todo;
pub mod tools;
pub mod transport;
mod trust;
mod trust_question;
pub mod turn;
pub mod unchecked;
mod unmatched;
pub mod usage;
pub mod user_file;
pub mod values;
pub mod view;
pub mod web;
pub mod weights;
pub mod words;

pub use env::Env;
pub use error::{SetupError, SetupErrorKind};
pub use extensions::Extensions;
pub use notices::{NoNotices, Notices};
pub use rondo_core::notices;
pub use rondo_memory::calendar;
pub use rondo_policy::GateOptions;
pub use runtime::Runtime;
pub use session::{Session, SessionOptions, SessionSource};
pub use table::{Layer, SETTINGS, Setting};
pub use turn::{Turn, TurnBuilder, TurnStart};
