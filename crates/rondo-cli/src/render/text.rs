//! The format `text`: the answer on standard output; calls, live output and a spinner on standard error if
//! that is a terminal.

use super::change;
use super::child::{self, Shown};
use super::spinner::Spinner;
use super::view::{FinishedTurn, View};
use super::wrapped;
use crate::changes::Changes;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen::{Screen, Typed};
use rondo_core::shown::{readable, readable_line};
use rondo_runtime::confined::sandbox_note;
use rondo_runtime::sanitize::{Keep, Sanitizer, plain};
use rondo_runtime::view::{Fold, TurnView, command_failure};
use rondo_runtime::words;
use rondo_tui::{MarkdownWriter, call_line};
use rondo_types::text::first_line;
use rondo_types::{
    AnswerValue, CallId, CompactionKind, EventBody, MediaInfo, QuestionId, TodoItem, ToolErrorCode,
    TurnEvent,
};
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use tokio::sync::watch;

/// Live output of one call that is shown, in bytes; the whole of it is in the result or its file.
const LIVE_BYTES_MAX: usize = 1 << 20;

/// Ticks, a tenth of a second each, for which an unfinished row of the answer keeps lines of the screen back.
const UNSAID_TICKS_MAX: u8 = 10;

/// Shows a turn as text.
pub(crate) struct TextView {
    output: Output,
    /// Calls and the spinner are shown.
    lively: bool,
    markdown: Option<MarkdownWriter>,
    sanitizer: Sanitizer,
    /// The text of the step so far, as the model wrote it.
    step_text: String,
    /// Something was shown of it.
    step_shown: bool,
    /// Standard output is at the beginning of a line.
    stdout_fresh: bool,
    calls: HashMap<CallId, Call>,
    spinner: Spinner,
    screen: Screen,
    changes: Changes,
    /// A question is on the terminal, with the cursor behind it.
    asking: bool,
    /// It stood aside at the last tick for a question of which no event tells.
    is_held: bool,
    /// Ticks that lines of the screen have waited for the end of an unfinished row of the answer.
    unsaid_ticks: u8,
    /// Nothing is waited for but the disk: what is drawn now would flash below an answer.
    between_steps: bool,
    /// View of the turn.
    fold: Fold,
}

/// Displayed state of a call that is not over; the view of the turn has the rest.
struct Call {
    started: bool,
    live: Sanitizer,
    live_bytes: usize,
    /// Its live output ended with a line break.
    fresh: bool,
    /// The user said no to it, without a reason of their own.
    is_refused: bool,
}

impl TextView {
    /// Builds the view.
    pub(crate) fn new(output: Output, screen: Screen, changes: Changes) -> Self {
        let rendered = output.stdout_terminal && output.stdout_color;
        Self {
            output,
            lively: output.stderr_terminal && !output.quiet,
            markdown: rendered.then(|| MarkdownWriter::new(output.columns())),
            sanitizer: Sanitizer::new(Keep::Text),
            step_text: String::new(),
            step_shown: false,
            stdout_fresh: true,
            calls: HashMap::new(),
            spinner: Spinner::new(output.stderr_color),
            screen,
            changes,
            asking: false,
            is_held: false,
            unsaid_ticks: 0,
            between_steps: false,
            fold: Fold::default(),
        }
    }

    fn answer_text(&mut self, text: &str) -> io::Result<()> {
        self.step_text.push_str(text);
        if !self.output.stdout_terminal {
            return Ok(());
        }
        let text = self.sanitizer.push(text);
        let is_typing = self.screen.is_typing();
        let shown = match &mut self.markdown {
            Some(markdown) => {
                markdown.set_whole_rows(is_typing);
                markdown.push(&text)
            }
            None => text,
        };
        self.show(&shown)
    }

    fn end_text(&mut self) -> io::Result<()> {
        let rest = self.markdown.as_mut().map(MarkdownWriter::finish);
        self.show(&rest.unwrap_or_default())?;
        if self.stdout_fresh {
            return Ok(());
        }
        self.show("\n")
    }

    fn show(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.clear_spinner();
        self.step_shown = true;
        self.stdout_fresh = text.ends_with('\n');
        self.output.styled(text)
    }

    fn clear_spinner(&mut self) {
        let clear = self.spinner.clear();
        if !clear.is_empty() {
            self.output.stderr(clear);
        }
    }

    /// Shows a warning, also if the user wants no notes.
    fn warn(&mut self, text: &str) -> io::Result<()> {
        self.end_text()?;
        self.clear_spinner();
        self.output.warning(text);
        Ok(())
    }

    /// Prints a dim line on standard error.
    fn aside(&mut self, text: &str) {
        self.styled_line("\x1b[2m", text);
    }

