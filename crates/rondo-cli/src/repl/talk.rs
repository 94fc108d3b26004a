//! The conversation with the agent: its session, model and profile.

use super::GO_ELSEWHERE;
use super::editor::Shared;
use super::interpreters::Parked;
use super::ledger::Books;
use super::turn::TurnEnd;
use super::unix::Terminal;
use crate::commands::report::gone;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::slash::MemoryChoice;
use crate::user_input;
use rondo_core::Tool;
use rondo_core::ports::RecordBody;
use rondo_core::redact::Secrets;
use rondo_core::session_store::SessionInfo;
use rondo_policy::{Variables, Workdir};
use rondo_python::Session;
use rondo_runtime::cells::Presence;
use rondo_runtime::compaction;
use rondo_runtime::python;
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::sessions::Conversation;
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::terminal::{RECENT_COMMANDS_MAX, TerminalContext};
use rondo_runtime::view::{Fold, Totals};
use rondo_runtime::{Session as AgentSession, TurnStart};
use rondo_types::{MailId, Message, Part, Profile};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;

/// Everything that turns need, made when the first one does.
pub(super) struct AgentChat {
    /// The session at the prompt, and what is in force in it.
    pub(super) session: AgentSession,
    pub(super) output: Output,
    pub(super) secrets: Secrets,
    pub(super) key_names: KeyNames,
    /// What the user's shell exported at the last look.
    pub(super) exports: Option<Variables>,
    pub(super) terminal: Terminal,
    pub(super) books: Books,
    /// Turns of the session were run by another process, and are not in the books yet.
    owes_books: bool,
    /// Whether a turn knows what was said before.
    pub(super) memory: MemoryChoice,
    /// What a person and the agent share, once either needs it.
    pub(super) python: Option<Arc<Session>>,
    /// What ran in its interpreter.
    pub(super) presence: Presence,
    /// Those of other sessions.
    pub(super) parked: Vec<Parked>,
    pub(super) shared: Shared,
    /// Where the user's shell is, and what follows it.
    pub(super) workdir: Workdir,
    /// What goes with the next question.
    pub(super) attached: Vec<Part>,
    /// The latest commands of the user's shell, and the output of the last one.
    pub(super) terminal_seen: TerminalContext,
    /// The rows of the mailbox whose messages were entered here.
    pub(super) submitted: Vec<MailId>,
}

/// What is asked.
enum Asked<'a> {
    /// What was typed.
    Words(&'a str),
    /// What a server's prompt says.
    Prompt(Vec<Part>),
}

