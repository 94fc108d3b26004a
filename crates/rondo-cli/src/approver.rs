//! Asks the user at the terminal whether a call may run.

use crate::changes::{Changes, Look};
use crate::output::{Output, for_terminal, has_person};
use crate::remember::{self, Remember};
use crate::render::{DeniedCall, Fitted, asks_for, fitted, in_full, offer_of_rest};
use crate::screen::Screen;
use async_trait::async_trait;
use rondo_core::{Approver, QuestionReply};
use rondo_runtime::env::Env;
use rondo_runtime::form::{Form, FormStep};
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::parking;
use rondo_runtime::paths::Paths;
use rondo_runtime::sanitize::plain;
use rondo_runtime::settings::Settings;
use rondo_types::{AnswerValue, Grant, Question, QuestionKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, isatty, tcflush, tcgetpgrp, tcgetwinsize};
use serde_json::Value;
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
/// What stands below a change of the user's rules.
const WRITE_CHOICE: &str = "Write this and run it? y/n, then Enter (Enter alone: no) ";
/// Rows and columns when the terminal does not say.
const SIZE_DEFAULT: (u16, u16) = (24, 80);
/// Unreadable answers after which the call is denied.
const ATTEMPTS_MAX: u32 = 3;

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
    screen: Screen,
    changes: Changes,
    has_color: bool,
    policy: UserPolicy,
    /// The user's name, for the record of what they allow from then on.
    user: String,
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
            screen,
            changes,
            has_color: output.stderr_color,
            policy: UserPolicy::of(&settings.paths),
            user: parking::user(env),
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
            screen: Screen::new(),
            changes: Changes::default(),
            has_color: output.stderr_color,
            policy: UserPolicy::of(&paths),
            user: parking::user(env),
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
        // Nobody has said that the money or the folder's trust is refused.
        if matches!(question.kind, QuestionKind::Budget | QuestionKind::Trust) {
            return QuestionReply::Later { expires: None };
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
        self.denied_because(question, reason)
    }

    fn denied_because(&self, question: &Question, reason: &str) -> QuestionReply {
        QuestionReply::denied(question, &self.user, reason)
    }

    /// Asks whether something may be done.
    async fn allow(&self, question: &Question) -> QuestionReply {
        let Some(terminal) = self.terminal.then(open).flatten() else {
            return self.deny_for_lack_of_a_terminal(question);
        };
        let put = Put {
            look: self.changes.look(question).await,
            question: question.clone(),
            has_color: self.has_color,
            policy: self.policy.clone(),
        };
        self.screen.aside().await;
        let mut answer = question.answered(&self.user, AnswerValue::Approve);
        match blocking(move |abandoned| converse(&terminal, &put, abandoned)).await {
            Ok(Said::Yes(grant)) => answer.remember = grant,
            Ok(Said::No) => return self.denied_because(question, AnswerValue::NO),
            // Nobody has said that the folder is not trusted.
            Err(_) if question.kind == QuestionKind::Trust => {
                return QuestionReply::Later { expires: None };
            }
            Err(err) => return self.denied_because(question, &not_asked(&err)),
        }
        QuestionReply::Answered(answer, None)
    }

    /// Asks for a value.
    async fn value(&self, question: &Question, schema: &Value) -> QuestionReply {
        let Some(form) = Form::of(schema) else {
            return self.denied_because(question, "it asks for too much at once");
        };
        let Some(terminal) = self.terminal.then(open).flatten() else {
            return self.denied_because(question, "there is no terminal to ask on");
        };
        let words = question.prompt.clone();
        match blocking(move |abandoned| values(&terminal, &words, form, abandoned)).await {
            Ok(value) => QuestionReply::answered(question, &self.user, value),
            Err(err) => self.denied_because(question, &not_asked(&err)),
        }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        // The view makes room for a question about a call by itself.
        let _held = match question.is_about_call() {
            true => None,
            false => Some(self.screen.hold().await),
        };
        self.screen.set_open(Some(question.id.clone()));
        let reply = match &question.kind {
            QuestionKind::Input { schema } => self.value(question, schema).await,
            _ => self.allow(question).await,
        };
        self.screen.set_open(None);
        reply
    }
}

