//! The keyboard while a turn runs: it stops the turn, steers it, and answers its questions.

use super::approver::{Question, denied};
use super::keys::{Key, KeyReader};
use super::permissions::{Permissions, pattern_for};
use super::unix::Keys;
use crate::output::Output;
use crate::render::sanitize::plain;
use crate::screen::Screen;
use rondo_core::{Approval, TurnHandle};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long an escape waits for the rest of a sequence before it is a key of its own.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);
/// The bound on text that is typed while a turn runs, in bytes.
const TYPED_BYTES_MAX: usize = 64 << 10;
/// The bound on lines that wait for the end of the turn.
const QUEUE_MAX: usize = 64;
/// Unreadable answers after which a call is denied.
const ATTEMPTS_MAX: u32 = 3;
/// What stops a turn, besides keys.
const STOP: &str = "/stop";

/// What was typed while a turn ran, and what becomes of it.
pub(super) struct Keyboard {
    keys: Keys,
    reader: KeyReader,
    output: Output,
    screen: Screen,
    permissions: Permissions,
    typed: String,
    /// Lines for the prompt once the turn is over.
    pub(super) queue: Vec<String>,
    asked: Option<Asked>,
}

/// The question that stands on the terminal.
struct Asked {
    question: Question,
    pattern: Option<String>,
    answer: String,
    attempts: u32,
}

impl Keyboard {
    /// Takes the keyboard until the value is dropped.
    pub(super) fn new(
        keys: Keys,
        output: Output,
        screen: Screen,
        permissions: Permissions,
    ) -> Self {
        output.stderr("\x1b[?2004h");
        Self {
            keys,
            reader: KeyReader::default(),
            output,
            screen,
            permissions,
            typed: String::new(),
            queue: Vec::new(),
            asked: None,
        }
    }

    /// Returns what was typed and not entered.
    pub(super) fn take_typed(&mut self) -> String {
        std::mem::take(&mut self.typed)
    }

    /// Waits for somebody to stop what goes on.
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
            (Key::Stop, _) => handle.cancel(),
            (key, Some(asked)) => self.asked = self.answer(asked, key),
            (Key::Enter, None) => self.enter(handle),
            (key, None) => self.edit(key),
        }
    }

    fn edit(&mut self, key: &Key) {
        edit(&mut self.typed, key);
        self.screen.set_typed(&self.typed);
    }

    fn enter(&mut self, handle: &TurnHandle) {
        let line = self.take_typed();
        self.screen.set_typed("");
        let line = line.trim();
        let is_for_the_prompt = line.starts_with(['/', '!', '>']);
        if line.is_empty() {
            return;
        }
        if line == STOP {
            return handle.cancel();
        }
        let is_taken = !is_for_the_prompt && handle.steer(line.to_owned());
        if !is_taken && self.queue.len() < QUEUE_MAX {
            self.queue.push(line.to_owned());
        }
    }

    fn ask(&mut self, question: Question) {
        // What was typed before the question could be read is no answer to it.
        self.keys.forget();
        let shown = plain(&question.request.prompt);
        self.output.stderr(&format!("\r\x1b[K{shown}\n"));
        let asked = Asked {
            pattern: pattern_for(&question.request),
            question,
            answer: String::new(),
            attempts: 0,
        };
        self.show_choice(&asked);
        self.asked = Some(asked);
    }

    fn show_choice(&self, asked: &Asked) {
        let always = asked.pattern.as_deref();
        let always = always.map_or(String::new(), |it| format!(", [a]lways {}", plain(it)));
        self.output
            .stderr(&format!("Run it? [y]es, [n]o{always}: "));
    }

    /// Takes a key of an answer; returns the question while it is open.
    fn answer(&self, mut asked: Asked, key: &Key) -> Option<Asked> {
        if *key != Key::Enter {
            let before = asked.answer.chars().count();
            edit(&mut asked.answer, key);
            let after = asked.answer.chars().count();
            match key {
                Key::Text(text) => self.output.stderr(&plain(text)),
                _ => self
                    .output
                    .stderr(&"\x08 \x08".repeat(before.saturating_sub(after))),
            }
            return Some(asked);
        }
        self.output.stderr("\n");
        let answer = std::mem::take(&mut asked.answer);
        let approval = match (answer.trim().to_ascii_lowercase().as_str(), &asked.pattern) {
            ("y" | "yes", _) => Approval::Approved,
            ("a" | "always", Some(pattern)) => {
                self.permissions.allow(pattern);
                Approval::Approved
            }
            ("n" | "no" | "", _) => denied("the user said no"),
            _ if asked.attempts + 1 >= ATTEMPTS_MAX => denied("the user gave no answer"),
            _ => {
                asked.attempts += 1;
                self.show_choice(&asked);
                return Some(asked);
            }
        };
        // Nobody waits for it once the turn was stopped.
        let _ = asked.question.answer.send(approval);
        None
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

fn edit(line: &mut String, key: &Key) {
    match key {
        Key::Text(text) if line.len() + text.len() <= TYPED_BYTES_MAX => line.push_str(text),
        Key::Erase => drop(line.pop()),
        Key::EraseWord => {
            let kept = line.trim_end();
            let end = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
            line.truncate(end);
        }
        Key::EraseLine => line.clear(),
        Key::Text(_) | Key::Enter | Key::Stop => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_by_its_end() {
        let mut line = String::new();
        for (key, expected) in [
            (Key::Text("one two é".into()), "one two é"),
            (Key::Erase, "one two "),
            (Key::EraseWord, "one "),
            (Key::Text("x".repeat(TYPED_BYTES_MAX)), "one "),
            (Key::EraseLine, ""),
            (Key::EraseWord, ""),
        ] {
            edit(&mut line, &key);
            assert_eq!(line, expected);
        }
    }
}
