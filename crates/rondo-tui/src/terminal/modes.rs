//! The modes that the screen needs, and putting them back however the process ends.

use crate::options::Mouse;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io::{self, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

/// The alternate screen, no wrapping at the right edge, pastes in brackets, news of the focus, and keys that can be
/// told apart (flag 1 of kitty's protocol, pushed after the screen since each screen has its own stack).
const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[?7l\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// The same in reverse order, and a caret that shows.
const LEAVE: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?1007l\x1b[<1u\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[0m\x1b[?25h\x1b[?1049l";

/// Whether a screen is open in this process, for the hook of panics.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Returns what switches the screen on.
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
    is_open: Arc<AtomicBool>,
}

impl Modes {
    /// Opens the screen.
    ///
    /// # Errors
    /// When the terminal cannot be set.
    pub(crate) fn open(mouse: Mouse) -> io::Result<Self> {
        close_on_panic();
        let modes = Self {
            mouse,
            is_open: Arc::default(),
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
        out.write_all(enter(self.mouse).as_bytes())?;
        out.flush()
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
        // There is nobody to tell that the terminal is gone.
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
        let _ = disable_raw_mode();
    }
}

/// Closes the screen before a panic's message is printed.
fn close_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            close();
            before(info);
        }));
    });
}
