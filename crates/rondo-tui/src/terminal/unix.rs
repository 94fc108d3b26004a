//! Signals that the screen listens to, and stopping the process as Ctrl-Z does.

use rustix::process::{Signal, kill_current_process_group};
use std::io;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// Signals that end or stop the screen.
pub(crate) struct Told {
    terminate: Signals,
    hang_up: Signals,
    interrupt: Signals,
    stop: Signals,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To end: `SIGTERM`.
    Terminate,
    /// To end, as the terminal is gone: `SIGHUP`.
    HangUp,
    /// To interrupt: `SIGINT` from elsewhere than the keyboard.
    Interrupt,
    /// To stop: `SIGTSTP`.
    Stop,
}

impl Told {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system has no more signals to give.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
        })
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Terminate,
            _ = self.hang_up.recv() => Asked::HangUp,
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.stop.recv() => Asked::Stop,
        }
    }
}

/// Stops the process, and those that it shares its terminal's foreground with, until `SIGCONT`.
pub(crate) fn stop() {
    // Where it cannot be stopped, it goes on.
    let _ = kill_current_process_group(Signal::STOP);
}
