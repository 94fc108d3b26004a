//! Input of the terminal, read by a thread of its own.

use super::decoder::Decoder;
use super::input::Input;
use rondo_core::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Inputs that wait for the loop. Keys typed beyond wait in the terminal.
const INPUTS_MAX: usize = 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 4096;
/// Reads keys, pastes and answers until it is dropped.
pub(crate) struct Keyboard {
    inputs: Receiver<io::Result<Input>>,
    /// Its other end ends the thread's wait when it is closed.
    waker: Option<OwnedFd>,
    /// Set while the key Esc would stop running work.
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
            decoder: Decoder::default(),
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

    /// Waits for the next input; none if the terminal is gone.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Input>> {
        self.inputs.recv().await
    }

    /// Returns the next input, if it is there already.
    pub(crate) fn at_once(&mut self) -> Option<Input> {
        self.inputs.try_recv().ok()?.ok()
    }

    /// Says whether the key Esc would stop what runs.
    pub(crate) fn set_esc_stops(&self, stops: bool) {
        self.esc_stops.store(stops, Ordering::Relaxed);
    }

    /// Stops reading, and returns when nothing reads any more. Input that was read and not taken is lost.
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
    decoder: Decoder,
    clock: Clock,
}

/// Cause of the end of a wait.
enum WaitEnd {
    /// Bytes.
    Read(Vec<u8>),
    /// The time.
    Nothing,
    /// The listener is gone.
    Over,
}

impl Reader {
    /// Sends the input until the receiver is gone.
    fn run(mut self, before: &[u8]) {
        let mut came = self.decoder.take(before, self.clock.now());
        while self.send(came) {
            self.decoder
                .set_esc_stops(self.esc_stops.load(Ordering::Relaxed));
            came = match self.wait() {
                Ok(WaitEnd::Read(bytes)) => self.decoder.take(&bytes, self.clock.now()),
                Ok(WaitEnd::Nothing) => self.decoder.settle(self.clock.now()),
                Ok(WaitEnd::Over) => return,
                Err(err) => {
                    let _ = self.inputs.blocking_send(Err(err));
                    return;
                }
            };
        }
    }

    fn wait(&self) -> io::Result<WaitEnd> {
        let input = rustix::stdio::stdin();
        let wait = self.decoder.patience().map(Timespec::try_from).transpose();
        let wait = wait.map_err(io::Error::other)?;
        let mut waited = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        match poll(&mut waited, wait.as_ref()) {
            Ok(0) => return Ok(WaitEnd::Nothing),
            Ok(_) => {}
            // It waits again.
            Err(Errno::INTR) => return Ok(WaitEnd::Read(Vec::new())),
            Err(err) => return Err(err.into()),
        }
        let [input_waited, woken_waited] = &waited;
        if !woken_waited.revents().is_empty() {
            return Ok(WaitEnd::Over);
        }
        if input_waited.revents().is_empty() {
            return Ok(WaitEnd::Read(Vec::new()));
        }
        let mut piece = vec![0; READ_BYTES];
        match rustix::io::read(input, &mut piece) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                piece.truncate(count);
                Ok(WaitEnd::Read(piece))
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(WaitEnd::Read(Vec::new())),
            Err(err) => Err(err.into()),
        }
    }

    fn send(&self, inputs: Vec<Input>) -> bool {
        let mut inputs = inputs.into_iter();
        inputs.all(|it| self.inputs.blocking_send(Ok(it)).is_ok())
    }
}