    /// Prints a line of a call that failed.
    fn failed(&mut self, text: &str) {
        self.styled_line("\x1b[31m", text);
    }

    fn styled_line(&mut self, style: &str, text: &str) {
        if !self.lively {
            return;
        }
        self.clear_spinner();
        self.interrupt();
        let text = wrapped(&plain(text), self.output.columns()).replace('\n', "\r\n");
        if self.output.stderr_color {
            self.output.stderr(&format!("{style}{text}\x1b[0m\n"));
        } else {
            self.output.stderr(&format!("{text}\n"));
        }
    }

    fn call_started(&mut self, id: &CallId) {
        let columns = self.output.columns();
        let (Some(call), Some(asked)) = (self.calls.get_mut(id), self.fold.call(id)) else {
            return;
        };
        call.started = true;
        let line = call_line(&asked.tool, &asked.arguments, columns);
        self.spinner.label("running");
        self.aside(&format!("• {line}"));
    }

    fn live_output(&mut self, id: &CallId, text: &str) {
        if !self.lively {
            return;
        }
        let reset = self.reset();
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        if call.live_bytes > LIVE_BYTES_MAX {
            return;
        }
        call.live_bytes += text.len();
        let mut shown = call.live.push(text);
        if call.live_bytes > LIVE_BYTES_MAX {
            shown.push_str(reset);
            shown.push_str("\n… more output is not shown\n");
        }
        if shown.is_empty() {
            return;
        }
        call.fresh = shown.ends_with('\n');
        self.clear_spinner();
        self.output.stderr(&shown);
    }

    fn call_finished(&mut self, id: &CallId, code: Option<ToolErrorCode>, result: &Value) {
        let Some(call) = self.calls.remove(id) else {
            return;
        };
        if !self.lively {
            return;
        }
        if std::mem::take(&mut self.asking) {
            self.output.stderr("\n");
        }
        if call.live_bytes > 0 {
            self.clear_spinner();
            let line_end = if call.fresh { "" } else { "\n" };
            self.output.stderr(&format!("{}{line_end}", self.reset()));
        }
        let columns = self.output.columns();
        let turn = self.fold.turn().filter(|_| !call.started);
        if let Some((tool, arguments)) = turn.and_then(TurnView::latest_result) {
            let line = call_line(tool, arguments, columns);
            self.aside(&format!("• {line}"));
        }
        self.changed(id, columns);
        if let Some(note) = sandbox_note(result) {
            self.aside(&format!("  sandbox: {}", readable_line(&note)));
        }
        if let Some(code) = code {
            let why = match result {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let said = match code {
                ToolErrorCode::Cancelled => code.to_string(),
                ToolErrorCode::Denied if call.is_refused => "denied by you".to_owned(),
                _ => {
                    let failed = words::failed_call(code.as_str());
                    format!("{failed}: {}", words::without_code(&why))
                }
            };
            let said = first_line(&said, columns.saturating_sub(4));
            self.failed(&format!("  ✗ {said}"));
        }
        let failure = command_failure(result).filter(|_| code.is_none());
        if let Some(failure) = failure {
            self.failed(&format!("  ✗ {}", readable_line(&failure)));
        }
        self.spinner.label("thinking");
    }

    /// Shows the change of a call's file.
    fn changed(&mut self, id: &CallId, columns: usize) {
        let Some((change, is_another)) = self.changes.take(id) else {
            return;
        };
        if is_another {
            self.aside("  the file changed after the question; this is what the call did");
        }
        self.clear_spinner();
        let shown = change::done(&change, columns, self.output.stderr_color);
        self.output.stderr(&shown);
    }

    fn asked(&mut self) {
        self.clear_spinner();
        self.spinner.pause(true);
        self.asking = true;
        self.screen.set_aside(true);
    }

    fn answered(&mut self, id: &CallId, reason: Option<&str>) {
        self.screen.set_aside(false);
        self.asking = false;
        self.spinner.pause(false);
        if let Some(call) = self.calls.get_mut(id) {
            call.is_refused = reason == Some(AnswerValue::NO);
        }
    }

    /// Names the user who answered, if that was not the one at this terminal.
    fn answered_by(&mut self, question: &QuestionId, actor: &str) {
        if self.lively && self.screen.take_open(question) {
            // The cursor is behind the question.
            self.output.stderr("\n");
            self.asking = false;
            self.aside(&format!("answered elsewhere by {}", readable_line(actor)));
        }
    }

    fn todo_changed(&mut self, items: &[TodoItem]) {
        for line in child::todo_lines(items) {
            self.aside(&line);
        }
    }

    fn in_child(&mut self, event: &TurnEvent) {
        match child::of_event(event, self.output.columns()) {
            Shown::Now(what) => self.spinner.label(&what),
            Shown::Line(line) => self.aside(&line),
            Shown::Nothing => {}
        }
    }

    fn steered(&mut self, text: &str, media: &[MediaInfo]) -> io::Result<()> {
        self.end_text()?;
        self.say();
        let media = media.iter().map(|it| format!(" [{}]", it.described()));
        let media: String = media.collect();
        self.aside(&format!(
            "delivered: {}{}",
            readable(text),
            readable(&media)
        ));
        Ok(())
    }

    /// Ends an unfinished row of the answer, so that something else can be printed below it.
    fn interrupt(&mut self) {
        let end = self.markdown.as_mut().map_or("", MarkdownWriter::interrupt);
        if !end.is_empty() {
            self.stdout_fresh = true;
            // If the reader is gone, the next write says so.
            let _ = self.output.styled(end);
        }
    }

    /// Shows the state of lines that were entered, once the unfinished row of the answer is whole: an answer
    /// is not torn while it comes. A row that does not continue is not waited for.
    fn say_below_row(&mut self) {
        let is_within_row = self.output.stdout_terminal && !self.stdout_fresh;
        if is_within_row && self.unsaid_ticks < UNSAID_TICKS_MAX {
            self.unsaid_ticks += 1;
            return;
        }
        self.say();
    }

    /// Shows the state of lines that were entered.
    fn say(&mut self) {
        self.unsaid_ticks = 0;
        for line in self.screen.take_lines() {
            for call in self.calls.values_mut().filter(|call| !call.fresh) {
                call.fresh = true;
                self.output.stderr("\n");
            }
            self.aside(&readable(&line));
        }
    }

    /// Shows a note about the turn. Which model answers is said wherever notes are: another one may cost something else and
    /// know less.
    fn note(&mut self, text: &str, is_about_model: bool) -> io::Result<()> {
        self.end_text()?;
        match is_about_model {
            true => {
                self.clear_spinner();
                self.output.note(text);
            }
            false => self.aside(text),
        }
        Ok(())
    }

    /// If colors are not wanted, a command's are removed too.
    fn live_keep(&self) -> Keep {
        if self.output.stderr_color {
            Keep::LiveOutput
        } else {
            Keep::Text
        }
    }

    /// The command may have left a color on.
    fn reset(&self) -> &'static str {
        if self.output.stderr_color {
            "\x1b[0m"
        } else {
            ""
        }
    }

