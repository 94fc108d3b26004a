//! The terminal of an interpreter, which replaces its standard streams while the user's cell runs.

use crate::channel::unless_blocked;
use crate::unix;
use rustix::termios::Termios;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Notify, mpsc, watch};

/// How much is read at a time, in bytes.
const READ_BYTES: usize = 16 << 10;
/// The most input that is looked for when a cell ends, in bytes; the kernel keeps 4 KiB.
const UNREAD_BYTES_MAX: usize = 16 << 10;
/// The bound on input that the terminal does not take yet, in bytes, up to one piece of keys.
const OUTBOX_BYTES_MAX: usize = 4 << 10;
pub(crate) const CTRL_C: u8 = 3;

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// Terminal of a person who runs a cell. The cell has a terminal then, as any program has: typed text
/// is its standard input, control characters too, and its output is all of its standard output, as
/// it is meant for a terminal.
#[derive(Debug)]
pub struct CellTerminal {
    /// Typed input.
    pub keys: mpsc::Receiver<Vec<u8>>,
    /// How large the terminal is, which is followed.
    pub size: watch::Receiver<TerminalSize>,
    /// Receives each Ctrl-C that interrupts the cell and is not a key of a line editor.
    pub interrupted: Arc<Notify>,
}

/// The ends of a terminal that are ours.
pub(crate) struct Pty {
    written: Receiver,
    keys: Sender,
    /// The interpreter's end once more, as one that never waits. While it is open, no reader finds the
    /// terminal hung up.
    slave: OwnedFd,
    usual: Termios,
    outbox: Vec<u8>,
}

impl Pty {
    /// Opens a terminal; the second is the interpreter's end.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (master, slave, theirs) = unix::open_terminal()?;
        let opened = Self {
            usual: unix::modes(&slave)?,
            keys: Sender::from_file_unchecked(master.try_clone()?.into())?,
            written: Receiver::from_file_unchecked(master.into())?,
            slave,
            outbox: Vec::new(),
        };
        Ok((opened, theirs))
    }

    /// Sets it as programs expect it to be.
    pub(crate) fn set_usual(&self) {
        unix::set_modes(&self.slave, &self.usual);
    }

    pub(crate) fn resize(&self, size: TerminalSize) {
        unix::resize(&self.slave, size.rows, size.columns);
    }

    /// Queues what is typed; [`Self::next`] passes it on. Returns whether a Ctrl-C of it interrupts.
    pub(crate) fn typed(&mut self, bytes: &[u8]) -> bool {
        self.outbox.extend_from_slice(bytes);
        bytes.contains(&CTRL_C) && unix::is_interrupt(&self.slave)
    }

    /// Returns whether there is room for more to be typed.
    pub(crate) fn takes_more(&self) -> bool {
        self.outbox.len() < OUTBOX_BYTES_MAX
    }

    /// Takes the typed bytes that were not read.
    pub(crate) fn take_unread(&mut self) -> Vec<u8> {
        let mut unread = unix::take_unread(&self.slave, &self.usual, UNREAD_BYTES_MAX);
        unread.append(&mut self.outbox);
        unread
    }

    /// Passes on what is typed, and returns what was written.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is read before it is returned.
    pub(crate) async fn next(&mut self) -> Vec<u8> {
        loop {
            tokio::select! {
                read = self.written.readable() => {
                    let mut piece = Vec::with_capacity(READ_BYTES);
                    let read = read.and_then(|()| self.written.try_read_buf(&mut piece));
                    match unless_blocked(read) {
                        Ok(Some(count)) if count > 0 => return piece,
                        Ok(None) => {}
                        Ok(Some(_)) | Err(_) => std::future::pending().await,
                    }
                }
                writable = self.keys.writable(), if !self.outbox.is_empty() => {
                    let written = writable.and_then(|()| self.keys.try_write(&self.outbox));
                    // A terminal that is gone takes none, and keeps none waiting.
                    let all = self.outbox.len();
                    let count = unless_blocked(written).map_or(all, Option::unwrap_or_default);
                    self.outbox.drain(..count);
                }
            }
        }
    }
}

/// Search for the end of a cell's output: the interpreter writes the mark behind it.
pub(crate) struct EndMark {
    pub(crate) text: String,
    /// Possible beginning of it.
    held: Vec<u8>,
    pub(crate) is_found: bool,
}

impl EndMark {
    /// Makes one that no output has by chance; a terminal that gets it shows nothing.
    pub(crate) fn new() -> Self {
        let chance = RandomState::new().hash_one(());
        Self {
            text: format!("\x1b_rondo {chance:016x}\x1b\\"),
            held: Vec::new(),
            is_found: false,
        }
    }

    /// Takes output, and returns that of the cell, as far as it is known to be no mark, and what was
    /// written after it.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        if self.is_found {
            return (Vec::new(), bytes.to_vec());
        }
        self.held.extend_from_slice(bytes);
        let mark = self.text.as_bytes();
        let found = self.held.windows(mark.len()).position(|it| it == mark);
        if let Some(at) = found {
            self.is_found = true;
            let after = self.held.split_off(at + mark.len());
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), after);
        }
        let longest = self.held.len().min(mark.len() - 1);
        let begun = (0..=longest).rev().find(|count| {
            let begin = mark.get(..*count).unwrap_or_default();
            self.held.ends_with(begin)
        });
        let rest = self.held.split_off(self.held.len() - begun.unwrap_or(0));
        (std::mem::replace(&mut self.held, rest), Vec::new())
    }

    /// Returns the bytes that were held back.
    pub(crate) fn into_held(self) -> Vec<u8> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_found_wherever_the_output_is_cut_and_nothing_else_is_held_back() {
        let mark = EndMark::new().text;
        let whole = format!("\x1b[1mone\x1b_rondo {mark}after\x1b_");
        for cut in 0..whole.len() {
            let mut looked = EndMark {
                text: mark.clone(),
                held: Vec::new(),
                is_found: false,
            };
            let (mut before, mut after) = looked.take(&whole.as_bytes()[..cut]);
            let (more, rest) = looked.take(&whole.as_bytes()[cut..]);
            before.extend(more);
            after.extend(rest);
            let texts = [before, after].map(|it| String::from_utf8(it).unwrap());
            assert_eq!(
                texts,
                ["\x1b[1mone\x1b_rondo ", "after\x1b_"],
                "cut at {cut}"
            );
            assert!(looked.is_found);
        }
        let mut looked = EndMark::new();
        assert_eq!(looked.take(b"one\x1b").0, b"one");
        assert_eq!(looked.into_held(), b"\x1b");
    }
}
