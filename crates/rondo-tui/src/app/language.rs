//! What is typed: whom it is for, and what becomes of it.

use super::{App, Effect, Layer};
use crate::prompt::mode::Line;
use crate::prompt::slash::{self, Command, Entry};
use crate::transcript::{Entry as Told, Tone};
use rondo_core::session::Delivery;
use rondo_runtime::SetupError;

/// Said of a command that waits for the end of the turn.
const TURN_RUNS: &str = "a turn runs: Esc stops it";

impl App {
    pub(super) fn next_run_mode(&mut self) -> Vec<Effect> {
        self.run_mode = self.run_mode.next();
        self.flash(self.run_mode.explained());
        vec![Effect::RunMode(self.run_mode)]
    }

    /// Does what a line says that was entered.
    pub(super) fn enter(&mut self, text: &str, delivery: Delivery) -> Vec<Effect> {
        self.forget_printed();
        let language = self.language;
        self.history.push(text, language, &self.secrets);
        self.recalled = None;
        self.viewport.follow();
        let names: Vec<String> = self.added.commands.iter().map(|it| it.0.clone()).collect();
        let is_slash =
            |name: &str| slash::find_on_screen(name).is_some() || names.iter().any(|it| it == name);
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

    fn slash(&mut self, name: &str, rest: &str) -> Vec<Effect> {
        let Some(command) = slash::find_on_screen(name) else {
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
            let known = slash::all_on_screen().map(|entry| entry.name);
            self.refuse(&slash::unknown(name, known));
            return Vec::new();
        };
        match command {
            Command::Session(command) => {
                let rest = rest.to_owned();
                return vec![Effect::Command { command, rest }];
            }
            Command::Help => self.show_commands(),
            Command::Quit => return vec![Effect::Quit],
            Command::Screen if self.runs_own() => {
                self.flash("a command or a cell still runs: it has to end first");
            }
            Command::Screen => return vec![Effect::Inline],
            Command::Copy => return self.copy_part(rest),
            Command::Terminal => return vec![Effect::Terminal(self.terminal_seen())],
            Command::Clear => return self.clear(),
            Command::Compact => return vec![Effect::Compact(rest.to_owned())],
            Command::Fork => return self.fork(rest),
            Command::Undo => return self.undo(),
            Command::Sessions => return self.sessions(),
            Command::Resume if !rest.is_empty() => return vec![Effect::Open(rest.to_owned())],
            Command::Resume if self.is_in_turn() => self.flash(TURN_RUNS),
            Command::Resume => return vec![Effect::Resume],
            Command::Stop => return self.stop(rest),
            Command::Todo => self.layer = Layer::Todo,
            Command::Explain => return self.explain(),
            Command::Ps => {
                return vec![self.shell_command("jobs -l", false, false)];
            }
            Command::Mode => match self.language.choose(rest) {
                Ok(language) => self.language = language,
                Err(error) => self.refuse(&error),
            },
            Command::Run => self.error(
                &format!("`/{name}` is for the line prompt"),
                Some("`/screen` goes there with this session"),
            ),
        }
        Vec::new()
    }

    fn refuse(&mut self, error: &SetupError) {
        self.error(&error.line(), error.hint.as_deref());
    }

    /// Continues in a copy of the session.
    fn fork(&mut self, rest: &str) -> Vec<Effect> {
        match slash::check_fork(rest) {
            Ok(()) if self.is_in_turn() => self.flash(TURN_RUNS),
            Ok(()) => return vec![Effect::Fork],
            Err(error) => self.refuse(&error),
        }
        Vec::new()
    }

    /// Stops the turn or the cell that runs, or a job of the shell.
    fn stop(&mut self, job: &str) -> Vec<Effect> {
        if job.is_empty() && (self.is_busy() || self.runs_own()) {
            return vec![Effect::Cancel];
        }
        if job.is_empty() && !self.pane.was_used() {
            self.flash("nothing runs");
            return Vec::new();
        }
        match slash::stop_job(job) {
            Ok(command) => vec![self.shell_command(&command, false, false)],
            Err(error) => {
                self.refuse(&error);
                Vec::new()
            }
        }
    }

    /// Begins a new session. What this one asks is denied: an answer would come from somewhere that does not show it.
    fn clear(&self) -> Vec<Effect> {
        match self.story.questions.is_empty() {
            true => vec![Effect::New],
            false => vec![Effect::Cancel, Effect::New],
        }
    }

    fn show_commands(&mut self) {
        let spelled = |it: &Entry| format!("/{} {}", it.name, it.arguments);
        let lines = slash::all_on_screen().map(|it| format!("{:24} {}", spelled(it), it.does));
        let added = self.added.commands.iter();
        let added = added.map(|(name, does)| format!("/{name:23} {does} (init.lua)"));
        let text = lines.chain(added).collect::<Vec<_>>().join("\n");
        self.note(&format!(
            "{text}\n{}\nkeys: `?` on an empty input",
            slash::OF_SERVERS
        ));
    }

    pub(super) fn next_language(&mut self) -> Vec<Effect> {
        self.language = self.language.next();
        Vec::new()
    }

    /// Goes back before the latest turn, with its words in the input.
    pub(super) fn undo(&mut self) -> Vec<Effect> {
        if self.is_busy() {
            self.flash(TURN_RUNS);
            return Vec::new();
        }
        let asked = self.story.transcript.latest().find_map(|it| match it.1 {
            Told::Asked(text) => Some(text.clone()),
            _ => None,
        });
        vec![Effect::Undo(asked.unwrap_or_default())]
    }

    pub(super) fn explain(&mut self) -> Vec<Effect> {
        let failed = self.story.transcript.latest().find_map(|it| match it.1 {
            Told::Card(card) if card.end.as_ref().is_some_and(|end| !end.is_ok) => {
                Some(card.line())
            }
            _ => None,
        });
        match failed {
            Some(line) => vec![Effect::Submit {
                text: format!("Why did `{line}` fail, and what would mend it?"),
                attached: Vec::new(),
                delivery: Delivery::Steer,
            }],
            None => {
                self.flash("nothing failed here");
                Vec::new()
            }
        }
    }

    /// Copies the last answer, or a block of code in it.
    fn copy_part(&mut self, number: &str) -> Vec<Effect> {
        let answer = self.story.transcript.latest().find_map(|it| match it.1 {
            Told::Answer(answer) => Some(answer.source().to_owned()),
            _ => None,
        });
        let Some(answer) = answer else {
            self.flash("there is nothing to copy");
            return Vec::new();
        };
        let blocks = crate::markdown::code_blocks(&answer);
        let block = number
            .parse::<usize>()
            .ok()
            .and_then(|it| it.checked_sub(1));
        match (number, block.and_then(|it| blocks.get(it))) {
            ("", _) => vec![Effect::Copy(answer)],
            (_, Some(code)) => vec![Effect::Copy(code.clone())],
            _ => {
                let text = format!("the last answer has {} blocks of code", blocks.len());
                self.story.note(Tone::Bad, &text);
                Vec::new()
            }
        }
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