    /// A reply that asks for a call is whole: nothing that follows may be within its words.
    fn pending(&mut self, id: CallId) -> io::Result<()> {
        self.end_text()?;
        let call = Call {
            started: false,
            live: Sanitizer::new(self.live_keep()),
            live_bytes: 0,
            fresh: true,
            is_refused: false,
        };
        self.calls.insert(id, call);
        Ok(())
    }

    /// Returns the results of the calls of a turn without an answer, and before it, with a mark, why the turn stopped.
    /// If there are none, standard error has it all.
    fn built(&mut self) -> io::Result<String> {
        let Some(turn) = self.fold.turn() else {
            return Ok(String::new());
        };
        let (stopped, found) = (turn.stopped().unwrap_or_default(), turn.found().to_owned());
        if !found.is_empty() {
            let stopped = wrapped(&readable(stopped), self.output.columns());
            let (red, reset) = match self.output.stdout_color {
                true => ("\x1b[31m", "\x1b[0m"),
                false => ("", ""),
            };
            self.output
                .styled(&format!("{red}✗ {stopped}{reset}\n\n"))?;
        }
        Ok(found)
    }

    /// Returns the answer without what of it is on the terminal already.
    fn unshown(&self, answer: &str) -> String {
        let shown = self.step_text.trim();
        match self.step_shown && !shown.is_empty() {
            true => answer.replacen(shown, "", 1).trim_end().to_owned(),
            false => answer.to_owned(),
        }
    }

    fn step_finished(&mut self) -> io::Result<()> {
        self.between_steps = true;
        self.end_text()
    }

    /// Ends the text of a reply that another one replaces.
    fn asked_again(&mut self) -> io::Result<()> {
        self.end_text()?;
        self.step_text.clear();
        self.step_shown = false;
        Ok(())
    }

    fn step_started(&mut self) {
        self.between_steps = false;
        self.step_text.clear();
        self.step_shown = false;
        self.sanitizer = Sanitizer::new(Keep::Text);
        self.spinner.label("thinking");
    }
}

/// Returns whether an event says that another request was answered than the one that was meant, which is told if only
/// the answer is shown too.
fn is_about_model(body: &EventBody) -> bool {
    use CompactionKind::{Described, Unsealed};
    match body {
        EventBody::ModelFallback { .. } => true,
        EventBody::Compacted { how, .. } => matches!(how, Described | Unsealed),
        _ => false,
    }
}

