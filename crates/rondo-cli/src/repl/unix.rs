//! Terminal modes, by system calls.

use rondo_python::TerminalSize;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize,
    tcsetattr, ttyname,
};
use std::fs::File;
use std::io;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// Bytes that are read at once.
const READ_BYTES: usize = 4096;

/// Has the line editor look whether there is something to show. It waits for keys alone, and for the
/// signal of a terminal whose size changes, after which it looks at everything anew.
pub(super) fn wake_editor() {
    let _ = kill_process(getpid(), Signal::WINCH);
}

/// The terminal's settings as they were found.
#[derive(Clone)]
pub(super) struct Terminal {
    found: Termios,
}

impl Terminal {
    /// Remembers how the terminal is set.
    ///
    /// # Errors
    /// When standard input is no terminal.
    pub(super) fn find() -> io::Result<Self> {
        let found = tcgetattr(io::stdin())?;
        Ok(Self { found })
    }

    /// Sets the terminal as it was found.
    pub(super) fn restore(&self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.found);
    }

    /// Takes keys one by one, unseen, until the value is dropped. Output is left as it is: what is
    /// printed meanwhile needs no carriage returns.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn listen(&self) -> io::Result<Keys> {
        let mut modes = self.found.clone();
        modes
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        self.set(&modes)
    }

    /// Takes keys as [`Self::listen`], and has output pass as it is written: for a program that has a
    /// terminal of its own, which does all that this one would do.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn lend(&self) -> io::Result<Keys> {
        let mut modes = self.found.clone();
        modes.make_raw();
        self.set(&modes)
    }

    fn set(&self, modes: &Termios) -> io::Result<Keys> {
        tcsetattr(io::stdin(), OptionalActions::Now, modes)?;
        let input = Receiver::from_file_unchecked(open_anew()?)?;
        Ok(Keys {
            input,
            terminal: self.clone(),
        })
    }
}

/// Returns how large the terminal is; the usual size of old where the kernel does not know.
pub(super) fn size() -> TerminalSize {
    let usual = TerminalSize {
        rows: 24,
        columns: 80,
    };
    match tcgetwinsize(io::stdin()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => TerminalSize {
            rows: size.ws_row,
            columns: size.ws_col,
        },
        _ => usual,
    }
}

/// Listens for changes of the terminal's size.
///
/// # Errors
/// When the signal cannot be listened to.
pub(super) fn size_changes() -> io::Result<Signals> {
    signal(SignalKind::window_change())
}

/// Opens the terminal behind standard input once more. What says that a read does not wait belongs to
/// the open file, which standard input shares with the process that started this one.
fn open_anew() -> io::Result<File> {
    let name = ttyname(io::stdin(), Vec::new())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(open(name, flags, Mode::empty())?))
}

/// The keys of the terminal, as bytes.
pub(super) struct Keys {
    input: Receiver,
    terminal: Terminal,
}

impl Keys {
    /// Waits for keys and returns their bytes; for ever, once the terminal is gone.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is read before it is returned.
    pub(super) async fn next(&self) -> Vec<u8> {
        while self.input.readable().await.is_ok() {
            let mut piece = [0; READ_BYTES];
            match self.input.try_read(&mut piece) {
                Ok(0) => break,
                Ok(count) => return piece.get(..count).unwrap_or_default().to_vec(),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        std::future::pending().await
    }

    /// Throws away what was typed and not read.
    pub(super) fn forget(&self) {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.terminal.restore();
    }
}
