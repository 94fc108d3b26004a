//! A person's own cells in a served session: Python in a live session, commands in a shell that is kept, both lent
//! by the host.

use super::actor::Actor;
use super::entry::Entry;
use super::handle::SessionHandle;
use super::host_cell::AskedHostCell;
use super::lent::LentPython;
use super::update::UpdateBody;
use crate::cells::{CODE_BYTES_MAX, KeptShell, cell_finished, shell_output, shell_part};
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::parking;
use crate::sanitize::{Keep, Sanitizer, plain};
use crate::secrets::{self, KeyNames};
use futures_util::future::BoxFuture;
use rondo_core::clock::Clock;
use rondo_core::ports::{CellEnding, RecordBody, Seq};
use rondo_core::redact::{Redactor, Secrets};
use rondo_core::session::Input;
use rondo_exec::shell::{CommandEnd, ShellEvent};
use rondo_python::{CellLimits, LiveOutput};
use rondo_types::TimeMs;
use serde::Serialize;
use std::future::pending;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// The bound on cells that wait in a session.
pub const CELLS_MAX: usize = 64;

/// Milliseconds within which a second stop counts as impatience, and does not end the interpreter.
const GIVE_UP_AFTER_MS: u64 = 2_000;

/// Cell that a person runs in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "language", content = "code", rename_all = "snake_case")]
pub enum Cell {
    /// A command for the shell that is lent to the session.
    Shell(String),
    /// Code for the live Python session that is lent to it.
    Python(String),
}

/// How a cell ended. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "language", rename_all = "snake_case")]
pub enum CellEnd {
    /// Of a command.
    Shell {
        /// As the shell has it.
        exit_code: i32,
        /// Current directory of the shell.
        directory: PathBuf,
        /// Its beginning and its end, as text.
        output: String,
        /// Bytes of the output that are left out.
        omitted_bytes: u64,
        /// Set if the shell had ended and this one is new, without the variables of the old one.
        is_restarted: bool,
        /// Set if the shell ended with it.
        has_shell_ended: bool,
    },
    /// Of Python code, as it is recorded.
    Python {
        /// How it ended.
        ending: CellEnding,
        /// Its beginning and its end, at most about 4 KiB.
        stdout: String,
        /// The same of standard error.
        stderr: String,
        /// The traceback as Python prints it, if the cell raised something. It is in no record.
        #[serde(skip_serializing_if = "Option::is_none")]
        traceback: Option<String>,
        /// Set if the interpreter is a new one, without the variables of the last one.
        is_restarted: bool,
    },
}

/// Event of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CellEvent {
    /// It begins.
    Started {
        /// Running code or command, without secrets.
        cell: Cell,
        /// User of the cell.
        actor: String,
    },
    /// It wrote something, which comes without escape sequences and secrets.
    Output {
        /// Output of the cell.
        text: String,
    },
    /// It is over.
    Ended {
        /// How it ended.
        end: CellEnd,
    },
}

impl CellEvent {
    /// Returns the bytes of its texts.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Self::Started {
                cell: Cell::Shell(code) | Cell::Python(code),
                actor,
            } => code.len() + actor.len(),
            Self::Output { text } => text.len(),
            Self::Ended { end } => match end {
                CellEnd::Shell { output, .. } => output.len(),
                CellEnd::Python {
                    stdout,
                    stderr,
                    traceback,
                    ..
                } => stdout.len() + stderr.len() + traceback.as_ref().map_or(0, String::len),
            },
        }
    }
}

/// A cell that waits for its turn.
pub(super) enum AskedCell {
    /// One that the session runs in what is lent to it.
    Run {
        cell: Cell,
        /// Attaches the output of a command to the next message.
        is_shared: bool,
        actor: String,
        done: oneshot::Sender<Result<CellEnd>>,
    },
    /// One that the host runs.
    OfHost(AskedHostCell),
}

impl AskedCell {
    pub(super) fn refuse(self, error: SetupError) {
        // The requester may be gone.
        match self {
            Self::Run { done, .. } => drop(done.send(Err(error))),
            Self::OfHost(asked) => asked.refuse(error),
        }
    }
}

