//! Effects that the screen asks for. Slow ones run beside the loop, and their results come back to it.

use super::submissions::Submission;
use super::{AddedReply, Runner, ScreenEnd};
use crate::app::{Effect, PaneWord, PendingMessage, Story};
use crate::prompt::reply::Reply;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rondo_core::session::{Delivery, TicketId};
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::granting::{PolicyChange, UserPolicy};
use rondo_runtime::service::{KeptSession, ReplacedFile};
use rondo_types::units::counted;
use rondo_types::{Answer, Grant, Message, SessionId};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Results that wait for the loop.
pub(super) const RESULTS_MAX: usize = 256;
/// Bytes of a text that a terminal takes for its clipboard.
const CLIPBOARD_BYTES_MAX: usize = 100_000;

/// Result of an effect.
pub(super) enum EffectResult {
    /// A message was submitted.
    Submitted(PendingMessage),
    /// A message could not be taken back.
    NotTakenBack(TicketId),
    /// Sessions that hold words.
    Found(String, Vec<KeptSession>),
    /// The last messages of a session.
    Preview(SessionId, Vec<Message>),
    /// The file that the call of a question would replace.
    Looked(String, Value, Result<ReplacedFile>),
    /// The change of the user's rules that a grant makes.
    Rule(String, PolicyChange, Grant),
    /// Files that `@` may name.
    Files(Vec<String>),
    /// Names that a word of the pane's prompt may become.
    Completes(PaneWord, Vec<String>),
    /// Earlier turns of a session.
    Earlier(SessionId, Result<Box<Story>>),
    /// A command of the user's has the agent asked.
    Ask(String),
    /// A command was carried out.
    Replied(Box<Reply>),
    /// An image is at hand, in this file.
    Image(PathBuf),
    /// Pasted text is a text like any other.
    Pasted(String),
    /// The models that can be chosen.
    Models(Vec<String>),
    /// Something was done, in words.
    Note(String),
    /// Something failed.
    Failed(Box<SetupError>),
}

