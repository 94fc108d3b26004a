//! What the terminal sends, read by a thread of its own.

use super::burst::{Bursts, LINE_END_WAIT_MS};
use super::input::{Input, Parser};
use crossterm::event::{Event, KeyCode, KeyEvent};
use rondo_core::clock::Clock;
use rondo_types::TimeMs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Inputs that wait for the loop. What is typed beyond waits in the terminal.
const INPUTS_MAX: usize = 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 4096;
/// How long an escape waits for what makes it a sequence before it is a key, in milliseconds.
const ESCAPE_WAIT_MS: u64 = 50;
/// The same where the key would stop what runs: a slow connection must not do that.
const STOP_WAIT_MS: u64 = 350;
/// How long the rest of a sequence or an answer is waited for, in milliseconds.
const REST_WAIT_MS: u64 = 1_000;

/// Reads keys, pastes and answers until it is dropped.
pub(crate) struct Keyboard {
    inputs: Receiver<io::Result<Input>>,
    /// Its other end ends the thread's wait when it is closed.
    waker: Option<OwnedFd>,
    /// Whether the key Esc would stop what runs.
    esc_stops: Arc<AtomicBool>,
}

impl Keyboard {
    /// Reads from now on, after these bytes.
    ///
    /// # Errors
    /// When the system has no pipe to give.
    pub(crate) fn listen(before: Vec<u8>) -> io::Result<Self> {
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let (woken, waker) = pipe_with(PipeFlags::CLOEXEC)?;
        let esc_stops = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            inputs: sender,
            woken,
            esc_stops: Arc::clone(&esc_stops),
            parser: Parser::default(),
            bursts: Bursts::default(),
            escaped_at: None,
            clock: Clock::system(),
        };
        // Without the thread, the sender is dropped: nothing comes, as if the terminal were gone.
        let _ = thread::Builder::new().spawn(move || reader.run(&before));
        Ok(Self {
            inputs,
            waker: Some(waker),
            esc_stops,
        })
    }

    /// Waits for the next input; none where the terminal is gone.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Input>> {
        self.inputs.recv().await
    }

    /// Returns the next input, where it is there already.
    pub(crate) fn at_once(&mut self) -> Option<Input> {
        self.inputs.try_recv().ok()?.ok()
    }

    /// Says whether the key Esc would stop what runs.
    pub(crate) fn set_esc_stops(&self, stops: bool) {
        self.esc_stops.store(stops, Ordering::Relaxed);
    }

    /// Stops reading, and returns when nothing reads any more. What was read and not taken is lost.
    pub(crate) async fn stop(mut self) {
        self.waker = None;
        while self.inputs.recv().await.is_some() {}
    }
}

/// The thread's side.
struct Reader {
    inputs: Sender<io::Result<Input>>,
    woken: OwnedFd,
    esc_stops: Arc<AtomicBool>,
    parser: Parser,
    bursts: Bursts,
    /// When an escape was taken for a key, until something else came.
    escaped_at: Option<TimeMs>,
    clock: Clock,
}

/// What ended a wait.
enum Waited {
    /// Bytes.
    Read(Vec<u8>),
    /// The time.
    Nothing,
    /// Nobody listens any more.
    Over,
}

impl Reader {
    /// Sends what is read until nobody takes it.
    fn run(mut self, before: &[u8]) {
        let mut came = Vec::new();
        self.parser.push(before, &mut came);
        let mut sent = self.send(came);
        while sent {
            sent = match self.wait() {
                Ok(Waited::Read(bytes)) => self.take(&bytes),
                Ok(Waited::Nothing) => self.settle(),
                Ok(Waited::Over) => false,
                Err(err) => {
                    let _ = self.inputs.blocking_send(Err(err));
                    false
                }
            };
        }
    }

    /// Returns how long is waited at most; for ever where nothing is held.
    fn patience(&self) -> Option<u64> {
        if self.bursts.waits() {
            return Some(LINE_END_WAIT_MS);
        }
        match self.parser.is_open() {
            false => None,
            true if !self.parser.is_at_escape() => Some(REST_WAIT_MS),
            true if self.esc_stops.load(Ordering::Relaxed) => Some(STOP_WAIT_MS),
            true => Some(ESCAPE_WAIT_MS),
        }
    }

    fn wait(&self) -> io::Result<Waited> {
        let input = rustix::stdio::stdin();
        let wait = self.patience().map(Duration::from_millis);
        let wait = wait.map(Timespec::try_from).transpose();
        let wait = wait.map_err(io::Error::other)?;
        let mut waited = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        match poll(&mut waited, wait.as_ref()) {
            Ok(0) => return Ok(Waited::Nothing),
            Ok(_) => {}
            // It waits anew.
            Err(Errno::INTR) => return Ok(Waited::Read(Vec::new())),
            Err(err) => return Err(err.into()),
        }
        let [input_waited, woken_waited] = &waited;
        if !woken_waited.revents().is_empty() {
            return Ok(Waited::Over);
        }
        if input_waited.revents().is_empty() {
            return Ok(Waited::Read(Vec::new()));
        }
        let mut piece = vec![0; READ_BYTES];
        match rustix::io::read(input, &mut piece) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                piece.truncate(count);
                Ok(Waited::Read(piece))
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(Waited::Read(Vec::new())),
            Err(err) => Err(err.into()),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let mut came = Vec::new();
        let now = self.clock.now();
        let escaped = self.escaped_at.take();
        let is_recent = escaped.is_some_and(|it| now.0.saturating_sub(it.0) < STOP_WAIT_MS);
        // The escape was the beginning of a sequence after all: what follows is no text.
        if is_recent && is_rest(bytes) {
            self.parser.push(b"\x1b", &mut came);
        }
        self.parser.push(bytes, &mut came);
        self.send(came)
    }

    /// Nothing came for a while: what waited is taken as it is.
    fn settle(&mut self) -> bool {
        let now = self.clock.now();
        if self.bursts.waits() {
            let released = self.bursts.release(now);
            return self.send_all(released);
        }
        let mut came = Vec::new();
        self.parser.settle(&mut came);
        let is_escape = |it: &Input| {
            let Input::Event(Event::Key(KeyEvent { code, .. })) = it else {
                return false;
            };
            *code == KeyCode::Esc
        };
        if came.last().is_some_and(is_escape) {
            self.escaped_at = Some(now);
        }
        self.send(came)
    }

    fn send(&mut self, came: Vec<Input>) -> bool {
        let released = self.bursts.take(came, self.clock.now());
        self.send_all(released)
    }

    fn send_all(&self, inputs: Vec<Input>) -> bool {
        let mut inputs = inputs.into_iter();
        inputs.all(|it| self.inputs.blocking_send(Ok(it)).is_ok())
    }
}

/// Returns whether bytes that come together are the rest of a sequence whose escape came before.
fn is_rest(bytes: &[u8]) -> bool {
    let mut read = Vec::new();
    let mut parser = Parser::default();
    parser.push(&[b"\x1b", bytes].concat(), &mut read);
    let is_sequence = matches!(bytes, [b'[' | b'O', _, ..]);
    is_sequence && !parser.is_open() && !read.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_sequence_is_told_from_text() {
        for (bytes, is) in [
            (&b"[A"[..], true),
            (b"OB", true),
            (b"[1;5C", true),
            (b"[", false),
            (b"x", false),
            (b"[1;", false),
        ] {
            assert_eq!(is_rest(bytes), is, "{bytes:?}");
        }
    }
}
