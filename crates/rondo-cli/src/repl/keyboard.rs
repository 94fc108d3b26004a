//! The keyboard while a turn runs: it stops the turn, steers it, and answers its questions.

use super::approver::PromptQuestion;
use super::question::Asked;
use super::unix::Keys;
use crate::output::Output;
use crate::screen::Screen;
use crossterm::event::{Event, KeyEvent, KeyEventKind};
use rondo_core::TurnHandle;
use rondo_core::clock::Clock;
use rondo_core::redact::Secrets;
use rondo_core::session::{Delivery, TicketId};
use rondo_runtime::assignments::is_export;
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::service::{SessionHandle, Ticket};
use rondo_tui::prompt::{Editor, edit, spelled};
use rondo_tui::terminal::{Decoder, Input};
use rondo_types::Message;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The bound on lines that wait for the end of the turn.
const QUEUE_MAX: usize = 64;
/// The longest paste that is taken while something runs, in bytes.
const PASTE_BYTES_MAX: usize = 64 << 10;
/// The bound on keys that the line editor read beyond its line.
const AHEAD_MAX: usize = 64 << 10;
/// How long each of them is waited for. Without any time, what was read already is not looked at.
const AHEAD_WAIT: Duration = Duration::from_millis(1);
/// What stops a turn, besides keys.
const STOP: &str = "/stop";

/// What was typed while a turn ran, and what becomes of it.
pub(super) struct Keyboard {
    keys: Keys,
    decoder: Decoder,
    clock: Clock,
    output: Output,
    screen: Screen,
    /// What is not said to the turn.
    kept: Option<(KeyNames, Secrets)>,
    typed: Editor,
    /// Keys that the line editor read and did not take.
    ahead: Vec<Event>,
    /// Lines that were entered before the turn began.
    early: Vec<String>,
    /// Lines for the prompt once the turn is over.
    pub(super) queue: Vec<String>,
    asked: Option<Asked>,
    /// The session whose turn runs, in whose mailbox messages wait.
    session: Option<SessionHandle>,
    /// The message that is being submitted.
    submission: Option<Submission>,
    /// Messages that are submitted after it.
    entered: VecDeque<String>,
    /// The messages that are in the mailbox.
    pub(super) submitted: Vec<TicketId>,
}

/// A message on its way into the session's mailbox. It is submitted by a task of its own, since the turn may end meanwhile.
struct Submission {
    text: String,
    task: JoinHandle<rondo_runtime::error::Result<Ticket>>,
}