impl Runner {
    /// Does what needs no terminal.
    pub(super) fn do_soon(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.do_beside(effect);
        }
    }

    pub(super) async fn act(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Command { command, rest } if !command.runs_beside() => {
                    effects.extend(self.command_now(command, rest).await);
                }
                Effect::Page(text) => {
                    let program = Arc::clone(&self.program);
                    self.lend(move || program.page(&text)).await;
                }
                Effect::Edit(draft) => {
                    let program = Arc::clone(&self.program);
                    if let Some(text) = self.lend(move || program.edit(&draft)).await {
                        self.app.set_draft(&text);
                    }
                }
                Effect::Suspend => self.suspend().await,
                Effect::Quit => self.ended = Some(ScreenEnd::Quit),
                Effect::Redraw => self.painter.lose(),
                Effect::Type(bytes) => self.type_into_shell(bytes),
                Effect::TypePython(bytes) => self.type_into_python(bytes),
                Effect::Copy(text) => self.copy(&text).await,
                effect => {
                    if !self.of_sessions(&effect).await {
                        self.do_beside(effect);
                    }
                }
            }
        }
    }

    pub(super) fn cancel(&mut self) {
        self.do_beside(Effect::Cancel);
    }

    fn do_beside(&mut self, effect: Effect) {
        let session = self.session.clone();
        match effect {
            Effect::Submit {
                text,
                attached,
                delivery,
            } => self.submit(text, attached, delivery),
            Effect::Cancel => self.beside(async move { session.cancel().await }),
            Effect::Answer(answer) => self.beside(async move { session.answer(answer).await }),
            Effect::ShowRule(hash, grant) => self.show_rule(hash, grant),
            Effect::WriteRule(change, answer) => self.write_rule(change, answer),
            Effect::Withdraw(ticket) => self.withdraw(ticket),
            Effect::CompleteInPane(asked) => self.complete_in_pane(asked),
            Effect::Command { command, rest } => self.command_beside(command, rest),
            Effect::Added { name, rest } => self.added_command(name, rest),
            Effect::PasteImage => self.clipboard_image(),
            Effect::PastePath { path, text } => self.pasted_path(path, text),
            effect => drop(self.of_lists(&effect)),
        }
    }

    /// Does something beside the loop, and says what failed.
    pub(super) fn beside(&self, work: impl Future<Output = Result<()>> + Send + 'static) {
        let done = self.done.0.clone();
        tokio::spawn(async move {
            if let Err(error) = work.await {
                // Without the loop there is no receiver.
                let _ = done.send(EffectResult::Failed(Box::new(error))).await;
            }
        });
    }

    /// Reads the file that the question is about which is on the screen, if it was not.
    pub(super) fn look_at_file(&mut self) {
        let Some((hash, tool, arguments)) = self.app.wants_look() else {
            return;
        };
        let (session, done) = (self.session.clone(), self.done.0.clone());
        tokio::spawn(async move {
            let found = session.replaced(&tool, &arguments).await;
            // Without the loop there is no receiver.
            let _ = done
                .send(EffectResult::Looked(hash, arguments, found))
                .await;
        });
    }

    /// Finds the change of the user's rules that a grant makes.
    fn show_rule(&self, hash: String, grant: Grant) {
        let (policy, done) = (UserPolicy::of(&self.settings.paths), self.done.0.clone());
        spawn_blocking(move || {
            let result = match policy.with(&grant) {
                Ok(change) => EffectResult::Rule(hash, change, grant),
                Err(error) => EffectResult::Failed(Box::new(error)),
            };
            // Without the loop there is nobody to show it.
            let _ = done.blocking_send(result);
        });
    }

    /// Writes a change of the user's rules, says so, and answers.
    fn write_rule(&self, change: PolicyChange, answer: Answer) {
        let (session, done) = (self.session.clone(), self.done.0.clone());
        self.beside(async move {
            let note = format!("written to `{}`", change.path().display());
            let written = spawn_blocking(move || change.save()).await;
            written.map_err(|err| SetupError::caused(SetupErrorKind::Other, err))??;
            // Without the loop there is nobody to tell.
            let _ = done.send(EffectResult::Note(note)).await;
            session.answer(answer).await
        });
    }

    fn added_command(&self, name: String, rest: String) {
        let (told, done) = (self.program.command(name, rest), self.done.0.clone());
        tokio::spawn(async move {
            let result = match told.await {
                Ok(AddedReply::Nothing) => return,
                Ok(AddedReply::Show(text)) => EffectResult::Note(text),
                Ok(AddedReply::Ask(question)) => EffectResult::Ask(question),
                Err(error) => EffectResult::Failed(Box::new(error)),
            };
            // Without the loop there is no receiver.
            let _ = done.send(result).await;
        });
    }

    fn clipboard_image(&self) {
        let (image, done) = (self.program.clipboard_image(), self.done.0.clone());
        tokio::spawn(async move {
            let result = match image.await {
                Ok(Some(path)) => EffectResult::Image(path),
                Ok(None) => EffectResult::Note("there is no image on the clipboard".to_owned()),
                Err(error) => EffectResult::Failed(Box::new(error)),
            };
            // Without the loop there is no receiver.
            let _ = done.send(result).await;
        });
    }

    fn pasted_path(&self, path: PathBuf, text: String) {
        let (program, done) = (Arc::clone(&self.program), self.done.0.clone());
        let path = self.settings.directory.join(path);
        tokio::spawn(async move {
            let of_file = path.clone();
            let is_image = spawn_blocking(move || program.is_image(&of_file)).await;
            let result = match is_image {
                Ok(true) => EffectResult::Image(path),
                _ => EffectResult::Pasted(text),
            };
            // Without the loop there is no receiver.
            let _ = done.send(result).await;
        });
    }

    fn withdraw(&self, ticket: TicketId) {
        let (session, done) = (self.session.clone(), self.done.0.clone());
        tokio::spawn(async move {
            let result = match session.withdraw(&ticket).await {
                Ok(true) => return,
                Ok(false) => EffectResult::NotTakenBack(ticket),
                Err(error) => EffectResult::Failed(Box::new(error)),
            };
            // Without the loop there is no receiver.
            let _ = done.send(result).await;
        });
    }

    /// Lets the session know the user's terminal as it is now.
    pub(super) fn show_terminal(&mut self) {
        let seen = self.app.terminal_seen();
        self.session.set_terminal(seen);
    }

    pub(super) fn submit(&mut self, text: String, attached: Vec<String>, delivery: Delivery) {
        self.show_terminal();
        let said = self.submissions.add(Submission {
            session: self.session.clone(),
            settings: self.settings.clone(),
            text,
            attached,
            delivery,
        });
        if let Err(error) = said {
            self.failed(&error);
        }
    }

    pub(super) fn take(&mut self, done: EffectResult) {
        match done {
            EffectResult::Submitted(waiting) => self.app.waits(waiting),
            EffectResult::NotTakenBack(ticket) => self.app.not_taken_back(&ticket),
            EffectResult::Found(words, found) => {
                let effects = self.app.found(&words, found);
                self.do_soon(effects);
            }
            EffectResult::Preview(session, messages) => self.app.previews(session, &messages),
            EffectResult::Looked(hash, arguments, Ok(found)) => {
                self.app.looked(&hash, &arguments, found);
            }
            EffectResult::Looked(hash, _, Err(error)) => {
                self.app.cannot_look(&hash, &error.to_string())
            }
            EffectResult::Rule(hash, change, grant) => self.app.shows_rule(&hash, change, grant),
            EffectResult::Files(files) => self.app.knows_files(files),
            EffectResult::Completes(asked, names) => self.app.completes_in_pane(&asked, &names),
            EffectResult::Ask(text) => self.submit(text, Vec::new(), Delivery::Queue),
            EffectResult::Image(path) => self.app.attach_file("image", &path),
            EffectResult::Pasted(text) => self.app.paste_text(&text),
            EffectResult::Models(models) => self.app.choose_model(models),
            EffectResult::Note(text) => self.app.note(&text),
            // They may lend the terminal to the pager, which is awaited.
            EffectResult::Earlier(..) | EffectResult::Replied(_) => {}
            EffectResult::Failed(error) => self.app.error(&error.line(), error.hint.as_deref()),
        }
        self.is_stale = true;
    }

    pub(super) async fn copy(&mut self, text: &str) {
        if text.len() > CLIPBOARD_BYTES_MAX {
            return self
                .app
                .flash(format!("more than {CLIPBOARD_BYTES_MAX} bytes: not copied"));
        }
        if !self.writer.settle(super::SETTLE).await {
            return;
        }
        let encoded = STANDARD.encode(text);
        self.writer
            .write(format!("\x1b]52;c;{encoded}\x07").into_bytes());
        tokio::spawn(self.program.copy(text.to_owned()));
        let lines = counted(text.lines().count(), "line");
        self.app.flash(format!("copied {lines}"));
    }
}
