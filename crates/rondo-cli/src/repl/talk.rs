//! The conversation with the agent: its session, model and profile.

use super::GO_ELSEWHERE;
use super::editor::Shared;
use super::host::{self, InForce, LineLink};
use super::interpreters::IdleInterpreter;
use super::turn::{Request, TurnEnd};
use super::unix::Terminal;
use crate::commands::report::gone;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::slash::MemoryChoice;
use crate::user_input;
use rondo_core::redact::Secrets;
use rondo_policy::{Variables, Workdir};
use rondo_python::Session;
use rondo_runtime::python;
use rondo_runtime::secrets::{self, KeyNames};
use rondo_runtime::service::{LentPython, SessionHandle, SessionService};
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::terminal::{RECENT_COMMANDS_MAX, TerminalContext};
use rondo_runtime::{Runtime, SessionOptions};
use rondo_types::{Message, Part, SessionId};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;

/// The session at the prompt, and what holds in it.
pub(super) struct LineSession {
    pub(super) handle: SessionHandle,
    pub(super) service: SessionService,
    /// The prompt's side of the session's host.
    pub(super) link: LineLink,
    /// What is in force.
    pub(super) settings: Settings,
    pub(super) output: Output,
    pub(super) secrets: Secrets,
    pub(super) key_names: KeyNames,
    /// What the user's shell exported at the last look.
    pub(super) exports: Option<Variables>,
    pub(super) terminal: Terminal,
    /// Tokens of the latest request and its reply, if one was made here.
    pub(super) context_tokens: Option<u64>,
    /// Whether a turn knows what was said before.
    pub(super) memory: MemoryChoice,
    /// What a person and the agent share, once either needs it.
    pub(super) python: Option<Arc<LentPython>>,
    /// Those of other sessions.
    pub(super) parked: Vec<IdleInterpreter>,
    pub(super) shared: Shared,
    /// Where the user's shell is, and what follows it.
    pub(super) workdir: Workdir,
    /// What goes with the next question.
    pub(super) attached: Vec<Part>,
    /// The latest commands of the user's shell, and the output of the last one.
    pub(super) terminal_seen: TerminalContext,
}

/// The session that the prompt begins with.
pub(super) struct Opening {
    pub(super) runtime: Runtime,
    pub(super) settings: Settings,
    /// The session; none for a new one.
    pub(super) session: Option<SessionId>,
}

impl LineSession {
    /// Opens the session that the prompt begins with.
    ///
    /// # Errors
    /// When the journal cannot be used.
    pub(super) fn open(
        opening: Opening,
        output: Output,
        terminal: Terminal,
        shared: Shared,
    ) -> Result<Self> {
        let Opening {
            runtime,
            settings,
            session,
        } = opening;
        let workdir = Workdir::new(settings.directory.clone());
        let secrets = secrets::of_env(&settings);
        shared.set_secrets(secrets.clone());
        let memory = MemoryChoice::default();
        let in_force = InForce {
            settings: settings.clone(),
            secrets: secrets.clone(),
            workdir: workdir.clone(),
        };
        let (host, link) = host::host(in_force, memory.clone());
        let service = SessionService::of_settings(runtime, &settings, host)?;
        let options = SessionOptions::in_directory(settings.directory.clone());
        let handle = match session {
            Some(id) => service.session(id, options),
            None => service.begin_session(options)?,
        };
        Ok(Self {
            handle,
            service,
            link,
            workdir,
            key_names: KeyNames::of(&settings),
            exports: None,
            output,
            secrets,
            terminal,
            context_tokens: None,
            settings,
            memory,
            python: None,
            parked: Vec::new(),
            shared,
            attached: Vec::new(),
            terminal_seen: TerminalContext::default(),
        })
    }

    /// Returns what all sessions of the prompt share.
    pub(super) fn runtime(&self) -> &Runtime {
        self.service.runtime()
    }

    /// Has the next turns and cells work with what holds at the prompt.
    pub(super) fn hand_over(&self) {
        self.link.set_in_force(InForce {
            settings: self.settings.clone(),
            secrets: self.secrets.clone(),
            workdir: self.workdir.clone(),
        });
        self.handle.set_terminal(self.terminal_seen.clone());
        if let Some(python) = &self.python {
            self.handle.lend_python(python);
        }
    }

    /// Notes a command of the user's shell for the context of the next question, and its output if that does not go with
    /// the question anyway.
    pub(super) fn saw_command(&mut self, command: &str, output: Option<String>) {
        let commands = &mut self.terminal_seen.commands;
        if commands.len() == RECENT_COMMANDS_MAX {
            commands.remove(0);
        }
        commands.push(command.to_owned());
        self.terminal_seen.output = output;
    }

    /// Asks something. A turn of the session that was cut off is carried on first.
    ///
    /// # Errors
    /// When no model can be asked, or the journal cannot be used.
    pub(super) async fn ask(&mut self, question: &str) -> Result<TurnEnd> {
        self.learn_keys();
        self.check_before_turn()?;
        let message = self.message(question)?;
        let message = Arc::new(message);
        let message = (self.runtime()).with_resources(&self.settings, message);
        let message = Arc::unwrap_or_clone(message.await?);
        self.ask_message(message).await
    }

