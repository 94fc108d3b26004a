//! The task that owns the interpreter, and runs jobs one after the other.

use crate::LiveOutput;
use crate::capture::{Capture, Texts};
use crate::cell::{CellLimits, OutputStream};
use crate::error::{Loss, SessionError, Stop};
use crate::frames::FRAME_BYTES_MAX;
use crate::interpreter::{Event, Interpreter};
use crate::job::{FinishedJob, Job, Reply, Request, TypedInput};
use crate::lent::{LentTerminal, from_person, with_returns};
use crate::settings::{LiveSettings, Settings};
use crate::terminal::Pty;
use serde_json::{Value, json};
use std::future::pending;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

/// How often code that must end is interrupted. The first interrupt may come before the code has
/// begun, or end a program that it waits for and not the code itself.
const INTERRUPTED_EVERY: Duration = Duration::from_millis(100);

/// The bound on pieces of output that wait for the listener; each is at most one read. Output beyond it is
/// kept for the next cell.
const LISTENER_PIECES_MAX: usize = 64;

/// Ends when all senders of jobs are gone.
pub(crate) struct Owner {
    settings: Settings,
    /// Settings of the next job.
    live: Arc<Mutex<LiveSettings>>,
    jobs: mpsc::Receiver<Job>,
    /// Changes when the running code must be interrupted.
    interrupts: watch::Receiver<u64>,
    interpreter: Option<Interpreter>,
    /// Output outside of jobs that had no listener.
    between: Capture,
    /// The listener to output outside of jobs.
    listener: Listener,
    /// How the interpreter was lost, until it is reported.
    loss: Option<Loss>,
    /// Set if the next interpreter replaces a lost one.
    was_lost: bool,
    requests: u64,
    /// How many interpreters were started.
    starts: Arc<AtomicU64>,
}

/// Receiver of output while no job is under way, as long as there is a listener.
#[derive(Clone, Default)]
pub(crate) struct Listener(Arc<Mutex<Option<mpsc::Sender<Vec<u8>>>>>);

impl Listener {
    /// Replaces the former listener.
    pub(crate) fn listen(&self) -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(LISTENER_PIECES_MAX);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Returns whether a listener took it.
    fn tell(&self, bytes: &[u8]) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref().map(|it| it.try_send(bytes.to_vec())) {
            Some(Ok(())) => true,
            Some(Err(TrySendError::Closed(_))) => {
                *kept = None;
                false
            }
            Some(Err(TrySendError::Full(_))) | None => false,
        }
    }
}

/// A request that was sent.
struct PendingRequest {
    id: u64,
    capture: Capture,
    /// Set if output meanwhile is its own.
    owns_output: bool,
    /// The terminal, if it has one.
    lent: Option<LentTerminal>,
    /// Why it was stopped, if it was.
    stopped: Option<Stop>,
}

type Outcome = Result<FinishedJob, SessionError>;

impl Owner {
    pub(crate) fn new(
        settings: Settings,
        live: Arc<Mutex<LiveSettings>>,
        jobs: mpsc::Receiver<Job>,
        interrupts: watch::Receiver<u64>,
        starts: Arc<AtomicU64>,
        listener: Listener,
    ) -> Self {
        Self {
            listener,
            between: Capture::new(settings.output_bytes_max, LiveOutput::discard()),
            settings,
            live,
            jobs,
            interrupts,
            interpreter: None,
            loss: None,
            was_lost: false,
            requests: 0,
            starts,
        }
    }

    pub(crate) async fn serve(mut self) {
        loop {
            tokio::select! {
                job = self.jobs.recv() => match job {
                    Some(job) => self.run(job).await,
                    None => return,
                },
                event = next(&mut self.interpreter) => self.see_between_jobs(event).await,
            }
        }
    }

    async fn see_between_jobs(&mut self, event: Event) {
        match event {
            Event::Output(stream, bytes) => self.take_late(stream, &bytes),
            Event::Terminal(bytes) => self.take_late(OutputStream::Stdout, &bytes),
            // It belongs to no job.
            Event::Reply(_) => {}
            Event::Lost => {
                let SessionError::Lost(loss) = self.lose(None, self.fresh_capture(), None).await
                else {
                    return;
                };
                self.loss = Some(*loss);
            }
        }
    }

    /// Takes output outside of jobs: the listener gets it at once, or else the next cell shows it.
    fn take_late(&mut self, stream: OutputStream, bytes: &[u8]) {
        if !bytes.is_empty() && !self.listener.tell(bytes) {
            self.between.push(stream, bytes);
        }
    }

    async fn run(&mut self, mut job: Job) {
        if job.done.is_closed() {
            return;
        }
        let outcome = self.perform(job.request, &job.until, &mut job.done).await;
        // The caller may be gone by now.
        let _ = job.done.send(outcome);
    }

