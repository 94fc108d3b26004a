//! A live Python session, started when it is first needed.

use crate::capability::{Capability, ReadOnlyNames};
use crate::cell::{CellEnd, CellLimits, Completeness, Exception, LiveOutput};
use crate::error::SessionError;
use crate::job::{FinishedJob, Job, Reply, Request};
use crate::outcome;
use crate::owner::{Listener, Owner};
use crate::settings::{LiveSettings, Settings};
use crate::terminal::CellTerminal;
use rondo_types::ToolOutcome;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Jobs that may wait for the interpreter; who comes later waits to be let in.
const JOBS_WAITING_MAX: usize = 64;
/// How long something may run that a person waits for while typing.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// A live Python session: one interpreter whose variables stay from call to call.
///
/// It is started when it is first needed, and again after it was lost. Those that use the session, a
/// person or a model, takes turns in the order in which they came. Its asynchronous functions are
/// called within a Tokio runtime. Dropping the session ends the interpreter and all that it runs.
///
/// # Cancel safety
/// All of its functions are cancel safe in this sense: dropping a future interrupts the code that
/// runs for it, and what waits its turn is not begun.
pub struct Session {
    settings: Settings,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    interrupts: watch::Sender<u64>,
    starts: Arc<AtomicU64>,
    listener: Listener,
    live: Arc<Mutex<LiveSettings>>,
}

