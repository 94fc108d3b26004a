//! Signals that the screen listens to, so that none ends the process with the terminal's modes switched on, and stopping the process as Ctrl-Z does.

use rustix::process::{Signal, kill_current_process_group};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// Signals besides `SIGTERM` that end a process if it does not listen to them, but for those that report a crash.
const ENDING: [Signal; 10] = [
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::IO,
    Signal::TRAP,
    Signal::SYS,
];

/// Signals that end or stop the screen, or change its size.
pub(crate) struct SignalStreams {
    terminate: Signals,
    ending: Vec<Signals>,
    resize: Signals,
    hang_up: Signals,
    interrupt: Signals,
    stop: Signals,
}

/// Request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To end: `SIGTERM`, or another signal that ends a process.
    Terminate,
    /// To end, as the terminal is gone: `SIGHUP`.
    HangUp,
    /// To interrupt: `SIGINT` from elsewhere than the keyboard.
    Interrupt,
    /// To stop: `SIGTSTP`.
    Stop,
    /// To take the terminal's new size: `SIGWINCH`.
    Resize,
}

impl SignalStreams {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system has no more signals to give.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            // One that cannot be listened to keeps its default effect.
            ending: ENDING
                .iter()
                .filter_map(|it| signal(SignalKind::from_raw(it.as_raw())).ok())
                .collect(),
            resize: signal(SignalKind::window_change())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
        })
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Terminate,
            () = any(&mut self.ending) => SignalRequest::Terminate,
            _ = self.resize.recv() => SignalRequest::Resize,
            _ = self.hang_up.recv() => SignalRequest::HangUp,
            _ = self.interrupt.recv() => SignalRequest::Interrupt,
            _ = self.stop.recv() => SignalRequest::Stop,
        }
    }
}

/// Waits for one of several signals.
async fn any(signals: &mut [Signals]) {
    poll_fn(|cx| {
        let mut heard = signals.iter_mut();
        match heard.any(|it| matches!(it.poll_recv(cx), Poll::Ready(Some(())))) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Stops the process, and those that it shares its terminal's foreground with, until `SIGCONT`.
pub(crate) fn stop() {
    // If it cannot be stopped, it continues.
    let _ = kill_current_process_group(Signal::STOP);
}
