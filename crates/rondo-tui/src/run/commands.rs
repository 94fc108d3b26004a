//! Slash commands that both prompts have: the program carries them out, and the screen shows the reply and makes the change.

use super::effects::Done;
use super::{Runner, answers};
use crate::app::Effect;
use crate::prompt::reply::{Change, CommandContext, Reply, Shown};
use crate::prompt::slash::SessionCommand;
use crate::text::clean;
use rondo_runtime::Layer;
use std::path::Path;

impl Runner {
    /// Carries out a command before anything else is done.
    pub(super) async fn command_now(
        &mut self,
        command: SessionCommand,
        rest: String,
    ) -> Vec<Effect> {
        let context = self.command_context();
        match self.program.session_command(command, rest, context).await {
            Ok(reply) => self.replied(reply),
            Err(error) => {
                self.failed(&error);
                Vec::new()
            }
        }
    }

    /// Carries out a command beside the loop.
    pub(super) fn command_beside(&mut self, command: SessionCommand, rest: String) {
        if command.needs_python() {
            self.start_python();
        }
        let context = self.command_context();
        let replied = self.program.session_command(command, rest, context);
        let done = self.done.0.clone();
        tokio::spawn(async move {
            let result = match replied.await {
                Ok(reply) => Done::Replied(Box::new(reply)),
                Err(error) => Done::Failed(Box::new(error)),
            };
            // Without the loop there is nobody to tell.
            let _ = done.send(result).await;
        });
    }

    fn command_context(&self) -> CommandContext {
        CommandContext {
            settings: self.settings.clone(),
            session: self.session.clone(),
            columns: usize::from(self.area.width),
        }
    }

    /// Makes the change of a reply, shows its text, and returns the effects of that.
    pub(super) fn replied(&mut self, reply: Reply) -> Vec<Effect> {
        self.is_stale = true;
        match reply.change {
            Some(Change::Model(name)) => {
                self.session.set_model(&name);
                self.settings.values.model = Some(name);
                self.show_answers();
            }
            Some(Change::Profile(name)) => {
                self.settings.values.profile = Some(name.clone());
                self.choose(Layer {
                    profile: Some(name),
                    ..Layer::default()
                });
                self.show_answers();
            }
            Some(Change::Allow(patterns)) => {
                self.settings.values.allowed_tools = Some(patterns.clone());
                self.choose(Layer {
                    allowed_tools: Some(patterns),
                    ..Layer::default()
                });
            }
            Some(Change::Text(text)) => self.app.attach_text(text),
            Some(Change::File { path, .. }) => {
                self.app.attach_file("file", Path::new(&path));
                self.app.type_text(" ");
            }
            None => {}
        }
        match reply.shown {
            Shown::Words(text) | Shown::Lines(text) => self.app.note(&text),
            Shown::Traceback(text) => self.app.show_traceback(&text),
            Shown::Pages(text) => return vec![Effect::Page(clean::text(&text))],
        }
        Vec::new()
    }

    /// Has the status line name the model and the profile of the next turn.
    fn show_answers(&mut self) {
        let (model, profile, context_max) = answers(&self.settings);
        self.app.set_answers(model, profile, context_max);
    }
}
