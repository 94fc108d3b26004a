//! The keyboard while a turn runs: it stops the turn, steers it, and answers its questions.

use super::approver::Question;
use super::keys::{Key, KeyReader, edit};
use super::question::Asked;
use super::unix::Keys;
use crate::output::Output;
use crate::screen::Screen;
use rondo_core::TurnHandle;
use rondo_core::redact::Secrets;
use rondo_runtime::assignments::is_export;
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::secrets::KeyNames;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long an escape waits for the rest of a sequence before it is a key of its own.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);
/// The bound on lines that wait for the end of the turn.
const QUEUE_MAX: usize = 64;
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
    /// Lines for the prompt once the turn is over.
    pub(super) queue: Vec<String>,
    asked: Option<Asked>,
}

impl Keyboard {
    /// Takes the keyboard until the value is dropped.
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
            queue: Vec::new(),
            asked: None,
        }
    }

    /// Keeps keys from the turn: those that are known, and lines that export one.
    pub(super) fn keeping(mut self, names: KeyNames, secrets: Secrets) -> Self {
        self.kept = Some((names, secrets));
        self
    }

    /// Returns what was typed and not entered.
    pub(super) fn take_typed(&mut self) -> String {
        std::mem::take(&mut self.typed)
    }

    /// Waits for the user to stop what goes on.
    ///
    /// # Cancel safety
    /// Cancel safe: what was typed until then is kept.
    pub(super) async fn stopped(&mut self) {
        loop {
            for key in next_keys(&self.keys, &mut self.reader).await {
                match key {
                    Key::Stop => return,
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
        questions: &mut mpsc::Receiver<Question>,
    ) -> Infallible {
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
                keys = next_keys(&self.keys, &mut self.reader) => keys,
            };
            for key in keys {
                self.take(&key, handle);
            }
        }
    }

    fn take(&mut self, key: &Key, handle: &TurnHandle) {
        match (key, self.asked.take()) {
            (Key::Stop, asked) if !asked.as_ref().is_some_and(Asked::is_editing) => handle.cancel(),
            (key, Some(asked)) => self.asked = asked.take(key, &self.output, &self.policy),
            (Key::Enter, None) => self.enter(handle),
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

    fn enter(&mut self, handle: &TurnHandle) {
        let line = self.take_typed();
        self.screen.set_typed("");
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
        let is_taken = !is_for_the_prompt && handle.steer(told.clone());
        if is_taken {
            self.screen.show_line(format!("queued: {told}"));
        } else if self.queue.len() < QUEUE_MAX {
            self.queue.push(line.to_owned());
            self.screen
                .show_line(format!("queued for the prompt: {told}"));
        } else {
            let message = format!("dropped, {QUEUE_MAX} lines wait already: {told}");
            self.screen.show_line(message);
        }
    }

    fn ask(&mut self, question: Question) {
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

async fn abandoned(asked: &mut Option<Asked>) {
    match asked {
        Some(asked) => asked.question.answer.closed().await,
        None => std::future::pending().await,
    }
}

/// Waits for keys. An escape by itself is one only when nothing follows it.
async fn next_keys(keys: &Keys, reader: &mut KeyReader) -> Vec<Key> {
    if !reader.is_open() {
        let bytes = keys.next().await;
        return reader.push(&bytes);
    }
    match timeout(ESCAPE_WAIT, keys.next()).await {
        Ok(bytes) => reader.push(&bytes),
        Err(_) => reader.settle().into_iter().collect(),
    }
}