/// The cell that runs.
pub(super) struct RunningCell {
    work: BoxFuture<'static, FinishedCellRun>,
    stop: Stop,
    done: CellDone,
    /// The record of its beginning.
    started: Option<Seq>,
    is_shared: bool,
}

/// Takes the end of the cell that runs.
enum CellDone {
    /// How one ended that the session ran.
    Run(oneshot::Sender<Result<CellEnd>>),
    /// The record of the end of one that the host ran.
    OfHost(oneshot::Sender<Result<Seq>>),
}

/// Stops a cell: it is interrupted, and given up if the stop is repeated some time after.
#[derive(Debug, Default, Clone)]
pub(super) struct Stop {
    pub(super) interrupted: Arc<Notify>,
    /// When it was interrupted first.
    since: Option<TimeMs>,
    pub(super) given_up: CancellationToken,
}

/// Outcome of a cell.
pub(super) enum FinishedCellRun {
    /// Record of the host about its own cell; `None` if it dropped that.
    OfHost(Option<Box<RecordBody>>),
    Shell(Result<(CommandEnd, bool)>, String),
    /// Its record, and the traceback if it raised something.
    Python(Box<RecordBody>, Option<String>),
}

impl RunningCell {
    pub(super) async fn next(&mut self) -> FinishedCellRun {
        (&mut self.work).await
    }

    /// Interrupts it and waits for nothing, as the session was lost.
    pub(super) fn abandon(self) {
        drop(self.work);
        match self.done {
            CellDone::Run(done) => drop(done.send(Err(lost_meanwhile()))),
            CellDone::OfHost(done) => drop(done.send(Err(lost_meanwhile()))),
        }
    }

    pub(super) fn stop(&mut self, now: TimeMs) {
        let since = *self.stop.since.get_or_insert(now);
        match now.0.saturating_sub(since.0) < GIVE_UP_AFTER_MS {
            true => self.stop.interrupted.notify_one(),
            false => self.stop.given_up.cancel(),
        }
    }
}

/// Waits forever if none runs.
pub(super) async fn next_cell(running: &mut Option<RunningCell>) -> FinishedCellRun {
    match running {
        Some(running) => running.next().await,
        None => pending().await,
    }
}

impl SessionHandle {
    /// Runs a person's own cell in what is lent to the session, once no turn runs in it, and before messages that
    /// wait. Listeners receive it as it runs.
    ///
    /// A Python cell is recorded, and its first one begins the session's record. The output of a command goes along
    /// with the next message that is submitted here.
    ///
    /// # Errors
    /// When nothing that runs it is lent to the session, too many cells wait, it is too long, the session cannot be
    /// taken or is closed meanwhile, or the cell cannot be recorded. An exception of the code is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the cell to run; [`cancel`](Self::cancel) stops it.
    pub async fn cell(&self, cell: Cell) -> Result<CellEnd> {
        self.run_cell(cell, true).await
    }

    /// Does the same, and what a command prints is the person's alone: it goes along with no message.
    ///
    /// # Errors
    /// As [`cell`](Self::cell).
    ///
    /// # Cancel safety
    /// As [`cell`](Self::cell).
    pub async fn private_cell(&self, cell: Cell) -> Result<CellEnd> {
        self.run_cell(cell, false).await
    }

    async fn run_cell(&self, cell: Cell, is_shared: bool) -> Result<CellEnd> {
        self.refuse_if_read_only()?;
        let (Cell::Shell(code) | Cell::Python(code)) = &cell;
        if code.len() > CODE_BYTES_MAX {
            let message = format!("a cell has at most {CODE_BYTES_MAX} bytes");
            return Err(SetupError::new(SetupErrorKind::Usage, message));
        }
        self.entry.is_lent(&cell)?;
        let (done, end) = oneshot::channel();
        let asked = AskedCell::Run {
            cell,
            is_shared,
            actor: self.user(),
            done,
        };
        self.entry.ask_cell(asked)?;
        end.await.unwrap_or_else(|_| Err(not_run()))
    }
}

impl Entry {
    pub(super) fn python(&self) -> Option<Arc<LentPython>> {
        self.service.loans.python(&self.id)
    }

