//! Standard output and standard error: the one place that writes to them.

use crate::cli::ColorChoice;
use crate::error::CliError;
use crate::render::{escaped, wrapped};
use rondo_core::clock::Clock;
use rondo_runtime::Notices;
use rondo_runtime::env::Env;
use rondo_runtime::sanitize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{isatty, tcgetwinsize};
use std::borrow::Cow;
use std::io::{self, BufRead as _, Read as _, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a typed answer.
const ANSWER_BYTES_MAX: u64 = 4096;

/// Columns when the terminal does not say.
const COLUMNS_DEFAULT: usize = 80;

/// Returns the cursor to the line's beginning and erases the line.
const ERASE: &str = "\r\x1b[K";

/// How long to wait for a reader of standard error, and for a user who stopped the terminal with Ctrl-S.
const STDERR_WAIT: Duration = Duration::from_secs(1);
const TERMINAL_WAIT: Duration = Duration::from_secs(10);
/// Bytes that a pipe takes without waiting if it takes any.
const PIECE_BYTES: usize = 4096;

/// Set if standard error was not read for so long that it is not waited for until it is read again.
static STDERR_UNREAD: AtomicBool = AtomicBool::new(false);

/// The reader took nothing for too long, and the process is about to end.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// The terminal is a dumb one, which would print an escape sequence as text.
static IS_DUMB: AtomicBool = AtomicBool::new(false);

/// Returns a text as the terminal can show it: a dumb one gets no escape sequence.
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    match IS_DUMB.load(Ordering::Relaxed) {
        true => Cow::Owned(without_sequences(text)),
        false => Cow::Borrowed(text),
    }
}

/// Takes escape sequences out of a text; a line that would be erased ends instead. Backspaces stay, since every terminal
/// knows them.
fn without_sequences(text: &str) -> String {
    let text = text.replace(ERASE, "\n").replace("\r\n", "\n");
    let pieces: Vec<String> = text.split('\x08').map(sanitize::plain).collect();
    pieces.join("\x08")
}

/// Stops all further output: another write would hang as the last one does.
pub(crate) fn give_up() {
    GIVEN_UP.store(true, Ordering::Relaxed);
}

/// Returns whether nothing is printed any more.
pub(crate) fn has_given_up() -> bool {
    GIVEN_UP.load(Ordering::Relaxed)
}

/// Writes to standard error; a reader that takes nothing is waited for once, and what it does not take is left out. A
/// failure is not reported, since there is nowhere to report it.
pub(crate) fn stderr(text: &str) {
    if !has_given_up() {
        let _ = Stderr.write_all(for_terminal(text).as_bytes());
    }
}

/// Writes to standard error what it takes without waiting.
pub(crate) fn stderr_at_once(text: &str) {
    STDERR_UNREAD.store(true, Ordering::Relaxed);
    stderr(text);
}