impl View for TextView {
    fn event(&mut self, event: TurnEvent) -> io::Result<()> {
        if let Some(note) = self.fold.event(&event) {
            self.note(&note.text, is_about_model(&event.body))?;
        }
        match event.body {
            EventBody::Init(init) => self.spinner.set_timeout(init.limits.turn_timeout),
            EventBody::StepStarted { .. } => self.step_started(),
            EventBody::RequestQueued => self.spinner.label("waiting to be sent"),
            EventBody::TextDelta { text } => self.answer_text(&text)?,
            EventBody::ReasoningDelta { .. } => self.spinner.label("reasoning"),
            EventBody::StepFinished { .. } => self.step_finished()?,
            EventBody::RetryScheduled { .. } => self.asked_again()?,
            EventBody::ToolCallPending { id, .. } => self.pending(id)?,
            EventBody::ToolCallStarted { id } => self.call_started(&id),
            EventBody::ToolOutputDelta { id, text } => self.live_output(&id, &text),
            EventBody::ToolCallFinished {
                id, code, result, ..
            } => self.call_finished(&id, code, &result),
            EventBody::ApprovalRequested { .. } => self.asked(),
            EventBody::ApprovalResolved { id, reason, .. } => {
                self.answered(&id, reason.as_deref());
            }
            EventBody::QuestionAnswered { question, actor } => self.answered_by(&question, &actor),
            EventBody::Warning { text } => self.warn(&text)?,
            EventBody::Resumed { step, .. } => {
                self.end_text()?;
                self.aside(&format!("continuing with step {step}"));
            }
            EventBody::Steered { text, media } => self.steered(&text, &media)?,
            EventBody::TodoChanged { items } => self.todo_changed(&items),
            EventBody::ChildEvent { event, .. } => self.in_child(&event),
            EventBody::ArgumentsRepaired { .. }
            | EventBody::ToolsChanged { .. }
            | EventBody::ModelFallback { .. }
            | EventBody::ReplyRejected { .. }
            | EventBody::ToolCallRewritten { .. }
            | EventBody::ToolCallInDoubt { .. }
            | EventBody::CompactionStarted { .. }
            | EventBody::Compacted { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::QuestionAsked { .. }
            | EventBody::Usage { .. }
            | EventBody::DeltasDropped { .. }
            | EventBody::Parked { .. }
            | EventBody::Result(_) => {}
        }
        Ok(())
    }

    fn tick(&mut self) {
        if self.screen.is_held() {
            self.clear_spinner();
            self.is_held = true;
            return self.screen.set_aside(true);
        }
        if std::mem::take(&mut self.is_held) {
            self.screen.set_aside(self.asking);
        }
        self.say_below_row();
        let is_typing = self.screen.is_typing();
        if is_typing && self.lively {
            self.interrupt();
        }
        let calls_fresh = self.calls.values().all(|call| call.fresh);
        let same_terminal_busy = self.output.stdout_terminal && !self.stdout_fresh;
        let drawable = self.lively && self.output.stderr_erases && !self.between_steps;
        if !(drawable && calls_fresh) || same_terminal_busy {
            return;
        }
        // Without colours nothing moves by itself, but typing shows it.
        if !is_typing && !self.output.stderr_color {
            return self.clear_spinner();
        }
        let columns = self.output.columns();
        let typed = self.screen.typed().borrow().clone();
        let line = self.spinner.draw(&typed, columns);
        self.output.stderr(&line);
    }

    fn changes(&self) -> Option<watch::Receiver<Typed>> {
        Some(self.screen.typed())
    }

    fn park(&mut self, _: Exit) -> io::Result<()> {
        self.clear_spinner();
        self.screen.set_aside(true);
        self.end_text()?;
        self.say();
        Ok(())
    }

    fn finish(&mut self, ending: &FinishedTurn<'_>) -> io::Result<()> {
        self.clear_spinner();
        self.end_text()?;
        self.say();
        let outcome = ending.outcome;
        if !self.output.stdout_terminal {
            // Of a turn that did nothing, standard error says it all.
            let is_empty = outcome.findings.is_empty() && self.step_text.trim().is_empty();
            return match outcome.answered || !is_empty {
                true => print_answer(&self.output, &outcome.text),
                false => Ok(()),
            };
        }
        let text = match outcome.answered {
            true => self.unshown(&outcome.text),
            false => self.built()?,
        };
        if text.is_empty() {
            return Ok(());
        }
        self.step_started();
        self.answer_text(&text)?;
        self.end_text()
    }
}

fn print_answer(output: &Output, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    output.stdout(&format!("{text}{end}"))
}
