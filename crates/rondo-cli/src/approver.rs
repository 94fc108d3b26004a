//! Asks the user at the terminal whether a call may run.

use crate::asking::{Asker, Next, Said, WrittenQuestion};
use crate::changes::Changes;
use crate::output::{Output, for_terminal, has_person};
use crate::render::DeniedCall;
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_runtime::env::Env;
use rondo_runtime::paths::Paths;
use rondo_runtime::settings::Settings;
use rondo_tui::question::Editing;
use rondo_types::{Question, QuestionKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, isatty, tcflush, tcgetpgrp, tcgetwinsize};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::spawn_blocking;

/// The process's terminal, whatever the standard streams are.
const TERMINAL: &str = "/dev/tty";
/// The bound on a typed answer, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;
/// Denied calls that are named.
const DENIED_MAX: usize = 32;
/// Rows and columns when the terminal does not say.
const SIZE_DEFAULT: (u16, u16) = (24, 80);
/// How often the asking thread looks whether it is still wanted.
const LOOK_UP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Asks for a yes or a no, and what a yes lets run from then on; without a terminal, denies and remembers it.
#[derive(Debug)]
pub(crate) struct TerminalApprover {
    terminal: bool,
    denied: Mutex<Vec<DeniedCall>>,
    asker: Asker,
}

impl TerminalApprover {
    /// Builds an approver. It asks only where a person sits: standard error is a terminal, whatever is
    /// piped in, since the answer is typed on the terminal itself.
    pub(crate) fn new(
        settings: &Settings,
        output: &Output,
        screen: Screen,
        changes: Changes,
    ) -> Self {
        let env = &settings.env;
        let streams = isatty(io::stderr()) && !is_closed(io::stdin());
        let ci = env.get("CI").is_some_and(|value| value != "false");
        Self {
            terminal: streams && !ci,
            denied: Mutex::default(),
            asker: Asker::new((env, &settings.paths), *output, screen, changes),
        }
    }

    /// Builds an approver for questions about folders, which come up while the settings are read; `None` if no person sits at
    /// the terminal, or wants no notes.
    pub(crate) fn for_folders(env: &Env, output: &Output) -> Option<Arc<dyn Approver>> {
        if output.quiet || !has_person() {
            return None;
        }
        let paths = Paths::find(env).ok()?;
        Some(Arc::new(Self {
            terminal: true,
            denied: Mutex::default(),
            asker: Asker::new((env, &paths), *output, Screen::new(), Changes::default()),
        }))
    }

    /// Returns the first calls that were denied because there was no terminal to ask on.
    pub(crate) fn denied(&self) -> Vec<DeniedCall> {
        self.denied
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn deny_for_lack_of_a_terminal(&self, question: &Question) -> QuestionReply {
        // The user has not refused the money or the folder's trust.
        if matches!(question.kind, QuestionKind::Budget | QuestionKind::Trust) {
            return QuestionReply::Later { expires: None };
        }
        if let QuestionKind::Input { .. } = question.kind {
            return self
                .asker
                .denied(question, "there is no terminal to ask on");
        }
        let mut calls = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = question.call.clone()
            && calls.len() < DENIED_MAX
        {
            calls.push(DeniedCall {
                id,
                tool: question.subject.tool.clone(),
                arguments: question.subject.arguments.clone(),
                reasons: question.reasons.clone(),
            });
        }
        let reason = "it needs approval, and there is no terminal to ask on";
        self.asker.denied(question, reason)
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let Some(terminal) = self.terminal.then(open).flatten() else {
            return self.deny_for_lack_of_a_terminal(question);
        };
        let converse =
            move |written| blocking(move |abandoned| converse(&terminal, written, abandoned));
        self.asker.ask(question, Editing::Anew, converse).await
    }
}

/// Asks on a thread that may block. The question is abandoned when this is dropped.
async fn blocking<T: Send + 'static>(
    ask: impl FnOnce(&AtomicBool) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = Abandon(Arc::clone(&abandoned));
    let asked = spawn_blocking(move || ask(&abandoned)).await;
    asked.unwrap_or_else(|err| Err(io::Error::other(err)))
}

