//! Slash commands: the program carries them out, and the screen shows the reply and makes the change.

use super::effects::EffectResult;
use super::{Runner, ScreenEnd, answers};
use crate::app::Effect;
use crate::prompt::reply::{Change, CommandContext, Origin, Reply, ReplyText};
use crate::prompt::slash::Command;
use crate::text::clean;
use rondo_core::session::Delivery;
use rondo_runtime::Layer;
use rondo_runtime::service::SessionHandle;
use std::path::Path;

impl Runner {
    /// Carries out a command before anything else is done.
    pub(super) async fn command_now(&mut self, command: Command, rest: String) -> Vec<Effect> {
        let context = self.command_context();
        match self.program.slash(command, rest, context).await {
            Ok(reply) => self.replied(reply).await,
            Err(error) => {
                self.failed(&error);
                Vec::new()
            }
        }
    }

    /// Carries out a command beside the loop.
    pub(super) fn command_beside(&mut self, command: Command, rest: String) {
        if command.needs_python() {
            self.start_python();
        }
        let context = self.command_context();
        let replied = self.program.slash(command, rest, context);
        let done = self.done.0.clone();
        tokio::spawn(async move {
            let result = match replied.await {
                Ok(reply) => EffectResult::Replied(Box::new(reply)),
                Err(error) => EffectResult::Failed(Box::new(error)),
            };
            // Without the loop there is no receiver.
            let _ = done.send(result).await;
        });
    }

    fn command_context(&mut self) -> CommandContext {
        CommandContext {
            prompt: self.app.at_prompt(),
            service: self.service.clone(),
            settings: self.settings.clone(),
            session: self.session.clone(),
            columns: usize::from(self.area.width),
        }
    }

    /// Shows the text of a reply, makes its change, and returns the effects of that.
    pub(super) async fn replied(&mut self, reply: Reply) -> Vec<Effect> {
        self.is_stale = true;
        if let Some(Change::Session { session, origin }) = reply.change {
            self.go_on(session, origin, reply.shown);
            return Vec::new();
        }
        let mut effects = self.show_reply(reply.shown);
        if let Some(change) = reply.change {
            effects.extend(self.make(change).await);
        }
        effects
    }

    fn show_reply(&mut self, shown: ReplyText) -> Vec<Effect> {
        match shown {
            ReplyText::Words(text) | ReplyText::Lines(text) if text.is_empty() => {}
            ReplyText::Words(text) | ReplyText::Lines(text) => self.app.note(&text),
            ReplyText::Traceback(text) => self.app.show_traceback(&text),
            ReplyText::Pages(text) => return vec![Effect::Page(clean::text(&text))],
            ReplyText::Panel(panel, text) => return self.app.open_panel(panel, text),
        }
        Vec::new()
    }

    async fn make(&mut self, change: Change) -> Vec<Effect> {
        let session = self.session.clone();
        match change {
            Change::Model(name) => {
                self.session.set_model(&name);
                self.named = Some(name.clone());
                self.settings.values.model = Some(name);
                self.show_answers();
            }
            Change::Profile(name) => {
                self.settings.values.profile = Some(name.clone());
                self.choose(Layer {
                    profile: Some(name),
                    ..Layer::default()
                });
                self.show_answers();
            }
            Change::Allow(patterns) => {
                self.settings.values.allowed_tools = Some(patterns.clone());
                self.choose(Layer {
                    allowed_tools: Some(patterns),
                    ..Layer::default()
                });
            }
            Change::Text(text) => self.app.attach_text(text),
            Change::File { path, .. } => {
                self.app.attach_file("file", Path::new(&path));
                self.app.type_text(" ");
            }
            Change::Mode(mode) => self.app.set_language(mode),
            Change::Run(command) => return vec![self.app.shell_command(&command, false, false)],
            Change::Enter(lines) => {
                let lines = lines.iter();
                return lines
                    .flat_map(|line| self.app.enter(line, Delivery::Queue))
                    .collect();
            }
            Change::Ask { text, details } => {
                self.submit(text, Vec::from_iter(details), Delivery::Steer);
            }
            Change::Compact(focus) => {
                self.beside(async move { session.compact(&focus).await.map(drop) });
            }
            Change::Resume => session.resume(),
            // Its caller continues there, with the text of the reply.
            Change::Session { session, .. } => self.show(session, None),
            Change::Cancel => self.cancel(),
            Change::Copy(text) => self.copy(&text).await,
            Change::OtherPrompt => self.ended = Some(ScreenEnd::Inline),
            Change::Quit => self.ended = Some(ScreenEnd::Quit),
        }
        Vec::new()
    }

    /// Continues in another session, with a text below what happened there.
    fn go_on(&mut self, session: SessionHandle, origin: Origin, shown: ReplyText) {
        let note = match shown {
            ReplyText::Words(text) => Some(text),
            _ => None,
        };
        let asked = (origin == Origin::BeforeTurn).then(|| self.app.latest_asked());
        self.show(session, note);
        match origin {
            Origin::Recorded => self.keep_model(),
            Origin::New | Origin::Copy | Origin::BeforeTurn => self.carry_model(),
        }
        if let Some(asked) = asked {
            self.app.set_draft(&asked);
        }
    }

    /// Shows the model and the profile of the next turn in the status line.
    pub(super) fn show_answers(&mut self) {
        let (model, profile, context_max) = answers(&self.settings);
        self.app.set_answers(model, profile, context_max);
    }
}
