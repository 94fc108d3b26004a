//! Slash commands: lines of the prompt that begin with `/`.
//!
//! A new command is a variant and a row in the table of `rondo-tui`, which `/help` and completion show. A command that needs
//! only the session is carried out by `crate::slash` for both prompts; the others have an arm in [`Repl::slash`].
//!
//! # Layout
//! - `shared`: shows the reply to a command that both prompts have; `session`, `turns`: the commands of this prompt.

mod session;
mod shared;
mod turns;

pub(super) use rondo_tui::prompt::slash::{is_name, names};

use super::shell::Sharing;
use super::{After, Repl};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::interactive::GoesOn;
use rondo_script::InitAction;
use rondo_tui::prompt::run_mode::RunMode;
use rondo_tui::prompt::slash::{self as table, Command};

impl Repl {
    /// Runs a slash command.
    ///
    /// # Errors
    /// When there is no such command, or it fails.
    pub(super) async fn slash(&mut self, name: &str, rest: &str) -> Result<After> {
        let Some(command) = table::find(name) else {
            if let Some(done) = self.own_command(name, rest).await {
                return done;
            }
            return match name.split_once(':') {
                Some((server, prompt)) => self.server_prompt(server, prompt, rest).await,
                None => Err(unknown(name)),
            };
        };
        match command {
            Command::Session(command) => self.session_command(command, rest).await,
            Command::Help => self.help(),
            Command::Ps => return self.run_command("jobs -l", Sharing::Never).await,
            Command::Stop => return self.stop_job(rest).await,
            Command::Quit => return Ok(After::Leave(Exit::Answer)),
            Command::Mode => {
                self.set_mode(self.mode().choose(rest)?);
                Ok(())
            }
            Command::Clear => self.clear(),
            Command::Compact => return self.compact(rest).await,
            Command::Todo => self.show_todo(),
            Command::Explain => return self.ask_about_failure().await,
            Command::Run => return self.run_file(rest),
            Command::Sessions => self.show_sessions(),
            Command::Resume => return self.resume(rest).await,
            Command::Fork => self.fork(rest).await,
            Command::Undo => self.undo().await,
            Command::Screen => return self.go_to_screen(),
            // The table finds neither for this prompt.
            Command::Copy | Command::Terminal => Err(unknown(name)),
        }?;
        Ok(After::Prompt)
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
        self.goes_on = Some(GoesOn {
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

    fn help(&mut self) -> Result<()> {
        let mut text = table::help();
        let own = self.init.as_ref().map(|it| it.commands());
        for command in own.into_iter().flatten() {
            let line = format!("/{}  {} (init.lua)\n", command.name, command.description);
            text.push_str(&line);
        }
        self.tell(&text)
    }
}

fn unknown(name: &str) -> CliError {
    table::unknown(name, names()).into()
}
