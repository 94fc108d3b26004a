//! Slash commands at the line prompt: it shows their replies and makes their changes.

use super::python::show_traceback;
use super::shell::{LastCommand, Sharing};
use super::{After, Repl};
use crate::commands::clipboard;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::interactive::Handover;
use crate::slash::{self, Context, Host};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rondo_runtime::NoNotices;
use rondo_runtime::service::SessionHandle;
use rondo_runtime::sessions::LatestModels;
use rondo_runtime::spec::go_on_with;
use rondo_script::InitAction;
use rondo_tui::prompt::reply::{Change, CommandContext, Origin, PromptState, Reply, ReplyText};
use rondo_tui::prompt::run_mode::RunMode;
use rondo_tui::prompt::slash::{self as table, Command};
use rondo_types::Part;
use rondo_types::units::counted;

/// Bytes of a text that a terminal takes for its clipboard.
const CLIPBOARD_BYTES_MAX: usize = 100_000;

impl Repl {
    /// Does what a line says that begins with a slash.
    ///
    /// # Errors
    /// When there is no such command, or it fails.
    pub(super) async fn slash(&mut self, name: &str, rest: &str) -> Result<After> {
        if let Some(command) = table::find(name) {
            return self.command(command, rest).await;
        }
        if let Some(done) = self.own_command(name, rest).await {
            return done;
        }
        match name.split_once(':') {
            Some((server, prompt)) => self.server_prompt(server, prompt, rest).await,
            None => Err(table::unknown(name, table::names()).into()),
        }
    }

    /// Carries out a command, shows its reply, and makes its change.
    ///
    /// # Errors
    /// When it fails.
    pub(super) async fn command(&mut self, command: Command, rest: &str) -> Result<After> {
        if command.needs_python() {
            self.talk.python()?;
        }
        self.talk.hand_over();
        let context = CommandContext {
            service: self.talk.service.clone(),
            settings: self.talk.settings.clone(),
            session: self.talk.handle.clone(),
            columns: self.talk.output.columns(),
            prompt: self.at_prompt(),
        };
        let host = Host {
            secrets: self.talk.all_secrets(),
            memory: self.talk.memory.clone(),
            names_directory: self.names_directory,
            added: self.added_commands(),
        };
        let context = Context::read(command, context, host).await?;
        let work = slash::run(command, rest.to_owned(), context);
        let Reply { shown, change } = match command {
            Command::Restore => self.stoppable(work).await?,
            _ => work.await?,
        };
        self.show_reply(shown)?;
        self.forget_face();
        match change {
            Some(change) => self.make(change).await,
            None => Ok(After::Prompt),
        }
    }

    fn at_prompt(&self) -> PromptState {
        PromptState {
            mode: self.mode(),
            is_busy: false,
            runs_own: false,
            asks: false,
            has_shell: self.shell.is_some(),
            failed: (self.last_command.as_ref())
                .and_then(LastCommand::failed)
                .or_else(|| self.failed_cell.clone()),
            terminal: self.talk.terminal_seen.clone(),
            keys: table::KEYS,
        }
    }

    fn added_commands(&self) -> Vec<(String, String)> {
        let commands = self.init.iter().flat_map(|init| init.commands());
        let commands = commands.map(|it| (it.name, it.description));
        commands.collect()
    }

    fn show_reply(&self, shown: ReplyText) -> Result<()> {
        match shown {
            ReplyText::Words(text) | ReplyText::Lines(text) if text.is_empty() => Ok(()),
            ReplyText::Words(text) => self.tell(&format!("{text}\n")),
            ReplyText::Lines(text) | ReplyText::Pages(text) | ReplyText::Panel(_, text) => {
                self.print(&format!("{text}\n"))
            }
            ReplyText::Traceback(text) => {
                show_traceback(&text, &self.talk.output);
                Ok(())
            }
        }
    }

    async fn make(&mut self, change: Change) -> Result<After> {
        let values = &mut self.talk.settings.values;
        match change {
            Change::Model(name) => values.model = Some(name),
            Change::Profile(name) => values.profile = Some(name),
            Change::Allow(patterns) => values.allowed_tools = Some(patterns),
            Change::Text(text) => self.talk.attached.push(Part::text(text)),
            Change::File { part, .. } => self.talk.attached.push(part),
            Change::Mode(mode) => self.set_mode(mode),
            Change::Run(command) => return self.run_command(&command, Sharing::Never).await,
            Change::Enter(lines) => self.queue(lines),
            Change::Ask { text, details } => {
                self.attach_last_command();
                self.talk.attached.extend(details.map(Part::text));
                let over = self.talk.ask(&text).await?;
                return Ok(self.turn_over(over));
            }
            Change::Compact(focus) => {
                let over = self.talk.compact(focus).await?;
                return Ok(self.turn_over(over));
            }
            Change::Resume => {
                let over = self.talk.resume().await?;
                return Ok(self.turn_over(over));
            }
            Change::Session { session, origin } => self.go_on_in_session(session, origin).await?,
            Change::Cancel => self.talk.handle.cancel().await?,
            Change::Copy(text) => self.copy(&text).await?,
            Change::OtherPrompt => return self.go_to_screen(),
            Change::Quit => return Ok(After::Leave(Exit::Answer)),
        }
        Ok(After::Prompt)
    }

