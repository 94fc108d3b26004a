//! The user's terminal, lent to a command.

use super::client::Shell;
use super::error::ShellError;
use super::stream::{CommandEnd, Keyboard, ShellEvent};
use super::unix::{Keys, RawMode, size_of, write_all};
use std::convert::Infallible;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How many reads of the keyboard wait for the shell.
const KEYS_MAX: usize = 16;

/// Terminal of the user.
#[derive(Debug, Clone, Copy)]
pub struct Terminal<'a> {
    /// Input of the user; a terminal.
    pub input: BorrowedFd<'a>,
    /// Output to the user.
    pub output: BorrowedFd<'a>,
}

/// Why a command did not get the terminal, or lost it.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The terminal cannot be used.
    #[error("the terminal cannot be used")]
    Terminal(#[from] io::Error),
    /// The shell.
    #[error(transparent)]
    Shell(#[from] ShellError),
}

/// Runs a line as [`Shell::run`] and lends it the terminal until its end: what is typed goes to the command, control
/// characters too, its output to the user as it is, and the terminal's size is followed.
///
/// The terminal is set to pass everything on meanwhile, and set back as it was before this returns
/// or is dropped. What was typed and read but not passed on is in [`CommandEnd::unread_input`].
/// `told` is called for a restarted shell before its output.
///
/// # Errors
/// When the terminal or the shell is lost.
///
/// # Cancel safety
/// Dropped, it sets the terminal back and interrupts the command.
pub async fn relay(
    shell: &Shell,
    line: &str,
    terminal: Terminal<'_>,
    told: impl FnOnce() + Send,
) -> Result<CommandEnd, RelayError> {
    let mut told = Some(told);
    let output = Arc::new(terminal.output.try_clone_to_owned()?);
    let mut sizes = signal(SignalKind::window_change())?;
    follow(&output, shell);
    let mut stream = shell.run(line).await?;
    let keyboard = stream.keyboard();
    let raw = RawMode::set(terminal.input)?;
    let (typed, mut keys) = mpsc::channel::<Vec<u8>>(KEYS_MAX);
    let reader = Keys::read(terminal.input, typed)?;
    let ended = {
        let typing = pass_on(&mut keys, &keyboard);
        tokio::pin!(typing);
        loop {
            tokio::select! {
                event = stream.next() => match event? {
                    Some(ShellEvent::Output(bytes)) => show(&output, bytes).await?,
                    Some(ShellEvent::Restarted) => told.take().into_iter().for_each(|told| told()),
                    Some(ShellEvent::Ended(end)) => break *end,
                    None => return Err(ShellError::Lost(io::ErrorKind::UnexpectedEof.into()).into()),
                },
                never = &mut typing => match never {},
                Some(()) = sizes.recv() => follow(&output, shell),
            }
        }
    };
    drop(reader);
    drop(raw);
    Ok(with_keys(ended, &mut keys))
}

/// On its own, since a program may not read its input while its output is waited for.
async fn pass_on(keys: &mut mpsc::Receiver<Vec<u8>>, keyboard: &Keyboard) -> Infallible {
    while let Some(bytes) = keys.recv().await {
        keyboard.input(&bytes).await;
    }
    std::future::pending().await
}

fn with_keys(mut end: CommandEnd, keys: &mut mpsc::Receiver<Vec<u8>>) -> CommandEnd {
    while let Ok(bytes) = keys.try_recv() {
        end.unread_input.extend(bytes);
    }
    end
}

/// A terminal can be slow; nothing else waits for it.
async fn show(output: &Arc<OwnedFd>, bytes: Vec<u8>) -> io::Result<()> {
    let output = Arc::clone(output);
    let written = tokio::task::spawn_blocking(move || write_all(&output, &bytes));
    written.await.map_err(io::Error::other)?
}

fn follow(output: &OwnedFd, shell: &Shell) {
    if let Some(size) = size_of(output) {
        shell.resize(size);
    }
}
