//! What every host of Rondo stands on: settings in layers, providers and models, sessions, and what a turn is
//! built from.
//!
//! A host (the command line, a gateway, a screen, an editor's companion) brings arguments, a way to ask a
//! person and a place to show things. It knows of no provider, journal or tool by itself, and this crate of no
//! terminal and no exit code: failures are a [`SetupError`] whose kind a host maps to its own codes, and what
//! a person is told meanwhile goes to [`Notices`].
//!
//! # Layout
//! - [`settings`]: what is in force; [`table`]: every setting there is; [`config`]: files of them;
//!   [`values`]: what they hold;
//!   [`mod@env`], [`paths`]: the process's environment and Rondo's directories; [`profiles`]: layers of a profile.
//! - [`project`]: what a project sets, and whether it counts; [`user_file`]: the user's own, changed.
//! - [`providers`], [`models`]: who can be asked, and what is known of what they offer; [`target`]: whom a
//!   turn asks; [`transport`], [`embedded`], [`fallbacks`]: that model, ready to be asked;
//!   [`weights`]: the files of models that run in this process.
//! - [`sessions`]: where they are kept and which one is meant; [`calls`]: the state of their commands;
//!   [`secrets`]: what is kept out of them.
//! - [`plan`]: who answers a turn, and under what; [`tools`], [`python`]: what it may call;
//!   [`context`]: what stands before the user's words.
//! - [`parking`]: questions that wait for an answer.
//! - [`replay`]: what a replay needs of today's tools.
//! - [`telemetry`]: what a collector is sent; [`files`]: files whose names others chose.

pub mod calls;
pub mod config;

pub mod embedded;
pub mod env;
pub mod error;
pub mod fallbacks;
pub mod files;
pub mod models;
pub mod notices;
pub mod parking;
pub mod paths;
pub mod plan;
pub mod profiles;
pub mod project;
pub mod providers;
pub mod python;
pub mod replay;
mod request_limits;
pub mod runtime;
pub mod secrets;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod system_prompt;
pub mod table;
pub mod target;
pub mod telemetry;
pub mod tools;
pub mod transport;
mod trust;
pub mod turn;
pub mod user_file;
pub mod values;
pub mod weights;

pub use env::Env;
pub use error::{SetupError, SetupErrorKind};
pub use notices::{NoNotices, Notices};
pub use runtime::Runtime;
pub use session::{FoundSession, Session, SessionOptions, SessionSource};
pub use table::{Layer, SETTINGS, Setting};
pub use turn::{Turn, TurnHost, TurnStart};