impl Submission {
    /// Waits until the message is in the mailbox.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn end(&mut self) -> Result<Ticket, String> {
        match (&mut self.task).await {
            Ok(submitted) => submitted.map_err(|error| error.line()),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

impl Keyboard {
    /// Takes the keyboard until the value is dropped. What the line editor read beyond its line comes first.
    pub(super) fn new(keys: Keys, output: Output, screen: Screen) -> Self {
        output.stderr("\x1b[?2004h");
        let mut decoder = Decoder::default();
        decoder.set_esc_stops(true);
        Self {
            keys,
            decoder,
            clock: Clock::system(),
            output,
            screen,
            kept: None,
            typed: Editor::default(),
            ahead: read_ahead(),
            early: Vec::new(),
            queue: Vec::new(),
            asked: None,
            session: None,
            submission: None,
            entered: VecDeque::new(),
            submitted: Vec::new(),
        }
    }

    /// Has messages wait in the session's mailbox until its turn takes them, so that none is lost if the process is killed.
    pub(super) fn submit_to(&mut self, session: SessionHandle) {
        self.session = Some(session);
    }

    /// Waits until everything that was entered is in the session's mailbox.
    pub(super) async fn submit_rest(&mut self) {
        while let Some(submission) = &mut self.submission {
            let submitted = submission.end().await;
            self.take_submitted(submitted);
        }
    }

    /// Keeps keys from the turn: those that are known, and lines that export one.
    pub(super) fn keeping(mut self, names: KeyNames, secrets: Secrets) -> Self {
        self.kept = Some((names, secrets));
        self
    }

    /// Returns what was typed and not entered, or entered for a turn that did not begin.
    pub(super) fn take_typed(&mut self) -> String {
        let held = self.take_held();
        let mut lines = std::mem::take(&mut self.early);
        lines.extend(held);
        lines.push(self.typed.take());
        lines.join("\n")
    }

    /// Takes keys that were read and not looked at, and returns the lines that were entered by them.
    pub(super) fn take_held(&mut self) -> Vec<String> {
        let mut events = std::mem::take(&mut self.ahead);
        events.extend(meant(self.decoder.settle(self.clock.now())));
        let mut lines = Vec::new();
        for event in events {
            match Act::of(&event) {
                Act::Enter => lines.push(self.typed.take()),
                Act::Edit => self.edit(&event),
                // There is nothing left to stop.
                Act::Stop => {}
            }
        }
        lines
    }

    /// Waits for the user to stop what goes on.
    ///
    /// # Cancel safety
    /// Cancel safe: what was typed until then is kept.
    pub(super) async fn stopped(&mut self) {
        loop {
            for event in self.next_events().await {
                match Act::of(&event) {
                    Act::Stop => return,
                    Act::Enter if self.early.len() < QUEUE_MAX => {
                        self.early.push(self.typed.take());
                        self.show_typed();
                    }
                    Act::Enter | Act::Edit => self.edit(&event),
                }
            }
        }
    }

    /// Serves a turn, until it is dropped with it.
    ///
    /// # Cancel safety
    /// Cancel safe: what was typed until then is kept.
    pub(super) async fn serve(
        &mut self,
        handle: &TurnHandle,
        questions: &mut mpsc::Receiver<PromptQuestion>,
    ) -> Infallible {
        for line in std::mem::take(&mut self.early) {
            self.enter(&line, handle);
        }
        loop {
            let events = tokio::select! {
                biased;
                () = abandoned(&mut self.asked) => {
                    self.asked = None;
                    continue;
                }
                Some(question) = questions.recv(), if self.asked.is_none() => {
                    self.ask(question);
                    continue;
                }
                submitted = ended(&mut self.submission) => {
                    self.take_submitted(submitted);
                    continue;
                }
                events = next_events(&mut self.ahead, &self.keys, &mut self.decoder, &self.clock) => events,
            };
            for event in events {
                self.take(&event, handle);
            }
        }
    }

    async fn next_events(&mut self) -> Vec<Event> {
        next_events(&mut self.ahead, &self.keys, &mut self.decoder, &self.clock).await
    }

    fn take(&mut self, event: &Event, handle: &TurnHandle) {
        match (Act::of(event), self.asked.take()) {
            (Act::Stop, asked) if !asked.as_ref().is_some_and(Asked::is_editing) => {
                handle.cancel();
            }
            (act, Some(asked)) => self.asked = asked.take(act, event, &self.output),
            (Act::Enter, None) => {
                let line = self.typed.take();
                self.show_typed();
                self.enter(&line, handle);
            }
            (_, None) => self.edit(event),
        }
    }

    fn edit(&mut self, event: &Event) {
        match event {
            Event::Key(key) => edit(&mut self.typed, key),
            Event::Paste(text) if text.len() > PASTE_BYTES_MAX => {
                self.output.stderr("\r\x1b[K");
                self.output
                    .note("what was pasted is too long while something runs, and was dropped");
            }
            Event::Paste(text) => drop(self.typed.paste(text)),
            _ => {}
        }
        self.show_typed();
    }

    fn show_typed(&self) {
        self.screen
            .set_typed(self.typed.before(), self.typed.after());
    }

    fn enter(&mut self, line: &str, handle: &TurnHandle) {
        let line = line.trim();
        let kept = self.kept.as_ref();
        let is_export = kept.is_some_and(|(names, _)| is_export(line, names));
        let is_for_the_prompt = line.starts_with(['/', '!', '>']) || is_export;
        if line.is_empty() {
            return;
        }
        if line == STOP {
            return handle.cancel();
        }
        let told = match kept {
            // Its value may be a key that is not known yet.
            _ if is_export => "an export".to_owned(),
            Some((_, secrets)) => secrets.text(line.to_owned()),
            None => line.to_owned(),
        };
        if !is_for_the_prompt && self.session.is_some() && self.entered.len() < QUEUE_MAX {
            self.entered.push_back(told);
            return self.submit_next();
        }
        if self.queue.len() < QUEUE_MAX {
            self.queue.push(line.to_owned());
            self.screen.show_line(format!("after this turn: {told}"));
        } else {
            let message = format!("dropped, {QUEUE_MAX} lines wait already: {told}");
            self.screen.show_line(message);
        }
    }

    /// Submits the next message that was entered, unless one is on its way.
    fn submit_next(&mut self) {
        let Some(session) = self.session.clone() else {
            return;
        };
        if self.submission.is_some() {
            return;
        }
        self.submission = self.entered.pop_front().map(|text| {
            let message = Message::user(&text);
            let submit = async move { session.submit(message, Delivery::Steer).await };
            Submission {
                text,
                task: tokio::spawn(submit),
            }
        });
    }

    /// Notes that a message is in the mailbox, and submits the next one. What the turn does not take is asked after it.
    fn take_submitted(&mut self, submitted: Result<Ticket, String>) {
        let Some(Submission { text, .. }) = self.submission.take() else {
            return;
        };
        match submitted {
            Ok(ticket) => {
                self.submitted.push(ticket.id);
                self.screen.show_line(format!("queued: {text}"));
            }
            Err(why) => {
                self.screen
                    .show_line(format!("not queued, since {why}: {text}"));
                // It can be entered again.
                if self.typed.is_empty() {
                    self.typed.set(&text);
                    self.show_typed();
                }
            }
        }
        self.submit_next();
    }

    fn ask(&mut self, question: PromptQuestion) {
        // What was typed before the question could be read is no answer to it.
        self.keys.forget();
        self.decoder.forget();
        self.asked = Some(Asked::put(question, &self.output));
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.output.stderr("\x1b[?2004l");
    }
}

async fn ended(submission: &mut Option<Submission>) -> Result<Ticket, String> {
    match submission {
        Some(submission) => submission.end().await,
        None => std::future::pending().await,
    }
}

async fn abandoned(asked: &mut Option<Asked>) {
    match asked {
        Some(asked) => asked.0.answer.closed().await,
        None => std::future::pending().await,
    }
}

/// The meaning of a key while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Ctrl-C or Esc.
    Stop,
    Enter,
    /// It types or edits.
    Edit,
}

impl Act {
    pub(super) fn of(event: &Event) -> Self {
        let Event::Key(key) = event else {
            return Self::Edit;
        };
        match spelled(key).as_deref() {
            Some("Esc" | "Ctrl-C") => Self::Stop,
            Some("Enter" | "Ctrl-J") => Self::Enter,
            _ => Self::Edit,
        }
    }
}

/// Takes what the line editor has read and not taken: what was typed or pasted at once goes on in its order.
fn read_ahead() -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < AHEAD_MAX
        && let Ok(true) = crossterm::event::poll(AHEAD_WAIT)
        && let Ok(event) = crossterm::event::read()
    {
        events.push(event);
    }
    events.retain(is_meant);
    events
}

/// Returns whether an event is a key that is pressed, or a paste.
fn is_meant(event: &Event) -> bool {
    match event {
        Event::Key(KeyEvent { kind, .. }) => *kind != KeyEventKind::Release,
        Event::Paste(_) => true,
        _ => false,
    }
}

/// Waits for keys and pastes.
///
/// # Cancel safety
/// Cancel safe.
async fn next_events(
    ahead: &mut Vec<Event>,
    keys: &Keys,
    decoder: &mut Decoder,
    clock: &Clock,
) -> Vec<Event> {
    if !ahead.is_empty() {
        return std::mem::take(ahead);
    }
    let inputs = match decoder.patience() {
        None => decoder.take(&keys.next().await, clock.now()),
        Some(patience) => match timeout(patience, keys.next()).await {
            Ok(bytes) => decoder.take(&bytes, clock.now()),
            Err(_) => decoder.settle(clock.now()),
        },
    };
    meant(inputs).collect()
}

fn meant(inputs: Vec<Input>) -> impl Iterator<Item = Event> {
    let events = inputs.into_iter().filter_map(|it| match it {
        Input::Event(event) => Some(event),
        Input::Ground(_) => None,
    });
    events.filter(is_meant)
}
