//! Writes frames on a thread of its own, so that a terminal that takes nothing holds up nothing.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::Notify;

/// Hands frames to the terminal, one at a time. While one is on its way no other is taken: it is skipped, and what
/// changed since comes with the next.
pub(crate) struct Writer {
    frames: Option<SyncSender<Vec<u8>>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    is_busy: AtomicBool,
    has_failed: AtomicBool,
    freed: Notify,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread is available.
    pub(crate) fn start(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (frames, next) = sync_channel::<Vec<u8>>(1);
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let thread = Builder::new().name("screen".to_owned()).spawn(move || {
            while let Ok(frame) = next.recv() {
                if out.write_all(&frame).and_then(|()| out.flush()).is_err() {
                    shared.has_failed.store(true, Ordering::Release);
                }
                shared.is_busy.store(false, Ordering::Release);
                shared.freed.notify_one();
            }
        })?;
        Ok(Self {
            frames: Some(frames),
            state,
            thread: Some(thread),
        })
    }

    /// Returns whether a frame would be taken now.
    pub(crate) fn is_free(&self) -> bool {
        !self.state.is_busy.load(Ordering::Acquire)
    }

    /// Returns whether the terminal is gone.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.has_failed.load(Ordering::Acquire)
    }

    /// Hands over a frame. To be called while it [is free](Self::is_free).
    pub(crate) fn write(&self, frame: Vec<u8>) {
        if let Some(frames) = self.frames.as_ref().filter(|_| !frame.is_empty()) {
            self.state.is_busy.store(true, Ordering::Release);
            if frames.try_send(frame).is_err() {
                self.state.is_busy.store(false, Ordering::Release);
            }
        }
    }

    /// Waits until a frame was written.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(crate) async fn freed(&self) {
        self.state.freed.notified().await;
    }

    /// Waits until nothing is on its way, at most so long. Returns whether that is so.
    pub(crate) async fn settle(&self, at_most: Duration) -> bool {
        let settled = tokio::time::timeout(at_most, async {
            while !self.is_free() {
                self.freed().await;
            }
        });
        settled.await.is_ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.frames = None;
        // A thread that still waits for the terminal must not keep the process.
        if self.is_free()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A terminal that takes a frame only when it is let.
    struct Stalled(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_stalled_terminal_is_not_waited_for_and_is_told_when_it_goes_on() {
        let (go, wait) = channel();
        let (wrote, written) = channel();
        let writer = Writer::start(Stalled(wait, wrote)).unwrap();
        writer.write(b"one".to_vec());
        assert!(!writer.is_free());
        assert!(!writer.settle(Duration::from_millis(1)).await);
        go.send(()).unwrap();
        writer.freed().await;
        assert!(writer.is_free() && !writer.has_failed());
        assert_eq!(written.recv().unwrap(), b"one");
        drop(go);
        writer.write(b"two".to_vec());
        writer.freed().await;
        assert!(writer.has_failed());
    }
}
