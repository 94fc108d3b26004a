//! Slash commands that both prompts have: what they need of the session, and their replies.

use crate::error::Result;
use crate::repl::Repl;
use crate::repl::python::show_traceback;
use crate::slash::{self, Context};
use rondo_tui::prompt::reply::{Change, CommandContext, Reply, Shown};
use rondo_tui::prompt::slash::SessionCommand;
use rondo_types::Part;

impl Repl {
    /// Carries out a command, makes its change, and shows its reply.
    ///
    /// # Errors
    /// When it fails.
    pub(in crate::repl) async fn session_command(
        &mut self,
        command: SessionCommand,
        rest: &str,
    ) -> Result<()> {
        if command.needs_python() {
            self.talk.python()?;
        }
        self.talk.hand_over();
        let context = CommandContext {
            settings: self.talk.settings.clone(),
            session: self.talk.handle.clone(),
            columns: self.talk.output.columns(),
        };
        let (secrets, memory) = (self.talk.all_secrets(), self.talk.memory.clone());
        let context = Context::read(command, context, secrets, memory).await?;
        let work = slash::run(command, rest.to_owned(), context);
        let reply = match command {
            SessionCommand::Restore => self.stoppable(work).await?,
            _ => work.await?,
        };
        self.show_reply(reply)
    }

    fn show_reply(&mut self, reply: Reply) -> Result<()> {
        let values = &mut self.talk.settings.values;
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