fn not_asked(err: &io::Error) -> String {
    format!("the question could not be asked: {err}")
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

/// Asks for each field of a value, on a thread that may block.
fn values(
    mut terminal: &File,
    words: &str,
    mut form: Form,
    abandoned: &AtomicBool,
) -> io::Result<AnswerValue> {
    terminal.write_all(for_terminal(&format!("\r\x1b[K{words}\n")).as_bytes())?;
    loop {
        let line = typed(terminal, &form.prompt(), abandoned)?;
        match form.answer(&line) {
            FormStep::Next(None) => {}
            FormStep::Next(Some(why)) => writeln!(terminal, "{why}")?,
            FormStep::Done(value) => return Ok(AnswerValue::value(value)),
            FormStep::Declined(reason) => return Ok(AnswerValue::deny(reason)),
        }
    }
}

/// A question, and what it is shown with.
struct Put {
    question: Question,
    look: Look,
    has_color: bool,
    policy: UserPolicy,
}

/// What the user said.
enum Said {
    /// Yes, and what runs from then on.
    Yes(Option<Grant>),
    No,
}

/// Returns whether a stream is a device without a person, such as `/dev/null`: giving that says that there is
/// no user.
fn is_closed(stream: impl AsFd) -> bool {
    let kind = fstat(&stream).map(|it| FileType::from_raw_mode(it.st_mode));
    kind.map_or(true, |kind| kind == FileType::CharacterDevice) && !isatty(&stream)
}

/// Opens the terminal, where one could be asked on: in the background, reading would stop the process.
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
fn converse(terminal: &File, put: &Put, abandoned: &AtomicBool) -> io::Result<Said> {
    let mut is_whole = false;
    let mut attempts = 0;
    while attempts < ATTEMPTS_MAX {
        let Fitted { text, left_out } = shown(terminal, put, is_whole);
        let offers = match left_out {
            0 => put.question.offers.as_slice(),
            // Nothing is allowed from now on of which a part was not seen.
            _ => &[],
        };
        let (letters, meaning) = remember::choice(offers);
        let kind = &put.question.kind;
        let rest = offer_of_rest(kind, left_out);
        let view = if left_out > 0 { "/v" } else { "" };
        let asks = asks_for(kind);
        let choice =
            format!("{meaning}{rest}{asks}y/n{letters}{view}, then Enter (Enter alone: no) ");
        let answer = asked(terminal, &format!("{text}{choice}"), abandoned)?;
        match answer.as_str() {
            "y" | "yes" => return Ok(Said::Yes(None)),
            "n" | "no" | "" => return Ok(Said::No),
            "v" | "view" if left_out > 0 => {
                is_whole = true;
                continue;
            }
            _ => attempts += 1,
        }
        match remember::chosen(&answer, offers) {
            Some(Remember::InSession(grant)) => return Ok(Said::Yes(Some(grant))),
            Some(Remember::ForEver(grant)) if is_written(terminal, put, &grant, abandoned)? => {
                return Ok(Said::Yes(Some(grant)));
            }
            Some(Remember::ForEver(_)) | None => {}
        }
    }
    Ok(Said::No)
}

/// Shows what would change in the user's rules, and writes it if they agree.
fn is_written(
    mut terminal: &File,
    put: &Put,
    grant: &Grant,
    abandoned: &AtomicBool,
) -> io::Result<bool> {
    let written = match remember::shown_change(&put.policy, grant) {
        Ok((change, diff)) => {
            let answer = asked(terminal, &format!("{diff}{WRITE_CHOICE}"), abandoned)?;
            match matches!(answer.as_str(), "y" | "yes") {
                true => change.save(),
                false => return Ok(false),
            }
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &written {
        writeln!(terminal, "{}", plain(&error.line()))?;
    }
    Ok(written.is_ok())
}

/// Puts a question, and returns the answer in lower case.
fn asked(terminal: &File, question: &str, abandoned: &AtomicBool) -> io::Result<String> {
    let answer = typed(terminal, question, abandoned)?;
    Ok(answer.trim().to_ascii_lowercase())
}

/// Puts a question, and returns the line that answers it.
fn typed(mut terminal: &File, question: &str, abandoned: &AtomicBool) -> io::Result<String> {
    // What was typed before the question could be read is no answer to it.
    tcflush(terminal, QueueSelector::IFlush)?;
    terminal.write_all(for_terminal(&format!("\r\x1b[K{question}")).as_bytes())?;
    let answer = read_line(terminal, abandoned)?;
    if !answer.ends_with('\n') {
        // Ctrl-D ends an answer without ending its line.
        writeln!(terminal)?;
    }
    Ok(answer)
}

/// Lays a question out anew each time: the terminal may have another size.
fn shown(terminal: &File, put: &Put, is_whole: bool) -> Fitted {
    let (rows, columns) = tcgetwinsize(terminal)
        .ok()
        .filter(|size| size.ws_row > 0 && size.ws_col > 0)
        .map_or(SIZE_DEFAULT, |size| (size.ws_row, size.ws_col));
    let Put { question, look, .. } = put;
    let (prompt, arguments) = (&question.prompt, &question.subject.arguments);
    let has_color = put.has_color;
    match is_whole {
        true => Fitted {
            text: in_full(prompt, arguments, look, columns.into(), has_color),
            left_out: 0,
        },
        false => fitted(
            prompt,
            arguments,
            look,
            (rows.into(), columns.into()),
            has_color,
        ),
    }
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
    use rondo_types::{AskReason, CallId, QuestionSubject};

    fn paths() -> Paths {
        Paths::find(&Env::of(&[("RONDO_HOME", "/nowhere")])).unwrap()
    }

    #[tokio::test]
    async fn without_a_terminal_a_call_is_denied_and_remembered() {
        let approver = TerminalApprover {
            terminal: false,
            denied: Mutex::default(),
            screen: Screen::new(),
            changes: Changes::default(),
            has_color: false,
            policy: UserPolicy::of(&paths()),
            user: "ada".to_owned(),
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
            arguments: Value::Null,
            reasons: vec![AskReason::NotAllowed],
        };
        assert_eq!(approver.denied(), [call]);
    }
}