impl AgentChat {
    /// Takes the session that the prompt begins with.
    pub(super) fn new(
        session: AgentSession,
        output: Output,
        secrets: Secrets,
        terminal: Terminal,
        shared: Shared,
    ) -> Self {
        let workdir = Workdir::new(session.settings.directory.clone());
        shared.set_secrets(secrets.clone());
        Self {
            workdir,
            key_names: KeyNames::of(&session.settings),
            exports: None,
            output,
            secrets,
            terminal,
            books: Books::default(),
            owes_books: session.conversation().is_some(),
            session,
            memory: MemoryChoice::default(),
            python: None,
            presence: Presence::default(),
            parked: Vec::new(),
            shared,
            attached: Vec::new(),
            terminal_seen: TerminalContext::default(),
            submitted: Vec::new(),
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
        self.ask_with(Asked::Words(question)).await
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
        let parts = self
            .session
            .server_prompt(server, prompt, arguments)
            .await?;
        self.ask_with(Asked::Prompt(parts)).await
    }

    async fn ask_with(&mut self, asked: Asked<'_>) -> Result<TurnEnd> {
        self.learn_keys();
        let directory = &self.session.settings.directory;
        if !directory.is_dir() {
            return Err(CliError::new(Exit::Input, gone(directory)).hint(GO_ELSEWHERE));
        }
        let spec = self.spec()?;
        if spec.tool_names.iter().any(|name| python::has(name)) {
            self.python()?;
        }
        let (message, is_typed) = match asked {
            Asked::Words(question) => (self.message(question)?, true),
            Asked::Prompt(parts) => (self.prompt_message(parts), false),
        };
        let carried = match self.carry_on().await? {
            Some(over) if over.stopped_by.is_some() => return Ok(over),
            carried => carried,
        };
        self.attached.clear();
        let mut start = TurnStart::Message(message.into());
        if is_typed {
            start = self.session.with_resources(start).await?;
        }
        let over = self.turn(&spec, start).await?;
        Ok(match carried {
            Some(earlier) => over.after(earlier),
            None => over,
        })
    }

    /// Has all that was said summed up, with an eye on what the user names. Nothing changes where that
    /// fails. Returns `None`, after a note, where there is nothing to sum up yet.
    ///
    /// # Errors
    /// When the last turn was cut off, or no model can be asked.
    pub(super) async fn compact(&mut self, focus: &str) -> Result<Option<TurnEnd>> {
        self.learn_keys();
        let mut spec = self.session.spec()?;
        spec.only_sum_up();
        let message = compaction::question(focus);
        if self.current().is_some_and(|it| it.cut_off.is_some()) {
            let error = CliError::new(Exit::NoSession, "the last turn was cut off");
            return Err(error.hint("`/resume` carries it on, then `/compact` sums up"));
        }
        let history = self.current().map_or(&[][..], |it| &it.history);
        if let Some(early) = compaction::too_early(history) {
            let note = format!("there is nothing to sum up yet: {early}");
            self.output.note(&note);
            return Ok(None);
        }
        let start = TurnStart::Message(self.secrets.message(message).into());
        self.turn(&spec, start).await.map(Some)
    }

    /// Carries on the turn that was cut off, if there is one, and asks the messages that wait.
    ///
    /// # Errors
    /// When its models cannot be asked.
    pub(super) async fn resume(&mut self) -> Result<Option<TurnEnd>> {
        self.learn_keys();
        self.carry_on().await
    }

    async fn carry_on(&mut self) -> Result<Option<TurnEnd>> {
        let Some((spec, start)) = self.session.cut_off()? else {
            return self.ask_all_queued().await;
        };
        self.output.note("the turn that was cut off is carried on");
        self.turn(&spec, start).await.map(Some)
    }

    /// Returns who answers now, and under what.
    ///
    /// # Errors
    /// When the settings name no model.
    pub(super) fn spec(&self) -> Result<TurnSpec> {
        let mut spec = self.session.spec()?;
        self.memory.apply(&mut spec);
        if self.python.is_some() {
            python::offer(&mut spec, &self.session.settings);
        }
        Ok(spec)
    }

    /// Returns the Python session; its interpreter starts when that is first needed.
    ///
    /// # Errors
    /// When there is no interpreter.
    pub(super) fn python(&mut self) -> Result<Arc<Session>> {
        if let Some(session) = &self.python {
            return Ok(Arc::clone(session));
        }
        let settings = &self.session.settings;
        let mut settings = python::session_settings(settings, &[], &settings.directory);
        settings.has_terminal = true;
        if settings.program.is_relative() {
            return Err(CliError::new(Exit::Error, "there is no `python3`")
                .hint("install Python 3.9 or later, or activate a virtual environment"));
        }
        Ok(self.use_python(Arc::new(Session::new(settings))))
    }

    /// Has shell, agent and Python work in another directory, the interpreters of other sessions too.
    pub(super) fn set_directory(&mut self, directory: PathBuf) {
        self.workdir.set_directory(&directory);
        let settings = &mut self.session.settings;
        if settings.directory == directory {
            return;
        }
        settings.directory = directory;
        let wanted = python::session_settings(settings, &[], &settings.directory);
        let parked = self.parked.iter().map(Parked::python);
        for python in self.python.iter().chain(parked) {
            python.go_to(wanted.program.clone(), wanted.directory.clone());
        }
    }

    /// Returns what threads of the Python session at the prompt print while nothing runs there, if there
    /// is one.
    pub(super) fn late_output(&self) -> Option<Receiver<Vec<u8>>> {
        self.python.as_ref().map(|it| it.late_output())
    }

    /// Has a Python session be the one at the prompt.
    pub(super) fn use_python(&mut self, session: Arc<Session>) -> Arc<Session> {
        self.shared
            .set_python(Arc::clone(&session), Handle::current());
        Arc::clone(self.python.insert(session))
    }

    /// Returns the tools that inspect the live Python session, if there is one.
    pub(super) fn live_tools(&self, profile: &Profile) -> Vec<Arc<dyn Tool>> {
        let looks = python::looks(profile, &self.session.settings);
        let session = self.python.as_ref();
        session.map_or_else(Vec::new, |session| rondo_python::tools(session, looks))
    }

    /// Returns the conversation, once there is one.
    pub(super) fn current(&self) -> Option<&Conversation> {
        self.session.conversation()
    }

    /// Begins anew with the next question; what was said is kept in its session.
    pub(super) fn clear(&mut self) {
        self.session.clear();
        self.attached.clear();
        self.books.clear();
        self.owes_books = false;
    }

    /// Goes on with a session that is kept, in its own interpreter where it has one here.
    ///
    /// # Errors
    /// When another process works on it, or it is damaged.
    pub(super) fn take(&mut self, info: &SessionInfo) -> Result<&Conversation> {
        self.park_python()?;
        let left = self.current().map(|it| it.session.clone());
        self.books.clear();
        let failed = self.session.take(info).err();
        let goes_on = match (&failed, left) {
            (Some(_), Some(left)) => left,
            _ => info.id.clone(),
        };
        self.unpark_python(&goes_on);
        self.owes_books = true;
        match (failed, self.session.conversation()) {
            (None, Some(taken)) => Ok(taken),
            (Some(error), _) => Err(error.into()),
            (None, None) => Err(nothing_cut_off()),
        }
    }

    /// Has the books tell of the whole session, turns that another process ran included: from its
    /// records, which are read at the first question about them.
    ///
    /// # Errors
    /// When they are damaged, or the disk fails.
    pub(super) fn recall(&mut self) -> Result<()> {
        let Some(conversation) = self.current().filter(|_| self.owes_books) else {
            return Ok(());
        };
        let session = conversation.session.clone();
        let (mut fold, mut totals) = (Fold::default(), Totals::default());
        self.session
            .store()?
            .records::<CliError>(&session, |record| {
                fold.record(&record)
                    .into_iter()
                    .for_each(|turn| totals.recall(turn));
                Ok(())
            })?;
        fold.end().into_iter().for_each(|turn| totals.recall(turn));
        *self.books.open() = totals;
        self.owes_books = false;
        Ok(())
    }

    /// Ends what outlives turns.
    pub(super) async fn end(&mut self) {
        self.session.clear();
        self.session.runtime().close().await;
    }

    fn prompt_message(&self, parts: Vec<Part>) -> Message {
        let mut message = Message::user("");
        message.parts = parts;
        message.parts.extend(self.attached.iter().cloned());
        self.all_secrets().message(message)
    }

    /// Says which message that waited is asked now. One that was entered here may name files, as questions do.
    pub(super) fn written_here(&mut self, start: TurnStart) -> TurnStart {
        let TurnStart::Queued(mail, message) = start else {
            return start;
        };
        let text = message.text();
        let note = format!("the message that was queued is asked now: {text}");
        self.output.note(&note);
        let settings = &self.session.settings;
        let servers = settings.mcp.names();
        let is_own = self.submitted.contains(&mail);
        // What it names and does not exist was noted when it was entered.
        let quiet = |_: &str| {};
        let own = is_own.then(|| user_input::of_text(&text, &settings.directory, &servers, &quiet));
        match own {
            Some(Ok(own)) => TurnStart::Queued(mail, self.all_secrets().message(own).into()),
            Some(Err(_)) | None => TurnStart::Queued(mail, message),
        }
    }

    fn message(&self, question: &str) -> Result<Message> {
        let settings = &self.session.settings;
        let servers = settings.mcp.names();
        let note = |text: &str| self.output.note(text);
        let mut message = user_input::of_text(question, &settings.directory, &servers, &note)?;
        message.parts.extend(self.attached.iter().cloned());
        Ok(self.all_secrets().message(message))
    }

    /// Records what is of no turn, in the conversation that there is.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub(super) async fn record(&self, body: RecordBody) -> Result<()> {
        self.session.record(body).await?;
        Ok(())
    }

    /// Returns whether nothing is kept.
    pub(super) fn is_ephemeral(&self) -> bool {
        self.session.is_ephemeral()
    }

    /// Returns the secrets to redact, the key of the latest model included.
    pub(super) fn all_secrets(&self) -> Secrets {
        self.secrets
            .clone()
            .with(self.session.runtime().connected_key())
    }
}

fn nothing_cut_off() -> CliError {
    CliError::new(Exit::NoSession, "no turn was cut off")
}