impl Session {
    /// Takes the settings. Nothing is started yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            live: Arc::new(Mutex::new(LiveSettings::of(&settings))),
            settings,
            jobs: Mutex::default(),
            interrupts: watch::Sender::new(0),
            starts: Arc::default(),
            listener: Listener::default(),
        }
    }

    /// Returns the settings that it began with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes the directory of later code, given by absolute path. Running code stays
    /// where it is; the variables stay. `program` is the interpreter that would be started there.
    ///
    /// Code may go elsewhere by itself (`os.chdir`), and stays there until this names a directory that is
    /// another than the one it named last.
    pub fn go_to(&self, program: PathBuf, directory: PathBuf) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        *live = LiveSettings { program, directory };
    }

    /// Returns the output that threads and children write from here on while no cell and no call runs, as it
    /// comes. It is not part of the next cell then; output that comes once the receiver is gone is.
    #[must_use]
    pub fn late_output(&self) -> mpsc::Receiver<Vec<u8>> {
        self.listener.listen()
    }

    /// Calls one of the functions that a model may call.
    ///
    /// A good result is the function's own object, as [`Capability`] describes it. Exceptions and a
    /// lost interpreter are results too.
    pub async fn call(
        &self,
        capability: Capability,
        arguments: &Value,
        until: CellLimits,
    ) -> ToolOutcome {
        let live = LiveOutput::discard();
        self.call_with(
            (capability, ReadOnlyNames::Anything),
            arguments,
            until,
            live,
        )
        .await
    }

    /// Calls a function that may look at no more than it says.
    pub(crate) async fn call_with(
        &self,
        (capability, looks): (Capability, ReadOnlyNames),
        arguments: &Value,
        until: CellLimits,
        live: LiveOutput,
    ) -> ToolOutcome {
        let arguments = match capability.arguments(arguments, looks) {
            Ok(arguments) => arguments,
            Err(message) => return outcome::invalid(message),
        };
        let request = Request {
            operation: capability.operation(looks),
            arguments,
            live,
            takes_earlier_output: capability == Capability::RunCode,
            owns_output: true,
            terminal: None,
        };
        outcome::of(capability, self.ask(request, until).await)
    }

    /// Runs a cell: any number of lines, whose last expression's value is its own. `await` may be
    /// outside of functions.
    ///
    /// # Errors
    /// When the interpreter cannot be started, or was lost meanwhile or before. An exception of the code
    /// is not an error.
    pub async fn run_cell(
        &self,
        code: &str,
        live: LiveOutput,
        until: CellLimits,
    ) -> Result<CellEnd, SessionError> {
        self.run_cell_with(code, live, until, None).await
    }

    /// Runs a cell as [`Self::run_cell`], at the user's terminal: it may read what the user types.
    /// Its output goes to `live` as for a terminal that is set to pass everything on. Without
    /// [`Settings::has_terminal`], the cell has an empty standard input all the same.
    ///
    /// # Errors
    /// As [`Self::run_cell`].
    pub async fn run_cell_at_terminal(
        &self,
        code: &str,
        live: LiveOutput,
        until: CellLimits,
        terminal: CellTerminal,
    ) -> Result<CellEnd, SessionError> {
        self.run_cell_with(code, live, until, Some(terminal)).await
    }

    async fn run_cell_with(
        &self,
        code: &str,
        live: LiveOutput,
        until: CellLimits,
        terminal: Option<CellTerminal>,
    ) -> Result<CellEnd, SessionError> {
        let at_terminal = terminal.is_some();
        let request = Request {
            operation: "run_cell",
            arguments: json!({ "code": code }),
            live,
            takes_earlier_output: true,
            owns_output: true,
            terminal,
        };
        let done = self.ask(request, until).await?;
        let (stopped, is_restarted, texts) = (done.stopped, done.is_restarted, done.texts);
        let result: CellResult = read(done.reply)?;
        let stdout = match at_terminal {
            true => texts.stdout.replace("\r\n", "\n"),
            false => texts.stdout,
        };
        Ok(CellEnd {
            value_repr: result.value_repr,
            truncated: result.truncated,
            stdout,
            stderr: texts.stderr,
            exception: result.exception,
            leaves: result.leaves,
            unread_input: done.typed.unread,
            has_read_input: done.typed.has_read,
            stopped: stopped.filter(|_| result.interrupted),
            is_restarted,
        })
    }

    /// Says whether a cell can be run as it is or needs more lines. A block needs an empty line at
    /// its end.
    ///
    /// # Errors
    /// As [`Self::run_cell`].
    pub async fn is_complete(&self, code: &str) -> Result<Completeness, SessionError> {
        #[derive(Deserialize)]
        struct Told {
            state: Completeness,
        }
        let told: Told = self
            .ask_soon("is_complete", json!({ "code": code }))
            .await?;
        Ok(told.state)
    }

    /// Returns completions for the name or the attribute at the end of a text: at most 256 names,
    /// sorted, with all that is before the last dot. Calls nothing.
    ///
    /// # Errors
    /// As [`Self::run_cell`], and when an object takes longer to list its attributes than a person
    /// would wait.
    pub async fn complete(&self, text: &str) -> Result<Vec<String>, SessionError> {
        #[derive(Deserialize)]
        struct Told {
            names: Vec<String>,
        }
        let told: Told = self.ask_soon("complete", json!({ "text": text })).await?;
        Ok(told.names)
    }

    /// Returns the exception that code raised last, if any did. Looks that fail do not count.
    ///
    /// # Errors
    /// As [`Self::run_cell`].
    pub async fn last_exception(&self) -> Result<Option<Exception>, SessionError> {
        #[derive(Deserialize)]
        struct Told {
            exception: Option<Exception>,
        }
        let told: Told = self.ask_soon("get_last_exception", json!({})).await?;
        Ok(told.exception)
    }

    /// Returns the names of the globals, at most 1,024, without modules and names that begin with an
    /// underscore.
    ///
    /// # Errors
    /// As [`Self::run_cell`].
    pub async fn global_names(&self) -> Result<Vec<String>, SessionError> {
        #[derive(Deserialize)]
        struct Told {
            globals: Vec<Global>,
        }
        #[derive(Deserialize)]
        struct Global {
            name: String,
        }
        let told: Told = self
            .ask_soon("list_globals", json!({ "all": false }))
            .await?;
        Ok(told.globals.into_iter().map(|it| it.name).collect())
    }

    /// Returns how many interpreters were started so far: if it is the same as before, nothing was
    /// lost meanwhile that is not told by the next use.
    #[must_use]
    pub fn interpreters_started(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }

    /// Makes sure that there is an interpreter, though one was lost.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn ensure_started(&self) -> Result<(), SessionError> {
        match self.global_names().await {
            Err(SessionError::Lost(_)) => self.global_names().await.map(drop),
            other => other.map(drop),
        }
    }

    /// Interrupts what runs now, as Ctrl-C does: `KeyboardInterrupt`, and SIGINT for the processes
    /// that it started. Code may take no notice; a cancelled [`CellLimits`] is not as patient.
    pub fn interrupt(&self) {
        self.interrupts.send_modify(|count| *count += 1);
    }

    async fn ask_soon<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: Value,
    ) -> Result<T, SessionError> {
        let request = Request {
            operation,
            arguments,
            live: LiveOutput::discard(),
            takes_earlier_output: false,
            owns_output: false,
            terminal: None,
        };
        let until = CellLimits {
            timeout: Some(PROMPT_TIMEOUT),
            ..CellLimits::default()
        };
        read(self.ask(request, until).await?.reply)
    }

    async fn ask(&self, request: Request, until: CellLimits) -> Result<FinishedJob, SessionError> {
        let (done, answer) = oneshot::channel();
        let job = Job {
            request,
            until,
            done,
        };
        let gone = || SessionError::Internal("the session broke off".to_owned());
        let sent = self.jobs().send(job).await;
        sent.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Returns the way to the owner of the interpreter, which lives as long as its runtime does.
    fn jobs(&self) -> mpsc::Sender<Job> {
        let mut kept = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref().filter(|jobs| !jobs.is_closed()) {
            Some(jobs) => jobs.clone(),
            None => {
                let (jobs, waiting) = mpsc::channel(JOBS_WAITING_MAX);
                let interrupts = self.interrupts.subscribe();
                let starts = Arc::clone(&self.starts);
                let listener = self.listener.clone();
                let live = Arc::clone(&self.live);
                let settings = self.settings.clone();
                let owner = Owner::new(settings, live, waiting, interrupts, starts, listener);
                tokio::spawn(owner.serve());
                kept.insert(jobs).clone()
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("program", &self.settings.program)
            .finish_non_exhaustive()
    }
}

/// Result of a cell from the helper.
#[derive(Deserialize)]
struct CellResult {
    value_repr: Option<String>,
    truncated: bool,
    exception: Option<Exception>,
    interrupted: bool,
    leaves: bool,
}

fn read<T: DeserializeOwned>(reply: Reply) -> Result<T, SessionError> {
    if !reply.ok {
        return Err(SessionError::Internal(reply.message));
    }
    let odd = |err| SessionError::Internal(format!("the reply is malformed: {err}"));
    serde_json::from_value(reply.result).map_err(odd)
}
