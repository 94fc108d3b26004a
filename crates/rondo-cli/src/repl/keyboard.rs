//! The keyboard while a turn runs: it stops the turn, steers it, and answers its questions.

use super::approver::PromptQuestion;
use super::keys::{Key, KeyReader, edit};
use super::question::Asked;
use super::unix::Keys;
use crate::output::Output;
use crate::screen::Screen;
use rondo_core::TurnHandle;
use rondo_core::redact::Secrets;
use rondo_core::session::{Delivery, TicketId};
use rondo_runtime::assignments::is_export;
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::service::{SessionHandle, Ticket};
use rondo_types::Message;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long an escape waits for the rest of a sequence before it is a key of its own.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);
/// The bound on lines that wait for the end of the turn.
const QUEUE_MAX: usize = 64;
/// The bound on keys that the line editor read beyond its line.
const AHEAD_MAX: usize = 64 << 10;
/// How long each of them is waited for. Without any time, what was read already is not looked at.
const AHEAD_WAIT: Duration = Duration::from_millis(1);
/// What stops a turn, besides keys.
const STOP: &str = "/stop";

/// What was typed while a turn ran, and what becomes of it.
pub(super) struct Keyboard {
    keys: Keys,
    reader: KeyReader,
    output: Output,
    screen: Screen,
    policy: UserPolicy,
    /// What is not said to the turn.
    kept: Option<(KeyNames, Secrets)>,
    typed: String,
    /// Keys that the line editor read and did not take.
    ahead: Vec<Key>,
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
    pub(super) fn new(keys: Keys, output: Output, screen: Screen, policy: UserPolicy) -> Self {
        output.stderr("\x1b[?2004h");
        Self {
            keys,
            reader: KeyReader::default(),
            output,
            screen,
            policy,
            kept: None,
            typed: String::new(),
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
        let mut lines = std::mem::take(&mut self.early);
        lines.push(std::mem::take(&mut self.typed));
        lines.join("\n")
    }

    /// Waits for the user to stop what goes on.
    ///
    /// # Cancel safety
    /// Cancel safe: what was typed until then is kept.
    pub(super) async fn stopped(&mut self) {
        loop {
            for key in self.next_keys().await {
                match key {
                    Key::Stop => return,
                    Key::Enter if self.early.len() < QUEUE_MAX => {
                        self.early.push(std::mem::take(&mut self.typed));
                        self.screen.set_typed("");
                    }
                    key => self.edit(&key),
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
            let keys = tokio::select! {
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
                keys = next_keys(&mut self.ahead, &self.keys, &mut self.reader) => keys,
            };
            for key in keys {
                self.take(&key, handle);
            }
        }
    }

    async fn next_keys(&mut self) -> Vec<Key> {
        next_keys(&mut self.ahead, &self.keys, &mut self.reader).await
    }

    fn take(&mut self, key: &Key, handle: &TurnHandle) {
        match (key, self.asked.take()) {
            (Key::Stop, asked) if !asked.as_ref().is_some_and(Asked::is_editing) => handle.cancel(),
            (key, Some(asked)) => self.asked = asked.take(key, &self.output, &self.policy),
            (Key::Enter, None) => {
                let line = std::mem::take(&mut self.typed);
                self.screen.set_typed("");
                self.enter(&line, handle);
            }
            (key, None) => self.edit(key),
        }
    }

    fn edit(&mut self, key: &Key) {
        if *key == Key::TooLong {
            self.output.stderr("\r\x1b[K");
            self.output
                .note("what was pasted is too long while something runs, and was dropped");
        }
        edit(&mut self.typed, key);
        self.screen.set_typed(&self.typed);
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
                    self.typed = text;
                    self.screen.set_typed(&self.typed);
                }
            }
        }
        self.submit_next();
    }

    fn ask(&mut self, question: PromptQuestion) {
        // What was typed before the question could be read is no answer to it.
        self.keys.forget();
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
        Some(asked) => asked.put.answer.closed().await,
        None => std::future::pending().await,
    }
}

/// Takes what the line editor has read and not taken: what was typed or pasted at once goes on in its order.
fn read_ahead() -> Vec<Key> {
    let mut keys = Vec::new();
    while keys.len() < AHEAD_MAX
        && let Ok(true) = crossterm::event::poll(AHEAD_WAIT)
        && let Ok(event) = crossterm::event::read()
    {
        keys.extend(Key::of_event(event));
    }
    keys
}

/// Waits for keys. An escape by itself is one only when nothing follows it.
async fn next_keys(ahead: &mut Vec<Key>, keys: &Keys, reader: &mut KeyReader) -> Vec<Key> {
    if !ahead.is_empty() {
        return std::mem::take(ahead);
    }
    if !reader.is_open() {
        let bytes = keys.next().await;
        return reader.push(&bytes);
    }
    match timeout(ESCAPE_WAIT, keys.next()).await {
        Ok(bytes) => reader.push(&bytes),
        Err(_) => reader.settle().into_iter().collect(),
    }
}
