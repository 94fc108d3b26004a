//! Asks a person at the terminal whether a call may run.

use crate::env::Env;
use crate::render::sanitize::plain;
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approval, ApprovalRequest, Approver};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::spawn_blocking;

/// The process's terminal, whatever the standard streams are.
const TERMINAL: &str = "/dev/tty";
/// The bound on a typed answer, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;
/// Unreadable answers after which the call is denied.
const ATTEMPTS_MAX: u32 = 3;

/// How often the asking thread looks whether it is still wanted.
const LOOK_UP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Asks `y` or `n`; without a terminal, denies and remembers it.
#[derive(Debug)]
pub(crate) struct TerminalApprover {
    terminal: bool,
    missing: AtomicBool,
    screen: Screen,
}

impl TerminalApprover {
    /// Builds an approver. It asks only where a person sits: standard input and standard error are
    /// both terminals.
    pub(crate) fn new(env: &Env, screen: Screen) -> Self {
        let streams = rustix::termios::isatty(io::stdin()) && rustix::termios::isatty(io::stderr());
        let ci = env.get("CI").is_some_and(|value| value != "false");
        Self {
            terminal: streams && !ci,
            missing: AtomicBool::new(false),
            screen,
        }
    }

    /// Returns whether a call was denied because there was no terminal to ask on.
    pub(crate) fn was_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed)
    }

    fn deny_for_lack_of_a_terminal(&self) -> Approval {
        self.missing.store(true, Ordering::Relaxed);
        denied("it needs approval, and there is no terminal to ask on")
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: &ApprovalRequest) -> Approval {
        let opened = self
            .terminal
            .then(|| File::options().read(true).write(true).open(TERMINAL));
        let Some(Ok(terminal)) = opened else {
            return self.deny_for_lack_of_a_terminal();
        };
        self.screen.aside().await;
        let question = plain(&request.prompt);
        let abandoned = Arc::new(AtomicBool::new(false));
        let _abandon = Abandon(Arc::clone(&abandoned));
        let asked = spawn_blocking(move || converse(&terminal, &question, &abandoned)).await;
        match asked.unwrap_or_else(|err| Err(io::Error::other(err))) {
            Ok(true) => Approval::Approved,
            Ok(false) => denied("the user said no"),
            Err(err) => denied(&format!("the question could not be asked: {err}")),
        }
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied {
        reason: reason.to_owned(),
    }
}

/// Tells the asking thread, when it is dropped, that nobody waits for the answer any more.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs on a thread that may block: a terminal has no asynchronous form without unsafe code. The
/// thread looks up often enough to end soon after its question is dropped, so that it never takes
/// the answer to the next one.
fn converse(mut terminal: &File, question: &str, abandoned: &AtomicBool) -> io::Result<bool> {
    for _ in 0..ATTEMPTS_MAX {
        // What was typed before the question could be read is no answer to it.
        tcflush(terminal, QueueSelector::IFlush)?;
        write!(terminal, "\r\x1b[K{question}\nRun it? [y/n] ")?;
        let answer = read_line(terminal, abandoned)?;
        if !answer.ends_with('\n') {
            // Ctrl-D ends an answer without ending its line.
            writeln!(terminal)?;
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" | "" => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

fn read_line(mut terminal: &File, abandoned: &AtomicBool) -> io::Result<String> {
    let mut line = Vec::new();
    while line.len() < ANSWER_BYTES_MAX && !line.ends_with(b"\n") {
        if abandoned.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if !readable(terminal)? {
            continue;
        }
        let mut piece = [0; 256];
        let count = terminal.read(&mut piece)?;
        if count == 0 {
            break;
        }
        line.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn readable(terminal: &File) -> io::Result<bool> {
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut fds, Some(&LOOK_UP)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::CallId;

    #[tokio::test]
    async fn without_a_terminal_a_call_is_denied_and_remembered() {
        let approver = TerminalApprover {
            terminal: false,
            missing: AtomicBool::new(false),
            screen: Screen::new(),
        };
        let request = ApprovalRequest {
            session: rondo_types::SessionId::new("s"),
            turn: rondo_types::TurnId::new("s-1"),
            step: 1,
            call_id: CallId::new("c"),
            tool: "exec".into(),
            arguments: serde_json::Value::Null,
            prompt: "rm -rf /".into(),
            can_edit: true,
        };
        assert!(!approver.was_missing());
        assert!(matches!(
            approver.ask(&request).await,
            Approval::Denied { .. }
        ));
        assert!(approver.was_missing());
    }
}