    async fn perform(
        &mut self,
        mut request: Request,
        until: &CellLimits,
        done: &mut oneshot::Sender<Outcome>,
    ) -> Outcome {
        if let Some(mut loss) = self.loss.take() {
            loss.is_earlier = true;
            return Err(SessionError::Lost(Box::new(loss)));
        }
        let is_restarted = self.interpreter.is_none() && self.was_lost;
        self.take_place();
        tokio::select! {
            // Code that must end may not begin.
            biased;
            stop = told_to_stop(until, done, pending()) => return Err(SessionError::NotRun(stop)),
            started = self.started() => started?,
        }
        let terminal = request.terminal.take();
        let lent = terminal.and_then(|it| LentTerminal::new(it, self.interpreter.as_ref()));
        let body = self.encoded(&request, lent.as_ref())?;
        let at = PendingRequest {
            id: self.requests,
            owns_output: request.owns_output,
            capture: self.capture(request),
            lent,
            stopped: None,
        };
        self.interrupts.borrow_and_update();
        let mut done = self.follow(&body, at, until, done).await?;
        done.is_restarted = is_restarted;
        let directory = self.settings.directory.clone();
        if let Some(number) = done.reply.directory_error {
            let source = io::Error::from_raw_os_error(number);
            let Texts { stdout, stderr, .. } = done.texts;
            self.take_late(OutputStream::Stdout, stdout.as_bytes());
            self.take_late(OutputStream::Stderr, stderr.as_bytes());
            return Err(SessionError::Directory { directory, source });
        }
        if let Some(interpreter) = &mut self.interpreter {
            interpreter.directory = directory;
        }
        Ok(done)
    }

    /// Takes the directory for this job.
    fn take_place(&mut self) {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        self.settings.program.clone_from(&live.program);
        self.settings.directory.clone_from(&live.directory);
    }

    /// Returns the directory that the interpreter has to go to first.
    fn goes_to(&self) -> Option<&Path> {
        let here = &self.interpreter.as_ref()?.directory;
        Some(self.settings.directory.as_path()).filter(|it| it != here)
    }

    /// Starts an interpreter if there is none.
    async fn started(&mut self) -> Result<(), SessionError> {
        if self.interpreter.is_none() {
            self.interpreter = Some(Interpreter::start(&self.settings).await?);
            self.starts.fetch_add(1, Ordering::Relaxed);
            self.was_lost = false;
        }
        Ok(())
    }

    fn encoded(
        &mut self,
        request: &Request,
        lent: Option<&LentTerminal>,
    ) -> Result<Vec<u8>, SessionError> {
        self.requests += 1;
        let mut body = json!({
            "id": self.requests,
            "op": request.operation,
            "args": request.arguments,
        });
        if let (Some(lent), Some(fields)) = (lent, body.as_object_mut()) {
            fields.insert("mark".to_owned(), json!(lent.mark()));
        }
        if let (Some(directory), Some(fields)) = (self.goes_to(), body.as_object_mut()) {
            // A path need not be text.
            let bytes = directory.as_os_str().as_encoded_bytes();
            fields.insert("directory".to_owned(), json!(bytes));
        }
        let body = body.to_string().into_bytes();
        match body.len() > FRAME_BYTES_MAX {
            true => Err(SessionError::TooLong {
                max: FRAME_BYTES_MAX,
            }),
            false => Ok(body),
        }
    }

    fn fresh_capture(&self) -> Capture {
        Capture::new(self.settings.output_bytes_max, LiveOutput::discard())
    }

    fn capture(&mut self, request: Request) -> Capture {
        let mut capture = self.fresh_capture();
        if request.takes_earlier_output {
            std::mem::swap(&mut capture, &mut self.between);
        }
        capture.show_to(request.live);
        capture
    }

