//! The modes that the screen needs, and putting them back however the process ends.

use crate::options::Mouse;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

/// The alternate screen, no wrapping at the right edge, pastes in brackets, news of the focus, an escape before a key
/// with Alt (xterm makes another letter of it otherwise; how it was is saved), and keys that can be told apart (flag 1 of
/// kitty's protocol, pushed after the screen since each screen has its own stack).
const ENTER: &str =
    "\x1b[?1049h\x1b[2J\x1b[?7l\x1b[?2004h\x1b[?1004h\x1b[?1036;1039s\x1b[?1036;1039h\x1b[>1u";
/// The same in reverse order, and a caret that shows.
const LEAVE: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?1007l\x1b[<1u\x1b[?1036;1039r\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0m\x1b[?25h\x1b[?1049l";

/// Modes that a program which was killed may have left switched on: the mouse, the keypad's and the
/// arrows' other bytes, and a style.
const CLEAN: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1l\x1b>\x1b[0m";

/// Keeps the terminal's title aside, and puts it back.
const KEEP_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

/// Set if the terminal's title was saved.
static KEEPS_TITLE: AtomicBool = AtomicBool::new(false);
/// Set while a screen is open in this process, for the hook of panics.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// The thread that shows it. A panic of another one fails what that did, and the screen continues.
static SHOWN_BY: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Returns the sequence that switches the screen on.
pub(crate) fn enter(mouse: Mouse) -> String {
    let mouse = match mouse {
        Mouse::On => "\x1b[?1002h\x1b[?1006h",
        Mouse::Wheel => "\x1b[?1000h\x1b[?1006h",
        Mouse::Off => "\x1b[?1007h",
    };
    format!("{ENTER}{mouse}")
}

/// The screen while it is open; it is closed when this is dropped.
pub(crate) struct Modes {
    mouse: Mouse,
    /// Set if the terminal's title is changed meanwhile.
    has_title: bool,
    is_open: Arc<AtomicBool>,
    /// How the terminal was set before.
    before: Option<Termios>,
}

impl Modes {
    /// Opens the screen.
    ///
    /// # Errors
    /// When the terminal cannot be set.
    pub(crate) fn open(mouse: Mouse, has_title: bool) -> io::Result<Self> {
        close_on_panic();
        *shown_by() = Some(thread::current().id());
        let modes = Self {
            mouse,
            has_title,
            is_open: Arc::default(),
            before: tcgetattr(io::stdin()).ok(),
        };
        modes.enter()?;
        Ok(modes)
    }

    /// Opens it again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn enter(&self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_open.store(true, Ordering::Release);
        IS_OPEN.store(true, Ordering::Release);
        let mut out = io::stdout().lock();
        if self.has_title && !KEEPS_TITLE.swap(true, Ordering::AcqRel) {
            out.write_all(KEEP_TITLE.as_bytes())?;
        }
        out.write_all(enter(self.mouse).as_bytes())?;
        out.flush()
    }

    /// Sets the terminal as it was at first, after another program had it: that may have been killed.
    pub(crate) fn clean(&self) {
        if let Some(before) = &self.before {
            // A failure shows next, when the screen is opened.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        let _ = io::stdout().write_all(CLEAN.as_bytes());
    }

    /// Closes it for another program, or for good.
    pub(crate) fn leave(&self) {
        if self.is_open.swap(false, Ordering::AcqRel) {
            close();
        }
    }

    /// Closes it without a word to a terminal that takes none.
    pub(crate) fn abandon(&self) {
        self.is_open.store(false, Ordering::Release);
        IS_OPEN.store(false, Ordering::Release);
        let _ = disable_raw_mode();
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        self.leave();
    }
}

fn close() {
    if IS_OPEN.swap(false, Ordering::AcqRel) {
        let mut out = io::stdout().lock();
        // The terminal is gone, so this cannot be shown.
        let _ = out.write_all(LEAVE.as_bytes());
        if KEEPS_TITLE.swap(false, Ordering::AcqRel) {
            let _ = out.write_all(RESTORE_TITLE.as_bytes());
        }
        let _ = out.flush();
        let _ = disable_raw_mode();
    }
}

fn shown_by() -> std::sync::MutexGuard<'static, Option<ThreadId>> {
    SHOWN_BY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes the screen before a panic's message is printed. One of another thread is logged, as long as the screen is open:
/// it would be in the middle of it.
fn close_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_of_screen = *shown_by() == Some(thread::current().id());
            if !is_of_screen && IS_OPEN.load(Ordering::Acquire) {
                return tracing::error!(panic = %info, "a thread beside the screen panicked");
            }
            close();
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use pty_process::blocking as pty;
    use std::io::Read as _;

    /// Says to this test that it runs at a terminal of its own.
    const AT_TERMINAL: &str = "RONDO_TEST_PANICS_AT_TERMINAL";

    #[test]
    fn a_panic_restores_the_terminal_and_its_message_stands_on_it() {
        if std::env::var_os(AT_TERMINAL).is_some() {
            let _screen = Modes::open(Mouse::On, false).unwrap();
            let other = thread::spawn(|| panic!("beside the screen"));
            assert!(other.join().is_err() && IS_OPEN.load(Ordering::Acquire));
            panic!("of the screen");
        }
        let (mut terminal, side) = pty::open().unwrap();
        let before = tcgetattr(&terminal).unwrap();
        let name =
            "terminal::modes::tests::a_panic_restores_the_terminal_and_its_message_stands_on_it";
        let command = pty::Command::new(std::env::current_exe().unwrap());
        let mut child = command
            .args(["--exact", name, "--nocapture"])
            .env(AT_TERMINAL, "1")
            // A backtrace would push the message off the screen.
            .env("RUST_BACKTRACE", "0")
            .spawn(side)
            .unwrap();
        let mut screen = vt100::Parser::default();
        let (mut piece, mut was_alternate) = ([0; 4096], false);
        while let Ok(count @ 1..) = terminal.read(&mut piece) {
            for byte in piece.iter().take(count) {
                screen.process(std::slice::from_ref(byte));
                was_alternate |= screen.screen().alternate_screen();
            }
        }
        assert!(!child.wait().unwrap().success());
        let screen = screen.screen();
        let shown = screen.contents();
        assert!(was_alternate && shown.contains("of the screen"), "{shown}");
        assert!(!shown.contains("beside"), "{shown}");
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        let after = tcgetattr(&terminal).unwrap();
        assert_eq!(
            (after.local_modes, after.input_modes, after.output_modes),
            (before.local_modes, before.input_modes, before.output_modes)
        );
    }
}
