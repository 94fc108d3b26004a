//! Slash commands: lines that begin with `/`. Each has one arm, which both prompts use: a prompt gives the context, shows the
//! reply, and makes the change in it.
//!
//! A new command is a variant and a row in the table of `rondo-tui`, which `/help` and completion show, and an arm here.
//!
//! # Layout
//! - `choose`: the model, the profile, the memory, and calls that run without asking; `memory`: the choice of `/memory`.
//! - `add`: files and skills for the next question, and facts for all sessions.
//! - `account`: steps and cost; `python`: the live Python session; `restore`: running its cells again.
//! - `session`: the session at the prompt, and others; `prompt`: the prompt itself.

mod account;
mod add;
mod choose;
mod memory;
mod prompt;
pub(crate) mod python;
pub(crate) mod restore;
pub(crate) mod session;

pub(crate) use memory::MemoryChoice;

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_core::redact::Secrets;
use rondo_runtime::service::{SessionHandle, SessionService, UpdateBody};
use rondo_runtime::settings::Settings;
use rondo_runtime::view::Totals;
use rondo_tui::prompt::reply::{Change, CommandContext, PromptState, Reply};
use rondo_tui::prompt::slash::Command;
use rondo_types::Grant;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The program at a prompt, as commands see it.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// The values that are redacted.
    pub(crate) secrets: Secrets,
    /// The choice of `/memory`.
    pub(crate) memory: MemoryChoice,
    /// Set if the command line names the directory.
    pub(crate) names_directory: bool,
    /// The commands that the user added, and their descriptions.
    pub(crate) added: Vec<(String, String)>,
}

/// The context of a command.
pub(crate) struct Context {
    /// All sessions.
    pub(crate) service: SessionService,
    /// The prompt itself.
    pub(crate) prompt: PromptState,
    /// Set if the command line names the directory.
    pub(crate) names_directory: bool,
    /// The commands that the user added, and their descriptions.
    pub(crate) added: Vec<(String, String)>,
    /// The settings in force.
    pub(crate) settings: Settings,
    /// The values that are redacted.
    pub(crate) secrets: Secrets,
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
    /// Reads the parts of the session that a command at a prompt needs.
    ///
    /// # Errors
    /// When the session's records cannot be read.
    pub(crate) async fn read(
        command: Command,
        context: CommandContext,
        host: Host,
    ) -> Result<Self> {
        let CommandContext {
            service,
            settings,
            session,
            columns,
            prompt,
        } = context;
        let Host {
            secrets,
            memory,
            names_directory,
            added,
        } = host;
        let granted = match command {
            Command::Approve => session.grants().await?,
            _ => Vec::new(),
        };
        let totals = match command {
            Command::Steps | Command::Trace | Command::Cost | Command::Copy => {
                session.earlier(u32::MAX, Totals::default(), note).await?
            }
            _ => Totals::default(),
        };
        Ok(Self {
            service,
            prompt,
            names_directory,
            added,
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

/// Carries out a command.
///
/// # Errors
/// When its argument makes no sense, or it fails.
pub(crate) async fn run(command: Command, rest: String, context: Context) -> Result<Reply> {
    match command {
        Command::Help => Ok(prompt::help(&context)),
        Command::Mode => prompt::mode(&rest, &context),
        Command::Model => off_thread(rest, context, choose::model).await,
        Command::Profile => off_thread(rest, context, choose::profile).await,
        Command::Memory => off_thread(rest, context, choose::memory).await,
        Command::Remember => off_thread(rest, context, add::remember).await,
        Command::Approve => choose::approve(&rest, &context),
        Command::Include => off_thread(rest, context, add::include).await,
        Command::Skill => off_thread(rest, context, add::skill).await,
        Command::Run => off_thread(rest, context, prompt::run).await,
        Command::Inspect => python::inspect(&rest, &context).await,
        Command::LastError => python::last_error(&context).await,
        Command::Explain => prompt::explain(&context),
        Command::Clear => session::clear(&context).await,
        Command::Compact => session::compact(&rest, &context).await,
        Command::Undo => session::undo(&context).await,
        Command::Fork => session::fork(&rest, &context).await,
        Command::Sessions => off_thread(rest, context, session::list).await,
        Command::Resume => session::resume(&rest, &context).await,
        Command::Restore => restore::restore(&rest, &context).await,
        Command::Steps => Ok(account::steps(&context.totals, context.columns)),
        Command::Todo => session::to_do(&context),
        Command::Trace => Ok(account::trace(&context.totals)),
        Command::Cost => Ok(account::cost(&context.totals)),
        Command::Copy => prompt::copy(&rest, &context),
        Command::Ps => Ok(Reply::change(Change::Run("jobs -l".to_owned()))),
        Command::Stop => prompt::stop(&rest, &context),
        Command::Terminal => off_thread(rest, context, prompt::terminal).await,
        Command::Screen => prompt::other_prompt(&context),
        Command::Quit => Ok(Reply::change(Change::Quit)),
    }
}

/// Carries out a command that reads files, on a thread of its own.
async fn off_thread(
    rest: String,
    context: Context,
    arm: fn(&str, &Context) -> Result<Reply>,
) -> Result<Reply> {
    let work = spawn_blocking(move || arm(&rest, &context)).await;
    let lost = |err| CliError::caused(Exit::Error, anyhow::Error::new(err));
    work.map_err(lost).flatten()
}

fn wrong(message: impl std::fmt::Display) -> CliError {
    CliError::new(Exit::Usage, message)
}