/// Standard error as [`stderr`] writes to it. It takes everything and never fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        for piece in bytes.chunks(PIECE_BYTES) {
            let wait = match STDERR_UNREAD.load(Ordering::Relaxed) {
                true => Duration::ZERO,
                false if isatty(&stderr) => TERMINAL_WAIT,
                false => STDERR_WAIT,
            };
            let is_read = is_ready_within(&stderr, PollFlags::OUT, wait).unwrap_or(true);
            STDERR_UNREAD.store(!is_read, Ordering::Relaxed);
            if !is_read || stderr.write_all(piece).is_err() {
                break;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether a stream can be read or written within this time, as the flags say. The end of a stream counts.
///
/// # Errors
/// When the system does not say.
pub(crate) fn is_ready_within(
    stream: impl AsFd,
    flags: PollFlags,
    wait: Duration,
) -> io::Result<bool> {
    let clock = Clock::system();
    let until = clock.now().after(wait);
    loop {
        let left = until.since(clock.now());
        let mut fds = [PollFd::new(&stream, flags)];
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
}

/// Destination and style of printed text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Standard output is a terminal.
    pub(crate) stdout_terminal: bool,
    /// Standard error is a terminal.
    pub(crate) stderr_terminal: bool,
    /// Standard output takes colors.
    pub(crate) stdout_color: bool,
    /// Standard error takes colors.
    pub(crate) stderr_color: bool,
    /// Standard error can erase what is on a line: any terminal but a dumb one.
    pub(crate) stderr_erases: bool,
    /// Notes are not printed.
    pub(crate) quiet: bool,
}

impl Output {
    /// Looks at both streams and at what the user wants.
    pub(crate) fn detect(env: &Env, color: Option<ColorChoice>, quiet: bool) -> Self {
        let stdout_terminal = isatty(io::stdout());
        let stderr_terminal = isatty(io::stderr());
        let is_dumb = env.get("TERM") == Some("dumb");
        let found = Self {
            stdout_terminal,
            stderr_terminal,
            stdout_color: use_color(env, color, stdout_terminal),
            stderr_color: use_color(env, color, stderr_terminal),
            stderr_erases: stderr_terminal && !is_dumb,
            quiet,
        };
        // Colors that are asked for are written all the same.
        let has_color = found.stdout_color || found.stderr_color;
        IS_DUMB.store(is_dumb && !has_color, Ordering::Relaxed);
        found
    }

    /// Writes text to standard output, at once, without whatever in it would steer a terminal: titles, names
    /// and errors come from outside.
    ///
    /// # Errors
    /// When the pipe is closed, among others.
    pub(crate) fn stdout(&self, text: &str) -> io::Result<()> {
        self.styled(&sanitize::plain(text))
    }

    /// Writes lines of words to standard output, at once, broken at blanks if they are wider than the
    /// terminal; what is piped stays as it is. What would steer a terminal is left out.
    ///
    /// # Errors
    /// When the pipe is closed, among others.
    pub(crate) fn words(&self, text: &str) -> io::Result<()> {
        let text = sanitize::plain(text);
        match self.terminal_columns() {
            Some(columns) => self.styled(&wrapped(&text, columns)),
            None => self.styled(&text),
        }
    }

    /// Writes JSON to standard output, at once, its hidden characters escaped.
    ///
    /// # Errors
    /// When the pipe is closed, among others.
    pub(crate) fn json(&self, text: &str) -> io::Result<()> {
        self.styled(&escaped(text))
    }

    /// Writes text with escape sequences of our own to standard output, at once.
    ///
    /// # Errors
    /// When the pipe is closed, among others.
    pub(crate) fn styled(&self, text: &str) -> io::Result<()> {
        if has_given_up() {
            return Ok(());
        }
        let text = match self.stdout_terminal {
            true => for_terminal(text),
            false => Cow::Borrowed(text),
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Writes to standard error, as the function [`stderr`] does.
    pub(crate) fn stderr(&self, text: &str) {
        stderr(text);
    }

    /// Prints a note for the user, unless they want none.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.message("note", "\x1b[36m", text);
        }
    }

    /// Prints what the user has to know, also if they want no notes.
    pub(crate) fn warning(&self, text: &str) {
        self.message("warning", "\x1b[33m", text);
    }

    /// Prints what failed, its causes, and after a blank line what the user can do.
    pub(crate) fn error(&self, error: &CliError) {
        self.message("error", "\x1b[31m", &error.what());
        if let Some(hint) = &error.hint {
            self.hint(hint);
        }
    }

    /// Prints what the user can do next, after a blank line.
    pub(crate) fn hint(&self, text: &str) {
        self.stderr("\n");
        self.message("hint", "\x1b[36m", text);
    }

    /// Asks a person at the terminal something that only `y` and Enter confirm.
    pub(crate) fn is_confirmed(&self, question: &str) -> bool {
        let question = sanitize::plain(question);
        self.stderr(&format!("{question} [y/N, then Enter] "));
        let mut answer = String::new();
        let mut stdin = io::stdin().lock().take(ANSWER_BYTES_MAX);
        let read = stdin.read_line(&mut answer);
        read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }

    /// Returns the height of the terminal behind standard output.
    pub(crate) fn rows(&self) -> usize {
        tcgetwinsize(io::stdout())
            .or_else(|_| tcgetwinsize(io::stderr()))
            .map_or(0, |size| usize::from(size.ws_row))
    }

    /// Returns the width of the terminal behind standard output.
    pub(crate) fn columns(&self) -> usize {
        tcgetwinsize(io::stdout())
            .or_else(|_| tcgetwinsize(io::stderr()))
            .map(|size| usize::from(size.ws_col))
            .ok()
            .filter(|columns| *columns > 0)
            .unwrap_or(COLUMNS_DEFAULT)
    }

    /// Returns the width of the terminal that standard output is; `None` if it is none.
    pub(crate) fn terminal_columns(&self) -> Option<usize> {
        self.stdout_terminal.then(|| self.columns())
    }

    fn message(&self, label: &str, style: &str, text: &str) {
        // Messages quote what servers and files say, which may hold escape sequences.
        let text = format!("{label}: {}\n", sanitize::plain(text));
        let text = match self.stderr_terminal {
            // A program may have the terminal raw, where a line feed alone keeps the column.
            true => wrapped(&text, self.columns()).replace('\n', "\r\n"),
            false => text,
        };
        match text.strip_prefix(label).filter(|_| self.stderr_color) {
            Some(rest) => {
                let rest = rest.trim_start_matches(':');
                self.stderr(&format!("{style}\x1b[1m{label}:\x1b[0m{rest}"));
            }
            None => self.stderr(&text),
        }
    }
}

impl Notices for Output {
    fn note(&self, text: &str) {
        Self::note(self, text);
    }

    fn progress(&self, text: Option<&str>) {
        if self.stderr_erases && !self.quiet {
            let text = sanitize::plain(text.unwrap_or_default());
            self.stderr(&format!("{ERASE}{text}"));
        }
    }
}

/// Returns whether a person sits there who can be asked.
pub(crate) fn has_person() -> bool {
    isatty(io::stdin()) && isatty(io::stderr())
}

/// The output that notices go to, which is known in full once the settings are.
#[derive(Debug)]
pub(crate) struct SharedOutput(Mutex<Output>);

impl SharedOutput {
    /// Creates it with the output that is used before the settings are read.
    pub(crate) fn new(early: Output) -> Arc<Self> {
        Arc::new(Self(Mutex::new(early)))
    }

    /// Replaces the output once the settings are read.
    pub(crate) fn set(&self, output: Output) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = output;
    }

    fn get(&self) -> Output {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notices for SharedOutput {
    fn can_ask(&self) -> bool {
        has_person()
    }

    fn note(&self, text: &str) {
        self.get().note(text);
    }

    fn progress(&self, text: Option<&str>) {
        self.get().progress(text);
    }
}

fn use_color(env: &Env, target: Option<ColorChoice>, terminal: bool) -> bool {
    match target.unwrap_or(ColorChoice::Auto) {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let forced = env.get("CLICOLOR_FORCE").is_some_and(|value| value != "0");
            let refused = env.get("NO_COLOR").is_some() || env.get("TERM") == Some("dumb");
            !refused && (forced || terminal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_flag_then_the_variables_then_the_terminal() {
        let plain = Env::default();
        let no_color = Env::of(&[("NO_COLOR", "1")]);
        let force = Env::of(&[("CLICOLOR_FORCE", "1")]);
        let dumb = Env::of(&[("TERM", "dumb")]);
        assert!(use_color(&plain, None, true));
        assert!(!use_color(&plain, None, false));
        assert!(!use_color(&no_color, None, true));
        assert!(use_color(&no_color, Some(ColorChoice::Always), false));
        assert!(use_color(&force, None, false));
        assert!(!use_color(&dumb, None, true));
        assert!(!use_color(&force, Some(ColorChoice::Never), true));
    }
}