    /// Asks what a server's prompt says. Its words are the server's: no files and no resources are taken for them.
    ///
    /// # Errors
    /// As [`Self::ask`], and when the prompt cannot be had.
    pub(super) async fn ask_prompt(
        &mut self,
        server: &str,
        prompt: &str,
        arguments: &[String],
    ) -> Result<TurnEnd> {
        self.learn_keys();
        let parts = (self.runtime()).server_prompt(&self.settings, server, prompt, arguments);
        let mut message = Message::user("");
        message.parts = parts.await?;
        message.parts.extend(self.attached.iter().cloned());
        self.check_before_turn()?;
        self.ask_message(self.all_secrets().message(message)).await
    }

    async fn ask_message(&mut self, message: Message) -> Result<TurnEnd> {
        let over = self.turns(Request::Ask(message)).await?;
        self.attached.clear();
        Ok(over)
    }

    /// Checks that the directory is there and the model can do what the profile needs, and has the Python session there if
    /// the agent works with it.
    fn check_before_turn(&mut self) -> Result<()> {
        let directory = &self.settings.directory;
        if !directory.is_dir() {
            return Err(CliError::new(Exit::Input, gone(directory)).hint(GO_ELSEWHERE));
        }
        let spec = TurnSpec::of(&self.settings, &self.output)?;
        if spec.tool_names.iter().any(|name| python::has(name)) {
            self.python()?;
        }
        Ok(())
    }

    /// Has all that was said summed up, with an eye on what the user names.
    ///
    /// # Errors
    /// When no model can be asked.
    pub(super) async fn compact(&mut self, focus: String) -> Result<TurnEnd> {
        self.learn_keys();
        self.turns(Request::Compact(focus)).await
    }

    /// Carries on the turn that was cut off, if there is one, and asks the messages that wait.
    ///
    /// # Errors
    /// When its models cannot be asked.
    pub(super) async fn resume(&mut self) -> Result<TurnEnd> {
        self.learn_keys();
        self.turns(Request::GoOn).await
    }

    /// Returns the Python session; its interpreter starts when that is first needed.
    ///
    /// # Errors
    /// When there is no interpreter.
    pub(super) fn python(&mut self) -> Result<Arc<Session>> {
        if let Some(python) = &self.python {
            return Ok(Arc::clone(python.session()));
        }
        let settings = &self.settings;
        let mut settings = python::session_settings(settings, &[], &settings.directory);
        settings.has_terminal = true;
        if settings.program.is_relative() {
            return Err(CliError::new(Exit::Error, "there is no `python3`")
                .hint("install Python 3.9 or later, or activate a virtual environment"));
        }
        let python = LentPython::new(Arc::new(Session::new(settings)));
        Ok(self.use_python(Arc::new(python)))
    }

    /// Has shell, agent and Python work in another directory, the interpreters of other sessions too.
    pub(super) fn set_directory(&mut self, directory: PathBuf) {
        self.workdir.set_directory(&directory);
        let settings = &mut self.settings;
        if settings.directory == directory {
            return;
        }
        settings.directory = directory;
        let wanted = python::session_settings(settings, &[], &settings.directory);
        let parked = self.parked.iter().map(IdleInterpreter::python);
        for python in self.python.iter().chain(parked) {
            python
                .session()
                .go_to(wanted.program.clone(), wanted.directory.clone());
        }
    }

    /// Returns what threads of the Python session at the prompt print while nothing runs there, if there
    /// is one.
    pub(super) fn late_output(&self) -> Option<Receiver<Vec<u8>>> {
        self.python.as_ref().map(|it| it.session().late_output())
    }

    /// Has a Python session be the one at the prompt.
    pub(super) fn use_python(&mut self, python: Arc<LentPython>) -> Arc<Session> {
        let session = Arc::clone(python.session());
        self.shared
            .set_python(Arc::clone(&session), Handle::current());
        self.python = Some(python);
        session
    }

    /// Goes on with a new session; what was said is kept in the former one.
    pub(super) fn begin(&mut self, session: SessionHandle) {
        self.handle = session;
        self.attached.clear();
        self.context_tokens = None;
    }

    /// Goes on with a recorded session, in its own interpreter if it has one here.
    ///
    /// # Errors
    /// When the former session's cells cannot be read.
    pub(super) fn take(&mut self, session: SessionHandle) -> Result<()> {
        self.park_python()?;
        self.context_tokens = None;
        self.handle = session;
        let id = self.handle.id().clone();
        self.unpark_python(&id);
        Ok(())
    }

    /// Ends what outlives turns.
    pub(super) async fn end(&mut self) {
        self.service.close().await;
        self.runtime().close().await;
    }

    fn message(&self, question: &str) -> Result<Message> {
        let settings = &self.settings;
        let servers = settings.mcp.names();
        let note = |text: &str| self.output.note(text);
        let mut message = user_input::of_text(question, &settings.directory, &servers, &note)?;
        message.parts.extend(self.attached.iter().cloned());
        Ok(self.all_secrets().message(message))
    }

    /// Returns whether nothing is kept.
    pub(super) fn is_ephemeral(&self) -> bool {
        self.handle.store().is_in_memory()
    }

    /// Returns the secrets to redact, the key of the latest model included.
    pub(super) fn all_secrets(&self) -> Secrets {
        self.secrets.clone().with(self.runtime().connected_key())
    }
}