/// Returns whether a stream is a device without a person, such as `/dev/null`: giving that says that there is
/// no user.
fn is_closed(stream: impl AsFd) -> bool {
    let kind = fstat(&stream).map(|it| FileType::from_raw_mode(it.st_mode));
    kind.map_or(true, |kind| kind == FileType::CharacterDevice) && !isatty(&stream)
}

/// Opens the terminal, if one could be asked on: in the background, reading would stop the process.
fn open() -> Option<File> {
    let terminal = File::options().read(true).write(true).open(TERMINAL).ok()?;
    let is_in_front = isatty(io::stdin())
        || tcgetpgrp(&terminal).is_ok_and(|front| front == rustix::process::getpgrp());
    is_in_front.then_some(terminal)
}

/// Tells the asking thread, when it is dropped, that the answer is not awaited any more.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs on a thread that may block: a terminal has no asynchronous form without unsafe code. The
/// thread looks up often enough to end soon after its question is dropped, so that it never takes
/// the answer to the next one.
fn converse(
    terminal: &File,
    mut written: WrittenQuestion,
    abandoned: &AtomicBool,
) -> io::Result<Said> {
    let mut text = written.begin(size(terminal));
    loop {
        let line = typed(terminal, &text, abandoned)?;
        written.open.typed_mut().set(line.trim_end_matches('\n'));
        match written.enter(size(terminal).1) {
            Next::Ask(next) => text = next,
            Next::Answered(value, remember) => return Ok((value, remember)),
        }
    }
}

/// Returns the terminal's rows and columns.
fn size(terminal: &File) -> (usize, usize) {
    let size = tcgetwinsize(terminal).ok();
    let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    let (rows, columns) = size.map_or(SIZE_DEFAULT, |size| (size.ws_row, size.ws_col));
    (rows.into(), columns.into())
}

/// Puts a question, and returns the line that answers it.
fn typed(mut terminal: &File, question: &str, abandoned: &AtomicBool) -> io::Result<String> {
    // Keys typed before the question could be read are not an answer to it.
    tcflush(terminal, QueueSelector::IFlush)?;
    terminal.write_all(for_terminal(&format!("\r\x1b[K{question}")).as_bytes())?;
    let answer = read_line(terminal, abandoned)?;
    if !answer.ends_with('\n') {
        // Ctrl-D ends an answer without ending its line.
        writeln!(terminal)?;
    }
    Ok(answer)
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
    use rondo_core::ports::question_about_call;
    use rondo_types::AnswerValue;
    use rondo_types::{AskReason, CallId, QuestionSubject};

    fn paths() -> Paths {
        Paths::find(&Env::of(&[("RONDO_HOME", "/nowhere")])).unwrap()
    }

    #[tokio::test]
    async fn without_a_terminal_a_call_is_denied_and_remembered() {
        let output = Output::detect(&Env::default(), None, true);
        let approver = TerminalApprover {
            terminal: false,
            denied: Mutex::default(),
            asker: Asker::new(
                (&Env::default(), &paths()),
                output,
                Screen::new(),
                Changes::default(),
            ),
        };
        let subject = QuestionSubject {
            tool: "exec".to_owned(),
            ..QuestionSubject::default()
        };
        let terms = rondo_core::ports::Terms::default();
        let (id, kind) = (CallId::new("c"), QuestionKind::Approval);
        // Words in a command are no reason.
        let prompt = "echo 'text from outside was read'".to_owned();
        let mut question = question_about_call(subject, &id, kind, prompt, &terms);
        question.reasons = vec![AskReason::NotAllowed];
        assert_eq!(approver.denied(), []);
        let reply = approver.ask(&question).await;
        let QuestionReply::Answered(answer, None) = reply else {
            panic!("{reply:?}")
        };
        assert!(matches!(answer.value, AnswerValue::Deny { .. }));
        let call = DeniedCall {
            id,
            tool: "exec".to_owned(),
            arguments: serde_json::Value::Null,
            reasons: vec![AskReason::NotAllowed],
        };
        assert_eq!(approver.denied(), [call]);
    }
}
