//! What is typed: whom it is for, and what becomes of it.

use super::{App, Effect, Layer, python_pane};
use crate::prompt::mode::{Line, Mode};
use crate::prompt::reply::{FailedCell, Panel, PromptState};
use crate::prompt::slash;
use crate::transcript::Entry as Told;
use rondo_core::session::Delivery;

/// What `/help` says of keys.
const KEYS: &str = "keys: `?` on an empty input";

impl App {
    pub(super) fn next_run_mode(&mut self) -> Vec<Effect> {
        self.run_mode = self.run_mode.next();
        self.flash(self.run_mode.explained());
        vec![Effect::RunMode(self.run_mode)]
    }

    /// Does what a line says that was entered.
    pub(crate) fn enter(&mut self, text: &str, delivery: Delivery) -> Vec<Effect> {
        self.forget_printed();
        let language = self.language;
        self.history.push(text, language, &self.secrets);
        self.recalled = None;
        self.viewport.follow();
        let names: Vec<String> = self.added.commands.iter().map(|it| it.0.clone()).collect();
        let is_slash =
            |name: &str| slash::find(name).is_some() || names.iter().any(|it| it == name);
        match language.parse_line(text, is_slash) {
            Line::Empty => Vec::new(),
            Line::Ask(text) if self.replies_to(text) => Vec::new(),
            Line::Ask(text) => vec![Effect::Submit {
                text: text.to_owned(),
                attached: std::mem::take(&mut self.attached),
                delivery,
            }],
            Line::Run { command, shared } => vec![self.shell_command(command, shared, false)],
            Line::Python(code) => vec![self.python_cell(code.to_owned(), false)],
            Line::Slash { name, rest } => self.slash(name, rest),
        }
    }

    /// Returns whether the draft is the beginning of a command or of a cell, and Enter begins another line of it.
    pub(super) fn goes_on(&self) -> bool {
        let is_slash = |name: &str| slash::find(name).is_some();
        match self.language.parse_line(self.editor.text(), is_slash) {
            Line::Run { command, .. } => !rondo_policy::is_complete(command),
            Line::Python(code) => python_pane::goes_on(code),
            Line::Empty | Line::Ask(_) | Line::Slash { .. } => false,
        }
    }

    fn slash(&mut self, name: &str, rest: &str) -> Vec<Effect> {
        let Some(command) = slash::find(name) else {
            if self.added.commands.iter().any(|it| it.0 == name) {
                let (name, rest) = (name.to_owned(), rest.to_owned());
                return vec![Effect::Added { name, rest }];
            }
            let line = format!("/{name} {rest}").trim_end().to_owned();
            if slash::server_prompt(&line).is_some() {
                return vec![Effect::Submit {
                    text: line,
                    attached: std::mem::take(&mut self.attached),
                    delivery: Delivery::Queue,
                }];
            }
            let error = slash::unknown(name, slash::names());
            self.error(&error.line(), error.hint.as_deref());
            return Vec::new();
        };
        let rest = rest.to_owned();
        vec![Effect::Command { command, rest }]
    }

    /// Returns the state of the prompt, for a slash command.
    pub(crate) fn at_prompt(&mut self) -> PromptState {
        PromptState {
            mode: self.language,
            is_busy: self.is_busy(),
            runs_own: self.runs_own(),
            asks: !self.story.questions().is_empty(),
            has_shell: self.pane.was_used(),
            failed: self.failed_cell(),
            terminal: self.terminal_seen(),
            keys: KEYS,
        }
    }

    fn failed_cell(&self) -> Option<FailedCell> {
        self.story.transcript.latest().find_map(|it| match it.1 {
            Told::Card(card) if card.end.as_ref().is_some_and(|end| !end.is_ok) => {
                Some(FailedCell {
                    line: card.line(),
                    // It is in the conversation.
                    details: None,
                })
            }
            _ => None,
        })
    }

    pub(crate) fn set_language(&mut self, language: Mode) {
        self.language = language;
    }

    /// Opens a panel, with the text of what it shows.
    pub(crate) fn open_panel(&mut self, panel: Panel, text: String) -> Vec<Effect> {
        match panel {
            Panel::Sessions => return self.sessions(),
            Panel::Todo => self.layer = Layer::Todo,
            Panel::Attach => self.preview_text(text),
        }
        Vec::new()
    }

    pub(super) fn next_language(&mut self) -> Vec<Effect> {
        self.language = self.language.next();
        Vec::new()
    }

    /// Returns the words of the latest turn; none where it only summed up, as nobody typed them.
    pub(crate) fn latest_asked(&self) -> String {
        if self.story.only_summed_up() {
            return String::new();
        }
        let asked = self.story.transcript.latest().find_map(|it| match it.1 {
            Told::Asked(text) => Some(text.clone()),
            _ => None,
        });
        asked.unwrap_or_default()
    }

    /// Recalls what was typed before, or after that.
    pub(super) fn recall(&mut self, goes_back: bool) {
        let all = self.history.len();
        let at = self.recalled.unwrap_or(all);
        let to = match goes_back {
            true => at.checked_sub(1),
            false => Some(at + 1).filter(|it| *it <= all),
        };
        let Some(to) = to else {
            return;
        };
        let line = self.history.spelled(to, self.language).unwrap_or_default();
        self.editor.set(&line);
        self.recalled = Some(to).filter(|it| *it < all);
    }
}
