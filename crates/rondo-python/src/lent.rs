//! Lends the interpreter's terminal to a cell.

use crate::capture::Capture;
use crate::cell::OutputStream;
use crate::interpreter::Interpreter;
use crate::job::TypedInput;
use crate::terminal::{CTRL_C, CellTerminal, EndMark, TerminalSize};
use std::future::pending;
use std::time::Duration;
use tokio::time::{Interval, interval, timeout};

/// How long the end of a cell's output is waited for once the cell has ended: the kernel passes it on by
/// itself, so this is more than enough.
const MARK_WAIT: Duration = Duration::from_secs(2);

/// How long a read that may not have noticed a Ctrl-C waits until it is woken.
const WAKE_EVERY: Duration = Duration::from_millis(50);
/// How often it is woken after a Ctrl-C; the code may have taken it, and continue.
const WAKES_MAX: u32 = 20;

/// The terminal of the cell under way.
pub(crate) struct LentTerminal {
    person: CellTerminal,
    /// When a read is woken next.
    wakes: Interval,
    /// How often still.
    wakes_left: u32,
    mark: EndMark,
    /// How much was typed, in bytes.
    typed: usize,
}

/// Input of the user.
pub(crate) enum PersonInput {
    Keys(Vec<u8>),
    Size(TerminalSize),
    /// Nothing came for a while after a Ctrl-C.
    Wake,
}

impl LentTerminal {
    /// Lends an interpreter's terminal to a cell; `None` if it has none.
    pub(crate) fn new(mut person: CellTerminal, interpreter: Option<&Interpreter>) -> Option<Self> {
        let terminal = interpreter?.terminal.as_ref()?;
        terminal.set_usual();
        terminal.resize(*person.size.borrow_and_update());
        Some(Self {
            person,
            wakes: interval(WAKE_EVERY),
            wakes_left: 0,
            mark: EndMark::new(),
            typed: 0,
        })
    }

    /// Returns the mark that the interpreter writes behind the cell's output.
    pub(crate) fn mark(&self) -> &str {
        &self.mark.text
    }

    /// # Cancel safety
    /// Cancel safe: nothing is taken before it is returned.
    async fn next(&mut self) -> PersonInput {
        let (keys, size) = (&mut self.person.keys, &mut self.person.size);
        tokio::select! {
            _ = self.wakes.tick(), if self.wakes_left > 0 => PersonInput::Wake,
            Some(keys) = keys.recv() => PersonInput::Keys(keys),
            Ok(()) = size.changed() => PersonInput::Size(*size.borrow_and_update()),
            else => pending().await,
        }
    }

    /// Passes on what comes from the person.
    pub(crate) fn pass_on(&mut self, what: PersonInput, interpreter: Option<&mut Interpreter>) {
        let Some(interpreter) = interpreter else {
            return;
        };
        let Some(terminal) = interpreter.terminal.as_mut() else {
            return;
        };
        match what {
            PersonInput::Wake => {
                self.wakes_left = self.wakes_left.saturating_sub(1);
                interpreter.wake();
            }
            PersonInput::Size(size) => terminal.resize(size),
            PersonInput::Keys(keys) => {
                self.typed += keys.len();
                if keys.contains(&CTRL_C) {
                    self.wakes.reset();
                    self.wakes_left = WAKES_MAX;
                }
                if terminal.typed(&keys) {
                    self.person.interrupted.notify_one();
                }
            }
        }
    }

    /// Takes the output of the terminal, and returns the part that the cell did not write.
    pub(crate) fn written(&mut self, bytes: &[u8], capture: &mut Capture) -> Vec<u8> {
        let (of_cell, after) = self.mark.take(bytes);
        capture.push(OutputStream::Stdout, &of_cell);
        after
    }

    /// Takes the rest of the cell's output and what was typed and not read. Returns that, and what others
    /// wrote after the cell.
    pub(crate) async fn end(
        mut self,
        interpreter: &mut Interpreter,
        capture: &mut Capture,
    ) -> (TypedInput, Vec<u8>) {
        let mut typed = TypedInput::default();
        let mut after = Vec::new();
        if let Some(terminal) = &mut interpreter.terminal {
            while !self.mark.is_found {
                let Ok(bytes) = timeout(MARK_WAIT, terminal.next()).await else {
                    break;
                };
                after = self.written(&bytes, capture);
            }
            typed.unread = terminal.take_unread();
        }
        typed.has_read = self.typed > typed.unread.len();
        while let Ok(keys) = self.person.keys.try_recv() {
            typed.unread.extend(keys);
        }
        capture.push(OutputStream::Stdout, &self.mark.into_held());
        (typed, after)
    }
}

/// Waits for what comes from the person at a cell's terminal; forever if there is none, or the
/// terminal has no room.
///
/// # Cancel safety
/// Cancel safe: nothing is taken before it is returned.
pub(crate) async fn from_person(lent: &mut Option<LentTerminal>, has_room: bool) -> PersonInput {
    match lent.as_mut().filter(|_| has_room) {
        Some(lent) => lent.next().await,
        None => pending().await,
    }
}

/// Returns the output behind a terminal in the form of a terminal that is set to pass everything on.
pub(crate) fn with_returns(bytes: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.join(&b"\r\n"[..])
}