    /// Sends the request and waits for its reply, whatever it takes to get one.
    async fn follow(
        &mut self,
        body: &[u8],
        mut at: PendingRequest,
        until: &CellLimits,
        done: &mut oneshot::Sender<Outcome>,
    ) -> Outcome {
        let mut over = pin!(sleep(until.timeout.unwrap_or(Duration::MAX)));
        let mut grace = pin!(sleep(Duration::ZERO));
        let mut again = pin!(sleep(Duration::ZERO));
        if let Some(interpreter) = &mut self.interpreter {
            let queued = interpreter.send(body);
            queued.map_err(|err| SessionError::Internal(err.to_string()))?;
        }
        loop {
            let has_room = self.has_room();
            let event = tokio::select! {
                event = next(&mut self.interpreter) => event,
                what = from_person(&mut at.lent, has_room) => {
                    if let Some(lent) = &mut at.lent {
                        lent.pass_on(what, self.interpreter.as_mut());
                    }
                    continue;
                }
                stop = told_to_stop(until, done, over.as_mut()), if at.stopped.is_none() => {
                    at.stopped = Some(stop);
                    self.interrupt();
                    grace.set(sleep(self.settings.interrupt_grace));
                    again.set(sleep(INTERRUPTED_EVERY));
                    continue;
                }
                () = &mut again, if at.stopped.is_some() => {
                    self.interrupt();
                    again.set(sleep(INTERRUPTED_EVERY));
                    continue;
                }
                () = &mut grace, if at.stopped.is_some() => {
                    let how = "the Python interpreter did not react to an interrupt and was ended";
                    return Err(self.lose(at.stopped, at.capture, Some(how)).await);
                }
                // The sender is the session's, which may go while this job still ends.
                Ok(()) = self.interrupts.changed() => {
                    self.interrupt();
                    continue;
                }
            };
            match event {
                Event::Output(stream, bytes) if !at.owns_output => self.take_late(stream, &bytes),
                Event::Output(stream, bytes) if at.lent.is_some() => {
                    at.capture.push(stream, &with_returns(&bytes));
                }
                Event::Output(stream, bytes) => at.capture.push(stream, &bytes),
                Event::Terminal(bytes) => self.written(&mut at, bytes),
                Event::Reply(frame) if is_for(&frame, at.id) => {
                    return self.finished(frame, at).await;
                }
                Event::Reply(_) => {}
                Event::Lost => return Err(self.lose(at.stopped, at.capture, None).await),
            }
        }
    }

    /// Output that a cell left behind, and that may be written to the terminal if it belongs to no other cell.
    fn written(&mut self, at: &mut PendingRequest, bytes: Vec<u8>) {
        let others = match &mut at.lent {
            Some(lent) => lent.written(&bytes, &mut at.capture),
            None => bytes,
        };
        self.take_late(OutputStream::Stdout, &others);
    }

    fn has_room(&self) -> bool {
        let terminal = self
            .interpreter
            .as_ref()
            .and_then(|it| it.terminal.as_ref());
        terminal.is_some_and(Pty::takes_more)
    }

    fn interrupt(&self) {
        if let Some(interpreter) = &self.interpreter {
            interpreter.interrupt();
        }
    }

    async fn finished(&mut self, frame: Value, mut at: PendingRequest) -> Outcome {
        let mut typed = TypedInput::default();
        let mut late = Vec::new();
        if let Some(interpreter) = &mut self.interpreter {
            if let Some(lent) = at.lent.take() {
                let (read, others) = lent.end(interpreter, &mut at.capture).await;
                (typed, late) = (read, others);
            }
            interpreter.drain(&mut at.capture);
        }
        self.take_late(OutputStream::Stdout, &late);
        let reply: Reply = serde_json::from_value(frame)
            .map_err(|err| SessionError::Internal(format!("the reply is malformed: {err}")))?;
        Ok(FinishedJob {
            reply,
            texts: at.capture.into_texts(),
            typed,
            stopped: at.stopped,
            is_restarted: false,
        })
    }

    /// Ends what is left of the interpreter, and says how it was lost.
    async fn lose(
        &mut self,
        stopped: Option<Stop>,
        mut capture: Capture,
        how: Option<&str>,
    ) -> SessionError {
        self.was_lost = true;
        let mut ended = "the Python interpreter ended".to_owned();
        if let Some(mut interpreter) = self.interpreter.take() {
            if how.is_some() {
                interpreter.kill();
            }
            ended = interpreter.end(&mut capture).await;
        }
        let how = how.map_or(ended, str::to_owned);
        tracing::debug!(how, "a Python interpreter was lost");
        let Texts { stdout, stderr, .. } = capture.into_texts();
        SessionError::Lost(Box::new(Loss {
            how,
            stopped,
            stdout,
            stderr,
            is_earlier: false,
        }))
    }
}

fn is_for(frame: &Value, id: u64) -> bool {
    frame.get("id").and_then(Value::as_u64) == Some(id)
}

/// Waits forever if there is no interpreter.
async fn next(interpreter: &mut Option<Interpreter>) -> Event {
    match interpreter {
        Some(interpreter) => interpreter.next().await,
        None => pending().await,
    }
}

async fn told_to_stop(
    until: &CellLimits,
    done: &mut oneshot::Sender<Outcome>,
    over: impl Future<Output = ()>,
) -> Stop {
    let deadline = async {
        match until.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = until.cancel.cancelled() => Stop::Cancelled,
        () = deadline => Stop::Deadline,
        () = over => Stop::Deadline,
        () = done.closed() => Stop::Unwanted,
    }
}