    /// Adds the keys that the shell has which is lent to the session.
    pub(super) fn with_shells(&self, secrets: Secrets) -> Secrets {
        match self.service.loans.shell(&self.id) {
            Some(lent) => secrets.with(lent.secrets().reveal().iter().cloned()),
            None => secrets,
        }
    }

    fn is_lent(&self, cell: &Cell) -> Result<()> {
        let loans = &self.service.loans;
        match cell {
            Cell::Shell(_) if loans.shell(&self.id).is_none() => Err(not_lent("shell")),
            Cell::Python(_) if loans.python(&self.id).is_none() => {
                Err(not_lent("live Python session"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn ask_cell(self: &Arc<Self>, asked: AskedCell) -> Result<()> {
        if self.drains() {
            return Err(not_run());
        }
        let mut refused = None;
        self.ask(|work| match work.cells.len() < CELLS_MAX {
            true => work.cells.push(asked),
            false => refused = Some(asked),
        });
        match refused {
            None => Ok(()),
            Some(_) => {
                let message = format!("{CELLS_MAX} cells are already waiting");
                Err(SetupError::new(SetupErrorKind::Usage, message))
            }
        }
    }
}

impl Actor {
    /// Takes the cells that were asked for.
    pub(super) async fn take_cells(&mut self) {
        let asked = std::mem::take(&mut self.entry.work().cells);
        for cell in asked {
            self.cells.push_back(cell);
            self.input(Input::CellAsked).await;
            // One that cannot be run is refused, and the next one is tried.
            self.refuse_cells();
        }
    }

    /// Refuses the cells that cannot be run, as the session cannot be taken, was lost, or is closing.
    pub(super) fn refuse_cells(&mut self) {
        if !self.machine.is_at_rest() {
            return;
        }
        let error = self.cell_error.take().unwrap_or_else(not_run);
        for cell in self.cells.drain(..) {
            cell.refuse(error.clone());
        }
    }

    pub(super) async fn run_cell(&mut self) {
        let Some(asked) = self.cells.pop_front() else {
            return self.inputs.push_back(Input::CellEnded);
        };
        let (cell, is_shared, actor, done) = match asked {
            AskedCell::Run {
                cell,
                is_shared,
                actor,
                done,
            } => (cell, is_shared, actor, done),
            AskedCell::OfHost(asked) => return self.run_host_cell(asked).await,
        };
        match self.begin_cell(cell, actor).await {
            Ok((work, stop, started)) => {
                self.cell = Some(RunningCell {
                    work,
                    stop,
                    done: CellDone::Run(done),
                    started,
                    is_shared,
                });
            }
            Err(error) => {
                let _ = done.send(Err(error));
                self.inputs.push_back(Input::CellEnded);
            }
        }
    }

    /// Records the beginning of a cell that the host runs, and waits for its end.
    async fn run_host_cell(&mut self, asked: AskedHostCell) {
        let begun = match &mut self.session {
            Some(session) => asked.begin(session).await,
            None => Err((not_run(), asked)),
        };
        match begun {
            Ok(begun) => {
                let end = begun.end;
                self.cell = Some(RunningCell {
                    work: Box::pin(
                        async move { FinishedCellRun::OfHost(end.await.ok().map(Box::new)) },
                    ),
                    stop: begun.stop,
                    done: CellDone::OfHost(begun.recorded),
                    started: None,
                    is_shared: false,
                });
                let event = CellEvent::Started {
                    cell: Cell::Python(begun.shown),
                    actor: parking::user(self.entry.service.runtime.env()),
                };
                self.tell(UpdateBody::Cell { event });
            }
            Err((error, asked)) => {
                asked.refuse(error);
                self.inputs.push_back(Input::CellEnded);
            }
        }
    }

    /// Records its beginning and reports it; nothing of it runs before.
    async fn begin_cell(
        &mut self,
        cell: Cell,
        actor: String,
    ) -> Result<(BoxFuture<'static, FinishedCellRun>, Stop, Option<Seq>)> {
        let session = self.session.as_mut().ok_or_else(not_run)?;
        let key = session.runtime().connected_key();
        let secrets = secrets::of_env(&session.settings).with(key);
        let secrets = self.entry.with_shells(secrets);
        let entry = Arc::clone(&self.entry);
        let stop = Stop::default();
        let hidden = |code: &str| secrets.text(code.to_owned());
        let loans = &self.entry.service.loans;
        let (work, started, shown): (BoxFuture<'static, FinishedCellRun>, _, _) = match cell {
            Cell::Python(code) => {
                let lent = loans.python(&self.entry.id);
                let lent = lent.ok_or_else(|| not_lent("live Python session"))?;
                let started = session.cell_starts(&code, &secrets).await?;
                let shown = Cell::Python(hidden(&code));
                let live = Live::new(entry, &secrets);
                let work = python_cell(lent, code, live, stop.clone(), secrets.clone());
                (Box::pin(work), started, shown)
            }
            Cell::Shell(command) => {
                let lent = loans.shell(&self.entry.id);
                let lent = lent.ok_or_else(|| not_lent("shell"))?;
                let names = KeyNames::of(&session.settings);
                let masked = hidden(&lent.mask(&command, &names));
                let shown = masked.clone();
                let cell = ShellCell {
                    lent,
                    command,
                    shown,
                    names,
                    secrets: secrets.clone(),
                };
                let work = shell_cell(cell, entry, stop.clone());
                (Box::pin(work), None, Cell::Shell(masked))
            }
        };
        self.entry.tell_unrecorded(UpdateBody::Cell {
            event: CellEvent::Started { cell: shown, actor },
        });
        Ok((work, stop, started))
    }

    /// Interrupts the cell that runs.
    pub(super) fn stop_cell(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.stop(Clock::system().now());
        }
    }

    /// Asks for the session again, which is let go of if a turn could not begin: cells need none.
    pub(super) fn ask_cells_again(&mut self) {
        match self.entry.drains() {
            true => self.refuse_cells(),
            false => {
                let again = self.cells.iter().map(|_| Input::CellAsked);
                self.inputs.extend(again);
            }
        }
    }

    /// Records how a cell ended, reports it, and notifies the requester.
    pub(super) async fn cell_is_over(&mut self, finished: FinishedCellRun) {
        let Some(RunningCell {
            done,
            started,
            is_shared,
            ..
        }) = self.cell.take()
        else {
            return;
        };
        let done = match done {
            CellDone::Run(done) => done,
            CellDone::OfHost(recorded) => {
                self.host_cell_is_over(finished, recorded).await;
                return self.input(Input::CellEnded).await;
            }
        };
        let end = match finished {
            FinishedCellRun::OfHost(_) => Err(not_run()),
            FinishedCellRun::Shell(ended, shown) => ended.map(|(end, is_restarted)| {
                if is_shared {
                    self.entry.attached().add(shell_part(&shown, &end));
                }
                of_command(end, is_restarted)
            }),
            FinishedCellRun::Python(body, traceback) => {
                self.python_is_over(*body, traceback, started).await
            }
        };
        let body = match &end {
            Ok(end) => UpdateBody::Cell {
                event: CellEvent::Ended { end: end.clone() },
            },
            Err(error) => UpdateBody::Failed {
                message: error.to_string(),
                hint: error.hint.clone(),
            },
        };
        self.entry.tell_unrecorded(body);
        // The requester may be gone.
        let _ = done.send(end);
        self.input(Input::CellEnded).await;
    }

    /// Records how a cell of the host ended, and reports it. Nothing is recorded if the host dropped it.
    async fn host_cell_is_over(
        &mut self,
        finished: FinishedCellRun,
        recorded: oneshot::Sender<Result<Seq>>,
    ) {
        let returned = CellEnd::Python {
            ending: CellEnding::Returned { value_repr: None },
            stdout: String::new(),
            stderr: String::new(),
            traceback: None,
            is_restarted: false,
        };
        let end = match finished {
            FinishedCellRun::OfHost(Some(body)) => {
                let end = of_python(&body, None);
                // The host may have stopped waiting.
                let _ = recorded.send(self.record_end(*body).await);
                end.unwrap_or(returned)
            }
            _ => returned,
        };
        let event = CellEvent::Ended { end };
        self.tell(UpdateBody::Cell { event });
    }

    /// Records how a cell ended.
    async fn record_end(&mut self, body: RecordBody) -> Result<Seq> {
        let conversation = self.session.as_ref().and_then(|it| it.conversation());
        let conversation = conversation.ok_or_else(lost_meanwhile)?;
        conversation.record(body).await
    }

    async fn python_is_over(
        &mut self,
        body: RecordBody,
        traceback: Option<String>,
        started: Option<Seq>,
    ) -> Result<CellEnd> {
        let end = of_python(&body, traceback);
        if let Some(started) = started {
            let has_run = !is_gone(&body);
            let last = self.record_end(body).await?;
            if let Some(lent) = self.entry.python().filter(|_| has_run) {
                lent.ran(&self.entry.id, started, last);
            }
        }
        end.ok_or_else(not_run)
    }
}

/// Returns whether nothing is left in the interpreter of what a cell did.
fn is_gone(body: &RecordBody) -> bool {
    let RecordBody::CellFinished { ending, .. } = body else {
        return true;
    };
    matches!(ending, CellEnding::Lost { .. } | CellEnding::NotRun { .. })
}

async fn python_cell(
    lent: Arc<LentPython>,
    code: String,
    live: Arc<Live>,
    stop: Stop,
    secrets: Secrets,
) -> FinishedCellRun {
    let clock = Clock::system();
    let began = clock.now();
    let until = CellLimits {
        cancel: stop.given_up.clone(),
        ..CellLimits::default()
    };
    let telling = Arc::clone(&live);
    let output = LiveOutput::new(move |_, text| telling.write(text.as_bytes()));
    let interrupting = async {
        loop {
            stop.interrupted.notified().await;
            lent.session().interrupt();
        }
    };
    let ended = tokio::select! {
        ended = lent.run(&code, output, until) => ended,
        never = interrupting => match never {},
    };
    live.end();
    let is_new = lent.sync();
    let took = Duration::from_millis(clock.now().0.saturating_sub(began.0));
    let body = cell_finished(&ended, is_new, took, &secrets);
    let exception = ended.as_ref().ok().and_then(|end| end.exception.as_ref());
    let traceback = exception.map(|raised| secrets.text(plain(raised.traceback.trim_end())));
    FinishedCellRun::Python(Box::new(body), traceback)
}

/// A command on its way into a shell.
struct ShellCell {
    lent: Arc<KeptShell>,
    command: String,
    /// The command without keys.
    shown: String,
    names: KeyNames,
    secrets: Secrets,
}

impl ShellCell {
    /// Returns the secrets that are kept out of its output, with the keys that the shell has by now.
    fn secrets(&self) -> Secrets {
        self.lent.learn_keys(&self.names);
        let known = self.lent.secrets();
        self.secrets.with(known.reveal().iter().cloned())
    }
}

async fn shell_cell(cell: ShellCell, entry: Arc<Entry>, stop: Stop) -> FinishedCellRun {
    let ended = tokio::select! {
        ended = command_in(&cell, entry, &stop) => ended,
        () = stop.given_up.cancelled() => {
            let message = "the command ignores interrupts, and was left running";
            let hint = "the shell's next command waits for its end; the host ends both by dropping the shell";
            Err(SetupError::new(SetupErrorKind::Other, message).hint(hint))
        }
    };
    // It may have printed what it exported.
    let secrets = cell.secrets();
    let ended = ended.map(|(mut end, is_restarted)| {
        end.captured = secrets.text(end.captured);
        (end, is_restarted)
    });
    let shown = secrets.text(cell.shown);
    FinishedCellRun::Shell(ended, shown)
}

async fn command_in(
    cell: &ShellCell,
    entry: Arc<Entry>,
    stop: &Stop,
) -> Result<(CommandEnd, bool)> {
    let failed = |err| SetupError::caused(SetupErrorKind::Other, err);
    let shell = &cell.lent.shell;
    // The exports of its start files are known then.
    shell.settled().await;
    let secrets = cell.secrets();
    shell.set_secrets(secrets.clone());
    let live = Live::new(entry, &secrets);
    let mut running = shell.run(&cell.command).await.map_err(failed)?;
    let keyboard = running.keyboard();
    let mut watched = cell.lent.watched(keyboard.clone()).await;
    let mut is_restarted = false;
    loop {
        let event = tokio::select! {
            event = running.next() => event.map_err(failed)?,
            () = stop.interrupted.notified() => {
                keyboard.interrupt().await;
                continue;
            }
        };
        match event {
            Some(ShellEvent::Restarted) => is_restarted = true,
            Some(ShellEvent::Output(bytes)) => {
                live.write(&bytes);
                if let Some(watched) = &watched {
                    watched.output(&bytes).await;
                }
            }
            Some(ShellEvent::Ended(end)) => {
                live.end();
                if let Some(watched) = &mut watched {
                    watched.unread.clone_from(&end.unread_input);
                }
                return Ok((*end, is_restarted));
            }
            None => return Err(not_run()),
        }
    }
}

/// Output of a cell on its way to listeners.
struct Live {
    entry: Arc<Entry>,
    /// Under one lock, so that pieces stay in order.
    filter: Mutex<Filter>,
}

struct Filter {
    redactor: Redactor,
    sanitizer: Sanitizer,
    /// The beginning of a character whose end did not come yet.
    rest: Vec<u8>,
}

impl Live {
    fn new(entry: Arc<Entry>, secrets: &Secrets) -> Arc<Self> {
        let filter = Filter {
            redactor: secrets.redactor(),
            sanitizer: Sanitizer::new(Keep::Text),
            rest: Vec::new(),
        };
        Arc::new(Self {
            entry,
            filter: Mutex::new(filter),
        })
    }

    fn write(&self, bytes: &[u8]) {
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = filter.redactor.push(bytes).into_owned();
        let text = filter.text(&passed, false);
        self.tell(text);
    }

    /// Sends the output that was held back.
    fn end(&self) {
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = filter.redactor.finish();
        let text = filter.text(&passed, true);
        self.tell(text);
    }

    fn tell(&self, text: String) {
        if !text.is_empty() {
            let event = CellEvent::Output { text };
            self.entry.tell_unrecorded(UpdateBody::Cell { event });
        }
    }
}

impl Filter {
    fn text(&mut self, bytes: &[u8], is_end: bool) -> String {
        self.rest.extend_from_slice(bytes);
        let mut whole = self.rest.len();
        if let (false, Some(cut)) = (is_end, self.rest.utf8_chunks().last()) {
            let open = cut.invalid();
            let is_open = std::str::from_utf8(open).is_err_and(|err| err.error_len().is_none());
            if is_open {
                whole -= open.len();
            }
        }
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        self.sanitizer.push(&String::from_utf8_lossy(&text))
    }
}

fn of_command(end: CommandEnd, is_restarted: bool) -> CellEnd {
    let output = shell_output(&end);
    CellEnd::Shell {
        exit_code: end.exit_code,
        directory: end.directory,
        output,
        omitted_bytes: end.omitted_bytes,
        is_restarted,
        has_shell_ended: end.shell_end.is_some(),
    }
}

fn of_python(body: &RecordBody, traceback: Option<String>) -> Option<CellEnd> {
    match body {
        RecordBody::CellFinished {
            ending,
            stdout,
            stderr,
            is_restarted,
            ..
        } => Some(CellEnd::Python {
            ending: ending.clone(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            traceback,
            is_restarted: *is_restarted,
        }),
        _ => None,
    }
}

pub(super) fn not_lent(what: &str) -> SetupError {
    let message = format!("this session has no {what}");
    SetupError::new(SetupErrorKind::Usage, message).hint("the host must provide one")
}

fn lost_meanwhile() -> SetupError {
    let message = "another process took the session while the cell ran, which was interrupted; its end is not recorded";
    SetupError::new(SetupErrorKind::SessionInUse, message)
}

pub(super) fn not_run() -> SetupError {
    let message = "the session was closed or lost, and the cell did not run";
    SetupError::new(SetupErrorKind::SessionInUse, message)
}