    async fn copy(&self, text: &str) -> Result<()> {
        let output = &self.talk.output;
        if !clipboard::copy(&self.talk.settings.env, text).await {
            if !output.stderr_erases || text.len() > CLIPBOARD_BYTES_MAX {
                let message = "there is no program here that copies to the clipboard";
                return Err(CliError::new(Exit::Error, message));
            }
            output.stderr(&format!("\x1b]52;c;{}\x07", STANDARD.encode(text)));
        }
        let lines = counted(text.lines().count(), "line");
        self.tell(&format!("copied {lines}\n"))
    }

    async fn go_on_in_session(&mut self, session: SessionHandle, origin: Origin) -> Result<()> {
        match origin {
            Origin::New => self.talk.begin(session),
            Origin::Recorded => {
                self.keep_model(&session)?;
                self.talk.take(session)?;
                self.note_session()?;
                self.tell_cells()?;
            }
            Origin::Copy | Origin::BeforeTurn => self.go_on_in_copy(session, origin).await?,
        }
        Ok(())
    }

    /// Goes on with the model that a session asked, unless the command line names one.
    fn keep_model(&mut self, session: &SessionHandle) -> Result<()> {
        let Some(info) = session.info()? else {
            return Ok(());
        };
        if let Some(last) = LatestModels::last(session.store(), &info)? {
            go_on_with(&last, &mut self.talk.settings, &NoNotices)?;
        }
        Ok(())
    }

    /// Goes on in a copy of the session, and carries what ran in the interpreter up to there into one of the copy's own, by
    /// running it again.
    async fn go_on_in_copy(&mut self, copy: SessionHandle, origin: Origin) -> Result<()> {
        let Some(info) = copy.info()? else {
            self.talk.park_python()?;
            self.talk.begin(copy);
            return Ok(());
        };
        let names = match &self.talk.python {
            Some(python) => python.session().global_names().await.unwrap_or_default(),
            None => Vec::new(),
        };
        self.talk.hand_over();
        let mut here = self.talk.handle.sorted_cells()?.here;
        let all = here.len();
        here.retain(|it| it.seq <= info.head);
        let later = all - here.len();
        self.talk.take(copy)?;
        self.note_session()?;
        if all == 0 {
            return self.tell_cells();
        }
        if later > 0 {
            let note = format!("what {later} later Python cells left is taken back too");
            self.talk.output.note(&note);
        }
        if !here.is_empty() {
            self.run_again(&here).await?;
        }
        match origin {
            Origin::Copy => self.report_gone(names).await,
            _ => Ok(()),
        }
    }

    /// Leaves the prompt for the full screen, with the session.
    fn go_to_screen(&mut self) -> Result<After> {
        if self.talk.settings.env.get("TERM") == Some("dumb") {
            let message = "this terminal cannot show the full screen: it is a dumb one";
            return Err(CliError::new(Exit::Usage, message));
        }
        let run_mode = RunMode::of(&self.talk.settings.values);
        let is_kept = !self.talk.is_ephemeral() && self.talk.handle.info()?.is_some();
        let session = is_kept.then(|| self.talk.handle.id().to_string());
        self.goes_on = Some(Handover {
            session,
            run_mode: Some(run_mode).filter(|it| *it != self.began_as),
            kept: self.take_kept(),
        });
        Ok(After::Leave(Exit::Answer))
    }

    /// Does what a command of `init.lua` says; `None` where it has none of this name.
    async fn own_command(&mut self, name: &str, rest: &str) -> Option<Result<After>> {
        let init = self.init.clone()?;
        let done = match init.command(name, rest).await? {
            Ok(InitAction::Nothing) => Ok(After::Prompt),
            Ok(InitAction::Show(text)) => {
                let line = format!("{}\n", text.trim_end_matches('\n'));
                self.print(&line).map(|()| After::Prompt)
            }
            Ok(InitAction::Ask(question)) => {
                let over = self.talk.ask(&question).await;
                over.map(|over| self.turn_over(over))
            }
            Err(why) => {
                let message = format!("`/{name}` of `init.lua` failed: {why}");
                Err(CliError::new(Exit::Error, message))
            }
        };
        Some(done)
    }

    /// Asks what a server's prompt says: `/server:prompt ARGUMENT...`, in double quotes where one has blanks.
    async fn server_prompt(&mut self, server: &str, prompt: &str, rest: &str) -> Result<After> {
        table::check_server(&self.talk.settings, server)?;
        let over = self
            .talk
            .ask_prompt(server, prompt, &table::arguments(rest))
            .await?;
        Ok(self.turn_over(over))
    }
}
