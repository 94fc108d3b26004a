//! A terminal that counts frames instead of showing them.

use anyhow::{Context, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 100,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
/// Ends every frame.
const FRAME_END: &[u8] = b"\x1b[?2026l";
/// How long nothing is drawn before the screen counts as still: longer than a turn takes to begin, or earlier ones to be
/// read.
const STILL: Duration = Duration::from_secs(3);

/// One frame.
pub(super) struct Frame {
    /// When all of it was there.
    pub(super) at: Instant,
    pub(super) bytes: usize,
    text: Vec<u8>,
}

/// A program on a terminal.
pub(super) struct Terminal {
    child: Child,
    keys: File,
    frames: Receiver<Frame>,
    bytes: usize,
}

impl Terminal {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        tcsetwinsize(&terminal, SIZE)?;
        let path = OsString::from_vec(ptsname(&terminal, Vec::new())?.into_bytes());
        let side = || OpenOptions::new().read(true).write(true).open(&path);
        let child = command
            .stdin(side()?)
            .stdout(side()?)
            .stderr(side()?)
            .spawn()
            .context("failed to start the binary")?;
        let keys = File::from(terminal);
        let frames = frames(keys.try_clone()?);
        Ok(Self {
            child,
            keys,
            frames,
            bytes: 0,
        })
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn press(&mut self, keys: &[u8]) -> Result<()> {
        self.bytes = 0;
        Ok(self.keys.write_all(keys)?)
    }

    /// Waits for the next frame.
    pub(super) fn next_frame(&mut self, patience: Duration) -> Result<Frame> {
        let frame = self.frames.recv_timeout(patience);
        let frame = frame.context("nothing was drawn")?;
        self.bytes += frame.bytes;
        Ok(frame)
    }

    /// Waits until a frame draws something, and returns when.
    pub(super) fn until(&mut self, drawn: &[u8], patience: Duration) -> Result<Instant> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let what = || format!("`{}` was not drawn", String::from_utf8_lossy(drawn));
            let frame = self.next_frame(left).with_context(what)?;
            if frame.text.windows(drawn.len()).any(|it| it == drawn) {
                return Ok(frame.at);
            }
        }
    }

    /// Waits until nothing is drawn any more, and returns when the last frame was there.
    pub(super) fn settle(&mut self) -> Instant {
        let mut last = Instant::now();
        while let Ok(frame) = self.next_frame(STILL) {
            last = frame.at;
        }
        last
    }

    /// Returns the bytes that were drawn since the last key.
    pub(super) fn take_bytes(&mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }

    /// Quits the program.
    pub(super) fn end(mut self) -> Result<()> {
        // What is typed, and what is looked for, is dropped first.
        self.keys.write_all(b"\x03\x15\x04")?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the screen ended with {status}");
        }
        Ok(())
    }
}

/// Reads frames until the program is gone.
fn frames(mut terminal: File) -> Receiver<Frame> {
    let (sender, frames) = channel();
    thread::spawn(move || {
        let (mut read, mut piece) = (Vec::new(), [0; 65_536]);
        while let Ok(count @ 1..) = terminal.read(&mut piece) {
            read.extend(piece.iter().take(count));
            let at = Instant::now();
            while let Some(end) = read.windows(FRAME_END.len()).position(|it| it == FRAME_END) {
                let text: Vec<u8> = read.drain(..end + FRAME_END.len()).collect();
                let bytes = text.len();
                if sender.send(Frame { at, bytes, text }).is_err() {
                    return;
                }
            }
        }
    });
    frames
}
