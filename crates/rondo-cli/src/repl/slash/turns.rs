//! Slash commands that show steps and cost of turns, and add to the next one.

use crate::commands::skills;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::render::tool_line;
use crate::repl::{After, Repl};
use crate::user_input;
use rondo_runtime::skills::Skills;
use rondo_runtime::todo::as_text;
use rondo_runtime::view::{Item, StepView};
use rondo_types::Part;
use rondo_types::units::{counted, dollars, tokens, took};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::Read as _;

/// Characters of an argument or a result that `/trace` shows.
const SHOWN_CHARS_MAX: usize = 4000;
/// The bound on a file whose lines are entered, in bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

impl Repl {
    pub(super) fn show_cost(&mut self) -> Result<()> {
        self.talk.recall()?;
        let text = {
            let books = self.talk.books.open();
            let cost = match books.is_cost_partial {
                true => "not every price is known".to_owned(),
                false => dollars(books.cost_usd),
            };
            let turns = counted(books.turns, "turn");
            format!("{turns}, {}, {cost}\n", tokens(books.usage))
        };
        self.tell(&text)
    }

    pub(super) fn show_todo(&mut self) -> Result<()> {
        let conversation = self.talk.current();
        let items = conversation.map(|it| it.todo.items()).unwrap_or_default();
        self.tell(&format!("{}\n", as_text(&items)))
    }

    pub(super) fn show_steps(&mut self) -> Result<()> {
        self.talk.recall()?;
        let columns = self.talk.output.columns();
        let text = self.steps_text(|text, (tool, arguments), (_, error, ms)| {
            let line = tool_line(tool, arguments, columns.saturating_sub(12));
            let time = took(ms);
            let _ = match error {
                None => writeln!(text, "  • {line}  {time}"),
                Some(code) => writeln!(text, "  ✗ {line}  {time}, {code}"),
            };
        });
        self.print(&text)
    }

    pub(super) fn show_trace(&mut self) -> Result<()> {
        self.talk.recall()?;
        let text = self.steps_text(|text, (tool, arguments), (result, error, ms)| {
            let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
            let _ = writeln!(text, "  • {tool} {}", indented(&arguments));
            let code = error.map_or(String::new(), |code| format!(", {code}"));
            let fields = serde_json::from_str::<Map<String, Value>>(result);
            let fields = fields.and_then(|fields| serde_json::to_string_pretty(&fields));
            let result = fields.unwrap_or_else(|_| result.to_owned());
            let time = took(ms);
            let _ = writeln!(text, "    after {time}{code}: {}", indented(&result));
        });
        self.print(&text)
    }

    /// Writes the steps of the latest turn, each call by `write_call`: its tool and arguments, its result, the code of
    /// its error and how long it took.
    fn steps_text(
        &self,
        write_call: impl Fn(&mut String, (&str, &Value), (&str, Option<&str>, u64)),
    ) -> String {
        let books = self.talk.books.open();
        let Some(turn) = books.latest().filter(|turn| !turn.steps.is_empty()) else {
            return "nothing was asked yet\n".to_owned();
        };
        let mut text = String::new();
        for (step, took_ms) in turn.timed_steps() {
            let _ = writeln!(text, "{}", step_line(step, took_ms));
            for item in &step.items {
                if let Item::Result {
                    tool,
                    arguments,
                    error,
                    text: result,
                    took_ms,
                } = item
                {
                    let end = (result.as_str(), error.as_deref(), *took_ms);
                    write_call(&mut text, (tool, arguments), end);
                }
            }
        }
        text
    }

    pub(super) fn include(&mut self, file: &str) -> Result<()> {
        if file.is_empty() {
            return Err(CliError::new(Exit::Usage, "`/include` takes a file"));
        }
        let part = user_input::attach(file, &self.talk.session.settings.directory)?;
        self.talk.attached.push(part);
        self.print(&format!("`{file}` goes with the next question\n"))
    }

    pub(super) fn attach_skill(&mut self, name: &str) -> Result<()> {
        let found = Skills::find(&self.talk.session.settings);
        if name.is_empty() {
            return self.tell(&skills::list(&found));
        }
        let read = skills::find(&found, name)?.read();
        let text = read.map_err(|problem| CliError::new(Exit::Input, problem))?;
        let part = Part::text(format!("Do as the skill `{name}` says:\n\n{text}"));
        self.talk.attached.push(part);
        self.print(&format!("the skill `{name}` goes with the next question\n"))
    }

    pub(super) fn run_file(&mut self, file: &str) -> Result<After> {
        if file.is_empty() {
            return Err(CliError::new(Exit::Usage, "`/run` takes a file"));
        }
        let path = self.talk.session.settings.directory.join(file);
        let mut text = String::new();
        let read = rondo_runtime::files::open_regular(&path)
            .and_then(|file| file.take(SCRIPT_BYTES_MAX).read_to_string(&mut text));
        read.map_err(|err| {
            let context = format!("failed to read `{file}`");
            CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
        })?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        self.queue(lines.map(str::to_owned));
        Ok(After::Prompt)
    }
}

fn step_line(step: &StepView, took_ms: Option<u64>) -> String {
    let time = took_ms.map_or("unfinished".to_owned(), took);
    let cost = step.cost_usd;
    let cost = cost.map_or(String::new(), |usd| format!(", {}", dollars(usd)));
    format!(
        "step {}  {time}, {}{cost}",
        step.number,
        tokens(step.usage.unwrap_or_default())
    )
}

fn indented(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let more = text.chars().count().saturating_sub(SHOWN_CHARS_MAX);
    let more = match more {
        0 => String::new(),
        more => format!("\n    [{more} more characters]"),
    };
    shown.trim_end().replace('\n', "\n    ") + &more
}
