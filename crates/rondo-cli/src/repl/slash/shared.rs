//! Slash commands that both prompts have: what they need of the session, and their replies.

use crate::error::Result;
use crate::repl::Repl;
use crate::repl::python::show_traceback;
use crate::slash::{self, Context};
use rondo_tui::prompt::reply::{Change, Reply, Shown};
use rondo_tui::prompt::slash::SessionCommand;
use rondo_types::Part;

impl Repl {
    /// Carries out a command, makes its change, and shows its reply.
    ///
    /// # Errors
    /// When it fails.
    pub(super) async fn session_command(
        &mut self,
        command: SessionCommand,
        rest: &str,
    ) -> Result<()> {
        let context = self.command_context(command)?;
        let reply = slash::run(command, rest.to_owned(), context).await?;
        self.show_reply(reply)
    }

    fn command_context(&mut self, command: SessionCommand) -> Result<Context> {
        let python = match command {
            SessionCommand::Inspect | SessionCommand::LastError => Some(self.talk.python()?),
            _ => self.talk.python.clone(),
        };
        if matches!(
            command,
            SessionCommand::Steps | SessionCommand::Trace | SessionCommand::Cost
        ) {
            self.talk.recall()?;
        }
        let conversation = self.talk.current();
        Ok(Context {
            settings: self.talk.session.settings.clone(),
            secrets: self.talk.secrets.clone(),
            session: conversation.map(|it| it.session.clone()),
            granted: conversation.map_or_else(Vec::new, |it| it.grants.list()),
            memory: self.talk.memory.clone(),
            python,
            books: self.talk.books.clone(),
            columns: self.talk.output.columns(),
        })
    }

    fn show_reply(&mut self, reply: Reply) -> Result<()> {
        let values = &mut self.talk.session.settings.values;
        match reply.change {
            Some(Change::Model(name)) => values.model = Some(name),
            Some(Change::Profile(name)) => values.profile = Some(name),
            Some(Change::Allow(patterns)) => values.allowed_tools = Some(patterns),
            Some(Change::Text(text)) => self.talk.attached.push(Part::text(text)),
            Some(Change::File { part, .. }) => self.talk.attached.push(part),
            None => {}
        }
        self.forget_face();
        match reply.shown {
            Shown::Words(text) => self.tell(&format!("{text}\n")),
            Shown::Lines(text) | Shown::Pages(text) => self.print(&format!("{text}\n")),
            Shown::Traceback(text) => {
                show_traceback(&text, &self.talk.output);
                Ok(())
            }
        }
    }
}
