//! Slash commands that need only the session, its settings and the live Python session. They are the same at both prompts: a
//! prompt gives the context, shows the reply, and makes the change in it.
//!
//! # Layout
//! - `choose`: the model, the profile, the memory, and calls that run without asking; `memory`: the choice of `/memory`.
//! - `add`: files and skills for the next question, and facts for all sessions.
//! - `account`: steps and cost; `python`: the live Python session; `restore`: running its cells again.

mod account;
mod add;
mod choose;
mod memory;
pub(crate) mod python;
pub(crate) mod restore;

pub(crate) use memory::MemoryChoice;

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_core::redact::Secrets;
use rondo_runtime::service::{SessionHandle, UpdateBody};
use rondo_runtime::settings::Settings;
use rondo_runtime::view::Totals;
use rondo_tui::prompt::reply::{CommandContext, Reply};
use rondo_tui::prompt::slash::SessionCommand;
use rondo_types::Grant;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The context of a command.
pub(crate) struct Context {
    /// The settings in force.
    pub(crate) settings: Settings,
    /// The values that are redacted.
    pub(crate) secrets: Secrets,
    /// The session.
    pub(crate) session: SessionHandle,
    /// The calls that the user allowed for the rest of the session.
    pub(crate) granted: Vec<Grant>,
    /// The choice of `/memory`.
    pub(crate) memory: MemoryChoice,
    /// The live Python session, if there is one.
    pub(crate) python: Option<Arc<rondo_python::Session>>,
    /// The steps and the cost of the session's turns.
    pub(crate) totals: Totals,
    /// Columns of the prompt.
    pub(crate) columns: usize,
}

impl Context {
    /// Reads what a command needs of the session at a prompt.
    ///
    /// # Errors
    /// When the session's records cannot be read.
    pub(crate) async fn read(
        command: SessionCommand,
        context: CommandContext,
        secrets: Secrets,
        memory: MemoryChoice,
    ) -> Result<Self> {
        let CommandContext {
            settings,
            session,
            columns,
        } = context;
        let granted = match command {
            SessionCommand::Approve => session.grants().await?,
            _ => Vec::new(),
        };
        let totals = match command {
            SessionCommand::Steps | SessionCommand::Trace | SessionCommand::Cost => {
                session.earlier(u32::MAX, Totals::default(), note).await?
            }
            _ => Totals::default(),
        };
        Ok(Self {
            secrets,
            settings,
            granted,
            memory,
            python: session.python().map(|lent| Arc::clone(lent.session())),
            session,
            totals,
            columns,
        })
    }
}

fn note(totals: &mut Totals, body: UpdateBody) {
    if let UpdateBody::Turn { event } = body {
        totals.event(&event);
    }
}

/// Carries out a command. What is read from the disk is read on a thread of its own.
///
/// # Errors
/// When its argument makes no sense, or it fails.
pub(crate) async fn run(command: SessionCommand, rest: String, context: Context) -> Result<Reply> {
    match command {
        SessionCommand::Inspect => python::inspect(&rest, &context).await,
        SessionCommand::LastError => python::last_error(&context).await,
        SessionCommand::Restore => restore::restore(&rest, &context).await,
        command => {
            let work = spawn_blocking(move || run_here(command, &rest, &context)).await;
            let lost = |err| CliError::caused(Exit::Error, anyhow::Error::new(err));
            work.map_err(lost).flatten()
        }
    }
}

fn run_here(command: SessionCommand, rest: &str, context: &Context) -> Result<Reply> {
    match command {
        SessionCommand::Model => choose::model(rest, context),
        SessionCommand::Profile => choose::profile(rest, context),
        SessionCommand::Memory => choose::memory(rest, context),
        SessionCommand::Approve => choose::approve(rest, context),
        SessionCommand::Remember => add::remember(rest, context),
        SessionCommand::Include => add::include(rest, context),
        SessionCommand::Skill => add::skill(rest, context),
        SessionCommand::Steps => Ok(account::steps(&context.totals, context.columns)),
        SessionCommand::Trace => Ok(account::trace(&context.totals)),
        SessionCommand::Cost => Ok(account::cost(&context.totals)),
        SessionCommand::Inspect | SessionCommand::LastError | SessionCommand::Restore => {
            Err(python::no_session())
        }
    }
}

fn wrong(message: impl std::fmt::Display) -> CliError {
    CliError::new(Exit::Usage, message)
}
